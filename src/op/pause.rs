//! hf-pause and hf-resume: an operator pauses a project, and resumes it where it was.

use std::time::Duration;

use serde_json::json;

use super::authorize::authorize;
use super::job::OutlivedTask;
use super::{Context, Recorded, job};
use crate::base::{EntityId, EntityType, Error, Result, Subject};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::kernel::{Mode, Transaction, View, is_stopped, with_view};
use crate::policy::code::Code;
use crate::policy::settings::Setting;
use crate::policy::statement::Act;
use crate::policy::{Request, Standing, project, rules};
use crate::state::State;
use crate::vault::Vault;

/// How often a project is checked while a caller waits until it is drained.
const CHECK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct PauseOutcome {
    /// None if there was nothing to record: a resume of `main`, which was never paused.
    pub recorded: Option<Recorded>,
    pub project: PauseProgress,
}

/// The result of a pause, an archiving, or only a wait.
#[derive(Debug)]
pub struct RestOutcome {
    /// None after only a wait.
    pub recorded: Option<Recorded>,
    pub project: PauseProgress,
    /// Whether the wait was over before the project was drained.
    pub gave_up: bool,
}

/// How far a project is drained.
#[derive(Clone, Debug)]
pub struct PauseProgress {
    pub subject: Subject,
    pub phase: Phase,
    /// The sessions and jobs that are left, by name.
    pub left: Vec<String>,
}

/// A pause of the context's project.
#[derive(Clone, Debug, Default)]
pub struct PauseRequest {
    /// The reason.
    pub reason: String,
}

/// Pauses a project: nothing new starts, and its agents are asked to log out.
pub fn pause(ctx: &Context, request: PauseRequest) -> Result<PauseOutcome> {
    let reason = request.reason.trim();
    if reason.is_empty() {
        return Err(Error::usage("missing reason; a pause must have one"));
    }
    let grace = ctx.open()?.config().count(Setting::PauseGraceSeconds);
    let payload = json!({"reason": reason, "grace_seconds": grace});
    let request = ctx.request(Kind::ProjectPaused, Some(&ctx.project().to_string()), payload);
    change(ctx, "pausing a project", request)
}

/// An archiving of the context's project.
#[derive(Clone, Debug, Default)]
pub struct ArchiveRequest {
    /// The reason.
    pub reason: Option<String>,
}

/// Archives a project: from now on it can only be read.
pub fn archive(ctx: &Context, request: ArchiveRequest) -> Result<PauseOutcome> {
    change(ctx, "archiving a project", archiving(ctx, &request))
}

pub(super) fn archiving(ctx: &Context, request: &ArchiveRequest) -> Request {
    ctx.request(Kind::ProjectArchived, Some(&ctx.project().to_string()), json!({"reason": request.reason}))
}

/// A resume of the context's project.
#[derive(Clone, Debug, Default)]
pub struct ResumeProjectRequest {
    /// The reason.
    pub comment: Option<String>,
}

/// Resumes a project: its work continues where it was.
pub fn resume_project(ctx: &Context, request: ResumeProjectRequest) -> Result<PauseOutcome> {
    change(ctx, "resuming a project", resuming(ctx, &request))
}

pub(super) fn resuming(ctx: &Context, request: &ResumeProjectRequest) -> Request {
    ctx.request(Kind::ProjectResumed, Some(&ctx.project().to_string()), json!({"comment": request.comment}))
}

fn change(ctx: &Context, what: &str, request: Request) -> Result<PauseOutcome> {
    let vault = ctx.open()?;
    let kind = request.kind;
    let is_act = Act::of_kind(kind).is_some()
        && with_view(&vault, |_, state| {
            check_known(state, &ctx.project())?;
            Ok(state.phase_of(&ctx.project()) != Phase::Absent || kind != Kind::ProjectResumed)
        })?;
    let request = match is_act {
        true => authorize(ctx, what, vec![request])?.remove(0),
        false => {
            ctx.check_operator(what)?;
            request
        }
    };
    let mut tx = Transaction::begin(ctx, &vault)?;
    let project = ctx.project();
    check_known(tx.state(), &project)?;
    if kind == Kind::ProjectResumed && is_stopped(tx.state()) {
        return Err(rules::stopped(tx.state()));
    }
    // Viewed before the commit: an error after it would refuse what is recorded.
    let (recorded, project) = match tx.state().phase_of(&project) {
        Phase::Absent if kind == Kind::ProjectResumed => (None, progress(&vault, tx.state(), &project)?),
        _ => {
            let asked = tx.ask(request)?;
            let progress = progress(&vault, tx.state(), &project)?;
            (Some(tx.finish(&[asked])?), progress)
        }
    };
    Ok(PauseOutcome { recorded, project })
}

/// Refuses the context's project if it does not exist.
pub fn check_exists(ctx: &Context) -> Result<()> {
    with_view(&ctx.open()?, |_, state| check_known(state, &ctx.project()))
}

/// Refuses an unknown project: it is more likely a typo than a new project.
fn check_known(state: &State, project: &Subject) -> Result<()> {
    match state.phase_of(project) == Phase::Absent && project.id() != project::MAIN {
        true => Err(project::unknown(state, project)),
        false => Ok(()),
    }
}

fn progress(vault: &Vault, state: &State, project: &Subject) -> Result<PauseProgress> {
    let mut left = project::still_active(state, project);
    // The log knows when a task ended, but not whether its processes did.
    let alive = job::outlived(vault, state)?.into_iter().filter(OutlivedTask::may_live).map(|job| job.task);
    let of_project = alive.filter(|task| project::project_of(task).as_ref() == Some(project));
    left.extend(of_project.map(|task| task.name()));
    Ok(PauseProgress { subject: project.clone(), phase: project::phase(state, project), left })
}

