//! How jobs end: timeouts, retries, cancellation and stops.

use rustix::process::Signal;

use crate::support::job_fixture::{TestJobVault, kill, lives};
use crate::support::steps::{count, kinds, kinds_since, ok, sh, state};

#[test]
fn a_timed_out_job_is_killed_with_everything_it_started() {
    let story = TestJobVault::new("");
    let before = kinds(&story).len();
    story.fire_with(&["--timeout", "1s"], "sleep 1000 & sleep 1000");
    let reply = story.poll("T-0001");
    assert_eq!(reply.get("STATUS"), "FAIL");
    assert!(reply.get("SUM").starts_with("timeout"), "{reply:#?}");
    assert!(kinds_since(&story, before).contains(&"RunTimedOut".to_owned()));
    story.over();
}

#[test]
fn a_transient_failure_is_retried_as_another_run_of_the_same_task() {
    let story = TestJobVault::new("jobs:\n  transient_exit_codes: [75, 76]\n  transient_signals: [10]\n");
    let script = "echo try >>tries; case $(wc -l <tries) in 1) exit 76;; 2) kill -10 $$;; 3) echo third time;; esac";
    story.fire_with(&["--retries", "2"], script);
    let reply = story.poll("T-0001");
    assert_eq!(reply.stdout, "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:third time\n", "{:#?}", kinds(&story));
    let logs = ["logs/L-0001.txt", "logs/L-0001-2.txt", "logs/L-0001-3.txt"];
    assert_eq!(logs.map(|log| story.log(log).len()), [0, 0, 11]);
    assert_eq!(
        ["RunStarted", "RunFinished", "RunCrashed", "TaskRetrying"].map(|kind| count(&story, kind)),
        [3, 2, 1, 2]
    );
    // Past its tries it has failed, and without tries at the first.
    story.fire_with(&["--retries", "1"], "exit 75");
    assert_eq!(story.poll("T-0002").get("STATUS"), "FAIL");
    assert_eq!(story.poll("T-0002").get("LOGREF"), "logs/L-0002-2.txt");
    story.fire("exit 75");
    assert_eq!(story.poll("T-0003").get("LOGREF"), "logs/L-0003.txt");
    // What is not listed is never tried again.
    story.fire_with(&["--retries", "5"], "exit 1");
    story.fire_with(&["--retries", "5"], "kill -9 $$");
    assert_eq!(story.poll("T-0004").get("SUM"), "exit 1");
    assert_eq!(story.poll("T-0005").get("STATUS"), "FAIL");
    assert_eq!(count(&story, "RunStarted"), 3 + 2 + 1 + 1 + 1);
    story.over();
}

#[test]
fn a_cancelled_job_is_killed_with_everything_it_started() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n  kill_grace: 1\n");
    let mut at = story.gate("at");
    story.fire("sleep 1000 & echo up >at; sleep 1000");
    story.fire("touch ran");
    at.line();
    assert_eq!(
        ok(&story, "hf-job cancel T-0002").masked(&story),
        "EXIT:0\nSTATUS:CANCELLED\nNEXT:NONE\nSUM:cancelled\nTASK_ID:T-0002\nSTATE:Aborted\nLOGREF:NONE\n"
    );
    assert_eq!(sh(&story, "hf-job cancel T-0001 --actor agent:other").expect_exit(3).get("REASON"), "not_holder");
    assert_eq!(
        ok(&story, "hf-job cancel T-0001").masked(&story),
        "EXIT:0\nSTATUS:CANCELLED\nNEXT:NONE\nSUM:cancelled\nTASK_ID:T-0001\nRUN_ID:<ulid>\nSTATE:Aborted\n\
         LOGREF:logs/L-0001.txt\n"
    );
    story.gone();
    assert!(!story.dir().join("ran").exists());
    assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "DUPLICATE");
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    story.fire("true");
    story.poll("T-0003");
    assert_eq!(ok(&story, "hf-job cancel T-0003").get("STATUS"), "DUPLICATE");
    assert_eq!(state(&story, "T-0003"), "Succeeded");
    // One that does not listen.
    story.fire("trap '' TERM; echo up >at; while :; do sleep 1000; done");
    at.line();
    assert_eq!(ok(&story, "hf-job cancel T-0004").get("STATUS"), "CANCELLED");
    story.over();
}

