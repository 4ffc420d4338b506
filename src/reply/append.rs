//! What hf-append says: events by their ids and hashes.

use super::{Key, Replies, Reply, Status, error};
use crate::op::{Recorded, StreamOutcome};

/// Events that were recorded as they were given, or could be.
#[derive(Debug)]
pub struct Appended<'a> {
    pub done: &'a Recorded,
    /// How many were given.
    pub of: usize,
    /// The key of a batch.
    pub key: Option<String>,
    /// Whether nothing was recorded because that was not wanted.
    pub rehearsed: bool,
}

impl Replies for Appended<'_> {
    fn reply(&self) -> Reply {
        let Appended { done, of, key, rehearsed } = self;
        let status = match (done.duplicate, rehearsed) {
            (true, _) => Status::Duplicate,
            (false, true) => Status::Valid,
            (false, false) => Status::Appended,
        };
        let recorded = status != Status::Valid;
        let event = &done.asked;
        let many = if *of > 1 { format!("{of} events, the last ") } else { String::new() };
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

/// How far a stream came.
#[derive(Debug)]
pub struct Streamed<'a> {
    pub done: &'a StreamOutcome,
    pub rehearsed: bool,
}

impl Replies for Streamed<'_> {
    fn reply(&self) -> Reply {
        let Streamed { done, rehearsed } = self;
        let (status, did) = if *rehearsed { (Status::Valid, "valid") } else { (Status::Appended, "recorded") };
        let counts = format!("{} {did}, {} recorded before", done.recorded, done.duplicates);
        let last = done.last.as_ref().filter(|_| !rehearsed);
        let reply = match &done.error {
            Some(error) => error::of_error(&error.clone().at(counts), "hf-append"),
            None => Reply::new(status, counts),
        };
        reply
            .with_some(Key::EventId, last.map(|event| event.id))
            .with_some(Key::Hash, last.map(|event| event.hash))
            .with(Key::Recorded, if *rehearsed { 0 } else { done.recorded })
            .with(Key::Duplicates, done.duplicates)
            .warn(done.warnings.clone())
    }
}
