//! Runs a short command, such as a hook, within a time limit: passes input, returns output and exit code.
//!
//! Invariant: no program that the toolkit starts has the shell of a person. A `Program` is the only way to run one here,
//! and a job gets the same variables in `run` (`a6_no_program_that_the_toolkit_starts_is_an_operator`).

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::clock;
use super::run::{AGENT_VAR, RUN_ID_VAR, TASK_ID_VAR};
use crate::base::{Error, Result, text};

/// How much of its output is kept.
pub const OUTPUT_MAX_BYTES: u64 = 1024 * 1024;
/// How long to wait for output after its end: a process that it left behind may keep the pipe open.
const DRAIN: Duration = Duration::from_secs(1);

/// The variables that say to which agent, session, run or task a shell belongs.
pub const OWNER_VARS: &[&str] = &[AGENT_VAR, "HF_SESSION", RUN_ID_VAR, TASK_ID_VAR];

/// A program of the settings (a hook, a reviewer, a command that queries another system) or ssh-keygen. Its shell is its
/// own, not that of the caller, and never a person's.
#[derive(Debug)]
pub struct Program(Command);

impl Program {
    /// A program, with the setting that it comes from, or what it is for, as its run.
    pub fn new(program: impl AsRef<OsStr>, setting: &str) -> Program {
        let mut command = Command::new(program);
        for name in OWNER_VARS {
            command.env_remove(name);
        }
        command.env(RUN_ID_VAR, setting);
        Program(command)
    }

    /// A command line for the shell.
    pub fn shell(line: &str, setting: &str) -> Program {
        Program::new("sh", setting).args(["-c", line])
    }

    /// The program acts as this agent.
    pub fn acting_as(mut self, agent: &str) -> Program {
        self.0.env(AGENT_VAR, agent);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Program {
        self.0.args(args);
        self
    }

    pub fn envs<'a>(mut self, variables: impl IntoIterator<Item = &'a (&'a str, String)>) -> Program {
        self.0.envs(variables.into_iter().map(|(name, value)| (name, value)));
        self
    }

    pub fn current_dir(mut self, dir: &Path) -> Program {
        self.0.current_dir(dir);
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

/// Runs a program with this input. After `max`, kills it with its process group.
pub fn ask(Program(mut command): Program, input: &[u8], max: Duration) -> Result<Answer> {
    let failed = |e: std::io::Error| Error::system("cannot run a command", e);
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    feed(&mut child, input.to_vec())?;
    let (stdout, stderr) = (collect(child.stdout.take())?, collect(child.stderr.take())?);
    let in_time = ends_within(&child, max)?;
    if !in_time && let Some(group) = Pid::from_raw(child.id() as i32) {
        // It may have ended in the meantime.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait().map_err(failed)?;
    if !in_time {
        return Err(Error::system(
            "the command timed out",
            format!("killed after {}", text::count_noun(max.as_secs(), "second")),
        ));
    }
    let output = |end: Receiver<Vec<u8>>| end.recv_timeout(DRAIN).unwrap_or_default();
    Ok(Answer { code: status.code(), stdout: output(stdout), stderr: output(stderr) })
}

/// Runs a program that may ask on the terminal and be answered there, without a time limit. What it says is not kept.
/// Returns its exit code; none if a signal ended it.
pub fn ask_on_terminal(Program(mut command): Program) -> Result<Option<i32>> {
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

fn collect(pipe: Option<impl Read + Send + 'static>) -> Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(OUTPUT_MAX_BYTES).read_to_end(&mut bytes);
            let _ = sender.send(bytes);
            // The rest is read and discarded, so that the command can finish.
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
    };
    thread::Builder::new().spawn(read).map_err(|e| Error::system("cannot run a command", e))?;
    Ok(receiver)
}

fn ends_within(child: &Child, max: Duration) -> Result<bool> {
    let failed = |e: rustix::io::Errno| Error::system("cannot wait for a command", e);
    let pid = Pid::from_raw(child.id() as i32).ok_or_else(|| failed(rustix::io::Errno::SRCH))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
    let until = clock::after(clock::now(), max);
    loop {
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        clock::poll_until(&mut fds, until)?;
        if !fds[0].revents().is_empty() {
            return Ok(true);
        }
        if until.is_some_and(|until| clock::now() >= until) {
            return Ok(false);
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

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_its_group() {
        let error = ask(shell("sleep 1000 & sleep 1000"), b"", Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.message, "the command timed out: killed after 0 seconds");
    }
}
