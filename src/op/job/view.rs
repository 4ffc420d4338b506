//! The state of a job: check and list; and cancelling it.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::json;

use super::settle::{OutlivedTask, is_in_progress, liveness_of, outlived, settle};
use super::{end, id_of, newest_log, run_of};
use crate::base::actor::ActorKind;
use crate::base::{EntityId, EntityType, Error, Reason, Result, Subject, Timestamp, limits, names};
use crate::event::Kind;
use crate::job::{
    CancelReason, Ended, ExitRecord, JobDir, JobLiveness, Need, Signals, end_rest, kill_orphan, probe, rest,
    signal_supervisor, wait_for_end, wait_for_rest,
};
use crate::machine::Phase;
use crate::op::kernel::{Mode, Transaction, View, check_project, is_stopped, record_one, with_view};
use crate::op::{Context, ListFilter, mission};
use crate::policy::mission::{callers_step, is_gos, is_operators};
use crate::policy::project;
use crate::policy::rules::{self, Blocker};
use crate::policy::settings::Setting;
use crate::state::{Entity, State};
use crate::vault::Vault;

names! {
    /// The state of a job, in one word.
    pub enum JobStanding {
        Queued = "QUEUED",
        Running = "RUNNING",
        Done = "DONE",
        Fail = "FAIL",
        Orphaned = "ORPHANED",
        Lost = "LOST",
    }
}

/// What a queued job waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobWait {
    /// A stop, with its reason.
    Stop(String),
    /// The pause of its project, with its time and reason.
    Pause(String),
    Approval,
    Requirement,
    Dependency,
    /// The start of its nth retry.
    Retry(u64),
    Turn,
}

impl JobWait {
    fn of_task(state: &State, task: &Entity) -> JobWait {
        if is_stopped(state) {
            return JobWait::Stop(rules::stopped(state).message);
        }
        // Its requirement may be blocked after it became ready. What is assigned was allowed to start.
        let blockers = match task.phase {
            Phase::Proposed | Phase::Ready => rules::blockers(state, task),
            _ => Vec::new(),
        };
        // An approval is what an operator can give now, even during a pause.
        if blockers.contains(&Blocker::Approval) {
            return JobWait::Approval;
        }
        if blockers.iter().any(|blocker| matches!(blocker, Blocker::Requirement(_))) {
            return JobWait::Requirement;
        }
        if let Some(why) = project::project_of(task).and_then(|project| project::why_paused(state, &project)) {
            return JobWait::Pause(why);
        }
        match blockers.first() {
            Some(_) => JobWait::Dependency,
            None => match task.as_task().retry_count() {
                0 => JobWait::Turn,
                retry => JobWait::Retry(retry),
            },
        }
    }

    /// Whether only an operator can let the job go on, so that waiting for it is not enough. A pause asks its agents to
    /// leave by itself, and waiting through one is allowed.
    pub fn needs_operator(&self) -> bool {
        matches!(self, JobWait::Stop(_) | JobWait::Approval | JobWait::Requirement)
    }

    fn sentence(&self) -> String {
        match self {
            JobWait::Stop(why) | JobWait::Pause(why) => format!("Waiting: {why}"),
            JobWait::Approval => "Waiting for an operator's approval".to_owned(),
            JobWait::Requirement => "Waiting for its requirement to be approved".to_owned(),
            JobWait::Dependency => "Waiting for another task".to_owned(),
            JobWait::Retry(retry) => format!("Waiting for retry {retry}"),
            JobWait::Turn => "Waiting for its turn".to_owned(),
        }
    }
}

/// What is said about an orphan whose main process is gone.
const ORPHANED_REST: &str = "Its supervisor and its main process are gone; processes that it started are still running";

