//! hf-job: commands that outlive their caller.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use hiveforge::base::{Error, ShortRef, limits, text};
use hiveforge::job::{Beat, Need};
use hiveforge::op::Env;
use hiveforge::op::job::{self, FireOutcome, FireRequest, JobStanding, JobView, LogRequest, WaitOutcome};
use hiveforge::ui::{self, Acting, Common, Key, Keyed, Next, Out, Output, Projected, Report, Status};

/// Fire commands that outlive their caller, and look after them
#[derive(Parser, Debug)]
#[command(
    name = "hf-job",
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
    keyed: Keyed,
    #[command(flatten)]
    projected: Projected,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Fire a command and return at once
    Fire {
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
        #[arg(long, value_name = "TIME", value_parser = ui::parse_seconds)]
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
    },
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
        #[arg(long, value_name = "TIME", value_parser = ui::parse_seconds, default_value = "270s")]
        max: u64,
    },
    /// The supervisor of a job; hf-job starts it by itself
    #[command(hide = true)]
    Supervise {
        /// The task's id
        task: String,
    },
}

hiveforge::cli!(Args, with acting, in project, documents &["log"]);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, out| {
        let key = args.keyed.key;
        match args.what {
            What::Supervise { task } => {
                job::supervise(env, &task)?;
                Ok(Output::Streamed)
            }
            What::Check { reference } => Ok(checked(&job::check(env, &reference)?).into()),
            What::List { running, limit } => list(env, running, limit),
            What::Log { reference, tail, follow } => log(env, &reference, tail, follow, out),
            What::Cancel { reference } => {
                let (view, over) = job::cancel(env, &reference)?;
                let status = if over { Status::Duplicate } else { Status::Cancelled };
                Ok(about(status, &view).into())
            }
            What::Wait { references, any, max, .. } => {
                let need = if any { Need::Any } else { Need::All };
                Ok(waited(job::wait(env, &references, need, Duration::from_secs(max))?, need).into())
            }
            What::Fire {
                title,
                task,
                requirement,
                after,
                timeout,
                retries,
                cwd,
                variables,
                heartbeat,
                destructive,
                command,
            } => {
                let folder = cwd.unwrap_or_else(|| PathBuf::from("."));
                // A supervisor starts elsewhere: a folder that has no whole name would be another one there.
                let cwd = match folder.as_os_str().is_empty() {
                    true => folder,
                    false => std::path::absolute(&folder)
                        .map_err(|e| Error::system("cannot name the working directory", e))?,
                };
                let request = FireRequest {
                    argv: command,
                    title,
                    task,
                    requirement,
                    after,
                    timeout_seconds: timeout,
                    retries,
                    cwd,
                    env: variables.iter().map(variable).collect::<Result<_, _>>()?,
                    beat: Beat::parse(&heartbeat).unwrap_or(Beat::Timer),
                    destructive,
                };
                Ok(fired(&job::fire(env, request, key)?).into())
            }
        }
    })
}

fn variable(pair: &OsString) -> Result<(OsString, OsString), Error> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = pair.as_bytes();
    match bytes.iter().position(|b| *b == b'=').filter(|at| *at > 0) {
        Some(at) => Ok((OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec()))),
        None => Err(Error::usage("--env is NAME=VALUE")),
    }
}

/// The job's own name, for a command line.
fn reference(view: &hiveforge::state::Entity) -> Option<ShortRef> {
    view.reference().map(|reference| ShortRef { tag: None, ..reference })
}

