//! Says of a log, from the promises alone, whether it contains an operator's act that no listed key has signed, or
//! something that rests on one. It knows what was really recorded, and asks ssh-keygen about every other signature.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use hiveforge::base::OperatorKey;
use serde_json::Value;

use super::forge::{reference, text};
use super::life::Life;
use crate::support::operator_keys::ssh_keygen;

/// The events that record an operator's act, each with the words for it in a statement and the member with the comment.
const ACTS: &[(&str, &str, &str)] = &[
    ("DecisionApproved", "approve a decision", "rationale"),
    ("DecisionRejected", "reject a decision", "rationale"),
    ("RequirementVerified", "verify a requirement", ""),
    ("RequirementSuperseded", "supersede a requirement", ""),
    ("RequirementRejected", "reject a requirement", "reason"),
    ("SystemResumed", "lift a stop", "comment"),
    ("ProjectResumed", "resume a project", "comment"),
    ("ProjectArchived", "archive a project", "reason"),
    ("SettingsAdopted", "adopt settings", ""),
    ("OperatorKeyAdded", "add an operator key", ""),
    ("OperatorKeyRemoved", "remove an operator key", ""),
    ("VaultRecovered", "recover the log", ""),
];

/// What the oracle knows about a vault.
pub struct Oracle {
    /// What each signature really signed: the payloads of the acts of a statement, in their order.
    signed: HashMap<(String, String), Vec<Value>>,
    /// Acts from before the first key, which its owner saw: `ID:HASH`.
    vouched: HashSet<String>,
    first: Value,
    /// The listed keys, as ssh-keygen reads them.
    allowed: PathBuf,
    folder: PathBuf,
}

/// The payload of an act without what only repeats its statement, and where a recovery put the rest.
fn said(payload: &Value) -> Value {
    let mut said = payload.clone();
    for member in ["act", "file"].into_iter().chain(REPEATED.iter().copied()) {
        said.as_object_mut().and_then(|members| members.remove(member));
    }
    said
}

/// Members that repeat what the statement binds. They may be missing; if they are there, they must be true.
const REPEATED: &[&str] = &["target_hash", "changed"];

/// The number of the act in its statement.
fn number(payload: &Value) -> usize {
    payload["act"].as_u64().map_or(1, |number| number as usize)
}

/// One act of a statement: the lines from its heading on.
fn lines_of(statement: &str, number: usize) -> Vec<&str> {
    let mut parts = statement.split("\n\n");
    parts.nth(number).map(|act| act.lines().collect()).unwrap_or_default()
}

fn line<'a>(lines: &[&'a str], label: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.strip_prefix(label)?.strip_prefix(": "))
}

impl Oracle {
    pub fn new(life: &Life) -> Oracle {
        let mut signed: HashMap<_, Vec<Value>> = HashMap::new();
        let is_signed = |event: &&Value| event["payload"]["signature"].is_string();
        for event in life.events.iter().filter(is_signed) {
            let payload = &event["payload"];
            let pair = (text(payload, "statement").to_owned(), text(payload, "signature").to_owned());
            signed.entry(pair).or_default().push(payload.clone());
        }
        let is_act = |event: &&Value| ACTS.iter().any(|act| act.0 == text(event, "event_type"));
        let unsigned = life.events.iter().filter(is_act).filter(|event| !is_signed(event));
        let vouched = unsigned.map(reference).collect();
        let folder = life.hive.dir().to_owned();
        let allowed = folder.join("allowed_signers");
        let lines: String = life.keys.lines().map(|key| format!("operator {key}\n")).collect();
        fs::write(&allowed, lines).expect("a file");
        Oracle { signed, vouched, first: life.events[0].clone(), allowed, folder }
    }

    /// What is forged in a log in which an anchor was expected; none if nothing is. A signature that is not one of the
    /// genuine ones is taken to ssh-keygen.
    pub fn forged(&self, log: &[Value], anchor: &str) -> Option<String> {
        if !log.iter().any(|event| reference(event) == anchor) {
            return Some("the anchor is missing".to_owned());
        }
        if log.first() != Some(&self.first) {
            return Some("the first event is another one".to_owned());
        }
        let mut seen = Seen::default();
        log.iter().enumerate().find_map(|(at, event)| {
            let found = self.unsigned(&log[..at], event, &mut seen).or_else(|| unfounded(&log[..at], event));
            found.map(|why| format!("{} {}: {why}", text(event, "event_type"), text(event, "event_id")))
        })
    }

