//! Counts over the whole log: how many entities there are of each type, and in which phase.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::{Actor, EntityType, Timestamp, Ulid, limits};
use crate::event::kind::{OPERATOR_KEY, OPERATOR_KEYS, RecordedBy, SideEffect};
use crate::event::{Event, Kind, parse_ulid};
use crate::machine::Phase;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    pub events: u64,
    pub first_event: Option<Ulid>,
    pub last_event: Option<Ulid>,
    /// The highest schema version of any event.
    pub newest_version: u64,
    /// The first event that records settings, as every version after 0.1 does.
    pub settings_since: Option<Ulid>,
    /// The newest event that changed the settings or the operators' keys.
    pub authority: Option<Ulid>,
    /// The first event with an operator's key.
    pub keyed_since: Option<Ulid>,
    /// The operators' keys, as in their `.pub` files, oldest first.
    operator_keys: Vec<String>,
    /// The last act of an operator.
    pub last_act: Option<Ulid>,
    /// The number of events of each kind.
    kinds: BTreeMap<Kind, u64>,
    /// The number of entities ever created, by type.
    made: BTreeMap<EntityType, u64>,
    /// The number of entities in each phase, without archived ones.
    phases: BTreeMap<(EntityType, Phase), u64>,
    /// The number of ready jobs, which wait for a free slot.
    waiting_jobs: u64,
    /// The number of ready tasks whose priority is not the usual one.
    ranked_tasks: u64,
    /// The number of archived entities, by type.
    archived: BTreeMap<EntityType, u64>,
    /// What happened to the machine's clock.
    pub clock: Clock,
    /// Whether the last batch is full, so that some of its consequences may be missing.
    pub is_cut_off: bool,
}

/// How many of the latest gaps are kept.
const GAPS_MAX: usize = 16;

/// What the log says about the machine's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// The total number of seconds that the clock advanced while the machine was not awake: suspended, or set forward.
    /// Setting the clock back subtracts.
    pub lost_seconds: i64,
    /// The latest suspends and clock changes: when each ended, and how many seconds were lost.
    gaps: Vec<(i64, i64)>,
    /// When the machine was last booted, in seconds without the lost ones.
    pub booted: Option<i64>,
}

impl Clock {
    /// Takes an event into account.
    fn observe(&mut self, kind: Kind, event: &Event) {
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

    /// The number of seconds lost since a time, as far as the gaps are kept.
    pub fn lost_since(&self, then: Timestamp) -> i64 {
        self.gaps.iter().filter(|(until, _)| *until > then.0).map(|(_, seconds)| *seconds).sum()
    }
}

impl Tally {
    /// Counts an event.
    pub(super) fn observe(&mut self, event: &Event) {
        self.events += 1;
        self.first_event.get_or_insert(event.id);
        self.last_event = Some(event.id);
        self.newest_version = self.newest_version.max(event.version);
        if let Some(kind) = event.event_type.known() {
            *self.kinds.entry(kind).or_default() += 1;
            self.clock.observe(kind, event);
            let adopts_settings = kind.row().side_effect == SideEffect::AdoptsSettings;
            if adopts_settings && event.payload.contains_key(super::SETTINGS) {
                self.settings_since.get_or_insert(event.id);
            }
            self.observe_keys(kind, event);
            let is_act = match kind.row().by {
                RecordedBy::Operator => true,
                RecordedBy::OperatorOrProposer => Actor::parse(&event.actor).is_ok_and(|actor| !actor.is_autonomous()),
                RecordedBy::Anyone | RecordedBy::NotAgents | RecordedBy::Reactor => false,
            };
            if is_act {
                self.last_act = Some(event.id);
            }
            self.observe_batch(kind, event);
        }
    }

    /// Takes the length of an event's batch into account, which is known only once the event is sealed.
    fn observe_batch(&mut self, kind: Kind, event: &Event) {
        // The vault's own events may come between the batches of a cascade.
        if !kind.row().reserved {
            self.is_cut_off = event.batch.is_some_and(|batch| batch.of >= limits::CASCADE_MAX_EVENTS as u64);
        }
    }

    /// The same for the events of a batch that were observed before they were sealed.
    pub(super) fn observe_sealed(&mut self, sealed: &[Event]) {
        for event in sealed {
            if let Some(kind) = event.event_type.known() {
                self.observe_batch(kind, event);
            }
        }
    }

    /// Takes a change of the operators' keys or of the settings into account.
    fn observe_keys(&mut self, kind: Kind, event: &Event) {
        let key = || event.payload.get(OPERATOR_KEY).and_then(Value::as_str).map(str::to_owned);
        match kind {
            Kind::VaultInitialized => {
                let keys = event.payload.get(OPERATOR_KEYS).and_then(Value::as_array).into_iter().flatten();
                self.operator_keys = keys.filter_map(Value::as_str).map(str::to_owned).collect();
            }
            Kind::OperatorKeyAdded => self.operator_keys.extend(key()),
            Kind::OperatorKeyRemoved => self.operator_keys.retain(|known| Some(known) != key().as_ref()),
            Kind::SettingsChanged | Kind::SettingsAdopted => {}
            _ => return,
        }
        self.authority = Some(event.id);
        if !self.operator_keys.is_empty() {
            self.keyed_since.get_or_insert(event.id);
        }
    }

    /// The operators' keys, as in their `.pub` files, oldest first.
    pub fn operator_keys(&self) -> &[String] {
        &self.operator_keys
    }

