//! The hash chain: what makes a line valid, how lines follow each other, and where a log ends.
//!
//! Everything here is a pure function of bytes. `check_line` is also the reference check of the format: parse,
//! canonicalize, hash, compare.

mod offset;
pub mod record;
pub mod salvage;
pub mod segment;
pub mod strict;
pub mod tail;

use serde_json::Value;

use crate::base::{Digest, Ulid};
use crate::event::{BatchPosition, Event};

pub use offset::LogOffset;
pub use record::HeadRecord;
pub use segment::SegmentName;

/// The last event of a log, or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub id: Ulid,
    pub hash: Digest,
}

impl Head {
    /// The head of a log whose last event is this one.
    pub fn at(event: &Event) -> Self {
        Head { id: event.id, hash: event.hash }
    }

    /// Parses `ID:HASH`, the form of a head anchor.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, hash) = text.split_once(':')?;
        Some(Head { id: crate::event::parse_ulid(id)?, hash: Digest::parse(hash)? })
    }
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.id, self.hash)
    }
}

/// Checks one line on its own: canonical JSON, all members present, correct hash. `line` has no line end.
pub fn check_line(line: &[u8]) -> Result<Event, String> {
    let text = std::str::from_utf8(line).map_err(|e| format!("not UTF-8 at byte {}", e.valid_up_to()))?;
    let mut value: Value = serde_json::from_str(text).map_err(|e| format!("invalid JSON: {e}"))?;
    let canonical = serde_jcs::to_vec(&value).map_err(|e| format!("not canonical: {e}"))?;
    if canonical != line {
        let at = canonical.iter().zip(line).take_while(|(a, b)| a == b).count();
        return Err(format!("not canonical JSON: differs at byte {at}"));
    }
    let event = Event::read(line)?;
    if let Value::Object(object) = &mut value {
        object.remove("hash");
    }
    let computed = Digest::of_bytes(&serde_jcs::to_vec(&value).map_err(|e| format!("not canonical: {e}"))?);
    if computed != event.hash {
        return Err(format!("hash of event {} is {}, but its content hashes to {computed}", event.id, event.hash));
    }
    Ok(event)
}

/// Checks that an event follows `prev`: linked to its hash, with a greater id, at the right position of its batch.
/// `batch` are the events of the batch so far.
pub fn check_link(prev: Option<&Head>, batch: &[Event], event: &Event) -> Result<(), String> {
    let expected = prev.map_or(Digest::ZERO, |head| head.hash);
    if event.prev_hash != expected {
        return Err(format!("prev_hash of event {} is {}, expected {expected}", event.id, event.prev_hash));
    }
    if let Some(prev) = prev.filter(|head| head.id >= event.id) {
        return Err(format!("event_id {} is not greater than the previous one, {}", event.id, prev.id));
    }
    let last = batch.last().and_then(|last| last.batch);
    match (last, event.batch) {
        (None, None) => Ok(()),
        (None, Some(position)) if position.no == 1 => Ok(()),
        (Some(last), Some(position)) if position.of == last.of && position.no == last.no + 1 => Ok(()),
        _ => Err(format!("event {} is out of place in its batch", event.id)),
    }
}

/// Where and why a segment stops being valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Offset of the first byte that is not part of a valid batch.
    pub offset: usize,
    /// Offset of the first invalid line; greater than `offset` if it is inside a batch.
    pub line_offset: usize,
    pub message: String,
    /// The batch that was cut short: how many of its lines are valid, and how many it should have.
    pub batch: Option<(u64, u64)>,
}

/// What a scan of one segment found.
#[derive(Clone, Debug)]
pub struct Scan {
    /// End of the last valid batch.
    pub end: usize,
    pub head: Option<Head>,
    pub count: u64,
    pub fault: Option<Fault>,
}

/// Reads a segment's bytes from `start` up to the first fault. `head` is the event before `start`. Calls `visit` for
/// each event of a complete batch, with the offset of its line.
pub fn scan(bytes: &[u8], start: usize, head: Option<Head>, visit: &mut dyn FnMut(usize, &Event)) -> Scan {
    let mut done = Scan { end: start, head, count: 0, fault: None };
    let mut batch: Vec<Event> = Vec::new();
    let mut offsets: Vec<usize> = Vec::new();
    let mut at = start;
    while at < bytes.len() {
        let prev = batch.last().map(Head::at).or(done.head);
        let checked = match bytes[at..].iter().position(|&b| b == b'\n') {
            None => Err("the last line is incomplete (no newline)".to_owned()),
            Some(length) => check_line(&bytes[at..at + length])
                .and_then(|event| check_link(prev.as_ref(), &batch, &event).map(|()| (event, length))),
        };
        match checked {
            Err(message) => {
                let cut_short = batch.last().and_then(|e| e.batch).map(|position| (position.no, position.of));
                done.fault = Some(Fault { offset: done.end, line_offset: at, message, batch: cut_short });
                return done;
            }
            Ok((event, length)) => {
                let ends = event.ends_batch();
                batch.push(event);
                offsets.push(at);
                at += length + 1;
                if ends {
                    for (event, offset) in batch.iter().zip(offsets.drain(..)) {
                        visit(offset, event);
                    }
                    done.end = at;
                    done.count += batch.len() as u64;
                    done.head = batch.last().map(Head::at);
                    batch.clear();
                }
            }
        }
    }
    if let Some(BatchPosition { no, of }) = batch.last().and_then(|e| e.batch) {
        done.fault = Some(Fault {
            offset: done.end,
            line_offset: at,
            message: format!("a batch of {of} ends after {no}"),
            batch: Some((no, of)),
        });
    }
    done
}