/// One job.
#[derive(Debug)]
pub struct JobView {
    pub task: Entity,
    pub standing: JobStanding,
    /// What it waits for, if it is queued.
    pub waits_for: Option<JobWait>,
    /// Whether a supervisor takes care of it.
    pub is_supervised: bool,
    /// Whether it is an orphan whose main process is gone, too, so that only what that one started is alive.
    pub is_main_gone: bool,
    pub run_id: Option<String>,
    /// Where the log of its newest run is, or will be.
    pub(in crate::op) logref: String,
    /// How its newest run ended, if it did.
    pub record: Option<ExitRecord>,
    /// When its newest run started, and how long it has been running or ran.
    pub started_at: Option<Timestamp>,
    pub seconds: Option<u64>,
    /// Whether only an operator can say how to go on after its end.
    is_operators: bool,
    /// Whether `hf-state go` goes on after its failure.
    pub is_gos: bool,
    /// The mission of which it is a failed step that its caller repairs.
    pub(super) callers_step: Option<Subject>,
}

impl JobView {
    /// Whether the job has ended, as far as a caller is concerned.
    pub fn is_over(&self) -> bool {
        matches!(self.standing, JobStanding::Done | JobStanding::Fail | JobStanding::Lost)
    }

    /// The reference of its newest log; none if it ended before its command ran.
    pub fn logref(&self) -> Option<&str> {
        Some(self.logref.as_str()).filter(|_| !self.is_over() || self.run_id.is_some())
    }

    /// Whether only an operator can do something about it: it waits for one, a person ended it, its mission has no round
    /// left, or only processes that it left behind are alive.
    pub fn needs_operator(&self) -> bool {
        match self.standing {
            JobStanding::Queued => self.waits_for.as_ref().is_some_and(JobWait::needs_operator),
            JobStanding::Fail | JobStanding::Lost => self.is_operators,
            // What is left of it may never end, and no result will come of it.
            JobStanding::Orphaned => self.is_main_gone,
            JobStanding::Running | JobStanding::Done => false,
        }
    }

    /// How its log differs from what it printed, in words; none if the log has everything so far.
    pub fn log_gap(&self) -> Option<String> {
        self.record.as_ref().and_then(|record| record.log.gap())
    }

    /// One sentence: how it ended and its own last line, or its state; and what its log lacks.
    pub fn summary(&self) -> String {
        let record = self.record.as_ref();
        let ended = |is_success| record.map(|record| end::sentence(record, self.task.as_task(), is_success));
        match self.standing {
            JobStanding::Queued => self.waits_for.as_ref().unwrap_or(&JobWait::Turn).sentence(),
            JobStanding::Running => "Still running".to_owned(),
            JobStanding::Orphaned if self.is_main_gone => ORPHANED_REST.to_owned(),
            JobStanding::Orphaned => "Still running, without its supervisor".to_owned(),
            JobStanding::Done => ended(true).unwrap_or_else(|| "Job finished".to_owned()),
            JobStanding::Lost => {
                "Job was lost with its supervisor".to_owned() + end::lost(&self.task).unwrap_or_default()
            }
            JobStanding::Fail => ended(false).unwrap_or_else(|| end::unseen(&self.task)),
        }
    }
}

/// A job; records its end first if that was missed. Refuses any other task.
pub(super) fn job_of(ctx: &Context, vault: &Vault, reference: &str) -> Result<JobView> {
    let view = task_of(ctx, vault, reference)?;
    match view.task.is_job() {
        true => {
            // The process that fired it or recorded its end may have been killed before it rewrote the mission's file.
            mission::settle_file(ctx, vault);
            Ok(view)
        }
        false => {
            let name = view.task.name();
            let why = format!("{name} is a task, but not a job; hf-task show {name} shows its state");
            Err(Error::usage(why).about(view.task.short_reference()))
        }
    }
}

