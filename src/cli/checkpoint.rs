//! hf-checkpoint: record what an agent is doing, as a sign of life.

use clap::{ArgMatches, Parser};

use super::args::{AgentArgs, GlobalArgs};
use super::{Command, Output, StdoutWriter};
use crate::op::Context;
use crate::op::agent::{self, CheckpointRequest};

/// Record in one short line what you are doing
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-checkpoint 'Looking for the cause of the login error'
  hf-checkpoint --agent painter 'Drawing the third character'
  hf-checkpoint --state 'Tests pass, next: review'

A checkpoint is also a heartbeat for the tasks you have claimed."
)]
pub struct Args {
    /// What you are doing, in one line
    activity: String,
    /// Also append it to Autonomous/state/CHECKPOINTS.md, to read after losing your context, with the round and task of
    /// the mission, and whether M1.md is in step
    #[arg(long)]
    state: bool,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-checkpoint";

    fn acts_as_agent(_: &ArgMatches) -> bool {
        true
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(agent::checkpoint(ctx, CheckpointRequest { activity: self.activity, state: self.state })?.into())
    }
}
