//! Verification: separate verdicts on the chain, the tail and the head, which are always all given.
//!
//! There are two methods, which must agree. The reference method parses, canonicalizes, hashes and compares one event
//! after the other. The fast method (`fast`) checks the stored bytes in one pass with several threads, and falls back to
//! the reference method where something is wrong.

mod fast;

use std::cell::OnceCell;
use std::num::NonZero;

use super::Vault;
use super::head::{self, Published};
use super::lock::LockMode;
use super::log::{self, HeadLine};
use super::snapshot::Snapshot;
use crate::base::{Error, ErrorKind, Reason, Result, Ulid, names};
use crate::chain::strict::ChainLink;
use crate::chain::tail::{Tail, TailClass};
use crate::chain::{Head, HeadRecord, LogOffset, SegmentName, scan};
use crate::event::Event;

names! {
    /// What comes after the published head.
    pub enum TailVerdict {
        /// Nothing.
        Clean = "CLEAN",
        /// Valid events whose writer died before publishing them.
        Unpublished = "UNPUBLISHED",
        /// Valid events that break the rules. No writer continues after them.
        Refused = "REFUSED",
        /// An unfinished write; the next append moves it to quarantine.
        Torn = "TORN",
        /// Bytes that no crash can leave.
        Damaged = "DAMAGED",
    }
}

names! {
    /// Whether the head record matches the log.
    pub enum HeadVerdict {
        Ok = "OK",
        /// The log has events after the published head.
        Behind = "BEHIND",
        Missing = "MISSING",
        /// Torn or damaged; treated like a missing record.
        Invalid = "INVALID",
        /// The log ends before the published head: events are missing.
        Ahead = "AHEAD",
        /// The event at the published offset is not the published head.
        Mismatch = "MISMATCH",
    }
}

/// The chain itself: every line from the start of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainVerdict {
    Ok,
    Broken { place: LogOffset, why: String },
}

/// The method to check the chain.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// One event after the other.
    Reference,
    /// With this many threads, or with as many as the machine runs.
    Fast { jobs: Option<NonZero<usize>> },
}

/// What to verify, and how.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub method: Method,
    /// Head anchors that the log must contain.
    pub anchors: &'a [Head],
    /// An event that is trusted, with everything before it.
    pub since: Option<Ulid>,
}

impl Scope<'_> {
    /// Everything, by the fast method.
    pub const ALL: Scope<'static> = Scope { method: Method::Fast { jobs: None }, anchors: &[], since: None };
}

/// Called with the number of bytes done and the total.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// All verdicts of one verification.
#[derive(Clone, Debug)]
pub struct Verified {
    pub chain: ChainVerdict,
    pub tail: TailVerdict,
    pub tail_why: Option<String>,
    pub head_verdict: HeadVerdict,
    /// The last valid event.
    pub head: Option<Head>,
    /// Where it ends.
    end: Option<LogOffset>,
    /// How many events were checked.
    pub count: u64,
    /// How many of them are after the published head.
    pub unpublished: u64,
    /// Each head anchor, and whether the checked part contains it.
    pub anchors: Vec<(Head, bool)>,
}

impl Verified {
    /// Whether everything is right except for an unfinished write, which the next append moves to quarantine.
    pub fn passed_but_for_tail(&self) -> bool {
        self.passed()
            || (self.tail == TailVerdict::Torn && Verified { tail: TailVerdict::Clean, ..self.clone() }.passed())
    }

    /// Whether everything is right. A head record that is missing, invalid or behind is not an error.
    pub fn passed(&self) -> bool {
        self.chain == ChainVerdict::Ok
            && matches!(self.tail, TailVerdict::Clean | TailVerdict::Unpublished)
            && !matches!(self.head_verdict, HeadVerdict::Ahead | HeadVerdict::Mismatch)
            && self.anchors.iter().all(|(_, found)| *found)
    }
}