/// A job or another task, with the state of its processes if it has any.
fn task_of(ctx: &Context, vault: &Vault, reference: &str) -> Result<JobView> {
    let found = |state: &State| {
        let subject = state.find(reference, EntityType::Task)?;
        Ok(state.entity(&subject).expect("it was resolved").into_owned())
    };
    let task = with_view(vault, |_, state| found(state))?;
    // In a read-only vault the end cannot be recorded, but the job can be shown.
    let liveness = match settle(ctx, vault, &task, Mode::Write) {
        Ok(settled) => settled.liveness,
        Err(_) => liveness_of(vault, &task)?,
    };
    // With what is due: an approval that nobody gave in time may have ended it.
    let now = View::open(ctx, vault)?;
    let known = found(now.state()).map(|task| RecordedJob::of_task(now.state(), task))?;
    drop(now);
    Ok(view(ctx, vault, known, liveness))
}

/// What the log has about a job.
struct RecordedJob {
    task: Entity,
    logref: String,
    started_at: Option<Timestamp>,
    waits_for: JobWait,
    is_operators: bool,
    is_gos: bool,
    callers_step: Option<Subject>,
}

impl RecordedJob {
    fn of_task(state: &State, task: Entity) -> Self {
        let run = task.as_task().last_run().and_then(|run| state.entity(&run).map(Cow::into_owned));
        let started_at = run.and_then(|run| run.as_run().started_at());
        let waits_for = JobWait::of_task(state, &task);
        let (is_operators, is_gos) = (is_operators(state, &task), is_gos(state, &task));
        let callers_step = callers_step(state, &task);
        let logref = newest_log(state, &task);
        RecordedJob { logref, task, started_at, waits_for, is_operators, is_gos, callers_step }
    }
}

fn view(ctx: &Context, vault: &Vault, known: RecordedJob, liveness: Option<JobLiveness>) -> JobView {
    let RecordedJob { task, logref, started_at, waits_for, is_operators, is_gos, callers_step } = known;
    let is_supervised = liveness == Some(JobLiveness::Supervised);
    // What cannot be found out counts as alive.
    let is_main_gone = matches!(&liveness, Some(JobLiveness::Orphaned(main)) if !main.lives().unwrap_or(true));
    let standing = match (task.phase, liveness) {
        (_, Some(JobLiveness::Orphaned(_))) => JobStanding::Orphaned,
        (Phase::Succeeded, _) => JobStanding::Done,
        (Phase::Archived, _) if task.as_task().succeeded_at().is_some() => JobStanding::Done,
        (Phase::Aborted | Phase::Archived, _) if end::lost(&task).is_some() => JobStanding::Lost,
        (Phase::Aborted | Phase::Archived | Phase::Failed, _) => JobStanding::Fail,
        (_, Some(JobLiveness::Lost)) => JobStanding::Lost,
        // Its end could not be recorded, but it is known.
        (Phase::Running, Some(JobLiveness::Ended(record))) => ended_as(&task, &record),
        (Phase::Running, _) => JobStanding::Running,
        _ => JobStanding::Queued,
    };
    let run = run_of(&task);
    let job = JobDir::open(vault.path(), &id_of(&task)).ok().flatten();
    let record = job.zip(run.as_ref()).and_then(|(job, run)| job.exit_record(run).ok().flatten());
    let until = match (&record, standing) {
        (Some(record), _) => Some(record.finished_at),
        (None, JobStanding::Running | JobStanding::Orphaned) => Some(ctx.now.timestamp()),
        (None, _) => None,
    };
    let seconds = started_at.zip(until).map(|(from, until)| until.0.saturating_sub(from.0).max(0) as u64);
    let waits_for = Some(waits_for).filter(|_| standing == JobStanding::Queued);
    let run_id = run.map(|run| run.to_string());
    JobView {
        task,
        standing,
        waits_for,
        is_supervised,
        is_main_gone,
        run_id,
        logref,
        record,
        started_at,
        seconds,
        is_operators,
        is_gos,
        callers_step,
    }
}

