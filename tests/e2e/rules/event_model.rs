//! Random events, legal and not, against a model that knows nothing of the toolkit: ten thousand
//! steps, while the index is removed, damaged and put back under the commands' feet.
//!
//! The model says of every request what must come of it, and of every event that is recorded what
//! follows from it by itself, in which order and with which payload; the log is compared to it line by line.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use hiveforge::base::{ErrorKind, Now, Reason, Timestamp};
use hiveforge::op::project::{self, MapRequest, Projection};
use hiveforge::op::{self, AppendBatchRequest, AppendRequest, Context, NewEvent};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::support::test_vault::{Hive, START, write_private};

/// Events that are asked for.
const STEPS: u64 = 10_000;
/// How often everything is compared.
const CHECK_EVERY: u64 = 1_000;
const SEED: u64 = 0x5eed_0001;
/// Settings: the first is given to the vault, the others are what it has without being told.
const TASKS_AT_ONCE: usize = 30;
const RETRIES: u64 = 3;
const RETURNS: u64 = 5;

/// Every legal step, written down from the design and apart from the toolkit's tables.
const RULES: &str = "
    requirement: - RequirementProposed Proposed RequirementAnalyzed Analyzed RequirementApproved Approved
        RequirementImplemented Implemented RequirementVerified Verified
    requirement: Proposed RequirementRejected Rejected
    requirement: Analyzed RequirementRejected Rejected
    requirement: Approved RequirementSuperseded Superseded
    requirement: Approved OscillationDetected Blocked RequirementApproved Approved
    requirement: Implemented OscillationDetected Blocked
    requirement: Implemented TaskProposed Approved
    requirement: Analyzed RequirementAnalyzed Analyzed
    decision: - DecisionRequested Requested DecisionApproved Approved DecisionSuperseded Superseded
    decision: Requested DecisionRejected Rejected
    decision: Requested ApprovalTimedOut Escalated DecisionApproved Approved
    decision: Escalated DecisionRejected Rejected
    decision: Requested DecisionSuperseded Superseded
    decision: Escalated DecisionSuperseded Superseded
    task: - TaskProposed Proposed TaskReady Ready TaskAssigned Assigned ClaimExpired Ready
    task: Assigned ClaimRenewed Assigned RunStarted Running
    task: Running TaskSucceeded Succeeded TaskArchived Archived
    task: Running TaskFailed Failed TaskRetrying Retrying TaskAssigned Assigned
    task: Proposed TaskAborted Aborted TaskArchived Archived
    task: Ready TaskAborted Aborted
    task: Assigned TaskAborted Aborted
    task: Running TaskAborted Aborted
    task: Failed TaskAborted Aborted
    task: Retrying TaskAborted Aborted
    run: - RunStarted Running RunFinished Finished
    run: Running RunCrashed Crashed
    run: Running RunTimedOut TimedOut
    run: Running Heartbeat Running
    artifact: - ArtifactDeclared Declared ArtifactMaterialized Materialized ArtifactValidated Validated
        ArtifactCorrupted Corrupted
    artifact: Materialized ArtifactInvalidated Invalidated ArtifactCorrupted Corrupted
    artifact: Materialized ArtifactCorrupted Corrupted
    constraint: - ConstraintApplied Active ConstraintRemoved Removed
    branch: - BranchCreated Suspended ThreadOpened Active ThreadCompleted Suspended BranchCompleted Completed
    branch: Active ThreadAborted Suspended
    thread: - ThreadOpened Active ThreadCompleted Completed
    thread: Active ThreadAborted Aborted
";

/// Steps that an event about something else makes.
const MOVED_ALONG: &[(&str, &str)] = &[("requirement", "TaskProposed"), ("task", "RunStarted")];

/// What is asked for less often, or nothing would ever be built.
const ENDS: &[&str] = &[
    "RequirementRejected",
    "RequirementSuperseded",
    "RequirementImplemented",
    "RequirementVerified",
    "OscillationDetected",
    "DecisionRejected",
    "DecisionSuperseded",
    "TaskAborted",
    "ClaimExpired",
    "TaskFailed",
    "RunCrashed",
    "RunTimedOut",
    "ArtifactCorrupted",
];

/// What the dice name, and how often: work takes more steps than wishes.
const OFTEN: [&str; 10] =
    ["requirement", "decision", "decision", "task", "task", "task", "run", "run", "artifact", "constraint"];

/// What must have followed by itself, some time or other.
const FOLLOW: &[&str] = &[
    "BranchCompleted",
    "BranchCreated",
    "ConstraintApplied",
    "DecisionRequested",
    "DecisionSuperseded",
    "EscalationRequired",
    "RequirementApproved",
    "RequirementImplemented",
    "RequirementRejected",
    "RunCrashed",
    "RunFinished",
    "TaskAborted",
    "TaskAssigned",
    "TaskFailed",
    "TaskProposed",
    "TaskReady",
    "TaskRetrying",
    "ThreadAborted",
    "ThreadCompleted",
    "ThreadOpened",
];

/// (type, state, event) → state.
type Rules = BTreeMap<(&'static str, &'static str, &'static str), &'static str>;

fn rules() -> Rules {
    let (mut rules, mut entity, mut words) = (Rules::new(), "", Vec::new());
    let mut close = |entity: &'static str, words: &mut Vec<&'static str>| {
        for n in (0..words.len().saturating_sub(2)).step_by(2) {
            rules.insert((entity, words[n], words[n + 1]), words[n + 2]);
        }
        words.clear();
    };
    for word in RULES.split_whitespace() {
        match word.strip_suffix(':') {
            Some(next) => {
                close(entity, &mut words);
                entity = next;
            }
            None => words.push(word),
        }
    }
    close(entity, &mut words);
    rules
}

/// xorshift: the same steps for the same seed, everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

/// What a request must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Recorded,
    Duplicate,
    Refused,
    Unknown,
}

/// An event as the model sees it.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    kind: &'static str,
    subject: String,
    actor: String,
    payload: Map<String, Value>,
}

/// What follows by itself: a kind, a subject, or nothing if one is made, and a payload.
type Follows = Vec<(&'static str, Option<String>, Value)>;

/// Where a request is tried: on paper, or against what was recorded.
enum Trial<'a> {
    Paper,
    Log(&'a mut VecDeque<Value>),
}

#[derive(Clone, Default)]
struct Model {
    /// Subject → state.
    states: BTreeMap<String, &'static str>,
    /// Subject → what is known of it.
    facts: BTreeMap<String, Map<String, Value>>,
    /// Type → subjects in the order in which they were made.
    made: BTreeMap<&'static str, Vec<String>>,
    archived: BTreeSet<String>,
    /// Key → the request that it belongs to.
    keys: BTreeMap<String, Asked>,
    events: u64,
    /// The time of the next event.
    now: String,
    /// How many events of each kind followed by themselves.
    followed: BTreeMap<&'static str, u64>,
}

/// A request, as the model sees it.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    kind: &'static str,
    subject: String,
    payload: Map<String, Value>,
    key: Option<String>,
    agent: Option<String>,
}

