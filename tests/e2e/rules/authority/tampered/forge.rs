//! The log in the hands of an attacker, who can write every byte of it and hash it again.

use std::collections::HashMap;

use hiveforge::base::signature::KeyType;
use hiveforge::base::{Digest, OperatorKey, Ulid, seal};
use serde_json::{Map, Value, json};

use crate::support::operator_keys::{How, SoftKey};
use crate::support::test_vault::{TestVault, write_private};

/// The key of an attacker, which no operator knows.
pub fn attackers_key() -> SoftKey {
    SoftKey::new(KeyType::Ed25519, 66)
}

/// A log as values. What is changed in it is hashed again by `chain`.
#[derive(Clone)]
pub struct Log(pub Vec<Value>);

/// A log as it was recorded, with its lines.
pub struct Genuine {
    pub log: Log,
    pub lines: Vec<Vec<u8>>,
}

impl Genuine {
    pub fn new(events: &[Value]) -> Genuine {
        Genuine { log: Log(events.to_vec()), lines: events.iter().map(line_of).collect() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.lines.concat()
    }
}

/// An event as a line of the log.
fn line_of(event: &Value) -> Vec<u8> {
    let mut line = serde_json_canonicalizer::to_vec(event).expect("JSON");
    line.push(b'\n');
    line
}

/// A text member of an event or of its payload.
pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// An event as `ID:HASH`, as statements and anchors name it.
pub fn reference(event: &Value) -> String {
    format!("{}:{}", text(event, "event_id"), text(event, "hash"))
}

/// The number behind an event's id.
fn number(event: &Value) -> u128 {
    Ulid::from_string(text(event, "event_id")).expect("an id").0
}

impl Log {
    /// Links and hashes every event again. Returns the bytes: lines of canonical JSON.
    pub fn chain(&mut self) -> Vec<u8> {
        self.chain_after(&Genuine { log: Log(Vec::new()), lines: Vec::new() })
    }

    /// The same for a log that begins like a genuine one, whose lines are not hashed again.
    pub fn chain_after(&mut self, genuine: &Genuine) -> Vec<u8> {
        let same = self.0.iter().zip(&genuine.log.0).take_while(|(one, other)| one == other).count();
        let zero = || format!("sha256:{}", "0".repeat(64));
        let mut prev = same.checked_sub(1).map_or_else(zero, |last| text(&self.0[last], "hash").to_owned());
        let mut bytes = genuine.lines[..same].concat();
        for event in &mut self.0[same..] {
            let members = event.as_object_mut().expect("an object");
            members.remove("hash");
            members.insert("prev_hash".to_owned(), prev.into());
            let hashed = serde_json_canonicalizer::to_vec(&event).expect("JSON");
            let hash = Digest::of_bytes(&hashed).to_string();
            event["hash"] = hash.clone().into();
            bytes.extend(line_of(event));
            prev = hash;
        }
        bytes
    }

    /// The bytes as they are, without hashing them again.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(line_of).collect()
    }

    /// The places where a batch or a single event begins, and the end.
    pub fn borders(&self) -> Vec<usize> {
        let begins = |event: &Value| event["batch"].is_null() || event["batch"]["no"] == 1;
        let mut borders: Vec<usize> = (0..self.0.len()).filter(|n| begins(&self.0[*n])).collect();
        borders.push(self.0.len());
        borders
    }

    /// The batch that contains an event.
    pub fn unit(&self, at: usize) -> std::ops::Range<usize> {
        let borders = self.borders();
        let from = *borders.iter().rfind(|border| **border <= at).expect("a border");
        from..borders.into_iter().find(|border| *border > at).expect("a border")
    }

    /// Inserts events as one batch at a border. Their ids are made to fit in there, in a second of the event before them,
    /// and what they say about each other follows.
    pub fn insert(&mut self, at: usize, mut events: Vec<Value>) {
        let before = at.checked_sub(1).map(|before| self.0[before].clone());
        let mut id = before.as_ref().map_or(1, number);
        let time = before.as_ref().map_or_else(|| self.0[0]["timestamp"].clone(), |event| event["timestamp"].clone());
        let of = events.len();
        let mut renamed = HashMap::new();
        for (n, event) in events.iter_mut().enumerate() {
            id += 1;
            renamed.insert(text(event, "event_id").to_owned(), Ulid(id).to_string());
            event["event_id"] = Ulid(id).to_string().into();
            event["timestamp"] = time.clone();
            event.as_object_mut().expect("an object").remove("batch");
            if of > 1 {
                event["batch"] = json!({"no": n + 1, "of": of});
            }
            for parent in event["parents"].as_array_mut().into_iter().flatten() {
                if let Some(new) = parent.as_str().and_then(|old| renamed.get(old)) {
                    *parent = new.clone().into();
                }
            }
        }
        self.0.splice(at..at, events);
    }

    /// Numbers the events of a batch again after one was taken out of it or put into it.
    pub fn renumber(&mut self, unit: std::ops::Range<usize>) {
        let of = unit.len();
        for (n, event) in self.0[unit].iter_mut().enumerate() {
            let members = event.as_object_mut().expect("an object");
            match of {
                1 => members.remove("batch"),
                _ => members.insert("batch".to_owned(), json!({"no": n + 1, "of": of})),
            };
        }
    }

