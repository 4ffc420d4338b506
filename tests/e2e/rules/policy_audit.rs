//! hf-verify --policy: a log whose bytes are all good, and that still broke the rules.

use std::collections::BTreeMap;
use std::path::Path;

use hiveforge::base::{EntityType, Subject, Timestamp, Ulid};
use hiveforge::chain::check_line;
use hiveforge::event::{Event, EventType, Kind};
use hiveforge::policy::audit::Audit;
use serde_json::{Map, Value, json};

use crate::support::test_vault::{TestVault, forged};

/// A vault whose log begins well, and that goes on with these events.
fn going_on_with(more: Vec<Event>) -> (TestVault, Vec<Event>) {
    let hive = TestVault::new();
    let mut events = hive.recorded();
    events.extend(more);
    hive.forge(&mut events);
    (hive, events)
}

/// Fails unless the bytes are good, the rules are not, and the findings are these of this event.
#[track_caller]
fn violates(hive: &TestVault, event: &Event, findings: &[&str]) {
    let before = hive.contents();
    let reply = hive.run("verify", &["--policy"]).expect_exit(1);
    let verdicts = ["STATUS", "NEXT", "CHAIN", "TAIL", "PROJECTIONS", "POLICY"].map(|key| reply.get(key));
    assert_eq!(verdicts, ["FAILED", "ASK operator", "OK", "CLEAN", "NOT_CHECKED", "VIOLATED"], "{reply:#?}");
    let named: Vec<String> = findings.iter().map(|finding| format!("event {}: {finding}", event.id)).collect();
    assert_eq!(reply.all("FINDING"), named);
    // Who does not ask for the rules is not told of them.
    assert_eq!(hive.run("verify", &[]).expect_exit(0).get("POLICY"), "NOT_CHECKED");
    assert!(hive.contents() == before);
}

fn proposed(n: u64) -> Event {
    forged(n, Kind::RequirementProposed, &format!("requirement:r{n}"), json!({"title": "x"}))
}

