//! hf-stop and hf-resume --system: stops all work until an operator resumes it.

use serde_json::json;

use super::authorize::record_acts;
use super::job::RunningJob;
use super::{Context, Recorded, job, random_ulid};
use crate::base::{EntityType, Error, Result, Subject, limits, text};
use crate::event::Kind;
use crate::machine;
use crate::op::kernel::Transaction;
use crate::op::kernel::with_view;
use crate::policy::Request;
use crate::state::{Entity, State};
use crate::vault::{StopFlag, Vault, make_accessible};

/// How many times the flag is raised again because another stop was lifted meanwhile.
const RAISED_AGAIN_MAX_COUNT: usize = 100;

/// What recording a stop needs: whether it is in the log, and what there was to warn about.
type RecordedStop = Result<(bool, Vec<String>)>;

/// A stop of all work.
#[derive(Clone, Debug, Default)]
pub struct StopRequest {
    /// The reason.
    pub reason: String,
}

#[derive(Debug)]
pub struct StopOutcome {
    /// Whether everything was stopped already.
    pub duplicate: bool,
    /// Why the stop could not be recorded yet; its flag is in force.
    pub unrecorded: Option<Error>,
    /// The reason of the stop in force.
    pub reason: String,
    /// Jobs that are still running, by name.
    pub left: Vec<String>,
    pub warnings: Vec<String>,
}

/// Stops everything. The flag is written first, which needs no intact log; then the event is recorded, with the end of
/// every task in progress.
pub fn stop(ctx: &Context, request: StopRequest) -> Result<StopOutcome> {
    let reason = request.reason.trim();
    if reason.is_empty() {
        return Err(Error::usage("missing reason; a stop must have one"));
    }
    let vault = open(ctx)?;
    let before = vault.stop_flag();
    let flag =
        StopFlag { id: random_ulid(ctx.now)?.to_string(), reason: reason.to_owned(), by: ctx.caller.actor.to_string() };
    // First of all: nothing that is read or waited for below can be in the way. Supervisors see the flag and end their
    // jobs.
    vault.raise_stop(&flag)?;
    let running_jobs = running_jobs(&vault);
    let mut recorded = record(ctx, &vault, &flag);
    for _ in 0..RAISED_AGAIN_MAX_COUNT {
        // The flag in place may have been that of another stop, which was lifted.
        if matches!(recorded, Ok((true, _))) || recorded.is_err() && vault.stop_flag().is_some() {
            break;
        }
        vault.raise_stop(&flag)?;
        recorded = record(ctx, &vault, &flag);
    }
    let (unrecorded, warnings) = match recorded {
        Ok((true, warnings)) => (None, warnings),
        Ok((false, warnings)) => (Some(Error::corrupt("the stop is not in the log")), warnings),
        Err(error) => (Some(error), Vec::new()),
    };
    let raised = vault.stop_flag();
    // Without flag and event nothing is stopped, and the caller has to know.
    let unrecorded = match unrecorded {
        Some(error) if raised.is_none() => return Err(error),
        unrecorded => unrecorded,
    };
    let raised = raised.unwrap_or(flag);
    let duplicate = before.is_some_and(|before| before.id == raised.id);
    let left = job::drain(&vault, &running_jobs)?;
    Ok(StopOutcome { duplicate, unrecorded, reason: text::cut(&raised.reason, 200), left, warnings })
}

/// Opens the vault, whatever mode its directories have.
fn open(ctx: &Context) -> Result<Vault> {
    ctx.open().or_else(|_| {
        make_accessible(&ctx.vault);
        ctx.open()
    })
}

/// Records the stop: beginning a transaction records one that has only its flag.
fn record(ctx: &Context, vault: &Vault, flag: &StopFlag) -> RecordedStop {
    Transaction::begin(ctx, vault).map(|mut tx| {
        let stopped = tx.state().phase_of(&Subject::SYSTEM) == machine::Phase::Stopped;
        // Another command may have recorded this stop, and an operator lifted it since.
        let was_recorded = tx.state().keyed(&flag.key()).is_some();
        (stopped || was_recorded, std::mem::take(&mut tx.warnings))
    })
}

/// The jobs to wait for. If the log cannot be read, they are known from what is noted about running commands.
fn running_jobs(vault: &Vault) -> Vec<RunningJob> {
    let from_log = with_view(vault, |_, state| {
        let outlived = job::outlived(vault, state)?.into_iter().map(|job| job.task);
        Ok(job_tasks(state).into_iter().chain(outlived).map(|task| RunningJob::of_task(&task)).collect())
    });
    from_log.or_else(|_| RunningJob::noted(vault)).unwrap_or_default()
}

/// Jobs that may have processes.
fn job_tasks(state: &State) -> Vec<Entity> {
    use machine::Phase::{Assigned, Retrying, Running};
    // A ready job waits for its turn without a process of its command, and may continue to wait.
    let tasks = [Assigned, Running, Retrying]
        .iter()
        .flat_map(|phase| state.in_phase(EntityType::Task, *phase, limits::BATCH_MAX_EVENTS));
    tasks.filter(Entity::is_job).collect()
}

/// A stop to lift.
#[derive(Clone, Debug, Default)]
pub struct ResumeSystemRequest {
    /// The reason.
    pub comment: Option<String>,
}

/// A lifted stop.
#[derive(Debug)]
pub struct ResumeOutcome {
    pub recorded: Recorded,
}

/// Lets work start again. An act of an operator.
pub fn resume_system(ctx: &Context, request: ResumeSystemRequest) -> Result<ResumeOutcome> {
    let recorded = record_acts(ctx, "lifting a stop", vec![resuming(ctx, &request)])?;
    Ok(ResumeOutcome { recorded })
}

pub(super) fn resuming(ctx: &Context, request: &ResumeSystemRequest) -> Request {
    ctx.request(Kind::SystemResumed, None, json!({"comment": request.comment}))
}