/// What a job is whose last run ended like this, once that is recorded.
fn ended_as(task: &Entity, record: &ExitRecord) -> JobStanding {
    match record.ended {
        Ended::Exited { code: 0 } => JobStanding::Done,
        _ if task.as_task().max_retries().is_some_and(|max| task.as_task().retry_count() < max) => JobStanding::Running,
        _ => JobStanding::Fail,
    }
}

/// A job to check.
#[derive(Clone, Debug, Default)]
pub struct CheckJobRequest {
    /// The task of the job.
    pub reference: String,
}

/// Returns the state of a job.
pub fn check(ctx: &Context, request: CheckJobRequest) -> Result<JobView> {
    job_of(ctx, &ctx.open()?, &request.reference)
}

/// Which jobs to list.
#[derive(Clone, Debug)]
pub struct ListJobsRequest {
    /// Only jobs that have not ended.
    pub running: bool,
    /// At most this many.
    pub limit: usize,
    /// Only these.
    pub filter: ListFilter,
}

impl Default for ListJobsRequest {
    fn default() -> Self {
        ListJobsRequest { running: false, limit: limits::PAGE_DEFAULT_COUNT, filter: ListFilter::default() }
    }
}

/// Jobs, newest first.
#[derive(Debug)]
pub struct JobsOutcome {
    pub jobs: Vec<JobView>,
}

/// Lists jobs, newest first.
pub fn list(ctx: &Context, request: ListJobsRequest) -> Result<JobsOutcome> {
    let ListJobsRequest { running, limit, filter } = request;
    let max = limits::PAGE_MAX_COUNT;
    if limit == 0 || limit > max {
        return Err(Error::usage(format!("invalid limit {limit}; must be 1 to {max}")));
    }
    let vault = ctx.open()?;
    let jobs = with_view(&vault, |_, state| {
        check_project(ctx, state)?;
        let phases: &[Phase] = match running {
            true => &[Phase::Proposed, Phase::Ready, Phase::Assigned, Phase::Running, Phase::Retrying],
            false => Phase::ALL,
        };
        let mut jobs: Vec<Entity> = phases.iter().flat_map(|phase| jobs_in(state, *phase)).collect();
        if running {
            let alive = outlived(&vault, state)?.into_iter().filter(OutlivedTask::is_orphaned);
            jobs.extend(alive.map(|job| job.task));
        }
        jobs.retain(|job| filter.fits(job));
        jobs.sort_by_key(|job| std::cmp::Reverse(job.ordinal));
        jobs.truncate(limit);
        Ok(jobs.into_iter().map(|job| RecordedJob::of_task(state, job)).collect::<Vec<_>>())
    })?;
    // A directory that cannot be read does not hide the other jobs: the log still has something about the job.
    let view_job = |known: RecordedJob| {
        job_of(ctx, &vault, &known.task.subject.to_string()).unwrap_or_else(|_| view(ctx, &vault, known, None))
    };
    // What is settled about a job can end those that wait for it, which came later: so the oldest first.
    let mut jobs: Vec<JobView> = jobs.into_iter().rev().map(view_job).collect();
    jobs.reverse();
    Ok(JobsOutcome { jobs })
}

/// How many tasks of one phase are read at most.
const LIST_MAX: usize = 10_000;

fn jobs_in(state: &State, phase: Phase) -> Vec<Entity> {
    let mut tasks = state.in_phase(EntityType::Task, phase, LIST_MAX);
    tasks.retain(Entity::is_job);
    tasks
}

/// How much longer than the kill grace a job may take to end.
const END_MARGIN: Duration = Duration::from_secs(13);

/// A job to cancel.
#[derive(Clone, Debug, Default)]
pub struct CancelRequest {
    /// The task of the job.
    pub reference: String,
}

/// A cancelled job.
#[derive(Debug)]
pub struct CancelOutcome {
    pub view: JobView,
    /// Whether it had already ended.
    pub already_ended: bool,
    /// Its processes that could not be ended, as `PID NAME`.
    pub left: Vec<String>,
}

