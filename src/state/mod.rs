//! The fold: events in, entities out.
//!
//! Invariant: `apply` accepts every event and has no policy and no clock. An event that is illegal in the phase of its
//! subject does not move it, so an old log always replays to the same state.

mod base;
mod belief;
pub mod branch;
mod deadline;
pub mod duty;
mod entity;
mod facts;
mod resolve;
mod tally;
mod typed;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::base::{EntityId, EntityType, Error, Subject, Ulid, limits};
use crate::event::kind::{Claim, SETTINGS, SideEffect, SubjectType};
use crate::event::{Event, Kind, lift};
use crate::machine;

pub use base::{Base, DeadlineQuery, Query};
pub use deadline::{Deadline, LEASE, Timer};
pub use entity::Entity;
pub use tally::{Clock, Tally};
pub use typed::{
    Agent, Artifact, Branch, Constraint, Debate, Decision, DeepWork, Document, Escalation, Job, Knowledge, Message,
    Mission, Project, Requirement, Review, Run, Session, System, Task, TaskStep, Thread,
};

/// The whole log folded into entities: the state of a base, and the events applied on top of it.
#[derive(Clone, Debug, Default)]
pub struct State {
    base: Option<Rc<dyn Base>>,
    changes: Changes,
}

/// The changes that events made on top of a base.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub entities: BTreeMap<Subject, Entity>,
    /// Subjects by type and ordinal.
    pub made: BTreeMap<(EntityType, u64), Subject>,
    pub keys: HashMap<String, Ulid>,
    /// Pairs of (parent, child), without duplicates.
    pub children: Vec<(Ulid, Ulid)>,
    /// Pairs of (entity, entity that named it when it was created).
    pub links: BTreeSet<(Subject, Subject)>,
    /// The settings recorded last.
    pub settings: Option<Value>,
    /// Counts over everything, including the base.
    pub tally: Tally,
}

impl State {
    /// The state of a base, with nothing applied yet.
    pub fn over(base: Rc<dyn Base>) -> Self {
        let tally = base.tally();
        State { base: Some(base), changes: Changes { tally, ..Changes::default() } }
    }

