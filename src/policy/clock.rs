//! Finds suspends, boots and clock changes by comparing the machine's clocks with their previous readings.
//!
//! There are three clocks: the time of day, which can be set; the time since boot; and the time since boot that the
//! machine was awake.

use serde_json::{Value, json};

use crate::base::{Actor, Clocks, Timestamp};
use crate::event::{Event, Kind};

/// The actor that records clock changes and the settings in force.
pub const KERNEL: &str = "kernel";
/// How far the times in an event may be from the time of the event itself.
const CLOSE_SECONDS: i64 = 120;
/// A shorter suspend is ignored.
const SLEPT_MIN_MS: i64 = 5_000;
/// A smaller step is an ordinary clock correction and is ignored.
const STEPPED_MIN_MS: i64 = 10_000;

/// What happened to the machine between two readings of the clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockChange {
    Suspended {
        from: Timestamp,
        to: Timestamp,
        seconds: u64,
    },
    /// The machine was booted; for a different machine, `at` is the time of the reading.
    Booted {
        at: Timestamp,
    },
    Stepped {
        from: Timestamp,
        to: Timestamp,
    },
}

/// Returns what happened since the previous reading of the clocks.
pub fn changes(before: Option<&Clocks>, now: &Clocks) -> Vec<ClockChange> {
    let real = now.real.timestamp();
    let Some(before) = before.filter(|before| before.boot_id == now.boot_id) else {
        // If it was booted after the previous reading, it is most likely the same machine. Otherwise it is unknown how
        // long the vault was unattended.
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

/// Checks that a recorded event about the clocks or the settings is plausible.
pub fn check(event: &Event, kind: Kind) -> Result<(), String> {
    let recorded_by_kernel = [Kind::SettingsChanged, Kind::MachineSuspended, Kind::MachineBooted, Kind::ClockStepped];
    if !recorded_by_kernel.contains(&kind) {
        return Ok(());
    }
    if event.actor != Actor::core(KERNEL).to_string() {
        return Err(format!("{kind} must be recorded by core:{KERNEL}, not by {}", event.actor));
    }
    let time = |member: &str| event.payload.get(member).and_then(Value::as_str).and_then(Timestamp::parse);
    let near = |at: Timestamp| (at.0 - event.timestamp.0).abs() <= CLOSE_SECONDS;
    let is_plausible = match kind {
        Kind::MachineSuspended => {
            let seconds = event.payload.get("seconds").and_then(Value::as_i64).unwrap_or(i64::MAX);
            time("from").zip(time("to")).is_some_and(|(from, to)| near(to) && seconds <= to.0 - from.0 + 1)
        }
        Kind::MachineBooted => time("at").is_some_and(|at| at.0 <= event.timestamp.0 + CLOSE_SECONDS),
        Kind::ClockStepped => time("to").is_some_and(near),
        _ => true,
    };
    if is_plausible { Ok(()) } else { Err(format!("the payload of {kind} is impossible at the time of the event")) }
}

/// Whether an event may have this time after one with the time `latest`, if the clock was not set in between.
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
        // Booted after the previous reading; a machine that was running before it must be a different one.
        assert_eq!(see(clocks(2, 11_000, 300, 300)), [ClockChange::Booted { at: at(10_700) }]);
        assert_eq!(see(clocks(2, 11_000, 9_000, 9_000)), [ClockChange::Booted { at: at(11_000) }]);
        assert_eq!(changes(None, &before), [ClockChange::Booted { at: at(10_000) }]);
        // Suspended, and then set.
        let both = see(clocks(1, 14_260, 1160, 560));
        assert_eq!(both.len(), 2, "{both:?}");
    }
}
