//! Destructive commands wait for approval.

use std::fs::{self, File};
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::json;

use crate::support::job_fixture::{TestJobVault, kill};
use crate::support::steps::{id, ok, sh};

#[test]
fn a_destructive_command_waits_for_approval_and_then_runs() {
    let story = TestJobVault::new("governance:\n  destructive_commands: [\"rm *\", \"git push*\"]\n");
    fs::write(story.dir().join("precious"), "").unwrap();
    let reply = story.run("job", &["fire", "--key", "rm", "--", "/bin/rm", "precious"]).expect_exit(3);
    assert_eq!(
        reply.masked(&story),
        "EXIT:3\nSTATUS:APPROVAL_REQUIRED\nNEXT:ASK operator\nSUM:T-0001 is Proposed: /bin/rm precious\n\
         TASK_ID:T-0001\nRUN_ID:<ulid>\nLOGREF:logs/L-0001.txt\n\
         ENTITY:decision:<ulid> DEC-0001@<tag> Requested Allow destructive task T-0001, /bin/rm precious?\n"
    );
    // Who asks again is not told to poll for what only a person can let go on.
    let again = story.run("job", &["fire", "--key", "rm", "--", "/bin/rm", "precious"]).expect_exit(0);
    assert_eq!((again.get("STATUS"), again.get("NEXT")), ("DUPLICATE", "ASK operator"));
    assert_eq!(story.run("poll", &["T-0001", "1", "1"]).get("STATUS"), "RUNNING");
    assert_eq!(sh(&story, "hf-decide approve DEC-0001 --actor agent:a").get("REASON"), "operator_only");
    assert!(story.dir().join("precious").exists());
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert!(!story.dir().join("precious").exists());
    let again = story.run("job", &["fire", "--key", "rm", "--", "/bin/rm", "precious"]).expect_exit(0);
    assert_eq!((again.get("STATUS"), again.get("NEXT")), ("DUPLICATE", "ACTION hf-poll T-0001"));
    // A shell in front of it makes no difference.
    let shell = story.run("job", &["fire", "--", "sh", "-c", " rm precious"]).expect_exit(3);
    assert_eq!(shell.get("STATUS"), "APPROVAL_REQUIRED");
    ok(&story, "hf-decide reject DEC-0002 --reason No");
    assert_eq!(story.poll("T-0002").get("STATUS"), "FAIL");
    // And no.
    assert_eq!(story.fires(&["--destructive"], "touch ran").expect_exit(3).get("STATUS"), "APPROVAL_REQUIRED");
    ok(&story, "hf-decide reject DEC-0003 --reason No");
    let reply = story.poll("T-0003");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("FAIL", "DEC-0003 was rejected by user:jo: No"));
    assert!(!story.dir().join("ran").exists());
    // A destructive command cannot be slipped under a task that was allowed something else.
    ok(&story, "hf-task propose Plain");
    let reply = story.run("job", &["fire", "--task", "T-0004", "--", "rm", "x"]).expect_exit(3);
    assert_eq!(reply.get("REASON"), "approval_required");
    story.over();
}

/// Lets another supervisor have a job that waits, as `fire` does: the lock is its standard input.
fn supervise_anew(story: &TestJobVault, reference: &str) -> Child {
    let task = id(story, "task", reference);
    let [(supervisor, _)] = story.processes().try_into().expect("one supervisor");
    kill(supervisor, Signal::KILL);
    let lock = File::options().read(true).write(true).open(story.job(reference).join("lock")).unwrap();
    lock.lock().unwrap();
    let vault = story.vault().display().to_string();
    let mut next = story.process("job");
    next.args(["supervise", &task, "--vault", &vault]).stdin(lock).stdout(Stdio::null());
    next.spawn().unwrap()
}

#[test]
fn an_unapproved_command_cannot_replace_an_approved_one() {
    let not_recorded = "the command of T-0001 differs from the recorded one";
    for (name, value, status, sum) in [
        ("timeout", json!(null), "DONE", "Job finished"),
        ("argv", json!(["sh", "-c", "touch other"]), "FAIL", not_recorded),
        ("cwd", json!("/"), "FAIL", not_recorded),
        ("env", json!([["OUT", "other"]]), "FAIL", not_recorded),
    ] {
        let story = TestJobVault::new("");
        story.fires(&["--destructive", "--env", "OUT=allowed"], "touch $OUT").expect_exit(3);
        story.forge_record("T-0001", "spec.json", |spec| spec[name] = value);
        let mut supervisor = supervise_anew(&story, "T-0001");
        ok(&story, "hf-decide approve DEC-0001");
        let reply = story.poll("T-0001");
        assert!(supervisor.wait().unwrap().success());
        assert_eq!((reply.get("STATUS"), reply.get("SUM")), (status, sum), "{name}");
        assert!(!story.dir().join("other").exists());
        assert_eq!(story.dir().join("allowed").exists(), status == "DONE");
        story.over();
    }
}
