//! Waiting is working: an agent that waits for a job keeps its claims and is not inactive.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use hiveforge::event::Kind;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::job_fixture::{Gate, TestJobVault, waiting};
use crate::support::session_fixture::{logged_in, within};
use crate::support::steps::{count, found_after, held, id, kinds_since, ok, running, sh, state};
use crate::support::test_vault::{Reply, TestVault};
use crate::support::watchdog_fixture::{at, moment, tick};

const ANN: &str = "agent:ann";

/// The lease of a claim, and settings with it. The time between two ticks is never a gap.
const LEASE: i64 = 900;
const SETTINGS: &str = "watchdog:\n  interval_seconds: 1000000\n";

/// The block of a job that is still running.
fn still_running(again: &str) -> String {
    format!("EXIT:2\nSTATUS:RUNNING\nNEXT:ACTION {again}\nSUM:Still running\n")
}

/// Fires a job that ends when the gate is opened, and waits until it runs: its supervisor, whose clock stands still, is
/// then busy with it. What depends on the clock comes before its end.
#[track_caller]
fn running_job(story: &TestJobVault) -> Gate {
    let (mut at, go) = (story.gate("at"), story.gate("go"));
    story.fire("echo up >at; read x <go");
    at.line();
    go
}

/// Moves the clock and waits for a job for a second, as an agent.
#[track_caller]
fn polls(story: &mut TestJobVault, second: i64, job: &str) -> Reply {
    let line = format!("hf-poll {job} 1 1 --actor {ANN}");
    let reply = at(story, second, &line);
    assert_eq!(reply.stdout, still_running(&line));
    reply
}

/// The types of the events that an agent recorded since the first `count`.
fn by_ann(story: &TestVault, count: usize) -> Vec<String> {
    let events = story.events().split_off(count);
    let own = events.iter().filter(|event| event["actor"] == ANN);
    own.map(|event| event["event_type"].as_str().unwrap().to_owned()).collect()
}

/// J5
#[test]
fn j5_waiting_for_a_job_renews_the_lease() {
    let mut story = TestJobVault::new(SETTINGS);
    held(&story, ANN);
    // Another agent's claim is not renewed.
    ok(&story, "hf-task propose Menu");
    ok(&story, "hf-task claim T-0002 --actor agent:bob");
    let mut go = running_job(&story);
    let recorded = story.events().len();
    for second in [LEASE - 1, 2 * LEASE - 2, 3 * LEASE - 3] {
        polls(&mut story, second, "T-0003");
    }
    assert_eq!(by_ann(&story, recorded), ["ClaimRenewed", "AgentWaited"].repeat(3));
    let until = ok(&story, "hf-task show T-0001");
    assert_eq!((until.get("STATE"), state(&story, "T-0002").as_str()), ("Assigned", "Ready"), "{until:#?}");
    // A run is kept alive by its heartbeat, which is progress by itself.
    ok(&story, "hf-task start T-0001 --actor agent:ann");
    let recorded = story.events().len();
    polls(&mut story, 4 * LEASE - 4, "T-0003");
    let line = "hf-job wait T-0003 --max 1 --actor agent:ann";
    let waited = at(&mut story, 5 * LEASE - 5, line);
    assert_eq!((waited.get("STATUS"), waited.get("NEXT")), ("RUNNING", format!("ACTION {line}").as_str()));
    assert_eq!(by_ann(&story, recorded), ["Heartbeat", "Heartbeat"]);
    let found = tick(&mut story, 5 * LEASE + 500);
    assert!(!found.iter().any(|line| line.contains(" agent:ann error ")), "{found:?}");
    assert_eq!(state(&story, "T-0001"), "Running");
    go.open();
    ok(&story, "hf-job wait T-0003");
    story.over();
}

