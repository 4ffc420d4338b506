//! Causes are complete, and reasons given by people survive into every consequence and explanation.

use serde_json::json;

use super::because;
use crate::support::steps::{approved, governed, keeps_the_rules, ok, sh, state};
use crate::support::test_vault::{TestVault, write_private};
use crate::support::watchdog_fixture::at;

/// The types and subjects of a lineage.
#[track_caller]
fn lineage(hive: &TestVault, line: &str) -> Vec<String> {
    let reply = ok(hive, &format!("hf-lineage {line} --depth 50"));
    reply.all("NODE").iter().map(|node| node.split(' ').skip(3).take(2).collect::<Vec<_>>().join(" ")).collect()
}

/// Two approved requirements, each with a task; T-0002 of the second waits for T-0001 of the first, which is done.
fn waiting() -> TestVault {
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, "hf-require propose Docs");
    ok(&hive, "hf-require analyze REQ-0002 Easy.");
    ok(&hive, "hf-decide approve DEC-0002");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task propose Page --requirement REQ-0002 --after T-0001");
    for step in ["claim", "start", "succeed"] {
        ok(&hive, &format!("hf-task {step} T-0001"));
    }
    hive
}

#[test]
fn t8_a_task_that_waited_leads_to_its_own_requirement_in_both_directions() {
    let hive = waiting();
    assert_eq!(state(&hive, "T-0002"), "Ready");
    let subject =
        |reference: &str, command: &str| ok(&hive, &format!("hf-{command} show {reference}")).get("SUBJECT").to_owned();
    let (task, own) = (subject("T-0002", "task"), subject("REQ-0002", "require"));
    let up = lineage(&hive, "T-0002 --up");
    for cause in
        [format!("TaskProposed {task}"), format!("RequirementApproved {own}"), format!("RequirementProposed {own}")]
    {
        assert!(up.contains(&cause), "{cause} is missing: {up:#?}");
    }
    // And it names what it waited for.
    assert!(up.iter().any(|node| node.starts_with("TaskSucceeded")), "{up:#?}");
    let down = lineage(&hive, "REQ-0002 --down");
    assert!(down.contains(&format!("TaskReady {task}")), "{down:#?}");
    let ready = hive.events().into_iter().rfind(|event| event["event_type"] == "TaskReady").unwrap();
    assert_eq!(ready["parents"].as_array().unwrap().len(), 2, "{ready:#}");
}

#[test]
fn t8_what_is_aborted_because_of_something_else_still_has_its_own_history() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Page --after T-0001");
    ok(&hive, "hf-task abort T-0001 --reason unwanted");
    let task = ok(&hive, "hf-task show T-0002").get("SUBJECT").to_owned();
    let up = lineage(&hive, "T-0002 --up");
    assert!(up.contains(&format!("TaskProposed {task}")), "{up:#?}");
    assert!(up.iter().filter(|node| node.starts_with("TaskAborted")).count() == 2, "{up:#?}");
}

#[test]
fn t9_the_reason_of_a_rejection_survives() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Wipe --destructive");
    hive.run("decide", &["reject", "DEC-0001", "--reason", "too dangerous"]).expect_exit(0);
    assert_eq!(
        because(&hive, "T-0001"),
        ["T-0001 was aborted at 2026-01-31T12:00:00Z: DEC-0001 was rejected by user:jo: too dangerous"]
    );
    // Of a requirement, down to the tasks behind its tasks.
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task propose Page --after T-0002");
    ok(&hive, "hf-require analyze REQ-0001 Hard.");
    hive.run("decide", &["reject", "DEC-0002", "--reason", "no money"]).expect_exit(0);
    assert_eq!(
        because(&hive, "T-0002"),
        ["T-0002 was aborted at 2026-01-31T12:00:00Z: REQ-0001 was rejected: no money"]
    );
    assert_eq!(
        because(&hive, "T-0003"),
        [
            "T-0003 was aborted at 2026-01-31T12:00:00Z: T-0002, which it depends on, was aborted: REQ-0001 was rejected: no money"
        ]
    );
    keeps_the_rules(&hive);
}

#[test]
fn t9_a_rejection_because_nobody_answered_says_so() {
    let mut hive = governed("approval_timeout_policy: reject");
    ok(&hive, "hf-task propose Wipe --destructive");
    at(&mut hive, 86_401, "hf-watchdog");
    assert_eq!(
        because(&hive, "T-0001"),
        ["T-0001 was aborted at 2026-02-01T12:00:01Z: DEC-0001 was rejected: no answer in time"]
    );
    keeps_the_rules(&hive);
}

