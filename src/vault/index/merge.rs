//! Merging: bringing the index up to the head of the log. Building it from scratch is the same operation.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use super::super::Vault;
use super::super::lock::{self, LockMode};
use super::Index;
use super::env::{IndexFiles, IndexStore};
use super::key::{self, Partition};
use crate::base::{Error, Result, limits};
use crate::chain::{Head, HeadRecord};
use crate::state::{Changes, Entity, State};

/// The log is merged into the index when it is this far ahead.
pub const MERGE_EVERY_EVENTS: u64 = 64;
/// From here on, a merge waits for readers instead of being postponed.
const WAIT_FROM_EVENTS: u64 = 1024;
/// Events that are folded at a time, if there are many.
const CHUNK_EVENTS: u64 = 50_000;

/// What a merge builds on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    /// The existing index, if it can be trusted.
    Continue,
    FromScratch,
}

impl Vault {
    /// Brings the index up to `head`. The caller holds the vault's lock. `behind` is how many events the index lacks, and
    /// `state` is the state at `head`, if it is known. Nothing depends on the result: after an error, a later command
    /// tries again.
    pub(in crate::vault) fn merge_index(&self, head: &HeadRecord, behind: u64, state: Option<State>) -> Result<()> {
        let lock_timeout = match behind >= WAIT_FROM_EVENTS {
            true => self.lock_timeout,
            false => Duration::ZERO,
        };
        // The state may keep the store open, so take the changes out of it first.
        let ready = state.map(State::into_changes);
        self.index_up_to(head, lock_timeout, Build::Continue, ready)
    }

    /// Rebuilds the index from the events; the old one is not even opened.
    pub(in crate::vault) fn rebuild_index(&self, head: &HeadRecord) -> Result<()> {
        self.index_up_to(head, self.lock_timeout, Build::FromScratch, None)
    }

    fn index_up_to(
        &self,
        head: &HeadRecord,
        lock_timeout: Duration,
        build: Build,
        ready: Option<(u64, Changes)>,
    ) -> Result<()> {
        let files = IndexFiles::make(&self.akashic)?;
        let lock =
            files.lock_file()?.ok_or_else(|| Error::system("cannot lock the index", "its lock file is missing"))?;
        let guard = lock::take(lock, LockMode::Exclusive, lock_timeout)?;
        if build == Build::FromScratch {
            files.clear()?;
        }
        let store = files.open_to_write()?;
        let (store, mark) = match mark_of(&store) {
            Some(mark) if self.is_in_log(&mark) => (store, Some(mark)),
            None => (store, None),
            Some(_) => {
                // It belongs to another log: start with an empty file.
                drop(store);
                files.clear()?;
                (files.open_to_write()?, None)
            }
        };
        // Events that the writer has already folded need not be read again, if they begin where the store ends.
        let fits = |(from, changes): &(u64, Changes)| {
            *from == mark.map_or(0, |mark| mark.count) && changes.tally.events == head.count
        };
        match ready.filter(fits) {
            Some((_, changes)) => write(&store, &changes, head).map_err(failed)?,
            None => self.write_chunks(&store, mark, head)?,
        }
        drop(store);
        files.seal()?;
        drop(guard);
        Ok(())
    }

    fn is_in_log(&self, mark: &HeadRecord) -> bool {
        matches!(self.head_line(mark), Ok(super::HeadLine::Good(_)))
    }

    /// Folds the log from the mark to the head over the store, a chunk at a time.
    fn write_chunks(&self, store: &IndexStore, mut mark: Option<HeadRecord>, head: &HeadRecord) -> Result<()> {
        while mark.is_none_or(|mark| mark.count < head.count) {
            let mut state = match &mark {
                None => State::default(),
                Some(_) => State::over(Rc::new(Index::over(store.clone()).ok_or_else(|| failed(super::unreadable()))?)),
            };
            let mut last = None;
            let mut left = CHUNK_EVENTS;
            self.events_between(mark.map(|mark| mark.end()), head.end(), &mut |place, event| {
                state.apply(&event);
                last = Some((Head::at(&event), place));
                left -= 1;
                Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            if let Some(fault) = state.fault() {
                return Err(fault);
            }
            let Some((reached, end)) = last else {
                return Err(Error::corrupt("the log ends before its published head"));
            };
            let (_, changes) = state.into_changes();
            let next =
                HeadRecord { head: reached, count: changes.tally.events, segment: end.segment, offset: end.offset };
            write(store, &changes, &next).map_err(failed)?;
            mark = Some(next);
        }
        Ok(())
    }
}

fn failed(error: heed::Error) -> Error {
    Error::system("cannot write the index", error)
}

fn mark_of(store: &IndexStore) -> Option<HeadRecord> {
    let txn = store.read().ok()?;
    HeadRecord::decode(store.get(&txn, key::MARK).ok()??).ok()
}

/// Writes the changes and the new mark in one transaction.
fn write(store: &IndexStore, changes: &Changes, mark: &HeadRecord) -> heed::Result<()> {
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    pairs.extend(
        changes
            .entities
            .iter()
            .map(|(subject, entity)| (key::entity(subject, Partition::of_archived(entity.archived)), entity.encode())),
    );
    pairs.extend(changes.made.iter().map(|((e, n), subject)| (key::nth(*e, *n), subject.to_string().into_bytes())));
    // A longer key is not one of ours, cannot be requested, and would not fit.
    let keys = changes.keys.iter().filter(|(key, _)| key.len() <= limits::KEY_MAX_BYTES);
    pairs.extend(keys.map(|(key, id)| (key::keyed(key), id.to_bytes().to_vec())));
    pairs.extend(changes.children.iter().map(|(parent, child)| (key::child(*parent, *child), Vec::new())));
    pairs.extend(changes.links.iter().map(|(from, made)| (key::link(from, made), Vec::new())));
    let live = || changes.entities.values().filter(|entity| !entity.archived);
    for entity in live() {
        let subject = entity.subject.to_string().into_bytes();
        pairs.extend(key::places(entity).into_iter().map(|place| (place, subject.clone())));
    }
    let settings = changes.settings.as_ref().map(|settings| settings.to_string().into_bytes());
    pairs.extend(settings.map(|settings| (key::SETTINGS.to_vec(), settings)));
    pairs.push((key::TALLY.to_vec(), changes.tally.to_json().to_string().into_bytes()));
    pairs.push((key::MARK.to_vec(), mark.encode()));
    pairs.sort();
    let mut txn = store.write()?;
    for entity in changes.entities.values() {
        let before = store.get(&txn, &key::entity(&entity.subject, Partition::Live))?.and_then(Entity::decode);
        // The keys that still apply are written again below.
        for place in before.iter().flat_map(key::places) {
            store.delete(&mut txn, &place)?;
        }
    }
    for (key, value) in &pairs {
        store.put(&mut txn, key, value)?;
    }
    for subject in changes.entities.values().filter(|entity| entity.archived).map(|entity| &entity.subject) {
        store.delete(&mut txn, &key::entity(subject, Partition::Live))?;
    }
    txn.commit()
}
