//! hf-status: how everything stands.

use std::process::ExitCode;

use clap::Parser;
use hiveforge::op::pause::ProjectView;
use hiveforge::op::{self, Metric, StatusOutcome};
use hiveforge::ui::{self, Common, Key, Report, Status};

/// Show how everything stands, on one screen
#[derive(Parser, Debug)]
#[command(
    name = "hf-status",
    version,
    after_help = "Examples:
  hf-status
  hf-status --json | jq .SYSTEM_STATE
  hf-status --metrics"
)]
pub struct Args {
    /// Figures: consistency, silence detection, completion, approval time-outs
    #[arg(long)]
    metrics: bool,
    #[command(flatten)]
    common: Common,
}

hiveforge::cli!(Args);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| match args.metrics {
        true => Ok(figures(&op::metrics(env)?).into()),
        false => Ok(report(&op::status(env)?, env.now.timestamp().0).into()),
    })
}

fn report(done: &StatusOutcome, now: i64) -> Report {
    let problem = done.problems.first().map(|(since, what)| format!("since {since} {what}"));
    let sum = match &problem {
        Some(problem) => format!("{}; {problem}", done.system),
        None => format!("{}, nothing needs a person", done.system),
    };
    let watchdog = done.watchdog.map_or("never".to_owned(), |tick| format!("{tick} {} s ago", (now - tick.0).max(0)));
    Report::new(Status::Ok, sum)
        .with(Key::SystemState, done.system.as_str())
        .with_each(Key::Tasks, done.tasks.iter().map(|(state, count)| format!("{state} {count}")))
        .with_each(Key::Project, done.projects.iter().map(project))
        .with(Key::PendingApprovals, done.pending_approvals)
        .with_some(Key::LastEventId, done.last_event.map(|(id, _)| id.to_string()))
        .with_some(Key::LastEventAt, done.last_event.map(|(_, at)| at.to_string()))
        .with(Key::Watchdog, watchdog)
        .with(Key::UptimeSeconds, done.uptime_seconds)
        .with(Key::Problems, done.problems.len() as u64)
        .with_some(Key::Problem, problem)
}

/// `main Paused 1 sessions, 2 under way, 5 open`.
fn project(view: &ProjectView) -> String {
    let ProjectView { name, state, sessions, running, open } = view;
    format!("{name} {state} {sessions} sessions, {running} under way, {open} open")
}

fn figures(metrics: &[Metric]) -> Report {
    let line = |m: &Metric| {
        let share = match m.whole {
            0 => "-".to_owned(),
            whole => format!("{:.1} %", m.part as f64 * 100.0 / whole as f64),
        };
        format!("{} {share} ({}/{} {}; aim: {})", m.name, m.part, m.whole, m.means, m.aim)
    };
    Report::new(Status::Ok, format!("{} figures", metrics.len())).with_each(Key::Metric, metrics.iter().map(line))
}
