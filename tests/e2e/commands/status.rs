//! hf-status: the state of everything on one screen.

use crate::support::steps::{held, ok, refuses, sh};
use crate::support::test_vault::TestVault;

#[test]
fn a_new_vault_is_running_and_needs_no_attention() {
    let mut hive = TestVault::new();
    hive.at("2026-01-31T12:01:05Z");
    assert_eq!(
        ok(&hive, "hf-status").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:running; nothing needs attention\nSYSTEM_STATE:running\nHIVE:hive\nREGIME:settings are recorded, not adopted: anyone who can write the settings file can change the rules\n\
         PENDING_APPROVALS:0\nLAST_EVENT_ID:<ulid>\nLAST_EVENT_AT:2026-01-31T12:00:00Z\nWATCHDOG:never\n\
         UPTIME_SECONDS:65\nPROBLEMS:0\nNOTICE:the watchdog has never run; start it with: hf-watchdog --install cron\n"
    );
    ok(&hive, "hf-watchdog");
    hive.at("2026-01-31T12:01:30Z");
    assert_eq!(ok(&hive, "hf-status").get("WATCHDOG"), "2026-01-31T12:01:05Z age_seconds=25");
}

#[test]
fn tasks_agents_approvals_and_problems_are_shown() {
    let mut hive = TestVault::new();
    held(&hive, "agent:a");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001");
    hive.at("2026-01-31T12:15:01Z");
    assert_eq!(
        sh(&hive, "hf-status").expect_exit(1).masked(&hive),
        "EXIT:1\nSTATUS:ATTENTION\nNEXT:ASK operator\nSUM:running; 4 problems; most urgent: agent:a: NEVER_SEEN\n\
         SYSTEM_STATE:running\nHIVE:hive\nREGIME:settings are recorded, not adopted: anyone who can write the settings file can change the rules\nTASKS:Ready 2\nAGENT:a NEVER_SEEN 2026-01-31T12:00:00Z seen age=901\n\
         PENDING_APPROVALS:1\nLAST_EVENT_ID:<ulid>\nLAST_EVENT_AT:2026-01-31T12:00:00Z\nWATCHDOG:never\n\
         UPTIME_SECONDS:901\nPROBLEMS:4\n\
         PROBLEM:2026-01-31T12:00:00Z age=901 anomaly agent:a NEVER_SEEN do=hf-append AgentStopped --subject agent:a\n\
         PROBLEM:2026-01-31T12:00:00Z age=901 decision DEC-0001 Build REQ-0001, Login? do=hf-decide show DEC-0001\n\
         PROBLEM:2026-01-31T12:15:00Z age=1 overdue T-0001 lease of agent:a expired at 2026-01-31T12:15:00Z do=hf-watchdog\n\
         PROBLEM:- - watchdog watchdog has never run do=hf-watchdog --install cron\n"
    );
    hive.at("2026-02-01T12:00:01Z");
    let reply = sh(&hive, "hf-status").expect_exit(1);
    assert_eq!((reply.get("PROBLEMS"), reply.get("PENDING_APPROVALS")), ("4", "1"));
    assert!(reply.all("PROBLEM")[0].starts_with("2026-02-01T12:00:00Z age=1 overdue_decision DEC-0001 "), "{reply:#?}");
}

