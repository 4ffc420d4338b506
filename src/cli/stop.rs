//! hf-stop: stop all work.

use clap::Parser;

use super::args::{ActorArgs, GlobalArgs};
use super::{Command, Output, StdoutWriter};
use crate::op::{self, Context, StopRequest};

/// Stop all work in the vault: nothing new starts, and running jobs are ended
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-stop 'It deletes the wrong files'

Anyone can stop; resuming, with hf-resume --system, is for operators. The stop takes effect even if the log cannot be \
written: then the reply is STATUS:STOPPED_UNRECORDED, and the next command records the stop. Without this program, any \
entry Akashic/stop in the vault is a stop, such as one made by touch or mkdir; the first line of a file is the reason. \
hf-resume removes it.

DRAINED:yes means that no process of a job is left, also none that a finished job left behind. Otherwise each job that \
is left is named, with each of its processes (LEFT)."
)]
pub struct Args {
    /// Why, in one line
    reason: String,
    #[command(flatten)]
    actor: ActorArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-stop";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(op::stop(ctx, StopRequest { reason: self.reason })?.into())
    }
}
