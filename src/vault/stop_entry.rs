//! `Akashic/stop`: a directory entry of any type is a stop. It is the way to raise one if the record in `control` cannot
//! be written, and the way of an operator without this program: `touch Vault/Akashic/stop`.
//!
//! This program writes a file with the same record as in `control`. The first line of any other file is the reason, if it
//! is written by the time that somebody looks; of everything else only the type and the owner are known. Nothing is
//! followed, and nothing blocks.

use super::control::{self, StopFlag};
use super::files::{Dir, Entry};
use super::layout::{AKASHIC, LOCK_FILE};
use crate::base::{Digest, Error, Result, Ulid, limits, text};

pub(super) const STOP_ENTRY: &str = "stop";
/// The actor of a stop that this program did not raise.
const ACTOR: &str = "external:stop-entry";

/// The flag that the entry is; none if there is no entry.
pub(super) fn read(akashic: &Dir) -> Result<Option<StopFlag>> {
    let Some(entry) = akashic.entry(STOP_ENTRY)? else { return Ok(None) };
    // If it cannot be read, it is an entry all the same.
    let bytes = akashic.read_prefix(STOP_ENTRY, limits::CONTROL_RECORD_BYTES + 1).ok().flatten().unwrap_or_default();
    if let Some(Some(flag)) = control::decode(&bytes) {
        return Ok(Some(flag));
    }
    let reason = words(&entry, &bytes).unwrap_or_else(|| {
        format!("{AKASHIC}/{STOP_ENTRY} exists: {} that belongs to uid {}", entry.type_name(), entry.uid)
    });
    Ok(Some(StopFlag { id: id_of(&entry).to_string(), reason, by: ACTOR.to_owned() }))
}

/// The first line of a file that somebody wrote.
fn words(entry: &Entry, bytes: &[u8]) -> Option<String> {
    // One with several names is another file of the vault.
    let text = std::str::from_utf8(bytes).ok().filter(|_| !entry.has_other_names)?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| text::cut(line, control::REASON_MAX_CHARS))
}

/// An id for an entry without one: the same as long as the entry is the same.
fn id_of(entry: &Entry) -> Ulid {
    let digest = Digest::of_bytes(format!("{}:{}", entry.number, entry.changed_ns).as_bytes());
    let random = u128::from_str_radix(&digest.hex()[..20], 16).expect("hexadecimal digits");
    Ulid::from_parts((entry.changed_ns / 1_000_000).max(0) as u64, random)
}

/// Creates the entry, as the best that can be created. An entry that exists stays unchanged.
pub(super) fn create(akashic: &Dir, record: &[u8]) -> Result<()> {
    let first = match akashic.put_new(STOP_ENTRY, record) {
        Ok(()) => return akashic.sync(),
        Err(error) => error,
    };
    let is_there = || akashic.entry(STOP_ENTRY).is_ok_and(|entry| entry.is_some());
    // A wrong mode is in the way, or a full disk: a second name of a file needs no space.
    let others: [&dyn Fn() -> Result<()>; 4] = [
        &|| akashic.make_private().and_then(|()| akashic.make_new(STOP_ENTRY, record)),
        &|| akashic.link(LOCK_FILE, STOP_ENTRY),
        &|| akashic.link(control::CONTROL_FILE, STOP_ENTRY),
        &|| akashic.make_dir(STOP_ENTRY).map(drop),
    ];
    for create in others {
        if is_there() || create().is_ok() {
            // If this fails, the stop lasts until the next restart of the machine, and that ends all jobs anyway.
            let _ = akashic.sync();
            return Ok(());
        }
    }
    if is_there() { Ok(()) } else { Err(first) }
}

/// Removes the entry, whatever it is, unless it is a directory with something in it.
pub(super) fn remove(akashic: &Dir) -> Result<()> {
    let removed = match akashic.entry(STOP_ENTRY)? {
        None => return Ok(()),
        Some(entry) if entry.is_dir() => akashic.remove_dir(STOP_ENTRY),
        Some(_) => akashic.remove(STOP_ENTRY),
    };
    removed.map_err(|error| Error { message: format!("{}; remove it first", error.message), ..error })?;
    akashic.sync()
}
