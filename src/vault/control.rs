//! The stop flag, which every command and every job checks. It can be raised in two ways:
//!
//! - `Akashic/control`, a small record with a checksum and a fixed size, which exists from the start and is rewritten in
//!   place: that needs neither the vault's lock nor an intact log nor disk space.
//! - An entry `Akashic/stop` of any type (`stop_entry`), if something is in the way of the first: another process holds
//!   the record's lock, or there is a directory in its place. An operator without this program can create one, too.
//!
//! Nothing that is left in the vault keeps a stop from being raised, or a reader from seeing it.
//!
//! Invariant: a flag is raised before the event of the stop is recorded, and lowered only if that event is in the log, so
//! that no stop is lost in between.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::files::{self, failed};
use super::layout::AKASHIC;
use super::lock::{self, LockMessages, LockMode};
use super::{Vault, stop_entry};
use crate::base::{Error, ErrorKind, Reason, Result, Timestamp, limits, seal, text};
use crate::event::parse_ulid;

pub const CONTROL_FILE: &str = "control";
/// A read during a rewrite can see parts of both versions, so it is tried this often.
const READ_ATTEMPTS: usize = 5;
/// A reason of this length fits the record, whatever characters it contains.
pub(super) const REASON_MAX_CHARS: usize = 150;
/// How long to wait for the lock of the record, which nobody holds for longer than it takes to write it to the disk.
const LOCK_WAIT: Duration = Duration::from_millis(500);
const OF_RECORD: LockMessages =
    LockMessages { lock: "cannot lock the control file", wait: "cannot wait for the control file's lock" };

/// A stop of all work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopFlag {
    /// The id of this stop, which its event contains, too.
    pub id: String,
    pub reason: String,
    pub by: String,
}

impl StopFlag {
    /// When it was raised.
    pub fn raised_at(&self) -> Option<Timestamp> {
        parse_ulid(&self.id).map(|id| Timestamp((id.timestamp_ms() / 1000) as i64))
    }

    /// The idempotency key of the event that records it.
    pub fn key(&self) -> String {
        format!("stop:{}", self.id)
    }
}

/// The record as it is written.
#[derive(Serialize, Deserialize)]
struct StopRecord {
    stop: Option<StopFlag>,
}

