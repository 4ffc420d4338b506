//! Jobs while everything is stopped or their project is paused: none is fired, and those in the queue say why they wait.

use std::fs;

use crate::support::job_fixture::{TestJobVault, waiting};
use crate::support::session_fixture::within;
use crate::support::steps::{count, ok, sh, state};
use crate::support::test_vault::Reply;

/// The names of the jobs that have a directory.
fn job_dirs(story: &TestJobVault) -> usize {
    fs::read_dir(story.vault().join("Jobs")).expect("a directory").count()
}

/// T6: while everything is stopped a job is refused, and nothing of it is left to run when the stop is lifted.
#[test]
fn t6_nothing_is_fired_while_everything_is_stopped() {
    let story = TestJobVault::new("");
    ok(&story, "hf-task propose Form");
    story.fire_with(&["--key", "before"], "true");
    story.poll("T-0002");
    ok(&story, "hf-stop harm");
    let before = (story.events().len(), job_dirs(&story));
    for options in [&[][..], &["--task", "T-0001"], &["--after", "T-0001"], &["--destructive"], &["--key", "k"]] {
        let reply = story.fires(options, "touch ran").expect_exit(3);
        assert_eq!(
            ["NEXT", "SUM", "REASON"].map(|key| reply.get(key)),
            ["ASK operator", "everything is stopped: harm", "system_stopped"],
            "{options:?}"
        );
        assert_eq!((story.events().len(), job_dirs(&story)), before, "{options:?}");
    }
    // What was fired before is answered as before.
    assert_eq!(story.fires(&["--key", "before"], "true").expect_exit(0).get("STATUS"), "DUPLICATE");
    ok(&story, "hf-resume --system");
    story.gone();
    assert!(!story.dir().join("ran").exists());
    // The refused key is free.
    assert_eq!(story.fires(&["--key", "k"], "true").expect_exit(0).get("STATUS"), "FIRED");
    story.poll("T-0003");
    story.over();
}

/// T6: the same in a paused project: an operator is refused, an agent is asked to leave.
#[test]
fn t6_nothing_is_fired_in_a_paused_project() {
    let story = TestJobVault::new("");
    ok(&story, "hf-task propose Form");
    ok(&story, "hf-pause look");
    let before = (story.events().len(), job_dirs(&story));
    for line in ["hf-job fire -- touch ran", "hf-job fire --task T-0001 -- touch ran", "hf-job fire --key k -- true"] {
        let reply = sh(&story, line).expect_exit(3);
        assert_eq!(
            ["STATUS", "NEXT", "REASON"].map(|key| reply.get(key)),
            ["REFUSED", "ASK operator", "project_paused"]
        );
        assert!(reply.get("SUM").starts_with("project main has been paused since "), "{reply:#?}");
        let asked = within(&story, &[("HF_AGENT", "a")], line).expect_exit(3);
        assert_eq!((asked.get("STATUS"), asked.get("REASON")), ("EXIT_REQUESTED", "project_paused"), "{line}");
        assert_eq!((story.events().len(), job_dirs(&story)), before, "{line}");
    }
    // Another project goes on.
    assert_eq!(ok(&story, "hf-job fire --project b --create -- true").get("STATUS"), "FIRED");
    story.poll("T-0002");
    ok(&story, "hf-resume");
    story.gone();
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_queued_job_says_that_it_waits_for_the_stop_to_be_lifted() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    story.fire_with(&["--title", "Second"], "touch ran");
    at.line();
    ok(&story, "hf-stop harm");
    assert_eq!(
        story.run("poll", &["T-0002", "1", "1"]).stdout,
        "EXIT:2\nSTATUS:RUNNING\nNEXT:ASK operator\nSUM:Waiting: everything is stopped: harm\n"
    );
    let reply = ok(&story, "hf-job check T-0002");
    assert_eq!(
        ["STATUS", "NEXT", "SUM"].map(|key| reply.get(key)),
        ["QUEUED", "ASK operator", "Waiting: everything is stopped: harm"]
    );
    assert_eq!(
        ok(&story, "hf-job list --running").masked(&story),
        "EXIT:0\nSTATUS:OK\nNEXT:ASK operator\nSUM:1 job; 1 waiting: everything is stopped: harm\nCOUNT:1\n\
         JOB:T-0002 QUEUED logs/L-0002.txt Second\nSTANDING:stopped 2026-01-31T12:00:00Z - by=user:jo harm\n"
    );
    let reply = sh(&story, "hf-job wait T-0002 --max 1s").expect_exit(1);
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("RUNNING", "ASK operator"));
    // A job that the stop ended is not the caller's to mend.
    let reply = story.poll("T-0001");
    assert_eq!(
        ["EXIT", "STATUS", "NEXT", "SUM"].map(|key| reply.get(key)),
        ["1", "FAIL", "ASK operator", "emergency_stop: harm"]
    );
    assert_eq!(sh(&story, "hf-job check T-0001").expect_exit(1).get("NEXT"), "ASK operator");
    // It was accepted before the stop, so it goes on after it.
    assert!(!story.dir().join("ran").exists());
    ok(&story, "hf-resume --system");
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    assert!(story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_queued_job_says_that_it_waits_for_its_project_to_be_resumed() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("echo up >at; read x <go");
    story.fire("touch ran");
    at.line();
    ok(&story, "hf-pause look");
    let reply = story.run("poll", &["T-0002", "1", "1"]);
    // A poll goes on through a pause, and the reply says what it waits for.
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("RUNNING", "ACTION hf-poll T-0002 1 1"));
    assert_eq!(reply.get("SUM"), "Waiting: project main has been paused since 2026-01-31T12:00:00Z: look");
    assert_eq!(story.run("poll", &["T-0001", "1", "1"]).get("SUM"), "Still running");
    go.open();
    let poller = waiting(&story, "poll", &["T-0002"]);
    assert_eq!((story.poll("T-0001").get("STATUS"), state(&story, "T-0002").as_str()), ("DONE", "Ready"));
    ok(&story, "hf-resume");
    assert_eq!(Reply::of(poller.wait_with_output().unwrap()).get("STATUS"), "DONE");
    story.over();
}

#[test]
fn a_job_that_waits_for_approval_sends_its_caller_to_the_operator() {
    let story = TestJobVault::new("");
    story.fires(&["--destructive"], "echo gone").expect_exit(3);
    assert_eq!(
        story.run("poll", &["T-0001", "1", "1"]).stdout,
        "EXIT:2\nSTATUS:RUNNING\nNEXT:ASK operator\nSUM:Waiting for an operator's approval\n"
    );
    assert_eq!(ok(&story, "hf-job check T-0001").get("NEXT"), "ASK operator");
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(story.poll("T-0001").get("SUM"), "gone");
    assert_eq!(count(&story, "RunStarted"), 1);
    story.over();
}

#[test]
fn a_refused_fire_leaves_no_trace_of_a_task_that_somebody_holds() {
    let story = TestJobVault::new("");
    ok(&story, "hf-task propose Form");
    ok(&story, "hf-task claim T-0001 --actor agent:a");
    assert_eq!(story.fires(&["--task", "T-0001"], "true").expect_exit(3).code, Some(3));
    assert_eq!(job_dirs(&story), 0);
    ok(&story, "hf-job list");
    ok(&story, "hf-watchdog");
    assert_eq!(state(&story, "T-0001"), "Assigned");
    story.over();
}
