//! What is said of projections: counts, whole maps, rebuilds and checks.

use super::{Cell, Key, Next, Replies, Reply, Status, row};
use crate::chain::Head;
use crate::op::project::{CheckOutcome, MapOutcome, RebuildOutcome, SnapshotOutcome, SummaryOutcome, TypeCounts};

/// The head that a reply is through.
pub fn with_head(reply: Reply, head: Option<Head>) -> Reply {
    reply.with_some(Key::HeadId, head.map(|head| head.id)).with_some(Key::HeadHash, head.map(|head| head.hash))
}

impl Replies for SummaryOutcome {
    fn reply(&self) -> Reply {
        let rows = self.counts.iter().map(|TypeCounts { entity, live, states }| {
            let states = states.iter().map(|(state, count)| (state.to_string(), *count)).collect();
            row![entity.plural(), *live, Cell::Counts(states)]
        });
        let entities: u64 = self.counts.iter().map(|counts| counts.live).sum();
        let reply = Reply::new(Status::Ok, format!("{entities} entities from {} events", self.events))
            .with_rows(Key::Projection, rows)
            .with(Key::Events, self.events);
        with_head(reply, self.head).with_texts(Key::Stale, &self.stale)
    }
}

impl Replies for MapOutcome {
    /// What is said beside the map.
    fn reply(&self) -> Reply {
        let count = self.map.len();
        let reply = Reply::new(Status::Ok, format!("{count} {}", self.projection.name())).with(Key::Count, count);
        with_head(reply, self.head)
    }
}

impl Replies for RebuildOutcome {
    fn reply(&self) -> Reply {
        with_head(Reply::new(Status::Rebuilt, "from the events alone").with(Key::Events, self.events), self.head)
    }
}

impl Replies for SnapshotOutcome {
    fn reply(&self) -> Reply {
        let reply = Reply::new(Status::Snapshot, "the whole state, with the head that it stands for")
            .with(Key::Path, format!("snapshots/{}", self.file))
            .with(Key::Events, self.events);
        with_head(reply, self.head)
    }
}

impl Replies for CheckOutcome {
    fn reply(&self) -> Reply {
        let reply = match self.differences.len() {
            0 => Reply::new(Status::Consistent, "index, projections and snapshot say what the events say"),
            n => {
                let mend = if self.rebuild_mends { "--rebuild" } else { "--snapshot" };
                Reply::new(Status::Failed, format!("{n} differences")).next(Next::run("hf-project").word(mend))
            }
        };
        with_head(reply.with(Key::Events, self.events), self.head).with_texts(Key::Difference, &self.differences)
    }
}
