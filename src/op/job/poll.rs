//! Waiting for jobs for a limited time.

use std::time::Duration;

use super::foreign::{self, ForeignStatus};
use super::id_of;
use super::view::{JobStanding, JobView, job_of};
use crate::base::{ErrorKind, Result, ShortRef};
use crate::job::{JobDir, Need, Signals, moment, wait_for_end};
use crate::op::Context;
use crate::policy::settings::Setting;
use crate::vault::Vault;

/// How often a task without a supervisor is checked.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The longest wait for several jobs, if the caller gives none.
const WAIT_DEFAULT: Duration = Duration::from_secs(270);

/// A job to wait for.
#[derive(Clone, Debug, Default)]
pub struct PollRequest {
    /// The task of the job, or the id of a foreign job.
    pub id: String,
    /// The pause between two queries to a foreign system.
    pub interval: Duration,
    /// The longest wait.
    pub max: Duration,
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
        last5: Vec<String>,
        logref: Option<String>,
    },
    NotFound,
}

/// Waits for a job; a signal ends the wait.
pub fn poll(ctx: &Context, request: PollRequest) -> Result<PollOutcome> {
    let vault = ctx.open()?;
    let signals = ctx.cancel.signals()?;
    match wait_for_job(ctx, &vault, &request.id, request.max, &signals) {
        Ok(view) => Ok(block(ctx, &view, request.limits)),
        // An id that is unknown here may belong to the other system.
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Usage) && error.about.is_none() => {
            match check_command(ctx, &vault)? {
                Some(command) if foreign::is_id(&request.id) => poll_foreign(ctx, &command, &request, &signals),
                _ if error.kind == ErrorKind::NotFound => Ok(PollOutcome::NotFound),
                _ => Err(error),
            }
        }
        Err(error) => Err(error),
    }
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
    wait_until_over(vault, &look, Need::All, max, signals).map(|mut jobs| jobs.remove(0))
}

/// Whether any or all of these jobs have ended.
fn enough(jobs: &[JobView], need: Need) -> bool {
    match need {
        Need::Any => jobs.iter().any(JobView::is_over),
        Need::All => jobs.iter().all(JobView::is_over),
    }
}

/// Waits until any or all of the jobs have ended, at most `max`, and returns their state.
fn wait_until_over(
    vault: &Vault,
    look: &dyn Fn() -> Result<Vec<JobView>>,
    need: Need,
    max: Duration,
    signals: &Signals,
) -> Result<Vec<JobView>> {
    let until = moment().checked_add(max);
    loop {
        let jobs = look()?;
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(moment()));
        if enough(&jobs, need) || left.is_zero() || signals.asked().is_some() {
            return Ok(jobs);
        }
        let (mut dirs, mut alone) = (Vec::new(), false);
        for view in jobs.iter().filter(|view| !view.is_over()) {
            let dir = JobDir::open(vault.path(), &id_of(&view.task))?.filter(|_| view.is_supervised);
            alone |= dir.is_none();
            dirs.extend(dir);
        }
        match alone {
            // Some have no supervisor whose lock could be waited for.
            true => signals.pause(left.min(CHECK_EVERY))?,
            false => drop(wait_for_end(&dirs.iter().collect::<Vec<_>>(), need, left, signals)?),
        }
    }
}

fn block(ctx: &Context, view: &JobView, limits: Vec<usize>) -> PollOutcome {
    let (summary, logref) = (view.summary(), view.logref().map(str::to_owned));
    match view.standing {
        JobStanding::Done => PollOutcome::Done { summary },
        JobStanding::Fail | JobStanding::Lost => {
            let last5 = view.record.as_ref().map(|record| record.last5.clone()).unwrap_or_default();
            PollOutcome::Fail { summary, needs_operator: view.needs_operator(), last5, logref }
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

fn poll_foreign(ctx: &Context, command: &str, request: &PollRequest, signals: &Signals) -> Result<PollOutcome> {
    let id = request.id.clone();
    let mut left = request.max;
    loop {
        match foreign::ask(command, &id)? {
            ForeignStatus::Done(summary) => {
                let summary = summary.unwrap_or_else(|| "Job finished".to_owned());
                return Ok(PollOutcome::Done { summary });
            }
            ForeignStatus::Failed { summary, last5 } => {
                let summary = summary.unwrap_or_else(|| "Job failed".to_owned());
                return Ok(PollOutcome::Fail { summary, needs_operator: false, last5, logref: None });
            }
            ForeignStatus::NotFound => return Ok(PollOutcome::NotFound),
            ForeignStatus::Running if left.is_zero() || signals.asked().is_some() => {
                let (summary, called) = ("Still running".to_owned(), ctx.host.poll_as.clone());
                let limits = request.limits.clone();
                return Ok(PollOutcome::Running { summary, id, called, needs_operator: false, limits });
            }
            ForeignStatus::Running => {
                let pause = left.min(request.interval);
                signals.pause(pause)?;
                left -= pause;
            }
        }
    }
}

/// Jobs to wait for.
#[derive(Clone, Debug)]
pub struct WaitRequest {
    /// The tasks of the jobs.
    pub references: Vec<String>,
    /// Whether to wait for any of them or for all.
    pub need: Need,
    /// The longest wait; default: 270 seconds.
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
    let jobs = wait_until_over(&vault, &look, need, max.unwrap_or(WAIT_DEFAULT), &signals)?;
    Ok(WaitOutcome { fulfilled: enough(&jobs, need), jobs, need, max })
}
