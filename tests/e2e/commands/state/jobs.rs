//! A mission knows its jobs: which one it is about, how it ended, what to do next, and how many rounds that took.

use std::fs;

use hiveforge::event::Kind;
use rustix::process::Signal;
use serde_json::json;

use crate::support::job_fixture::{TestJobVault, kill};
use crate::support::steps::{approved, count, found_after, id, keeps_the_rules, ok, refuses, sh};
use crate::support::test_vault::{Reply, TestVault, mask};

use super::{m1, state};

/// A mission without settings.
fn mission() -> TestJobVault {
    let story = TestJobVault::new("");
    state(&story, &["start", "Login"]);
    story
}

/// Lines of the state file, by name, read as a stranger would.
#[track_caller]
fn line(hive: &TestVault, name: &str) -> String {
    let text = m1(hive);
    let found = text.lines().find_map(|line| line.trim_start().strip_prefix(&format!("{name}: ")));
    mask(found.unwrap_or_else(|| panic!("no {name} in {text}")))
}

/// What the file says: task, log, round, last and next action.
#[track_caller]
fn says(hive: &TestVault, expected: [&str; 5]) {
    let found = ["TASK_ID", "LOGREF", "ROUND", "LAST_ACTION", "NEXT_ACTION"].map(|name| line(hive, name));
    assert_eq!(found, expected.map(str::to_owned));
}

#[test]
fn j13_a_job_fired_in_a_mission_is_its_current_one_and_a_failure_costs_a_round() {
    let story = mission();
    let mut gate = story.gate("go");
    story.fire("read x <go; test $x = good");
    says(&story, ["T-0001", "L-0001", "1/4", "round 1: T-0001 was fired", "hf-poll T-0001"]);
    gate.open_with("bad");
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    let again = "fix it, then fire it again with hf-job fire";
    says(&story, ["T-0001", "L-0001", "1/4", "round 1: T-0001 failed: exit code 1", again]);
    let show = state(&story, &["show"]);
    assert_eq!((show.get("NEXT"), show.get("NEXT_ACTION")), ("PATCH", again));
    // Repeating costs nothing, and neither does a job beside another one.
    story.fire_with(&["--key", "second"], "read x <go; test $x = good");
    says(&story, ["T-0002", "L-0002", "2/4", "round 2: T-0002 was fired", "hf-poll T-0002"]);
    assert_eq!(story.fires(&["--key", "second"], "read x <go; test $x = good").get("STATUS"), "DUPLICATE");
    assert_eq!(line(&story, "ROUND"), "2/4");
    gate.open_with("good");
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    says(&story, ["T-0002", "L-0002", "2/4", "round 2: T-0002 succeeded", "hf-state done"]);
    // After a success the round goes on.
    story.fire("true");
    story.poll("T-0003");
    says(&story, ["T-0003", "L-0003", "2/4", "round 2: T-0003 succeeded", "hf-state done"]);
    assert_eq!(state(&story, &["done"]).get("M1_STATUS"), "PASS");
    says(&story, ["T-0003", "L-0003", "2/4", "round 2: T-0003 succeeded", "NONE"]);
    story.over();
}

#[test]
fn a_job_beside_another_is_not_lost_when_the_newer_one_ends() {
    let story = mission();
    let mut gate = story.gate("go");
    story.fire("read x <go");
    story.fire("true");
    assert_eq!(line(&story, "ROUND"), "1/4");
    story.poll("T-0002");
    says(&story, ["T-0001", "L-0001", "1/4", "round 1: T-0001 was fired", "hf-poll T-0001"]);
    gate.open();
    story.poll("T-0001");
    assert_eq!(line(&story, "LAST_ACTION"), "round 1: T-0002 succeeded");
    story.over();
}

#[test]
fn somebody_elses_job_is_not_the_missions() {
    let story = TestJobVault::new("");
    approved(&story);
    state(&story, &["start", "Login", "--requirement", "REQ-0001", "--actor", "agent:builder"]);
    story.fire("true");
    assert_eq!((line(&story, "TASK_ID"), line(&story, "ROUND")), ("NONE".to_owned(), "0/4".to_owned()));
    // Its agent's, and anybody's for its requirement.
    story.fire_with(&["--actor", "agent:builder"], "true");
    assert_eq!(line(&story, "TASK_ID"), "T-0002");
    story.poll("T-0002");
    story.fire_with(&["--requirement", "REQ-0001"], "true");
    assert_eq!(line(&story, "TASK_ID"), "T-0003");
    story.poll("T-0003");
    // An existing task of the requirement.
    ok(&story, "hf-task propose Form --requirement REQ-0001");
    story.fire_with(&["--task", "T-0004"], "true");
    assert_eq!(line(&story, "TASK_ID"), "T-0004");
    story.poll("T-0004");
    story.poll("T-0001");
    // In another project nothing is.
    story.fire_with(&["--actor", "agent:builder", "--project", "other", "--create"], "true");
    assert_eq!(line(&story, "TASK_ID"), "T-0004");
    story.poll("T-0005");
    story.over();
}

