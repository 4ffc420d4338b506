//! A job that nobody supervises: its end is recorded, or another supervisor takes it over.
//!
//! | processes | task | what is done |
//! |---|---|---|
//! | ended, exit record written | Running | the end is recorded |
//! | none left, no exit record | Running | the run crashed: `lost` |
//! | none left | waits for its turn, an approval or a retry | a new supervisor, at most `--retries` times; then `lost` |
//! | none yet: who fired it died before it had a supervisor | - | its first supervisor |
//! | alive, without a supervisor | - | nothing: a job never runs beside its orphan |
//!
//! If the task goes on after that, because a retry is left, a new supervisor runs it.
//!
//! Invariant: the job's lock is held from the last check until the new supervisor has it, so that the command never runs
//! twice at a time (`a_lost_job_is_retried_once_however_many_notice`). A copy of a vault starts nothing
//! (`a_copy_of_a_vault_runs_nothing`).

use std::ffi::OsString;

use serde_json::{Value, json};

use super::fire::{LOCK_WAIT, start};
use super::{end, id_of, queue, run_of};
use crate::base::{Actor, EntityType, ErrorKind, Result, Subject};
use crate::event::{Event, Kind};
use crate::job::{
    CancelReason, JobDir, JobLiveness, JobLock, Spec, StartWith, SupervisorProgram, has_rest, probe, probe_locked,
};
use crate::machine::Phase;
use crate::op::Context;
use crate::op::kernel::{Mode, Transaction, is_stopped, with_view};
use crate::policy::settings::Settings;
use crate::policy::{component, project, rules};
use crate::state::{Entity, State};
use crate::vault::Vault;

/// The member of a spec that counts how many supervisors were lost while the job waited.
const REPLACED: &str = "replaced";
/// How often a job that never had a supervisor is given one.
const FIRST_STARTS_MAX: u64 = 5;

/// A job after it was settled.
#[derive(Debug, Default)]
pub struct SettledJob {
    /// The state of its processes; none if it has no directory.
    pub liveness: Option<JobLiveness>,
    /// Whether it had lost its supervisor.
    pub lost: Option<LostJob>,
    /// What was recorded.
    pub events: Vec<Event>,
}

/// A job that had lost its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostJob {
    /// Another supervisor took it over.
    Replaced,
    ForGood,
}

/// Whether a task has not ended, so that somebody must take care of its job.
pub(super) fn is_in_progress(task: &Entity) -> bool {
    task.phase == Phase::Running || is_waiting(task)
}

fn is_waiting(task: &Entity) -> bool {
    matches!(task.phase, Phase::Proposed | Phase::Ready | Phase::Assigned | Phase::Retrying)
}

fn is_unattended(task: &Entity, liveness: &JobLiveness) -> bool {
    is_in_progress(task) && matches!(liveness, JobLiveness::Ended(_) | JobLiveness::Lost)
}

/// What is wrong with a job that nobody supervises, in words.
pub(in crate::op) fn what_is_wrong(task: &Entity, liveness: &JobLiveness) -> Option<&'static str> {
    match liveness {
        JobLiveness::Lost => Some("its supervisor is gone, and its result is unknown"),
        // It waits for another run: what has ended is the one before, whose result is recorded.
        JobLiveness::Ended(_) if is_waiting(task) => Some("its supervisor is gone, and its result is unknown"),
        JobLiveness::Orphaned(_) => Some("it runs without its supervisor"),
        JobLiveness::Ended(_) => Some("it has ended, but its result is not recorded"),
        JobLiveness::Supervised => None,
    }
}

/// The same for a task that may be a job: in progress, or with processes that outlive it.
pub(in crate::op) fn unattended(vault: &Vault, task: &Entity) -> Result<Option<&'static str>> {
    let Some(job) = JobDir::open(vault.path(), &id_of(task))?.filter(|_| task.is_job()) else { return Ok(None) };
    if !is_in_progress(task) && !job.is_noted_running()? {
        return Ok(None);
    }
    let liveness = probe(&job, run_of(task).as_ref())?;
    let concerns = is_in_progress(task) || matches!(liveness, JobLiveness::Orphaned(_));
    Ok(what_is_wrong(task, &liveness).filter(|_| concerns))
}

/// The state of a job's processes; none if it has no directory.
pub(super) fn liveness_of(vault: &Vault, task: &Entity) -> Result<Option<JobLiveness>> {
    JobDir::open(vault.path(), &id_of(task))?.map(|job| probe(&job, run_of(task).as_ref())).transpose()
}

/// A job whose task ended before a supervisor saw the end of its command.
#[derive(Debug)]
pub(in crate::op) struct OutlivedTask {
    pub task: Entity,
    /// The state of its processes, or why that is unknown.
    pub liveness: Result<JobLiveness>,
    /// Whether its run ended by itself and left processes behind.
    leaves_rest: bool,
}

impl OutlivedTask {
    /// Whether a process of it may be alive.
    pub fn may_live(&self) -> bool {
        self.leaves_rest || matches!(self.liveness, Err(_) | Ok(JobLiveness::Supervised | JobLiveness::Orphaned(_)))
    }

