//! Destructive commands wait for approval.

use std::fs;

use serde_json::json;

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{ok, sh};

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

#[test]
fn an_unapproved_command_cannot_replace_an_approved_one() {
    // What runs is in the log. The files of a job say only how.
    for (name, value) in [
        ("timeout", json!(null)),
        ("argv", json!(["sh", "-c", "touch other"])),
        ("cwd", json!("/")),
        ("env", json!([["OUT", "other"]])),
        ("extra", json!({"actor": "user:other"})),
    ] {
        let story = TestJobVault::new("");
        story.fires(&["--destructive", "--env", "OUT=allowed"], "touch $OUT").expect_exit(3);
        story.forge_record("T-0001", "spec.json", |spec| spec[name] = value);
        let mut supervisor = story.supervise_anew("T-0001");
        ok(&story, "hf-decide approve DEC-0001");
        let reply = story.poll("T-0001");
        assert!(supervisor.wait().unwrap().success());
        assert_eq!(reply.get("STATUS"), "DONE", "{name}");
        assert!(story.dir().join("allowed").exists() && !story.dir().join("other").exists(), "{name}");
        story.over();
    }
}
