//! Cascades: what follows from one request goes on in further batches where it is too much for one.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::steps::{count, keeps_the_rules, ok, sh};
use crate::support::test_vault::TestVault;

/// More tasks than there can be events in a batch.
const TASKS: usize = 10_500;
/// What follows from one request is one batch up to here.
const BATCH: usize = 1000;

/// A requirement that waits for its approval, with so many tasks that wait for it.
fn waiting(tasks: usize) -> TestVault {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Large --key r");
    ok(&hive, "hf-require analyze REQ-0001 Everything.");
    let requirement = hive.events()[1]["subject"].as_str().unwrap().split_once(':').unwrap().1.to_owned();
    let lines: String = (0..tasks)
        .map(|n| {
            let payload = json!({"title": format!("Part {n}"), "requirement_id": requirement});
            json!({"event_type": "TaskProposed", "payload": payload}).to_string() + "\n"
        })
        .collect();
    let mut stream =
        hive.process("append").arg("--stream").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    stream.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(stream.wait().unwrap().success());
    hive
}

fn ready(hive: &TestVault) -> usize {
    count(hive, "TaskReady")
}

#[test]
fn a_requirement_with_more_tasks_than_fit_in_a_batch_can_be_approved() {
    let hive = waiting(TASKS);
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(ready(&hive), TASKS);
    // No batch is larger than it may be, and all of them name the approval as their cause.
    let events = hive.events();
    let of = |event: &Value| event["batch"]["of"].as_u64().unwrap_or(1) as usize;
    let approved = events.iter().find(|event| event["event_type"] == "RequirementApproved").unwrap();
    let proposed = events.iter().filter(|event| event["event_type"] == "TaskProposed");
    let proposed: BTreeMap<&str, &Value> =
        proposed.map(|event| (event["subject"].as_str().unwrap(), &event["event_id"])).collect();
    for event in events.iter().filter(|event| event["event_type"] == "TaskReady") {
        assert!(of(event) <= BATCH);
        let own = proposed[event["subject"].as_str().unwrap()];
        assert_eq!(event["parents"], json!([own, approved["event_id"]]));
    }
    keeps_the_rules(&hive);
}

#[test]
fn an_interrupted_cascade_continues_with_the_next_command() {
    let hive = waiting(2 * BATCH + 500);
    let before = std::fs::read(hive.segment()).unwrap().len();
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(ready(&hive), 2 * BATCH + 500);
    // As if its author had been killed after the first batch of it, or after the second.
    for batches in [1, 2] {
        let cut = hive.copy();
        let bytes = std::fs::read(cut.segment()).unwrap();
        let ends = bytes[before..].iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(n, _)| before + n + 1);
        let end = ends.collect::<Vec<_>>()[batches * BATCH - 1];
        std::fs::write(cut.segment(), &bytes[..end]).unwrap();
        for derived in ["chain.json", "index"] {
            let path = cut.vault().join("Akashic").join(derived);
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
        assert!(ready(&cut) < 2 * BATCH + 500, "it was cut");
        assert_eq!(ok(&cut, "hf-verify --policy").get("POLICY"), "OK", "what is not there yet is no breach");
        // The next command finishes it, whatever it does, and whatever the vault itself has to record first.
        cut.configure("governance:\n  max_retries: 9\n");
        std::fs::remove_file(cut.vault().join("Akashic/clock")).unwrap();
        if batches == 2 {
            let torn = [std::fs::read(cut.segment()).unwrap(), b"{\"torn".to_vec()].concat();
            std::fs::write(cut.segment(), torn).unwrap();
        }
        sh(&cut, "hf-task propose Other").expect_exit(0);
        assert_eq!(ready(&cut), 2 * BATCH + 501, "after {batches}");
        keeps_the_rules(&cut);
    }
}