#[test]
fn a_stop_is_shown_as_the_state_and_a_resume_restarts_the_uptime() {
    let mut hive = TestVault::new();
    hive.at("2026-01-31T12:10:00Z");
    ok(&hive, "hf-stop fire");
    hive.at("2026-01-31T12:20:00Z");
    assert_eq!(
        sh(&hive, "hf-status").expect_exit(1).masked(&hive),
        "EXIT:1\nSTATUS:ATTENTION\nNEXT:ASK operator\n\
         SUM:stopped; 1 problem; most urgent: system: everything is stopped by user:jo: fire\nSYSTEM_STATE:stopped\nHIVE:hive\nREGIME:settings are recorded, not adopted: anyone who can write the settings file can change the rules\n\
         PENDING_APPROVALS:0\nLAST_EVENT_ID:<ulid>\nLAST_EVENT_AT:2026-01-31T12:10:00Z\nWATCHDOG:never\n\
         UPTIME_SECONDS:0\nPROBLEMS:1\n\
         PROBLEM:2026-01-31T12:10:00Z age=600 stopped system everything is stopped by user:jo: fire do=hf-resume --system\n\
         NOTICE:the watchdog has never run; start it with: hf-watchdog --install cron\n\
         STANDING:stopped 2026-01-31T12:10:00Z - by=user:jo fire\n"
    );
    ok(&hive, "hf-resume --system");
    hive.at("2026-01-31T12:20:07Z");
    let reply = ok(&hive, "hf-status");
    assert_eq!(["SYSTEM_STATE", "UPTIME_SECONDS", "PROBLEMS"].map(|key| reply.get(key)), ["running", "7", "0"]);
}

#[test]
fn the_figures_say_what_they_count() {
    let mut hive = TestVault::new();
    held(&hive, "agent:a");
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001");
    hive.at("2026-02-01T12:00:01Z");
    let figures = |found: &str, late: &str| {
        format!(
            "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:4 metrics\n\
             METRIC:inconsistency 0.0% part=0 whole=1 aim=<1% rebuilds that differ / rebuilds\n\
             METRIC:silence_detection {found} aim=100% silent runs found / silent runs\n\
             METRIC:task_completion 0.0% part=0 whole=1 aim=>80% succeeded / proposed\n\
             METRIC:approval_timeouts {late} aim=- timed out / requested\n"
        )
    };
    assert_eq!(ok(&hive, "hf-status --metrics").stdout, figures("0.0% part=0 whole=1", "0.0% part=0 whole=1"));
    sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(ok(&hive, "hf-status --metrics").stdout, figures("100.0% part=1 whole=1", "100.0% part=1 whole=1"));
}

#[test]
fn status_changes_nothing_and_json_says_the_same() {
    let hive = TestVault::new();
    held(&hive, "agent:a");
    let before = hive.contents();
    let text = sh(&hive, "hf-status").expect_exit(1);
    ok(&hive, "hf-status --metrics");
    let json: serde_json::Value = serde_json::from_str(&sh(&hive, "hf-status --json").stdout).unwrap();
    assert_eq!((&json["system_state"], &json["problem_count"]), (&"running".into(), &1.into()));
    assert_eq!(text.get("PROBLEM"), "- - watchdog watchdog has never run do=hf-watchdog --install cron");
    let said = ["since", "age", "kind", "subject", "what", "do"].map(|column| json["problems"][0][column].clone());
    let nothing = serde_json::Value::Null;
    let also = [&nothing, &nothing].map(Clone::clone).into_iter();
    let also = also.chain(["watchdog", "watchdog", "has never run", "hf-watchdog --install cron"].map(Into::into));
    assert_eq!(said.to_vec(), also.collect::<Vec<_>>());
    assert!(hive.contents() == before);
    refuses(&hive, "hf-status everything", 2, "everything");
    let nowhere = TestVault::empty();
    assert_eq!(sh(&nowhere, "hf-status").expect_exit(7).get("STATUS"), "NO_VAULT");
}

#[test]
fn a_watchdog_that_stopped_running_is_a_problem() {
    let mut hive = TestVault::new();
    assert_eq!(ok(&hive, "hf-status").get("WATCHDOG"), "never");
    ok(&hive, "hf-watchdog");
    hive.at("2026-01-31T12:03:00Z");
    assert_eq!(ok(&hive, "hf-status").get("PROBLEMS"), "0");
    hive.at("2026-01-31T12:03:01Z");
    let reply = sh(&hive, "hf-status").expect_exit(1);
    assert_eq!(reply.get("WATCHDOG"), "2026-01-31T12:00:00Z age_seconds=181");
    assert_eq!(
        reply.get("PROBLEM"),
        "2026-01-31T12:00:00Z age=181 watchdog watchdog has not run since then do=hf-watchdog --installed"
    );
}
