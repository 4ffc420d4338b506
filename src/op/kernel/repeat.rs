//! Idempotency: a request whose key is recorded already gets the reply of the first time.

use std::borrow::Cow;

use super::recorded::{self, Recorded};
use super::transaction::Transaction;
use crate::base::{Actor, Error, Reason, Result, Subject};
use crate::event::{Event, Kind, check_key, parse_ulid};
use crate::policy::{self, Request};
use crate::state::State;
use crate::vault::Log;

/// The line number of the nth request, if it came from lines.
pub type LineNumber<'a> = &'a dyn Fn(usize) -> Option<usize>;

/// An error of the nth request, with its line in front.
pub fn at(place: LineNumber<'_>, n: usize, error: Error) -> Error {
    match place(n) {
        Some(line) => error.at(format!("line {line}")),
        None => error,
    }
}

impl Transaction<'_> {
    /// The reply of the first time, if a request's key is recorded already.
    pub fn repeated(&self, request: &Request) -> Result<Option<Recorded>> {
        if let Some(key) = &request.key {
            check_key(key)?;
        }
        find(self, &[request], &|_| None)
    }

    /// The same for requests that belong together: all of them were recorded, or none.
    pub fn all_repeated(&self, requests: &[&Request], place: LineNumber<'_>) -> Result<Option<Recorded>> {
        find(self, requests, place)
    }

    /// The event that a request's key belongs to, recorded or earlier in the same unit.
    pub fn first_with_key(&self, request: &Request) -> Result<Option<Event>> {
        let Some(key) = &request.key else { return Ok(None) };
        match self.state().keyed(key).and_then(|id| self.unit().event(id)) {
            Some(event) => Ok(Some(event.clone())),
            None => recorded_with_key(&*self.log, self.state(), key),
        }
    }
}

/// An event's own id counts as its key, so that a reply which was uncertain can be repeated safely
/// even if no key was given.
fn recorded_with_key(log: &dyn Log, state: &State, key: &str) -> Result<Option<Event>> {
    match state.keyed(key).or_else(|| parse_ulid(key)) {
        Some(id) => log.find(id),
        None => Ok(None),
    }
}

/// Whether all of this was recorded before: then the reply is that of the first time.
fn find(tx: &Transaction<'_>, requests: &[&Request], place: LineNumber<'_>) -> Result<Option<Recorded>> {
    let (log, state) = (&*tx.log, tx.state());
    let mut firsts = Vec::new();
    for (n, request) in requests.iter().enumerate() {
        let Some(key) = &request.key else { continue };
        if let Some(first) = recorded_with_key(log, state, key)? {
            policy::check_repeats(state, &first, request).map_err(|e| at(place, n, e))?;
            firsts.push((n, first));
        }
    }
    let Some((n, first)) = firsts.first() else { return Ok(None) };
    let gone = || Error::corrupt(format!("event {} is gone", first.id));
    let (unit, index) = log.batch_of(first.id)?.ok_or_else(gone)?;
    let (asked, others) = match requests {
        [_] => (vec![first.clone()], belonging(&unit, index)),
        _ => {
            let keyed = requests.iter().filter(|request| request.key.is_some()).count();
            let whole = *n == 0 && keyed == firsts.len();
            let same = if whole { same_events(tx, &unit, index, requests)? } else { None };
            same.ok_or_else(|| at(place, *n, partly(first)))?
        }
    };
    let last = &asked[asked.len() - 1];
    let entity = Subject::parse(&last.subject).ok().and_then(|s| state.entity(&s).map(Cow::into_owned));
    Ok(Some(Recorded {
        followed: Vec::new(),
        ids: asked.iter().chain(&others).map(|e| e.id).collect(),
        prev_hash: asked[0].prev_hash.to_string(),
        asked: last.clone(),
        duplicate: true,
        stopped: recorded::is_held_up(state, entity.as_ref()),
        entity,
        warnings: Vec::new(),
    }))
}

/// What was recorded for the sake of one event of a unit: its agent's announcement right before it,
/// and what followed from it.
fn belonging(unit: &[Event], index: usize) -> Vec<Event> {
    let announces = |e: &&Event| e.event_type.known() == Some(Kind::AgentStarted) && e.subject == unit[index].actor;
    let before = index.checked_sub(1).map(|before| &unit[before]).filter(announces);
    before.into_iter().chain(unit[index + 1..].iter().take_while(|event| follows_by_itself(event))).cloned().collect()
}

fn follows_by_itself(event: &Event) -> bool {
    event.actor == Actor::core(policy::REACTOR).to_string()
}

/// Picks the events that these requests led to, in this order: those of a recorded unit, and older
/// ones that a request found to hold already. The rest of the unit are agents' announcements and what
/// followed. Nothing if it is another batch.
fn same_events(
    tx: &Transaction<'_>,
    unit: &[Event],
    index: usize,
    requests: &[&Request],
) -> Result<Option<(Vec<Event>, Vec<Event>)>> {
    let state = tx.state();
    let (mut asked, mut others) = (Vec::new(), unit[..index].to_vec());
    let mut rest = unit[index..].iter().peekable();
    for request in requests {
        let is_asked = |event: &&Event| policy::check_repeats(state, event, request).is_ok();
        while let Some(event) = rest.next_if(|event| !is_asked(event) && belongs(event)) {
            others.push(event.clone());
        }
        match (rest.next_if(is_asked), policy::in_effect_since(state, request)) {
            (Some(event), _) => asked.push(event.clone()),
            (None, Some(id)) => asked.extend(tx.log.find(id)?),
            (None, None) => return Ok(None),
        }
    }
    let whole = rest.clone().all(belongs);
    others.extend(rest.cloned());
    Ok((whole && asked.len() == requests.len()).then_some((asked, others)))
}

/// Whether an event is in a unit for the sake of another.
fn belongs(event: &Event) -> bool {
    event.event_type.known() == Some(Kind::AgentStarted) || follows_by_itself(event)
}

fn partly(first: &Event) -> Error {
    let why = format!("its key belongs to event {}, but the batch as a whole was not recorded", first.id);
    Error::refused(Reason::KeyConflict, why)
}
