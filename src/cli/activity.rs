//! hf-activity: log what was done.

use std::path::PathBuf;

use clap::{ArgMatches, Parser};

use super::args::{Agentic, Common, read_text};
use super::{Command, Out, Output};
use crate::op::Context;
use crate::op::agent::{self, ActivityRequest};

/// Log an activity that is over: thinking, observing, creating, introspection, …
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-activity --kind creating --title 'The third character' - < story.md
  hf-activity --kind introspection --title 'What this hour taught me'
  hf-activity --kind thinking --emergency 'The disk is full, that comes first'

A log completes an open deep work; the one after that has to be an introspection."
)]
pub struct Args {
    /// What kind of activity it was
    #[arg(long, value_name = "KIND")]
    kind: String,
    /// What it was, in one line
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// A file that holds the log
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    file: Option<PathBuf>,
    /// Read the log from standard input
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
    /// Put the duty to look inward off by this one log, and say why
    #[arg(long, value_name = "REASON")]
    emergency: Option<String>,
    #[command(flatten)]
    agentic: Agentic,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-activity";

    fn is_agents(_: &ArgMatches) -> bool {
        true
    }

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        let text = read_text(self.stdin, self.file.as_deref())?;
        let (kind, title, emergency) = (self.kind, self.title, self.emergency);
        Ok(agent::activity(ctx, ActivityRequest { kind, title, text, emergency })?.into())
    }
}
