//! Rounds are counted whatever an agent does, a mission passes only when its work is done, and what a person ended is
//! that person's to continue.

use std::fs;

use serde_json::json;

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{approved, count, keeps_the_rules, ok, refuses, sh};
use crate::support::test_vault::{Reply, mask};

use super::{m1, state};

const BEE: &[&str] = &["--actor", "agent:bee"];

/// A mission that an agent started, for an approved requirement.
fn mission(settings: &str) -> TestJobVault {
    let story = TestJobVault::new(settings);
    approved(&story);
    ok(&story, "hf-state start Login --requirement REQ-0001 --actor agent:bee");
    story
}

/// An agent fires a script and waits for its end.
fn fire(story: &TestJobVault, script: &str) -> Reply {
    let fired = story.fire_with(BEE, script);
    story.poll(fired.get("TASK_ID"))
}

fn line(story: &TestJobVault, name: &str) -> String {
    let text = m1(story);
    let found = text.lines().find_map(|line| line.trim_start().strip_prefix(&format!("{name}: ")));
    mask(found.unwrap_or_else(|| panic!("no {name} in {text}")))
}

fn next(story: &TestJobVault) -> String {
    mask(state(story, &["show"]).get("NEXT"))
}

#[test]
fn go_ends_a_mission_again_after_more_rounds() {
    for passes in [true, false] {
        let story = mission("runner:\n  command: echo $HF_ROUND >>ran; test -e mended\n");
        for _ in 1..=3 {
            story.run("state", &["go"]).expect_exit(1);
        }
        assert_eq!(story.run("state", &["go"]).expect_exit(3).get("STATUS"), "ROUND_LIMIT");
        let more = ok(&story, "hf-state more-rounds 1");
        assert_eq!((more.get("NEXT"), more.get("NEXT_ACTION")), ("PATCH", "fix it, then hf-state go"));
        if passes {
            fs::write(story.dir().join("mended"), "").unwrap();
        }
        // The failure was told before: the next call runs.
        let reply = story.run("state", &["go"]).expect_exit(if passes { 0 } else { 3 });
        let ended = if passes { ("DONE", "PASS", "5/5") } else { ("ROUND_LIMIT", "FAIL", "5/5") };
        assert_eq!((reply.get("STATUS"), reply.get("M1_STATUS"), reply.get("ROUND")), ended);
        assert_eq!(fs::read_to_string(story.dir().join("ran")).unwrap(), "1\n2\n3\n4\n5\n");
        keeps_the_rules(&story);
        story.over();
    }
}

#[test]
fn a_failure_is_not_forgotten_when_another_job_ends_later() {
    for failing_first in [true, false] {
        let story = mission("");
        let (mut first, mut second) = (story.gate("first"), story.gate("second"));
        story.fire_with(BEE, "read x <first; exit 1");
        story.fire_with(BEE, "read x <second");
        let gates = [("T-0001", &mut first), ("T-0002", &mut second)];
        let gates = if failing_first {
            gates
        } else {
            let [a, b] = gates;
            [b, a]
        };
        for (job, gate) in gates {
            gate.open();
            story.poll(job);
        }
        assert_eq!((next(&story).as_str(), line(&story, "ROUND").as_str()), ("PATCH", "1/4"));
        assert_eq!(line(&story, "LAST_ACTION"), "round 1: T-0001 failed: exit code 1");
        fire(&story, "true");
        assert_eq!((next(&story).as_str(), line(&story, "ROUND").as_str()), ("ACTION hf-state done", "2/4"));
        story.over();
    }
}

#[test]
fn one_lost_job_is_repeated_in_its_round_and_the_next_one_has_failed() {
    let story = mission("");
    let mut told = story.gate("told");
    let _gate = story.gate("go");
    for (round, job) in [("1/4", "T-0001"), ("1/4", "T-0002"), ("2/4", "T-0003")] {
        story.fire_with(BEE, "echo here >told; read x <go");
        told.line();
        assert_eq!(line(&story, "ROUND"), round);
        story.lose(job);
        assert_eq!(story.poll(job).get("NEXT"), "PATCH");
        assert_eq!(next(&story), "PATCH");
    }
    story.over();
}

