//! hf-pause and hf-resume: a person holds a project up, looks, mends, and lets it go on where it was.

use std::time::Duration;

use serde_json::json;

use super::{Context, Recorded, job};
use crate::base::{EntityId, EntityType, Error, Result, Subject};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::kernel::{Transaction, View, is_stopped, with_view};
use crate::policy::code::Code;
use crate::policy::settings::Setting;
use crate::policy::{project, rules};
use crate::state::State;
use crate::vault::Vault;

/// How often whoever waits for a project to come to rest looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct PauseOutcome {
    /// Nothing where there was nothing to record, ever: what nobody paused goes on already.
    pub recorded: Option<Recorded>,
    pub project: PauseProgress,
}

/// A project that was told to rest, or is waited for, and how far it has come to that.
#[derive(Debug)]
pub struct RestOutcome {
    /// Nothing where it was only waited for.
    pub recorded: Option<Recorded>,
    pub project: PauseProgress,
}

/// How far a project has come to rest.
#[derive(Clone, Debug)]
pub struct PauseProgress {
    pub subject: Subject,
    pub state: Phase,
    /// Who is still there: sessions and jobs, by name.
    pub left: Vec<String>,
}

/// A project that is to be held up: the one of the context.
#[derive(Clone, Debug, Default)]
pub struct PauseRequest {
    /// Why.
    pub reason: String,
}

/// Nothing starts in a project from here on, and its agents are asked to leave.
pub fn pause(ctx: &Context, request: PauseRequest) -> Result<PauseOutcome> {
    ctx.check_operator("pausing a project")?;
    let reason = request.reason.trim();
    if reason.is_empty() {
        return Err(Error::usage("a pause needs a reason"));
    }
    let (config, _) = ctx.open()?.config()?;
    let grace = config.count(Setting::PauseGraceSeconds);
    change(ctx, Kind::ProjectPaused, json!({"reason": reason, "grace_seconds": grace}))
}

/// A project that is closed for good: the one of the context.
#[derive(Clone, Debug, Default)]
pub struct ArchiveRequest {
    /// Why.
    pub reason: Option<String>,
}

/// It can only be read from here on.
pub fn archive(ctx: &Context, request: ArchiveRequest) -> Result<PauseOutcome> {
    ctx.check_operator("archiving a project")?;
    change(ctx, Kind::ProjectArchived, json!({"reason": request.reason}))
}

/// A project that is to go on: the one of the context.
#[derive(Clone, Debug, Default)]
pub struct ResumeProjectRequest {
    /// Why.
    pub comment: Option<String>,
}

/// Its work goes on where it was.
pub fn resume_project(ctx: &Context, request: ResumeProjectRequest) -> Result<PauseOutcome> {
    ctx.check_operator("resuming a project")?;
    change(ctx, Kind::ProjectResumed, json!({"comment": request.comment}))
}

fn change(ctx: &Context, kind: Kind, payload: serde_json::Value) -> Result<PauseOutcome> {
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let project = ctx.project();
    check_known(tx.state(), &project)?;
    if kind == Kind::ProjectResumed && is_stopped(tx.state()) {
        return Err(rules::stopped(tx.state()));
    }
    // Looked at before it is recorded: what is recorded is never refused.
    let (recorded, project) = match tx.state().phase_of(&project) {
        Phase::Absent if kind == Kind::ProjectResumed => (None, look(tx.state(), &project)),
        _ => {
            let asked = tx.ask(ctx.request(kind, Some(&project.to_string()), payload))?;
            let seen = look(tx.state(), &project);
            (Some(tx.finish(&[asked])?), seen)
        }
    };
    Ok(PauseOutcome { recorded, project })
}

/// A name that nothing belongs to is more likely a slip than a project.
fn check_known(state: &State, project: &Subject) -> Result<()> {
    match state.phase_of(project) == Phase::Absent && project.id() != project::MAIN {
        true => Err(Error::not_found(format!("there is no project '{}'", project.id()))),
        false => Ok(()),
    }
}

fn look(state: &State, project: &Subject) -> PauseProgress {
    let left = project::still_active(state, project);
    PauseProgress { subject: project.clone(), state: project::phase(state, project), left }
}

