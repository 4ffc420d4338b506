//! Waiting for jobs for a limited time.
//!
//! Waiting is working: an agent that waits keeps its claims and is not inactive
//! (`j5_waiting_for_a_job_renews_the_lease`). One that finds its jobs ended has not waited, and shows nothing.

use std::time::Duration;

use super::foreign::{self, ForeignStatus};
use super::id_of;
use super::view::{JobStanding, JobView, job_of};
use crate::base::{ErrorKind, Result, ShortRef, Subject};
use crate::job::{ExitRecord, JobDir, Need, Signals, moment, wait_for_end};
use crate::op::Context;
use crate::op::agent::WaitingAgent;
use crate::op::mission::ReportedFailureRequest;
use crate::policy::settings::Setting;
use crate::vault::Vault;

/// How often a task without a supervisor is checked.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A job to wait for.
#[derive(Clone, Debug, Default)]
pub struct PollRequest {
    /// The task of the job, or the id of a foreign job.
    pub id: String,
    /// The pause between two queries to a foreign system.
    pub interval: Duration,
    /// The longest wait; default: `jobs.poll_max_seconds`.
    pub max: Option<Duration>,
    /// The interval and the longest wait in seconds, as far as the caller gave them, to be repeated by the next poll.
    pub limits: Vec<usize>,
}

/// One of the four blocks of hf-poll.
#[derive(Debug, PartialEq, Eq)]
pub enum PollOutcome {
    Done {
        summary: String,
    },
    /// `id` is safe in a command line.
    Running {
        summary: String,
        id: String,
        /// The name that hf-poll was called by, if it is a different one.
        called: Option<String>,
        /// Whether only an operator can let it go on.
        needs_operator: bool,
        /// The caller's interval and limit, to be repeated.
        limits: Vec<usize>,
    },
    Fail {
        summary: String,
        /// Whether an operator ended it, so that there is nothing to fix.
        needs_operator: bool,
        /// Whether `hf-state go` goes on, so that there is nothing for the caller to fix.
        is_gos: bool,
        /// The failed step that this reports to its caller, who fixes it.
        reports: Option<ReportedFailureRequest>,
        last5: Vec<String>,
        logref: Option<String>,
    },
    NotFound,
}

/// Waits for a job; a signal ends the wait.
pub fn poll(ctx: &Context, request: PollRequest) -> Result<PollOutcome> {
    let vault = ctx.open()?;
    let signals = ctx.cancel.signals()?;
    let max = max_or_default(&vault, request.max);
    match wait_for_job(ctx, &vault, &request.id, max, &signals) {
        Ok(view) => Ok(block(ctx, &view, request.limits)),
        // An id that is unknown here may belong to the other system.
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Usage) && error.about.is_none() => {
            match check_command(ctx, &vault)? {
                Some(command) if foreign::is_id(&request.id) => {
                    ForeignPoll { command: &command, request: &request, max, signals: &signals }.run(ctx, &vault)
                }
                _ if error.kind == ErrorKind::NotFound => Ok(PollOutcome::NotFound),
                _ => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// The longest wait: what the caller says, or the settings.
fn max_or_default(vault: &Vault, max: Option<Duration>) -> Duration {
    max.unwrap_or_else(|| Duration::from_secs(vault.config().count(Setting::JobsPollMaxSeconds)))
}

/// Waits for a job at most `max`, and returns its state.
pub(in crate::op) fn wait_for_job(
    ctx: &Context,
    vault: &Vault,
    reference: &str,
    max: Duration,
    signals: &Signals,
) -> Result<JobView> {
    let look = || Ok(vec![job_of(ctx, vault, reference)?]);
    JobsWait { ctx, vault, need: Need::All, max, signals }.until_over(&look).map(|mut jobs| jobs.remove(0))
}

/// Whether any or all of these jobs have ended.
fn enough(jobs: &[JobView], need: Need) -> bool {
    match need {
        Need::Any => jobs.iter().any(JobView::is_over),
        Need::All => jobs.iter().all(JobView::is_over),
    }
}

/// A wait for jobs.
struct JobsWait<'a> {
    ctx: &'a Context,
    vault: &'a Vault,
    need: Need,
    max: Duration,
    signals: &'a Signals,
}

impl JobsWait<'_> {
    /// Waits until any or all of the jobs have ended, at most `max`, and returns their state.
    fn until_over(&self, look: &dyn Fn() -> Result<Vec<JobView>>) -> Result<Vec<JobView>> {
        let JobsWait { ctx, vault, need, max, signals } = *self;
        let until = moment().checked_add(max);
        let mut jobs = look()?;
        if enough(&jobs, need) {
            return Ok(jobs);
        }
        let mut agent = WaitingAgent::new(ctx, vault);
        loop {
            agent.sign(&jobs.iter().map(|view| &view.task.subject).collect::<Vec<_>>());
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(moment()));
            if enough(&jobs, need) || left.is_zero() || signals.asked().is_some() {
                return Ok(jobs);
            }
            self.pause(&jobs, agent.limit(left))?;
            jobs = look()?;
        }
    }

    /// Waits until something may have changed, at most `max`.
    fn pause(&self, jobs: &[JobView], max: Duration) -> Result<()> {
        let (mut dirs, mut alone) = (Vec::new(), false);
        for view in jobs.iter().filter(|view| !view.is_over()) {
            let dir = JobDir::open(self.vault.path(), &id_of(&view.task))?.filter(|_| view.is_supervised);
            alone |= dir.is_none();
            dirs.extend(dir);
        }
        match alone {
            // Some have no supervisor whose lock could be waited for.
            true => self.signals.pause(max.min(CHECK_EVERY)),
            false => wait_for_end(&dirs.iter().collect::<Vec<_>>(), self.need, max, self.signals).map(drop),
        }
    }
}

