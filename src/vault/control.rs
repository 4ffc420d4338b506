//! `Akashic/control`: the stop flag. A small record with a checksum and a fixed size, which exists from the start and is
//! rewritten in place: raising the flag needs neither the vault's lock nor an intact log nor disk space.
//!
//! Invariant: the flag is raised before the event of the stop is recorded, and lowered after the event that ends it.

use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::Vault;
use super::files::failed;
use super::lock::{self, LockMode};
use crate::base::{Error, Result, Timestamp, limits, seal, text};
use crate::event::parse_ulid;

pub const CONTROL_FILE: &str = "control";
/// A read during a rewrite can see parts of both versions, so it is tried this often.
const READ_ATTEMPTS: usize = 5;
/// A reason of this length fits the record, whatever characters it contains.
const REASON_MAX_CHARS: usize = 150;

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

fn encode(stop: Option<&StopFlag>) -> Vec<u8> {
    let stop = stop.map(|stop| StopFlag { reason: text::cut(&stop.reason, REASON_MAX_CHARS), ..stop.clone() });
    let mut bytes = seal::seal(&StopRecord { stop });
    assert!(bytes.len() < limits::CONTROL_RECORD_BYTES, "the control record outgrew its size");
    bytes.resize(limits::CONTROL_RECORD_BYTES - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn decode(bytes: &[u8]) -> Option<Option<StopFlag>> {
    seal::open::<StopRecord>(bytes).ok().map(|control| control.stop)
}

impl Vault {
    /// The flag, if it is raised. A damaged record counts as not raised; the stop is in the log, too.
    pub fn stop_flag(&self) -> Result<Option<StopFlag>> {
        for _ in 0..READ_ATTEMPTS {
            let Some(bytes) = self.akashic.read(CONTROL_FILE)? else { return Ok(None) };
            if let Some(stop) = decode(&bytes) {
                return Ok(stop);
            }
        }
        Ok(None)
    }

    /// Raises the flag, which every command and every job checks. A flag that is already raised stays unchanged.
    pub fn raise_stop(&self, stop: &StopFlag) -> Result<()> {
        self.rewrite(|up| match up {
            Some(_) => None,
            None => Some(encode(Some(stop))),
        })
    }

    /// Lowers the flag of this stop. If another stop has raised it since, it stays raised.
    pub fn lower_stop(&self, stop: &StopFlag) -> Result<()> {
        self.rewrite(|up| (up == Some(stop.id.as_str())).then(|| encode(None)))
    }

    /// Creates the record in a new vault.
    pub(super) fn make_control(&self) -> Result<()> {
        self.rewrite(|_| Some(encode(None)))
    }

    /// Rewrites the record in place, if there is something to write.
    fn rewrite(&self, next: impl FnOnce(Option<&str>) -> Option<Vec<u8>>) -> Result<()> {
        self.check_private()?;
        let (file, made) = self.akashic.make_file(CONTROL_FILE)?;
        let writing = file.try_clone().map_err(|e| Error::system("cannot open the control file", e))?;
        let _guard = lock::take(file, LockMode::Exclusive, self.lock_timeout)?;
        let up = self.stop_flag()?;
        let Some(bytes) = next(up.as_ref().map(|stop| stop.id.as_str())) else { return Ok(()) };
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
