//! Contradictions that the judge of random lives (tests/truth) found.

use super::{because, problems, told};
use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{approved, governed, held, keeps_the_rules, kinds, ok, refuses, running, sh, state};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::{at, tick};

/// The columns of an agent in hf-status: name, health, time and sort of its last sign.
fn agent(hive: &TestVault, name: &str) -> Vec<String> {
    let reply = sh(hive, "hf-status");
    let line = reply.all("AGENT").into_iter().find(|line| line.starts_with(&format!("{name} "))).expect("the agent");
    line.split(' ').take(4).map(str::to_owned).collect()
}

#[test]
fn the_heartbeat_of_a_run_is_a_sign_of_life() {
    let mut hive = TestVault::new();
    running(&hive, "agent:a");
    at(&mut hive, 300, "hf-task heartbeat T-0001 --actor agent:a").expect_exit(0);
    assert_eq!(tick(&mut hive, 900), ["INACTIVE agent:a warn 600"]);
    assert_eq!(agent(&hive, "a"), ["a", "HEALTHY", "2026-01-31T12:05:00Z", "heartbeat"]);
    assert_eq!(tick(&mut hive, 901), ["INACTIVE agent:a error 601"]);
    at(&mut hive, 902, "hf-task heartbeat T-0001 --actor agent:a").expect_exit(0);
    assert_eq!(tick(&mut hive, 903), [""; 0]);
    keeps_the_rules(&hive);
}

#[test]
fn who_only_finished_a_task_once_is_not_missed() {
    let mut hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    assert_eq!(tick(&mut hive, 100_000), [""; 0]);
}

#[test]
fn a_job_beats_by_itself_and_says_nothing_about_its_agent() {
    let mut hive = TestJobVault::new("");
    let mut gate = hive.gate("gate");
    held(&hive, "agent:a");
    at(&mut hive, 100, "hf-task list");
    hive.fire_with(&["--actor", "agent:a"], "read x <gate");
    assert_eq!(agent(&hive, "a"), ["a", "HEALTHY", "2026-01-31T12:00:00Z", "seen"]);
    gate.open();
    hive.poll("T-0002");
}

#[test]
fn the_last_sign_of_life_is_the_agents_own() {
    let mut hive = TestVault::new();
    running(&hive, "agent:a");
    at(&mut hive, 901, "hf-task claim T-0001 --actor agent:b").expect_exit(0);
    assert_eq!(agent(&hive, "b"), ["b", "HEALTHY", "2026-01-31T12:15:01Z", "seen"]);
    assert_eq!(agent(&hive, "a")[2..], ["2026-01-31T12:00:00Z", "seen"]);
}

#[test]
fn an_agent_in_an_archived_project_is_asked_to_leave() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --project brand --create");
    ok(&hive, "hf-pause --archive brand over --yes");
    for line in [
        "hf-task propose More --project brand --create --actor agent:a",
        "hf-require propose Login --project brand --create --actor agent:a",
        "hf-task claim --project brand --actor agent:a",
        "hf-task claim T-0001 --project brand --actor agent:a",
        "hf-session login --project brand --create --agent a",
    ] {
        let reply = sh(&hive, line).expect_exit(3);
        assert_eq!(told(&reply), ["EXIT_REQUESTED", "NONE"], "{line}: {reply:#?}");
        assert_eq!(reply.get("REASON"), "project_archived");
    }
    let operator = sh(&hive, "hf-task propose More --project brand --create").expect_exit(3);
    assert_eq!(told(&operator), ["REFUSED", "ASK operator"]);
}

#[test]
fn a_holder_that_lost_its_claim_is_told_so_even_after_the_task_has_ended() {
    for (ends, became) in [
        (["hf-task abort T-0001 --reason late"].as_slice(), "was aborted since: late"),
        (
            &[
                "hf-task claim T-0001 --actor agent:b",
                "hf-task start T-0001 --actor agent:b",
                "hf-task succeed T-0001 --actor agent:b",
            ],
            "has succeeded since",
        ),
    ] {
        let mut hive = TestVault::new();
        held(&hive, "agent:a");
        at(&mut hive, 901, "hf-watchdog").expect_exit(1);
        ends.iter().for_each(|line| drop(ok(&hive, line)));
        for verb in ["start", "heartbeat", "succeed"] {
            let late = sh(&hive, &format!("hf-task {verb} T-0001 --actor agent:a")).expect_exit(3);
            assert_eq!(told(&late), ["CLAIM_LOST", "ACTION hf-task claim --actor agent:a"], "{verb}: {late:#?}");
            assert_eq!(late.get("SUM"), format!("your claim on T-0001 has expired; the task {became}"));
        }
        // Whoever ended it is not told of a loss.
        assert_ne!(sh(&hive, "hf-task succeed T-0001 --actor agent:b").get("STATUS"), "CLAIM_LOST");
    }
}

