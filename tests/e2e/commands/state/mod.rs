//! hf-state: a mission in one short file, and its work done without a hand.

mod file;
mod go;
mod jobs;
mod lost_session;
mod mission;
mod plan;
mod rounds;

use std::fs;

use crate::support::test_vault::{Reply, TestVault};

/// The state file.
#[track_caller]
fn m1(hive: &TestVault) -> String {
    fs::read_to_string(hive.vault().join("Autonomous/state/M1.md")).expect("a state file")
}

/// What is in a folder of `Autonomous/state` beside the file itself.
fn beside_m1(hive: &TestVault) -> Vec<String> {
    let names = fs::read_dir(hive.vault().join("Autonomous/state")).expect("a folder");
    let mut names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "M1.md");
    names.sort();
    names
}

#[track_caller]
fn state(hive: &TestVault, args: &[&str]) -> Reply {
    hive.run("state", args).expect_exit(0)
}

/// A vault with a mission.
fn begun() -> TestVault {
    let hive = TestVault::new();
    state(&hive, &["start", "Login"]);
    hive
}

// hf-state go
