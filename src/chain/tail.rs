//! What the end of a log can look like, and what it means.
//!
//! A writer that dies can leave bytes after the published head. This table distinguishes what a crash or power failure
//! can leave from damage:
//!
//! | record | log | after the head | class |
//! |---|---|---|---|
//! | valid | ends there | nothing | Clean |
//! | valid | longer | valid batches | Adopt |
//! | valid | longer | valid batches, then invalid bytes without an event of another batch | Torn |
//! | valid | longer | invalid bytes with an event of another batch after them | Damage |
//! | valid | head's line differs | anything | Damage |
//! | valid | shorter | - | Missing |
//! | none | empty | - | Empty |
//! | none | valid | - | Adopt |
//! | none | invalid only in its last line or batch | - | Torn |
//! | none | invalid before that | - | Damage |
//!
//! `vault::log` checks whether the line of the published head is there (the rows with a head's line that differs and
//! with a shorter log). `every_row_of_the_table` tests the other rows one by one.

use super::{Fault, Head, LogOffset, Scan, SegmentName, check_line, scan};

/// The bytes of one segment from `start` on.
#[derive(Clone, Debug)]
pub struct SegmentPart {
    pub segment: SegmentName,
    pub start: u64,
    pub bytes: Vec<u8>,
}

/// How much of the log is to be classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailScope {
    /// The parts begin right after a published head, so all of it is tail.
    AfterHead,
    /// There is no record: the parts are the whole log, and only its last line or batch may be tail.
    WholeLog,
}

/// What the end of the log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TailClass {
    /// No event at all.
    Empty,
    /// The log ends at the published head.
    Clean,
    /// Valid events that were not published.
    Adopt,
    /// An unfinished write begins at `from`.
    Torn { from: LogOffset, why: String },
    /// Something that no crash can leave. `at` is the first invalid byte.
    Damage { at: LogOffset, why: String },
}

/// The valid part of the tail, and the class of the rest.
#[derive(Clone, Debug)]
pub struct Tail {
    pub head: Option<Head>,
    /// Events in the valid part.
    pub count: u64,
    /// End of the valid part; `None` if it is empty and there is no head.
    pub end: Option<LogOffset>,
    /// Start of the part that may not be synced: the whole tail, or the last batch.
    pub unsynced: Option<LogOffset>,
    /// The highest schema version in the valid part.
    pub newest_version: u64,
    pub class: TailClass,
}

/// Classifies the parts after `head`, which ends at `end`. They are read one after the other; an error from the
/// iterator is returned as it is.
pub fn classify<E>(
    scope: TailScope,
    head: Option<Head>,
    end: Option<LogOffset>,
    parts: impl IntoIterator<Item = Result<SegmentPart, E>>,
) -> Result<Tail, E> {
    let mut parts = parts.into_iter();
    let mut tail = Tail { head, count: 0, end, unsynced: end, newest_version: 0, class: TailClass::Clean };
    while let Some(part) = parts.next().transpose()? {
        let (mut last_batch, newest) = (None, &mut tail.newest_version);
        let Scan { end, head, count, fault } = scan(&part.bytes, 0, tail.head, &mut |offset, event| {
            *newest = event.version.max(*newest);
            if event.begins_batch() {
                last_batch = Some(LogOffset { segment: part.segment, offset: part.start + offset as u64 });
            }
        });
        if scope == TailScope::WholeLog {
            tail.unsynced = last_batch.or(tail.unsynced);
        }
        tail.head = head;
        tail.count += count;
        if count > 0 {
            tail.end = Some(LogOffset { segment: part.segment, offset: part.start + end as u64 });
        }
        if let Some(fault) = fault {
            let at = LogOffset { segment: part.segment, offset: part.start + fault.offset as u64 };
            let why = format!("{} at byte {}: {}", part.segment, part.start + fault.line_offset as u64, fault.message);
            let later: Vec<SegmentPart> = parts.collect::<Result<_, _>>()?;
            tail.class = match unfinished(scope, &part.bytes, &fault, &later) {
                true => TailClass::Torn { from: at, why },
                false => TailClass::Damage { at, why },
            };
            return Ok(tail);
        }
    }
    tail.class = match (tail.head, tail.count, scope) {
        (None, ..) => TailClass::Empty,
        (Some(_), 0, TailScope::AfterHead) => TailClass::Clean,
        _ => TailClass::Adopt,
    };
    Ok(tail)
}