pub(super) fn encode(stop: Option<&StopFlag>) -> Vec<u8> {
    let stop = stop.map(|stop| StopFlag { reason: text::cut(&stop.reason, REASON_MAX_CHARS), ..stop.clone() });
    let mut bytes = seal::seal(&StopRecord { stop });
    assert!(bytes.len() < limits::CONTROL_RECORD_BYTES, "the control record outgrew its size");
    bytes.resize(limits::CONTROL_RECORD_BYTES - 1, b' ');
    bytes.push(b'\n');
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Option<Option<StopFlag>> {
    seal::open::<StopRecord>(bytes).ok().map(|control| control.stop)
}

impl Vault {
    /// The flag in force, if one is raised.
    pub fn stop_flag(&self) -> Option<StopFlag> {
        self.stop_flags().into_iter().next()
    }

    /// What changes when a flag is raised.
    pub fn stop_paths(&self) -> [PathBuf; 2] {
        [CONTROL_FILE, stop_entry::STOP_ENTRY].map(|name| self.path().join(AKASHIC).join(name))
    }

    /// Every flag that is raised. What cannot be read is not raised, and is said; the stop is in the log, too.
    pub fn stop_flags(&self) -> Vec<StopFlag> {
        let mut flags: Vec<StopFlag> = Vec::new();
        for found in [self.raised_record(), stop_entry::read(&self.akashic)] {
            match found {
                // The entry may be another name of the record.
                Ok(flag) => flags.extend(flag.filter(|flag| flags.iter().all(|other| other.id != flag.id))),
                Err(error) => self.notices.add([format!("cannot read the stop flag: {error}")]),
            }
        }
        flags
    }

    /// Raises the flag. If one is already raised, it stays unchanged.
    pub fn raise_stop(&self, stop: &StopFlag) -> Result<()> {
        self.root.check_owner()?;
        if self.stop_flag().is_some() {
            return Ok(());
        }
        let first_way = self.write_record(Some(stop), |up| up.is_none());
        // Looked at again: the file may have been replaced while it was written.
        if first_way.is_ok() && self.stop_flag().is_some() {
            return Ok(());
        }
        stop_entry::create(&self.akashic, &encode(Some(stop)))?;
        match self.stop_flag() {
            Some(_) => Ok(()),
            None => Err(Error::system("cannot raise the stop flag", "it was removed at once")),
        }
    }

    /// Lowers the flag of this stop, which is in the log. If another stop has raised it since, it stays raised.
    pub fn lower_stop(&self, stop: &StopFlag) -> Result<()> {
        if stop_entry::read(&self.akashic).is_ok_and(|flag| flag.is_some_and(|flag| flag.id == stop.id)) {
            stop_entry::remove(&self.akashic)?;
        }
        let is_ours = |up: Option<&StopFlag>| up.is_some_and(|up| up.id == stop.id);
        if !is_ours(self.raised_record().unwrap_or_default().as_ref()) {
            return Ok(());
        }
        match self.write_record(None, is_ours) {
            Ok(()) => Ok(()),
            // The lock is on the old file, not on the one that replaces it.
            Err(_) => self.akashic.put(CONTROL_FILE, &encode(None)),
        }
    }

    /// Creates the record, with the flag that is raised if there is one.
    pub(super) fn make_control(&self, raised: Option<&StopFlag>) -> Result<()> {
        self.write_record(raised, |_| true)
    }

    /// The flag in the record.
    fn raised_record(&self) -> Result<Option<StopFlag>> {
        for _ in 0..READ_ATTEMPTS {
            let read = self.akashic.read_prefix(CONTROL_FILE, limits::CONTROL_RECORD_BYTES + 1)?;
            let Some(bytes) = read else { return Ok(None) };
            if let Some(stop) = decode(&bytes) {
                return Ok(stop);
            }
        }
        Ok(None)
    }

    /// Rewrites the record in place, if that is still right for the flag that is found there.
    fn write_record(&self, stop: Option<&StopFlag>, is_right: impl FnOnce(Option<&StopFlag>) -> bool) -> Result<()> {
        let (file, made) = self.akashic.make_file(CONTROL_FILE)?;
        let writing = file.try_clone().map_err(|e| Error::system("cannot open the control file", e))?;
        let held = lock::take_within(file, LockMode::Exclusive, LOCK_WAIT, OF_RECORD)?;
        let _held = held.ok_or_else(|| Error::new(ErrorKind::Busy, "another process has locked the control file"))?;
        if !is_right(self.raised_record()?.as_ref()) {
            return Ok(());
        }
        let bytes = encode(stop);
        let wrong = |e| failed("write", &self.akashic.path().join(CONTROL_FILE), e);
        writing.write_all_at(&bytes, 0).map_err(wrong)?;
        // Bytes after the record would make it invalid permanently.
        let longer = writing.metadata().map_err(wrong)?.len() > bytes.len() as u64;
        if longer {
            writing.set_len(bytes.len() as u64).map_err(wrong)?;
        }
        writing.sync_data().map_err(wrong)?;
        if made { self.akashic.sync() } else { Ok(()) }
    }
}

/// Makes the directories that a stop needs accessible to their owner, if their mode is in the way.
pub fn make_accessible(path: &Path) {
    for dir in [path.to_owned(), path.join(AKASHIC)] {
        // If it cannot be changed, opening the vault says why.
        let _ = files::grant_owner(&dir);
    }
}

/// The error if a flag cannot be lowered: everything stays stopped.
pub fn still_stopped(error: &Error) -> Error {
    Error::refused(Reason::SystemStopped, format!("everything stays stopped: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_a_damaged_one_says_nothing() {
        let stop =
            StopFlag { id: "x".repeat(26), reason: "\u{1}火".repeat(100), by: "user:".to_owned() + &"n".repeat(64) };
        let bytes = encode(Some(&stop));
        assert_eq!(bytes.len(), limits::CONTROL_RECORD_BYTES);
        assert_eq!(decode(&bytes).unwrap().unwrap().id, stop.id);
        assert_eq!(decode(&encode(None)), Some(None));
        let text_end = bytes.iter().rposition(|&b| b == b'}').unwrap() + 1;
        for at in 0..text_end {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(decode(&flipped), None, "flip at {at}");
        }
    }
}
