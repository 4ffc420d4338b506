//! The audit of a tail: nobody adopts events that break the rules, however valid their lines are.
//!
//! The state before the tail comes from the index where it can, so that this costs no more than the tail is long.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use crate::base::{Result, Ulid};
use crate::chain::tail::Tail;
use crate::chain::{Head, HeadRecord, LogOffset};
use crate::event::Event;
use crate::policy::audit::{Audit, Before};
use crate::vault::index::{self, Index};
use crate::vault::snapshot::Snapshot;
use crate::vault::{Log, Vault};

/// The part of a tail that breaks the rules.
#[derive(Debug)]
pub(in crate::vault) struct RefusedTail {
    pub why: String,
    /// Where the batch with the first violation starts.
    pub from: LogOffset,
    /// The event before it.
    pub last: Head,
    /// How many events there are up to that one.
    pub count: u64,
}

impl Vault {
    /// The part of a tail that breaks the rules, if any does. Without a record nobody knows what was published, and
    /// nothing is a tail.
    pub(in crate::vault) fn refused_tail(
        &self,
        record: Option<&HeadRecord>,
        tail: &Tail,
    ) -> Result<Option<RefusedTail>> {
        let (Some(record), Some(end)) = (record, tail.end) else { return Ok(None) };
        let index = self.index();
        // What was merged into the index was adopted before.
        let merged = index.as_ref().map(|index| index.mark).filter(|mark| mark.end() > record.end());
        let published = merged.unwrap_or(*record);
        let start = published.end();
        if start >= end {
            return Ok(None);
        }
        let before = self.published(&published)?;
        let Some(mut audit) = self.audit_after(index, &before)? else { return Ok(None) };
        // Statements name events by hash, even of the tail itself.
        let whole =
            Snapshot { events: self.events()?, end: Some(end), segments: OnceCell::new(), head: None, count: 0 };
        let find = |id: Ulid| Log::find(&whole, id);
        let is_unseen = |id: Ulid| Log::find(&before, id).is_ok_and(|event| event.is_some());
        let mut refused: Option<RefusedTail> = None;
        let (mut from, mut last, mut count, mut in_batch) = (start, before.head, before.count, 0);
        self.events_between(Some(start), end, &mut |place, event| {
            in_batch += 1;
            if let Some(why) =
                audit.check_after(&event, Before { is_unseen: &is_unseen, find: &find }).into_iter().next()
            {
                let why = format!("the end of the log was written without the rules: {why}");
                refused = last.map(|last| RefusedTail { why, from, last, count });
                return Ok(ControlFlow::Break(()));
            }
            if event.ends_batch() {
                (from, last, count, in_batch) = (place, Some(Head::at(&event)), count + in_batch, 0);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(refused)
    }

    /// An audit that continues after this part of the log; none if that has no events.
    fn audit_after(&self, index: Option<Index>, before: &Snapshot) -> Result<Option<Audit>> {
        let Some(head) = before.head else { return Ok(None) };
        let last: Option<Event> = Log::find(before, head.id)?;
        let state = index::state(index, self, before)?;
        // In the middle of a cascade the causes of what follows are in earlier batches.
        if !state.tally().is_cut_off {
            return Ok(last.map(|last| Audit::after(&last, state)));
        }
        let mut audit = Audit::default();
        before.read_from(Ulid::nil(), &mut |event| {
            audit.check_in(&event, &|id| Log::find(before, id));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Some(audit))
    }
}
