//! The index: the state of an earlier part of the log, stored in LMDB so that the cost of a command does not grow with the
//! history.
//!
//! The log after the index's mark is its memtable: every command folds those few events over the state in the index. So
//! the index may be old, but never ahead of the log. Whatever is wrong with it (missing, damaged, of another vault,
//! read-only, a copy), the whole log is folded instead.
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
use super::lock::{self, LockGuard, LockMode};
use super::log::HeadLine;
use super::snapshot::Snapshot;
use crate::base::{EntityType, Error, Subject, Ulid};
use crate::chain::HeadRecord;
use crate::machine;
use crate::state::{Base, DeadlineQuery, Entity, Query, State, Tally, Timer};
use env::{IndexFiles, IndexStore};

use key::Partition;
pub use merge::MERGE_EVERY_EVENTS;

/// The directory in `Akashic/`.
pub const INDEX: &str = "index";

/// Keys of the store: a letter for the kind of entry, then what the entry is about.
mod key {
    use crate::base::{EntityId, EntityType, Subject, Ulid};
    use crate::machine::Phase;
    use crate::state::{Entity, Timer};

    /// The number is the version of the format: an index of another version has no such mark and is rebuilt.
    pub const MARK: &[u8] = b"m:mark.20";
    pub const TALLY: &[u8] = b"m:tally";
    pub const SETTINGS: &[u8] = b"m:settings";

    /// Live and archived entities have separate keys, so that listing the live ones stays cheap.
    #[derive(Clone, Copy)]
    pub enum Partition {
        Live,
        Archived,
    }

    impl Partition {
        pub const fn of_archived(archived: bool) -> Partition {
            if archived { Partition::Archived } else { Partition::Live }
        }

        const fn letter(self) -> char {
            match self {
                Partition::Live => 'e',
                Partition::Archived => 'a',
            }
        }
    }

    pub fn entity(subject: &Subject, partition: Partition) -> Vec<u8> {
        format!("{}{subject}", partition.letter()).into_bytes()
    }

    pub fn entities(entity: EntityType, partition: Partition, prefix: &str) -> Vec<u8> {
        format!("{}{entity}:{prefix}", partition.letter()).into_bytes()
    }

    pub fn in_phase(entity: EntityType, phase: Phase) -> Vec<u8> {
        format!("s{entity}:{phase}:").into_bytes()
    }

    pub fn placed(entity: &Entity) -> Vec<u8> {
        [in_phase(entity.subject.entity, entity.phase).as_slice(), &entity.ordinal.to_be_bytes()].concat()
    }

    pub fn held_by(holder: &str) -> Vec<u8> {
        [b"h", holder.as_bytes(), b"\0"].concat()
    }

    pub fn held(entity: &Entity, holder: &str) -> Vec<u8> {
        [held_by(holder).as_slice(), &entity.ordinal.to_be_bytes()].concat()
    }

    pub fn unread_by(persona: &str) -> Vec<u8> {
        [b"u", persona.as_bytes(), b"\0"].concat()
    }

    pub fn unread(message: &Entity, persona: &str) -> Vec<u8> {
        [unread_by(persona).as_slice(), &message.ordinal.to_be_bytes()].concat()
    }

    /// Deadlines of one project and timer. Those with the same length are adjacent, in the order in which they are due.
    pub fn timers(project: Option<&str>, timer: Timer) -> Vec<u8> {
        format!("d{}\0{timer}\0", project.unwrap_or_default()).into_bytes()
    }

    pub fn limit(project: Option<&str>, timer: Timer, limit: u64) -> Vec<u8> {
        [timers(project, timer).as_slice(), &limit.to_be_bytes()].concat()
    }

    pub fn counting_from(project: Option<&str>, timer: Timer, limit: u64, from: i64) -> Vec<u8> {
        [self::limit(project, timer, limit).as_slice(), &ordered(from).to_be_bytes()].concat()
    }

    /// The secondary keys of an entity: its phase, its holder, its reader, its deadlines.
    pub fn places(entity: &Entity) -> Vec<Vec<u8>> {
        let mut all = vec![placed(entity)];
        all.extend(entity.holder().map(|holder| held(entity, holder)));
        all.extend(entity.reader().map(|reader| unread(entity, reader)));
        let project = entity.project.as_ref().map(EntityId::as_str);
        all.extend(entity.deadlines().into_iter().map(|deadline| {
            let from = counting_from(project, deadline.timer, deadline.limit.unwrap_or(0), deadline.from);
            [from.as_slice(), entity.subject.to_string().as_bytes()].concat()
        }));
        all
    }

