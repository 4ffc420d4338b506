//! Replies that somebody made untrue by trying to: late holders, work that a stop left behind, lost jobs, reasons.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::{because, problems, told};
use crate::support::job_fixture::{TestJobVault, ends, kill};
use crate::support::session_fixture::{logged_in, within};
use crate::support::steps::{approved, governed, held, keeps_the_rules, ok, refuses, running, sh, state};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::{at, configured, moment, tick};

/// A vault in which a watchdog has run, so that only other problems are listed.
fn watched() -> TestVault {
    let hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    hive
}

fn stop_and_resume(hive: &TestVault) {
    ok(hive, "hf-stop harm");
    ok(hive, "hf-resume --system");
}

/// A result of T-0001 that is found wanting.
fn invalidate(hive: &TestVault) {
    fs::write(hive.dir().join("result"), "x").unwrap();
    ok(hive, "hf-artifact put result --for T-0001 --actor agent:a");
}

/// Kills the supervisor of T-0001; its command dies with it.
fn kill_supervisor(story: &TestJobVault) {
    let [supervisor, command] = story.pids("T-0001");
    let process = pidfd_open(Pid::from_raw(command).expect("a pid"), PidfdFlags::empty()).expect("it lives");
    kill(supervisor, Signal::KILL);
    ends(command, &process);
}

#[test]
fn a_late_holder_is_told_by_its_next_sign_of_life_and_only_once() {
    for line in ["hf-checkpoint --agent a here", "hf-activity --agent a --kind creating"] {
        let mut hive = TestVault::new();
        running(&hive, "agent:a");
        let reply = at(&mut hive, 901, line).expect_exit(0);
        assert_eq!(told(&reply), ["RECORDED", "ACTION hf-task claim T-0001 --actor agent:a"], "{reply:#?}");
        assert_eq!(reply.all("ADVICE")[0], "your claim on T-0001 has expired; the task can be claimed again");
        assert_eq!(told(&ok(&hive, "hf-checkpoint --agent a again")), ["RECORDED", "NONE"]);
        // The same if somebody else was faster.
        ok(&hive, "hf-task claim T-0001 --actor agent:a");
        at(&mut hive, 1802, "hf-task claim T-0001 --actor agent:b").expect_exit(0);
        let reply = ok(&hive, line);
        assert_eq!(told(&reply), ["RECORDED", "ACTION hf-task claim --actor agent:a"]);
        assert_eq!(reply.all("ADVICE")[0], "your claim on T-0001 has expired; agent:b holds the task now");
        keeps_the_rules(&hive);
    }
}

#[test]
fn a_repeated_claim_does_not_say_that_the_task_is_still_held() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim --actor agent:a --key c");
    assert_eq!(ok(&hive, "hf-task claim --actor agent:a --key c").get("STATUS"), "DUPLICATE");
    let late = at(&mut hive, 901, "hf-task claim --actor agent:a --key c").expect_exit(3);
    assert_eq!(told(&late), ["CLAIM_LOST", "ACTION hf-task claim T-0001 --actor agent:a"]);
    ok(&hive, "hf-task claim --actor agent:b");
    let late = sh(&hive, "hf-task claim --actor agent:a --key c").expect_exit(3);
    assert_eq!(late.get("SUM"), "your claim on T-0001 has expired; agent:b holds the task now");
}

#[test]
fn a_report_after_the_loss_says_what_became_of_the_task() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    within(&hive, &shell, "hf-session task").expect_exit(0);
    hive.at(&moment(901).to_string());
    let late = within(&hive, &shell, "hf-session report").expect_exit(3);
    assert_eq!(told(&late), ["CLAIM_LOST", "ACTION hf-task claim T-0001"]);
}

#[test]
fn a_run_that_took_too_long_is_not_called_an_expired_claim() {
    let mut hive = TestVault::new();
    held(&hive, "agent:a");
    ok(&hive, "hf-task start T-0001 --actor agent:a --timeout 1m");
    let late = at(&mut hive, 61, "hf-task succeed T-0001 --actor agent:a").expect_exit(3);
    assert_eq!(late.get("SUM"), "the run of T-0001 exceeded its time limit; the task can be claimed again");
}

#[test]
fn a_holder_whose_result_was_rejected_is_told() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    invalidate(&hive);
    ok(&hive, "hf-artifact invalidate ART-0001 --reason untested");
    let late = sh(&hive, "hf-task succeed T-0001 --actor agent:a").expect_exit(3);
    assert_eq!(told(&late), ["CLAIM_LOST", "ACTION hf-task claim --actor agent:a"]);
    assert_eq!(late.get("SUM"), "T-0001 was aborted: rework: untested");
}

