//! A pause and a stop at the same time.

use crate::support::session_fixture::{asks_to_leave, logged_in};
use crate::support::steps::{keeps_the_rules, ok, running, sh};
use crate::support::test_vault::TestVault;

#[test]
fn a_stop_during_a_pause_must_be_lifted_first() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-stop fire");
    let reply = hive.refuses("resume", &["--project", "main"], 3);
    assert_eq!(
        ["REASON", "NEXT", "SUM"].map(|k| reply.get(k)),
        ["system_stopped", "ASK operator", "everything is stopped: fire"]
    );
    let reply = hive.refuses("append", &["ProjectResumed", "--subject", "project:main"], 3);
    assert_eq!(reply.get("REASON"), "system_stopped");
    assert_eq!(sh(&hive, "hf-status").expect_exit(1).get("SYSTEM_STATE"), "stopped");
    assert_eq!(ok(&hive, "hf-watchdog").get("STATUS"), "STOPPED");
    ok(&hive, "hf-resume --system");
    // The stop is lifted, the pause is not.
    assert_eq!(sh(&hive, "hf-status").expect_exit(1).get("SYSTEM_STATE"), "paused");
    asks_to_leave(&hive, &[("HF_AGENT", "a")], "hf-task claim", "project_paused");
    ok(&hive, "hf-resume");
    keeps_the_rules(&hive);
}

#[test]
fn a_pause_during_a_stop_outlasts_the_stop() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-stop fire");
    ok(&hive, "hf-pause look");
    assert_eq!(sh(&hive, "hf-resume").expect_exit(3).get("REASON"), "system_stopped");
    ok(&hive, "hf-resume --system");
    assert_eq!(sh(&hive, "hf-task claim --actor agent:a").expect_exit(3).get("REASON"), "project_paused");
    ok(&hive, "hf-resume");
    ok(&hive, "hf-task claim --actor agent:a");
    // What goes on already is no reason to lift a stop either.
    ok(&hive, "hf-stop again");
    assert_eq!(sh(&hive, "hf-resume").expect_exit(3).get("REASON"), "system_stopped");
    assert_eq!(sh(&hive, "hf-status").expect_exit(1).get("SYSTEM_STATE"), "stopped");
    keeps_the_rules(&hive);
}
