//! hf-stop and hf-resume --system: everything stops, and goes on when a person says so.

use std::fs::{self, File};

use fs2::FileExt;
use hiveforge::event::Kind;
use hiveforge::vault::Vault;
use serde_json::json;

use crate::support::steps::{count, found_after, id, keeps_the_rules, kinds, kinds_since, ok, running, sh, state};
use crate::support::test_vault::{Reply, TestVault};

/// Whether the flag is up.
fn flag(hive: &TestVault) -> bool {
    Vault::open(&hive.vault()).unwrap().stop_flag().is_some()
}

/// Damages the last byte of the log's last event, so that nobody may append. Gives what was there.
fn damage(hive: &TestVault) -> Vec<u8> {
    let good = fs::read(hive.segment()).unwrap();
    let mut bad = good.clone();
    let at = bad.len() - 3;
    bad[at] ^= 1;
    fs::write(hive.segment(), bad).unwrap();
    good
}

#[test]
fn a_stop_ends_all_work_in_one_write_and_a_resume_allows_it_again() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Claimed");
    ok(&hive, "hf-task claim T-0002 --actor agent:b");
    ok(&hive, "hf-task propose Waiting");
    let before = kinds(&hive).len();
    assert_eq!(
        hive.run("stop", &["It deletes the wrong files"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:STOPPED\nNEXT:ASK operator\nSUM:everything is stopped: It deletes the wrong files\nDRAINED:yes\n\
         STANDING:stopped 2026-01-31T12:00:00Z - by=user:jo It deletes the wrong files\n"
    );
    let ends = ["ThreadAborted", "BranchCompleted"];
    let all = [&["EmergencyStopIssued", "TaskAborted", "RunCrashed", "TaskAborted"][..], &ends, &ends].concat();
    assert_eq!(kinds_since(&hive, before), all);
    for event in &hive.events()[before..] {
        assert_eq!(event["batch"]["of"], json!(8), "all of it is one write");
    }
    for event in &hive.events()[before + 1..before + 4] {
        assert_eq!(event["payload"]["reason"], "emergency_stop: It deletes the wrong files");
    }
    assert_eq!(["T-0001", "T-0002", "T-0003"].map(|t| state(&hive, t)), ["Aborted", "Aborted", "Ready"]);
    assert!(flag(&hive));
    assert_eq!(
        ok(&hive, "hf-stop again").stdout,
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:ASK operator\nSUM:already stopped: It deletes the wrong files\nDRAINED:yes\n\
         STANDING:stopped 2026-01-31T12:00:00Z - by=user:jo It deletes the wrong files\n"
    );
    assert_eq!(
        hive.run("resume", &["--system", "--comment", "It was a drill"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RESUMED\nNEXT:NONE\nSUM:the system is Running\nEVENT_ID:<ulid>\nSUBJECT:system\nSTATE:Running\n"
    );
    assert!(!flag(&hive));
    // What is so already is no error, here as everywhere.
    assert_eq!(ok(&hive, "hf-resume --system").get("STATUS"), "DUPLICATE");
    ok(&hive, "hf-task claim T-0003");
    assert_eq!((count(&hive, "EmergencyStopIssued"), count(&hive, "SystemResumed")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn nothing_starts_while_stopped() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-stop fire");
    let payload = json!({"holder": "user:jo", "lease_seconds": 900}).to_string();
    for (name, args) in [
        ("task", &["claim"][..]),
        ("task", &["claim", "T-0001"]),
        ("append", &["TaskAssigned", "--subject", "T-0001"]),
        ("append", &["TaskAssigned", "--subject", "T-0001", "--payload", &payload, "--actor", "external:ci"]),
        ("append", &["TaskAssigned", "--subject", "T-0001", "--dry-run"]),
    ] {
        let reply = hive.refuses(name, args, 3);
        assert_eq!(
            ["NEXT", "SUM", "REASON"].map(|key| reply.get(key)),
            ["ASK operator", "everything is stopped: fire", "system_stopped"],
            "{args:?}"
        );
    }
    // What is no work goes on: what is proposed now waits, and the next step is a person's.
    let proposed = ok(&hive, "hf-task propose Later --key later");
    assert_eq!((proposed.get("STATE"), proposed.get("NEXT")), ("Ready", "ASK operator"));
    assert_eq!(ok(&hive, "hf-task propose Later --key later").get("NEXT"), "ASK operator");
    assert_eq!(
        ok(&hive, "hf-task explain T-0002").all("BECAUSE")[0],
        "everything was stopped at 2026-01-31T12:00:00Z by user:jo: fire"
    );
    keeps_the_rules(&hive);
}

#[test]
fn an_agent_may_stop_everything_but_cannot_lift_a_stop() {
    let hive = TestVault::new();
    ok(&hive, "hf-stop fire --actor agent:a");
    let before = hive.contents();
    for (actor, variable) in
        [(Some("agent:a"), None), (Some("external:ci"), None), (None, Some("HF_AGENT")), (None, Some("HF_SESSION"))]
    {
        for (name, args) in [("resume", &["--system"][..]), ("append", &["SystemResumed"])] {
            let mut command = hive.command(name);
            command.args(args).args(actor.iter().flat_map(|actor| ["--actor", actor]));
            command.envs(variable.map(|name| (name, "a")));
            let reply = Reply::of(command.output().unwrap()).expect_exit(3);
            assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("operator_only", "ASK operator"));
            assert!(hive.contents() == before && flag(&hive));
        }
    }
    ok(&hive, "hf-resume --system");
    keeps_the_rules(&hive);
}

#[test]
fn a_stop_that_is_appended_raises_the_flag_too() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    hive.append("EmergencyStopIssued", "system", json!({"reason": "fire"}));
    assert!(flag(&hive));
    assert_eq!(state(&hive, "T-0001"), "Aborted");
    hive.append("SystemResumed", "system", json!({}));
    assert!(!flag(&hive));
    assert_eq!(count(&hive, "EmergencyStopIssued"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn the_stop_flag_works_on_a_damaged_log_and_is_recorded_after_repair() {
    let mut hive = TestVault::new();
    running(&hive, "agent:a");
    let good = damage(&hive);
    let reply = ok(&hive, "hf-stop fire");
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("STOPPED_UNRECORDED", "ASK operator"));
    assert!(reply.get("SUM").starts_with("stopped, but not recorded yet: "), "{reply:#?}");
    assert!(flag(&hive));
    sh(&hive, "hf-task claim").expect_exit(4);
    fs::write(hive.segment(), good).unwrap();
    // Who only looks sees it, and records nothing. It counts from when it was raised.
    hive.at("2026-01-31T12:10:00Z");
    let status = sh(&hive, "hf-status").expect_exit(1);
    assert_eq!((status.get("SYSTEM_STATE"), count(&hive, "EmergencyStopIssued")), ("stopped", 0));
    assert!(status.all("PROBLEM")[0].starts_with("2026-01-31T12:00:00Z age=600 stopped"), "{status:#?}");
    assert_eq!(
        ok(&hive, "hf-task explain T-0001").get("BECAUSE"),
        "T-0001 was aborted at 2026-01-31T12:00:00Z (by a stop that is not recorded yet): emergency_stop: fire"
    );
    // The next command that changes something records it first, and then is refused by it.
    ok(&hive, "hf-task propose Other");
    assert_eq!((count(&hive, "EmergencyStopIssued"), state(&hive, "T-0001")), (1, "Aborted".to_owned()));
    assert!(sh(&hive, "hf-status").all("PROBLEM")[0].starts_with("2026-01-31T12:00:00Z age=600 stopped"));
    assert_eq!(sh(&hive, "hf-task claim T-0002").expect_exit(3).get("REASON"), "system_stopped");
    ok(&hive, "hf-stop again");
    assert_eq!(count(&hive, "EmergencyStopIssued"), 1);
    ok(&hive, "hf-resume --system");
    ok(&hive, "hf-task claim T-0002");
    assert!(!flag(&hive));
    keeps_the_rules(&hive);
}

#[test]
fn a_command_refused_by_an_unrecorded_stop_records_it() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let good = damage(&hive);
    ok(&hive, "hf-stop fire");
    fs::write(hive.segment(), good).unwrap();
    assert_eq!(sh(&hive, "hf-task claim").expect_exit(3).get("REASON"), "system_stopped");
    assert_eq!(count(&hive, "EmergencyStopIssued"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn a_stop_needs_no_lock_and_a_resume_records_what_it_lifts() {
    let hive = TestVault::new();
    let lock = File::open(hive.akashic(".lock")).unwrap();
    lock.lock_exclusive().unwrap();
    let reply = ok(&hive, "hf-stop fire --lock-timeout 0");
    assert_eq!(reply.get("STATUS"), "STOPPED_UNRECORDED");
    assert!(flag(&hive));
    FileExt::unlock(&lock).unwrap();
    ok(&hive, "hf-resume --system");
    assert_eq!(kinds_since(&hive, 1), ["EmergencyStopIssued", "SystemResumed"]);
    assert!(!flag(&hive));
    keeps_the_rules(&hive);
}

/// A vault whose stop was lifted by somebody who died before lowering the flag.
fn with_a_stale_flag() -> TestVault {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-stop fire");
    let up = fs::read(hive.akashic("control")).unwrap();
    ok(&hive, "hf-resume --system");
    fs::write(hive.akashic("control"), up).unwrap();
    assert!(flag(&hive));
    hive
}

#[test]
fn a_stale_stop_flag_is_removed_by_the_next_command() {
    let hive = with_a_stale_flag();
    ok(&hive, "hf-task claim");
    assert!(!flag(&hive));
    assert_eq!(count(&hive, "EmergencyStopIssued"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn a_new_stop_works_even_with_a_stale_flag() {
    let hive = with_a_stale_flag();
    let reply = ok(&hive, "hf-stop flood");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("STOPPED", "everything is stopped: flood"));
    assert!(flag(&hive));
    assert_eq!(count(&hive, "EmergencyStopIssued"), 2);
    assert_eq!(sh(&hive, "hf-task claim").expect_exit(3).get("SUM"), "everything is stopped: flood");
    keeps_the_rules(&hive);
}

#[test]
fn an_appended_stop_that_cannot_be_recorded_stops_nothing() {
    let hive = TestVault::new();
    let good = damage(&hive);
    sh(&hive, "hf-append EmergencyStopIssued --payload {\"reason\":\"fire\"}").expect_exit(4);
    assert!(!flag(&hive));
    fs::write(hive.segment(), good).unwrap();
    ok(&hive, "hf-task propose Form");
    assert_eq!(count(&hive, "EmergencyStopIssued"), 0);
}

#[test]
fn a_stop_without_a_reason_is_a_usage_error() {
    let hive = TestVault::new();
    hive.refuses("stop", &[], 2);
    hive.refuses("stop", &[" "], 2);
    assert!(!flag(&hive));
    let nowhere = TestVault::empty();
    for line in ["hf-stop fire", "hf-resume --system"] {
        assert_eq!(sh(&nowhere, line).expect_exit(7).get("STATUS"), "NO_VAULT");
    }
}

#[test]
fn a_long_or_strange_reason_cannot_add_a_line() {
    let hive = TestVault::new();
    let reason = format!("a\nSTATUS:RUNNING\u{202e}{}", "火".repeat(1000));
    let reply = hive.run("stop", &[&reason]).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.stdout.lines().count()), ("STOPPED", 6), "{reply:#?}");
    ok(&hive, "hf-resume --system");
    keeps_the_rules(&hive);
}

#[test]
fn the_audit_finds_work_started_after_a_stop_in_a_forged_log() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-stop fire");
    let task = format!("task:{}", id(&hive, "task", "T-0001"));
    let run = json!({"task_id": id(&hive, "task", "T-0001")});
    let found = found_after(
        &hive,
        vec![
            ("user:jo", Kind::TaskAssigned, &task, json!({"holder": "user:jo", "lease_seconds": 900})),
            ("user:jo", Kind::RunStarted, "run:r", run),
        ],
    );
    assert_eq!(found, ["everything is stopped: fire", "everything is stopped: fire"]);
}

#[test]
fn the_audit_finds_stops_that_left_work_running_or_were_lifted_by_an_agent() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    let task = format!("task:{}", id(&hive, "task", "T-0001"));
    let found = found_after(
        &hive,
        vec![
            ("user:jo", Kind::EmergencyStopIssued, "system", json!({"reason": "fire"})),
            ("agent:a", Kind::SystemResumed, "system", json!({})),
        ],
    );
    assert!(found.contains(&format!("TaskAborted of {task} must follow, but is missing")), "{found:#?}");
    assert!(found.contains(&"SystemResumed requires an operator; agent:a is not one".to_owned()), "{found:#?}");
}
