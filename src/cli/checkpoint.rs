//! hf-checkpoint: record that this agent is consciously at work.

use clap::{ArgMatches, Parser};

use super::args::{Agentic, Common};
use super::{Command, Out, Output};
use crate::op::Context;
use crate::op::agent::{self, CheckpointRequest};

/// Say in one short line what you are doing
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-checkpoint 'Looking for the cause of the replace error'
  hf-checkpoint --agent painter 'Drawing the third character'
  hf-checkpoint --state 'Tests are green, review comes next'

It counts as a heartbeat of the tasks that you hold."
)]
pub struct Args {
    /// What you are doing
    activity: String,
    /// Also append a block to Autonomous/state/CHECKPOINTS.md, for a session that loses its context
    #[arg(long)]
    state: bool,
    #[command(flatten)]
    agentic: Agentic,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-checkpoint";

    fn is_agents(_: &ArgMatches) -> bool {
        true
    }

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(agent::checkpoint(ctx, CheckpointRequest { activity: self.activity, state: self.state })?.into())
    }
}
