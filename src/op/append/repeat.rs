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
        [_] => (vec![first.clone()], belonging(&unit, index)),
        _ => {
            let keyed = checked.iter().filter(|c| c.request.key.is_some()).count();
            let whole = *n == 0 && keyed == firsts.len();
            let same = if whole { same_events(desk, &unit, index, checked)? } else { None };
            same.ok_or_else(|| at(place, *n, partly(first)))?
        }
    };
    let last = &asked[asked.len() - 1];
    let entity = Subject::parse(&last.subject).ok().and_then(|s| state.entity(&s).map(Cow::into_owned));
    Ok(Some(AppendOutcome {
        followed: Vec::new(),
        ids: asked.iter().chain(&others).map(|e| e.id).collect(),
        prev_hash: asked[0].prev_hash.to_string(),
        asked: last.clone(),
        duplicate: true,
        stopped: super::is_held_up(state, entity.as_ref()),
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
    desk: &Desk<'_>,
    unit: &[Event],
    index: usize,
    checked: &[Checked],
) -> Result<Option<(Vec<Event>, Vec<Event>)>> {
    let state = desk.state();
    let (mut asked, mut others) = (Vec::new(), unit[..index].to_vec());
    let mut rest = unit[index..].iter().peekable();
    for Checked { request, .. } in checked {
        let is_asked = |event: &&Event| policy::check_repeats(state, event, request).is_ok();
        while let Some(event) = rest.next_if(|event| !is_asked(event) && belongs(event)) {
            others.push(event.clone());
        }
        match (rest.next_if(is_asked), policy::holds(state, request)) {
            (Some(event), _) => asked.push(event.clone()),
            (None, Some(id)) => asked.extend(desk.snapshot.find(id)?.map(|(_, event)| event)),
            (None, None) => return Ok(None),
        }
    }
    let whole = rest.clone().all(belongs);
    others.extend(rest.cloned());
    Ok((whole && asked.len() == checked.len()).then_some((asked, others)))
}

/// Whether an event is in a unit for the sake of another.
fn belongs(event: &Event) -> bool {
    event.event_type.known() == Some(Kind::AgentStarted) || follows_by_itself(event)
}

fn partly(first: &Event) -> Error {
    let why = format!("its key belongs to event {}, but the batch as a whole was not recorded", first.id);
    Error::refused(Reason::KeyConflict, why)
}
