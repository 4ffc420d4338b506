//! The audit covers everything: to the last byte, whatever chain.json and the index say.

use std::fs;
use std::os::unix::fs::MetadataExt;

use hiveforge::event::{Event, Kind};
use serde_json::{Value, json};

use crate::support::steps::{asked, id, keeps_the_rules, kinds, ok, sh, state};
use crate::support::test_vault::{Reply, TestVault, forged, jsonl, write_private};

/// Writes these events after the log, linked and hashed as a writer would, without publishing them.
fn write_behind(hive: &TestVault, more: Vec<(&str, Kind, &str, Value)>) {
    let mut prev = hive.recorded().last().expect("an event").hash;
    let mut bytes = fs::read(hive.segment()).expect("a log");
    for (n, (actor, kind, subject, payload)) in more.into_iter().enumerate() {
        let mut event = Event { actor: actor.to_owned(), ..forged(n as u64 + 1, kind, subject, payload) };
        bytes.extend(event.seal(prev, None));
        bytes.push(b'\n');
        prev = event.hash;
    }
    write_private(&hive.segment(), &bytes);
}

fn verdicts(reply: &Reply) -> [&str; 4] {
    ["STATUS", "TAIL", "HEAD", "POLICY"].map(|key| reply.get(key))
}

#[test]
fn a4_events_behind_the_published_head_are_audited() {
    let hive = asked();
    let [decision, requirement] = [("decide", "DEC-0001"), ("require", "REQ-0001")].map(|(c, r)| id(&hive, c, r));
    let before = hive.recorded().len();
    write_behind(
        &hive,
        vec![
            ("agent:a", Kind::DecisionApproved, &format!("decision:{decision}"), json!({})),
            ("core:reactor", Kind::RequirementApproved, &format!("requirement:{requirement}"), json!({})),
        ],
    );
    let reply = hive.run("verify", &["--policy"]).expect_exit(1);
    assert_eq!(verdicts(&reply), ["FAILED", "REFUSED", "BEHIND", "VIOLATED"]);
    assert_eq!((reply.get("EVENTS"), reply.get("BEHIND")), ((before + 2).to_string().as_str(), "2"));
    let said = reply.all("FINDING").join("\n");
    assert!(said.contains("DecisionApproved requires an operator; agent:a is not one"), "{said}");
    // Even a check of the chain alone does not pass what no writer would continue after.
    assert_eq!(hive.run("verify", &[]).expect_exit(1).get("TAIL"), "REFUSED");

    // Nobody adopts them, whatever the command.
    let contents = hive.contents();
    for line in ["hf-task propose Form", "hf-decide approve DEC-0001", "hf-require propose More --key k"] {
        let refused = sh(&hive, line).expect_exit(4);
        assert_eq!(refused.get("STATUS"), "CORRUPT");
        assert!(refused.get("SUM").contains("written without the rules"), "{refused:#?}");
        assert!(hive.contents() == contents, "{line}");
    }
    // Readers do not see them.
    assert_eq!(state(&hive, "REQ-0001"), "Analyzed");

    // The operator's way out keeps them, outside the log.
    let planned = hive.run("verify", &["--recover"]).expect_exit(3);
    assert_eq!(planned.get("KEPT"), "2");
    let recovered = hive.run("verify", &["--recover", "--yes"]).expect_exit(0);
    assert_eq!((recovered.get("KEPT"), recovered.get("STATUS")), ("2", "RECOVERED"));
    assert_eq!(hive.recorded().len(), before + 1);
    assert_eq!(ok(&hive, "hf-log --quarantined").all("EVENT").len(), 2);
    keeps_the_rules(&hive);
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
}

#[test]
fn a4_an_older_head_record_hides_nothing() {
    let hive = asked();
    let older = fs::read(hive.head()).expect("a head record");
    ok(&hive, "hf-decide approve DEC-0001");
    let count = hive.recorded().len();
    let anchor = hive.run("verify", &["--anchor"]).stdout;
    write_private(&hive.head(), &older);
    let reply = hive.run("verify", &["--policy", "--expect-head", anchor.trim()]).expect_exit(0);
    assert_eq!(verdicts(&reply), ["VERIFIED", "UNPUBLISHED", "BEHIND", "OK"]);
    assert_eq!((reply.get("ANCHOR"), reply.get("EVENTS")), ("OK", count.to_string().as_str()));
    assert_eq!(reply.get("BEHIND"), "2");

    // The next writer adopts them and says so.
    ok(&hive, "hf-task propose Form");
    assert_eq!(kinds(&hive)[count..], ["TailAdopted", "TaskProposed", "TaskReady"]);
    let adopted = &hive.events()[count];
    assert_eq!((&adopted["actor"], &adopted["payload"]["events"]), (&json!("core:vault"), &json!(2)));
    keeps_the_rules(&hive);
}

