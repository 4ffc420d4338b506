//! Random events, legal and not, against a model that knows nothing of the toolkit: ten thousand
//! steps, while the index is removed, damaged and put back under the commands' feet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use hiveforge::base::{ErrorKind, Now, Reason, Timestamp};
use hiveforge::op::project::{self, Projection};
use hiveforge::op::{self, AppendRequest, Env};
use serde_json::{Map, Value, json};

use crate::hive::{Hive, START, write_private};

/// Events that are asked for.
const STEPS: u64 = 10_000;
/// How often everything is compared.
const CHECK_EVERY: u64 = 1_000;
const SEED: u64 = 0x5eed_0001;

/// Every legal step, written down from the design and apart from the toolkit's tables.
const RULES: &str = "
    requirement: - RequirementProposed Proposed RequirementAnalyzed Analyzed RequirementApproved Approved
        RequirementImplemented Implemented RequirementVerified Verified
    requirement: Proposed RequirementRejected Rejected
    requirement: Analyzed RequirementRejected Rejected
    requirement: Approved RequirementSuperseded Superseded
    requirement: Approved OscillationDetected Blocked RequirementApproved Approved
    requirement: Implemented OscillationDetected Blocked
    decision: - DecisionRequested Requested DecisionApproved Approved DecisionSuperseded Superseded
    decision: Requested DecisionRejected Rejected
    decision: Requested ApprovalTimedOut Escalated DecisionApproved Approved
    decision: Escalated DecisionRejected Rejected
    task: - TaskProposed Proposed TaskReady Ready TaskAssigned Assigned ClaimExpired Ready
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
";

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

#[derive(Clone, Default)]
struct Model {
    /// Subject → state.
    states: BTreeMap<String, &'static str>,
    /// Type → subjects in the order in which they were made.
    made: BTreeMap<&'static str, Vec<String>>,
    /// Task → runs.
    runs: BTreeMap<String, Vec<String>>,
    archived: BTreeSet<String>,
    retries: BTreeMap<String, u64>,
    /// Key → the request that it belongs to.
    keys: BTreeMap<String, Asked>,
    events: u64,
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

impl Model {
    fn state(&self, subject: &str) -> &'static str {
        self.states.get(subject).copied().unwrap_or("-")
    }

    fn named(asked: &Asked, member: &str, entity: &str) -> Option<String> {
        Some(format!("{entity}:{}", asked.payload.get(member)?.as_str()?))
    }

    /// What must come of a request here, and the model after it.
    fn take(&mut self, rules: &Rules, asked: &Asked) -> Verdict {
        if let Some(first) = asked.key.as_ref().and_then(|key| self.keys.get(key)) {
            let same = (first.kind, &first.subject, &first.payload) == (asked.kind, &asked.subject, &asked.payload);
            return if same { Verdict::Duplicate } else { Verdict::Refused };
        }
        let entity = entity_of(&asked.subject);
        let from = self.state(&asked.subject);
        let to = match (asked.kind, rules.get(&(entity, from, asked.kind))) {
            ("EscalationRequired", _) if from != "-" => from,
            (_, Some(to)) => to,
            _ if from == "-" => return Verdict::Unknown,
            _ => return Verdict::Refused,
        };
        let task = Self::named(asked, "task_id", "task");
        let requirement = Self::named(asked, "requirement_id", "requirement");
        if task.iter().chain(&requirement).any(|named| self.state(named) == "-") {
            return Verdict::Unknown;
        }
        if asked.kind == "RunStarted" && self.state(task.as_ref().unwrap()) != "Assigned" {
            return Verdict::Refused;
        }
        if let Some(agent) = asked.agent.as_ref().filter(|agent| self.state(agent) == "-") {
            self.events += 1;
            self.set(agent, "Active");
        }
        self.events += 1;
        self.set(&asked.subject, to);
        match asked.kind {
            "RunStarted" => {
                let task = task.unwrap();
                self.set(&task, "Running");
                self.runs.entry(task).or_default().push(asked.subject.clone());
            }
            "TaskProposed" => {
                if let Some(requirement) = requirement.filter(|named| self.state(named) == "Implemented") {
                    self.set(&requirement, "Approved");
                }
            }
            "TaskRetrying" => *self.retries.entry(asked.subject.clone()).or_default() += 1,
            "TaskArchived" => {
                self.archived.insert(asked.subject.clone());
                self.archived.extend(self.runs.get(&asked.subject).into_iter().flatten().cloned());
            }
            _ => {}
        }
        if let Some(key) = &asked.key {
            self.keys.insert(key.clone(), asked.clone());
        }
        Verdict::Recorded
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
            _ => return None,
        };
        let place = self.made.get(entity_of(subject))?.iter().position(|made| made == subject)?;
        Some(format!("{prefix}-{:04}", place + 1))
    }
}

