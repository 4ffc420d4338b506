//! hf-pause: hold a project up, so that a person can look and mend.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hiveforge::op::pause;
use hiveforge::ui::{self, Acting, Common, Key, Projected, Report, Status, outcome};

/// Hold a project up: nothing starts in it, and its agents are asked to leave (for an operator)
#[derive(Parser, Debug)]
#[command(
    name = "hf-pause",
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
    #[arg(long, value_name = "TIME", value_parser = ui::parse_seconds, default_value = "330s", requires = "wait")]
    max: u64,
    #[command(flatten)]
    projected: Projected,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

hiveforge::cli!(Args, with acting, in project);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let done = match (args.archive, &args.reason) {
            (true, reason) => pause::archive(env, reason.as_deref())?,
            (false, Some(reason)) => pause::pause(env, reason)?,
            (false, None) => {
                return Ok(rest(Status::Paused, pause::wait_until_drained(env, Duration::from_secs(args.max))?).into());
            }
        };
        let (project, drained, left) = match args.wait {
            true => pause::wait_until_drained(env, Duration::from_secs(args.max))?,
            false => (done.project.clone(), done.drained, done.left.clone()),
        };
        let status = match (done.recorded.duplicate, args.archive) {
            (true, _) => Status::Duplicate,
            (false, true) => Status::Archived,
            (false, false) => Status::Paused,
        };
        let ids = done.recorded.ids.iter().map(ToString::to_string);
        let report = rest(status, (project, drained, left)).with_each(Key::EventId, ids);
        Ok(report.warn(done.recorded.warnings).into())
    })
}

/// How far a project has come to rest.
fn rest(status: Status, (project, drained, left): (hiveforge::state::Entity, bool, Vec<String>)) -> Report {
    Report::new(status, outcome::sentence(&project))
        .with(Key::State, project.state.as_str())
        .with(Key::Drained, if drained { "yes" } else { "no" })
        .with_each(Key::Left, left)
}
