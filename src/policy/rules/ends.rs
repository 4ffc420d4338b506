//! How work ended, and which attempts there were at it.

use crate::base::Actor;
use crate::base::actor::ActorKind;
use crate::machine;
use crate::state::{Entity, State};

/// Whether a requirement has ended.
pub fn is_over(phase: machine::Phase) -> bool {
    matches!(phase, machine::Phase::Rejected | machine::Phase::Superseded | machine::Phase::Verified)
}

/// The last task of the chain of reworks of a task; none if it was never reworked.
pub fn newest_rework(state: &State, task: &Entity) -> Option<Entity> {
    let mut newest: Option<Entity> = None;
    while let Some(next) = newest.as_ref().unwrap_or(task).as_task().rework() {
        newest = Some(state.entity(&next)?.into_owned());
    }
    newest
}

/// A task and the attempts before it, newest first.
pub fn attempts(state: &State, task: &Entity) -> Vec<Entity> {
    let mut attempts = vec![task.clone()];
    while let Some(before) = attempts.last().and_then(|task| state.entity(&task.as_task().continues()?)) {
        attempts.push(before.into_owned());
    }
    attempts
}

/// The reason with which a stop aborts a task; the reason of the stop follows it.
pub const STOP_REASON: &str = "emergency_stop";

/// The reason with which a job is aborted whose supervisor was lost, so that nobody knows its result.
pub const LOST_REASON: &str = "lost";

/// Whether a job was aborted because it was lost.
pub fn was_lost(task: &Entity) -> bool {
    task.is_job() && task.as_task().abort_reason().is_some_and(|why| why.starts_with(LOST_REASON))
}

/// Whether a stop aborted a task.
pub fn was_stopped(task: &Entity) -> bool {
    let by_reactor = task.as_task().aborted_by() == Some(&Actor::core(crate::policy::REACTOR).to_string());
    let why = task.as_task().abort_reason();
    // The supervisor of a job may be faster than the reactor.
    (by_reactor || task.is_job()) && why.is_some_and(|why| why.starts_with(STOP_REASON))
}

/// Whether a person ended a task on purpose: by a stop, by cancelling or aborting it, or by rejecting it.
pub fn was_ended_by_person(task: &Entity) -> bool {
    let by = task.as_task().aborted_by().and_then(|by| Actor::parse(by).ok());
    was_stopped(task) || by.is_some_and(|by| by.kind == ActorKind::User) || was_rejected(task)
}

/// How the reason begins with which a task is aborted that an operator rejected; the name of the decision is before it.
pub const WAS_REJECTED: &str = " was rejected";

/// Whether a task was aborted because an operator rejected it.
pub fn was_rejected(task: &Entity) -> bool {
    let by_reactor = task.as_task().aborted_by() == Some(&Actor::core(crate::policy::REACTOR).to_string());
    let decision = |why: &str| why.split_once(WAS_REJECTED).is_some_and(|(name, _)| !name.contains(' '));
    by_reactor && task.as_task().abort_reason().is_some_and(decision)
}

/// Whether a task can no longer be done: it was aborted, and so was its newest rework. What a stop aborted can be
/// reworked after it.
pub fn is_lost(state: &State, task: &Entity) -> bool {
    let newest = newest_rework(state, task);
    let last = newest.as_ref().unwrap_or(task);
    !is_done(state, task) && last.as_task().aborted_at().is_some() && !was_stopped(last)
}

/// Whether a task, or a later attempt at it, succeeded.
pub(super) fn is_done(state: &State, task: &Entity) -> bool {
    let mut attempt = Some(task.clone());
    while let Some(undone) = attempt.take_if(|task| task.as_task().succeeded_at().is_none()) {
        attempt = undone.as_task().rework().and_then(|rework| Some(state.entity(&rework)?.into_owned()));
    }
    attempt.is_some()
}
