//! Replies about artifacts.

use super::{Key, Next, Replies, Reply, Status, entity, sentence};
use crate::op::artifact::{GetOutcome, PutOutcome, RepairOutcome};
use crate::state::Entity;

impl Replies for PutOutcome {
    fn reply(&self) -> Reply {
        with_content(self.recorded.reply_with(Status::Stored), self.recorded.entity.as_ref())
    }
}

impl Replies for GetOutcome {
    fn reply(&self) -> Reply {
        let next = match self.findings.is_empty() {
            true => Next::None,
            false => entity::next_about("hf-artifact", "repair", &self.entity),
        };
        with_content(Reply::new(Status::Ok, sentence(&self.entity)).next(next), Some(&self.entity))
            .with_texts(Key::Finding, &self.findings)
    }
}

impl Replies for RepairOutcome {
    fn reply(&self) -> Reply {
        let name = self.entity.name();
        let reply = match self.findings.is_empty() {
            true => Reply::new(Status::Consistent, format!("the manifest of {name} matches the log")),
            false => Reply::new(Status::Rebuilt, format!("the manifest of {name} was restored from the log")),
        };
        let quarantined = self.quarantined.as_slice();
        reply
            .with_texts(Key::Finding, &self.findings)
            .with_texts(Key::Quarantined, quarantined)
            .with(Key::Path, self.path.as_str())
    }
}

fn with_content(reply: Reply, entity: Option<&Entity>) -> Reply {
    reply
        .with_some(Key::Sha256, entity.and_then(|entity| entity.as_artifact().sha256()))
        .with_some(Key::SizeBytes, entity.map(|entity| entity.as_artifact().size_bytes()))
        .with_some(Key::Path, entity.and_then(|entity| entity.as_artifact().path()))
}
