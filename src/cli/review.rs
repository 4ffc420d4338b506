//! hf-review: reviewers take turns until they agree.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Parser, Subcommand};

use super::args::{ActorArgs, GlobalArgs, WriteArgs, read_text};
use super::main::has_subcommand;
use super::{Command, Output, StdoutWriter};
use crate::base::Error;
use crate::op::document::{self, ResolveRequest};
use crate::op::review::{self, FailsRequest, PromptRequest, RecordReviewRequest, RunReviewRequest};
use crate::op::Context;
use crate::reply::Replies;

/// Have a spec reviewed by several reviewers in rounds, until they agree
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-review prompt spec.md --reviewer gpt
  hf-review record --reviewer gpt <reply.txt
  hf-review fails R-gpt-0001
  hf-review status

A reply consists of PASS: and FAIL: ... -> FIX: lines, up to 200 words. Each reply is one round, and there are four. \
The reviewers agree when all of them have replied and the newest reply has no FAIL line. hf-review run exits 0 if they \
agree, 1 if there are FAIL lines to fix (NEXT:PATCH), and 3 if all rounds are used up. It runs the command of a reviewer \
with HF_AGENT set to the reviewer's name and HF_RUN_ID to reviewers.NAME: a reviewer is an agent and cannot approve."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print the prompt for a reviewer
    Prompt {
        /// The spec: a file, - for standard input, or a reference from hf-ref
        spec: PathBuf,
        /// The reviewer [default: the one whose turn it is]
        #[arg(long, value_name = "NAME")]
        reviewer: Option<String>,
    },
    /// Record the reply of a reviewer from standard input
    Record {
        /// The reviewer who replied
        #[arg(long, value_name = "NAME")]
        reviewer: String,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Show the FAIL lines of a reply
    Fails {
        /// The reply, such as R-gpt-0001 [default: the newest]
        reference: Option<String>,
    },
    /// Show whose turn it is, the round, and whether the reviewers agree
    Status,
    /// Run reviewers.NAME.command for each reviewer in turn, until there is something to fix or they agree
    Run {
        /// The spec: a file, - for standard input, or a reference from hf-ref
        spec: PathBuf,
        #[command(flatten)]
        actor: ActorArgs,
    },
    /// Start a new debate; if the last one used up its rounds, only an operator can do this
    Open {
        #[command(flatten)]
        actor: ActorArgs,
    },
}

impl Command for Args {
    const NAME: &str = "hf-review";

    fn writes_document(matches: &ArgMatches) -> bool {
        has_subcommand(matches, &["prompt"])
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Prompt { spec, reviewer } => {
                let spec = read_spec(ctx, &spec)?;
                let done = review::prompt(ctx, PromptRequest { spec, reviewer })?;
                Output::document(done.prompt.as_bytes(), done.reply())
            }
            Verb::Record { reviewer, write } => {
                let reply = read_text(Some("-".to_owned()), None)?.unwrap_or_default();
                review::record(ctx, RecordReviewRequest { reviewer, reply, key: write.key })?.into()
            }
            Verb::Fails { reference } => review::fails(ctx, FailsRequest { reference })?.into(),
            Verb::Status => review::status(ctx)?.into(),
            Verb::Run { spec, .. } => {
                let spec = read_spec(ctx, &spec)?;
                let on_terminal = std::io::stderr().is_terminal();
                let mut announce = |reviewer: &str| {
                    if on_terminal {
                        eprintln!("asking {reviewer} …");
                    }
                };
                review::run(ctx, RunReviewRequest { spec }, &mut announce)?.into()
            }
            Verb::Open { .. } => review::reopen(ctx)?.into(),
        })
    }
}

/// Reads a spec from standard input, from the file of a reference from hf-ref, or from a file.
fn read_spec(ctx: &Context, spec: &Path) -> anyhow::Result<String> {
    let text = match spec.to_str() {
        Some("-") => read_text(Some("-".to_owned()), None)?,
        Some(name) if !spec.exists() && document::parse_reference(name).is_some() => {
            let found = document::resolve(ctx, ResolveRequest { reference: name.to_owned() })?;
            read_text(None, Some(&found.path))?
        }
        _ => read_text(None, Some(spec))?,
    };
    text.ok_or_else(|| Error::usage("the spec is empty").into())
}
