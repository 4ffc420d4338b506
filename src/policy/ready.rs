//! Which task to start next: one that an active priority constraint prefers, else the oldest.

use super::project;
use crate::base::{EntityType, Subject};
use crate::machine;
use crate::state::{Entity, State};

/// How many constraints are examined for a priority.
const CONSTRAINTS_MAX: usize = 1000;
/// How many ready tasks are examined for one that may start.
const READY_MAX: usize = 10_000;

/// The next task to start, of one project if given, and the constraint that put it first, if any.
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

/// Whether a ready task may start: its requirement may have been blocked, or its project paused, since it became ready.
fn may_start(state: &State, task: &Entity, wanted: Option<&Subject>) -> bool {
    let project = project::project_of(task);
    let is_active = project.as_ref().is_none_or(|p| project::phase(state, p) == machine::Phase::Active);
    let is_wanted = wanted.is_none() || project.as_ref() == wanted;
    !task.is_job() && is_active && is_wanted && super::rules::blockers(state, task).is_empty()
}

fn prefers(preferred: &Subject, task: &Entity) -> bool {
    *preferred == task.subject || task.as_task().requirement().as_ref() == Some(preferred)
}

/// How many tasks are in progress. Tasks on hold with their project do not count towards the limit.
pub fn active(state: &State) -> u64 {
    use machine::Phase::{Archived, Assigned, Paused, Retrying, Running};
    let in_progress = [Assigned, Running, Retrying];
    let all: u64 = in_progress.iter().map(|phase| state.tally().in_phase(EntityType::Task, *phase)).sum();
    let inactive_projects: u64 =
        [Paused, Archived].iter().map(|phase| state.tally().in_phase(EntityType::Project, *phase)).sum();
    if all == 0 || inactive_projects == 0 {
        return all;
    }
    let tasks = in_progress.iter().flat_map(|phase| state.in_phase(EntityType::Task, *phase, usize::MAX));
    tasks.filter(|task| !is_on_hold(state, task)).count() as u64
}

/// Whether a task waits for its project to be resumed. A running job does not: it runs to its end.
pub fn is_on_hold(state: &State, task: &Entity) -> bool {
    let is_running_job = task.is_job() && task.phase == machine::Phase::Running;
    let project = project::project_of(task);
    !is_running_job && project.is_some_and(|project| project::phase(state, &project) != machine::Phase::Active)
}
