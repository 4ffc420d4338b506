//! hf-state plan: the tasks of a mission, proposed together and followed to the end.

use std::fs;

use hiveforge::event::Kind;
use serde_json::{Value, json};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{approved, count, found_after, keeps_the_rules, ok, refuses, sh};
use crate::support::test_vault::{Reply, TestVault, mask};

use super::{m1, state};

fn plan(hive: &TestVault, plan: &Value, options: &[&str]) -> Reply {
    hive.pipe("state", &[&["plan", "-"], options].concat(), plan.to_string())
}

fn mission(settings: &str) -> TestJobVault {
    let story = TestJobVault::new(settings);
    approved(&story);
    state(&story, &["start", "Login", "--requirement", "REQ-0001"]);
    story
}

fn three() -> Value {
    json!({"tasks": [
        {"id": "b", "title": "Test", "depends_on": ["a"], "command": ["sh", "-c", "echo b >>ran; test -e mended"]},
        {"id": "a", "title": "Build", "description": "with care", "command": "echo a >>ran", "owner": "jo"},
        {"id": "c", "title": "Write it up", "depends_on": ["a", "b"]},
    ]})
}

#[test]
fn a_plan_is_proposed_at_once_and_followed_to_its_end() {
    let story = mission("");
    let reply = plan(&story, &three(), &["--key", "p"]).expect_exit(0);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-state fire T-0001\nSUM:M-0001 is Running, round 0/4\n\
         M1_STATUS:RUNNING\nGOAL:Login\nTASK_ID:T-0001\nLOGREF:NONE\nOPEN_K:NONE\nROUND:0/4\n\
         LAST_ACTION:0 of 3 planned tasks are done\nNEXT_ACTION:hf-state fire T-0001\nEVENT_ID:<ulid>\n\
         PLANNED:T-0001 a\nPLANNED:T-0002 b\nPLANNED:T-0003 c\n"
    );
    let proposed = story.of_kind("TaskProposed");
    assert_eq!(proposed[0]["payload"]["owner"], "jo");
    assert_eq!(proposed[0]["payload"]["description"], "with care");
    assert_eq!(proposed[0]["payload"]["planned"], json!({"id": "a", "command": ["sh", "-c", "echo a >>ran"]}));
    assert_eq!(proposed[1]["payload"]["after"].as_array().unwrap().len(), 1);
    // The same again, with and without a key; another one is refused.
    let events = story.events().len();
    for options in [&["--key", "p"][..], &[]] {
        assert_eq!(plan(&story, &three(), options).expect_exit(0).get("STATUS"), "DUPLICATE", "{options:?}");
    }
    let other = json!({"tasks": [{"id": "x", "title": "X"}]});
    assert_eq!(plan(&story, &other, &["--key", "p"]).expect_exit(3).get("REASON"), "key_conflict");
    assert_eq!(
        plan(&story, &other, &[]).expect_exit(3).get("SUM"),
        "M-0001 has another plan".replace("M-0001", &name(&story))
    );
    assert_eq!(story.events().len(), events);
    // As NEXT says.
    let fired = story.run_next(&reply).expect_exit(0);
    assert_eq!((fired.get("STATUS"), mask(fired.get("NEXT"))), ("FIRED", "ACTION hf-poll T-0001".to_owned()));
    assert_eq!(state(&story, &["fire", "T-0001"]).get("STATUS"), "DUPLICATE", "once");
    story.run_next(&fired);
    let show = state(&story, &["show"]);
    assert_eq!((mask(show.get("NEXT")), show.get("ROUND")), ("ACTION hf-state fire T-0002".to_owned(), "1/4"));
    story.run_next(&show);
    assert_eq!(story.poll("T-0002").get("STATUS"), "FAIL");
    // What depends on it waits for the next attempt.
    assert!(m1(&story).ends_with("\nNEXT_ACTION: fix it, then hf-state fire T-0004\n"), "{}", m1(&story));
    assert_eq!(ok(&story, "hf-task show T-0003").get("STATE"), "Proposed");
    fs::write(story.dir().join("mended"), "").unwrap();
    state(&story, &["fire", "T-0004"]);
    story.poll("T-0004");
    let show = state(&story, &["show"]);
    assert_eq!((mask(show.get("NEXT")), show.get("ROUND")), ("ACTION hf-task claim T-0003".to_owned(), "2/4"));
    ok(&story, "hf-task claim T-0003");
    ok(&story, "hf-task start T-0003");
    ok(&story, "hf-task succeed T-0003");
    let show = state(&story, &["show"]);
    assert_eq!((show.get("M1_STATUS"), show.get("LAST_ACTION")), ("PASS", "3 planned tasks succeeded"));
    assert_eq!((show.get("NEXT"), show.get("NEXT_ACTION")), ("NONE", "NONE"));
    assert_eq!(fs::read_to_string(story.dir().join("ran")).unwrap(), "a\nb\nb\n");
    assert_eq!(ok(&story, "hf-require show REQ-0001").get("STATE"), "Implemented");
    story.over();
}