#[test]
fn a_log_written_by_the_commands_keeps_the_rules() {
    let hive = TestVault::new();
    hive.approved("requirement:r", "Login");
    hive.append("TaskProposed", "task:t", json!({"title": "API", "requirement_id": "r"}));
    hive.append("TaskAssigned", "task:t", json!({"holder": "agent:a"}));
    let run = ["RunStarted", "--actor", "agent:a", "--payload", r#"{"task_id":"t"}"#, "--key", "go"];
    hive.run("append", &run).expect_exit(0);
    hive.append("EscalationRequired", "task:t", json!({"reason": "stuck"}));
    hive.append("EmergencyStopIssued", "system", json!({"reason": "fire"}));
    // An unfinished write that was moved away is no breach either.
    let torn = [std::fs::read(hive.segment()).unwrap(), b"{\"torn".to_vec()].concat();
    std::fs::write(hive.segment(), torn).unwrap();
    hive.propose("after the tear");
    let reply = hive.run("verify", &["--policy"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:VERIFIED\nNEXT:NONE\nSUM:23 events verified\nCHAIN:OK\nTAIL:CLEAN\nHEAD:OK\nANCHOR:NONE\n\
         PROJECTIONS:NOT_CHECKED\nARTIFACTS:NOT_CHECKED\nPOLICY:OK\nSIGNATURES:NONE\nSETTINGS:RECORDED\nREGIME:settings are recorded, not adopted: anyone who can write the settings file can change the rules\nDUE:0\nEVENTS:23\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n\
         STANDING:stopped 2026-01-31T12:00:00Z - by=user:jo fire\n"
    );
}

#[test]
fn a_forged_log_that_keeps_the_rules_passes() {
    let (hive, _) = going_on_with(vec![proposed(1), proposed(2)]);
    assert_eq!(hive.run("verify", &["--policy"]).expect_exit(0).get("POLICY"), "OK");
}

#[test]
fn a_parent_that_is_missing_or_comes_later_is_found() {
    let nobody = Ulid::from_parts(1, 1);
    let (hive, events) = going_on_with(vec![Event { parents: vec![nobody], ..proposed(1) }]);
    violates(&hive, &events[1], &[&format!("its parent {nobody} is not an earlier event")]);
    let later = proposed(2);
    let (hive, events) = going_on_with(vec![Event { parents: vec![later.id], ..proposed(1) }, later]);
    violates(&hive, &events[1], &[&format!("its parent {} is not an earlier event", events[2].id)]);
    let own = proposed(1);
    let (hive, events) = going_on_with(vec![Event { parents: vec![own.id], ..own }]);
    violates(&hive, &events[1], &[&format!("its parent {} is not an earlier event", events[1].id)]);
}

#[test]
fn a_time_that_is_later_than_its_id_is_found() {
    let good = proposed(1);
    let late = Timestamp(good.timestamp.0 + 1);
    let (hive, events) = going_on_with(vec![Event { timestamp: late, ..good }]);
    violates(&hive, &events[1], &[&format!("its time {late} is later than the time in its id")]);
    // If the clock goes back, an id follows the one before it.
    let early = proposed(1);
    let second = early.timestamp.0 - 1;
    let follows = Ulid::from_parts(second as u64 * 1000, (1 << 80) - 1);
    let early = Event { timestamp: Timestamp(second - 60), id: follows, ..early };
    let (hive, _) = going_on_with(vec![early]);
    hive.run("verify", &["--policy"]).expect_exit(0);
}

#[test]
fn a_key_used_twice_is_found() {
    let keyed = |n| Event { key: Some("k".to_owned()), ..proposed(n) };
    let (hive, events) = going_on_with(vec![keyed(1), proposed(2), keyed(3)]);
    violates(&hive, &events[3], &["the key 'k' was used before"]);
}

#[test]
fn a_payload_not_allowed_for_its_kind_is_found() {
    for (payload, finding) in [
        (json!({}), "RequirementProposed: missing payload.title; must be a non-empty string"),
        (json!({"title": 1}), "RequirementProposed: payload.title must be a non-empty string"),
    ] {
        let (hive, events) = going_on_with(vec![forged(1, Kind::RequirementProposed, "requirement:r", payload)]);
        violates(&hive, &events[1], &[finding]);
    }
}

#[test]
fn a_subject_not_allowed_for_its_kind_is_found() {
    let strange = forged(1, Kind::RequirementProposed, "task:t", json!({"title": "x"}));
    let (hive, events) = going_on_with(vec![strange.clone()]);
    violates(&hive, &events[1], &["RequirementProposed cannot have the subject task:t"]);
    let malformed = Event { subject: "requirement:../x".to_owned(), ..strange };
    let (hive, events) = going_on_with(vec![malformed]);
    violates(&hive, &events[1], &["RequirementProposed cannot have the subject requirement:../x"]);
    let (hive, events) = going_on_with(vec![forged(1, Kind::EscalationRequired, "task:t", json!({}))]);
    violates(&hive, &events[1], &["task:t does not exist"]);
}

#[test]
fn an_invalid_actor_is_found() {
    let (hive, events) = going_on_with(vec![Event { actor: "somebody".to_owned(), ..proposed(1) }]);
    violates(&hive, &events[1], &["invalid actor 'somebody'"]);
}

#[test]
fn an_illegal_transition_is_found() {
    let (hive, events) =
        going_on_with(vec![proposed(1), forged(2, Kind::RequirementVerified, "requirement:r1", json!({}))]);
    violates(
        &hive,
        &events[2],
        &[
            "REQ-0001 is Proposed, which does not allow RequirementVerified; allowed: RequirementAnalyzed, RequirementRejected",
        ],
    );
    let (hive, events) = going_on_with(vec![forged(1, Kind::TaskReady, "task:t", json!({}))]);
    violates(&hive, &events[1], &["task:t does not exist"]);
    let again = Event { subject: "requirement:r1".to_owned(), ..proposed(2) };
    let (hive, events) = going_on_with(vec![proposed(1), again]);
    violates(
        &hive,
        &events[2],
        &[
            "REQ-0001 is Proposed, which does not allow RequirementProposed; allowed: RequirementAnalyzed, RequirementRejected",
        ],
    );
}

#[test]
fn a_run_of_an_unclaimed_task_is_found() {
    let task = forged(2, Kind::TaskProposed, "task:t", json!({"title": "x", "requirement_id": "r1"}));
    let run = forged(3, Kind::RunStarted, "run:x", json!({"task_id": "t"}));
    let (hive, events) = going_on_with(vec![proposed(1), task, run]);
    violates(&hive, &events[3], &["T-0001 cannot start: requirement REQ-0001 is Proposed, not Approved"]);
}

#[test]
fn a_log_begins_with_its_vault_and_only_once() {
    let hive = TestVault::new();
    let mut events = vec![proposed(1)];
    hive.forge(&mut events);
    violates(&hive, &events[0], &["the first event is not VaultInitialized"]);
    let again = |first: &Event| forged(1, Kind::VaultInitialized, "system", Value::Object(first.payload.clone()));
    let (hive, events) = going_on_with(vec![again(&TestVault::new().recorded()[0])]);
    violates(
        &hive,
        &events[1],
        &[
            "VaultInitialized is not the first event",
            "the system is Running, which does not allow VaultInitialized; allowed: EmergencyStopIssued, TailQuarantined, TailAdopted, VaultRecovered, SettingsChanged, SettingsAdopted, OperatorKeyAdded, OperatorKeyRemoved, MachineSuspended, MachineBooted, ClockStepped",
        ],
    );
}

#[test]
fn text_of_a_violating_event_cannot_add_a_line() {
    let strange = Event { subject: "x\nCHAIN:BROKEN\u{202e}".to_owned(), key: Some("a\nb".to_owned()), ..proposed(1) };
    let (hive, events) =
        going_on_with(vec![strange.clone(), Event { id: proposed(2).id, timestamp: proposed(2).timestamp, ..strange }]);
    let reply = hive.run("verify", &["--policy"]).expect_exit(1);
    let about = r"RequirementProposed cannot have the subject x\nCHAIN:BROKEN\u{202e}";
    let expected = [
        format!("event {}: {about}", events[1].id),
        format!(r"event {}: the key 'a\nb' was used before", events[2].id),
        format!("event {}: {about}", events[2].id),
    ];
    assert_eq!(reply.all("FINDING"), expected);
    assert_eq!(reply.get("CHAIN"), "OK");
}

#[test]
fn an_event_of_unknown_type_is_judged_by_its_envelope_alone() {
    let unknown = EventType::Unknown("TaskTeleported".to_owned());
    let strange = Event { event_type: unknown, subject: "planet:mars".to_owned(), ..proposed(1) };
    let (hive, _) = going_on_with(vec![strange.clone()]);
    hive.run("verify", &["--policy"]).expect_exit(0);
    let nobody = Ulid::from_parts(1, 1);
    let (hive, events) = going_on_with(vec![Event { parents: vec![nobody], ..strange }]);
    violates(&hive, &events[1], &[&format!("its parent {nobody} is not an earlier event")]);
}

#[test]
fn the_rules_are_not_checked_on_damaged_bytes() {
    let (hive, _) = going_on_with(vec![proposed(1), forged(2, Kind::TaskReady, "task:t", json!({})), proposed(3)]);
    let bytes = String::from_utf8(std::fs::read(hive.segment()).unwrap()).unwrap().replacen("\"x\"", "\"y\"", 1);
    crate::support::test_vault::write_private(&hive.segment(), bytes.as_bytes());
    let reply = hive.run("verify", &["--policy", "--projections"]).expect_exit(1);
    assert_eq!(["CHAIN", "POLICY", "PROJECTIONS"].map(|key| reply.get(key)), ["BROKEN", "NOT_CHECKED", "NOT_CHECKED"]);
}

#[test]
fn approving_something_reanalyzed_in_the_same_batch_has_no_effect() {
    let hive = TestVault::new();
    hive.append("RequirementProposed", "requirement:r", json!({"title": "x"}));
    let asked = json!({"kind": "requirement_approval", "target": "requirement:r", "summary": "?"});
    hive.batch(&[
        json!({"event_type": "DecisionRequested", "subject": "decision:d", "payload": asked}),
        json!({"event_type": "DecisionApproved", "subject": "decision:d", "payload": {}}),
        json!({"event_type": "RequirementAnalyzed", "subject": "requirement:r", "payload": {}}),
    ]);
    hive.run("verify", &["--policy"]).expect_exit(0);
}

#[test]
fn what_is_escalated_after_a_success_in_the_same_batch_stays_open() {
    let hive = TestVault::new();
    hive.append("TaskProposed", "task:t", json!({"title": "x"}));
    hive.started("task:t", "run:r");
    hive.batch(&[
        json!({"event_type": "EscalationRequired", "subject": "task:t", "payload": {"reason": "before"}}),
        json!({"event_type": "TaskSucceeded", "subject": "task:t", "payload": {}}),
        json!({"event_type": "EscalationRequired", "subject": "task:t", "payload": {"reason": "after"}}),
    ]);
    hive.run("verify", &["--policy"]).expect_exit(0);
    let open = hive.run("decide", &["list", "--escalations", "--open"]).expect_exit(0);
    assert!(open.get("ENTITY").ends_with(" Open after"), "{open:#?}");
}

/// An event of the toolkit itself.
fn by(actor: &str, event: Event) -> Event {
    Event { actor: actor.to_owned(), ..event }
}

#[test]
fn machine_events_come_from_the_toolkit_and_must_be_plausible() {
    let at =
        |n: u64| forged(n, Kind::RequirementProposed, "requirement:x", json!({"title": "x"})).timestamp.to_string();
    let suspended = |seconds: u64| {
        let said = json!({"from": at(0), "to": at(60), "seconds": seconds});
        forged(60, Kind::MachineSuspended, "system", said)
    };
    let cases = [
        (by("agent:a", suspended(30)), "MachineSuspended must be recorded by core:kernel, not by agent:a"),
        (
            by("core:kernel", suspended(9_000_000)),
            "the payload of MachineSuspended is impossible at the time of the event",
        ),
        (
            by("core:kernel", forged(60, Kind::MachineBooted, "system", json!({"at": at(999_999)}))),
            "the payload of MachineBooted is impossible at the time of the event",
        ),
        (
            by("core:kernel", forged(60, Kind::ClockStepped, "system", json!({"from": at(60), "to": at(999_999)}))),
            "the payload of ClockStepped is impossible at the time of the event",
        ),
        (
            by("user:jo", forged(60, Kind::SettingsChanged, "system", json!({"settings": {}}))),
            "SettingsChanged must be recorded by core:kernel, not by user:jo",
        ),
    ];
    for (event, why) in cases {
        let (hive, events) = going_on_with(vec![event]);
        violates(&hive, &events[1], &[why]);
    }
    let (hive, _) = going_on_with(vec![by("core:kernel", suspended(30))]);
    assert_eq!(hive.run("verify", &["--policy"]).expect_exit(0).get("POLICY"), "OK");
}

#[test]
fn a_time_going_back_without_a_clock_change_is_found() {
    let mut back = proposed(1000);
    back.timestamp = proposed(700).timestamp;
    // As a writer makes it whose clock went back.
    back.id = Ulid::from_parts(proposed(900).id.timestamp_ms(), 8);
    let (hive, events) = going_on_with(vec![proposed(900), back]);
    let (before, then) = (events[1].timestamp, events[2].timestamp);
    violates(&hive, &events[2], &[&format!("its time {then} is before {before}, and no clock change was recorded")]);
}

/// The events of a log with many types of entities.
fn rich_log() -> Vec<Event> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vault-0.1.0/Vault/Akashic/events");
    let mut lines = Vec::new();
    for month in std::fs::read_dir(dir).unwrap() {
        for segment in std::fs::read_dir(month.unwrap().path()).unwrap() {
            let text = std::fs::read_to_string(segment.unwrap().path()).unwrap();
            lines.extend(text.lines().map(|line| check_line(line.as_bytes()).unwrap()));
        }
    }
    lines.sort_by_key(|event: &Event| event.id);
    lines
}

#[test]
fn an_event_about_the_wrong_type_of_entity_is_found_whatever_its_kind() {
    let events = rich_log();
    let mut before = Audit::default();
    let mut subjects: BTreeMap<EntityType, Subject> = BTreeMap::new();
    for event in &events {
        before.check(event);
        let subject = Subject::parse(&event.subject).unwrap();
        subjects.entry(subject.entity).or_insert(subject);
    }
    assert!(subjects.len() >= 14, "{subjects:?}");
    let last = events.last().unwrap();
    let (mut fitting, mut others) = (0, 0);
    for kind in Kind::ALL {
        for subject in subjects.values() {
            for target in subjects.values() {
                // Every member names something, and nothing of the right type.
                let fields = kind.row().fields.iter().map(|field| field.name);
                let mut payload: Map<String, Value> =
                    fields.map(|name| (name.to_owned(), target.id().into())).collect();
                if payload.contains_key("target") {
                    payload.insert("target".to_owned(), target.to_string().into());
                    payload.insert("kind".to_owned(), "destructive_operation".into());
                } else if target.entity != EntityType::Task {
                    continue;
                }
                let mut event = forged(1, *kind, &subject.to_string(), Value::Object(payload));
                event.timestamp = Timestamp(last.timestamp.0 + 1);
                event.id = Ulid::from_parts(last.id.timestamp_ms() + 1000, 7);
                let findings = before.clone().check(&event);
                if kind.fits(subject) {
                    fitting += 1;
                } else {
                    others += 1;
                    assert_ne!(findings, Vec::new(), "{kind} {subject}");
                }
            }
        }
    }
    assert!(fitting > 70 && others > 500, "{fitting} {others}");
}
