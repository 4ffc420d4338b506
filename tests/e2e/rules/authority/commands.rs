//! A9, A13, A14, A18, A20: the log says what runs, and the files of a job do not.

use hiveforge::event::Kind;
use serde_json::{Value, json};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{found_in, ok};
use crate::support::test_vault::{Reply, TestVault};

#[test]
fn a13_a_shown_command_that_is_not_the_hashed_one_is_found() {
    let story = TestJobVault::new("");
    story.fires(&["--destructive"], "true").expect_exit(3);
    ok(&story, "hf-decide approve DEC-0001");
    story.poll("T-0001");
    story.gone();
    let changed = |kind: Kind, member: &str, value: Value| {
        let mut events = story.recorded();
        for event in events.iter_mut().filter(|event| event.event_type.known() == Some(kind)) {
            event.payload.insert(member.to_owned(), value.clone());
        }
        let copy = story.copy();
        found_in(&copy, events)
    };
    let not_hashed = "payload.command_hash: the command that is shown is not the one that was hashed";
    for (kind, member, value, why) in [
        (Kind::TaskProposed, "command", json!(["/bin/ls"]), not_hashed),
        (Kind::TaskProposed, "cwd", json!("/"), not_hashed),
        (
            Kind::TaskProposed,
            "bound",
            json!({"environment": [], "given": [], "files": []}),
            "payload.bound_digest is not the digest of payload.bound",
        ),
        (Kind::RunStarted, "command", json!(["/bin/ls"]), not_hashed),
        (Kind::RunStarted, "bound_digest", json!("sha256:00"), "T-0001 has another command"),
    ] {
        let found = changed(kind, member, value);
        assert!(found.iter().any(|found| found == why), "{kind} {member}: {found:?}");
    }
}

#[test]
fn a14_a_supervisor_started_by_hand_acts_for_whoever_fired_the_job() {
    let story = TestJobVault::new("");
    let fired = story.fires(&["--destructive", "--actor", "agent:a"], "echo $HF_AGENT").expect_exit(3);
    assert_eq!(fired.get("STATUS"), "APPROVAL_REQUIRED");
    story.forge_record("T-0001", "spec.json", |spec| spec["extra"]["actor"] = json!("user:jo"));
    let mut next = story.supervise_anew("T-0001");
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(story.poll("T-0001").get("SUM"), "a");
    assert!(next.wait().unwrap().success());
    for kind in ["TaskAssigned", "RunStarted", "RunFinished", "TaskSucceeded"] {
        assert_eq!(story.of_kind(kind)[0]["actor"], "agent:a", "{kind}");
    }
    story.over();
}

#[test]
fn a20_every_run_of_a_job_says_what_runs() {
    let story = TestJobVault::new("");
    ok(&story, "hf-task propose Plain");
    story.run("job", &["fire", "--task", "T-0001", "--", "echo", "hello"]).expect_exit(0);
    story.poll("T-0001");
    story.fire_with(&["--retries", "1"], "exit 75");
    story.poll("T-0002");
    let runs = story.of_kind("RunStarted");
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[0]["payload"]["command"], json!(["echo", "hello"]));
    let assigned = &story.of_kind("TaskAssigned")[0]["payload"];
    assert_eq!(
        (&assigned["command"], &assigned["command_hash"]),
        (&runs[0]["payload"]["command"], &runs[0]["payload"]["command_hash"])
    );
    for run in &runs[1..] {
        assert_eq!(run["payload"]["command"], json!(["sh", "-c", "exit 75"]));
        assert_eq!(run["payload"]["cwd"], story.dir().to_str().unwrap());
    }
    // A run that hides what it is of is found.
    let mut events = story.recorded();
    for event in events.iter_mut().filter(|event| event.event_type.known() == Some(Kind::RunStarted)) {
        for member in ["command", "cwd", "command_hash"] {
            event.payload.remove(member);
        }
    }
    let copy = story.copy();
    let found = found_in(&copy, events);
    assert!(found.contains(&"T-0001 has another command".to_owned()), "{found:?}");
    story.over();
}

#[test]
fn a20_words_that_are_no_text_run_as_they_are() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let story = TestJobVault::new("");
    let mut fire = story.command("job");
    fire.args(["fire", "--", "printf", "%s"]).arg(OsStr::from_bytes(b"a\xffb"));
    Reply::of(fire.output().unwrap()).expect_exit(0);
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(story.log("logs/L-0001.txt"), b"a\xffb");
    let mut fire = story.command("job");
    fire.args(["fire", "--destructive", "--", "printf", "%s"]).arg(OsStr::from_bytes(b"a\xffb"));
    let refused = Reply::of(fire.output().unwrap()).expect_exit(2);
    assert!(refused.get("SUM").contains("an operator could not read what to approve"), "{refused:#?}");
    story.over();
}

#[test]
fn a18_no_variable_is_stored_because_of_how_its_name_begins() {
    let story = TestJobVault::new("");
    let mut fire = story.command("job");
    fire.env("HF_TOKEN", "hunter2").env("TOKEN", "hunter3");
    Reply::of(fire.args(["fire", "--secret-env", "TOKEN", "--", "true"]).output().unwrap()).expect_exit(0);
    story.poll("T-0001");
    for (path, bytes) in story.contents() {
        assert!(!bytes.windows(6).any(|part| part == b"hunter"), "{}", path.display());
    }
    story.over();
}

#[test]
fn a14_the_files_of_a_job_cannot_keep_it_from_starting() {
    let story = TestJobVault::new("");
    story.fires(&["--destructive"], "echo ran").expect_exit(3);
    story.forge_record("T-0001", "spec.json", |spec| {
        spec["extra"]["run_id"] = json!("not valid!");
        spec["secrets"] = json!(["NO_SUCH_VARIABLE"]);
    });
    let mut next = story.supervise_anew("T-0001");
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(story.poll("T-0001").get("SUM"), "ran");
    assert!(next.wait().unwrap().success());
    story.over();
}

#[test]
fn a20_only_a_fired_command_makes_a_task_a_job() {
    let hive = TestVault::new();
    let payload = r#"{"title":"x","destructive":true,"job":true}"#;
    let refused = hive.run("append", &["TaskProposed", "--payload", payload]).expect_exit(3);
    assert_eq!(refused.get("REASON"), "reserved_kind", "{refused:#?}");
}

#[test]
fn a9_a_command_that_the_settings_gate_is_found_in_a_forged_log() {
    let story = TestJobVault::new("governance:\n  destructive_commands: [\"rm *\"]\n");
    story.run("job", &["fire", "--", "ls", "gone"]).expect_exit(0);
    story.poll("T-0001");
    story.gone();
    let mut events = story.recorded();
    for event in &mut events {
        if event.payload.contains_key("command_hash") {
            let cwd = event.payload["cwd"].as_str().unwrap().to_owned();
            let words = [&b"rm"[..], b"gone"];
            event.payload.insert("command".to_owned(), json!(["rm", "gone"]));
            let hash = hiveforge::policy::command::hash(words.into_iter(), cwd.as_bytes());
            event.payload.insert("command_hash".to_owned(), hash.into());
        }
    }
    let copy = story.copy();
    let found = found_in(&copy, events);
    assert!(found.contains(&"its command requires approval by an operator".to_owned()), "{found:?}");
    story.over();
}
