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

/// The length of a batch is known only when it is sealed; the index must have it as the log does, or a cascade that was cut
/// off would not be continued.
#[test]
fn a_batch_as_long_as_a_cascade_may_be_is_indexed_as_it_is_folded() {
    for count in [999, 1000, 1001] {
        let hive = TestVault::new();
        hive.pipe("append", &["--batch"], jsonl(&requirements(count))).expect_exit(0);
        let verdict = hive.run("verify", &["--projections"]);
        assert_eq!(verdict.all("FINDING"), [""; 0], "{count}: {verdict:?}");
    }
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

/// T27. A file that is not current is no failure, but it is said, and the watchdog refreshes it.
#[test]
fn t27_a_large_projection_file_that_is_behind_is_named_and_refreshed_by_the_next_tick() {
    let hive = TestVault::new();
    let through = hive.propose("first").get("EVENT_ID").to_owned();
    hive.batch(&requirements(400));
    let stale = format!("projections/requirements.json is through event {through}");
    let check = hive.run("project", &["--check"]).expect_exit(0);
    assert_eq!((check.get("STATUS"), check.get("PROJECTIONS"), check.get("STALE")), ("STALE", "STALE", &*stale));
    assert_eq!(check.get("SUM"), "index and snapshot match the events; 1 projection file not current");
    let verify = hive.run("verify", &["--projections"]).expect_exit(0);
    assert_eq!((verify.get("STATUS"), verify.get("PROJECTIONS")), ("VERIFIED", "STALE"));
    assert_eq!(verify.get("STALE"), stale);
    // A dry run of the watchdog changes nothing.
    hive.run("watchdog", &["--check"]).expect_exit(0);
    assert_eq!(hive.run("project", &["--check"]).expect_exit(0).get("STATUS"), "STALE");
    hive.run("watchdog", &[]).expect_exit(0);
    let check = hive.run("project", &["--check"]).expect_exit(0);
    assert_eq!((check.get("STATUS"), check.get("PROJECTIONS")), ("CONSISTENT", "OK"));
    assert_eq!(hive.json("projections/requirements.json").as_object().unwrap().len(), 401);
    // A tick with nothing to refresh leaves the files alone.
    let files = || hive.contents().into_iter().filter(|(p, _)| p.starts_with(hive.akashic("projections")));
    let before: Vec<_> = files().map(|(path, _)| fs::metadata(path).unwrap().modified().unwrap()).collect();
    hive.run("watchdog", &[]).expect_exit(0);
    let after: Vec<_> = files().map(|(path, _)| fs::metadata(path).unwrap().modified().unwrap()).collect();
    assert_eq!(before, after);
}

/// T27. The reply of `hf-project` names what it is through, and hf-project refreshes it.
#[test]
fn t27_the_next_step_of_a_stale_check_refreshes_the_file() {
    let hive = TestVault::new();
    hive.propose("first");
    hive.batch(&requirements(400));
    let check = hive.run("project", &["--check"]).expect_exit(0);
    assert_eq!(check.get("NEXT"), "ACTION hf-project");
    hive.run_next(&check).expect_exit(0);
    assert_eq!(hive.run("project", &["--check"]).expect_exit(0).get("STATUS"), "CONSISTENT");
}

/// T27. Files that are broken, edited or missing are written again by the next append of their type, or by a tick.
#[test]
fn t27_a_broken_or_missing_projection_file_is_written_again() {
    type Damage = fn(&std::path::Path);
    let damages: [(&str, Damage); 4] = [
        ("BROKEN", |path| fs::write(path, "{\"half").unwrap()),
        ("BROKEN", |path| {
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
        }),
        ("DIFFERENT", |path| fs::write(path, "{\"x\":{}}").unwrap()),
        ("STALE", |path| fs::remove_file(path).unwrap()),
    ];
    for (verdict, damage) in damages {
        for mended_by in ["append", "watchdog"] {
            let hive = TestVault::new();
            hive.propose("x");
            hive.run("watchdog", &[]).expect_exit(0);
            let path = hive.akashic("projections/requirements.json");
            damage(&path);
            let failed = i32::from(verdict != "STALE");
            let check = hive.run("project", &["--check"]).expect_exit(failed);
            assert_eq!(check.get("PROJECTIONS"), verdict, "{check:#?}");
            assert_eq!(hive.run("verify", &["--projections"]).expect_exit(failed).get("PROJECTIONS"), verdict);
            match mended_by {
                "append" => drop(hive.propose("y")),
                _ => drop(hive.run("watchdog", &[]).expect_exit(0)),
            }
            let check = hive.run("project", &["--check"]).expect_exit(0);
            assert_eq!(check.get("PROJECTIONS"), "OK", "{verdict} {mended_by}");
            assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
        }
    }
}

#[test]
fn ages_that_cannot_be_read_are_reported_and_written_again() {
    let hive = TestVault::new();
    hive.propose("x");
    fs::write(hive.akashic("projections/meta.json"), "garbage").unwrap();
    let check = hive.run("project", &["--check"]).expect_exit(1);
    assert_eq!((check.get("PROJECTIONS"), check.get("DIFFERENCE")), ("BROKEN", "projections/meta.json cannot be read"));
    hive.run("watchdog", &[]).expect_exit(0);
    assert_eq!(hive.run("project", &["--check"]).expect_exit(0).get("PROJECTIONS"), "OK");
}
