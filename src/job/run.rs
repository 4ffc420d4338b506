//! One run of a job, from the start to its exit record.
//!
//! One poll waits for everything: the main process, its output, signals, control files and the next timer. The run ends
//! with its main process; processes that it leaves behind may continue, unless we ended the run.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::io::Errno;

use super::birth::{self, Birth, Gate};
use super::cgroup::RunGroup;
use super::clock;
use super::descendants::Process;
use super::exit::{Ended, ExitRecord, LogSize};
use super::files::JobDir;
use super::identity::Identity;
use super::lines::{LINE_MAX_CHARS, LastLines};
use super::log::JobLog;
use super::notice::Notice;
use super::processes::{RunProcesses, Stream};
use super::signals::Signals;
use super::spec::{Beat, RunCommand, RunEnvironment, Spec};
use super::tree::{RunTree, named};
use super::wait::ControlWatch;
use crate::base::{EntityId, Error, Now, Result, text};

/// How often control files are checked anyway, because notifications can get lost.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The delay before the next attempt if poll itself fails.
const POLL_FAILED_WAIT: Duration = Duration::from_millis(100);
const LAST_LINES: usize = 5;
/// How many processes that could not be ended are named in an exit record, whose space is limited.
const LEFT_MAX_COUNT: usize = 20;

/// Environment variables of every command.
pub const RUN_ID_VAR: &str = "HF_RUN_ID";
pub const AGENT_VAR: &str = "HF_AGENT";
pub const TASK_ID_VAR: &str = "HF_TASK_ID";
/// Of a command that does not inherit it.
const VAULT_VAR: &str = "HF_VAULT";

/// A request to end a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    pub why: String,
}

/// Called about what happens in a run, always from the thread of the run. Nothing else is watched in the meantime, so it
/// must not block for long.
pub trait Observer {
    /// The process of the command exists, in the command's directory, and waits. Whether the run must end instead.
    fn at_gate(&mut self, identity: &Identity) -> Option<Halt>;
    /// The command has started.
    fn started(&mut self, identity: &Identity);
    /// A heartbeat is due.
    fn beat(&mut self);
    /// Whether the run must end. Called before the command starts, whenever a control file changes, and once a second.
    fn halt(&mut self) -> Option<Halt>;
}

/// How a run ended, and whether its exit record was written.
#[derive(Debug)]
pub struct RunOutcome {
    pub record: ExitRecord,
    /// Whether the exit record is on disk.
    pub written: Result<()>,
    /// The processes of the run, if some may be left.
    pub rest: Option<RunTree>,
}

/// One run of a job.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "the clock is a function")]
pub struct JobRun<'a> {
    pub job: &'a JobDir,
    pub spec: &'a Spec,
    pub command: &'a RunCommand,
    pub run_id: &'a EntityId,
    /// The path of its log inside the vault; a new file.
    pub log: &'a Path,
    pub signals: &'a Signals,
    /// Watches the control files. Owned by the caller, because closing a watch takes milliseconds, which should not delay
    /// the release of the lock.
    pub control: &'a ControlWatch,
    /// The wall clock, for the exit record.
    pub now: &'a dyn Fn() -> Now,
}

/// A command that was started, or halted before that.
struct RunAttempt {
    ended: Ended,
    /// Its processes, if it was started.
    tree: Option<RunTree>,
    /// Those that could not be ended.
    left: Vec<Process>,
}