#[test]
fn the_file_is_rewritten_by_the_process_that_records_the_end_of_a_job() {
    let story = mission();
    let mut gate = story.gate("go");
    // The supervisor: nobody polls.
    story.fire("read x <go; exit 3");
    gate.open();
    story.gone();
    assert_eq!(line(&story, "LAST_ACTION"), "round 1: T-0001 failed: exit code 3");
    // The watchdog, after the supervisor was lost.
    let mut told = story.gate("told");
    story.fire("echo here >told; read x <go");
    told.line();
    story.lose("T-0002");
    story.run("watchdog", &[]);
    assert_eq!(line(&story, "LAST_ACTION"), "round 2: T-0002 failed: lost");
    // A file that was left behind is rewritten by the next command that records something, whatever that is.
    fs::remove_file(story.vault().join("Autonomous/state/M1.md")).unwrap();
    ok(&story, "hf-checkpoint here");
    assert_eq!(line(&story, "LAST_ACTION"), "round 2: T-0002 failed: lost");
    story.over();
}

#[test]
fn a_job_that_is_stopped_or_cancelled_is_fired_again_in_the_next_round() {
    let story = mission();
    let _gate = story.gate("go");
    story.fire("read x <go");
    ok(&story, "hf-job cancel T-0001");
    assert_eq!(line(&story, "LAST_ACTION"), "round 1: T-0001 failed: cancelled");
    story.fire("read x <go");
    assert_eq!(line(&story, "ROUND"), "2/4");
    ok(&story, "hf-stop enough");
    assert_eq!(line(&story, "LAST_ACTION"), "round 2: T-0002 failed: emergency_stop: enough");
    ok(&story, "hf-resume --system --yes");
    story.fire("true");
    assert_eq!(line(&story, "ROUND"), "3/4");
    story.poll("T-0003");
    story.over();
}

#[test]
fn after_the_last_round_only_an_operator_gives_more() {
    let story = mission();
    for n in 1..=4 {
        story.fire("exit 1");
        story.poll(&format!("T-{n:04}"));
    }
    assert_eq!(line(&story, "NEXT_ACTION"), "ASK operator for more rounds");
    assert_eq!(state(&story, &["show"]).get("NEXT"), "ASK operator");
    let events = story.events().len();
    let reply = story.fires(&[], "exit 1").expect_exit(3);
    assert_eq!(
        reply.stdout,
        "EXIT:3\nSTATUS:ROUND_LIMIT\nNEXT:ASK operator\nSUM:all 4 rounds are used up\nREASON:round_limit\n"
    );
    assert_eq!(story.events().len(), events, "nothing was fired");
    let agent = |args: &[&str]| Reply::of(story.command("state").env("HF_AGENT", "main").args(args).output().unwrap());
    let reply = agent(&["more-rounds"]).expect_exit(3);
    assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("operator_only", "ASK operator"));
    refuses(&story, "hf-state more-rounds 0", 2, "payload.rounds must be 1 to 100");
    let more = ["more-rounds", "2", "--reason", "nearly there", "--key", "more"];
    assert_eq!(state(&story, &more).get("ROUND"), "4/6");
    assert_eq!(state(&story, &more).get("STATUS"), "DUPLICATE");
    assert_eq!(line(&story, "NEXT_ACTION"), "fix it, then fire it again with hf-job fire");
    story.fire("true");
    story.poll("T-0005");
    assert_eq!(line(&story, "ROUND"), "5/6");
    keeps_the_rules(&story);
    story.over();
}

