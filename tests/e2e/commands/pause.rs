//! hf-pause and hf-resume --project: a project is held up, and goes on where it was.

use std::thread;

use hiveforge::event::Kind;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::job_fixture::{Story, kill, until_recorded};
use crate::support::session_fixture::{asks_to_leave, logged_in, within};
use crate::support::steps::{
    count, found_behind, governed, id, keeps_the_rules, kinds, kinds_since, ok, refuses, running, sh, state,
};
use crate::support::test_vault::{Hive, Random, Reply, write_private};
use crate::support::watchdog_fixture::of_tasks_alone;
use crate::support::watchdog_fixture::{all_is_well, at, configured, moment, tick, told};

#[test]
fn every_reply_about_a_pause_is_whole() {
    let hive = Hive::new();
    logged_in(&hive, "a", "main");
    assert_eq!(
        hive.run("pause", &["The direction is wrong"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:PAUSED\nNEXT:NONE\nSUM:project:main is Paused\nSTATE:Paused\nDRAINED:no\n\
         LEFT:S-0001\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n"
    );
    let before = hive.contents();
    assert_eq!(
        hive.run("pause", &["Another reason"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:NONE\nSUM:project:main is Paused\nSTATE:Paused\nDRAINED:no\n\
         LEFT:S-0001\nEVENT_ID:<ulid>\n"
    );
    assert_eq!(
        ok(&hive, "hf-pause --wait --max 1s").masked(&hive),
        "EXIT:0\nSTATUS:PAUSED\nNEXT:NONE\nSUM:project:main is Paused\nSTATE:Paused\nDRAINED:no\nLEFT:S-0001\n"
    );
    assert!(hive.contents() == before);
    assert_eq!(
        ok(&hive, "hf-session logout --agent a").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:S-0001 is Ended\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         SUBJECT:session:<ulid>\nREF:S-0001@<tag>\nSTATE:Ended\nSESSION_ID:<ulid>\nEXPIRES_AT:2026-01-31T12:05:00Z\n"
    );
    assert_eq!(kinds(&hive).last().unwrap(), "PauseDrained");
    assert_eq!(
        ok(&hive, "hf-pause --wait").masked(&hive),
        "EXIT:0\nSTATUS:PAUSED\nNEXT:NONE\nSUM:project:main is Paused\nSTATE:Paused\nDRAINED:yes\n"
    );
    assert_eq!(
        hive.run("resume", &["--comment", "All is well"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RESUMED\nNEXT:NONE\nSUM:project:main is Active\nEVENT_ID:<ulid>\nSUBJECT:project:main\n\
         STATE:Active\n"
    );
    let before = hive.contents();
    assert_eq!(
        ok(&hive, "hf-resume --project main").masked(&hive),
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:NONE\nSUM:project:main is Active\nEVENT_ID:<ulid>\nSUBJECT:project:main\n\
         STATE:Active\n"
    );
    // Nothing is paused, and nothing is said to be.
    let waited = ok(&hive, "hf-pause --wait");
    assert_eq!(["STATUS", "STATE", "DRAINED"].map(|key| waited.get(key)), ["OK", "Active", "yes"]);
    assert!(hive.contents() == before);
    assert_eq!(
        hive.run("pause", &["--archive", "It is done"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:ARCHIVED\nNEXT:NONE\nSUM:project:main is Archived\nSTATE:Archived\nDRAINED:yes\n\
         EVENT_ID:<ulid>\n"
    );
    assert_eq!(ok(&hive, "hf-pause --archive").get("STATUS"), "DUPLICATE");
    let refused = hive.refuses("resume", &[], 3);
    assert_eq!(
        refused.masked(&hive),
        "EXIT:3\nSTATUS:REFUSED\nNEXT:NONE\nSUM:project:main is Archived; ProjectResumed is not legal there, only nothing\n\
         REASON:illegal_transition\n"
    );
    assert_eq!(hive.refuses("pause", &["again"], 3).get("REASON"), "illegal_transition");
    all_is_well(&hive);
}

#[test]
fn what_is_asked_for_wrongly_is_refused() {
    let hive = Hive::new();
    for (name, args, code) in [
        ("pause", &[][..], 2),
        ("pause", &[" "], 2),
        ("pause", &["x", "--project", "../x"], 2),
        ("pause", &["x", "--archive", "--wait"], 2),
        ("pause", &["x", "--max", "5s"], 2),
        ("pause", &["x", "--wait", "--max", "0"], 2),
        ("resume", &["--system", "--project", "main"], 2),
        // A name that nothing belongs to is a slip.
        ("pause", &["x", "--project", "mian"], 6),
        ("pause", &["--archive", "--project", "mian"], 6),
        ("pause", &["--wait", "--project", "mian"], 6),
        ("resume", &["--project", "mian"], 6),
    ] {
        hive.refuses(name, args, code);
    }
    let nowhere = Hive::empty();
    for line in ["hf-pause x", "hf-resume", "hf-session list"] {
        assert_eq!(sh(&nowhere, line).expect_exit(7).get("STATUS"), "NO_VAULT");
    }
}

#[test]
fn what_nobody_ever_paused_goes_on_and_leaves_no_trace() {
    let hive = Hive::new();
    let before = hive.contents();
    let reply = ok(&hive, "hf-resume");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DUPLICATE", "project:main is Active"));
    let reply = ok(&hive, "hf-pause --wait");
    assert_eq!(["STATUS", "STATE", "DRAINED"].map(|key| reply.get(key)), ["OK", "Active", "yes"]);
    assert!(hive.contents() == before, "{:#?}", kinds(&hive));
}

#[test]
fn a_pause_is_for_an_operator() {
    let hive = Hive::new();
    logged_in(&hive, "a", "main");
    let lines = [
        "hf-pause x",
        "hf-pause --wait",
        "hf-pause --archive",
        "hf-resume",
        "hf-append ProjectPaused --subject project:main --payload {\"reason\":\"x\",\"grace_seconds\":1}",
        "hf-append ProjectResumed --subject project:main",
        "hf-append ProjectArchived --subject project:main",
    ];
    // The event alone is about something that is there.
    ok(&hive, "hf-pause x");
    ok(&hive, "hf-resume");
    for paused in [false, true] {
        let before = hive.contents();
        for line in lines {
            for shell in [[("HF_AGENT", "a")], [("HF_SESSION", "S-0001")], [("HF_SESSION", "x")]] {
                let reply = within(&hive, &shell, line).expect_exit(3);
                assert_eq!(reply.get("REASON"), "operator_only", "{line} in {shell:?}");
            }
            for actor in ["agent:a", "core:reactor"] {
                let reply = sh(&hive, &format!("{line} --actor {actor}")).expect_exit(3);
                assert_eq!(reply.get("REASON"), "operator_only", "{line} by {actor}");
            }
        }
        assert!(hive.contents() == before);
        if !paused {
            ok(&hive, "hf-pause x");
        }
    }
    keeps_the_rules(&hive);
}

#[test]
fn the_event_alone_does_the_same_as_the_command() {
    let hive = Hive::new();
    hive.append("ProjectPaused", "project:main", json!({"reason": "x", "grace_seconds": 300}));
    assert_eq!(kinds_since(&hive, 1), ["ProjectOpened", "ProjectPaused", "PauseDrained"]);
    hive.append("ProjectResumed", "project:main", json!({}));
    hive.append("ProjectArchived", "project:main", json!({}));
    assert_eq!(
        sh(&hive, "hf-append ProjectPaused --subject project:mian --payload {\"reason\":\"x\",\"grace_seconds\":1}")
            .code,
        Some(6)
    );
    keeps_the_rules(&hive);
}

// --- What the seed wants tested -----------------------------------------------------------------

#[test]
fn no_agent_is_started_while_paused() {
    let hive = governed("auto_assign: true");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-task propose Form");
    let next = ok(&hive, "hf-session next --agent a");
    assert_eq!(["ACTION", "REASON", "NEXT"].map(|key| next.get(key)), ["hold", "project_paused", "NONE"]);
    let before = hive.contents();
    assert_eq!(sh(&hive, "hf-session login --agent a").expect_exit(3).get("STATUS"), "EXIT_REQUESTED");
    assert!(hive.contents() == before);
    // Nothing is given out by itself either.
    assert_eq!(state(&hive, "T-0001"), "Ready");
    ok(&hive, "hf-resume");
    assert_eq!(state(&hive, "T-0001"), "Assigned");
    keeps_the_rules(&hive);
}

#[test]
fn an_agent_at_work_is_asked_to_leave() {
    let hive = Hive::new();
    ok(&hive, "hf-task propose Form");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    within(&hive, &shell, "hf-session task").expect_exit(0);
    hive.run("pause", &["The direction\nis wrong"]).expect_exit(0);
    for line in ["hf-session task", "hf-session report", "hf-session renew", "hf-task start T-0001"] {
        let reply = asks_to_leave(&hive, &shell, line, "project_paused");
        assert_eq!(
            reply.masked(&hive),
            "EXIT:3\nSTATUS:EXIT_REQUESTED\nNEXT:ACTION hf-session logout\nSUM:project main is paused since \
             2026-01-31T12:00:00Z: The direction\\nis wrong; tidy up what is half done, and leave\nREASON:project_paused\n"
        );
    }
    assert_eq!(
        within(&hive, &shell, "hf-session next").expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-session logout\nSUM:a exit: project_paused\nREASON:project_paused\n\
         ACTION:exit\nPROJECT:main\nTASK_ID:T-0001\n"
    );
    keeps_the_rules(&hive);
}

#[test]
fn a_session_is_gone_after_the_logout() {
    let hive = Hive::new();
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
fn work_goes_on_where_it_was_after_the_resume() {
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
    assert_eq!(["T-0001", "T-0002"].map(|task| ok(&hive, &format!("hf-task show {task}")).stdout), as_it_was);
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
fn one_lease_after_the_resume_others_may_take_what_nobody_came_back_for() {
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
fn two_projects_are_paused_apart() {
    let mut hive = configured("");
    ok(&hive, "hf-require propose Login --project b");
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
    // Nor from the other session: it is the task's project that counts.
    asks_to_leave(&hive, &main, "hf-task start T-0001", "project_paused");
    asks_to_leave(&hive, &[("HF_AGENT", "a")], "hf-task start T-0001", "project_paused");
    within(&hive, &main, "hf-task start T-0002").expect_exit(0);
    within(&hive, &main, "hf-session renew").expect_exit(0);
    within(&hive, &main, "hf-require propose More").expect_exit(0);
    asks_to_leave(&hive, &b, "hf-require analyze REQ-0001 x", "project_paused");
    let status = ok(&hive, "hf-status");
    assert_eq!(status.get("SYSTEM_STATE"), "running");
    assert_eq!(
        status.all("PROJECT"),
        ["main Active sessions=1 running=1 open=1", "b Paused sessions=1 running=1 open=1"]
    );
    // Only the session of the project that is paused was cut.
    hive.at(&moment(301).to_string());
    within(&hive, &main, "hf-task heartbeat T-0002").expect_exit(0);
    asks_to_leave(&hive, &b, "hf-checkpoint x", "session_void");
    ok(&hive, "hf-pause look");
    assert_eq!(ok(&hive, "hf-status").get("SYSTEM_STATE"), "paused");
    ok(&hive, "hf-resume --project b");
    assert_eq!(ok(&hive, "hf-status").get("SYSTEM_STATE"), "running");
    ok(&hive, "hf-pause --archive --project b");
    assert_eq!(ok(&hive, "hf-status").get("SYSTEM_STATE"), "paused", "what is archived does not count");
    keeps_the_rules(&hive);
}

#[test]
fn an_agent_of_another_project_goes_on() {
    let hive = Hive::new();
    for project in ["main", "b"] {
        ok(&hive, &format!("hf-task propose Form --project {project}"));
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
fn what_is_under_way_in_a_paused_project_does_not_hold_up_another() {
    let hive = governed("max_concurrent_tasks: 1");
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Theirs --project b");
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
fn an_audit_task_is_no_exception() {
    let hive = Hive::new();
    running(&hive, "agent:auditor");
    ok(&hive, "hf-pause look");
    for line in ["hf-task succeed T-0001", "hf-task heartbeat T-0001", "hf-task propose Audit", "hf-task claim"] {
        asks_to_leave(&hive, &[("HF_AGENT", "auditor")], line, "project_paused");
    }
    ok(&hive, "hf-task propose Audit");
    assert_eq!(sh(&hive, "hf-session login --agent auditor").expect_exit(3).get("REASON"), "project_paused");
    keeps_the_rules(&hive);
}

// --- Who may do what ----------------------------------------------------------------------------

/// What an agent may not do while its project is paused.
const WORK: &[&str] = &[
    "hf-task claim",
    "hf-task claim T-0002",
    "hf-task start T-0003",
    "hf-task start T-0001",
    "hf-task claim T-0003",
    "hf-task heartbeat T-0001",
    "hf-task heartbeat T-0003",
    "hf-task succeed T-0001",
    "hf-task fail T-0001 --class transient --reason x",
    "hf-task fail T-0001 --class permanent --reason x",
    "hf-task abort T-0001",
    "hf-task propose Fourth",
    "hf-task propose Fourth --requirement REQ-0001",
    "hf-task assign T-0002 a",
    "hf-require propose Second",
    "hf-require analyze REQ-0001 x",
    "hf-decide request --kind requirement_approval --target REQ-0001 --summary x",
    "hf-constraint apply x",
    "hf-deepwork start --flexible x",
    "hf-deepwork start --strict 5 x",
    "hf-artifact validate ART-0001",
    "hf-artifact invalidate ART-0001 --reason x",
    "hf-job fire -- true",
    "hf-job fire --task T-0002 -- true",
    "hf-job cancel T-0004",
    "hf-task abort T-0004",
    "hf-task succeed T-0004",
    "hf-append RunFinished --subject RUN-0002 --payload {\"success\":true}",
    "hf-state start Login",
    "hf-ref add x --kind design",
    "hf-append RunFinished --subject RUN-0001 --payload {\"success\":true}",
    "hf-append RunCrashed --subject RUN-0001",
    "hf-append TaskSucceeded --subject T-0001",
    "hf-append RequirementProposed --payload {\"title\":\"x\"}",
    "hf-append RunStarted --payload {\"task_id\":\"T-0003\"} --dry-run",
];

/// What it may: tidy up, show that it is there, look around.
const TIDYING: &[&str] = &[
    "hf-checkpoint tidying",
    "hf-activity --kind thinking",
    "hf-artifact put x --for T-0001",
    "hf-append EscalationRequired --subject T-0001 --payload {\"reason\":\"x\"}",
    "hf-task list",
    "hf-task show T-0001",
    "hf-task explain T-0001",
    "hf-require list",
    "hf-decide list",
    "hf-status",
    "hf-log",
    "hf-lineage T-0001",
    "hf-artifact list",
    "hf-job list",
    "hf-job check T-0004",
    "hf-session list",
    "hf-session next",
    "hf-verify",
    "hf-project tasks",
    "hf-deepwork status",
];

#[test]
fn an_agent_of_a_paused_project_can_tidy_up_and_look_and_nothing_else() {
    let story = Story::new("");
    let gate = story.gate("go");
    std::fs::write(story.dir().join("x"), "x").unwrap();
    let session = logged_in(&story, "a", "main");
    let seated = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    running(&story, "agent:a");
    ok(&story, "hf-task propose Ready");
    ok(&story, "hf-task propose Held");
    ok(&story, "hf-task claim T-0003 --actor agent:a");
    within(&story, &seated, "hf-job fire -- cat go").expect_exit(0);
    ok(&story, "hf-require propose Login");
    ok(&story, "hf-artifact put x --for T-0001 --actor agent:a");
    ok(&story, "hf-pause look");
    let mut wrong = Vec::new();
    for shell in [&seated[..1], &seated[1..], &seated[..]] {
        for line in WORK {
            let before = story.events().len();
            let reply = within(&story, shell, line);
            let told = ["STATUS", "REASON", "NEXT"].map(|key| reply.all(key).join(","));
            let expected = ["EXIT_REQUESTED", "project_paused", "ACTION hf-session logout"];
            if reply.code != Some(3) || told != expected || story.events().len() != before {
                wrong.push((*line, shell, reply));
            }
        }
        for line in TIDYING {
            let reply = within(&story, shell, line);
            if reply.code != Some(0) {
                wrong.push((*line, shell, reply));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for line in ["hf-session task", "hf-session report", "hf-session renew"] {
        asks_to_leave(&story, &seated, line, "project_paused");
    }
    // Fire is not forbidden to anybody.
    within(&story, &seated, "hf-session logout").expect_exit(0);
    assert_eq!(state(&story, "T-0004"), "Running");
    ok(&story, "hf-job cancel T-0004");
    // Without its gate the job would end by itself.
    drop(gate);
    keeps_the_rules(&story);
    within(&story, &seated[..1], "hf-stop fire").expect_exit(0);
    story.over();
}

#[test]
fn an_operator_adds_edits_and_assigns_and_begins_nothing() {
    let hive = Hive::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    ok(&hive, "hf-decide approve DEC-0001");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    let assigned = ok(&hive, "hf-task assign T-0002 b");
    assert_eq!(assigned.get("NEXT"), "ASK operator", "nothing begins before the resume");
    ok(&hive, "hf-task propose Bad");
    ok(&hive, "hf-task abort T-0003");
    ok(&hive, "hf-constraint apply Carefully");
    let mine = ok(&hive, "hf-task propose Mine");
    assert_eq!(mine.get("NEXT"), "ASK operator");
    ok(&hive, "hf-task claim T-0004");
    for line in ["hf-task start T-0004", "hf-append RunStarted --payload {\"task_id\":\"T-0004\"}"] {
        let words: Vec<&str> = line.strip_prefix("hf-").unwrap().split(' ').collect();
        let payload = json!({"task_id": id(&hive, "task", "T-0004")}).to_string();
        let words: Vec<&str> = words.into_iter().map(|w| if w.starts_with('{') { &payload[..] } else { w }).collect();
        let reply = hive.refuses(words[0], &words[1..], 3);
        assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("project_paused", "ASK operator"), "{line}");
    }
    ok(&hive, "hf-resume");
    ok(&hive, "hf-task start T-0004");
    keeps_the_rules(&hive);
}

#[test]
fn an_archived_project_can_only_be_read() {
    let hive = Hive::new();
    ok(&hive, "hf-require propose Login --project b");
    ok(&hive, "hf-task propose Form --project b");
    ok(&hive, "hf-task propose Held --project b");
    ok(&hive, "hf-task claim T-0002 --actor agent:a");
    let session = logged_in(&hive, "a", "b");
    ok(&hive, "hf-pause --archive --project b");
    assert_eq!((count(&hive, "SessionEnded"), count(&hive, "PauseDrained")), (1, 0));
    for line in [
        "hf-task propose More --project b",
        "hf-task claim T-0001",
        "hf-task abort T-0001",
        "hf-task assign T-0001 a",
        "hf-require analyze REQ-0001 x",
        "hf-require propose More --project b",
        "hf-job fire --project b -- true",
        "hf-pause x --project b",
        "hf-resume --project b",
    ] {
        let before = hive.contents();
        assert_eq!(sh(&hive, line).expect_exit(3).get("STATUS"), "REFUSED", "{line}");
        assert!(hive.contents() == before, "{line}");
    }
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    asks_to_leave(&hive, &shell, "hf-checkpoint x", "session_void");
    assert_eq!(sh(&hive, "hf-session login --agent a --project b").expect_exit(3).get("REASON"), "project_archived");
    ok(&hive, "hf-task show T-0001");
    assert_eq!(
        ok(&hive, "hf-task explain T-0001").all("BECAUSE")[0],
        "project b is archived since 2026-01-31T12:00:00Z"
    );
    // Whoever held something there is free for other work, and its signs of life count.
    ok(&hive, "hf-checkpoint --agent a x");
    assert_eq!(state(&hive, "T-0002"), "Aborted");
    keeps_the_rules(&hive);
}

// --- Sessions and time --------------------------------------------------------------------------

#[test]
fn a_pause_cuts_a_session_short_and_never_makes_it_longer() {
    let mut hive = Hive::new();
    let long = logged_in(&hive, "a", "main");
    let short = ok(&hive, "hf-session login --agent b --ttl 60s").get("SESSION_ID").to_owned();
    at(&mut hive, 10, "hf-pause look").expect_exit(0);
    let until = |session: &str| {
        let map: Value = serde_json::from_str(&sh(&hive, "hf-project sessions --map").stdout).unwrap();
        map[session]["expires_at"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!([until(&long), until(&short)], [moment(310).to_string(), moment(60).to_string()]);
    assert_eq!(count(&hive, "SessionCut"), 1);
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", long.as_str())];
    hive.at(&moment(310).to_string());
    within(&hive, &shell, "hf-checkpoint tidying").expect_exit(0);
    hive.at(&moment(311).to_string());
    asks_to_leave(&hive, &shell, "hf-checkpoint tidying", "session_void");
    keeps_the_rules(&hive);
}

#[test]
fn a_session_that_is_still_there_after_a_short_pause_goes_on() {
    let mut hive = Hive::new();
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    ok(&hive, "hf-pause look");
    at(&mut hive, 100, "hf-resume").expect_exit(0);
    assert_eq!(within(&hive, &shell, "hf-session renew").expect_exit(0).get("EXPIRES_AT"), moment(3700).to_string());
    assert_eq!(count(&hive, "PauseDrained"), 0, "it never came to rest");
    keeps_the_rules(&hive);
}

#[test]
fn a_session_that_never_logs_out_is_void_after_the_grace_and_the_pause_drains() {
    let mut hive = configured("pause:\n  grace_seconds: 60\n");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    assert_eq!(tick(&mut hive, 60), [""; 0]);
    let before = kinds(&hive).len();
    let reply = at(&mut hive, 61, "hf-watchdog").expect_exit(1);
    assert_eq!(
        told(&hive, &reply),
        "EXIT:1\nSTATUS:ANOMALY\nNEXT:ACTION hf-status\nSUM:1 findings, 2 things done\nHEARTBEAT_ID:20260131120101\n\
         ANOMALY:SESSION_EXPIRED session:<ulid> error 1\nADVICE:an agent did not log out in time; its session is void\n\
         DID:SessionExpired session:<ulid>\nDID:PauseDrained project:main\nTICK_MS:<n>\n"
    );
    assert_eq!(kinds_since(&hive, before), ["SessionExpired", "PauseDrained"]);
    let reply = at(&mut hive, 62, "hf-watchdog").expect_exit(0);
    assert_eq!(
        told(&hive, &reply),
        "EXIT:0\nSTATUS:PAUSED\nNEXT:NONE\nSUM:nothing is wrong\nHEARTBEAT_ID:20260131120102\nTICK_MS:<n>\n"
    );
    all_is_well(&hive);
}

#[test]
fn a_clock_that_is_set_back_during_the_grace_makes_no_void_session_good_again() {
    let mut hive = configured("");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    ok(&hive, "hf-pause look");
    // Something is recorded after the grace, and then the clock goes back to before it.
    at(&mut hive, 301, "hf-task propose Form").expect_exit(0);
    hive.at(&moment(-3600).to_string());
    asks_to_leave(&hive, &shell, "hf-checkpoint x", "session_void");
    asks_to_leave(&hive, &shell, "hf-session renew", "session_void");
    let next = within(&hive, &shell, "hf-session next").expect_exit(0);
    assert_eq!((next.get("ACTION"), next.get("REASON")), ("exit", "session_void"));
    // What nobody can use any more is over for whoever waits, too, and recorded as over.
    let reply = ok(&hive, "hf-pause --wait --max 1s");
    assert_eq!(reply.get("DRAINED"), "yes");
    assert_eq!((count(&hive, "SessionExpired"), count(&hive, "PauseDrained")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn the_watchdog_ends_what_is_void_although_the_clock_was_set_back() {
    let mut hive = configured("");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    at(&mut hive, 301, "hf-task propose Form").expect_exit(0);
    let codes: Vec<String> =
        tick(&mut hive, -10).iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(codes, ["CLOCK_SKEW", "SESSION_EXPIRED"]);
    assert_eq!((count(&hive, "SessionExpired"), count(&hive, "PauseDrained")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn a_clock_that_was_set_back_before_the_pause_leaves_the_grace_as_it_is() {
    let mut hive = configured("");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    at(&mut hive, -3600, "hf-pause look").expect_exit(0);
    within(&hive, &shell, "hf-checkpoint tidying").expect_exit(0);
    assert_eq!(tick(&mut hive, -3590), ["CLOCK_SKEW system error 3590"], "the log is ahead of the clock, and no more");
    keeps_the_rules(&hive);
}

#[test]
fn the_rules_of_time_stand_still_in_a_paused_project_and_count_again_from_the_resume() {
    let mut hive = configured("");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    ok(&hive, "hf-task propose Form");
    within(&hive, &shell, "hf-task claim T-0001").expect_exit(0);
    within(&hive, &shell, "hf-task start T-0001 --timeout 600s").expect_exit(0);
    within(&hive, &shell, "hf-activity --kind thinking").expect_exit(0);
    at(&mut hive, 500, "hf-pause look").expect_exit(0);
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    for seconds in [601, 901, 2000, 100_000] {
        let reply = at(&mut hive, seconds, "hf-watchdog").expect_exit(0);
        assert_eq!((reply.get("STATUS"), reply.all("ANOMALY").len()), ("PAUSED", 0), "{reply:#?}");
        assert_eq!(ok(&hive, "hf-status").all("PROBLEM"), [""; 0]);
    }
    let back = 200_000;
    at(&mut hive, back, "hf-resume").expect_exit(0);
    assert_eq!(tick(&mut hive, back + 300), [""; 0]);
    assert_eq!(tick(&mut hive, back + 600), ["INACTIVE agent:a warn 600"]);
    let found = tick(&mut hive, back + 601);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found[0], "INACTIVE agent:a error 601");
    assert!(found[1].starts_with("RUN_OVERTIME run:") && found[1].ends_with(" error 601"), "{found:#?}");
    all_is_well(&hive);
}

#[test]
fn an_agent_that_left_a_paused_project_as_it_was_asked_to_is_not_missed() {
    let mut hive = configured("");
    let session = logged_in(&hive, "a", "b");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    within(&hive, &shell, "hf-checkpoint working").expect_exit(0);
    ok(&hive, "hf-pause look --project b");
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    assert_eq!(tick(&mut hive, 10_000), [""; 0]);
    at(&mut hive, 20_000, "hf-resume --project b").expect_exit(0);
    assert_eq!(tick(&mut hive, 20_300), [""; 0]);
    assert_eq!(tick(&mut hive, 20_601), ["INACTIVE agent:a error 601"]);
    all_is_well(&hive);
}

#[test]
fn an_agent_that_is_also_at_work_elsewhere_is_looked_after() {
    let mut hive = configured("");
    let [one, _] = ["main", "b"].map(|project| logged_in(&hive, "a", project));
    within(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", &one)], "hf-checkpoint working").expect_exit(0);
    ok(&hive, "hf-pause look --project b");
    assert_eq!(tick(&mut hive, 301)[1..], ["INACTIVE agent:a warn 301"]);
}

#[test]
fn a_task_in_a_paused_project_explains_itself() {
    let mut hive = configured("");
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-task propose Held");
    ok(&hive, "hf-task claim T-0003 --actor agent:a");
    at(&mut hive, 100, "hf-pause look").expect_exit(0);
    hive.at(&moment(5000).to_string());
    let because = |hive: &Hive, task: &str| {
        let reply = ok(hive, &format!("hf-task explain {task}"));
        reply.all("BECAUSE").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let paused = "project main is paused since 2026-01-31T12:01:40Z by user:jo: look";
    assert_eq!(
        because(&hive, "T-0001"),
        [
            paused,
            "T-0001 is held by agent:a until a lease after the resume",
            "RUN-0001 runs since 2026-01-31T12:00:00Z, last heartbeat 2026-01-31T12:00:00Z"
        ]
    );
    assert_eq!(
        because(&hive, "T-0002"),
        [paused, "T-0002 is Ready since 2026-01-31T12:00:00Z", "nobody has claimed T-0002"]
    );
    assert_eq!(
        because(&hive, "T-0003"),
        [paused, "T-0003 is held by agent:a until a lease after the resume, not started"]
    );
    ok(&hive, "hf-resume");
    let until = moment(5900);
    assert_eq!(because(&hive, "T-0003"), [format!("T-0003 is held by agent:a until {until}, not started")]);
}

#[test]
fn everything_that_is_ready_is_given_out_after_the_resume() {
    let hive = governed("auto_assign: true");
    ok(&hive, "hf-pause look");
    for title in ["One", "Two", "Three"] {
        ok(&hive, &format!("hf-task propose {title}"));
    }
    assert_eq!(count(&hive, "TaskAssigned"), 0);
    ok(&hive, "hf-resume");
    assert_eq!(["T-0001", "T-0002", "T-0003"].map(|t| state(&hive, t)), ["Assigned"; 3]);
    keeps_the_rules(&hive);
}

// --- Stops --------------------------------------------------------------------------------------

#[test]
fn a_stop_during_a_pause_is_lifted_first() {
    let hive = Hive::new();
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
    assert_eq!(ok(&hive, "hf-status").get("SYSTEM_STATE"), "stopped");
    assert_eq!(ok(&hive, "hf-watchdog").get("STATUS"), "STOPPED");
    ok(&hive, "hf-resume --system");
    // The stop is lifted, the pause is not.
    assert_eq!(ok(&hive, "hf-status").get("SYSTEM_STATE"), "paused");
    asks_to_leave(&hive, &[("HF_AGENT", "a")], "hf-task claim", "project_paused");
    ok(&hive, "hf-resume");
    keeps_the_rules(&hive);
}

#[test]
fn a_pause_during_a_stop_stays_after_the_stop() {
    let hive = Hive::new();
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
    assert_eq!(ok(&hive, "hf-status").get("SYSTEM_STATE"), "stopped");
    keeps_the_rules(&hive);
}

// --- Jobs ---------------------------------------------------------------------------------------

#[test]
fn a_running_job_ends_by_itself_and_none_begins() {
    let story = Story::new("");
    let mut go = story.gate("go");
    story.fire("read x <go; echo one");
    let paused = ok(&story, "hf-pause look");
    assert_eq!((paused.get("DRAINED"), paused.get("LEFT")), ("no", "T-0001"));
    story.fire("echo two");
    story.fire_with(&["--after", "T-0001"], "echo three");
    assert_eq!(story.fires(&["--project", "b"], "echo four").get("STATUS"), "FIRED");
    assert_eq!(story.poll("T-0004").get("STATUS"), "DONE");
    go.open();
    assert_eq!(story.poll("T-0001").get("SUM"), "one");
    let waited = ok(&story, "hf-pause --wait");
    assert_eq!((waited.get("DRAINED"), count(&story, "PauseDrained")), ("yes", 1));
    assert_eq!(["T-0002", "T-0003"].map(|t| state(&story, t)), ["Ready", "Ready"]);
    assert_eq!(count(&story, "RunStarted"), 2);
    ok(&story, "hf-resume");
    assert_eq!(["T-0002", "T-0003"].map(|t| story.poll(t).get("SUM").to_owned()), ["two", "three"]);
    story.over();
}

#[test]
fn a_wait_for_rest_ends_with_the_job() {
    let story = Story::new("");
    let mut go = story.gate("go");
    story.fire("read x <go");
    let waiter = crate::support::job_fixture::waiting(&story, "pause", &["look", "--wait", "--max", "60s"]);
    until_recorded(&story, "ProjectPaused");
    go.open();
    let reply = Reply::of(waiter.wait_with_output().unwrap()).expect_exit(0);
    assert_eq!(["STATUS", "DRAINED"].map(|key| reply.get(key)), ["PAUSED", "yes"]);
    assert_eq!(reply.all("LEFT"), [""; 0]);
    assert_eq!(count(&story, "PauseDrained"), 1);
    story.over();
}

#[test]
fn a_wait_for_rest_makes_up_for_a_job_that_died_with_its_supervisor() {
    let story = Story::new("");
    let mut at_work = story.gate("at");
    story.fire("echo x >at; exec sleep 600");
    at_work.line();
    ok(&story, "hf-pause look");
    let [supervisor, main] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    // It goes with its supervisor; if it has not yet, it is helped.
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(main).unwrap(), Signal::KILL);
    story.gone();
    let reply = ok(&story, "hf-pause --wait --max 20s");
    assert_eq!(reply.get("DRAINED"), "yes");
    assert_eq!((state(&story, "T-0001").as_str(), count(&story, "PauseDrained")), ("Aborted", 1));
    story.over();
}

#[test]
fn a_wait_for_rest_ends_what_is_over_by_its_time() {
    let mut hive = Hive::new();
    logged_in(&hive, "a", "main");
    logged_in(&hive, "b", "other");
    ok(&hive, "hf-pause look");
    let reply = at(&mut hive, 301, "hf-pause --wait").expect_exit(0);
    assert_eq!(reply.get("DRAINED"), "yes");
    assert_eq!((count(&hive, "SessionExpired"), count(&hive, "PauseDrained")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn a_job_that_fails_in_a_pause_is_tried_again_after_it() {
    let story = Story::new("jobs:\n  transient_exit_codes: [75]\n");
    let (mut at_work, mut go) = (story.gate("at"), story.gate("go"));
    story.fire_with(&["--retries", "2"], "echo x >at; read x <go; test -e second && exit 0; touch second; exit 75");
    at_work.line();
    ok(&story, "hf-pause look");
    go.open();
    // The first try is over, and with it everything is at rest.
    let reply = ok(&story, "hf-pause --wait --max 30s");
    assert_eq!((reply.get("DRAINED"), state(&story, "T-0001").as_str()), ("yes", "Assigned"));
    assert_eq!((count(&story, "RunStarted"), count(&story, "TaskRetrying")), (1, 1));
    keeps_the_rules(&story);
    // What waits for the resume holds nobody up, and stays if a watchdog looks.
    ok(&story, "hf-watchdog");
    assert_eq!(state(&story, "T-0001"), "Assigned");
    ok(&story, "hf-resume");
    at_work.line();
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(count(&story, "RunStarted"), 2);
    story.over();
}

#[test]
fn a_job_that_waited_before_the_pause_waits_on() {
    let story = Story::new("jobs:\n  max_parallel: 1\n");
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire("echo two");
    ok(&story, "hf-pause look");
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(ok(&story, "hf-pause --wait --max 30s").get("DRAINED"), "yes");
    assert_eq!(state(&story, "T-0002"), "Ready");
    // A job of another project is not held up behind it.
    story.fire_with(&["--project", "b"], "echo three");
    assert_eq!(story.poll("T-0003").get("SUM"), "three");
    ok(&story, "hf-resume");
    assert_eq!(story.poll("T-0002").get("SUM"), "two");
    story.over();
}

#[test]
fn a_destructive_job_that_is_approved_in_a_pause_waits_for_the_resume() {
    let story = Story::new("");
    assert_eq!(story.fires(&["--destructive"], "echo gone").expect_exit(3).get("STATUS"), "APPROVAL_REQUIRED");
    ok(&story, "hf-pause look");
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!((state(&story, "T-0001").as_str(), count(&story, "RunStarted")), ("Ready", 0));
    ok(&story, "hf-resume");
    assert_eq!(story.poll("T-0001").get("SUM"), "gone");
    story.over();
}

#[test]
fn a_job_waiting_in_a_paused_project_can_be_cancelled_by_a_person() {
    let story = Story::new("");
    ok(&story, "hf-pause look");
    story.fire("touch ran");
    ok(&story, "hf-job cancel T-0001");
    assert_eq!(state(&story, "T-0001"), "Aborted");
    ok(&story, "hf-resume");
    story.gone();
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn the_end_of_an_agents_job_is_recorded_although_its_project_is_paused() {
    let story = Story::new("");
    let mut go = story.gate("go");
    let session = logged_in(&story, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    let mut fire = story.command("job");
    fire.envs(shell).args(["fire", "--", "sh", "-c", "read x <go; echo done"]);
    Reply::of(fire.output().unwrap()).expect_exit(0);
    ok(&story, "hf-pause look");
    within(&story, &shell, "hf-session logout").expect_exit(0);
    assert_eq!(count(&story, "PauseDrained"), 0, "its job runs");
    go.open();
    assert_eq!(within(&story, &shell[..1], "hf-poll T-0001").get("SUM"), "done");
    assert_eq!((state(&story, "T-0001").as_str(), count(&story, "PauseDrained")), ("Succeeded", 1));
    story.over();
}

#[test]
fn an_archived_projects_job_ends_by_itself_and_what_waits_behind_it_is_over() {
    let story = Story::new("jobs:\n  transient_exit_codes: [75]\n");
    let mut go = story.gate("go");
    logged_in(&story, "a", "main");
    story.approved("requirement:r", "Login");
    story.fire_with(&["--retries", "3"], "read x <go; exit 75");
    story.fire_with(&["--requirement", "requirement:r"], "read x <go; echo built");
    story.fire_with(&["--after", "T-0001"], "touch ran");
    story.fire_with(&["--after", "T-0002"], "touch ran");
    ok(&story, "hf-task propose Held");
    ok(&story, "hf-task claim T-0005 --actor agent:a");
    let archived = ok(&story, "hf-pause --archive");
    assert_eq!(archived.all("LEFT"), ["T-0001", "T-0002"]);
    go.open();
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    // Nobody waits for what will never be.
    assert_eq!(["T-0003", "T-0004"].map(|t| story.poll(t).get("STATUS").to_owned()), ["FAIL", "FAIL"]);
    story.gone();
    assert!(!story.dir().join("ran").exists());
    assert_eq!((count(&story, "SessionEnded"), count(&story, "TaskRetrying")), (1, 0));
    assert_eq!(state(&story, "T-0005"), "Aborted");
    story.over();
}

#[test]
fn a_job_that_is_tried_again_after_the_resume_waits_for_room() {
    let story = Story::new("jobs:\n  max_parallel: 1\n  transient_exit_codes: [75]\n");
    let (mut at_work, mut go, mut other) = (story.gate("at"), story.gate("go"), story.gate("other"));
    story.fire_with(&["--retries", "1"], "echo x >at; read x <go; test -e second && exit 0; touch second; exit 75");
    at_work.line();
    ok(&story, "hf-pause look");
    go.open();
    ok(&story, "hf-pause --wait --max 30s");
    story.fire_with(&["--project", "b"], "echo y >at; read x <other; touch over");
    assert_eq!(at_work.line(), "y", "what waits in a paused project keeps nobody waiting");
    ok(&story, "hf-resume");
    story.fire_with(&["--project", "b"], "true");
    assert_eq!((state(&story, "T-0001").as_str(), state(&story, "T-0003").as_str()), ("Assigned", "Ready"));
    other.open();
    at_work.line();
    assert!(story.dir().join("over").exists(), "never more than one at once");
    go.open();
    ok(&story, "hf-job wait T-0001 T-0002 T-0003");
    story.over();
}

#[test]
fn a_stop_ends_the_job_that_a_pause_waits_for() {
    let story = Story::new("");
    let (mut at_work, _go) = (story.gate("at"), story.gate("go"));
    for _ in 0..2 {
        story.fire("echo x >at; read x <go");
        at_work.line();
    }
    ok(&story, "hf-pause look");
    assert_eq!(ok(&story, "hf-stop fire").get("DRAINED"), "yes");
    assert_eq!(count(&story, "PauseDrained"), 1);
    ok(&story, "hf-resume --system");
    ok(&story, "hf-resume");
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&story, t)), ["Aborted", "Aborted"]);
    story.over();
}

#[test]
fn what_waits_for_the_resume_of_a_project_is_over_if_it_is_archived_instead() {
    let story = Story::new("jobs:\n  transient_exit_codes: [75]\n");
    let (mut at_work, mut go) = (story.gate("at"), story.gate("go"));
    story.fire_with(&["--retries", "1"], "echo x >at; read x <go; exit 75");
    at_work.line();
    ok(&story, "hf-pause look");
    story.fire("touch ran");
    go.open();
    ok(&story, "hf-pause --wait --max 30s");
    ok(&story, "hf-pause --archive");
    story.gone();
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&story, t)), ["Aborted", "Aborted"]);
    assert!(!story.dir().join("ran").exists());
    story.over();
}

// --- Races --------------------------------------------------------------------------------------

#[test]
fn sixteen_agents_that_leave_at_once_drain_a_pause_once() {
    let hive = Hive::new();
    let sessions: Vec<String> = (0..16).map(|n| logged_in(&hive, &format!("a{n}"), "main")).collect();
    for round in 1..=2 {
        ok(&hive, "hf-pause look");
        thread::scope(|scope| {
            for session in &sessions {
                let hive = &hive;
                scope.spawn(move || {
                    let args = ["logout", "--session", session, "--lock-timeout", "60"];
                    hive.run("session", &args).expect_exit(0)
                });
            }
        });
        assert_eq!(count(&hive, "PauseDrained"), round);
        let status = ok(&hive, "hf-pause --wait");
        assert_eq!(status.get("DRAINED"), "yes");
        ok(&hive, "hf-resume");
    }
    keeps_the_rules(&hive);
}

#[test]
fn a_pause_in_the_middle_of_a_race_for_tasks_lets_nobody_claim_after_it() {
    let hive = governed("max_concurrent_tasks: 200");
    let lines: Vec<_> =
        (0..60).map(|n| json!({"event_type": "TaskProposed", "payload": {"title": n.to_string()}})).collect();
    hive.batch(&lines);
    thread::scope(|scope| {
        for n in 0..6 {
            let hive = &hive;
            scope.spawn(move || {
                let actor = format!("agent:a{n}");
                loop {
                    let reply = hive.run("task", &["claim", "--actor", &actor, "--lock-timeout", "60"]);
                    match reply.get("STATUS") {
                        "CLAIMED" => {
                            let task = reply.get("SUBJECT");
                            let begun = hive.run("task", &["start", task, "--actor", &actor, "--lock-timeout", "60"]);
                            assert!(["RECORDED", "EXIT_REQUESTED"].contains(&begun.get("STATUS")), "{begun:#?}");
                        }
                        "EXIT_REQUESTED" | "NO_TASK" => return,
                        _ => panic!("{reply:#?}"),
                    }
                }
            });
        }
        hive.run("pause", &["look", "--lock-timeout", "60"]).expect_exit(0);
    });
    let kinds = kinds(&hive);
    let paused = kinds.iter().position(|kind| kind == "ProjectPaused").unwrap();
    assert!(kinds[paused..].iter().all(|kind| !["TaskAssigned", "RunStarted"].contains(&kind.as_str())), "{kinds:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn pauses_and_resumes_at_once_are_one_each() {
    let hive = Hive::new();
    for (name, words, kind) in [
        ("pause", &["look"][..], "ProjectPaused"),
        ("resume", &[], "ProjectResumed"),
        ("pause", &["--archive"], "ProjectArchived"),
    ] {
        thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| hive.run(name, &[words, &["--lock-timeout", "60"]].concat()).expect_exit(0)))
                .collect();
            let first =
                all.into_iter().map(|one| one.join().unwrap()).filter(|r| r.get("STATUS") != "DUPLICATE").count();
            assert_eq!(first, 1, "{kind}");
        });
        assert_eq!(count(&hive, kind), 1);
    }
    assert_eq!(count(&hive, "ProjectOpened"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn a_poll_goes_on_through_a_pause() {
    let story = Story::new("");
    let mut go = story.gate("go");
    story.fire("read x <go; echo done");
    let poll = crate::support::job_fixture::waiting(&story, "poll", &["T-0001", "60", "60"]);
    ok(&story, "hf-pause look");
    go.open();
    let reply = Reply::of(poll.wait_with_output().unwrap());
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "done"));
    story.fire("true");
    assert_eq!(story.run("poll", &["T-0002", "1", "1"]).get("STATUS"), "RUNNING", "it waits");
    ok(&story, "hf-resume");
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    story.over();
}

// --- Around the commands ------------------------------------------------------------------------

#[test]
fn raw_events_that_begin_something_are_refused_while_paused() {
    let hive = Hive::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Ready");
    ok(&hive, "hf-task propose Held");
    ok(&hive, "hf-task claim T-0003");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    let [ready, held] = ["T-0002", "T-0003"].map(|task| id(&hive, "task", task));
    let run = json!({"task_id": held}).to_string();
    let started = json!({"agent_id": "a", "ttl_seconds": 9}).to_string();
    let renewed = json!({"ttl_seconds": 9}).to_string();
    let taken = json!({"holder": "user:jo", "job": true}).to_string();
    let ready = format!("task:{ready}");
    for (kind, subject, payload) in [
        ("RunStarted", "run:r", &run),
        ("SessionStarted", "session:s", &started),
        ("SessionRenewed", "S-0001", &renewed),
        ("TaskAssigned", &ready, &taken),
        ("PauseDrained", "project:main", &"{}".to_owned()),
    ] {
        for actor in ["user:jo", "core:reactor", "external:ci"] {
            let reply = hive.run("append", &[kind, "--subject", subject, "--payload", payload, "--actor", actor]);
            assert_eq!(reply.code, Some(3), "{kind} by {actor}: {reply:#?}");
        }
    }
    assert_eq!(count(&hive, "PauseDrained"), 0);
    ok(&hive, "hf-session logout --agent a");
    // Once per pause.
    hive.refuses("append", &["PauseDrained", "--subject", "project:main"], 3);
    ok(&hive, "hf-resume");
    hive.refuses("append", &["PauseDrained", "--subject", "project:main"], 3);
    keeps_the_rules(&hive);
}

#[test]
fn what_was_begun_in_a_pause_is_found_in_a_forged_log() {
    let hive = Hive::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Ready");
    ok(&hive, "hf-task propose Held");
    ok(&hive, "hf-task claim T-0003");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    let [ready, held] = ["T-0002", "T-0003"].map(|task| id(&hive, "task", task));
    let (ready, run) = (format!("task:{ready}"), json!({"task_id": held}));
    let paused = "project main is paused since 2026-01-31T12:00:00Z: look";
    let leave = format!("{paused}; tidy up what is half done, and leave");
    let check = |forged: (&str, Kind, &str, Value), finding: &str| {
        let copy = hive.copy();
        let kind = forged.1;
        let found = found_behind(&copy, vec![forged]);
        assert!(found.contains(&finding.to_owned()), "{kind}: {found:#?}");
    };
    check(("user:jo", Kind::RunStarted, "run:r", run), paused);
    check(("core:reactor", Kind::TaskAssigned, &ready, json!({})), paused);
    check(("agent:a", Kind::TaskAssigned, &ready, json!({"holder": "agent:a", "lease_seconds": 9})), &leave);
    check(("agent:a", Kind::SessionStarted, "session:s", json!({"agent_id": "a", "ttl_seconds": 9})), &leave);
    check(("core:x", Kind::SessionStarted, "session:s", json!({"agent_id": "a", "ttl_seconds": 9})), paused);
    check(
        ("agent:a", Kind::ProjectResumed, "project:main", json!({})),
        "ProjectResumed is for an operator, not for agent:a",
    );
    check(
        ("core:reactor", Kind::PauseDrained, "project:main", json!({})),
        "project main has not come to rest: S-0001 is still there",
    );
    // A pause that cut nobody short, and one that never said that it had come to rest.
    let hive = Hive::new();
    let session = format!("session:{}", logged_in(&hive, "a", "main"));
    let pause = || ("user:jo", Kind::ProjectPaused, "project:main", json!({"reason": "x", "grace_seconds": 9}));
    let opened = || ("user:jo", Kind::ProjectOpened, "project:main", json!({}));
    let found = found_behind(&hive.copy(), vec![opened(), pause()]);
    assert_eq!(found, [format!("SessionCut of {session} should follow")]);
    let found = found_behind(&Hive::new(), vec![opened(), pause()]);
    assert_eq!(found, ["PauseDrained of project:main should follow"]);
    // A resume while everything is stopped.
    let hive = Hive::new();
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-stop fire");
    let found = found_behind(&hive, vec![("user:jo", Kind::ProjectResumed, "project:main", json!({}))]);
    assert_eq!(found, ["everything is stopped: fire"]);
}

#[test]
fn what_changed_an_archived_project_is_found_in_a_forged_log() {
    let hive = Hive::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-pause --archive");
    let task = format!("task:{}", id(&hive, "task", "T-0001"));
    let archived = "project main is archived: it can only be read";
    for (actor, kind, subject, payload) in [
        ("user:jo", Kind::TaskAborted, task.as_str(), json!({})),
        ("user:jo", Kind::TaskAssigned, &task, json!({"holder": "user:jo"})),
        ("core:reactor", Kind::TaskAssigned, &task, json!({})),
        ("core:x", Kind::SessionStarted, "session:s", json!({"agent_id": "a", "ttl_seconds": 9})),
    ] {
        let found = found_behind(&hive.copy(), vec![(actor, kind, subject, payload)]);
        assert!(found.contains(&archived.to_owned()), "{kind}: {found:#?}");
    }
}

// --- Random sequences against a model -----------------------------------------------------------

/// What a task is thought to be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Ready,
    Assigned(usize),
    Running(usize),
    Over,
}

/// Two projects, two agents, told of in the plainest way.
struct Model {
    now: i64,
    paused: [bool; 2],
    drained: [usize; 2],
    waits: [bool; 2],
    /// Of each agent in each project: until when its session holds.
    until: [[Option<i64>; 2]; 2],
    /// Project, and state.
    tasks: Vec<(usize, Is)>,
}

impl Model {
    /// Whether a paused project has come to rest with this.
    fn settle(&mut self, project: usize) {
        if self.paused[project] && self.waits[project] && (0..2).all(|agent| self.until[agent][project].is_none()) {
            self.waits[project] = false;
            self.drained[project] += 1;
        }
    }
}

const PROJECTS: [&str; 2] = ["main", "b"];
const AGENTS: [&str; 2] = ["x", "y"];

/// One random step of hive and model; gives what was done and what became of it, as expected and as it was.
fn step(hive: &mut Hive, model: &mut Model, random: &mut Random) -> (String, String, String) {
    let (p, a) = (random.below(2) as usize, random.below(2) as usize);
    let (project, agent) = (PROJECTS[p], AGENTS[a]);
    let t = random.below(model.tasks.len() as u64) as usize;
    let (tp, is) = model.tasks[t];
    let task = format!("T-{:04}", t + 1);
    let leave = "EXIT_REQUESTED";
    // An agent without a session is judged by the project of what it is at.
    let of_task = |model: &Model, then: &str| if model.paused[tp] { leave } else { then }.to_owned();
    match random.below(9) {
        0 => {
            model.now += random.below(200) as i64;
            hive.at(&moment(model.now).to_string());
            (format!("+{}", model.now), String::new(), String::new())
        }
        1 => {
            let line = format!("hf-pause look --project {project}");
            let expected = if model.paused[p] { "DUPLICATE" } else { "PAUSED" };
            if !model.paused[p] {
                model.paused[p] = true;
                model.waits[p] = true;
                for agent in 0..2 {
                    model.until[agent][p] = model.until[agent][p].map(|until| until.min(model.now + 300));
                }
                model.settle(p);
            }
            (line.clone(), expected.to_owned(), sh(hive, &line).get("STATUS").to_owned())
        }
        2 | 3 => {
            let line = format!("hf-resume --project {project}");
            let expected = if model.paused[p] { "RESUMED" } else { "DUPLICATE" };
            model.paused[p] = false;
            model.waits[p] = false;
            (line.clone(), expected.to_owned(), sh(hive, &line).get("STATUS").to_owned())
        }
        4 => {
            let line = format!("hf-session login --agent {agent} --project {project}");
            let expected = if model.paused[p] { leave } else { "RECORDED" };
            if !model.paused[p] {
                model.until[a][p] = Some(model.now + 3600);
            }
            (line.clone(), expected.to_owned(), sh(hive, &line).get("STATUS").to_owned())
        }
        5 => {
            let line = format!("hf-session logout --agent {agent}");
            let any = model.until[a].iter().any(Option::is_some);
            for project in 0..2 {
                if model.until[a][project].take().is_some() {
                    model.settle(project);
                }
            }
            let expected = if any { "RECORDED" } else { "DUPLICATE" };
            (line.clone(), expected.to_owned(), sh(hive, &line).get("STATUS").to_owned())
        }
        6 => {
            let line = format!("hf-task claim {task} --actor agent:{agent}");
            let expected = match is {
                Is::Assigned(holder) if holder == a => of_task(model, "DUPLICATE"),
                Is::Ready => of_task(model, "CLAIMED"),
                _ => of_task(model, "REFUSED"),
            };
            if expected == "CLAIMED" {
                model.tasks[t].1 = Is::Assigned(a);
            }
            (line.clone(), expected, sh(hive, &line).get("STATUS").to_owned())
        }
        7 => {
            let line = format!("hf-task start {task} --actor agent:{agent}");
            let expected = match is {
                Is::Running(holder) if holder == a => of_task(model, "DUPLICATE"),
                Is::Assigned(holder) if holder == a => of_task(model, "RECORDED"),
                _ => of_task(model, "REFUSED"),
            };
            if expected == "RECORDED" {
                model.tasks[t].1 = Is::Running(a);
            }
            (line.clone(), expected, sh(hive, &line).get("STATUS").to_owned())
        }
        _ => {
            let fails = random.below(2) == 0;
            let how = if fails { "fail T --class permanent --reason x" } else { "succeed T" };
            let line = format!("hf-task {} --actor agent:{agent}", how.replace('T', &task));
            let mine = is == Is::Running(a);
            let expected = of_task(model, if mine { "RECORDED" } else { "REFUSED" });
            if expected == "RECORDED" {
                model.tasks[t].1 = Is::Over;
            }
            let is = sh(hive, &line).get("STATUS").to_owned();
            // What is over already may be called a repetition, too; that is not what this is about.
            match model.tasks[t].1 == Is::Over && !mine {
                true => (line, String::new(), String::new()),
                false => (line, expected, is),
            }
        }
    }
}

#[test]
fn random_lives_of_two_projects_go_as_a_plain_model_says() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let mut hive = configured("governance:\n  max_concurrent_tasks: 100\n  lease_seconds: 1000000\n");
        let mut tasks = Vec::new();
        for n in 0..8 {
            let project = n % 2;
            ok(&hive, &format!("hf-task propose t{n} --project {}", PROJECTS[project]));
            tasks.push((project, Is::Ready));
        }
        let mut model =
            Model { now: 0, paused: [false; 2], drained: [0; 2], waits: [false; 2], until: [[None; 2]; 2], tasks };
        let mut history = Vec::new();
        for _ in 0..70 {
            let (line, expected, is) = step(&mut hive, &mut model, &mut random);
            history.push(format!("{line} -> {is}"));
            assert_eq!(is, expected, "seed {seed}: {line}\n{history:#?}");
        }
        let drained = |project: &str| {
            let about = |event: &&Value| {
                event["event_type"] == "PauseDrained" && event["subject"] == format!("project:{project}")
            };
            hive.events().iter().filter(about).count()
        };
        assert_eq!(PROJECTS.map(drained), model.drained, "seed {seed}: {history:#?}");
        for (t, (_, is)) in model.tasks.iter().enumerate() {
            let at = state(&hive, &format!("T-{:04}", t + 1));
            let fits = match is {
                Is::Ready => at == "Ready",
                Is::Assigned(_) => at == "Assigned",
                Is::Running(_) => at == "Running",
                Is::Over => at == "Succeeded" || at == "Aborted",
            };
            assert!(fits, "seed {seed}: task {t} is {at}, thought {is:?}: {history:#?}");
        }
        // What is left of each session is what the model says.
        let open = |agent: usize, project: usize| {
            let next = ok(&hive, &format!("hf-session next --agent {} --project {}", AGENTS[agent], PROJECTS[project]));
            next.all("REASON") == ["already_running"]
        };
        for agent in 0..2 {
            for project in (0..2).filter(|project| !model.paused[*project]) {
                let holds = model.until[agent][project].is_some_and(|until| model.now <= until);
                assert_eq!(open(agent, project), holds, "seed {seed}: {history:#?}");
            }
        }
        all_is_well(&hive);
    }
}

#[test]
fn a_reason_may_be_long_and_strange_and_makes_no_line() {
    let hive = Hive::new();
    let reason = format!("a\nSTATUS:RUNNING\u{202e}{}", "火".repeat(1000));
    let reply = hive.run("pause", &[&reason]).expect_exit(0);
    assert_eq!(reply.all("STATUS"), ["PAUSED"], "{reply:#?}");
    let reply = sh(&hive, "hf-task claim --actor agent:a").expect_exit(3);
    assert_eq!((reply.all("STATUS"), reply.stdout.lines().count()), (vec!["EXIT_REQUESTED"], 5), "{reply:#?}");
    write_private(&hive.dir().join("note"), b"");
    ok(&hive, "hf-resume");
    keeps_the_rules(&hive);
}

#[test]
fn what_is_for_a_requirement_belongs_to_its_project() {
    let hive = Hive::new();
    ok(&hive, "hf-require propose Logo --project brand");
    ok(&hive, "hf-require propose Login");
    let line = "hf-task propose Draw --requirement REQ-0001 --project web";
    refuses(&hive, line, 2, "REQ-0001 belongs to project brand, not to web");
    let line = "hf-job fire --requirement REQ-0002 --project brand -- true";
    refuses(&hive, line, 2, "REQ-0002 belongs to project main, not to brand");
    ok(&hive, "hf-task propose Draw --requirement REQ-0001 --project brand");
    ok(&hive, "hf-task propose Paint --requirement REQ-0001");
    ok(&hive, "hf-pause Wait --project brand");
    assert_eq!(count(&hive, "TaskProposed"), 2);
}