const ENTITIES: [&str; 6] = ["requirement", "decision", "task", "run", "artifact", "constraint"];

fn entity_of(subject: &str) -> &'static str {
    let name = subject.split(':').next().unwrap();
    ENTITIES.into_iter().find(|entity| *entity == name).unwrap_or("agent")
}

/// A payload that fits a kind; what it names need not exist.
fn payload(dice: &mut Dice, kind: &str) -> Value {
    let task = format!("t{}", dice.roll(600));
    match kind {
        "RequirementProposed" => json!({"title": format!("wish {}", dice.roll(5))}),
        "TaskProposed" if dice.one_in(3) => json!({"title": "job"}),
        "TaskProposed" => json!({"title": "job", "requirement_id": format!("r{}", dice.roll(600))}),
        "DecisionRequested" => json!({"kind": "constraint_change", "target": "system", "summary": "?"}),
        "TaskFailed" => json!({"error_class": "transient", "reason": "x"}),
        "RunStarted" => json!({"task_id": task}),
        "ArtifactDeclared" if dice.one_in(2) => json!({"kind": "text", "task_id": task}),
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
    let entity = *dice.pick(&ENTITIES);
    let letter = if entity == "run" { "x" } else { &entity[..1] };
    let subject = format!("{entity}:{letter}{}", dice.roll(if entity == "run" { 3000 } else { 600 }));
    let from = model.state(&subject);
    let legal: Vec<&str> = rules
        .keys()
        .filter(|rule| rule.0 == entity && (rule.1 == from || dice.one_in(40)))
        .map(|rule| rule.2)
        .collect();
    let kind = match legal.as_slice() {
        _ if from != "-" && dice.one_in(25) => "EscalationRequired",
        [] => rules.keys().filter(|rule| rule.0 == entity).map(|rule| rule.2).next().unwrap(),
        legal => dice.pick(legal),
    };
    let mut payload = payload(dice, kind);
    if kind == "RunStarted" && !dice.one_in(5) {
        let assigned =
            model.states.iter().find(|(subject, state)| **state == "Assigned" && subject.starts_with("task:"));
        if let Some((task, _)) = assigned {
            payload["task_id"] = json!(task[5..]);
        }
    }
    *serial += 1;
    Asked {
        kind,
        subject,
        payload: payload.as_object().unwrap().clone(),
        key: dice.one_in(3).then(|| format!("key-{serial}")),
        agent: dice.one_in(30).then(|| format!("agent:z{}", dice.roll(20))),
    }
}

/// The request, with its subject named in one of the ways that lead to it.
fn request(dice: &mut Dice, model: &Model, asked: &Asked) -> AppendRequest {
    let id = asked.subject.split(':').nth(1).unwrap().to_owned();
    let subject = match (dice.roll(4), model.reference(&asked.subject)) {
        (0, Some(reference)) => reference,
        (1, Some(reference)) => reference.to_lowercase(),
        (2, Some(_)) => id,
        _ => asked.subject.clone(),
    };
    AppendRequest {
        event_type: asked.kind.to_owned(),
        subject: Some(subject),
        payload: asked.payload.clone(),
        parents: Vec::new(),
        key: asked.key.clone(),
        actor: asked.agent.clone(),
    }
}

fn verdict(done: &hiveforge::base::Result<op::AppendOutcome>) -> Verdict {
    match done {
        Ok(done) if done.duplicate => Verdict::Duplicate,
        Ok(_) => Verdict::Recorded,
        Err(error) => match error.kind {
            ErrorKind::Refused(Reason::IllegalTransition | Reason::KeyConflict) => Verdict::Refused,
            ErrorKind::NotFound => Verdict::Unknown,
            _ => panic!("{error:?}"),
        },
    }
}

/// The same through the command itself.
fn run(hive: &Hive, request: &AppendRequest) -> Verdict {
    let payload = Value::Object(request.payload.clone()).to_string();
    let mut args = vec![request.event_type.as_str(), "--payload", &payload];
    for (name, value) in [("--subject", &request.subject), ("--key", &request.key), ("--actor", &request.actor)] {
        args.extend(value.iter().flat_map(|value| [name, value.as_str()]));
    }
    let reply = hive.run("append", &args);
    match (reply.code, reply.get("STATUS")) {
        (Some(0), "APPENDED") => Verdict::Recorded,
        (Some(0), "DUPLICATE") => Verdict::Duplicate,
        (Some(3), "REFUSED") => Verdict::Refused,
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
fn compare(env: &Env, model: &Model, place: &str) {
    for entity in ENTITIES.into_iter().chain(["agent"]) {
        let (map, _) = project::map(env, Projection::parse(&format!("{entity}s")).unwrap()).unwrap();
        let found: BTreeMap<String, (String, Option<String>)> = map
            .iter()
            .map(|(id, entry)| {
                let reference = entry.get("ref").map(|r| r.as_str().unwrap().split('@').next().unwrap().to_owned());
                (format!("{entity}:{id}"), (entry["status"].as_str().unwrap().to_owned(), reference))
            })
            .collect();
        let live = model.states.iter().filter(|(s, _)| entity_of(s) == entity && !model.archived.contains(*s));
        let expected = live.map(|(s, state)| (s.clone(), ((*state).to_owned(), model.reference(s)))).collect();
        assert_eq!(found, expected, "{place}: {entity}");
        if entity == "task" {
            for (id, entry) in &map {
                let subject = format!("task:{id}");
                assert_eq!(entry["retry_count"], model.retries.get(&subject).copied().unwrap_or(0), "{place}: {id}");
                let runs =
                    model.runs.get(&subject).into_iter().flatten().map(|run| json!(run[4..])).collect::<Vec<_>>();
                assert_eq!(entry.get("run_ids").cloned().unwrap_or(json!([])), json!(runs), "{place}: {id}");
            }
        }
    }
    let (keys, _) = project::map(env, Projection::Idempotency).unwrap();
    assert_eq!(keys.keys().collect::<Vec<_>>(), model.keys.keys().collect::<Vec<_>>(), "{place}");
}

#[test]
fn ten_thousand_random_events_come_to_what_a_plain_model_says() {
    let (rules, mut dice) = (rules(), Dice(SEED));
    let (mut hive, mut model, mut serial) = (Hive::new(), Model { events: 1, ..Model::default() }, 0);
    let start = Timestamp::parse(START).unwrap().0;
    let (mut steps, mut next_check, mut seen) = (0, CHECK_EVERY, BTreeMap::<String, u64>::new());
    while steps < STEPS {
        // Ten seconds a step, so that the log goes over midnight.
        let now = Timestamp(start + 10 * steps as i64);
        hive.at(&now.to_string());
        let env = Env { now: Now { millis: now.0 as u64 * 1000 }, ..hive.env() };
        let place = format!("seed {SEED:#x}, step {steps}");
        if dice.one_in(30) {
            meddle(&mut dice, &hive);
        }
        if dice.one_in(4) {
            let (mut after, mut requests, mut verdicts) = (model.clone(), Vec::new(), Vec::new());
            for _ in 0..1 + dice.roll(100) {
                let asked = Asked { key: None, ..invent(&mut dice, &rules, &after, &mut serial) };
                let request = request(&mut dice, &after, &asked);
                let verdict = after.take(&rules, &asked);
                // One line in a hundred may spoil its batch.
                if verdict == Verdict::Recorded || dice.one_in(100) {
                    requests.push(request);
                    verdicts.push(verdict);
                }
            }
            if requests.is_empty() {
                continue;
            }
            let bad = verdicts.iter().copied().find(|verdict| *verdict != Verdict::Recorded);
            let expected = bad.unwrap_or(Verdict::Recorded);
            steps += requests.len() as u64;
            let done = op::append_batch(&env, requests, None, false);
            assert_eq!(verdict(&done), expected, "{place}: a batch, {done:?}");
            if bad.is_none() {
                model = after;
            }
            *seen.entry(format!("batch {expected:?}")).or_default() += 1;
        } else {
            let asked = invent(&mut dice, &rules, &model, &mut serial);
            let request = request(&mut dice, &model, &asked);
            let expected = model.take(&rules, &asked);
            steps += 1;
            let found = match steps % 50 {
                0 => run(&hive, &request),
                _ => verdict(&op::append(&env, request, false)),
            };
            assert_eq!(found, expected, "{place}: {asked:?}");
            *seen.entry(format!("{expected:?}")).or_default() += 1;
        }
        if steps >= next_check {
            next_check += CHECK_EVERY;
            compare(&env, &model, &place);
            let check = project::check(&env).unwrap();
            assert_eq!((check.differences, check.events), (Vec::new(), model.events), "{place}");
        }
    }
    // A model that never says no, or never yes, would prove little.
    for verdict in ["Recorded", "Duplicate", "Refused", "Unknown", "batch Recorded", "batch Refused"] {
        assert!(seen.get(verdict).is_some_and(|count| *count >= 5), "seed {SEED:#x}: {seen:?}");
    }
    assert!(!model.archived.is_empty() && model.archived.iter().any(|subject| subject.starts_with("run:")));
    hive.run("project", &["--rebuild"]).expect_exit(0);
    compare(&hive.env(), &model, "after a rebuild");
    hive.run("verify", &["--projections", "--policy"]).expect_exit(0);
}