impl Asked {
    fn actor(&self) -> &str {
        self.agent.as_deref().unwrap_or("user:jo")
    }

    fn named(&self, member: &str, entity: &str) -> Option<String> {
        Some(format!("{entity}:{}", self.payload.get(member)?.as_str()?))
    }
}

/// `sha256:` and the digest of a text.
fn digest(text: &str) -> String {
    let bytes = Sha256::digest(text.as_bytes());
    format!("sha256:{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn id_of(subject: &str) -> &str {
    subject.split_once(':').expect("a subject").1
}

impl Model {
    fn state(&self, subject: &str) -> &'static str {
        self.states.get(subject).copied().unwrap_or("-")
    }

    fn fact(&self, subject: &str, name: &str) -> Option<&Value> {
        self.facts.get(subject)?.get(name)
    }

    fn text(&self, subject: &str, name: &str) -> Option<&str> {
        self.fact(subject, name)?.as_str()
    }

    fn count(&self, subject: &str, name: &str) -> u64 {
        self.fact(subject, name).and_then(Value::as_u64).unwrap_or(0)
    }

    /// What a fact names, as a subject.
    fn other(&self, subject: &str, name: &str, entity: &str) -> Option<String> {
        Some(format!("{entity}:{}", self.text(subject, name)?))
    }

    /// Everything of a type whose fact is this, by subject.
    fn with(&self, entity: &'static str, name: &str, value: &str) -> Vec<String> {
        let all = self.made.get(entity).into_iter().flatten();
        let mut found: Vec<String> = all.filter(|s| self.text(s, name) == Some(value)).cloned().collect();
        found.sort();
        found
    }

    /// Whether a decision is about what its target still is.
    fn fits(&self, decision: &str) -> bool {
        let now = match self.fact(decision, "change") {
            Some(change) => Some(digest(&change.to_string())),
            None => self.text(decision, "target").and_then(|target| self.text(target, "content")).map(str::to_owned),
        };
        now.as_deref() == self.text(decision, "target_hash")
    }

    /// Whether a task waits for nothing.
    fn free(&self, task: &str) -> bool {
        self.other(task, "requirement_id", "requirement").is_none_or(|r| self.state(&r) == "Approved")
    }

    /// The task whose holder alone may do this.
    fn held(&self, asked: &Asked) -> Option<String> {
        match asked.kind {
            "ClaimRenewed" | "TaskSucceeded" | "TaskFailed" => Some(asked.subject.clone()),
            "TaskAborted" | "ClaimExpired" if asked.agent.is_some() => Some(asked.subject.clone()),
            "RunStarted" => asked.named("task_id", "task"),
            "Heartbeat" | "RunFinished" | "RunCrashed" | "RunTimedOut" => self.other(&asked.subject, "task_id", "task"),
            _ => None,
        }
    }

    /// Whether something is already so.
    fn holds(&self, rules: &Rules, asked: &Asked) -> bool {
        let (entity, state) = (entity_of(&asked.subject), self.state(&asked.subject));
        let arrives = rules
            .iter()
            .any(|(rule, to)| (rule.0, rule.2, *to) == (entity, asked.kind, state) && rule.1 != state && rule.1 != "-");
        let choice = match asked.kind {
            "DecisionApproved" => "chosen_option",
            "TaskAssigned" => "holder",
            "RunFinished" => "success",
            _ => "",
        };
        let same = choice.is_empty() || asked.payload.get(choice) == self.fact(&asked.subject, choice);
        state != "-" && arrives && !rules.contains_key(&(entity, state, asked.kind)) && same
    }

    /// Who holds the task that a subject is, or is a run of.
    fn held_by(&self, entity: &str, subject: &str) -> Option<String> {
        let task = if entity == "run" { self.other(subject, "task_id", "task")? } else { subject.to_owned() };
        self.text(&task, "holder").map(str::to_owned)
    }

    /// What must come of a request here.
    fn judge(&self, rules: &Rules, asked: &Asked) -> Verdict {
        if let Some(first) = asked.key.as_ref().and_then(|key| self.keys.get(key)) {
            let same = (first.kind, &first.subject, &first.payload) == (asked.kind, &asked.subject, &asked.payload);
            return if same { Verdict::Duplicate } else { Verdict::Refused };
        }
        let (entity, from) = (entity_of(&asked.subject), self.state(&asked.subject));
        let legal = rules.contains_key(&(entity, from, asked.kind)) || asked.kind == "EscalationRequired";
        let creates = rules.contains_key(&(entity, "-", asked.kind));
        if from == "-" && !creates {
            return Verdict::Unknown;
        }
        if asked.agent.is_some()
            && ["DecisionApproved", "DecisionRejected", "RequirementRejected"].contains(&asked.kind)
        {
            return Verdict::Refused;
        }
        if self.holds(rules, asked) {
            return Verdict::Duplicate;
        }
        let target = asked.payload.get("target").map(|target| target.as_str().unwrap().to_owned());
        let target = target.filter(|target| !target.starts_with("constraint:"));
        let named = [asked.named("task_id", "task"), asked.named("requirement_id", "requirement"), target];
        if named.iter().flatten().any(|named| self.state(named) == "-") {
            return Verdict::Unknown;
        }
        let not_agents = ["DecisionSuperseded", "ApprovalTimedOut", "OscillationDetected", "TaskArchived"];
        if asked.agent.is_some() && not_agents.contains(&asked.kind) {
            return Verdict::Refused;
        }
        // Nobody can say that a time is over that is not; what is over is another test's (moments.rs).
        let early = ["ApprovalTimedOut", "ClaimExpired", "RunTimedOut"].contains(&asked.kind);
        match self.may(asked) && legal && !early {
            true => Verdict::Recorded,
            false => Verdict::Refused,
        }
    }

    /// Whether claims, approvals and the room that there is allow a request.
    fn may(&self, asked: &Asked) -> bool {
        let (subject, me) = (asked.subject.as_str(), asked.actor());
        let active = |subject: &str| ["Assigned", "Running", "Retrying"].contains(&self.state(subject));
        if let Some(task) = self.held(asked).filter(|task| active(task))
            && self.text(&task, "holder").is_some_and(|holder| holder != me)
        {
            return false;
        }
        let approved = |d: &String| self.state(d) == "Approved";
        match asked.kind {
            "DecisionApproved" => self.fits(subject),
            "DecisionRequested" => {
                let target = asked.payload["target"].as_str().unwrap();
                match asked.payload.contains_key("change") {
                    true => ["-", "Active"].contains(&self.state(target)),
                    false => !["Rejected", "Superseded", "Verified"].contains(&self.state(target)),
                }
            }
            "RequirementApproved" => {
                self.with("decision", "target", subject).iter().any(|d| approved(d) && self.fits(d))
            }
            "ConstraintApplied" | "ConstraintRemoved" => {
                let mut wanted = asked.payload.clone();
                wanted
                    .insert("do".to_owned(), json!(if asked.kind == "ConstraintApplied" { "apply" } else { "remove" }));
                let wanted = Value::Object(wanted);
                let same = |d: &String| approved(d) && self.fact(d, "change") == Some(&wanted);
                self.with("decision", "target", subject).iter().any(same)
            }
            "TaskReady" => self.free(subject),
            "TaskAssigned" => {
                let other = asked.payload.get("holder").is_some_and(|holder| holder != me);
                let busy = self.made.get("task").into_iter().flatten().filter(|task| active(task)).count();
                !(asked.agent.is_some() && other) && self.free(subject) && busy < TASKS_AT_ONCE
            }
            "RunStarted" => self.state(&asked.named("task_id", "task").unwrap()) == "Assigned",
            _ => true,
        }
    }

    /// What must come of a request here, and the model after it.
    fn take(&mut self, rules: &Rules, asked: &Asked, mut trial: Trial<'_>) -> Verdict {
        let verdict = self.judge(rules, asked);
        if verdict != Verdict::Recorded {
            return verdict;
        }
        let step = |kind, subject: &str, payload: &Map<String, Value>| Step {
            kind,
            subject: subject.to_owned(),
            actor: asked.actor().to_owned(),
            payload: payload.clone(),
        };
        if let Some(agent) = asked.agent.as_ref().filter(|agent| self.state(agent) == "-") {
            let announced = Map::from_iter([("announced".to_owned(), json!(true))]);
            self.record(rules, step("AgentStarted", agent, &announced), None, &mut trial);
        }
        let mut payload = asked.payload.clone();
        let hash = match (asked.kind, payload.get("change"), payload.get("target")) {
            ("DecisionRequested", Some(change), _) => Some(json!(digest(&change.to_string()))),
            ("DecisionRequested", None, Some(target)) => self.fact(target.as_str().unwrap(), "content").cloned(),
            ("DecisionApproved", ..) => self.fact(&asked.subject, "target_hash").cloned(),
            _ => None,
        };
        payload.extend(hash.map(|hash| ("target_hash".to_owned(), hash)));
        let mut unit = vec![self.record(rules, step(asked.kind, &asked.subject, &payload), None, &mut trial)];
        let mut at = 0;
        while at < unit.len() {
            let cause = unit[at].clone();
            for (kind, subject, payload) in self.follow(rules, &cause.0) {
                *self.followed.entry(kind).or_default() += 1;
                let step = Step {
                    kind,
                    subject: subject.unwrap_or_default(),
                    actor: "core:reactor".to_owned(),
                    payload: object(payload),
                };
                unit.push(self.record(rules, step, Some(&cause.1), &mut trial));
            }
            at += 1;
        }
        if let Some(key) = &asked.key {
            self.keys.insert(key.clone(), asked.clone());
        }
        Verdict::Recorded
    }

    /// Takes one event in, which the log must have next. Gives it with its id.
    fn record(&mut self, rules: &Rules, mut step: Step, cause: Option<&str>, trial: &mut Trial<'_>) -> (Step, String) {
        let mints = step.subject.is_empty();
        let entity = match step.kind {
            "TaskProposed" => "task",
            "BranchCreated" => "branch",
            "ThreadOpened" => "thread",
            _ => "decision",
        };
        let id = match trial {
            Trial::Paper => {
                if mints {
                    step.subject = format!("{entity}:?{}", self.events);
                }
                String::new()
            }
            Trial::Log(recorded) => {
                let event = recorded.pop_front().unwrap_or_else(|| panic!("{step:?} is not recorded"));
                let text = |member: &str| event[member].as_str().unwrap().to_owned();
                if mints {
                    step.subject = text("subject");
                    assert_eq!((entity_of(&step.subject), self.state(&step.subject)), (entity, "-"), "{event:#}");
                }
                assert_eq!(event["event_type"], step.kind, "{event:#}");
                assert_eq!(event["payload"], Value::Object(step.payload.clone()), "{event:#}");
                let found = ["subject", "actor", "timestamp"].map(text);
                assert_eq!(found, [&step.subject, &step.actor, &self.now].map(String::clone), "{event:#}");
                if let Some(cause) = cause {
                    assert_eq!(event["parents"], json!([cause]), "{event:#}");
                }
                text("event_id")
            }
        };
        self.fold(rules, &step);
        (step, id)
    }

    /// What an event says, from nothing but the event.
    fn fold(&mut self, rules: &Rules, step: &Step) {
        self.events += 1;
        let (subject, linked) = (step.subject.clone(), |member: &str, entity: &str| {
            Some(format!("{entity}:{}", step.payload.get(member)?.as_str()?))
        });
        let from = self.state(&subject);
        self.advance(rules, step, &subject);
        self.count_task(&subject, from);
        let moved = match step.kind {
            "RunStarted" => linked("task_id", "task"),
            "TaskProposed" => linked("requirement_id", "requirement"),
            "ThreadOpened" | "ThreadCompleted" | "ThreadAborted" => linked("branch_id", "branch"),
            _ => None,
        };
        if let Some(moved) = moved {
            self.advance(rules, step, &moved);
            if entity_of(&moved) == "branch" {
                self.keep_root(step, &moved);
            }
        }
        if step.kind == "BranchCompleted" {
            self.archived.extend(self.other(&subject, "last_thread_id", "thread"));
        }
        if step.kind == "TaskArchived" {
            self.archived.extend(self.with("run", "task_id", id_of(&subject)));
            self.archived.extend(self.with("branch", "task_id", id_of(&subject)));
            self.archived.insert(subject);
        }
    }

    fn advance(&mut self, rules: &Rules, step: &Step, subject: &str) {
        let entity = entity_of(subject);
        let to = match (entity, step.kind) {
            ("agent", "AgentStarted") => "Active",
            _ => match rules.get(&(entity, self.state(subject), step.kind)) {
                Some(to) => to,
                None => return,
            },
        };
        self.set(subject, to);
        let (now, mut facts) = (json!(self.now), self.facts.remove(subject).unwrap_or_default());
        self.gather(&mut facts, entity, step, &now);
        self.facts.insert(subject.to_owned(), facts);
    }

    /// The facts that an event adds to what it moved.
    fn gather(&self, facts: &mut Map<String, Value>, entity: &str, step: &Step, now: &Value) {
        let said = |facts: &mut Map<String, Value>, members: &[&str]| {
            for member in members {
                facts.extend(step.payload.get(*member).map(|value| ((*member).to_owned(), value.clone())));
            }
        };
        let content = |facts: &Map<String, Value>| {
            let before = facts.get("content").map_or("", |content| content.as_str().unwrap());
            json!(digest(&format!("{before}{}", Value::Object(step.payload.clone()))))
        };
        let next =
            |facts: &Map<String, Value>, name: &str| json!(facts.get(name).map_or(0, |n| n.as_u64().unwrap()) + 1);
        let pass_on = |facts: &mut Map<String, Value>| {
            // Who gets it back was never without it.
            let holder = facts.remove("holder");
            if let Some(holder) = holder.filter(|holder| step.payload.get("holder") != Some(holder)) {
                let mut past = facts.get("past_holders").map_or(Vec::new(), |past| past.as_array().unwrap().clone());
                past.retain(|other| *other != holder);
                past.push(holder);
                let past = past.split_off(past.len().saturating_sub(8));
                facts.insert("past_holders".to_owned(), json!(past));
            }
            facts.remove("lease_seconds");
        };
        let set = |facts: &mut Map<String, Value>, name: &str, value: Value| drop(facts.insert(name.to_owned(), value));
        match (entity, step.kind) {
            ("requirement", "RequirementProposed") => {
                said(facts, &["title"]);
                set(facts, "content", content(facts));
            }
            ("requirement", "RequirementAnalyzed") => set(facts, "content", content(facts)),
            ("requirement", "OscillationDetected") => {
                set(facts, "content", content(facts));
                set(facts, "blocked_at", now.clone());
            }
            ("requirement", "RequirementApproved") => set(facts, "returns", json!(0)),
            ("decision", "DecisionRequested") => {
                said(facts, &["kind", "target", "summary", "options", "change", "target_hash"]);
                set(facts, "requested_at", now.clone());
            }
            ("decision", "ApprovalTimedOut") => set(facts, "timed_out_at", now.clone()),
            ("decision", "DecisionApproved" | "DecisionRejected") => {
                said(facts, &["chosen_option", "rationale"]);
                set(facts, "decided_at", now.clone());
                set(facts, "decided_by", json!(step.actor));
            }
            ("task", "TaskProposed") => {
                said(facts, &["title", "requirement_id", "rework_of"]);
                set(facts, "content", content(facts));
                set(facts, "retry_count", json!(0));
            }
            ("task", "TaskRetrying") => set(facts, "retry_count", next(facts, "retry_count")),
            ("task", "TaskAssigned") => {
                pass_on(facts);
                said(facts, &["holder", "lease_seconds"]);
                set(facts, "claimed_at", now.clone());
                set(facts, "generation", next(facts, "generation"));
            }
            ("task", "ClaimRenewed") => set(facts, "claimed_at", now.clone()),
            ("task", "ClaimExpired") => pass_on(facts),
            ("task", "RunStarted") => set(facts, "last_run_id", json!(id_of(&step.subject))),
            ("task", "TaskFailed") => {
                said(facts, &["error_class"]);
                set(facts, "failure", step.payload["reason"].clone());
            }
            ("task", "TaskSucceeded") => set(facts, "succeeded_at", now.clone()),
            ("task", "TaskAborted") => {
                facts.extend(step.payload.get("reason").map(|reason| ("abort_reason".to_owned(), reason.clone())));
                set(facts, "aborted_at", now.clone());
            }
            ("run", "RunStarted") => {
                said(facts, &["task_id"]);
                set(facts, "started_at", now.clone());
                set(facts, "last_heartbeat_at", now.clone());
                set(facts, "finished_at", Value::Null);
            }
            ("run", "Heartbeat") => set(facts, "last_heartbeat_at", now.clone()),
            ("run", _) => {
                said(facts, &["success", "reason"]);
                set(facts, "finished_at", now.clone());
            }
            ("artifact", "ArtifactCorrupted") => set(facts, "corrupted_at", now.clone()),
            ("artifact", _) => said(facts, &["kind", "task_id", "sha256", "size_bytes"]),
            ("agent", "AgentStarted") => {
                said(facts, &["announced"]);
                set(facts, "started_at", now.clone());
            }
            ("constraint", "ConstraintApplied") => {
                said(facts, &["text"]);
                set(facts, "applied_at", now.clone());
            }
            ("branch", "BranchCreated") => {
                said(facts, &["persona_id", "branch_type", "label", "task_id", "partner_persona_id"]);
                set(facts, "threads", json!(0));
                set(facts, "suspended_at", now.clone());
                set(facts, "last_activity", now.clone());
            }
            ("branch", "ThreadOpened") => {
                set(facts, "threads", next(facts, "threads"));
                set(facts, "current_thread_id", json!(id_of(&step.subject)));
                set(facts, "last_thread_id", json!(id_of(&step.subject)));
                set(facts, "last_activity", now.clone());
                facts.remove("suspended_at");
            }
            ("branch", "ThreadCompleted" | "ThreadAborted") => {
                facts.extend(step.payload.get("summary").map(|summary| ("brief_state".to_owned(), summary.clone())));
                set(facts, "suspended_at", now.clone());
                set(facts, "last_activity", now.clone());
                facts.remove("current_thread_id");
            }
            ("branch", "BranchCompleted") => {
                set(facts, "completed_at", now.clone());
                set(facts, "last_activity", now.clone());
                facts.remove("suspended_at");
            }
            ("thread", "ThreadOpened") => {
                said(facts, &["branch_id"]);
                set(facts, "messages", json!(0));
                set(facts, "number", json!(1));
                set(facts, "opened_at", now.clone());
            }
            ("thread", _) => {
                said(facts, &["summary", "reason"]);
                set(facts, "closed_at", now.clone());
            }
            _ => {}
        }
    }

    /// Where the root of a persona stands when another of its branches came to an end, or was gone to.
    fn keep_root(&mut self, step: &Step, branch: &str) {
        let root = self.other(branch, "persona_id", "branch").unwrap();
        if root == branch {
            return;
        }
        let opened = step.kind == "ThreadOpened";
        self.set(&root, if opened { "Suspended" } else { "Active" });
        let now = json!(self.now);
        let facts = self.facts.get_mut(&root).unwrap();
        if opened {
            facts.insert("active_branch_id".to_owned(), json!(id_of(branch)));
            facts.insert("suspended_at".to_owned(), now);
            return;
        }
        facts.remove("active_branch_id");
        facts.remove("suspended_at");
        let mut ends = facts.get("anchors").map_or(Vec::new(), |ends| ends.as_array().unwrap().clone());
        ends.push(json!(id_of(&step.subject)));
        let ends = ends.split_off(ends.len().saturating_sub(10));
        facts.insert("anchors".to_owned(), json!(ends));
    }

    /// The branches of an agent that is given a task, and what it leaves for it.
    fn begin_task_branch(&self, task: &str, cause: &Step, follows: &mut Follows) {
        let holder = cause.payload.get("holder").and_then(Value::as_str);
        let Some(persona) = holder.and_then(|holder| holder.strip_prefix("agent:")) else { return };
        let of_task = self.with("branch", "task_id", id_of(task));
        if of_task.iter().any(|branch| self.text(branch, "persona_id") == Some(persona)) {
            return;
        }
        let root = format!("branch:{persona}");
        if self.state(&root) == "-" {
            let payload = json!({"persona_id": persona, "branch_type": "user", "label": "the user"});
            follows.push(("BranchCreated", Some(root), payload));
        }
        let label = self.text(task, "title").unwrap();
        let payload = json!({"persona_id": persona, "branch_type": "task", "label": label, "task_id": id_of(task)});
        follows.push(("BranchCreated", None, payload));
    }

    /// What a new branch begins with.
    fn begin_branch(&self, branch: &str, follows: &mut Follows) {
        let persona = self.text(branch, "persona_id").unwrap();
        let (root, kind) = (format!("branch:{persona}"), self.text(branch, "branch_type").unwrap());
        if kind != "social" {
            if let Some(other) = self.other(&root, "active_branch_id", "branch") {
                let thread = self.other(&other, "current_thread_id", "thread").unwrap();
                let reason = format!("{} began", self.reference(branch).unwrap());
                let payload = json!({"branch_id": id_of(&other), "reason": reason});
                follows.push(("ThreadAborted", Some(thread), payload));
            }
            follows.push(("ThreadOpened", None, json!({"branch_id": id_of(branch)})));
        }
        if kind == "user" {
            let known = self.made["branch"].iter().filter(|other| self.text(other, "branch_type") == Some("user"));
            for other in known.map(|other| id_of(other)).filter(|other| *other != persona) {
                for (one, another) in [(persona, other), (other, persona)] {
                    let payload = json!({"persona_id": one, "branch_type": "social",
                        "label": format!("with {another}"), "partner_persona_id": another});
                    follows.push(("BranchCreated", None, payload));
                }
            }
        }
    }

    /// The branches of a task that is over.
    fn end_task_branches(&self, task: &str, follows: &mut Follows) {
        for branch in self.with("branch", "task_id", id_of(task)) {
            let (id, how) = (id_of(&branch), format!("{} is {}", self.reference(task).unwrap(), self.state(task)));
            if let Some(thread) = self.other(&branch, "current_thread_id", "thread") {
                follows.push(match self.state(task) {
                    "Aborted" => ("ThreadAborted", Some(thread), json!({"branch_id": id, "reason": how})),
                    _ => ("ThreadCompleted", Some(thread), json!({"branch_id": id, "summary": how})),
                });
            }
            if self.state(&branch) != "Completed" {
                follows.push(("BranchCompleted", Some(branch), json!({})));
            }
        }
    }

    /// Counts a task that came or ended with its requirement, which moves only after this.
    fn count_task(&mut self, task: &str, from: &str) {
        let to = self.state(task);
        let Some(requirement) = self.other(task, "requirement_id", "requirement") else { return };
        if entity_of(task) != "task" || from == to || !(from == "-" || to == "Succeeded" || to == "Aborted") {
            return;
        }
        let rework = self.fact(task, "rework_of").is_some();
        let returned = from == "-" && (self.state(&requirement) == "Implemented" || rework);
        let opened = if from == "-" { 1 } else { -1 };
        let facts = self.facts.get_mut(&requirement).unwrap();
        for (name, more) in [
            ("tasks_open", opened),
            ("tasks_succeeded", i64::from(to == "Succeeded")),
            ("returns", i64::from(returned)),
        ] {
            let count = facts.get(name).map_or(0, |n| n.as_i64().unwrap());
            facts.insert(name.to_owned(), json!(count + more));
        }
    }

    /// What follows from an event by itself, where everything stands now.
    fn follow(&self, rules: &Rules, cause: &Step) -> Follows {
        let subject = cause.subject.as_str();
        let legal = |kind, subject: &str| rules.contains_key(&(entity_of(subject), self.state(subject), kind));
        let mut follows = Follows::new();
        match cause.kind {
            "RequirementAnalyzed" => self.ask(subject, "Build", &mut follows),
            "OscillationDetected" => self.ask(subject, "It went back and forth too often. Go on with", &mut follows),
            "RequirementRejected" | "RequirementSuperseded" => {
                let about = self.with("decision", "target", subject);
                let open = about.into_iter().filter(|d| ["Requested", "Escalated"].contains(&self.state(d)));
                follows.extend(open.map(|d| ("DecisionSuperseded", Some(d), json!({}))));
            }
            "RequirementApproved" => {
                self.with("task", "requirement_id", id_of(subject))
                    .iter()
                    .for_each(|task| self.ready(task, &mut follows));
            }
            "DecisionApproved" | "DecisionRejected" => {
                let target = self.text(subject, "target").unwrap().to_owned();
                let id = json!({"decision_id": id_of(subject)});
                let (kind, payload) = match (self.fact(subject, "change"), cause.kind) {
                    (None, "DecisionApproved") => ("RequirementApproved", id),
                    (None, _) => ("RequirementRejected", json!({"reason": "an operator said no"})),
                    (Some(change), "DecisionApproved") => {
                        let mut members = object(change.clone());
                        let apply = members.remove("do") == Some(json!("apply"));
                        members.extend(object(id));
                        (if apply { "ConstraintApplied" } else { "ConstraintRemoved" }, Value::Object(members))
                    }
                    (Some(_), _) => return follows,
                };
                if legal(kind, &target) {
                    follows.push((kind, Some(target), payload));
                }
            }
            "TaskProposed" => {
                let requirement = self.other(subject, "requirement_id", "requirement");
                let returns = requirement.as_ref().map_or(0, |requirement| self.count(requirement, "returns"));
                match requirement.filter(|r| returns > RETURNS && legal("OscillationDetected", r)) {
                    Some(requirement) => {
                        follows.push(("OscillationDetected", Some(requirement), json!({"count": returns})))
                    }
                    None => self.ready(subject, &mut follows),
                }
            }
            "TaskRetrying" => {
                let facts = &self.facts[subject];
                let again = facts.iter().filter(|(name, _)| ["holder", "lease_seconds"].contains(&name.as_str()));
                let again = again.map(|(name, value)| (name.clone(), value.clone())).collect();
                follows.push(("TaskAssigned", Some(subject.to_owned()), Value::Object(again)));
            }
            "TaskFailed" => {
                self.end_run(subject, "RunFinished", json!({"success": false}), &mut follows);
                let (tried, why) = (self.count(subject, "retry_count"), cause.payload["reason"].as_str().unwrap());
                let transient = cause.payload["error_class"] == "transient";
                let reason = match transient {
                    true => format!("{why}; tried again {tried} times, which is the most"),
                    false => why.to_owned(),
                };
                if transient && tried < RETRIES {
                    let attempt = json!({"attempt": tried + 1, "of": RETRIES});
                    follows.push(("TaskRetrying", Some(subject.to_owned()), attempt));
                    return follows;
                }
                follows.push(("TaskAborted", Some(subject.to_owned()), json!({"reason": reason})));
                // Only what the toolkit itself says can stay quiet; none of these tasks is a job.
                let quiet = cause.payload.get("escalate") == Some(&json!(false)) && cause.actor == "core:reactor";
                if !quiet {
                    follows.push(("EscalationRequired", Some(subject.to_owned()), json!({"reason": reason})));
                }
            }
            "TaskSucceeded" | "TaskAborted" => {
                match cause.kind {
                    "TaskSucceeded" => self.end_run(subject, "RunFinished", json!({"success": true}), &mut follows),
                    _ => self.end_run(subject, "RunCrashed", json!({"reason": "aborted"}), &mut follows),
                }
                let done = |r: &String| self.count(r, "tasks_open") == 0 && self.count(r, "tasks_succeeded") > 0;
                let requirement = self.other(subject, "requirement_id", "requirement");
                if let Some(requirement) = requirement.filter(|r| self.state(r) == "Approved" && done(r)) {
                    follows.push(("RequirementImplemented", Some(requirement), json!({})));
                }
                self.end_task_branches(subject, &mut follows);
            }
            "TaskAssigned" => self.begin_task_branch(subject, cause, &mut follows),
            "BranchCreated" => self.begin_branch(subject, &mut follows),
            "RunTimedOut" | "RunCrashed" => {
                let task = self.other(subject, "task_id", "task").unwrap();
                let reason = match cause.kind {
                    "RunCrashed" => cause.payload.get("reason").cloned().unwrap_or(json!("crash")),
                    _ => json!("timeout"),
                };
                if self.state(&task) == "Running" && self.text(&task, "last_run_id") == Some(id_of(subject)) {
                    follows.push(("TaskFailed", Some(task), json!({"error_class": "transient", "reason": reason})));
                }
            }
            "ArtifactInvalidated" => self.rework(subject, &mut follows),
            _ => {}
        }
        follows
    }

    fn ask(&self, requirement: &str, question: &str, follows: &mut Follows) {
        let asked = self.with("decision", "target", requirement);
        if asked.iter().any(|decision| self.fits(decision)) {
            return;
        }
        for open in asked.into_iter().filter(|decision| ["Requested", "Escalated"].contains(&self.state(decision))) {
            follows.push(("DecisionSuperseded", Some(open), json!({})));
        }
        let (name, title) = (self.reference(requirement).unwrap(), self.text(requirement, "title").unwrap());
        let payload = json!({"kind": "requirement_approval", "target": requirement,
            "summary": format!("{question} {name}, {title}?"), "target_hash": self.text(requirement, "content")});
        follows.push(("DecisionRequested", None, payload));
    }

    fn ready(&self, task: &str, follows: &mut Follows) {
        if self.state(task) == "Proposed" && self.free(task) {
            follows.push(("TaskReady", Some(task.to_owned()), json!({})));
        }
    }

    fn end_run(&self, task: &str, kind: &'static str, payload: Value, follows: &mut Follows) {
        let run = self.other(task, "last_run_id", "run");
        follows.extend(run.filter(|run| self.state(run) == "Running").map(|run| (kind, Some(run), payload)));
    }

    fn rework(&self, artifact: &str, follows: &mut Follows) {
        let task = self.other(artifact, "task_id", "task");
        let Some(task) = task.filter(|task| ["Running", "Succeeded"].contains(&self.state(task))) else { return };
        if self.with("task", "rework_of", id_of(&task)).iter().any(|again| self.state(again) != "Aborted") {
            return;
        }
        if self.state(&task) == "Running" {
            let failed = json!({"error_class": "permanent", "reason": "rework", "escalate": false});
            follows.push(("TaskFailed", Some(task.clone()), failed));
        }
        let mut again = Map::new();
        for name in ["title", "requirement_id"] {
            again.extend(self.fact(&task, name).map(|value| (name.to_owned(), value.clone())));
        }
        again.insert("rework_of".to_owned(), json!(id_of(&task)));
        follows.push(("TaskProposed", None, Value::Object(again)));
    }

    fn set(&mut self, subject: &str, state: &'static str) {
        if self.states.insert(subject.to_owned(), state).is_none() {
            self.made.entry(entity_of(subject)).or_default().push(subject.to_owned());
        }
    }

    /// The short reference of an entity.
    fn reference(&self, subject: &str) -> Option<String> {
        let prefix = match entity_of(subject) {
            "requirement" => "REQ",
            "decision" => "DEC",
            "task" => "T",
            "run" => "RUN",
            "artifact" => "ART",
            "constraint" => "CON",
            "branch" => "BR",
            "thread" => "TH",
            _ => return None,
        };
        let place = self.made.get(entity_of(subject))?.iter().position(|made| made == subject)?;
        Some(format!("{prefix}-{:04}", place + 1))
    }
}

