//! The audit: a log replayed against the rules, event by event.
//!
//! The chain proves bytes; this proves that the protocol was kept, also in a log that was written
//! around the commands.

use std::collections::HashSet;

use super::named_entities;
use crate::base::{Actor, Subject, Ulid};
use crate::event::kind::About;
use crate::event::{Event, Kind};
use crate::machine;
use crate::state::{State, linked};

/// What has been seen so far.
#[derive(Debug, Default)]
pub struct Audit {
    state: State,
    /// In the order of the log, which is their own order.
    ids: Vec<Ulid>,
    keys: HashSet<String>,
}

impl Audit {
    /// Takes the next event. Gives what is wrong with it, one sentence each.
    pub fn take(&mut self, event: &Event) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut say = |what: String| wrong.push(format!("event {}: {what}", event.id));
        if self.ids.last().is_some_and(|last| *last >= event.id) {
            say("its id is not greater than the one before".to_owned());
        }
        // An id is made from the clock or from the id before it, so its time is never behind.
        if event.timestamp.0.saturating_mul(1000) > event.id.timestamp_ms() as i64 {
            say(format!("its time, {}, is later than its id", event.timestamp));
        }
        for parent in &event.parents {
            if self.ids.binary_search(parent).is_err() {
                say(format!("its parent {parent} does not stand before it"));
            }
        }
        if let Some(key) = &event.key
            && !self.keys.insert(key.clone())
        {
            say(format!("the key '{key}' stands a second time"));
        }
        if Actor::parse(&event.actor).is_err() {
            say("its actor has not the form of one".to_owned());
        }
        let begins = event.event_type.known() == Some(Kind::VaultInitialized);
        if begins != self.ids.is_empty() {
            say(if begins { "a log begins only once" } else { "the log does not begin with VaultInitialized" }
                .to_owned());
        }
        if let Some(kind) = event.event_type.known() {
            self.check_known(kind, event, &mut say);
        }
        self.ids.push(event.id);
        self.state.apply(event);
        wrong
    }

    /// Subject, payload and transitions of a type that this version knows.
    fn check_known(&self, kind: Kind, event: &Event, say: &mut dyn FnMut(String)) {
        if let Err(error) = kind.check_payload(&event.payload) {
            say(error.message);
        }
        let Some(subject) = Subject::parse(&event.subject).ok().filter(|subject| kind.fits(subject)) else {
            return say(format!("{kind} is not about {}", event.subject));
        };
        if kind.row().about == About::Any {
            if self.state.entity(&subject).is_none() {
                say(format!("{subject} does not exist"));
            }
            return;
        }
        for named in named_entities(kind, &event.payload) {
            if self.state.entity(&named).is_none() {
                say(format!("{named}, which its payload names, does not exist"));
            }
        }
        let from = self.state.of(&subject);
        if machine::step(subject.entity, from, kind).is_none() {
            say(format!("{subject} is {from}; {kind} is not legal there"));
        }
        if kind == Kind::RunStarted
            && let Some(task) = linked(kind, &event.payload)
            && machine::step(task.entity, self.state.of(&task), kind).is_none()
        {
            say(format!("{task} is {}; {kind} is not legal there", self.state.of(&task)));
        }
    }
}
