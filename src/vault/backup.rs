//! A consistent, verified copy of a vault.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::files::{self, Dir, failed};
use super::lock::LockMode;
use super::{Scope, Vault, layout};
use crate::base::{Error, Reason, Result, limits};
use crate::chain::Head;

/// What was copied.
#[derive(Debug)]
pub struct BackedUp {
    pub head: Option<Head>,
    pub events: u64,
    pub files: u64,
    pub bytes: u64,
}

/// Copies the vault to `target`, which must not exist or must be empty. The copy is made next to it, verified, and
/// renamed only then, so that `target` is never an incomplete backup.
pub fn backup(vault: &Vault, target: &Path, unique: &str) -> Result<BackedUp> {
    refuse_target(vault, target)?;
    let mut name = target
        .file_name()
        .ok_or_else(|| Error::usage("invalid target for a backup; must be a directory name"))?
        .to_owned();
    name.push(format!("{PARTIAL}{unique}"));
    let beside = target.with_file_name(name);
    files::make_parents(target)?;
    sweep(target)?;
    let copied = begin(&beside).and_then(|_held| copy_and_verify(vault, &beside, target));
    if copied.is_err() {
        // Our own incomplete copy, under a name that only we use.
        let _ = fs::remove_dir_all(&beside);
    }
    copied
}

/// In `Akashic/`: what is derived, or only meaningful on this machine, and the stop flags, which the copy gets as one.
const LEFT_OUT: &[&str] =
    &[super::index::INDEX, super::clock::CLOCK_FILE, super::control::CONTROL_FILE, super::stop_entry::STOP_ENTRY];

/// In the directory of a job: how to start it, with the variables that it was given, which may be secrets. A copy starts
/// nothing.
const JOBS: &str = "Jobs";
const JOB_SPEC: &str = "spec.json";

/// Separates the name of a backup from the random suffix of its incomplete copy.
const PARTIAL: &str = ".partial-";
const UNIQUE_CHARS: usize = 8;

/// Creates the directory of the copy and locks it while the copy is made: one that is not locked was left by a process
/// that died.
fn begin(beside: &Path) -> Result<Dir> {
    // Until it is locked, another backup can mistake the new directory for an abandoned one and remove it.
    for _ in 0..3 {
        DirBuilder::new().mode(0o700).create(beside).map_err(|e| failed("create", beside, e))?;
        if let Some(held) = Dir::open_root(beside)?.filter(|dir| dir.try_lock().unwrap_or(false))
            && beside.exists()
        {
            return Ok(held);
        }
    }
    Err(Error::system("cannot make the backup", "its directory was removed"))
}

/// Removes abandoned incomplete copies for this target.
fn sweep(target: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let entries = fs::read_dir(parent).map_err(|e| failed("read", parent, e))?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let unique = path.file_name().and_then(|n| n.to_str()?.strip_prefix(name)?.strip_prefix(PARTIAL));
        let ours = |unique: &str| unique.len() == UNIQUE_CHARS && unique.bytes().all(|b| b.is_ascii_hexdigit());
        if !unique.is_some_and(ours) || !fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        if let Some(dir) = Dir::open_root(&path)?
            && dir.check_private().is_ok()
            && dir.try_lock()?
        {
            fs::remove_dir_all(&path).map_err(|e| failed("remove", &path, e))?;
        }
    }
    Ok(())
}

fn copy_and_verify(vault: &Vault, beside: &Path, target: &Path) -> Result<BackedUp> {
    let mut done = BackedUp { head: None, events: 0, files: 0, bytes: 0 };
    {
        // Shared: readers and other backups continue, writers wait.
        let _guard = vault.lock_if_possible(LockMode::Shared)?;
        copy_dir(&vault.root, beside, Path::new(""), &mut done)?;
    }
    let copy = Vault::open(beside)?;
    // A stop that is not recorded yet is in force in the copy, too, whichever way it was raised.
    copy.make_control(vault.stop_flag().as_ref())?;
    (done.files, done.bytes) = (done.files + 1, done.bytes + limits::CONTROL_RECORD_BYTES as u64);
    let verified = copy.verify(Scope::ALL, &mut |_, _| {})?;
    if !verified.passed_but_for_tail() {
        return Err(Error::corrupt(format!("{} failed verification; no backup was made", vault.path().display())));
    }
    (done.head, done.events) = (verified.head, verified.count);
    fs::rename(beside, target).map_err(|e| failed("rename", target, e))?;
    if let Err(error) = files::sync_parent(target) {
        // It may be gone after a power failure, so it does not count as made and must not be left there.
        let _ = fs::remove_dir_all(target);
        return Err(error);
    }
    Ok(done)
}

fn copy_dir(from: &Dir, to: &Path, inside: &Path, done: &mut BackedUp) -> Result<()> {
    // The outermost directory already exists and is locked.
    if !inside.as_os_str().is_empty() {
        DirBuilder::new().mode(0o700).create(to).map_err(|e| failed("create", to, e))?;
    }
    let is_spec = |name: &str| inside.parent() == Some(Path::new(JOBS)) && name == JOB_SPEC;
    let is_of_machine =
        |name: &str| LEFT_OUT.iter().any(|left_out| inside.join(name) == Path::new(layout::AKASHIC).join(left_out));
    let is_left_out = |name: &str| is_spec(name) || is_of_machine(name);
    for (name, is_dir) in from.list_all(&is_left_out)? {
        let odd =
            || Error::refused(Reason::OddName, format!("{} contains a name that is not UTF-8", from.path().display()));
        let name = name.ok_or_else(odd)?;
        let place: PathBuf = inside.join(&name);
        if is_dir {
            if let Some(dir) = from.dir(&name)? {
                copy_dir(&dir, &to.join(&name), &place, done)?;
            }
            continue;
        }
        let Some(mut source) = from.open_file(&name)? else { continue };
        let target = to.join(&name);
        let copied =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target).and_then(|mut file: File| {
                let bytes = io::copy(&mut source, &mut file)?;
                file.sync_all()?;
                Ok(bytes)
            });
        done.bytes += copied.map_err(|e| failed("copy to", &target, e))?;
        done.files += 1;
    }
    File::open(to).and_then(|dir| dir.sync_all()).map_err(|e| failed("sync", to, e))
}

fn refuse_target(vault: &Vault, target: &Path) -> Result<()> {
    if let Some(dir) = Dir::open_root(target)? {
        if !dir.list()?.is_empty() {
            return Err(Error::refused(
                Reason::NotEmpty,
                format!("{} is not empty; choose a new directory for the backup", target.display()),
            ));
        }
    } else if target.exists() {
        return Err(Error::refused(Reason::NotEmpty, format!("{} exists and is not a directory", target.display())));
    }
    match whole(target)?.starts_with(whole(vault.path())?) {
        true => Err(Error::usage("a backup must not be inside the vault")),
        false => Ok(()),
    }
}

/// The canonical form of the existing part of a path.
fn whole(path: &Path) -> Result<PathBuf> {
    for part in path.ancestors() {
        match fs::canonicalize(part) {
            Ok(whole) => return Ok(whole),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed("resolve", part, e)),
        }
    }
    fs::canonicalize(".").map_err(|e| failed("resolve", Path::new("."), e))
}