const ENTITIES: [&str; 8] = ["requirement", "decision", "task", "run", "artifact", "constraint", "branch", "thread"];

fn entity_of(subject: &str) -> &'static str {
    let name = subject.split(':').next().unwrap();
    ENTITIES.into_iter().find(|entity| *entity == name).unwrap_or("agent")
}

/// How many of each type the dice name, besides what is made along.
fn pool(entity: &str) -> usize {
    match entity {
        "requirement" => 100,
        "constraint" => 60,
        "run" => 3000,
        _ => 400,
    }
}

/// A payload that fits a kind; what it names need not exist.
fn payload(dice: &mut Dice, kind: &str, agent: Option<&str>) -> Value {
    let task = format!("t{}", dice.roll(pool("task")));
    let requirement = format!("r{}", dice.roll(pool("requirement")));
    match kind {
        "RequirementProposed" => json!({"title": format!("wish {}", dice.roll(5))}),
        "RequirementAnalyzed" => json!({"analysis": format!("thought {}", dice.roll(3))}),
        "TaskProposed" if dice.one_in(3) => json!({"title": "job"}),
        "TaskProposed" => json!({"title": "job", "requirement_id": requirement}),
        "TaskAssigned" if dice.one_in(3) => {
            let stranger = dice.one_in(2).then(|| format!("agent:z{}", dice.roll(6)));
            json!({"holder": stranger.as_deref().or(agent).unwrap_or("user:jo"), "lease_seconds": 10_000_000})
        }
        "DecisionRequested" if dice.one_in(2) => {
            json!({"kind": "requirement_approval", "target": format!("requirement:{requirement}"), "summary": "?"})
        }
        "DecisionRequested" => {
            let change = if dice.one_in(3) { json!({"do": "remove"}) } else { json!({"do": "apply", "text": "so"}) };
            let target = format!("constraint:c{}", dice.roll(pool("constraint")));
            json!({"kind": "constraint_change", "target": target, "summary": "?", "change": change})
        }
        "ConstraintApplied" => json!({"text": "so"}),
        "TaskFailed" if dice.one_in(3) => {
            json!({"error_class": "permanent", "reason": "x", "escalate": dice.one_in(2)})
        }
        "TaskFailed" => json!({"error_class": "transient", "reason": "x"}),
        "RunStarted" => json!({"task_id": task}),
        "RunFinished" if dice.one_in(2) => json!({"success": dice.one_in(2)}),
        "ArtifactDeclared" if !dice.one_in(4) => json!({"kind": "text", "task_id": task}),
        "ArtifactDeclared" => json!({"kind": "code"}),
        "ArtifactMaterialized" => json!({"sha256": "x", "size_bytes": dice.roll(9)}),
        _ => json!({}),
    }
}

