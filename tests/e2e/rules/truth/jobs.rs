//! Jobs: what was started is known to every reader, for as long as one of its processes lives.

use std::fs;

use rustix::process::Signal;

use super::{because, problems};
use crate::support::job_fixture::{Gate, TestJobVault, kill, lives};
use crate::support::session_fixture::within;
use crate::support::steps::{approved, held, ok, refuses, sh, state};
use crate::support::test_vault::Reply;

/// A command that goes on when its supervisor dies, which sends it TERM, and reports that it runs.
const STUBBORN: &str = "trap '' TERM; echo up >at; while :; do sleep 1000; done";
/// The problem that hf-status has with such a job.
const ORPHAN: &str = "job T-0001 it runs without its supervisor do=hf-job cancel T-0001";

/// T-0001, whose command goes on without its supervisor. Returns the process of the command, too.
fn orphaned(script: &str) -> (TestJobVault, i32) {
    let story = TestJobVault::new("jobs:\n  kill_grace: 1\n");
    ok(&story, "hf-watchdog");
    let mut at = story.gate("at");
    story.fire(script);
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    (story, command)
}

/// Whether a project is drained, and what is left.
fn drained(reply: &Reply) -> (&str, Vec<&str>) {
    (reply.get("DRAINED"), reply.all("LEFT"))
}

#[test]
fn a_command_for_a_task_that_its_caller_holds_is_refused_and_not_started() {
    let story = TestJobVault::new("");
    held(&story, "agent:x");
    let line = "hf-job fire --task T-0001 --actor agent:x -- touch ran";
    let why = "T-0001 is held by agent:x; --task needs a task that nobody holds; fire the command without --task";
    let reply = refuses(&story, line, 3, why);
    assert_eq!((reply.get("NEXT"), reply.get("REASON")), ("NONE", "illegal_transition"));
    story.gone();
    assert!(!story.dir().join("ran").exists());
    // The task is still its holder's.
    ok(&story, "hf-task start T-0001 --actor agent:x");
    ok(&story, "hf-task succeed T-0001 --actor agent:x");
    story.over();
}

#[test]
fn a_task_that_a_job_does_is_a_job_for_every_reader() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    ok(&story, "hf-task propose Form");
    story.fire_with(&["--task", "T-0001", "--actor", "agent:x"], "read x <go");
    assert_eq!(ok(&story, "hf-job check T-0001").get("STATUS"), "RUNNING");
    assert!(ok(&story, "hf-job list").get("JOB").starts_with("T-0001 RUNNING"));
    assert_eq!(drained(&ok(&story, "hf-pause look")), ("no", vec!["T-0001"]));
    go.open();
    story.gone();
    assert_eq!(drained(&ok(&story, "hf-pause --wait 9s")), ("yes", vec![]));
    story.over();
}

/// Aborts the task of a job without waiting for the end of its processes, as `hf-task abort` would.
const ABORT: &str = "hf-append TaskAborted --subject T-0001";

#[test]
fn a_project_is_not_drained_while_the_command_of_an_aborted_job_lives() {
    let story = TestJobVault::new("jobs:\n  kill_grace: 600\n");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("trap '' TERM; echo up >at; read x <go");
    at.line();
    ok(&story, ABORT);
    assert_eq!(drained(&ok(&story, "hf-pause look")), ("no", vec!["T-0001"]));
    assert_eq!(drained(&ok(&story, "hf-pause --archive main over --yes")), ("no", vec!["T-0001"]));
    go.open();
    story.gone();
    assert_eq!(drained(&ok(&story, "hf-pause --archive main over --yes")), ("yes", vec![]));
}

#[test]
fn the_watchdog_names_a_job_that_runs_without_its_supervisor() {
    let (story, _) = orphaned(STUBBORN);
    for line in ["hf-watchdog --check", "hf-watchdog", "hf-watchdog"] {
        let reply = sh(&story, line).expect_exit(1);
        assert_eq!(reply.get("STATUS"), "ANOMALY", "{line}");
        let anomaly = reply.get("ANOMALY");
        assert!(anomaly.starts_with("JOB_ORPHANED task:") && anomaly.contains(" error "), "{anomaly}");
        assert_eq!(problems(&story), [ORPHAN]);
    }
    assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "CANCELLED");
    ok(&story, "hf-watchdog");
    story.over();
}

