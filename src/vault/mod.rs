//! The vault: one directory, the only state. Keeps records and files, and the state that they fold to; what may be
//! recorded next is none of its business.
//!
//! | room | what is in it |
//! |---|---|
//! | `files` | opening without following links, private modes, whole files by rename |
//! | `lock` | flock, with an end to the wait: who may append, who has a job |
//! | `log` | segments, where the published log ends, what stands behind it |
//! | `seam` | what the rest of the toolkit knows of the log, wherever it is kept |
//! | `snapshot` | reading the log up to a known end |
//! | `head` | `chain.json` |
//! | `batch`, `write` | appending: what is recorded together, and recording it |
//! | `recover` | the tail after a crash, the suffix after damage |
//! | `index` | an earlier part of the log, folded, in LMDB |
//! | `agents` | what agents show as files |
//! | `autonomous` | the state file of a mission, replies of reviewers |
//! | `artifacts` | contents that are too large for an event |
//! | `projections` | JSON files for other programs |
//! | `verify`, `backup` | proving and copying |
//! | `layout`, `config` | what `hf-init` makes, and settings |
//! | `sabotage` | what a debug build can be told to leave out, to test the tests |
//! | `control`, `tick` | the stop flag, and when the watchdog last looked |
//! | `clock` | the machine's clocks when the log was last written to |
//! | `watch` | waiting for the log to grow |

mod agents;
mod artifacts;
mod autonomous;
mod backup;
mod batch;
mod clock;
pub mod config;
mod control;
mod files;
mod head;
mod index;
mod layout;
pub(crate) mod lock;
mod log;
pub mod projections;
mod recover;
mod sabotage;
mod seam;
mod snapshot;
mod tick;
mod verify;
mod watch;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::base::{Error, ErrorKind, Result, limits};
use crate::state::State;

pub use agents::{AgentDir, DeclarationEnd, LogFile};
pub use artifacts::{ARTIFACTS, Incoming, hash_content};
pub use autonomous::{M1File, review_path};
pub use backup::{BackedUp, backup};
pub use batch::Batch;
pub use control::StopFlag;
pub use files::Dir;
pub use layout::{AKASHIC, CONFIG_FILE, Created};
pub use recover::Recovered;
#[cfg(debug_assertions)]
pub use sabotage::sabotage;
pub use seam::{Append, Log, LogStore, LogView, LogWatch, head_moved};
pub use snapshot::{Position, Snapshot, Visited};
pub use tick::Tick;
pub use verify::{ChainVerdict, HeadVerdict, Method, Progress, Scope, TailVerdict, Verified};
pub use watch::VaultWatch;
pub use write::Writer;

/// A vault that exists, opened for reading.
#[derive(Debug)]
pub struct Vault {
    path: PathBuf,
    root: Dir,
    akashic: Dir,
    /// How long a reader waits for the lock where it needs it.
    lock_timeout: Duration,
    /// Where the log is kept, if not in this folder.
    store: Option<Arc<dyn LogStore>>,
}

impl Vault {
    /// Opens an existing vault. The path itself may lead through links, nothing inside may.
    pub fn open(path: &Path) -> Result<Vault> {
        let none = || Error::new(ErrorKind::NoVault, format!("no vault at {}", path.display()));
        let root = Dir::open_root(path)?.ok_or_else(none)?;
        let akashic = root.dir(AKASHIC)?.ok_or_else(none)?;
        let lock_timeout = Duration::from_secs(limits::LOCK_TIMEOUT_DEFAULT_SECONDS);
        Ok(Vault { path: path.to_owned(), root, akashic, lock_timeout, store: None })
    }

    pub fn with_lock_timeout(self, lock_timeout: Duration) -> Vault {
        Vault { lock_timeout, ..self }
    }

    /// The same vault, whose log is kept somewhere else.
    pub fn with_store(self, store: Option<Arc<dyn LogStore>>) -> Vault {
        Vault { store, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the configuration file says, with a warning for each setting that is not known.
    pub fn config_file(&self) -> Result<(config::Config, Vec<String>)> {
        config::load(&self.root, &self.path)
    }

    /// The settings in force: what the file says; where it cannot be used, what was recorded last, with a warning.
    pub fn config(&self) -> Result<(config::Config, Vec<String>)> {
        match self.config_file() {
            Ok(loaded) => Ok(loaded),
            Err(error) => Ok(config::instead_of(&error, &self.view()?.1)),
        }
    }

    /// A file of the vault, by its path inside, none of it through a link; nothing if it is not there.
    pub fn open_file(&self, path: &Path) -> Result<Option<std::fs::File>> {
        let mut names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
        let Some(name) = names.pop() else { return Ok(None) };
        let mut dir: Option<Dir> = None;
        for name in names {
            match dir.as_ref().unwrap_or(&self.root).dir(name)? {
                Some(next) => dir = Some(next),
                None => return Ok(None),
            }
        }
        dir.as_ref().unwrap_or(&self.root).open_file(name)
    }

    /// Why this vault must not be written to or trusted as private, if others can write it.
    pub fn check_private(&self) -> Result<()> {
        self.root.check_private()?;
        self.akashic.check_private()
    }

    /// The same for every part of the log.
    pub fn check_log_private(&self) -> Result<()> {
        self.check_private()?;
        let Some(events) = self.events()? else { return Ok(()) };
        events.check_private()?;
        for (month, _) in events.list()?.into_iter().filter(|(_, is_dir)| *is_dir) {
            let Some(folder) = events.dir(&month)? else { continue };
            folder.check_private()?;
            for (name, _) in folder.list()?.into_iter().filter(|(_, is_dir)| !is_dir) {
                folder.check_file_private(&name)?;
            }
        }
        Ok(())
    }

    /// The log and what it folds to, for a command that only reads.
    pub fn view(&self) -> Result<LogView> {
        match &self.store {
            Some(store) => store.view(),
            None => LogStore::view(self),
        }
    }

    /// The right to append to the log, wherever it is kept.
    pub fn append(&self, options: WriteOptions) -> Result<Box<dyn Append + '_>> {
        match &self.store {
            Some(store) => store.append(options),
            None => LogStore::append(self, options),
        }
    }

    /// Whether the state can be had without reading the whole log.
    pub fn has_index(&self) -> bool {
        self.index().is_some()
    }

    /// The log of this folder and what it folds to.
    pub fn files_view(&self) -> Result<(Snapshot, State)> {
        // The index first: a merge in between may only make the snapshot newer than the mark.
        let index = self.index();
        let snapshot = self.snapshot()?;
        let state = index::state(index, self, &snapshot)?;
        Ok((snapshot, state))
    }

    /// Takes the lock, mends what a crash left, and gives the right to append.
    pub fn write(&self, options: WriteOptions) -> Result<Writer<'_>> {
        Writer::open(self, options)
    }
}

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub lock_timeout: Duration,
    pub now: crate::base::Now,
    /// A segment that has reached this size is followed by another.
    pub segment_max_bytes: u64,
}
