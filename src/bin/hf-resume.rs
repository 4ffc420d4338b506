//! hf-resume: let work go on.

use std::process::ExitCode;

use clap::Parser;
use hiveforge::op::{self, pause};
use hiveforge::ui::{self, Acting, Common, Key, Projected, Report, Status, outcome};

/// Let a paused project go on, or everything after a stop (for an operator)
#[derive(Parser, Debug)]
#[command(
    name = "hf-resume",
    version,
    after_help = "Examples:
  hf-resume --system
  hf-resume --project main

A project goes on where it was: whoever held a task gets it back first. Nothing but --system lifts a stop."
)]
pub struct Args {
    /// Lift the emergency stop
    #[arg(long, conflicts_with = "project")]
    system: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
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
        let comment = args.comment.as_deref();
        let done = match args.system {
            true => op::resume_system(env, comment)?,
            false => {
                let done = pause::resume_project(env, comment)?;
                match done.recorded {
                    Some(recorded) => recorded,
                    None => {
                        let project = done.project;
                        let report =
                            Report::new(Status::Duplicate, format!("{} is {}", project.subject, project.state));
                        let report = report.with(Key::Subject, project.subject.to_string());
                        return Ok(report.with(Key::State, project.state.as_str()).into());
                    }
                }
            }
        };
        let status = if done.duplicate { Status::Duplicate } else { Status::Resumed };
        Ok(outcome::as_status(status, &done).into())
    })
}
