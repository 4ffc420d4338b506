//! The processes of a run whose supervisor is gone: finds them, and ends them. And asks a supervisor to look at its flags.
//!
//! A process belongs to the run if it is its main process, in its control group, or below such a process; if it has `alive`
//! open; or if its environment names the run. Only supervisors of other jobs that were fired by the run, and what is below
//! them, do not belong to it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroup::RunGroup;
use super::descendants::{Process, ProcessTable, supervises};
use super::files::JobDir;
use super::identity::Identity;
use super::probe::{JobLiveness, probe};
use super::run::RUN_ID_VAR;
use super::tree::{end_all, named, unique};
use crate::base::{EntityId, Error, Result};
use crate::vault::lock::{self, LockMode};

/// Ends an orphaned run: TERM, then KILL after `grace`, until nothing is left. Returns the processes that could not be
/// ended, as `PID NAME`. Does nothing if the run is not orphaned.
pub fn kill_orphan(job: &JobDir, run_id: &EntityId, grace: Duration) -> Result<Vec<String>> {
    match probe(job, Some(run_id))? {
        JobLiveness::Orphaned(identity) => end_members(job, &identity, grace),
        _ => Ok(Vec::new()),
    }
}

/// Ends what the newest run of a job left behind. Returns the processes that could not be ended, as `PID NAME`.
pub fn end_rest(job: &JobDir, grace: Duration) -> Result<Vec<String>> {
    match job.identity()? {
        Some(identity) if identity.is_of_this_boot()? => end_members(job, &identity, grace),
        _ => Ok(Vec::new()),
    }
}

/// Whether a supervisor looks after processes that an ended run left behind, or such processes are alive without one.
pub fn has_rest(job: &JobDir) -> Result<bool> {
    let failed = |e| Error::system("cannot check a job's file", e);
    let is_held = |file: fs::File| lock::try_acquire(&file, LockMode::Shared).map(|is_free| !is_free).map_err(failed);
    Ok(job.left_file()?.map_or(Ok(false), is_held)? || !rest(job)?.is_empty())
}

/// The processes of the newest run of a job, as `PID NAME`.
pub fn rest(job: &JobDir) -> Result<Vec<String>> {
    match job.identity()? {
        Some(identity) if identity.is_of_this_boot()? => Ok(named(&members(&identity, alive_of(job)?))),
        _ => Ok(Vec::new()),
    }
}

fn end_members(job: &JobDir, identity: &Identity, grace: Duration) -> Result<Vec<String>> {
    let alive = alive_of(job)?;
    let group = identity.run_group();
    let kill = |left: &[Process]| {
        group.iter().for_each(RunGroup::kill);
        left.iter().for_each(|process| process.signal(Signal::KILL));
    };
    let left = end_all(grace, &|| members(identity, alive), &kill);
    group.iter().for_each(RunGroup::remove);
    Ok(named(&left))
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
        // Fails only if it is gone by now.
        let _ = pidfd_send_signal(&process, Signal::TERM);
        let _ = pidfd_send_signal(&process, Signal::CONT);
    }
}

/// One file of this machine: its device and its number there.
pub(super) type FileNumber = (u64, u64);

/// The `alive` file of the newest run.
pub(super) fn alive_of(job: &JobDir) -> Result<Option<FileNumber>> {
    number_of(job.alive_file())
}

fn number_of(file: Result<Option<fs::File>>) -> Result<Option<FileNumber>> {
    let failed = |e| Error::system("cannot check a file of a job", e);
    let number = |file: fs::File| file.metadata().map(|found| (found.dev(), found.ino()));
    file?.map(number).transpose().map_err(failed)
}

/// The live processes of a run.
pub(super) fn members(identity: &Identity, alive: Option<FileNumber>) -> Vec<Process> {
    let table = ProcessTable::read();
    let mut roots: BTreeSet<i32> = identity.run_group().iter().flat_map(RunGroup::pids).collect();
    roots.extend(table.pids().filter(|pid| belongs(&table, *pid, identity, alive)));
    roots.retain(|pid| !is_of_another_job(&table, *pid));
    let roots: Vec<i32> = roots.into_iter().collect();
    let mut found = table.below(&roots);
    found.extend(roots.iter().filter_map(|pid| table.process(*pid)));
    unique(found)
}

/// Whether a process itself shows that it belongs to the run.
fn belongs(table: &ProcessTable, pid: i32, identity: &Identity, alive: Option<FileNumber>) -> bool {
    let Some(stat) = table.stat(pid).filter(|stat| stat.start_ticks >= identity.start_ticks) else { return false };
    let is_main = pid == identity.pid && stat.start_ticks == identity.start_ticks;
    let is_named = || {
        let wanted = format!("{RUN_ID_VAR}={}", identity.run_id);
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    is_main || is_named() || alive.is_some_and(|alive| has_open(pid, alive))
}

/// Whether a process supervises a job, or is below one that does.
fn is_of_another_job(table: &ProcessTable, pid: i32) -> bool {
    let above = std::iter::successors(Some(pid), |pid| table.stat(*pid).map(|stat| stat.parent));
    above.take_while(|pid| *pid > 1).any(supervises)
}

/// Whether a process has this file open.
fn has_open(pid: i32, wanted: FileNumber) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::metadata(entry.path()).ok()).any(|found| (found.dev(), found.ino()) == wanted)
}
