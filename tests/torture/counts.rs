//! What each part of the torture test counts, and how long it may take.
//!
//! Everything that can go wrong is in one of four categories, and each count must be zero.

use std::fmt;
use std::time::{Duration, Instant};

/// One thing that should not have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Something acknowledged is missing.
    Lost(String),
    /// Something is recorded more often than it should be, or was refused and is recorded anyway.
    Duplicated(String),
    /// The log does not verify, a cache differs from the log, or the vault no longer works.
    ChainBreak(String),
    /// A file or bytes that should have been removed.
    LeftOver(String),
}

impl Wrong {
    pub fn because(self, more: &str) -> Wrong {
        let with = |why: String| format!("{why} ({more})");
        match self {
            Wrong::Lost(why) => Wrong::Lost(with(why)),
            Wrong::Duplicated(why) => Wrong::Duplicated(with(why)),
            Wrong::ChainBreak(why) => Wrong::ChainBreak(with(why)),
            Wrong::LeftOver(why) => Wrong::LeftOver(with(why)),
        }
    }
}

/// The figures of one part, or of all of them.
#[derive(Debug, Default)]
pub struct Counts {
    /// How many there would be without a time limit.
    pub planned: usize,
    pub tried: usize,
    pub acknowledged: usize,
    pub lost: usize,
    pub duplicated: usize,
    pub chain_breaks: usize,
    pub left_over: usize,
    /// What happened, in words.
    pub details: Vec<String>,
}

impl Counts {
    pub fn planned(planned: usize) -> Counts {
        Counts { planned, ..Counts::default() }
    }

    pub fn note(&mut self, name: &str, wrong: Wrong) {
        let (number, why) = match wrong {
            Wrong::Lost(why) => (&mut self.lost, why),
            Wrong::Duplicated(why) => (&mut self.duplicated, why),
            Wrong::ChainBreak(why) => (&mut self.chain_breaks, why),
            Wrong::LeftOver(why) => (&mut self.left_over, why),
        };
        *number += 1;
        self.details.push(format!("{name}: {why}"));
    }

    /// Notes the error of a check, if it is one.
    pub fn check(&mut self, name: &str, result: Result<(), Wrong>) {
        if let Err(wrong) = result {
            self.note(name, wrong);
        }
    }

    pub fn add(&mut self, other: &Counts) {
        self.planned += other.planned;
        self.tried += other.tried;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.chain_breaks += other.chain_breaks;
        self.left_over += other.left_over;
    }

    pub fn is_green(&self) -> bool {
        self.lost + self.duplicated + self.chain_breaks + self.left_over == 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PLANNED:{}", self.planned)?;
        writeln!(f, "TRIED:{}", self.tried)?;
        writeln!(f, "ACKNOWLEDGED:{}", self.acknowledged)?;
        writeln!(f, "LOST:{}", self.lost)?;
        writeln!(f, "DUPLICATED:{}", self.duplicated)?;
        writeln!(f, "CHAIN_BREAKS:{}", self.chain_breaks)?;
        write!(f, "LEFT_OVER:{}", self.left_over)
    }
}

/// How much to do, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub short: bool,
    until: Option<Instant>,
}

#[expect(clippy::disallowed_methods, reason = "measures how long the torture itself takes")]
fn now() -> Instant {
    Instant::now()
}

impl Budget {
    pub fn new(short: bool, limit: Option<Duration>) -> Budget {
        Budget { short, until: limit.map(|limit| now() + limit) }
    }

    /// Selects the number for a short or a full run.
    pub fn sized(self, in_short: usize, in_full: usize) -> usize {
        if self.short { in_short } else { in_full }
    }

    pub fn is_over(self) -> bool {
        self.until.is_some_and(|until| now() >= until)
    }

    /// A fraction of the remaining time.
    pub fn share(self, part: u32, of: u32) -> Budget {
        let left = self.until.map(|until| until.saturating_duration_since(now()));
        Budget::new(self.short, left.map(|left| left * part / of))
    }
}

/// Measures the time of one part.
pub struct Watch(Instant);

impl Watch {
    pub fn start() -> Watch {
        Watch(now())
    }

    pub fn seconds(&self) -> u64 {
        now().duration_since(self.0).as_secs()
    }
}
