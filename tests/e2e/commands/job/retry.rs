//! Retries: after a signal or with a lost supervisor, by whoever notices, and never beside a living copy.

use std::fs;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::job_fixture::{TestJobVault, kill, lives, waiting};
use crate::support::steps::{count, kinds, ok, sh, state};
use crate::support::test_vault::Reply;

/// A script that counts its runs, reports when it is up, and notices if it runs twice at the same time. Its first runs
/// wait for ever; the last one ends.
fn counting(runs_that_hang: usize) -> String {
    format!(
        "mkdir busy || touch twice; echo run >>ran; trap 'rmdir busy; exit 3' TERM
         if [ $(wc -l <ran) -le {runs_that_hang} ]; then echo up >at; while :; do sleep 0.01; done; fi
         rmdir busy; echo \"run $(wc -l <ran)\""
    )
}

/// Kills a supervisor and its command, so that neither sees the end of the other.
fn lose(story: &TestJobVault, reference: &str) {
    story.lose(reference);
    let _ = fs::remove_dir(story.dir().join("busy"));
}

/// How many times the command ran.
fn runs(story: &TestJobVault) -> usize {
    fs::read_to_string(story.dir().join("ran")).unwrap_or_default().lines().count()
}

/// T21: a job that a signal ended is retried, if it has retries.
#[test]
fn t21_a_job_ended_by_a_signal_is_retried() {
    let story = TestJobVault::new("");
    story.fire_with(&["--retries", "2"], "echo try >>tries; test $(wc -l <tries) = 3 || kill -9 $$; echo third time");
    let reply = story.poll("T-0001");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "third time"), "{:#?}", kinds(&story));
    assert_eq!(["RunStarted", "RunCrashed", "TaskRetrying"].map(|kind| count(&story, kind)), [3, 2, 2]);
    assert_eq!(story.of_kind("RunCrashed")[0]["payload"]["reason"], "signal 9");
    // Without retries the first one is the last, and past them it has failed. Neither is escalated.
    story.fire("kill -9 $$");
    assert_eq!(story.poll("T-0002").get("SUM"), "signal 9");
    story.fire_with(&["--retries", "1"], "kill -9 $$");
    assert_eq!(story.poll("T-0003").get("SUM"), "signal 9; gave up after 1 retry");
    assert_eq!((count(&story, "RunStarted"), count(&story, "EscalationRequired")), (3 + 1 + 2, 0));
    story.over();
}

#[test]
fn a_job_for_an_existing_task_is_retried_as_its_fire_or_its_proposer_says() {
    let story = TestJobVault::new("");
    for (n, (proposed, fired, expected)) in [
        (&[][..], &[][..], 1),
        (&["--retries", "1"], &[], 2),
        (&[], &["--retries", "2"], 3),
        (&["--retries", "3"], &["--retries", "0"], 1),
    ]
    .into_iter()
    .enumerate()
    {
        let task = format!("T-000{}", n + 1);
        story.run("task", &[&["propose", "X"], proposed].concat()).expect_exit(0);
        story.fire_with(&[&["--task", &task], fired].concat(), &format!("echo run >>{task}; exit 75"));
        assert_eq!(story.poll(&task).get("STATUS"), "FAIL", "{task}");
        let ran = fs::read_to_string(story.dir().join(&task)).unwrap();
        assert_eq!(ran.lines().count(), expected, "{proposed:?} {fired:?}");
    }
    story.over();
}

/// T21: a job whose supervisor was killed with it is retried by the next command that notices.
#[test]
fn t21_a_lost_job_is_retried_by_whoever_notices() {
    for look in ["hf-poll T-0001", "hf-job check T-0001", "hf-job list", "hf-watchdog", "hf-job wait T-0001"] {
        let story = TestJobVault::new("");
        let mut at = story.gate("at");
        story.fire_with(&["--retries", "1"], &counting(1));
        at.line();
        lose(&story, "T-0001");
        let reply = sh(&story, look);
        if look == "hf-watchdog" {
            assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("WARNING", "1 finding, 4 actions"), "{reply:#?}");
            assert!(reply.get("ANOMALY").starts_with("JOB_LOST task:"), "{reply:#?}");
        }
        assert_eq!(story.poll("T-0001").get("SUM"), "run 2", "{look}: {:#?}", kinds(&story));
        assert_eq!(["RunStarted", "RunCrashed"].map(|kind| count(&story, kind)), [2, 1]);
        let crashed = &story.of_kind("RunCrashed")[0];
        assert_eq!((&crashed["actor"], &crashed["payload"]["reason"]), (&"core:jobs".into(), &"lost".into()));
        assert!(!story.dir().join("twice").exists());
        story.over();
    }
}