#[cfg(test)]
pub(crate) mod fixture {
    //! Small logs for the tests of this layer and of those above it.

    use serde_json::json;

    use super::*;
    use crate::base::{Actor, Subject, Timestamp};
    use crate::event::{Draft, Kind};

    /// A line with this payload, which must be canonical.
    pub fn sealed(payload: &str) -> Vec<u8> {
        let draft = Draft {
            kind: Kind::EscalationRequired,
            subject: Subject::SYSTEM,
            actor: Actor::core("test"),
            parents: vec![Ulid::from_parts(1, 1), Ulid::from_parts(1, 2)],
            key: Some("a \"key\"".to_owned()),
            payload: serde_json::from_str(payload).unwrap(),
        };
        Event::from_draft(draft, Ulid::from_parts(2, 1), Timestamp(0)).seal(Digest::of_bytes(b"x"), None)
    }

    /// A log of batches of the given lengths, the offset at which each batch ends, and its events.
    pub fn log(batches: &[u64]) -> (Vec<u8>, Vec<usize>, Vec<Event>) {
        let (mut bytes, mut ends, mut events) = (Vec::new(), Vec::new(), Vec::<Event>::new());
        for &of in batches {
            for no in 1..=of {
                let n = events.len() as u128;
                let draft = Draft {
                    kind: Kind::RequirementProposed,
                    subject: Subject::parse(&format!("requirement:r{n}")).unwrap(),
                    actor: Actor::parse("user:jo").unwrap(),
                    parents: vec![],
                    key: None,
                    payload: json!({"title": "x"}).as_object().unwrap().clone(),
                };
                let mut event = Event::from_draft(draft, Ulid::from_parts(1, n), Timestamp(0));
                let prev = events.last().map_or(Digest::ZERO, |e| e.hash);
                bytes.extend(event.seal(prev, (of > 1).then_some(BatchPosition { no, of })));
                bytes.push(b'\n');
                events.push(event);
            }
            ends.push(bytes.len());
        }
        (bytes, ends, events)
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::log;
    use super::*;

    #[test]
    fn a_good_log_scans_to_its_end() {
        let (bytes, _, events) = log(&[1, 3, 1]);
        let mut seen = Vec::new();
        let scan = scan(&bytes, 0, None, &mut |_, event| seen.push(event.clone()));
        assert_eq!((scan.end, scan.count, scan.fault), (bytes.len(), 5, None));
        assert_eq!(scan.head, events.last().map(Head::at));
        assert_eq!(seen, events);
    }

    #[test]
    fn a_flipped_bit_in_any_byte_is_a_fault_at_its_line() {
        let (bytes, ends, _) = log(&[1, 2, 1]);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let fault = scan(&damaged, 0, None, &mut |_, _| {}).fault.expect("damage passes");
                let batch_start = ends.iter().copied().filter(|&end| end <= at).max().unwrap_or(0);
                assert!(fault.offset <= at && fault.offset >= batch_start, "byte {at} bit {bit}: {fault:?}");
            }
        }
    }

    #[test]
    fn removed_swapped_and_repeated_lines_are_faults() {
        let (bytes, _, _) = log(&[1, 1, 1, 1]);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|&b| b == b'\n').collect();
        for order in [vec![0, 2, 3], vec![0, 2, 1, 3], vec![0, 1, 1, 2], vec![1, 2, 3], vec![0, 0]] {
            let log: Vec<u8> = order.iter().flat_map(|&i: &usize| lines[i].to_vec()).collect();
            assert!(scan(&log, 0, None, &mut |_, _| {}).fault.is_some(), "{order:?}");
        }
    }

    #[test]
    fn what_is_the_same_to_a_json_reader_is_still_a_fault() {
        let (bytes, _, _) = log(&[1]);
        let text = String::from_utf8(bytes).unwrap();
        for (from, to) in [
            ("{\"$schema\"", "{ \"$schema\""),
            ("\"version\":1", "\"version\":1.0"),
            ("\"title\":\"x\"", "\"title\":\"\\u0078\""),
            ("\"title\":\"x\"", "\"title\":\"y\",\"title\":\"x\""),
            ("\n", "\r\n"),
            ("\"version\":1}", "\"version\":1,\"hash\":\"sha256:0\"}"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            assert!(scan(changed.as_bytes(), 0, None, &mut |_, _| {}).fault.is_some(), "{to}");
        }
        let with_mark = format!("\u{feff}{text}");
        assert!(scan(with_mark.as_bytes(), 0, None, &mut |_, _| {}).fault.is_some());
    }
}
