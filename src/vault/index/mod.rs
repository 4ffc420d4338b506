//! The index: what an earlier part of the log folds to, kept in LMDB so that no command's cost
//! grows with the history.
//!
//! The log behind its mark is its memtable: every command folds that short tail over what the index
//! says. So it may be old, never ahead; and whatever is wrong with it (missing, damaged, of another
//! vault, read-only, a copy), the answer is the slow way round through the whole log.
//!
//! Invariant: an index that fails never fails a command (`tests/e2e/rules/index.rs`).

mod env;
mod merge;

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use heed::RoTxn;

use super::Vault;
use super::lock::{self, LockGuard, Mode};
use super::log::HeadLine;
use super::snapshot::Snapshot;
use crate::base::{EntityType, Error, Subject, Ulid};
use crate::chain::HeadRecord;
use crate::machine;
use crate::state::{Base, DeadlineQuery, Entity, Query, State, Tally, Timer};
use env::{Files, Store};

pub use merge::MERGE_EVERY_EVENTS;

/// The folder in `Akashic/`.
pub const INDEX: &str = "index";

/// Keys of the store: a letter for what it is, then what it is about.
mod key {
    use crate::base::{EntityId, EntityType, Subject, Ulid};
    use crate::machine::State;
    use crate::state::{Entity, Timer};

    /// Its number is that of the format: an index of another one has no mark, and is written anew.
    pub const MARK: &[u8] = b"m:mark.5";
    pub const TALLY: &[u8] = b"m:tally";
    pub const SETTINGS: &[u8] = b"m:settings";

    /// Live and archived entities stand apart, so that listing the live ones stays cheap.
    pub fn entity(subject: &Subject, archived: bool) -> Vec<u8> {
        let letter = if archived { 'a' } else { 'e' };
        format!("{letter}{subject}").into_bytes()
    }

    pub fn entities(entity: EntityType, archived: bool, prefix: &str) -> Vec<u8> {
        let letter = if archived { 'a' } else { 'e' };
        format!("{letter}{entity}:{prefix}").into_bytes()
    }

    pub fn in_state(entity: EntityType, state: State) -> Vec<u8> {
        format!("s{entity}:{state}:").into_bytes()
    }

    pub fn placed(entity: &Entity) -> Vec<u8> {
        [in_state(entity.subject.entity, entity.state).as_slice(), &entity.ordinal.to_be_bytes()].concat()
    }

    pub fn held_by(holder: &str) -> Vec<u8> {
        [b"h", holder.as_bytes(), b"\0"].concat()
    }

    pub fn held(entity: &Entity, holder: &str) -> Vec<u8> {
        [held_by(holder).as_slice(), &entity.ordinal.to_be_bytes()].concat()
    }

    /// Deadlines of one project and timer; those of one length stand together, in the order in which they fall due.
    pub fn timers(project: Option<&str>, timer: Timer) -> Vec<u8> {
        format!("d{}\0{timer}\0", project.unwrap_or_default()).into_bytes()
    }

    pub fn limit(project: Option<&str>, timer: Timer, limit: u64) -> Vec<u8> {
        [timers(project, timer).as_slice(), &limit.to_be_bytes()].concat()
    }

    pub fn counting_from(project: Option<&str>, timer: Timer, limit: u64, from: i64) -> Vec<u8> {
        [self::limit(project, timer, limit).as_slice(), &ordered(from).to_be_bytes()].concat()
    }

    /// Every key that an entity stands under beside its own: where it is, who holds it, when it falls due.
    pub fn places(entity: &Entity) -> Vec<Vec<u8>> {
        let mut all = vec![placed(entity)];
        all.extend(entity.holder().map(|holder| held(entity, holder)));
        let project = entity.project.as_ref().map(EntityId::as_str);
        all.extend(entity.deadlines().into_iter().map(|deadline| {
            let from = counting_from(project, deadline.timer, deadline.limit.unwrap_or(0), deadline.from);
            [from.as_slice(), entity.subject.to_string().as_bytes()].concat()
        }));
        all
    }

    /// A number whose bytes are in the order of the signed one.
    const fn ordered(number: i64) -> u64 {
        (number as u64) ^ (1 << 63)
    }

    pub fn made_for(subject: &Subject, entity: EntityType) -> Vec<u8> {
        format!("l{subject}>{entity}:").into_bytes()
    }

    pub fn link(subject: &Subject, made: &Subject) -> Vec<u8> {
        format!("l{subject}>{made}").into_bytes()
    }

    pub fn nth(entity: EntityType, ordinal: u64) -> Vec<u8> {
        [format!("r{entity}:").as_bytes(), &ordinal.to_be_bytes()].concat()
    }

    pub fn keyed(key: &str) -> Vec<u8> {
        [b"k", key.as_bytes()].concat()
    }

    pub fn children(parent: Ulid) -> Vec<u8> {
        [b"c", parent.to_bytes().as_slice()].concat()
    }

    pub fn child(parent: Ulid, child: Ulid) -> Vec<u8> {
        [b"c", parent.to_bytes().as_slice(), child.to_bytes().as_slice()].concat()
    }
}

