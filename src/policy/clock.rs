//! What the machine's clocks tell when they are compared with what they said before.
//!
//! Three clocks: the time of day, which anybody can set; one that counts from the boot; and one that counts from the
//! boot while the machine is awake.

use serde_json::{Value, json};

use crate::base::{Actor, Clocks, Timestamp};
use crate::event::{Event, Kind};

/// Who records what the machine shows, and which settings are in force.
pub const KERNEL: &str = "kernel";
/// An event and the clocks that it tells of are this close.
const CLOSE_SECONDS: i64 = 120;
/// A shorter sleep is none.
const SLEPT_MIN_MS: i64 = 5_000;
/// A clock that is set by less was only corrected.
const STEPPED_MIN_MS: i64 = 10_000;

/// What happened between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockChange {
    Suspended {
        from: Timestamp,
        to: Timestamp,
        seconds: u64,
    },
    /// It was started since; or it is another machine, and then from now.
    Booted {
        at: Timestamp,
    },
    Stepped {
        from: Timestamp,
        to: Timestamp,
    },
}

/// What happened since the clocks were last seen.
pub fn changes(before: Option<&Clocks>, now: &Clocks) -> Vec<ClockChange> {
    let real = now.real.timestamp();
    let Some(before) = before.filter(|before| before.boot_id == now.boot_id) else {
        // Started after the last look, it is most likely the same machine; else nobody knows how long nobody was there.
        let started = Timestamp(((now.real.millis.saturating_sub(now.since_boot_ms)) / 1000) as i64);
        let at = before.filter(|before| started >= before.real.timestamp()).map_or(real, |_| started);
        return vec![ClockChange::Booted { at }];
    };
    let passed = |then: u64, now: u64| (now as i64).saturating_sub(then as i64);
    let since_boot = passed(before.since_boot_ms, now.since_boot_ms).max(0);
    let awake = passed(before.awake_ms, now.awake_ms).max(0);
    let (slept, stepped) = (since_boot - awake, passed(before.real.millis, now.real.millis) - since_boot);
    let mut found = Vec::new();
    if stepped.abs() >= STEPPED_MIN_MS {
        let expected = Timestamp((now.real.millis as i64).saturating_sub(stepped) / 1000);
        found.push(ClockChange::Stepped { from: expected, to: real });
    }
    if slept >= SLEPT_MIN_MS {
        let from = Timestamp(real.0 - since_boot / 1000);
        found.push(ClockChange::Suspended { from, to: real, seconds: (slept / 1000) as u64 });
    }
    found
}

impl ClockChange {
    /// The event that records it.
    pub fn event(&self) -> (Kind, Value) {
        match self {
            ClockChange::Suspended { from, to, seconds } => {
                (Kind::MachineSuspended, json!({"from": from.to_string(), "to": to.to_string(), "seconds": seconds}))
            }
            ClockChange::Booted { at } => (Kind::MachineBooted, json!({"at": at.to_string()})),
            ClockChange::Stepped { from, to } => {
                (Kind::ClockStepped, json!({"from": from.to_string(), "to": to.to_string()}))
            }
        }
    }
}

/// Whether a recorded event about the clocks or the settings can be true.
pub fn check(event: &Event, kind: Kind) -> Result<(), String> {
    let ours = [Kind::SettingsChanged, Kind::MachineSuspended, Kind::MachineBooted, Kind::ClockStepped];
    if !ours.contains(&kind) {
        return Ok(());
    }
    if event.actor != Actor::core(KERNEL).to_string() {
        return Err(format!("{kind} is recorded by the toolkit itself, not by {}", event.actor));
    }
    let time = |member: &str| event.payload.get(member).and_then(Value::as_str).and_then(Timestamp::parse);
    let near = |at: Timestamp| (at.0 - event.timestamp.0).abs() <= CLOSE_SECONDS;
    let can_be = match kind {
        Kind::MachineSuspended => {
            let seconds = event.payload.get("seconds").and_then(Value::as_i64).unwrap_or(i64::MAX);
            time("from").zip(time("to")).is_some_and(|(from, to)| near(to) && seconds <= to.0 - from.0 + 1)
        }
        Kind::MachineBooted => time("at").is_some_and(|at| at.0 <= event.timestamp.0 + CLOSE_SECONDS),
        Kind::ClockStepped => time("to").is_some_and(near),
        _ => true,
    };
    if can_be { Ok(()) } else { Err(format!("what {kind} says cannot be")) }
}

/// Whether the time of an event may come after this one, if the clock was not set in between.
pub fn is_in_order(latest: Timestamp, event: Timestamp) -> bool {
    event.0 >= latest.0 - CLOSE_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Now;

    fn clocks(boot: u8, real_s: u64, since_boot_s: u64, awake_s: u64) -> Clocks {
        Clocks {
            boot_id: [boot; 16],
            real: Now { millis: real_s * 1000 },
            since_boot_ms: since_boot_s * 1000,
            awake_ms: awake_s * 1000,
        }
    }

    #[test]
    fn sleep_steps_and_boots_are_told_apart() {
        let before = clocks(1, 10_000, 500, 500);
        let see = |now: Clocks| changes(Some(&before), &now);
        let at = Timestamp;
        assert_eq!(see(clocks(1, 10_060, 560, 560)), []);
        assert_eq!(
            see(clocks(1, 10_660, 1160, 560)),
            [ClockChange::Suspended { from: at(10_000), to: at(10_660), seconds: 600 }]
        );
        assert_eq!(see(clocks(1, 13_660, 560, 560)), [ClockChange::Stepped { from: at(10_060), to: at(13_660) }]);
        assert_eq!(see(clocks(1, 6_460, 560, 560)), [ClockChange::Stepped { from: at(10_060), to: at(6_460) }]);
        // Started after the last look; and a machine that was running all the time is another one.
        assert_eq!(see(clocks(2, 11_000, 300, 300)), [ClockChange::Booted { at: at(10_700) }]);
        assert_eq!(see(clocks(2, 11_000, 9_000, 9_000)), [ClockChange::Booted { at: at(11_000) }]);
        assert_eq!(changes(None, &before), [ClockChange::Booted { at: at(10_000) }]);
        // Slept, and then set.
        let both = see(clocks(1, 14_260, 1160, 560));
        assert_eq!(both.len(), 2, "{both:?}");
    }
}
