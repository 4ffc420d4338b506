//! Signals to processes of jobs: ends those of a run whose supervisor is gone, and asks a supervisor to look at its flags.
//!
//! A process belongs to the run if it is the main process, or if its environment names the run and it is in the recorded
//! session or has `alive` open: a supervisor that was started by the job names the run, too, but has its own session and
//! closed what it inherited. Each process is opened as a pidfd before it is checked, so that no signal can reach another
//! process that reuses its pid.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::clock;
use super::files::JobDir;
use super::identity::{Identity, Stat};
use super::probe::{JobLiveness, probe};
use super::run::RUN_ID_VAR;
use crate::base::{EntityId, Error, Result};

/// New processes may appear while old ones are killed: this many attempts are made.
const KILL_PASSES: usize = 10;
/// How long killed processes may take to disappear.
const KILLED_WAIT: Duration = Duration::from_secs(2);

/// Ends an orphaned run: TERM, then KILL after `grace`. Returns the number of processes signalled; 0 if the run is not
/// orphaned.
pub fn kill_orphan(job: &JobDir, run_id: &EntityId, grace: Duration) -> Result<usize> {
    let JobLiveness::Orphaned(identity) = probe(job, Some(run_id))? else { return Ok(0) };
    let members = || members(&identity, alive_of(job)?);
    let asked = members()?;
    let mut signalled = asked.len();
    signal(&asked, Signal::TERM);
    signal(&asked, Signal::CONT);
    wait_for(asked, grace)?;
    for _ in 0..KILL_PASSES {
        let left = members()?;
        if left.is_empty() {
            return Ok(signalled);
        }
        signalled = signalled.max(left.len());
        signal(&left, Signal::KILL);
        wait_for(left, KILLED_WAIT)?;
    }
    Err(Error::system(format!("cannot end run {run_id}"), "some of its processes are still alive"))
}

/// Asks the supervisor of the newest run to end it now, even if it was suspended. Best effort: it sees a flag by itself.
pub fn signal_supervisor(job: &JobDir) {
    if let Ok(Some(identity)) = job.identity()
        && identity.is_of_this_boot().unwrap_or_default()
        && let Some(pid) = Pid::from_raw(identity.supervisor)
        && let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
        && let Ok(Some(lock)) = number_of(job.lock_file())
        // Another process may have its pid by now.
        && has_open(identity.supervisor, lock)
    {
        let supervisor = [process];
        signal(&supervisor, Signal::TERM);
        signal(&supervisor, Signal::CONT);
    }
}

/// One file of this machine: its device and its number there.
type FileNumber = (u64, u64);

/// The `alive` file of the newest run.
fn alive_of(job: &JobDir) -> Result<Option<FileNumber>> {
    number_of(job.alive_file())
}

fn number_of(file: Result<Option<fs::File>>) -> Result<Option<FileNumber>> {
    let failed = |e| Error::system("cannot check a file of a job", e);
    let number = |file: fs::File| file.metadata().map(|found| (found.dev(), found.ino()));
    file?.map(number).transpose().map_err(failed)
}

/// The live processes of a run.
fn members(identity: &Identity, alive: Option<FileNumber>) -> Result<Vec<OwnedFd>> {
    let names = fs::read_dir("/proc").map_err(|e| Error::system("cannot list processes", e))?;
    let pids = names.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(|pid| member(pid, identity, alive)).collect())
}

/// The process, if it is alive and belongs to the run.
fn member(pid: i32, identity: &Identity, alive: Option<FileNumber>) -> Option<OwnedFd> {
    let held = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let stat = Stat::read(pid)?;
    let is_main = pid == identity.pid && stat.start_ticks == identity.start_ticks;
    let named = || {
        let wanted = format!("{RUN_ID_VAR}={}", identity.run_id);
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let holds = || alive.is_some_and(|alive| has_open(pid, alive));
    let fits = stat.start_ticks >= identity.start_ticks && named() && (stat.session == identity.session || holds());
    (!stat.is_dead() && (is_main || fits)).then_some(held)
}

/// Whether a process has this file open.
fn has_open(pid: i32, wanted: FileNumber) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::metadata(entry.path()).ok()).any(|found| (found.dev(), found.ino()) == wanted)
}

fn signal(processes: &[OwnedFd], signal: Signal) {
    for process in processes {
        // Fails only if the process is gone.
        let _ = pidfd_send_signal(process, signal);
    }
}

/// Waits until all of them have ended, for `max` at most.
fn wait_for(mut processes: Vec<OwnedFd>, max: Duration) -> Result<()> {
    let until = clock::after(clock::now(), max);
    while !processes.is_empty() && until.is_none_or(|until| clock::now() < until) {
        let mut fds: Vec<_> =
            processes.iter().map(|process| PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)).collect();
        clock::poll_until(&mut fds, until)?;
        let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        processes.retain(|_| !ended.next().unwrap_or_default());
    }
    Ok(())
}
