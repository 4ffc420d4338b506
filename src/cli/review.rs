//! hf-review: reviewers take turns until the newest finds nothing.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Parser, Subcommand};

use super::args::{Acting, Common, Recording, read_text};
use super::main::called;
use super::{Command, Out, Output};
use crate::base::Error;
use crate::op::document::{self, ResolveRequest};
use crate::op::review::{self, FailsRequest, PromptRequest, RecordReviewRequest, RunReviewRequest};
use crate::op::Context;
use crate::reply::Replies;

/// Have a spec reviewed in turn, round by round
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-review prompt spec.md --reviewer gpt
  hf-review record --reviewer gpt <reply.txt
  hf-review fails R-gpt-0001
  hf-review status

A reply is PASS: and FAIL: ... -> FIX: lines, 200 words at most. One reply is one round, of four. They agree
when everybody has replied and the newest reply has no FAIL. hf-review run exits 0 then, 1 with FAIL lines to
fix, and 3 when every round is used."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Write what a reviewer is to be asked to standard output
    Prompt {
        /// The spec: a file, - for standard input, or a reference of hf-ref
        spec: PathBuf,
        /// Who is asked; else whose turn it is
        #[arg(long, value_name = "NAME")]
        reviewer: Option<String>,
    },
    /// Record a reviewer's reply from standard input
    Record {
        /// Who replied
        #[arg(long, value_name = "NAME")]
        reviewer: String,
        #[command(flatten)]
        recording: Recording,
    },
    /// Show the FAIL lines of a reply
    Fails {
        /// The reply, such as R-gpt-0001; else the newest
        reference: Option<String>,
    },
    /// Say whose turn it is, in which round, and whether the reviewers agree
    Status,
    /// Ask the reviewers in turn, by reviewers.NAME.command, until there is something to fix or they agree
    Run {
        /// The spec: a file, - for standard input, or a reference of hf-ref
        spec: PathBuf,
        #[command(flatten)]
        acting: Acting,
    },
    /// Open another debate; after one that used up its rounds, an operator has to
    Open {
        #[command(flatten)]
        acting: Acting,
    },
}

impl Command for Args {
    const NAME: &str = "hf-review";

    fn is_document(matches: &ArgMatches) -> bool {
        called(matches, &["prompt"])
    }

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Prompt { spec, reviewer } => {
                let spec = read_spec(ctx, &spec)?;
                let done = review::prompt(ctx, PromptRequest { spec, reviewer })?;
                Output::document(done.prompt.as_bytes(), done.reply())
            }
            What::Record { reviewer, recording } => {
                let reply = read_text(Some("-".to_owned()), None)?.unwrap_or_default();
                review::record(ctx, RecordReviewRequest { reviewer, reply, key: recording.key })?.into()
            }
            What::Fails { reference } => review::fails(ctx, FailsRequest { reference })?.into(),
            What::Status => review::status(ctx)?.into(),
            What::Run { spec, .. } => {
                let spec = read_spec(ctx, &spec)?;
                let watched = std::io::stderr().is_terminal();
                let mut tell = |reviewer: &str| {
                    if watched {
                        eprintln!("asking {reviewer} …");
                    }
                };
                review::run(ctx, RunReviewRequest { spec }, &mut tell)?.into()
            }
            What::Open { .. } => review::reopen(ctx)?.into(),
        })
    }
}

/// The text of a spec: a file, or what a reference of hf-ref stands for.
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
