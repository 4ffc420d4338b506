//! The queue: jobs that are ready and wait for room, in the order they were fired.
//!
//! Nobody keeps it: whoever records something that may let a job go on pokes those whose turn it is.

use crate::base::{Actor, EntityId, EntityType, Subject};
use crate::event::{Event, Kind};
use crate::job::{CancelReason, JobDir};
use crate::machine::Phase;
use crate::op::kernel::{Committing, FollowUp};
use crate::policy::{REACTOR, Settings, project, ready};
use crate::state::{Entity, State};
use crate::vault::Vault;

/// Tasks that are looked at.
const LOOK_MAX: usize = 10_000;

fn jobs(state: &State, at: Phase) -> Vec<Entity> {
    let mut tasks = state.in_phase(EntityType::Task, at, LOOK_MAX);
    tasks.retain(Entity::is_job);
    tasks
}

/// The jobs that wait and have room now, in their order.
fn next(state: &State, settings: &Settings) -> Vec<Entity> {
    // Most often nobody waits, and then nothing is read.
    if state.tally().waiting_jobs() == 0 {
        return Vec::new();
    }
    let mut waiting = jobs(state, Phase::Ready);
    waiting.retain(|task| !is_held_up(state, task));
    let under_way = [Phase::Assigned, Phase::Running, Phase::Retrying].iter().flat_map(|at| jobs(state, *at));
    let under_way = under_way.filter(|job| !ready::stands_still(state, job)).count() as u64;
    let room = settings.max_parallel_jobs().saturating_sub(under_way);
    let all = settings.max_concurrent_tasks().saturating_sub(ready::active(state));
    waiting.truncate(room.min(all) as usize);
    waiting
}

/// Whether a job's project does not let it begin.
pub fn is_held_up(state: &State, task: &Entity) -> bool {
    project::project_of(task).is_some_and(|project| project::phase(state, &project) != Phase::Active)
}

/// Whether there is room for a job that is tried again. While its project stood still it kept nobody
/// waiting, so that others may run by now.
pub fn has_room(state: &State, settings: &Settings) -> bool {
    (jobs(state, Phase::Running).len() as u64) < settings.max_parallel_jobs()
}

/// Whether it is a job's turn.
pub fn has_turn(state: &State, settings: &Settings, task: &Entity) -> bool {
    next(state, settings).iter().any(|next| next.subject == task.subject)
}

/// Jobs whose supervisors have to be told something.
#[derive(Debug, Default)]
pub struct WakeUps {
    /// They should look again.
    look: Vec<EntityId>,
    /// Their tasks were given up while they ran.
    end: Vec<EntityId>,
}

/// Tells the supervisors of jobs that these events let go on, or end, when the lock is free.
pub fn wake(after: &Committing<'_>) -> Option<FollowUp> {
    let told = waiting(after)?;
    Some(Box::new(move |vault| tell(vault, &told)))
}

/// The jobs whose supervisors have to be told of these events.
fn waiting(after: &Committing<'_>) -> Option<WakeUps> {
    let Committing { state, settings, events } = *after;
    let may_matter = |event: &Event| event.event_type.known().is_some_and(|kind| kind.row().wakes_jobs);
    if !events.iter().any(may_matter) {
        return None;
    }
    let mut look: Vec<EntityId> = next(state, settings).iter().map(super::id_of).collect();
    // A job that is tried again waits with its place in the queue behind it: for its project to go on, and
    // then for room.
    if state.tally().made(EntityType::Project) > 0 {
        look.extend(jobs(state, Phase::Assigned).iter().map(super::id_of));
    }
    // A job that was given up while it waited has to know, too.
    let aborted = events.iter().filter(|event| event.event_type.known() == Some(Kind::TaskAborted));
    look.extend(aborted.filter_map(|event| EntityId::parse(event.subject.split_once(':')?.1).ok()));
    // A run whose end only follows from that of its task does not know of it yet.
    let reactor = Actor::core(REACTOR).to_string();
    let followed = events.iter().filter(|e| e.event_type.known() == Some(Kind::RunCrashed) && e.actor == reactor);
    let end = followed.filter_map(|event| {
        let run = state.entity(&Subject::parse(&event.subject).ok()?)?.into_owned();
        let task = state.entity(&run.as_run().task()?)?.into_owned();
        task.is_job().then(|| super::id_of(&task))
    });
    Some(WakeUps { end: end.collect(), look })
}

/// Tells them. Best effort: who waits looks by himself every few seconds, and what runs on can be cancelled.
fn tell(vault: &Vault, told: &WakeUps) {
    let open = |id: &EntityId| JobDir::open(vault.path(), id).ok().flatten();
    for job in told.end.iter().filter_map(open) {
        let _ = job.cancel(CancelReason::Cancelled);
    }
    for job in told.look.iter().filter_map(open) {
        let _ = job.poke();
    }
}
