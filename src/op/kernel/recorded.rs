//! What came of a request: the event, what it is about, and what followed.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Context;
use super::transaction::{Asked, Transaction};
use crate::base::{Result, Subject, Ulid, limits};
use crate::event::{Event, Kind, check_key};
use crate::machine;
use crate::policy::{self, Request};
use crate::state::{Entity, State};

#[derive(Debug)]
pub struct Recorded {
    /// The event that was asked for; of a batch, the last one.
    pub asked: Event,
    /// What it is about, as it stands now.
    pub entity: Option<Entity>,
    /// What else was made along the way, such as the decision that was asked for.
    pub followed: Vec<Entity>,
    /// Every id that was recorded: what was asked for first, then what belongs to it.
    pub ids: Vec<Ulid>,
    /// The hash before the first event that was asked for.
    pub prev_hash: String,
    pub duplicate: bool,
    /// Whether everything is stopped, or its project is held up, so that no work can begin.
    pub stopped: bool,
    pub warnings: Vec<String>,
}

/// Records one request, for an operation that needs nothing more.
pub fn record(ctx: &Context, request: Request) -> Result<Recorded> {
    if let Some(key) = &request.key {
        check_key(key)?;
    }
    request.kind.check_payload(&request.payload)?;
    if let Some(subject) = request.subject.as_ref().filter(|subject| subject.contains(':')) {
        Subject::parse(subject)?;
    }
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    tx.warn_if_large(&request, None);
    if let Some(first) = tx.repeated(&request)? {
        return Ok(Recorded { warnings: std::mem::take(&mut tx.warnings), ..first });
    }
    let asked = tx.ask_sized(request)?;
    tx.finish(&[asked])
}

/// The same for an event of a kind that needs nothing more.
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
    /// A payload that should rather be an artifact is worth a warning.
    pub fn warn_if_large(&mut self, request: &Request, line: Option<usize>) {
        let size = serde_json::to_vec(&request.payload).map_or(0, |bytes| bytes.len());
        if size > limits::PAYLOAD_WARN_BYTES {
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            self.warnings.push(format!(
                "{line}a payload of {size} bytes is large: store the content with hf-artifact and refer to it"
            ));
        }
    }

    /// Decides on a request whose payload may be so large that its event is not allowed.
    pub fn ask_sized(&mut self, request: Request) -> Result<Asked> {
        let size = serde_json::to_vec(&request.payload).map_or(0, |bytes| bytes.len());
        let asked = self.ask(request)?;
        // Only a payload that nearly fills an event can make it too large.
        if size > limits::EVENT_MAX_BYTES / 2 {
            self.check_size(asked.id)?;
        }
        Ok(asked)
    }

    /// Commits what was asked for, and says what came of it.
    pub fn finish(self, asked: &[Asked]) -> Result<Recorded> {
        // What was recorded now is told of; what held before only if there is nothing else.
        let new = || asked.iter().filter(|asked| !asked.held);
        let (first, last) = match (new().next(), new().next_back()) {
            (Some(first), Some(last)) => (first.id, last.id),
            _ => (asked[0].id, asked[asked.len() - 1].id),
        };
        let before = self.unit().event(last).map(|event| event.subject.clone());
        let subject = match before {
            Some(subject) => subject,
            None => self.log.find(last)?.map(|event| event.subject).unwrap_or_default(),
        };
        let entity =
            Subject::parse(&subject).ok().and_then(|subject| self.state().entity(&subject).map(Cow::into_owned));
        let subjects =
            self.unit().events().iter().filter_map(|event| Some((event.id, Subject::parse(&event.subject).ok()?)));
        let made =
            subjects.filter_map(|(id, s)| self.state().entity(&s).filter(|e| e.first_event == id).map(Cow::into_owned));
        let other = |made: &Entity| made.subject.to_string() != subject && !made.subject.entity.is_incidental();
        let followed: Vec<Entity> = made.filter(other).collect();
        let stopped = is_held_up(self.state(), entity.as_ref());
        let done = self.commit(first)?;
        let mut ids: Vec<Ulid> = asked.iter().map(|asked| asked.id).collect();
        let named: HashSet<Ulid> = ids.iter().copied().collect();
        ids.extend(done.events.iter().map(|event| event.id).filter(|id| !named.contains(id)));
        let tags: HashMap<Ulid, String> = done.events.iter().map(|event| (event.id, event.hash.tag())).collect();
        Ok(Recorded {
            entity: entity.map(|entity| tagged(entity, &tags)),
            followed: followed.into_iter().map(|entity| tagged(entity, &tags)).collect(),
            prev_hash: done.event(first)?.prev_hash.to_string(),
            asked: done.event(last)?,
            ids,
            duplicate: asked.iter().all(|asked| asked.held),
            stopped,
            warnings: done.warnings,
        })
    }
}

pub fn is_stopped(state: &State) -> bool {
    state.phase_of(&Subject::SYSTEM) == machine::Phase::Stopped
}

/// Whether no work on an entity can begin now.
pub(super) fn is_held_up(state: &State, entity: Option<&Entity>) -> bool {
    let project = entity.and_then(policy::project::of);
    let standing = project.map(|project| policy::project::standing(state, &project));
    is_stopped(state) || standing.is_some_and(|at| at != machine::Phase::Active)
}

/// An entity whose first event may have got its hash only now.
fn tagged(mut entity: Entity, tags: &HashMap<Ulid, String>) -> Entity {
    if let Some(tag) = tags.get(&entity.first_event) {
        entity.tag.clone_from(tag);
    }
    entity
}