#[test]
fn a_task_aborted_behind_a_rework_names_the_rework_and_what_it_repeats() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-stop harm");
    ok(&hive, "hf-resume --system");
    ok(&hive, "hf-task propose --rework-of T-0001");
    ok(&hive, "hf-task propose After --after T-0001");
    ok(&hive, "hf-task abort T-0002 --reason hopeless");
    let why = "T-0002, the rework of T-0001, which it depends on, was aborted: hopeless";
    assert_eq!(because(&hive, "T-0003")[0].split_once("Z: ").expect("a reason").1, why);
    keeps_the_rules(&hive);
}

#[test]
fn next_is_no_claim_beyond_the_limit_of_tasks_in_progress() {
    let mut hive = governed("max_concurrent_tasks: 1");
    assert_eq!(told(&ok(&hive, "hf-task propose Form")), ["RECORDED", "ACTION hf-task claim T-0001"]);
    ok(&hive, "hf-task claim T-0001 --actor agent:a --lease 1m");
    assert_eq!(told(&ok(&hive, "hf-task propose More")), ["RECORDED", "NONE"]);
    // What has expired keeps no place, whether or not anybody has recorded it.
    at(&mut hive, 60, "hf-task claim T-0002 --actor agent:b").expect_exit(3);
    assert_eq!(told(&at(&mut hive, 61, "hf-task propose Most")), ["RECORDED", "ACTION hf-task claim T-0003"]);
    ok(&hive, "hf-task claim T-0002 --actor agent:b");
    let late = sh(&hive, "hf-task start T-0001 --actor agent:a").expect_exit(3);
    assert_eq!(told(&late), ["CLAIM_LOST", "NONE"]);
    ok(&hive, "hf-task start T-0002 --actor agent:b");
    let done = ok(&hive, "hf-task succeed T-0002 --actor agent:b");
    assert_eq!(told(&done), ["RECORDED", "ACTION hf-task claim T-0001 --actor agent:b"]);
}

#[test]
fn status_lists_no_escalation_before_it_is_raised() {
    let mut hive = governed("max_retries: 0");
    running(&hive, "agent:a");
    at(&mut hive, 901, "hf-task list");
    let due = problems(&hive);
    assert!(!due.iter().any(|line| line.starts_with("escalation")), "{due:#?}");
    assert!(due.iter().any(|line| line.starts_with("overdue T-0001")), "{due:#?}");
    sh(&hive, "hf-watchdog").expect_exit(1);
    assert!(problems(&hive)[0].starts_with("escalation ESC-0001 T-0001: timeout"));
}

#[test]
fn an_abort_that_is_only_due_has_the_time_at_which_it_was_due() {
    let mut hive = governed("max_retries: 0");
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose After --after T-0001");
    let due = "2026-01-31T12:15:00Z (due: lease of agent:a expired at 2026-01-31T12:15:00Z)";
    for seconds in [901, 5000] {
        at(&mut hive, seconds, "hf-task list");
        assert_eq!(because(&hive, "T-0001")[0], format!("T-0001 was aborted at {due}: timeout"));
        let behind = "T-0001, which it depends on, was aborted: timeout";
        assert_eq!(because(&hive, "T-0002")[0], format!("T-0002 was aborted at {due}: {behind}"));
        let listed = ok(&hive, "hf-task list");
        assert!(listed.all("ENTITY").iter().all(|line| line.contains("due=lease of agent:a")), "{listed:#?}");
    }
    sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(because(&hive, "T-0001")[0], "T-0001 was aborted at 2026-01-31T13:23:20Z: timeout");
}

