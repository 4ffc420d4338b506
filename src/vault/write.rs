//! Appending: one lock, one write at a known offset, one sync, then the head record.
//!
//! 1. `Writer::open` takes the lock and repairs the tail (`recover`).
//! 2. A `Batch` collects drafts, assigns their ids and provides the state with them applied.
//! 3. `commit` seals them, writes them with one write, syncs, and publishes the head.
//!
//! Invariant: nothing is acknowledged before its sync succeeds, and a failed sync is never retried. Invariant: ids
//! always increase, and the date of the segment never goes back, whatever the clock does.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::batch::Batch;
use super::files::failed;
use super::head::{self, Published};
use super::lock::{self, LockGuard, LockMode};
use super::log::HeadLine;
use super::sabotage::{Sabotage, leaves_out};
use super::snapshot::Snapshot;
use super::{Vault, WriteOptions, index, layout, projections, recover};
use crate::base::{Error, ErrorKind, Reason, Result};
use crate::chain::tail::TailClass;
use crate::chain::{Head, HeadRecord, LogOffset, SegmentName};
use crate::event::{Draft, Event, SCHEMA_VERSION};
use crate::state::State;

/// The right to append. Holds the lock as long as it lives.
#[derive(Debug)]
pub struct Writer<'a> {
    vault: &'a Vault,
    pub(super) options: WriteOptions,
    _guard: LockGuard,
    head: Option<Head>,
    count: u64,
    /// Where the last event ends.
    end: Option<LogOffset>,
    /// How many events are in the index; `None` until it is opened.
    indexed: Option<u64>,
    /// Things to report that are not errors.
    pub warnings: Vec<String>,
}

impl<'a> Writer<'a> {
    pub(super) fn open(vault: &'a Vault, options: WriteOptions) -> Result<Self> {
        let writer = Self::open_empty(vault, options)?;
        match writer.head {
            Some(_) => Ok(writer),
            None => Err(Error::new(
                ErrorKind::NoVault,
                format!("the vault at {} has no events yet; its creation was interrupted", vault.path().display()),
            )),
        }
    }

    /// The same for a vault that may have no events yet.
    pub(super) fn open_empty(vault: &'a Vault, options: WriteOptions) -> Result<Self> {
        let mut writer = Self::lock(vault, options)?;
        let record = match head::read(&vault.akashic)? {
            Published::Valid(record) => Some(record),
            Published::Newer => return Err(newer("chain.json")),
            Published::Missing | Published::Invalid => None,
        };
        if let Some(record) = &record {
            match vault.head_line(record)? {
                HeadLine::Good(event) if event.version > SCHEMA_VERSION => return Err(newer("the last event")),
                HeadLine::Good(_) => {}
                HeadLine::Other => {
                    return Err(Error::corrupt(format!(
                        "the log has changed: its last published event, {}, is not where it was written",
                        record.head.id
                    )));
                }
                HeadLine::Missing => {
                    return Err(Error::corrupt(format!(
                        "the end of the log is missing: it does not reach its last published event, {}",
                        record.head.id
                    )));
                }
            }
        }
        let tail = vault.tail(record.as_ref())?;
        if tail.newest_version > SCHEMA_VERSION {
            return Err(newer("an event after the published head"));
        }
        writer.count = record.map_or(0, |r| r.count) + tail.count;
        (writer.head, writer.end) = (tail.head, tail.end);
        match &tail.class {
            TailClass::Empty | TailClass::Clean => {}
            TailClass::Adopt => recover::adopt(&mut writer, record.as_ref(), &tail)?,
            TailClass::Torn { from, why } => {
                recover::quarantine_tail(&mut writer, record.as_ref(), &tail, *from, why)?;
            }
            TailClass::Damage { why, .. } => return Err(Error::corrupt(why.clone())),
        }
        Ok(writer)
    }

    /// Takes the lock, without looking at the log.
    pub(super) fn lock(vault: &'a Vault, options: WriteOptions) -> Result<Self> {
        vault.check_private()?;
        if let Some(events) = vault.events()? {
            events.check_private()?;
        }
        // Checked now, because the record is written last, when it is too late to refuse.
        vault.akashic.open_file_to_write(head::HEAD_FILE)?;
        let (file, _) = vault.akashic.make_file(layout::LOCK_FILE)?;
        let guard = lock::take(file, LockMode::Exclusive, options.lock_timeout)?;
        Ok(Writer {
            vault,
            options,
            _guard: guard,
            head: None,
            count: 0,
            end: None,
            indexed: None,
            warnings: Vec::new(),
        })
    }

