//! The processes of a run whose supervisor is gone: finds them, and ends them. And asks a supervisor to look at its flags.
//!
//! A process belongs to a run if it is its main process, in its control group, or below such a process; if it has `alive`
//! open; or if its environment names the run. Only supervisors of other jobs that were fired by the run, and what is below
//! them, do not belong to it. Every run of the job counts: what the first one left behind outlives the second, too.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroup::RunGroup;
use super::descendants::{Process, ProcessTable, has_variable, supervised_task};
use super::files::JobDir;
use super::identity::{Identity, Stat};
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

/// Ends what the runs of a job left behind. Returns the processes that could not be ended, as `PID NAME`.
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

/// The processes of the runs of a job, as `PID NAME`.
pub fn rest(job: &JobDir) -> Result<Vec<String>> {
    match job.identity()? {
        Some(identity) if identity.is_of_this_boot()? => Ok(named(&Members::of_job(job, &identity)?.living())),
        _ => Ok(Vec::new()),
    }
}

fn end_members(job: &JobDir, identity: &Identity, grace: Duration) -> Result<Vec<String>> {
    let members = Members::of_job(job, identity)?;
    let kill = |left: &[Process]| {
        members.groups.iter().for_each(RunGroup::kill);
        left.iter().for_each(|process| process.signal(Signal::KILL));
    };
    let left = end_all(grace, &|| members.living(), &kill);
    members.groups.iter().for_each(RunGroup::remove);
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
type FileNumber = (u64, u64);

fn number_of(file: Result<Option<fs::File>>) -> Result<Option<FileNumber>> {
    let failed = |e| Error::system("cannot check a file of a job", e);
    let number = |file: fs::File| file.metadata().map(|found| (found.dev(), found.ino()));
    file?.map(number).transpose().map_err(failed)
}

/// How the processes of a job's runs are known.
pub(super) struct Members<'a> {
    task: &'a str,
    /// The main process of the newest run.
    identity: &'a Identity,
    /// The variable that names a run, with the id of each.
    variables: Vec<Vec<u8>>,
    groups: Vec<RunGroup>,
    /// The `alive` file of the newest run.
    alive: Option<FileNumber>,
}

impl Members<'_> {
    pub fn of_job<'a>(job: &'a JobDir, identity: &'a Identity) -> Result<Members<'a>> {
        let mut run_ids = job.runs()?;
        run_ids.extend(Some(identity.run_id.clone()).filter(|newest| !run_ids.contains(newest)));
        let variables = run_ids.iter().map(|run_id| format!("{RUN_ID_VAR}={run_id}").into_bytes()).collect();
        let groups = identity.run_groups(&run_ids);
        Ok(Members { task: job.task().as_str(), identity, variables, groups, alive: number_of(job.alive_file())? })
    }

    /// Those that are alive.
    pub fn living(&self) -> Vec<Process> {
        let table = ProcessTable::read();
        let mut roots: BTreeSet<i32> = self.groups.iter().flat_map(RunGroup::pids).collect();
        roots.extend(table.pids().filter(|pid| self.is_marked(&table, *pid)));
        roots.retain(|pid| !self.is_of_another_job(&table, *pid));
        let mut roots: Vec<i32> = roots.into_iter().collect();
        let mut found: Vec<Process> = roots.iter().filter_map(|pid| table.process(*pid)).collect();
        // What its own supervisor looks after, which may be a process of another user, of which nothing else is known.
        let supervisor = self.identity.supervisor;
        roots.extend(Some(supervisor).filter(|pid| supervised_task(*pid).as_deref() == Some(self.task)));
        found.extend(table.below(&roots));
        unique(found)
    }

    /// Whether a process itself shows that it belongs to a run.
    fn is_marked(&self, table: &ProcessTable, pid: i32) -> bool {
        let is_main = |stat: &Stat| pid == self.identity.pid && stat.start_ticks == self.identity.start_ticks;
        table.stat(pid).is_some_and(is_main)
            || self.is_named_by(pid)
            || self.alive.is_some_and(|alive| has_open(pid, alive))
    }

    /// Whether the environment of a process names a run.
    fn is_named_by(&self, pid: i32) -> bool {
        has_variable(pid, &|variable| self.variables.iter().any(|wanted| wanted == variable))
    }

    /// Whether a process supervises another job, or is below a supervisor that has the variables of a run because the run
    /// fired its job. A job that fired this one may be above it, too.
    fn is_of_another_job(&self, table: &ProcessTable, pid: i32) -> bool {
        let above = std::iter::successors(Some(pid), |pid| table.stat(*pid).map(|stat| stat.parent));
        let nearest = above.take_while(|pid| *pid > 1).find_map(|pid| Some((pid, supervised_task(pid)?)));
        nearest
            .is_some_and(|(supervisor, task)| task != self.task && (supervisor == pid || self.is_named_by(supervisor)))
    }
}

/// Whether a process has this file open.
fn has_open(pid: i32, wanted: FileNumber) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::metadata(entry.path()).ok()).any(|found| (found.dev(), found.ino()) == wanted)
}
