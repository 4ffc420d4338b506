//! Agents leave a paused project, others carry on, and work continues after the resume.

use crate::support::session_fixture::{asks_to_leave, logged_in, within};
use crate::support::steps::{count, governed, keeps_the_rules, ok, running, sh, state};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::of_tasks_alone;
use crate::support::watchdog_fixture::{all_is_well, at, configured, moment, tick};

#[test]
fn no_agent_is_started_while_paused() {
    let hive = governed("auto_assign: true");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-task propose Form");
    let next = ok(&hive, "hf-session next --agent a");
    let told = ["ACTION", "REASON", "NEXT"].map(|key| next.get(key));
    assert_eq!(told, ["hold", "project_paused", "NONE"]);
    let before = hive.contents();
    assert_eq!(sh(&hive, "hf-session login --agent a").expect_exit(3).get("STATUS"), "EXIT_REQUESTED");
    assert!(hive.contents() == before);
    // Nothing is given out by itself either.
    assert_eq!(state(&hive, "T-0001"), "Ready");
    ok(&hive, "hf-resume");
    assert_eq!(state(&hive, "T-0001"), "Ready", "nobody is there");
    logged_in(&hive, "a", "main");
    assert_eq!(state(&hive, "T-0001"), "Assigned");
    keeps_the_rules(&hive);
}

#[test]
fn an_agent_at_work_is_asked_to_leave() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    within(&hive, &shell, "hf-session task").expect_exit(0);
    hive.run("pause", &["The direction\nis wrong"]).expect_exit(0);
    for line in ["hf-session task", "hf-session report", "hf-session renew", "hf-task start T-0001"] {
        let reply = asks_to_leave(&hive, &shell, line, "project_paused");
        assert_eq!(
            reply.masked(&hive),
            "EXIT:3\nSTATUS:EXIT_REQUESTED\nNEXT:ACTION hf-session logout\nSUM:project main has been paused since \
             2026-01-31T12:00:00Z: The direction\\nis wrong; finish up and leave by \
             2026-01-31T12:05:00Z\nREASON:project_paused\n"
        );
    }
    assert_eq!(
        within(&hive, &shell, "hf-session next").expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-session logout\nSUM:a: log out; project main is paused\nREASON:project_paused\n\
         ACTION:exit\nPROJECT:main\nTASK_ID:T-0001\nEXPIRES_AT:2026-01-31T12:05:00Z\nSTANDING:paused \
         2026-01-31T12:00:00Z project=main by=user:jo The direction\\nis wrong leave_by=2026-01-31T12:05:00Z\n"
    );
    keeps_the_rules(&hive);
}

#[test]
fn a_session_is_gone_after_the_logout() {
    let hive = TestVault::new();
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    ok(&hive, "hf-pause look");
    assert_eq!(count(&hive, "PauseDrained"), 0);
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    assert_eq!((count(&hive, "PauseDrained"), ok(&hive, "hf-session list").get("COUNT")), (1, "0"));
    asks_to_leave(&hive, &shell, "hf-checkpoint here", "session_void");
    keeps_the_rules(&hive);
}