#[test]
fn a_job_that_is_lost_again_is_retried_up_to_its_limit() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    story.fire_with(&["--retries", "2"], &counting(9));
    for run in 1..=3 {
        at.line();
        assert_eq!(runs(&story), run);
        lose(&story, "T-0001");
        if run < 3 {
            assert_eq!(sh(&story, "hf-job check T-0001").expect_exit(0).get("TASK_ID"), "T-0001");
        }
    }
    assert_eq!(
        story.poll("T-0001").stdout,
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:Job was lost with its supervisor; gave up after 2 retries\nLAST5:\n\
         LOGREF:logs/L-0001-3.txt\n"
    );
    assert_eq!(sh(&story, "hf-job check T-0001").expect_exit(1).get("STATUS"), "LOST");
    assert_eq!(["RunStarted", "RunCrashed", "EscalationRequired"].map(|kind| count(&story, kind)), [3, 3, 0]);
    story.over();
}

#[test]
fn a_job_is_not_retried_beside_its_orphan() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    // It ignores the TERM that it gets when its supervisor dies, until there is a file.
    let script = "mkdir busy || touch twice; echo run >>ran
        if [ $(wc -l <ran) = 1 ]; then trap '' TERM; echo up >at; until [ -e end ]; do sleep 0.01; done; fi; rmdir busy";
    story.fire_with(&["--retries", "1"], script);
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    for _ in 0..2 {
        assert_eq!(ok(&story, "hf-job check T-0001").get("STATUS"), "ORPHANED");
        sh(&story, "hf-watchdog").expect_exit(1);
        assert_eq!(story.run("poll", &["T-0001", "1", "1"]).get("SUM"), "Still running, without its supervisor");
    }
    assert!(lives(command));
    assert_eq!((runs(&story), count(&story, "RunStarted")), (1, 1));
    fs::write(story.dir().join("end"), "").unwrap();
    // What it did is unknown, so it is retried.
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!((runs(&story), story.dir().join("twice").exists()), (2, false));
    story.over();
}

#[test]
fn a_lost_job_is_retried_once_however_many_notice() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    story.fire_with(&["--retries", "5"], &counting(1));
    at.line();
    let pollers: Vec<_> = (0..8).map(|_| waiting(&story, "poll", &["T-0001"])).collect();
    lose_while_watched(&story);
    for poller in pollers {
        assert_eq!(Reply::of(poller.wait_with_output().unwrap()).get("SUM"), "run 2");
    }
    assert_eq!((runs(&story), story.dir().join("twice").exists()), (2, false));
    assert_eq!(["RunStarted", "RunCrashed", "TaskRetrying"].map(|kind| count(&story, kind)), [2, 1, 1]);
    story.over();
}

/// Kills the command and its supervisor, with pollers that retry it at once.
fn lose_while_watched(story: &TestJobVault) {
    let [supervisor, command] = story.pids("T-0001");
    kill_process_group(Pid::from_raw(supervisor).unwrap(), Signal::STOP).unwrap();
    kill(command, Signal::KILL);
    fs::remove_dir(story.dir().join("busy")).unwrap();
    kill(supervisor, Signal::KILL);
}

#[test]
fn a_queued_job_with_retries_gets_another_supervisor() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire_with(&["--retries", "2"], "echo my turn");
    for _ in 0..2 {
        kill(story.supervisor("T-0002"), Signal::KILL);
        let reply = ok(&story, "hf-job check T-0002");
        assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("QUEUED", "Waiting for its turn"));
    }
    let replaced = story.supervisor("T-0002");
    assert!(lives(replaced));
    assert_eq!(count(&story, "TaskRetrying"), 0, "its command never ran");
    go.open();
    assert_eq!(story.poll("T-0002").get("SUM"), "my turn");
    // One with a single retry is lost for good the second time.
    story.fire("read x <go");
    story.fire_with(&["--retries", "1"], "touch ran");
    kill(story.supervisor("T-0004"), Signal::KILL);
    ok(&story, "hf-watchdog");
    kill(story.supervisor("T-0004"), Signal::KILL);
    assert_eq!(story.poll("T-0004").get("SUM"), "Job was lost with its supervisor");
    go.open();
    story.poll("T-0003");
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_retry_that_nobody_supervises_is_started_by_the_next_reader() {
    let story = TestJobVault::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire_with(
        &["--retries", "3"],
        "test -e second && { echo done; exit; }; touch second; echo up >at; read x <go; exit 75",
    );
    at.line();
    let good = story.damage();
    go.open();
    story.gone();
    story.mend(&good);
    // The supervisor could not record the end, and is gone.
    assert_eq!(story.poll("T-0001").get("SUM"), "done");
    assert_eq!(["RunStarted", "RunFinished", "RunCrashed"].map(|kind| count(&story, kind)), [2, 2, 0]);
    story.over();
}

