//! hf-verify: verify the log, and everything derived from it.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{ArgMatches, Parser};

use super::args::{GlobalArgs, SignArgs};
use super::main::has_flag;
use super::progress::ProgressBar;
use super::{Command, Output, StdoutWriter};
use crate::base::{Error, text::cut};
use crate::chain::Head;
use crate::event::parse_ulid;
use crate::op::{self, Context, RecoverRequest, VerifyRequest, sign};
use crate::reply::Replies;
use crate::vault::Method;

/// Verify every line, hash link and id of the log, its tail and its head
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-verify
  hf-verify --anchor > anchor.txt                save the head; keep the file elsewhere
  hf-verify --policy --projections --artifacts   also check rules, caches and stored files
  hf-verify --expect-head \"$(cat anchor.txt)\"    check that the log still contains that head
  hf-verify --policy --operator-keys keys.pub    check that operators' acts are signed by these keys

Recovery keeps the intact events after the damage; hf-log --quarantined lists them.

The hash chain alone shows damage and edits. Only an anchor that you keep outside the vault can show that the end of \
the log was cut off, or that the whole log was rewritten."
)]
pub struct Args {
    /// Fail unless the log contains this head, as printed by --anchor (repeatable)
    #[arg(long = "expect-head", value_name = "ID:HASH")]
    expect_heads: Vec<String>,
    /// Trust the log up to this event, and check only what follows
    #[arg(long, value_name = "ID")]
    since: Option<String>,
    /// If the check passes, print the head as ID:HASH; the reply goes to standard error
    #[arg(long)]
    anchor: bool,
    /// Also compare the index, the projection files and the newest snapshot with the events
    #[arg(long)]
    projections: bool,
    /// Also replay the log against the rules: transitions, approvals, claims, stops, required reactions
    #[arg(long)]
    policy: bool,
    /// Also read every stored artifact and compare it with its hash
    #[arg(long)]
    artifacts: bool,
    /// Use the simple reference implementation: one thread, one event at a time
    #[arg(long, conflicts_with = "jobs")]
    reference: bool,
    /// Use N threads [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    jobs: Option<NonZero<usize>>,
    /// Show what a recovery from damage would cut off and keep; with --yes, do it and record it (operators only)
    #[arg(long, conflicts_with_all = ["expect_heads", "since", "anchor"])]
    recover: bool,
    /// Recover: cut the log before its first damaged line, and move the rest to quarantine
    #[arg(long, requires = "recover")]
    yes: bool,
    /// Fail unless every act of an operator is signed by a key in this file, which you keep outside the vault: lines of .pub files; includes --policy
    #[arg(long, value_name = "FILE")]
    operator_keys: Option<PathBuf>,
    /// With --recover in a vault with operator keys, sign with this key [default: $HF_OPERATOR_KEY, or the one in ~/.ssh]
    #[arg(long, value_name = "FILE", requires = "recover")]
    operator_key: Option<PathBuf>,
    /// With --recover in a vault with operator keys, hand in a signature that was made elsewhere
    #[arg(long, value_name = "FILE", requires = "recover", conflicts_with = "operator_key")]
    signature: Option<PathBuf>,
    /// With --recover, act as user:NAME [default: you]
    #[arg(long, value_name = "ACTOR", requires = "recover")]
    actor: Option<String>,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-verify";
    const EXIT_CODE_IS_THE_RESULT: bool = true;

    fn writes_document(matches: &ArgMatches) -> bool {
        has_flag(matches, &["anchor"])
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        if self.recover {
            let sign = SignArgs {
                operator_key: self.operator_key,
                signature: self.signature,
                statement: None,
                yes: self.yes,
            };
            return Ok(op::recover(&sign.context(ctx)?, RecoverRequest { confirmed: self.yes })?.into());
        }
        let head =
            |text: &String| Head::parse(text.trim()).ok_or_else(|| Error::usage(format!("invalid head '{}'; must be ID:sha256:HEX", cut(text, 40))));
        let since = |text: &String| parse_ulid(text).ok_or_else(|| Error::usage(format!("invalid event id '{}' for --since", cut(text, 40))));
        let request = VerifyRequest {
            method: if self.reference { Method::Reference } else { Method::Fast { jobs: self.jobs } },
            expected_heads: self.expect_heads.iter().map(head).collect::<Result<_, _>>()?,
            since: self.since.as_ref().map(since).transpose()?,
            projections: self.projections,
            policy: self.policy,
            artifacts: self.artifacts,
            operator_keys: self.operator_keys.as_deref().map(sign::read_keys).transpose()?,
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

fn parse_threads(text: &str) -> Result<NonZero<usize>, String> {
    text.parse().map_err(|_| "must be a whole number, 1 or more".to_owned())
}
