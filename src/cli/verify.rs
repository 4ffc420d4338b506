//! hf-verify: check the chain and what it proves.

use std::num::NonZero;

use clap::{ArgMatches, Parser};

use super::args::Common;
use super::main::flagged;
use super::progress::ProgressBar;
use super::{Command, Out, Output};
use crate::base::Error;
use crate::chain::Head;
use crate::event::parse_ulid;
use crate::op::{self, Context, RecoverRequest, VerifyRequest};
use crate::reply::Replies;
use crate::vault::Method;

/// Check every line, link and id of the log, its tail, its head, and heads that were kept elsewhere
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-verify
  hf-verify --anchor > anchor.txt                keep this somewhere else
  hf-verify --policy --projections --artifacts   the rules, the caches, the contents
  hf-verify --expect-head \"$(cat anchor.txt)\"    the log still begins with what it was then

An unkeyed chain shows accidents and edits; a log that was cut off or rewritten as a whole is seen
only against an anchor that was kept elsewhere."
)]
pub struct Args {
    /// A head that the log must contain, as --anchor printed it (repeatable)
    #[arg(long = "expect-head", value_name = "ID:HASH")]
    expect_heads: Vec<String>,
    /// Take this event for granted and check what follows it
    #[arg(long, value_name = "ID")]
    since: Option<String>,
    /// Print the head as ID:HASH if everything is right; the reply goes to standard error
    #[arg(long)]
    anchor: bool,
    /// Also compare index, projection files and newest snapshot with the events
    #[arg(long)]
    projections: bool,
    /// Also replay the log against the rules: transitions, approvals, claims, stops, what must follow
    #[arg(long)]
    policy: bool,
    /// Also read every stored content and compare it with its hash
    #[arg(long)]
    artifacts: bool,
    /// The plain check, one event after the other: parse, canonicalise, hash, compare
    #[arg(long, conflicts_with = "jobs")]
    reference: bool,
    /// How many threads to use; as many as the machine has if not given
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
    /// Move everything from the first bad line on to quarantine, and record that (operators only)
    #[arg(long, conflicts_with_all = ["expect_heads", "since", "anchor"])]
    recover: bool,
    /// Confirms --recover
    #[arg(long, requires = "recover")]
    yes: bool,
    /// Who recovers it: user:NAME; else you
    #[arg(long, value_name = "ACTOR", requires = "recover")]
    actor: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-verify";
    const EXIT_IS_THE_ANSWER: bool = true;

    fn is_document(matches: &ArgMatches) -> bool {
        flagged(matches, &["anchor"])
    }

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        if self.recover {
            return Ok(op::recover(ctx, RecoverRequest { confirmed: self.yes })?.into());
        }
        let head =
            |text: &String| Head::parse(text.trim()).ok_or_else(|| Error::usage("an expected head is ID:sha256:HEX"));
        let since = |text: &String| parse_ulid(text).ok_or_else(|| Error::usage("--since is an event id"));
        let request = VerifyRequest {
            method: if self.reference { Method::Reference } else { Method::Fast { jobs: self.jobs } },
            expected_heads: self.expect_heads.iter().map(head).collect::<Result<_, _>>()?,
            since: self.since.as_ref().map(since).transpose()?,
            projections: self.projections,
            policy: self.policy,
            artifacts: self.artifacts,
        };
        let mut bar = ProgressBar::new("verifying");
        let done = op::verify(ctx, request, &mut |done, total| bar.show(done, total))?;
        bar.clear();
        if !self.anchor {
            return Ok(done.into());
        }
        let anchor = done.verified.head.filter(|_| done.passed()).map(|head| format!("{head}\n"));
        Ok(Output::document(anchor.unwrap_or_default(), done.reply()))
    }
}
