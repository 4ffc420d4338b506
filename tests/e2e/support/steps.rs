//! Short ways to run a line, to reach a common starting point (an approved requirement, a held task), and to check the
//! log afterwards.

use std::fs;

use hiveforge::base::Digest;
use hiveforge::event::{Event, Kind};
use serde_json::Value;

use crate::support::test_vault::{Reply, TestVault, forged, write_private};

/// Runs a command line as typed: `hf-task claim T-0001`. No argument may contain a space.
pub fn sh(hive: &TestVault, line: &str) -> Reply {
    let words: Vec<&str> = line.strip_prefix("hf-").expect("one of our commands").split(' ').collect();
    hive.run(words[0], &words[1..])
}

/// Runs a line that must succeed.
#[track_caller]
pub fn ok(hive: &TestVault, line: &str) -> Reply {
    sh(hive, line).expect_exit(0)
}

/// Asserts that a line is refused with this exit code and this message, and changes nothing.
#[track_caller]
pub fn refuses(hive: &TestVault, line: &str, code: i32, sum: &str) -> Reply {
    let words: Vec<&str> = line.strip_prefix("hf-").expect("one of our commands").split(' ').collect();
    let reply = hive.refuses(words[0], &words[1..], code);
    let said = crate::support::test_vault::mask(reply.get("SUM"));
    assert!(said.contains(sum), "said: {said}\nnot: {sum}");
    reply
}

/// A vault with these settings under `governance:`.
pub fn governed(settings: &str) -> TestVault {
    let hive = TestVault::new();
    hive.configure(&format!("governance:\n  {settings}\n"));
    hive
}

/// A vault with REQ-0001, analysed, whose question DEC-0001 nobody has answered.
pub fn asked() -> TestVault {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    hive
}

/// Creates REQ-0001, analysed and approved by DEC-0001.
pub fn approved(hive: &TestVault) {
    ok(hive, "hf-require propose Login");
    ok(hive, "hf-require analyze REQ-0001 Easy.");
    ok(hive, "hf-decide approve DEC-0001");
}

/// Creates T-0001, claimed by an agent.
pub fn held(hive: &TestVault, by: &str) {
    ok(hive, "hf-task propose Form");
    ok(hive, &format!("hf-task claim T-0001 --actor {by}"));
}

/// Creates T-0001, claimed and started by an agent.
pub fn running(hive: &TestVault, by: &str) {
    held(hive, by);
    ok(hive, &format!("hf-task start T-0001 --actor {by}"));
}

/// The state of the entity with this reference.
#[track_caller]
pub fn state(hive: &TestVault, reference: &str) -> String {
    let command = match reference.split_once('-').expect("a short reference").0 {
        "REQ" => "require",
        "DEC" => "decide",
        "ART" => "artifact",
        _ => "task",
    };
    hive.run(command, &["show", reference]).expect_exit(0).get("STATE").to_owned()
}

/// The types of every recorded event.
pub fn kinds(hive: &TestVault) -> Vec<String> {
    hive.events().iter().map(|event| event["event_type"].as_str().expect("a text").to_owned()).collect()
}

/// The types of the events after the first `count`.
pub fn kinds_since(hive: &TestVault, count: usize) -> Vec<String> {
    kinds(hive).split_off(count)
}

/// How many events of a type are recorded.
pub fn count(hive: &TestVault, kind: &str) -> usize {
    kinds(hive).iter().filter(|recorded| *recorded == kind).count()
}

/// Asserts that the log follows every rule.
#[track_caller]
pub fn keeps_the_rules(hive: &TestVault) {
    let reply = hive.run("verify", &["--policy"]).expect_exit(0);
    assert_eq!(reply.get("POLICY"), "OK");
}

/// Appends these events to the log as a forger would, each by the given actor. Returns the findings of
/// `hf-verify --policy`, without the ids of their events.
#[track_caller]
pub fn found_after(hive: &TestVault, more: Vec<(&str, Kind, &str, Value)>) -> Vec<String> {
    let mut events = hive.recorded();
    for (n, (actor, kind, subject, payload)) in more.into_iter().enumerate() {
        let event = forged(n as u64 + 1, kind, subject, payload);
        events.push(Event { actor: actor.to_owned(), ..event });
    }
    found_in(hive, events)
}

/// The same for a log that consists of these events only.
#[track_caller]
pub fn found_in(hive: &TestVault, mut events: Vec<Event>) -> Vec<String> {
    let (mut prev, mut bytes) = (Digest::ZERO, Vec::new());
    for event in &mut events {
        bytes.extend(event.seal(prev, event.batch));
        bytes.push(b'\n');
        prev = event.hash;
    }
    write_private(&hive.segment(), &bytes);
    fs::remove_file(hive.head()).expect("a head record");
    let reply = hive.run("verify", &["--policy"]);
    assert_eq!(reply.get("CHAIN"), "OK", "{reply:#?}");
    let without_id = |found: &str| found.split_once(": ").expect("an event and a sentence").1.to_owned();
    reply.all("FINDING").into_iter().map(without_id).collect()
}

/// The id of the entity with this reference.
#[track_caller]
pub fn id(hive: &TestVault, command: &str, reference: &str) -> String {
    let reply = hive.run(command, &["show", reference]).expect_exit(0);
    reply.get("SUBJECT").split_once(':').expect("a subject").1.to_owned()
}
