//! hf-session: an agent logs in, asks for work, reports on it, and logs out.

mod meanwhile;

use serde_json::json;

use super::constraint::{self, ActiveConstraints};
use super::task::{self, ClaimOutcome, ClaimRequest, EndTaskRequest, ModelCall, TaskEnd, WorkBrief};
use super::{Context, Recorded, pause};
use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, Timestamp, names};
use crate::event::{Event, Kind};
use crate::machine::Phase;
use crate::op::kernel::View;
use crate::op::kernel::{Added, Transaction};
use crate::policy::settings::Setting;
use crate::policy::{project, ready};
use crate::state::{Entity, State};
use crate::vault::{Log, Vault};

pub use meanwhile::{Meanwhile, PauseOver, TaskChange};

/// How many events about a task are shown.
const EVENTS_SHOWN: usize = 5;
/// How many events are read at most to find them.
const EVENTS_READ_MAX: usize = 2000;

names! {
    /// What an agent, or the program that starts it, should do.
    pub enum Action {
        Start = "start",
        Hold = "hold",
        Exit = "exit",
    }
}

names! {
    /// The reason for an action.
    pub enum ActionReason {
        AlreadyRunning = "already_running",
        ProjectPaused = "project_paused",
        ProjectArchived = "project_archived",
        NoTask = "no_task",
        TaskLimit = "too_many_tasks",
        SystemStopped = "system_stopped",
        SessionVoid = "session_void",
    }
}

/// The agent and the project of a session, for a shell that names only the session.
pub fn agent_and_project_of_session(vault: &std::path::Path, name: &str) -> Option<(EntityId, EntityId)> {
    let (_, state) = crate::vault::Vault::open(vault).ok()?.view().ok()?;
    let session = state.entity(&state.find(name, EntityType::Session).ok()?)?;
    let project = EntityId::parse(project::project_of(&session)?.id()).ok()?;
    Some((EntityId::parse(session.as_session().agent()?).ok()?, project))
}

/// The session of this shell.
fn own_session(ctx: &Context, state: &State) -> Result<Entity> {
    let name =
        ctx.session.as_deref().ok_or_else(|| Error::usage("missing session; set HF_SESSION or use --session"))?;
    let subject = state.find(name, EntityType::Session)?;
    let session = state.entity(&subject).expect("it was resolved").into_owned();
    match (&ctx.caller.shell, session.as_session().agent()) {
        (super::Shell::Agents(name), Some(agent)) if name != agent => {
            Err(Error::refused(Reason::NotHolder, format!("{} belongs to agent {agent}", session.name())))
        }
        _ => Ok(session),
    }
}

/// The context of the agent that the session belongs to.
fn as_agent(ctx: &Context, session: &Entity) -> Result<Context> {
    let actor = Actor::parse(&format!("agent:{}", session.as_session().agent().unwrap_or_default()))?;
    let project = EntityId::parse(session.as_session().project_id().unwrap_or(project::MAIN))?;
    Ok(Context { project: Some(project), ..ctx.acting_as(actor) })
}

fn agent_of(ctx: &Context) -> Result<EntityId> {
    ctx.caller.actor.agent().ok_or_else(|| Error::usage("missing agent; set HF_AGENT or use --agent"))
}

/// A session to start.
#[derive(Clone, Debug, Default)]
pub struct LoginRequest {
    /// How long the session lasts without being renewed; default: from the settings.
    pub ttl_seconds: Option<u64>,
}

/// A new session.
#[derive(Debug)]
pub struct LoginOutcome {
    pub recorded: Recorded,
    /// Whether the agent can ask for its task: it holds one, or may claim one.
    pub can_work: bool,
    /// What happened since the agent was last there.
    pub meanwhile: Meanwhile,
}

