//! hf-watchdog: look for what has fallen silent or is overdue.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hiveforge::job::Signals;
use hiveforge::op::{self, Env, Health, WatchdogOutcome};
use hiveforge::ui::{self, Cli, Common, Key, Next, Out, Output, Report, Status};

/// Look once for what has fallen silent or is overdue, and do what follows
#[derive(Parser, Debug)]
#[command(
    name = "hf-watchdog",
    version,
    after_help = "Examples:
  hf-watchdog                        one tick, for cron or a timer
  hf-watchdog --check                evaluate, change nothing
  hf-watchdog --every 60 --works ../ai-works

A level below error is a line of the report and nothing more; an error is recorded once when it begins and
once when it is over."
)]
pub struct Args {
    /// Only say what is wrong
    #[arg(long)]
    check: bool,
    /// Go on for ever, once in so many seconds; TERM ends it
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "check")]
    every: Option<u64>,
    /// An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir
    #[arg(long, value_name = "DIR")]
    works: Option<std::path::PathBuf>,
    #[command(flatten)]
    common: Common,
}

impl Cli for Args {
    fn common(&self) -> &Common {
        &self.common
    }

    fn works(&self) -> Option<std::path::PathBuf> {
        self.works.clone()
    }
}

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, out| match args.every {
        None => Ok(report(op::watchdog(env, args.check, None)?).into()),
        Some(seconds) => watch(env, Duration::from_secs(seconds), out),
    })
}

/// One tick after the other. One that fails is told of, and the next one comes.
fn watch(env: &Env, every: Duration, out: Out) -> anyhow::Result<Output> {
    let signals = Signals::of_waiter()?;
    while signals.asked().is_none() {
        let env = Env { now: (env.clock)(), ..env.clone() };
        let report = match op::watchdog(&env, false, Some(every)) {
            Ok(done) => report(done),
            Err(error) => ui::report_error::<Args>(&error.into()),
        };
        let reply = if out.json { report.json(None) } else { report.lines(None) };
        if out.write(reply.as_bytes())?.is_break() {
            break;
        }
        signals.pause(every)?;
    }
    Ok(Output::Streamed)
}

fn report(done: WatchdogOutcome) -> Report {
    let status = match done.health {
        Health::Healthy => Status::Healthy,
        Health::Warning => Status::Warning,
        Health::Anomaly => Status::AnomalyFound,
        Health::Paused => Status::Paused,
        Health::Stopped => Status::Stopped,
    };
    let sum = match done.findings.len() {
        0 => "nothing is wrong".to_owned(),
        n => format!("{n} findings, {} things done", done.did.len()),
    };
    let line = |f: &hiveforge::policy::liveness::Finding| format!("{} {} {} {}", f.code, f.subject, f.level, f.seconds);
    let mut advice: Vec<&str> = done.findings.iter().map(|finding| finding.code.advice()).collect();
    advice.dedup();
    Report::new(status, sum)
        .next(if status == Status::AnomalyFound { Next::run("hf-status") } else { Next::None })
        .with(Key::HeartbeatId, done.heartbeat_id.to_string())
        .with_each(Key::Anomaly, done.findings.iter().map(line))
        .with_each(Key::Advice, advice)
        .with_each(Key::Did, done.did)
        .with(Key::TickMs, done.tick_ms)
        .warn(done.warnings)
}