fn fired(done: &FireOutcome) -> Report {
    let FireOutcome { task, run_id, logref, waits_for_approval, recorded } = done;
    let approval = *waits_for_approval;
    let status = match (recorded.duplicate, approval) {
        (true, _) => Status::Duplicate,
        (false, true) => Status::ApprovalRequired,
        (false, false) => Status::Fired,
    };
    let next = match (approval, reference(task)) {
        (false, Some(reference)) => Next::run("hf-poll").value(&reference),
        _ => Next::OPERATOR,
    };
    let title = text::cut(task.text("title").unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
    Report::new(status, format!("{} is {}: {title}", task.name(), task.state))
        .next(next)
        .with(Key::TaskId, task.name())
        .with(Key::RunId, run_id.as_str())
        .with(Key::Logref, logref.as_str())
        .with_each(Key::Entity, recorded.followed.iter().filter(|_| approval).map(ui::show::entity))
        .warn(recorded.warnings.clone())
}

fn status_of(view: &JobView) -> Status {
    match view.standing {
        JobStanding::Queued => Status::Queued,
        JobStanding::Running => Status::Running,
        JobStanding::Done => Status::Done,
        JobStanding::Fail => Status::Fail,
        JobStanding::Orphaned => Status::Orphaned,
        JobStanding::Lost => Status::Lost,
    }
}

fn about(status: Status, view: &JobView) -> Report {
    Report::new(status, view.summary())
        .with(Key::TaskId, view.task.name())
        .with_some(Key::RunId, view.run_id.clone())
        .with(Key::State, view.task.state.as_str())
        .with(Key::Logref, view.logref.as_str())
}

fn checked(view: &JobView) -> Report {
    let report = about(status_of(view), view);
    let last5 = view.record.as_ref().map(|record| record.last5.clone()).unwrap_or_default();
    match view.standing {
        JobStanding::Fail | JobStanding::Lost => report.next(Next::Patch).with_block(Key::Last5, last5),
        JobStanding::Done => report,
        _ => {
            let next = reference(&view.task).map(|reference| Next::run("hf-poll").value(&reference));
            report.next(next.unwrap_or(Next::None))
        }
    }
}

fn line(view: &JobView) -> String {
    let title = text::cut(view.task.text("title").unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
    format!("{} {} {} {title}", view.task.name(), view.standing, view.logref)
}

fn list(env: &Env, running: bool, limit: usize) -> anyhow::Result<Output> {
    let most = limits::LOG_PAGE_MAX_EVENTS;
    if limit == 0 || limit > most {
        return Err(Error::usage(format!("a list has 1 to {most} entries, not {limit}")).into());
    }
    let jobs = job::list(env, running, limit)?;
    let report = Report::new(Status::Ok, format!("{} jobs", jobs.len())).with(Key::Count, jobs.len() as u64);
    Ok(report.with_each(Key::Job, jobs.iter().map(line)).into())
}

fn waited(done: WaitOutcome, need: Need) -> Report {
    let failed = done.jobs.iter().filter(|view| matches!(view.standing, JobStanding::Fail | JobStanding::Lost)).count();
    let over = done.jobs.iter().filter(|view| view.standing == JobStanding::Done).count() + failed;
    let sum = format!("{over} of {} jobs are over, {failed} failed", done.jobs.len());
    let (status, next) = match (done.over, failed) {
        (true, 0) => (Status::Done, Next::None),
        (true, _) => (Status::Fail, Next::Patch),
        (false, _) => (Status::Running, again(&done.jobs, need)),
    };
    Report::new(status, sum).next(next).with_each(Key::Job, done.jobs.iter().map(line))
}

/// The same wait once more.
fn again(jobs: &[JobView], need: Need) -> Next {
    let names = jobs.iter().filter_map(|view| reference(&view.task));
    let wait = match need {
        Need::Any => "wait --any",
        Need::All => "wait",
    };
    names.fold(Next::run("hf-job").word(wait), |next, name| next.value(&name))
}

fn log(env: &Env, reference: &str, tail: Option<usize>, follow: bool, out: Out) -> anyhow::Result<Output> {
    let view = job::log(env, &LogRequest { reference, tail, follow }, &mut |piece| out.write(piece))?;
    Ok(Output::Document(Vec::new(), about(status_of(&view), &view)))
}