#[test]
fn work_continues_where_it_was_after_the_resume() {
    let mut hive = of_tasks_alone();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Other");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    within(&hive, &shell, "hf-session task").expect_exit(0);
    within(&hive, &shell, "hf-task start T-0001").expect_exit(0);
    within(&hive, &shell, "hf-task claim T-0002").expect_exit(0);
    let as_it_was = ["T-0001", "T-0002"].map(|task| ok(&hive, &format!("hf-task show {task}")).stdout);
    ok(&hive, "hf-pause look");
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    // A week passes; nothing runs out.
    for day in 1..=7 {
        assert_eq!(tick(&mut hive, day * 86400), [""; 0]);
    }
    let standing = "STANDING:paused 2026-01-31T12:00:00Z project=main by=user:jo look\n";
    let now = ["T-0001", "T-0002"].map(|task| ok(&hive, &format!("hf-task show {task}")).stdout);
    assert_eq!(now, as_it_was.map(|shown| shown + standing));
    let back = 8 * 86400;
    at(&mut hive, back, "hf-resume").expect_exit(0);
    // Nobody else gets them before a lease has passed.
    assert_eq!(tick(&mut hive, back + 900), [""; 0]);
    assert_eq!(sh(&hive, "hf-task claim --actor agent:b").expect_exit(1).get("STATUS"), "NO_TASK");
    hive.at(&moment(back + 200).to_string());
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    let task = within(&hive, &shell, "hf-session task").expect_exit(0);
    assert_eq!(["TASK_ID", "STATE", "RESUMED_FROM_PAUSE"].map(|key| task.get(key)), ["T-0001", "Running", "true"]);
    within(&hive, &shell, "hf-session report").expect_exit(0);
    let task = within(&hive, &shell, "hf-session task").expect_exit(0);
    assert_eq!(["TASK_ID", "STATE"].map(|key| task.get(key)), ["T-0002", "Assigned"]);
    within(&hive, &shell, "hf-session report").expect_exit(0);
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&hive, t)), ["Succeeded", "Succeeded"]);
    all_is_well(&hive);
}

#[test]
fn one_lease_after_the_resume_abandoned_work_is_free_again() {
    let mut hive = of_tasks_alone();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-task claim T-0002 --actor agent:a");
    at(&mut hive, 800, "hf-pause look").expect_exit(0);
    at(&mut hive, 5000, "hf-resume").expect_exit(0);
    assert_eq!(tick(&mut hive, 5900), [""; 0]);
    let found = tick(&mut hive, 5901);
    let codes: Vec<&str> = found.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(codes, ["LEASE_EXPIRED", "LEASE_EXPIRED"], "{found:#?}");
    assert!(found.iter().all(|line| line.ends_with(" error 901")), "{found:#?}");
    assert_eq!(ok(&hive, "hf-task claim --actor agent:b").get("REF").split('@').next().unwrap(), "T-0001");
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&hive, t)), ["Assigned", "Ready"]);
    all_is_well(&hive);
}

#[test]
fn projects_are_paused_independently() {
    let mut hive = configured("");
    ok(&hive, "hf-require propose Login --project b --create");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    ok(&hive, "hf-decide approve DEC-0001");
    // A task belongs to the project of its requirement.
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task propose Other");
    let sessions = ["main", "b"].map(|project| logged_in(&hive, "a", project));
    let [main, b] = sessions.each_ref().map(|session| [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())]);
    for shell in [&main, &b] {
        within(&hive, shell, "hf-session task").expect_exit(0);
    }
    ok(&hive, "hf-pause look --project b");
    asks_to_leave(&hive, &b, "hf-task start T-0001", "project_paused");
    // Nor from the other session: it is the task's project that counts. To log out of that session would not leave it.
    let elsewhere = within(&hive, &main, "hf-task start T-0001").expect_exit(3);
    let told = ["STATUS", "REASON", "NEXT"].map(|key| elsewhere.get(key));
    assert_eq!(told, ["EXIT_REQUESTED", "project_paused", "NONE"]);
    asks_to_leave(&hive, &[("HF_AGENT", "a")], "hf-task start T-0001", "project_paused");
    within(&hive, &main, "hf-task start T-0002").expect_exit(0);
    within(&hive, &main, "hf-session renew").expect_exit(0);
    within(&hive, &main, "hf-require propose More").expect_exit(0);
    asks_to_leave(&hive, &b, "hf-require analyze REQ-0001 x", "project_paused");
    let status = sh(&hive, "hf-status").expect_exit(1);
    assert_eq!(status.get("SYSTEM_STATE"), "running");
    assert_eq!(
        status.all("PROJECT"),
        [
            "main Active sessions=1 running=1 open=1",
            "b Paused sessions=1 running=1 open=1 since=2026-01-31T12:00:00Z by=user:jo why=look"
        ]
    );
    let paused = "2026-01-31T12:00:00Z age=0 paused project b paused by user:jo: look do=hf-resume --project b";
    assert!(status.all("PROBLEM").contains(&paused), "{status:#?}");
    assert_eq!(status.all("STANDING"), [""; 0], "the operator's own project goes on");
    // Only the session of the project that is paused was cut.
    hive.at(&moment(301).to_string());
    within(&hive, &main, "hf-task heartbeat T-0002").expect_exit(0);
    asks_to_leave(&hive, &b, "hf-checkpoint x", "session_void");
    ok(&hive, "hf-pause look");
    let system = |hive: &TestVault| sh(hive, "hf-status").expect_exit(1).get("SYSTEM_STATE").to_owned();
    assert_eq!(system(&hive), "paused");
    ok(&hive, "hf-resume --project b");
    assert_eq!(system(&hive), "running");
    ok(&hive, "hf-pause --archive b --yes");
    assert_eq!(system(&hive), "paused", "what is archived does not count");
    assert_eq!(count(&hive, "EscalationRequired"), 0, "what ends with its project needs nobody");
    keeps_the_rules(&hive);
}

