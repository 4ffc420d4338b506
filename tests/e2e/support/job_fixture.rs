//! Jobs for tests: they can be held at gates and observed from outside.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use hiveforge::base::seal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use crate::support::steps::{id, ok};
use crate::support::test_vault::{Reply, TestVault, write_private};

/// No test waits longer than this for an expected event.
const LONG: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// A vault in which jobs are fired.
pub struct TestJobVault {
    hive: TestVault,
}

impl Deref for TestJobVault {
    type Target = TestVault;

    fn deref(&self) -> &TestVault {
        &self.hive
    }
}

impl DerefMut for TestJobVault {
    fn deref_mut(&mut self) -> &mut TestVault {
        &mut self.hive
    }
}

impl TestJobVault {
    /// A vault with these settings.
    pub fn new(settings: &str) -> TestJobVault {
        let story = TestJobVault { hive: TestVault::new() };
        story.settle(settings);
        story
    }

    /// Replaces the settings.
    pub fn settle(&self, settings: &str) {
        self.configure(settings);
    }

    /// Fires a script.
    #[track_caller]
    pub fn fire(&self, script: &str) -> Reply {
        self.fire_with(&[], script)
    }

    /// Fires a script with options.
    #[track_caller]
    pub fn fire_with(&self, options: &[&str], script: &str) -> Reply {
        let reply = self.fires(options, script).expect_exit(0);
        assert_eq!(reply.get("STATUS"), "FIRED", "{reply:#?}");
        reply
    }

    /// Fires a script with options; the caller checks the reply.
    pub fn fires(&self, options: &[&str], script: &str) -> Reply {
        self.run("job", &[&["fire"], options, &["--", "sh", "-c", script]].concat())
    }

    /// Waits for a job with hf-poll, which always exits 0.
    #[track_caller]
    pub fn poll(&self, reference: &str) -> Reply {
        let reply = self.run("poll", &[reference]);
        assert_eq!(reply.code, Some(0), "{reply:#?}");
        reply
    }

    /// Creates a gate: a script waits at it with `read x <NAME`, or reports to the test with `echo x >NAME`.
    pub fn gate(&self, name: &str) -> Gate {
        let path = self.dir().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        // Open at both ends, so that opening it never blocks, and waiting readers are released when the test ends.
        Gate { pipe: File::options().read(true).write(true).open(path).expect("a pipe") }
    }

    /// The directory of a job.
    pub fn job(&self, reference: &str) -> PathBuf {
        self.vault().join("Jobs").join(id(self, "task", reference))
    }

    /// A record of a job.
    #[track_caller]
    pub fn record(&self, reference: &str, name: &str) -> Value {
        seal::open(&fs::read(self.job(reference).join(name)).expect("a record")).expect("a whole record")
    }

    /// Forges a record of a job, with a valid checksum.
    pub fn forge_record(&self, reference: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let mut record = self.record(reference, name);
        change(&mut record);
        write_private(&self.job(reference).join(name), &seal::seal(&record));
    }

    /// The supervisor of a job's newest run, and its main process.
    pub fn pids(&self, reference: &str) -> [i32; 2] {
        let identity = self.record(reference, "identity.json");
        ["supervisor", "pid"].map(|name| identity[name].as_i64().expect("a pid") as i32)
    }

    /// The output of a job.
    pub fn log(&self, logref: &str) -> Vec<u8> {
        fs::read(self.vault().join("Autonomous").join(logref)).expect("a log")
    }

