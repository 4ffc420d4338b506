//! `Akashic/clock`: the machine's clocks at the last write to the log. A record of 64 bytes, rewritten in place. It is only
//! meaningful on this machine, and optional: without it, the next writer cannot tell whether the clock was set.

use std::os::unix::fs::FileExt;

use super::Vault;
use super::files::failed;
use crate::base::{Clocks, Digest, Now, Result};

pub(super) const CLOCK_FILE: &str = "clock";
const RECORD_BYTES: usize = 64;
/// The bytes before the checksum.
const BODY_BYTES: usize = 40;

fn encode(clocks: &Clocks) -> [u8; RECORD_BYTES] {
    let mut record = [b' '; RECORD_BYTES];
    record[..16].copy_from_slice(&clocks.boot_id);
    for (at, number) in [(16, clocks.real.millis), (24, clocks.since_boot_ms), (32, clocks.awake_ms)] {
        record[at..at + 8].copy_from_slice(&number.to_be_bytes());
    }
    let check = checksum(&record[..BODY_BYTES]);
    record[BODY_BYTES..BODY_BYTES + check.len()].copy_from_slice(&check);
    record[RECORD_BYTES - 1] = b'\n';
    record
}

fn decode(record: &[u8]) -> Option<Clocks> {
    let record: &[u8; RECORD_BYTES] = record.try_into().ok()?;
    if record[BODY_BYTES..BODY_BYTES + 8] != checksum(&record[..BODY_BYTES]) {
        return None;
    }
    let number = |at: usize| record[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    Some(Clocks {
        boot_id: record[..16].try_into().ok()?,
        real: Now { millis: number(16)? },
        since_boot_ms: number(24)?,
        awake_ms: number(32)?,
    })
}

fn checksum(body: &[u8]) -> [u8; 8] {
    let digest = Digest::of_bytes(body).to_string();
    let hex = digest.rsplit(':').next().unwrap_or_default().as_bytes();
    hex[..8].try_into().expect("a digest is longer")
}

impl Vault {
    /// The clocks at the last write; `None` if they are unknown or the record is damaged.
    pub fn clock_seen(&self) -> Result<Option<Clocks>> {
        Ok(self.akashic.read(CLOCK_FILE)?.and_then(|record| decode(&record)))
    }

    /// Records the clocks. The caller holds the lock.
    pub fn remember_clock(&self, clocks: &Clocks) -> Result<()> {
        let (file, _) = self.akashic.make_file(CLOCK_FILE)?;
        let written = file.write_all_at(&encode(clocks), 0).and_then(|()| file.set_len(RECORD_BYTES as u64));
        written.map_err(|e| failed("write", &self.akashic.path().join(CLOCK_FILE), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_a_damaged_one_is_none() {
        let clocks = Clocks { boot_id: [7; 16], real: Now { millis: 1 }, since_boot_ms: 2, awake_ms: u64::MAX };
        let record = encode(&clocks);
        assert_eq!(decode(&record), Some(clocks));
        for at in 0..BODY_BYTES + 8 {
            let mut torn = record;
            torn[at] ^= 1;
            assert_eq!(decode(&torn), None, "{at}");
        }
        assert_eq!(decode(&record[..60]), None);
    }
}
