//! Jobs that run, wait, fail or are approved while their project is paused.

use rustix::process::Signal;

use crate::support::job_fixture::{TestJobVault, kill, until_recorded};
use crate::support::session_fixture::{logged_in, within};
use crate::support::steps::{count, keeps_the_rules, ok, state};
use crate::support::test_vault::{Reply, TestVault};
use crate::support::watchdog_fixture::at;

#[test]
fn a_running_job_finishes_and_no_new_one_starts() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go; echo one");
    story.fire_with(&["--after", "T-0001"], "echo two");
    let paused = ok(&story, "hf-pause look");
    assert_eq!((paused.get("DRAINED"), paused.get("LEFT")), ("no", "T-0001"));
    assert_eq!(story.fires(&["--project", "b", "--create"], "echo three").get("STATUS"), "FIRED");
    assert_eq!(story.poll("T-0003").get("STATUS"), "DONE");
    go.open();
    assert_eq!(story.poll("T-0001").get("SUM"), "one");
    let waited = ok(&story, "hf-pause --wait");
    assert_eq!((waited.get("DRAINED"), count(&story, "PauseDrained")), ("yes", 1));
    assert_eq!(state(&story, "T-0002"), "Ready");
    assert_eq!(count(&story, "RunStarted"), 2);
    ok(&story, "hf-resume");
    assert_eq!(story.poll("T-0002").get("SUM"), "two");
    story.over();
}

#[test]
fn waiting_for_a_pause_to_drain_ends_with_the_job() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go");
    let waiter = crate::support::job_fixture::waiting(&story, "pause", &["look", "--wait", "--max", "60s"]);
    until_recorded(&story, "ProjectPaused");
    go.open();
    let reply = Reply::of(waiter.wait_with_output().unwrap()).expect_exit(0);
    assert_eq!(["STATUS", "DRAINED"].map(|key| reply.get(key)), ["PAUSED", "yes"]);
    assert_eq!(reply.all("LEFT"), [""; 0]);
    assert_eq!(count(&story, "PauseDrained"), 1);
    story.over();
}

#[test]
fn waiting_for_a_pause_to_drain_records_a_job_that_died_with_its_supervisor() {
    let story = TestJobVault::new("");
    let mut at_work = story.gate("at");
    story.fire("echo x >at; exec sleep 600");
    at_work.line();
    ok(&story, "hf-pause look");
    let [supervisor, main] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    // It goes with its supervisor; if it has not yet, it is helped.
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(main).unwrap(), Signal::KILL);
    story.gone();
    let reply = ok(&story, "hf-pause --wait --max 20s");
    assert_eq!(reply.get("DRAINED"), "yes");
    assert_eq!((state(&story, "T-0001").as_str(), count(&story, "PauseDrained")), ("Aborted", 1));
    story.over();
}