#[test]
fn a4_a_missing_head_record_hides_nothing() {
    let hive = asked();
    let decision = format!("decision:{}", id(&hive, "decide", "DEC-0001"));
    write_behind(&hive, vec![("agent:a", Kind::DecisionApproved, &decision, json!({}))]);
    fs::remove_file(hive.head()).expect("a head record");
    let reply = hive.run("verify", &["--policy"]).expect_exit(1);
    assert_eq!(verdicts(&reply), ["FAILED", "CLEAN", "MISSING", "VIOLATED"]);
}

#[test]
fn a4_a_long_tail_is_audited_from_the_index() {
    let hive = TestVault::new();
    let proposal = |n: usize| json!({"event_type": "RequirementProposed", "payload": {"title": format!("wish {n}")}});
    hive.batch(&(0..100).map(proposal).collect::<Vec<_>>());
    hive.batch(&(100..200).map(proposal).collect::<Vec<_>>());
    assert!(hive.akashic("index/data.mdb").exists());
    let older = fs::read(hive.head()).expect("a head record");
    hive.pipe("append", &["--batch"], jsonl(&(200..210).map(proposal).collect::<Vec<_>>())).expect_exit(0);
    let count = hive.recorded().len();
    write_private(&hive.head(), &older);
    ok(&hive, "hf-require propose more");
    assert_eq!(kinds(&hive)[count..], ["TailAdopted", "RequirementProposed"]);
    keeps_the_rules(&hive);
}

#[test]
fn a15_the_index_cannot_invent_an_approval() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    // Enough for a merge.
    let proposal = |n: usize| json!({"event_type": "RequirementProposed", "payload": {"title": format!("wish {n}")}});
    hive.batch(&(0..100).map(proposal).collect::<Vec<_>>());
    hive.batch(&(0..100).map(proposal).collect::<Vec<_>>());
    let requirement = format!("requirement:{}", id(&hive, "require", "REQ-0001"));
    let task = format!("task:{}", id(&hive, "task", "T-0001"));
    // A requirement that seems approved, and a task that seems ready. The lengths of the texts do not change.
    change_index(&hive, &requirement, "\"state\":\"Analyzed\"", "\"state\":\"Approved\"");
    change_index(&hive, &task, "\"state\":\"Proposed\"", "\"state\":\"Ready\"   ");
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "T-0001")), ("Approved".into(), "Ready".into()));
    let before = fs::read(hive.segment()).expect("a log");
    let refused = sh(&hive, "hf-task claim T-0001 --actor agent:a").expect_exit(4);
    assert!(refused.get("SUM").contains("the index is wrong about REQ-0001"), "{refused:#?}");
    assert!(fs::read(hive.segment()).expect("a log") == before);
    ok(&hive, "hf-project --rebuild");
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "T-0001")), ("Analyzed".into(), "Proposed".into()));
}

/// Changes the entry of an entity in the index, and makes the index look untouched.
pub(super) fn change_index(hive: &TestVault, subject: &str, from: &str, to: &str) {
    let data = hive.akashic("index/data.mdb");
    let mut bytes = fs::read(&data).expect("an index");
    let find = |bytes: &[u8], text: &str| bytes.windows(text.len()).position(|window| window == text.as_bytes());
    let mut changed = 0;
    let mut start = 0;
    while let Some(at) = find(&bytes[start..], &format!("{{\"subject\":\"{subject}\"")) {
        let entry = start + at;
        if let Some(state) = find(&bytes[entry..entry + 400], from) {
            bytes[entry + state..entry + state + to.len()].copy_from_slice(to.as_bytes());
            changed += 1;
        }
        start = entry + 1;
    }
    assert!(changed > 0, "{subject} is not in the index");
    write_private(&data, &bytes);
    let meta = fs::metadata(&data).expect("an index");
    let seal = json!({"inode": meta.ino(), "size": meta.size(), "changed_at": [meta.ctime(), meta.ctime_nsec()]});
    write_private(&hive.akashic("index/seal.json"), seal.to_string().as_bytes());
}

#[test]
fn a16_no_variable_makes_a_failed_verification_pass() {
    let hive = asked();
    let mut log = fs::read(hive.segment()).expect("a log");
    let at = log.windows(5).position(|text| text == b"Login").expect("the title");
    log[at] = b'l';
    write_private(&hive.segment(), &log);
    for args in [&["--anchor"][..], &["--policy"], &[]] {
        let output = hive.command("verify").args(args).env("HF_EXIT_ZERO", "1").output().expect("a command");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(!args.contains(&"--anchor") || output.stdout.is_empty());
    }
}