    pub(super) fn vault(&self) -> &'a Vault {
        self.vault
    }

    pub fn head(&self) -> Option<Head> {
        self.head
    }

    /// How many events there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Sets the end of the log, after a recovery.
    pub(super) fn set_end(&mut self, head: Option<Head>, count: u64, end: Option<LogOffset>) {
        (self.head, self.count, self.end) = (head, count, end);
    }

    /// The log as this writer sees it, up to its last event.
    pub fn snapshot(&self) -> Result<Snapshot> {
        match self.record() {
            Some(record) => self.vault.published(&record),
            None => self.vault.scanned(),
        }
    }

    /// The log and its state. Merges the log into the index if that is due.
    pub fn view(&mut self) -> Result<(Snapshot, State)> {
        let snapshot = self.snapshot()?;
        let mut index = self.vault.index();
        self.indexed = Some(index.as_ref().map_or(0, |index| index.mark.count));
        if self.behind() >= index::MERGE_EVERY_EVENTS {
            // Our own lock on the index would block the merge.
            drop(index);
            self.merge_if_due(None);
            index = self.vault.index();
        }
        let state = index::state(index, self.vault, &snapshot)?;
        Ok((snapshot, state))
    }

    /// How many events are not in the index; 0 until it is opened.
    fn behind(&self) -> u64 {
        self.count - self.indexed.unwrap_or(self.count).min(self.count)
    }

    /// Merges the log into the index if that is due. An index that fails never fails a command. `state` is the state at
    /// the end of the log, if it is known.
    fn merge_if_due(&mut self, state: Option<State>) {
        let behind = self.behind();
        let due = self.record().filter(|_| behind >= index::MERGE_EVERY_EVENTS);
        if let Some(Ok(())) = due.map(|head| self.vault.merge_index(&head, behind, state)) {
            self.indexed = Some(self.count);
        }
    }

    /// Rebuilds the index and the projections from the events.
    pub fn rebuild(&mut self) -> Result<(Snapshot, State)> {
        if let Some(head) = self.record() {
            self.vault.rebuild_index(&head)?;
            self.indexed = Some(self.count);
        }
        let (snapshot, state) = self.view()?;
        projections::refresh_all(self.vault, &state, self.head.map(|head| head.id))?;
        Ok((snapshot, state))
    }

    /// Rewrites the projection files for this writer's head.
    pub fn refresh_projections(&mut self) -> Result<()> {
        let (_, state) = self.view()?;
        projections::refresh_all(self.vault, &state, self.head.map(|head| head.id))
    }

    fn record(&self) -> Option<HeadRecord> {
        let (head, end) = (self.head?, self.end?);
        Some(HeadRecord { head, count: self.count, segment: end.segment, offset: end.offset })
    }

    /// Starts a batch on top of the state of this writer's snapshot.
    pub fn begin(&self, state: State) -> Batch {
        Batch::new(state, self.head, self.options.now)
    }

    /// Records a batch. `asked` is the index of the event that the caller asked for.
    pub fn commit(&mut self, batch: Batch, asked: usize) -> Result<Vec<Event>> {
        self.commit_at(batch, asked, None)
    }

    /// Appends a single draft that needs no decision. It is about the system, which has no projection, so it needs no
    /// state.
    pub(super) fn append_one(&mut self, draft: Draft) -> Result<Event> {
        let mut batch = self.begin(State::default());
        batch.push(draft)?;
        let mut events = self.commit(batch, 0)?;
        Ok(events.remove(0))
    }

    /// Appends a single draft over bytes that were copied to quarantine, in their segment.
    pub(super) fn append_at(&mut self, place: LogOffset, draft: Draft) -> Result<()> {
        let mut batch = self.begin(State::default());
        batch.push(draft)?;
        // The caller's request was not even tried, so it is not uncertain.
        let noted = self.commit_at(batch, 0, Some(place)).map(drop);
        noted.map_err(|e| Error::system("nothing was recorded: cannot move an unfinished write to quarantine", e))
    }

    /// Records a batch, at `place` over bytes that were copied to quarantine, or after the last event.
    pub(super) fn commit_at(&mut self, batch: Batch, asked: usize, place: Option<LogOffset>) -> Result<Vec<Event>> {
        if let Some(fault) = batch.state().fault() {
            return Err(fault);
        }
        let (events, bytes, state) = batch.seal(self.head)?;
        self.write(&bytes, &events, asked, place).map_err(|error| match error.kind {
            ErrorKind::Uncertain { key } if key.is_empty() => uncertain(&events[asked], error.message),
            _ => error,
        })?;
        projections::refresh_touched(self.vault, &state, &events);
        self.merge_if_due(Some(state));
        Ok(events)
    }

    /// Writes sealed lines after the last event and publishes their head.
    fn write(&mut self, bytes: &[u8], events: &[Event], asked: usize, place: Option<LogOffset>) -> Result<()> {
        let over_quarantined = place.is_some();
        let (file, place) = match place {
            Some(place) => (self.open_to_write(place.segment)?, place),
            None => self.place_for(bytes.len() as u64)?,
        };
        match write_at(&file, place, bytes) {
            Ok(()) => {}
            // Not undone: cutting the log here would remove the quarantined bytes without an event that records it.
            Err(error) if over_quarantined => return Err(Error::system("the write failed", error)),
            Err(error) => return Err(undo(&file, place, error)),
        }
        if !leaves_out(Sabotage::LogSync) {
            file.sync_data().map_err(|e| uncertain(&events[asked], format!("the sync failed: {e}")))?;
        }
        self.head = events.last().map(Head::at);
        self.count += events.len() as u64;
        self.end = Some(LogOffset { offset: place.offset + bytes.len() as u64, ..place });
        self.publish();
        Ok(())
    }

    /// Publishes the new head for readers. The log is already durable, so a failure is only a warning: the next writer
    /// finds the event in the tail.
    pub(super) fn publish(&mut self) {
        let published = self.record().map(|record| head::publish(&self.vault.akashic, &record));
        if let Some(Err(error)) = published {
            self.warnings.push(format!("the event is recorded, but the new head could not be published: {error}"));
        }
    }

    /// The file and offset for the next batch, in a new segment if the day or the size requires one.
    fn place_for(&self, length: u64) -> Result<(File, LogOffset)> {
        // The newest file can be newer than the one with the last event: a crash can leave it empty.
        let month = self.end.map_or(String::new(), |end| end.segment.month());
        let newest = self.vault.segments_since(&month)?.last().copied();
        let today = self.options.now.date();
        let segment = match newest {
            None => SegmentName::first_of(today),
            Some(newest) if today > newest.date => SegmentName::first_of(today),
            Some(newest) => {
                let used = self.end.filter(|end| end.segment == newest).map_or(0, |end| end.offset);
                if used > 0 && used + length > self.options.segment_max_bytes { newest.next() } else { newest }
            }
        };
        let offset = self.end.filter(|end| end.segment == segment).map_or(0, |end| end.offset);
        let file = self.open_to_write(segment)?;
        Ok((file, LogOffset { segment, offset }))
    }

    /// Opens a segment for writing. If it is new, makes its name and its directories durable first.
    pub(super) fn open_to_write(&self, segment: SegmentName) -> Result<File> {
        let (events, made_events) = self.vault.akashic.make_dir(layout::EVENTS)?;
        if made_events {
            self.vault.akashic.sync()?;
        }
        if let Some(month_dir) = events.dir(&segment.month())? {
            month_dir.check_private()?;
            if let Some(file) = month_dir.open_file_to_write(&segment.file())? {
                // An empty file can be left by a crash before its name was durable.
                if super::log::size(&file)? == 0 {
                    month_dir.sync()?;
                    events.sync()?;
                }
                return Ok(file);
            }
        }
        // The old segment must be completely on disk before a newer one is.
        if let Some(end) = self.end.filter(|end| end.segment != segment) {
            let old = self.vault.open_segment(end.segment)?;
            old.sync_data().map_err(|e| failed("sync", &self.vault.path().join(end.segment.to_string()), e))?;
        }
        let (month_dir, _) = events.make_dir(&segment.month())?;
        let (file, _) = month_dir.make_file(&segment.file())?;
        month_dir.sync()?;
        events.sync()?;
        Ok(file)
    }
}

