//! One mind, whatever is asked of it: ten thousand random steps, legal and not, against a model that
//! knows nothing of the toolkit; and a few hundred through the commands' own functions, on a real vault.

use std::collections::BTreeMap;
use std::fs;

use hiveforge::base::{Actor, Digest, EntityId, EntityType, Now, Subject, Timestamp, Ulid};
use hiveforge::event::{BatchPosition, Draft, Event, Kind};
use hiveforge::machine::Phase;
use hiveforge::op::branch::{
    self, CompleteBranchRequest, CreateRequest, LeavingNote, NoteRequest, ResumeBranchRequest, SuspendRequest,
    TellRequest,
};
use hiveforge::op::{self, Context, task};
use hiveforge::policy::audit::Audit;
use hiveforge::policy::due::{MachineFacts, Moment};
use hiveforge::policy::{self, Request, Ruling, Settings};
use hiveforge::state::{Entity, State};
use serde_json::{Map, Value, json};

use crate::support::test_vault::{Random, START, TestVault, write_private};

const STEPS: usize = 10_000;
const SEED: u64 = 0xb4a_0001;
const PERSONAS: [&str; 4] = ["ann", "ben", "cem", "dot"];

/// Policy and fold without a vault: what a desk does, in memory.
struct Lab {
    state: State,
    audit: Audit,
    events: Vec<Event>,
    ids: u64,
}

impl Lab {
    fn new() -> Self {
        let mut lab = Lab { state: State::default(), audit: Audit::default(), events: Vec::new(), ids: 0 };
        let first = json!({"vault_id": "0".repeat(32), "schema_version": 1});
        lab.push(draft(Kind::VaultInitialized, Subject::SYSTEM, Actor::core("vault"), first), &mut Vec::new());
        let first = lab.state.first_event();
        lab.events[0].seal(Digest::ZERO, None);
        assert!(first.is_some() && lab.audit.check(&lab.events[0]).is_empty());
        lab
    }

    fn mint(&mut self) -> Ulid {
        self.ids += 1;
        let start = Timestamp::parse(START).unwrap().0 as u64;
        Ulid::from_parts((start + self.ids / 100) * 1000, u128::from(self.ids))
    }

    fn push(&mut self, draft: Draft, unit: &mut Vec<usize>) {
        let id = self.mint();
        let event = Event::from_draft(draft, id, Timestamp((id.timestamp_ms() / 1000) as i64));
        self.state.apply(&event);
        unit.push(self.events.len());
        self.events.push(event);
    }

    /// Asks for something, and follows what comes of it. Nothing if a rule refuses.
    fn ask(&mut self, kind: Kind, subject: Option<&str>, actor: &str, payload: Value) -> Option<()> {
        let request = Request {
            kind,
            subject: subject.map(str::to_owned),
            actor: Actor::parse(actor).unwrap(),
            autonomous: actor.starts_with("agent:"),
            parents: Vec::new(),
            key: None,
            payload: payload.as_object().unwrap().clone(),
        };
        let fresh = self.mint();
        let verdict = {
            let (settings, machine) = (Settings::default(), MachineFacts::default());
            let moment = Moment {
                state: &self.state,
                settings: &settings,
                now: Timestamp((fresh.timestamp_ms() / 1000) as i64),
                machine: &machine,
            };
            policy::decide(&moment, request, &mut || fresh).ok()?
        };
        let Ruling::Record(draft) = verdict else { return None };
        let mut unit = Vec::new();
        self.push(draft, &mut unit);
        let mut at = 0;
        while at < unit.len() {
            let cause = self.events[unit[at]].clone();
            let mut ids: Vec<Ulid> = (0..policy::makes_at_most(&cause)).map(|_| self.mint()).collect();
            ids.reverse();
            let mut mint = || ids.pop().unwrap();
            for draft in policy::react(&self.state, &Settings::default(), &cause, &mut mint) {
                self.push(draft, &mut unit);
            }
            at += 1;
        }
        let of = unit.len() as u64;
        for (n, at) in unit.iter().enumerate() {
            let prev = self.events[at - 1].hash;
            self.events[*at].seal(prev, (of > 1).then_some(BatchPosition { no: n as u64 + 1, of }));
            let wrong = self.audit.check(&self.events[*at]);
            assert!(wrong.is_empty(), "seed {SEED:#x}: {wrong:?}");
        }
        Some(())
    }

    fn get(&self, subject: &str) -> Entity {
        self.state.entity(&Subject::parse(subject).unwrap()).unwrap_or_else(|| panic!("{subject}")).into_owned()
    }