    /// Maps a signed number to one whose bytes sort in the same order.
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

/// An index that matches the log, open for reading.
pub struct Index {
    store: IndexStore,
    txn: RefCell<Option<RoTxn<'static, heed::WithoutTls>>>,
    pub mark: HeadRecord,
    tally: Tally,
    /// The part of the log that the index covers, to be folded if the index fails.
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
    /// The index, if there is one that matches this log.
    pub(super) fn index(&self) -> Option<Index> {
        let files = IndexFiles::open(&self.akashic).ok()??;
        let guard = lock::take(files.lock_file().ok()??, LockMode::Shared, self.lock_timeout).ok()?;
        Index::open(self, &files, guard)
    }
}

impl Index {
    fn open(vault: &Vault, files: &IndexFiles, guard: LockGuard) -> Option<Index> {
        let index = Index::over(files.open_to_read()?)?;
        // If the event at the mark is in this log, so are all the indexed events before it.
        let fits = matches!(vault.head_line(&index.mark), Ok(HeadLine::Good(_)));
        let prefix = vault.published(&index.mark).ok().filter(|_| fits)?;
        Some(Index { prefix: Some(prefix), _guard: Some(guard), ..index })
    }

    /// An index without a log to fall back on.
    fn over(store: IndexStore) -> Option<Index> {
        let txn = store.read().ok()?;
        let mark = HeadRecord::decode(store.get(&txn, key::MARK).ok()??).ok()?;
        let tally: serde_json::Value = serde_json::from_slice(store.get(&txn, key::TALLY).ok()??).ok()?;
        let tally = Tally::from_json(&tally).filter(|tally| tally.events == mark.count)?;
        let (txn, fallback) = (RefCell::new(Some(txn)), OnceCell::new());
        Some(Index { store, txn, mark, tally, prefix: None, fallback, _guard: None })
    }

    /// Queries the store; if that fails, or failed before, queries the folded log instead.
    fn ask<T>(
        &self,
        store: impl FnOnce(&IndexStore, &RoTxn<'_, heed::WithoutTls>) -> heed::Result<T>,
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

/// The error for an entry that cannot be decoded.
fn unreadable() -> heed::Error {
    heed::Error::Decoding("invalid entry".into())
}

impl Base for Index {
    fn entity(&self, subject: &Subject) -> Option<Entity> {
        self.ask(
            |store, txn| {
                let live = store.get(txn, &key::entity(subject, Partition::Live))?;
                let found = live.map_or_else(
                    || store.get(txn, &key::entity(subject, Partition::Archived)),
                    |live| Ok(Some(live)),
                )?;
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
        let key = |id: &str| key::entities(query.entity, Partition::of_archived(query.archived), id);
        self.ask(
            |store, txn| {
                let found = store.range(txn, &key(query.prefix), query.after.map(key).as_deref(), query.limit)?;
                found.into_iter().map(|(_, value)| Entity::decode(value).ok_or_else(unreadable)).collect()
            },
            |state| state.query(query),
        )
    }

    fn in_phase(&self, entity: EntityType, phase: machine::Phase, limit: usize) -> Vec<Entity> {
        self.ask(
            |store, txn| {
                let found = store.range(txn, &key::in_phase(entity, phase), None, limit)?;
                found.into_iter().map(|(_, subject)| live(store, txn, subject)).collect()
            },
            |folded| folded.in_phase(entity, phase, limit),
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

    fn unread_by(&self, persona: &str, limit: usize) -> Vec<Entity> {
        self.ask(
            |store, txn| {
                let found = store.range(txn, &key::unread_by(persona), None, limit)?;
                found.into_iter().map(|(_, subject)| live(store, txn, subject)).collect()
            },
            |folded| folded.unread_by(persona, limit),
        )
    }

    fn limits(&self, project: Option<&str>, timer: Timer) -> Vec<u64> {
        let range = key::timers(project, timer);
        self.ask(
            |store, txn| {
                let (mut limits, mut after) = (Vec::new(), None::<Vec<u8>>);
                // One step per length, however many deadlines have it.
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
        let DeadlineQuery { project, timer, limit, until, max } = *query;
        let (range, end) = (key::limit(project, timer, limit), key::counting_from(project, timer, limit, until));
        self.ask(
            |store, txn| {
                let found = store.range_while(txn, &range, max, |key| key[..end.len().min(key.len())] <= end[..])?;
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

/// The live entity of a subject that a secondary key refers to.
fn live(store: &IndexStore, txn: &RoTxn<'_, heed::WithoutTls>, subject: &[u8]) -> heed::Result<Entity> {
    let subject = read_subject(subject)?;
    let bytes = store.get(txn, &key::entity(&subject, Partition::Live))?.ok_or_else(unreadable)?;
    Entity::decode(bytes).ok_or_else(unreadable)
}

fn read_subject(bytes: &[u8]) -> heed::Result<Subject> {
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable())?;
    Subject::parse(text).map_err(|_| unreadable())
}

fn ulid(bytes: &[u8]) -> heed::Result<Ulid> {
    bytes.try_into().map(Ulid::from_bytes).map_err(|_| unreadable())
}

/// The state of the log: the events after the index's mark, folded over the index; without an index, all events.
pub(super) fn state(index: Option<Index>, vault: &Vault, snapshot: &Snapshot) -> Result<State, Error> {
    // The index can be ahead of a snapshot that was taken before a merge.
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
