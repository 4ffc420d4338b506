//! hf-checkpoint: record that this agent is consciously at work.

use std::process::ExitCode;

use clap::Parser;
use hiveforge::op::agent::{self, CheckpointRequest};
use hiveforge::ui::{self, Agentic, Common, Key, Report, Status};

/// Say in one short line what you are doing
#[derive(Parser, Debug)]
#[command(
    name = "hf-checkpoint",
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

hiveforge::cli!(Args, by agent);

/// What to do when no activity log has come for long.
const SUGGESTION: &str = "this takes long: declare it with hf-deepwork start --flexible, or log what is done";

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let done = agent::checkpoint(env, &CheckpointRequest { activity: args.activity, state: args.state })?;
        Ok(Report::new(Status::Recorded, "the checkpoint is recorded")
            .with(Key::HeartbeatId, done.heartbeat_id.to_string())
            .with_some(Key::ElapsedS, done.elapsed_seconds)
            .with_some(Key::Previous, done.previous)
            .with_each(Key::Advice, done.suggest_deepwork.then_some(SUGGESTION))
            .warn(done.warnings)
            .into())
    })
}
