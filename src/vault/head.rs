//! `chain.json`: reading the published head, and publishing a new one in place.

use std::os::unix::fs::FileExt;

use super::files::{Dir, failed};
use crate::base::Result;
use crate::chain::record::{BadRecord, HeadRecord};

pub const HEAD_FILE: &str = "chain.json";

/// A read during a rewrite can see parts of both versions, so it is tried this often.
const READ_ATTEMPTS: usize = 5;

/// The content of the head record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    Valid(HeadRecord),
    Missing,
    Invalid,
    Newer,
}

pub fn read(akashic: &Dir) -> Result<Published> {
    let mut last = Published::Missing;
    for _ in 0..READ_ATTEMPTS {
        let Some(bytes) = akashic.read(HEAD_FILE)? else { return Ok(Published::Missing) };
        last = match HeadRecord::decode(&bytes) {
            Ok(record) => return Ok(Published::Valid(record)),
            Err(BadRecord::Newer) => return Ok(Published::Newer),
            Err(BadRecord::Invalid) => Published::Invalid,
        };
    }
    Ok(last)
}

/// Publishes a head that is already durable. Not synced: after a power failure, the record may be behind the log.
pub fn publish(akashic: &Dir, record: &HeadRecord) -> Result<()> {
    let (file, _) = akashic.make_file(HEAD_FILE)?;
    file.write_all_at(&record.encode(), 0).map_err(|e| failed("write", &akashic.path().join(HEAD_FILE), e))
}