#[test]
fn a_stop_ends_every_job_and_reports_none_left() {
    let story = TestJobVault::new("jobs:\n  kill_grace: 1\n  max_parallel: 2\n");
    let mut at = story.gate("at");
    story.fire("sleep 1000 & echo up >at; wait");
    story.fire("trap '' TERM; echo up >at; while :; do sleep 1000; done");
    story.fire("touch ran");
    at.line();
    at.line();
    assert_eq!(
        ok(&story, "hf-stop fire").stdout,
        "EXIT:0\nSTATUS:STOPPED\nNEXT:ASK operator\nSUM:everything is stopped: fire\nDRAINED:yes\n\
         STANDING:stopped 2026-01-31T12:00:00Z - by=user:jo fire\n"
    );
    assert!(["T-0001", "T-0002"].iter().all(|job| !lives(story.pids(job)[1])));
    assert_eq!([1, 2].map(|n| story.poll(&format!("T-000{n}")).get("SUM").to_owned()), ["emergency_stop: fire"; 2]);
    // What waited waits on, and begins when a person says so.
    assert_eq!(story.run("poll", &["T-0003", "1", "1"]).get("STATUS"), "RUNNING");
    assert!(!story.dir().join("ran").exists());
    ok(&story, "hf-resume --system");
    ok(&story, "hf-job wait T-0003");
    assert!(story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_stop_reaches_a_job_even_if_the_log_is_not_writable() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    at.line();
    let command = story.pids("T-0001")[1];
    let good = story.damage();
    let reply = sh(&story, "hf-stop fire");
    assert_eq!((reply.get("STATUS"), reply.get("DRAINED")), ("STOPPED_UNRECORDED", "yes"), "{reply:#?}");
    assert!(!lives(command));
    story.gone();
    story.mend(&good);
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    assert_eq!(["EmergencyStopIssued", "RunCrashed", "TaskAborted"].map(|kind| count(&story, kind)), [1, 1, 1]);
    story.over();
}

#[test]
fn a_cancelled_job_is_killed_even_if_the_log_is_not_writable() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    at.line();
    let good = story.damage();
    assert_eq!(sh(&story, "hf-job cancel T-0001").expect_exit(4).get("STATUS"), "CORRUPT");
    story.gone();
    story.mend(&good);
    let reply = story.poll("T-0001");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("FAIL", "cancelled"));
    assert_eq!(story.of_kind("TaskAborted")[0]["actor"], "user:jo");
    story.over();
}

#[test]
fn a_terminated_supervisor_ends_its_job_first_and_records_it() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let mut at = story.gate("at");
    story.fire_with(&["--retries", "3"], "echo up >at; sleep 1000");
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    kill(supervisor, Signal::TERM);
    assert!(!lives(command));
    let reply = story.poll("T-0001");
    assert_eq!((reply.get("STATUS"), count(&story, "RunCrashed"), count(&story, "RunStarted")), ("FAIL", 1, 1));
    story.over();
}

#[test]
fn a_stop_ends_an_orphan_too() {
    let story = TestJobVault::new("jobs:\n  kill_grace: 1\n");
    let mut at = story.gate("at");
    story.fire("trap '' TERM; echo up >at; while :; do sleep 1000; done");
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    assert_eq!(ok(&story, "hf-stop fire").get("DRAINED"), "yes");
    assert!(!lives(command));
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    story.over();
}

#[test]
fn a_job_whose_task_is_aborted_stops_running() {
    let story = TestJobVault::new("");
    let mut begun = story.gate("begun");
    story.fire("echo yes >begun; sleep 1000");
    begun.line();
    ok(&story, "hf-task abort T-0001 --reason No");
    assert_eq!(story.poll("T-0001").get("SUM"), "No");
    story.gone();
    story.over();
}