#[test]
fn a_retry_runs_as_it_was_fired_and_not_as_its_finder() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    let script = "echo \"$A|$HF_AGENT|$FINDER|$PATH\"; test -e second && exit; touch second; echo up >at; sleep 1000";
    let mut fire = story.command("job");
    fire.env("PATH", "/usr/bin:/bin:/fired").env("HF_AGENT", "builder");
    fire.args(["fire", "--retries", "1", "--env", "A=a b", "--", "sh", "-c", script]);
    Reply::of(fire.output().unwrap()).expect_exit(0);
    at.line();
    lose(&story, "T-0001");
    let mut find = story.command("poll");
    find.env("PATH", "/usr/bin:/bin:/found").env("HF_AGENT", "finder").env("FINDER", "yes").arg("T-0001");
    assert_eq!(Reply::of(find.output().unwrap()).get("STATUS"), "DONE");
    let expected = "a b|builder||/usr/bin:/bin:/fired\n";
    assert_eq!(["logs/L-0001.txt", "logs/L-0001-2.txt"].map(|log| story.log(log)), [expected.as_bytes(); 2]);
    assert_eq!(story.of_kind("RunStarted")[1]["actor"], "agent:builder");
    story.over();
}

#[test]
fn a_lost_job_that_is_cancelled_or_stopped_is_not_retried() {
    for (line, reason) in [("hf-job cancel T-0001", "cancelled"), ("hf-stop harm", "emergency_stop: harm")] {
        let story = TestJobVault::new("");
        let mut at = story.gate("at");
        story.fire_with(&["--retries", "3"], &counting(9));
        at.line();
        lose(&story, "T-0001");
        let reply = ok(&story, line);
        assert!(["CANCELLED", "STOPPED"].contains(&reply.get("STATUS")), "{reply:#?}");
        assert_eq!(story.poll("T-0001").get("SUM"), reason);
        assert_eq!((state(&story, "T-0001").as_str(), runs(&story), count(&story, "RunStarted")), ("Aborted", 1, 1));
        story.over();
    }
}

#[test]
fn a_copy_of_a_vault_runs_nothing() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("echo up >at; read x <go");
    story.fire_with(&["--retries", "9"], "echo run >>ran");
    at.line();
    ok(&story, "hf-backup copy");
    let copy = story.dir().join("copy").display().to_string();
    let looked = story.run("job", &["check", "T-0002", "--vault", &copy]).expect_exit(1);
    assert_eq!(looked.get("STATUS"), "LOST", "{looked:#?}");
    go.open();
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    assert_eq!(runs(&story), 1);
    story.over();
}

#[test]
fn a_check_by_the_watchdog_says_what_a_tick_would_do_and_starts_nothing() {
    for (retries, status) in [("1", "WARNING"), ("0", "ANOMALY")] {
        let story = TestJobVault::new("");
        let mut at = story.gate("at");
        story.fire_with(&["--retries", retries], &counting(1));
        at.line();
        lose(&story, "T-0001");
        let before = story.contents();
        assert_eq!(sh(&story, "hf-watchdog --check").get("STATUS"), status);
        assert!(story.contents() == before && story.processes().is_empty());
        assert_eq!(sh(&story, "hf-watchdog").get("STATUS"), status);
        story.poll("T-0001");
        story.over();
    }
}

/// T26: what a tick recorded about a lost job is counted and listed.
#[test]
fn t26_the_watchdog_counts_what_it_recorded_about_a_lost_job() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    story.fire(&counting(9));
    at.line();
    lose(&story, "T-0001");
    let before = story.events().len();
    let reply = sh(&story, "hf-watchdog").expect_exit(1);
    let recorded = story.events().len() - before;
    assert_eq!((recorded, reply.all("DID").len()), (3, 3), "{reply:#?}");
    assert_eq!(reply.get("SUM"), "1 finding, 3 actions");
    story.over();
}
