//! Random events, legal and not, against a model that knows nothing of the toolkit: ten thousand
//! steps, while the index is removed, damaged and put back under the commands' feet.
//!
//! The model says of every request what must come of it, and of every event that is recorded what
//! follows from it by itself, in which order and with which payload; the log is compared to it line by line.

mod follow;
mod judge;
mod legal_steps;
mod record;
mod requests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use hiveforge::base::{ErrorKind, Now, Reason, Timestamp};
use hiveforge::op::project::{self, MapRequest, Projection};
use hiveforge::op::{self, AppendBatchRequest, AppendRequest, Context, NewEvent};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::support::test_vault::{START, TestVault, write_private};

use legal_steps::rules;
use requests::{Dice, invent, request};

/// Events that are asked for.
const STEPS: u64 = 10_000;
/// How often everything is compared.
const CHECK_EVERY: u64 = 1_000;
const SEED: u64 = 0x5eed_0001;
/// Settings: the first is given to the vault, the others are what it has without being told.
const TASKS_AT_ONCE: usize = 30;
const RETRIES: u64 = 3;
const RETURNS: u64 = 5;

/// What must have followed by itself, some time or other.
const FOLLOW: &[&str] = &[
    "BranchCompleted",
    "BranchCreated",
    "ConstraintApplied",
    "DecisionRequested",
    "DecisionSuperseded",
    "EscalationClosed",
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
    /// Subject → the id of the event that last changed it.
    changed_by: BTreeMap<String, String>,
    /// Requirement or task → the number of the event that last approved or aborted it.
    decided_at: BTreeMap<String, u64>,
    /// Task → who said that it failed.
    failed_by: BTreeMap<String, String>,
    /// The questions that the toolkit asked.
    pub(super) own_questions: std::collections::BTreeSet<String>,
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

    /// Everything of a type whose fact is this, in order of creation.
    fn with(&self, entity: &'static str, name: &str, value: &str) -> Vec<String> {
        let all = self.made.get(entity).into_iter().flatten();
        all.filter(|s| self.text(s, name) == Some(value)).cloned().collect()
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
            "escalation" => "ESC",
            _ => return None,
        };
        let place = self.made.get(entity_of(subject))?.iter().position(|made| made == subject)?;
        Some(format!("{prefix}-{:04}", place + 1))
    }
}

const ENTITIES: [&str; 9] =
    ["requirement", "decision", "task", "run", "artifact", "constraint", "branch", "thread", "escalation"];

fn entity_of(subject: &str) -> &'static str {
    let name = subject.split(':').next().unwrap();
    ENTITIES.into_iter().find(|entity| *entity == name).unwrap_or("agent")
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
                | Reason::ReservedKind
                | Reason::TooManyTasks,
            ) => Verdict::Refused,
            ErrorKind::NotFound => Verdict::Unknown,
            _ => panic!("{error:?}"),
        },
    }
}

/// The same through the command itself.
fn run(hive: &TestVault, request: &NewEvent) -> Verdict {
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
fn meddle(dice: &mut Dice, hive: &TestVault) {
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
            // The model does not know its place in the log.
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
fn news(hive: &TestVault, seen: &mut BTreeMap<PathBuf, u64>) -> VecDeque<Value> {
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
fn ten_thousand_random_events_match_a_plain_model() {
    let (rules, mut dice) = (rules(), Dice(SEED));
    let (mut hive, mut model, mut serial) = (TestVault::new(), Model { events: 2, ..Model::default() }, 0);
    // Nothing is overdue here.
    let settings = format!(
        "governance:\n  max_concurrent_tasks: {TASKS_AT_ONCE}\n  heartbeat_interval_seconds: 10000000\n  \
         approval_timeout_hours: 9999\n  archive_after_days: 9999\n"
    );
    hive.configure(&settings);
    // The first command records the settings.
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
