//! What can still be read after damage: the intact lines, and the bytes between them.
//!
//! Invariant: the pieces of some bytes are all of these bytes, in order (`pieces_are_all_of_the_bytes_in_order`).

use std::ops::Range;

use super::strict::{self, ChainLink};
use super::{Head, check_line};
use crate::base::{Digest, Ulid, limits};
use crate::event::parse_ulid;

/// A piece of a damaged segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// One line with its line end, valid on its own whatever is before it.
    Intact(Range<usize>, ChainLink),
    /// Consecutive bytes that are no valid line.
    Damaged(Range<usize>),
}

/// Splits bytes into intact lines and what is between them.
pub fn pieces(bytes: &[u8]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |newline| start + newline + 1);
        match (link(&bytes[start..end]), pieces.last_mut()) {
            (Some(link), _) => pieces.push(Piece::Intact(start..end, link)),
            (None, Some(Piece::Damaged(range))) => range.end = end,
            (None, _) => pieces.push(Piece::Damaged(start..end)),
        }
        start = end;
    }
    pieces
}

/// The link of a line that is valid on its own, with its line end.
fn link(line: &[u8]) -> Option<ChainLink> {
    let line = line.strip_suffix(b"\n").filter(|line| line.len() < limits::EVENT_MAX_BYTES)?;
    strict::check(line).or_else(|| check_line(line).ok().map(|event| ChainLink::from_event(&event)))
}

/// The id in a damaged line, if the line can be recognized as the one between two events: it still names the hash of
/// the event before it, or is named by the event after it, and its id lies between theirs.
pub fn id_between(line: &[u8], before: Option<Head>, after: Option<ChainLink>) -> Option<Ulid> {
    let line = memchr::memchr(b'\n', line).map_or(line, |newline| &line[..newline]);
    let value = |name: &str| {
        let start = memchr::memmem::find(line, format!("\"{name}\":\"").as_bytes())? + name.len() + 4;
        let end = start + memchr::memchr(b'"', &line[start..])?;
        std::str::from_utf8(&line[start..end]).ok()
    };
    let names = |name: &str, hash: Digest| value(name) == Some(hash.to_string().as_str());
    let is_recognized = names("prev_hash", before.map_or(Digest::ZERO, |head| head.hash))
        || after.is_some_and(|link| names("hash", link.prev_hash));
    let id = parse_ulid(value("event_id")?).filter(|_| is_recognized)?;
    (before.is_none_or(|head| head.id < id) && after.is_none_or(|link| id < link.head.id)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::log;
    use super::*;

    /// The ids of the intact lines, and the damaged bytes.
    fn sorted(bytes: &[u8]) -> (Vec<Ulid>, Vec<Range<usize>>) {
        let (mut ids, mut damaged, mut end) = (Vec::new(), Vec::new(), 0);
        for piece in pieces(bytes) {
            let range = match piece {
                Piece::Intact(range, link) => {
                    ids.push(link.head.id);
                    range
                }
                Piece::Damaged(range) => {
                    damaged.push(range.clone());
                    range
                }
            };
            assert!(range.start == end && range.end > end, "{range:?} after {end}");
            end = range.end;
        }
        assert_eq!(end, bytes.len());
        (ids, damaged)
    }

    #[test]
    fn pieces_are_all_of_the_bytes_in_order() {
        let (bytes, _, events) = log(&[1, 3, 1]);
        let starts: Vec<usize> = (0..bytes.len()).filter(|&at| at == 0 || bytes[at - 1] == b'\n').collect();
        for at in (0..bytes.len()).step_by(7) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let line = starts.iter().rposition(|&start| start <= at).unwrap();
            let (ids, damaged) = sorted(&flipped);
            // A line end that is gone joins two lines.
            let lost = 1 + usize::from(bytes[at] == b'\n' && line + 1 < events.len());
            assert!(ids.len() >= events.len() - lost, "byte {at}: {ids:?}");
            assert!(damaged.iter().any(|range| range.contains(&at)), "byte {at}: {damaged:?}");
            assert!(ids.iter().all(|id| events.iter().any(|event| event.id == *id)));
        }
        assert_eq!(sorted(&bytes[..bytes.len() - 1]).0.len(), events.len() - 1);
        assert_eq!(sorted(b""), (vec![], vec![]));
        assert_eq!(sorted(b"a\nb\n\0\0").1, vec![0..6]);
        let around = [b"junk\n", &bytes[..], b"torn"].concat();
        assert_eq!(sorted(&around).0, events.iter().map(|event| event.id).collect::<Vec<_>>());
    }

    #[test]
    fn the_id_of_a_damaged_line_counts_only_between_its_neighbors() {
        let (bytes, ends, events) = log(&[1, 1, 1]);
        let (before, after) = (Some(Head::at(&events[0])), Some(ChainLink::from_event(&events[2])));
        let damaged = |from: &str, to: &str| {
            let line = String::from_utf8(bytes[ends[0]..ends[1]].to_vec()).unwrap();
            let changed = line.replace(from, to);
            assert_ne!(changed, line);
            changed.into_bytes()
        };
        let id = events[1].id;
        assert_eq!(id_between(&damaged("\"x\"", "\"y\""), before, after), Some(id));
        assert_eq!(id_between(&damaged("\"x\"", "\"y\""), before, None), Some(id));
        assert_eq!(id_between(&damaged("prev_hash", "prev_hasj"), before, after), Some(id));
        assert_eq!(id_between(&damaged("prev_hash", "prev_hasj"), before, None), None);
        assert_eq!(id_between(&damaged(&id.to_string(), &events[2].id.to_string()), before, after), None);
        assert_eq!(id_between(&damaged("event_id", "event_ie"), before, after), None);
        assert_eq!(id_between(b"\0\0\0", before, after), None);
    }
}
