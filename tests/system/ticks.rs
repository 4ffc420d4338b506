//! What a tick of the watchdog costs when nothing changed.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::machine::{Need, can, sized};
use crate::test_vault::TestVault;

/// How many directories of an agent are looked at.
const DIRS: usize = 2;
/// How many openat and getdents calls a tick may make per agent.
const CALLS_MAX: usize = 3;

/// A vault with agents that have old files, and a works tree for main.
fn with_old_files(agents: usize, files: usize) -> TestVault {
    let hive = TestVault::new();
    let dirs = (0..agents).flat_map(|n| ["checkpoints", "activity"].map(|dir| format!("Vault/Agents/a{n}/{dir}")));
    let works = ["ai-works/stats/checkpoints", "ai-works/artifacts/t/histories"].map(str::to_owned);
    for dir in dirs.chain(works) {
        let path = hive.dir().join(&dir);
        fs::create_dir_all(&path).expect("new directories");
        let suffix = if dir.ends_with("checkpoints") { "txt" } else { "md" };
        for n in 0..files {
            // A file a minute, long ago; the newest ones keep the agent healthy.
            let name = format!("202512{:02}{:02}{:02}00.{suffix}", 1 + n / 1440, n / 60 % 24, n % 60);
            fs::write(path.join(name), "").expect("a file");
        }
        fs::write(path.join(format!("20260131115900.{suffix}")), "kind: introspection\n").expect("a file");
    }
    hive
}

fn tick(hive: &TestVault) {
    hive.run("watchdog", &["--works", "ai-works"]).expect_exit(0);
}

/// The calls of one tick that are about each agent, most of them first.
fn calls(hive: &TestVault, agents: usize) -> Vec<usize> {
    let trace = hive.dir().join("trace.txt");
    let program = hive.process("watchdog");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-e", "trace=open,openat,getdents64", "-o"]).arg(&trace).arg(program.get_program());
    strace.args(["--works", "ai-works"]).current_dir(hive.dir()).env_clear();
    strace.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = strace.output().expect("strace runs");
    assert!(done.status.success(), "{done:?}");
    let trace = fs::read_to_string(trace).expect("a trace");
    let about = |names: &[String]| trace.lines().filter(|line| names.iter().any(|name| line.contains(name))).count();
    let mut counts: Vec<usize> = (0..agents).map(|n| about(&[format!("Agents/a{n}>"), format!("\"a{n}\"")])).collect();
    counts.push(about(&["ai-works".to_owned()]));
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

#[test]
fn a_tick_without_changes_costs_what_changed_and_not_what_is_there() {
    if !can("counting the calls of a tick", &[Need::Tool("strace")]) {
        return;
    }
    let (agents, files) = (sized(20, 200), sized(50, 1_000));
    let hive = with_old_files(agents, files);
    tick(&hive);
    // A directory that changed just before it was listed is listed once more.
    let remembered = || {
        let looks: Value = hive.json("looks.json");
        let agents = looks["agents"].as_object().expect("agents").values();
        agents.map(|looked| looked["dirs"].as_object().map_or(0, |dirs| dirs.len())).sum::<usize>()
    };
    while remembered() < (agents + 1) * DIRS {
        tick(&hive);
    }
    let counts = calls(&hive, agents);
    assert!(counts[0] <= CALLS_MAX && counts[agents] > 0, "{counts:?}");
    // One file more in one of them is found, and costs nothing elsewhere.
    fs::write(hive.dir().join("Vault/Agents/a7/activity/20260131115930.md"), "log\n").expect("a file");
    let counts = calls(&hive, agents);
    assert!(counts[0] > CALLS_MAX && counts[1] <= CALLS_MAX, "{counts:?}");
    let logged = hive.events().into_iter().filter(|event| event["payload"]["heartbeat_id"] == "20260131115930");
    assert_eq!(logged.count(), 1);
}
