//! Which task is next: first what an active priority constraint prefers, then first in, first out.

use super::project;
use crate::base::{EntityType, Subject};
use crate::machine;
use crate::state::{Entity, State};

/// Constraints that are looked at for a priority.
const CONSTRAINTS_MAX: usize = 1000;
/// Ready tasks that are looked at for one that a constraint prefers.
const READY_MAX: usize = 10_000;

/// The task to take next, of one project if it is named, and the constraint that put it first, if one did.
pub fn next(state: &State, project: Option<&Subject>) -> Option<(Entity, Option<Entity>)> {
    if state.tally().in_phase(EntityType::Task, machine::Phase::Ready) == 0 {
        return None;
    }
    let may_start = |task: &Entity| may_start(state, task, project);
    let constraints = state.in_phase(EntityType::Constraint, machine::Phase::Active, CONSTRAINTS_MAX);
    for constraint in constraints {
        let Some(preferred) = constraint.as_constraint().priority() else { continue };
        let ready = state.in_phase(EntityType::Task, machine::Phase::Ready, READY_MAX);
        let first = ready.into_iter().find(|task| prefers(&preferred, task) && may_start(task));
        if let Some(task) = first {
            return Some((task, Some(constraint)));
        }
    }
    let mut ready = state.in_phase(EntityType::Task, machine::Phase::Ready, 1);
    if ready.first().is_some_and(|task| !may_start(task)) {
        ready = state.in_phase(EntityType::Task, machine::Phase::Ready, READY_MAX);
        ready.retain(|task| may_start(task));
    }
    ready.into_iter().next().map(|task| (task, None))
}

/// A task that is ready can be held up again: by a requirement that was blocked since, or by a pause.
fn may_start(state: &State, task: &Entity, wanted: Option<&Subject>) -> bool {
    let project = project::of(task);
    let at_work = project.as_ref().is_none_or(|p| project::standing(state, p) == machine::Phase::Active);
    let asked_for = wanted.is_none() || project.as_ref() == wanted;
    !task.is_job() && at_work && asked_for && super::rules::waits_for(state, task).is_empty()
}

fn prefers(preferred: &Subject, task: &Entity) -> bool {
    *preferred == task.subject || task.as_task().requirement().as_ref() == Some(preferred)
}

/// Tasks that somebody is at. What stands still with its project takes nobody's place.
pub fn active(state: &State) -> u64 {
    use machine::Phase::{Archived, Assigned, Paused, Retrying, Running};
    let under_way = [Assigned, Running, Retrying];
    let all: u64 = under_way.iter().map(|at| state.tally().in_phase(EntityType::Task, *at)).sum();
    let held_up: u64 = [Paused, Archived].iter().map(|at| state.tally().in_phase(EntityType::Project, *at)).sum();
    if all == 0 || held_up == 0 {
        return all;
    }
    let tasks = under_way.iter().flat_map(|at| state.in_phase(EntityType::Task, *at, usize::MAX));
    tasks.filter(|task| !stands_still(state, task)).count() as u64
}

/// Whether a task waits for its project to go on; a job that runs goes on to its end.
pub fn stands_still(state: &State, task: &Entity) -> bool {
    let runs = task.is_job() && task.phase == machine::Phase::Running;
    let project = project::of(task);
    !runs && project.is_some_and(|project| project::standing(state, &project) != machine::Phase::Active)
}
