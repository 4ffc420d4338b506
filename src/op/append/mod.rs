//! hf-append: one event, a batch, or a stream of batches, all on the same path.

mod repeat;
mod request;

use std::borrow::Cow;

use super::Env;
use crate::base::{Error, ErrorKind, Reason, Result, ShortRef, Subject, Ulid, limits, text};
use crate::event::{Event, SCHEMA_VERSION, parse_ulid};
use crate::policy;
use crate::state::{Entity, State};
use crate::vault::{Snapshot, Unit, Vault, Writer};

pub use request::{AppendRequest, parse_line};
use request::{Checked, Place, at, check_all};

#[derive(Debug)]
pub struct AppendOutcome {
    /// The event that was asked for; of a batch, the last one.
    pub asked: Event,
    pub reference: Option<ShortRef>,
    /// Every id that was recorded: what was asked for first, then what belongs to it.
    pub ids: Vec<Ulid>,
    /// The hash before the first event that was asked for.
    pub prev_hash: String,
    pub duplicate: bool,
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
    let mut desk = Desk::open(env, &vault, rehearse, &mut warnings)?;
    if let Some(first) = repeat::find(&desk, &checked, place)? {
        return Ok(AppendOutcome { warnings, ..first });
    }
    let mut unit = desk.begin(env);
    let mut asked = Vec::with_capacity(checked.len());
    for (n, request) in checked.into_iter().enumerate() {
        asked.push(decide(&desk.snapshot, &mut unit, request).map_err(|e| at(place, n, e))?);
    }
    let subject = Subject::parse(&unit.events()[asked[asked.len() - 1]].subject)?;
    let made = unit.state().entity(&subject).map(Cow::into_owned);
    let events = desk.commit(unit, asked[0], &mut warnings)?;
    let mut ids: Vec<Ulid> = asked.iter().map(|&n| events[n].id).collect();
    ids.extend(events.iter().enumerate().filter(|(n, _)| asked.binary_search(n).is_err()).map(|(_, e)| e.id));
    Ok(AppendOutcome {
        reference: made.and_then(|entity| reference(entity, &events)),
        prev_hash: events[asked[0]].prev_hash.to_string(),
        asked: events[asked[asked.len() - 1]].clone(),
        ids,
        duplicate: false,
        warnings,
    })
}

/// The short reference of an entity, whose first event may have got its hash only now.
fn reference(mut entity: Entity, events: &[Event]) -> Option<ShortRef> {
    if let Some(first) = events.iter().find(|e| e.id == entity.first_event) {
        entity.tag = first.hash.tag();
    }
    entity.reference()
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
    let mut desk = Desk::open(env, &vault, rehearse, &mut done.warnings)?;
    let mut unit = desk.begin(env);
    let (mut asked, mut duplicates) = (Vec::new(), 0);
    for (n, request) in checked.into_iter().enumerate() {
        let step = match repeat::first_with_key(&desk.snapshot, &unit, &request).map_err(|e| at(place, n, e))? {
            Some(first) => policy::check_repeats(unit.state(), &first, &request.request).map(|()| duplicates += 1),
            None => decide(&desk.snapshot, &mut unit, request).map(|n| asked.push(n)),
        };
        step.map_err(|e| at(place, n, e))?;
    }
    if let Some(&first) = asked.first() {
        let events = desk.commit(unit, first, &mut done.warnings)?;
        done.last = asked.last().map(|&n| events[n].clone());
    }
    done.recorded += asked.len() as u64;
    done.duplicates += duplicates;
    Ok(())
}

/// The log to decide against: with the right to append, or only for a rehearsal.
struct Desk<'v> {
    writer: Option<Writer<'v>>,
    snapshot: Snapshot,
    state: State,
}

impl<'v> Desk<'v> {
    fn open(env: &Env, vault: &'v Vault, rehearse: bool, warnings: &mut Vec<String>) -> Result<Self> {
        let options = env.write_options(vault, warnings)?;
        let (writer, (snapshot, state)) = if rehearse {
            (None, vault.view()?)
        } else {
            let mut writer = vault.write(options)?;
            warnings.append(&mut writer.warnings);
            let view = writer.view()?;
            (Some(writer), view)
        };
        if state.tally().newest_version > SCHEMA_VERSION {
            return Err(Error::refused(
                Reason::NewerVersion,
                "this vault holds events of a newer version than this program writes",
            ));
        }
        Ok(Desk { writer, snapshot, state })
    }

    fn begin(&mut self, env: &Env) -> Unit {
        Unit::new(std::mem::take(&mut self.state), self.snapshot.head, env.now)
    }

    fn commit(&mut self, unit: Unit, asked: usize, warnings: &mut Vec<String>) -> Result<Vec<Event>> {
        match &mut self.writer {
            None => unit.seal(self.snapshot.head).map(|(events, ..)| events),
            Some(writer) => {
                let events = writer.commit(unit, asked)?;
                warnings.append(&mut writer.warnings);
                Ok(events)
            }
        }
    }
}

/// Decides on one request and adds what follows to the unit. Gives the index of what was asked for.
fn decide(snapshot: &Snapshot, unit: &mut Unit, checked: Checked) -> Result<usize> {
    let mut request = checked.request;
    if let Some(key) = request.key.as_ref().filter(|key| unit.state().keyed(key).is_some()) {
        return Err(Error::refused(Reason::KeyConflict, format!("the key '{key}' stands twice in this batch")));
    }
    for parent in &checked.parents {
        let id = find_parent(snapshot, unit, parent)?;
        if !request.parents.contains(&id) {
            request.parents.push(id);
        }
    }
    if let Some(announcement) = policy::announce(unit.state(), &request) {
        unit.push(announcement)?;
    }
    let fresh = unit.mint()?;
    let draft = policy::decide(unit.state(), request, &mut || fresh)?;
    let asked = unit.push(draft)?;
    // Only a payload that nearly fills an event can make it too large.
    if checked.payload_bytes > limits::EVENT_MAX_BYTES / 2 {
        unit.check_size(asked)?;
    }
    Ok(asked)
}

/// A parent by event id, by a reference to an entity (its last change), or by the beginning of an id.
fn find_parent(snapshot: &Snapshot, unit: &Unit, parent: &str) -> Result<Ulid> {
    if let Some(id) = parse_ulid(parent)
        && snapshot.find(id)?.is_some()
    {
        return Ok(id);
    }
    if let Some(entity) = unit.state().resolve(parent, None).ok().and_then(|subject| unit.state().entity(&subject)) {
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
