//! The caches: index, projection files and snapshots, beside a log that goes on.

use std::fs::{self, File};

use serde_json::{Value, json};

use crate::support::test_vault::{TestVault, jsonl};

/// Requirements without a key, as lines of a batch.
fn requirements(count: usize) -> Vec<Value> {
    (0..count).map(|n| json!({"event_type": "RequirementProposed", "payload": {"title": n.to_string()}})).collect()
}

#[test]
fn a_postponed_merge_is_done_by_the_next_command() {
    let hive = TestVault::new();
    hive.pipe("append", &["--batch"], jsonl(&requirements(100))).expect_exit(0);
    let seal = hive.vault().join("Akashic/index/seal.json");
    let before = fs::read(&seal).unwrap();
    let reader = File::open(hive.vault().join("Akashic/index/.lock")).unwrap();
    reader.lock_shared().unwrap();
    hive.pipe("append", &["--batch"], jsonl(&requirements(100))).expect_exit(0);
    assert!(fs::read(&seal).unwrap() == before, "the reader did not keep the merge out");
    drop(reader);
    // Its own look at the index must not keep the merge out.
    hive.run("project", &[]).expect_exit(0);
    assert!(fs::read(&seal).unwrap() != before, "the merge was put off again");
}

#[test]
fn a_parent_named_twice_is_stored_and_indexed_once() {
    let hive = TestVault::new();
    let first = hive.propose("cause").get("EVENT_ID").to_owned();
    let payload = json!({"title": "x"}).to_string();
    let args = ["RequirementProposed", "--payload", &payload, "--parent", &first, "--parent", &first];
    hive.run("append", &args).expect_exit(0);
    assert_eq!(hive.events()[2]["parents"], json!([first]));
    hive.pipe("append", &["--batch"], jsonl(&requirements(100))).expect_exit(0);
    hive.run("project", &["--check"]).expect_exit(0);
}

#[test]
fn a_check_skips_files_that_are_being_written() {
    let hive = TestVault::new();
    hive.propose("x");
    let writer = File::open(hive.vault().join("Akashic/.lock")).unwrap();
    writer.lock().unwrap();
    for args in [["project", "--check"], ["verify", "--projections"]] {
        hive.run(args[0], &[args[1], "--lock-timeout", "0"]).expect_exit(5);
    }
    drop(writer);
    hive.run("project", &["--check"]).expect_exit(0);
}

#[test]
fn the_next_step_of_a_check_repairs_what_it_found() {
    let hive = TestVault::new();
    hive.propose("x");
    hive.run("project", &["--snapshot"]).expect_exit(0);
    let latest = hive.vault().join("Akashic/snapshots/latest.json");
    let other = fs::read_to_string(&latest).unwrap().replace("\"x\"", "\"y\"");
    fs::write(&latest, other).unwrap();
    let reply = hive.run("project", &["--check"]).expect_exit(1);
    hive.run_next(&reply).expect_exit(0);
    hive.run("project", &["--check"]).expect_exit(0);
}

#[test]
fn archiving_a_task_removes_its_runs_from_their_projection() {
    let hive = TestVault::new();
    let lines = [
        json!({"event_type": "TaskProposed", "subject": "task:t", "payload": {"title": "t"}}),
        json!({"event_type": "TaskReady", "subject": "task:t"}),
        json!({"event_type": "TaskAssigned", "subject": "task:t"}),
        json!({"event_type": "RunStarted", "subject": "run:r", "payload": {"task_id": "t"}}),
        json!({"event_type": "RunFinished", "subject": "run:r"}),
        json!({"event_type": "TaskSucceeded", "subject": "task:t"}),
    ];
    hive.pipe("append", &["--batch"], jsonl(&lines)).expect_exit(0);
    hive.run("append", &["TaskArchived", "--subject", "task:t"]).expect_exit(0);
    let runs = fs::read_to_string(hive.vault().join("Akashic/projections/runs.json")).unwrap();
    assert_eq!(runs, "{}\n");
}

#[test]
fn leftovers_beside_a_projection_are_removed_by_the_next_append() {
    let hive = TestVault::new();
    hive.propose("x");
    let left = hive.vault().join("Akashic/projections/.tasks.json.tmp");
    fs::write(&left, "half").unwrap();
    hive.propose("y");
    assert!(!left.exists());
    // Also once there is too much of it to be written with every append.
    let line = |n: usize| json!({"event_type": "RequirementProposed", "payload": {"title": format!("{n}")}});
    hive.batch(&(0..300).map(line).collect::<Vec<_>>());
    fs::write(&left, "half").unwrap();
    hive.propose("z");
    assert!(!left.exists());
}