    /// Why an event that should be signed is not.
    fn unsigned(&self, before: &[Value], event: &Value, seen: &mut Seen) -> Option<String> {
        let (kind, payload) = (text(event, "event_type"), &event["payload"]);
        if kind == "SettingsChanged" && seen.is_keyed(before) {
            return Some("the settings of a keyed vault changed by themselves".to_owned());
        }
        let (_, words, comment) = ACTS.iter().find(|act| act.0 == kind)?;
        if self.vouched.contains(&reference(event)) {
            return None;
        }
        if event["actor"] == "core:reactor" {
            return (!follows(before, event)).then(|| "it follows from nothing".to_owned());
        }
        let (statement, signature) = (text(payload, "statement"), text(payload, "signature"));
        let number = number(payload);
        let lines = lines_of(statement, number);
        let pair = (statement.to_owned(), signature.to_owned());
        let no = |why: &str| Some(why.to_owned());
        if !self.signed.contains_key(&pair) && !self.is_signed(statement, signature) {
            return no("no listed key signed it");
        }
        if !in_force(before, event).iter().any(|key| key == text(payload, "signed_by")) {
            return no("its key was not in force");
        }
        if lines.first().and_then(|line| line.split_once(": ")).map(|(_, act)| act) != Some(*words) {
            return no("another act was signed");
        }
        if line(&lines, "subject") != Some(text(event, "subject")) {
            return no("it was signed for something else");
        }
        let head: Vec<&str> = statement.lines().take(4).collect();
        if line(&head, "vault") != before[0]["payload"]["vault_id"].as_str() {
            return no("it was signed for another vault");
        }
        let authority = seen.authority(before);
        if line(&head, "authority") != Some(&authority) {
            return no("keys or settings have changed since");
        }
        let known = |named: Option<&str>| before.iter().any(|event| Some(reference(event).as_str()) == named);
        if !known(line(&head, "head seen")) {
            return no("it was signed for another history");
        }
        let answers = line(&lines, "answers");
        let newest = newest_of_its_kind(before, event);
        if !known(answers) || newest.is_some_and(|newest| Some(newest.as_str()) != answers) {
            return no("what it answers is not in force");
        }
        if !seen.used.insert((statement.to_owned(), number)) {
            return no("it stands twice");
        }
        let words_of = |member: &str| payload.get(member).map(|value| value.as_str().unwrap_or("?").to_owned());
        let escaped = |label: &str| line(&lines, label).map(str::to_owned);
        if kind == "DecisionApproved" && words_of("chosen_option") != escaped("option") {
            return no("another option was signed");
        }
        if !comment.is_empty() && words_of(comment) != escaped("comment") {
            return no("another comment was signed");
        }
        let real = self.signed.get(&pair).and_then(|acts| acts.get(number - 1))?;
        let is_true = |member: &str| payload.get(member).is_none_or(|value| real.get(member) == Some(value));
        let is_same = said(real) == said(payload) && REPEATED.iter().all(|member| is_true(member));
        (!is_same).then(|| "its payload is not what was recorded".to_owned())
    }

    /// Asks ssh-keygen whether a listed key signed a statement.
    fn is_signed(&self, statement: &str, signature: &str) -> bool {
        let file = self.folder.join("asked.sig");
        fs::write(&file, signature).expect("a file");
        let [allowed, file] = [&self.allowed, &file].map(|path| path.to_str().expect("UTF-8"));
        let namespace = "hiveforge-operator-v1";
        let args = ["-Y", "verify", "-f", allowed, "-I", "operator", "-n", namespace, "-s", file];
        ssh_keygen(&args, statement.as_bytes()).status.success()
    }
}

/// What the oracle has seen of a log so far.
#[derive(Default)]
struct Seen {
    used: HashSet<(String, usize)>,
}

impl Seen {
    fn is_keyed(&self, before: &[Value]) -> bool {
        before.iter().any(|event| {
            event["event_type"] == "OperatorKeyAdded" || event["payload"]["operator_keys"].as_array().is_some()
        })
    }

    /// The newest change of keys or settings, as `ID:HASH`.
    fn authority(&self, before: &[Value]) -> String {
        let kinds =
            ["VaultInitialized", "SettingsAdopted", "OperatorKeyAdded", "OperatorKeyRemoved", "SettingsChanged"];
        let newest = before.iter().rev().find(|event| kinds.contains(&text(event, "event_type")));
        newest.map(reference).unwrap_or_default()
    }
}

