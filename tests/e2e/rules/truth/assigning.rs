//! Tasks go to somebody who is there, with everything that applies to the work.

use super::problems;
use crate::support::session_fixture::{logged_in, within};
use crate::support::steps::{governed, keeps_the_rules, ok, refuses, running, sh, state};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::at;

/// The holder of a task.
#[track_caller]
fn holder(hive: &TestVault, task: &str) -> Option<String> {
    let shown = ok(hive, &format!("hf-task show {task}"));
    shown.all("FACT").into_iter().find_map(|fact| fact.strip_prefix("holder ").map(str::to_owned))
}

#[test]
fn t17_a_ready_task_is_assigned_to_an_agent_that_is_there_with_a_lease() {
    let mut hive = governed("auto_assign: true");
    ok(&hive, "hf-task propose Form");
    assert_eq!((state(&hive, "T-0001"), holder(&hive, "T-0001")), ("Ready".to_owned(), None), "nobody is there");
    logged_in(&hive, "a", "main");
    assert_eq!(holder(&hive, "T-0001").as_deref(), Some("agent:a"));
    assert!(ok(&hive, "hf-task show T-0001").all("FACT").contains(&"lease_seconds 900"));
    // Whoever holds a task gets no other; another project's agent gets none of this one.
    ok(&hive, "hf-task propose Page");
    logged_in(&hive, "b", "brand");
    assert_eq!(state(&hive, "T-0002"), "Ready");
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    at(&mut hive, 10, "hf-task succeed T-0001 --actor agent:a").expect_exit(0);
    assert_eq!(holder(&hive, "T-0002").as_deref(), Some("agent:a"));
    keeps_the_rules(&hive);
}

#[test]
fn t17_the_agent_that_was_idle_longest_is_first() {
    let mut hive = governed("auto_assign: true");
    for (seconds, agent) in [(0, "c"), (1, "b"), (2, "a")] {
        at(&mut hive, seconds, &format!("hf-session login --agent {agent}")).expect_exit(0);
    }
    at(&mut hive, 3, "hf-task propose One").expect_exit(0);
    assert_eq!(holder(&hive, "T-0001").as_deref(), Some("agent:c"));
    ok(&hive, "hf-task start T-0001 --actor agent:c");
    at(&mut hive, 4, "hf-task succeed T-0001 --actor agent:c").expect_exit(0);
    for (task, agent) in [("T-0002", "agent:b"), ("T-0003", "agent:a"), ("T-0004", "agent:c")] {
        ok(&hive, "hf-task propose More");
        assert_eq!(holder(&hive, task).as_deref(), Some(agent), "{task}");
    }
    keeps_the_rules(&hive);
}

#[test]
fn t4_a_task_does_not_go_back_to_the_agent_that_fell_silent() {
    let mut hive = governed("auto_assign: true");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    at(&mut hive, 901, "hf-watchdog").expect_exit(1);
    assert_eq!((state(&hive, "T-0001"), holder(&hive, "T-0001")), ("Ready".to_owned(), None));
    logged_in(&hive, "b", "main");
    assert_eq!(holder(&hive, "T-0001").as_deref(), Some("agent:b"));
    keeps_the_rules(&hive);
}

