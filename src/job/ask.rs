//! Runs a short command, such as a hook, within a time limit: passes input, returns output and exit code.
//!
//! Invariant: a command whose time is up, or whose caller is gone, leaves no process behind, whatever sessions they made
//! (`j15_a_killed_run_leaves_no_reviewer_behind`). `attend` sees to that. What a command leaves behind when it ends by
//! itself may continue, unless the program is to leave nothing (`j15_a_reviewer_that_ends_leaves_nothing_behind`).
//!
//! Invariant: no program that the toolkit starts has the shell of a person. A `Program` is the only way to run one here,
//! and a job gets the same variables in `run` (`a6_no_program_that_the_toolkit_starts_is_an_operator`).

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::attend::{self, Rest};
use super::clock;
use super::run::{AGENT_VAR, RUN_ID_VAR, TASK_ID_VAR};
use super::signals::Signals;
use super::wait::ControlWatch;
use crate::base::{Error, Result, text};

/// How much of its output is kept.
pub const OUTPUT_MAX_BYTES: u64 = 1024 * 1024;
/// How long to wait for output after its end: a process that it left behind may keep the pipe open.
const DRAIN: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 64 * 1024;

/// The variables that say to which agent, session, run or task a shell belongs.
pub const OWNER_VARS: &[&str] = &[AGENT_VAR, "HF_SESSION", RUN_ID_VAR, TASK_ID_VAR];

/// A program of the settings (a hook, a reviewer, a command that queries another system) or ssh-keygen. Its shell is its
/// own, not that of the caller, and never a person's.
#[derive(Debug)]
pub struct Program {
    command: Command,
    rest: Rest,
}

impl Program {
    /// A program, with the setting that it comes from, or what it is for, as its run.
    pub fn new(program: impl AsRef<OsStr>, setting: &str) -> Program {
        let mut command = Command::new(program);
        for name in OWNER_VARS {
            command.env_remove(name);
        }
        command.env(RUN_ID_VAR, setting);
        Program { command, rest: Rest::Continues }
    }

    /// A command line for the shell.
    pub fn shell(line: &str, setting: &str) -> Program {
        Program::new("sh", setting).args(["-c", line])
    }

    /// The program acts as this agent.
    pub fn acting_as(mut self, agent: &str) -> Program {
        self.command.env(AGENT_VAR, agent);
        self
    }

    /// What the program leaves behind when it ends by itself is ended.
    pub fn leaving_nothing(mut self) -> Program {
        self.rest = Rest::Ends;
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Program {
        self.command.args(args);
        self
    }

    pub fn envs<'a>(mut self, variables: impl IntoIterator<Item = &'a (&'a str, String)>) -> Program {
        self.command.envs(variables.into_iter().map(|(name, value)| (name, value)));
        self
    }

    pub fn current_dir(mut self, dir: &Path) -> Program {
        self.command.current_dir(dir);
        self
    }
}

/// The result of a short command.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// How often control files are checked anyway, because notifications can get lost.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What may end a program before its time is up.
#[expect(missing_debug_implementations, reason = "the check is a function")]
pub struct Interruption<'a> {
    /// Tells when to check.
    pub control: &'a ControlWatch,
    /// An error if the program must end, which becomes the result.
    pub check: &'a dyn Fn() -> Result<()>,
}

/// Runs a program with this input. After `max`, or when a signal arrives, ends it with everything that it started, and
/// returns none.
pub fn ask_for(program: Program, input: &[u8], max: Duration, signals: &Signals) -> Result<Option<Answer>> {
    match converse(program, input, max, Wake::Signals(signals))? {
        Conversation { end: ProgramEnd::ByItself, answer, .. } => Ok(Some(answer)),
        Conversation { end: ProgramEnd::TimeUp | ProgramEnd::Signalled, .. } => Ok(None),
    }
}

/// Runs a program with this input. After `max`, ends it with everything that it started.
pub fn ask(program: Program, input: &[u8], max: Duration) -> Result<Answer> {
    ask_unless(program, input, max, None)
}

/// The same; also ends it as soon as the check fails. Then its result is that error.
pub fn ask_unless(
    program: Program,
    input: &[u8],
    max: Duration,
    interruption: Option<&Interruption<'_>>,
) -> Result<Answer> {
    let Conversation { end, answer, left } =
        converse(program, input, max, interruption.map_or(Wake::Never, Wake::Control))?;
    match end {
        ProgramEnd::ByItself => Ok(answer),
        ProgramEnd::TimeUp | ProgramEnd::Signalled => {
            let how = format!("killed after {}{left}", text::count_noun(max.as_secs(), "second"));
            Err(Error::system("the command timed out", how))
        }
    }
}

/// What may end the wait for a program before its time is up.
#[derive(Clone, Copy)]
enum Wake<'a> {
    Never,
    Control(&'a Interruption<'a>),
    Signals(&'a Signals),
}

