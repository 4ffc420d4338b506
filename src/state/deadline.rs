//! Deadlines: which entities have one, from when it counts, and how long it is where the log says so.
//!
//! Nothing here knows a clock or a setting: a deadline says from when it counts, and who judges it (`policy::due`) adds
//! the limit. So a setting that changes moves nothing, and a base can keep deadlines in the order in which they fall due.

use super::Entity;
use crate::base::{EntityType, names};
use crate::machine::Phase;

names! {
    /// What runs out.
    pub enum Timer {
        /// A claim that is not renewed.
        Lease = "lease",
        /// A run without a heartbeat.
        Silence = "silence",
        /// A run that takes longer than it may.
        Overtime = "overtime",
        /// A decision that nobody makes.
        Approval = "approval",
        /// A session's time.
        Session = "session",
        /// A strict deep work's time.
        DeepWork = "deepwork",
        /// A task that ended long ago.
        Archive = "archive",
    }
}

/// How long a deadline is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// As the settings say.
    Setting,
    /// As a fact of the entity says, times this; without the fact there is no deadline.
    Fact(&'static str, u64),
    /// None: it counts from the moment at which it falls due.
    None,
}

/// Which entities have a deadline: type and phase, what runs out, the fact from which it counts, and its length.
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

/// The fact of a task that holds its lease.
pub const LEASE: &str = "lease_seconds";
/// The fact of a run that holds the lease of its task.
pub(super) const RUN_LEASE: &str = "_lease_seconds";

/// One deadline of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    pub timer: Timer,
    /// Its length in seconds; nothing if the settings say it.
    pub limit: Option<u64>,
    /// From when it counts, in seconds that the machine was awake where the timer goes by those.
    pub from: i64,
}

impl Timer {
    /// Whether time does not count for it while the machine is suspended.
    pub const fn stops_in_sleep(self) -> bool {
        matches!(self, Timer::Lease | Timer::Silence | Timer::Session)
    }
}

impl Entity {
    /// Its deadlines as it stands now; none if it has left the projections.
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
        // A run that a claim keeps alive is silent after its lease.
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
