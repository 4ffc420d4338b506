//! Work that is done again, and what waits for it: directly, behind an earlier attempt, or in the queue of jobs.

use rustix::process::Signal;

use super::{because, problems, told};
use crate::support::job_fixture::{TestJobVault, kill};
use crate::support::steps::{approved, governed, held, keeps_the_rules, kinds_since, ok, running, sh, state};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::at;

/// T-0001, aborted, and T-0002, its rework, aborted too; T-0003 is another attempt at T-0001.
fn tried_three_times(hive: &TestVault) {
    ok(hive, "hf-task propose Form");
    for n in [1, 2] {
        ok(hive, &format!("hf-task claim T-000{n} --actor agent:a"));
        ok(hive, "hf-stop harm");
        ok(hive, "hf-resume --system");
        ok(hive, "hf-task propose --rework-of T-0001");
    }
}

#[test]
fn a_task_behind_two_attempts_at_the_same_work_becomes_ready_once() {
    let hive = TestVault::new();
    tried_three_times(&hive);
    ok(&hive, "hf-task propose After --after T-0001 --after T-0002");
    ok(&hive, "hf-task claim T-0003 --actor agent:a");
    ok(&hive, "hf-task start T-0003 --actor agent:a");
    let before = hive.events().len();
    ok(&hive, "hf-task succeed T-0003 --actor agent:a");
    let became_ready = kinds_since(&hive, before).into_iter().filter(|kind| kind == "TaskReady").count();
    assert_eq!(became_ready, 1);
    keeps_the_rules(&hive);
}

#[test]
fn a_task_behind_any_attempt_is_aborted_with_the_newest() {
    let hive = TestVault::new();
    tried_three_times(&hive);
    ok(&hive, "hf-task propose After --after T-0002 --destructive");
    ok(&hive, "hf-task abort T-0003 --reason hopeless");
    assert_eq!(state(&hive, "T-0004"), "Aborted");
    let why = "T-0003, the rework of T-0002, which it depends on, was aborted: hopeless";
    assert_eq!(because(&hive, "T-0004")[0].split_once("Z: ").expect("a reason").1, why);
    keeps_the_rules(&hive);
}

#[test]
fn what_waits_for_an_earlier_attempt_waits_for_what_a_stop_aborted() {
    let hive = TestVault::new();
    tried_three_times(&hive);
    ok(&hive, "hf-task propose After --after T-0002");
    ok(&hive, "hf-task claim T-0003 --actor agent:a");
    ok(&hive, "hf-stop harm");
    ok(&hive, "hf-resume --system");
    let lines = problems(&hive);
    let stranded = "stranded T-0003 a stop aborted it, and T-0004 waits for it do=hf-task propose --rework-of T-0003";
    assert!(lines.iter().any(|line| line == stranded), "{lines:#?}");
}

#[test]
fn a_repetition_that_failed_takes_nothing_from_what_had_succeeded() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    ok(&hive, "hf-task propose --rework-of T-0001");
    ok(&hive, "hf-task propose After --after T-0001 --destructive");
    ok(&hive, "hf-task abort T-0002 --reason enough");
    assert_eq!(state(&hive, "T-0003"), "Proposed");
    keeps_the_rules(&hive);
}

#[test]
fn an_escalation_names_the_task_that_was_aborted_last() {
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, "hf-task propose First --requirement REQ-0001 --destructive");
    for title in ["Second", "Third"] {
        ok(&hive, &format!("hf-task propose {title} --requirement REQ-0001 --after T-0001"));
    }
    ok(&hive, "hf-task abort T-0001 --reason no");
    let escalation = problems(&hive).into_iter().find(|line| line.starts_with("escalation")).expect("one");
    assert!(escalation.contains("3 tasks were aborted (T-0003: "), "{escalation}");
}

#[test]
fn a_task_behind_work_that_is_overdue_for_good_is_not_proposed() {
    let mut hive = governed("max_retries: 0");
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Second --after T-0001");
    let reply = at(&mut hive, 901, "hf-task propose Third --after T-0002").expect_exit(3);
    assert_eq!(told(&reply), ["REFUSED", "ACTION hf-task list"]);
    assert_eq!(state(&hive, "T-0002"), "Aborted");
}

#[test]
fn who_lost_a_task_is_not_told_that_somebody_holds_it_whose_claim_has_expired_too() {
    let mut hive = TestVault::new();
    held(&hive, "agent:a");
    at(&mut hive, 901, "hf-task claim T-0001 --actor agent:b").expect_exit(0);
    let reply = at(&mut hive, 1802, "hf-checkpoint Here --agent a").expect_exit(0);
    assert_eq!(told(&reply), ["RECORDED", "ACTION hf-task claim T-0001 --actor agent:a"]);
    ok(&hive, "hf-pause questions");
    let paused = sh(&hive, "hf-checkpoint Here --agent b").expect_exit(0);
    assert_eq!(told(&paused), ["RECORDED", "NONE"]);
}

