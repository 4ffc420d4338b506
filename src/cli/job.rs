//! hf-job: commands that outlive their caller.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args as Arguments, Parser, Subcommand};

use super::args::{Acting, Common, Working, parse_seconds};
use super::main::called;
use super::main::until_asked_to_end;
use super::{Command, Out, Output};
use crate::base::{Error, limits};
use crate::job::{Beat, Need};
use crate::op::Context;
use crate::job::{Cancel, Signals};
use crate::op::job::{
    self, CancelRequest, CheckJobRequest, FireRequest, JobLogRequest, ListJobsRequest, SuperviseRequest, WaitRequest,
};
use crate::reply::Replies;

/// Fire commands that outlive their caller, and look after them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-job fire --title 'Unit tests' -- sh -c 'echo tested'
  hf-job wait T-0002
  hf-job check T-0002
  hf-job log T-0002 --tail 20
  hf-job list --running
  hf-job cancel T-0002

A job is the run of a task; hf-poll waits for one and says what to run next."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

/// A job that is to run.
#[derive(Arguments, Debug)]
struct Fire {
    /// What it is, in one line; else the command itself
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// A task that it does; else one is made
    #[arg(long, value_name = "REF", conflicts_with_all = ["after", "title", "retries", "requirement"])]
    task: Option<String>,
    /// The requirement that it is for
    #[arg(long, value_name = "REF")]
    requirement: Option<String>,
    /// A job or task that has to succeed first (repeatable)
    #[arg(long, value_name = "REF")]
    after: Vec<String>,
    /// End it after this time, such as 90s or 2h; else it runs to its end
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    timeout: Option<u64>,
    /// How often it is tried again after a failure that may pass
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u64,
    /// Run it in this folder; else in the current one
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A variable of its environment (repeatable)
    #[arg(long = "env", value_name = "NAME=VALUE")]
    variables: Vec<OsString>,
    /// What shows that it is alive: that it runs (timer), or that it prints (output)
    #[arg(long, value_name = "WHAT", value_parser = ["timer", "output"], default_value = "timer")]
    heartbeat: String,
    /// It deletes or publishes something: an operator has to allow it
    #[arg(long)]
    destructive: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    working: Working,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Fire a command and return at once
    Fire(Box<Fire>),
    /// Say how a job stands
    Check {
        /// The job: its task
        reference: String,
    },
    /// List jobs, newest first
    List {
        /// Only those that are not over
        #[arg(long)]
        running: bool,
        /// How many, 500 at most
        #[arg(long, value_name = "N", default_value_t = limits::LOG_PAGE_DEFAULT_EVENTS)]
        limit: usize,
    },
    /// Write what a job printed to standard output
    Log {
        /// The job: its task
        reference: String,
        /// Only the last lines
        #[arg(long, value_name = "N")]
        tail: Option<usize>,
        /// Go on as it prints, until it ends
        #[arg(long)]
        follow: bool,
    },
    /// End a job
    Cancel {
        /// The job: its task
        reference: String,
        #[command(flatten)]
        acting: Acting,
    },
    /// Wait for jobs
    Wait {
        /// The jobs: their tasks
        #[arg(required = true)]
        references: Vec<String>,
        /// Until one of them is over
        #[arg(long, conflicts_with = "all")]
        any: bool,
        /// Until all of them are over; so it is if nothing is said
        #[arg(long)]
        all: bool,
        /// At most this long
        #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "270s")]
        max: u64,
    },
    /// The supervisor of a job; hf-job starts it by itself
    #[command(hide = true)]
    Supervise {
        /// The task's id
        task: String,
    },
}

impl Command for Args {
    const NAME: &str = "hf-job";

    fn is_document(matches: &ArgMatches) -> bool {
        called(matches, &["log"])
    }

    fn run(self, ctx: &Context, out: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Supervise { task } => {
                let ctx = &ctx.with_cancel(Cancel::on(Signals::of_supervisor()?));
                job::supervise(ctx, SuperviseRequest { task })?;
                Output::Streamed
            }
            What::Check { reference } => job::check(ctx, CheckJobRequest { reference })?.into(),
            What::List { running, limit } => job::list(ctx, ListJobsRequest { running, limit })?.into(),
            What::Log { reference, tail, follow } => {
                let request = JobLogRequest { reference, tail, follow };
                let done = job::log(&until_asked_to_end(ctx)?, request, &mut |piece| out.write(piece))?;
                Output::document(Vec::new(), done.reply())
            }
            What::Cancel { reference, .. } => job::cancel(ctx, CancelRequest { reference })?.into(),
            What::Wait { references, any, max, .. } => {
                let need = if any { Need::Any } else { Need::All };
                let request = WaitRequest { references, need, max: Duration::from_secs(max) };
                job::wait(&until_asked_to_end(ctx)?, request)?.into()
            }
            What::Fire(fire) => job::fire(ctx, fire.request()?)?.into(),
        })
    }
}

impl Fire {
    fn request(self) -> Result<FireRequest, Error> {
        Ok(FireRequest {
            argv: self.command,
            title: self.title,
            task: self.task,
            requirement: self.requirement,
            after: self.after,
            timeout_seconds: self.timeout,
            retries: self.retries,
            cwd: absolute(self.cwd)?,
            env: self.variables.iter().map(variable).collect::<Result<_, _>>()?,
            beat: Beat::parse(&self.heartbeat).unwrap_or(Beat::Timer),
            destructive: self.destructive,
            key: self.working.recording.key,
        })
    }
}

/// The folder that a job runs in. A supervisor starts elsewhere: a folder that has no whole name would be
/// another one there.
fn absolute(folder: Option<PathBuf>) -> Result<PathBuf, Error> {
    let folder = folder.unwrap_or_else(|| PathBuf::from("."));
    match folder.as_os_str().is_empty() {
        true => Ok(folder),
        false => std::path::absolute(&folder).map_err(|e| Error::system("cannot name the working directory", e)),
    }
}

fn variable(pair: &OsString) -> Result<(OsString, OsString), Error> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = pair.as_bytes();
    match bytes.iter().position(|b| *b == b'=').filter(|at| *at > 0) {
        Some(at) => Ok((OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec()))),
        None => Err(Error::usage("--env is NAME=VALUE")),
    }
}
