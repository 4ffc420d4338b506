//! hf-status: how everything stands.

use clap::Parser;

use super::args::Common;
use super::{Command, Out, Output};
use crate::op::{self, Context};

/// Show how everything stands, on one screen
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
    /// Figures: consistency, silence detection, completion, approval time-outs
    #[arg(long)]
    metrics: bool,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-status";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.metrics {
            true => op::metrics(ctx)?.into(),
            false => op::status(ctx)?.into(),
        })
    }
}
