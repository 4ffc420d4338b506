//! Idempotency: a request whose key is recorded already gets the first reply again.

use std::borrow::Cow;

use super::recorded::{self, Recorded};
use super::transaction::Transaction;
use crate::base::{Actor, Error, Reason, Result, Subject};
use crate::event::{Event, Kind, check_key, parse_ulid};
use crate::policy::{self, Request};
use crate::state::State;
use crate::vault::Log;

/// The line number of the nth request, if the requests came from lines.
pub type LineNumber<'a> = &'a dyn Fn(usize) -> Option<usize>;

/// Prefixes an error of the nth request with its line number.
pub fn with_line(line_number: LineNumber<'_>, n: usize, error: Error) -> Error {
    match line_number(n) {
        Some(line) => error.at(format!("line {line}")),
        None => error,
    }
}

impl Transaction<'_> {
    /// The first reply, if the request's key is recorded already.
    pub fn repeated(&self, request: &Request) -> Result<Option<Recorded>> {
        if let Some(key) = &request.key {
            check_key(key)?;
        }
        find(self, &[request], &|_| None)
    }

    /// Like `repeated` for a batch: all of its requests were recorded, or none.
    pub fn all_repeated(&self, requests: &[&Request], line_number: LineNumber<'_>) -> Result<Option<Recorded>> {
        find(self, requests, line_number)
    }

    /// The event that a request's key belongs to, recorded or earlier in the same batch.
    pub fn first_with_key(&self, request: &Request) -> Result<Option<Event>> {
        let Some(key) = &request.key else { return Ok(None) };
        match self.state().keyed(key).and_then(|id| self.batch().event(id)) {
            Some(event) => Ok(Some(event.clone())),
            None => recorded_with_key(&*self.log, self.state(), key),
        }
    }
}

/// The event with this key. An event's id counts as its key, so that a request with an uncertain reply can be repeated
/// safely even if it had no key.
fn recorded_with_key(log: &dyn Log, state: &State, key: &str) -> Result<Option<Event>> {
    match state.keyed(key).or_else(|| parse_ulid(key)) {
        Some(id) => log.find(id),
        None => Ok(None),
    }
}

/// The first reply, if all of these requests were recorded before.
fn find(tx: &Transaction<'_>, requests: &[&Request], line_number: LineNumber<'_>) -> Result<Option<Recorded>> {
    let (log, state) = (&*tx.log, tx.state());
    let mut firsts = Vec::new();
    for (n, request) in requests.iter().enumerate() {
        let Some(key) = &request.key else { continue };
        if let Some(first) = recorded_with_key(log, state, key)? {
            policy::check_repeats(state, &first, request).map_err(|e| with_line(line_number, n, e))?;
            firsts.push((n, first));
        }
    }
    let Some((n, first)) = firsts.first() else { return Ok(None) };
    let missing = || Error::corrupt(format!("event {} is missing from the log", first.id));
    let (batch, index) = log.batch_of(first.id)?.ok_or_else(missing)?;
    let (asked, others) = match requests {
        [_] => (vec![first.clone()], recorded_along(&batch, index)),
        _ => {
            let keyed = requests.iter().filter(|request| request.key.is_some()).count();
            let whole = *n == 0 && keyed == firsts.len();
            let same = if whole { same_events(tx, &batch, index, requests)? } else { None };
            same.ok_or_else(|| with_line(line_number, *n, partial_repeat(first)))?
        }
    };
    let last = &asked[asked.len() - 1];
    let entity = Subject::parse(&last.subject).ok().and_then(|s| state.entity(&s).map(Cow::into_owned));
    Ok(Some(Recorded {
        caller: tx.caller.clone(),
        leads_to: entity.as_ref().and_then(|entity| recorded::leads_to(state, entity)),
        followed: Vec::new(),
        ids: asked.iter().chain(&others).map(|e| e.id).collect(),
        prev_hash: asked[0].prev_hash.to_string(),
        asked: last.clone(),
        duplicate: true,
        is_work_blocked: recorded::is_work_blocked(state, entity.as_ref()),
        entity,
        warnings: Vec::new(),
    }))
}

/// The other events that one event of a batch brought along: its agent's announcement right before it, and its
/// consequences.
fn recorded_along(batch: &[Event], index: usize) -> Vec<Event> {
    let announces = |e: &&Event| e.event_type.known() == Some(Kind::AgentStarted) && e.subject == batch[index].actor;
    let before = index.checked_sub(1).map(|before| &batch[before]).filter(announces);
    before.into_iter().chain(batch[index + 1..].iter().take_while(|event| is_reaction(event))).cloned().collect()
}

fn is_reaction(event: &Event) -> bool {
    event.actor == Actor::core(policy::REACTOR).to_string()
}

/// The events of these requests, in order, and the other events of the batch. An event is from the recorded batch, or
/// older if its request changed nothing. The others are agents' announcements and consequences. None if the recorded
/// batch is a different one.
fn same_events(
    tx: &Transaction<'_>,
    batch: &[Event],
    index: usize,
    requests: &[&Request],
) -> Result<Option<(Vec<Event>, Vec<Event>)>> {
    let state = tx.state();
    let (mut asked, mut others) = (Vec::new(), batch[..index].to_vec());
    let mut rest = batch[index..].iter().peekable();
    for request in requests {
        let is_asked = |event: &&Event| policy::check_repeats(state, event, request).is_ok();
        while let Some(event) = rest.next_if(|event| !is_asked(event) && is_incidental(event)) {
            others.push(event.clone());
        }
        match (rest.next_if(is_asked), policy::in_effect_since(state, request)) {
            (Some(event), _) => asked.push(event.clone()),
            (None, Some(id)) => asked.extend(tx.log.find(id)?),
            (None, None) => return Ok(None),
        }
    }
    let whole = rest.clone().all(is_incidental);
    others.extend(rest.cloned());
    Ok((whole && asked.len() == requests.len()).then_some((asked, others)))
}

/// Whether an event is in a batch because of another one.
fn is_incidental(event: &Event) -> bool {
    event.event_type.known() == Some(Kind::AgentStarted) || is_reaction(event)
}

fn partial_repeat(first: &Event) -> Error {
    let why = format!("its key belongs to event {}, but the batch differs from the recorded one", first.id);
    Error::refused(Reason::KeyConflict, why)
}
