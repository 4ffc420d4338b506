//! The base of a state: the stored result of folding an earlier part of the log.

use std::fmt::Debug;

use serde_json::Value;

use super::{Entity, Tally, Timer};
use crate::base::{EntityType, Error, Subject, Ulid};
use crate::machine;

/// A selection of entities.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub entity: EntityType,
    /// Whether to return archived entities, or those that are not archived.
    pub archived: bool,
    /// The prefix of their ids.
    pub prefix: &'a str,
    /// Only ids greater than this.
    pub after: Option<&'a str>,
    pub limit: usize,
}

/// A selection of entities by their deadlines.
#[derive(Clone, Copy, Debug)]
pub struct DeadlineQuery<'a> {
    pub project: Option<&'a str>,
    pub timer: Timer,
    /// The length of the deadline in seconds; 0 if the settings determine it.
    pub limit: u64,
    /// The latest start of the deadline, on the timer's clock.
    pub until: i64,
    /// The maximum number of entities.
    pub max: usize,
}

/// Answers from an earlier part of the log. If an answer is not available, `fault` returns the error: check it before
/// acting on a state.
pub trait Base: Debug {
    fn entity(&self, subject: &Subject) -> Option<Entity>;

    /// The nth entity of its type.
    fn nth(&self, entity: EntityType, ordinal: u64) -> Option<Subject>;

    fn keyed(&self, key: &str) -> Option<Ulid>;

    /// The entities that match a query, sorted by id.
    fn entities(&self, query: &Query<'_>) -> Vec<Entity>;

    /// The entities of a type that are in a phase and not archived, in order of creation.
    fn in_phase(&self, entity: EntityType, phase: machine::Phase, limit: usize) -> Vec<Entity>;

    /// The entities of a type that named this one when they were created, sorted by id.
    fn made_for(&self, subject: &Subject, entity: EntityType) -> Vec<Subject>;

    /// Events that name this one as a parent, oldest first.
    fn children(&self, parent: Ulid, limit: usize) -> Vec<Ulid>;

    /// Idempotency keys greater than `after` with their events, sorted by key.
    fn keys(&self, after: Option<&str>, limit: usize) -> Vec<(String, Ulid)>;

    /// The tasks that an actor holds.
    fn held_by(&self, holder: &str) -> Vec<Entity>;

    /// The messages that a persona has not read, oldest first.
    fn unread_by(&self, persona: &str, limit: usize) -> Vec<Entity>;

    /// The lengths of a project's deadlines by one timer, sorted; 0 where the settings determine the length.
    fn limits(&self, project: Option<&str>, timer: Timer) -> Vec<u64>;

    /// The entities with a deadline of this length that started at `until` or earlier, earliest first.
    fn counting_from(&self, query: &DeadlineQuery<'_>) -> Vec<Entity>;

    /// The settings recorded last.
    fn settings(&self) -> Option<Value>;

    fn tally(&self) -> Tally;

    /// The error, if any answer was not available.
    fn fault(&self) -> Option<Error>;
}