#[test]
fn an_agent_gets_no_rounds_beside_its_mission() {
    let story = mission("");
    for _ in 1..=3 {
        fire(&story, "exit 1");
    }
    let only = "has begun; only an operator can change its requirement";
    refuses(&story, "hf-state set REQUIREMENT=NONE --actor agent:bee", 3, only);
    // An operator can, and the rounds count nevertheless.
    ok(&story, "hf-state set REQUIREMENT=NONE");
    assert_eq!(fire(&story, "exit 1").get("NEXT"), "ASK operator");
    ok(&story, "hf-state set REQUIREMENT=REQ-0001");
    assert_eq!(line(&story, "ROUND"), "4/4");
    is_limited(&story, &[]);
    story.over();
    // Nor after it gave the mission up.
    let story = mission("");
    for _ in 1..=4 {
        fire(&story, "exit 1");
    }
    ok(&story, "hf-state fail --actor agent:bee");
    is_limited(&story, &["--requirement", "REQ-0001"]);
    // Other work goes on, and an operator is not limited.
    story.fire_with(BEE, "true");
    story.fire_with(&["--requirement", "REQ-0001"], "true");
    story.over();
}

/// An agent cannot fire a job with these options, because no round is left.
fn is_limited(story: &TestJobVault, options: &[&str]) {
    let reply = story.fires(&[options, BEE].concat(), "true").expect_exit(3);
    assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("round_limit", "ASK operator"));
}

#[test]
fn an_agent_cannot_call_a_mission_passed_whose_work_is_not_done() {
    let story = mission("");
    let mut gate = story.gate("go");
    story.fire_with(BEE, "read x <go; exit 1");
    let reply = sh(&story, "hf-state done all --actor agent:bee").expect_exit(3);
    assert_eq!((reply.get("NEXT"), mask(reply.get("SUM"))), ("ACTION hf-state show", "T-0001 is Running".to_owned()));
    gate.open();
    story.poll("T-0001");
    let failed = "T-0001 failed and was not fired again; hf-state fail gives up";
    refuses(&story, "hf-state done all --actor agent:bee", 3, failed);
    fire(&story, "true");
    ok(&story, "hf-state done all --actor agent:bee");
    assert_eq!(line(&story, "LAST_ACTION"), "all");
    story.over();
}

#[test]
fn a_planned_mission_passes_with_its_plan() {
    let story = mission("");
    let plan = json!({"tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": "B", "depends_on": ["a"]}]});
    story.pipe("state", &["plan", "-"], plan.to_string()).expect_exit(0);
    let missing = "2 planned tasks not done yet; T-0001 is Ready";
    refuses(&story, "hf-state done --actor agent:bee", 3, missing);
    // An operator's word counts, and the file has it.
    state(&story, &["done", "B is not needed"]);
    assert_eq!(line(&story, "LAST_ACTION"), "B is not needed");
    assert!(m1(&story).starts_with("STATUS: PASS\n"));
    story.over();
}

#[test]
fn a_planned_job_that_was_cut_off_is_proposed_again() {
    let plan = json!({"tasks": [
        {"id": "a", "title": "A", "command": "read x <go"},
        {"id": "b", "title": "B", "depends_on": ["a"], "command": "true"},
    ]});
    for how in ["hf-job cancel T-0001 --actor agent:bee", "hf-stop enough"] {
        let story = mission("");
        let mut gate = story.gate("go");
        story.pipe("state", &["plan", "-"], plan.to_string()).expect_exit(0);
        ok(&story, "hf-state fire T-0001 --actor agent:bee");
        ok(&story, how);
        if how.starts_with("hf-stop") {
            assert_eq!(
                (next(&story).as_str(), line(&story, "NEXT_ACTION").as_str()),
                ("ASK operator", "ASK operator how to go on")
            );
            ok(&story, "hf-resume --system --yes");
        } else {
            assert_eq!(line(&story, "NEXT_ACTION"), "fix it, then hf-state fire T-0003");
        }
        let reply =
            refuses(&story, "hf-state fire T-0001 --actor agent:bee", 3, "T-0001 failed; T-0003 is the next attempt");
        assert_eq!(
            (mask(reply.get("NEXT")), reply.get("REASON")),
            ("ACTION hf-state fire T-0003 --actor agent:bee".to_owned(), "repeated")
        );
        ok(&story, "hf-state fire T-0003 --actor agent:bee");
        gate.open();
        story.poll("T-0003");
        ok(&story, "hf-state fire T-0002 --actor agent:bee");
        assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
        assert!(m1(&story).starts_with("STATUS: PASS\n"), "{}", m1(&story));
        keeps_the_rules(&story);
        story.over();
    }
}