fn block(ctx: &Context, view: &JobView, limits: Vec<usize>) -> PollOutcome {
    let (summary, logref) = (view.summary(), view.logref().map(str::to_owned));
    match view.standing {
        JobStanding::Done => PollOutcome::Done { summary },
        JobStanding::Fail | JobStanding::Lost => {
            let last5 = view.record.as_ref().map(ExitRecord::last_lines).unwrap_or_default();
            let (needs_operator, is_gos) = (view.needs_operator(), view.is_gos);
            let mission = view.callers_step.clone().filter(|_| !needs_operator);
            let reports = mission.map(|mission| ReportedFailureRequest { mission, job: view.task.subject.clone() });
            PollOutcome::Fail { summary, needs_operator, is_gos, reports, last5, logref }
        }
        JobStanding::Queued | JobStanding::Running | JobStanding::Orphaned => {
            let reference = view.task.reference().map(|reference| ShortRef { tag: None, ..reference }.to_string());
            let id = reference.unwrap_or_else(|| view.task.subject.to_string());
            let needs_operator = view.needs_operator();
            PollOutcome::Running { summary, id, called: ctx.host.poll_as.clone(), needs_operator, limits }
        }
    }
}

/// The command that queries a foreign job system, if there is one.
fn check_command(ctx: &Context, vault: &Vault) -> Result<Option<String>> {
    match ctx.host.check_cmd.as_deref().map(str::trim).filter(|command| !command.is_empty()) {
        Some(command) => Ok(Some(command.to_owned())),
        None => vault.command(&vault.config(), Setting::JobsCheckCmd),
    }
}

/// A wait for a job of another system.
struct ForeignPoll<'a> {
    command: &'a str,
    request: &'a PollRequest,
    max: Duration,
    signals: &'a Signals,
}

impl ForeignPoll<'_> {
    fn run(&self, ctx: &Context, vault: &Vault) -> Result<PollOutcome> {
        let ForeignPoll { command, request, max, signals } = *self;
        let until = moment().checked_add(max);
        let left = || until.map_or(Duration::MAX, |until| until.saturating_duration_since(moment()));
        let mut status = foreign::ask(command, &request.id, left(), signals)?;
        let mut agent = WaitingAgent::new(ctx, vault);
        // A query that was not answered was a wait.
        let mut has_waited = status == ForeignStatus::Unknown;
        while matches!(status, ForeignStatus::Running | ForeignStatus::Unknown) && !left().is_zero() {
            agent.sign(NO_JOBS);
            has_waited = true;
            self.pause(left().min(request.interval), &mut agent)?;
            if signals.asked().is_some() {
                break;
            }
            status = foreign::ask(command, &request.id, left(), signals)?;
        }
        if has_waited {
            agent.sign(NO_JOBS);
        }
        Ok(match status {
            ForeignStatus::Done(summary) => {
                PollOutcome::Done { summary: summary.unwrap_or_else(|| "Job finished".to_owned()) }
            }
            ForeignStatus::Failed { summary, last5, logref } => {
                let summary = summary.unwrap_or_else(|| "Job failed".to_owned());
                PollOutcome::Fail { summary, needs_operator: false, is_gos: false, reports: None, last5, logref }
            }
            ForeignStatus::NotFound => PollOutcome::NotFound,
            ForeignStatus::Running | ForeignStatus::Unknown => PollOutcome::Running {
                summary: match status {
                    ForeignStatus::Unknown => "The job system did not answer, so the state of the job is unknown",
                    _ => "Still running",
                }
                .to_owned(),
                id: request.id.clone(),
                called: ctx.host.poll_as.clone(),
                needs_operator: false,
                limits: request.limits.clone(),
            },
        })
    }

    /// Waits for so long, unless a signal arrives.
    fn pause(&self, length: Duration, agent: &mut WaitingAgent<'_>) -> Result<()> {
        let until = moment().checked_add(length);
        loop {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(moment()));
            if left.is_zero() || self.signals.asked().is_some() {
                return Ok(());
            }
            self.signals.pause(agent.limit(left))?;
            if agent.limit(left).is_zero() {
                agent.sign(NO_JOBS);
            }
        }
    }
}

/// A job of another system has no task here.
const NO_JOBS: &[&Subject] = &[];

/// Jobs to wait for.
#[derive(Clone, Debug)]
pub struct WaitRequest {
    /// The tasks of the jobs.
    pub references: Vec<String>,
    /// Whether to wait for any of them or for all.
    pub need: Need,
    /// The longest wait; default: `jobs.poll_max_seconds`.
    pub max: Option<Duration>,
}

/// The state of several jobs after a wait.
#[derive(Debug)]
pub struct WaitOutcome {
    pub jobs: Vec<JobView>,
    /// Whether the wait is fulfilled: any or all of them have ended.
    pub fulfilled: bool,
    pub need: Need,
    /// The longest wait, as far as the caller gave one, to be repeated by the next wait.
    pub max: Option<Duration>,
}

/// Waits for several jobs: for any of them, or for all.
pub fn wait(ctx: &Context, request: WaitRequest) -> Result<WaitOutcome> {
    let WaitRequest { references, need, max } = request;
    let vault = ctx.open()?;
    let signals = ctx.cancel.signals()?;
    let look = || references.iter().map(|reference| job_of(ctx, &vault, reference)).collect();
    let wait = JobsWait { ctx, vault: &vault, need, max: max_or_default(&vault, max), signals: &signals };
    let jobs = wait.until_over(&look)?;
    Ok(WaitOutcome { fulfilled: enough(&jobs, need), jobs, need, max })
}