/// Starts a session. Sessions that the agent left open in the same project end.
pub fn login(ctx: &Context, request: LoginRequest) -> Result<LoginOutcome> {
    let (vault, agent) = (ctx.open()?, agent_of(ctx)?);
    // The session named by the shell is the old one; it must not restrict the new one.
    let ctx = &Context { session: None, ..ctx.clone() };
    let mut tx = Transaction::begin(ctx, &vault)?;
    let ttl = request.ttl_seconds.unwrap_or_else(|| tx.config.count(Setting::SessionTtlSeconds));
    let payload = json!({
        "agent_id": agent.as_str(), "ttl_seconds": ttl, "project_id": pause::project_member(ctx.project.as_ref()),
    });
    settle_open(&mut tx, &agent)?;
    let meanwhile = Meanwhile::read(&*tx.log, tx.state(), &agent, &ctx.project(), None)?;
    let old = open_of(tx.state(), &agent, &ctx.project());
    let asked = tx.ask(ctx.request(Kind::SessionStarted, None, payload))?;
    for session in old {
        tx.ask(ctx.request(Kind::SessionEnded, Some(&session.subject.to_string()), json!({"reason": "replaced"})))?;
    }
    let can_work = held_task(tx.state(), &agent, &ctx.project()).is_some() || !tx.moment().is_full();
    tx.finish(&[asked]).map(|recorded| LoginOutcome { recorded, can_work, meanwhile })
}

/// Records the expiry of the agent's sessions that are past their time.
fn settle_open(tx: &mut Transaction<'_>, agent: &EntityId) -> Result<()> {
    let open = tx.state().made_for(&Subject::new(EntityType::Agent, agent.clone()), EntityType::Session);
    let open: Vec<Subject> = open.into_iter().filter(|s| s.phase == Phase::Active).map(|s| s.subject).collect();
    tx.settle(&open)
}

/// The open sessions of an agent in a project.
fn open_of(state: &State, agent: &EntityId, project: &Subject) -> Vec<Entity> {
    let mut open = project::sessions(state, project);
    open.retain(|session| session.as_session().agent() == Some(agent.as_str()));
    open
}

/// A session to renew.
#[derive(Clone, Debug, Default)]
pub struct RenewRequest {
    /// How long the session lasts from now on; default: from the settings.
    pub ttl_seconds: Option<u64>,
}

/// A renewed session.
#[derive(Debug)]
pub struct RenewOutcome {
    pub recorded: Recorded,
    /// What happened while the session was open, or since the agent was last there.
    pub meanwhile: Meanwhile,
}

/// Renews the session.
pub fn renew(ctx: &Context, request: RenewRequest) -> Result<RenewOutcome> {
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let session = own_session(ctx, tx.state())?;
    let ctx = as_agent(ctx, &session)?;
    let ttl = request.ttl_seconds.unwrap_or_else(|| tx.config.count(Setting::SessionTtlSeconds));
    let subject = session.subject.to_string();
    let meanwhile = Meanwhile::read(&*tx.log, tx.state(), &agent_of(&ctx)?, &ctx.project(), Some(&session))?;
    let asked = tx.ask(ctx.request(Kind::SessionRenewed, Some(&subject), json!({"ttl_seconds": ttl})))?;
    tx.finish(&[asked]).map(|recorded| RenewOutcome { recorded, meanwhile })
}

/// A session to end.
#[derive(Clone, Debug, Default)]
pub struct LogoutRequest {
    /// What was done and what is left, for the next session. It is kept with the task that the agent holds.
    pub summary: Option<String>,
}

/// The ended sessions; none if none was open.
#[derive(Debug)]
pub struct LogoutOutcome {
    pub recorded: Option<Recorded>,
}

/// Ends the session; a session that has ended already is left as it is. If no session is named, ends every open
/// session of the agent.
pub fn logout(ctx: &Context, request: LogoutRequest) -> Result<LogoutOutcome> {
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let (ctx, sessions) = match ctx.session.is_some() {
        true => {
            let session = own_session(ctx, tx.state())?;
            if session.phase != Phase::Active {
                let ended = Added { id: session.last_event, already: true };
                return tx.finish(&[ended]).map(|recorded| LogoutOutcome { recorded: Some(recorded) });
            }
            (as_agent(ctx, &session)?, vec![session])
        }
        false => {
            let agent = agent_of(ctx)?;
            settle_open(&mut tx, &agent)?;
            let mut open = tx.state().in_phase(EntityType::Session, Phase::Active, usize::MAX);
            open.retain(|session| session.as_session().agent() == Some(agent.as_str()));
            (ctx.clone(), open)
        }
    };
    let mut asked = Vec::new();
    for session in sessions {
        leave_summary(&ctx, &mut tx, &session, request.summary.as_deref())?;
        let payload = json!({"reason": project::LOGOUT, "summary": request.summary});
        asked.push(tx.ask(ctx.request(Kind::SessionEnded, Some(&session.subject.to_string()), payload))?);
    }
    let recorded = if asked.is_empty() { None } else { Some(tx.finish(&asked)?) };
    Ok(LogoutOutcome { recorded })
}

