//! Replies to an agent about its own signs of life.

use super::error::claim_lost;
use super::{Key, Next, Replies, Reply, Row, Status, row, sentence};
use crate::base::text::count_noun;
use crate::base::{Error, Timestamp};
use crate::machine::Phase;
use crate::op::agent::{ActivityOutcome, CheckpointOutcome, DeepWorkOutcome, DeepWorkStatusOutcome, MigrateOutcome};
use crate::state::Entity;

/// Advice for an agent whose last activity log is old.
const SUGGESTION: &str =
    "long time without an activity log: declare deep work with hf-deepwork start --flexible, or log what you have done";

impl Replies for CheckpointOutcome {
    fn reply(&self) -> Reply {
        let suggestion = self.suggest_deepwork.then_some(SUGGESTION);
        Reply::new(Status::Recorded, "checkpoint recorded")
            .next(claim_again(&self.lost))
            .with(Key::HeartbeatId, self.heartbeat_id.to_string())
            .with_some(Key::ElapsedS, self.elapsed_seconds)
            .with_some(Key::Previous, self.previous.as_deref())
            .with_texts(Key::Advice, self.lost.iter().map(|lost| lost.message.as_str()).chain(suggestion))
            .warn(self.warnings.clone())
    }
}

impl Replies for ActivityOutcome {
    fn reply(&self) -> Reply {
        let due = self.introspection_due;
        Reply::new(Status::Recorded, "activity logged")
            .next(if due { write_introspection() } else { claim_again(&self.lost) })
            .with(Key::HeartbeatId, self.heartbeat_id.to_string())
            .with_some(Key::File, self.file.as_deref())
            .with_some(Key::Completed, self.completed.as_deref())
            .with(Key::IntrospectionDue, due)
            .with_texts(Key::Advice, self.lost.iter().map(|lost| lost.message.as_str()))
            .warn(self.warnings.clone())
    }
}

/// The next step of an agent that has lost a claim, the same as if it had been refused for that.
fn claim_again(lost: &[Error]) -> Next {
    lost.last().map_or(Next::None, claim_lost)
}

fn write_introspection() -> Next {
    Next::run("hf-activity").word("--kind introspection")
}

impl Replies for DeepWorkOutcome {
    fn reply(&self) -> Reply {
        let work = self.recorded.entity.as_ref();
        let over = work.is_some_and(|work| matches!(work.phase, Phase::Completed | Phase::Expired));
        self.recorded
            .reply()
            .next(if over { write_introspection() } else { Next::None })
            .with_some(Key::HeartbeatId, self.heartbeat_id.as_ref().map(ToString::to_string))
            .with_some(Key::Mode, work.and_then(|work| work.as_deep_work().mode()))
            .with_some(Key::Until, self.until)
            .warn(self.warnings.clone())
    }
}

impl Replies for DeepWorkStatusOutcome {
    fn reply(&self) -> Reply {
        match &self.work {
            None => Reply::new(Status::Ok, "no deep work in progress").with_rows(Key::DeepWork, []),
            Some(work) => Reply::new(Status::Ok, sentence(work))
                .with_some(Key::Mode, work.as_deep_work().mode())
                .with_rows(Key::DeepWork, [deep_work(work, self.now)]),
        }
    }
}

/// A deep work: what was declared, and how long it took.
pub fn deep_work(work: &Entity, now: Timestamp) -> Row {
    let declared = work.as_deep_work().mode().filter(|mode| *mode == "strict").map(|_| work.as_deep_work().minutes());
    let started = work.as_deep_work().started_at().unwrap_or(work.created_at);
    let took = (work.as_deep_work().ended_at().unwrap_or(now).0 - started.0).max(0) as u64 / 60;
    // Strict deep work is over after its declared time, whenever that is recorded.
    let took = took.min(declared.unwrap_or(took));
    row![work.name(), work.phase.as_str(), work.as_deep_work().mode(), declared, took, work.as_deep_work().activity()]
}

impl Replies for MigrateOutcome {
    fn reply(&self) -> Reply {
        let status = if self.renamed.is_empty() { Status::Duplicate } else { Status::Recorded };
        Reply::new(status, format!("{} renamed", count_noun(self.renamed.len(), "file")))
            .with_rows(Key::Did, self.renamed.iter().map(|(old, new)| row![old.as_str(), new.as_str()]))
    }
}
