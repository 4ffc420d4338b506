//! hf-state go, killed at every system call that changes something, and restarted.
//!
//! Promise: the runner and the fixer run once per round, whenever it was killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::machine::{Need, can, sized};
use crate::test_vault::{Reply, START, TestVault, binary};

/// The calls that change a file, take a lock, or start a process.
const CALLS: &str =
    "mkdirat,flock,pwrite64,ftruncate,fdatasync,fsync,renameat,renameat2,unlinkat,clone,clone3,fork,vfork";
const RUNNER: &str = "echo $HF_ROUND >>ran; test $HF_ROUND -ge 2 && exit; echo broken >&2; exit 1";
const FIXER: &str = "read line; echo $HF_ROUND $line >>fixed";

/// Creates a vault with a mission whose requirement is approved.
fn begun() -> TestVault {
    let hive = TestVault::new();
    let settings = format!("runner:\n  command: '{RUNNER}'\nfixer:\n  command: '{FIXER}'\n");
    hive.configure(&settings);
    hive.approved("requirement:r", "Login");
    hive.run("state", &["start", "Login"]).expect_exit(0);
    hive
}

/// A copy that may run the commands of its settings, too.
fn copied(start: &TestVault) -> TestVault {
    let copy = start.copy();
    copy.trust();
    copy
}

/// Runs it under strace: only the command itself, not the jobs that it fires.
fn traced(hive: &TestVault, inject: Option<&str>) -> (Option<i32>, String) {
    let trace = hive.dir().join("trace");
    let mut command = Command::new("strace");
    command.args(["-qq", "-o"]).arg(&trace).args(["-e", &format!("trace={CALLS}"), "-e", "signal=none"]);
    command.args(inject.iter().flat_map(|inject| ["-e", inject])).arg(binary("state")).arg("go");
    command.current_dir(hive.dir()).env_clear().envs([("USER", "jo"), ("HF_NOW", START)]);
    command.env("HOME", hive.user_home());
    let output = command.stdin(Stdio::null()).output().expect("strace runs");
    (output.status.code(), fs::read_to_string(&trace).unwrap_or_default())
}

fn lines(dir: &Path, name: &str) -> Vec<String> {
    fs::read_to_string(dir.join(name)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Every call of a trace, by name and number.
fn points(trace: &str) -> Vec<(String, usize)> {
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    let calls = trace.lines().filter_map(|line| line.split_once('('));
    let known = calls.filter(|(call, _)| CALLS.split(',').any(|known| known == *call));
    known
        .map(|(call, _)| {
            let nth = seen.entry(call.to_owned()).or_default();
            *nth += 1;
            (call.to_owned(), *nth)
        })
        .collect()
}

/// Kills it at a call and restarts it. Returns whether the call was reached, and what went wrong.
fn killed_at(start: &TestVault, call: &str, nth: usize) -> (bool, Result<(), String>) {
    let hive = copied(start);
    let (code, _) = traced(&hive, Some(&format!("inject={call}:signal=SIGKILL:when={nth}")));
    let reply: Reply = hive.run("state", &["go"]);
    let done = (reply.code, lines(hive.dir(), "ran"), lines(hive.dir(), "fixed"));
    let verified = hive.run("verify", &["--policy", "--projections"]);
    let aside = fs::read_dir(hive.vault().join("Autonomous/state")).expect("a directory");
    let aside = aside.filter(|entry| entry.as_ref().is_ok_and(|e| e.file_name().to_string_lossy().contains("aside")));
    let result = match (done, verified.code, aside.count()) {
        ((Some(0), ran, fixed), Some(0), 0) if ran == ["1", "2"] && fixed == ["1 broken"] => Ok(()),
        (done, verified, aside) => Err(format!("{done:?}, verified {verified:?}, {aside} aside: {reply:?}")),
    };
    (code.is_none(), result)
}

#[test]
fn killed_in_the_place_of_any_system_call_a_mission_does_every_step_once() {
    if !can("killing at system calls", &[Need::Tool("strace"), Need::Tool("cp")]) {
        return;
    }
    let start = begun();
    let whole = copied(&start);
    let (code, trace) = traced(&whole, None);
    assert_eq!((code, lines(whole.dir(), "ran").len()), (Some(0), 2), "without a kill");
    let all = points(&trace);
    let chosen: Vec<&(String, usize)> = all.iter().step_by(sized(17, 1)).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((call, nth)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = killed_at(&start, call, *nth);
                    done.lock().expect("no panic").push((format!("{call} {nth}"), outcome));
                }
            });
        }
    });
    let done = done.into_inner().expect("no panic");
    let reached = done.iter().filter(|(_, (reached, _))| *reached).count();
    let wrong: Vec<String> =
        done.iter().filter_map(|(at, (_, r))| Some(format!("{at}: {}", r.as_ref().err()?))).collect();
    println!("killed missions: {} tried of {}, {reached} killed, {} wrong", done.len(), all.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A race with its jobs can save a call; most must be reached.
    assert!(reached * 2 > done.len(), "{reached} of {}", done.len());
}
