//! Idempotency: a request whose key is recorded already gets the reply of the first time.

use std::borrow::Cow;

use super::request::{Checked, Place, at};
use super::{AppendOutcome, Desk};
use crate::base::{Actor, Error, Reason, Result, Subject};
use crate::event::{Event, Kind, parse_ulid};
use crate::policy;
use crate::state::State;
use crate::vault::Snapshot;

/// The event that a request's key belongs to, recorded or earlier in the same unit.
pub fn first_with_key(desk: &Desk<'_>, checked: &Checked) -> Result<Option<Event>> {
    let Some(key) = &checked.request.key else { return Ok(None) };
    match desk.state().keyed(key).and_then(|id| desk.unit().event(id)) {
        Some(event) => Ok(Some(event.clone())),
        None => recorded_with_key(&desk.snapshot, desk.state(), key),
    }
}

/// An event's own id counts as its key, so that a reply which was uncertain can be repeated safely
/// even if no key was given.
fn recorded_with_key(snapshot: &Snapshot, state: &State, key: &str) -> Result<Option<Event>> {
    match state.keyed(key).or_else(|| parse_ulid(key)) {
        Some(id) => Ok(snapshot.find(id)?.map(|(_, event)| event)),
        None => Ok(None),
    }
}

/// Whether all of this was recorded before: then the reply is that of the first time.
pub fn find(desk: &Desk<'_>, checked: &[Checked], place: Place<'_>) -> Result<Option<AppendOutcome>> {
    let (snapshot, state) = (&desk.snapshot, desk.state());
    let mut firsts = Vec::new();
    for (n, Checked { request, .. }) in checked.iter().enumerate() {
        let Some(key) = &request.key else { continue };
        if let Some(first) = recorded_with_key(snapshot, state, key)? {
            policy::check_repeats(state, &first, request).map_err(|e| at(place, n, e))?;
            firsts.push((n, first));
        }
    }
    let Some((n, first)) = firsts.first() else { return Ok(None) };
    let gone = || Error::corrupt(format!("event {} is gone", first.id));
    let (unit, index) = snapshot.unit_of(first.id)?.ok_or_else(gone)?;
    let (asked, others) = match checked {
        [_] => (vec![first], belonging(&unit, index)),
        _ => {
            let keyed = checked.iter().filter(|c| c.request.key.is_some()).count();
            let whole = *n == 0 && keyed == firsts.len();
            match whole.then(|| same_events(state, &unit, index, checked)).flatten() {
                Some((asked, others)) => (asked, others),
                None => return Err(at(place, *n, partly(first))),
            }
        }
    };
    let last = asked[asked.len() - 1];
    Ok(Some(AppendOutcome {
        entity: Subject::parse(&last.subject).ok().and_then(|s| state.entity(&s).map(Cow::into_owned)),
        followed: Vec::new(),
        ids: asked.iter().chain(&others).map(|e| e.id).collect(),
        prev_hash: asked[0].prev_hash.to_string(),
        asked: last.clone(),
        duplicate: true,
        stopped: super::is_stopped(state),
        warnings: Vec::new(),
    }))
}

/// What was recorded for the sake of one event of a unit: its agent's announcement right before it,
/// and what followed from it.
fn belonging(unit: &[Event], index: usize) -> Vec<&Event> {
    let announces = |e: &&Event| e.event_type.known() == Some(Kind::AgentStarted) && e.subject == unit[index].actor;
    let before = index.checked_sub(1).map(|before| &unit[before]).filter(announces);
    before.into_iter().chain(unit[index + 1..].iter().take_while(|event| follows_by_itself(event))).collect()
}

fn follows_by_itself(event: &Event) -> bool {
    event.actor == Actor::core(policy::REACTOR).to_string()
}

/// Picks the events of a recorded unit that are these requests, in this order; the rest of the unit
/// are agents' announcements and what followed. Nothing if it is another batch.
fn same_events<'e>(
    state: &State,
    unit: &'e [Event],
    index: usize,
    checked: &[Checked],
) -> Option<(Vec<&'e Event>, Vec<&'e Event>)> {
    let (mut asked, mut others) = (Vec::new(), unit[..index].iter().collect::<Vec<_>>());
    let mut wanted = checked.iter().peekable();
    for event in &unit[index..] {
        match wanted.peek() {
            Some(next) if policy::check_repeats(state, event, &next.request).is_ok() => {
                asked.push(event);
                wanted.next();
            }
            _ if event.event_type.known() == Some(Kind::AgentStarted) || follows_by_itself(event) => others.push(event),
            _ => return None,
        }
    }
    wanted.next().is_none().then_some((asked, others))
}

fn partly(first: &Event) -> Error {
    let why = format!("its key belongs to event {}, but the batch as a whole was not recorded", first.id);
    Error::refused(Reason::KeyConflict, why)
}