/// The name of the mission as a reply has it.
fn name(hive: &TestVault) -> String {
    state(hive, &["show"]).get("SUM").split(':').next().unwrap().to_owned()
}

#[test]
fn a_plan_that_is_wrong_changes_nothing() {
    let story = mission("governance:\n  destructive_commands: ['rm *']\n");
    let before = story.contents();
    for (wrong, code, why) in [
        (json!({"tasks": []}), 2, "the plan has no tasks"),
        (json!({"tasks": [{"id": "a", "title": "A", "depends_on": ["a"]}]}), 2, "depends on itself"),
        (
            json!({"tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": ""}]}),
            2,
            "task 'b' of the plan has no title",
        ),
        (
            json!({"tasks": [{"id": "a", "title": "A", "destructive": "x"}]}),
            2,
            "payload.destructive must be true or false",
        ),
        (json!({"tasks": [{"id": "a", "title": "A", "command": ["rm", "x"]}]}), 3, "requires approval"),
    ] {
        let reply = plan(&story, &wrong, &[]);
        assert_eq!(reply.code, Some(code), "{reply:#?}");
        assert!(reply.get("SUM").contains(why), "{reply:#?}");
    }
    story.refuses("state", &["plan", "nowhere.json"], 2);
    story.refuses_input("state", &["plan", "-"], "{", 2);
    story.refuses_input("state", &["plan", "-"], vec![b' '; 2_000_000], 2);
    assert!(story.contents() == before);
    story.refuses("state", &["fire", "T-0001"], 6);
    ok(&story, "hf-task propose Form");
    assert_eq!(
        story.refuses("state", &["fire", "T-0001"], 2).get("SUM").split("has").nth(1).unwrap(),
        " no command in a plan; claim it with hf-task claim"
    );
    // Without a mission there is nothing to plan.
    assert_eq!(plan(&TestVault::new(), &three(), &[]).expect_exit(6).get("STATUS"), "NOT_FOUND");
    story.over();
}

#[test]
fn a_failed_task_waits_for_more_rounds_and_takes_nothing_along() {
    let story = mission("");
    plan(&story, &three(), &[]).expect_exit(0);
    state(&story, &["fire", "T-0001"]);
    story.poll("T-0001");
    for n in [2, 4, 5, 6] {
        let task = format!("T-{n:04}");
        state(&story, &["fire", &task]);
        story.poll(&task);
    }
    assert!(m1(&story).contains("\nNEXT_ACTION: ASK operator for more rounds\n"), "{}", m1(&story));
    assert_eq!(story.refuses("state", &["fire", "T-0007"], 3).get("REASON"), "round_limit");
    assert_eq!((count(&story, "EscalationRequired"), count(&story, "MissionRoundBegun")), (0, 4));
    // Nor can an agent do it by hand.
    let why = "all 4 rounds of M-0001 are used up; an operator can allow more";
    let reply = refuses(&story, "hf-task claim T-0007 --actor agent:bee", 3, why);
    assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("round_limit", "ASK operator"));
    assert_eq!(sh(&story, "hf-task claim --actor agent:bee").expect_exit(1).get("STATUS"), "NO_TASK");
    assert!(ok(&story, "hf-task explain T-0007").stdout.contains("all rounds of M-0001 are used up"));
    ok(&story, "hf-state more-rounds 1");
    fs::write(story.dir().join("mended"), "").unwrap();
    state(&story, &["fire", "T-0007"]);
    story.poll("T-0007");
    assert!(m1(&story).ends_with("\nNEXT_ACTION: hf-task claim T-0003\n"), "{}", m1(&story));
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn the_audit_finds_a_plan_that_was_forged() {
    let story = mission("");
    let subject = story.of_kind("MissionStarted")[0]["subject"].as_str().unwrap().to_owned();
    ok(&story, "hf-task propose Form");
    let task = story.of_kind("TaskProposed")[0]["subject"].as_str().unwrap()["task:".len()..].to_owned();
    for (payload, why) in [
        (json!({"tasks": [task]}), "is no work of this mission"),
        (json!({"tasks": []}), "a plan has at least one task"),
    ] {
        let found = found_after(&story.copy(), vec![("user:jo", Kind::MissionPlanned, &subject, payload)]);
        assert!(found.iter().any(|found| found.contains(why)), "{found:#?}");
    }
    // Nobody else passes a mission in the reactor's name.
    let found = found_after(&story.copy(), vec![("core:reactor", Kind::MissionPassed, &subject, json!({}))]);
    assert!(!found.is_empty());
    story.over();
}