#[test]
fn both_tasks_say_why_a_result_was_rejected() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    invalidate(&hive);
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    ok(&hive, "hf-artifact invalidate ART-0001 --reason untested");
    assert_eq!(
        because(&hive, "T-0001")[1..],
        ["its result ART-0001 was rejected: untested", "T-0002 repeats the work and is Ready"]
    );
    assert_eq!(because(&hive, "T-0002")[2], "T-0002 repeats T-0001: untested");
    keeps_the_rules(&hive);
}

#[test]
fn work_behind_a_rework_that_a_stop_aborted_too_is_listed() {
    let hive = watched();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose After --after T-0001");
    stop_and_resume(&hive);
    let stranded = "a stop aborted it, and T-0002 waits for it do=hf-task propose --rework-of";
    assert_eq!(problems(&hive), [format!("stranded T-0001 {stranded} T-0001")]);
    ok(&hive, "hf-task propose --rework-of T-0001");
    assert_eq!(problems(&hive), [""; 0]);
    ok(&hive, "hf-task claim T-0003 --actor agent:a");
    stop_and_resume(&hive);
    assert_eq!(problems(&hive), [format!("stranded T-0003 {stranded} T-0003")]);
    ok(&hive, "hf-task propose --rework-of T-0001");
    refuses(&hive, "hf-task propose --rework-of T-0003", 3, "T-0004 repeats the work of T-0003 already");
}

#[test]
fn a_requirement_misses_what_a_stop_aborted_even_while_other_work_goes_on() {
    let hive = watched();
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task propose Page --requirement REQ-0001");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    stop_and_resume(&hive);
    let stranded = "a stop aborted it, and REQ-0001 waits for it do=hf-task propose --rework-of T-0001";
    assert_eq!(problems(&hive), [format!("stranded T-0001 {stranded}")]);
    // Putting it away changes nothing about that.
    ok(&hive, "hf-task archive T-0001");
    assert_eq!(problems(&hive), [format!("stranded T-0001 {stranded}")]);
}

#[test]
fn a_requirement_is_escalated_again_if_work_after_an_acknowledgement_does_not_help() {
    let hive = watched();
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task abort T-0001 --reason useless");
    ok(&hive, "hf-decide acknowledge ESC-0001 --reason seen");
    ok(&hive, "hf-task propose Page --requirement REQ-0001");
    for step in ["claim", "start", "succeed"] {
        ok(&hive, &format!("hf-task {step} T-0002"));
    }
    let why = "REQ-0001: not implemented: no task is open, and 1 task was aborted";
    assert_eq!(problems(&hive), [format!("escalation ESC-0002 {why} do=hf-decide acknowledge ESC-0002 --reason TEXT")]);
    keeps_the_rules(&hive);
}

#[test]
fn an_archived_project_leaves_no_question_and_nothing_to_claim() {
    let hive = watched();
    ok(&hive, "hf-require propose Login --project brand --create");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    ok(&hive, "hf-task propose Form --project brand --create");
    ok(&hive, "hf-pause --archive brand moved --yes");
    assert_eq!(problems(&hive), [""; 0]);
    assert_eq!((state(&hive, "DEC-0001"), state(&hive, "T-0001")), ("Superseded".to_owned(), "Ready".to_owned()));
    assert_eq!(ok(&hive, "hf-task list --ready").get("COUNT"), "0");
    keeps_the_rules(&hive);
}

#[test]
fn the_reason_of_an_archive_survives() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-pause --archive main moved --yes");
    assert_eq!(because(&hive, "T-0001")[0], "T-0001 was aborted at 2026-01-31T12:00:00Z: archived: moved");
}

#[test]
fn only_the_holder_is_told_to_start() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    assert_eq!(told(&ok(&hive, "hf-task assign T-0001 c")), ["RECORDED", "NONE"]);
    assert_eq!(told(&ok(&hive, "hf-task assign T-0001 c")), ["DUPLICATE", "NONE"]);
    let hive = governed("auto_assign: true");
    logged_in(&hive, "a", "main");
    assert_eq!(told(&ok(&hive, "hf-task propose Form --actor agent:b")), ["RECORDED", "NONE"]);
    assert_eq!(state(&hive, "T-0001"), "Assigned");
}