/// The fingerprints of the keys in force before an event. The first key signs itself.
fn in_force(before: &[Value], event: &Value) -> Vec<String> {
    let fingerprint = |line: &Value| OperatorKey::parse(line.as_str()?).ok().map(|key| key.fingerprint().to_string());
    let mut keys: Vec<String> =
        before[0]["payload"]["operator_keys"].as_array().into_iter().flatten().filter_map(fingerprint).collect();
    for change in before {
        let key = fingerprint(&change["payload"]["key"]);
        match text(change, "event_type") {
            "OperatorKeyAdded" => keys.extend(key),
            "OperatorKeyRemoved" => keys.retain(|known| Some(known) != key.as_ref()),
            _ => {}
        }
    }
    if keys.is_empty() && event["event_type"] == "OperatorKeyAdded" {
        keys.extend(fingerprint(&event["payload"]["key"]));
    }
    keys
}

/// What an act must answer, as `ID:HASH`, where one newest event says so.
fn newest_of_its_kind(before: &[Value], event: &Value) -> Option<String> {
    let newest = |is_it: &dyn Fn(&Value) -> bool| before.iter().rev().find(|event| is_it(event)).map(reference);
    let same = |other: &Value| other["subject"] == event["subject"];
    match text(event, "event_type") {
        "SystemResumed" => newest(&|other| other["event_type"] == "EmergencyStopIssued"),
        "DecisionApproved" | "DecisionRejected" => newest(&same),
        // That the last session has ended changes nothing for an operator.
        "ProjectResumed" => newest(&|other| same(other) && other["event_type"] != "PauseDrained"),
        "SettingsAdopted" | "OperatorKeyAdded" | "OperatorKeyRemoved" => Some(Seen::default().authority(before)),
        "VaultRecovered" => before.last().map(reference),
        _ => None,
    }
}

/// Whether an answer of the reactor follows from an operator's answer, or from nobody's.
fn follows(before: &[Value], event: &Value) -> bool {
    let named = |question: &Value| question["payload"]["target"] == event["subject"];
    let asked = |decision: &Value| before.iter().any(|q| q["subject"] == decision["subject"] && named(q));
    before.iter().any(|cause| match text(event, "event_type") {
        "RequirementRejected" => cause["event_type"] == "DecisionRejected" && asked(cause),
        "DecisionRejected" => cause["event_type"] == "ApprovalTimedOut" && cause["subject"] == event["subject"],
        _ => false,
    })
}

/// Why an event that rests on an operator's act has nothing to rest on.
fn unfounded(before: &[Value], event: &Value) -> Option<String> {
    let of_kind = |kind: &'static str| before.iter().filter(move |event| event["event_type"] == kind);
    let approved = |target: &Value, kind: &str| {
        let by_toolkit = |question: &&Value| kind == "constraint_change" || question["actor"] == "core:reactor";
        let questions = of_kind("DecisionRequested").filter(by_toolkit);
        let mut about = questions.filter(|q| q["payload"]["kind"] == kind && q["payload"]["target"] == *target);
        about.any(|question| of_kind("DecisionApproved").any(|answer| answer["subject"] == question["subject"]))
    };
    let subject = &event["subject"];
    let missing = |is_there: bool| (!is_there).then(|| "nobody approved it".to_owned());
    match text(event, "event_type") {
        "RequirementApproved" => missing(approved(subject, "requirement_approval")),
        "ConstraintApplied" | "ConstraintRemoved" => missing(approved(subject, "constraint_change")),
        "TaskReady" | "TaskAssigned" | "RunStarted" => {
            let task = match event["payload"]["task_id"].as_str() {
                Some(id) => Value::String(format!("task:{id}")),
                None => subject.clone(),
            };
            let starts = event["event_type"] != "TaskReady";
            let last = before
                .iter()
                .rev()
                .find(|event| ["EmergencyStopIssued", "SystemResumed"].contains(&text(event, "event_type")));
            if starts && last.is_some_and(|last| last["event_type"] == "EmergencyStopIssued") {
                return Some("everything is stopped".to_owned());
            }
            let proposed = of_kind("TaskProposed").find(|event| event["subject"] == task)?;
            let requirement = proposed["payload"]["requirement_id"].as_str().map(|id| format!("requirement:{id}"));
            let is_approved = requirement
                .is_none_or(|id| of_kind("RequirementApproved").any(|event| event["subject"] == id.as_str()));
            let is_allowed = proposed["payload"]["destructive"] != true || approved(&task, "destructive_operation");
            missing(is_approved && is_allowed)
        }
        _ => None,
    }
}