#[test]
fn next_is_no_claim_of_a_task_in_a_paused_project() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form --project brand --create");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    at(&mut hive, 901, "hf-watchdog").expect_exit(1);
    ok(&hive, "hf-pause questions --project brand");
    let reply = ok(&hive, "hf-checkpoint Here --agent a");
    assert_eq!(told(&reply), ["RECORDED", "ACTION hf-task claim --actor agent:a"]);
}

#[test]
fn of_two_things_due_at_the_same_time_the_one_that_began_first_comes_first() {
    let mut hive = governed("approval_timeout_policy: reject");
    ok(&hive, "hf-task propose First --project zoo --create --destructive");
    ok(&hive, "hf-task propose Second --after T-0001 --destructive");
    for line in ["hf-task list", "hf-watchdog"] {
        at(&mut hive, 86_401, line);
        let why = "T-0001, which it depends on, was aborted: DEC-0001 was rejected: no answer in time";
        let said = because(&hive, "T-0002");
        assert!(said[0].ends_with(why), "{said:#?}");
    }
    keeps_the_rules(&hive);
}

#[test]
fn next_leaves_the_last_place_to_a_job_in_the_queue() {
    let hive = TestJobVault::new("governance:\n  max_concurrent_tasks: 1\n");
    let mut gate = hive.gate("gate");
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose More");
    hive.fire("read x <gate");
    let done = ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    assert_eq!(told(&done), ["RECORDED", "NONE"]);
    let next = ok(&hive, "hf-session next --agent a");
    assert_eq!([next.get("ACTION"), next.get("REASON")], ["hold", "too_many_tasks"]);
    assert_eq!(told(&ok(&hive, "hf-session login --agent a")), ["RECORDED", "NONE"]);
    gate.open();
    hive.poll("T-0003");
    let next = ok(&hive, "hf-session login --agent a");
    assert!(next.get("NEXT").starts_with("ACTION hf-session task "), "{next:#?}");
    hive.over();
}

#[test]
fn a_job_whose_requirement_is_blocked_keeps_no_other_job_waiting() {
    let hive = TestJobVault::new("governance:\n  max_concurrent_tasks: 1\n  max_oscillations: 0\n");
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    std::fs::write(hive.dir().join("result"), "one").expect("a file");
    ok(&hive, "hf-artifact put result --for T-0001 --actor agent:a");
    hive.fire_with(&["--requirement", "REQ-0001"], "echo first");
    hive.fire("echo second");
    ok(&hive, "hf-artifact invalidate ART-0001 --reason wrong");
    assert_eq!(state(&hive, "REQ-0001"), "Blocked");
    assert_eq!(hive.poll("T-0003").get("SUM"), "second");
    assert_eq!(state(&hive, "T-0002"), "Ready");
    ok(&hive, "hf-decide approve DEC-0002");
    assert_eq!(hive.poll("T-0002").get("SUM"), "first");
    hive.over();
}

#[test]
fn a_list_of_jobs_shows_what_it_has_just_recorded() {
    let hive = TestJobVault::new("");
    ok(&hive, "hf-require propose Login");
    hive.fire_with(&["--requirement", "REQ-0001"], "true");
    hive.fire_with(&["--after", "T-0001"], "true");
    for task in ["T-0001", "T-0002"] {
        kill(hive.supervisor(task), Signal::KILL);
    }
    hive.gone();
    let listed = ok(&hive, "hf-job list");
    let states: Vec<&str> = listed.all("JOB").iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(states, ["FAIL", "LOST"], "{listed:#?}");
    assert_eq!(["T-0001", "T-0002"].map(|task| state(&hive, task)), ["Aborted", "Aborted"]);
    hive.over();
}

#[test]
fn a_duty_is_missed_since_the_first_log_that_was_no_introspection() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-deepwork start --flexible Deep --agent a");
    for seconds in [10, 20, 30] {
        at(&mut hive, seconds, "hf-activity --kind creating --agent a").expect_exit(0);
    }
    let status = sh(&hive, "hf-status").expect_exit(1);
    let missed = status.all("PROBLEM").into_iter().find(|line| line.contains("INTROSPECTION_DUTY")).expect("one");
    assert!(missed.starts_with("2026-01-31T12:00:20Z age=10 "), "{missed}");
}

#[test]
fn an_agent_is_asked_to_leave_an_archived_project_whatever_else_is_wrong_with_its_request() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-pause --archive main over --yes");
    for line in [
        "hf-task claim T-0001 --actor agent:a",
        "hf-task start T-0001 --actor agent:a",
        "hf-append RequirementImplemented --subject REQ-0001 --actor agent:a",
    ] {
        let reply = sh(&hive, line).expect_exit(3);
        assert_eq!(told(&reply), ["EXIT_REQUESTED", "NONE"], "{line}");
    }
}
