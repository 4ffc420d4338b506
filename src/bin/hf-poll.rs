//! hf-poll: wait for a job, and say what to run next.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hiveforge::op::job::{self, PollOutcome, PollRequest};
use hiveforge::ui::{self, Common, Key, Next, Report, Status};

/// Wait for a job, at most so long that the caller's own time limit is not reached
#[derive(Parser, Debug)]
#[command(
    name = "hf-poll",
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

hiveforge::cli!(Args, polls);

/// A number of seconds that is not zero.
fn seconds(text: &str) -> Result<u64, String> {
    match text.bytes().all(|b| b.is_ascii_digit()) {
        true => ui::parse_seconds(text),
        false => Err("write a number of seconds, 1 or more".to_owned()),
    }
}

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let (interval, max) = (Duration::from_secs(args.interval), Duration::from_secs(args.max_seconds));
        let done = job::poll(env, &PollRequest { id: args.id, interval, max })?;
        Ok(report(done, env.poll_as.as_deref()).into())
    })
}

/// The four blocks, to the letter; keys of our own stand behind theirs.
fn report(done: PollOutcome, called: Option<&str>) -> Report {
    match done {
        PollOutcome::Done { summary, logref } => Report::new(Status::Done, summary).with_some(Key::Logref, logref),
        PollOutcome::Running { summary, id } => {
            Report::new(Status::Running, summary).with_exit(2).next(Next::poll(called, &id))
        }
        PollOutcome::Fail { summary, last5, logref } => Report::new(Status::Fail, summary)
            .next(Next::Patch)
            .with_block(Key::Last5, last5)
            .with_some(Key::Logref, logref),
        PollOutcome::NotFound => Report::new(Status::NotFound, "Job does not exist").with_exit(99),
    }
}