/// Leaves a summary with the task that the agent of a session holds in its project, unless that is archived.
fn leave_summary(ctx: &Context, tx: &mut Transaction<'_>, session: &Entity, summary: Option<&str>) -> Result<()> {
    let agent = session.as_session().agent().and_then(|agent| EntityId::parse(agent).ok());
    let project = project::project_of(session).filter(|project| project::over(tx.state(), project).is_none());
    let held = agent.zip(project).and_then(|(agent, project)| held_task(tx.state(), &agent, &project));
    if let Some((task, summary)) = held.zip(summary) {
        tx.ask(ctx.request(Kind::TaskNoted, Some(&task.subject.to_string()), json!({"text": summary})))?;
    }
    Ok(())
}

#[derive(Debug)]
pub struct NextOutcome {
    pub action: Action,
    pub reason: Option<ActionReason>,
    pub agent: EntityId,
    pub project: Subject,
    /// The task for the agent to work on.
    pub task: Option<Entity>,
    /// When the session ends, if the agent has to leave.
    pub leave_by: Option<Timestamp>,
    /// Whether the request came from a session, not from the program that starts agents.
    pub in_session: bool,
    /// What happened since the agent was last there, in a session.
    pub meanwhile: Meanwhile,
}

/// Returns what an agent should do: for the program that starts agents or, in a session, for the agent itself.
pub fn next(ctx: &Context) -> Result<NextOutcome> {
    let vault = ctx.open()?;
    let view = View::open(ctx, &vault)?;
    let state = view.state();
    let session = ctx.session.is_some().then(|| own_session(ctx, state)).transpose()?;
    let (agent, project) = match &session {
        Some(session) => {
            let ctx = as_agent(ctx, session)?;
            (agent_of(&ctx)?, ctx.project())
        }
        None => (agent_of(ctx)?, ctx.project()),
    };
    let held = held_task(state, &agent, &project);
    let is_full = held.is_none() && view.moment().is_full();
    let task = held.or_else(|| ready::next(state, Some(&project)).map(|choice| choice.task));
    let ended = session.as_ref().is_some_and(|s| s.phase != Phase::Active);
    let running = !open_of(state, &agent, &project).is_empty();
    let stopped = state.phase_of(&Subject::SYSTEM) == Phase::Stopped;
    let (action, reason) = match (project::phase(state, &project), &session) {
        (_, Some(_)) if ended => (Action::Exit, Some(ActionReason::SessionVoid)),
        _ if stopped => (Action::Hold, Some(ActionReason::SystemStopped)),
        (Phase::Paused, Some(_)) => (Action::Exit, Some(ActionReason::ProjectPaused)),
        (Phase::Paused, None) => (Action::Hold, Some(ActionReason::ProjectPaused)),
        (Phase::Archived, Some(_)) => (Action::Exit, Some(ActionReason::ProjectArchived)),
        (Phase::Archived, None) => (Action::Hold, Some(ActionReason::ProjectArchived)),
        (_, None) if running => (Action::Hold, Some(ActionReason::AlreadyRunning)),
        (_, Some(_)) if task.is_none() => (Action::Exit, Some(ActionReason::NoTask)),
        (_, None) if task.is_none() => (Action::Hold, Some(ActionReason::NoTask)),
        (_, Some(_)) if is_full => (Action::Exit, Some(ActionReason::TaskLimit)),
        (_, None) if is_full => (Action::Hold, Some(ActionReason::TaskLimit)),
        _ => (Action::Start, None),
    };
    let task = task.filter(|_| !is_full);
    let leave_by = session.as_ref().filter(|_| reason == Some(ActionReason::ProjectPaused));
    let leave_by = leave_by.and_then(|session| session.as_session().expires_at());
    let meanwhile = match &session {
        Some(session) => Meanwhile::read(view.log(), state, &agent, &project, Some(session))?,
        None => Meanwhile::default(),
    };
    let in_session = session.is_some();
    Ok(NextOutcome { action, reason, agent, project, task, leave_by, in_session, meanwhile })
}