/// A request out of nothing: mostly one that is legal, or nearly.
fn invent(dice: &mut Dice, rules: &Rules, model: &Model, serial: &mut u64) -> Asked {
    if !model.keys.is_empty() && dice.one_in(12) {
        let known: Vec<&Asked> = model.keys.values().collect();
        let mut again = (*dice.pick(&known)).clone();
        if dice.one_in(4) {
            again.payload.insert("other".to_owned(), json!(true));
        }
        return again;
    }
    let entity = *dice.pick(&OFTEN);
    let letter = if entity == "run" { "x" } else { &entity[..1] };
    let mut subject = format!("{entity}:{letter}{}", dice.roll(pool(entity)));
    if let Some(known) = model.made.get(entity).filter(|_| dice.one_in(2)) {
        // What is made along has an id that is known only once it is recorded.
        subject = Some(dice.pick(known)).filter(|s| !s.contains('?')).cloned().unwrap_or(subject);
    }
    let from = model.state(&subject);
    let legal: Vec<&str> = rules
        .keys()
        .filter(|rule| rule.0 == entity && !MOVED_ALONG.contains(&(rule.0, rule.2)))
        .filter(|rule| (rule.1 == from && (!ENDS.contains(&rule.2) || dice.one_in(4))) || dice.one_in(40))
        .map(|rule| rule.2)
        .collect();
    let kind = match legal.as_slice() {
        _ if from != "-" && dice.one_in(25) => "EscalationRequired",
        [] => rules.keys().filter(|rule| rule.0 == entity).map(|rule| rule.2).next().unwrap(),
        legal => dice.pick(legal),
    };
    let holder = model.held_by(entity, &subject);
    let agent = match dice.one_in(30) {
        true => Some(format!("agent:z{}", dice.roll(20))),
        // Mostly, whoever holds a task is at it.
        false => holder.filter(|holder| holder.starts_with("agent:") && !dice.one_in(4)),
    };
    let mut payload = payload(dice, kind, agent.as_deref());
    // Mostly, what a payload names is where it should be.
    let (member, entity, states) = match kind {
        "RunStarted" => ("task_id", "task", &["Assigned"][..]),
        "TaskProposed" if payload.get("requirement_id").is_some() => {
            ("requirement_id", "requirement", &["Analyzed", "Approved", "Implemented"][..])
        }
        "ArtifactDeclared" if payload.get("task_id").is_some() => ("task_id", "task", &["Running", "Succeeded"][..]),
        _ => ("", "", &[][..]),
    };
    let fitting = model.made.get(entity).into_iter().flatten();
    let fitting: Vec<&String> = fitting
        .filter(|s| states.contains(&model.state(s)) && !s.contains('?') && model.count(s, "tasks_open") < 2)
        .collect();
    if !fitting.is_empty() && !dice.one_in(5) {
        payload[member] = json!(id_of(fitting[dice.roll(fitting.len())]));
    }
    // Mostly, whoever holds a task begins it.
    let begins = payload.get("task_id").filter(|_| kind == "RunStarted").and_then(Value::as_str);
    let begins = begins.and_then(|task| model.held_by("task", &format!("task:{task}")));
    let agent = begins.filter(|holder| holder.starts_with("agent:") && !dice.one_in(8)).or(agent);
    *serial += 1;
    Asked {
        kind,
        subject,
        payload: payload.as_object().unwrap().clone(),
        key: dice.one_in(3).then(|| format!("key-{serial}")),
        agent,
    }
}

