//! Due work is done by whoever comes next, without a watchdog; a late holder is told; all commands agree.

use serde_json::json;

use super::{because, problems};
use crate::support::steps::{keeps_the_rules, ok, refuses, running, sh, state};
use crate::support::test_vault::{TestVault, jsonl};
use crate::support::watchdog_fixture::{at, moment};

#[test]
fn t3_an_expired_lease_is_taken_over_by_the_next_claim_without_a_watchdog() {
    let mut hive = TestVault::new();
    running(&hive, "agent:a");
    at(&mut hive, 901, "hf-task list --status Ready");
    let listed = ok(&hive, "hf-task list");
    assert!(listed.get("ENTITY").ends_with("due=lease of agent:a expired at 2026-01-31T12:15:00Z"), "{listed:#?}");
    let claimed = ok(&hive, "hf-task claim --actor agent:b");
    assert_eq!(claimed.get("SUM"), "T-0001 is Assigned: Form");
    let late = sh(&hive, "hf-task succeed T-0001 --actor agent:a").expect_exit(3);
    assert_eq!(late.get("STATUS"), "CLAIM_LOST");
    assert!(late.get("SUM").contains("agent:b holds the task now"), "{late:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn t23_a_heartbeat_and_a_success_after_the_time_out_say_what_became_of_the_task() {
    for step in ["heartbeat", "succeed"] {
        let mut hive = TestVault::new();
        running(&hive, "agent:a");
        let late = at(&mut hive, 901, &format!("hf-task {step} T-0001 --actor agent:a")).expect_exit(3);
        let told = ["STATUS", "NEXT"].map(|key| late.get(key));
        assert_eq!(told, ["CLAIM_LOST", "ACTION hf-task claim T-0001 --actor agent:a"], "{step}");
        assert_eq!(state(&hive, "T-0001"), "Ready");
        // NEXT can be obeyed.
        let words: Vec<&str> = late.get("NEXT").strip_prefix("ACTION hf-task ").unwrap().split(' ').collect();
        assert_eq!(hive.run("task", &words).expect_exit(0).get("STATUS"), "CLAIMED");
        keeps_the_rules(&hive);
    }
}

#[test]
fn t28_a_clock_that_jumped_once_prolongs_no_session() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    hive.at("2036-01-31T12:00:00Z");
    ok(&hive, "hf-task propose Future");
    hive.at(&moment(60).to_string());
    let login = ok(&hive, "hf-session login --agent a --ttl 1s");
    assert_eq!(login.get("EXPIRES_AT"), "2026-01-31T12:01:01Z");
    let session = login.get("SESSION_ID").to_owned();
    at(&mut hive, 64, &format!("hf-session renew --agent a --session {session}")).expect_exit(3);
    let reply = at(&mut hive, 65, "hf-status").expect_exit(1);
    assert!(reply.all("PROBLEM").iter().any(|line| line.contains("CLOCK_SKEW")), "{reply:#?}");
}

#[test]
fn t29_a_requirement_with_ten_thousand_tasks_can_be_approved_and_rejected() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Hard.");
    let id = crate::support::steps::id(&hive, "require", "REQ-0001");
    for part in 0..2 {
        let task = |n: usize| json!({"event_type": "TaskProposed", "subject": format!("task:t{part}-{n}"), "payload": {"title": "x", "requirement_id": id}});
        let lines: Vec<_> = (0..5250).map(task).collect();
        hive.pipe("append", &["--batch"], jsonl(&lines)).expect_exit(0);
    }
    ok(&hive, "hf-decide approve DEC-0001");
    let ready = hive.run("project", &[]).expect_exit(0);
    assert!(ready.stdout.contains("Ready=10500"), "{}", ready.stdout);
    ok(&hive, "hf-require supersede REQ-0001");
    let gone = hive.run("project", &[]).expect_exit(0);
    assert!(gone.stdout.contains("Aborted=10500"), "{}", gone.stdout);
    keeps_the_rules(&hive);
}

#[test]
fn t30_status_the_watchdog_and_a_claim_agree_on_what_is_overdue() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    running(&hive, "agent:a");
    ok(&hive, "hf-checkpoint --agent a hello");
    ok(&hive, "hf-deepwork start --agent a --strict 60 quiet");
    at(&mut hive, 1000, "hf-watchdog --check").expect_exit(0);
    assert!(!problems(&hive).iter().any(|line| line.starts_with("overdue")), "{:?}", problems(&hive));
    sh(&hive, "hf-task claim --actor agent:b").expect_exit(1);
    // A time-out before its time is refused to everybody.
    let run = hive.events().iter().find(|event| event["event_type"] == "RunStarted").unwrap()["subject"].clone();
    let line = format!("hf-append RunTimedOut --subject {} --payload {{\"reason\":\"silent\"}}", run.as_str().unwrap());
    refuses(&hive, &line, 3, "");
    keeps_the_rules(&hive);
}

#[test]
fn an_agent_that_lost_its_task_by_silence_is_missed_until_it_is_heard() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    // Whether one tick frees the task and judges the agent, or two do, makes no difference.
    for seconds in [901, 902] {
        at(&mut hive, seconds, "hf-watchdog").expect_exit(1);
        assert_eq!(sh(&hive, "hf-status").all("AGENT")[0].split(' ').nth(1), Some("NEVER_SEEN"));
    }
    assert_eq!(crate::support::steps::count(&hive, "AnomalyCleared"), 0);
    at(&mut hive, 903, "hf-checkpoint --agent a back").expect_exit(0);
    at(&mut hive, 904, "hf-watchdog").expect_exit(0);
    assert_eq!(problems(&hive), [""; 0]);
}

#[test]
fn a_session_does_not_hand_out_a_task_whose_lease_has_expired() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let session = crate::support::session_fixture::logged_in(&hive, "a", "main");
    let seated: &[(&str, &str)] = &[("HF_AGENT", "a"), ("HF_SESSION", &session)];
    let task = crate::support::session_fixture::within(&hive, seated, "hf-session task").expect_exit(0);
    assert_eq!(task.get("STATUS"), "CLAIMED");
    hive.at(&moment(901).to_string());
    let again = crate::support::session_fixture::within(&hive, seated, "hf-session task").expect_exit(0);
    assert_eq!(again.get("STATUS"), "CLAIMED", "the old claim has expired: {again:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn an_operator_who_claims_in_a_paused_project_is_told_of_the_pause() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --project brand --create");
    ok(&hive, "hf-pause --project brand questions");
    let reply = refuses(&hive, "hf-task claim --project brand", 3, "project brand has been paused since");
    assert_eq!(reply.get("REASON"), "project_paused");
}

#[test]
fn a_lease_counts_again_in_the_second_in_which_strict_deep_work_is_superseded() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 2m --actor agent:c");
    ok(&hive, "hf-deepwork start --strict 20 Deep --agent c");
    hive.at("2026-01-31T12:01:00Z");
    ok(&hive, "hf-task start T-0001 --actor agent:c");
    assert_eq!(because(&hive, "T-0001")[0], "T-0001 is claimed by agent:c");
    ok(&hive, "hf-deepwork start --flexible Deep --agent c");
    assert_eq!(because(&hive, "T-0001")[0], "T-0001 is claimed by agent:c until 2026-01-31T12:03:00Z");
}
