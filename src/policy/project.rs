//! Projects: what belongs to which, and what a paused or archived project forbids.
//!
//! A project's id is its name. `main` exists without an event; any other project is opened by the first request that
//! names it. In a paused project nothing starts and agents are asked to leave; an archived project is read-only.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::rules::Step;
use super::{Request, rules};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Error, ErrorKind, Reason, Result, Subject, Timestamp, text};
use crate::event::kind::{Ending, Opens, Starts, WhenLeaving};
use crate::event::{Draft, Kind};
use crate::machine::Phase;
use crate::state::{Entity, MAIN_PROJECT, State};

/// Why a session ended that its agent left.
pub const LOGOUT: &str = "logout";

/// The project that always exists.
pub const MAIN: &str = MAIN_PROJECT;

pub fn subject(name: &EntityId) -> Subject {
    Subject::new(EntityType::Project, name.clone())
}

pub fn main() -> Subject {
    subject(&EntityId::parse(MAIN).expect("a plain word"))
}

/// The error that there is no project with this name, with the names that may be meant.
pub fn unknown(state: &State, project: &Subject) -> Error {
    let known = state.entities(EntityType::Project, None, usize::MAX);
    let names = known.iter().map(|known| known.subject.id()).filter(|name| *name != MAIN).chain([MAIN]);
    let hint = match text::similar(project.id(), names).as_slice() {
        [] => "an operator creates one with --create".to_owned(),
        some => format!("did you mean {}?", some.join(" or ")),
    };
    Error::new(ErrorKind::NoProject, format!("project '{}' not found; {hint}", project.id()))
}

/// The phase of a project; a project without events is active.
pub fn phase(state: &State, project: &Subject) -> Phase {
    match state.phase_of(project) {
        Phase::Absent => Phase::Active,
        phase => phase,
    }
}

fn named(members: &Map<String, Value>, member: &str, entity: EntityType) -> Option<Subject> {
    Some(Subject::new(entity, EntityId::parse(members.get(member)?.as_str()?).ok()?))
}

/// The project that an entity belongs to, if any.
pub fn project_of(entity: &Entity) -> Option<Subject> {
    entity.project.as_ref().map(subject)
}

/// The project that a step's subject belongs to, or would belong to if the step creates it.
fn project_of_step(state: &State, step: &Step<'_>) -> Option<Subject> {
    match state.entity(step.subject) {
        Some(entity) => project_of(&entity),
        None => state.project_of(step.subject.entity, step.payload).as_ref().map(subject),
    }
}

/// Whether an agent may still record this in a paused project: to finish up, show signs of life, and leave.
fn is_allowed_while_paused(kind: Kind) -> bool {
    kind.row().leaving >= WhenLeaving::Paused
}

/// Whether a step ends a job or a session, or is an end recorded by the toolkit itself.
fn is_automatic_end(state: &State, step: &Step<'_>) -> bool {
    let task = match step.subject.entity {
        EntityType::Task => Some(step.subject.clone()),
        EntityType::Run => state.entity(step.subject).and_then(|run| run.as_run().task()),
        _ => None,
    };
    let job = task.and_then(|task| state.entity(&task)).is_some_and(|task| task.is_job());
    let end = step.kind.row().ending == Ending::End;
    // Archiving a task is nobody's end.
    let job = job && step.kind != Kind::TaskArchived;
    end && (job || step.actor.kind == ActorKind::Core || step.subject.entity == EntityType::Session)
}

/// Whether the toolkit itself records this as the consequence of an end or a timeout.
fn is_consequence_of_end(step: &Step<'_>) -> bool {
    step.kind.row().ending == Ending::Consequence && step.actor.kind == ActorKind::Core
}