/// The request, with its subject named in one of the ways that lead to it.
fn request(dice: &mut Dice, model: &Model, asked: &Asked) -> NewEvent {
    let id = asked.subject.split(':').nth(1).unwrap().to_owned();
    let subject = match (dice.roll(4), model.reference(&asked.subject)) {
        (0, Some(reference)) => reference,
        (1, Some(reference)) => reference.to_lowercase(),
        (2, Some(_)) => id,
        _ => asked.subject.clone(),
    };
    NewEvent {
        event_type: asked.kind.to_owned(),
        subject: Some(subject),
        payload: asked.payload.clone(),
        parents: Vec::new(),
        key: asked.key.clone(),
        actor: asked.agent.clone(),
    }
}

fn verdict(done: &hiveforge::base::Result<op::Recorded>) -> Verdict {
    match done {
        Ok(done) if done.duplicate => Verdict::Duplicate,
        Ok(_) => Verdict::Recorded,
        Err(error) => match error.kind {
            ErrorKind::Refused(
                Reason::IllegalTransition
                | Reason::KeyConflict
                | Reason::OperatorOnly
                | Reason::ApprovalRequired
                | Reason::Changed
                | Reason::NotReady
                | Reason::NotDue
                | Reason::NotHolder
                | Reason::ClaimLost
                | Reason::TooManyTasks,
            ) => Verdict::Refused,
            ErrorKind::NotFound => Verdict::Unknown,
            _ => panic!("{error:?}"),
        },
    }
}

