//! What an attacker does to a log: a table of tamperings, each of which is chosen and varied by a random generator.

use serde_json::{Map, Value, json};

use super::edits;
use super::forge::{Genuine, Log, answer, attackers_key, event, reference, signed_by, text};
use crate::support::operator_keys::SoftKey;
use crate::support::test_vault::Random;

/// An attacker with a log, who has seen the genuine one.
pub struct Attacker<'a> {
    pub log: Log,
    pub genuine: &'a Genuine,
    pub random: Random,
    /// The key with which the attacker signs.
    pub key: SoftKey,
}

/// A tampering, by its name.
pub type Attack = (&'static str, fn(&mut Attacker<'_>));

pub const ATTACKS: &[Attack] = &[
    ("drop an event", drop_event),
    ("drop a batch", drop_unit),
    ("drop an act and keep what follows from it", drop_act),
    ("repeat an event elsewhere", repeat_event),
    ("repeat an act with what follows from it", repeat_act),
    ("swap two batches", swap_units),
    ("move a batch", move_unit),
    ("sign again with another key", sign_again),
    ("add the attacker's key and use it", add_own_key),
    ("put the attacker's key in the place of another", replace_key),
    ("answer an open question", answer_question),
    ("answer an open question with another act's signature", answer_with_borrowed),
    ("answer an open question with a statement of the attacker", answer_with_own),
    ("swap what two acts carry", edits::swap_members),
    ("change a member of an act", edits::change_member),
    ("strip the signature", edits::strip),
    ("name another signer", edits::name_signer),
    ("turn an act to another subject", edits::turn_subject),
    ("make an act another act", edits::turn_kind),
    ("make an act the reactor's", edits::turn_actor),
    ("change settings", change_settings),
    ("record what nobody approved", record_unfounded),
    ("lift what is stopped or paused", lift),
    ("change a question", edits::change_question),
    ("change what was asked about", edits::change_target),
    ("change a statement", edits::change_statement),
    ("change the spelling of a signature", edits::respell),
    ("change the number of an act", edits::renumber_act),
    ("split the batch of an act", edits::split_unit),
    ("change the time of an act", edits::change_time),
    ("cut off the end and go on", cut_and_go_on),
];

