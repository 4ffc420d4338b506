//! hf-stop and hf-resume --system: everything stops, and goes on when a person says so.

use serde_json::json;

use super::{Context, Recorded, job, random_ulid};
use crate::base::{EntityType, Error, Result, Subject, limits, text};
use crate::event::Kind;
use crate::machine;
use crate::op::kernel::Transaction;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::state::{Entity, State};
use crate::vault::StopFlag;

/// Stops of others that may be lifted under our hands before we give up.
const RAISED_AGAIN_MAX_COUNT: usize = 100;

/// Why everything is to stop.
#[derive(Clone, Debug, Default)]
pub struct StopRequest {
    /// Why.
    pub reason: String,
}

#[derive(Debug)]
pub struct StopOutcome {
    /// Whether everything was stopped before.
    pub duplicate: bool,
    /// Why the stop could not be recorded yet; it holds all the same.
    pub unrecorded: Option<Error>,
    /// Why it stands.
    pub reason: String,
    /// Jobs that are still there, by name.
    pub left: Vec<String>,
    pub warnings: Vec<String>,
}

/// Stops everything. The flag comes first and needs no healthy log; the event, with the end of every
/// task that somebody is at, comes after.
pub fn stop(ctx: &Context, request: StopRequest) -> Result<StopOutcome> {
    let reason = request.reason.trim();
    if reason.is_empty() {
        return Err(Error::usage("a stop needs a reason"));
    }
    let vault = ctx.open()?;
    let before = vault.stop_flag()?;
    let flag =
        StopFlag { id: random_ulid(ctx.now)?.to_string(), reason: reason.to_owned(), by: ctx.caller.actor.to_string() };
    // Looked at before anything is aborted: jobs are ended by their supervisors, who see the flag.
    let under_way = with_view(&vault, |_, state| Ok(job_tasks(state))).unwrap_or_default();
    if let Err(error) = vault.raise_stop(&flag)
        && vault.stop_flag()?.is_none()
    {
        return Err(error);
    }
    // Opening the tx records a stop that has only its flag so far.
    let record = || {
        Transaction::begin(ctx, &vault).map(|mut tx| {
            let stopped = tx.state().phase_of(&Subject::SYSTEM) == machine::Phase::Stopped;
            // Somebody else may have recorded ours, and a third lifted it since: it was heard.
            let heard = tx.state().keyed(&flag.key()).is_some();
            (stopped || heard, std::mem::take(&mut tx.warnings))
        })
    };
    let mut recorded = record();
    for _ in 0..RAISED_AGAIN_MAX_COUNT {
        if !matches!(recorded, Ok((false, _))) {
            break;
        }
        // The flag that was up belonged to a stop which is lifted; only now is there room for ours.
        vault.raise_stop(&flag)?;
        recorded = record();
    }
    let (unrecorded, warnings) = match recorded {
        Ok((true, warnings)) => (None, warnings),
        Ok((false, warnings)) => (Some(Error::corrupt("the log does not say so")), warnings),
        Err(error) => (Some(error), Vec::new()),
    };
    let up = vault.stop_flag()?;
    // Neither the flag nor the log says so: nothing is stopped, and nobody may believe it.
    let unrecorded = match unrecorded {
        Some(error) if up.is_none() => return Err(error),
        unrecorded => unrecorded,
    };
    let up = up.unwrap_or(flag);
    let duplicate = before.is_some_and(|before| before.id == up.id);
    let left = job::drain(&vault, &under_way)?;
    Ok(StopOutcome { duplicate, unrecorded, reason: text::cut(&up.reason, 200), left, warnings })
}

/// Jobs that may have processes.
fn job_tasks(state: &State) -> Vec<Entity> {
    use machine::Phase::{Assigned, Retrying, Running};
    // One that is ready and waits for its turn runs nothing, and may go on waiting.
    let tasks = [Assigned, Running, Retrying]
        .iter()
        .flat_map(|at| state.in_phase(EntityType::Task, *at, limits::BATCH_MAX_EVENTS));
    tasks.filter(Entity::is_job).collect()
}

/// Why a stop is lifted.
#[derive(Clone, Debug, Default)]
pub struct ResumeSystemRequest {
    /// Why.
    pub comment: Option<String>,
}

/// A stop that is lifted.
#[derive(Debug)]
pub struct ResumeOutcome {
    pub recorded: Recorded,
}

/// Lets work start again. For an operator.
pub fn resume_system(ctx: &Context, request: ResumeSystemRequest) -> Result<ResumeOutcome> {
    ctx.check_operator("lifting a stop")?;
    let recorded = record_one(ctx, Kind::SystemResumed, None, json!({"comment": request.comment}), None)?;
    Ok(ResumeOutcome { recorded })
}
