//! hf-watchdog: check for silent agents and overdue work, and have cron or systemd do so.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Parser};

use super::args::{GlobalArgs, parse_at_least_one};
use super::env::watchdog_program;
use super::main::has_flag;
use super::{Command, Output, StdoutWriter};
use crate::job::Signals;
use crate::op::{
    self, Context, DueWarningsRequest, InstallTimerRequest, Mode, UninstallTimerRequest, WatchdogRequest,
};
use crate::policy::scheduler::Scheduler;
use crate::reply::{Replies, Reply};

/// Check for silent agents, overdue work and anomalies, and act on them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-watchdog                        check once
  hf-watchdog --check                report only, change nothing
  hf-watchdog --install cron         let cron check every minute; systemd does so with --install systemd
  hf-watchdog --installed            is a timer set up, and does it work?
  hf-watchdog --every 60 --works ../ai-works

Notices and warnings appear only in the report. An error is also recorded: once when it begins, and once when it \
ends. hf-hooks(7) describes the commands that it runs.

--install sets up a timer for this vault, as often as watchdog.interval_seconds says: a line in your crontab, or two \
systemd units in your configuration directory. The entry names the vault, this program and --works by their full \
paths, and keeps HOME, PATH, TZ and XDG_CONFIG_HOME as they are now; whatever else a hook needs belongs in its \
command. Installing twice is the same as once. An older entry for the same vault is replaced, also one that was \
written by hand; all other lines and units stay as they are. A timer of systemd runs while you are logged in, or \
always after loginctl enable-linger. Only an operator installs or uninstalls a timer.

--installed exits 0 (INSTALLED) if nothing is known to be wrong. CHECK lines say what was checked and what could not \
be told. It exits 1 if a check failed (INCOMPLETE) or if there is no timer (NOT_INSTALLED); so does --install if the \
entry is made but nothing would run it yet.

A timer runs hf-watchdog --quiet, so cron mails, and the journal shows, only what needs attention: an error, such as a \
missing vault, each time; and what keeps a tick from doing all of its work, such as an unusable settings file, when it \
begins and again every watchdog.remind_every seconds. What a tick finds is for hooks and hf-status. Where no mail \
program is installed, cron drops the mail; hf-status then shows that the watchdog is late.

Exit codes of a tick: 0 if nothing is wrong, or only notices and warnings; 1 if there is an anomaly; others as in \
hf-output(7), if there was no tick."
)]
pub struct Args {
    /// Report what is wrong, but change nothing
    #[arg(long)]
    check: bool,
    /// Repeat every SECONDS seconds until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = parse_at_least_one, conflicts_with = "check")]
    every: Option<u64>,
    /// Print nothing about a tick; print errors, and warnings when they begin, to standard error
    #[arg(long)]
    quiet: bool,
    /// Let cron or systemd check this vault every minute
    #[arg(long, value_name = "SCHEDULER", value_parser = scheduler(), conflicts_with_all = ["check", "every", "quiet"])]
    install: Option<Scheduler>,
    /// Remove the timer of this vault
    #[arg(
        long,
        value_name = "SCHEDULER",
        value_parser = scheduler(),
        conflicts_with_all = ["check", "every", "quiet", "install"]
    )]
    uninstall: Option<Scheduler>,
    /// Check whether a timer is set up for this vault, and whether it works
    #[arg(long, conflicts_with_all = ["check", "every", "quiet", "install", "uninstall"])]
    installed: bool,
    /// Look for the files of agents (checkpoints, activity logs) in this directory instead of the vault [default: $HF_WORKS, or liveness.works_dir]
    #[arg(long, value_name = "DIR")]
    works: Option<std::path::PathBuf>,
    #[command(flatten)]
    global: GlobalArgs,
}

fn scheduler() -> impl TypedValueParser<Value = Scheduler> {
    let names = Scheduler::ALL.iter().map(|scheduler| scheduler.as_str());
    PossibleValuesParser::new(names).try_map(|name| Scheduler::parse(&name).ok_or("unknown scheduler"))
}

impl Command for Args {
    const NAME: &str = "hf-watchdog";

    /// A quiet watchdog prints errors to standard error.
    fn writes_document(matches: &ArgMatches) -> bool {
        has_flag(matches, &["quiet"])
    }

    fn run(self, ctx: &Context, out: StdoutWriter) -> anyhow::Result<Output> {
        if let Some(scheduler) = self.install {
            let request = InstallTimerRequest { scheduler, program: watchdog_program()? };
            return Ok(op::install_timer(ctx, request)?.into());
        }
        if let Some(scheduler) = self.uninstall {
            return Ok(op::uninstall_timer(ctx, UninstallTimerRequest { scheduler })?.into());
        }
        if self.installed {
            return Ok(op::check_timer(ctx)?.into());
        }
        match self.every {
            None => {
                let mode = if self.check { Mode::DryRun } else { Mode::Write };
                let reply = op::watchdog(ctx, WatchdogRequest { mode })?.reply();
                Ok(match (self.quiet, mode) {
                    (true, Mode::Write) => Output::Quiet(Box::new(with_due_warnings(ctx, reply))),
                    // It changes nothing, and so remembers nothing.
                    (true, Mode::DryRun) => Output::Quiet(Box::new(reply)),
                    (false, _) => Output::Reply(Box::new(reply)),
                })
            }
            Some(seconds) => watch(ctx, Duration::from_secs(seconds), self.quiet, out),
        }
    }
}

/// Runs one tick after another. If a tick fails, its error is printed and the loop continues.
fn watch(ctx: &Context, every: Duration, quiet: bool, out: StdoutWriter) -> anyhow::Result<Output> {
    let signals = Signals::of_waiter()?;
    while signals.asked().is_none() {
        let ctx = &ctx.at_this_moment();
        let done = op::watchdog(ctx, WatchdogRequest { mode: Mode::Write });
        match (done, quiet) {
            (Ok(done), true) => out.warn(&with_due_warnings(ctx, done.reply())),
            (Err(error), true) => out.complain(&out.error_reply(&error).warn(ctx.notices.take())),
            (done, false) => {
                let reply = done.map_or_else(|error| out.error_reply(&error), |done| done.reply());
                // What is wrong all the time is said once.
                if out.reply(&reply.warn(ctx.notices.take()))?.is_break() {
                    break;
                }
            }
        }
        signals.pause(every)?;
    }
    Ok(Output::Streamed)
}

/// The reply of a tick, with those warnings only that have to be printed now.
fn with_due_warnings(ctx: &Context, mut reply: Reply) -> Reply {
    let warnings = [std::mem::take(&mut reply.warnings), ctx.notices.take()].concat();
    let due = op::warnings_to_print(ctx, DueWarningsRequest { warnings: warnings.clone() });
    // What cannot be remembered is printed each time.
    reply.warn(due.unwrap_or(warnings))
}
