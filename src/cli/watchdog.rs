//! hf-watchdog: look for what has fallen silent or is overdue.

use std::time::Duration;

use clap::Parser;

use super::args::Common;
use super::{Command, Out, Output};
use crate::job::Signals;
use crate::op::{self, Context, Mode, WatchdogRequest};
use crate::reply::Replies;

/// Look once for what has fallen silent or is overdue, and do what follows
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
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

impl Command for Args {
    const NAME: &str = "hf-watchdog";

    fn run(self, ctx: &Context, out: Out) -> anyhow::Result<Output> {
        match self.every {
            None => {
                let mode = if self.check { Mode::DryRun } else { Mode::Write };
                Ok(op::watchdog(ctx, WatchdogRequest { mode })?.into())
            }
            Some(seconds) => watch(ctx, Duration::from_secs(seconds), out),
        }
    }
}

/// One tick after the other. One that fails is told of, and the next one comes.
fn watch(ctx: &Context, every: Duration, out: Out) -> anyhow::Result<Output> {
    let signals = Signals::of_waiter()?;
    while signals.asked().is_none() {
        let ctx = &ctx.at_this_moment();
        let reply = match op::watchdog(ctx, WatchdogRequest { mode: Mode::Write }) {
            Ok(done) => done.reply(),
            Err(error) => out.error(&error),
        };
        if out.reply(&reply)?.is_break() {
            break;
        }
        signals.pause(every)?;
    }
    Ok(Output::Streamed)
}
