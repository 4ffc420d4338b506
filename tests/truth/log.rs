//! The events of a vault, read from its files as plain JSON.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::clock::second;

#[derive(Clone, Debug)]
pub struct Event {
    pub id: String,
    pub at: i64,
    pub kind: String,
    pub subject: String,
    pub actor: String,
    pub payload: Value,
    /// Its position in its batch, and the size of the batch.
    pub batch: (u64, u64),
}

impl Event {
    fn read(line: &str) -> Event {
        let event: Value = serde_json::from_str(line).expect("a line of the log is JSON");
        let text = |member: &str| event[member].as_str().expect("a text").to_owned();
        let number = |member: &str| event["batch"][member].as_u64().unwrap_or(1);
        Event {
            id: text("event_id"),
            at: second(&text("timestamp")),
            kind: text("event_type"),
            subject: text("subject"),
            actor: text("actor"),
            payload: event["payload"].clone(),
            batch: (number("no"), number("of")),
        }
    }

    /// A member of the payload, if it is a text.
    pub fn text(&self, member: &str) -> Option<String> {
        self.payload[member].as_str().map(str::to_owned)
    }

    pub fn number(&self, member: &str) -> Option<i64> {
        self.payload[member].as_i64()
    }

    pub fn flag(&self, member: &str) -> bool {
        self.payload[member].as_bool().unwrap_or(false)
    }
}

/// Reads what is new in the log of a vault.
pub struct LogReader {
    events: PathBuf,
    taken: usize,
}

impl LogReader {
    pub fn new(vault: &Path) -> LogReader {
        LogReader { events: vault.join("Akashic/events"), taken: 0 }
    }

    /// The events after those that were read before.
    pub fn fresh(&mut self) -> Vec<Event> {
        let sorted = |dir: &Path| {
            let mut all: Vec<PathBuf> =
                fs::read_dir(dir).into_iter().flatten().map(|e| e.expect("one").path()).collect();
            all.sort();
            all
        };
        let files = sorted(&self.events).into_iter().flat_map(|month| sorted(&month));
        let text: String = files.map(|file| fs::read_to_string(file).expect("text")).collect();
        // A supervisor may be writing: only whole lines and whole batches count.
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let mut fresh: Vec<Event> = whole.skip(self.taken).map(Event::read).collect();
        if let Some((no, _)) = fresh.last().map(|event| event.batch).filter(|(no, of)| no < of) {
            fresh.truncate(fresh.len().saturating_sub(no as usize));
        }
        self.taken += fresh.len();
        fresh
    }
}