/// The same through the command itself.
fn run(hive: &Hive, request: &NewEvent) -> Verdict {
    let payload = Value::Object(request.payload.clone()).to_string();
    let mut args = vec![request.event_type.as_str(), "--payload", &payload];
    for (name, value) in [("--subject", &request.subject), ("--key", &request.key), ("--actor", &request.actor)] {
        args.extend(value.iter().flat_map(|value| [name, value.as_str()]));
    }
    let reply = hive.run("append", &args);
    match (reply.code, reply.get("STATUS")) {
        (Some(0), "APPENDED") => Verdict::Recorded,
        (Some(0), "DUPLICATE") => Verdict::Duplicate,
        (Some(3), "REFUSED" | "APPROVAL_REQUIRED" | "CLAIM_LOST") => Verdict::Refused,
        (Some(6), "NOT_FOUND") => Verdict::Unknown,
        _ => panic!("{reply:#?}"),
    }
}

/// Does something to the index that must change nothing.
fn meddle(dice: &mut Dice, hive: &Hive) {
    let (index, aside) = (hive.akashic("index"), hive.dir().join("aside"));
    let data = hive.akashic("index/data.mdb");
    match dice.roll(7) {
        0 => fs::remove_dir_all(&index).unwrap_or_default(),
        // What is written differs in length: a change within a tick of the clock is not seen by its time.
        1 if data.exists() => {
            let bytes = fs::read(&data).unwrap();
            write_private(&data, &bytes[..bytes.len() / 2]);
        }
        2 if data.exists() => write_private(&data, &b"garbage".repeat(dice.roll(9000))),
        3 => fs::remove_file(hive.akashic("index/seal.json")).unwrap_or_default(),
        4 => fs::remove_file(hive.head()).unwrap_or_default(),
        5 if index.exists() && !aside.exists() => fs::rename(&index, &aside).unwrap(),
        _ if aside.exists() => {
            fs::remove_dir_all(&index).unwrap_or_default();
            fs::rename(&aside, &index).unwrap();
        }
        _ => {}
    }
}