#[test]
fn j8_an_agent_gets_no_rounds_by_starting_again() {
    let story = TestJobVault::new("runner:\n  command: exit 1\nfixer:\n  command: 'true'\n");
    approved(&story);
    let agent = |args: &[&str]| Reply::of(story.command("state").env("HF_AGENT", "main").args(args).output().unwrap());
    agent(&["start", "Login", "--requirement", "REQ-0001"]).expect_exit(0);
    assert_eq!(agent(&["go"]).expect_exit(3).get("STATUS"), "ROUND_LIMIT");
    assert_eq!((line(&story, "STATUS"), line(&story, "NEXT_ACTION")), ("FAIL".to_owned(), "ASK operator".to_owned()));
    for again in [&["start", "again", "--requirement", "REQ-0001"][..], &["start", "again"]] {
        let reply = agent(again).expect_exit(3);
        assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("round_limit", "ASK operator"), "{again:?}");
    }
    // Nor by way of hf-append, nor in a shell of the agent's that names somebody else.
    let payload = json!({"goal": "again"}).to_string();
    let append = ["MissionStarted", "--payload", &payload, "--actor", "agent:other"];
    assert_eq!(story.refuses("append", &append, 3).get("REASON"), "round_limit");
    // One that gives up early continues where it was.
    ok(&story, "hf-state more-rounds 1");
    assert_eq!(line(&story, "STATUS"), "RUNNING");
    assert_eq!(agent(&["fail"]).expect_exit(0).get("ROUND"), "4/5");
    let again = agent(&["start", "again", "--requirement", "REQ-0001"]).expect_exit(0);
    assert_eq!(again.get("ROUND"), "4/5");
    assert_eq!(agent(&["go"]).expect_exit(3).get("ROUND"), "5/5");
    assert_eq!(count(&story, "MissionRoundBegun"), 5);
    agent(&["start", "again", "--requirement", "REQ-0001"]).expect_exit(3);
    // The audit finds it in a log that says otherwise.
    let requirement = id(&story, "require", "REQ-0001");
    let found = found_after(
        &story.copy(),
        vec![
            ("agent:main", Kind::MissionStarted, "mission:new", json!({"goal": "a", "requirement_id": requirement})),
            ("user:jo", Kind::MissionStarted, "mission:newer", json!({"goal": "a", "requirement_id": requirement})),
            ("user:jo", Kind::MissionRoundBegun, "mission:newer", json!({"round": 1})),
        ],
    );
    assert!(found[0].contains("all 5 rounds of REQ-0001 are used up"), "{found:#?}");
    story.over();
}

#[test]
fn work_of_a_mission_that_has_ended_is_refused_and_found() {
    let story = mission();
    let mission = story.of_kind("MissionStarted")[0]["subject"].as_str().unwrap()["mission:".len()..].to_owned();
    state(&story, &["done"]);
    let found = found_after(
        &story.copy(),
        vec![("user:jo", Kind::TaskProposed, "task:late", json!({"title": "a", "of_mission": mission}))],
    );
    assert!(found.iter().any(|found| found.contains("M-0001 is Passed")), "{found:#?}");
    story.over();
}

#[test]
fn go_waits_for_a_job_that_was_fired_by_hand_and_counts_its_failure() {
    let story = TestJobVault::new("runner:\n  command: echo $HF_ROUND >>ran\n");
    approved(&story);
    state(&story, &["start", "Login", "--requirement", "REQ-0001"]);
    let mut gate = story.gate("go");
    story.fire("read x <go; exit 1");
    let reply = story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    assert_eq!((reply.get("STATUS"), mask(reply.get("SUM"))), ("RUNNING", "T-0001: Still running".to_owned()));
    gate.open();
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.get("ROUND")), ("DONE", "2/4"));
    assert_eq!(fs::read_to_string(story.dir().join("ran")).unwrap(), "2\n");
    story.over();
}

#[test]
fn what_a_step_fires_itself_does_not_take_its_place() {
    let story = TestJobVault::new("runner:\n  command: hf-job fire -- true >fired; echo here >told; read x <go\n");
    approved(&story);
    state(&story, &["start", "Login", "--requirement", "REQ-0001"]);
    let (mut told, mut gate) = (story.gate("told"), story.gate("go"));
    story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    told.line();
    assert_eq!(line(&story, "TASK_ID"), "T-0001");
    gate.open();
    story.run("state", &["go"]).expect_exit(0);
    story.poll("T-0002");
    story.over();
}

