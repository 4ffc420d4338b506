//! All processes of a run, however they got away from its main process: by their group, by being below the supervisor,
//! which adopts them, and by the control group, where there is one.
//!
//! Ending them is a sweep until it is quiet: everybody is asked, then killed again and again until nobody is left, so that
//! a tree that forks meanwhile does not get away.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, wait};

use super::cgroup::RunGroup;
use super::clock;
use super::descendants::{Process, ProcessTable, supervises};

/// How often the processes are looked at while they are being ended: for those that are not our children there is no
/// notification.
pub const SWEEP_EVERY: Duration = Duration::from_millis(20);
/// How long killed processes may take to disappear.
pub const KILLED_WAIT: Duration = Duration::from_secs(10);

/// The processes of a run, as its supervisor sees them.
#[derive(Clone, Debug)]
pub struct RunTree {
    /// The main process, whose pid is the number of its process group.
    main: Pid,
    /// Whether this process adopts what the run leaves behind, so that everything below it belongs to the run.
    adopts: bool,
    group: Option<RunGroup>,
}

impl RunTree {
    pub fn new(main: Pid, adopts: bool, group: Option<RunGroup>) -> RunTree {
        RunTree { main, adopts, group }
    }

    /// The live processes.
    pub fn living(&self) -> Vec<Process> {
        let table = ProcessTable::read();
        let mut found = if self.adopts { table.below(&[raw(getpid())]) } else { Vec::new() };
        let main = raw(self.main);
        let of_group = table.pids().filter(|pid| table.stat(*pid).is_some_and(|stat| stat.group == main));
        found.extend(of_group.filter_map(|pid| table.process(pid)));
        found.extend(
            self.group.iter().flat_map(RunGroup::pids).filter(|pid| !supervises(*pid)).filter_map(Process::of_pid),
        );
        unique(found)
    }

    /// Whether nothing is left of the run. Cheaper than listing what is.
    pub fn is_gone(&self) -> bool {
        match self.adopts {
            // Without children there is nobody below them either.
            true => reap() && !self.group.as_ref().is_some_and(RunGroup::is_populated) || self.living().is_empty(),
            false => self.living().is_empty(),
        }
    }

    /// Asks all of them to end.
    pub fn ask(&self) {
        ask(&self.living());
    }

    /// Kills all of them. New ones may have appeared afterwards.
    pub fn kill(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        self.living().iter().for_each(|process| process.signal(Signal::KILL));
    }

    /// Gives up what the run needed, if nobody uses it any more.
    pub fn close(&self) {
        if let Some(group) = &self.group {
            group.remove();
        }
    }
}

/// Reaps children that have ended. Returns whether no child is left.
pub fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Asks processes to end.
pub fn ask(processes: &[Process]) {
    for process in processes {
        process.signal(Signal::TERM);
        // A stopped process would not receive it.
        process.signal(Signal::CONT);
    }
}

/// Ends processes: TERM, then KILL after `grace`, again and again. `living` lists those that are left, and `kill` kills
/// them. Returns those that could not be ended.
pub fn end_all(grace: Duration, living: &dyn Fn() -> Vec<Process>, kill: &dyn Fn(&[Process])) -> Vec<Process> {
    ask(&living());
    let kill_at = clock::after(clock::now(), grace);
    // Counted from the first kill: on a busy machine, listing hundreds of processes takes seconds.
    let mut give_up_at = None;
    let is_past = |at: Option<Instant>| at.is_some_and(|at| clock::now() >= at);
    loop {
        let left = living();
        if left.is_empty() || is_past(give_up_at) {
            return left;
        }
        if is_past(kill_at) {
            kill(&left);
            give_up_at = give_up_at.or_else(|| clock::after(clock::now(), KILLED_WAIT));
        }
        thread::sleep(SWEEP_EVERY);
    }
}

/// Processes as they are named in a reply: `PID NAME`.
pub fn named(processes: &[Process]) -> Vec<String> {
    processes.iter().map(|process| format!("{} {}", process.pid, crate::base::text::escape(&process.name))).collect()
}

/// Each process once, in the order of their pids.
pub fn unique(mut processes: Vec<Process>) -> Vec<Process> {
    let mut seen = BTreeSet::new();
    processes.retain(|process| seen.insert(process.pid));
    processes.sort_by_key(|process| process.pid);
    processes
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}
