//! hf-stop: stop everything.

use clap::Parser;

use super::args::{Acting, Common};
use super::{Command, Out, Output};
use crate::op::{self, Context, StopRequest};

/// Stop everything: no work starts, what runs is ended; only an operator lifts it
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-stop 'It deletes the wrong files'

The stop holds from the moment its flag is up, also when the log cannot be written: then the reply is
STOPPED_UNRECORDED, and the next command records it. `hf-resume --system` lifts it."
)]
pub struct Args {
    /// Why
    reason: String,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-stop";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(op::stop(ctx, StopRequest { reason: self.reason })?.into())
    }
}
