//! hf-stop: stop everything.

use std::process::ExitCode;

use clap::Parser;
use hiveforge::op;
use hiveforge::ui::{self, Acting, Common, Key, Next, Report, Status};

/// Stop everything: no work starts, what runs is ended; only an operator lifts it
#[derive(Parser, Debug)]
#[command(
    name = "hf-stop",
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

hiveforge::cli!(Args, with acting);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let done = op::stop(env, &args.reason)?;
        let (status, sum) = match (&done.unrecorded, done.duplicate) {
            (Some(error), _) => (Status::StoppedUnrecorded, format!("stopped, not recorded yet: {error}")),
            (None, true) => (Status::Duplicate, format!("stopped before: {}", done.reason)),
            (None, false) => (Status::Stopped, format!("everything is stopped: {}", done.reason)),
        };
        let report = Report::new(status, sum)
            .next(Next::OPERATOR)
            .with(Key::Drained, if done.left.is_empty() { "yes" } else { "no" })
            .with_each(Key::Left, done.left);
        Ok(report.warn(done.warnings).into())
    })
}