#[test]
fn agents_of_other_projects_keep_working() {
    let hive = TestVault::new();
    for project in ["main", "b"] {
        ok(&hive, &format!("hf-task propose Form --project {project} --create"));
    }
    ok(&hive, "hf-pause look");
    let (ours, theirs) = ([("HF_AGENT", "a")], [("HF_AGENT", "a"), ("HF_PROJECT", "b")]);
    for line in ["hf-task claim", "hf-deepwork start --flexible x", "hf-require propose x", "hf-job fire -- true"] {
        asks_to_leave(&hive, &ours, line, "project_paused");
    }
    for line in ["hf-deepwork start --flexible x", "hf-require propose x", "hf-session next", "hf-session login"] {
        within(&hive, &theirs, line).expect_exit(0);
    }
    let claimed = within(&hive, &theirs, "hf-task claim").expect_exit(0);
    assert!(claimed.get("REF").starts_with("T-0002@"), "{claimed:#?}");
    // What it is about decides, if that is known.
    within(&hive, &ours, "hf-task start T-0002").expect_exit(0);
    asks_to_leave(&hive, &theirs, "hf-task claim T-0001", "project_paused");
    within(&hive, &ours, "hf-task succeed T-0002").expect_exit(0);
    keeps_the_rules(&hive);
}

#[test]
fn work_in_a_paused_project_does_not_count_against_others() {
    let hive = governed("max_concurrent_tasks: 1");
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Theirs --project b --create");
    assert_eq!(sh(&hive, "hf-task claim T-0002 --actor agent:b").expect_exit(3).get("REASON"), "too_many_tasks");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-task claim T-0002 --actor agent:b");
    ok(&hive, "hf-resume");
    // Both are at work again; no third one begins.
    ok(&hive, "hf-task propose Third");
    assert_eq!(sh(&hive, "hf-task claim T-0003 --actor agent:b").expect_exit(3).get("REASON"), "too_many_tasks");
    keeps_the_rules(&hive);
}

#[test]
fn audit_tasks_are_paused_too() {
    let hive = TestVault::new();
    running(&hive, "agent:auditor");
    ok(&hive, "hf-pause look");
    for line in ["hf-task succeed T-0001", "hf-task heartbeat T-0001", "hf-task propose Audit", "hf-task claim"] {
        asks_to_leave(&hive, &[("HF_AGENT", "auditor")], line, "project_paused");
    }
    ok(&hive, "hf-task propose Audit");
    assert_eq!(sh(&hive, "hf-session login --agent auditor").expect_exit(3).get("REASON"), "project_paused");
    keeps_the_rules(&hive);
}

#[test]
fn ready_tasks_are_assigned_after_the_resume() {
    let hive = governed("auto_assign: true");
    for agent in ["a", "b", "c"] {
        logged_in(&hive, agent, "main");
    }
    ok(&hive, "hf-pause look");
    for title in ["One", "Two", "Three"] {
        ok(&hive, &format!("hf-task propose {title}"));
    }
    assert_eq!(count(&hive, "TaskAssigned"), 0);
    ok(&hive, "hf-resume");
    assert_eq!(["T-0001", "T-0002", "T-0003"].map(|t| state(&hive, t)), ["Assigned"; 3]);
    keeps_the_rules(&hive);
}