    /// The newest change of keys or settings before a place.
    pub fn authority(&self, before: usize) -> &Value {
        let kinds =
            ["VaultInitialized", "SettingsAdopted", "OperatorKeyAdded", "OperatorKeyRemoved", "SettingsChanged"];
        let changes = |event: &&Value| kinds.contains(&text(event, "event_type"));
        self.0[..before].iter().rev().find(changes).unwrap_or(&self.0[0])
    }

    /// The places of acts that carry a signature.
    pub fn signed(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|n| self.0[*n]["payload"]["signature"].is_string()).collect()
    }

    /// The newest event about something before a place.
    pub fn newest(&self, subject: &str, before: usize) -> Option<&Value> {
        self.0[..before].iter().rev().find(|event| text(event, "subject") == subject)
    }

    /// The questions before a place that nobody has answered there.
    pub fn open_questions(&self, before: usize) -> Vec<Value> {
        let ends = ["DecisionApproved", "DecisionRejected", "DecisionSuperseded"];
        let ended = |subject: &Value| {
            let mut events = self.0[..before].iter();
            events.any(|event| event["subject"] == *subject && ends.contains(&text(event, "event_type")))
        };
        let asks = |event: &&Value| event["event_type"] == "DecisionRequested" && !ended(&event["subject"]);
        self.0[..before].iter().filter(asks).cloned().collect()
    }

    /// A statement about an act here, in the words that an operator would sign.
    pub fn statement(&self, at: usize, act: &str, subject: &str, answers: &str, more: &[(&str, String)]) -> String {
        let mut said = format!(
            "HiveForge operator statement 1\nvault: {}\nauthority: {}\nhead seen: {}\n\n",
            text(&self.0[0]["payload"], "vault_id"),
            reference(self.authority(at)),
            reference(&self.0[at - 1]),
        );
        said += &format!("act 1 of 1: {act}\nsubject: {subject}\nanswers: {answers}\n");
        for (label, value) in more {
            said += &format!("{label}: {value}\n");
        }
        said
    }

    /// The statement that approves an open question here.
    pub fn approval(&self, at: usize, question: &Value) -> String {
        let (asked, subject) = (&question["payload"], text(question, "subject"));
        let named = self.0.iter().find(|event| event["subject"] == asked["target"]);
        let mut more = vec![
            ("binds question", text(asked, "kind").to_owned()),
            ("binds target", text(asked, "target").to_owned()),
            ("binds summary", text(asked, "summary").to_owned()),
        ];
        more.extend(named.map(|named| ("binds title", text(&named["payload"], "title").to_owned())));
        let about = self.0[..at].iter().filter(|event| event["subject"] == asked["target"]);
        let said = |name: &str| about.clone().rev().find_map(|event| event["payload"][name].as_str());
        more.extend(said("description").map(|text| ("binds description", text.to_owned())));
        more.extend(said("analysis").map(|text| ("binds analysis", text.to_owned())));
        more.extend(asked["target_hash"].as_str().map(|hash| ("binds content", hash.to_owned())));
        self.statement(at, "approve a decision", subject, &reference(question), &more)
    }
}

/// Publishes a log, as its writer would.
pub fn publish(hive: &TestVault, log: &Log) {
    let last = log.0.last().expect("an event");
    let record = json!({
        "version": 1, "event_count": log.0.len(), "head_hash": last["hash"], "latest_event_id": last["event_id"],
        "offset": log.bytes().len(), "segment": "2026-01/2026-01-31.jsonl",
    });
    let mut bytes = seal::seal(&record);
    bytes.resize(512, b' ');
    write_private(&hive.head(), &bytes);
}

/// The members that a signature by a key adds to a payload.
pub fn signed_by(key: &SoftKey, statement: &str) -> Map<String, Value> {
    let fingerprint = OperatorKey::parse(&key.line()).expect("a key").fingerprint().to_string();
    let signature = key.sign(statement.as_bytes(), &How::default());
    let members = json!({"signed_by": fingerprint, "statement": statement, "signature": signature});
    members.as_object().expect("an object").clone()
}

/// A raw event. `insert` gives it a place.
pub fn event(actor: &str, kind: &str, subject: &str, parents: &[&str], payload: Value) -> Value {
    json!({
        "$schema": "event.v1.schema.json", "version": 1, "actor": actor, "event_type": kind, "subject": subject,
        "parents": parents, "payload": payload, "event_id": format!("new:{kind}"), "timestamp": "",
    })
}

/// The answer to a question and, by the reactor, what follows from it.
pub fn answer(actor: &str, question: &Value, payload: Map<String, Value>) -> Vec<Value> {
    let (asked, subject) = (&question["payload"], text(question, "subject"));
    let mut payload = payload;
    if let Some(hash) = asked.get("target_hash") {
        payload.insert("target_hash".to_owned(), hash.clone());
    }
    let approved = event(actor, "DecisionApproved", subject, &[text(question, "event_id")], payload.into());
    let cause = [text(&approved, "event_id")];
    let follows = match text(asked, "kind") {
        "requirement_approval" => {
            let id = subject.split_once(':').map_or("", |(_, id)| id);
            let payload = json!({ "decision_id": id });
            Some(event("core:reactor", "RequirementApproved", text(asked, "target"), &cause, payload))
        }
        "destructive_operation" => Some(event("core:reactor", "TaskReady", text(asked, "target"), &cause, json!({}))),
        _ => None,
    };
    std::iter::once(approved.clone()).chain(follows).collect()
}