/// An index that fits the log, open for reading.
pub struct Index {
    store: Store,
    txn: RefCell<Option<RoTxn<'static, heed::WithoutTls>>>,
    pub mark: HeadRecord,
    tally: Tally,
    /// The part of the log that the index stands for: the way round if it fails.
    prefix: Option<Snapshot>,
    fallback: OnceCell<Result<State, Error>>,
    _guard: Option<LockGuard>,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("mark", &self.mark).finish_non_exhaustive()
    }
}

impl Vault {
    /// The index, if there is one that fits this log.
    pub(super) fn index(&self) -> Option<Index> {
        let files = Files::open(&self.akashic).ok()??;
        let guard = lock::take(files.lock_file().ok()??, Mode::Shared, self.lock_timeout).ok()?;
        Index::open(self, &files, guard)
    }
}

impl Index {
    fn open(vault: &Vault, files: &Files, guard: LockGuard) -> Option<Index> {
        let index = Index::over(files.open_to_read()?)?;
        // The event at the mark must be in this log: then all before it is what was indexed.
        let fits = matches!(vault.head_line(&index.mark), Ok(HeadLine::Good(_)));
        let prefix = vault.published(&index.mark).ok().filter(|_| fits)?;
        Some(Index { prefix: Some(prefix), _guard: Some(guard), ..index })
    }

    /// What a store says, with nothing to fall back on.
    fn over(store: Store) -> Option<Index> {
        let txn = store.read().ok()?;
        let mark = HeadRecord::decode(store.get(&txn, key::MARK).ok()??).ok()?;
        let tally: serde_json::Value = serde_json::from_slice(store.get(&txn, key::TALLY).ok()??).ok()?;
        let tally = Tally::from_json(&tally).filter(|tally| tally.events == mark.count)?;
        let (txn, fallback) = (RefCell::new(Some(txn)), OnceCell::new());
        Some(Index { store, txn, mark, tally, prefix: None, fallback, _guard: None })
    }

    /// Asks the store; if it fails, now or before, asks the folded log instead.
    fn ask<T>(
        &self,
        store: impl FnOnce(&Store, &RoTxn<'_, heed::WithoutTls>) -> heed::Result<T>,
        log: impl FnOnce(&State) -> T,
    ) -> T
    where
        T: Default,
    {
        if let Some(txn) = &*self.txn.borrow()
            && let Ok(answer) = store(&self.store, txn)
        {
            return answer;
        }
        *self.txn.borrow_mut() = None;
        let folded = || match &self.prefix {
            Some(prefix) => prefix.fold(),
            None => Err(Error::system("cannot read the index", "it is damaged")),
        };
        match self.fallback.get_or_init(folded) {
            Ok(state) => log(state),
            Err(_) => T::default(),
        }
    }
}

/// A record of ours that cannot be read is as bad as a page that cannot.
fn unreadable() -> heed::Error {
    heed::Error::Decoding("not what was written".into())
}

impl Base for Index {
    fn entity(&self, subject: &Subject) -> Option<Entity> {
        self.ask(
            |store, txn| {
                let live = store.get(txn, &key::entity(subject, false))?;
                let found = live.map_or_else(|| store.get(txn, &key::entity(subject, true)), |live| Ok(Some(live)))?;
                found
                    .map(|bytes| Entity::decode(bytes).filter(|e| e.subject == *subject).ok_or_else(unreadable))
                    .transpose()
            },
            |state| state.entity(subject).map(|e| e.into_owned()),
        )
    }

    fn nth(&self, entity: EntityType, ordinal: u64) -> Option<Subject> {
        self.ask(
            |store, txn| match store.get(txn, &key::nth(entity, ordinal))? {
                None => Ok(None),
                Some(bytes) => read_subject(bytes).map(Some),
            },
            |state| state.nth(entity, ordinal),
        )
    }

    fn keyed(&self, key: &str) -> Option<Ulid> {
        self.ask(
            |store, txn| match store.get(txn, &key::keyed(key))? {
                None => Ok(None),
                Some(bytes) => ulid(bytes).map(Some),
            },
            |state| state.keyed(key),
        )
    }

    fn entities(&self, query: &Query<'_>) -> Vec<Entity> {
        let key = |id: &str| key::entities(query.entity, query.archived, id);
        self.ask(
            |store, txn| {
                let found = store.range(txn, &key(query.prefix), query.after.map(key).as_deref(), query.limit)?;
                found.into_iter().map(|(_, value)| Entity::decode(value).ok_or_else(unreadable)).collect()
            },
            |state| state.query(query),
        )
    }

    fn in_state(&self, entity: EntityType, state: machine::State, limit: usize) -> Vec<Entity> {
        self.ask(
            |store, txn| {
                let found = store.range(txn, &key::in_state(entity, state), None, limit)?;
                found.into_iter().map(|(_, subject)| live(store, txn, subject)).collect()
            },
            |folded| folded.in_state(entity, state, limit),
        )
    }