/// Settings with a final check that passes, and a fixer if one is given.
fn checked(fixer: &str) -> String {
    let fixer = match fixer {
        "" => String::new(),
        fixer => format!("fixer:\n  command: {}\n", json!(fixer)),
    };
    format!("runner:\n  command: echo check >>ran; echo All tests passed\n{fixer}")
}

fn ran(story: &TestJobVault) -> String {
    fs::read_to_string(story.dir().join("ran")).unwrap_or_default().replace('\n', " ")
}

#[test]
fn go_follows_the_plan_and_runs_the_final_check_after_it() {
    let story = mission(&checked(""));
    fs::write(story.dir().join("mended"), "").unwrap();
    let reply = plan(&story, &three(), &[]).expect_exit(0);
    assert_eq!((reply.get("NEXT"), reply.get("NEXT_ACTION")), ("ACTION hf-state go", "hf-state go"));
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:RUNNING\nNEXT:ACTION hf-task claim T-0003\nSUM:T-0003 has no command; claim it\n\
         M1_STATUS:RUNNING\nTASK_ID:T-0003\nROUND:1/4\n"
    );
    assert_eq!(ran(&story), "a b ");
    ok(&story, "hf-task claim T-0003");
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!(
        (mask(reply.get("NEXT")), mask(reply.get("SUM"))),
        ("ACTION hf-task show T-0003".to_owned(), "T-0003 is Assigned".to_owned())
    );
    ok(&story, "hf-task start T-0003");
    ok(&story, "hf-task succeed T-0003");
    let show = state(&story, &["show"]);
    assert_eq!((show.get("M1_STATUS"), show.get("NEXT")), ("RUNNING", "ACTION hf-state go"));
    assert_eq!(show.get("LAST_ACTION"), "3 planned tasks succeeded");
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "round 1: All tests passed"));
    assert_eq!(ran(&story), "a b check ");
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn go_passes_a_mission_without_a_runner_with_the_last_task_of_its_plan() {
    let story = mission("");
    let work = json!({"tasks": [{"id": "a", "title": "A", "command": "echo a >>ran"}]});
    plan(&story, &work, &[]).expect_exit(0);
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "1 planned task succeeded"));
    assert_eq!(ran(&story), "a ");
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn go_hands_a_failed_task_of_the_plan_to_the_fixer_and_fires_it_again() {
    let story = mission(&checked("echo fix $HF_ROUND >>ran; touch mended"));
    let work = json!({"tasks": three()["tasks"].as_array().unwrap()[..2]});
    plan(&story, &work, &[]).expect_exit(0);
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.get("ROUND")), ("DONE", "2/4"));
    assert_eq!(ran(&story), "a b fix 1 b check ");
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn a_failed_task_of_the_plan_without_a_fixer_is_reported_until_no_round_is_left() {
    let story = mission(&checked(""));
    let work = json!({"tasks": three()["tasks"].as_array().unwrap()[..2]});
    plan(&story, &work, &[]).expect_exit(0);
    for round in ["1/4", "2/4", "3/4"] {
        let reply = story.run("state", &["go"]).expect_exit(1);
        assert_eq!((reply.get("STATUS"), reply.get("NEXT"), reply.get("ROUND")), ("FAIL", "PATCH", round));
        assert!(m1(&story).ends_with("\nNEXT_ACTION: fix it, then hf-state go\n"), "{}", m1(&story));
    }
    let reply = story.run("state", &["go"]).expect_exit(3);
    assert_eq!((reply.get("STATUS"), reply.get("NEXT"), reply.get("ROUND")), ("ROUND_LIMIT", "ASK operator", "4/4"));
    assert_eq!(story.run("state", &["go"]).expect_exit(3).stdout, reply.stdout);
    assert_eq!(ran(&story), "a b b b b ");
    ok(&story, "hf-state more-rounds 1");
    fs::write(story.dir().join("mended"), "").unwrap();
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("ROUND"), "5/5");
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn a_plan_that_comes_during_the_final_check_is_followed_before_the_mission_passes() {
    let story = mission("runner:\n  command: echo check >>ran; echo here >told; read x <go\n");
    let (mut told, mut gate) = (story.gate("told"), story.gate("go"));
    let child = crate::support::job_fixture::waiting(&story, "state", &["go"]);
    told.line();
    let work = json!({"tasks": [{"id": "a", "title": "A", "command": "echo a >>ran"}]});
    plan(&story, &work, &[]).expect_exit(0);
    gate.open();
    told.line();
    assert_eq!(ran(&story), "check a check ");
    gate.open();
    let reply = Reply::of(child.wait_with_output().unwrap()).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.get("ROUND")), ("DONE", "2/4"));
    story.over();
}