    /// Whether a process of it is alive, and nobody supervises it.
    pub fn is_orphaned(&self) -> bool {
        matches!(self.liveness, Ok(JobLiveness::Orphaned(_)))
    }

    /// Withdraws the note about its processes.
    pub fn forget(&self, vault: &Vault) {
        if let Ok(Some(job)) = JobDir::open(vault.path(), &id_of(&self.task)) {
            job.forget_running();
        }
    }
}

/// Every such job. Reads what is noted about running commands, so the number of finished jobs does not matter.
pub(in crate::op) fn outlived(vault: &Vault, state: &State) -> Result<Vec<OutlivedTask>> {
    let mut found = Vec::new();
    for id in JobDir::noted_running(vault.path())? {
        let task = state.entity(&Subject::new(EntityType::Task, id)).map(|task| task.into_owned());
        let Some(task) = task.filter(|task| !is_in_progress(task)) else { continue };
        let job = JobDir::open(vault.path(), &id_of(&task));
        let liveness = liveness_of(vault, &task).map(|liveness| liveness.unwrap_or(JobLiveness::Lost));
        // What cannot be found out may be so.
        let leaves_rest = job.and_then(|job| job.as_ref().map_or(Ok(false), has_rest)).unwrap_or(true);
        found.push(OutlivedTask { task, liveness, leaves_rest });
    }
    Ok(found)
}

/// The mark of a job that nobody supervises in a list of tasks: its subject, and what is wrong. None for anything else.
pub(in crate::op) fn mark(vault: &Vault, task: &Entity) -> Option<(String, String)> {
    let is_task = task.subject.entity == EntityType::Task;
    let what = is_task.then(|| unattended(vault, task)).and_then(Result::ok).flatten()?;
    Some((task.subject.to_string(), what.to_owned()))
}

/// Settles a job that has no supervisor. A dry run only tells what would become of it.
pub(in crate::op) fn settle(ctx: &Context, vault: &Vault, task: &Entity, mode: Mode) -> Result<SettledJob> {
    let as_found = |liveness| Ok(SettledJob { liveness, ..SettledJob::default() });
    let Some(job) = JobDir::open(vault.path(), &id_of(task))?.filter(|_| task.is_job()) else { return as_found(None) };
    let liveness = probe(&job, run_of(task).as_ref())?;
    if !is_unattended(task, &liveness) {
        return as_found(Some(liveness));
    }
    if mode == Mode::DryRun {
        let successor = Successor::find(ctx, &job)?;
        if let Some(first) = &successor
            && first.may_be_first(&job, vault, task)?
        {
            return as_found(Some(JobLiveness::Supervised));
        }
        let lost = with_view(vault, |_, state| {
            let goes_on = successor.is_some_and(|next| next.has_retry_left(state, task));
            Ok(if goes_on { LostJob::Replaced } else { LostJob::ForGood })
        })?;
        let lost = Some(lost).filter(|_| !(task.phase == Phase::Running && liveness != JobLiveness::Lost));
        return Ok(SettledJob { liveness: Some(liveness), lost, events: Vec::new() });
    }
    let lock = match job.take_lock(LOCK_WAIT) {
        Err(e) if e.kind == ErrorKind::Busy => return as_found(Some(JobLiveness::Supervised)),
        lock => lock?,
    };
    // With the lock, the state of the job no longer changes; without it, another process may have been faster.
    let Some(task) = current(vault, &task.subject)? else { return as_found(Some(liveness)) };
    let liveness = probe_locked(&job, &lock, run_of(&task).as_ref())?;
    match is_unattended(&task, &liveness) {
        true => Unattended { ctx, vault, job, lock }.settle(&task, liveness),
        false => as_found(Some(liveness)),
    }
}

fn current(vault: &Vault, subject: &Subject) -> Result<Option<Entity>> {
    with_view(vault, |_, state| Ok(state.entity(subject).map(|task| task.into_owned())))
}

/// A job without a supervisor, whose lock is held.
struct Unattended<'a> {
    ctx: &'a Context,
    vault: &'a Vault,
    job: JobDir,
    lock: JobLock,
}