#[test]
fn a_rework_takes_the_place_of_a_planned_task() {
    let story = mission("");
    let plan = json!({"tasks": [{"id": "a", "title": "A", "command": "true"}]});
    story.pipe("state", &["plan", "-"], plan.to_string()).expect_exit(0);
    ok(&story, "hf-task abort T-0001 --reason wrong");
    ok(&story, "hf-task propose A --rework-of T-0001");
    assert_eq!(line(&story, "NEXT_ACTION"), "hf-state fire T-0002");
    ok(&story, "hf-state fire T-0002");
    story.poll("T-0002");
    assert!(m1(&story).starts_with("STATUS: PASS\n"), "{}", m1(&story));
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn other_lines_leave_the_actions_alone() {
    let story = mission("");
    fire(&story, "exit 1");
    let before = [line(&story, "LAST_ACTION"), line(&story, "NEXT_ACTION")];
    let reply = ok(&story, "hf-state set OPEN_K=K1 --actor agent:bee");
    assert_eq!((reply.get("NEXT"), reply.get("OPEN_K")), ("PATCH", "K1"));
    assert_eq!([line(&story, "LAST_ACTION"), line(&story, "NEXT_ACTION")], before);
    let events = story.events().len();
    assert_eq!(ok(&story, "hf-state set OPEN_K=K1 --actor agent:bee").get("STATUS"), "DUPLICATE");
    assert_eq!(story.events().len(), events);
    state(&story, &["set", "NEXT_ACTION=think", "OPEN_K=NONE"]);
    assert_eq!([line(&story, "LAST_ACTION"), line(&story, "NEXT_ACTION")], [before[0].as_str(), "think"]);
    // What is cleared follows the jobs again.
    state(&story, &["set", "NEXT_ACTION=NONE"]);
    assert_eq!([line(&story, "LAST_ACTION"), line(&story, "NEXT_ACTION")], before);
    story.over();
}

#[test]
fn j13_writing_down_what_was_done_does_not_lose_what_is_next() {
    let story = mission("");
    fire(&story, "exit 1");
    let next = line(&story, "NEXT_ACTION");
    let reply = story.run("state", &["set", "LAST_ACTION=looked at the log"]).expect_exit(0);
    assert_eq!(reply.get("NEXT"), "PATCH");
    assert_eq!([line(&story, "LAST_ACTION"), line(&story, "NEXT_ACTION")], ["looked at the log".to_owned(), next]);
    assert_eq!([line(&story, "TASK_ID"), line(&story, "LOGREF")], ["T-0001", "L-0001"]);
    // It counts until something happens.
    fire(&story, "exit 1");
    assert_eq!(line(&story, "LAST_ACTION"), "round 2: T-0002 failed: exit code 1");
    story.over();
}

#[test]
fn j13_nothing_that_is_written_down_hides_that_an_operator_has_to_be_asked() {
    let story = mission("");
    for _ in 1..=4 {
        fire(&story, "exit 1");
    }
    let before = m1(&story);
    let why = "TASK_ID is T-0004, which is Aborted; the next job replaces it";
    refuses(&story, "hf-state set TASK_ID=NONE --actor agent:bee", 3, why);
    assert_eq!(m1(&story), before);
    state(&story, &["set", "TASK_ID=T-0004", "NEXT_ACTION=hf-task list", "LAST_ACTION=thought"]);
    assert_eq!([line(&story, "LAST_ACTION"), line(&story, "NEXT_ACTION")], ["thought", "ASK operator for more rounds"]);
    assert_eq!(next(&story), "ASK operator");
    story.over();
}

#[test]
fn j12_a_mission_whose_job_waits_for_approval_asks_for_it() {
    let story = mission("");
    let fired = story.fires(&[BEE, &["--destructive"]].concat(), "true").expect_exit(3);
    assert_eq!(fired.get("STATUS"), "APPROVAL_REQUIRED");
    assert_eq!(
        (next(&story).as_str(), line(&story, "NEXT_ACTION").as_str()),
        ("ASK operator", "ASK operator to approve T-0001")
    );
    ok(&story, "hf-decide approve DEC-0002 --yes");
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(line(&story, "NEXT_ACTION"), "hf-state done");
    story.over();
}

#[test]
fn what_a_person_ended_is_not_the_agents_to_repair() {
    let story = mission("");
    let mut told = story.gate("told");
    let _gate = story.gate("go");
    let fired = story.fires(&[BEE, &["--destructive"]].concat(), "true").expect_exit(3);
    assert_eq!(fired.get("STATUS"), "APPROVAL_REQUIRED");
    ok(&story, "hf-decide reject DEC-0002 --reason no");
    let asks = |job: &str| {
        assert_eq!((story.poll(job).get("NEXT"), next(&story).as_str()), ("ASK operator", "ASK operator"));
        assert_eq!(line(&story, "NEXT_ACTION"), "ASK operator how to go on");
    };
    asks("T-0001");
    story.fire_with(BEE, "echo here >told; read x <go");
    told.line();
    ok(&story, "hf-job cancel T-0002");
    asks("T-0002");
    // What the agent cancelled itself is its own.
    story.fire_with(BEE, "echo here >told; read x <go");
    told.line();
    ok(&story, "hf-job cancel T-0003 --actor agent:bee");
    assert_eq!((story.poll("T-0003").get("NEXT"), next(&story).as_str()), ("PATCH", "PATCH"));
    story.over();
}

#[test]
fn go_asks_after_a_person_cancelled_its_work() {
    let story = mission("runner:\n  command: echo here >told; read x <go\n");
    let mut told = story.gate("told");
    let mut gate = story.gate("go");
    let reply = story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    told.line();
    assert_eq!(reply.get("STATUS"), "RUNNING");
    ok(&story, "hf-job cancel T-0001");
    let reply = story.run("state", &["go"]).expect_exit(1);
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("FAIL", "ASK operator"));
    gate.open();
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("ROUND"), "2/4");
    story.over();
}