    fn last(&self, entity: EntityType) -> Entity {
        let subject = self.state.nth(entity, self.state.tally().made(entity)).unwrap();
        self.get(&subject.to_string())
    }
}

fn draft(kind: Kind, subject: Subject, actor: Actor, payload: Value) -> Draft {
    Draft { kind, subject, actor, parents: Vec::new(), key: None, payload: payload.as_object().unwrap().clone() }
}

/// A branch as the model sees it: threads are numbered over all, in the order in which they were opened.
#[derive(Clone, Debug, PartialEq)]
struct Branch {
    persona: &'static str,
    kind: &'static str,
    task: Option<usize>,
    active: bool,
    completed: bool,
    /// Whether each thread is completed, aborted, or open.
    threads: Vec<&'static str>,
}

#[derive(Default)]
struct Model {
    branches: Vec<Branch>,
    /// Whether each task is over, and with how many steps of its life behind it.
    tasks: Vec<&'static str>,
    /// Personas whom a user told something while they were elsewhere.
    called: BTreeMap<&'static str, bool>,
}

impl Model {
    fn active(&self, persona: &str) -> Option<usize> {
        self.branches.iter().position(|b| b.persona == persona && b.active && b.kind != "user")
    }

    fn close(&mut self, at: usize, how: &'static str) {
        let persona = self.branches[at].persona;
        self.branches[at].active = false;
        *self.branches[at].threads.last_mut().unwrap() = how;
        self.called.remove(persona);
        self.root(persona).active = true;
    }

    fn root(&mut self, persona: &str) -> &mut Branch {
        self.branches.iter_mut().find(|b| b.persona == persona && b.kind == "user").unwrap()
    }

    fn open(&mut self, at: usize) {
        let persona = self.branches[at].persona;
        self.branches[at].active = true;
        self.branches[at].threads.push("open");
        if self.branches[at].kind != "user" {
            self.root(persona).active = false;
        }
    }

    fn begin(&mut self, persona: &'static str, kind: &'static str, task: Option<usize>) {
        self.branches.push(Branch { persona, kind, task, active: false, completed: false, threads: Vec::new() });
        let at = self.branches.len() - 1;
        if kind != "social" {
            if let Some(other) = self.active(persona) {
                self.close(other, "aborted");
            }
            self.open(at);
        }
    }

    /// What an agent does after a user told it something ends its thread.
    fn after_step_of(&mut self, persona: &'static str) {
        if let Some(at) = self.active(persona).filter(|_| self.called.contains_key(persona)) {
            self.close(at, "aborted");
        }
    }

    fn end_task(&mut self, task: usize, how: &'static str) {
        self.tasks[task] = "over";
        for at in 0..self.branches.len() {
            if self.branches[at].task == Some(task) && !self.branches[at].completed {
                if self.branches[at].active {
                    self.close(at, how);
                }
                self.branches[at].completed = true;
            }
        }
    }
}

fn thread_of(lab: &Lab, branch: usize) -> Option<String> {
    let branch = lab.state.nth(EntityType::Branch, branch as u64 + 1).unwrap();
    let branch = lab.get(&branch.to_string());
    Some(format!("thread:{}", branch.as_branch().last_thread_id()?))
}

/// Fails unless everything is as the model says, and every persona is one mind.
fn compare(lab: &Lab, model: &Model, place: &str) {
    assert_eq!(lab.state.tally().made(EntityType::Branch), model.branches.len() as u64, "{place}");
    let mut active: BTreeMap<String, usize> = BTreeMap::new();
    for (n, expected) in model.branches.iter().enumerate() {
        let found = lab.get(&lab.state.nth(EntityType::Branch, n as u64 + 1).unwrap().to_string());
        let state = match (expected.completed, expected.active) {
            (true, _) => Phase::Completed,
            (false, true) => Phase::Active,
            (false, false) => Phase::Suspended,
        };
        assert_eq!(found.phase, state, "{place}: {found:?}, {expected:?}");
        assert_eq!(found.as_branch().persona_id(), Some(expected.persona), "{place}");
        *active.entry(expected.persona.to_owned()).or_default() += usize::from(found.phase == Phase::Active);
        // The chain, from its end to its beginning, without a gap.
        let mut next = found.as_branch().last_thread_id().map(str::to_owned);
        for (number, how) in expected.threads.iter().enumerate().rev() {
            let thread = lab.get(&format!("thread:{}", next.expect("a thread")));
            assert_eq!(thread.as_thread().branch_id(), Some(found.subject.id()), "{place}");
            assert_eq!(thread.as_thread().number(), number as u64 + 1, "{place}");
            let state = if *how == "open" { "active" } else { how };
            assert_eq!(thread.phase.as_str().to_lowercase(), state, "{place}: {thread:?}");
            next = thread.as_thread().anchor_id().map(str::to_owned);
        }
        assert_eq!(next, None, "{place}");
        let open = expected.threads.iter().filter(|how| **how == "open").count();
        assert_eq!(open, usize::from(expected.active || expected.kind == "user"), "{place}");
        assert!(!expected.completed || ["task", "free"].contains(&expected.kind), "{place}");
    }
    assert!(active.values().all(|count| *count == 1), "{place}: {active:?}");
    for persona in PERSONAS {
        let root = lab.state.root(&EntityId::parse(persona).unwrap()).unwrap();
        for anchor in root.as_branch().anchors() {
            assert_ne!(lab.get(&format!("thread:{anchor}")).phase, Phase::Active, "{place}");
        }
    }
}

