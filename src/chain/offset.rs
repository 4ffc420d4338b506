//! Offsets in the log: a segment and a byte in it.

use super::SegmentName;

/// A byte offset in one segment. Offsets are ordered as the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogOffset {
    pub segment: SegmentName,
    pub offset: u64,
}
