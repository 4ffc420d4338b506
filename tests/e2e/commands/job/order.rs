//! The queue: what runs next, and waiting for jobs.

use std::fs::{self};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{ok, sh, state};

#[test]
fn jobs_run_in_order_and_within_the_parallel_limit() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 2\n");
    let mut at = story.gate("at");
    let mut go = story.gate("go");
    for n in 1..=5 {
        let options: &[&str] = &[];
        story.fire_with(options, &format!("echo {n} >at; read x <go"));
    }
    let mut first = [at.line(), at.line()];
    first.sort();
    assert_eq!(first, ["1", "2"]);
    let standing = |story: &TestJobVault| {
        let reply = ok(story, "hf-job list");
        let words = reply.all("JOB").into_iter().map(|job| job.split(' ').nth(1).unwrap().to_owned());
        // Which of those that wait for the gate gets through is up to the kernel.
        let mut words: Vec<String> = words.collect();
        words.sort();
        words.join(" ")
    };
    assert_eq!(standing(&story), "QUEUED QUEUED QUEUED RUNNING RUNNING");
    for next in ["3", "4", "5"] {
        go.open();
        assert_eq!(at.line(), next, "first fired, first begun");
    }
    assert_eq!(standing(&story), "DONE DONE DONE RUNNING RUNNING");
    go.open();
    go.open();
    ok(&story, "hf-job wait T-0001 T-0002 T-0003 T-0004 T-0005");
    story.over();
}

#[test]
fn m16_a_wait_for_jobs_that_runs_out_exits_with_1() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go");
    for line in ["hf-job wait T-0001 --max 1s", "hf-job wait T-0001 --any --max 1s"] {
        let reply = sh(&story, line).expect_exit(1);
        assert_eq!((reply.get("EXIT"), reply.get("STATUS")), ("1", "RUNNING"), "{line}");
    }
    // hf-poll has numbers of its own, for its callers.
    let polled = sh(&story, "hf-poll T-0001 1 1");
    assert_eq!((polled.code, polled.get("EXIT")), (Some(0), "2"));
    go.open();
    assert_eq!(ok(&story, "hf-job wait T-0001").get("STATUS"), "DONE");
    story.over();
}

#[test]
fn waiting_for_any_job_ends_with_the_first_and_says_how_to_continue() {
    let story = TestJobVault::new("");
    let (mut one, mut two) = (story.gate("one"), story.gate("two"));
    story.fire("read x <one");
    story.fire("read x <two; exit 1");
    assert_eq!(
        sh(&story, "hf-job wait T-0001 T-0002 --any --max 1s").expect_exit(1).get("NEXT"),
        "ACTION hf-job wait --any T-0001 T-0002 --max 1"
    );
    one.open();
    let reply = ok(&story, "hf-job wait T-0001 T-0002 --any");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "1 of 2 jobs ended, 0 failed"));
    two.open();
    sh(&story, "hf-job wait T-0001 T-0002 --any");
    assert_eq!(story.poll("T-0002").get("STATUS"), "FAIL");
    story.over();
}

#[test]
fn a_dependent_job_starts_only_if_the_first_succeeds() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go; echo one >>order");
    story.fire_with(&["--after", "T-0001"], "echo two >>order");
    story.fire_with(&["--after", "T-0001", "--after", "T-0002"], "echo three >>order");
    go.open();
    assert_eq!(story.poll("T-0003").get("STATUS"), "DONE");
    assert_eq!(fs::read_to_string(story.dir().join("order")).unwrap(), "one\ntwo\nthree\n");
    story.fire("read x <go; exit 1");
    story.fire_with(&["--after", "T-0004"], "touch ran");
    go.open();
    assert_eq!(story.poll("T-0004").get("STATUS"), "FAIL");
    // It will never be run, and its caller need not wait.
    let reply = story.poll("T-0005");
    let why = "T-0004, which it depends on, was aborted: exit code 1";
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("FAIL", why));
    // Fired after the other failed, it is refused.
    let reply = story.fires(&["--after", "T-0004"], "touch ran").expect_exit(3);
    let why = "T-0004 was aborted, so a task after it could never start; rework T-0004 first";
    assert_eq!((reply.get("REASON"), reply.get("SUM")), ("not_ready", why));
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_task_that_is_no_job_is_not_waited_for_and_has_no_log() {
    let story = TestJobVault::new("");
    ok(&story, "hf-task propose Form");
    // A foreign job system is not asked about a task of this vault.
    story.settle("jobs:\n  check_cmd: /nonexistent {}\n");
    let why = "SUM:T-0001 is a task, but not a job; hf-task show T-0001 shows its state\n";
    assert_eq!(story.poll("T-0001").stdout, format!("EXIT:64\nSTATUS:USAGE\nNEXT:ACTION hf-task show T-0001\n{why}"));
    for line in ["check", "cancel", "log", "wait"] {
        let reply = sh(&story, &format!("hf-job {line} T-0001"));
        let said = if line == "log" { &reply.stderr } else { &reply.stdout };
        assert_eq!(*said, format!("EXIT:2\nSTATUS:USAGE\nNEXT:ACTION hf-task show T-0001\n{why}"), "{line}");
    }
    assert_eq!(state(&story, "T-0001"), "Ready");
    // A mission that names it shows it.
    ok(&story, "hf-task claim T-0001");
    story.run("state", &["start", "Login"]).expect_exit(0);
    story.run("state", &["set", "TASK_ID=T-0001"]).expect_exit(0);
    assert_eq!(ok(&story, "hf-state show").get("NEXT"), "ACTION hf-task show T-0001");
    story.over();
}

#[test]
fn following_a_queued_job_waits_with_it() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire("echo my turn");
    let mut following = story.start("job", &["log", "T-0002", "--follow"]);
    go.open();
    assert_eq!(following.line(), "my turn\n");
    drop(following);
    story.poll("T-0002");
    story.over();
}
