//! The seam behind which the log is kept: read a range, find by id, append a unit if the head is still this one, watch.
//!
//! Operations know the log by these traits alone. The vault's own files are what users have; another store can stand
//! behind the same seam, and a test keeps one in memory (`tests/e2e/rules/log_in_memory.rs`). Keys, entities and deadlines are found in
//! the state that comes with a log, which each store keeps as cheaply as it can.

use std::fmt;
use std::ops::ControlFlow;

use super::snapshot::{Position, Snapshot, Visited};
use super::unit::Unit;
use super::{Vault, Watch, WriteOptions, Writer};
use crate::base::{Error, ErrorKind, Result, Ulid};
use crate::chain::Head;
use crate::event::Event;
use crate::state::State;

/// A log up to a known end. It never changes: what comes later is not part of it.
pub trait Log: fmt::Debug {
    fn head(&self) -> Option<Head>;

    /// How many events there are.
    fn count(&self) -> u64;

    /// Events from the first whose id is this or greater, oldest first.
    fn read_from(&self, id: Ulid, visit: &mut dyn FnMut(Event) -> Visited) -> Result<()>;

    /// Events from the last one on, newest first.
    fn read_back(&self, visit: &mut dyn FnMut(Event) -> Visited) -> Result<()>;

    /// The events that were recorded together with this one, and its index among them.
    fn unit_of(&self, id: Ulid) -> Result<Option<(Vec<Event>, usize)>>;

    /// One event by its id.
    fn find(&self, id: Ulid) -> Result<Option<Event>> {
        let mut found = None;
        self.read_from(id, &mut |event| {
            found = Some(event).filter(|event| event.id == id);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Ids that begin like this, at most two: enough to know whether there is exactly one.
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

/// A log and what it folds to.
pub type View = (Box<dyn Log>, State);

/// The right to append.
pub trait Append: fmt::Debug {
    /// The log and what it folds to, as this writer sees it.
    fn view(&mut self) -> Result<View>;

    /// Records a unit behind `head`, all of it or nothing; refused if the log has another head by now. `asked` is the
    /// event that the caller wants to hear of.
    fn append(&mut self, head: Option<Head>, unit: Unit, asked: usize) -> Result<Vec<Event>>;

    /// What a person should know although it is no error; told once.
    fn take_warnings(&mut self) -> Vec<String>;
}

/// Where a log is kept.
pub trait Store: fmt::Debug + Send + Sync {
    /// For who only reads.
    fn view(&self) -> Result<View>;

    /// For who appends. Nobody else appends as long as this lives, or whoever comes second is refused.
    fn append(&self, options: WriteOptions) -> Result<Box<dyn Append + '_>>;

    /// Waits until the log may have grown.
    fn watch(&self) -> Box<dyn Watching + '_>;
}

/// Somebody who waits for a log to grow.
pub trait Watching {
    /// Waits until something may have changed, at most about a second.
    fn wait(&mut self);
}

/// That somebody else was faster.
pub fn moved() -> Error {
    Error::new(ErrorKind::Busy, "the log has grown since it was looked at; ask again")
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

    fn unit_of(&self, id: Ulid) -> Result<Option<(Vec<Event>, usize)>> {
        Snapshot::unit_of(self, id)
    }
}

impl Append for Writer<'_> {
    fn view(&mut self) -> Result<View> {
        let (snapshot, state) = Writer::view(self)?;
        Ok((Box::new(snapshot), state))
    }

    fn append(&mut self, head: Option<Head>, unit: Unit, asked: usize) -> Result<Vec<Event>> {
        match self.head() == head {
            true => self.commit(unit, asked),
            false => Err(moved()),
        }
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

/// The vault's own files.
impl Store for Vault {
    fn view(&self) -> Result<View> {
        let (snapshot, state) = self.files_view()?;
        Ok((Box::new(snapshot), state))
    }

    fn append(&self, options: WriteOptions) -> Result<Box<dyn Append + '_>> {
        Ok(Box::new(self.write(options)?))
    }

    fn watch(&self) -> Box<dyn Watching + '_> {
        Box::new(Vault::watch(self))
    }
}

impl Watching for Watch {
    fn wait(&mut self) {
        Watch::wait(self);
    }
}
