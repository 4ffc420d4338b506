//! The queue: ready jobs that wait for a free slot, in the order they were fired.
//!
//! No process manages it: a command that records an event that may let jobs start wakes those whose turn it is.

use crate::base::{Actor, EntityId, EntityType, Subject};
use crate::event::{Event, Kind};
use crate::job::{CancelReason, JobDir, JobLiveness, probe};
use crate::machine::Phase;
use crate::op::kernel::{Committing, FollowUp};
use crate::policy::ready::{jobs, next_jobs};
use crate::policy::{REACTOR, Settings, project};
use crate::state::{Entity, State};
use crate::vault::Vault;

/// Whether the job's project is paused or archived, so that the job cannot start.
pub fn is_project_inactive(state: &State, task: &Entity) -> bool {
    project::project_of(task).is_some_and(|project| project::phase(state, &project) != Phase::Active)
}

/// Whether there is a free slot for a job that is retried. While its project was paused it took no slot, so others
/// may be running by now.
pub fn has_room(state: &State, settings: &Settings) -> bool {
    (jobs(state, Phase::Running).len() as u64) < settings.max_parallel_jobs()
}

/// Whether it is a job's turn. Jobs that have lost their supervisor give way: nothing starts them until somebody notices.
pub fn has_turn(vault: &Vault, state: &State, settings: &Settings, task: &Entity) -> bool {
    let can_start = |job: &Entity| job.subject == task.subject || is_supervised(vault, job);
    next_jobs(state, settings, &can_start).iter().any(|next| next.subject == task.subject)
}

/// Whether a job has a supervisor; if that cannot be found out, it may have one.
fn is_supervised(vault: &Vault, job: &Entity) -> bool {
    let job = JobDir::open(vault.path(), &super::id_of(job)).ok().flatten();
    job.is_some_and(|job| probe(&job, None).map_or(true, |liveness| liveness == JobLiveness::Supervised))
}

/// Jobs whose supervisors have to be notified.
#[derive(Debug, Default)]
pub struct WakeUps {
    /// Check again whether it is their turn.
    recheck: Vec<EntityId>,
    /// Their tasks were aborted while they ran.
    end: Vec<EntityId>,
}

/// Notifies the supervisors of jobs that these events let start, or end, after the lock is released.
pub fn wake(committing: &Committing<'_>) -> Option<FollowUp> {
    let wake_ups = wake_ups_for(committing)?;
    Some(Box::new(move |vault| notify(vault, &wake_ups)))
}

/// The jobs whose supervisors have to be notified of these events.
fn wake_ups_for(committing: &Committing<'_>) -> Option<WakeUps> {
    let Committing { state, config, events, .. } = *committing;
    let may_matter = |event: &Event| event.event_type.known().is_some_and(|kind| kind.row().wakes_jobs);
    if !events.iter().any(may_matter) {
        return None;
    }
    let mut recheck: Vec<EntityId> = next_jobs(state, config, &|_| true).iter().map(super::id_of).collect();
    // A job that is retried has left the queue: it waits for its project to be resumed, and then for a free slot.
    if state.tally().made(EntityType::Project) > 0 {
        recheck.extend(jobs(state, Phase::Assigned).iter().map(super::id_of));
    }
    // A job that was aborted while it waited has to be notified, too.
    let aborted = events.iter().filter(|event| event.event_type.known() == Some(Kind::TaskAborted));
    recheck.extend(aborted.filter_map(|event| EntityId::parse(event.subject.split_once(':')?.1).ok()));
    // The supervisor of a run that was ended by a reaction to its task's end does not know of it yet.
    let reactor = Actor::core(REACTOR).to_string();
    let crashed_by_reaction =
        events.iter().filter(|e| e.event_type.known() == Some(Kind::RunCrashed) && e.actor == reactor);
    let end = crashed_by_reaction.filter_map(|event| {
        let run = state.entity(&Subject::parse(&event.subject).ok()?)?.into_owned();
        let task = state.entity(&run.as_run().task()?)?.into_owned();
        // One that waits for approval again is not over.
        (task.is_job() && task.phase != Phase::Proposed).then(|| super::id_of(&task))
    });
    Some(WakeUps { end: end.collect(), recheck })
}

/// Notifies them. Best effort: a waiting supervisor checks every few seconds anyway, and a job that keeps running
/// can be cancelled.
fn notify(vault: &Vault, wake_ups: &WakeUps) {
    let open = |id: &EntityId| JobDir::open(vault.path(), id).ok().flatten();
    for job in wake_ups.end.iter().filter_map(open) {
        let _ = job.cancel(CancelReason::Cancelled, None);
    }
    for job in wake_ups.recheck.iter().filter_map(open) {
        let _ = job.poke();
    }
}
