//! Replies about artifacts.

use super::{Key, Replies, Reply, Status, sentence};
use crate::op::artifact::{GetOutcome, PutOutcome};
use crate::state::Entity;

impl Replies for PutOutcome {
    fn reply(&self) -> Reply {
        with_content(self.recorded.reply_with(Status::Stored), self.recorded.entity.as_ref())
    }
}

impl Replies for GetOutcome {
    fn reply(&self) -> Reply {
        with_content(Reply::new(Status::Ok, sentence(&self.entity)), Some(&self.entity))
    }
}

fn with_content(reply: Reply, entity: Option<&Entity>) -> Reply {
    reply
        .with_some(Key::Sha256, entity.and_then(|entity| entity.as_artifact().sha256()))
        .with_some(Key::SizeBytes, entity.map(|entity| entity.as_artifact().size_bytes()))
        .with_some(Key::Path, entity.and_then(|entity| entity.as_artifact().path()))
}