#[test]
fn go_with_a_plan_does_nothing_twice_when_killed_anywhere_and_restarted() {
    let work = json!({"tasks": three()["tasks"].as_array().unwrap()[..2]});
    for first in [1, 4] {
        let story = mission(&checked("echo fix $HF_ROUND >>ran; touch mended"));
        plan(&story, &work, &[]).expect_exit(0);
        let mut millis = first;
        let reply = loop {
            match super::go::go_for(&story, millis) {
                Some(reply) => break reply,
                None => millis += 3,
            }
        };
        assert_eq!((reply.expect_exit(0).get("STATUS"), ran(&story).as_str()), ("DONE", "a b fix 1 b check "));
        story.gone();
        keeps_the_rules(&story);
    }
}

#[test]
fn j13_after_the_failure_of_another_job_the_file_names_a_step_that_works() {
    let story = mission("");
    let work = json!({"tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": "B", "depends_on": ["a"]}]});
    plan(&story, &work, &[]).expect_exit(0);
    story.fire("exit 1");
    story.poll("T-0003");
    assert!(m1(&story).ends_with("\nNEXT_ACTION: fix it, then hf-task claim T-0001\n"), "{}", m1(&story));
    ok(&story, "hf-task claim T-0001");
    assert!(m1(&story).ends_with("\nNEXT_ACTION: hf-task show T-0001\n"), "{}", m1(&story));
    // While somebody works on it, its own jobs are fired again.
    story.fire("exit 1");
    story.poll("T-0004");
    let again = "\nNEXT_ACTION: fix it, then fire it again with hf-job fire\n";
    assert!(m1(&story).ends_with(again), "{}", m1(&story));
    story.over();
}

#[test]
fn j13_reviewers_who_agree_lead_to_the_plan() {
    let story = mission("reviewers:\n  order: [gpt]\n  gpt:\n    command: \"echo 'PASS: scope'\"\n");
    plan(&story, &three(), &[]).expect_exit(0);
    fs::write(story.dir().join("design.md"), "One form.\n").unwrap();
    ok(&story, "hf-review run design.md");
    assert_eq!(count(&story, "DebateConverged"), 1);
    let show = state(&story, &["show"]);
    assert_eq!(
        (mask(show.get("NEXT")), mask(show.get("TASK_ID"))),
        ("ACTION hf-state fire T-0001".to_owned(), "T-0001".to_owned())
    );
    story.over();
}

#[test]
fn j2_neither_a_round_nor_a_plan_begins_while_everything_is_stopped() {
    let story = mission("");
    ok(&story, "hf-stop look");
    let before = story.events().len();
    for reply in [story.run("state", &["round"]), plan(&story, &three(), &[])] {
        let reply = reply.expect_exit(3);
        assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("STOPPED", "ASK operator"));
    }
    assert_eq!(story.events().len(), before);
    story.over();
}
