//! hf-job: commands that run in the background.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args as Arguments, Parser, Subcommand};

use super::args::{ActorArgs, CreateArgs, FilterArgs, GlobalArgs, WorkArgs, parse_seconds};
use super::main::{cancel_on_signal, has_subcommand};
use super::{Command, Output, StdoutWriter};
use crate::base::{Error, limits};
use crate::job::{Beat, Need};
use crate::job::{Cancel, Signals};
use crate::op::job::{
    self, CancelRequest, CheckJobRequest, FireRequest, JobLogRequest, ListJobsRequest, SuperviseRequest, WaitRequest,
};
use crate::op::{self, Context, NotifyRequest};
use crate::reply::Replies;

/// Run commands in the background, independent of the caller, and manage them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-job fire --title 'Unit tests' -- sh run-tests.sh
  hf-job wait T-0002
  hf-job check T-0002
  hf-job log T-0002 --tail 20
  hf-job list --running
  hf-job cancel T-0002

A job is a task whose work is a command. hf-poll also waits for one, for callers with a time limit. If the time runs out, \
hf-job wait exits with 1. While an agent waits, the claims on its tasks are renewed, and it is not INACTIVE.

hf-job cancel, hf-task abort, a stop and a time limit end all processes of a job, whatever sessions they made: TERM, then \
KILL after jobs.kill_grace seconds, until none is left. Each one that cannot be ended is named (LEFT), and then the reply \
does not say CANCELLED. Processes that a job leaves behind when it ends by itself may go on; hf-job cancel and hf-stop end \
them, too, and so does a retry. A job that was fired by a job is not part of it. If the supervisor was killed, processes are found by their control group, \
where one can be made (jobs.control_groups), else by what they inherited: one that has given up everything is then not \
found.

A job that was fired with --key is fired once, however often that is repeated: if the first call was killed before the job \
had a supervisor, the next call starts it, and so does the next hf-poll, hf-job or hf-watchdog.

SUM about a job that failed begins with the exit code or signal, and LAST5 has the last lines of standard error, or of \
standard output if standard error has none. SUM also says if the log lacks output, because it was longer than \
jobs.log_max_bytes or could not be written.

A job whose supervisor was killed is lost, and jobs.on_finish is told so, unless it has retries left: then the next \
hf-poll, hf-job or hf-watchdog starts it again, never while a process of it is alive. It then has the variables given \
with --env, and of the caller's only PATH, HOME, USER, LOGNAME, SHELL, LANG, TZ, TMPDIR, XDG_CONFIG_HOME, LC_* and the toolkit's own: \
others may be secrets, and are not stored. The shell of a job has HF_RUN_ID and HF_TASK_ID, and HF_AGENT if an agent \
fired it, so that no command in it counts as an operator's.

A job that requires approval (--destructive, governance.destructive_commands) starts with an environment of its own: \
PATH, HOME, USER, LOGNAME, SHELL, LANG, TZ, TMPDIR and LC_*, those listed in jobs.pass_env, those given with --env and \
--secret-env, and the toolkit's own. An operator sees all of it, and the files that the command names; see hf-decide(1). \
If one of these files has changed when the job is about to start, the job waits for another approval. The value of a \
--secret-env variable is stored nowhere, so a job with one cannot be started again after its supervisor is lost."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

