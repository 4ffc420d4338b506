//! hf-status: the state of the system.

use clap::Parser;

use super::args::{FilterArgs, GlobalArgs};
use super::{Command, Output, StdoutWriter};
use crate::op::{self, Context, StatusRequest};

/// Show the state of the system on one screen
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-status
  hf-status --json | jq .system_state
  hf-status --metrics"
)]
pub struct Args {
    /// Show metrics: consistency, detection of silence, completed work, approval timeouts
    #[arg(long)]
    metrics: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-status";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.metrics {
            true => op::metrics(ctx)?.into(),
            false => op::status(ctx, StatusRequest { filter: self.filter.filter(ctx)? })?.into(),
        })
    }
}
