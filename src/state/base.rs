//! What a state can stand on instead of the whole log: something that remembers an earlier part of it.

use std::fmt::Debug;

use serde_json::Value;

use super::{Entity, Tally, Timer};
use crate::base::{EntityType, Error, Subject, Ulid};
use crate::machine;

/// Which entities.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub entity: EntityType,
    /// Those that have left the projections, or those that have not.
    pub archived: bool,
    /// How their ids begin.
    pub prefix: &'a str,
    /// Only ids greater than this.
    pub after: Option<&'a str>,
    pub limit: usize,
}

/// Which deadlines.
#[derive(Clone, Copy, Debug)]
pub struct DeadlineQuery<'a> {
    pub project: Option<&'a str>,
    pub timer: Timer,
    /// 0 where the settings say it.
    pub limit: u64,
    pub until: i64,
    pub most: usize,
}

/// Answers from an earlier part of the log. An answer that cannot be had is a `fault`, never a guess:
/// whoever acts on a state asks for it first.
pub trait Base: Debug {
    fn entity(&self, subject: &Subject) -> Option<Entity>;

    /// The nth entity of its type.
    fn nth(&self, entity: EntityType, ordinal: u64) -> Option<Subject>;

    fn keyed(&self, key: &str) -> Option<Ulid>;

    /// Entities that a query names, by id.
    fn entities(&self, query: &Query<'_>) -> Vec<Entity>;

    /// Entities of a type that are in a state, archived ones left out, in the order they were made.
    fn in_phase(&self, entity: EntityType, state: machine::Phase, limit: usize) -> Vec<Entity>;

    /// Entities of a type that named this one when they were made, by id.
    fn made_for(&self, subject: &Subject, entity: EntityType) -> Vec<Subject>;

    /// Events that name this one as a parent, oldest first.
    fn children(&self, parent: Ulid, limit: usize) -> Vec<Ulid>;

    /// Every key with its event, by key.
    fn keys(&self, after: Option<&str>, limit: usize) -> Vec<(String, Ulid)>;

    /// Tasks that this actor holds.
    fn held_by(&self, holder: &str) -> Vec<Entity>;

    /// The lengths of the deadlines of a project, of one timer; 0 where the settings say it. In their order.
    fn limits(&self, project: Option<&str>, timer: Timer) -> Vec<u64>;

    /// Entities with a deadline of this length that counts from this moment or an earlier one, the earliest first.
    fn counting_from(&self, query: &DeadlineQuery<'_>) -> Vec<Entity>;

    /// The settings that were recorded last.
    fn settings(&self) -> Option<Value>;

    fn tally(&self) -> Tally;

    /// Why an answer was not to be had.
    fn fault(&self) -> Option<Error>;
}
