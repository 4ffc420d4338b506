//! Who may work on a task: its holder, until the claim is lost.

use serde_json::Value;

use super::{Step, illegal};
use crate::base::actor::ActorKind;
use crate::base::{EntityType, Error, Reason, Result};
use crate::event::Kind;
use crate::event::kind::{Claim, SubjectType};
use crate::machine;
use crate::policy::mission;
use crate::state::{Entity, State, linked};

impl Step<'_> {
    /// The task that an event is about, that it moves, or that its run belongs to.
    pub(in crate::policy) fn claimed_task(&self, state: &State) -> Option<Entity> {
        let row = self.kind.row();
        let task = match (row.about, row.moves) {
            (SubjectType::One(EntityType::Task), _) => Some(self.subject.clone()),
            (_, Some(_)) => linked(self.kind, self.payload),
            (_, None) => state.entity(self.subject).and_then(|run| run.as_run().task()),
        };
        state.entity(&task?).map(|task| task.into_owned())
    }
}

/// Only the holder of a task works on it; the toolkit itself may end work that fell silent.
pub(super) fn claim_is_held(state: &State, step: &Step<'_>) -> Result<()> {
    let Step { kind, actor, .. } = *step;
    if actor.kind == ActorKind::Core {
        return Ok(());
    }
    match kind.row().claim {
        Claim::Unneeded => return Ok(()),
        Claim::Makes => return may_assign(state, step),
        Claim::NeedsIfAgent if actor.kind != ActorKind::Agent => return Ok(()),
        Claim::Needs | Claim::NeedsIfAgent => {}
    }
    let Some(task) = step.claimed_task(state) else { return Ok(()) };
    use machine::Phase::{Assigned, Retrying, Running};
    let me = actor.to_string();
    let is_others = |holder: &str| holder != me && matches!(task.phase, Assigned | Running | Retrying);
    let held_by_other = task.as_task().recorded_holder().filter(|holder| is_others(holder));
    // A former holder may abort a task that nobody works on.
    let is_told = kind != Kind::TaskAborted || held_by_other.is_some();
    // Tell the former holder what happened to the task, not that the transition is illegal.
    if let Some(lost) = lost_claim(state, &task, &me).filter(|_| is_told) {
        return Err(lost);
    }
    match held_by_other {
        Some(holder) => Err(Error::refused(Reason::NotHolder, format!("{} is held by {holder}", task.name()))),
        None => Ok(()),
    }
}

/// Refuses to count the end of a task as the doing of a holder that had lost it before.
pub fn ended_by_holder(state: &State, step: &Step<'_>) -> Result<()> {
    let needs_claim = step.kind.row().claim == Claim::Needs && step.actor.kind != ActorKind::Core;
    let task = needs_claim.then(|| step.claimed_task(state)).flatten();
    match task.and_then(|task| lost_claim(state, &task, &step.actor.to_string())) {
        Some(lost) => Err(lost),
        None => Ok(()),
    }
}

/// The refusal of a former holder that has lost its claim, with what became of the task; none if it has not.
pub fn lost_claim(state: &State, task: &Entity, me: &str) -> Option<Error> {
    let known = task.as_task();
    let why = if known.recorded_holder() == Some(me) {
        // A task that was aborted keeps its last holder.
        known.aborted_at()?;
        match timed_out(state, task) {
            true => format!("{}; its run timed out and the task was aborted", how_lost(state, task)),
            false if was_taken(task, me) => {
                let why = known.abort_reason().map(|why| format!(": {why}")).unwrap_or_default();
                format!("{} was aborted{why}", task.name())
            }
            false => return None,
        }
    } else {
        known.past_holders().find(|holder| *holder == me)?;
        match known.taken_from() == Some(me) {
            true => {
                let why = known.assigned_because().map(|why| format!(": {why}")).unwrap_or_default();
                format!("{} was taken from you{why}; {}", task.name(), fate(task)?)
            }
            false => format!("{}; {}", how_lost(state, task), fate(task)?),
        }
    };
    let is_free = task.phase == machine::Phase::Ready && crate::policy::ready::may_start(state, task);
    let error = Error::refused(Reason::ClaimLost, why);
    Some(error.about(task.short_reference().filter(|_| is_free)))
}

/// What became of a task after its holder lost it.
fn fate(task: &Entity) -> Option<String> {
    use machine::Phase::{Aborted, Archived, Assigned, Proposed, Ready, Retrying, Running, Succeeded};
    let known = task.as_task();
    Some(match (task.phase, known.recorded_holder()) {
        (Ready, _) => "the task can be claimed again".to_owned(),
        (Proposed, _) => "the task waits again".to_owned(),
        (Assigned | Running | Retrying, Some(holder)) => format!("{holder} holds the task now"),
        (Succeeded | Archived | Aborted, _) => match (known.succeeded_at(), known.abort_reason()) {
            (Some(_), _) => "the task has succeeded since".to_owned(),
            (None, Some(why)) => format!("the task was aborted since: {why}"),
            (None, None) => "the task was aborted since".to_owned(),
        },
        _ => return None,
    })
}

/// How a task was lost: its last run took too long, or its lease expired.
fn how_lost(state: &State, task: &Entity) -> String {
    let run = task.as_task().last_run().and_then(|run| state.entity(&run));
    let is_overtime =
        run.is_some_and(|run| run.phase == machine::Phase::TimedOut && run.as_run().reason() == Some("overtime"));
    match is_overtime {
        true => format!("the run of {} exceeded its time limit", task.name()),
        false => format!("your claim on {} has expired", task.name()),
    }
}

/// Whether somebody else aborted a task, and not because its holder reported a failure.
fn was_taken(task: &Entity, holder: &str) -> bool {
    let known = task.as_task();
    known.failed_actor() != Some(holder) && known.aborted_by() != Some(holder)
}

/// Whether the last run of a task timed out.
fn timed_out(state: &State, task: &Entity) -> bool {
    let run = task.as_task().last_run();
    run.is_some_and(|run| state.phase_of(&run) == machine::Phase::TimedOut)
}

/// An agent claims tasks only for itself, and a job is started only by its supervisor.
fn may_assign(state: &State, step: &Step<'_>) -> Result<()> {
    if let Some(task) = state.entity(step.subject).filter(|_| step.payload.get("job") != Some(&Value::Bool(true))) {
        if task.is_job() {
            let why = format!("{} is a job; only its supervisor can start it", task.name());
            return Err(Error::refused(Reason::NotHolder, why));
        }
        mission::check_may_claim(state, step.actor, &task)?;
    }
    // Only an operator takes a task from its holder, and says why.
    let is_held = matches!(state.phase_of(step.subject), machine::Phase::Assigned | machine::Phase::Running);
    if is_held && (step.actor.is_autonomous() || step.text("reason").is_none() || step.text("holder").is_none()) {
        return Err(illegal(state, step.subject, step.kind));
    }
    match step.text("holder") {
        Some(holder) if step.actor.kind == ActorKind::Agent && holder != step.actor.to_string() => {
            Err(Error::refused(Reason::NotHolder, format!("{} cannot claim a task for {holder}", step.actor)))
        }
        _ => Ok(()),
    }
}