#[test]
fn what_was_due_first_has_its_consequences_first_in_whatever_project() {
    let mut hive = governed("approval_timeout_policy: reject");
    ok(&hive, "hf-task propose First --project brand --create --destructive");
    at(&mut hive, 60, "hf-task propose After --after T-0001 --destructive").expect_exit(0);
    let day = 86_400;
    for line in ["hf-task list", "hf-watchdog"] {
        at(&mut hive, day + 61, line);
        let why = "T-0001, which it depends on, was aborted: DEC-0001 was rejected: no answer in time";
        let said = because(&hive, "T-0002");
        assert!(said[0].ends_with(why), "{said:#?}");
    }
    keeps_the_rules(&hive);
}

#[test]
fn next_starts_nothing_in_a_paused_project() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --project brand --create");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    ok(&hive, "hf-pause questions --project brand");
    let none = sh(&hive, "hf-task claim --actor agent:a").expect_exit(1);
    assert_eq!(told(&none), ["NO_TASK", "NONE"]);
    assert_eq!(none.get("SUM"), "no task is ready; you hold T-0001 (Assigned): Form");
    ok(&hive, "hf-resume --project brand");
    let held = sh(&hive, "hf-task claim --actor agent:a").expect_exit(1);
    assert_eq!(told(&held), ["NO_TASK", "ACTION hf-task start T-0001 --actor agent:a"]);
}

#[test]
fn approving_again_does_not_lead_to_a_claim_that_has_expired() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Wipe --destructive");
    ok(&hive, "hf-decide approve DEC-0001");
    ok(&hive, "hf-task claim T-0001 --actor user:jo");
    let again = at(&mut hive, 901, "hf-decide approve DEC-0001").expect_exit(0);
    assert_eq!(told(&again), ["DUPLICATE", "ACTION hf-task claim T-0001"]);
    assert_eq!(kinds(&hive).last().map(String::as_str), Some("ClaimExpired"));
}

#[test]
fn the_time_out_of_a_job_is_not_escalated() {
    let hive = TestJobVault::new("");
    let _closed = hive.gate("gate");
    hive.fire_with(&["--timeout", "1"], "read x <gate");
    hive.poll("T-0001");
    assert_eq!(state(&hive, "T-0001"), "Aborted");
    assert!(kinds(&hive).contains(&"RunTimedOut".to_owned()));
    assert!(!kinds(&hive).contains(&"EscalationRequired".to_owned()), "{:#?}", kinds(&hive));
}

#[test]
fn repeating_what_a_stop_aborted_is_no_return_from_verification() {
    let hive = governed("max_oscillations: 1");
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    for n in 1..4 {
        ok(&hive, &format!("hf-task claim T-000{n} --actor agent:a"));
        ok(&hive, "hf-stop harm");
        ok(&hive, "hf-resume --system");
        ok(&hive, &format!("hf-task propose --rework-of T-000{n}"));
    }
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
    keeps_the_rules(&hive);
}

#[test]
fn an_approval_repeated_after_a_block_does_not_send_to_a_task_that_cannot_start() {
    let hive = governed("max_oscillations: 1");
    approved(&hive);
    for task in ["T-0001", "T-0002"] {
        ok(&hive, "hf-task propose Form --requirement REQ-0001");
        ok(&hive, &format!("hf-task claim {task} --actor agent:a"));
        ok(&hive, &format!("hf-task start {task} --actor agent:a"));
    }
    for (task, artifact) in [("T-0001", "ART-0001"), ("T-0002", "ART-0002")] {
        std::fs::write(hive.dir().join("out.txt"), task).unwrap();
        ok(&hive, &format!("hf-artifact put out.txt --for {task} --actor agent:a"));
        ok(&hive, &format!("hf-artifact invalidate {artifact} --reason bad"));
    }
    // The first rework was ready when the second one blocked the requirement.
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "T-0003")), ("Blocked".to_owned(), "Ready".to_owned()));
    refuses(&hive, "hf-task claim T-0003", 3, "T-0003 cannot start: requirement REQ-0001 is Blocked, not Approved");
    let again = ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!((again.get("STATUS"), again.get("NEXT")), ("DUPLICATE", "ASK operator"));
}

#[test]
fn an_approval_in_a_paused_project_leads_to_the_operator_who_can_resume_it() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-pause net");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    let approved = ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!((approved.get("STATE"), approved.get("NEXT")), ("Approved", "ASK operator"));
    ok(&hive, "hf-resume");
    let again = ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!((again.get("STATUS"), again.get("NEXT")), ("DUPLICATE", "ACTION hf-task claim T-0001"));
}