#[test]
fn waiting_for_a_pause_to_drain_ends_expired_sessions() {
    let mut hive = TestVault::new();
    logged_in(&hive, "a", "main");
    logged_in(&hive, "b", "other");
    ok(&hive, "hf-pause look");
    let reply = at(&mut hive, 301, "hf-pause --wait").expect_exit(0);
    assert_eq!(reply.get("DRAINED"), "yes");
    assert_eq!((count(&hive, "SessionExpired"), count(&hive, "PauseDrained")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn a_job_that_fails_during_a_pause_is_retried_after_it() {
    let story = TestJobVault::new("jobs:\n  transient_exit_codes: [75]\n");
    let (mut at_work, mut go) = (story.gate("at"), story.gate("go"));
    story.fire_with(&["--retries", "2"], "echo x >at; read x <go; test -e second && exit 0; touch second; exit 75");
    at_work.line();
    ok(&story, "hf-pause look");
    go.open();
    // The first try is over, and with it everything is at rest.
    let reply = ok(&story, "hf-pause --wait --max 30s");
    assert_eq!((reply.get("DRAINED"), state(&story, "T-0001").as_str()), ("yes", "Assigned"));
    assert_eq!((count(&story, "RunStarted"), count(&story, "TaskRetrying")), (1, 1));
    keeps_the_rules(&story);
    // What waits for the resume holds nobody up, and stays if a watchdog looks.
    ok(&story, "hf-watchdog");
    assert_eq!(state(&story, "T-0001"), "Assigned");
    ok(&story, "hf-resume");
    at_work.line();
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(count(&story, "RunStarted"), 2);
    story.over();
}

#[test]
fn a_job_queued_before_the_pause_stays_queued() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire("echo two");
    ok(&story, "hf-pause look");
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(ok(&story, "hf-pause --wait --max 30s").get("DRAINED"), "yes");
    assert_eq!(state(&story, "T-0002"), "Ready");
    // A job of another project does not wait for it.
    story.fire_with(&["--project", "b", "--create"], "echo three");
    assert_eq!(story.poll("T-0003").get("SUM"), "three");
    ok(&story, "hf-resume");
    assert_eq!(story.poll("T-0002").get("SUM"), "two");
    story.over();
}

#[test]
fn a_destructive_job_approved_during_a_pause_waits_for_the_resume() {
    let story = TestJobVault::new("");
    assert_eq!(story.fires(&["--destructive"], "echo gone").expect_exit(3).get("STATUS"), "APPROVAL_REQUIRED");
    ok(&story, "hf-pause look");
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!((state(&story, "T-0001").as_str(), count(&story, "RunStarted")), ("Ready", 0));
    ok(&story, "hf-resume");
    assert_eq!(story.poll("T-0001").get("SUM"), "gone");
    story.over();
}

#[test]
fn a_job_waiting_in_a_paused_project_can_be_cancelled_by_a_person() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n");
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire("touch ran");
    ok(&story, "hf-pause look");
    ok(&story, "hf-job cancel T-0002");
    assert_eq!(state(&story, "T-0002"), "Aborted");
    ok(&story, "hf-resume");
    go.open();
    story.gone();
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn the_end_of_an_agents_job_is_recorded_during_a_pause() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    let session = logged_in(&story, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    let mut fire = story.command("job");
    fire.envs(shell).args(["fire", "--", "sh", "-c", "read x <go; echo done"]);
    Reply::of(fire.output().unwrap()).expect_exit(0);
    ok(&story, "hf-pause look");
    within(&story, &shell, "hf-session logout").expect_exit(0);
    assert_eq!(count(&story, "PauseDrained"), 0, "its job runs");
    go.open();
    assert_eq!(within(&story, &shell[..1], "hf-poll T-0001").get("SUM"), "done");
    assert_eq!((state(&story, "T-0001").as_str(), count(&story, "PauseDrained")), ("Succeeded", 1));
    story.over();
}

#[test]
fn an_archived_projects_job_finishes_and_its_queued_jobs_are_aborted() {
    let story = TestJobVault::new("jobs:\n  transient_exit_codes: [75]\n");
    let mut go = story.gate("go");
    logged_in(&story, "a", "main");
    story.approved("requirement:r", "Login");
    story.fire_with(&["--retries", "3"], "read x <go; exit 75");
    story.fire_with(&["--requirement", "requirement:r"], "read x <go; echo built");
    story.fire_with(&["--after", "T-0001"], "touch ran");
    story.fire_with(&["--after", "T-0002"], "touch ran");
    ok(&story, "hf-task propose Held");
    ok(&story, "hf-task claim T-0005 --actor agent:a");
    let archived = ok(&story, "hf-pause --archive main --yes");
    assert_eq!(archived.all("LEFT"), ["T-0001", "T-0002"]);
    go.open();
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    // Nobody waits for what will never be.
    assert_eq!(["T-0003", "T-0004"].map(|t| story.poll(t).get("STATUS").to_owned()), ["FAIL", "FAIL"]);
    story.gone();
    assert!(!story.dir().join("ran").exists());
    assert_eq!((count(&story, "SessionEnded"), count(&story, "TaskRetrying")), (1, 0));
    assert_eq!(state(&story, "T-0005"), "Aborted");
    story.over();
}

#[test]
fn a_job_retried_after_the_resume_waits_for_a_free_slot() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n  transient_exit_codes: [75]\n");
    let (mut at_work, mut go, mut other) = (story.gate("at"), story.gate("go"), story.gate("other"));
    story.fire_with(&["--retries", "1"], "echo x >at; read x <go; test -e second && exit 0; touch second; exit 75");
    at_work.line();
    ok(&story, "hf-pause look");
    go.open();
    ok(&story, "hf-pause --wait --max 30s");
    story.fire_with(&["--project", "b", "--create"], "echo y >at; read x <other; touch over");
    assert_eq!(at_work.line(), "y", "what waits in a paused project keeps nobody waiting");
    ok(&story, "hf-resume");
    story.fire_with(&["--project", "b", "--create"], "true");
    assert_eq!((state(&story, "T-0001").as_str(), state(&story, "T-0003").as_str()), ("Assigned", "Ready"));
    other.open();
    at_work.line();
    assert!(story.dir().join("over").exists(), "never more than one at once");
    go.open();
    ok(&story, "hf-job wait T-0001 T-0002 T-0003");
    story.over();
}

#[test]
fn a_stop_ends_the_job_that_a_pause_waits_for() {
    let story = TestJobVault::new("");
    let (mut at_work, _go) = (story.gate("at"), story.gate("go"));
    for _ in 0..2 {
        story.fire("echo x >at; read x <go");
        at_work.line();
    }
    ok(&story, "hf-pause look");
    assert_eq!(ok(&story, "hf-stop fire").get("DRAINED"), "yes");
    assert_eq!(count(&story, "PauseDrained"), 1);
    ok(&story, "hf-resume --system");
    ok(&story, "hf-resume");
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&story, t)), ["Aborted", "Aborted"]);
    story.over();
}

#[test]
fn jobs_waiting_for_a_resume_end_if_the_project_is_archived_instead() {
    let story = TestJobVault::new("jobs:\n  max_parallel: 1\n  transient_exit_codes: [75]\n");
    let (mut at_work, mut go) = (story.gate("at"), story.gate("go"));
    story.fire_with(&["--retries", "1"], "echo x >at; read x <go; exit 75");
    story.fire("touch ran");
    at_work.line();
    ok(&story, "hf-pause look");
    go.open();
    ok(&story, "hf-pause --wait --max 30s");
    ok(&story, "hf-pause --archive main --yes");
    story.gone();
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&story, t)), ["Aborted", "Aborted"]);
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_poll_continues_through_a_pause() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go; echo done");
    story.fire_with(&["--after", "T-0001"], "true");
    let poll = crate::support::job_fixture::waiting(&story, "poll", &["T-0001", "60", "60"]);
    ok(&story, "hf-pause look");
    go.open();
    let reply = Reply::of(poll.wait_with_output().unwrap());
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "done"));
    assert_eq!(story.run("poll", &["T-0002", "1", "1"]).get("STATUS"), "RUNNING", "it waits");
    ok(&story, "hf-resume");
    assert_eq!(story.poll("T-0002").get("STATUS"), "DONE");
    story.over();
}
