//! hf-poll: wait for a job, and say what to run next.

use std::time::Duration;

use clap::Parser;

use super::args::{Common, parse_seconds};
use super::main::until_asked_to_end;
use super::{Command, Out, Output};
use crate::op::Context;
use crate::op::job::{self, PollRequest};

/// Wait for a job, at most so long that the caller's own time limit is not reached
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-poll T-0001
  hf-poll T-0001 15 60               wait a minute at most

It always exits 0; EXIT is 0 done, 1 failed, 2 still running (run NEXT as printed), 99 there is no such job,
64 the request is wrong."
)]
pub struct Args {
    /// The job: its task
    id: String,
    /// Seconds between two questions to a foreign job system
    #[arg(default_value = "15", value_parser = seconds)]
    interval: u64,
    /// Seconds to wait at most
    #[arg(default_value = "270", value_parser = seconds)]
    max_seconds: u64,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-poll";
    const POLL: bool = true;

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        let (interval, max) = (Duration::from_secs(self.interval), Duration::from_secs(self.max_seconds));
        let ctx = &until_asked_to_end(ctx)?;
        Ok(job::poll(ctx, PollRequest { id: self.id, interval, max })?.into())
    }
}

/// A number of seconds that is not zero.
fn seconds(text: &str) -> Result<u64, String> {
    match text.bytes().all(|b| b.is_ascii_digit()) {
        true => parse_seconds(text),
        false => Err("write a number of seconds, 1 or more".to_owned()),
    }
}
