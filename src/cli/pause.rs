//! hf-pause: hold a project up, so that a person can look and mend.

use std::time::Duration;

use clap::Parser;

use super::args::{Acting, Common, Projected, parse_seconds};
use super::main::until_asked_to_end;
use super::{Command, Out, Output};
use crate::op::Context;
use crate::op::pause::{self, RestRequest};

/// Hold a project up: nothing starts in it, and its agents are asked to leave (for an operator)
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-pause 'The direction is wrong'
  hf-pause 'Waiting for the review' --wait --max 10s
  hf-pause --archive 'It is done'

What runs comes to its end. Tasks stay where they are, and whoever holds one gets it back after hf-resume. Reading
goes on, and so does adding and assigning tasks. An archived project can only be read, for good."
)]
pub struct Args {
    /// Why
    #[arg(required_unless_present_any = ["archive", "wait"])]
    reason: Option<String>,
    /// Close the project for good
    #[arg(long, conflicts_with = "wait")]
    archive: bool,
    /// Wait until the last session and the last job are gone
    #[arg(long)]
    wait: bool,
    /// Wait at most this long
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "330s", requires = "wait")]
    max: u64,
    #[command(flatten)]
    projected: Projected,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-pause";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        let wait = self.wait.then(|| Duration::from_secs(self.max));
        let ctx = &if self.wait { until_asked_to_end(ctx)? } else { ctx.clone() };
        Ok(pause::rest(ctx, RestRequest { reason: self.reason, archive: self.archive, wait })?.into())
    }
}