#[test]
fn t9_the_reason_for_a_rework_survives() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001");
    ok(&hive, "hf-task start T-0001");
    write_private(&hive.dir().join("form.py"), b"print(1)\n");
    ok(&hive, "hf-artifact put form.py --for T-0001");
    hive.run("artifact", &["invalidate", "ART-0001", "--reason", "no tests"]).expect_exit(0);
    assert_eq!(
        because(&hive, "T-0001"),
        [
            "T-0001 was aborted at 2026-01-31T12:00:00Z: rework: no tests",
            "it failed (permanent): rework: no tests; not retried",
            "T-0002 repeats the work and is Ready"
        ]
    );
    keeps_the_rules(&hive);
}

#[test]
fn t10_the_constraint_that_put_a_task_first_is_named() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose First");
    ok(&hive, "hf-task propose Second");
    hive.run("constraint", &["apply", "Second things first", "--priority", "T-0002"]).expect_exit(0);
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(ok(&hive, "hf-task claim").get("SUM"), "T-0002 is Assigned: Second");
    assert!(because(&hive, "T-0002").contains(&"CON-0001 put it first: Second things first".to_owned()));
    let up = lineage(&hive, "T-0002 --up");
    assert!(up.iter().any(|node| node.starts_with("ConstraintApplied")), "{up:#?}");
    // A later claim without priority does not repeat it.
    ok(&hive, "hf-task claim");
    assert!(!because(&hive, "T-0001").iter().any(|line| line.contains("put it first")));
}

#[test]
fn t10_a_retry_is_named_while_the_task_goes_on() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001");
    ok(&hive, "hf-task start T-0001");
    ok(&hive, "hf-task fail T-0001 --class transient --reason network");
    let retried = "an earlier attempt failed (transient): network; retried once";
    assert_eq!(because(&hive, "T-0001")[1], retried);
    ok(&hive, "hf-task start T-0001");
    assert_eq!(because(&hive, "T-0001")[1], retried);
    ok(&hive, "hf-task succeed T-0001");
    assert_eq!(because(&hive, "T-0001")[1], retried);
}

#[test]
fn t11_whoever_decides_can_read_everything_that_an_approval_covers() {
    let hive = TestVault::new();
    hive.run("require", &["propose", "Login", "--description", "With a password."]).expect_exit(0);
    let long = "No new dependencies. ".repeat(200);
    hive.run("require", &["analyze", "REQ-0001", long.trim()]).expect_exit(0);
    for line in ["hf-decide show DEC-0001", "hf-require show REQ-0001"] {
        let shown = ok(&hive, line);
        let facts = shown.all("FACT");
        let analysis = format!("analysis {}", long.trim());
        assert!(facts.contains(&analysis.as_str()), "{line}: {facts:#?}");
        assert!(facts.contains(&"title Login") && facts.contains(&"description With a password."), "{line}");
    }
    // The newest analysis is the one that is approved.
    ok(&hive, "hf-require analyze REQ-0001 Simpler.");
    assert!(ok(&hive, "hf-decide show DEC-0002").all("FACT").contains(&"analysis Simpler."));
}

#[test]
fn an_approval_and_what_follows_it_descend_from_the_newest_analysis() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Hard.");
    ok(&hive, "hf-require analyze REQ-0001 Simpler.");
    ok(&hive, "hf-decide approve DEC-0002");
    let events = hive.events();
    let last = |kind: &str| events.iter().rfind(|event| event["event_type"] == kind).expect("one");
    let newest = &last("RequirementAnalyzed")["event_id"];
    assert_eq!(last("DecisionRequested")["parents"].as_array(), Some(&vec![newest.clone()]));
    let parents = last("RequirementApproved")["parents"].as_array().expect("a list");
    assert_eq!(*parents, [newest.clone(), last("DecisionApproved")["event_id"].clone()]);
    keeps_the_rules(&hive);
}

#[test]
fn an_abort_names_who_did_it_and_a_finished_task_mentions_no_pause() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task abort T-0001 --reason unwanted");
    ok(&hive, "hf-pause questions");
    assert_eq!(because(&hive, "T-0001"), ["T-0001 was aborted at 2026-01-31T12:00:00Z by user:jo: unwanted"]);
    hive.append("EscalationRequired", "T-0001", json!({}));
    assert!(sh(&hive, "hf-status").get("SUM").ends_with("most urgent: ESC-0001: T-0001"));
}