/// What a person wants of a project that is to rest.
#[derive(Clone, Debug, Default)]
pub struct RestRequest {
    /// Why; nothing if it is only waited for.
    pub reason: Option<String>,
    /// Close it for good.
    pub archive: bool,
    /// Wait until nobody is left in it, at most so long.
    pub wait: Option<Duration>,
}

/// Brings a project to rest: pauses or archives it, and waits for it where that is wanted.
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
    Ok(RestOutcome { recorded, project })
}

/// A paused project that is waited for: the one of the context.
#[derive(Clone, Debug, Default)]
pub struct WaitUntilDrainedRequest {
    /// At most so long.
    pub max: Duration,
}

/// Waits until a paused project has come to rest. What is overdue is recorded on the way, so that no watchdog is
/// needed.
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
        let seen = with_view(&vault, |_, state| Ok(look(state, &project)))?;
        let over = until.is_some_and(|until| crate::job::moment() >= until);
        if seen.left.is_empty() || over || signals.asked().is_some() || seen.state != Phase::Paused {
            return Ok(seen);
        }
        signals.pause(LOOK_EVERY)?;
    }
}

/// Sessions whose time is over are ended, and jobs that ended without a word are made up for.
fn settle(ctx: &Context, vault: &Vault, project: &Subject) -> Result<()> {
    let view = View::open(ctx, vault)?;
    let late = view.due.iter().any(|due| due.code == Code::SessionExpired);
    let jobs = project::jobs(view.state(), project);
    // It holds the index, for which whoever has the vault's lock may wait.
    drop(view);
    for task in jobs {
        job::settle(ctx, vault, &task)?;
    }
    match late {
        true => Transaction::begin(ctx, vault)?.settle(std::slice::from_ref(project)),
        false => Ok(()),
    }
}

/// How a project stands.
#[derive(Debug)]
pub struct ProjectView {
    pub name: String,
    pub state: Phase,
    pub sessions: usize,
    /// Tasks that somebody is at, and those that are not over.
    pub running: usize,
    pub open: usize,
}

/// Every project, `main` first; nothing where there was never more than `main`, and that was never paused.
pub fn views(state: &State) -> Vec<ProjectView> {
    let known = state.entities(EntityType::Project, None, usize::MAX);
    if known.is_empty() {
        return Vec::new();
    }
    let of_state = |at: Phase| state.in_phase(EntityType::Task, at, usize::MAX);
    let (going, waiting) = ([Phase::Assigned, Phase::Running, Phase::Retrying], [Phase::Proposed, Phase::Ready]);
    let projects = |states: &[Phase]| -> Vec<Subject> {
        states.iter().flat_map(|at| of_state(*at)).filter_map(|task| project::project_of(&task)).collect()
    };
    let (going, waiting) = (projects(&going), projects(&waiting));
    let mut names: Vec<Subject> = vec![project::main()];
    names.extend(known.into_iter().map(|project| project.subject).filter(|subject| *subject != project::main()));
    let view = |subject: Subject| {
        let count = |all: &[Subject]| all.iter().filter(|other| **other == subject).count();
        ProjectView {
            name: subject.id().to_owned(),
            state: project::phase(state, &subject),
            sessions: project::sessions(state, &subject).len(),
            running: count(&going),
            open: count(&going) + count(&waiting),
        }
    };
    names.into_iter().map(view).collect()
}

/// Refuses a project that was named beside a requirement of another.
pub(super) fn check_same(ctx: &Context, state: &State, requirement: &str) -> Result<()> {
    let requirement = state.entity(&state.find(requirement, EntityType::Requirement)?).map(|r| r.into_owned());
    let own = requirement.as_ref().and_then(project::project_of);
    match (requirement, own, ctx.project.as_ref().map(project::subject)) {
        (Some(requirement), Some(own), Some(named)) if own != named => {
            Err(Error::usage(format!("{} belongs to project {}, not to {}", requirement.name(), own.id(), named.id())))
        }
        _ => Ok(()),
    }
}

/// The id of a project, for a payload; nothing for the one that always exists.
pub(super) fn member(project: Option<&EntityId>) -> Option<&str> {
    project.map(EntityId::as_str).filter(|name| *name != project::MAIN)
}
