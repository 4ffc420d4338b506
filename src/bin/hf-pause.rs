//! hf-pause: hold a project up, so that a person can look and mend.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hiveforge::machine::State;
use hiveforge::op::pause::{self, Standing};
use hiveforge::ui::{self, Acting, Common, Key, Projected, Report, Status};

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
            (true, reason) => Some(pause::archive(env, reason.as_deref())?),
            (false, Some(reason)) => Some(pause::pause(env, reason)?),
            (false, None) => None,
        };
        let (recorded, paused) = done.map_or((None, None), |done| (done.recorded, Some(done.project)));
        let project = match paused.filter(|_| !args.wait) {
            Some(project) => project,
            None => pause::wait_until_drained(env, Duration::from_secs(args.max))?,
        };
        let status = match (&recorded, args.archive) {
            (Some(recorded), _) if recorded.duplicate => Status::Duplicate,
            (Some(_), true) => Status::Archived,
            (Some(_), false) => Status::Paused,
            // Whoever only waited is told how it stands.
            (None, _) if project.state == State::Paused => Status::Paused,
            (None, _) => Status::Ok,
        };
        let ids = recorded.iter().flat_map(|recorded| &recorded.ids).map(ToString::to_string);
        let report = rest(status, &project).with_each(Key::EventId, ids);
        Ok(report.warn(recorded.map(|recorded| recorded.warnings).unwrap_or_default()).into())
    })
}

/// How far a project has come to rest.
fn rest(status: Status, project: &Standing) -> Report {
    Report::new(status, format!("{} is {}", project.subject, project.state))
        .with(Key::State, project.state.as_str())
        .with(Key::Drained, if project.left.is_empty() { "yes" } else { "no" })
        .with_each(Key::Left, project.left.clone())
}