#[test]
fn what_an_operator_started_every_agent_works_on() {
    let story = TestJobVault::new("");
    state(&story, &["start", "Login"]);
    story.fire_with(BEE, "true");
    assert_eq!((line(&story, "TASK_ID"), line(&story, "ROUND")), ("T-0001".to_owned(), "1/4".to_owned()));
    story.poll("T-0001");
    assert_eq!(count(&story, "MissionRoundBegun"), 1);
    story.over();
}

#[test]
fn a_repeated_key_says_that_another_attempt_needs_another_one() {
    let story = TestJobVault::new("");
    story.fire_with(&["--key", "k"], "exit 1");
    story.poll("T-0001");
    let reply = story.fires(&["--key", "k"], "exit 1").expect_exit(0);
    assert!(reply.get("SUM").ends_with("; another attempt needs another key"), "{reply:?}");
    story.over();
}

/// An agent cannot start a mission with these options, because an operator has to give rounds first.
#[track_caller]
fn cannot_start(story: &TestJobVault, options: &str, why: &str) {
    let reply = sh(story, format!("hf-state start again --actor agent:bee {options}").trim_end()).expect_exit(3);
    assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("round_limit", "ASK operator"));
    assert_eq!(mask(reply.get("SUM")), why);
}

#[test]
fn j8_an_agent_gets_no_rounds_by_way_of_another_requirement() {
    let story = mission("");
    story.approved("requirement:other", "Other");
    for _ in 1..=4 {
        fire(&story, "exit 1");
    }
    ok(&story, "hf-state fail --actor agent:bee");
    let why = "all 4 rounds of M-0001 are used up; an operator can allow more";
    cannot_start(&story, "", why);
    cannot_start(&story, "--requirement REQ-0002", why);
    // An operator's mission is for every agent, and after it the agent starts its own again.
    ok(&story, "hf-state start Other --requirement REQ-0002");
    fire(&story, "true");
    ok(&story, "hf-state done --actor agent:bee");
    ok(&story, "hf-state start Third --actor agent:bee");
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn j8_an_agent_gets_no_rounds_by_giving_up_before_the_last_one() {
    let story = TestJobVault::new("");
    ok(&story, "hf-state start Login --actor agent:bee");
    // Nothing was tried: it can begin again.
    ok(&story, "hf-state fail --actor agent:bee");
    ok(&story, "hf-state start Login --actor agent:bee");
    for _ in 1..=3 {
        fire(&story, "exit 1");
    }
    ok(&story, "hf-state fail --actor agent:bee");
    cannot_start(&story, "", "M-0002 was given up in round 3/4; an operator can start a mission");
    let append = ["MissionStarted", "--payload", r#"{"goal":"again"}"#, "--actor", "agent:other"];
    assert_eq!(story.refuses("append", &append, 3).get("REASON"), "round_limit");
    // With more rounds it goes on; what an operator gave up is settled.
    ok(&story, "hf-state more-rounds 1");
    assert_eq!(line(&story, "ROUND"), "3/5");
    ok(&story, "hf-state fail");
    ok(&story, "hf-state start Another --actor agent:bee");
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn j8_an_agent_gets_no_rounds_by_changing_the_requirement_of_its_next_mission() {
    let story = mission("");
    fire(&story, "exit 1");
    ok(&story, "hf-state fail --actor agent:bee");
    ok(&story, "hf-state start Login --requirement REQ-0001 --actor agent:bee");
    assert_eq!(line(&story, "ROUND"), "1/4");
    let only = "has begun; only an operator can change its requirement";
    refuses(&story, "hf-state set REQUIREMENT=NONE --actor agent:bee", 3, only);
    let subject = story.of_kind("MissionStarted")[1]["subject"].as_str().unwrap().to_owned();
    let append = ["MissionChanged", "--subject", &subject, "--payload", r#"{"goal":"x"}"#, "--actor", "agent:bee"];
    assert_eq!(story.refuses("append", &append, 3).get("REASON"), "operator_only");
    story.over();
}