#[test]
fn a_job_that_outlives_its_task_is_a_problem_until_it_is_cancelled() {
    for ending in [ABORT, "hf-pause --archive main over --yes"] {
        let (story, command) = orphaned(STUBBORN);
        ok(&story, ABORT);
        sh(&story, ending);
        let lines = problems(&story);
        assert!(lines.iter().any(|line| line == ORPHAN), "{ending}: {lines:#?}");
        assert_eq!(because(&story, "T-0001").last().expect("one"), "T-0001: it runs without its supervisor");
        assert!(ok(&story, "hf-job list --running").get("JOB").starts_with("T-0001 ORPHANED"));
        for line in ["hf-watchdog --check", "hf-watchdog"] {
            assert_eq!(sh(&story, line).expect_exit(1).get("STATUS"), "ANOMALY", "{ending}: {line}");
        }
        assert_eq!(drained(&ok(&story, "hf-pause --archive main over --yes")), ("no", vec!["T-0001"]));
        // Nobody but who fired it, or an operator, may end it.
        let other = within(&story, &[("HF_AGENT", "y")], "hf-job cancel T-0001");
        assert_ne!(other.get("STATUS"), "CANCELLED");
        assert!(lives(command));
        let reply = ok(&story, "hf-job cancel T-0001");
        assert_eq!((reply.get("STATUS"), lives(command)), ("CANCELLED", false));
        assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "DUPLICATE");
        assert_eq!(problems(&story), [""; 0]);
        assert_eq!(drained(&ok(&story, "hf-pause --archive main over --yes")), ("yes", vec![]));
        story.over();
    }
}

#[test]
fn a_stop_ends_a_job_that_outlived_its_task_and_what_left_its_session() {
    for aborted in [true, false] {
        let (story, _) = orphaned("setsid sh -c 'echo up >at; exec sleep 1000' & sleep 1000");
        if aborted {
            ok(&story, ABORT);
        }
        assert_eq!(problems(&story), [ORPHAN]);
        assert_eq!(drained(&ok(&story, "hf-stop harm")), ("yes", vec![]), "{aborted}");
        story.gone();
        ok(&story, "hf-resume --system");
        assert_eq!(problems(&story), [""; 0]);
        story.over();
    }
}

#[test]
fn nothing_is_kept_about_the_processes_of_a_job_that_has_ended() {
    let story = TestJobVault::new("");
    for script in ["true", "exit 1", "kill -9 $$"] {
        story.fire(script);
    }
    for task in ["T-0001", "T-0002", "T-0003"] {
        story.poll(task);
    }
    story.gone();
    let running = story.vault().join("Akashic/running");
    assert_eq!(fs::read_dir(&running).expect("a directory").count(), 0);
    // One whose end nobody saw is forgotten by the next tick.
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    at.line();
    story.lose("T-0004");
    sh(&story, "hf-watchdog").expect_exit(1);
    ok(&story, "hf-watchdog");
    assert_eq!(fs::read_dir(&running).expect("a directory").count(), 0);
    story.over();
}

#[test]
fn a_job_in_the_queue_whose_requirement_was_blocked_waits_for_an_approval() {
    let story = TestJobVault::new("governance:\n  max_concurrent_tasks: 1\n  max_oscillations: 0\n");
    approved(&story);
    ok(&story, "hf-task propose Form --requirement REQ-0001");
    ok(&story, "hf-task claim T-0001 --actor agent:a");
    ok(&story, "hf-task start T-0001 --actor agent:a");
    fs::write(story.dir().join("result"), "one").expect("a file");
    ok(&story, "hf-artifact put result --for T-0001 --actor agent:a");
    story.fire_with(&["--requirement", "REQ-0001"], "true");
    assert_eq!(ok(&story, "hf-job check T-0002").get("SUM"), "Waiting for its turn");
    ok(&story, "hf-artifact invalidate ART-0001 --reason bad");
    assert_eq!((state(&story, "REQ-0001"), state(&story, "T-0002")), ("Blocked".to_owned(), "Ready".to_owned()));
    for line in ["hf-job check T-0002", "hf-poll T-0002 1 1", "hf-job wait T-0002 --max 1s"] {
        let reply = sh(&story, line);
        assert_eq!(reply.get("NEXT"), "ASK operator", "{line}");
        if !line.contains("wait") {
            assert_eq!(reply.get("SUM"), "Waiting for its requirement to be approved", "{line}");
        }
    }
    ok(&story, "hf-decide approve DEC-0002");
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    story.over();
}

