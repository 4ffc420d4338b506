//! What became of a task that was taken from its holder, and of claims that expired beside the one that is asked about.

use super::told;
use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{governed, held, keeps_the_rules, kinds_since, ok, running, sh, state};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::at;

/// A running task whose result is stored.
fn built(hive: &TestVault) {
    running(hive, "agent:a");
    std::fs::write(hive.dir().join("result"), "one").expect("a file");
    ok(hive, "hf-artifact put result --for T-0001 --actor agent:a");
}

#[test]
fn a_holder_whose_task_was_taken_is_told_by_its_next_sign_of_life() {
    for (takes, became) in [
        ("hf-task abort T-0001 --reason late", "T-0001 was aborted: late"),
        ("hf-artifact invalidate ART-0001 --reason wrong", "T-0001 was aborted: rework: wrong"),
    ] {
        for sign in ["hf-checkpoint Here --agent a", "hf-activity --kind creating --agent a"] {
            let hive = TestVault::new();
            built(&hive);
            ok(&hive, takes);
            let reply = ok(&hive, sign);
            assert_eq!(told(&reply), ["RECORDED", "ACTION hf-task claim --actor agent:a"], "{takes}: {reply:#?}");
            assert!(reply.all("ADVICE").contains(&became), "{takes}: {reply:#?}");
            // Once is enough.
            assert_eq!(told(&ok(&hive, sign)), ["RECORDED", "NONE"]);
        }
    }
}

#[test]
fn a_holder_that_ended_its_task_itself_is_not_told_of_a_loss() {
    for ends in ["hf-task fail T-0001 --class permanent --reason bad", "hf-task succeed T-0001", "hf-task abort T-0001"]
    {
        let hive = TestVault::new();
        built(&hive);
        ok(&hive, &format!("{ends} --actor agent:a"));
        assert_eq!(told(&ok(&hive, "hf-checkpoint Here --agent a")), ["RECORDED", "NONE"], "{ends}");
    }
}

#[test]
fn a_holder_is_told_of_a_stop_that_took_its_task_even_after_the_task_was_archived() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-stop harm");
    ok(&hive, "hf-task archive T-0001");
    ok(&hive, "hf-resume --system");
    for verb in ["heartbeat", "succeed", "start"] {
        let late = sh(&hive, &format!("hf-task {verb} T-0001 --actor agent:a")).expect_exit(3);
        assert_eq!(told(&late), ["CLAIM_LOST", "ACTION hf-task claim --actor agent:a"], "{verb}: {late:#?}");
        assert_eq!(late.get("SUM"), "T-0001 was aborted: emergency_stop: harm");
    }
}

#[test]
fn a_claim_does_not_name_a_held_task_whose_lease_has_expired_in_another_project() {
    let mut hive = TestVault::new();
    held(&hive, "agent:a");
    at(&mut hive, 901, "hf-require propose Logo --project brand --create").expect_exit(0);
    let none = at(&mut hive, 901, "hf-task claim --project brand --actor agent:a").expect_exit(1);
    assert_eq!(told(&none), ["NO_TASK", "NONE"]);
    assert_eq!(none.get("SUM"), "no task is ready; 0 tasks waiting");
    assert_eq!(state(&hive, "T-0001"), "Ready");
}

#[test]
fn a_login_leads_to_a_task_only_if_the_agent_can_get_one() {
    let hive = governed("max_concurrent_tasks: 1");
    held(&hive, "agent:a");
    ok(&hive, "hf-task propose More");
    assert_eq!(told(&ok(&hive, "hf-session login --agent b")), ["RECORDED", "NONE"]);
    let mine = ok(&hive, "hf-session login --agent a");
    let task = mine.get("NEXT").strip_prefix("ACTION ").expect("a command");
    assert!(task.starts_with("hf-session task --session "), "{task}");
    assert_eq!(ok(&hive, task).get("TASK_ID"), "T-0001");
    ok(&hive, "hf-task abort T-0001 --actor agent:a");
    let free = ok(&hive, "hf-session login --agent b");
    ok(&hive, free.get("NEXT").strip_prefix("ACTION ").expect("a command"));
}

#[test]
fn an_invalid_result_of_an_archived_task_is_reworked() {
    let hive = TestVault::new();
    built(&hive);
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    ok(&hive, "hf-task archive T-0001");
    let before = hive.events().len();
    ok(&hive, "hf-artifact invalidate ART-0001 --reason wrong");
    assert_eq!(kinds_since(&hive, before), ["ArtifactInvalidated", "TaskProposed", "TaskReady"]);
    keeps_the_rules(&hive);
}

#[test]
fn a_lost_job_is_still_lost_after_it_was_archived() {
    let hive = TestJobVault::new("");
    let mut up = hive.gate("up");
    hive.fire("echo up >up; sleep 1000");
    up.line();
    hive.lose("T-0001");
    assert_eq!(sh(&hive, "hf-job check T-0001").expect_exit(1).get("STATUS"), "LOST");
    ok(&hive, "hf-task archive T-0001");
    assert_eq!(sh(&hive, "hf-job check T-0001").expect_exit(1).get("STATUS"), "LOST");
}

#[test]
fn who_has_to_leave_is_told_so_before_what_is_wrong_with_the_request() {
    let hive = TestVault::new();
    ok(&hive, "hf-deepwork start --flexible Deep --agent a");
    let wrong = sh(&hive, "hf-deepwork extend 5 --agent a").expect_exit(2);
    assert_eq!(wrong.get("STATUS"), "USAGE");
    ok(&hive, "hf-pause questions");
    let leave = sh(&hive, "hf-deepwork extend 5 --agent a").expect_exit(3);
    assert_eq!(told(&leave), ["EXIT_REQUESTED", "NONE"]);
}