impl Vault {
    /// Checks the log from its first to its last byte. The published head only says how far readers read; it proves
    /// nothing about what comes after it.
    pub fn verify(&self, scope: Scope<'_>, progress: Progress<'_>) -> Result<Verified> {
        let mut record = head::read(&self.akashic)?;
        let mut tail = self.tail_if_there(&record)?;
        let mut guard = None;
        let is_clean = tail.as_ref().is_some_and(|tail| tail.class == TailClass::Clean);
        if !(matches!(record, Published::Valid(_)) && is_clean) {
            // A writer may be active: look again under the lock.
            guard = self.lock_if_possible(LockMode::Shared)?;
            record = head::read(&self.akashic)?;
            tail = self.tail_if_there(&record)?;
        }
        let known = match record {
            Published::Valid(record) => Some(record),
            _ => None,
        };
        let (verdict, tail_why) = self.judge_tail(known.as_ref(), tail.as_ref())?;
        // With a record, neither the published part nor the valid part of the tail changes; without one, the lock must
        // be kept.
        guard = guard.filter(|_| known.is_none());
        let end = known.map(|record| tail.as_ref().and_then(|tail| tail.end).unwrap_or(record.end()));
        let mut found = self.check_until(end, scope, progress)?;
        drop(guard);
        // Without a record, a log that is invalid only in its last batch has an unfinished write there.
        if known.is_none() && verdict == TailVerdict::Torn {
            found.chain = ChainVerdict::Ok;
        }
        let unpublished = known.and(tail.as_ref()).map_or(0, |tail| tail.count);
        let head_verdict = match record {
            Published::Missing => HeadVerdict::Missing,
            Published::Invalid => HeadVerdict::Invalid,
            Published::Newer => {
                let why = "chain.json has a newer version than this program supports";
                return Err(Error::refused(Reason::NewerVersion, why));
            }
            Published::Valid(record) => {
                // A check that starts in the middle has not counted all events.
                let is_partial = scope.since.is_some() || found.chain != ChainVerdict::Ok;
                let counted = is_partial || found.count == record.count + unpublished;
                match self.head_line(&record)? {
                    HeadLine::Missing => HeadVerdict::Ahead,
                    HeadLine::Good(_) if counted && unpublished > 0 => HeadVerdict::Behind,
                    HeadLine::Good(_) if counted => HeadVerdict::Ok,
                    _ => HeadVerdict::Mismatch,
                }
            }
        };
        let anchors = scope.anchors.iter().copied().zip(found.anchors).collect();
        let end = end.or(tail.and_then(|tail| tail.end));
        Ok(Verified {
            chain: found.chain,
            tail: verdict,
            tail_why,
            head_verdict,
            head: found.last.map(|link| link.head),
            end,
            count: found.count,
            unpublished,
            anchors,
        })
    }

    /// The log that was verified, up to its last valid event.
    pub fn verified_log(&self, verified: &Verified) -> Result<Snapshot> {
        let Verified { head, end, count, .. } = verified;
        let segments = OnceCell::new();
        Ok(Snapshot { events: self.events()?, end: *end, segments, head: *head, count: *count })
    }

    /// The tail; `None` if the segment of the published head is missing.
    fn tail_if_there(&self, record: &Published) -> Result<Option<Tail>> {
        let record = match record {
            Published::Valid(record) => Some(record),
            _ => None,
        };
        if let Some(record) = record
            && self.segments()?.binary_search(&record.segment).is_err()
        {
            return Ok(None);
        }
        self.tail(record).map(Some)
    }

    /// The verdict on a tail, and what is wrong with it.
    fn judge_tail(&self, record: Option<&HeadRecord>, tail: Option<&Tail>) -> Result<(TailVerdict, Option<String>)> {
        let Some(tail) = tail else { return Ok((TailVerdict::Clean, None)) };
        Ok(match &tail.class {
            TailClass::Clean | TailClass::Empty => (TailVerdict::Clean, None),
            TailClass::Damage { why, .. } => (TailVerdict::Damaged, Some(why.clone())),
            TailClass::Adopt | TailClass::Torn { .. } => match (self.refused_tail(record, tail)?, &tail.class) {
                (Some(refused), _) => (TailVerdict::Refused, Some(refused.why)),
                (None, TailClass::Torn { why, .. }) => (TailVerdict::Torn, Some(why.clone())),
                (None, _) if record.is_none() => (TailVerdict::Clean, None),
                (None, _) => (TailVerdict::Unpublished, None),
            },
        })
    }

