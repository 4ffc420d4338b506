//! hf-append: one event, a batch, or a stream of batches, all on the same path.

mod repeat;
mod request;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::Env;
use super::desk::{Asked, Desk};
use crate::base::{Error, ErrorKind, Result, Subject, Ulid, limits, text};
use crate::event::{Event, parse_ulid};
use crate::machine;
use crate::policy;
use crate::state::{Entity, State};
use crate::vault::Vault;

pub use request::{AppendRequest, parse_line};
use request::{Checked, Place, at, check_all};

#[derive(Debug)]
pub struct AppendOutcome {
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

/// Records one event. With `rehearse`, only says whether it could be.
pub fn append(env: &Env, request: AppendRequest, rehearse: bool) -> Result<AppendOutcome> {
    record(env, vec![request], &|_| None, rehearse)
}

/// Records all of the events or none; an error names the line. `key` is that of the whole batch.
pub fn append_batch(
    env: &Env,
    mut requests: Vec<AppendRequest>,
    key: Option<String>,
    rehearse: bool,
) -> Result<AppendOutcome> {
    match (requests.first_mut(), key) {
        (None, _) => return Err(Error::usage("the batch is empty")),
        (Some(first), Some(key)) if first.key.is_none() => first.key = Some(key),
        (Some(_), Some(_)) => return Err(Error::usage("--key is the first line's idempotency_key: give one of them")),
        (Some(_), None) => {}
    }
    if requests.len() > limits::BATCH_MAX_EVENTS {
        let most = limits::BATCH_MAX_EVENTS;
        return Err(Error::new(ErrorKind::LimitExceeded, format!("a batch has at most {most} events")));
    }
    record(env, requests, &|n| Some(n + 1), rehearse)
}

fn record(env: &Env, requests: Vec<AppendRequest>, place: Place<'_>, rehearse: bool) -> Result<AppendOutcome> {
    let mut warnings = Vec::new();
    let checked = check_all(env, requests, place, &mut warnings)?;
    let vault = env.open()?;
    let mut desk = Desk::open(env, &vault, rehearse)?;
    desk.warnings.append(&mut warnings);
    if let Some(first) = repeat::find(&desk, &checked, place)? {
        return Ok(AppendOutcome { warnings: desk.warnings, ..first });
    }
    let mut asked = Vec::with_capacity(checked.len());
    for (n, request) in checked.into_iter().enumerate() {
        asked.push(ask(&mut desk, request).map_err(|e| at(place, n, e))?);
    }
    finish(&vault, desk, &asked)
}

/// The reply of the first time, if a request's key is recorded already.
pub(super) fn repeated(desk: &Desk<'_>, request: &policy::Request) -> Result<Option<AppendOutcome>> {
    if let Some(key) = &request.key {
        crate::event::check_key(key)?;
    }
    let checked = Checked { request: request.clone(), parents: Vec::new(), payload_bytes: 0 };
    repeat::find(desk, &[checked], &|_| None)
}

/// Commits what was asked for, and says what came of it.
pub(super) fn finish(vault: &Vault, desk: Desk<'_>, asked: &[Asked]) -> Result<AppendOutcome> {
    // What was recorded now is told of; what held before only if there is nothing else.
    let new = || asked.iter().filter(|asked| !asked.held);
    let (first, last) = match (new().next(), new().next_back()) {
        (Some(first), Some(last)) => (first.id, last.id),
        _ => (asked[0].id, asked[asked.len() - 1].id),
    };
    let before = desk.unit().event(last).map(|event| event.subject.clone());
    let subject = match before {
        Some(subject) => subject,
        None => desk.snapshot.find(last)?.map(|(_, event)| event.subject).unwrap_or_default(),
    };
    let entity = Subject::parse(&subject).ok().and_then(|subject| desk.state().entity(&subject).map(Cow::into_owned));
    let subjects =
        desk.unit().events().iter().filter_map(|event| Some((event.id, Subject::parse(&event.subject).ok()?)));
    let made =
        subjects.filter_map(|(id, s)| desk.state().entity(&s).filter(|e| e.first_event == id).map(Cow::into_owned));
    let other = |made: &Entity| made.subject.to_string() != subject && !made.subject.entity.is_incidental();
    let followed: Vec<Entity> = made.filter(other).collect();
    let stopped = is_held_up(desk.state(), entity.as_ref());
    let done = desk.commit(vault, first)?;
    let mut ids: Vec<Ulid> = asked.iter().map(|asked| asked.id).collect();
    let named: HashSet<Ulid> = ids.iter().copied().collect();
    ids.extend(done.events.iter().map(|event| event.id).filter(|id| !named.contains(id)));
    let tags: HashMap<Ulid, String> = done.events.iter().map(|event| (event.id, event.hash.tag())).collect();
    Ok(AppendOutcome {
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

pub(super) fn is_stopped(state: &State) -> bool {
    state.of(&Subject::SYSTEM) == machine::State::Stopped
}

/// Whether no work on an entity can begin now.
fn is_held_up(state: &State, entity: Option<&Entity>) -> bool {
    let project = entity.and_then(|entity| policy::project::of(state, entity));
    let standing = project.map(|project| policy::project::standing(state, &project));
    is_stopped(state) || standing.is_some_and(|at| at != machine::State::Active)
}

/// An entity whose first event may have got its hash only now.
fn tagged(mut entity: Entity, tags: &HashMap<Ulid, String>) -> Entity {
    if let Some(tag) = tags.get(&entity.first_event) {
        entity.tag.clone_from(tag);
    }
    entity
}

/// What `append_stream` did, also where it ended with an error.
#[derive(Debug, Default)]
pub struct StreamOutcome {
    pub recorded: u64,
    pub duplicates: u64,
    pub last: Option<Event>,
    pub warnings: Vec<String>,
    pub error: Option<Error>,
}

/// Records any number of lines, committing every thousand. Lines whose key is recorded already are
/// passed over, so that a stream which broke off can be given again.
pub fn append_stream(
    env: &Env,
    next: &mut dyn FnMut() -> Option<Result<AppendRequest>>,
    rehearse: bool,
) -> StreamOutcome {
    let mut done = StreamOutcome::default();
    let mut first_line = 1;
    loop {
        let (mut chunk, mut bytes, mut broken, mut ended) = (Vec::new(), 0, None, false);
        // Large events fill a batch before there are a thousand; the next one must still fit.
        let room = limits::BATCH_MAX_BYTES - 2 * limits::EVENT_MAX_BYTES;
        while chunk.len() < limits::STREAM_COMMIT_EVENTS && bytes < room && broken.is_none() && !ended {
            match next() {
                Some(Ok(request)) => {
                    bytes += request.written_bytes();
                    chunk.push(request);
                }
                Some(Err(error)) => broken = Some(error.at(format!("line {}", first_line + chunk.len()))),
                None => ended = true,
            }
        }
        let length = chunk.len();
        // What stands before a line that cannot be read is recorded all the same.
        let recorded = record_chunk(env, chunk, first_line, rehearse, &mut done);
        done.warnings.dedup();
        let last_line = first_line + length.saturating_sub(1);
        let recorded = recorded.map_err(|error| match error.kind {
            // A stream has no key of its own; a batch of the same lines has.
            ErrorKind::Uncertain { .. } => {
                error.at(format!("give lines {first_line} to {last_line} again with --batch"))
            }
            _ => error,
        });
        done.error = recorded.err().or(broken);
        if done.error.is_some() || ended {
            return done;
        }
        first_line += length;
    }
}

fn record_chunk(
    env: &Env,
    chunk: Vec<AppendRequest>,
    first_line: usize,
    rehearse: bool,
    done: &mut StreamOutcome,
) -> Result<()> {
    if chunk.is_empty() {
        return Ok(());
    }
    let place: Place<'_> = &|n| Some(first_line + n);
    let checked = check_all(env, chunk, place, &mut done.warnings)?;
    let vault = env.open()?;
    let mut desk = Desk::open(env, &vault, rehearse)?;
    let (mut asked, mut duplicates) = (Vec::new(), 0);
    for (n, request) in checked.into_iter().enumerate() {
        let step = match repeat::first_with_key(&desk, &request).map_err(|e| at(place, n, e))? {
            Some(first) => policy::check_repeats(desk.state(), &first, &request.request).map(|()| duplicates += 1),
            None => ask(&mut desk, request).map(|step| match step.held {
                true => duplicates += 1,
                false => asked.push(step.id),
            }),
        };
        step.map_err(|e| at(place, n, e))?;
    }
    if let (Some(first), Some(last)) = (asked.first(), asked.last()) {
        let mut committed = desk.commit(&vault, *first)?;
        done.last = Some(committed.event(*last)?);
        done.warnings.append(&mut committed.warnings);
    }
    done.recorded += asked.len() as u64;
    done.duplicates += duplicates;
    Ok(())
}

/// Puts one request to the desk, with the parents that it names.
fn ask(desk: &mut Desk<'_>, checked: Checked) -> Result<Asked> {
    let mut request = checked.request;
    for parent in &checked.parents {
        let id = find_parent(desk, parent)?;
        if !request.parents.contains(&id) {
            request.parents.push(id);
        }
    }
    let asked = desk.ask(request)?;
    // Only a payload that nearly fills an event can make it too large.
    if checked.payload_bytes > limits::EVENT_MAX_BYTES / 2 {
        desk.check_size(asked.id)?;
    }
    Ok(asked)
}

/// A parent by event id, by a reference to an entity (its last change), or by the beginning of an id.
fn find_parent(desk: &Desk<'_>, parent: &str) -> Result<Ulid> {
    let (snapshot, state) = (&desk.snapshot, desk.state());
    if let Some(id) = parse_ulid(parent)
        && snapshot.find(id)?.is_some()
    {
        return Ok(id);
    }
    if let Some(entity) = state.resolve(parent, None).ok().and_then(|subject| state.entity(&subject)) {
        return Ok(entity.last_event);
    }
    let shown = text::cut(parent, 80);
    if parent.is_empty() {
        // The beginning of every id, and in a fresh vault of exactly one.
        return Err(Error::not_found("the parent '' does not exist"));
    }
    match snapshot.ids_with_prefix(parent)?.as_slice() {
        [one] => Ok(*one),
        [] => Err(Error::not_found(format!("the parent '{shown}' does not exist"))),
        _ => Err(Error::not_found(format!("the parent '{shown}' is the beginning of several event ids"))),
    }
}
