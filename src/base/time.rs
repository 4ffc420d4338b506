//! Time as events contain it: UTC seconds, written `YYYY-MM-DDTHH:MM:SSZ`.
//!
//! Nothing here reads a clock: `cli` does, and passes `Now` down.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, Timelike, Utc};

/// The time at which a command acts, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    pub millis: u64,
}

impl Now {
    pub fn timestamp(self) -> Timestamp {
        Timestamp((self.millis / 1000) as i64)
    }

    /// The UTC calendar day.
    pub fn date(self) -> NaiveDate {
        self.timestamp().to_utc().date_naive()
    }
}

/// The machine's clocks at one moment, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Identifies this boot of this machine.
    pub boot_id: [u8; 16],
    /// The wall clock, which can be set.
    pub real: Now,
    /// Time since boot, including suspension.
    pub since_boot_ms: u64,
    /// Time since boot, excluding suspension.
    pub awake_ms: u64,
}

/// UTC seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Parses exactly the form that is written.
    pub fn parse(text: &str) -> Option<Self> {
        // Parsed by hand, because every event that is read goes through here.
        let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
        let shape = bytes.iter().zip(b"dddd-dd-ddTdd:dd:ddZ").all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            form => byte == form,
        });
        let number =
            |range: std::ops::Range<usize>| bytes[range].iter().fold(0, |n, digit| n * 10 + u32::from(digit - b'0'));
        let day = shape.then(|| NaiveDate::from_ymd_opt(number(0..4) as i32, number(5..7), number(8..10)))??;
        let moment = day.and_hms_opt(number(11..13), number(14..16), number(17..19))?;
        Some(Timestamp(moment.and_utc().timestamp()))
    }

    /// Parses what people write: the exact form, any RFC 3339 time, or a day.
    pub fn parse_lenient(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| DateTime::parse_from_rfc3339(text).ok().map(|t| Timestamp(t.timestamp()))).or_else(
            || {
                let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
                Some(Timestamp(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp()))
            },
        )
    }

    /// Whether the text is a day without a time.
    pub fn is_day(text: &str) -> bool {
        text.len() == "YYYY-MM-DD".len() && Self::parse_lenient(text).is_some()
    }

    pub(super) fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.0, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.to_utc();
        let (year, month, day) = (time.year(), time.month(), time.day());
        write!(f, "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time.hour(), time.minute(), time.second())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_reads_back_as_written_and_nothing_else_does() {
        let text = "2026-01-31T12:00:00Z";
        assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        for wrong in
            ["2026-01-31T12:00:00+00:00", "2026-1-31T12:00:00Z", "2026-02-30T12:00:00Z", "2026-01-31 12:00:00Z", ""]
        {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn people_may_write_offsets_and_days() {
        let noon = Timestamp::parse("2026-01-31T12:00:00Z");
        assert_eq!(Timestamp::parse_lenient("2026-01-31T14:00:00+02:00"), noon);
        assert_eq!(Timestamp::parse_lenient("2026-01-31"), Timestamp::parse("2026-01-31T00:00:00Z"));
        assert_eq!(Timestamp::parse_lenient("yesterday"), None);
    }
}
