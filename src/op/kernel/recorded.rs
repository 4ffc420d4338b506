//! The outcome of a request: its event, the entity it is about, and the consequences.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Context;
use super::transaction::{Added, Transaction};
use crate::base::{Actor, EntityType, Result, Subject, Ulid, limits};
use crate::event::{Event, Kind, check_key};
use crate::machine;
use crate::policy::{self, Request};
use crate::state::{Entity, State};

#[derive(Debug)]
pub struct Recorded {
    /// Who made the request.
    pub caller: Actor,
    /// The requested event; of a batch, the last one.
    pub asked: Event,
    /// The entity it is about, after the event.
    pub entity: Option<Entity>,
    /// The entity to go on with, if it is not the same: the work that an approval allows, the next task.
    pub leads_to: Option<Entity>,
    /// Other entities that were created as a consequence, such as an approval.
    pub followed: Vec<Entity>,
    /// Every recorded id: the requested events first, then their consequences.
    pub ids: Vec<Ulid>,
    /// The hash before the first requested event.
    pub prev_hash: String,
    pub duplicate: bool,
    /// Whether no work can start: everything is stopped, or its project is paused or archived.
    pub is_work_blocked: bool,
    pub warnings: Vec<String>,
}

/// Records one request in a transaction of its own.
pub fn record(ctx: &Context, request: Request) -> Result<Recorded> {
    record_all(ctx, vec![request])
}

/// Records requests in one transaction, all of them or none. At least one is needed.
pub fn record_all(ctx: &Context, requests: Vec<Request>) -> Result<Recorded> {
    for request in &requests {
        if let Some(key) = &request.key {
            check_key(key)?;
        }
        request.kind.check_payload(&request.payload)?;
        if let Some(subject) = request.subject.as_ref().filter(|subject| subject.contains(':')) {
            Subject::parse(subject)?;
        }
    }
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    requests.iter().for_each(|request| tx.warn_if_large(request, None));
    if let Some(first) = tx.all_repeated(&requests.iter().collect::<Vec<_>>(), &|_| None)? {
        return Ok(Recorded { warnings: std::mem::take(&mut tx.warnings), ..first });
    }
    let asked = requests.into_iter().map(|request| tx.ask_sized(request)).collect::<Result<Vec<_>>>()?;
    tx.finish(&asked)
}

/// Records one event by the caller in a transaction of its own.
pub fn record_one(
    ctx: &Context,
    kind: Kind,
    subject: Option<&str>,
    payload: Value,
    key: Option<String>,
) -> Result<Recorded> {
    record(ctx, Request { key, ..ctx.request(kind, subject, payload) })
}