    /// The events of a type.
    pub fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event_type"] == kind).collect()
    }

    /// Damages the last event, so that appends are refused. Returns the original bytes.
    pub fn damage(&self) -> Vec<u8> {
        let good = fs::read(self.segment()).expect("a segment");
        let mut bad = good.clone();
        let at = bad.len() - 3;
        bad[at] ^= 1;
        fs::write(self.segment(), bad).expect("our own file");
        good
    }

    /// Restores them.
    pub fn mend(&self, good: &[u8]) {
        fs::write(self.segment(), good).expect("our own file");
    }

    /// Every living process of this vault: supervisors by their arguments, commands by the run in
    /// their environment.
    pub fn processes(&self) -> Vec<(i32, OwnedFd)> {
        let vault = self.vault().into_os_string().into_encoded_bytes();
        let mut runs = BTreeSet::new();
        for line in fs::read_to_string(self.segment()).unwrap_or_default().lines() {
            let run = line.split_once("\"subject\":\"run:").and_then(|(_, rest)| rest.split_once('"'));
            runs.extend(run.map(|(run, _)| format!("HF_RUN_ID={run}").into_bytes()));
        }
        let names = fs::read_dir("/proc").expect("a list of processes");
        let pids = names.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let ours = |pid: i32| {
            let held = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let supervises = words.split(|b| *b == 0).any(|word| word == vault);
            let is_run = variables.split(|b| *b == 0).any(|entry| runs.contains(entry));
            (pid != std::process::id() as i32 && (supervises || is_run)).then_some((pid, held))
        };
        pids.filter_map(ours).collect()
    }

    /// Kills the supervisor of a running job and its command: the supervisor is held meanwhile, so that it sees no end.
    pub fn lose(&self, reference: &str) {
        let [supervisor, command] = self.pids(reference);
        let group = |pid| Pid::from_raw(pid).expect("a process");
        kill_process_group(group(supervisor), Signal::STOP).expect("our own process");
        kill_process_group(group(command), Signal::KILL).expect("our own process");
        kill(supervisor, Signal::KILL);
        self.gone();
    }

    /// The supervisor of a job, as soon as it has taken the job over. If it is killed before that, the job is not lost, but
    /// gets its first supervisor from whoever looks at it next.
    #[track_caller]
    pub fn supervisor(&self, reference: &str) -> i32 {
        let task = id(self, "task", reference);
        while !self.job(reference).join("taken").exists() {
            std::thread::yield_now();
        }
        let words = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let supervises = |pid: i32| words(pid).windows(task.len()).any(|part| part == task.as_bytes());
        self.processes().into_iter().find(|(pid, _)| supervises(*pid)).expect("a supervisor").0
    }

    /// Lets another supervisor have a job that waits, as `fire` does: the lock is its standard input.
    pub fn supervise_anew(&self, reference: &str) -> Child {
        let task = id(self, "task", reference);
        kill(self.supervisor(reference), Signal::KILL);
        let lock = File::options().read(true).write(true).open(self.job(reference).join("lock")).expect("a lock");
        lock.lock().expect("the supervisor is gone");
        let vault = self.vault().display().to_string();
        let mut next = self.process("job");
        next.args(["supervise", &task, "--vault", &vault]).stdin(lock).stdout(Stdio::null());
        next.spawn().expect("the command runs")
    }

    /// Waits until no process of this vault is left.
    #[track_caller]
    pub fn gone(&self) {
        loop {
            let living = self.processes();
            if living.is_empty() {
                return;
            }
            for (pid, process) in living {
                ends(pid, &process);
            }
        }
    }

    /// Ends a test: no process and no temporary file is left, and the log follows every rule.
    #[track_caller]
    pub fn over(self) {
        self.gone();
        for (path, _) in self.contents() {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            assert!(!name.ends_with(".tmp") && name != "word", "left behind: {}", path.display());
        }
        // The next reader records what a supervisor could not.
        ok(&self, "hf-job list");
        let reply = self.run("verify", &["--policy", "--projections"]).expect_exit(0);
        assert_eq!(["CHAIN", "POLICY", "PROJECTIONS"].map(|key| reply.get(key)), ["OK"; 3], "{reply:#?}");
    }
}

/// Waits until there is something to read, or a process has ended. Returns whether that happened in time. SIGCHLD may
/// interrupt the wait: running a command with a time limit installs a handler for it.
pub fn comes(what: impl AsFd, max: &Timespec) -> bool {
    let mut fds = [PollFd::new(&what, PollFlags::IN)];
    retry_on_intr(|| poll(&mut fds, Some(max))).expect("a poll") == 1
}

/// Waits for the end of a process.
#[track_caller]
pub fn ends(pid: i32, process: &OwnedFd) {
    assert!(comes(process, &LONG), "process {pid} does not end");
}

/// Sends a signal and waits until the process ends.
#[track_caller]
pub fn kill(pid: i32, signal: Signal) {
    let process = pidfd_open(Pid::from_raw(pid).expect("a pid"), PidfdFlags::empty()).expect("it lives");
    pidfd_send_signal(&process, signal).expect("it lives");
    ends(pid, &process);
}

/// Whether a process is running.
pub fn lives(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A pipe that synchronises scripts with tests.
pub struct Gate {
    pipe: File,
}

impl Gate {
    /// Lets one waiting script pass.
    pub fn open(&mut self) {
        self.pipe.write_all(b"go\n").expect("an open pipe");
    }

    /// Lets one waiting script pass, with a word.
    pub fn open_with(&mut self, word: &str) {
        self.pipe.write_all(format!("{word}\n").as_bytes()).expect("an open pipe");
    }

    /// Waits for a script to report something.
    #[track_caller]
    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            assert!(comes(&self.pipe, &LONG), "no script came to the gate");
            self.pipe.read_exact(&mut byte).expect("an open pipe");
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("UTF-8").trim_end().to_owned()
    }
}

/// Starts a command and waits until it has its handlers: they are installed one after the other.
pub fn waiting(story: &TestJobVault, name: &str, args: &[&str]) -> Child {
    let child = story.process(name).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let is_ready = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mask = |name: &str| {
            let hex = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            u64::from_str_radix(hex.trim(), 16).unwrap_or(0)
        };
        let (caught, ignored) = (mask("SigCgt:"), mask("SigIgn:"));
        // Under nohup, SIGHUP stays ignored.
        let bit = |signal: Signal| 1u64 << (signal.as_raw() - 1);
        let handled = |signal| (caught | ignored) & bit(signal) != 0;
        caught & bit(Signal::TERM) != 0 && handled(Signal::INT) && handled(Signal::HUP)
    };
    while !is_ready() {
        std::thread::yield_now();
    }
    child
}

/// Waits until an event of a kind is recorded, by following the log.
pub fn until_recorded(story: &TestJobVault, kind: &str) {
    use std::io::{BufRead, BufReader};
    let mut follower =
        story.process("log").args(["--follow", "--type", kind]).stdout(Stdio::piped()).spawn().expect("it runs");
    let lines = BufReader::new(follower.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let found = lines.into_iter().any(|line| line.starts_with("EVENT:"));
    follower.kill().expect("it was started here");
    follower.wait().expect("it was started here");
    assert!(found, "the follower ended before {kind}");
}
