//! Jobs: what was started is known to every reader, for as long as one of its processes lives.

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{held, ok, refuses};
use crate::support::test_vault::Reply;

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
