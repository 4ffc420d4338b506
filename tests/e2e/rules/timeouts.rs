//! What the passing of time leads to. Every test moves the clock; none waits.

use serde_json::json;

use crate::support::steps::{
    approved, count, governed, held, id, keeps_the_rules, kinds, kinds_since, ok, refuses, running, sh, state,
};
use crate::support::test_vault::{Reply, TestVault};

use crate::support::watchdog_fixture::{TASKS_ALONE, of_tasks_alone};

/// What the watchdog did: the types of the events, in order.
fn did(reply: &Reply) -> Vec<String> {
    reply.all("DID").iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// A whole report of the watchdog; how long it took differs from run to run.
fn told(hive: &TestVault, reply: &Reply) -> String {
    reply.masked(hive).replace(&format!("TICK_MS:{}\n", reply.get("TICK_MS")), "TICK_MS:<n>\n")
}

/// T-0001, running, assigned by an operator: it has neither a holder nor a lease.
fn supervised(settings: &str) -> TestVault {
    let hive = governed(&format!("{settings}\n{TASKS_ALONE}"));
    ok(&hive, "hf-task propose Form");
    assigned_and_started(&hive);
    hive
}

fn assigned_and_started(hive: &TestVault) {
    ok(hive, "hf-append TaskAssigned --subject T-0001");
    ok(hive, "hf-task start T-0001 --actor agent:a");
}

#[test]
fn the_watchdog_records_only_its_tick_when_nothing_is_overdue() {
    let hive = TestVault::new();
    let healthy = "EXIT:0\nSTATUS:HEALTHY\nNEXT:NONE\nSUM:nothing is wrong\nHEARTBEAT_ID:20260131120000\nTICK_MS:<n>\n";
    let before = hive.contents();
    assert_eq!(told(&hive, &ok(&hive, "hf-watchdog --check")), healthy);
    assert!(hive.contents() == before);
    assert_eq!(told(&hive, &ok(&hive, "hf-watchdog")), healthy);
    assert_eq!((kinds(&hive).len(), hive.json("watchdog.json")["at"].as_i64()), (1, Some(1_769_860_800)));
    refuses(&hive, "hf-watchdog now", 2, "now");
    assert_eq!(sh(&TestVault::empty(), "hf-watchdog").expect_exit(7).get("STATUS"), "NO_VAULT");
}

#[test]
fn a_supervised_run_times_out_after_ninety_seconds_of_silence() {
    for (second, silent) in [(89, false), (90, false), (91, true)] {
        let mut hive = supervised("max_retries: 3");
        hive.at(&format!("2026-01-31T12:0{}:{:02}Z", second / 60, second % 60));
        let reply = sh(&hive, "hf-watchdog");
        assert_eq!(reply.get("STATUS"), if silent { "ANOMALY" } else { "HEALTHY" }, "{second}");
        assert_eq!(count(&hive, "RunTimedOut"), usize::from(silent), "{second}");
    }
}

#[test]
fn a_heartbeat_resets_the_silence_timeout() {
    let mut hive = supervised("max_retries: 3");
    hive.at("2026-01-31T12:01:30Z");
    ok(&hive, "hf-task heartbeat T-0001 --actor agent:a");
    hive.at("2026-01-31T12:03:00Z");
    ok(&hive, "hf-watchdog");
    hive.at("2026-01-31T12:03:01Z");
    sh(&hive, "hf-watchdog").expect_exit(1);
}

#[test]
fn a_silent_run_is_retried_until_its_retries_are_used_up() {
    let mut hive = supervised("max_retries: 1");
    hive.at("2026-01-31T12:02:00Z");
    let check = sh(&hive, "hf-watchdog --check").expect_exit(1);
    let anomaly = "HEARTBEAT_ID:20260131120200\nANOMALY:RUN_SILENT run:<ulid> error 120\n\
         ADVICE:a run fell silent; its task is retried or aborted\n";
    let head = "EXIT:1\nSTATUS:ANOMALY\nNEXT:ACTION hf-status\nSUM:1 finding,";
    assert_eq!(told(&hive, &check), format!("{head} 0 actions\n{anomaly}TICK_MS:<n>\n"));
    assert_eq!(count(&hive, "RunTimedOut"), 0);
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(
        told(&hive, &reply),
        format!(
            "{head} 4 actions\n{anomaly}DID:RunTimedOut run:<ulid>\nDID:TaskFailed task:<ulid>\n\
             DID:TaskRetrying task:<ulid>\nDID:TaskReady task:<ulid>\nTICK_MS:<n>\n"
        )
    );
    hive.run_next(&reply).expect_exit(0);
    assert_eq!(ok(&hive, "hf-watchdog").get("STATUS"), "HEALTHY", "what was found is dealt with");
    assigned_and_started(&hive);
    hive.at("2026-01-31T12:10:00Z");
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(did(&reply), ["RunTimedOut", "TaskFailed", "TaskAborted", "EscalationRequired"]);
    assert_eq!(hive.events().last().unwrap()["payload"]["reason"], "timeout; gave up after 1 retry");
    assert_eq!(state(&hive, "T-0001"), "Aborted");
    keeps_the_rules(&hive);
}

#[test]
fn a_run_over_its_time_limit_times_out_even_if_not_silent() {
    let mut hive = of_tasks_alone();
    held(&hive, "agent:a");
    ok(&hive, "hf-task start T-0001 --timeout 5m --actor agent:a");
    hive.at("2026-01-31T12:05:00Z");
    ok(&hive, "hf-task heartbeat T-0001 --actor agent:a");
    ok(&hive, "hf-watchdog");
    hive.at("2026-01-31T12:05:01Z");
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert!(reply.get("ANOMALY").starts_with("RUN_OVERTIME run:"), "{reply:#?}");
    assert_eq!(did(&reply), ["RunTimedOut", "TaskFailed", "TaskRetrying", "TaskReady"]);
    keeps_the_rules(&hive);
}

#[test]
fn a_claimed_run_times_out_after_its_lease() {
    for (time, overdue) in [("12:01:31", false), ("12:15:00", false), ("12:15:01", true)] {
        let mut hive = of_tasks_alone();
        running(&hive, "agent:a");
        hive.at(&format!("2026-01-31T{time}Z"));
        let reply = sh(&hive, "hf-watchdog");
        assert_eq!(count(&hive, "RunTimedOut"), usize::from(overdue), "{time}");
        if overdue {
            assert!(reply.get("ANOMALY").starts_with("LEASE_EXPIRED run:"), "{reply:#?}");
            // Anyone may try again: the silent agent does not keep it.
            let task = ok(&hive, "hf-task explain T-0001");
            let because = [
                "T-0001 has been Ready since 2026-01-31T12:15:01Z",
                "T-0001 has not been claimed",
                "an earlier attempt failed (transient): timeout; retried once",
            ];
            assert_eq!(task.all("BECAUSE"), because);
        }
        keeps_the_rules(&hive);
    }
}

#[test]
fn an_unrenewed_claim_expires_and_its_holder_is_told() {
    let mut hive = of_tasks_alone();
    ok(&hive, "hf-task propose Form");
    let claimed = ok(&hive, "hf-task claim T-0001 --lease 10m --actor agent:a");
    assert_eq!(claimed.get("LEASE_UNTIL"), "2026-01-31T12:10:00Z");
    hive.at("2026-01-31T12:10:00Z");
    ok(&hive, "hf-watchdog");
    ok(&hive, "hf-task heartbeat T-0001 --actor agent:a");
    hive.at("2026-01-31T12:20:00Z");
    ok(&hive, "hf-watchdog");
    hive.at("2026-01-31T12:20:01Z");
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(did(&reply), ["ClaimExpired"]);
    assert_eq!(state(&hive, "T-0001"), "Ready");
    for line in ["heartbeat T-0001", "start T-0001", "succeed T-0001", "fail T-0001 --class transient --reason x"] {
        let lost = "your claim on T-0001 has expired; the task can be claimed again";
        let reply = refuses(&hive, &format!("hf-task {line} --actor agent:a"), 3, lost);
        assert_eq!(
            ["STATUS", "NEXT", "REASON"].map(|key| reply.get(key)),
            ["CLAIM_LOST", "ACTION hf-task claim T-0001 --actor agent:a", "claim_lost"]
        );
    }
    assert_eq!(ok(&hive, "hf-task claim --actor agent:b").get("GENERATION"), "2");
    for line in ["heartbeat T-0001", "start T-0001", "succeed T-0001"] {
        let lost = "your claim on T-0001 has expired; agent:b holds the task now";
        let reply = refuses(&hive, &format!("hf-task {line} --actor agent:a"), 3, lost);
        assert_eq!(reply.get("STATUS"), "CLAIM_LOST");
    }
    // Who never held it has lost nothing.
    let reply = refuses(&hive, "hf-task heartbeat T-0001 --actor agent:c", 3, "T-0001 is held by agent:b");
    assert_eq!(reply.get("STATUS"), "REFUSED");
    ok(&hive, "hf-task start T-0001 --actor agent:b");
    ok(&hive, "hf-task succeed T-0001 --actor agent:b");
    keeps_the_rules(&hive);
}

#[test]
fn next_after_a_lost_claim_reclaims_the_task() {
    let mut hive = TestVault::new();
    held(&hive, "user:jo");
    hive.at("2026-01-31T12:15:01Z");
    sh(&hive, "hf-watchdog").expect_exit(1);
    let lost = sh(&hive, "hf-task heartbeat T-0001").expect_exit(3);
    let again = hive.run_next(&lost).expect_exit(0);
    assert_eq!((again.get("STATUS"), again.get("GENERATION")), ("CLAIMED", "2"));
    hive.run_next(&again).expect_exit(0);
    keeps_the_rules(&hive);
}

#[test]
fn an_expired_task_can_be_claimed_without_a_watchdog() {
    let mut hive = TestVault::new();
    held(&hive, "agent:a");
    hive.at("2026-01-31T12:15:00Z");
    sh(&hive, "hf-task claim --actor agent:b").expect_exit(1);
    refuses(
        &hive,
        "hf-task claim T-0001 --actor agent:b",
        3,
        "is Assigned (held by agent:a), which does not allow TaskAssigned",
    );
    hive.at("2026-01-31T12:15:01Z");
    let before = kinds(&hive).len();
    let claimed = ok(&hive, "hf-task claim --actor agent:b");
    assert_eq!((claimed.get("HOLDER"), claimed.get("GENERATION")), ("agent:b", "2"));
    assert_eq!(kinds_since(&hive, before)[..3], ["ClaimExpired", "AgentStarted", "TaskAssigned"]);
    assert_eq!(sh(&hive, "hf-task start T-0001 --actor agent:a").expect_exit(3).get("STATUS"), "CLAIM_LOST");
    keeps_the_rules(&hive);
}

#[test]
fn an_unanswered_decision_is_escalated_and_can_still_be_answered() {
    let mut hive = of_tasks_alone();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001");
    hive.at("2026-02-01T12:00:00Z");
    ok(&hive, "hf-watchdog");
    hive.at("2026-02-01T12:00:01Z");
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(
        told(&hive, &reply),
        "EXIT:1\nSTATUS:ANOMALY\nNEXT:ACTION hf-status\nSUM:1 finding, 1 action\nHEARTBEAT_ID:20260201120001\n\
         ANOMALY:APPROVAL_OVERDUE decision:<ulid> error 86401\n\
         ADVICE:nobody answered in time; see hf-decide list\nDID:ApprovalTimedOut decision:<ulid>\nTICK_MS:<n>\n"
    );
    let status = hive.run_next(&reply).expect_exit(1);
    let problem =
        "2026-02-01T12:00:00Z age=1 overdue_decision DEC-0001 Build REQ-0001, Login? do=hf-decide show DEC-0001";
    assert_eq!(status.get("PROBLEM"), problem);
    assert_eq!((state(&hive, "DEC-0001"), status.get("PENDING_APPROVALS")), ("Escalated".to_owned(), "1"));
    assert_eq!(ok(&hive, "hf-decide list --open").get("COUNT"), "1");
    ok(&hive, "hf-watchdog");
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
    assert_eq!(ok(&hive, "hf-status").get("PROBLEMS"), "0");
    keeps_the_rules(&hive);
}

#[test]
fn an_unanswered_decision_is_rejected_if_configured() {
    let mut hive = governed("approval_timeout_policy: reject\n  approval_timeout_hours: 1");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001");
    ok(&hive, "hf-task propose Drop --destructive");
    hive.at("2026-01-31T13:00:01Z");
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(reply.get("SUM"), "2 findings, 6 actions");
    let mut events = did(&reply);
    events.sort();
    assert_eq!(
        events,
        [
            "ApprovalTimedOut",
            "ApprovalTimedOut",
            "DecisionRejected",
            "DecisionRejected",
            "RequirementRejected",
            "TaskAborted"
        ]
    );
    assert_eq!(["DEC-0001", "DEC-0002"].map(|d| state(&hive, d)), ["Rejected", "Rejected"]);
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "T-0001")), ("Rejected".to_owned(), "Aborted".to_owned()));
    refuses(&hive, "hf-decide approve DEC-0001", 3, "is Rejected, which is final");
    keeps_the_rules(&hive);
}

