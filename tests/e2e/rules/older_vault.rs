//! A vault that version 0.1.0 wrote (tests/data/vault-0.1.0, by the script `make` there): it can be read, it keeps
//! the rules, and work in it goes on. What that version accepted stays accepted, also what is refused by now.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hiveforge::base::Timestamp;
use serde_json::Value;

use crate::support::steps::{keeps_the_rules, kinds, ok, sh};
use crate::support::test_vault::{TestVault, write_private};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vault-0.1.0");

/// Five minutes after the last thing that was recorded: the last leases, sessions and deep works are still open.
const SOON: &str = "2026-02-04T09:05:00Z";
/// A day later: the session, the deep work and the question of the end are overdue.
const LATER: &str = "2026-02-05T09:00:00Z";

/// The vault in a folder of its own, private as it was; git keeps no such modes.
fn older() -> TestVault {
    let mut hive = TestVault::empty();
    hive.at(SOON);
    copy_private(&Path::new(DATA).join("Vault"), &hive.vault());
    hive
}

fn copy_private(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).expect("our own folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_private(&entry.path(), &to),
            false => write_private(&to, &fs::read(entry.path()).expect("a file")),
        }
    }
}

/// The bytes of the whole log.
fn log(hive: &TestVault) -> Vec<u8> {
    let events = hive.akashic("events");
    hive.contents().into_iter().filter(|(path, _)| path.starts_with(&events)).flat_map(|(_, bytes)| bytes).collect()
}

/// How many seconds lie between two events.
fn seconds_between(earlier: &Value, later: &Value) -> i64 {
    let at = |event: &Value| Timestamp::parse(event["timestamp"].as_str().expect("a text")).expect("a time").0;
    at(later) - at(earlier)
}

#[test]
fn an_older_vault_keeps_the_rules() {
    let hive = older();
    let said = fs::read_to_string(Path::new(DATA).join("verify.txt")).expect("a file");
    let reply = hive.run("verify", &["--policy", "--artifacts"]).expect_exit(0);
    assert_eq!(reply.get("ARTIFACTS"), "OK");
    for key in ["CHAIN", "TAIL", "HEAD", "POLICY", "EVENTS", "HEAD_ID", "HEAD_HASH"] {
        assert!(said.contains(&format!("\n{key}:{}\n", reply.get(key))), "{key}: {reply:#?}");
    }
}

#[test]
fn reading_an_older_vault_changes_nothing() {
    let hive = older();
    let before = hive.contents();
    // Old questions and escalations still need somebody.
    let status = sh(&hive, "hf-status").expect_exit(1);
    assert!(status.all("PROBLEM")[0].contains(" escalation ESC-0001 T-0003: The server is still busy;"), "{status:#?}");
    assert!(hive.contents() == before, "hf-status changed the vault");
    for line in [
        "hf-task list",
        "hf-log",
        "hf-log --last 500",
        "hf-task show T-0010",
        "hf-task explain T-0009",
        "hf-require list",
        "hf-decide list",
        "hf-artifact list",
        "hf-session list",
        "hf-job list",
        "hf-deepwork list",
        "hf-branch list --agent walker",
        "hf-constraint list",
        "hf-verify --policy",
    ] {
        ok(&hive, line);
        assert!(hive.contents() == before, "{line} changed the vault");
    }
    assert_eq!(ok(&hive, "hf-task list").get("COUNT"), "14");
    assert_eq!(ok(&hive, "hf-log --last 500").get("COUNT"), "322");
}

#[test]
fn work_continues_in_an_older_vault() {
    let mut hive = older();
    let before = log(&hive);
    ok(&hive, "hf-checkpoint Walking --agent walker");
    // What was held then is still held.
    ok(&hive, "hf-task start T-0020 --actor agent:builder");
    ok(&hive, "hf-task succeed T-0021 --actor agent:painter");
    ok(&hive, "hf-decide approve DEC-0007");
    keeps_the_rules(&hive);
    hive.at(LATER);
    assert_eq!(hive.run("watchdog", &[]).report().code, Some(1));
    ok(&hive, "hf-checkpoint Resting --agent walker");
    keeps_the_rules(&hive);
    let after = log(&hive);
    assert!(after.len() > before.len() && after.starts_with(&before), "a byte of the old log has changed");
}

/// Rules that came later do not count for what was recorded before; these are the acts that such rules are about.
#[test]
fn the_older_vault_contains_what_was_accepted_then() {
    let hive = older();
    let events = hive.events();
    let of = |kind: &'static str, actor: &'static str| {
        events.iter().filter(move |event| event["event_type"] == kind && event["actor"] == actor)
    };
    // A holder whose lease of ten minutes had passed, two hours ago each time.
    let assigned = of("TaskAssigned", "agent:late").next().expect("a claim");
    assert_eq!(assigned["payload"]["lease_seconds"], 600);
    let mut newest = assigned;
    for kind in ["RunStarted", "Heartbeat", "RunFinished"] {
        let late = of(kind, "agent:late").next().expect("a late act");
        assert_eq!(seconds_between(newest, late), 7200, "{kind}");
        newest = late;
    }
    // A session of ten minutes, renewed after forty.
    let session = of("SessionStarted", "agent:walker").next().expect("a session");
    assert_eq!(session["payload"]["ttl_seconds"], 600);
    let renewed = of("SessionRenewed", "agent:walker").next().expect("it was renewed");
    assert_eq!(renewed["subject"], session["subject"]);
    assert_eq!(seconds_between(session, renewed), 2400);
    // And the rest of a rich life.
    let kinds = kinds(&hive);
    for kind in [
        "RequirementApproved",
        "RequirementRejected",
        "RequirementSuperseded",
        "RequirementVerified",
        "DecisionRejected",
        "ApprovalTimedOut",
        "ConstraintApplied",
        "TaskRetrying",
        "TaskAborted",
        "TaskArchived",
        "ClaimExpired",
        "ClaimRenewed",
        "RunTimedOut",
        "RunCrashed",
        "ArtifactValidated",
        "ArtifactInvalidated",
        "SessionExpired",
        "DeepWorkExtended",
        "DeepWorkExpired",
        "ThreadAborted",
        "MessageRead",
        "PauseDrained",
        "ProjectResumed",
        "ProjectArchived",
        "EmergencyStopIssued",
        "SystemResumed",
    ] {
        assert!(kinds.iter().any(|recorded| recorded == kind), "there is no {kind}");
    }
}