    /// Whether operators sign their acts. It stays so: the last key cannot be removed.
    pub fn is_keyed(&self) -> bool {
        self.keyed_since.is_some()
    }

    /// Whether settings are recorded. Rules that version 0.1 did not have apply from then on.
    pub fn has_settings(&self) -> bool {
        self.settings_since.is_some()
    }

    /// Counts a new entity and returns its ordinal.
    pub(super) fn make(&mut self, entity: EntityType) -> u64 {
        let made = self.made.entry(entity).or_default();
        *made += 1;
        *made
    }

    /// Counts a transition.
    pub(super) fn moved(&mut self, entity: EntityType, from: Phase, to: Phase) {
        self.left(entity, from);
        *self.phases.entry((entity, to)).or_default() += 1;
    }

    /// Counts an entity that left a phase. Counts of zero are removed, so that a stored tally equals one counted from the
    /// log.
    fn left(&mut self, entity: EntityType, from: Phase) {
        if let Some(count) = self.phases.get_mut(&(entity, from)) {
            *count -= 1;
            if *count == 0 {
                self.phases.remove(&(entity, from));
            }
        }
    }

    /// The number of events of a kind.
    pub fn recorded(&self, kind: Kind) -> u64 {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }

    /// The number of entities of a type in a phase, without archived ones.
    pub fn in_phase(&self, entity: EntityType, phase: Phase) -> u64 {
        self.phases.get(&(entity, phase)).copied().unwrap_or(0)
    }

    /// Counts a job that starts or stops waiting.
    pub(super) fn job_waits(&mut self, before: bool, after: bool) {
        self.waiting_jobs = self.waiting_jobs + u64::from(after) - u64::from(before).min(self.waiting_jobs);
    }

    /// The number of ready jobs, which wait for a free slot.
    pub fn waiting_jobs(&self) -> u64 {
        self.waiting_jobs
    }

    /// Counts a task that starts or stops being ready with a priority of its own.
    pub(super) fn task_ranked(&mut self, before: bool, after: bool) {
        self.ranked_tasks = self.ranked_tasks + u64::from(after) - u64::from(before).min(self.ranked_tasks);
    }

    /// The number of ready tasks whose priority is not the usual one.
    pub fn ranked_tasks(&self) -> u64 {
        self.ranked_tasks
    }

    /// The number of entities of a type ever created.
    pub fn made(&self, entity: EntityType) -> u64 {
        self.made.get(&entity).copied().unwrap_or(0)
    }

    /// The phases that entities of a type are in, with the number in each, without archived ones.
    pub fn phases(&self, entity: EntityType) -> impl Iterator<Item = (Phase, u64)> {
        self.phases.iter().filter(move |((e, _), _)| *e == entity).map(|((_, phase), n)| (*phase, *n))
    }

    /// Counts an entity that was archived in this phase.
    pub(super) fn archive(&mut self, entity: EntityType, phase: Phase) {
        self.left(entity, phase);
        *self.archived.entry(entity).or_default() += 1;
    }

    /// The number of entities of a type that are not archived.
    pub fn live(&self, entity: EntityType) -> u64 {
        self.made(entity) - self.archived.get(&entity).copied().unwrap_or(0)
    }

    pub fn to_json(&self) -> Value {
        let made: BTreeMap<&str, u64> = self.made.iter().map(|(e, n)| (e.as_str(), *n)).collect();
        let kinds: BTreeMap<&str, u64> = self.kinds.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
        let phases: Vec<(&str, &str, u64)> =
            self.phases.iter().map(|((e, s), n)| (e.as_str(), s.as_str(), *n)).collect();
        let archived: BTreeMap<&str, u64> = self.archived.iter().map(|(e, n)| (e.as_str(), *n)).collect();
        json!({
            "archived": archived,
            "authority": self.authority.map(|id| id.to_string()),
            "clock": self.clock,
            "events": self.events,
            "is_cut_off": self.is_cut_off,
            "first_event": self.first_event.map(|id| id.to_string()),
            "keyed_since": self.keyed_since.map(|id| id.to_string()),
            "newest_version": self.newest_version,
            "operator_keys": self.operator_keys,
            "settings_since": self.settings_since.map(|id| id.to_string()),
            "kinds": kinds,
            "last_act": self.last_act.map(|id| id.to_string()),
            "last_event": self.last_event.map(|id| id.to_string()),
            "made": made,
            "states": phases,
            "ranked_tasks": self.ranked_tasks,
            "waiting_jobs": self.waiting_jobs,
        })
    }

    pub fn from_json(value: &Value) -> Option<Tally> {
        let mut tally = Tally {
            events: value["events"].as_u64()?,
            first_event: value["first_event"].as_str().and_then(parse_ulid),
            last_event: value["last_event"].as_str().and_then(parse_ulid),
            last_act: value["last_act"].as_str().and_then(parse_ulid),
            newest_version: value["newest_version"].as_u64()?,
            settings_since: value["settings_since"].as_str().and_then(parse_ulid),
            authority: value["authority"].as_str().and_then(parse_ulid),
            keyed_since: value["keyed_since"].as_str().and_then(parse_ulid),
            operator_keys: serde_json::from_value(value["operator_keys"].clone()).ok()?,
            waiting_jobs: value["waiting_jobs"].as_u64()?,
            ranked_tasks: value["ranked_tasks"].as_u64()?,
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
            tally.phases.insert(key, row[2].as_u64()?);
        }
        Some(tally)
    }
}
