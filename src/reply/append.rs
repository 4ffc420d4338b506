//! Replies of hf-append: events by id and hash.

use super::{Key, Replies, Reply, Status, error};
use crate::base::text::count_noun;
use crate::op::{Recorded, StreamOutcome};

/// Events that hf-append recorded, or would have recorded.
#[derive(Debug)]
pub struct Appended<'a> {
    pub done: &'a Recorded,
    /// How many were given.
    pub of: usize,
    /// The key of a batch.
    pub key: Option<String>,
    /// Whether this was a dry run, which records nothing.
    pub dry_run: bool,
}

impl Replies for Appended<'_> {
    fn reply(&self) -> Reply {
        let Appended { done, of, key, dry_run } = self;
        let status = match (done.duplicate, dry_run) {
            (true, _) => Status::Duplicate,
            (false, true) => Status::Valid,
            (false, false) => Status::Appended,
        };
        let recorded = status != Status::Valid;
        let event = &done.asked;
        let many = if *of > 1 { format!("{of} events, last: ") } else { String::new() };
        let entity = done.entity.as_ref().filter(|_| recorded);
        Reply::new(status, format!("{many}{} {}", event.event_type.as_str(), event.subject))
            .with_texts(Key::EventId, done.ids.iter().filter(|_| recorded))
            .with(Key::Subject, event.subject.as_str())
            .with_some(Key::Ref, entity.and_then(|entity| entity.reference()))
            .with_some(Key::Hash, recorded.then_some(event.hash))
            .with_some(Key::PrevHash, recorded.then_some(done.prev_hash.as_str()))
            .with_some(Key::IdempotencyKey, key.as_deref().or(event.key.as_deref()))
            .warn(done.warnings.clone())
    }
}

/// How much of a stream was recorded.
#[derive(Debug)]
pub struct Streamed<'a> {
    pub done: &'a StreamOutcome,
    pub dry_run: bool,
}

impl Replies for Streamed<'_> {
    fn reply(&self) -> Reply {
        let Streamed { done, dry_run } = self;
        let (status, did) = if *dry_run { (Status::Valid, "valid") } else { (Status::Appended, "recorded") };
        let counts = format!("{} {did}, {} already recorded", count_noun(done.recorded, "event"), done.duplicates);
        let last = done.last.as_ref().filter(|_| !dry_run);
        let reply = match &done.error {
            Some(error) => error::of_error(&error.clone().at(counts), "hf-append"),
            None => Reply::new(status, counts),
        };
        reply
            .with_some(Key::EventId, last.map(|event| event.id))
            .with_some(Key::Hash, last.map(|event| event.hash))
            .with(Key::Recorded, if *dry_run { 0 } else { done.recorded })
            .with(Key::Duplicates, done.duplicates)
            .warn(done.warnings.clone())
    }
}
