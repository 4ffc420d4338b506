//! What may still be done in a paused project, and in an archived one.

use serde_json::json;

use crate::support::job_fixture::TestJobVault;
use crate::support::session_fixture::{asks_to_leave, logged_in, within};
use crate::support::steps::{count, id, keeps_the_rules, ok, refuses, running, sh, state};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::{at, configured, moment};

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
fn an_agent_of_a_paused_project_can_only_tidy_up_and_read() {
    let story = TestJobVault::new("");
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
            // The pause itself needs attention.
            let expected = i32::from(*line == "hf-status");
            let leaves = reply.all("NEXT").iter().all(|next| *next == "ACTION hf-session logout");
            if reply.code != Some(expected) || !leaves {
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
fn an_operator_may_add_edit_and_assign_but_start_nothing() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    ok(&hive, "hf-decide approve DEC-0001");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    let assigned = ok(&hive, "hf-task assign T-0002 b");
    assert_eq!(assigned.get("NEXT"), "NONE", "only its holder can start it, after the resume");
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
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login --project b --create");
    ok(&hive, "hf-task propose Form --project b --create");
    ok(&hive, "hf-task propose Held --project b --create");
    ok(&hive, "hf-task claim T-0002 --actor agent:a");
    let session = logged_in(&hive, "a", "b");
    ok(&hive, "hf-pause --archive b --yes");
    assert_eq!((count(&hive, "SessionEnded"), count(&hive, "PauseDrained")), (1, 0));
    for line in [
        "hf-task propose More --project b --create",
        "hf-task claim T-0001",
        "hf-task abort T-0001",
        "hf-task assign T-0001 a",
        "hf-require analyze REQ-0001 x",
        "hf-require propose More --project b --create",
        "hf-job fire --project b --create -- true",
        "hf-pause x --project b",
        "hf-resume --project b",
    ] {
        let before = hive.contents();
        assert_eq!(sh(&hive, line).expect_exit(3).get("STATUS"), "REFUSED", "{line}");
        assert!(hive.contents() == before, "{line}");
    }
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    asks_to_leave(&hive, &shell, "hf-checkpoint x", "session_void");
    assert_eq!(
        sh(&hive, "hf-session login --agent a --project b --create").expect_exit(3).get("REASON"),
        "project_archived"
    );
    ok(&hive, "hf-task show T-0001");
    assert_eq!(ok(&hive, "hf-task explain T-0001").all("BECAUSE")[0], "project b was archived at 2026-01-31T12:00:00Z");
    // An agent that held something there is free for other work, and its signs of life count.
    ok(&hive, "hf-checkpoint --agent a x");
    assert_eq!(state(&hive, "T-0002"), "Aborted");
    keeps_the_rules(&hive);
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
    let because = |hive: &TestVault, task: &str| {
        let reply = ok(hive, &format!("hf-task explain {task}"));
        reply.all("BECAUSE").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let paused = "project main was paused at 2026-01-31T12:01:40Z by user:jo: look";
    assert_eq!(
        because(&hive, "T-0001"),
        [
            paused,
            "T-0001 is claimed by agent:a (the lease starts again when the project is resumed)",
            "RUN-0001 has been running since 2026-01-31T12:00:00Z, last heartbeat 2026-01-31T12:00:00Z"
        ]
    );
    assert_eq!(
        because(&hive, "T-0002"),
        [paused, "T-0002 has been Ready since 2026-01-31T12:00:00Z", "T-0002 has not been claimed"]
    );
    assert_eq!(
        because(&hive, "T-0003"),
        [paused, "T-0003 is claimed by agent:a (the lease starts again when the project is resumed), but not started"]
    );
    ok(&hive, "hf-resume");
    let until = moment(5900);
    assert_eq!(because(&hive, "T-0003"), [format!("T-0003 is claimed by agent:a until {until}, but not started")]);
}

#[test]
fn work_for_a_requirement_belongs_to_its_project() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Logo --project brand --create");
    ok(&hive, "hf-require propose Login");
    let line = "hf-task propose Draw --requirement REQ-0001 --project web --create";
    refuses(&hive, line, 2, "REQ-0001 belongs to project brand, not to web");
    let line = "hf-job fire --requirement REQ-0002 --project brand --create -- true";
    refuses(&hive, line, 2, "REQ-0002 belongs to project main, not to brand");
    ok(&hive, "hf-task propose Draw --requirement REQ-0001 --project brand --create");
    ok(&hive, "hf-task propose Paint --requirement REQ-0001");
    ok(&hive, "hf-pause Wait --project brand");
    assert_eq!(count(&hive, "TaskProposed"), 2);
}