/// The newest task is done, and what came out is not good.
fn built_and_found_bad(hive: &TestVault, round: usize) {
    let task = format!("T-{round:04}");
    ok(hive, &format!("hf-task claim {task}"));
    ok(hive, &format!("hf-task start {task}"));
    std::fs::write(hive.dir().join("out.txt"), format!("round {round}\n")).unwrap();
    ok(hive, &format!("hf-artifact put out.txt --for {task}"));
    ok(hive, &format!("hf-task succeed {task}"));
    assert_eq!(state(hive, "REQ-0001"), "Implemented");
    ok(hive, &format!("hf-artifact invalidate ART-{round:04} --reason bad"));
}

/// A requirement that came back more often than it may.
fn blocked() -> TestVault {
    let hive = governed("max_oscillations: 2");
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    for round in 1..=2 {
        built_and_found_bad(&hive, round);
        assert_eq!(state(&hive, "REQ-0001"), "Approved");
    }
    let before = kinds(&hive).len();
    built_and_found_bad(&hive, 3);
    let since = kinds_since(&hive, before);
    assert_eq!(
        since[since.len() - 4..],
        ["ArtifactInvalidated", "TaskProposed", "OscillationDetected", "DecisionRequested"].map(str::to_owned)
    );
    hive
}

#[test]
fn an_oscillating_requirement_is_blocked_until_an_operator_releases_it() {
    let hive = blocked();
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "T-0004")), ("Blocked".to_owned(), "Proposed".to_owned()));
    let status = sh(&hive, "hf-status").expect_exit(1);
    let asked = "DEC-0002 Reworked too often. Continue with REQ-0001, Login?";
    assert_eq!(
        status.get("PROBLEM"),
        format!("2026-01-31T12:00:00Z age=0 decision {asked} do=hf-decide show DEC-0002")
    );
    refuses(&hive, "hf-task claim T-0004", 3, "T-0004 cannot start: requirement REQ-0001 is Blocked, not Approved");
    let explained = ok(&hive, "hf-task explain T-0004");
    assert_eq!(
        explained.all("BECAUSE")[1..],
        [
            "requirement REQ-0001 is Blocked, not Approved",
            "DEC-0002 has been open since 2026-01-31T12:00:00Z: Reworked too often. Continue with REQ-0001, Login?",
            "T-0004 repeats T-0003: bad"
        ]
    );
    // The first approval was for what it was before.
    hive.refuses("append", &["RequirementApproved", "--subject", "REQ-0001"], 3);
    ok(&hive, "hf-decide approve DEC-0002");
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "T-0004")), ("Approved".to_owned(), "Ready".to_owned()));
    // The count starts again.
    built_and_found_bad(&hive, 4);
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
    keeps_the_rules(&hive);
}