/// J5
#[test]
fn j5_waiting_is_progress_of_an_agent_that_holds_nothing_but_no_introspection() {
    let mut story = TestJobVault::new(SETTINGS);
    ok(&story, "hf-checkpoint Start --agent ann");
    ok(&story, "hf-checkpoint Start --agent bob");
    let mut go = running_job(&story);
    polls(&mut story, 590, "T-0001");
    let waited = story.of_kind("AgentWaited");
    assert_eq!(waited.len(), 1);
    assert_eq!(waited[0]["subject"], ANN);
    assert_eq!(waited[0]["payload"], json!({"jobs": [id(&story, "task", "T-0001")]}));
    assert_eq!(tick(&mut story, 601), ["INACTIVE agent:bob error 601"]);
    let status = sh(&story, "hf-status").expect_exit(1);
    let shown = status.all("AGENT").into_iter().find(|row| row.starts_with("ann ")).unwrap().to_owned();
    assert_eq!(shown, format!("ann HEALTHY {} wait age=11", moment(590)));
    polls(&mut story, 1150, "T-0001");
    let found = tick(&mut story, 1750);
    let of_ann: Vec<&String> = found.iter().filter(|line| line.contains(ANN)).collect();
    assert_eq!(of_ann, ["INACTIVE agent:ann warn 600", "INTROSPECTION_OVERDUE agent:ann warn 1750"]);
    assert_eq!(tick(&mut story, 1751).iter().filter(|line| line.contains("INACTIVE agent:ann error 601")).count(), 1);
    go.open();
    ok(&story, "hf-job wait T-0001");
    story.over();
}