/// Refuses steps that a paused or archived project forbids.
pub fn check(state: &State, step: &Step<'_>) -> Result<()> {
    if step.kind == Kind::ProjectResumed && state.phase_of(&Subject::SYSTEM) == Phase::Stopped {
        return Err(rules::stopped(state));
    }
    // Without a recorded project none was ever paused or archived.
    if state.tally().made(EntityType::Project) == 0 {
        return Ok(());
    }
    if step.kind == Kind::PauseDrained && !has_drained(state, step.subject) {
        let why = match still_active(state, step.subject).first() {
            Some(first) => format!("project {} is not drained: {first} is still active", step.subject.id()),
            None => format!("project {} is already drained", step.subject.id()),
        };
        return Err(Error::refused(Reason::IllegalTransition, why));
    }
    let Some(project) = project_of_step(state, step) else { return Ok(()) };
    match phase(state, &project) {
        Phase::Paused if is_automatic_end(state, step) => Ok(()),
        Phase::Paused if step.actor.kind == ActorKind::Agent && !is_allowed_while_paused(step.kind) => {
            Err(exit_requested(state, &project, Some(step.actor.name())))
        }
        Phase::Paused if starts_work(state, step) => {
            Err(Error::refused(Reason::ProjectPaused, paused_message(state, &project)))
        }
        Phase::Archived if !is_automatic_end(state, step) && !is_consequence_of_end(step) => {
            Err(archived(&project, step.actor))
        }
        _ => Ok(()),
    }
}

/// Whether a step starts work, which a pause forbids to everyone. An operator may still assign a task, but it cannot
/// be started.
fn starts_work(state: &State, step: &Step<'_>) -> bool {
    match step.kind.row().starts {
        Starts::Run | Starts::Session => true,
        Starts::Claim => {
            let job = step.payload.get("job") == Some(&Value::Bool(true));
            state.phase_of(step.subject) == Phase::Ready && (step.actor.is_autonomous() || job)
        }
        Starts::Nothing | Starts::Retry => false,
    }
}

fn paused_message(state: &State, project: &Subject) -> String {
    let project = state.entity(project);
    let known = project.as_ref().map(|project| project.as_project());
    let id = project.as_ref().map_or(MAIN, |project| project.subject.id());
    let since = known.and_then(|project| project.paused_at()).map(|since| since.to_string()).unwrap_or_default();
    let why = known.and_then(|project| project.pause_reason()).unwrap_or_default();
    format!("project {id} has been paused since {since}: {}", text::cut(why, 80))
}

/// The error that asks an agent to leave a paused project, by the end of its session if it has one there.
fn exit_requested(state: &State, project: &Subject, agent: Option<&str>) -> Error {
    let seats = sessions(state, project);
    let seat = seats.iter().filter(|session| agent.is_some() && session.as_session().agent() == agent);
    let until = seat.filter_map(|session| session.as_session().expires_at()).max();
    let until = until.map(|until| format!(" by {until}")).unwrap_or_default();
    let why = format!("{}; finish up and leave{until}", paused_message(state, project));
    Error::new(ErrorKind::ExitRequested(Reason::ProjectPaused), why)
}

/// Refuses to start something in a project that is not active.
pub fn check_may_start(state: &State, project: &Subject, actor: &Actor) -> Result<()> {
    match phase(state, project) {
        Phase::Archived => Err(archived(project, actor)),
        _ => check_may_queue(state, project, actor),
    }
}

/// The refusal of an agent's work in a project that is archived; none if it is not.
pub fn over(state: &State, project: &Subject) -> Option<Error> {
    (phase(state, project) == Phase::Archived).then(|| leave_archived(project))
}

fn leave_archived(project: &Subject) -> Error {
    let why = format!("project {} is archived and read-only, which is final; leave it", project.id());
    Error::new(ErrorKind::ExitRequested(Reason::ProjectArchived), why)
}

/// The refusal of a change to an archived project. An agent is asked to leave it.
fn archived(project: &Subject, actor: &Actor) -> Error {
    match actor.kind == ActorKind::Agent {
        true => leave_archived(project),
        false => {
            let why = format!("project {} is archived and read-only, which is final", project.id());
            Error::refused(Reason::ProjectArchived, why)
        }
    }
}