impl JobRun<'_> {
    /// Runs the command to its end. The caller holds the job's lock.
    pub fn run(&self, watch: &mut dyn Observer) -> RunOutcome {
        let started_at = (self.now)().timestamp();
        let slot = self.job.reserve_exit(self.run_id);
        let mut output = CapturedOutput::default();
        let group = self.spec.control_group.then(|| RunGroup::make(self.run_id)).flatten();
        let attempt = match &slot {
            Ok(_) => self.attempt(watch, group.clone(), &mut output),
            Err(e) => Err(e.clone()),
        };
        let (attempt, tree, left) = match attempt {
            Ok(RunAttempt { ended, tree, left }) => (Ok(ended), tree, left),
            Err(e) => (Err(e), None, Vec::new()),
        };
        let tree = tree.filter(|tree| !tree.is_gone());
        if let (Some(group), None) = (&group, &tree) {
            group.remove();
        }
        let short = |text: &str| text::cut(text, LINE_MAX_CHARS);
        let ended = match attempt {
            Ok(Ended::Halted { why }) => Ended::Halted { why: short(&why) },
            Ok(ended) => ended,
            Err(e) => Ended::NotStarted { reason: short(&e.message) },
        };
        let (last_line, last5, log) = output.finish();
        let record = ExitRecord {
            run_id: self.run_id.to_string(),
            ended,
            started_at,
            finished_at: (self.now)().timestamp(),
            last_line,
            last5,
            log,
            left: named(&left[..left.len().min(LEFT_MAX_COUNT)]),
        };
        let written = slot.and_then(|slot| slot.write(&record));
        RunOutcome { record, written, rest: tree }
    }

    /// Starts the command and waits for its end. An error means that it did not start.
    fn attempt(
        &self,
        watch: &mut dyn Observer,
        group: Option<RunGroup>,
        output: &mut CapturedOutput,
    ) -> Result<RunAttempt> {
        let mut command = self.command()?;
        output.log = Some(JobLog::new(self.job.new_vault_file(self.log)?, self.spec.log_max_bytes));
        let (mut gate, child_gate) = Gate::new().map_err(cannot_start)?;
        let entrance = group.as_ref().and_then(RunGroup::entrance);
        let birth = Birth::Command { alive: self.job.new_alive()?, entrance, gate: child_gate };
        birth::prepare(&mut command, birth).map_err(cannot_start)?;
        self.job.note_running()?;
        thread::scope(|scope| {
            let (sender, spawned) = mpsc::channel();
            let (_over, over) = mpsc::channel::<()>();
            let fork = move || {
                let child = command.spawn();
                // Closes our copies of `alive` and of the command's side of the gate.
                drop(command);
                let _ = sender.send(child);
                // The command gets TERM when the thread that forked it ends, so this thread must live as long as the run.
                let _ = over.recv();
            };
            thread::Builder::new().spawn_scoped(scope, fork).map_err(cannot_start)?;
            let mut halted = None;
            let mut identity = Err(Error::system("cannot start the command", "the process ended before it was ready"));
            if let Some(pid) = gate.arrival() {
                identity = Identity::of_process(pid, self.run_id.as_str(), group.as_ref())
                    .and_then(|identity| self.job.put_identity(&identity).map(|()| identity));
                halted = identity.as_ref().ok().and_then(|waiting| watch.at_gate(waiting));
                halted = halted.or_else(|| identity.is_ok().then(|| self.halt_now(watch)).flatten());
                if identity.is_ok() && halted.is_none() {
                    // If the process is gone, its exit status will tell.
                    let _ = gate.open();
                } else {
                    drop(gate);
                }
            }
            let child = spawned.recv().map_err(cannot_start)?;
            if let Some(halt) = halted {
                return Ok(RunAttempt { ended: Ended::Halted { why: halt.why }, tree: None, left: Vec::new() });
            }
            match (child, identity) {
                (Ok(child), Ok(identity)) => {
                    watch.started(&identity);
                    let mut processes = RunProcesses::of_child(child, group);
                    let ended = self.follow(&mut processes, self.control.notice(), watch, output);
                    let (tree, left) = processes.into_rest();
                    Ok(RunAttempt { ended, tree: Some(tree), left })
                }
                // Killed before it reached the gate.
                (Ok(mut child), Err(e)) => {
                    let _ = child.wait();
                    Err(e)
                }
                // We kept the gate closed.
                (Err(shut), Err(e)) if shut.raw_os_error() == Some(Errno::CANCELED.raw_os_error()) => Err(e),
                (Err(e), _) => Err(self.why_not(&e)),
            }
        })
    }

    fn command(&self) -> Result<Command> {
        let RunCommand { argv, cwd, environment, agent } = self.command;
        let mut argv = argv.iter();
        let program = argv.next().ok_or_else(|| Error::usage("missing command"))?;
        match fs::metadata(cwd) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(Error::usage(format!("the working directory {} is not a directory", cwd.display()))),
            Err(e) => return Err(Error::usage(format!("cannot use the working directory {}: {e}", cwd.display()))),
        }
        let mut command = Command::new(program);
        command.args(argv).current_dir(cwd).process_group(0);
        let variables = match environment {
            RunEnvironment::Inherited(variables) => variables,
            RunEnvironment::Only(variables) => {
                command.env_clear().env(VAULT_VAR, self.job.vault_path());
                variables
            }
        };
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.env(RUN_ID_VAR, self.run_id.as_str()).env(TASK_ID_VAR, self.job.task().as_str());
        // A job of an agent runs as that agent, whatever variables it was started with.
        if let Some(agent) = agent {
            command.env(AGENT_VAR, agent);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Why the command did not start.
    fn why_not(&self, error: &io::Error) -> Error {
        let program = self.command.argv.first().map_or(Path::new(""), Path::new);
        let name = program.display();
        let by_path = program.as_os_str().as_encoded_bytes().contains(&b'/');
        Error::usage(match error.kind() {
            io::ErrorKind::NotFound if by_path && self.command.cwd.join(program).exists() => {
                format!("the interpreter of {name} was not found")
            }
            io::ErrorKind::NotFound => format!("command not found: {name}"),
            io::ErrorKind::PermissionDenied => format!("permission denied: {name} is not executable"),
            io::ErrorKind::ArgumentListTooLong => format!("argument list too long: {name}"),
            _ => format!("cannot start {name}: {error}"),
        })
    }

    /// Whether the run must end now. A signal to this process is a request, too; who sends one after a flag was raised
    /// only makes sure that it is seen.
    fn halt_now(&self, watch: &mut dyn Observer) -> Option<Halt> {
        let by_signal = |number| Halt { why: format!("the supervisor was terminated (signal {number})") };
        watch.halt().or_else(|| self.signals.asked().map(by_signal))
    }

    /// Follows the command from its start to its end.
    fn follow(
        &self,
        processes: &mut RunProcesses,
        notice: &Notice,
        watch: &mut dyn Observer,
        output: &mut CapturedOutput,
    ) -> Ended {
        let began = clock::now();
        let timeout_at = self.spec.timeout.and_then(|timeout| clock::after(began, timeout));
        let mut beats = Beats::new(self.spec, began);
        let mut check_at = began;
        loop {
            let now = clock::now();
            let continues = processes.look(now);
            if let Some(ended) = processes.over(now) {
                return ended;
            }
            let mut halt = None;
            if continues && (now >= check_at || self.signals.asked().is_some()) {
                check_at = now + CHECK_EVERY;
                halt = self.halt_now(watch);
            }
            match halt {
                Some(halt) => processes.stop(Ended::Halted { why: halt.why }, self.spec.kill_grace, now),
                None if continues && timeout_at.is_some_and(|at| now >= at) => {
                    processes.stop(Ended::TimedOut, self.spec.kill_grace, now);
                }
                None if continues && beats.due(now, output.bytes) => watch.beat(),
                None => {}
            }
            // Once the run is ending, its own timers no longer matter.
            let timers = [timeout_at, beats.next, Some(check_at)].into_iter().filter(|_| continues).flatten();
            let until = timers.chain(processes.next_at(now)).chain([now + CHECK_EVERY]).min();
            let Ok(ready) = processes.wait(until, self.signals, notice) else {
                // Whatever happens here, the job continues.
                thread::sleep(POLL_FAILED_WAIT);
                continue;
            };
            if ready.notice {
                notice.clear();
                check_at = now;
            }
            for stream in Stream::ALL {
                output.push(stream, processes.read(stream, ready));
            }
        }
    }
}

fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::system("cannot start the command", error)
}

/// The output of the command.
#[derive(Debug)]
struct CapturedOutput {
    log: Option<JobLog>,
    stdout: LastLines,
    stderr: LastLines,
    bytes: u64,
}

impl Default for CapturedOutput {
    fn default() -> Self {
        let lines = || LastLines::new(LAST_LINES);
        CapturedOutput { log: None, stdout: lines(), stderr: lines(), bytes: 0 }
    }
}

impl CapturedOutput {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(log) = &mut self.log {
            log.push(bytes);
        }
        match stream {
            Stream::Stdout => self.stdout.push(bytes),
            Stream::Stderr => self.stderr.push(bytes),
        }
    }

    /// The last line of standard output; the last lines of standard error, or of standard output if there are none.
    fn finish(self) -> (Option<String>, Vec<String>, LogSize) {
        let log = self.log.map(JobLog::finish).unwrap_or_default();
        let (stdout, stderr) = (self.stdout.finish(), self.stderr.finish());
        (stdout.last().cloned(), if stderr.is_empty() { stdout } else { stderr }, log)
    }
}

/// When heartbeats are due: at most one per interval.
struct Beats {
    every: Option<Duration>,
    beat: Beat,
    next: Option<Instant>,
    /// The number of bytes of output at the last heartbeat.
    reported: u64,
}

impl Beats {
    fn new(spec: &Spec, began: Instant) -> Beats {
        let every = spec.heartbeat.filter(|every| !every.is_zero());
        Beats { every, beat: spec.beat, next: every.and_then(|every| clock::after(began, every)), reported: 0 }
    }

    fn due(&mut self, now: Instant, output: u64) -> bool {
        if self.next.is_none_or(|next| now < next) {
            return false;
        }
        // Counted from now, not from when it was due: after a suspension, there is one heartbeat, not a hundred.
        self.next = self.every.and_then(|every| clock::after(now, every));
        let printed = output > self.reported;
        self.reported = output;
        self.beat == Beat::Timer || printed
    }
}