#[test]
fn a_blocked_requirement_ends_with_its_tasks_if_it_is_rejected() {
    let hive = blocked();
    ok(&hive, "hf-decide reject DEC-0002 --reason enough");
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "T-0004")), ("Rejected".to_owned(), "Aborted".to_owned()));
    let explained = ok(&hive, "hf-task explain T-0004");
    let because =
        ["T-0004 was aborted at 2026-01-31T12:00:00Z: REQ-0001 was rejected: enough", "T-0004 repeats T-0003: bad"];
    assert_eq!(explained.all("BECAUSE"), because);
    // That is final.
    let again = "hf-decide request --kind requirement_approval --target REQ-0001 --summary Really?";
    refuses(&hive, again, 3, "is Rejected; there is nothing to decide");
    keeps_the_rules(&hive);
}

#[test]
fn a_new_task_reopens_a_finished_requirement() {
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task claim T-0001");
    ok(&hive, "hf-task start T-0001");
    ok(&hive, "hf-task succeed T-0001");
    assert_eq!(state(&hive, "REQ-0001"), "Implemented");
    ok(&hive, "hf-task propose More --requirement REQ-0001");
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "T-0002")), ("Approved".to_owned(), "Ready".to_owned()));
    keeps_the_rules(&hive);
}

#[test]
fn a_finished_task_is_archived_after_exactly_seven_days() {
    let mut hive = of_tasks_alone();
    running(&hive, "agent:a");
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-task abort T-0002");
    ok(&hive, "hf-task propose Waiting --after T-0001");
    hive.at("2026-02-07T12:00:00Z");
    ok(&hive, "hf-watchdog");
    hive.at("2026-02-07T12:00:01Z");
    assert_eq!(ok(&hive, "hf-status").get("PROBLEMS"), "0", "that something can be put away is no problem");
    assert_eq!(
        told(&hive, &ok(&hive, "hf-watchdog")),
        "EXIT:0\nSTATUS:HEALTHY\nNEXT:NONE\nSUM:nothing is wrong\nHEARTBEAT_ID:20260207120001\n\
         DID:TaskArchived task:<ulid>\nDID:TaskArchived task:<ulid>\nTICK_MS:<n>\n"
    );
    // Gone from the lists, never from the record.
    assert_eq!(ok(&hive, "hf-task list").get("COUNT"), "1");
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&hive, t)), ["Archived", "Archived"]);
    // What succeeded still counts for those who come after it.
    ok(&hive, "hf-task propose Late --after T-0001");
    assert_eq!(["T-0003", "T-0004"].map(|t| state(&hive, t)), ["Ready", "Ready"]);
    keeps_the_rules(&hive);
}