impl Attacker<'_> {
    /// Hashes the log again, so that statements can name its events.
    fn chain(&mut self) {
        self.log.chain_after(self.genuine);
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.random.below(from.len() as u64) as usize].clone())
    }

    pub fn chance(&mut self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    /// A place where a batch can be inserted, mostly late in the log. The first event stays the first.
    fn border(&mut self) -> usize {
        let borders = self.log.borders();
        let late = borders[borders.len() / 2..].to_vec();
        let from = if self.chance(3) { borders[1..].to_vec() } else { late };
        self.pick(&from).expect("a border")
    }

    fn any(&mut self) -> usize {
        1 + self.random.below(self.log.0.len() as u64 - 1) as usize
    }

    /// The place of an act that is signed, mostly one of the last: what came later vouches for those before it.
    pub fn act(&mut self) -> usize {
        let signed = self.log.signed();
        let late = signed[signed.len().saturating_sub(3)..].to_vec();
        let from = if self.chance(2) { signed } else { late };
        self.pick(&from).expect("an act")
    }

    /// The payload of the event here.
    pub fn payload(&mut self, at: usize) -> &mut Map<String, Value> {
        self.log.0[at]["payload"].as_object_mut().expect("an object")
    }

    /// Somebody who could have recorded it.
    pub fn actor(&mut self) -> &'static str {
        self.pick(&["user:jo", "user:mallory", "agent:a", "core:reactor", "core:watchdog", "core:kernel", "external:x"])
            .expect("an actor")
    }

    /// An open question at a place.
    fn question(&mut self, at: usize) -> Option<Value> {
        let open = self.log.open_questions(at);
        self.pick(&open)
    }

    /// What an act of the genuine log carries.
    fn borrowed(&mut self) -> Map<String, Value> {
        let acts = self.genuine.log.signed();
        let act = self.pick(&acts).expect("an act");
        let all = self.genuine.log.0[act]["payload"].as_object().expect("an object");
        let members = ["signed_by", "statement", "signature", "act"];
        all.iter().filter(|member| members.contains(&member.0.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
    }
}

fn drop_event(a: &mut Attacker<'_>) {
    let at = a.any();
    let unit = a.log.unit(at);
    a.log.0.remove(at);
    if a.chance(2) && unit.len() > 1 {
        a.log.renumber(unit.start..unit.end - 1);
    }
}

fn drop_unit(a: &mut Attacker<'_>) {
    let at = a.any();
    let unit = a.log.unit(at);
    a.log.0.drain(unit);
}

fn drop_act(a: &mut Attacker<'_>) {
    let at = a.act();
    let unit = a.log.unit(at);
    a.log.0.remove(at);
    if unit.len() > 1 {
        a.log.renumber(unit.start..unit.end - 1);
    }
}

fn repeat_event(a: &mut Attacker<'_>) {
    let (at, to) = (a.any(), a.border());
    let event = a.log.0[at].clone();
    a.log.insert(to, vec![event]);
}

fn repeat_act(a: &mut Attacker<'_>) {
    let (at, to) = (a.act(), a.border());
    let mut events = a.log.0[a.log.unit(at)].to_vec();
    // With the parents that it would have there.
    if a.chance(2) {
        let subject = text(&events[0], "subject").to_owned();
        let newest = a.log.newest(&subject, to).map(|event| event["event_id"].clone());
        events[0]["parents"] = newest.into_iter().collect();
    }
    a.log.insert(to, events);
}

fn swap_units(a: &mut Attacker<'_>) {
    let (one, other) = (a.any(), a.any());
    let (one, other) = (a.log.unit(one.min(other)), a.log.unit(one.max(other)));
    if one == other {
        return;
    }
    let [first, second] = [one.clone(), other.clone()].map(|unit| a.log.0[unit].to_vec());
    a.log.0.drain(other.clone());
    a.log.insert(other.start, first);
    a.log.0.drain(one.clone());
    a.log.insert(one.start, second);
}

fn move_unit(a: &mut Attacker<'_>) {
    let at = if a.chance(2) { a.act() } else { a.any() };
    let unit = a.log.unit(at);
    let events = a.log.0[unit.clone()].to_vec();
    a.log.0.drain(unit);
    let to = a.border();
    a.log.insert(to, events);
}

fn sign_again(a: &mut Attacker<'_>) {
    let at = a.act();
    let statement = text(&a.log.0[at]["payload"], "statement").to_owned();
    let mut members = signed_by(&a.key.clone(), &statement);
    // The name of the real key, with the attacker's signature.
    if a.chance(3) {
        members.remove("signed_by");
    }
    a.payload(at).extend(members);
}

/// The event that adds a key, signed by an attacker, at a place.
fn key_added(a: &mut Attacker<'_>, at: usize) -> Value {
    a.chain();
    let (line, last) = (attackers_key().line(), text(&a.log.0[at - 1], "event_id").to_owned());
    let answers = reference(a.log.authority(at));
    let more = [("binds key", line.clone())];
    let system = text(&a.log.0[0], "subject").to_owned();
    let statement = a.log.statement(at, "add an operator key", &system, &answers, &more);
    let mut payload = match a.random.below(4) {
        0 => Map::new(),
        1 => a.borrowed(),
        _ => signed_by(&a.key.clone(), &statement),
    };
    payload.insert("key".to_owned(), line.into());
    event("user:jo", "OperatorKeyAdded", &system, &[&last], payload.into())
}

fn add_own_key(a: &mut Attacker<'_>) {
    let at = a.border();
    let added = key_added(a, at);
    a.log.insert(at, vec![added]);
    let own = a.key.clone();
    a.key = attackers_key();
    match a.random.below(3) {
        0 => answer_with_own(a),
        1 => sign_again(a),
        _ => {}
    }
    a.key = own;
}

fn replace_key(a: &mut Attacker<'_>) {
    let kinds = ["OperatorKeyAdded", "OperatorKeyRemoved"];
    let places: Vec<usize> = (0..a.log.0.len()).filter(|n| kinds.contains(&text(&a.log.0[*n], "event_type"))).collect();
    let Some(at) = a.pick(&places) else { return };
    let line = attackers_key().line();
    let payload = &a.log.0[at]["payload"];
    let statement = text(payload, "statement").replace(text(payload, "key"), &line);
    if a.chance(2) {
        let members = signed_by(&a.key.clone(), &statement);
        a.payload(at).extend(members);
    }
    a.payload(at).insert("key".to_owned(), line.into());
}

/// Inserts an answer to a question, at the end or where it was asked.
fn insert_answer(a: &mut Attacker<'_>, at: usize, actor: &str, question: &Value, payload: Map<String, Value>) {
    let mut events = answer(actor, question, payload);
    // A consequence names what it changes, too.
    if let Some(follows) = events.get_mut(1) {
        let target = a.log.newest(text(follows, "subject"), at).map(|event| event["event_id"].clone());
        let parents = follows["parents"].as_array().cloned().unwrap_or_default();
        follows["parents"] = target.into_iter().chain(parents).collect();
    }
    a.log.insert(at, events);
}

fn answer_question(a: &mut Attacker<'_>) {
    let at = a.border();
    let Some(question) = a.question(at) else { return };
    let actor = a.actor();
    insert_answer(a, at, actor, &question, Map::new());
}

fn answer_with_borrowed(a: &mut Attacker<'_>) {
    let at = a.border();
    let Some(question) = a.question(at) else { return };
    let (actor, payload) = (a.actor(), a.borrowed());
    insert_answer(a, at, actor, &question, payload);
}

pub fn answer_with_own(a: &mut Attacker<'_>) {
    let at = a.border();
    a.chain();
    let Some(question) = a.question(at) else { return };
    let statement = a.log.approval(at, &question);
    let payload = signed_by(&a.key.clone(), &statement);
    insert_answer(a, at, "user:jo", &question, payload);
}

fn change_settings(a: &mut Attacker<'_>) {
    let at = a.border();
    let recorded = a.log.0[..at].iter().rev().find_map(|event| event["payload"].get("settings"));
    let mut settings = recorded.cloned().unwrap_or(json!({}));
    settings["governance.destructive_commands"] = json!([]);
    settings["governance.max_retries"] = json!(9);
    let kind = a.pick(&["SettingsChanged", "SettingsAdopted"]).expect("a kind");
    let (mut actor, mut payload) = (a.actor(), if a.chance(2) { a.borrowed() } else { Map::new() });
    // As a writer records it where the file alone counts.
    if kind == "SettingsChanged" && a.chance(2) {
        (actor, payload) = ("core:kernel", Map::new());
    }
    payload.insert("settings".to_owned(), settings);
    let system = text(&a.log.0[0], "subject").to_owned();
    let last = text(&a.log.0[at - 1], "event_id").to_owned();
    a.log.insert(at, vec![event(actor, kind, &system, &[&last], payload.into())]);
}

fn record_unfounded(a: &mut Attacker<'_>) {
    let at = a.border();
    let Some(question) = a.question(at) else { return };
    let target = text(&question["payload"], "target").to_owned();
    let id = target.split_once(':').map_or("", |(_, id)| id).to_owned();
    let parent = a.log.newest(&target, at).map_or("", |event| text(event, "event_id")).to_owned();
    let asked = text(&question, "event_id").to_owned();
    let parents = a.pick(&[vec![], vec![parent.as_str()], vec![asked.as_str()], vec![parent.as_str(), asked.as_str()]]);
    let (parents, actor) = (parents.expect("parents"), a.actor());
    let raw = |kind: &str, subject: &str, payload: Value| event(actor, kind, subject, &parents, payload);
    let events = match target.split(':').next() {
        Some("requirement") => vec![raw("RequirementApproved", &target, json!({}))],
        Some("constraint") => vec![raw("ConstraintApplied", &target, json!({"text": "Careful"}))],
        _ => {
            let all = [
                raw("TaskReady", &target, json!({})),
                raw("TaskAssigned", &target, json!({"holder": "agent:a"})),
                raw("RunStarted", "run:01KG9YS8F8A8WJ64483A5D3PX2", json!({"task_id": id})),
            ];
            let count = 1 + a.random.below(3) as usize;
            all.into_iter().take(count).collect()
        }
    };
    for (n, event) in events.into_iter().enumerate() {
        a.log.insert(at + n, vec![event]);
    }
}

fn lift(a: &mut Attacker<'_>) {
    let at = a.border();
    let last =
        |kinds: &[&str]| a.log.0[..at].iter().rev().find(|event| kinds.contains(&text(event, "event_type"))).cloned();
    let stop = last(&["EmergencyStopIssued", "SystemResumed"]).filter(|event| event["event_type"] != "SystemResumed");
    let pause = last(&["ProjectPaused", "ProjectResumed"]).filter(|event| event["event_type"] != "ProjectResumed");
    let found: Vec<Value> = stop.into_iter().chain(pause).collect();
    let Some(found) = a.pick(&found) else { return };
    let (kind, act) = match text(&found, "event_type") {
        "EmergencyStopIssued" => ("SystemResumed", "lift a stop"),
        _ => ("ProjectResumed", "resume a project"),
    };
    a.chain();
    let found = a.log.0.iter().find(|event| event["event_id"] == found["event_id"]).expect("the same").clone();
    let (subject, id) = (text(&found, "subject"), text(&found, "event_id"));
    let why = text(&found["payload"], "reason").to_owned();
    let more = match kind {
        "SystemResumed" => vec![("binds stopped_by", text(&found, "actor").to_owned()), ("binds stop_reason", why)],
        _ => vec![("binds pause_reason", why)],
    };
    let statement = a.log.statement(at, act, subject, &reference(&found), &more);
    let (actor, payload) = match a.random.below(4) {
        0 => (a.actor(), Map::new()),
        1 => (a.actor(), a.borrowed()),
        _ => ("user:jo", signed_by(&a.key.clone(), &statement)),
    };
    a.log.insert(at, vec![event(actor, kind, subject, &[id], payload.into())]);
}

fn cut_and_go_on(a: &mut Attacker<'_>) {
    let at = a.border();
    a.log.0.truncate(at);
    let more = [answer_question as fn(&mut Attacker<'_>), answer_with_own, record_unfounded, lift, change_settings];
    let more = a.pick(&more).expect("an attack");
    more(a);
}
