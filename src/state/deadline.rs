//! Deadlines: which entities have one, when it starts, and its length if the log determines it.
//!
//! Nothing here depends on the current time or on settings: a deadline has a start, and `policy::due` adds lengths that
//! come from settings. So a changed setting does not change any stored deadline, and a base can sort deadlines by start.

use super::Entity;
use crate::base::{EntityType, names};
use crate::machine::Phase;

names! {
    /// What expires.
    pub enum Timer {
        /// A claim that is not renewed.
        Lease = "lease",
        /// A run without a heartbeat.
        Silence = "silence",
        /// A run that exceeds its time limit.
        Overtime = "overtime",
        /// An open decision.
        Approval = "approval",
        /// A session that is not renewed.
        Session = "session",
        /// The declared time of strict deep work.
        DeepWork = "deepwork",
        /// A task that ended and is to be archived.
        Archive = "archive",
    }
}

/// The length of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The settings determine it.
    Setting,
    /// A fact of the entity times this number, in seconds; without the fact there is no deadline.
    Fact(&'static str, u64),
    /// Zero: the fact from which it starts is the deadline itself.
    None,
}

/// Which entities have a deadline: type and phase, timer, the fact with the start, and the length.
const TIMERS: &[(EntityType, Phase, Timer, &str, Limit)] = &[
    (EntityType::Task, Phase::Assigned, Timer::Lease, "claimed_at", Limit::Fact(LEASE, 1)),
    (EntityType::Run, Phase::Running, Timer::Lease, "last_heartbeat_at", Limit::Fact(RUN_LEASE, 1)),
    (EntityType::Run, Phase::Running, Timer::Silence, "last_heartbeat_at", Limit::Setting),
    (EntityType::Run, Phase::Running, Timer::Overtime, "started_at", Limit::Fact("timeout_seconds", 1)),
    (EntityType::Decision, Phase::Requested, Timer::Approval, "requested_at", Limit::Setting),
    (EntityType::Session, Phase::Active, Timer::Session, "expires_at", Limit::None),
    (EntityType::DeepWork, Phase::Open, Timer::DeepWork, "started_at", Limit::Fact("minutes", 60)),
    (EntityType::Task, Phase::Succeeded, Timer::Archive, "succeeded_at", Limit::Setting),
    (EntityType::Task, Phase::Aborted, Timer::Archive, "aborted_at", Limit::Setting),
];

/// The fact with the lease of a task.
pub const LEASE: &str = "lease_seconds";
/// The fact of a run with the lease of its task.
pub(super) const RUN_LEASE: &str = "_lease_seconds";

/// One deadline of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    pub timer: Timer,
    /// Its length in seconds; none if the settings determine it.
    pub limit: Option<u64>,
    /// When it starts. For timers that stop during sleep, lost seconds are subtracted.
    pub from: i64,
}

impl Timer {
    /// Whether the time that the machine is suspended does not count.
    pub const fn stops_in_sleep(self) -> bool {
        matches!(self, Timer::Lease | Timer::Silence | Timer::Session)
    }
}

impl Entity {
    /// Its current deadlines; an archived entity has none.
    pub fn deadlines(&self) -> Vec<Deadline> {
        let live = |row: &&(EntityType, Phase, Timer, &str, Limit)| {
            !self.archived && row.0 == self.subject.entity && row.1 == self.phase
        };
        TIMERS
            .iter()
            .filter(live)
            .filter_map(|(_, _, timer, fact, limit)| self.deadline(*timer, fact, *limit))
            .collect()
    }

    fn deadline(&self, timer: Timer, fact: &str, limit: Limit) -> Option<Deadline> {
        // A run with a lease falls silent when the lease expires.
        if timer == Timer::Silence && self.facts.contains_key(RUN_LEASE) {
            return None;
        }
        let limit = match limit {
            Limit::Setting => None,
            Limit::None => Some(0),
            Limit::Fact(name, times) => Some(self.facts.get(name)?.as_u64()?.saturating_mul(times)),
        };
        let from = self.time(fact)?.0;
        Some(Deadline { timer, limit, from: if timer.stops_in_sleep() { from - self.lost_seconds } else { from } })
    }
}
