//! What readers say about things that are due, over or replaced, and that two commands say the same at the same moment.

use serde_json::Value;

use super::{because, problems, told};
use crate::support::session_fixture::within;
use crate::support::steps::{approved, governed, keeps_the_rules, ok, running, sh};
use crate::support::test_vault::{Reply, TestVault};
use crate::support::watchdog_fixture::at;

/// The value of a fact that a reply shows.
fn fact<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.all("FACT").into_iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// A running task of agent a, overdue since 12:15.
fn overdue() -> TestVault {
    let mut hive = governed("max_retries: 0");
    running(&hive, "agent:a");
    at(&mut hive, 1000, "hf-task list");
    hive
}

#[test]
fn archiving_a_project_with_a_reason_ends_its_sessions_by_the_rules() {
    let hive = TestVault::new();
    ok(&hive, "hf-session login --agent a");
    ok(&hive, "hf-pause --archive main done --yes");
    let ended = hive.events().into_iter().find(|event| event["event_type"] == "SessionEnded").expect("one");
    assert_eq!(ended["payload"]["reason"], "archived");
    keeps_the_rules(&hive);
}

#[test]
fn a_session_that_is_just_given_a_task_gets_it() {
    let mut hive = governed("auto_assign: true");
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-session login --agent a");
    let next = at(&mut hive, 950, "hf-session login --agent b");
    let task = sh(&hive, next.get("NEXT").strip_prefix("ACTION ").expect("a command")).expect_exit(0);
    assert_eq!([task.get("STATUS"), task.get("TASK_ID")], ["OK", "T-0001"]);
}

#[test]
fn what_does_not_exist_yet_is_not_listed() {
    let hive = overdue();
    assert_eq!(ok(&hive, "hf-decide list --escalations").get("COUNT"), "0");
    sh(&hive, "hf-decide show ESC-0001").expect_exit(6);
    let task = ok(&hive, "hf-task show T-0001");
    assert!(!task.all("ENTITY").iter().any(|line| line.contains("ESC-")), "{task:#?}");
    sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(ok(&hive, "hf-decide list --escalations").get("COUNT"), "1");
}

#[test]
fn what_is_only_due_has_the_time_at_which_it_was_due() {
    let hive = overdue();
    assert_eq!(fact(&ok(&hive, "hf-task show T-0001"), "aborted_at"), Some("2026-01-31T12:15:00Z"));
    let json: Value = serde_json::from_str(&sh(&hive, "hf-project tasks --json").stdout).expect("JSON");
    let task = json["items"].as_object().and_then(|items| items.values().next()).expect("a task");
    assert_eq!(task["due"], "lease of agent:a expired at 2026-01-31T12:15:00Z");

    let mut hive = governed("approval_timeout_policy: reject");
    ok(&hive, "hf-task propose Wipe --destructive");
    at(&mut hive, 90_000, "hf-task list");
    assert_eq!(fact(&ok(&hive, "hf-decide show DEC-0001"), "decided_at"), Some("2026-02-01T12:00:00Z"));
}

#[test]
fn an_escalation_about_missing_work_is_over_once_there_is_new_work() {
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task abort T-0001 --reason first");
    assert!(problems(&hive)[0].starts_with("escalation ESC-0001 REQ-0001: not implemented"));
    ok(&hive, "hf-task propose --rework-of T-0001");
    assert!(!problems(&hive).iter().any(|line| line.starts_with("escalation")));
    ok(&hive, "hf-task abort T-0002 --reason second");
    let escalation = problems(&hive).swap_remove(0);
    assert!(escalation.contains("ESC-0002 REQ-0001: not implemented"), "{escalation}");
    assert!(escalation.contains("(T-0002: second)"), "{escalation}");
    keeps_the_rules(&hive);
}

#[test]
fn the_verdict_of_a_check_is_that_of_the_tick() {
    // A session that is over expects nothing of its agent.
    let mut hive = TestVault::new();
    ok(&hive, "hf-session login --agent a --ttl 10m");
    let check = at(&mut hive, 1300, "hf-watchdog --check");
    let status = sh(&hive, "hf-status");
    let tick = sh(&hive, "hf-watchdog");
    assert_eq!(check.all("ANOMALY"), tick.all("ANOMALY"));
    assert!(!tick.all("ANOMALY").iter().any(|line| line.starts_with("NEVER_SEEN")), "{tick:#?}");
    assert!(status.all("AGENT")[0].starts_with("a HEALTHY "), "{status:#?}");
    assert!(problems(&hive).is_empty());

    let mut hive = TestVault::new();
    ok(&hive, "hf-session login --agent a");
    ok(&hive, "hf-session login --agent a --project p --create");
    ok(&hive, "hf-pause --archive p over --yes");
    let check = at(&mut hive, 5451, "hf-watchdog --check");
    assert_eq!(check.all("ANOMALY"), sh(&hive, "hf-watchdog").all("ANOMALY"));
}