#[test]
fn a_job_that_lost_its_supervisor_while_it_waited_holds_up_nobody() {
    let story = TestJobVault::new("governance:\n  max_concurrent_tasks: 1\n");
    // Nothing but the approval is missing when its supervisor dies.
    let fired = story.fires(&["--destructive", "--retries", "2"], "true");
    assert_eq!(fired.get("STATUS"), "APPROVAL_REQUIRED");
    kill(story.supervisor("T-0001"), Signal::KILL);
    story.gone();
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(state(&story, "T-0001"), "Ready");
    story.fire("true");
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    // It has not lost its own turn: whoever notices starts it again.
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    story.over();
}

/// Who aborted a task, by the log and by its explanation.
fn aborted_by(story: &TestJobVault, task: &str) -> (String, String) {
    let aborted = story.of_kind("TaskAborted").remove(0);
    let said = because(story, task).remove(0);
    let said = said.split_once(" by ").expect("an actor").1.to_owned();
    (aborted["actor"].as_str().expect("an actor").to_owned(), said)
}

#[test]
fn a_cancelled_job_was_aborted_by_who_cancelled_it() {
    // While it runs, while it waits, and after its supervisor was killed.
    type Stage = fn(&TestJobVault, &mut Gate);
    let stages: [(&[&str], Stage); 3] = [
        (&[], |_, at| drop(at.line())),
        (&["--after", "T-0001"], |_, _| {}),
        (&[], |story, at| {
            at.line();
            kill(story.pids("T-0002")[0], Signal::KILL);
        }),
    ];
    for (n, (options, reach)) in stages.into_iter().enumerate() {
        for (canceller, by) in [("", "user:jo"), (" --actor agent:x", "agent:x")] {
            let story = TestJobVault::new("jobs:\n  kill_grace: 1\n");
            let mut at = story.gate("at");
            ok(&story, "hf-task propose First");
            story.fire_with(&[options, &["--actor", "agent:x"]].concat(), "trap '' TERM; echo up >at; exec sleep 1000");
            reach(&story, &mut at);
            ok(&story, &format!("hf-job cancel T-0002{canceller}"));
            assert_eq!(aborted_by(&story, "T-0002"), (by.to_owned(), format!("{by}: cancelled")), "{n}");
            story.over();
        }
    }
}

#[test]
fn who_fired_a_command_for_a_task_of_somebody_else_may_cancel_it() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    ok(&story, "hf-task propose Form --actor agent:y");
    story.fire_with(&["--task", "T-0001", "--actor", "agent:x"], "echo up >at; sleep 1000");
    at.line();
    let reply = sh(&story, "hf-job cancel T-0001 --actor agent:y").expect_exit(3);
    assert_eq!(reply.get("SUM"), "T-0001 was fired by agent:x");
    ok(&story, "hf-job cancel T-0001 --actor agent:x");
    assert_eq!(aborted_by(&story, "T-0001").0, "agent:x");
    story.over();
}

#[test]
fn a_wait_is_for_jobs_and_keeps_its_limit() {
    let story = TestJobVault::new("");
    ok(&story, "hf-task propose Form");
    let mut go = story.gate("go");
    story.fire("read x <go");
    let reply = sh(&story, "hf-job wait T-0002 T-0001 --max 1s").expect_exit(2);
    assert_eq!(reply.get("SUM"), "T-0001 is a task, but not a job; hf-task show T-0001 shows its state");
    assert_eq!(reply.get("NEXT"), "ACTION hf-task show T-0001");
    for (line, next) in [
        ("hf-job wait T-0002 --max 1s", "ACTION hf-job wait T-0002 --max 1"),
        ("hf-job wait --any T-0002 --max 1s", "ACTION hf-job wait --any T-0002 --max 1"),
    ] {
        assert_eq!(sh(&story, line).expect_exit(1).get("NEXT"), next);
    }
    go.open();
    story.poll("T-0002");
    story.over();
}

#[test]
fn a_job_that_ended_before_its_command_ran_has_no_log() {
    type Ending = fn(&TestJobVault);
    let endings: [(&str, Ending); 2] = [
        ("LOST", |story| kill(story.supervisor("T-0002"), Signal::KILL)),
        ("FAIL", |story| drop(ok(story, "hf-job cancel T-0002"))),
    ];
    for (standing, end) in endings {
        let story = TestJobVault::new("");
        ok(&story, "hf-task propose First");
        story.fire_with(&["--after", "T-0001"], "true");
        end(&story);
        assert_eq!(story.poll("T-0002").get("LOGREF"), "NONE");
        assert_eq!(sh(&story, "hf-job check T-0002").get("LOGREF"), "NONE");
        assert_eq!(ok(&story, "hf-job list").get("JOB"), format!("T-0002 {standing} NONE sh -c true"));
        story.over();
    }
}