/// Refuses to let an agent continue with something that belongs to a paused project.
pub fn check_may_continue(state: &State, entity: &Entity) -> Result<()> {
    match project_of(entity).filter(|project| phase(state, project) == Phase::Paused) {
        Some(project) => {
            let holder = entity.holder().and_then(|holder| holder.strip_prefix("agent:"));
            Err(exit_requested(state, &project, holder))
        }
        None => Ok(()),
    }
}

/// Refuses to queue a job in a paused project, where nothing may start; an agent is asked to leave.
pub fn check_may_queue(state: &State, project: &Subject, actor: &Actor) -> Result<()> {
    match why_paused(state, project) {
        Some(_) if actor.kind == ActorKind::Agent => Err(exit_requested(state, project, Some(actor.name()))),
        Some(why) => Err(Error::refused(Reason::ProjectPaused, why)),
        None => Ok(()),
    }
}

/// Which project is paused, since when and why; none if it is not.
pub fn why_paused(state: &State, project: &Subject) -> Option<String> {
    (phase(state, project) == Phase::Paused).then(|| paused_message(state, project))
}

/// The project that a request is about. None while no project was ever recorded.
pub fn of_request(state: &State, request: &Request) -> Option<Subject> {
    if state.tally().made(EntityType::Project) == 0 {
        return None;
    }
    let subject = super::subject_of(state, request, &mut crate::base::Ulid::nil).ok()?;
    let Request { kind, actor, payload, .. } = request;
    project_of_step(state, &Step { kind: *kind, subject: &subject, actor, payload })
}

/// The event that opens the project which a request is the first to name. Pausing `main` opens it, because it exists
/// before anything names it; pausing another unknown project does not, because that is more likely a typing error.
pub fn open(state: &State, request: &Request) -> Option<Draft> {
    let project = match request.kind.row().opens {
        Opens::Nothing => return None,
        Opens::Named(member) => named(&request.payload, member, EntityType::Project)?,
        Opens::Main => {
            let is_main = |name: &&str| *name == MAIN || *name == main().to_string();
            request.subject.as_deref().filter(is_main).map(|_| main())?
        }
    };
    (state.phase_of(&project) == Phase::Absent).then(|| Draft {
        kind: Kind::ProjectOpened,
        subject: project,
        actor: request.actor.clone(),
        parents: state.first_event().into_iter().collect(),
        key: None,
        payload: Map::new(),
    })
}

/// The session and project of the shell that a request comes from.
#[derive(Clone, Debug)]
pub enum Membership {
    /// Not an agent's shell: a person, or the toolkit itself.
    Unrestricted,
    /// An agent without a session, working on this project.
    Agent(Subject),
    /// An agent whose session has ended or never existed, with the reason, and whether it logged out itself.
    InvalidSession { why: String, has_left: bool },
    /// An agent that uses the session of another agent, with the reason to refuse it.
    OtherAgentsSession(String),
    /// An agent in a valid session of this project.
    Session { project: Subject, agent: Option<String> },
}

impl Membership {
    /// Refuses what may not be recorded from this shell. `about` is the project that the request is about.
    pub fn check(&self, state: &State, kind: Kind, about: Option<&Subject>) -> Result<()> {
        let project = match self {
            Membership::Unrestricted => return Ok(()),
            Membership::OtherAgentsSession(why) => return Err(Error::refused(Reason::NotHolder, why.clone())),
            Membership::InvalidSession { .. } if kind.row().leaving >= WhenLeaving::Void => return Ok(()),
            Membership::InvalidSession { why, .. } => {
                return Err(Error::new(ErrorKind::ExitRequested(Reason::SessionVoid), why.clone()));
            }
            Membership::Session { project, .. } => project,
            // For a project that is not paused, `project::check` decides.
            Membership::Agent(_) if about.is_some_and(|about| phase(state, about) != Phase::Paused) => return Ok(()),
            Membership::Agent(project) => about.unwrap_or(project),
        };
        match phase(state, project) {
            Phase::Paused if !is_allowed_while_paused(kind) => {
                let agent = match self {
                    Membership::Session { agent, .. } => agent.as_deref(),
                    _ => None,
                };
                Err(exit_requested(state, project, agent))
            }
            Phase::Archived if kind.row().leaving < WhenLeaving::Archived => Err(leave_archived(project)),
            _ => Ok(()),
        }
    }
}