    pub fn entity(&self, subject: &Subject) -> Option<Cow<'_, Entity>> {
        match self.changes.entities.get(subject) {
            Some(entity) => Some(Cow::Borrowed(entity)),
            None => self.base.as_ref()?.entity(subject).map(Cow::Owned),
        }
    }

    /// The phase of an entity; `Absent` if it does not exist.
    pub fn phase_of(&self, subject: &Subject) -> machine::Phase {
        self.entity(subject).map_or(machine::Phase::Absent, |e| e.phase)
    }

    /// The event with this idempotency key.
    pub fn keyed(&self, key: &str) -> Option<Ulid> {
        self.changes.keys.get(key).copied().or_else(|| self.base.as_ref()?.keyed(key))
    }

    pub fn first_event(&self) -> Option<Ulid> {
        self.changes.tally.first_event
    }

    /// Counts over everything.
    pub fn tally(&self) -> &Tally {
        &self.changes.tally
    }

    /// The error of the base, if it could not answer; then no answer of this state can be trusted.
    pub fn fault(&self) -> Option<Error> {
        self.base.as_ref().and_then(|base| base.fault())
    }

    /// The settings in force according to the log; none if it was written by a version that did not record them.
    pub fn settings(&self) -> Option<Value> {
        self.changes.settings.clone().or_else(|| self.base.as_ref()?.settings())
    }

    /// The changes on top of the base.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The number of events in the base, and the changes on top of it, to be stored there.
    pub fn into_changes(self) -> (u64, Changes) {
        (self.base.map_or(0, |base| base.tally().events), self.changes)
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &Event) {
        self.changes.tally.observe(event);
        let event = &*lift(event);
        for (n, parent) in event.parents.iter().enumerate() {
            // An event may name a parent twice; it is still one child.
            if !event.parents[..n].contains(parent) {
                self.changes.children.push((*parent, event.id));
            }
        }
        if let Some(key) = &event.key
            && self.keyed(key).is_none()
        {
            self.changes.keys.insert(key.clone(), event.id);
        }
        let (Some(kind), Ok(subject)) = (event.event_type.known(), Subject::parse(&event.subject)) else { return };
        match kind.row().about {
            SubjectType::Any => self.record_anomaly(kind, subject, event),
            SubjectType::One(_) => self.advance(kind, subject, event),
        }
        if let Some(linked) = linked(kind, &event.payload) {
            self.advance(kind, linked, event);
        }
        self.side_effect(kind, event);
        self.follow_mission(kind, event);
        self.note_seen(kind, event);
        self.note_taken(event);
        self.note_change(kind, event);
    }

    /// Makes a job that belongs to a mission the current one of its mission, and counts the rounds of a mission's
    /// requirement.
    fn follow_mission(&mut self, kind: Kind, event: &Event) {
        let Ok(subject) = Subject::parse(&event.subject) else { return };
        let is_job = event.payload.get("job") == Some(&Value::Bool(true));
        let of_mission = event.payload.get("of_mission").and_then(Value::as_str).filter(|_| is_job);
        let of_mission = of_mission.and_then(|id| EntityId::parse(id).ok());
        match (subject.entity, of_mission) {
            (EntityType::Task, Some(mission)) => {
                self.make_current(&Subject::new(EntityType::Mission, mission), &subject)
            }
            (EntityType::Mission, _) => self.count_rounds(kind, &subject, event),
            _ => {}
        }
    }

    fn make_current(&mut self, mission: &Subject, task: &Subject) {
        let Some(mut mission) = self.entity(mission).map(Cow::into_owned) else { return };
        if mission.phase == machine::Phase::Running {
            mission.facts.insert("task_id".to_owned(), task.id().into());
            mission.facts.insert("_tried".to_owned(), true.into());
            // It follows from the job's runs.
            mission.facts.remove("logref");
            self.changes.entities.insert(mission.subject.clone(), mission);
        }
    }

    /// Adds the rounds of a mission, and those that an operator allowed, to what its requirement has had. The rounds of a
    /// mission that is bound to a requirement later count, too.
    fn count_rounds(&mut self, kind: Kind, mission: &Subject, event: &Event) {
        let Some(mut mission) = self.entity(mission).map(Cow::into_owned) else { return };
        let requirement = mission.named("requirement_id", EntityType::Requirement);
        let requirement = requirement.and_then(|requirement| self.entity(&requirement).map(Cow::into_owned));
        let Some(mut requirement) = requirement else { return };
        let is_counted = mission.text("_counted_for") == Some(requirement.subject.id());
        let (begun, added) = match (is_counted, kind) {
            (false, _) => (mission.count("round"), mission.count("rounds_added")),
            (true, Kind::MissionRoundBegun) => (1, 0),
            (true, Kind::MissionRoundsAdded) => {
                (0, event.payload.get("rounds").and_then(Value::as_u64).unwrap_or_default())
            }
            (true, _) => return,
        };
        for (fact, more) in [("_rounds", begun), ("_rounds_added", added)] {
            let count = requirement.count(fact) + more;
            requirement.facts.insert(fact.to_owned(), count.into());
        }
        mission.facts.insert("_counted_for".to_owned(), requirement.subject.id().into());
        self.changes.entities.insert(requirement.subject.clone(), requirement);
        self.changes.entities.insert(mission.subject.clone(), mission);
    }

    /// Notes when an agent last did something about a task. What it declares has facts of its own, and what a supervisor
    /// records about a job is no act of the agent.
    fn note_seen(&mut self, kind: Kind, event: &Event) {
        // A heartbeat is progress, which is noted already.
        if kind.row().claim == Claim::Unneeded || kind.row().is_frequent {
            return;
        }
        let agent = Subject::parse(&event.actor).ok().filter(|actor| actor.entity == EntityType::Agent);
        let Some(agent) = agent else { return };
        let about = Subject::parse(&event.subject).ok().and_then(|subject| self.entity(&subject));
        let of_run = about.as_ref().and_then(|about| about.named("task_id", EntityType::Task));
        let task = of_run.and_then(|task| self.entity(&task)).or(about);
        if task.is_some_and(|task| task.is_job()) {
            return;
        }
        if let Some(mut agent) = self.entity(&agent).map(Cow::into_owned) {
            agent.facts.insert("_seen_at".to_owned(), event.timestamp.to_string().into());
            self.changes.entities.insert(agent.subject.clone(), agent);
        }
    }

    /// Makes the changes that an event causes besides moving its entities.
    fn side_effect(&mut self, kind: Kind, event: &Event) {
        let effect = kind.row().side_effect;
        if effect == SideEffect::Nothing {
            return;
        }
        let Ok(subject) = Subject::parse(&event.subject) else { return };
        let branch = || {
            let id = event.payload.get("branch_id").and_then(Value::as_str)?;
            let branch = self.entity(&Subject::new(EntityType::Branch, EntityId::parse(id).ok()?))?;
            (branch.last_event == event.id).then(|| branch.into_owned())
        };
        match effect {
            SideEffect::Nothing => {}
            SideEffect::AdoptsSettings => self.adopt_settings(event),
            SideEffect::TakesLease => {
                self.take_lease(&subject);
                self.began_work(&subject, event);
                self.note_progress(&subject, event);
            }
            SideEffect::NotesProgress => self.note_progress(&subject, event),
            SideEffect::CountsPersona => self.count_persona(&subject, event),
            SideEffect::OpensThread => {
                if let Some(branch) = branch() {
                    self.thread_opened(&subject, &branch, event);
                }
            }
            SideEffect::ClosesThread => {
                if let Some(branch) = branch() {
                    self.thread_closed(&subject, &branch, event);
                }
            }
            SideEffect::SummarizesThread => {
                if let Some(branch) = self.named_branch(event) {
                    self.thread_summarized(&subject, &branch, event);
                }
            }
            SideEffect::RecordsKnowledge => self.knowledge_recorded(event),
            SideEffect::NotesWhereabouts => {
                if let Some(branch) = self.named_branch(event) {
                    self.note_whereabouts(&branch.subject, event);
                }
            }
            SideEffect::ArchivesThread => {
                let last = self.entity(&subject).and_then(|branch| branch.named("last_thread_id", EntityType::Thread));
                if let Some(last) = last {
                    self.archive(&last);
                }
                self.note_whereabouts(&subject, event);
            }
            SideEffect::DeliversMessage => self.message_sent(&subject, event),
            SideEffect::ArchivesMessage => self.message_read(&subject, event),
            SideEffect::OpensEscalation => {
                if let Ok(id) = EntityId::parse(&event.id.to_string()) {
                    self.advance(kind, Subject::new(EntityType::Escalation, id), event);
                }
            }
            SideEffect::Reworks => self.mark_reworked(&subject, event),
            SideEffect::MarksHook => self.mark_hook(kind, event),
        }
    }

    /// The branch that an event names.
    fn named_branch(&self, event: &Event) -> Option<Entity> {
        let id = event.payload.get("branch_id").and_then(Value::as_str)?;
        self.entity(&Subject::new(EntityType::Branch, EntityId::parse(id).ok()?)).map(Cow::into_owned)
    }

    /// Puts settings in force. A hook whose command changed no longer counts as failed: the new one has not been run.
    fn adopt_settings(&mut self, event: &Event) {
        // Of the operators' keys, only the first one adopts the settings.
        let Some(after) = event.payload.get(SETTINGS).cloned() else { return };
        let (before, after) = (self.settings(), Some(after));
        let command = |settings: &Option<Value>, hook: &str| settings.as_ref().and_then(|all| all.get(hook)).cloned();
        self.change_failed_hooks(|failed| failed.retain(|hook, _| command(&before, hook) == command(&after, hook)));
        self.changes.settings = after;
    }

    /// Records that a hook fails, since when and why, or that it works again.
    fn mark_hook(&mut self, kind: Kind, event: &Event) {
        let Some(hook) = event.payload.get("hook").and_then(Value::as_str) else { return };
        let reason = event.payload.get("reason").cloned().unwrap_or_default();
        self.change_failed_hooks(|failed| match kind {
            // Version 0.1 recorded every failure; only the first one in a row counts.
            Kind::HookFailed if failed.contains_key(hook) => {}
            Kind::HookFailed => {
                let since = json!({"at": event.timestamp.to_string(), "reason": reason});
                drop(failed.insert(hook.to_owned(), since));
            }
            _ => drop(failed.remove(hook)),
        });
    }

    /// Changes the hooks that fail, which are a fact of the system.
    fn change_failed_hooks(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        let Some(mut system) = self.entity(&Subject::SYSTEM).map(Cow::into_owned) else { return };
        let before = system.facts.get(FAILED_HOOKS).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut failed = before.clone();
        change(&mut failed);
        if failed == before {
            return;
        }
        match failed.is_empty() {
            true => drop(system.facts.remove(FAILED_HOOKS)),
            false => drop(system.facts.insert(FAILED_HOOKS.to_owned(), failed.into())),
        }
        self.changes.entities.insert(Subject::SYSTEM, system);
    }

    /// Records facts about an entity without moving it: its anomalies, and whether recovery was given up.
    fn record_anomaly(&mut self, kind: Kind, subject: Subject, event: &Event) {
        let code = event.payload.get("code").and_then(Value::as_str);
        let entity = self.entity(&subject).map(Cow::into_owned);
        let (Some(code), Some(mut entity)) = (code, entity) else { return };
        let anomalies = entity.facts.entry("anomalies").or_insert_with(|| Map::new().into());
        match (kind, anomalies.as_object_mut()) {
            (Kind::AnomalyDetected, Some(known)) => {
                drop(known.insert(code.to_owned(), event.timestamp.to_string().into()));
            }
            (Kind::AnomalyCleared, Some(known)) => drop(known.remove(code)),
            (Kind::EscalationRequired, Some(_)) => {}
            _ => return,
        }
        if anomalies.as_object().is_some_and(Map::is_empty) {
            entity.facts.remove("anomalies");
        }
        match kind {
            // The watchdog no longer tries to wake it.
            Kind::EscalationRequired => drop(entity.facts.insert("_gave_up".to_owned(), code.into())),
            // Attempts are counted from the beginning at the next silence.
            Kind::AnomalyCleared if entity.text("_tried_for") == Some(code) => {
                entity
                    .facts
                    .retain(|fact, _| !["_tries", "_tried_for", "_tried_at", "_gave_up"].contains(&fact.as_str()));
            }
            _ => {}
        }
        self.changes.entities.insert(subject, entity);
    }

    /// Moves an entity to its next phase and updates its facts, if the transition is legal.
    fn advance(&mut self, kind: Kind, subject: Subject, event: &Event) {
        if !self.changes.entities.contains_key(&subject)
            && let Some(known) = self.base.as_ref().and_then(|base| base.entity(&subject))
        {
            self.changes.entities.insert(subject.clone(), known);
        }
        let project = match self.changes.entities.contains_key(&subject) {
            true => None,
            false => self.project_of_new(subject.entity, event),
        };
        let about = Subject::parse(&event.subject).ok().filter(|about| *about != subject);
        let Changes { entities, made, links, tally, .. } = &mut self.changes;
        let from = entities.get(&subject).map_or(machine::Phase::Absent, |e| e.phase);
        let Some(next) = machine::step(subject.entity, from, kind) else { return };
        let entity = entities.entry(subject).or_insert_with_key(|subject| {
            let ordinal = tally.make(subject.entity);
            made.insert((subject.entity, ordinal), subject.clone());
            let named = kind.references(&event.payload).into_iter();
            let about = about.filter(|_| subject.entity == EntityType::Escalation);
            links.extend(named.chain(about).map(|named| (named, subject.clone())));
            Entity { project, ..Entity::new(subject.clone(), ordinal, event) }
        });
        entity.lost_seconds = tally.clock.lost_seconds;
        if kind == Kind::TaskEdited {
            let named = kind.references(&event.payload).into_iter();
            links.extend(named.map(|named| (named, entity.subject.clone())));
        }
        let (waited, held_by) = (entity.is_waiting_job(), entity.holder().map(str::to_owned));
        let was_ranked = entity.is_ranked();
        if entity.phase != next {
            if !entity.archived {
                tally.moved(entity.subject.entity, entity.phase, next);
            }
            entity.phase = next;
            entity.last_event = event.id;
        } else if kind.row().claim == Claim::Makes {
            // Another holder is a change, too.
            entity.last_event = event.id;
        }
        facts::gather(entity, kind, event);
        tally.job_waits(waited, entity.is_waiting_job());
        tally.task_ranked(was_ranked, entity.is_ranked());
        if entity.subject.entity != EntityType::Task {
            return;
        }
        let entity = entity.clone();
        self.count_task(&entity, from, event);
        if let Some(held_by) = held_by.filter(|holder| entity.holder() != Some(holder)) {
            self.release(&held_by, &entity, event);
        }
        if next == machine::Phase::Archived {
            let runs = self.made_for(&entity.subject, EntityType::Run);
            let branches = self.made_for(&entity.subject, EntityType::Branch);
            runs.into_iter().chain(branches).chain([entity]).for_each(|e| self.archive(&e.subject));
        }
    }

    /// Copies the lease of a task to its run: heartbeats of the run renew the claim.
    fn take_lease(&mut self, run: &Subject) {
        let task = self.entity(run).and_then(|run| run.named("task_id", EntityType::Task));
        let lease = task.and_then(|task| self.entity(&task)?.facts.get(LEASE).cloned());
        if let (Some(run), Some(lease)) = (self.changes.entities.get_mut(run), lease) {
            run.facts.insert(deadline::RUN_LEASE.to_owned(), lease);
        }
    }

    /// Notes when an agent last made progress in a run of its own. A job beats by itself, whatever its agent does.
    fn note_progress(&mut self, run: &Subject, event: &Event) {
        let agent = Subject::parse(&event.actor).ok().filter(|actor| actor.entity == EntityType::Agent);
        let Some(mut agent) = agent.and_then(|agent| self.entity(&agent).map(Cow::into_owned)) else { return };
        let task = self.entity(run).and_then(|run| run.named("task_id", EntityType::Task));
        if task.and_then(|task| self.entity(&task)).is_some_and(|task| !task.is_job()) {
            agent.facts.insert("_progress_at".to_owned(), event.timestamp.to_string().into());
            self.changes.entities.insert(agent.subject.clone(), agent);
        }
    }

    /// The project of a new entity of this type. An escalation belongs to the project of what it is about.
    fn project_of_new(&self, entity: EntityType, event: &Event) -> Option<EntityId> {
        if entity != EntityType::Escalation {
            return self.project_of(entity, &event.payload);
        }
        let about = Subject::parse(&event.subject).ok()?;
        match about.entity {
            EntityType::Project => EntityId::parse(about.id()).ok(),
            _ => self.entity(&about)?.project.clone(),
        }
    }

    /// The project of a new entity of this type, given the payload that creates it.
    pub fn project_of(&self, entity: EntityType, members: &Map<String, Value>) -> Option<EntityId> {
        let id = |member: &str| EntityId::parse(members.get(member)?.as_str()?).ok();
        let through = |member: &str, entity| self.entity(&Subject::new(entity, id(member)?))?.project.clone();
        let main = || EntityId::parse(MAIN_PROJECT).ok();
        match entity {
            EntityType::Requirement | EntityType::Session => id("project_id").or_else(main),
            EntityType::Task => {
                id("project_id").or_else(|| through("requirement_id", EntityType::Requirement)).or_else(main)
            }
            EntityType::Run | EntityType::Artifact => through("task_id", EntityType::Task),
            EntityType::Decision => {
                let target = Subject::parse(members.get("target")?.as_str()?).ok()?;
                self.entity(&target)?.project.clone()
            }
            _ => None,
        }
    }

    /// Updates the counts of a task's requirement: open, succeeded and unmet tasks, and how often verification sent work
    /// back.
    fn count_task(&mut self, task: &Entity, from: machine::Phase, event: &Event) {
        use machine::Phase::{Aborted, Absent, Implemented, Succeeded};
        let Some(subject) = task.named("requirement_id", EntityType::Requirement) else { return };
        let Some(mut requirement) = self.entity(&subject).map(Cow::into_owned) else { return };
        let (mut open, mut done) = (requirement.count("tasks_open"), requirement.count("tasks_succeeded"));
        let mut unmet = requirement.count("tasks_unmet");
        match (from, task.phase) {
            (Absent, _) => open += 1,
            (_, Succeeded) if from != Succeeded => (open, done) = (open.saturating_sub(1), done + 1),
            (_, Aborted) if from != Aborted => {
                open = open.saturating_sub(1);
                unmet += u64::from(!task.facts.contains_key(REWORKED_BY));
            }
            _ => return,
        }
        // The requirement is moved after its task, so it still has the phase in which it was verified. A rework that is
        // not the consequence of an invalid artifact repeats what failed or was stopped: nothing was sent back.
        let is_consequence = event.actor.starts_with("core:");
        let sent_back = requirement.phase == Implemented || (is_consequence && task.facts.contains_key("rework_of"));
        let returns = requirement.count("returns") + u64::from(from == Absent && sent_back);
        let counts = [("tasks_open", open), ("tasks_succeeded", done), ("tasks_unmet", unmet), ("returns", returns)];
        for (fact, count) in counts {
            requirement.facts.insert(fact.to_owned(), count.into());
        }
        self.changes.entities.insert(subject, requirement);
    }

    /// Notes when an agent last gave up a task, whether it lost one because it fell silent, and which tasks it lost
    /// without an act of its own.
    fn release(&mut self, holder: &str, task: &Entity, event: &Event) {
        let agent = Subject::parse(holder).ok().filter(|holder| holder.entity == EntityType::Agent);
        let was_silent = event.event_type.known() == Some(Kind::ClaimExpired)
            || event.payload.get("released") == Some(&Value::Bool(true));
        // A task that becomes ready again was lost before, when its run failed.
        let is_ready_again = event.event_type.known() == Some(Kind::TaskReady);
        let is_lost = event.actor != holder && !is_ready_again && !task.is_job();
        if let Some(mut agent) = agent.and_then(|agent| self.entity(&agent).map(Cow::into_owned)) {
            agent.facts.insert("_released_at".to_owned(), event.timestamp.to_string().into());
            if was_silent {
                agent.facts.insert("_lost_claim".to_owned(), true.into());
            }
            if is_lost {
                let (lost, id) = (agent.facts.get(LOST_TASKS), task.subject.id());
                let lost = branch::append_capped(lost, id, limits::PAST_HOLDERS_MAX_COUNT);
                agent.facts.insert(LOST_TASKS.to_owned(), lost);
            }
            self.changes.entities.insert(agent.subject.clone(), agent);
        }
    }

    /// Links a task with its rework: the newest task of the chain that it continues. From then on an aborted one is no
    /// longer unmet.
    fn mark_reworked(&mut self, rework: &Subject, event: &Event) {
        let is_new = |task: &Entity| task.first_event == event.id;
        let Some(mut new) = self.entity(rework).filter(|task| is_new(task)).map(Cow::into_owned) else { return };
        let mut last = new.named("rework_of", EntityType::Task);
        while let Some(next) = last.as_ref().and_then(|task| self.entity(task)?.named(REWORKED_BY, EntityType::Task)) {
            last = Some(next);
        }
        let Some(mut last) =
            last.filter(|last| last != rework).and_then(|last| self.entity(&last).map(Cow::into_owned))
        else {
            return;
        };
        last.facts.insert(REWORKED_BY.to_owned(), rework.id().into());
        new.facts.insert(CONTINUES.to_owned(), last.subject.id().into());
        self.changes.entities.insert(new.subject.clone(), new);
        let requirement = last.named("requirement_id", EntityType::Requirement);
        if let Some(mut requirement) = requirement.and_then(|subject| self.entity(&subject).map(Cow::into_owned)) {
            // Aborts before the approval were not counted.
            let counted = last.text("_abort_id").is_some_and(|abort| Some(abort) > requirement.text("_approved_by"));
            let unmet = requirement.count("tasks_unmet").saturating_sub(u64::from(counted));
            requirement.facts.insert("tasks_unmet".to_owned(), unmet.into());
            self.changes.entities.insert(requirement.subject.clone(), requirement);
        }
        self.changes.entities.insert(last.subject.clone(), last);
    }

    /// Removes an entity from the projections.
    fn archive(&mut self, subject: &Subject) {
        let Some(entity) = self.entity(subject).map(Cow::into_owned).filter(|entity| !entity.archived) else { return };
        self.changes.tally.archive(subject.entity, entity.phase);
        self.changes.entities.insert(subject.clone(), Entity { archived: true, ..entity });
    }

    /// Takes into account what is known only after these events are sealed: the tags of entities that they created, which
    /// are part of an event's hash, and the length of their batch.
    pub fn seal(&mut self, sealed: &[Event]) {
        self.changes.tally.observe_sealed(sealed);
        let tags: HashMap<Ulid, String> = sealed.iter().map(|event| (event.id, event.hash.tag())).collect();
        for entity in self.changes.entities.values_mut() {
            if let Some(tag) = tags.get(&entity.first_event) {
                entity.tag.clone_from(tag);
            }
        }
    }
}