#[test]
fn next_does_not_lead_in_a_circle_if_the_session_is_not_the_callers() {
    let hive = TestVault::new();
    for line in ["hf-session task --session S-0001", "hf-session logout --session S-0001"] {
        let unknown = within(&hive, &[("HF_AGENT", "b")], line).expect_exit(6);
        assert_eq!(told(&unknown), ["NOT_FOUND", "NONE"], "{line}");
    }
    ok(&hive, "hf-session login --agent a");
    ok(&hive, "hf-pause questions");
    let others = within(&hive, &[("HF_AGENT", "b")], "hf-session renew --session S-0001").expect_exit(3);
    assert_eq!(told(&others), ["REFUSED", "NONE"]);
}

#[test]
fn strict_deep_work_takes_no_longer_than_it_declared() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-deepwork start --strict 10 Render --agent a");
    for line in ["hf-task list", "hf-watchdog"] {
        at(&mut hive, 7200, line);
        let listed = ok(&hive, "hf-deepwork list --agent a");
        assert_eq!(listed.all("DEEP_WORK"), ["DW-0001 Expired strict 10 10 Render"], "{line}");
        let status = sh(&hive, "hf-status");
        assert!(!status.all("AGENT")[0].contains("deep_work="), "{status:#?}");
    }
}

#[test]
fn a_superseded_question_does_not_show_a_later_analysis() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    assert_eq!(fact(&ok(&hive, "hf-decide show DEC-0001"), "analysis"), Some("Easy."));
    ok(&hive, "hf-require analyze REQ-0001 Hard.");
    assert_eq!(fact(&ok(&hive, "hf-decide show DEC-0001"), "analysis"), None);
    assert_eq!(fact(&ok(&hive, "hf-decide show DEC-0002"), "analysis"), Some("Hard."));
}

#[test]
fn a_rejected_result_stays_in_the_explanation() {
    let hive = TestVault::new();
    approved(&hive);
    std::fs::write(hive.dir().join("result"), "one").expect("a file");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    ok(&hive, "hf-artifact put result --for T-0001 --actor agent:a");
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    ok(&hive, "hf-require verify REQ-0001");
    ok(&hive, "hf-artifact invalidate ART-0001 --reason bad");
    let rejected = "its result ART-0001 was rejected: bad".to_owned();
    assert!(because(&hive, "T-0001").contains(&rejected), "also without a rework");

    let hive = TestVault::new();
    std::fs::write(hive.dir().join("result"), "one").expect("a file");
    running(&hive, "agent:a");
    ok(&hive, "hf-artifact put result --for T-0001 --actor agent:a");
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    ok(&hive, "hf-artifact invalidate ART-0001 --reason bad");
    ok(&hive, "hf-task abort T-0002 --reason enough");
    ok(&hive, "hf-task propose --rework-of T-0001");
    assert!(because(&hive, "T-0001").contains(&rejected), "also after another attempt");
}

#[test]
fn lineage_in_both_directions_shows_what_each_direction_shows() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose After --after T-0001");
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    let ids = |flags: &str| -> Vec<String> {
        let reply = ok(&hive, &format!("hf-lineage T-0002{flags}"));
        let id = |line: &str| line.split(' ').nth(1).expect("an id").to_owned();
        reply.all("NODE").into_iter().map(id).collect()
    };
    let both = ids("");
    for flags in [" --up", " --down"] {
        let missing: Vec<String> = ids(flags).into_iter().filter(|id| !both.contains(id)).collect();
        assert_eq!(missing, [""; 0], "{flags}");
    }
}

#[test]
fn nobody_waits_for_a_project_that_is_archived() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --project p --create");
    ok(&hive, "hf-pause --archive p over --yes");
    let next = ok(&hive, "hf-session next --agent a --project p");
    assert_eq!(next.get("ACTION"), "hold");
    assert_eq!(next.get("SUM"), "a: do not start; project p is archived");
}

#[test]
fn an_agent_that_asks_for_work_in_a_paused_project_is_asked_to_leave_it_wherever_its_session_is() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose API --project beta --create");
    let session = ok(&hive, "hf-session login --agent b").get("REF").to_owned();
    ok(&hive, "hf-pause look --project beta");
    let shell = [("HF_AGENT", "b"), ("HF_SESSION", session.as_str())];
    for line in ["hf-task claim --project beta", "hf-task claim T-0001 --project beta"] {
        let reply = within(&hive, &shell, line).expect_exit(3);
        assert_eq!((reply.get("STATUS"), reply.get("REASON")), ("EXIT_REQUESTED", "project_paused"), "{line}");
    }
}
