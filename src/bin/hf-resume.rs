//! hf-resume: let work start again.

use std::process::ExitCode;

use clap::Parser;
use hiveforge::op;
use hiveforge::ui::{self, Acting, Common, Status, outcome};

/// Let work start again after a stop (for an operator)
#[derive(Parser, Debug)]
#[command(
    name = "hf-resume",
    version,
    after_help = "Examples:
  hf-resume --system"
)]
pub struct Args {
    /// Lift the emergency stop
    #[arg(long, required = true)]
    system: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

hiveforge::cli!(Args, with acting);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let done = op::resume_system(env, args.comment.as_deref())?;
        let status = if done.duplicate { Status::Duplicate } else { Status::Resumed };
        Ok(outcome::as_status(status, &done).into())
    })
}