/// Arguments of `hf-job fire`.
#[derive(Arguments, Debug)]
struct FireArgs {
    /// A title for the task, in one line [default: the command]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Run the command for this task, such as T-0001, which nobody holds [default: a new task]
    #[arg(long, value_name = "REF", conflicts_with_all = ["after", "title", "requirement"])]
    task: Option<String>,
    /// The requirement that the new task implements, such as REQ-0001
    #[arg(long, value_name = "REF")]
    requirement: Option<String>,
    /// Start only after this task or job has succeeded (repeatable)
    #[arg(long, value_name = "REF")]
    after: Vec<String>,
    /// Stop the command after this time, such as 90s or 2h [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
    timeout: Option<u64>,
    /// Retry up to N times: after an exit code in jobs.transient_exit_codes, a signal, or the loss of the supervisor
    /// [default: 0; with --task, as often as it was proposed with]
    #[arg(long, value_name = "N")]
    retries: Option<u64>,
    /// Run the command in this directory [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Set an environment variable for the command (repeatable)
    #[arg(long = "env", value_name = "NAME=VALUE")]
    variables: Vec<OsString>,
    /// Pass a variable of the caller on without storing its value; an operator sees only a salted hash (repeatable)
    #[arg(long = "secret-env", value_name = "NAME")]
    secrets: Vec<String>,
    /// What counts as a sign of life: that the command runs (timer), or that it prints something (output)
    #[arg(long, value_name = "WHAT", value_parser = ["timer", "output"], default_value = "timer")]
    heartbeat: String,
    /// Require approval by an operator, because the command deletes or publishes something
    #[arg(long)]
    destructive: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    _create: CreateArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Start a command in the background
    Fire(Box<FireArgs>),
    /// Show the state of a job
    Check {
        /// The task of the job, such as T-0001
        reference: String,
    },
    /// List jobs, newest first
    List {
        /// Only jobs that have not ended
        #[arg(long)]
        running: bool,
        /// Show up to N jobs, 500 at most
        #[arg(long, value_name = "N", default_value_t = limits::PAGE_DEFAULT_COUNT)]
        limit: usize,
        #[command(flatten)]
        filter: FilterArgs,
    },
    /// Print the output of a job
    Log {
        /// The task of the job, such as T-0001
        reference: String,
        /// Print only the last N lines
        #[arg(long, value_name = "N")]
        tail: Option<usize>,
        /// Keep printing new output until the job ends
        #[arg(long)]
        follow: bool,
    },
    /// Stop a job
    Cancel {
        /// The task of the job, such as T-0001
        reference: String,
        #[command(flatten)]
        actor: ActorArgs,
    },
    /// Wait for jobs to end
    Wait {
        /// The tasks of the jobs, such as T-0001 T-0002
        #[arg(required = true)]
        references: Vec<String>,
        /// Wait until one of them has ended
        #[arg(long, conflicts_with = "all")]
        any: bool,
        /// Wait until all of them have ended (the default)
        #[arg(long)]
        all: bool,
        /// Wait up to this long, such as 90s or 10m [default: jobs.poll_max_seconds, 270 unless set]
        #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
        max: Option<u64>,
        #[command(flatten)]
        actor: ActorArgs,
    },
    /// Supervise a job; started by hf-job fire
    #[command(hide = true)]
    Supervise {
        /// The id of the task
        task: String,
    },
    /// Tell a hook of new events; started by the command that records them
    #[command(hide = true)]
    Notify {
        /// The setting of the hook, such as hooks.on_done
        hook: String,
    },
}

impl Command for Args {
    const NAME: &str = "hf-job";

    fn writes_document(matches: &ArgMatches) -> bool {
        has_subcommand(matches, &["log"])
    }

    fn run(self, ctx: &Context, out: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Supervise { task } => {
                let ctx = &ctx.with_cancel(Cancel::on(Signals::of_supervisor()?));
                job::supervise(ctx, SuperviseRequest { task })?;
                Output::Streamed
            }
            Verb::Notify { hook } => {
                op::notify(ctx, NotifyRequest { hook })?;
                Output::Streamed
            }
            Verb::Check { reference } => job::check(ctx, CheckJobRequest { reference })?.into(),
            Verb::List { running, limit, filter } => {
                job::list(ctx, ListJobsRequest { running, limit, filter: filter.filter(ctx)? })?.into()
            }
            Verb::Log { reference, tail, follow } => {
                let request = JobLogRequest { reference, tail, follow };
                let done = job::log(&cancel_on_signal(ctx)?, request, &mut |piece| out.document(piece))?;
                Output::document(Vec::new(), done.reply())
            }
            Verb::Cancel { reference, .. } => job::cancel(ctx, CancelRequest { reference })?.into(),
            Verb::Wait { references, any, max, .. } => {
                let need = if any { Need::Any } else { Need::All };
                let request = WaitRequest { references, need, max: max.map(Duration::from_secs) };
                job::wait(&cancel_on_signal(ctx)?, request)?.into()
            }
            Verb::Fire(fire) => job::fire(ctx, fire.request()?)?.into(),
        })
    }
}

impl FireArgs {
    fn request(self) -> Result<FireRequest, Error> {
        Ok(FireRequest {
            mission: None,
            argv: self.command,
            title: self.title,
            task: self.task,
            requirement: self.requirement,
            after: self.after,
            timeout_seconds: self.timeout,
            retries: self.retries,
            cwd: absolute(self.cwd)?,
            env: self.variables.iter().map(parse_variable).collect::<Result<_, _>>()?,
            secrets: self.secrets,
            beat: Beat::parse(&self.heartbeat).unwrap_or(Beat::Timer),
            destructive: self.destructive,
            key: self.work.write.key,
        })
    }
}

/// The working directory of a job as an absolute path, because the supervisor runs in another directory.
fn absolute(directory: Option<PathBuf>) -> Result<PathBuf, Error> {
    let directory = directory.unwrap_or_else(|| PathBuf::from("."));
    match directory.as_os_str().is_empty() {
        true => Ok(directory),
        false => std::path::absolute(&directory).map_err(|e| Error::system("cannot resolve the working directory", e)),
    }
}

/// Parses `NAME=VALUE`.
fn parse_variable(pair: &OsString) -> Result<(OsString, OsString), Error> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = pair.as_bytes();
    match bytes.iter().position(|b| *b == b'=').filter(|at| *at > 0) {
        Some(at) => Ok((OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec()))),
        None => Err(Error::usage("--env must be NAME=VALUE")),
    }
}
