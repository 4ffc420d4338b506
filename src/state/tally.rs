//! Counts over everything: how many there are of each type, in which state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::{EntityType, Timestamp, Ulid, limits};
use crate::event::{Event, Kind, parse_ulid};
use crate::machine::Phase;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    pub events: u64,
    pub first_event: Option<Ulid>,
    /// The highest schema version that any event has.
    pub newest_version: u64,
    /// How many events of each kind there are.
    kinds: BTreeMap<Kind, u64>,
    /// How many were ever made.
    made: BTreeMap<EntityType, u64>,
    /// How many of those that the projections show are in each state.
    states: BTreeMap<(EntityType, Phase), u64>,
    /// How many tasks are ready and jobs: their supervisors wait for their turn.
    waiting_jobs: u64,
    /// How many have left the projections.
    archived: BTreeMap<EntityType, u64>,
    /// What the machine's clock did.
    pub clock: Clock,
    /// Whether the last batch is so full that more of its consequences may be missing.
    pub is_cut_off: bool,
}

/// How many of the last gaps are kept.
const GAPS_MAX: usize = 16;

/// What the log says about the clock of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// How many seconds it has gone on without the machine being awake, in all: suspended, or set forward; set back,
    /// it is less.
    pub lost_seconds: i64,
    /// The last times that it was suspended: until when, and for how many seconds.
    gaps: Vec<(i64, i64)>,
    /// When the machine was last booted, in seconds of the clock without those that were lost.
    pub booted: Option<i64>,
}

impl Clock {
    /// Takes in what an event says.
    fn see(&mut self, kind: Kind, event: &Event) {
        let time = |member: &str| Timestamp::parse(event.payload.get(member)?.as_str()?).map(|time| time.0);
        let seconds = match kind {
            Kind::MachineSuspended => event.payload.get("seconds").and_then(Value::as_i64),
            Kind::ClockStepped => time("to").zip(time("from")).map(|(to, from)| to.saturating_sub(from)),
            Kind::MachineBooted => {
                self.booted = time("at").map(|at| at - self.lost_seconds);
                None
            }
            _ => None,
        };
        if let Some(seconds) = seconds {
            self.lost_seconds = self.lost_seconds.saturating_add(seconds);
            self.gaps.push((event.timestamp.0, seconds));
            self.gaps.drain(..self.gaps.len().saturating_sub(GAPS_MAX));
        }
    }

    /// How many seconds were lost since a moment, as far as that is remembered.
    pub fn lost_since(&self, then: Timestamp) -> i64 {
        self.gaps.iter().filter(|(until, _)| *until > then.0).map(|(_, seconds)| *seconds).sum()
    }
}

impl Tally {
    pub(super) fn see(&mut self, event: &Event) {
        self.events += 1;
        self.first_event.get_or_insert(event.id);
        self.newest_version = self.newest_version.max(event.version);
        if let Some(kind) = event.event_type.known() {
            *self.kinds.entry(kind).or_default() += 1;
            self.clock.see(kind, event);
            // What the vault itself records may come between the batches of a cascade.
            if !kind.row().reserved {
                self.is_cut_off = event.batch.is_some_and(|batch| batch.of >= limits::CASCADE_MAX_EVENTS as u64);
            }
        }
    }

    /// Counts a new entity and gives its ordinal.
    pub(super) fn make(&mut self, entity: EntityType) -> u64 {
        let made = self.made.entry(entity).or_default();
        *made += 1;
        *made
    }

    pub(super) fn moved(&mut self, entity: EntityType, from: Phase, to: Phase) {
        self.left(entity, from);
        *self.states.entry((entity, to)).or_default() += 1;
    }

    /// One less is in a state. A state that nobody is in has no entry, so that a tally which was kept
    /// is the same as one that was counted.
    fn left(&mut self, entity: EntityType, from: Phase) {
        if let Some(count) = self.states.get_mut(&(entity, from)) {
            *count -= 1;
            if *count == 0 {
                self.states.remove(&(entity, from));
            }
        }
    }

    /// How many events of a kind there are.
    pub fn recorded(&self, kind: Kind) -> u64 {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }

    /// How many of a type, of those that the projections show, are in a state.
    pub fn in_phase(&self, entity: EntityType, state: Phase) -> u64 {
        self.states.get(&(entity, state)).copied().unwrap_or(0)
    }

    /// Counts a job that begins to wait for its turn, or no longer does.
    pub(super) fn job_waits(&mut self, before: bool, after: bool) {
        self.waiting_jobs = self.waiting_jobs + u64::from(after) - u64::from(before).min(self.waiting_jobs);
    }

    /// How many jobs are ready and wait for their turn.
    pub fn waiting_jobs(&self) -> u64 {
        self.waiting_jobs
    }

    pub fn made(&self, entity: EntityType) -> u64 {
        self.made.get(&entity).copied().unwrap_or(0)
    }

    /// The states that entities of a type are in, and how many in each.
    pub fn states(&self, entity: EntityType) -> impl Iterator<Item = (Phase, u64)> {
        self.states.iter().filter(move |((e, _), _)| *e == entity).map(|((_, state), n)| (*state, *n))
    }

    pub(super) fn archive(&mut self, entity: EntityType, state: Phase) {
        self.left(entity, state);
        *self.archived.entry(entity).or_default() += 1;
    }

    /// How many of a type a projection shows.
    pub fn live(&self, entity: EntityType) -> u64 {
        self.made(entity) - self.archived.get(&entity).copied().unwrap_or(0)
    }

    pub fn to_json(&self) -> Value {
        let made: BTreeMap<&str, u64> = self.made.iter().map(|(e, n)| (e.as_str(), *n)).collect();
        let kinds: BTreeMap<&str, u64> = self.kinds.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
        let states: Vec<(&str, &str, u64)> =
            self.states.iter().map(|((e, s), n)| (e.as_str(), s.as_str(), *n)).collect();
        let archived: BTreeMap<&str, u64> = self.archived.iter().map(|(e, n)| (e.as_str(), *n)).collect();
        json!({
            "archived": archived,
            "clock": self.clock,
            "events": self.events,
            "is_cut_off": self.is_cut_off,
            "first_event": self.first_event.map(|id| id.to_string()),
            "newest_version": self.newest_version,
            "kinds": kinds,
            "made": made,
            "states": states,
            "waiting_jobs": self.waiting_jobs,
        })
    }

    pub fn from_json(value: &Value) -> Option<Tally> {
        let mut tally = Tally {
            events: value["events"].as_u64()?,
            first_event: value["first_event"].as_str().and_then(parse_ulid),
            newest_version: value["newest_version"].as_u64()?,
            waiting_jobs: value["waiting_jobs"].as_u64()?,
            clock: serde_json::from_value(value["clock"].clone()).ok()?,
            is_cut_off: value["is_cut_off"].as_bool()?,
            ..Tally::default()
        };
        for (map, name) in [(&mut tally.made, "made"), (&mut tally.archived, "archived")] {
            for (entity, count) in value[name].as_object()? {
                map.insert(EntityType::parse(entity)?, count.as_u64()?);
            }
        }
        for (kind, count) in value["kinds"].as_object()? {
            tally.kinds.insert(Kind::parse(kind)?, count.as_u64()?);
        }
        for row in value["states"].as_array()? {
            let key = (EntityType::parse(row[0].as_str()?)?, Phase::parse(row[1].as_str()?)?);
            tally.states.insert(key, row[2].as_u64()?);
        }
        Some(tally)
    }
}
