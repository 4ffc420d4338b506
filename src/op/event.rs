//! `hf-log show`: one event, from the log or from quarantine.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::Context;
use crate::base::{Error, Result, ShortRef, Subject, Ulid, text};
use crate::event::Event;
use crate::vault::Vault;

/// An event to show.
#[derive(Clone, Debug)]
pub struct ShowEventRequest {
    /// Its id, or the start of it.
    pub reference: String,
}

#[derive(Debug)]
pub struct ShowEventOutcome {
    pub event: Event,
    /// The short reference of its subject, if it has one.
    pub subject_ref: Option<ShortRef>,
    /// Its file, if it is not part of the log, but in quarantine.
    pub quarantined_in: Option<String>,
}

/// Returns one event in full.
pub fn show_event(ctx: &Context, request: ShowEventRequest) -> Result<ShowEventOutcome> {
    let vault = ctx.open()?;
    let prefix = request.reference.to_ascii_uppercase();
    let is_id = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_alphanumeric());
    if !is_id {
        return Err(not_found(&vault, &request.reference));
    }
    let log = vault.snapshot()?;
    let found = match log.ids_with_prefix(&prefix)?.as_slice() {
        [] => in_quarantine(&vault, &prefix)?.map(|(event, file)| (event, Some(file))),
        [id] => log.find(*id)?.map(|(_, event)| (event, None)),
        several => return Err(ambiguous(&prefix, several)),
    };
    let (event, quarantined_in) = found.ok_or_else(|| not_found(&vault, &request.reference))?;
    // Best effort: if the state cannot be read, there is no reference. What is in quarantine has none.
    let state = if quarantined_in.is_none() { vault.view().ok() } else { None };
    let subject_ref = state
        .zip(Subject::parse(&event.subject).ok())
        .and_then(|((_, state), subject)| state.entity(&subject).and_then(|entity| entity.reference()));
    Ok(ShowEventOutcome { event, subject_ref, quarantined_in })
}

/// The event in quarantine whose id starts with this, and its file.
fn in_quarantine(vault: &Vault, prefix: &str) -> Result<Option<(Event, String)>> {
    let mut found: BTreeMap<Ulid, (Event, String)> = BTreeMap::new();
    vault.quarantined(&mut |event, _, file| {
        if event.id.to_string().starts_with(prefix) {
            found.insert(event.id, (event, file.to_owned()));
        }
        Ok(if found.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    match found.len() {
        0 | 1 => Ok(found.into_values().next()),
        _ => Err(ambiguous(prefix, &found.into_keys().collect::<Vec<_>>())),
    }
}

fn ambiguous(prefix: &str, ids: &[Ulid]) -> Error {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    Error::not_found(format!("ambiguous '{}': {} and more start with it", text::cut(prefix, 40), ids.join(", ")))
}

/// The error for something that is no event, with what would be right.
fn not_found(vault: &Vault, reference: &str) -> Error {
    let shown = text::cut(reference, 40);
    let Ok((log, state)) = vault.view() else { return Error::not_found(format!("no event '{shown}'")) };
    if let Ok(subject) = state.resolve(reference, None) {
        let why = format!("'{shown}' names {subject}, not an event; list its events with hf-log --subject {shown}");
        return Error::not_found(why);
    }
    let newest = log.head().map(|head| format!("; the newest event is {}", head.id)).unwrap_or_default();
    Error::not_found(format!("no event '{shown}' in the log or in quarantine{newest}"))
}
