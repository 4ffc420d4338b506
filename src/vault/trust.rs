//! Trust: in which vaults the commands named in the settings may be run by this user on this machine.
//!
//! The user's list is a file outside every vault, with one line of JSON for each trusted vault: its id, its real path
//! and, if its settings were adopted, their digest. So a vault that was copied, cloned or unpacked runs nothing by
//! itself, wherever its settings come from. This stops copies, not a program that runs as the same user.
//!
//! Invariant: what others can write is never believed (`a11_a_list_that_others_can_write_is_not_believed`).

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::files::{Dir, failed};
use super::lock::{self, LockMessages, LockMode};
use crate::base::{Error, ErrorKind, Result, limits};

/// The lock that writers of the list hold.
const LOCK: &str = "trust.lock";
const MESSAGES: LockMessages =
    LockMessages { lock: "cannot lock the list of trusted vaults", wait: "cannot wait for the list of trusted vaults" };

/// What the front end knows about trust.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The user's list of trusted vaults; none if the user has no home directory.
    pub file: Option<PathBuf>,
    /// The id of a vault that is trusted wherever it is, as HF_TRUST says.
    pub vault_id: Option<String>,
}

/// A vault as it is trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedVault {
    /// Its random id.
    pub vault_id: String,
    /// Its real path.
    pub path: String,
    /// The digest of its settings, if they were adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
}

impl Trust {
    /// Why a vault is not trusted; none if it is.
    pub fn refuses(&self, vault: &TrustedVault) -> Option<String> {
        if self.vault_id.as_ref() == Some(&vault.vault_id) {
            return None;
        }
        let Some(file) = &self.file else {
            return Some("this user has no home directory, where trusted vaults are listed".to_owned());
        };
        let trusted = match read(file) {
            Ok(trusted) => trusted,
            Err(error) => return Some(format!("the list of trusted vaults cannot be used: {error}")),
        };
        let known: Vec<&TrustedVault> = trusted.iter().filter(|other| other.vault_id == vault.vault_id).collect();
        let why = match (known.contains(&vault), known.iter().any(|other| other.path == vault.path)) {
            (true, _) => return None,
            (false, true) => "its adopted settings are not those that were trusted",
            (false, false) if known.is_empty() => "this vault is not trusted on this machine",
            (false, false) => "this vault is a copy, or was moved",
        };
        Some(why.to_owned())
    }

    /// Adds a vault to the list, in place of what was trusted there before.
    pub fn add(&self, vault: TrustedVault, lock_timeout: Duration) -> Result<()> {
        let none = || Error::usage("this user has no home directory to list trusted vaults in; set HOME");
        let file = self.file.as_ref().ok_or_else(none)?;
        let (folder, name) = parts(file)?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|e| failed("create", folder, e))?;
        let dir =
            Dir::open_root(folder)?.ok_or_else(|| Error::usage(format!("{} is no directory", folder.display())))?;
        dir.check_private()?;
        let (held, _) = dir.make_file(LOCK)?;
        let busy = || Error::new(ErrorKind::Busy, "the list of trusted vaults is in use");
        let _held = lock::take_within(held, LockMode::Exclusive, lock_timeout, MESSAGES)?.ok_or_else(busy)?;
        let mut trusted = parse(&dir, name)?;
        trusted.retain(|other| other.path != vault.path);
        trusted.push(vault);
        if trusted.len() > limits::TRUSTED_MAX_COUNT {
            trusted.retain(|other| Path::new(&other.path).exists());
        }
        let line = |vault: &TrustedVault| serde_json::to_string(vault).expect("a plain struct") + "\n";
        dir.put(name, trusted.iter().map(line).collect::<String>().as_bytes())
    }
}

/// The directory and the name of the list.
fn parts(file: &Path) -> Result<(&Path, &str)> {
    let name = file.file_name().and_then(|name| name.to_str());
    file.parent().zip(name).ok_or_else(|| Error::usage(format!("{} cannot be a file", file.display())))
}

/// The vaults in a list; none if it does not exist.
fn read(file: &Path) -> Result<Vec<TrustedVault>> {
    let (folder, name) = parts(file)?;
    let Some(dir) = Dir::open_root(folder)? else { return Ok(Vec::new()) };
    dir.check_private()?;
    parse(&dir, name)
}

fn parse(dir: &Dir, name: &str) -> Result<Vec<TrustedVault>> {
    let bytes = dir.read_private(name, limits::TRUST_FILE_MAX_BYTES)?.unwrap_or_default();
    let wrong = |e: serde_json::Error| Error::usage(format!("{}: {e}", dir.path().join(name).display()));
    bytes
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|l| serde_json::from_slice(l).map_err(wrong))
        .collect()
}