impl Transaction<'_> {
    /// Warns about a payload that should be an artifact.
    pub fn warn_if_large(&mut self, request: &Request, line: Option<usize>) {
        let size = serde_json::to_vec(&request.payload).map_or(0, |bytes| bytes.len());
        if size > limits::PAYLOAD_WARN_BYTES {
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            self.warnings
                .push(format!("{line}large payload: {size} bytes; store the content with hf-artifact and refer to it"));
        }
    }

    /// Like `ask`, but refuses a request whose event would be too large.
    pub fn ask_sized(&mut self, request: Request) -> Result<Added> {
        let size = serde_json::to_vec(&request.payload).map_or(0, |bytes| bytes.len());
        let asked = self.ask(request)?;
        // A smaller payload cannot make the event too large.
        if size > limits::EVENT_MAX_BYTES / 2 {
            self.check_size(asked.id)?;
        }
        Ok(asked)
    }

    /// The subject of an event, recorded or requested, and the entity that it is.
    pub fn entity_of(&self, event: Ulid) -> Result<(String, Option<Entity>)> {
        let in_batch = self.batch().event(event).map(|event| event.subject.clone());
        let subject = match in_batch {
            Some(subject) => subject,
            None => self.log.find(event)?.map(|event| event.subject).unwrap_or_default(),
        };
        let entity = Subject::parse(&subject).ok().and_then(|subject| self.state().entity(&subject));
        let entity = entity.map(Cow::into_owned);
        Ok((subject, entity))
    }

    /// Commits the requested events and returns the outcome.
    pub fn finish(mut self, asked: &[Added]) -> Result<Recorded> {
        // The outcome is about new events; about earlier ones only if nothing is new.
        let new = || asked.iter().filter(|asked| !asked.already);
        let (first, last) = match (new().next(), new().next_back()) {
            (Some(first), Some(last)) => (first.id, last.id),
            _ => (asked[0].id, asked[asked.len() - 1].id),
        };
        let (subject, entity) = self.entity_of(last)?;
        let subjects =
            self.batch().events().iter().filter_map(|event| Some((event.id, Subject::parse(&event.subject).ok()?)));
        let created =
            subjects.filter_map(|(id, s)| self.state().entity(&s).filter(|e| e.first_event == id).map(Cow::into_owned));
        let other = |entity: &Entity| entity.subject.to_string() != subject && !entity.subject.entity.is_incidental();
        let followed: Vec<Entity> = created.filter(other).collect();
        let is_work_blocked = is_work_blocked(self.state(), entity.as_ref());
        let leads_to = entity.as_ref().and_then(|entity| leads_to(self.state(), entity));
        self.about = entity.as_ref().and_then(policy::project::project_of);
        let caller = self.caller.clone();
        let done = self.commit(first)?;
        let mut ids: Vec<Ulid> = asked.iter().map(|asked| asked.id).collect();
        let named: HashSet<Ulid> = ids.iter().copied().collect();
        ids.extend(done.events.iter().map(|event| event.id).filter(|id| !named.contains(id)));
        let tags: HashMap<Ulid, String> = done.events.iter().map(|event| (event.id, event.hash.tag())).collect();
        Ok(Recorded {
            caller,
            entity: entity.map(|entity| with_tag(entity, &tags)),
            leads_to,
            followed: followed.into_iter().map(|entity| with_tag(entity, &tags)).collect(),
            prev_hash: done.event(first)?.prev_hash.to_string(),
            asked: done.event(last)?,
            ids,
            duplicate: asked.iter().all(|asked| asked.already),
            is_work_blocked,
            warnings: done.warnings,
        })
    }
}

/// What to go on with after an entity reached its phase, if it is something else.
pub(super) fn leads_to(state: &State, entity: &Entity) -> Option<Entity> {
    use machine::Phase::{Aborted, Approved, Failed, Implemented, Ready, Succeeded};
    let owned = |subject: Subject| state.entity(&subject).map(Cow::into_owned);
    match (entity.subject.entity, entity.phase) {
        (EntityType::Decision, Approved) => {
            let target = entity.as_decision().target().and_then(owned)?;
            // In a paused project it is still what to go on with; its operator has to resume the project first.
            let is_ready = |task: &Entity| {
                task.phase == Ready && !task.is_job() && policy::rules::blockers(state, task).is_empty()
            };
            let ready = || state.made_for(&target.subject, EntityType::Task).into_iter().find(is_ready);
            match target.subject.entity {
                EntityType::Requirement => ready().or(Some(target)),
                _ => Some(target),
            }
        }
        (EntityType::Task, Succeeded | Aborted | Failed) if !entity.is_job() => {
            let requirement = entity.as_task().requirement().and_then(owned);
            let project = policy::project::project_of(entity);
            let next = || policy::ready::next(state, project.as_ref()).map(|choice| choice.task);
            requirement.filter(|requirement| requirement.phase == Implemented).or_else(next)
        }
        _ => None,
    }
}

pub fn is_stopped(state: &State) -> bool {
    state.phase_of(&Subject::SYSTEM) == machine::Phase::Stopped
}

/// Whether no work on an entity can start now.
pub(super) fn is_work_blocked(state: &State, entity: Option<&Entity>) -> bool {
    let project = entity.and_then(policy::project::project_of);
    let phase = project.map(|project| policy::project::phase(state, &project));
    is_stopped(state) || phase.is_some_and(|phase| phase != machine::Phase::Active)
}

/// Sets the tag of a new entity: its first event has a hash only after the commit.
fn with_tag(mut entity: Entity, tags: &HashMap<Ulid, String>) -> Entity {
    if let Some(tag) = tags.get(&entity.first_event) {
        entity.tag.clone_from(tag);
    }
    entity
}