/// The task that an agent holds in a project, a running one first.
fn held_task(state: &State, agent: &EntityId, project: &Subject) -> Option<Entity> {
    let mut held = state.held_by(&format!("agent:{agent}"));
    held.retain(|task| !task.is_job() && project::project_of(task).as_ref() == Some(project));
    let in_phase = |phase: Phase| held.iter().find(|task| task.phase == phase).cloned();
    in_phase(Phase::Running).or_else(|| in_phase(Phase::Assigned))
}

#[derive(Debug)]
pub struct MyTaskOutcome {
    /// The agent that the session belongs to.
    pub agent: Actor,
    pub task: Option<Entity>,
    /// Whether the task was claimed just now.
    pub claimed: bool,
    /// The newest events about the task.
    pub events: Vec<Event>,
    /// The agent's last checkpoint.
    pub checkpoint: Option<String>,
    pub artifacts: Vec<Entity>,
    /// What happened since the agent was last there.
    pub meanwhile: Meanwhile,
    /// The constraints on the work.
    pub constraints: ActiveConstraints,
    /// What is known about the task.
    pub brief: WorkBrief,
    pub warnings: Vec<String>,
}

/// The task that the agent holds, or claims if it holds none, with what it needs to continue.
pub fn my_task(ctx: &Context) -> Result<MyTaskOutcome> {
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let session = own_session(ctx, tx.state())?;
    let ctx = &as_agent(ctx, &session)?;
    // A task whose lease has expired is no longer held.
    tx.settle_agent(&ctx.caller.actor)?;
    // A session that has ended, or whose project is paused, gets no task.
    tx.membership.check(tx.state(), Kind::TaskAssigned, None)?;
    let (agent, project) = (agent_of(ctx)?, ctx.project());
    let held = held_task(tx.state(), &agent, &project);
    let meanwhile = Meanwhile::read(&*tx.log, tx.state(), &agent, &project, Some(&session))?;
    let is_here = |task: &Entity| project::project_of(task).as_ref() == Some(&project);
    drop(tx);
    let (task, claimed, warnings) = match held {
        Some(task) => (Some(task), false, Vec::new()),
        None => match task::claim(ctx, ClaimRequest::default())? {
            ClaimOutcome::Claimed { recorded, .. } => (recorded.entity, true, recorded.warnings),
            // With auto_assign, settling what was overdue may just have given it a task.
            ClaimOutcome::NoTask { held, .. } => {
                (held.map(|task| *task).filter(|task| is_here(task)), false, Vec::new())
            }
        },
    };
    // All checks were made above: a task that was claimed is never answered with a refusal.
    let mut done = MyTaskOutcome {
        agent: ctx.caller.actor.clone(),
        claimed,
        events: Vec::new(),
        checkpoint: None,
        artifacts: Vec::new(),
        meanwhile,
        constraints: ActiveConstraints::default(),
        brief: WorkBrief::default(),
        warnings,
        task,
    };
    if let Some(task) = done.task.clone()
        && let Err(error) = done.remember(&vault, &task, agent, &project)
    {
        done.warnings.push(format!("cannot read the history of the task: {error}"));
    }
    Ok(done)
}