/// The open sessions of a project.
pub fn sessions(state: &State, project: &Subject) -> Vec<Entity> {
    let mut open = state.in_phase(EntityType::Session, Phase::Active, usize::MAX);
    open.retain(|session| project_of(session).as_ref() == Some(project));
    open
}

/// The running jobs of a project.
pub fn jobs(state: &State, project: &Subject) -> Vec<Entity> {
    let mut running = state.in_phase(EntityType::Task, Phase::Running, usize::MAX);
    running.retain(|task| task.is_job() && project_of(task).as_ref() == Some(project));
    running
}

/// The names of a project's open sessions and running jobs.
pub fn still_active(state: &State, project: &Subject) -> Vec<String> {
    let active = sessions(state, project).into_iter().chain(jobs(state, project));
    active.map(|entity| entity.name()).collect()
}

/// Whether a paused project is drained and this is not recorded yet: no session is open and no job runs.
pub fn has_drained(state: &State, project: &Subject) -> bool {
    let is_draining =
        state.entity(project).is_some_and(|p| p.phase == Phase::Paused && p.as_project().drained_at().is_none());
    is_draining && sessions(state, project).is_empty() && jobs(state, project).is_empty()
}

/// The phase of each project and when it was last resumed, read once for many agents.
#[derive(Debug, Default)]
pub struct ProjectActivity {
    known: HashMap<Subject, (Phase, Option<Timestamp>)>,
}

impl ProjectActivity {
    pub fn read(state: &State) -> ProjectActivity {
        if state.tally().made(EntityType::Project) == 0 {
            return ProjectActivity::default();
        }
        let all = state.entities(EntityType::Project, None, usize::MAX);
        let known = all.into_iter().map(|p| (p.subject.clone(), (p.phase, p.as_project().resumed_at()))).collect();
        ProjectActivity { known }
    }

    fn project(&self, project: &Subject) -> (Phase, Option<Timestamp>) {
        self.known.get(project).copied().unwrap_or((Phase::Active, None))
    }

    /// The time since which an agent can be expected to be active; none if all of its projects are paused or archived.
    pub fn active_since(&self, state: &State, agent: &Subject, held: &[Entity]) -> Option<Timestamp> {
        if self.known.is_empty() {
            return Some(Timestamp(i64::MIN));
        }
        let actor = agent.to_string();
        let sessions = state.in_phase(EntityType::Session, Phase::Active, usize::MAX);
        let sessions = sessions.iter().filter(|session| session.as_session().agent() == Some(agent.id()));
        let tasks = held.iter().filter(|task| task.as_task().recorded_holder() == Some(&actor));
        let mut projects: Vec<Subject> = sessions.chain(tasks).filter_map(project_of).collect();
        if projects.is_empty() {
            // An agent that has logged out still belongs to the project of its last session.
            let last = state.made_for(agent, EntityType::Session).into_iter().max_by_key(|session| session.ordinal);
            projects.push(last.and_then(|session| project_of(&session)).unwrap_or_else(main));
        }
        let active = projects.iter().map(|project| self.project(project)).filter(|(phase, _)| *phase == Phase::Active);
        active.map(|(_, resumed)| resumed.unwrap_or(Timestamp(i64::MIN))).max()
    }

    /// Whether at least one project is paused, and every other one is paused or archived.
    pub fn all_paused(&self) -> bool {
        let main = self.project(&main()).0;
        let mut others = self.known.values().map(|(phase, _)| *phase).filter(|phase| *phase != Phase::Archived);
        main != Phase::Active
            && self.known.values().any(|(phase, _)| *phase == Phase::Paused)
            && others.all(|phase| phase == Phase::Paused)
    }
}
