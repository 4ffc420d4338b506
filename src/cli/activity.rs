//! hf-activity: log a completed activity.

use std::path::PathBuf;

use clap::{ArgMatches, Parser};

use super::args::{AgentArgs, GlobalArgs, read_text};
use super::{Command, Output, StdoutWriter};
use crate::op::Context;
use crate::op::agent::{self, ActivityRequest};

/// Log a completed activity: thinking, observing, creating, introspection, …
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-activity --kind creating --title 'The third character' - < story.md
  hf-activity --kind introspection --title 'What I learned in the last hour'
  hf-activity --kind thinking --emergency 'The disk is full, fixing that first'

Logging an activity completes deep work; the next activity after that should be an introspection."
)]
pub struct Args {
    /// The kind of activity, one word, such as creating
    #[arg(long, value_name = "KIND")]
    kind: String,
    /// What you did, in one line
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Read the text of the entry from this file
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    file: Option<PathBuf>,
    /// Read the text of the entry from standard input
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
    /// Defer a required introspection by one activity, for this reason
    #[arg(long, value_name = "REASON")]
    emergency: Option<String>,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-activity";

    fn acts_as_agent(_: &ArgMatches) -> bool {
        true
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        let text = read_text(self.stdin, self.file.as_deref())?;
        let (kind, title, emergency) = (self.kind, self.title, self.emergency);
        Ok(agent::activity(ctx, ActivityRequest { kind, title, text, emergency })?.into())
    }
}
