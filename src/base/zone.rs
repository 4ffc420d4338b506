//! The time zone of heartbeat ids.

use super::Timestamp;

/// A day: no zone is further from UTC than this, and no zone changes twice within it.
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// UTC, or the local time of a machine.
#[derive(Clone, Copy, Debug)]
pub enum Zone {
    Utc,
    /// How many seconds local time is ahead of UTC at a time.
    Local(fn(Timestamp) -> i64),
}

/// Which of two times it is that a clock shows the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    First,
    Second,
}

impl Zone {
    /// What a clock in this zone shows at a time, in seconds since 1970 on that clock.
    pub fn reading(self, at: Timestamp) -> i64 {
        at.0.saturating_add(self.offset(at))
    }

    fn offset(self, at: Timestamp) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Local(offset) => offset(at),
        }
    }

    /// Whether a clock in this zone shows the same twice, and this is the first or the second time.
    pub fn repetition(self, at: Timestamp) -> Option<Repetition> {
        let possible = self.possible(self.reading(at));
        match possible.len() {
            2 if possible[0] == at => Some(Repetition::First),
            2 => Some(Repetition::Second),
            _ => None,
        }
    }

    /// The times at which a clock in this zone shows this, in order.
    fn possible(self, reading: i64) -> Vec<Timestamp> {
        let around = [-DAY_SECONDS, DAY_SECONDS].map(|days| self.offset(Timestamp(reading.saturating_add(days))));
        let times = around.map(|offset| Timestamp(reading.saturating_sub(offset)));
        let mut possible: Vec<Timestamp> = times.into_iter().filter(|at| self.reading(*at) == reading).collect();
        possible.sort_unstable();
        possible.dedup();
        possible
    }

    /// The time at which a clock in this zone shows this. In the hour that occurs twice when summer time ends, the later
    /// one if it is not after `latest`, else the earlier one. In the hour that is skipped when it begins, the time that
    /// it would have been without the change.
    pub fn time(self, reading: i64, latest: Timestamp) -> Timestamp {
        let before = self.offset(Timestamp(reading.saturating_sub(DAY_SECONDS)));
        let before = Timestamp(reading.saturating_sub(before));
        let possible = self.possible(reading);
        let in_time = possible.iter().rev().find(|at| **at <= latest);
        in_time.or(possible.first()).copied().unwrap_or(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("an exact time")
    }

    /// Berlin in 2026: summer time from 29 March, 01:00 UTC, to 25 October, 01:00 UTC.
    fn berlin(time: Timestamp) -> i64 {
        let summer = at("2026-03-29T01:00:00Z")..at("2026-10-25T01:00:00Z");
        if summer.contains(&time) { 7200 } else { 3600 }
    }

    #[test]
    fn every_time_reads_back_from_its_own_reading() {
        for zone in [Zone::Utc, Zone::Local(berlin), Zone::Local(|_| 9 * 3600), Zone::Local(|_| -11 * 3600)] {
            for hour in 0..24 * 365 {
                let then = Timestamp(at("2026-01-01T00:30:00Z").0 + hour * 3600);
                assert_eq!(zone.time(zone.reading(then), then), then, "{then}");
            }
        }
    }

    #[test]
    fn the_hour_that_occurs_twice_is_the_later_one_unless_that_is_in_the_future() {
        let zone = Zone::Local(berlin);
        let (first, second) = (at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z"));
        assert_eq!(zone.reading(first), zone.reading(second));
        assert_eq!(zone.time(zone.reading(first), at("2026-10-25T01:29:59Z")), first);
        assert_eq!(zone.time(zone.reading(first), second), second);
        assert_eq!(zone.time(zone.reading(first), at("2026-10-24T00:00:00Z")), first, "both in the future");
        // The hour that is skipped: 02:30 never was.
        let skipped = at("2026-03-29T02:30:00Z").0;
        assert_eq!(zone.time(skipped, at("2026-03-30T00:00:00Z")), at("2026-03-29T01:30:00Z"));
    }
}
