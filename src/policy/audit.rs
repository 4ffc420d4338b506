//! The audit: replays a log against the rules, event by event.
//!
//! The hash chain proves that no byte was changed. The audit checks every event against the rules, the deadlines and
//! the consequences that must follow, as far as the log alone can decide them, even if it was written without the
//! commands. It cannot know whose shell recorded an event or whether a job had a supervisor, and it does not check the
//! limits on tasks in progress and on the length of deep work.

use std::collections::HashSet;

use super::due::{MachineFacts, Moment};
use super::react::react;
use super::rules::{self, Step};
use super::{Settings, branch, clock};
use crate::base::{Actor, EntityType, Subject, Timestamp, Ulid, limits};
use crate::event::kind::SideEffect;
use crate::event::{Draft, Event, Kind};
use crate::state::State;

/// The state of an audit after the events so far.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    state: State,
    /// In log order, which is also sorted.
    ids: Vec<Ulid>,
    keys: HashSet<String>,
    /// The events of the current batch.
    batch: Vec<Event>,
    /// The events of a cascade that continues in further batches.
    cascade: Vec<Event>,
    /// The settings in force; none until the log records some.
    settings: Option<Settings>,
    /// The latest time of an event since the clock was last set.
    latest: Option<Timestamp>,
}

impl Audit {
    /// Checks the next event. Returns what is wrong with it, one message each.
    pub fn check(&mut self, event: &Event) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut report = |what: String| wrong.push(format!("event {}: {what}", event.id));
        if self.ids.last().is_some_and(|last| *last >= event.id) {
            report("its id is not greater than the previous one".to_owned());
        }
        // An id is made from the clock or is one greater than the previous id, so its time is never earlier.
        if event.timestamp.0.saturating_mul(1000) > event.id.timestamp_ms() as i64 {
            report(format!("its time {} is later than the time in its id", event.timestamp));
        }
        for parent in &event.parents {
            if self.ids.binary_search(parent).is_err() {
                report(format!("its parent {parent} is not an earlier event"));
            }
        }
        if let Some(key) = &event.key
            && !self.keys.insert(key.clone())
        {
            report(format!("the key '{key}' was used before"));
        }
        if Actor::parse(&event.actor).is_err() {
            report(format!("invalid actor '{}'", event.actor));
        }
        let begins = event.event_type.known() == Some(Kind::VaultInitialized);
        if begins != self.ids.is_empty() {
            report(
                if begins {
                    "VaultInitialized is not the first event"
                } else {
                    "the first event is not VaultInitialized"
                }
                .to_owned(),
            );
        }
        if let Some(kind) = event.event_type.known() {
            self.check_known(kind, event, &mut report);
            if let Err(why) = clock::check(event, kind) {
                report(why);
            }
        }
        let set = matches!(event.event_type.known(), Some(Kind::ClockStepped | Kind::MachineBooted));
        // A repair of the log is recorded before anything else, even a clock change.
        let repair = matches!(event.event_type.known(), Some(Kind::TailQuarantined | Kind::VaultRecovered));
        if let Some(latest) = self.latest.filter(|latest| !set && !clock::is_in_order(*latest, event.timestamp))
            && self.settings.is_some()
            && !repair
        {
            report(format!("its time {} is before {latest}, and no clock change was recorded", event.timestamp));
        }
        self.latest = if set { Some(event.timestamp) } else { self.latest.max(Some(event.timestamp)) };
        self.ids.push(event.id);
        self.state.apply(event);
        if self.state.changes().settings.is_some() && event.event_type.known().is_some_and(records_settings) {
            self.settings = Settings::recorded(&self.state);
        }
        self.batch.push(event.clone());
        if event.ends_batch() {
            wrong.extend(self.missing());
        }
        wrong
    }

    /// Checks subject, payload, rules and deadlines of an event whose kind this version knows.
    fn check_known(&self, kind: Kind, event: &Event, report: &mut dyn FnMut(String)) {
        if let Err(error) = kind.check_payload(&event.payload) {
            report(error.message);
        }
        let Some(subject) = Subject::parse(&event.subject).ok().filter(|subject| kind.fits(subject)) else {
            return report(format!("{kind} cannot have the subject {}", event.subject));
        };
        let Ok(actor) = Actor::parse(&event.actor) else { return };
        let step = Step { kind, subject: &subject, actor: &actor, payload: &event.payload };
        if let Err(error) = rules::check(&self.state, &step) {
            report(error.message);
        }
        // Versions that recorded no settings did not check deadlines.
        if let Some(settings) = &self.settings {
            let machine = MachineFacts::default();
            let moment = Moment { state: &self.state, settings, now: event.timestamp, machine: &machine };
            if let Err(error) = moment.check(&step) {
                report(error.message);
            }
        }
    }

    /// The consequences that are missing from a batch. A cascade that fills its batch continues in the next ones.
    fn missing(&mut self) -> Vec<String> {
        let batch = std::mem::take(&mut self.batch);
        // The vault's own events may come between the parts of a cascade.
        let reserved = |event: &Event| event.event_type.known().is_some_and(|kind| kind.row().reserved);
        if !self.cascade.is_empty() && batch.iter().all(reserved) {
            return Vec::new();
        }
        let full = batch.len() >= limits::CASCADE_MAX_EVENTS;
        let mut causes = std::mem::take(&mut self.cascade);
        causes.extend(batch);
        let settings = self.settings.clone().unwrap_or_default();
        let mut wrong = Vec::new();
        for event in &causes {
            let follows = react(&self.state, &settings, event, &mut Ulid::nil);
            let known = |draft: &&Draft| !(self.is_before_branches() && branch::is_of_branches(draft.kind));
            let is_undecidable = |draft: &&Draft| draft.kind.row().depends_on_settings && self.settings.is_none();
            let missing = follows.iter().filter(|draft| !is_undecidable(draft)).filter(known);
            wrong.extend(
                missing.map(|d| format!("event {}: {} of {} must follow, but is missing", event.id, d.kind, d.subject)),
            );
        }
        if full && !wrong.is_empty() {
            self.cascade = causes;
            return Vec::new();
        }
        wrong
    }

    /// Versions without branches wrote valid logs that contain none.
    fn is_before_branches(&self) -> bool {
        self.state.tally().made(EntityType::Branch) == 0
    }
}

/// Whether an event of this kind records the settings in force.
fn records_settings(kind: Kind) -> bool {
    kind.row().side_effect == SideEffect::AdoptsSettings
}