impl<'a> Wake<'a> {
    /// Readable when there may be a reason.
    fn descriptor(self) -> Option<BorrowedFd<'a>> {
        match self {
            Wake::Never => None,
            Wake::Control(interruption) => interruption.control.notice().descriptor(),
            Wake::Signals(signals) => Some(signals.as_fd()),
        }
    }
}

/// A program that has ended, or was ended.
struct Conversation {
    end: ProgramEnd,
    /// What it answered, if it ended by itself.
    answer: Answer,
    /// Whether something of a program that was ended is left, in words.
    left: &'static str,
}

fn converse(
    Program { mut command, rest }: Program,
    input: &[u8],
    max: Duration,
    wake: Wake<'_>,
) -> Result<Conversation> {
    let failed = |e: std::io::Error| Error::system("cannot run a command", e);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut attended = attend::attend(&mut command, rest).map_err(failed)?;
    let mut child = command.spawn().map_err(failed)?;
    drop(command);
    feed(&mut child, input.to_vec())?;
    let (stdout, stderr) = (collect(child.stdout.take())?, collect(child.stderr.take())?);
    let ending = wait_for_end(&child, max, wake);
    let by_itself = matches!(ending, Ok(ProgramEnd::ByItself));
    if !by_itself {
        attended.let_go();
    }
    let status = child.wait().map_err(failed)?;
    let left = if attended.is_clean(status) { "" } else { ", but some of its processes are still running" };
    let end = ending?;
    let until = clock::after(clock::now(), if by_itself { DRAIN } else { Duration::ZERO });
    let answer = Answer { code: status.code(), stdout: read_until(&stdout, until), stderr: read_until(&stderr, until) };
    Ok(Conversation { end, answer, left })
}

/// Runs a program that may ask on the terminal and be answered there, without a time limit. What it says is not kept.
/// Returns its exit code; none if a signal ended it.
pub fn ask_on_terminal(Program { mut command, .. }: Program) -> Result<Option<i32>> {
    // In the caller's process group: one in the background could not read from the terminal.
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    status.map(|status| status.code()).map_err(|e| Error::system("cannot run a command", e))
}

/// Writes the input in a separate thread, because the command need not read it.
fn feed(child: &mut Child, input: Vec<u8>) -> Result<()> {
    let Some(mut stdin) = child.stdin.take() else { return Ok(()) };
    let write = move || drop(stdin.write_all(&input));
    thread::Builder::new().spawn(write).map(drop).map_err(|e| Error::system("cannot run a command", e))
}

/// Reads a pipe in a separate thread, and passes on what is kept of it as it comes.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let Some(mut pipe) = pipe else { return };
        let mut kept = pipe.by_ref().take(OUTPUT_MAX_BYTES);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match kept.read(&mut buffer) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                // Nobody may want it any more; the command can still finish.
                Ok(bytes) => drop(sender.send(buffer[..bytes].to_vec())),
            }
        }
        drop(sender);
        // The rest is read and discarded, so that the command can finish.
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    };
    thread::Builder::new().spawn(read).map_err(|e| Error::system("cannot run a command", e))?;
    Ok(receiver)
}

/// What a pipe has brought when it ends, at the latest at `until`.
fn read_until(pipe: &Receiver<Vec<u8>>, until: Option<Instant>) -> Vec<u8> {
    let left = || until.map_or(Duration::MAX, |until| until.saturating_duration_since(clock::now()));
    std::iter::from_fn(|| pipe.recv_timeout(left()).ok()).flatten().collect()
}

/// Why a wait for a program ended.
enum ProgramEnd {
    ByItself,
    TimeUp,
    Signalled,
}

