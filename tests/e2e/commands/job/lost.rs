//! Jobs whose supervisor died.

use std::fs::{self};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::json;

use crate::support::job_fixture::{TestJobVault, ends, kill, lives, waiting};
use crate::support::steps::{count, ok, sh, state};
use crate::support::test_vault::Reply;

#[test]
fn an_unrecorded_end_is_recorded_by_the_next_reader() {
    for (script, said) in [("echo all is well", "all is well"), ("echo not well; exit 1", "exit 1: not well")] {
        for look in ["poll", "check", "list"] {
            let story = TestJobVault::new("");
            let (mut at, mut go) = (story.gate("at"), story.gate("go"));
            story.fire(&format!("echo up >at; read x <go; {script}"));
            at.line();
            let good = story.damage();
            go.open();
            story.gone();
            story.mend(&good);
            assert_eq!(count(&story, "RunFinished"), 0);
            let reply = match look {
                "poll" => story.poll("T-0001"),
                "check" => sh(&story, "hf-job check T-0001"),
                _ => {
                    ok(&story, "hf-job list");
                    story.poll("T-0001")
                }
            };
            assert_eq!(reply.get("SUM"), said, "{look}");
            assert_eq!(count(&story, "RunFinished"), 1, "{look}");
            story.poll("T-0001");
            assert_eq!(count(&story, "RunFinished"), 1, "once");
            story.over();
        }
    }
}

#[test]
fn an_orphan_without_its_main_process_is_told_as_what_it_is() {
    let story = TestJobVault::new("jobs:\n  kill_grace: 1\n");
    let mut at = story.gate("at");
    story.fire("setsid sh -c 'echo $$ >at; exec sleep 1000' & exec sleep 1000");
    let rest = at.line().parse().expect("a pid");
    let [supervisor, main] = story.pids("T-0001");
    let process = pidfd_open(Pid::from_raw(main).unwrap(), PidfdFlags::empty()).expect("it lives");
    kill(supervisor, Signal::KILL);
    ends(main, &process);
    let sum = "Its supervisor and its main process are gone; processes that it started are still running";
    assert_eq!(
        story.run("poll", &["T-0001", "1", "1"]).stdout,
        format!("EXIT:2\nSTATUS:RUNNING\nNEXT:ASK operator\nSUM:{sum}\n")
    );
    let reply = ok(&story, "hf-job check T-0001");
    assert_eq!((reply.get("STATUS"), reply.get("NEXT"), reply.get("SUM")), ("ORPHANED", "ASK operator", sum));
    assert!(lives(rest));
    assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "CANCELLED");
    assert!(!lives(rest));
    story.over();
}

#[test]
fn a_killed_supervisor_leaves_an_orphan_that_never_runs_twice_and_can_be_cancelled() {
    let story = TestJobVault::new("jobs:\n  kill_grace: 1\n");
    let mut at = story.gate("at");
    // The command gets TERM when its supervisor dies, and ignores it.
    story.fire_with(&["--retries", "3"], "trap '' TERM; echo up >>ran; echo up >at; while :; do sleep 1000; done");
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    assert!(lives(command));
    assert_eq!(
        ok(&story, "hf-job check T-0001").masked(&story),
        "EXIT:0\nSTATUS:ORPHANED\nNEXT:ACTION hf-poll T-0001\nSUM:Still running, without its supervisor\n\
         TASK_ID:T-0001\nRUN_ID:<ulid>\nSTATE:Running\nLOGREF:logs/L-0001.txt\n"
    );
    let reply = story.run("poll", &["T-0001", "1", "1"]);
    assert_eq!(
        (reply.get("EXIT"), reply.get("STATUS"), reply.get("NEXT")),
        ("2", "RUNNING", "ACTION hf-poll T-0001 1 1")
    );
    assert_eq!(count(&story, "RunStarted"), 1);
    assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "CANCELLED");
    assert!(!lives(command));
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    assert_eq!(fs::read_to_string(story.dir().join("ran")).unwrap(), "up\n");
    story.over();
}

#[test]
fn an_orphan_is_waited_for_and_ends_as_lost() {
    let story = TestJobVault::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("trap '' TERM; echo up >at; read x <go");
    at.line();
    kill(story.pids("T-0001")[0], Signal::KILL);
    // A wait does not come back before its time while the command lives.
    let waiter = waiting(&story, "job", &["wait", "T-0001"]);
    let poller = waiting(&story, "poll", &["T-0001"]);
    go.open();
    for child in [waiter, poller] {
        let reply = Reply::of(child.wait_with_output().unwrap());
        assert_eq!((reply.get("EXIT"), reply.get("STATUS")), ("1", "FAIL"), "{reply:#?}");
    }
    assert_eq!(story.of_kind("RunCrashed")[0]["payload"]["reason"], "lost");
    story.over();
}

#[test]
fn a_job_with_no_processes_left_is_lost() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    at.line();
    story.lose("T-0001");
    assert_eq!(
        story.poll("T-0001").stdout,
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:Job was lost with its supervisor\nLAST5:\nLOGREF:logs/L-0001.txt\n"
    );
    assert_eq!(sh(&story, "hf-job check T-0001").get("STATUS"), "LOST");
    assert_eq!((count(&story, "RunCrashed"), count(&story, "RunStarted")), (1, 1));
    assert_eq!(story.of_kind("RunCrashed")[0]["actor"], "core:jobs");
    story.over();
}

#[test]
fn a_job_from_another_boot_is_lost_even_if_its_pid_was_reused() {
    let story = TestJobVault::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("trap '' TERM; echo up >at; read x <go");
    at.line();
    kill(story.pids("T-0001")[0], Signal::KILL);
    // As if the machine had been rebooted, and another process had its pid.
    story.forge_record("T-0001", "identity.json", |identity| identity["boot_id"] = json!("another"));
    assert_eq!(story.poll("T-0001").get("SUM"), "Job was lost with its supervisor");
    assert_eq!((count(&story, "RunCrashed"), state(&story, "T-0001").as_str()), (1, "Aborted"));
    go.open();
    story.over();
}

#[test]
fn a_queued_job_whose_supervisor_is_killed_is_lost() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire("touch ran");
    kill(story.supervisor("T-0002"), Signal::KILL);
    let reply = story.poll("T-0002");
    assert_eq!((reply.get("EXIT"), reply.get("SUM")), ("1", "Job was lost with its supervisor"));
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert!(!story.dir().join("ran").exists());
    story.over();
}
