//! The head record, `chain.json`: where the published log ends.
//!
//! A small JSON object with a checksum, padded with spaces to a fixed size, so that one write rewrites it in place. It
//! is written after the log is synced: it may be behind the log, never ahead of it.

use serde::{Deserialize, Serialize};

use super::{Head, LogOffset, SegmentName};
use crate::base::{Digest, limits};
use crate::event::parse_ulid;

/// The newest version of the record that this program reads.
pub const RECORD_VERSION: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRecord {
    pub head: Head,
    pub count: u64,
    pub segment: SegmentName,
    /// End of the head's line in its segment.
    pub offset: u64,
}

/// The record as it is written.
#[derive(Serialize, Deserialize)]
struct HeadRecordJson {
    event_count: u64,
    head_hash: String,
    latest_event_id: String,
    offset: u64,
    segment: String,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<String>,
}

/// Why a record cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRecord {
    /// Torn or damaged; treated like a missing record.
    Invalid,
    /// HeadRecordJson by a newer version.
    Newer,
}

impl HeadRecord {
    /// Where the head's line ends.
    pub fn end(&self) -> LogOffset {
        LogOffset { segment: self.segment, offset: self.offset }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut json = HeadRecordJson {
            event_count: self.count,
            head_hash: self.head.hash.to_string(),
            latest_event_id: self.head.id.to_string(),
            offset: self.offset,
            segment: self.segment.to_string(),
            version: RECORD_VERSION,
            check: None,
        };
        json.check = Some(checksum(&json));
        let mut bytes = serde_json::to_vec(&json).expect("a plain struct");
        assert!(bytes.len() < limits::HEAD_RECORD_BYTES, "the head record outgrew its size");
        bytes.resize(limits::HEAD_RECORD_BYTES - 1, b' ');
        bytes.push(b'\n');
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, BadRecord> {
        let mut json: HeadRecordJson = serde_json::from_slice(bytes).map_err(|_| BadRecord::Invalid)?;
        let check = json.check.take().ok_or(BadRecord::Invalid)?;
        if check != checksum(&json) {
            return Err(BadRecord::Invalid);
        }
        if json.version > RECORD_VERSION {
            return Err(BadRecord::Newer);
        }
        let head = parse_ulid(&json.latest_event_id).zip(Digest::parse(&json.head_hash));
        match (head, SegmentName::parse(&json.segment)) {
            (Some((id, hash)), Some(segment)) => {
                Ok(HeadRecord { head: Head { id, hash }, count: json.event_count, segment, offset: json.offset })
            }
            _ => Err(BadRecord::Invalid),
        }
    }
}

/// The checksum of the record without its `check` member.
fn checksum(json: &HeadRecordJson) -> String {
    Digest::of_bytes(&serde_json::to_vec(json).expect("a plain struct")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Ulid;

    fn record() -> HeadRecord {
        HeadRecord {
            head: Head { id: Ulid::from_parts(1, 2), hash: Digest::of_bytes(b"x") },
            count: u64::MAX,
            segment: SegmentName::parse("2026-01/2026-01-31_1000.jsonl").unwrap(),
            offset: u64::MAX,
        }
    }

    #[test]
    fn a_record_reads_back_as_written_at_its_largest() {
        let bytes = record().encode();
        assert_eq!(bytes.len(), limits::HEAD_RECORD_BYTES);
        assert_eq!(HeadRecord::decode(&bytes), Ok(record()));
    }

    #[test]
    fn a_torn_or_flipped_record_is_invalid() {
        let bytes = record().encode();
        let text_end = bytes.iter().rposition(|&b| b == b'}').unwrap() + 1;
        for cut in 0..text_end {
            assert_eq!(HeadRecord::decode(&bytes[..cut]), Err(BadRecord::Invalid), "cut at {cut}");
            let mut zeroed = bytes.clone();
            zeroed[cut..].fill(0);
            assert_eq!(HeadRecord::decode(&zeroed), Err(BadRecord::Invalid), "zeros from {cut}");
        }
        for at in 0..text_end {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_ne!(HeadRecord::decode(&flipped), Ok(HeadRecord { count: 0, ..record() }));
            assert!(HeadRecord::decode(&flipped).is_err(), "flip at {at}");
        }
    }
}
