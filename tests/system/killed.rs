//! A command, killed at every system call that changes something, and repeated.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::machine::{Need, can, sized};
use crate::test_vault::{START, TestVault, binary};

/// The calls that change a file, take a lock, or start a process.
pub const CHANGES: &str =
    "mkdirat,flock,pwrite64,ftruncate,fdatasync,fsync,renameat,renameat2,unlinkat,clone,clone3,fork,vfork";
/// Every call that there is.
pub const ALL: &str = "all";

/// What is tried.
pub struct Trial<'a> {
    /// What is killed, in the plural, for the report.
    pub what: &'a str,
    pub start: &'a TestVault,
    /// The command and its arguments, without `hf-`.
    pub words: &'a [&'a str],
    /// The calls at which it is killed.
    pub calls: &'a str,
    /// Of how many calls one is tried in a short run.
    pub step: usize,
    /// Repeats the command in a vault in which it was killed. Returns what went wrong.
    pub repeat: &'a (dyn Fn(&TestVault) -> Result<(), String> + Sync),
}

impl Trial<'_> {
    /// Kills the command at every call, each time in a fresh copy of the vault.
    pub fn run(&self) {
        if !can("killing at system calls", &[Need::Tool("strace"), Need::Tool("cp")]) {
            return;
        }
        let whole = self.copy();
        let (code, trace) = self.traced(&whole, None);
        assert_eq!(code, Some(0), "without a kill");
        (self.repeat)(&whole).expect("a repetition without a kill");
        let all = points(&trace, self.calls);
        let chosen: Vec<&(String, usize)> = all.iter().step_by(sized(self.step, 1)).collect();
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some((call, nth)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let hive = self.copy();
                        let (code, _) = self.traced(&hive, Some(&format!("inject={call}:signal=SIGKILL:when={nth}")));
                        let outcome = (code.is_none(), (self.repeat)(&hive));
                        done.lock().expect("no panic").push((format!("{call} {nth}"), outcome));
                    }
                });
            }
        });
        let done = done.into_inner().expect("no panic");
        let reached = done.iter().filter(|(_, (reached, _))| *reached).count();
        let wrong: Vec<String> =
            done.iter().filter_map(|(at, (_, r))| Some(format!("{at}: {}", r.as_ref().err()?))).collect();
        let (tried, all) = (done.len(), all.len());
        println!("killed {}: {tried} tried of {all}, {reached} killed, {} wrong", self.what, wrong.len());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // A race with its jobs can save a call; most must be reached.
        assert!(reached * 2 > tried, "{reached} of {tried}");
    }

    /// A copy that may run the commands of its settings, too.
    fn copy(&self) -> TestVault {
        let copy = self.start.copy();
        copy.trust();
        copy
    }

    /// Runs it under strace: only the command itself, not the jobs that it fires.
    fn traced(&self, hive: &TestVault, inject: Option<&str>) -> (Option<i32>, String) {
        let trace = hive.dir().join("trace");
        let mut command = Command::new("strace");
        command.args(["-qq", "-o"]).arg(&trace).args(["-e", &format!("trace={}", self.calls), "-e", "signal=none"]);
        command.args(inject.iter().flat_map(|inject| ["-e", inject]));
        command.arg(binary(self.words[0])).args(&self.words[1..]);
        command.current_dir(hive.dir()).env_clear().envs([
            ("USER", "jo"),
            ("HF_NOW", START),
            ("PATH", "/usr/bin:/bin"),
        ]);
        command.env("HOME", hive.user_home());
        let output = command.stdin(Stdio::null()).output().expect("strace runs");
        (output.status.code(), fs::read_to_string(&trace).unwrap_or_default())
    }
}

/// The lines of a file; none if it does not exist.
pub fn lines(hive: &TestVault, name: &str) -> Vec<String> {
    fs::read_to_string(hive.dir().join(name)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Every call of a trace, by name and number.
fn points(trace: &str, calls: &str) -> Vec<(String, usize)> {
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    let traced = trace.lines().filter_map(|line| line.split_once('('));
    // Before the first there is no command to kill, and the last ends it anyway.
    let is_inside = |call: &str| !["execve", "exit_group"].contains(&call);
    let is_chosen = |call: &str| calls == ALL && is_inside(call) || calls.split(',').any(|known| known == call);
    let known = traced.filter(|(call, _)| is_chosen(call));
    known
        .map(|(call, _)| {
            let nth = seen.entry(call.to_owned()).or_default();
            *nth += 1;
            (call.to_owned(), *nth)
        })
        .collect()
}
