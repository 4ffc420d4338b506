//! Replies about projections: counts, whole maps, rebuilds and checks.

use super::{Cell, Key, Next, Replies, Reply, Status, list, row};
use crate::base::text::count_noun;
use crate::chain::Head;
use crate::op::project::{CheckOutcome, MapOutcome, RebuildOutcome, SnapshotOutcome, SummaryOutcome, TypeCounts};

/// Adds the head: the reply covers all events up to it.
pub fn with_head(reply: Reply, head: Option<Head>) -> Reply {
    reply.with_some(Key::HeadId, head.map(|head| head.id)).with_some(Key::HeadHash, head.map(|head| head.hash))
}

impl Replies for SummaryOutcome {
    fn reply(&self) -> Reply {
        let rows = self.counts.iter().map(|TypeCounts { entity, live, phases }| {
            let phases = phases.iter().map(|(phase, count)| (phase.to_string(), *count)).collect();
            row![entity.plural(), *live, Cell::Counts(phases)]
        });
        let entities: u64 = self.counts.iter().map(|counts| counts.live).sum();
        let reply = Reply::new(
            Status::Ok,
            format!("{} from {}", count_noun(entities, "entity"), count_noun(self.events, "event")),
        )
        .with_rows(Key::Projection, rows)
        .with(Key::Events, self.events);
        with_head(reply, self.head).with_texts(Key::Stale, &self.stale)
    }
}

impl Replies for MapOutcome {
    /// The reply that accompanies the map.
    fn reply(&self) -> Reply {
        let count = self.map.len();
        let reply = Reply::new(Status::Ok, list::count_entries(count, self.projection)).with(Key::Count, count);
        with_head(reply, self.head)
    }
}

impl Replies for RebuildOutcome {
    fn reply(&self) -> Reply {
        with_head(Reply::new(Status::Rebuilt, "rebuilt from the events").with(Key::Events, self.events), self.head)
    }
}

impl Replies for SnapshotOutcome {
    fn reply(&self) -> Reply {
        let reply = Reply::new(Status::Snapshot, "snapshot of the state at the current head")
            .with(Key::Path, format!("snapshots/{}", self.file))
            .with(Key::Events, self.events);
        with_head(reply, self.head)
    }
}

impl Replies for CheckOutcome {
    fn reply(&self) -> Reply {
        let reply = match self.differences.len() {
            0 if self.stale.is_empty() => {
                Reply::new(Status::Consistent, "index, projections and snapshot match the events")
            }
            0 => {
                let files = count_noun(self.stale.len(), "projection file");
                let sum = format!("index and snapshot match the events; {files} not current");
                Reply::new(Status::Stale, sum).next(Next::run("hf-project"))
            }
            n => {
                let repair = if self.rebuild_helps { "--rebuild" } else { "--snapshot" };
                Reply::new(Status::Failed, count_noun(n, "difference")).next(Next::run("hf-project").word(repair))
            }
        };
        with_head(reply.with(Key::Projections, self.verdict.as_str()).with(Key::Events, self.events), self.head)
            .with_texts(Key::Stale, &self.stale)
            .with_texts(Key::Difference, &self.differences)
    }
}