#[test]
fn everything_overdue_is_recorded_in_one_write() {
    let mut hive = of_tasks_alone();
    held(&hive, "agent:a");
    ok(&hive, "hf-task propose Drop --destructive");
    hive.at("2026-02-01T12:00:01Z");
    let before = kinds(&hive).len();
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(did(&reply), ["ClaimExpired", "ApprovalTimedOut"]);
    for event in &hive.events()[before..] {
        assert_eq!((&event["batch"]["of"], &event["actor"]), (&json!(2), &json!("core:watchdog")));
    }
    keeps_the_rules(&hive);
}

#[test]
fn a_run_timing_out_after_its_task_was_stopped_changes_nothing() {
    let mut hive = of_tasks_alone();
    running(&hive, "agent:a");
    ok(&hive, "hf-stop fire");
    hive.at("2026-01-31T13:00:00Z");
    assert_eq!(ok(&hive, "hf-watchdog").get("STATUS"), "STOPPED");
    assert_eq!(state(&hive, "T-0001"), "Aborted");
    assert!(!id(&hive, "task", "T-0001").is_empty());
}

#[test]
fn every_list_can_be_read_while_anything_is_overdue() {
    let mut hive = TestVault::new();
    for line in [
        "hf-require propose Login",
        "hf-require analyze REQ-0001 fine",
        "hf-task propose Form",
        "hf-task propose Page",
        "hf-task propose Drop --destructive",
        "hf-task claim T-0001 --lease 1m --actor agent:a",
        "hf-task claim T-0002 --lease 1m --actor agent:b",
        "hf-task start T-0002 --actor agent:b",
        "hf-session login --agent c --ttl 1m",
        "hf-deepwork start --strict 1 Rendering --agent d",
    ] {
        ok(&hive, line);
    }
    hive.at("2026-02-28T12:00:00Z");
    for line in [
        "hf-task list",
        "hf-task explain T-0001",
        "hf-task explain T-0002",
        "hf-task show T-0002",
        "hf-session list",
        "hf-decide list",
        "hf-deepwork list",
        "hf-deepwork status --agent d",
        "hf-require show REQ-0001",
        "hf-artifact list",
        "hf-branch list --agent c",
        "hf-project tasks",
        "hf-project runs",
        "hf-project agents",
        "hf-project",
        "hf-status",
        "hf-session next --agent a",
        "hf-lineage T-0002",
        "hf-verify --policy",
        "hf-watchdog --check",
    ] {
        let reply = sh(&hive, line);
        assert!(matches!(reply.get("EXIT"), "0" | "1" | "3"), "{line}: {reply:#?}");
    }
    assert!(ok(&hive, "hf-task list").all("ENTITY").iter().any(|line| line.contains("due=")));
}
