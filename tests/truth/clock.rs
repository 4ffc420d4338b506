//! Times of the log as seconds, and back.

const DAY_SECONDS: i64 = 86_400;

/// The number of days from 1970-01-01 to a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Converts a timestamp of the log to seconds.
pub fn second(time: &str) -> i64 {
    let part = |from: usize, to: usize| time[from..to].parse::<i64>().expect("a number");
    let days = days_of(part(0, 4), part(5, 7), part(8, 10));
    days * DAY_SECONDS + part(11, 13) * 3600 + part(14, 16) * 60 + part(17, 19)
}

/// Converts seconds to a timestamp of the log.
pub fn time(second: i64) -> String {
    let (days, of_day) = (second.div_euclid(DAY_SECONDS), second.rem_euclid(DAY_SECONDS));
    let year = (1970..).find(|year| days_of(year + 1, 1, 1) > days).expect("a year");
    let month = (1..=12).rfind(|month| days_of(year, *month, 1) <= days).expect("a month");
    let day = days - days_of(year, month, 1) + 1;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}
