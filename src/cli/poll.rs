//! hf-poll: wait for a job, and print the next command to run.

use std::time::Duration;

use clap::Parser;

use super::args::{ActorArgs, GlobalArgs, parse_seconds};
use super::main::cancel_on_signal;
use super::{AfterDelivery, Command, Output, StdoutWriter};
use crate::op::Context;
use crate::op::job::{self, PollOutcome, PollRequest};
use crate::op::mission::note_failure_was_reported;
use crate::reply::Replies;

/// How often a foreign job is checked if the caller says nothing.
const INTERVAL_DEFAULT_SECONDS: u64 = 15;

/// Wait for a job for a limited time, and print the next command to run
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-poll T-0001
  hf-poll T-0001 15 60               wait up to a minute

The process always exits 0. EXIT in the reply is 0 if the job is done, 1 if it failed, 2 if it is still running (run \
NEXT as printed), 99 if it was not found, 64 if the request is invalid or the task is not a job. NEXT:PATCH means: \
fix the problem, then run it again. NEXT:ASK operator means: it waits for an operator, or a stop ended it.

Waiting counts as work: while an agent waits, the claims on its tasks are renewed, and it is not INACTIVE."
)]
pub struct Args {
    /// The task of the job, such as T-0001, or the id of a job in another system (jobs.check_cmd)
    id: String,
    /// Check a job in another system every INTERVAL seconds [default: 15]
    #[arg(value_parser = parse_plain_seconds)]
    interval: Option<u64>,
    /// Wait up to this many seconds [default: jobs.poll_max_seconds, 270 unless set]
    #[arg(value_parser = parse_plain_seconds)]
    max_seconds: Option<u64>,
    #[command(flatten)]
    actor: ActorArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-poll";
    const EXITS_ZERO: bool = true;

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        let interval = Duration::from_secs(self.interval.unwrap_or(INTERVAL_DEFAULT_SECONDS));
        let max = self.max_seconds.map(Duration::from_secs);
        let limits = [self.interval, self.max_seconds].into_iter().flatten().map(|limit| limit as usize).collect();
        let ctx = &cancel_on_signal(ctx)?;
        let outcome = job::poll(ctx, PollRequest { id: self.id, interval, max, limits })?;
        let reported = match &outcome {
            PollOutcome::Fail { reports, .. } => reports.clone(),
            _ => None,
        };
        let Some(reported) = reported else { return Ok(outcome.into()) };
        // Its caller fixes it; if that cannot be recorded, hf-state go reports the failure again.
        let ctx = ctx.clone();
        let told = move || drop(note_failure_was_reported(&ctx, reported));
        Ok(Output::Delivered(Box::new(outcome.reply()), AfterDelivery(Box::new(told))))
    }
}

/// Parses a positive number of seconds, without a unit.
fn parse_plain_seconds(text: &str) -> Result<u64, String> {
    match text.bytes().all(|b| b.is_ascii_digit()) {
        true => parse_seconds(text),
        false => Err("must be a number of seconds, 1 or more".to_owned()),
    }
}
