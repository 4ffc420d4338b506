//! An escalation is open until what it is about is resolved, or until an operator acknowledges it.

use serde_json::json;

use super::problems;
use crate::support::steps::{approved, count, keeps_the_rules, ok, refuses, running, sh, state};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::{at, configured};

/// The phase of an escalation.
#[track_caller]
fn phase(hive: &TestVault, reference: &str) -> String {
    ok(hive, &format!("hf-decide show {reference}")).get("STATE").to_owned()
}

/// T-0001 failed for good, which ESC-0001 is about.
fn failed() -> TestVault {
    let hive = TestVault::new();
    running(&hive, "user:jo");
    ok(&hive, "hf-task fail T-0001 --class permanent --reason auth");
    hive
}

#[test]
fn t1_a_task_that_failed_for_good_is_an_escalation_with_its_age_and_command() {
    let mut hive = failed();
    hive.at("2026-01-31T13:00:00Z");
    let reply = sh(&hive, "hf-status").expect_exit(1);
    assert_eq!(reply.get("SUM"), "running; 1 problem; most urgent: ESC-0001: T-0001: auth");
    assert_eq!(
        reply.get("PROBLEM"),
        "2026-01-31T12:00:00Z age=3600 escalation ESC-0001 T-0001: auth \
         do=hf-decide acknowledge ESC-0001 --reason TEXT"
    );
    let listed = ok(&hive, "hf-decide list --escalations --open");
    assert_eq!((listed.get("COUNT"), listed.all("ENTITY").len()), ("1", 1));
}

#[test]
fn an_operator_acknowledges_an_escalation_with_a_reason_and_an_agent_cannot() {
    let hive = failed();
    refuses(&hive, "hf-decide acknowledge ESC-0001 --reason x --actor agent:a", 3, "requires an operator");
    refuses(&hive, "hf-decide acknowledge ESC-0001", 2, "--reason");
    ok(&hive, "hf-decide acknowledge ESC-0001 --reason seen");
    assert_eq!(problems(&hive), [""; 0]);
    let shown = ok(&hive, "hf-decide show ESC-0001");
    assert_eq!(shown.get("STATE"), "Acknowledged");
    let facts = shown.all("FACT");
    assert!(facts.contains(&"acknowledged_because seen") && facts.contains(&"acknowledged_by user:jo"), "{facts:?}");
    keeps_the_rules(&hive);
}

#[test]
fn the_success_of_a_rework_closes_the_escalations_of_the_whole_chain() {
    let hive = failed();
    ok(&hive, "hf-task propose --rework-of T-0001");
    ok(&hive, "hf-task claim T-0002");
    ok(&hive, "hf-task start T-0002");
    ok(&hive, "hf-task fail T-0002 --class permanent --reason again");
    assert_eq!(problems(&hive).len(), 2);
    ok(&hive, "hf-task propose --rework-of T-0002");
    ok(&hive, "hf-task claim T-0003");
    ok(&hive, "hf-task start T-0003");
    ok(&hive, "hf-task succeed T-0003");
    assert_eq!([phase(&hive, "ESC-0001"), phase(&hive, "ESC-0002")], ["Closed", "Closed"]);
    assert_eq!(problems(&hive), [""; 0]);
    let why = ok(&hive, "hf-decide show ESC-0001");
    assert!(why.all("FACT").contains(&"closed_because T-0001 was done by T-0003"), "{why:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn the_end_of_its_requirement_closes_an_escalation() {
    for end in ["supersede REQ-0001", "reject REQ-0001 --reason late"] {
        let hive = TestVault::new();
        approved(&hive);
        ok(&hive, "hf-task propose Form --requirement REQ-0001");
        ok(&hive, "hf-task claim T-0001");
        ok(&hive, "hf-task start T-0001");
        ok(&hive, "hf-task fail T-0001 --class permanent --reason auth");
        let open =
            ["T-0001: auth", "REQ-0001: not implemented: no task is open, and 1 task was aborted (T-0001: auth)"];
        for (problem, open) in problems(&hive).iter().zip(open) {
            assert!(problem.contains(open), "{problem}");
        }
        if end.starts_with("reject") {
            refuses(&hive, &format!("hf-require {end}"), 3, "REQ-0001 is Approved");
            continue;
        }
        ok(&hive, &format!("hf-require {end}"));
        assert_eq!(problems(&hive), [""; 0]);
        assert_eq!([phase(&hive, "ESC-0001"), phase(&hive, "ESC-0002")], ["Closed", "Closed"]);
        keeps_the_rules(&hive);
    }
}

#[test]
fn an_agent_that_is_heard_again_or_stopped_is_no_longer_escalated() {
    for end in ["hf-checkpoint --agent a back", "hf-append AgentStopped --subject agent:a"] {
        let settings = "watchdog:\n  interval_seconds: 60\n  max_recovery_attempts: 1\n  recovery_wait_cycles: 1\n  \
                        hooks:\n    on_anomaly: 'true'\n";
        let mut hive = configured(settings);
        ok(&hive, "hf-checkpoint --agent a hello");
        for seconds in [700, 800] {
            at(&mut hive, seconds, "hf-watchdog").expect_exit(1);
        }
        assert_eq!(count(&hive, "EscalationRequired"), 1);
        let open = problems(&hive);
        assert!(open[0].starts_with("escalation ESC-0001 agent a: INACTIVE for 800 s"), "{open:?}");
        at(&mut hive, 910, end).expect_exit(0);
        at(&mut hive, 911, "hf-watchdog").expect_exit(0);
        assert_eq!(phase(&hive, "ESC-0001"), "Closed", "{end}");
        assert_eq!(problems(&hive), [""; 0], "{end}");
        keeps_the_rules(&hive);
    }
}

#[test]
fn an_escalation_by_hand_is_listed_and_only_the_reactor_closes_one() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    hive.append("EscalationRequired", "T-0001", json!({"reason": "which colour?"}));
    assert_eq!(
        problems(&hive),
        ["escalation ESC-0001 T-0001: which colour? do=hf-decide acknowledge ESC-0001 --reason TEXT"]
    );
    let close = ["EscalationClosed", "--subject", "ESC-0001", "--payload", "{\"reason\":\"x\"}"];
    hive.refuses("append", &close, 3);
    assert_eq!(state(&hive, "T-0001"), "Ready");
    ok(&hive, "hf-task claim T-0001");
    ok(&hive, "hf-task start T-0001");
    ok(&hive, "hf-task succeed T-0001");
    assert_eq!(phase(&hive, "ESC-0001"), "Closed");
}
