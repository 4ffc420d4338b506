//! The vault: one directory, which holds all state. This layer stores events and files and folds them to a state. It does
//! not decide what may be recorded; of `policy`, it knows only the settings.
//!
//! | module | what it does |
//! |---|---|
//! | `files` | opens files without following links, with private modes; replaces whole files by rename |
//! | `lock` | flock with a timeout, for the vault and for jobs |
//! | `log` | segments, where the published log ends, and what comes after it |
//! | `seam` | the traits by which the rest of the toolkit uses the log, wherever it is stored |
//! | `snapshot` | reads the log up to a known end |
//! | `head` | `chain.json` |
//! | `batch`, `write` | collect events that are recorded together, and append them |
//! | `recover` | repairs the tail after a crash and cuts off damage |
//! | `quarantine` | keeps what was cut off |
//! | `index` | the folded state of an earlier part of the log, in LMDB |
//! | `agents` | the files of agents |
//! | `autonomous` | the state file of a mission and the replies of reviewers |
//! | `artifacts` | contents that are too large for an event |
//! | `projections` | JSON files for other programs |
//! | `verify`, `backup` | check and copy the vault |
//! | `layout`, `config` | what `hf-init` creates, and the settings file |
//! | `trust` | in which vaults the commands in the settings may be run |
//! | `sabotage` | what a debug build can be told to skip, to test the tests |
//! | `notices` | what a command has to say besides its reply |
//! | `control`, `stop_entry`, `tick` | the two ways to raise a stop, and the watchdog's last tick |
//! | `printed` | the warnings that a quiet watchdog has printed |
//! | `clock` | the machine's clocks at the last write |
//! | `outbox` | how far hooks were notified of events |
//! | `watch` | waits for the log to grow |

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
mod notices;
mod outbox;
mod printed;
pub mod projections;
mod quarantine;
mod recover;
mod sabotage;
mod seam;
mod snapshot;
mod stop_entry;
mod tick;
mod trust;
mod verify;
mod watch;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::base::{Error, ErrorKind, Reason, Result, Ulid, limits};
use crate::event::Event;
use crate::policy::Settings;
use crate::policy::settings::{self, Regime, Setting};
use crate::state::State;
use config::{Config, SettingsEdit};

pub use agents::{
    AgentDir, AgentFile, ClaimedFile, DeclarationEnd, FileFault, FileName, FileSort, FilesLook, Looked, Looks, NameUse,
    WorksTree, open_path,
};
pub use artifacts::{ARTIFACTS, Incoming, MANIFEST, check_size, hash_content, read_content};
pub use autonomous::{M1File, review_path};
pub use backup::{BackedUp, backup};
pub use batch::Batch;
pub use control::{StopFlag, make_accessible, still_stopped};
pub use files::Dir;
pub use layout::{AKASHIC, CONFIG_FILE, Created, FirstEvent};
pub use notices::Notices;
pub use outbox::{Cursor, Outbox};
pub use printed::PrintedWarnings;
pub use recover::{Loss, Recovery};
#[cfg(debug_assertions)]
pub use sabotage::sabotage;
pub use seam::{Append, Log, LogStore, LogView, LogWatch, head_moved};
pub use snapshot::{Position, Snapshot, Visited};
pub use tick::Tick;
pub use trust::{Trust, TrustedVault};
pub use verify::{ChainVerdict, HeadVerdict, Method, Progress, Scope, TailVerdict, Verified};
pub use watch::VaultWatch;
pub use write::Writer;

/// An existing vault.
#[derive(Debug)]
pub struct Vault {
    path: PathBuf,
    root: Dir,
    akashic: Dir,
    /// How long a reader waits for the lock, if it needs it.
    lock_timeout: Duration,
    /// Where the log is stored, if not in this directory.
    store: Option<Arc<dyn LogStore>>,
    /// Where to say what is wrong with the settings file.
    notices: Notices,
    /// Whether the commands in the settings may be run.
    trust: Trust,
}