    /// Checks the chain up to an offset, or all of it.
    fn check_until(&self, until: Option<LogOffset>, scope: Scope<'_>, progress: Progress<'_>) -> Result<Prefix> {
        let Scope { anchors, since, method } = scope;
        let start = since.map(|id| self.trusted_start(id)).transpose()?;
        let trusted = start.as_ref().map(|(event, _)| ChainLink::from_event(event));
        let mut found =
            Prefix { chain: ChainVerdict::Ok, last: trusted, count: 0, anchors: vec![false; anchors.len()] };
        if let Some(link) = &trusted {
            if let Some(anchor) = anchors.iter().find(|anchor| anchor.id < link.head.id) {
                let why = format!("the expected head {} is before --since, in the part that is not checked", anchor.id);
                return Err(Error::usage(why));
            }
            found.see(anchors, link.head);
        }
        let parts = self.parts(until, start.map(|(_, place)| place))?;
        let total: u64 = parts.iter().map(|(_, (from, to))| to - from).sum();
        let mut done = 0;
        for (segment, range) in parts {
            let mut tell = |bytes: u64| {
                done += bytes;
                progress(done.min(total), total);
            };
            let good = match method {
                Method::Reference => None,
                Method::Fast { jobs } => {
                    let jobs = jobs.map_or_else(fast::default_jobs, NonZero::get);
                    fast::check(&self.open_segment(segment)?, range, found.last, anchors, jobs, &mut tell)
                }
            };
            match good {
                Some(good) => {
                    found.last = good.last;
                    found.count += good.count;
                    found.anchors.iter_mut().zip(good.anchors).for_each(|(seen, here)| *seen |= here);
                }
                None => self.check_by_reference(segment, range, anchors, &mut found)?,
            }
            if found.chain != ChainVerdict::Ok {
                break;
            }
        }
        Ok(found)
    }

    /// The segments to check, each with the range to check.
    fn parts(&self, until: Option<LogOffset>, start: Option<LogOffset>) -> Result<Vec<(SegmentName, (u64, u64))>> {
        let mut parts = Vec::new();
        for segment in self.segments()? {
            let from = match start {
                Some(place) if segment < place.segment => continue,
                Some(place) if segment == place.segment => place.offset,
                _ => 0,
            };
            let size = log::size(&self.open_segment(segment)?)?;
            let to = match until {
                Some(until) if segment > until.segment => break,
                Some(until) if segment == until.segment => until.offset.min(size),
                _ => size,
            };
            parts.push((segment, (from.min(to), to)));
        }
        Ok(parts)
    }

    /// Checks a segment by the reference method.
    fn check_by_reference(
        &self,
        segment: SegmentName,
        (from, to): (u64, u64),
        anchors: &[Head],
        found: &mut Prefix,
    ) -> Result<()> {
        let mut bytes = self.segment_bytes(segment)?;
        bytes.truncate(to as usize);
        let mut last = found.last;
        let seen = &mut found.anchors;
        let scan = scan(&bytes, from as usize, last.map(|link| link.head), &mut |_, event| {
            last = Some(ChainLink::from_event(event));
            for (anchor, seen) in anchors.iter().zip(seen.iter_mut()) {
                *seen |= *anchor == Head::at(event);
            }
        });
        found.last = last;
        found.count += scan.count;
        if let Some(fault) = scan.fault {
            let why = format!("{segment} at byte {}: {}", fault.line_offset, fault.message);
            found.chain = ChainVerdict::Broken { place: LogOffset { segment, offset: fault.line_offset as u64 }, why };
        }
        Ok(())
    }

    /// The event that a check since `id` trusts, the last of its batch, and the offset of its end.
    fn trusted_start(&self, id: Ulid) -> Result<(Event, LogOffset)> {
        let snapshot = self.snapshot()?;
        let unknown = || Error::new(ErrorKind::NotFound, format!("event {id} is not in the log"));
        let (place, event) = snapshot.find(id)?.ok_or_else(unknown)?;
        let mut last = (event, place, 0);
        snapshot.events(place, &mut |place, event, line| {
            let ends = event.ends_batch();
            last = (event, place, line.len() as u64 + 1);
            Ok(if ends { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) })
        })?;
        let (event, place, length) = last;
        let end = snapshot.place(place)?;
        Ok((event, LogOffset { offset: end.offset + length, ..end }))
    }
}

struct Prefix {
    chain: ChainVerdict,
    /// The last valid line.
    last: Option<ChainLink>,
    count: u64,
    anchors: Vec<bool>,
}

impl Prefix {
    fn see(&mut self, anchors: &[Head], head: Head) {
        self.anchors.iter_mut().zip(anchors).for_each(|(seen, anchor)| *seen |= *anchor == head);
    }
}