#[test]
fn random_steps_keep_the_branch_rules() {
    let (mut lab, mut model, mut dice) = (Lab::new(), Model::default(), Random::new(SEED));
    for (n, persona) in PERSONAS.into_iter().enumerate() {
        let (agent, root) = (format!("agent:{persona}"), format!("branch:{persona}"));
        lab.ask(Kind::AgentStarted, Some(&agent), &agent, json!({})).unwrap();
        let made = json!({"persona_id": persona, "branch_type": "user", "label": "the user"});
        lab.ask(Kind::BranchCreated, Some(&root), &agent, made).unwrap();
        model.begin(persona, "user", None);
        for _ in 0..n {
            for _ in 0..2 {
                // Whose is whose does not matter to the model: nobody tells them apart but by their persona.
                let social = lab.state.nth(EntityType::Branch, model.branches.len() as u64 + 1).unwrap();
                let of = lab.get(&social.to_string()).as_branch().persona_id().unwrap().to_owned();
                model.begin(PERSONAS.into_iter().find(|name| *name == of).unwrap(), "social", None);
            }
        }
    }
    compare(&lab, &model, "before the first step");
    let mut seen: BTreeMap<(&str, bool), u64> = BTreeMap::new();
    for step in 0..STEPS {
        let place = format!("seed {SEED:#x}, step {step}");
        let persona = PERSONAS[dice.below(4) as usize];
        // One in twenty wants to act for somebody else.
        let stranger = dice.below(20) == 0;
        let by = if stranger { PERSONAS.into_iter().find(|other| *other != persona).unwrap() } else { persona };
        let actor = format!("agent:{by}");
        let mine: Vec<usize> = (0..model.branches.len()).filter(|b| model.branches[*b].persona == persona).collect();
        // Mostly one that is open, or nothing would ever be gone to again.
        let open: Vec<usize> = mine.iter().copied().filter(|b| !model.branches[*b].completed).collect();
        let from = if dice.below(10) == 0 { &mine } else { &open };
        let at = from[dice.below(from.len() as u64) as usize];
        let one = model.branches[at].clone();
        let id = lab.state.nth(EntityType::Branch, at as u64 + 1).unwrap().id().to_owned();
        let (what, legal, done) = match dice.below(12) {
            0 => {
                let made = json!({"persona_id": persona, "branch_type": "free", "label": "free"});
                let done = lab.ask(Kind::BranchCreated, None, &actor, made);
                if done.is_some() {
                    model.begin(persona, "free", None);
                }
                ("create", !stranger, done)
            }
            1 => {
                // There is one already, for every two.
                let partner = PERSONAS[dice.below(4) as usize];
                let made = json!({"persona_id": persona, "branch_type": "social", "label": "x",
                    "partner_persona_id": partner});
                ("create social", false, lab.ask(Kind::BranchCreated, None, &actor, made))
            }
            2..=4 => {
                let legal =
                    !stranger && !one.completed && !one.active && one.kind != "user" && model.active(persona).is_none();
                let mut opened = json!({"branch_id": id});
                if dice.below(10) == 0 {
                    opened["anchor_id"] = json!(lab.last(EntityType::Thread).subject.id());
                }
                let fits = opened.get("anchor_id").is_none_or(|anchor| {
                    thread_of(&lab, at).is_some_and(|last| {
                        Some(last.as_str()) == anchor.as_str().map(|a| format!("thread:{a}")).as_deref()
                    })
                });
                let done = lab.ask(Kind::ThreadOpened, None, &actor, opened);
                if done.is_some() {
                    model.open(at);
                }
                ("resume", legal && fits, done)
            }
            5..=7 => {
                let how = dice.below(3);
                // Mostly the branch that the persona is at.
                let (at, one) = match model.active(persona).filter(|_| dice.below(4) != 0) {
                    Some(active) => (active, model.branches[active].clone()),
                    None => (at, one.clone()),
                };
                let id = lab.state.nth(EntityType::Branch, at as u64 + 1).unwrap().id().to_owned();
                let Some(thread) = thread_of(&lab, at) else { continue };
                let (kind, payload, how) = match how {
                    0 => (Kind::ThreadAborted, json!({"branch_id": id}), "aborted"),
                    _ => (Kind::ThreadCompleted, json!({"branch_id": id, "summary": "so far"}), "completed"),
                };
                let done = lab.ask(kind, Some(&thread), &actor, payload);
                if done.is_some() {
                    model.close(at, how);
                }
                ("suspend", !stranger && one.active && one.kind != "user", done)
            }
            8 => {
                let over = one.task.is_some_and(|task| model.tasks[task] == "over");
                let may = one.kind == "free" || one.kind == "task" && over;
                let done = lab.ask(Kind::BranchCompleted, Some(&format!("branch:{id}")), &actor, json!({}));
                if done.is_some() {
                    model.branches[at].completed = true;
                }
                ("complete", !stranger && may && !one.active && !one.completed, done)
            }
            9 => {
                let said = json!({"to": persona, "text": "are you there?"});
                let done = lab.ask(Kind::MessageSent, None, "user:jo", said);
                if model.active(persona).is_some() {
                    model.called.insert(persona, true);
                }
                ("interrupt", true, done)
            }
            10 => {
                let at = model.active(persona).unwrap_or_else(|| {
                    model.branches.iter().position(|b| b.persona == persona && b.kind == "user").unwrap()
                });
                let id = lab.state.nth(EntityType::Branch, at as u64 + 1).unwrap().id().to_owned();
                let thread = thread_of(&lab, at).unwrap();
                let done = lab.ask(Kind::NoteRecorded, Some(&thread), &actor, json!({"branch_id": id, "text": "hm"}));
                ("note", !stranger, done)
            }
            _ => {
                let open = model.tasks.iter().position(|task| *task != "over").filter(|_| dice.below(2) == 0);
                match open {
                    None => {
                        let name = format!("task:t{}", model.tasks.len());
                        lab.ask(Kind::TaskProposed, Some(&name), "user:jo", json!({"title": "work"})).unwrap();
                        let holder = json!({"holder": format!("agent:{persona}")});
                        let done = lab.ask(Kind::TaskAssigned, Some(&name), "user:jo", holder);
                        // No more than ten are under way.
                        let legal = model.tasks.iter().filter(|task| **task == "held").count() < 10;
                        model.tasks.push(if done.is_some() { "held" } else { "waits" });
                        if done.is_some() {
                            model.begin(persona, "task", Some(model.tasks.len() - 1));
                        }
                        ("assign", legal, done)
                    }
                    Some(task) => {
                        let name = format!("task:t{task}");
                        let done = match dice.below(2) == 0 && model.tasks[task] == "held" {
                            true => {
                                let run = json!({"task_id": format!("t{task}")});
                                lab.ask(Kind::RunStarted, None, "core:test", run).unwrap();
                                model.end_task(task, "completed");
                                lab.ask(Kind::TaskSucceeded, Some(&name), "core:test", json!({}))
                            }
                            false => {
                                model.end_task(task, "aborted");
                                lab.ask(Kind::TaskAborted, Some(&name), "user:jo", json!({}))
                            }
                        };
                        ("end of a task", true, done)
                    }
                }
            }
        };
        assert_eq!(done.is_some(), legal, "{place}: {what} by {actor} of {one:?}");
        if done.is_some() && what != "interrupt" && what != "assign" && what != "end of a task" {
            model.after_step_of(persona);
        }
        *seen.entry((what, legal)).or_default() += 1;
        // Everything is looked at often, and in the end.
        if step % 200 == 0 || step + 1 == STEPS {
            compare(&lab, &model, &place);
        }
    }
    for what in ["create", "resume", "suspend", "complete", "note"] {
        for legal in [true, false] {
            assert!(seen.get(&(what, legal)).is_some_and(|count| *count >= 20), "seed {SEED:#x}: {seen:?}");
        }
    }
    assert!(seen[&("interrupt", true)] > 100 && seen[&("assign", true)] > 100, "{seen:?}");
    // What was folded in memory is what a vault of these events says.
    let hive = TestVault::new();
    let bytes: Vec<u8> =
        lab.events.iter_mut().flat_map(|e| [e.seal(e.prev_hash, e.batch), b"\n".to_vec()].concat()).collect();
    write_private(&hive.segment(), &bytes);
    fs::remove_file(hive.head()).unwrap();
    hive.run("project", &["--rebuild"]).expect_exit(0);
    let map = op::project::map(&hive.context(), every_branch()).unwrap().map;
    let live = lab.state.entities(EntityType::Branch, None, usize::MAX);
    let live: Map<String, Value> = live.iter().map(|b| (b.subject.id().to_owned(), b.projection())).collect();
    assert_eq!(map.len(), live.len());
    for (id, branch) in &live {
        let (mut found, mut expected) = (map[id].clone(), branch.clone());
        // Its tag is that of a hash, which the fold in memory did not have.
        for value in [&mut found, &mut expected] {
            value.as_object_mut().unwrap().remove("ref");
        }
        assert_eq!(found, expected);
    }
    hive.run("verify", &["--policy"]).expect_exit(0);
}

