//! What a tick must report and do.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Notice,
    Warn,
    Error,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Notice => "notice",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

/// A file that was taken in, as an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counted {
    pub at: i64,
    pub event: &'static str,
    pub id: String,
}

#[derive(Clone, Debug, Default)]
pub struct Expected {
    pub codes: BTreeMap<&'static str, Level>,
    /// Codes that may be missing.
    pub optional: BTreeSet<&'static str>,
    /// Nothing but declarations was ever seen, so silence is either INACTIVE or NEVER_SEEN.
    pub unseen: bool,
    pub seconds: BTreeMap<&'static str, i64>,
    /// Names that the details of a code must contain.
    pub files: Vec<(&'static str, String)>,
    pub counted: Vec<Counted>,
    /// Files that may be taken in as well.
    pub may_count: Vec<Counted>,
    /// Paths that are there after the tick, and paths that are not.
    pub present: Vec<String>,
    pub absent: Vec<String>,
    /// Errors that begin and end here.
    pub begun: BTreeSet<&'static str>,
    pub ended: BTreeSet<&'static str>,
    /// A file came so late that an earlier look would have given another verdict.
    pub depends_on_ticks: bool,
    /// Why the rules do not say what must happen.
    pub unsure: Option<&'static str>,
}

impl Expected {
    /// Reports a code, at the higher level if it is reported twice.
    pub fn report(&mut self, code: &'static str, level: Level) {
        let known = self.codes.entry(code).or_insert(level);
        *known = level.max(*known);
    }

    pub fn errors(&self) -> BTreeSet<&'static str> {
        self.codes.iter().filter(|(_, level)| **level == Level::Error).map(|(code, _)| *code).collect()
    }
}
