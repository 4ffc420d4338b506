//! Raw events are refused during a pause, and a forged log that has them fails the audit.

use hiveforge::event::Kind;
use serde_json::{Value, json};

use crate::support::session_fixture::logged_in;
use crate::support::steps::{count, found_after, id, keeps_the_rules, ok, running};
use crate::support::test_vault::TestVault;

#[test]
fn raw_events_that_start_something_are_refused_while_paused() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Ready");
    ok(&hive, "hf-task propose Held");
    ok(&hive, "hf-task claim T-0003");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    let [ready, held] = ["T-0002", "T-0003"].map(|task| id(&hive, "task", task));
    let run = json!({"task_id": held}).to_string();
    let started = json!({"agent_id": "a", "ttl_seconds": 9}).to_string();
    let renewed = json!({"ttl_seconds": 9}).to_string();
    let taken = json!({"holder": "user:jo", "job": true}).to_string();
    let ready = format!("task:{ready}");
    for (kind, subject, payload) in [
        ("RunStarted", "run:r", &run),
        ("SessionStarted", "session:s", &started),
        ("SessionRenewed", "S-0001", &renewed),
        ("TaskAssigned", &ready, &taken),
        ("PauseDrained", "project:main", &"{}".to_owned()),
    ] {
        for actor in ["user:jo", "external:ci"] {
            let reply = hive.run("append", &[kind, "--subject", subject, "--payload", payload, "--actor", actor]);
            assert_eq!(reply.code, Some(3), "{kind} by {actor}: {reply:#?}");
        }
    }
    assert_eq!(count(&hive, "PauseDrained"), 0);
    ok(&hive, "hf-session logout --agent a");
    // Once per pause.
    hive.refuses("append", &["PauseDrained", "--subject", "project:main"], 3);
    ok(&hive, "hf-resume");
    hive.refuses("append", &["PauseDrained", "--subject", "project:main"], 3);
    keeps_the_rules(&hive);
}

#[test]
fn the_audit_finds_work_started_during_a_pause_in_a_forged_log() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Ready");
    ok(&hive, "hf-task propose Held");
    ok(&hive, "hf-task claim T-0003");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    let [ready, held] = ["T-0002", "T-0003"].map(|task| id(&hive, "task", task));
    let (ready, run) = (format!("task:{ready}"), json!({"task_id": held}));
    let paused = "project main has been paused since 2026-01-31T12:00:00Z: look";
    let leave = format!("{paused}; finish up and leave by 2026-01-31T12:05:00Z");
    let check = |forged: (&str, Kind, &str, Value), finding: &str| {
        let copy = hive.copy();
        let kind = forged.1;
        let found = found_after(&copy, vec![forged]);
        assert!(found.contains(&finding.to_owned()), "{kind}: {found:#?}");
    };
    check(("user:jo", Kind::RunStarted, "run:r", run), paused);
    check(("core:reactor", Kind::TaskAssigned, &ready, json!({})), paused);
    check(("agent:a", Kind::TaskAssigned, &ready, json!({"holder": "agent:a", "lease_seconds": 9})), &leave);
    check(("agent:a", Kind::SessionStarted, "session:s", json!({"agent_id": "a", "ttl_seconds": 9})), &leave);
    check(("external:ci", Kind::SessionStarted, "session:s", json!({"agent_id": "a", "ttl_seconds": 9})), paused);
    check(
        ("agent:a", Kind::ProjectResumed, "project:main", json!({})),
        "ProjectResumed requires an operator; agent:a is not one",
    );
    check(
        ("core:reactor", Kind::PauseDrained, "project:main", json!({})),
        "project main is not drained: S-0001 is still active",
    );
    // A pause that cut nobody short, and one that never said that it had come to rest.
    let hive = TestVault::new();
    let session = format!("session:{}", logged_in(&hive, "a", "main"));
    let pause = || ("user:jo", Kind::ProjectPaused, "project:main", json!({"reason": "x", "grace_seconds": 9}));
    let opened = || ("user:jo", Kind::ProjectOpened, "project:main", json!({}));
    let found = found_after(&hive.copy(), vec![opened(), pause()]);
    assert_eq!(found, [format!("SessionCut of {session} must follow, but is missing")]);
    let found = found_after(&TestVault::new(), vec![opened(), pause()]);
    assert_eq!(found, ["PauseDrained of project:main must follow, but is missing"]);
    // A resume while everything is stopped.
    let hive = TestVault::new();
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-stop fire");
    let found = found_after(&hive, vec![("user:jo", Kind::ProjectResumed, "project:main", json!({}))]);
    assert_eq!(found, ["everything is stopped: fire"]);
}

#[test]
fn the_audit_finds_changes_to_an_archived_project_in_a_forged_log() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-pause --archive main --yes");
    let task = format!("task:{}", id(&hive, "task", "T-0001"));
    let archived = "project main is archived and read-only, which is final";
    for (actor, kind, subject, payload) in [
        ("user:jo", Kind::TaskAborted, task.as_str(), json!({})),
        ("user:jo", Kind::TaskAssigned, &task, json!({"holder": "user:jo"})),
        ("core:reactor", Kind::TaskAssigned, &task, json!({})),
        ("external:ci", Kind::SessionStarted, "session:s", json!({"agent_id": "a", "ttl_seconds": 9})),
    ] {
        let found = found_after(&hive.copy(), vec![(actor, kind, subject, payload)]);
        assert!(found.contains(&archived.to_owned()), "{kind}: {found:#?}");
    }
}