fn every_branch() -> op::project::MapRequest {
    op::project::MapRequest { projection: op::Projection::Of(EntityType::Branch) }
}

#[test]
fn random_operations_keep_the_branch_rules_on_a_real_vault() {
    let (hive, mut dice) = (TestVault::new(), Random::new(SEED));
    let start = Timestamp::parse(START).unwrap().0;
    let (mut done, mut refused) = (0, 0);
    for step in 0..400 {
        let name = PERSONAS[dice.below(3) as usize];
        let now = Now { millis: (start + step) as u64 * 1000 };
        let ctx = Context { now, ..hive.context().acting_as(Actor::parse(&format!("agent:{name}")).unwrap()) };
        let user = Context { now, ..hive.context() };
        let some = || -> LeavingNote { LeavingNote::default() };
        let leaving = match dice.below(3) {
            0 => some(),
            1 => LeavingNote { abort: true, ..some() },
            _ => LeavingNote { summary: Some(format!("so far {step}")), tail: Some("a\nb".to_owned()), abort: false },
        };
        let reference = format!("BR-{:04}", 1 + dice.below(40));
        let result = match dice.below(12) {
            0 | 1 => {
                let (label, branch_type) = ("free".to_owned(), "free".to_owned());
                branch::create(&ctx, CreateRequest { label, branch_type, leaving, ..Default::default() }).map(drop)
            }
            2..=5 => branch::resume(&ctx, ResumeBranchRequest { reference, words: 100, leaving }).map(drop),
            6 => {
                let leaving = LeavingNote { summary: leaving.summary, ..some() };
                branch::suspend(&ctx, SuspendRequest { leaving, ..Default::default() }).map(drop)
            }
            7 => {
                let request = CompleteBranchRequest { reference: Some(reference), leaving: some() };
                branch::complete(&ctx, request).map(drop)
            }
            8 => {
                let (to, text) = (vec![name.to_owned()], "are you there?".to_owned());
                branch::tell(&user, TellRequest { to, text, key: None }).map(drop)
            }
            9 => branch::decide(&ctx).map(drop),
            10 => branch::note(&ctx, NoteRequest { text: "hm".to_owned(), ..Default::default() }).map(drop),
            _ => {
                let propose = task::ProposeTaskRequest { title: Some("work".to_owned()), ..Default::default() };
                task::propose(&user, propose).unwrap();
                task::claim(&ctx, task::ClaimRequest::default()).map(drop)
            }
        };
        match result {
            Ok(()) => done += 1,
            Err(error) => {
                refused += 1;
                let code = hiveforge::reply::Status::for_error(&error.kind).exit();
                assert!([2, 3, 6].contains(&code), "step {step}: {error:?}");
            }
        }
        let map = op::project::map(&hive.context(), every_branch()).unwrap().map;
        for persona in PERSONAS {
            let active = map.values().filter(|b| b["persona_id"] == persona && b["status"] == "Active").count();
            let any = map.values().any(|b| b["persona_id"] == persona);
            assert_eq!(active, usize::from(any), "seed {SEED:#x}, step {step}");
        }
    }
    assert!(done > 100 && refused > 50, "{done} {refused}");
    hive.run("verify", &["--policy", "--projections", "--artifacts"]).expect_exit(0);
}
