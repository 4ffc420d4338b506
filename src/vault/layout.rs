//! The layout of a vault, and creating one.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::files::{self, Dir, failed};
use super::{Notices, Trust, Vault, WriteOptions, Writer, config};
use crate::base::{Actor, Error, Reason, Result, Subject};
use crate::event::{Draft, Event, Kind, SCHEMA_VERSION, schema};
use crate::policy::Settings;

pub const AKASHIC: &str = "Akashic";
pub const CONFIG_FILE: &str = "hiveforge.config.yaml";
pub(super) const LOCK_FILE: &str = ".lock";
pub(super) const EVENTS: &str = "events";
pub(super) const QUARANTINE: &str = "quarantine";
const SCHEMAS: &str = "schemas";
/// Directories in `Akashic/`.
const AKASHIC_DIRS: &[&str] = &[EVENTS, QUARANTINE, "projections", SCHEMAS, "snapshots"];
/// Directories in the vault.
const ROOT_DIRS: &[&str] = &["Agents", "Artifacts", "Autonomous", "Context", "Jobs"];

/// The result of `create`.
#[derive(Debug)]
pub enum Created {
    /// A new vault, with its first event.
    New(Box<Event>),
    /// It already existed; nothing was changed.
    Existed,
}

impl Vault {
    /// Whether there is a vault with events at `path`.
    pub fn exists(path: &Path) -> Result<bool> {
        match path.join(AKASHIC).is_dir() {
            true => Ok(Vault::open(path)?.snapshot()?.head.is_some()),
            false => Ok(false),
        }
    }

    /// Creates a vault at `path`, or completes one whose creation was interrupted.
    pub fn create(path: &Path, actor: Actor, first: &FirstEvent, options: WriteOptions) -> Result<(Vault, Created)> {
        make_root(path)?;
        let root =
            Dir::open_root(path)?.ok_or_else(|| Error::usage(format!("{} is not a directory", path.display())))?;
        refuse_foreign(&root)?;
        root.check_private()?;
        let (akashic, made) = root.make_dir(AKASHIC)?;
        if made {
            root.make_private()?;
            root.sync()?;
        }
        let vault = Vault {
            path: path.to_owned(),
            root,
            akashic,
            lock_timeout: options.lock_timeout,
            store: None,
            notices: Notices::default(),
            trust: Trust::default(),
        };
        // Opened as a reader: a writer would repair a torn tail, but nothing must be changed.
        if vault.snapshot()?.head.is_some() {
            return Ok((vault, Created::Existed));
        }
        vault.akashic.make_file(LOCK_FILE)?;
        let mut writer = Writer::open_empty(&vault, options)?;
        if writer.head().is_some() {
            return Ok((vault, Created::Existed));
        }
        for name in AKASHIC_DIRS {
            vault.akashic.make_dir(name)?;
        }
        for name in ROOT_DIRS {
            vault.root.make_dir(name)?;
        }
        let (schemas, _) = vault.akashic.make_dir(SCHEMAS)?;
        let text = serde_json::to_string_pretty(&schema::event_schema()).expect("a JSON value") + "\n";
        schemas.put(schema::EVENT_SCHEMA_FILE, text.as_bytes())?;
        if vault.root.open_file(CONFIG_FILE)?.is_none() {
            vault.root.put(CONFIG_FILE, config::commented().as_bytes())?;
        }
        vault.make_control(None)?;
        vault.akashic.sync()?;
        vault.root.sync()?;
        files::sync_parent(path)?;
        // The next command that needs the settings says whether the file can be used.
        let settings = match &first.settings {
            Some(settings) => settings.clone(),
            None => vault.config_file().unwrap_or_default().settings,
        };
        let event = writer.append_one(first.draft(actor, &settings))?;
        drop(writer);
        Ok((vault, Created::New(Box::new(event))))
    }
}

/// What the first event of a log says.
#[derive(Clone, Debug, Default)]
pub struct FirstEvent {
    /// A random id.
    pub vault_id: String,
    /// The settings; default: those in the file.
    pub settings: Option<Settings>,
    /// The operators' keys, and what their signature adds.
    pub members: Map<String, Value>,
}

impl FirstEvent {
    /// Its payload.
    pub fn payload_of(vault_id: &str, settings: &Value, members: &Map<String, Value>) -> Map<String, Value> {
        let payload = json!({"vault_id": vault_id, "schema_version": SCHEMA_VERSION, "settings": settings});
        let payload = payload.as_object().expect("an object").clone();
        payload.into_iter().chain(members.clone()).collect()
    }

    pub(super) fn draft(&self, actor: Actor, settings: &Settings) -> Draft {
        Draft {
            kind: Kind::VaultInitialized,
            subject: Subject::SYSTEM,
            actor,
            parents: Vec::new(),
            key: None,
            payload: FirstEvent::payload_of(&self.vault_id, &settings.to_json(), &self.members),
        }
    }
}

/// Creates the directory, private from the start, and its parents.
fn make_root(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if path.exists() {
        return Ok(());
    }
    files::make_parents(path)?;
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(failed("create", path, e)),
        _ => Ok(()),
    }
}

/// Refuses a directory that contains something else.
fn refuse_foreign(root: &Dir) -> Result<()> {
    let ours = |name: &str| name == AKASHIC || name == CONFIG_FILE || ROOT_DIRS.contains(&name);
    match root.list()?.into_iter().find(|(name, _)| !ours(name)) {
        Some((name, _)) if root.dir(AKASHIC)?.is_none() => Err(Error::refused(
            Reason::NotEmpty,
            format!("{} contains '{name}' and is not a vault; choose a new or empty directory", root.path().display()),
        )),
        _ => Ok(()),
    }
}
