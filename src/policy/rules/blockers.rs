//! What a task waits for before it can start.

use super::ends::is_done;
use super::questions::{require_approval, require_approval_if_destructive};
use crate::base::{EntityType, Error, Reason, Result, Subject};
use crate::machine;
use crate::policy::approval::Question;
use crate::state::{Entity, State};

/// Refuses to start a task that is blocked.
pub(super) fn may_start(state: &State, subject: &Subject) -> Result<()> {
    let Some(task) = state.entity(subject) else { return Ok(()) };
    match blockers(state, &task).first() {
        Some(Blocker::Approval) => require_approval(state, Question::Destructive, subject),
        Some(blocker) => {
            Err(Error::refused(Reason::NotReady, format!("{} cannot start: {}", task.name(), blocker.why())))
        }
        None => Ok(()),
    }
}

/// Something that a task waits for before it can start.
#[derive(Clone, Debug, PartialEq)]
pub enum Blocker {
    Requirement(Box<Entity>),
    Dependency(Box<Entity>),
    /// It is destructive and an operator has not approved it.
    Approval,
}

impl Blocker {
    /// The reason as a clause, for `cannot start: …`.
    pub fn why(&self) -> String {
        match self {
            Blocker::Requirement(requirement) => {
                format!("requirement {} is {}, not Approved", requirement.name(), requirement.phase)
            }
            Blocker::Dependency(task) => format!("it waits for {}, which is {}", task.name(), task.phase),
            Blocker::Approval => "it is destructive and requires approval by an operator".to_owned(),
        }
    }
}

/// Everything that a task waits for before it can start.
pub fn blockers(state: &State, task: &Entity) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    let requirement = task.as_task().requirement().and_then(|r| state.entity(&r));
    if let Some(requirement) = requirement.filter(|r| r.phase != machine::Phase::Approved) {
        blockers.push(Blocker::Requirement(Box::new(requirement.into_owned())));
    }
    for id in task.as_task().after() {
        let Ok(subject) = Subject::parse(&format!("{}:{id}", EntityType::Task)) else { continue };
        if let Some(other) = state.entity(&subject).filter(|other| !is_done(state, other)) {
            blockers.push(Blocker::Dependency(Box::new(other.into_owned())));
        }
    }
    if require_approval_if_destructive(state, &task.subject).is_err() {
        blockers.push(Blocker::Approval);
    }
    blockers
}
