//! The audit: a log replayed against the rules, event by event.
//!
//! The chain proves bytes; this proves that the protocol was kept, also in a log that was written
//! around the commands.

use std::collections::HashSet;

use super::due::{MachineFacts, Moment};
use super::react::react;
use super::rules::{self, Step};
use super::{Settings, branch, clock};
use crate::base::{Actor, EntityType, Subject, Timestamp, Ulid, limits};
use crate::event::kind::SideEffect;
use crate::event::{Draft, Event, Kind};
use crate::state::State;

/// What has been seen so far.
#[derive(Debug, Default)]
pub struct Audit {
    state: State,
    /// In the order of the log, which is their own order.
    ids: Vec<Ulid>,
    keys: HashSet<String>,
    /// The events since the last unit ended.
    unit: Vec<Event>,
    /// The events of a cascade that goes on in further units.
    cascade: Vec<Event>,
    /// The settings of the time; nothing before the log says them.
    settings: Option<Settings>,
    /// The latest time of an event since the clock was set.
    latest: Option<Timestamp>,
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
            if let Err(why) = clock::check(event, kind) {
                say(why);
            }
        }
        let set = matches!(event.event_type.known(), Some(Kind::ClockStepped | Kind::MachineBooted));
        if let Some(latest) = self.latest.filter(|latest| !set && !clock::is_in_order(*latest, event.timestamp))
            && self.settings.is_some()
        {
            say(format!("its time, {}, is before {latest}, and the clock was not set", event.timestamp));
        }
        self.latest = if set { Some(event.timestamp) } else { self.latest.max(Some(event.timestamp)) };
        self.ids.push(event.id);
        self.state.apply(event);
        if self.state.changes().settings.is_some() && event.event_type.known().is_some_and(settles) {
            self.settings = Settings::recorded(&self.state);
        }
        self.unit.push(event.clone());
        if event.ends_batch() {
            wrong.extend(self.missing());
        }
        wrong
    }

    /// Subject, payload, transitions, gates and claims of a type that this version knows.
    fn check_known(&self, kind: Kind, event: &Event, say: &mut dyn FnMut(String)) {
        if let Err(error) = kind.check_payload(&event.payload) {
            say(error.message);
        }
        let Some(subject) = Subject::parse(&event.subject).ok().filter(|subject| kind.fits(subject)) else {
            return say(format!("{kind} is not about {}", event.subject));
        };
        let Ok(actor) = Actor::parse(&event.actor) else { return };
        let step = Step { kind, subject: &subject, actor: &actor, payload: &event.payload };
        if let Err(error) = rules::check(&self.state, &step) {
            say(error.message);
        }
        // Versions that recorded no settings did not look at the time.
        if let Some(settings) = &self.settings {
            let machine = MachineFacts::default();
            let moment = Moment { state: &self.state, settings, now: event.timestamp, machine: &machine };
            if let Err(error) = moment.check(&step) {
                say(error.message);
            }
        }
    }

    /// What must follow from the events of a unit by itself, and does not stand in it. A cascade that fills its unit
    /// goes on in the next ones.
    fn missing(&mut self) -> Vec<String> {
        let unit = std::mem::take(&mut self.unit);
        // What the vault itself records may come between the parts of a cascade.
        let reserved = |event: &Event| event.event_type.known().is_some_and(|kind| kind.row().reserved);
        if !self.cascade.is_empty() && unit.iter().all(reserved) {
            return Vec::new();
        }
        let full = unit.len() >= limits::CASCADE_MAX_EVENTS;
        let mut causes = std::mem::take(&mut self.cascade);
        causes.extend(unit);
        let settings = self.settings.clone().unwrap_or_default();
        let mut wrong = Vec::new();
        for event in &causes {
            let follows = react(&self.state, &settings, event, &mut Ulid::nil);
            let known = |draft: &&Draft| !(self.is_before_branches() && branch::is_of_branches(draft.kind));
            let by_chance = |draft: &&Draft| draft.kind.row().depends_on_settings && self.settings.is_none();
            let missing = follows.iter().filter(|draft| !by_chance(draft)).filter(known);
            wrong.extend(missing.map(|d| format!("event {}: {} of {} should follow", event.id, d.kind, d.subject)));
        }
        if full && !wrong.is_empty() {
            self.cascade = causes;
            return Vec::new();
        }
        wrong
    }

    /// Versions that knew no branches wrote logs without any, and kept their rules.
    fn is_before_branches(&self) -> bool {
        self.state.tally().made(EntityType::Branch) == 0
    }
}

/// Whether an event says which settings are in force.
fn settles(kind: Kind) -> bool {
    kind.row().side_effect == SideEffect::Settles
}
