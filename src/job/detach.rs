//! Starts a process that is independent of its caller: a program chosen by the front end, in its own session, with no
//! open files. A supervisor is one, with the lock that it takes over.
//!
//! The lock is its standard input. A flock belongs to the open file, not to the process, so it passes from the caller to
//! the supervisor without a gap.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper, setsid};

use super::birth::{self, Birth};
use super::cgroup;
use super::files::JobDir;
use super::lock::JobLock;
use crate::base::{Error, Result};
use crate::vault::lock::{self, LockMode};

/// The program that supervises jobs and runs hooks; it must understand `supervise TASK --vault DIR` and
/// `notify HOOK --vault DIR`.
#[derive(Clone, Debug)]
pub struct SupervisorProgram {
    pub program: PathBuf,
}

/// The variables that a supervisor starts with, and its command after it.
#[derive(Clone, Copy, Debug)]
pub enum StartWith<'a> {
    /// Those of the caller, who fired the job.
    CallersVariables,
    /// Only these: the caller has nothing to do with the job.
    Variables(&'a [(OsString, OsString)]),
}

/// The name of a supervisor in a list of processes.
const SUPERVISOR_NAME: &str = "hf-job";
/// The first argument of a supervisor.
pub const SUPERVISE: &str = "supervise";

/// Whether these are the arguments of a supervisor, each ended by a zero byte. Allocates nothing: it is also used between
/// fork and exec.
pub(super) fn is_supervisors(arguments: &[u8]) -> bool {
    arguments.split(|&byte| byte == 0).nth(1) == Some(SUPERVISE.as_bytes())
}

/// Starts the supervisor of the job whose lock is given. The arguments must contain absolute paths only, because it starts
/// in `/`. The caller has to wait for the child or exit: otherwise it stays a zombie after its end.
pub fn start_supervisor(
    supervisor: &SupervisorProgram,
    lock: JobLock,
    arguments: &[OsString],
    with: StartWith<'_>,
) -> Result<Child> {
    let failed = |e| Error::system("cannot start a supervisor", e);
    let stdin = lock.file().try_clone().map_err(failed)?;
    spawn(supervisor, Stdio::from(stdin), arguments, with).map_err(failed)
}

/// Starts the same program for something else. What is said about the arguments and the child of `start_supervisor`
/// applies here, too.
pub fn start_detached(program: &SupervisorProgram, arguments: &[OsString]) -> Result<Child> {
    spawn(program, Stdio::null(), arguments, StartWith::CallersVariables)
        .map_err(|e| Error::system("cannot start a process", e))
}

fn spawn(program: &SupervisorProgram, stdin: Stdio, arguments: &[OsString], with: StartWith<'_>) -> io::Result<Child> {
    let mut command = Command::new(&program.program);
    command.arg0(SUPERVISOR_NAME).args(arguments).current_dir("/");
    if let StartWith::Variables(variables) = with {
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    }
    command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
    birth::prepare(&mut command, Birth::Supervisor)?;
    command.spawn()
}

/// The supervisor's side: takes the lock from standard input and makes this process the leader of its session and the
/// parent of processes that the job leaves behind.
pub fn take_over(job: &JobDir) -> Result<JobLock> {
    let failed = |e| Error::system("cannot take over a job", e);
    let not_ours = || Error::usage(format!("standard input is not the lock of job {}", job.task()));
    let stdin = rustix::stdio::stdin();
    let file = std::fs::File::from(rustix::io::fcntl_dupfd_cloexec(stdin, 3).map_err(|e| failed(e.into()))?);
    let lock = job.lock_file()?.ok_or_else(not_ours)?;
    // Locking the same open file again has no effect; on a different one it would fail.
    if !lock::is_same(&file, &lock).map_err(failed)?
        || !lock::try_acquire(&file, LockMode::Exclusive).map_err(failed)?
    {
        return Err(not_ours());
    }
    let nothing = std::fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|e| failed(e.into()))?;
    // EPERM: it is a leader already. Comparing session ids instead would not work: in a pid namespace whose session was
    // started outside of it, the id is 0.
    if let Err(e) = setsid().map(drop)
        && e != Errno::PERM
    {
        return Err(failed(e.into()));
    }
    // Otherwise it would be called `exe` in a list of processes. Nothing depends on it.
    let _ = std::fs::write("/proc/self/comm", SUPERVISOR_NAME);
    set_child_subreaper(Some(getpid())).map_err(|e| failed(e.into()))?;
    cgroup::leave();
    job.note_taken()?;
    Ok(JobLock::new(file))
}