/// The project that always exists.
pub const MAIN_PROJECT: &str = "main";

/// The fact of an agent that lists the tasks it lost.
const LOST_TASKS: &str = "_lost_tasks";

/// The fact of a task that names its rework.
const REWORKED_BY: &str = "reworked_by";

/// The fact of a rework that names the attempt before it: the task that it repeats, or the newest rework of that.
const CONTINUES: &str = "_continues";

/// The fact of the system that contains the hooks that fail.
const FAILED_HOOKS: &str = "failed_hooks";

/// The second entity that an event of this kind moves, named in its payload.
pub fn linked(kind: Kind, payload: &Map<String, Value>) -> Option<Subject> {
    let link = kind.row().moves?;
    let id = EntityId::parse(payload.get(link.member)?.as_str()?).ok()?;
    Some(Subject::new(link.entity, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Actor, Digest, Timestamp};
    use crate::event::{Draft, EventType};

    /// Folds a list of (kind, subject, payload), a second apart.
    pub fn fold(steps: &[(Kind, &str, Value)]) -> State {
        let mut state = State::default();
        for (n, (kind, subject, payload)) in steps.iter().enumerate() {
            let draft = Draft {
                kind: *kind,
                subject: Subject::parse(subject).unwrap(),
                actor: Actor::parse("user:jo").unwrap(),
                parents: vec![],
                key: None,
                payload: payload.as_object().unwrap().clone(),
            };
            let mut event = Event::from_draft(draft, Ulid::from_parts(n as u64, 0), Timestamp(n as i64));
            event.seal(Digest::ZERO, None);
            state.apply(&event);
        }
        state
    }

    fn subject(text: &str) -> Subject {
        Subject::parse(text).unwrap()
    }

    #[test]
    fn a_tasks_life_is_folded_with_its_facts() {
        let state = fold(&[
            (Kind::RequirementProposed, "requirement:r", json!({"title": "Login"})),
            (Kind::TaskProposed, "task:t", json!({"title": "API", "requirement_id": "r"})),
            (Kind::TaskReady, "task:t", json!({})),
            (Kind::TaskAssigned, "task:t", json!({})),
            (Kind::RunStarted, "run:x", json!({"task_id": "t"})),
            (Kind::Heartbeat, "run:x", json!({})),
            (Kind::RunCrashed, "run:x", json!({})),
            (Kind::TaskFailed, "task:t", json!({"error_class": "transient", "reason": "timeout"})),
            (Kind::TaskRetrying, "task:t", json!({})),
        ]);
        let task = state.entity(&subject("task:t")).unwrap();
        assert_eq!(task.phase, machine::Phase::Retrying);
        let content = task.text("content").unwrap();
        assert_eq!(
            Value::Object(task.facts.clone()),
            json!({
                "title": "API", "requirement_id": "r", "content": content, "retry_count": 1, "last_run_id": "x",
                "_assigned_by": "user:jo", "_proposed_by": "user:jo",
                "claimed_at": "1970-01-01T00:00:03Z", "generation": 1, "error_class": "transient", "failure": "timeout",
            })
        );
        let run = state.entity(&subject("run:x")).unwrap();
        assert_eq!(run.phase, machine::Phase::Crashed);
        assert_eq!(
            Value::Object(run.facts.clone()),
            json!({"task_id": "t", "started_at": "1970-01-01T00:00:04Z", "last_heartbeat_at": "1970-01-01T00:00:05Z", "finished_at": "1970-01-01T00:00:06Z"})
        );
        assert_eq!(task.reference().unwrap().to_string(), format!("T-0001@{}", task.tag));
    }

    #[test]
    fn an_archived_task_and_its_runs_leave_the_projections() {
        let state = fold(&[
            (Kind::TaskProposed, "task:t", json!({"title": "API"})),
            (Kind::TaskReady, "task:t", json!({})),
            (Kind::TaskAssigned, "task:t", json!({})),
            (Kind::RunStarted, "run:x", json!({"task_id": "t"})),
            (Kind::RunFinished, "run:x", json!({})),
            (Kind::TaskSucceeded, "task:t", json!({})),
            (Kind::TaskArchived, "task:t", json!({})),
        ]);
        for (entity, id) in [(EntityType::Task, "task:t"), (EntityType::Run, "run:x")] {
            assert_eq!(state.tally().live(entity), 0);
            assert_eq!(state.entities(entity, None, 10), []);
            assert!(state.entity(&subject(id)).unwrap().archived);
        }
        assert_eq!(state.resolve("T-0001", None).unwrap().to_string(), "task:t");
    }

    #[test]
    fn an_illegal_event_changes_nothing() {
        let legal = [(Kind::TaskProposed, "task:t", json!({"title": "API"}))];
        let illegal = (Kind::TaskSucceeded, "task:t", json!({}));
        let before = fold(&legal);
        let after = fold(&[legal[0].clone(), illegal]);
        assert_eq!(before.changes.entities, after.changes.entities);
    }

    #[test]
    fn a_hook_counts_as_failed_until_it_works_again_or_its_command_changes() {
        let settings = |a: &str| json!({"settings": {"hooks.on_done": a, "jobs.on_finish": "x"}});
        let fails = |hook: &str, reason: &str| (Kind::HookFailed, "system", json!({"hook": hook, "reason": reason}));
        let mut steps = vec![
            (Kind::VaultInitialized, "system", json!({"vault_id": "v", "schema_version": 1})),
            (Kind::SettingsChanged, "system", settings("a")),
            fails("hooks.on_done", "first"),
            fails("hooks.on_done", "second"),
            fails("jobs.on_finish", "third"),
        ];
        let failed = |steps: &[(Kind, &str, Value)]| {
            let state = fold(steps);
            let system = state.entity(&Subject::SYSTEM).unwrap();
            system.as_system().failed_hooks().cloned().unwrap_or_default()
        };
        let since = json!({"at": "1970-01-01T00:00:02Z", "reason": "first"});
        assert_eq!(failed(&steps)["hooks.on_done"], since);
        assert_eq!(failed(&steps).len(), 2);
        steps.push((Kind::HookRecovered, "system", json!({"hook": "jobs.on_finish"})));
        steps.push((Kind::SettingsChanged, "system", settings("a")));
        assert_eq!(failed(&steps).keys().collect::<Vec<_>>(), ["hooks.on_done"]);
        steps.push((Kind::SettingsChanged, "system", settings("b")));
        assert!(failed(&steps).is_empty());
    }

    #[test]
    fn a_heartbeat_is_no_change_of_state() {
        let state = fold(&[
            (Kind::TaskProposed, "task:t", json!({"title": "API"})),
            (Kind::TaskReady, "task:t", json!({})),
            (Kind::TaskAssigned, "task:t", json!({})),
            (Kind::RunStarted, "run:x", json!({"task_id": "t"})),
            (Kind::Heartbeat, "run:x", json!({})),
        ]);
        assert_eq!(state.entity(&subject("run:x")).unwrap().last_event, Ulid::from_parts(3, 0));
    }

    #[test]
    fn an_unknown_type_is_left_out() {
        let mut state = fold(&[(Kind::TaskProposed, "task:t", json!({"title": "API"}))]);
        let before = state.changes.entities.clone();
        let draft = Draft {
            kind: Kind::TaskReady,
            subject: subject("task:t"),
            actor: Actor::core("test"),
            parents: vec![],
            key: Some("k".to_owned()),
            payload: Map::new(),
        };
        let mut event = Event::from_draft(draft, Ulid::from_parts(9, 0), Timestamp(9));
        event.event_type = EventType::Unknown("TaskTeleported".to_owned());
        state.apply(&event);
        assert_eq!(state.changes.entities, before);
        assert_eq!(state.keyed("k"), Some(event.id));
    }

    #[test]
    fn references_resolve_in_their_order() {
        let state = fold(&[
            (Kind::TaskProposed, "task:01J00000000000000000000001", json!({"title": "a"})),
            (Kind::TaskProposed, "task:01J00000000000000000000002", json!({"title": "b"})),
            (Kind::TaskProposed, "task:same", json!({"title": "c"})),
            (Kind::RequirementProposed, "requirement:same", json!({"title": "d"})),
        ]);
        let find = |text: &str, wanted| state.resolve(text, wanted).map(|s| s.to_string());
        let first = state.entity(&subject("task:01J00000000000000000000001")).unwrap();
        assert_eq!(find("t-0001", None).unwrap(), first.subject.to_string());
        assert_eq!(find(&format!("T-0001@{}", first.tag), None).unwrap(), first.subject.to_string());
        assert!(find("T-0001@ffff", None).unwrap_err().message.contains("is T-0001@"));
        assert_eq!(find("task:same", None).unwrap(), "task:same");
        assert_eq!(find("same", Some(EntityType::Requirement)).unwrap(), "requirement:same");
        let ambiguous = find("same", None).unwrap_err().message;
        assert!(ambiguous.contains("task:same") && ambiguous.contains("requirement:same"), "{ambiguous}");
        assert_eq!(find("01j00000000000000000000002", None).unwrap(), "task:01J00000000000000000000002");
        assert!(find("01J0000", None).unwrap_err().message.contains("matches"));
        assert!(find("T-0009", None).is_err());
        assert!(find("nothing", None).is_err());
    }
}