#[test]
fn a_question_that_silence_answers_asks_nobody() {
    let mut hive = governed("approval_timeout_policy: reject\n  approval_timeout_hours: 1");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    at(&mut hive, 3601, "hf-task list");
    let overdue = "overdue DEC-0001 approval was due at 2026-01-31T13:00:00Z do=hf-watchdog";
    assert_eq!(problems(&hive), [overdue, "watchdog watchdog has never run do=hf-watchdog --install cron"][..1]);
    let recorded = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(recorded.all("ADVICE"), ["nobody answered in time; see hf-decide list"]);
    assert_eq!(problems(&hive), [""; 0]);
}

#[test]
fn what_is_due_names_the_holder_that_was_late() {
    let mut hive = governed("auto_assign: true");
    logged_in(&hive, "a", "main");
    logged_in(&hive, "b", "main");
    ok(&hive, "hf-task propose One");
    ok(&hive, "hf-task propose Two");
    let listed = at(&mut hive, 901, "hf-task list").expect_exit(0);
    let mut late: Vec<&str> = listed.all("ENTITY").iter().filter_map(|line| line.split("due=").nth(1)).collect();
    late.sort_unstable();
    let of = |agent: &str| format!("lease of agent:{agent} expired at 2026-01-31T12:15:00Z");
    assert_eq!(late, [of("a"), of("b")]);
}

#[test]
fn an_agent_that_is_logged_in_and_silent_is_missed() {
    let mut hive = configured("");
    logged_in(&hive, "a", "main");
    assert_eq!(tick(&mut hive, 601), ["NEVER_SEEN agent:a error 601"]);
    ok(&hive, "hf-session logout --agent a");
    assert_eq!(tick(&mut hive, 602), [""; 0]);
}

#[test]
fn the_end_of_a_task_is_the_last_that_was_seen_of_its_agent() {
    let mut hive = TestVault::new();
    running(&hive, "agent:a");
    at(&mut hive, 840, "hf-task succeed T-0001 --actor agent:a").expect_exit(0);
    let agent = sh(&hive, "hf-status").get("AGENT").to_owned();
    assert_eq!(agent, "a HEALTHY 2026-01-31T12:14:00Z seen age=0");
}

#[test]
fn the_watchdog_does_not_call_a_failing_hook_healthy() {
    let mut hive = configured("hooks:\n  on_decision: exit 3\n");
    ok(&hive, "hf-task propose Wipe --destructive");
    at(&mut hive, 1, "hf-watchdog");
    let reply = at(&mut hive, 61, "hf-watchdog").expect_exit(1);
    assert_eq!(reply.get("STATUS"), "ANOMALY");
    assert!(reply.get("ANOMALY").starts_with("HOOK_FAILED system error"), "{reply:#?}");
    assert_eq!(problems(&hive).iter().filter(|line| line.starts_with("hook")).count(), 1);
}

#[test]
fn an_agent_that_the_watchdog_has_not_met_is_not_told_that_it_never_ran() {
    let hive = watched();
    let reply = ok(&hive, "hf-checkpoint --agent a here");
    assert!(reply.stderr.contains("this agent has no heartbeat id yet"), "{}", reply.stderr);
}

#[test]
fn a_lost_job_is_a_problem_and_readers_mark_it_even_if_it_will_be_retried() {
    for retries in ["0", "1"] {
        let story = TestJobVault::new("");
        ok(&story, "hf-watchdog");
        let mut reached = story.gate("at");
        let _closed = story.gate("go");
        story.fire_with(&["--retries", retries], "echo up >at; read x <go");
        reached.line();
        kill_supervisor(&story);
        let lost = "its supervisor is gone, and its result is unknown";
        assert_eq!(problems(&story), [format!("job T-0001 {lost} do=hf-job check T-0001")]);
        assert_eq!(because(&story, "T-0001").last(), Some(&format!("T-0001: {lost}")));
        assert!(ok(&story, "hf-task list").get("ENTITY").ends_with(&format!("due={lost}")));
        ok(&story, "hf-stop over");
    }
}

#[test]
fn an_orphan_that_survives_its_cancellation_is_named() {
    let story = TestJobVault::new("");
    let (mut reached, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("setsid sh -c 'echo up >at; read x <go; echo over >at' & wait");
    reached.line();
    kill_supervisor(&story);
    let reply = sh(&story, "hf-job cancel T-0001");
    if reply.get("STATUS") == "ORPHANED" {
        assert_eq!((reply.code, reply.get("NEXT"), reply.get("LEFT")), (Some(1), "ASK operator", "T-0001"));
        go.open();
        reached.line();
    } else {
        // It was ended after all, and that is what is said.
        assert_eq!((reply.get("STATUS"), state(&story, "T-0001")), ("CANCELLED", "Aborted".to_owned()));
    }
}
