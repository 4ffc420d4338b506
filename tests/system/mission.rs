//! hf-state go, killed at every system call that changes something, and restarted.
//!
//! Promise: the runner and the fixer run once per round, whenever it was killed.

use std::fs;

use crate::killed::{CHANGES, Trial, lines};
use crate::test_vault::{Reply, TestVault};

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

/// Restarts it, and looks at what was done.
fn restarted(hive: &TestVault) -> Result<(), String> {
    let reply: Reply = hive.run("state", &["go"]);
    let done = (reply.code, lines(hive, "ran"), lines(hive, "fixed"));
    let verified = hive.run("verify", &["--policy", "--projections"]);
    let aside = fs::read_dir(hive.vault().join("Autonomous/state")).expect("a directory");
    let aside = aside.filter(|entry| entry.as_ref().is_ok_and(|e| e.file_name().to_string_lossy().contains("aside")));
    match (done, verified.code, aside.count()) {
        ((Some(0), ran, fixed), Some(0), 0) if ran == ["1", "2"] && fixed == ["1 broken"] => Ok(()),
        (done, verified, aside) => Err(format!("{done:?}, verified {verified:?}, {aside} aside: {reply:?}")),
    }
}

#[test]
fn killed_in_the_place_of_any_system_call_a_mission_does_every_step_once() {
    Trial { what: "missions", start: &begun(), words: &["state", "go"], calls: CHANGES, step: 17, repeat: &restarted }
        .run();
}
