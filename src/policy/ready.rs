//! Which task to start next: one that an active priority constraint prefers, else the most urgent, else the oldest. And
//! which agent is free to take it.

use super::settings::Settings;
use super::{mission, project};
use crate::base::{EntityId, EntityType, Subject, Timestamp};
use crate::event::kind::TASK_PRIORITIES;
use crate::machine;
use crate::state::{Entity, State};

/// How many constraints are examined for a priority.
const CONSTRAINTS_MAX: usize = 1000;
/// How many ready tasks are examined for one that may start.
const READY_MAX: usize = 10_000;

/// The task to start next.
#[derive(Clone, Debug)]
pub struct Choice {
    pub task: Entity,
    /// The constraint that put it first, if one did.
    pub constraint: Option<Entity>,
}

/// The next task to start, of one project if given.
pub fn next(state: &State, project: Option<&Subject>) -> Option<Choice> {
    let is_wanted = |task: &Entity| project.is_none() || project::project_of(task).as_ref() == project;
    first(state, &|task| is_wanted(task).then_some(())).map(|(choice, ())| choice)
}

/// An agent that is logged in to a project and holds no task.
#[derive(Clone, Debug)]
pub struct FreeAgent {
    pub name: EntityId,
    project: Subject,
    /// Since when it has had nothing to do.
    idle_since: Timestamp,
}

/// The agents with an active session that hold no task, longest idle first.
pub fn free_agents(state: &State, now: Timestamp) -> Vec<FreeAgent> {
    let mut free: Vec<FreeAgent> = Vec::new();
    for session in state.in_phase(EntityType::Session, machine::Phase::Active, usize::MAX) {
        let is_valid = session.as_session().expires_at().is_some_and(|expires| now <= expires);
        let name = session.as_session().agent().and_then(|agent| EntityId::parse(agent).ok()).filter(|_| is_valid);
        let Some((name, project)) = name.zip(project::project_of(&session)) else { continue };
        if !state.held_by(&format!("agent:{name}")).is_empty() {
            continue;
        }
        let agent = state.entity(&Subject::new(EntityType::Agent, name.clone()));
        let released = agent.and_then(|agent| agent.as_agent().released_at());
        let idle_since = released.max(Some(session.created_at)).unwrap_or(session.created_at);
        free.push(FreeAgent { name, project, idle_since });
    }
    free.sort_by(|a, b| (a.idle_since, &a.name).cmp(&(b.idle_since, &b.name)));
    free
}

/// The next task that one of these agents can take, and the agent. A task does not go back to an agent that lost it.
pub fn next_for(state: &State, free: &[FreeAgent]) -> Option<(Choice, EntityId)> {
    if free.is_empty() {
        return None;
    }
    first(state, &|task| {
        let project = project::project_of(task);
        let lost = |agent: &FreeAgent| {
            let me = format!("agent:{}", agent.name);
            task.as_task().past_holders().any(|holder| holder == me)
        };
        let fits = |agent: &&FreeAgent| Some(&agent.project) == project.as_ref() && !lost(agent);
        free.iter().find(fits).map(|agent| agent.name.clone())
    })
}

/// The first task that may start and for which `wanted` has an answer.
fn first<T>(state: &State, wanted: &dyn Fn(&Entity) -> Option<T>) -> Option<(Choice, T)> {
    if state.tally().in_phase(EntityType::Task, machine::Phase::Ready) == 0 {
        return None;
    }
    let answer = |task: &Entity| wanted(task).filter(|_| may_start(state, task));
    let constraints = state.in_phase(EntityType::Constraint, machine::Phase::Active, CONSTRAINTS_MAX);
    for constraint in constraints {
        let Some(preferred) = constraint.as_constraint().priority() else { continue };
        let ready = state.in_phase(EntityType::Task, machine::Phase::Ready, READY_MAX);
        let found = ready.into_iter().filter(|task| prefers(&preferred, task));
        let found = found.filter_map(|task| answer(&task).map(|answer| (task, answer))).next();
        if let Some((task, answer)) = found {
            return Some((Choice { task, constraint: Some(constraint) }, answer));
        }
    }
    // Most often the oldest will do.
    let is_ranked = state.tally().ranked_tasks() > 0;
    for limit in [1, READY_MAX].into_iter().skip(usize::from(is_ranked)) {
        let mut ready = state.in_phase(EntityType::Task, machine::Phase::Ready, limit);
        ready.sort_by_key(rank);
        let found = ready.into_iter().filter_map(|task| answer(&task).map(|answer| (task, answer))).next();
        if let Some((task, answer)) = found {
            return Some((Choice { task, constraint: None }, answer));
        }
    }
    None
}

/// The place of a task's priority among the priorities, most urgent first.
fn rank(task: &Entity) -> usize {
    let place = |name: &str| TASK_PRIORITIES.iter().position(|priority| *priority == name);
    task.as_task().priority().and_then(place).or_else(|| place("normal")).unwrap_or_default()
}

/// Whether a ready task may start: its requirement may have been blocked, its project paused, or the rounds of its
/// mission used up, since it became ready.
pub fn may_start(state: &State, task: &Entity) -> bool {
    let project = project::project_of(task);
    let is_active = project.as_ref().is_none_or(|p| project::phase(state, p) == machine::Phase::Active);
    let has_rounds = mission::out_of_rounds(state, task).is_none();
    !task.is_job() && is_active && has_rounds && super::rules::blockers(state, task).is_empty()
}

fn prefers(preferred: &Subject, task: &Entity) -> bool {
    *preferred == task.subject || task.as_task().requirement().as_ref() == Some(preferred)
}

/// The jobs in this phase.
pub fn jobs(state: &State, phase: machine::Phase) -> Vec<Entity> {
    let mut tasks = state.in_phase(EntityType::Task, phase, READY_MAX);
    tasks.retain(Entity::is_job);
    tasks
}

/// The waiting jobs that may start now, in order, of those that can be started at all.
pub fn next_jobs(state: &State, settings: &Settings, can_start: &dyn Fn(&Entity) -> bool) -> Vec<Entity> {
    let mut waiting = queue(state, settings, can_start);
    let free_tasks = settings.max_concurrent_tasks().saturating_sub(active(state));
    waiting.truncate(free_tasks as usize);
    waiting
}

/// The waiting jobs that nothing but the limit of tasks in progress keeps from starting, in order, of those that can be
/// started at all.
pub fn queue(state: &State, settings: &Settings, can_start: &dyn Fn(&Entity) -> bool) -> Vec<Entity> {
    use machine::Phase::{Assigned, Ready, Retrying, Running};
    // Usually no job waits, and then nothing is read.
    if state.tally().waiting_jobs() == 0 {
        return Vec::new();
    }
    let running = [Assigned, Running, Retrying].iter().flat_map(|phase| jobs(state, *phase));
    let running = running.filter(|job| !is_on_hold(state, job)).count() as u64;
    let free_slots = settings.max_parallel_jobs().saturating_sub(running);
    // One whose requirement was blocked must not keep the others waiting. No more are looked at than can start.
    let may_start =
        |job: &Entity| !is_on_hold(state, job) && super::rules::blockers(state, job).is_empty() && can_start(job);
    let mut ready = jobs(state, Ready);
    ready.sort_by_key(rank);
    ready.into_iter().filter(may_start).take(free_slots as usize).collect()
}

/// Whether as many tasks are in progress as the settings allow.
pub fn is_full(state: &State, settings: &Settings) -> bool {
    active(state) >= settings.max_concurrent_tasks()
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