/// What to do with the context's project.
#[derive(Clone, Debug, Default)]
pub struct RestRequest {
    /// The reason for a pause; none to only wait.
    pub reason: Option<String>,
    /// Archive it instead.
    pub archive: bool,
    /// Wait until it is drained, at most this long.
    pub wait: Option<Duration>,
}

/// Pauses or archives a project, and waits until it is drained if requested.
pub fn rest(ctx: &Context, request: RestRequest) -> Result<RestOutcome> {
    let done = match (request.archive, request.reason) {
        (true, reason) => Some(archive(ctx, ArchiveRequest { reason })?),
        (false, Some(reason)) => Some(pause(ctx, PauseRequest { reason })?),
        (false, None) => None,
    };
    let (recorded, project) = done.map_or((None, None), |done| (done.recorded, Some(done.project)));
    let project = match (project, request.wait) {
        (Some(project), None) => project,
        (_, max) => wait_until_drained(ctx, WaitUntilDrainedRequest { max: max.unwrap_or_default() })?,
    };
    let gave_up = request.wait.is_some() && project.phase == Phase::Paused && !project.left.is_empty();
    Ok(RestOutcome { recorded, project, gave_up })
}

/// A wait for the context's project.
#[derive(Clone, Debug, Default)]
pub struct WaitUntilDrainedRequest {
    /// The longest wait.
    pub max: Duration,
}

/// Waits until a paused project is drained. What is overdue is recorded meanwhile, so that no watchdog is needed.
pub fn wait_until_drained(ctx: &Context, request: WaitUntilDrainedRequest) -> Result<PauseProgress> {
    ctx.check_operator("waiting for a pause")?;
    let vault = ctx.open()?;
    let signals = ctx.cancel.signals()?;
    let until = crate::job::moment().checked_add(request.max);
    let project = ctx.project();
    with_view(&vault, |_, state| check_known(state, &project))?;
    loop {
        let ctx = ctx.at_this_moment();
        settle(&ctx, &vault, &project)?;
        let progress = with_view(&vault, |_, state| progress(&vault, state, &project))?;
        let timed_out = until.is_some_and(|until| crate::job::moment() >= until);
        if progress.left.is_empty() || timed_out || signals.asked().is_some() || progress.phase != Phase::Paused {
            return Ok(progress);
        }
        signals.pause(CHECK_EVERY)?;
    }
}

/// Ends sessions past their limit, and records the end of jobs whose supervisor could not.
fn settle(ctx: &Context, vault: &Vault, project: &Subject) -> Result<()> {
    let view = View::open(ctx, vault)?;
    let sessions_due = view.due.iter().any(|due| due.code == Code::SessionExpired);
    let jobs = project::jobs(view.state(), project);
    // The view keeps the index in use, which a process that has the vault's lock may wait for.
    drop(view);
    for task in jobs {
        job::settle(ctx, vault, &task, Mode::Write)?;
    }
    match sessions_due {
        true => Transaction::begin(ctx, vault)?.settle(std::slice::from_ref(project)),
        false => Ok(()),
    }
}

/// The state of a project.
#[derive(Debug)]
pub struct ProjectView {
    pub name: String,
    pub phase: Phase,
    /// Since when it has been paused or archived, by whom and why.
    pub standing: Option<Standing>,
    pub sessions: usize,
    /// Tasks in progress.
    pub running: usize,
    /// Tasks that have not ended.
    pub open: usize,
}

/// Every project, `main` first; empty if there is only `main` and it was never paused.
pub fn views(state: &State) -> Vec<ProjectView> {
    let known = state.entities(EntityType::Project, None, usize::MAX);
    if known.is_empty() {
        return Vec::new();
    }
    let tasks_in = |phase: Phase| state.in_phase(EntityType::Task, phase, usize::MAX);
    let (in_progress, waiting) = ([Phase::Assigned, Phase::Running, Phase::Retrying], [Phase::Proposed, Phase::Ready]);
    let projects = |phases: &[Phase]| -> Vec<Subject> {
        phases.iter().flat_map(|phase| tasks_in(*phase)).filter_map(|task| project::project_of(&task)).collect()
    };
    let (in_progress, waiting) = (projects(&in_progress), projects(&waiting));
    let mut names: Vec<Subject> = vec![project::main()];
    names.extend(known.into_iter().map(|project| project.subject).filter(|subject| *subject != project::main()));
    let view = |subject: Subject| {
        let count = |all: &[Subject]| all.iter().filter(|other| **other == subject).count();
        ProjectView {
            name: subject.id().to_owned(),
            phase: project::phase(state, &subject),
            standing: Standing::of_project_alone(state, &subject),
            sessions: project::sessions(state, &subject).len(),
            running: count(&in_progress),
            open: count(&in_progress) + count(&waiting),
        }
    };
    names.into_iter().map(view).collect()
}

/// Refuses a requirement that belongs to another project than the named one.
pub(super) fn check_same_project(ctx: &Context, state: &State, requirement: &str) -> Result<()> {
    let requirement = state.entity(&state.find(requirement, EntityType::Requirement)?).map(|r| r.into_owned());
    let actual = requirement.as_ref().and_then(project::project_of);
    match (requirement, actual, ctx.project.as_ref().map(project::subject)) {
        (Some(requirement), Some(actual), Some(named)) if actual != named => Err(Error::usage(format!(
            "{} belongs to project {}, not to {}",
            requirement.name(),
            actual.id(),
            named.id()
        ))),
        _ => Ok(()),
    }
}

/// The id of a project for a payload; none for `main`, which is the default.
pub(super) fn project_member(project: Option<&EntityId>) -> Option<&str> {
    project.map(EntityId::as_str).filter(|name| *name != project::MAIN)
}