/// Cancels a job: ends its processes first, then records it. An agent may cancel only jobs that it fired.
pub fn cancel(ctx: &Context, request: CancelRequest) -> Result<CancelOutcome> {
    let CancelRequest { reference } = request;
    let vault = ctx.open()?;
    let found = with_view(&vault, |_, state| {
        let subject = state.find(&reference, EntityType::Task)?;
        Ok(state.entity(&subject).expect("it was resolved").into_owned())
    })?;
    if !found.is_job() {
        return job_of(ctx, &vault, &reference).map(|view| CancelOutcome {
            view,
            already_ended: true,
            left: Vec::new(),
        });
    }
    check_membership(ctx, &vault, &found)?;
    let has_ended = !is_in_progress(&found);
    // Its task may have ended without its processes.
    let liveness = if has_ended { liveness_of(&vault, &found)? } else { None };
    let outlives_task = matches!(liveness, Some(JobLiveness::Orphaned(_)));
    let job = JobDir::open(vault.path(), &id_of(&found))?;
    let leaves_rest = || job.as_ref().map_or(Ok(false), JobDir::is_noted_running);
    if has_ended && !outlives_task && !leaves_rest()? {
        return Ok(CancelOutcome { view: job_of(ctx, &vault, &reference)?, already_ended: true, left: Vec::new() });
    }
    // An agent that ran it for a task of somebody else holds that task.
    let fired_by = found.as_task().recorded_holder().or(found.as_task().proposed_by()).unwrap_or_default();
    if ctx.caller.actor.kind == ActorKind::Agent && fired_by != ctx.caller.actor.to_string() {
        return Err(Error::refused(Reason::NotHolder, format!("{} was fired by {fired_by}", found.name())));
    }
    let missing = || Error::not_found(format!("the directory of {} is missing", found.name()));
    let job = job.ok_or_else(missing)?;
    let config = vault.config();
    let grace = Duration::from_secs(config.count(Setting::JobsKillGrace));
    // First, so that no command retries a job without a supervisor, not even this one.
    job.cancel(CancelReason::Cancelled, Some(&ctx.caller.actor))?;
    let left = end_all_processes(&job, run_of(&found).as_ref(), grace)?;
    let mut view = job_of(ctx, &vault, &reference)?;
    if is_in_progress(&view.task) && view.standing != JobStanding::Orphaned {
        // No supervisor is left to record the end.
        let reason = json!({"reason": CancelReason::Cancelled.as_str()});
        record_one(ctx, Kind::TaskAborted, Some(&view.task.subject.to_string()), reason, None)?;
        view = job_of(ctx, &vault, &reference)?;
    }
    let was_cancelled = outlives_task || view.task.as_task().abort_reason() == Some(CancelReason::Cancelled.as_str());
    Ok(CancelOutcome { already_ended: view.is_over() && !was_cancelled, view, left })
}

/// Checks the caller's session and project. Needed here because processes are ended before anything is recorded.
fn check_membership(ctx: &Context, vault: &Vault, task: &Entity) -> Result<()> {
    let tx = Transaction::dry_run(ctx, vault)?;
    tx.membership.check(tx.state(), Kind::TaskAborted, project::project_of(task).as_ref())?;
    match ctx.caller.actor.kind == ActorKind::Agent {
        true => project::check_may_continue(tx.state(), task),
        false => Ok(()),
    }
}

/// Waits until the processes of a job whose task was aborted have ended. Returns those that are left, as `PID NAME`.
pub(in crate::op) fn end_aborted(vault: &Vault, task: &Entity) -> Result<Vec<String>> {
    let Some(job) = JobDir::open(vault.path(), &id_of(task))?.filter(|_| task.is_job()) else { return Ok(Vec::new()) };
    let grace = Duration::from_secs(vault.config().count(Setting::JobsKillGrace));
    end_all_processes(&job, run_of(task).as_ref(), grace)
}

