//! hf-watchdog: check for silent agents and overdue work.

use std::time::Duration;

use clap::Parser;

use super::args::{GlobalArgs, parse_at_least_one};
use super::{Command, Output, StdoutWriter};
use crate::job::Signals;
use crate::op::{self, Context, Mode, WatchdogRequest};
use crate::reply::Replies;

/// Check for silent agents, overdue work and anomalies, and act on them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-watchdog                        check once, from cron or a timer
  hf-watchdog --check                report only, change nothing
  hf-watchdog --every 60 --works ../ai-works

Notices and warnings appear only in the report. An error is also recorded: once when it begins, and once when it \
ends. hf-hooks(7) describes the commands that it runs."
)]
pub struct Args {
    /// Report what is wrong, but change nothing
    #[arg(long)]
    check: bool,
    /// Repeat every SECONDS seconds until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = parse_at_least_one, conflicts_with = "check")]
    every: Option<u64>,
    /// Look for the files of agents (checkpoints, activity logs) in this directory instead of the vault [default: $HF_WORKS, or liveness.works_dir]
    #[arg(long, value_name = "DIR")]
    works: Option<std::path::PathBuf>,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-watchdog";

    fn run(self, ctx: &Context, out: StdoutWriter) -> anyhow::Result<Output> {
        match self.every {
            None => {
                let mode = if self.check { Mode::DryRun } else { Mode::Write };
                Ok(op::watchdog(ctx, WatchdogRequest { mode })?.into())
            }
            Some(seconds) => watch(ctx, Duration::from_secs(seconds), out),
        }
    }
}

/// Runs one tick after another. If a tick fails, its error is printed and the loop continues.
fn watch(ctx: &Context, every: Duration, out: StdoutWriter) -> anyhow::Result<Output> {
    let signals = Signals::of_waiter()?;
    while signals.asked().is_none() {
        let ctx = &ctx.at_this_moment();
        let reply = match op::watchdog(ctx, WatchdogRequest { mode: Mode::Write }) {
            Ok(done) => done.reply(),
            Err(error) => out.error_reply(&error),
        };
        // What is wrong all the time is said once.
        let reply = reply.warn(ctx.notices.take());
        if out.reply(&reply)?.is_break() {
            break;
        }
        signals.pause(every)?;
    }
    Ok(Output::Streamed)
}