/// J5: by the machine's own clock, since what counts is the time that passes during the wait.
#[test]
fn j5_a_long_wait_shows_signs_of_life_again_and_again() {
    let settings = "governance:\n  lease_seconds: 9\nliveness:\n  inactive_warn_seconds: 9\n";
    let story = TestJobVault::new(settings);
    let mut go = story.gate("go");
    let now = |name: &str, line: &str| {
        let mut command = story.process(name);
        command.env_remove("HF_NOW").args(line.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it runs")
    };
    let done = |name: &str, line: &str| Reply::of(now(name, line).wait_with_output().unwrap());
    done("task", "propose Form").expect_exit(0);
    done("job", "fire -- head -n1 go").expect_exit(0);
    done("task", "claim T-0001 --actor agent:ann").expect_exit(0);
    let poll = now("poll", "T-0002 15 600 --actor agent:ann");
    // Each comes a third of the lease after the one before it; the claim would be over without them.
    let mut follower = now("log", "--follow");
    let lines = BufReader::new(follower.stdout.take().unwrap()).lines().map_while(Result::ok);
    let claims = lines.filter(|line| line.contains(" ClaimRenewed ") || line.contains(" ClaimExpired "));
    let renewed = claims.take(3).take_while(|line| line.contains(" ClaimRenewed ")).count();
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert_eq!(renewed, 3);
    assert!(count(&story, "AgentWaited") >= 2, "{:#?}", story.events());
    assert_eq!(count(&story, "ClaimExpired"), 0);
    kill_process(Pid::from_child(&poll), Signal::TERM).unwrap();
    let reply = Reply::of(poll.wait_with_output().unwrap());
    assert_eq!(reply.stdout, still_running("hf-poll T-0002 15 600 --actor agent:ann"));
    go.open();
    assert_eq!(done("poll", "T-0002").get("STATUS"), "DONE");
    story.gone();
}

/// J5
#[test]
fn j5_polls_that_follow_each_other_do_not_fill_the_log() {
    let mut story = TestJobVault::new(SETTINGS);
    running(&story, ANN);
    ok(&story, "hf-task propose Menu");
    ok(&story, "hf-task claim T-0002 --actor agent:ann");
    let mut go = running_job(&story);
    let recorded = story.events().len();
    for second in 60..=75 {
        polls(&mut story, second, "T-0003");
    }
    // The start and the end of one wait, and every other wait until a sign is half a minute old.
    assert_eq!(by_ann(&story, recorded), ["Heartbeat", "ClaimRenewed"]);
    polls(&mut story, 90, "T-0003");
    assert_eq!(by_ann(&story, recorded).len(), 4);
    assert_eq!(tick(&mut story, 91), Vec::<String>::new(), "no RUNAWAY");
    // Nor does a wait that follows a sign of another sort.
    at(&mut story, 150, "hf-checkpoint Here --agent ann").expect_exit(0);
    let recorded = story.events().len();
    polls(&mut story, 155, "T-0003");
    assert_eq!(by_ann(&story, recorded), Vec::<String>::new());
    go.open();
    ok(&story, "hf-job wait T-0003");
    story.over();
}

#[test]
fn a_claim_that_expired_before_or_during_a_wait_stays_lost() {
    let mut story = TestJobVault::new(SETTINGS);
    held(&story, ANN);
    ok(&story, "hf-task propose Menu");
    let mut go = running_job(&story);
    at(&mut story, LEASE, "hf-task claim T-0002 --actor agent:ann").expect_exit(0);
    let recorded = story.events().len();
    polls(&mut story, LEASE + 40, "T-0003");
    assert_eq!(kinds_since(&story, recorded)[0], "ClaimExpired");
    assert_eq!(["T-0001", "T-0002"].map(|task| state(&story, task)), ["Ready", "Assigned"]);
    // Its agent hears of it when it acts.
    let told = at(&mut story, LEASE + 50, "hf-task start T-0001 --actor agent:ann");
    assert_eq!((told.code, told.get("STATUS")), (Some(3), "CLAIM_LOST"), "{told:#?}");
    go.open();
    ok(&story, "hf-job wait T-0003");
    story.over();
}

#[test]
fn only_an_agent_that_waits_shows_signs_of_life() {
    let mut story = TestJobVault::new(SETTINGS);
    held(&story, ANN);
    let mut go = running_job(&story);
    let recorded = story.events().len();
    // An operator, a program and an agent that nobody knows.
    for (second, actor) in [(600, ""), (610, " --actor external:ci"), (620, " --actor agent:new")] {
        let line = format!("hf-poll T-0002 1 1{actor}");
        assert_eq!(at(&mut story, second, &line).stdout, still_running(&line));
        let line = format!("hf-job wait T-0002 --max 1{actor}");
        assert_eq!(at(&mut story, second, &line).get("STATUS"), "RUNNING");
    }
    // What is not found, is no job, or has ended is not waited for.
    for name in ["T-0099", "T-0001"] {
        at(&mut story, 630, &format!("hf-poll {name} 1 1 --actor agent:ann"));
    }
    assert_eq!(story.events().len(), recorded);
    go.open();
    ok(&story, "hf-job wait T-0002");
    let recorded = story.events().len();
    let done = at(&mut story, 640, "hf-poll T-0002 1 1 --actor agent:ann");
    assert_eq!((done.get("STATUS"), story.events().len()), ("DONE", recorded));
    story.over();
}

#[test]
fn a_wait_that_cannot_be_recorded_is_answered_all_the_same() {
    let mut story = TestJobVault::new(SETTINGS);
    ok(&story, "hf-checkpoint Start --agent ann");
    let mut go = running_job(&story);
    // In an expired session.
    let session = logged_in(&story, "ann", "main");
    let recorded = story.events().len();
    story.at(&moment(3700).to_string());
    let line = "hf-poll T-0001 1 1";
    let shell = [("HF_AGENT", "ann"), ("HF_SESSION", session.as_str())];
    assert_eq!(within(&story, &shell, line).stdout, still_running(line));
    assert_eq!(by_ann(&story, recorded), Vec::<String>::new());
    // While the log is damaged, which is as good as read-only.
    let good = story.damage();
    let said = story.run("poll", &["T-0001", "1", "1", "--actor", ANN]);
    story.mend(&good);
    assert_eq!(said.code, Some(0), "{said:#?}");
    // In a paused project: the job may end, and the agent is still heard.
    at(&mut story, 7300, "hf-pause wait").expect_exit(0);
    polls(&mut story, 7400, "T-0001");
    assert_eq!(by_ann(&story, recorded), ["AgentWaited"]);
    at(&mut story, 7500, "hf-resume").expect_exit(0);
    go.open();
    ok(&story, "hf-job wait T-0001");
    // Under a stop, a job that has ended says so, and one that was stopped is an operator's.
    story.fire("read x <go");
    at(&mut story, 7600, "hf-stop harm").expect_exit(0);
    let stopped = at(&mut story, 7700, "hf-poll T-0002 1 1 --actor agent:ann");
    assert_eq!(
        stopped.stdout,
        "EXIT:1\nSTATUS:FAIL\nNEXT:ASK operator\nSUM:emergency_stop: harm\nLAST5:\nLOGREF:logs/L-0002.txt\n"
    );
    story.over();
}

#[test]
fn a_wait_for_a_job_of_another_system_counts_as_well() {
    let mut story = TestJobVault::new(&format!("{SETTINGS}jobs:\n  check_cmd: cat said\n"));
    fs::write(story.dir().join("said"), "processing\n").unwrap();
    held(&story, ANN);
    let recorded = story.events().len();
    let line = "hf-poll job-7 1 1 --actor agent:ann";
    assert_eq!(at(&mut story, 600, line).stdout, still_running(line));
    assert_eq!(by_ann(&story, recorded), ["ClaimRenewed", "AgentWaited"]);
    assert_eq!(story.of_kind("AgentWaited")[0]["payload"], json!({}));
    fs::write(story.dir().join("said"), "done\n").unwrap();
    let recorded = story.events().len();
    assert_eq!(at(&mut story, 700, line).get("STATUS"), "DONE");
    assert_eq!(by_ann(&story, recorded), Vec::<String>::new(), "it was not waited for");
    story.over();
}

#[test]
fn no_other_agent_waits_in_an_agents_name() {
    let hive = TestVault::new();
    ok(&hive, "hf-checkpoint Start --agent ann");
    ok(&hive, "hf-checkpoint Start --agent bob");
    let forged: Vec<(&str, Kind, &str, Value)> = vec![
        (ANN, Kind::AgentWaited, ANN, json!({})),
        ("agent:bob", Kind::AgentWaited, ANN, json!({})),
        (ANN, Kind::AgentWaited, ANN, json!({"jobs": ["t9"]})),
    ];
    assert_eq!(
        found_after(&hive, forged),
        ["agent:bob cannot act for agent:ann", "the payload names task:t9, which does not exist"]
    );
}

/// J12
#[test]
fn j12_a_job_that_waits_for_an_approval_is_an_operators() {
    let story = TestJobVault::new("");
    story.fires(&["--destructive", "--actor", ANN], "echo gone").expect_exit(3);
    let block = "EXIT:2\nSTATUS:RUNNING\nNEXT:ASK operator\nSUM:Waiting for an operator's approval\n";
    assert_eq!(story.run("poll", &["T-0001", "1", "1", "--actor", ANN]).stdout, block);
    let waited = story.run("job", &["wait", "T-0001", "--max", "1", "--actor", ANN]);
    assert_eq!((waited.get("STATUS"), waited.get("NEXT")), ("RUNNING", "ASK operator"));
    let poll = waiting(&story, "poll", &["T-0001"]);
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(Reply::of(poll.wait_with_output().unwrap()).get("SUM"), "gone");
    story.over();
}

/// J10
#[test]
fn j10_the_next_poll_is_the_same_callers() {
    let mut story = TestJobVault::new(SETTINGS);
    let mut go = story.gate("go");
    let fired = story.fire_with(&["--actor", ANN], "read x <go");
    assert_eq!(fired.get("NEXT"), "ACTION hf-poll T-0001 --actor agent:ann");
    let child = waiting(&story, "poll", &["T-0001", "7", "--actor", ANN]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let reply = Reply::of(child.wait_with_output().unwrap());
    assert_eq!(reply.stdout, still_running("hf-poll T-0001 7 --actor agent:ann"));
    // In the shell of an agent, nothing has to be said.
    let reply = within(&story, &[("HF_AGENT", "ann")], "hf-poll T-0001 1 1");
    assert_eq!(reply.stdout, still_running("hf-poll T-0001 1 1"));
    polls(&mut story, 10, "T-0001");
    go.open();
    ok(&story, "hf-job wait T-0001");
    story.over();
}

#[test]
fn the_settings_say_how_long_a_wait_is_and_the_caller_may_say_otherwise() {
    let story = TestJobVault::new("jobs:\n  poll_max_seconds: 1\n");
    let mut go = running_job(&story);
    assert_eq!(story.poll("T-0001").stdout, still_running("hf-poll T-0001"));
    let waited = sh(&story, "hf-job wait T-0001").expect_exit(1);
    assert_eq!((waited.get("STATUS"), waited.get("NEXT")), ("RUNNING", "ACTION hf-job wait T-0001"));
    let longer = waiting(&story, "poll", &["T-0001", "1", "600"]);
    let shown = ok(&story, "hf-config show");
    assert!(shown.stdout.contains("jobs.poll_max_seconds"), "{shown:#?}");
    go.open();
    assert_eq!(Reply::of(longer.wait_with_output().unwrap()).get("STATUS"), "DONE");
    story.over();
}