#[test]
fn j16_a_checkpoint_says_that_the_file_is_in_step_only_if_it_is() {
    let story = TestJobVault::new("");
    let block = || {
        let text = fs::read_to_string(story.vault().join("Autonomous/state/CHECKPOINTS.md")).unwrap();
        mask(text.split("CHECKPOINT:\n").last().unwrap())
    };
    ok(&story, "hf-checkpoint reading --state");
    assert_eq!(block(), "No mission.\nROUND: 0/4\nTASK: NONE\nNEXT: reading\n\n");
    state(&story, &["start", "Login"]);
    story.fire("true");
    story.poll("T-0001");
    story.run("checkpoint", &["hf-poll T-0001", "--state"]).expect_exit(0);
    assert_eq!(block(), "M1 synced.\nROUND: 1/4\nTASK: T-0001\nNEXT: hf-poll T-0001\n\n");
    // A folder in its place cannot be replaced.
    let file = story.vault().join("Autonomous/state/M1.md");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    ok(&story, "hf-checkpoint writing --state");
    assert_eq!(block(), "M1 not synced; hf-state show rewrites it.\nROUND: 1/4\nTASK: T-0001\nNEXT: writing\n\n");
    fs::remove_dir(&file).unwrap();
    story.over();
}

#[test]
fn the_file_stays_within_200_words_whatever_happens_to_its_job() {
    let story = mission();
    let used = m1(&story).split_whitespace().count();
    let words = vec!["w"; 201 - used].join(" ");
    state(&story, &["set", &format!("GOAL={words}")]);
    assert_eq!(m1(&story).split_whitespace().count(), 200);
    story.fire("exit 1");
    story.poll("T-0001");
    assert!(m1(&story).split_whitespace().count() <= 200, "{}", m1(&story));
    assert_eq!((line(&story, "TASK_ID"), line(&story, "LAST_ACTION")), ("T-0001".to_owned(), "failed".to_owned()));
    assert_eq!(line(&story, "NEXT_ACTION"), "fix it, then fire it again with hf-job fire");
    story.over();
}

#[test]
fn a_killed_supervisor_leaves_a_mission_that_can_go_on() {
    let story = mission();
    let (mut told, _gate) = (story.gate("told"), story.gate("go"));
    story.fire("echo here >told; read x <go");
    told.line();
    let [supervisor, _] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    // Whoever looks records it.
    while story.poll("T-0001").get("STATUS") == "RUNNING" {}
    assert_eq!(line(&story, "LAST_ACTION"), "round 1: T-0001 failed: lost");
    story.gone();
}

#[test]
fn j2_while_everything_is_stopped_every_reply_asks_for_an_operator() {
    let story = mission();
    let _gate = story.gate("go");
    ok(&story, "hf-task propose Form");
    ok(&story, "hf-task claim T-0001 --actor agent:bee");
    ok(&story, "hf-task start T-0001 --actor agent:bee");
    story.fire("read x <go");
    ok(&story, "hf-stop look");
    let refused = story.fires(&[], "true").expect_exit(3);
    assert_eq!((refused.get("STATUS"), refused.get("NEXT")), ("STOPPED", "ASK operator"));
    for line in [
        "hf-task heartbeat T-0001 --actor agent:bee",
        "hf-status",
        "hf-state show",
        "hf-checkpoint here",
        "hf-poll T-0002",
    ] {
        assert_eq!(sh(&story, line).get("NEXT"), "ASK operator", "{line}");
    }
    assert_eq!(count(&story, "TaskProposed"), 2, "nothing was queued");
    story.over();
}

#[test]
fn j16_open_points_are_numbered_and_a_finished_job_has_four_lines() {
    let story = mission();
    for wrong in ["K1, K2", "ask-the-boss", "k1", "K0"] {
        story.refuses("state", &["set", &format!("OPEN_K={wrong}")], 2);
    }
    assert_eq!(state(&story, &["set", "OPEN_K=K1,K12"]).get("OPEN_K"), "K1,K12");
    story.fire("echo All tests passed");
    assert_eq!(story.poll("T-0001").stdout, "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:All tests passed\n");
    story.over();
}

#[test]
fn j10_what_a_claim_for_an_agent_leads_to_works_as_printed() {
    let story = TestJobVault::new("");
    ok(&story, "hf-task propose Form");
    let claimed = ok(&story, "hf-task claim --actor agent:bob");
    assert_eq!(mask(claimed.get("NEXT")), "ACTION hf-task start T-0001 --actor agent:bob");
    assert_eq!(story.run_next(&claimed).expect_exit(0).get("STATE"), "Running");
    story.over();
}