/// Whether the bytes from the fault on can be one unfinished write.
fn unfinished(scope: TailScope, bytes: &[u8], fault: &Fault, later: &[SegmentPart]) -> bool {
    let (mut last_no, mut of) = match fault.batch {
        Some((no, of)) => (no, Some(of)),
        None => (1, None),
    };
    let mut bad_lines = 0;
    let rest = &bytes[fault.line_offset..];
    for line in
        rest.split_inclusive(|&b| b == b'\n').chain(later.iter().flat_map(|p| p.bytes.split_inclusive(|&b| b == b'\n')))
    {
        match line.strip_suffix(b"\n").map(check_line) {
            None | Some(Err(_)) => {
                bad_lines += 1;
                of = of.or_else(|| batch_length_hint(line));
            }
            // A later line of the same batch can be on disk while an earlier one is not.
            Some(Ok(event)) => match event.batch {
                Some(batch) if batch.no > last_no && of.is_none_or(|of| of == batch.of) => {
                    (last_no, of) = (batch.no, Some(batch.of));
                }
                _ => return false,
            },
        }
    }
    scope == TailScope::AfterHead || (bad_lines <= of.unwrap_or(1) && later.iter().all(|p| p.bytes.is_empty()))
}

/// The length of the batch that an invalid line seems to belong to, from its first bytes. Only a hint: it can make the
/// vault quarantine bytes instead of refusing to continue, never the reverse.
fn batch_length_hint(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line.get(..256.min(line.len()))?).unwrap_or_default();
    let rest = text.strip_prefix("{\"$schema\":\"event.v1.schema.json\",\"actor\":\"")?;
    let (_, rest) = rest.split_once("\",\"batch\":{\"no\":")?;
    let (_, rest) = rest.split_once(",\"of\":")?;
    rest.split_once('}')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::log;
    use super::*;

    fn segment() -> SegmentName {
        SegmentName::parse("2026-01/2026-01-31.jsonl").unwrap()
    }

    fn read(scope: TailScope, head: Option<Head>, end: Option<LogOffset>, parts: &[SegmentPart]) -> Tail {
        let Ok(tail) = classify(scope, head, end, parts.iter().cloned().map(Ok::<_, std::convert::Infallible>));
        tail
    }

    /// Classifies a log as if its first `published` batches had been published (`None`: no record).
    fn classified(batches: &[u64], published: Option<usize>, bytes: &[u8]) -> Tail {
        let (_, ends, events) = log(batches);
        let (scope, start, head) = match published {
            None => (TailScope::WholeLog, 0, None),
            Some(n) => {
                let count: u64 = batches[..n].iter().sum();
                (TailScope::AfterHead, ends[n - 1], Some(Head::at(&events[count as usize - 1])))
            }
        };
        let end = head.map(|_| LogOffset { segment: segment(), offset: start as u64 });
        read(
            scope,
            head,
            end,
            &[SegmentPart { segment: segment(), start: start as u64, bytes: bytes[start..].to_vec() }],
        )
    }

    fn kind(tail: &Tail) -> &'static str {
        match tail.class {
            TailClass::Empty => "Empty",
            TailClass::Clean => "Clean",
            TailClass::Adopt => "Adopt",
            TailClass::Torn { .. } => "Torn",
            TailClass::Damage { .. } => "Damage",
        }
    }

    fn flip(bytes: &[u8], at: usize) -> Vec<u8> {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1;
        flipped
    }

    #[test]
    fn every_row_of_the_table() {
        let batches = [1, 1, 3, 1];
        let (bytes, ends, _) = log(&batches);
        let check = |name: &str, published, bytes: &[u8], expected: &str, count: u64| {
            let tail = classified(&batches, published, bytes);
            assert_eq!((kind(&tail), tail.count), (expected, count), "{name}: {tail:?}");
        };
        check("ends at the head", Some(4), &bytes, "Clean", 0);
        check("valid batches after it", Some(1), &bytes, "Adopt", 5);
        check("torn last line", Some(2), &bytes[..bytes.len() - 1], "Torn", 3);
        check("bad but terminated last line", Some(3), &flip(&bytes, ends[2] + 9), "Torn", 0);
        check("zeros", Some(4), &[&bytes[..], &[0; 9000]].concat(), "Torn", 0);
        check("garbage of many lines", Some(4), &[&bytes[..], b"a\nb\nc\n"].concat(), "Torn", 0);
        check("a batch cut short", Some(2), &bytes[..ends[2] - 400], "Torn", 0);
        check("a batch with a hole", Some(2), &flip(&bytes[..ends[2]], ends[1] + 9), "Torn", 0);
        check("a bad event before a good one", Some(1), &flip(&bytes[..ends[2]], ends[0] + 9), "Damage", 0);
        check("a bad batch before a good event", Some(1), &flip(&bytes, ends[1] + 9), "Damage", 1);
        check("no record, empty", None, b"", "Empty", 0);
        check("no record, good", None, &bytes, "Adopt", 6);
        check("no record, torn last line", None, &bytes[..bytes.len() - 3], "Torn", 5);
        check("no record, bad last line", None, &flip(&bytes, ends[2] + 9), "Torn", 5);
        check("no record, last batch with a hole", None, &flip(&bytes[..ends[2]], ends[1] + 9), "Torn", 2);
        let every_line_bad: Vec<u8> = {
            let mut bad = bytes[..ends[2]].to_vec();
            let starts: Vec<usize> = (ends[1]..ends[2]).filter(|&at| at == ends[1] || bytes[at - 1] == b'\n').collect();
            starts.iter().for_each(|start| bad[start + 350] ^= 1);
            bad
        };
        check("no record, last batch with a hole in every line", None, &every_line_bad, "Torn", 2);
        check("no record, bad line before the last", None, &flip(&bytes, ends[0] + 9), "Damage", 1);
        check("no record, two bad lines", None, &[&bytes[..], b"a\nb\n"].concat(), "Damage", 6);
        check("no record, first line bad", None, &flip(&bytes, 9), "Damage", 0);
    }

    #[test]
    fn the_last_batch_cut_at_any_byte_is_torn_and_the_rest_is_kept() {
        for batches in [&[1, 1][..], &[1, 3]] {
            let (bytes, ends, _) = log(batches);
            for published in [Some(1), None] {
                for cut in ends[0] + 1..bytes.len() {
                    let tail = classified(batches, published, &bytes[..cut]);
                    let TailClass::Torn { from, .. } = &tail.class else { panic!("cut at {cut}: {tail:?}") };
                    assert_eq!(from.offset, ends[0] as u64);
                }
            }
        }
    }

    #[test]
    fn an_unfinished_write_never_hides_a_later_segment() {
        let (bytes, ends, events) = log(&[1, 1, 1]);
        let next = segment().next();
        let parts = [
            SegmentPart { segment: segment(), start: 0, bytes: flip(&bytes[ends[0]..ends[1]], 9) },
            SegmentPart { segment: next, start: 0, bytes: bytes[ends[1]..].to_vec() },
        ];
        let end = LogOffset { segment: segment(), offset: ends[0] as u64 };
        let head = Some(Head::at(&events[0]));
        assert_eq!(kind(&read(TailScope::AfterHead, head, Some(end), &parts)), "Damage");
        let empty = SegmentPart { bytes: Vec::new(), ..parts[1].clone() };
        assert_eq!(kind(&read(TailScope::AfterHead, head, Some(end), &[parts[0].clone(), empty])), "Torn");
    }
}
