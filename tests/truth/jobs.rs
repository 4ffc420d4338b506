//! The processes of a life: the commands that its jobs run, the gates that hold them, and their supervisors.
//!
//! Promise: when a life is over, no process of it is left. Only processes that run in the directory of the life, or
//! whose arguments or environment name it, are ever signalled.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use crate::life::Wrong;
use crate::place::Place;

/// What jobs do: they succeed, fail, fail for now, die of a signal, or wait at a gate to be told how to end.
const COMMANDS: [(&str, &str); 5] = [
    ("ok", "echo All tests passed"),
    ("fail", "echo Tests failed; echo oops >&2; exit 3"),
    ("soft", "exit 75"),
    ("crash", "kill -9 $$"),
    ("hold", "echo up >$1.at; read code <$1.go; exit $code"),
];

/// The exit code of a failure that may pass: a job with retries is tried again.
pub const TRANSIENT: i64 = 75;

/// How often something is looked at, a millisecond apart, until it is given up.
const LOOKS: u32 = 20_000;
const LOOK: Duration = Duration::from_millis(1);
/// How long the kernel may take to end a killed process.
const KILLED_WAIT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A place where commands wait.
struct Gate {
    at: File,
    go: File,
    /// How many commands have come.
    arrived: usize,
}

pub struct Jobs {
    dir: PathBuf,
    gates: BTreeMap<String, Gate>,
    /// Supervisors that were started here.
    children: Vec<Child>,
}

