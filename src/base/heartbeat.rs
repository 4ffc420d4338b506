//! Heartbeat ids: `YYYYMMDDHHMMSS`, the time of a heartbeat in UTC or in a local time.

use std::fmt;

use chrono::NaiveDateTime;

use super::Timestamp;

const FORM: &str = "%Y%m%d%H%M%S";
const LENGTH: usize = "YYYYMMDDHHMMSS".len();

/// The id of one heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeartbeatId(String);

impl HeartbeatId {
    /// The id for a time, `offset_seconds` ahead of UTC.
    pub fn from_time(at: Timestamp, offset_seconds: i64) -> Self {
        let local = Timestamp(at.0.saturating_add(offset_seconds));
        HeartbeatId(local.to_utc().format(FORM).to_string())
    }

    /// Parses exactly the form that is written.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == LENGTH && text.bytes().all(|b| b.is_ascii_digit());
        (plain && NaiveDateTime::parse_from_str(text, FORM).is_ok()).then(|| HeartbeatId(text.to_owned()))
    }

    /// The time of this heartbeat.
    pub fn at(&self, offset_seconds: i64) -> Timestamp {
        let local = NaiveDateTime::parse_from_str(&self.0, FORM).map_or(0, |moment| moment.and_utc().timestamp());
        Timestamp(local.saturating_sub(offset_seconds))
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
    fn an_id_is_a_time_at_any_offset() {
        let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        assert_eq!(HeartbeatId::from_time(noon, 0).as_str(), "20260131120000");
        assert_eq!(HeartbeatId::from_time(noon, 9 * 3600).as_str(), "20260131210000");
        for offset in [0, 9 * 3600, -5 * 3600] {
            assert_eq!(HeartbeatId::from_time(noon, offset).at(offset), noon);
        }
        for bad in ["", "2026013112000", "202601311200000", "20261331120000", "2026013112000x", "20260131 20000"] {
            assert_eq!(HeartbeatId::parse(bad), None, "{bad}");
        }
    }
}