impl Unattended<'_> {
    fn settle(self, task: &Entity, liveness: JobLiveness) -> Result<SettledJob> {
        self.job.forget_running();
        // The toolkit records this, not the actor that happens to run the command.
        let ctx = &self.ctx.acting_as(Actor::core(component::JOBS));
        let is_cancelled = self.job.cancel_reason()? == Some(CancelReason::Cancelled);
        let mut successor = Successor::find(ctx, &self.job)?.filter(|_| !is_cancelled);
        if let Some(mut first) =
            successor.take_if(|first| first.may_be_first(&self.job, self.vault, task).unwrap_or(false))
        {
            first.count(&self.job)?;
            first.start(self.vault, task, self.lock)?;
            return Ok(SettledJob { liveness: Some(JobLiveness::Supervised), ..SettledJob::default() });
        }
        let mut lost = true;
        let events = match (&liveness, task.phase) {
            (JobLiveness::Ended(record), Phase::Running) => {
                lost = false;
                end::record(ctx, self.vault, &self.job, record)?
            }
            (_, Phase::Running) => {
                let payload = json!({"reason": end::LOST, "transient": successor.is_some(), "escalate": false});
                self.record(ctx, task, is_cancelled, payload)?
            }
            _ => {
                successor =
                    with_view(self.vault, |_, state| Ok(successor.filter(|next| next.has_retry_left(state, task))))?;
                match &mut successor {
                    Some(next) => next.count(&self.job).map(|()| Vec::new())?,
                    None => self.record(ctx, task, is_cancelled, Value::Null)?,
                }
            }
        };
        let goes_on = current(self.vault, &task.subject)?.filter(is_waiting);
        let (liveness, fate) = match (goes_on, successor) {
            (Some(task), Some(successor)) => {
                // A request to end that concerned the last run does not concern the next one.
                if self.job.cancel_reason()? == Some(CancelReason::Silent) {
                    self.job.clear_cancel()?;
                }
                successor.start(self.vault, &task, self.lock)?;
                (JobLiveness::Supervised, LostJob::Replaced)
            }
            _ => (liveness, LostJob::ForGood),
        };
        Ok(SettledJob { liveness: Some(liveness), lost: Some(fate).filter(|_| lost), events })
    }

    /// Records that the job is lost, or cancelled if that was asked for before.
    fn record(&self, ctx: &Context, task: &Entity, is_cancelled: bool, crashed: Value) -> Result<Vec<Event>> {
        let ctx = &if is_cancelled { end::as_canceller(ctx, &self.job) } else { ctx.clone() };
        let mut tx = Transaction::begin(ctx, self.vault)?;
        let now = tx.state().entity(&task.subject).map(|task| task.last_event);
        // A stop, or an operator, may have ended it first.
        if now != Some(task.last_event) {
            return Ok(Vec::new());
        }
        let run = run_of(task).map(|run| Subject::new(EntityType::Run, run));
        let run = run.filter(|run| tx.state().phase_of(run) == Phase::Running && !is_cancelled);
        let reason = if is_cancelled { CancelReason::Cancelled.as_str() } else { end::LOST };
        let asked = match run {
            Some(run) => tx.ask(ctx.request(Kind::RunCrashed, Some(&run.to_string()), crashed))?,
            None => {
                let aborted = json!({"reason": reason});
                tx.ask(ctx.request(Kind::TaskAborted, Some(&task.subject.to_string()), aborted))?
            }
        };
        tx.commit(asked.id).map(|done| done.events)
    }
}

/// A supervisor that could take over a job.
struct Successor {
    program: SupervisorProgram,
    clock_env: Vec<(OsString, OsString)>,
    spec: Spec,
}

impl Successor {
    /// None if this program cannot start one, if the job's spec is damaged, or in a copy of the vault.
    fn find(ctx: &Context, job: &JobDir) -> Result<Option<Successor>> {
        let Some((program, spec)) = ctx.host.supervisor.clone().zip(job.spec().ok()) else { return Ok(None) };
        let is_original = spec.lock_inode.is_some() && spec.lock_inode == job.lock_inode()?;
        Ok(is_original.then(|| Successor { program, clock_env: ctx.host.clock_env.clone(), spec }))
    }

    fn replaced(&self) -> u64 {
        self.spec.extra.get(REPLACED).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Whether the job may be tried once more. Runs are counted in the log; supervisors that were lost before the command
    /// ran are counted here.
    fn has_retry_left(&self, state: &State, task: &Entity) -> bool {
        let max = rules::max_retries(state, &Settings::recorded(state).unwrap_or_default(), task);
        let used = if task.phase == Phase::Running { task.as_task().retry_count() } else { self.replaced() };
        let project = project::project_of(task);
        used < max && project.is_none_or(|project| project::phase(state, &project) != Phase::Archived)
    }

    /// Whether a job that never had a supervisor gets one now: only the caller has its secret variables, and nothing starts
    /// during a stop or a pause.
    fn may_be_first(&self, job: &JobDir, vault: &Vault, task: &Entity) -> Result<bool> {
        if !job.was_never_taken()? || !self.spec.secrets.is_empty() || self.replaced() >= FIRST_STARTS_MAX {
            return Ok(false);
        }
        with_view(vault, |_, state| Ok(!is_stopped(state) && !queue::is_project_inactive(state, task)))
    }

    /// Counts a supervisor that replaces another one before the command ran.
    fn count(&mut self, job: &JobDir) -> Result<()> {
        self.spec.extra.insert(REPLACED.to_owned(), (self.replaced() + 1).into());
        job.put_spec(&self.spec)
    }

    fn start(self, vault: &Vault, task: &Entity, lock: JobLock) -> Result<()> {
        let kept = self.spec.kept_env.into_iter().map(|(name, value)| (name.0, value.0));
        let variables: Vec<(OsString, OsString)> = kept.chain(self.clock_env).collect();
        start(&self.program, vault, &id_of(task), lock, StartWith::Variables(&variables))
    }
}