/// Looks until something is true.
pub fn until(what: &str, mut is_true: impl FnMut() -> Result<bool, Wrong>) -> Result<(), Wrong> {
    for _ in 0..LOOKS {
        if is_true()? {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    Err(Wrong::new(format!("waits: {what}"), format!("this does not happen: {what}")))
}

impl Jobs {
    /// Writes the commands into the directory of a life.
    pub fn new(dir: &Path) -> Jobs {
        for (name, text) in COMMANDS {
            let path = dir.join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("our own file");
        }
        Jobs { dir: dir.to_owned(), gates: BTreeMap::new(), children: Vec::new() }
    }

    /// Makes the gate that a command line names.
    pub fn prepare(&mut self, line: &str) {
        let Some(name) = line.split_once("./hold ").map(|(_, gate)| gate.to_owned()) else { return };
        let pipe = |end: &str| {
            let path = self.dir.join(format!("{name}.{end}"));
            if !path.exists() {
                mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
            }
            // Open at both ends, so that nothing blocks before a command is there.
            File::options().read(true).write(true).open(path).expect("a pipe")
        };
        let gate = || Gate { at: pipe("at"), go: pipe("go"), arrived: 0 };
        self.gates.entry(name.clone()).or_insert_with(gate);
    }

    /// How many commands have come to a gate so far.
    pub fn arrived(&mut self, gate: &str) -> usize {
        let Some(gate) = self.gates.get_mut(gate) else { return 0 };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let has_more = |at: &File| {
            let mut looked = [PollFd::new(at, PollFlags::IN)];
            retry_on_intr(|| poll(&mut looked, Some(&now))).is_ok_and(|n| n > 0)
        };
        while has_more(&gate.at) {
            let mut said = [0; 64];
            let n = gate.at.read(&mut said).expect("an open pipe");
            gate.arrived += said[..n].iter().filter(|byte| **byte == b'\n').count();
        }
        gate.arrived
    }

    /// Lets the command at a gate end with a code.
    pub fn open(&mut self, gate: &str, code: u8) {
        if let Some(gate) = self.gates.get_mut(gate) {
            gate.go.write_all(format!("{code}\n").as_bytes()).expect("an open pipe");
        }
    }

    fn folder(&self, task: &str) -> PathBuf {
        self.dir.join("Vault/Jobs").join(task.trim_start_matches("task:"))
    }

    /// Whether another process has a lock on a file of a job.
    fn is_locked(&self, task: &str, name: &str) -> bool {
        let Ok(file) = File::open(self.folder(task).join(name)) else { return false };
        flock(&file, FlockOperation::NonBlockingLockShared).is_err()
    }

    /// Whether a job has a supervisor.
    pub fn is_supervised(&self, task: &str) -> bool {
        self.is_locked(task, "lock")
    }

    /// The exit code of a run, if it is written down in the folder of its job.
    pub fn exit_record(&self, task: &str, run: &str) -> Option<i64> {
        let file = self.folder(task).join(format!("exit-{}.json", run.trim_start_matches("run:")));
        let record: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        record["ended"]["code"].as_i64()
    }

    /// Kills the supervisor of a job; its command dies with it.
    pub fn kill_supervisor(&self, task: &str) -> Result<(), Wrong> {
        let id = task.trim_start_matches("task:");
        // A job whose first supervisor dies before that is not lost: whoever looks next starts it.
        until("a supervisor has the job", || Ok(self.folder(task).join("taken").exists()))?;
        let supervises = |process: &Process| process.words.iter().any(|word| word == id.as_bytes());
        until("a killed job is gone", || {
            // One that is just being started has no words of its own yet, so look again.
            for process in self.processes().iter().filter(|process| supervises(process)) {
                process.kill();
            }
            Ok(!self.is_supervised(task) && !self.is_locked(task, "alive"))
        })
    }

    /// Replaces the supervisor of a job that has not begun by one that lives at this time: a process cannot be told that
    /// its clock has moved.
    pub fn renew_supervisor(&mut self, place: &Place, now: i64, task: &str) -> Result<(), Wrong> {
        self.kill_supervisor(task)?;
        let lock = File::options().read(true).write(true).open(self.folder(task).join("lock")).expect("a lock");
        // A process that is just being started elsewhere may hold it for a moment.
        flock(&lock, FlockOperation::LockExclusive).expect("a free lock");
        self.children.push(place.supervise(now, task.trim_start_matches("task:"), lock));
        Ok(())
    }

    /// Lets a command end, and kills its supervisor after it has written that down and before it could record it.
    pub fn end_unrecorded(&mut self, task: &str, run: &str, gate: &str, code: u8) -> Result<(), Wrong> {
        let lock = File::options().read(true).write(true).open(self.dir.join("Vault/Akashic/.lock")).expect("a lock");
        flock(&lock, FlockOperation::LockExclusive).expect("a free lock");
        self.open(gate, code);
        until("an exit record", || Ok(self.exit_record(task, run).is_some()))?;
        self.kill_supervisor(task)
    }

    /// Every process of this life.
    fn processes(&self) -> Vec<Process> {
        let dir = self.dir.as_os_str().as_bytes();
        let split = |text: Vec<u8>| text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let contains = |text: &[u8]| text.windows(dir.len()).any(|part| part == dir);
        let read = |pid: i32| {
            let file = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
            let words = fs::read(file("cmdline")).ok()?;
            let is_ours = fs::read_link(file("cwd")).is_ok_and(|cwd| cwd.starts_with(&self.dir))
                || contains(&words)
                || fs::read(file("environ")).is_ok_and(|variables| contains(&variables));
            is_ours.then(|| split(words))
        };
        let all = fs::read_dir("/proc").into_iter().flatten();
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let ours = pids.filter(|pid| *pid != std::process::id() as i32).filter_map(|pid| {
            read(pid)?;
            let held = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            // Once more, now that the pid cannot become another process.
            Some(Process { words: read(pid)?, held })
        });
        ours.collect()
    }
}

struct Process {
    words: Vec<Vec<u8>>,
    held: OwnedFd,
}

impl Process {
    /// Kills it and waits for its end. One that is gone already is fine.
    fn kill(&self) {
        if pidfd_send_signal(&self.held, Signal::KILL).is_ok() {
            let mut ends = [PollFd::new(&self.held, PollFlags::IN)];
            retry_on_intr(|| poll(&mut ends, Some(&KILLED_WAIT))).expect("a poll");
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        // New processes may start while old ones end.
        for _ in 0..10 {
            let left = self.processes();
            left.iter().for_each(Process::kill);
            for child in &mut self.children {
                child.wait().expect("it was started here");
            }
            if left.is_empty() {
                break;
            }
        }
    }
}