/// Waits until all processes of a job that was asked to end have ended. Those that nobody supervises are ended here. Returns
/// those that are left, as `PID NAME`.
fn end_all_processes(job: &JobDir, run: Option<&EntityId>, grace: Duration) -> Result<Vec<String>> {
    wait_for_end(&[job], Need::All, grace + END_MARGIN, &Signals::none()?)?;
    end_orphan(job, run, grace)?;
    end_leftover(job, grace)
}

fn end_orphan(job: &JobDir, run: Option<&EntityId>, grace: Duration) -> Result<()> {
    match (probe(job, run)?, run) {
        (JobLiveness::Orphaned(_), Some(run)) => kill_orphan(job, run, grace).map(drop),
        _ => Ok(()),
    }
}

/// Waits until what a job left behind has ended: its supervisor ends it, because it was asked to. Without a supervisor, it
/// is ended here. Returns the processes that are left.
fn end_leftover(job: &JobDir, grace: Duration) -> Result<Vec<String>> {
    match wait_for_rest(&[job], grace + END_MARGIN)? {
        true => end_rest(job, grace),
        false => rest(job),
    }
}

/// A job that may have processes, as far as a stop needs to know it.
#[derive(Clone, Debug)]
pub struct RunningJob {
    name: String,
    id: EntityId,
    run: Option<EntityId>,
}

impl RunningJob {
    pub fn of_task(task: &Entity) -> RunningJob {
        RunningJob { name: task.name(), id: id_of(task), run: run_of(task) }
    }

    /// Every job whose command was started and whose end was not seen, without reading the log.
    pub fn noted(vault: &Vault) -> Result<Vec<RunningJob>> {
        let of_id = |id: EntityId| {
            let identity = JobDir::open(vault.path(), &id).ok().flatten().and_then(|job| job.identity().ok().flatten());
            let run = identity.and_then(|identity| EntityId::parse(&identity.run_id).ok());
            RunningJob { name: format!("{}:{id}", EntityType::Task), id, run }
        };
        Ok(JobDir::noted_running(vault.path())?.into_iter().map(of_id).collect())
    }
}

/// After a stop: waits until every job has ended with all of its processes, at most the kill grace and a margin. Returns
/// the jobs that are left, each with a process of it, if one is known.
pub fn drain(vault: &Vault, running: &[RunningJob]) -> Result<Vec<String>> {
    let config = vault.config();
    let grace = Duration::from_secs(config.count(Setting::JobsKillGrace));
    // The stop is recorded: a directory that cannot be read is not an error, but its job may be left.
    let (mut jobs, mut left) = (Vec::new(), Vec::new());
    for known in running {
        match JobDir::open(vault.path(), &known.id) {
            Ok(job) => jobs.extend(job.map(|job| (known, job))),
            Err(_) => left.push(known.name.clone()),
        }
    }
    let dirs: Vec<&JobDir> = jobs.iter().map(|(_, job)| job).collect();
    dirs.iter().for_each(|job| signal_supervisor(job));
    // A job that cannot be waited for is found below.
    let _ = wait_for_end(&dirs, Need::All, grace.saturating_add(END_MARGIN), &Signals::none()?);
    for (known, job) in &jobs {
        let run = known.run.as_ref();
        let ended = end_orphan(job, run, grace).and_then(|()| end_leftover(job, grace));
        let processes = ended.as_ref().cloned().unwrap_or_default();
        left.extend(processes.iter().map(|process| format!("{} {process}", known.name)));
        let is_alive = || matches!(probe(job, run), Err(_) | Ok(JobLiveness::Supervised | JobLiveness::Orphaned(_)));
        if processes.is_empty() && (ended.is_err() || is_alive()) {
            left.push(known.name.clone());
        }
    }
    Ok(left)
}