/// Writes bytes at an offset and cuts off whatever follows them.
fn write_at(file: &File, place: LogOffset, bytes: &[u8]) -> io::Result<()> {
    let end = place.offset + bytes.len() as u64;
    file.write_all_at(bytes, place.offset)?;
    match file.metadata()?.len() > end {
        true => file.set_len(end),
        false => Ok(()),
    }
}

/// Undoes a write that failed.
fn undo(file: &File, place: LogOffset, error: io::Error) -> Error {
    let undone = match leaves_out(Sabotage::Rollback) {
        true => Ok(()),
        false => file.set_len(place.offset).and_then(|()| file.sync_data()),
    };
    match undone {
        Ok(()) => Error::system("nothing was recorded: the write failed", error),
        Err(undo) => Error::new(
            ErrorKind::Uncertain { key: String::new() },
            format!("the write failed ({error}) and could not be undone ({undo})"),
        ),
    }
}

fn uncertain(asked: &Event, why: String) -> Error {
    let key = asked.key.clone().unwrap_or_else(|| asked.id.to_string());
    Error::new(ErrorKind::Uncertain { key }, why)
}

pub(super) fn newer(what: &str) -> Error {
    Error::refused(Reason::NewerVersion, format!("{what} has a newer version than this program supports"))
}
