//! Many processes that pause, resume, leave and claim at once.

use std::thread;

use serde_json::json;

use crate::support::session_fixture::logged_in;
use crate::support::steps::{count, governed, keeps_the_rules, kinds, ok};
use crate::support::test_vault::TestVault;

#[test]
fn sixteen_agents_leaving_at_once_drain_a_pause_once() {
    let hive = TestVault::new();
    let sessions: Vec<String> = (0..16).map(|n| logged_in(&hive, &format!("a{n}"), "main")).collect();
    for round in 1..=2 {
        ok(&hive, "hf-pause look");
        thread::scope(|scope| {
            for session in &sessions {
                let hive = &hive;
                scope.spawn(move || {
                    let args = ["logout", "--session", session, "--lock-timeout", "60"];
                    hive.run("session", &args).expect_exit(0)
                });
            }
        });
        assert_eq!(count(&hive, "PauseDrained"), round);
        let status = ok(&hive, "hf-pause --wait");
        assert_eq!(status.get("DRAINED"), "yes");
        ok(&hive, "hf-resume");
    }
    keeps_the_rules(&hive);
}

#[test]
fn nobody_claims_a_task_after_a_pause_in_the_middle_of_a_race() {
    let hive = governed("max_concurrent_tasks: 200");
    let lines: Vec<_> =
        (0..60).map(|n| json!({"event_type": "TaskProposed", "payload": {"title": n.to_string()}})).collect();
    hive.batch(&lines);
    thread::scope(|scope| {
        for n in 0..6 {
            let hive = &hive;
            scope.spawn(move || {
                let actor = format!("agent:a{n}");
                loop {
                    let reply = hive.run("task", &["claim", "--actor", &actor, "--lock-timeout", "60"]);
                    match reply.get("STATUS") {
                        "CLAIMED" => {
                            let task = reply.get("SUBJECT");
                            let begun = hive.run("task", &["start", task, "--actor", &actor, "--lock-timeout", "60"]);
                            assert!(["RECORDED", "EXIT_REQUESTED"].contains(&begun.get("STATUS")), "{begun:#?}");
                        }
                        "EXIT_REQUESTED" | "NO_TASK" => return,
                        _ => panic!("{reply:#?}"),
                    }
                }
            });
        }
        hive.run("pause", &["look", "--lock-timeout", "60"]).expect_exit(0);
    });
    let kinds = kinds(&hive);
    let paused = kinds.iter().position(|kind| kind == "ProjectPaused").unwrap();
    assert!(kinds[paused..].iter().all(|kind| !["TaskAssigned", "RunStarted"].contains(&kind.as_str())), "{kinds:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn concurrent_pauses_and_resumes_are_recorded_once_each() {
    let hive = TestVault::new();
    for (name, words, kind) in [
        ("pause", &["look"][..], "ProjectPaused"),
        ("resume", &[], "ProjectResumed"),
        ("pause", &["--archive", "main", "--yes"], "ProjectArchived"),
    ] {
        thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| hive.run(name, &[words, &["--lock-timeout", "60"]].concat()).expect_exit(0)))
                .collect();
            let first =
                all.into_iter().map(|one| one.join().unwrap()).filter(|r| r.get("STATUS") != "DUPLICATE").count();
            assert_eq!(first, 1, "{kind}");
        });
        assert_eq!(count(&hive, kind), 1);
    }
    assert_eq!(count(&hive, "ProjectOpened"), 1);
    keeps_the_rules(&hive);
}
