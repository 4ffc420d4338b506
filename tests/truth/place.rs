//! A vault in a directory of its own, and the commands that are run on it.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::clock::time;
use crate::log::LogReader;

/// The commands that lives use. Each is a link to the one binary, as in an installation.
const COMMANDS: &[&str] = &[
    "activity",
    "append",
    "artifact",
    "branch",
    "checkpoint",
    "config",
    "constraint",
    "decide",
    "deepwork",
    "init",
    "job",
    "lineage",
    "log",
    "pause",
    "poll",
    "project",
    "require",
    "resume",
    "session",
    "status",
    "stop",
    "task",
    "verify",
    "watchdog",
];

/// A directory with a link for every command.
pub struct Commands {
    dir: TempDir,
}

impl Commands {
    pub fn new(binary: &Path) -> Commands {
        let dir = tempfile::tempdir().expect("a directory");
        for name in COMMANDS {
            symlink(binary, dir.path().join(format!("hf-{name}"))).expect("a link");
        }
        Commands { dir }
    }
}

/// The parent directory of the vaults: in memory if possible, since nothing here is about power cuts.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if tempfile::tempfile_in(&memory).is_ok() { memory } else { std::env::temp_dir() }
}

pub struct Place<'a> {
    commands: &'a Commands,
    dir: TempDir,
}

impl Place<'_> {
    /// A directory without a vault.
    pub fn new(commands: &Commands) -> Place<'_> {
        Place { commands, dir: tempfile::tempdir_in(folder()).expect("a directory") }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn vault(&self) -> PathBuf {
        self.dir().join("Vault")
    }

    pub fn log(&self) -> LogReader {
        LogReader::new(&self.vault())
    }

    /// A command line at a time, with these variables. No argument may contain a space.
    fn command(&self, now: i64, variables: &[(&str, String)], line: &str) -> Command {
        let mut words = line.split(' ');
        let program = self.commands.dir.path().join(words.next().expect("a command"));
        let mut command = Command::new(program);
        command.args(words).current_dir(self.dir()).env_clear();
        command.envs([("USER", "jo"), ("LOGNAME", "jo"), ("PATH", "/usr/bin:/bin"), ("HF_NOW", &time(now))]);
        command.env("HOME", self.dir());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command line to its end.
    pub fn run(&self, now: i64, variables: &[(&str, String)], line: &str) -> Reply {
        Reply::of(self.command(now, variables, line).output().expect("the command runs"))
    }

    /// Starts a supervisor for a job, as hf-job does: it gets the lock of the job as its input.
    pub fn supervise(&self, now: i64, task: &str, lock: File) -> Child {
        let line = format!("hf-job supervise {task} --vault {}", self.vault().display());
        let mut command = self.command(now, &[], &line);
        command.stdin(lock).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command runs")
    }

    /// Runs a command line that waits for something, and tells it to end as soon as it listens to signals.
    pub fn interrupt(&self, now: i64, variables: &[(&str, String)], line: &str) -> Reply {
        let mut command = self.command(now, variables, line);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("the command runs");
        let listens = || {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
            let caught = u64::from_str_radix(caught.trim(), 16).unwrap_or(0);
            let has_ended = status.contains("State:\tZ") || status.is_empty();
            let both = [Signal::TERM, Signal::INT, Signal::HUP].map(|signal| 1u64 << (signal.as_raw() - 1));
            has_ended || both.iter().all(|bit| caught & bit != 0)
        };
        while !listens() {
            std::thread::yield_now();
        }
        // It was started here and is not waited for yet, so the pid is its own, dead or alive.
        kill_process(Pid::from_child(&child), Signal::TERM).expect("our own process");
        Reply::of(child.wait_with_output().expect("the command runs"))
    }

    /// Replaces the settings.
    pub fn configure(&self, yaml: &str) {
        let file = self.vault().join("hiveforge.config.yaml");
        fs::write(&file, yaml).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("our own file");
    }
}

/// What a command printed.
#[derive(Clone, Debug)]
pub struct Reply {
    pub exit: i32,
    pub text: String,
    pub errors: String,
}

impl Reply {
    fn of(output: Output) -> Reply {
        let text = String::from_utf8(output.stdout).expect("a reply is UTF-8");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Reply { exit: output.status.code().unwrap_or(-1), text, errors }
    }

    /// Every value of a key.
    pub fn all(&self, key: &str) -> Vec<&str> {
        self.text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(':')).collect()
    }

    /// The first value of a key, or nothing.
    pub fn get(&self, key: &str) -> &str {
        self.all(key).first().copied().unwrap_or_default()
    }
}
