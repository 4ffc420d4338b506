//! Heartbeat ids: `YYYYMMDDHHMMSS`, the time of a heartbeat in UTC or in a local time.

use std::fmt;

use chrono::NaiveDateTime;

use super::zone::Repetition;
use super::{Timestamp, Zone};

const FORM: &str = "%Y%m%d%H%M%S";
const LENGTH: usize = "YYYYMMDDHHMMSS".len();

/// The id of one heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeartbeatId(String);

impl HeartbeatId {
    /// The id for a time. In the hour that occurs twice when summer time ends, the first ids are even and the second ones
    /// odd, so that none is given twice: files are named after them.
    pub fn from_time(at: Timestamp, zone: Zone) -> Self {
        let reading = match (zone.reading(at), zone.repetition(at)) {
            (reading, None) => reading,
            (reading, Some(Repetition::First)) => reading & !1,
            (reading, Some(Repetition::Second)) => reading | 1,
        };
        HeartbeatId(Timestamp(reading).to_utc().format(FORM).to_string())
    }

    /// Parses exactly the form that is written.
    pub fn parse(text: &str) -> Option<Self> {
        // No clock here shows leap seconds.
        let plain = text.len() == LENGTH && text.bytes().all(|b| b.is_ascii_digit()) && !text.ends_with("60");
        (plain && NaiveDateTime::parse_from_str(text, FORM).is_ok()).then(|| HeartbeatId(text.to_owned()))
    }

    /// Parses the id at the start of a text, and returns what comes after it. The inner error is a text that starts
    /// with the digits of an id that is no time; none if it does not start with an id.
    pub fn parse_start(text: &str) -> Option<Result<(Self, &str), &str>> {
        let (digits, rest) = text.split_at_checked(LENGTH)?;
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(HeartbeatId::parse(digits).map(|id| (id, rest)).ok_or(digits))
    }

    /// The time of this heartbeat. Of two times that have the same id, the later one that is not after `latest`.
    pub fn time(&self, zone: Zone, latest: Timestamp) -> Timestamp {
        let reading = NaiveDateTime::parse_from_str(&self.0, FORM).map_or(0, |moment| moment.and_utc().timestamp());
        zone.time(reading, latest)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HeartbeatId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_time_in_any_zone() {
        let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        assert_eq!(HeartbeatId::from_time(noon, Zone::Utc).as_str(), "20260131120000");
        assert_eq!(HeartbeatId::from_time(noon, Zone::Local(|_| 9 * 3600)).as_str(), "20260131210000");
        for zone in [Zone::Utc, Zone::Local(|_| 9 * 3600), Zone::Local(|_| -5 * 3600)] {
            assert_eq!(HeartbeatId::from_time(noon, zone).time(zone, noon), noon);
        }
        for bad in [
            "",
            "2026013112000",
            "202601311200000",
            "20261331120000",
            "2026013112000x",
            "20260131 20000",
            "20260131120060",
        ] {
            assert_eq!(HeartbeatId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn no_id_is_given_twice_when_the_clock_is_set_back() {
        // An hour before and an hour after a change from +2 to +1.
        let zone = Zone::Local(|at| if at.0 < 1_000_000_000 { 7200 } else { 3600 });
        let times = (-3600..3600).step_by(60).map(|seconds| Timestamp(1_000_000_000 + seconds));
        let ids: Vec<HeartbeatId> = times.clone().map(|at| HeartbeatId::from_time(at, zone)).collect();
        let distinct: std::collections::BTreeSet<&HeartbeatId> = ids.iter().collect();
        assert_eq!(distinct.len(), 120);
        for (at, id) in times.zip(ids) {
            assert!((id.time(zone, Timestamp(at.0 + 1)).0 - at.0).abs() <= 1, "{id}");
        }
    }

    #[test]
    fn an_id_at_the_start_of_a_name_is_found_and_an_impossible_one_is_told_apart() {
        let found = |text| HeartbeatId::parse_start(text).map(|found| found.map(|(id, rest)| (id.to_string(), rest)));
        assert_eq!(found("20260131120000_01.md"), Some(Ok(("20260131120000".to_owned(), "_01.md"))));
        assert_eq!(found("20261331120000.md"), Some(Err("20261331120000")));
        for other in ["README.md", "2026.md", "2026013112000é.md"] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