/// Waits until the program ends, its time is up, a signal arrives, or the check fails, which is an error.
fn wait_for_end(child: &Child, max: Duration, wake: Wake<'_>) -> Result<ProgramEnd> {
    let failed = |e: rustix::io::Errno| Error::system("cannot wait for a command", e);
    let pid = Pid::from_raw(child.id() as i32).ok_or_else(|| failed(rustix::io::Errno::SRCH))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
    let until = clock::after(clock::now(), max);
    loop {
        let mut next = until;
        match wake {
            Wake::Control(Interruption { check, .. }) => {
                check()?;
                next = [until, clock::after(clock::now(), CHECK_EVERY)].into_iter().flatten().min();
            }
            Wake::Signals(signals) if signals.asked().is_some() => return Ok(ProgramEnd::Signalled),
            Wake::Signals(_) | Wake::Never => {}
        }
        let mut fds = vec![PollFd::new(&pidfd, PollFlags::IN)];
        fds.extend(wake.descriptor().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        clock::poll_until(&mut fds, next)?;
        if !fds[0].revents().is_empty() {
            return Ok(ProgramEnd::ByItself);
        }
        if let Wake::Control(Interruption { control, .. }) = wake {
            control.notice().clear();
        }
        if until.is_some_and(|until| clock::now() >= until) {
            return Ok(ProgramEnd::TimeUp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::shell(script, "hooks.on_done")
    }

    #[test]
    fn input_goes_in_and_output_comes_back() {
        let answer = ask(shell("cat; echo oops >&2; exit 3"), b"hello", Duration::from_secs(60)).unwrap();
        assert_eq!((answer.code, answer.stdout, answer.stderr), (Some(3), b"hello".to_vec(), b"oops\n".to_vec()));
    }

    #[test]
    fn a_command_that_reads_nothing_or_prints_too_much_still_ends() {
        let large = vec![b'x'; 4 * 1024 * 1024];
        assert_eq!(ask(shell("exit 0"), &large, Duration::from_secs(60)).unwrap().code, Some(0));
        let answer = ask(shell("cat"), &large, Duration::from_secs(60)).unwrap();
        assert_eq!(answer.stdout.len() as u64, OUTPUT_MAX_BYTES);
    }

    /// A program that starts others in every way to get away, and waits. All of them hold the pipe open.
    const RUNAWAYS: &str = "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000 &' &); sleep 1000";

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_everything_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let script = format!("exec 3>'{}'; {RUNAWAYS}", pipe.display());
        // Ends when the last process that inherited the pipe has ended.
        let reader = thread::spawn(move || std::fs::read(pipe).unwrap());
        let error = ask(shell(&script), b"", Duration::from_millis(300)).unwrap_err();
        assert_eq!(error.message, "the command timed out: killed after 0 seconds");
        assert_eq!(reader.join().unwrap(), b"");
    }

    #[test]
    fn what_a_command_leaves_behind_when_it_ends_continues() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let script = format!("read go <'{0}' && echo done >'{0}' 2>/dev/null & exit 0", pipe.display());
        assert_eq!(ask(shell(&script), b"", Duration::from_secs(60)).unwrap().code, Some(0));
        std::fs::write(&pipe, "go\n").unwrap();
        assert_eq!(std::fs::read(&pipe).unwrap(), b"done\n");
    }

    #[test]
    fn what_was_printed_is_kept_though_a_process_holds_the_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let script = format!("echo out; echo err >&2; cat <'{}' & exit 3", pipe.display());
        let answer = ask(shell(&script), b"", Duration::from_secs(60)).unwrap();
        assert_eq!((answer.code, answer.stdout, answer.stderr), (Some(3), b"out\n".to_vec(), b"err\n".to_vec()));
        // It lives on, and ends now.
        std::fs::write(&pipe, "").unwrap();
    }

    #[test]
    fn a_program_that_is_to_leave_nothing_leaves_nothing() {
        for (end, code) in [("exit 3", Some(3)), ("kill -TERM $$", None)] {
            let dir = tempfile::tempdir().unwrap();
            let pipe = dir.path().join("pipe");
            rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
            let started = RUNAWAYS.trim_end_matches("sleep 1000");
            let script = format!("exec 3>'{}'; echo out; {started} {end}", pipe.display());
            // Ends when the last process that inherited the pipe has ended.
            let reader = thread::spawn(move || std::fs::read(pipe).unwrap());
            let answer = ask(shell(&script).leaving_nothing(), b"", Duration::from_secs(60)).unwrap();
            assert_eq!((answer.code, answer.stdout), (code, b"out\n".to_vec()));
            assert_eq!(reader.join().unwrap(), b"");
        }
    }

    #[test]
    fn a_command_that_is_interrupted_is_killed_and_the_reason_returned() {
        let dir = tempfile::tempdir().unwrap();
        let flag = dir.path().join("flag");
        let control = ControlWatch::of_paths([flag.clone()]);
        let check = || match flag.exists() {
            true => Err(Error::usage("enough")),
            false => Ok(()),
        };
        let interruption = Interruption { control: &control, check: &check };
        let script = format!("touch '{}'; sleep 1000", flag.display());
        let error = ask_unless(shell(&script), b"", Duration::from_secs(600), Some(&interruption)).unwrap_err();
        assert_eq!(error.message, "enough");
    }

    #[test]
    fn a_command_that_does_not_exist_is_an_error() {
        let error = ask(Program::new("/nowhere/x", "hooks.on_done"), b"", Duration::from_secs(60)).unwrap_err();
        assert!(error.message.starts_with("cannot run a command: No such file"), "{error}");
    }

    #[test]
    fn a_command_that_a_signal_ends_has_no_code() {
        assert_eq!(ask(shell("kill -TERM $$"), b"", Duration::from_secs(60)).unwrap().code, None);
    }
}