/// Fails unless every projection says what the model says.
fn compare(ctx: &Context, model: &Model, place: &str) {
    for entity in ENTITIES.into_iter().chain(["agent"]) {
        let several = if entity == "branch" { "branches".to_owned() } else { format!("{entity}s") };
        let map = project::map(ctx, MapRequest { projection: Projection::parse(&several).unwrap() }).unwrap().map;
        let mut found = BTreeMap::new();
        for (id, entry) in &map {
            let mut facts = object(entry.clone());
            let status = facts.remove("status").unwrap().as_str().unwrap().to_owned();
            let reference = facts.remove("ref").map(|r| r.as_str().unwrap().split('@').next().unwrap().to_owned());
            // Where it stands in the log is not the model's to say.
            facts.retain(|name, _| !["id", "created_at", "last_event_id"].contains(&name.as_str()));
            found.insert(format!("{entity}:{id}"), (status, reference, facts));
        }
        let live = model.states.iter().filter(|(s, _)| entity_of(s) == entity && !model.archived.contains(*s));
        let expected: BTreeMap<_, _> = live
            .map(|(s, state)| (s.clone(), ((*state).to_owned(), model.reference(s), model.facts[s].clone())))
            .collect();
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{place}: {entity}");
        for (subject, entry) in &found {
            assert_eq!(entry, &expected[subject], "{place}: {subject}");
        }
    }
    let keys = project::map(ctx, MapRequest { projection: Projection::Idempotency }).unwrap().map;
    assert_eq!(keys.keys().collect::<Vec<_>>(), model.keys.keys().collect::<Vec<_>>(), "{place}");
}

