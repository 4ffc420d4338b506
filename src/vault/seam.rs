//! The interface to the log, wherever it is stored: read a range, find by id, append a batch if the head has not moved,
//! watch.
//!
//! Operations use the log only through these traits. Users have the files of the vault; a test uses a store in memory
//! (`tests/e2e/rules/log_in_memory.rs`). Keys, entities and deadlines are in the state that comes with a log, which each
//! store computes as cheaply as it can.

use std::fmt;
use std::ops::ControlFlow;

use super::batch::Batch;
use super::snapshot::{Position, Snapshot, Visited};
use super::{Vault, VaultWatch, WriteOptions, Writer};
use crate::base::{Error, ErrorKind, Result, Ulid};
use crate::chain::Head;
use crate::event::Event;
use crate::state::State;

/// A log up to a known end. It never changes: later events are not part of it.
pub trait Log: fmt::Debug {
    fn head(&self) -> Option<Head>;

    /// How many events there are.
    fn count(&self) -> u64;

    /// Visits the events whose id is this or greater, oldest first.
    fn read_from(&self, id: Ulid, visit: &mut dyn FnMut(Event) -> Visited) -> Result<()>;

    /// Visits all events, newest first.
    fn read_back(&self, visit: &mut dyn FnMut(Event) -> Visited) -> Result<()>;

    /// The batch that contains this event, and the event's index in it.
    fn batch_of(&self, id: Ulid) -> Result<Option<(Vec<Event>, usize)>>;

    /// One event by its id.
    fn find(&self, id: Ulid) -> Result<Option<Event>> {
        let mut found = None;
        self.read_from(id, &mut |event| {
            found = Some(event).filter(|event| event.id == id);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Up to two ids that start with this prefix: enough to know whether there is exactly one.
    fn ids_with_prefix(&self, prefix: &str) -> Result<Vec<Ulid>> {
        let prefix = prefix.to_ascii_uppercase();
        let Ok(lowest) = Ulid::from_string(&format!("{prefix:0<26}")) else { return Ok(Vec::new()) };
        let mut ids = Vec::new();
        self.read_from(lowest, &mut |event| {
            let more = event.id.to_string().starts_with(&prefix) && ids.len() < 2;
            if more {
                ids.push(event.id);
            }
            Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(ids)
    }
}

/// A log and its state.
pub type LogView = (Box<dyn Log>, State);

/// The right to append.
pub trait Append: fmt::Debug {
    /// The log as this writer sees it, and its state.
    fn view(&mut self) -> Result<LogView>;

    /// Records a batch after `head`, all of it or nothing; refused if the head of the log has moved. `asked` is the index
    /// of the event that the caller asked for.
    fn append(&mut self, head: Option<Head>, batch: Batch, asked: usize) -> Result<Vec<Event>>;

    /// Sets the size at which a segment is followed by a new one, where the log has segments.
    fn limit_segments(&mut self, _max_bytes: u64) {}

    /// Takes the warnings: things to report that are not errors.
    fn take_warnings(&mut self) -> Vec<String>;
}

/// Where a log is stored.
pub trait LogStore: fmt::Debug + Send + Sync {
    /// The log and its state, for reading.
    fn view(&self) -> Result<LogView>;

    /// The right to append. As long as this value lives, others cannot append, or the second one to do so is refused.
    fn append(&self, options: WriteOptions) -> Result<Box<dyn Append + '_>>;

    /// Waits until the log may have grown.
    fn watch(&self) -> Box<dyn LogWatch + '_>;
}

/// Waits for a log to grow.
pub trait LogWatch {
    /// Waits until something may have changed, for about a second at most.
    fn wait(&mut self);
}

/// The error for a log that has grown in the meantime.
pub fn head_moved() -> Error {
    Error::new(ErrorKind::Busy, "the log has changed in the meantime; try again")
}

impl Log for Snapshot {
    fn head(&self) -> Option<Head> {
        self.head
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn read_from(&self, id: Ulid, visit: &mut dyn FnMut(Event) -> Visited) -> Result<()> {
        let from = if id == Ulid::nil() { Position::START } else { self.seek(id)? };
        self.events(from, &mut |_, event, _| visit(event))
    }

    fn read_back(&self, visit: &mut dyn FnMut(Event) -> Visited) -> Result<()> {
        self.events_back(&mut |event, _| visit(event))
    }

    fn batch_of(&self, id: Ulid) -> Result<Option<(Vec<Event>, usize)>> {
        Snapshot::batch_of(self, id)
    }
}

impl Append for Writer<'_> {
    fn view(&mut self) -> Result<LogView> {
        let (snapshot, state) = Writer::view(self)?;
        Ok((Box::new(snapshot), state))
    }

    fn append(&mut self, head: Option<Head>, batch: Batch, asked: usize) -> Result<Vec<Event>> {
        match self.head() == head {
            true => self.commit(batch, asked),
            false => Err(head_moved()),
        }
    }

    fn limit_segments(&mut self, max_bytes: u64) {
        self.options.segment_max_bytes = max_bytes;
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

/// The vault's own files.
impl LogStore for Vault {
    fn view(&self) -> Result<LogView> {
        let (snapshot, state) = self.files_view()?;
        Ok((Box::new(snapshot), state))
    }

    fn append(&self, options: WriteOptions) -> Result<Box<dyn Append + '_>> {
        Ok(Box::new(self.write(options)?))
    }

    fn watch(&self) -> Box<dyn LogWatch + '_> {
        Box::new(Vault::watch(self))
    }
}

impl LogWatch for VaultWatch {
    fn wait(&mut self) {
        VaultWatch::wait(self);
    }
}