    fn held_by(&self, holder: &str) -> Vec<Entity> {
        self.ask(
            |store, txn| {
                let found = store.range(txn, &key::held_by(holder), None, usize::MAX)?;
                found.into_iter().map(|(_, subject)| live(store, txn, subject)).collect()
            },
            |folded| folded.held_by(holder),
        )
    }

    fn limits(&self, project: Option<&str>, timer: Timer) -> Vec<u64> {
        let range = key::timers(project, timer);
        self.ask(
            |store, txn| {
                let (mut limits, mut after) = (Vec::new(), None::<Vec<u8>>);
                // One step for each length, however many deadlines have it.
                while let Some((key, _)) = store.range(txn, &range, after.as_deref(), 1)?.into_iter().next() {
                    let bytes = key.get(range.len()..range.len() + 8).and_then(|bytes| bytes.try_into().ok());
                    let limit = u64::from_be_bytes(bytes.ok_or_else(unreadable)?);
                    limits.push(limit);
                    after = Some([key::limit(project, timer, limit).as_slice(), &[0xff; 9]].concat());
                }
                Ok(limits)
            },
            |folded| folded.limits(project, timer),
        )
    }

    fn counting_from(&self, query: &DeadlineQuery<'_>) -> Vec<Entity> {
        let DeadlineQuery { project, timer, limit, until, most } = *query;
        let (range, end) = (key::limit(project, timer, limit), key::counting_from(project, timer, limit, until));
        self.ask(
            |store, txn| {
                let found = store.range_while(txn, &range, most, |key| key[..end.len().min(key.len())] <= end[..])?;
                found.into_iter().map(|(_, subject)| live(store, txn, subject)).collect()
            },
            |folded| folded.counting_from(query),
        )
    }

    fn settings(&self) -> Option<serde_json::Value> {
        self.ask(
            |store, txn| match store.get(txn, key::SETTINGS)? {
                None => Ok(None),
                Some(bytes) => serde_json::from_slice(bytes).map(Some).map_err(|_| unreadable()),
            },
            |folded| folded.settings(),
        )
    }

    fn made_for(&self, subject: &Subject, entity: EntityType) -> Vec<Subject> {
        let range = key::made_for(subject, entity);
        let from = range.len() - entity.as_str().len() - 1;
        self.ask(
            |store, txn| {
                let found = store.range(txn, &range, None, usize::MAX)?;
                found.into_iter().map(|(key, _)| read_subject(&key[from..])).collect()
            },
            |folded| folded.made_for(subject, entity).into_iter().map(|e| e.subject).collect(),
        )
    }

    fn children(&self, parent: Ulid, limit: usize) -> Vec<Ulid> {
        let range = key::children(parent);
        self.ask(
            |store, txn| {
                store.range(txn, &range, None, limit)?.into_iter().map(|(key, _)| ulid(&key[range.len()..])).collect()
            },
            |state| state.children(parent, limit),
        )
    }

    fn keys(&self, after: Option<&str>, limit: usize) -> Vec<(String, Ulid)> {
        self.ask(
            |store, txn| {
                let after = after.map(key::keyed);
                let found = store.range(txn, b"k", after.as_deref(), limit)?;
                let pair = |(key, value): (&[u8], &[u8])| {
                    let text = std::str::from_utf8(&key[1..]).map_err(|_| unreadable())?;
                    Ok((text.to_owned(), ulid(value)?))
                };
                found.into_iter().map(pair).collect()
            },
            |state| state.keys(after, limit),
        )
    }

    fn tally(&self) -> Tally {
        self.tally.clone()
    }

    fn fault(&self) -> Option<Error> {
        self.fallback.get().and_then(|folded| folded.as_ref().err().cloned())
    }
}

/// The live entity of a subject that another key names.
fn live(store: &Store, txn: &RoTxn<'_, heed::WithoutTls>, subject: &[u8]) -> heed::Result<Entity> {
    let subject = read_subject(subject)?;
    let bytes = store.get(txn, &key::entity(&subject, false))?.ok_or_else(unreadable)?;
    Entity::decode(bytes).ok_or_else(unreadable)
}

fn read_subject(bytes: &[u8]) -> heed::Result<Subject> {
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable())?;
    Subject::parse(text).map_err(|_| unreadable())
}

fn ulid(bytes: &[u8]) -> heed::Result<Ulid> {
    bytes.try_into().map(Ulid::from_bytes).map_err(|_| unreadable())
}

/// The state over an index that fits, with the log behind its mark folded over it; else all of it.
pub(super) fn state(index: Option<Index>, vault: &Vault, snapshot: &Snapshot) -> Result<State, Error> {
    // An index can be ahead of a snapshot that was taken before a merge.
    match index.filter(|index| index.mark.count <= snapshot.count) {
        None => snapshot.fold(),
        Some(index) => {
            let from = index.mark.end();
            let mut state = State::over(Rc::new(index));
            if let Some(to) = snapshot.end() {
                vault.events_between(Some(from), to, &mut |_, event| {
                    state.apply(&event);
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            Ok(state)
        }
    }
}