impl Vault {
    /// Opens an existing vault. The path itself may contain symbolic links; the vault may not.
    pub fn open(path: &Path) -> Result<Vault> {
        let none = || Error::new(ErrorKind::NoVault, format!("no vault at {}", path.display()));
        let root = Dir::open_root(path)?.ok_or_else(none)?;
        let akashic = root.dir(AKASHIC)?.ok_or_else(none)?;
        let lock_timeout = Duration::from_secs(limits::LOCK_TIMEOUT_DEFAULT_SECONDS);
        Ok(Vault {
            path: path.to_owned(),
            root,
            akashic,
            lock_timeout,
            store: None,
            notices: Notices::default(),
            trust: Trust::default(),
        })
    }

    pub fn with_lock_timeout(self, lock_timeout: Duration) -> Vault {
        Vault { lock_timeout, ..self }
    }

    /// The same vault with its log stored elsewhere.
    pub fn with_store(self, store: Option<Arc<dyn LogStore>>) -> Vault {
        Vault { store, ..self }
    }

    /// The same vault for a command with these notices.
    pub fn with_notices(self, notices: Notices) -> Vault {
        Vault { notices, ..self }
    }

    /// The same vault for a user who trusts these vaults.
    pub fn with_trust(self, trust: Trust) -> Vault {
        Vault { trust, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The user that the vault belongs to, if it is not this one.
    pub fn other_owner(&self) -> Option<u32> {
        self.root.other_owner()
    }

    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// The settings in the file, for a command about the file. All others use `config`.
    pub fn config_file(&self) -> Result<Config> {
        config::load(&self.root, &self.path)
    }

    /// The settings in force: those in the file, unless others were adopted; those recorded last if the file cannot be
    /// used.
    pub fn config(&self) -> Config {
        match self.view() {
            Ok((_, state)) => self.config_with(&state),
            // The caller will find out by itself that the log cannot be read.
            Err(_) => self.config_with(&State::default()),
        }
    }

    /// The same for a caller that has read the log.
    pub fn config_with(&self, state: &State) -> Config {
        let file = self.config_file();
        let config = match (state.settings().filter(|_| Regime::of(state).is_strict()), file) {
            (Some(adopted), file) => Config::adopted(adopted, file),
            (None, Ok(config)) => config,
            (None, Err(error)) => Config::instead_of_file(&error, Settings::recorded(state), self.check_log_private()),
        };
        self.notices.add(config.warnings.iter().cloned());
        config
    }

    /// Checks that a setting in the file can be given this value; changes nothing.
    pub fn plan_edit(&self, name: &str, value: &str) -> Result<SettingsEdit> {
        SettingsEdit::plan(&self.root, &self.path, name, value)
    }

    /// Changes the settings file.
    pub fn make_edit(&self, edit: &SettingsEdit) -> Result<()> {
        edit.make(&self.root)
    }

    /// Takes a change of the settings file back.
    pub fn undo_edit(&self, edit: &SettingsEdit) -> Result<()> {
        edit.undo(&self.root)
    }

    /// The command in a setting; none if it is not set. Refused if commands of this vault must not be run.
    pub fn command(&self, config: &Config, setting: Setting) -> Result<Option<String>> {
        debug_assert!(setting.row().is_command, "{setting} is no command");
        self.checked(config, setting.as_str(), &config.text(setting))
    }

    /// The command of a reviewer; none if it is not set. Refused if commands of this vault must not be run.
    pub fn reviewer_command(&self, config: &Config, name: &str) -> Result<Option<String>> {
        let command = config.reviewers.get(name).map(String::as_str).unwrap_or_default();
        self.checked(config, &config::reviewer_setting(name), command)
    }

    fn checked(&self, config: &Config, setting: &str, command: &str) -> Result<Option<String>> {
        let command = command.trim();
        if command.is_empty() {
            return Ok(None);
        }
        self.check_commands(config).map_err(|error| error.at(format!("the command in {setting} is not run")))?;
        Ok(Some(command.to_owned()))
    }

    /// Refuses to run commands in the settings if others may have written them, or if this user does not trust the
    /// vault on this machine.
    pub fn check_commands(&self, config: &Config) -> Result<()> {
        if let Some(why) = config.foreign() {
            return Err(Error::refused(Reason::NotOwner, why));
        }
        self.check_log_private()?;
        match self.trust.refuses(&self.as_trusted(config.adopted.as_ref())?) {
            Some(why) => {
                let remedy = "an operator can trust it with hf-config trust";
                Err(Error::refused(Reason::NotTrusted, format!("{why}; {remedy}")))
            }
            None => Ok(()),
        }
    }

    /// Adds this vault to those that the user trusts. `adopted`: its settings as recorded, if they were adopted.
    pub fn make_trusted(&self, adopted: Option<&Value>) -> Result<TrustedVault> {
        self.check_log_private()?;
        let vault = self.as_trusted(adopted)?;
        self.trust.add(vault.clone(), self.lock_timeout)?;
        Ok(vault)
    }

    /// What the user trusts, if this vault is trusted.
    fn as_trusted(&self, adopted: Option<&Value>) -> Result<TrustedVault> {
        let path = std::fs::canonicalize(&self.path).map_err(|e| files::failed("resolve", &self.path, e))?;
        let unusual = || Error::usage(format!("{} is not UTF-8, so it cannot be listed", path.display()));
        let path = path.to_str().ok_or_else(unusual)?.to_owned();
        let missing = || Error::corrupt("the first event has no vault id");
        let first = self.first_event()?.ok_or_else(missing)?;
        let vault_id = first.payload.get("vault_id").and_then(Value::as_str).ok_or_else(missing)?.to_owned();
        Ok(TrustedVault { vault_id, path, settings: adopted.map(|recorded| settings::digest(recorded).to_string()) })
    }

    /// The first event of the log.
    fn first_event(&self) -> Result<Option<Event>> {
        let mut first = None;
        let mut visit = |event: Event| {
            first = Some(event);
            Ok(std::ops::ControlFlow::Break(()))
        };
        // The files are read directly: a view would open the index, which the caller may have open.
        match &self.store {
            Some(store) => store.view()?.0.read_from(Ulid::nil(), &mut visit)?,
            None => Log::read_from(&self.snapshot()?, Ulid::nil(), &mut visit)?,
        }
        Ok(first)
    }

    /// Opens a file by its path inside the vault, without following links; `None` if it does not exist.
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

    /// Refuses a vault that belongs to another user or that others can write to.
    pub fn check_private(&self) -> Result<()> {
        self.root.check_private()?;
        self.akashic.check_private()
    }

    /// The same check for every directory and file of the log.
    pub fn check_log_private(&self) -> Result<()> {
        self.check_private()?;
        let Some(events) = self.events()? else { return Ok(()) };
        events.check_private()?;
        for (month, _) in events.list()?.into_iter().filter(|(_, is_dir)| *is_dir) {
            let Some(month_dir) = events.dir(&month)? else { continue };
            month_dir.check_private()?;
            for (name, _) in month_dir.list()?.into_iter().filter(|(_, is_dir)| !is_dir) {
                month_dir.check_file_private(&name)?;
            }
        }
        Ok(())
    }

    /// The log and its state, for a command that only reads.
    pub fn view(&self) -> Result<LogView> {
        match &self.store {
            Some(store) => store.view(),
            None => LogStore::view(self),
        }
    }

    /// The right to append to the log, wherever it is stored.
    pub fn append(&self, options: WriteOptions) -> Result<Box<dyn Append + '_>> {
        match &self.store {
            Some(store) => store.append(options),
            None => LogStore::append(self, options),
        }
    }

    /// Whether the state is available without reading the whole log.
    pub fn has_index(&self) -> bool {
        self.index().is_some()
    }

    /// The log in this directory and its state.
    pub fn files_view(&self) -> Result<(Snapshot, State)> {
        // The index first: a merge in between may then only make the snapshot newer than the index.
        let index = self.index();
        let snapshot = self.snapshot()?;
        let state = index::state(index, self, &snapshot)?;
        Ok((snapshot, state))
    }

    /// Takes the lock, repairs what a crash left, and returns the right to append.
    pub fn write(&self, options: WriteOptions) -> Result<Writer<'_>> {
        Writer::open(self, options)
    }
}

/// Options for writing.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub lock_timeout: Duration,
    pub now: crate::base::Now,
    /// A segment that has reached this size is followed by a new one.
    pub segment_max_bytes: u64,
}
