//! Heartbeat ids and the times they stand for, in the time zones of the timelines.

use crate::clock::{second, time};

const HOUR: i64 = 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    Utc,
    Tokyo,
    Berlin,
}

impl Zone {
    /// The value of TZ.
    pub fn name(self) -> &'static str {
        match self {
            Zone::Utc => "UTC",
            Zone::Tokyo => "Asia/Tokyo",
            Zone::Berlin => "Europe/Berlin",
        }
    }

    /// Seconds east of Greenwich. Summer time in 2026 is from 29 March to 25 October, 01:00 UTC.
    fn offset(self, at: i64) -> i64 {
        let summer = second("2026-03-29T01:00:00Z")..second("2026-10-25T01:00:00Z");
        match self {
            Zone::Utc => 0,
            Zone::Tokyo => 9 * HOUR,
            Zone::Berlin if summer.contains(&at) => 2 * HOUR,
            Zone::Berlin => HOUR,
        }
    }

    /// The id of a time: YYYYMMDDHHMMSS.
    pub fn id(self, at: i64) -> String {
        time(at + self.offset(at)).chars().filter(char::is_ascii_digit).collect()
    }

    /// Every time that an id can stand for, in order: two in the hour that occurs twice, none if it is no time.
    pub fn readings(self, id: &str) -> Vec<i64> {
        let part = |from: usize, to: usize| id[from..to].parse::<i64>().expect("digits");
        let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        let of_day = part(8, 10) < 24 && part(10, 12) < 60 && part(12, 14) < 60;
        if !(1970..2100).contains(&year) || !(1..=days).contains(&day) || !of_day {
            return Vec::new();
        }
        let on_clock =
            second(&format!("{}-{}-{}T{}:{}:{}Z", &id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..12], &id[12..]));
        let mut readings: Vec<i64> = [0, HOUR, 2 * HOUR, 9 * HOUR].iter().map(|offset| on_clock - offset).collect();
        readings.retain(|at| at + self.offset(*at) == on_clock);
        readings.sort_unstable();
        readings
    }
}
