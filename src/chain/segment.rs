//! Names of segments: `2026-01/2026-01-31.jsonl`, then `2026-01-31_001.jsonl` and so on.
//!
//! They sort in the order of the log: by day, then by number (`_1000` comes after `_999`).

use std::fmt;

use chrono::{Datelike, NaiveDate};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    pub date: NaiveDate,
    pub number: u32,
}

impl SegmentName {
    pub fn first_of(date: NaiveDate) -> Self {
        SegmentName { date, number: 0 }
    }

    /// The segment after this one on the same day.
    pub fn next(self) -> Self {
        SegmentName { number: self.number + 1, ..self }
    }

    /// The directory of its month.
    pub fn month(self) -> String {
        format!("{:04}-{:02}", self.date.year(), self.date.month())
    }

    /// The name of its file in that directory.
    pub fn file(self) -> String {
        match self.number {
            0 => format!("{}.jsonl", self.date),
            n => format!("{}_{n:03}.jsonl", self.date),
        }
    }

    /// Parses a file name; `None` for anything that this program would not write.
    pub fn parse_file(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".jsonl")?;
        let (day, number) = match stem.split_once('_') {
            Some((day, number)) => (day, number.parse().ok()?),
            None => (stem, 0),
        };
        let segment = SegmentName { date: NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()?, number };
        (segment.file() == name).then_some(segment)
    }

    /// Parses `YYYY-MM/FILE`.
    pub fn parse(path: &str) -> Option<Self> {
        let segment = Self::parse_file(path.split_once('/')?.1)?;
        (segment.to_string() == path).then_some(segment)
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.month(), self.file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_written_and_sort_as_numbers() {
        let names: Vec<SegmentName> = [
            "2026-01/2026-01-31.jsonl",
            "2026-01/2026-01-31_002.jsonl",
            "2026-01/2026-01-31_1000.jsonl",
            "2026-02/2026-02-01.jsonl",
        ]
        .iter()
        .map(|name| {
            let parsed = SegmentName::parse(name).unwrap();
            assert_eq!(parsed.to_string(), *name);
            parsed
        })
        .collect();
        assert!(names.is_sorted());
        for bad in [
            "2026-02/2026-01-31.jsonl",
            "2026-01/2026-01-31_1.jsonl",
            "2026-01/2026-01-31_000.jsonl",
            "2026-01/x.jsonl",
            "2026-01/2026-01-31.jsonl.tmp",
        ] {
            assert_eq!(SegmentName::parse(bad), None, "{bad}");
        }
    }
}