#[test]
fn t18_constraints_reach_whoever_does_the_work() {
    let hive = TestVault::new();
    hive.run("constraint", &["apply", "No new dependencies"]).expect_exit(0);
    ok(&hive, "hf-task propose Early");
    assert!(ok(&hive, "hf-task claim").all("CONSTRAINT").is_empty(), "not approved yet");
    ok(&hive, "hf-decide approve DEC-0001");
    ok(&hive, "hf-task propose Form");
    let claimed = ok(&hive, "hf-task claim T-0002 --actor agent:a");
    assert_eq!(claimed.all("CONSTRAINT"), ["CON-0001 No new dependencies"]);
    assert_eq!(ok(&hive, "hf-task start T-0002 --actor agent:a").get("CONSTRAINTS"), "1");
    // In a session, and in the context of the task's branch.
    ok(&hive, "hf-task propose Page --project brand --create");
    let session = logged_in(&hive, "b", "brand");
    let seated: &[(&str, &str)] = &[("HF_AGENT", "b"), ("HF_SESSION", &session)];
    assert_eq!(within(&hive, seated, "hf-session task").all("CONSTRAINT"), ["CON-0001 No new dependencies"]);
    let branch = ok(&hive, "hf-branch list --agent b").all("BRANCH").iter().find(|row| row.contains(" task ")).unwrap()
        [..7]
        .to_owned();
    let context = sh(&hive, &format!("hf-branch resume {branch} --agent b"));
    assert!(context.stdout.contains("# Constraints on the work\n  CON-0001 No new dependencies\n"), "{context:#?}");
    // A constraint that was removed is gone.
    ok(&hive, "hf-constraint remove CON-0001");
    ok(&hive, "hf-decide approve DEC-0002");
    ok(&hive, "hf-task propose Last");
    assert!(ok(&hive, "hf-task claim").all("CONSTRAINT").is_empty());
}

#[test]
fn a_briefing_stays_short_whatever_applies() {
    let hive = TestVault::new();
    for n in 1..=8 {
        let text = format!("{n} {}", "very long words ".repeat(30));
        hive.run("constraint", &["apply", text.trim()]).expect_exit(0);
        ok(&hive, &format!("hf-decide approve DEC-000{n}"));
    }
    ok(&hive, "hf-task propose Form");
    let claimed = ok(&hive, "hf-task claim");
    assert_eq!((claimed.all("CONSTRAINT").len(), claimed.get("CONSTRAINTS")), (5, "8"));
    assert!(claimed.stdout.split_whitespace().count() <= 200, "{}", claimed.stdout);
}

#[test]
fn t24_an_agent_can_list_what_it_holds_and_is_reminded_of_it() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-task claim T-0002 --actor agent:b");
    let mine = within(&hive, &[("HF_AGENT", "a")], "hf-task list --mine").expect_exit(0);
    assert_eq!((mine.get("COUNT"), mine.all("ENTITY").len()), ("1", 1));
    assert!(mine.all("ENTITY")[0].contains(" T-0001@"));
    let none = within(&hive, &[("HF_AGENT", "a")], "hf-task claim").expect_exit(1);
    let told = ["STATUS", "SUM", "NEXT"].map(|key| none.get(key));
    assert_eq!(told, ["NO_TASK", "no task is ready; you hold T-0001 (Running): Form", "ACTION hf-task show T-0001"]);
    let none = within(&hive, &[("HF_AGENT", "b")], "hf-task claim").expect_exit(1);
    assert_eq!(none.get("NEXT"), "ACTION hf-task start T-0002");
    let none = within(&hive, &[("HF_AGENT", "c")], "hf-task claim").expect_exit(1);
    assert_eq!((none.get("SUM"), none.get("NEXT")), ("no task is ready; 0 tasks waiting", "NONE"));
}

#[test]
fn t26_an_unknown_status_names_the_ones_there_are() {
    let hive = TestVault::new();
    refuses(
        &hive,
        "hf-task list --status running",
        2,
        "unknown status 'running' of a task; one of Proposed, Ready, Aborted, Assigned, Running,",
    );
    refuses(
        &hive,
        "hf-require list --status Running",
        2,
        "unknown status 'Running' of a requirement; one of Proposed,",
    );
}

#[test]
fn a_settings_file_that_cannot_be_read_is_a_problem_and_nothing_else_fails() {
    let hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    hive.configure("a: [\n");
    let found = problems(&hive);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("settings hiveforge.config.yaml cannot be used;"), "{found:?}");
    assert!(found[0].ends_with(" do=hf-config diff"), "{found:?}");
    sh(&hive, "hf-config diff").expect_exit(2);
    ok(&hive, "hf-task propose Form");
}