/// The events that were recorded since the last look.
fn news(hive: &Hive, seen: &mut BTreeMap<PathBuf, u64>) -> VecDeque<Value> {
    let entries = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<PathBuf> = entries(hive.akashic("events")).flat_map(entries).collect();
    segments.sort();
    let mut text = String::new();
    for segment in segments {
        let mut file = fs::File::open(&segment).unwrap();
        let from = seen.entry(segment).or_default();
        file.seek(SeekFrom::Start(*from)).unwrap();
        *from += file.read_to_string(&mut text).unwrap() as u64;
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn ten_thousand_random_events_come_to_what_a_plain_model_says() {
    let (rules, mut dice) = (rules(), Dice(SEED));
    let (mut hive, mut model, mut serial) = (Hive::new(), Model { events: 2, ..Model::default() }, 0);
    // Nothing is overdue here.
    let settings = format!(
        "governance:\n  max_concurrent_tasks: {TASKS_AT_ONCE}\n  heartbeat_interval_seconds: 10000000\n  \
         approval_timeout_hours: 9999\n  archive_after_days: 9999\n"
    );
    write_private(&hive.vault().join("hiveforge.config.yaml"), settings.as_bytes());
    // Whoever comes first puts the settings on the record.
    hive.run("append", &["TaskReady", "--subject", "task:nothing"]).expect_exit(6);
    let mut log = BTreeMap::new();
    assert_eq!(news(&hive, &mut log).len(), 2);
    let start = Timestamp::parse(START).unwrap().0;
    let (mut steps, mut next_check, mut seen) = (0, CHECK_EVERY, BTreeMap::<String, u64>::new());
    while steps < STEPS {
        // Ten seconds a step, so that the log goes over midnight.
        let now = Timestamp(start + 10 * steps as i64);
        hive.at(&now.to_string());
        model.now = now.to_string();
        let ctx = Context { now: Now { millis: now.0 as u64 * 1000 }, ..hive.context() };
        let place = format!("seed {SEED:#x}, step {steps}");
        if dice.one_in(30) {
            meddle(&mut dice, &hive);
        }
        if dice.one_in(4) {
            let (mut after, mut all, mut requests) = (model.clone(), Vec::new(), Vec::new());
            for _ in 0..1 + dice.roll(100) {
                let asked = Asked { key: None, ..invent(&mut dice, &rules, &after, &mut serial) };
                let request = request(&mut dice, &after, &asked);
                let verdict = after.take(&rules, &asked, Trial::Paper);
                // One line in a hundred may spoil its batch.
                if verdict == Verdict::Recorded || dice.one_in(100) {
                    requests.push(request);
                    all.push((asked, verdict));
                }
            }
            if requests.is_empty() {
                continue;
            }
            let bad =
                all.iter().map(|(_, verdict)| *verdict).find(|v| [Verdict::Refused, Verdict::Unknown].contains(v));
            let new = all.iter().any(|(_, verdict)| *verdict == Verdict::Recorded);
            let expected = bad.unwrap_or(if new { Verdict::Recorded } else { Verdict::Duplicate });
            steps += requests.len() as u64;
            let done =
                op::append_batch(&ctx, AppendBatchRequest { events: requests, key: None, mode: op::Mode::Write });
            assert_eq!(verdict(&done), expected, "{place}: a batch, {all:?}, {done:?}");
            let mut recorded = news(&hive, &mut log);
            if bad.is_none() {
                for (asked, verdict) in &all {
                    assert_eq!(model.take(&rules, asked, Trial::Log(&mut recorded)), *verdict, "{place}: {asked:?}");
                }
            }
            assert!(recorded.is_empty(), "{place}: {recorded:#?}");
            *seen.entry(format!("batch {expected:?}")).or_default() += 1;
        } else {
            let asked = invent(&mut dice, &rules, &model, &mut serial);
            let request = request(&mut dice, &model, &asked);
            let expected = model.judge(&rules, &asked);
            steps += 1;
            let found = match steps % 50 {
                0 => run(&hive, &request),
                _ => verdict(&op::append(&ctx, AppendRequest { event: request, mode: op::Mode::Write })),
            };
            assert_eq!(found, expected, "{place}: {asked:?}");
            let mut recorded = news(&hive, &mut log);
            assert_eq!(model.take(&rules, &asked, Trial::Log(&mut recorded)), expected, "{place}: {asked:?}");
            assert!(recorded.is_empty(), "{place}: {recorded:#?}");
            *seen.entry(format!("{expected:?}")).or_default() += 1;
        }
        if steps >= next_check {
            next_check += CHECK_EVERY;
            compare(&ctx, &model, &place);
            let check = project::check(&ctx).unwrap();
            assert_eq!((check.differences, check.events), (Vec::new(), model.events), "{place}");
        }
    }
    // A model that never says no, or never yes, would prove little.
    for verdict in ["Recorded", "Duplicate", "Refused", "Unknown", "batch Recorded", "batch Refused"] {
        assert!(seen.get(verdict).is_some_and(|count| *count >= 5), "seed {SEED:#x}: {seen:?}");
    }
    for kind in FOLLOW {
        assert!(model.followed.get(kind).is_some_and(|count| *count >= 5), "seed {SEED:#x}: {:?}", model.followed);
    }
    assert!(!model.archived.is_empty() && model.archived.iter().any(|subject| subject.starts_with("run:")));
    hive.run("project", &["--rebuild"]).expect_exit(0);
    compare(&hive.context(), &model, "after a rebuild");
    hive.run("verify", &["--projections", "--policy"]).expect_exit(0);
}
