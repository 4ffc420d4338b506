//! hf-watchdog: look for what time has made overdue.

use std::process::ExitCode;

use clap::Parser;
use hiveforge::op;
use hiveforge::ui::{self, Common, Key, Next, Report, Status};

/// Look once for what time has made overdue, and record it
#[derive(Parser, Debug)]
#[command(
    name = "hf-watchdog",
    version,
    after_help = "Examples:
  hf-watchdog
  hf-watchdog --check                evaluate, change nothing"
)]
pub struct Args {
    /// Only say what is overdue
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    common: Common,
}

hiveforge::cli!(Args);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let done = op::watchdog(env, args.check)?;
        let anomalies: Vec<_> = done.findings.iter().filter(|o| o.code.is_anomaly()).collect();
        let report = match anomalies.len() {
            0 => Report::new(Status::Healthy, "nothing is overdue"),
            n => Report::new(Status::AnomalyFound, format!("{n} overdue")).next(Next::run("hf-status")),
        };
        let lines = anomalies.iter().map(|o| format!("{} {} error {}", o.code, o.subject, o.seconds));
        let report = report.with_each(Key::Anomaly, lines).with_each(Key::Did, done.did);
        Ok(report.warn(done.warnings).into())
    })
}
