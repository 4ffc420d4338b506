//! The processes below another process, as the kernel lists them at one moment.
//!
//! A supervisor of another job, and what is below it, is left out: it got here because a job fired it, and a job outlives
//! the job that fired it. It is known by its arguments and by the lock that it holds.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::detach::is_supervisors;
use super::files::task_of_held_file;
use super::identity::Stat;

const PROCESSES: &str = "/proc";

/// A live process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub(super) start_ticks: u64,
    pub name: String,
}

impl Process {
    /// The process with a pid; none if it is gone, or dead.
    pub fn of_pid(pid: i32) -> Option<Process> {
        let stat = Stat::read(pid).filter(|stat| !stat.is_dead())?;
        Some(Process { pid, start_ticks: stat.start_ticks, name: stat.name })
    }

    /// A descriptor that refers to this very process; none if it is gone.
    pub fn open(&self) -> Option<OwnedFd> {
        let opened = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Another process may have its pid by now.
        Stat::read(self.pid).filter(|stat| stat.start_ticks == self.start_ticks && !stat.is_dead()).map(|_| opened)
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(process) = self.open() {
            // Fails only if it is gone by now.
            let _ = pidfd_send_signal(&process, signal);
        }
    }
}

/// All processes of the machine that can be seen.
#[derive(Debug)]
pub struct ProcessTable {
    processes: HashMap<i32, Stat>,
    children: HashMap<i32, Vec<i32>>,
}

impl ProcessTable {
    pub fn read() -> ProcessTable {
        let (mut processes, mut children) = (HashMap::new(), HashMap::<i32, Vec<i32>>::new());
        let names = fs::read_dir(PROCESSES).into_iter().flatten().flatten();
        for pid in names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            if let Some(stat) = Stat::read(pid) {
                children.entry(stat.parent).or_default().push(pid);
                processes.insert(pid, stat);
            }
        }
        ProcessTable { processes, children }
    }

    pub fn pids(&self) -> impl Iterator<Item = i32> {
        self.processes.keys().copied()
    }

    pub fn stat(&self, pid: i32) -> Option<&Stat> {
        self.processes.get(&pid)
    }

    /// The live processes below these.
    pub fn below(&self, roots: &[i32]) -> Vec<Process> {
        let mut found = Vec::new();
        let mut left: Vec<i32> = roots.iter().flat_map(|root| self.children.get(root)).flatten().copied().collect();
        while let Some(pid) = left.pop() {
            if supervises(pid) {
                continue;
            }
            found.extend(self.process(pid));
            left.extend(self.children.get(&pid).into_iter().flatten());
        }
        found
    }

    /// A process, if it is alive.
    pub fn process(&self, pid: i32) -> Option<Process> {
        let stat = self.processes.get(&pid).filter(|stat| !stat.is_dead())?;
        Some(Process { pid, start_ticks: stat.start_ticks, name: stat.name.clone() })
    }
}

/// Whether the environment of a process has a variable that fits, written as `NAME=VALUE`. That of another user's process
/// cannot be read.
pub fn has_variable(pid: i32, fits: &dyn Fn(&[u8]) -> bool) -> bool {
    let variables = fs::read(format!("{PROCESSES}/{pid}/environ")).unwrap_or_default();
    variables.split(|&byte| byte == 0).any(fits)
}

/// Whether a process supervises a job.
pub fn supervises(pid: i32) -> bool {
    supervised_task(pid).is_some()
}

/// The task of the job that a process supervises: it has the arguments of a supervisor, and holds the lock of the job, or
/// the file that says that processes of the job are left. One that waits for the lock has it open, too, but not locked.
pub fn supervised_task(pid: i32) -> Option<String> {
    let of_process = Path::new(PROCESSES).join(pid.to_string());
    if !is_supervisors(&fs::read(of_process.join("cmdline")).ok()?) {
        return None;
    }
    let is_locked = |name: &OsStr| {
        let info = fs::read_to_string(of_process.join("fdinfo").join(name));
        info.is_ok_and(|info| info.lines().any(|line| line.starts_with("lock:") && line.contains(" WRITE ")))
    };
    let open = fs::read_dir(of_process.join("fd")).ok()?.flatten();
    open.filter(|entry| is_locked(&entry.file_name()))
        .find_map(|entry| task_of_held_file(&fs::read_link(entry.path()).ok()?).map(str::to_owned))
}