impl MyTaskOutcome {
    /// Adds what the agent needs to continue its task.
    fn remember(&mut self, vault: &Vault, task: &Entity, agent: EntityId, project: &Subject) -> Result<()> {
        let (snapshot, state) = vault.view()?;
        self.events = newest_events(&*snapshot, task)?;
        self.artifacts = state.made_for(&task.subject, EntityType::Artifact);
        self.constraints = constraint::active(&state);
        self.brief = task::brief(&*snapshot, &state, task)?;
        let me = Subject::new(EntityType::Agent, agent);
        let known = state.entity(&me).filter(|me| is_of_project(&state, me, project));
        self.checkpoint = known.and_then(|me| me.as_agent().last_checkpoint().map(str::to_owned));
        Ok(())
    }
}

/// Whether the last checkpoint of an agent is about its work in a project: it had a session there at the time, or had none
/// at all, and the project is `main`.
fn is_of_project(state: &State, agent: &Entity, project: &Subject) -> bool {
    let Some(at) = agent.as_agent().last_checkpoint_at() else { return false };
    let sessions = state.made_for(&agent.subject, EntityType::Session);
    let was_open = |session: &&Entity| {
        let ended = session.as_session().ended_at();
        session.created_at <= at && ended.is_none_or(|ended| at <= ended)
    };
    let mut then = sessions.iter().filter(was_open).filter_map(project::project_of).peekable();
    match then.peek() {
        Some(_) => then.any(|other| other == *project),
        None => *project == project::main(),
    }
}

fn newest_events(snapshot: &dyn Log, task: &Entity) -> Result<Vec<Event>> {
    use std::ops::ControlFlow;
    let (mut found, mut read) = (Vec::new(), 0);
    let subject = task.subject.to_string();
    let run = task.as_task().last_run().map(|run| run.to_string());
    snapshot.read_back(&mut |event| {
        read += 1;
        let about = event.subject == subject || Some(&event.subject) == run.as_ref();
        let first = event.id == task.first_event;
        if about && event.event_type.known() != Some(Kind::Heartbeat) {
            found.push(event);
        }
        Ok(match found.len() == EVENTS_SHOWN || first || read == EVENTS_READ_MAX {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    })?;
    found.reverse();
    Ok(found)
}

/// An agent's report on its task.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// The task; default: the one that the agent holds.
    pub reference: Option<String>,
    /// The result.
    pub end: TaskEnd,
    /// Idempotency key.
    pub key: Option<String>,
}

/// A task that its agent has reported on.
#[derive(Debug)]
pub struct ReportOutcome {
    pub recorded: Recorded,
}

/// Records the result of the agent's task.
pub fn report(ctx: &Context, request: ReportRequest) -> Result<ReportOutcome> {
    let ReportRequest { reference, end, key } = request;
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let session = own_session(ctx, tx.state())?;
    tx.membership.check(tx.state(), Kind::TaskSucceeded, None)?;
    let ctx = &as_agent(ctx, &session)?;
    tx.settle_agent(&ctx.caller.actor)?;
    let first = key.as_ref().and_then(|key| tx.state().keyed(key)).map(|id| tx.log.find(id)).transpose()?.flatten();
    let subject = match (&reference, &first) {
        (Some(reference), _) => tx.state().find(reference, EntityType::Task)?,
        // A repeated report is about the same task, whatever the agent holds by now.
        (None, Some(first)) => Subject::parse(&first.subject)?,
        (None, None) => {
            let held = held_task(tx.state(), &agent_of(ctx)?, &ctx.project());
            let lost = || super::agent::last_lost_claim(&tx, &ctx.caller.actor);
            let nothing = || lost().unwrap_or_else(|| Error::not_found("you do not hold a task"));
            held.map(|task| task.subject).ok_or_else(nothing)?
        }
    };
    let mine = tx
        .state()
        .entity(&subject)
        .is_some_and(|task| task.as_task().recorded_holder() == Some(&ctx.caller.actor.to_string()));
    // A task that was claimed but never started is started now, so that the work has a run.
    let start_first = mine && first.is_none() && tx.state().phase_of(&subject) == Phase::Assigned;
    drop(tx);
    let request = EndTaskRequest { reference: subject.to_string(), end, start_first, model: ModelCall::default(), key };
    task::end(ctx, request).map(|recorded| ReportOutcome { recorded })
}
