//! Projects: what belongs to which, and what a pause or the end of one forbids.
//!
//! A project is known by its name. `main` needs no event to be there; every other begins with the first
//! thing that names it. Paused, nothing starts and agents are asked to leave; archived, it can only be read.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::rules::Step;
use super::{Request, rules};
use crate::base::actor::ActorKind;
use crate::base::{EntityId, EntityType, Error, ErrorKind, Reason, Result, Subject, Timestamp, text};
use crate::event::kind::{Ending, Opens, Starts, WhenLeaving};
use crate::event::{Draft, Kind};
use crate::machine::Phase;
use crate::state::{Entity, MAIN_PROJECT, State};

/// The project that always exists.
pub const MAIN: &str = MAIN_PROJECT;

pub fn subject(name: &EntityId) -> Subject {
    Subject::new(EntityType::Project, name.clone())
}

pub fn main() -> Subject {
    subject(&EntityId::parse(MAIN).expect("a plain word"))
}

/// Where a project stands; one that no event names is active.
pub fn phase(state: &State, project: &Subject) -> Phase {
    match state.phase_of(project) {
        Phase::Absent => Phase::Active,
        at => at,
    }
}

fn named(members: &Map<String, Value>, member: &str, entity: EntityType) -> Option<Subject> {
    Some(Subject::new(entity, EntityId::parse(members.get(member)?.as_str()?).ok()?))
}

/// The project that an entity belongs to; nothing for what belongs to none.
pub fn project_of(entity: &Entity) -> Option<Subject> {
    entity.project.as_ref().map(subject)
}

/// The project that an event is about.
fn project_of_step(state: &State, step: &Step<'_>) -> Option<Subject> {
    match state.entity(step.subject) {
        Some(entity) => project_of(&entity),
        None => state.project_of(step.subject.entity, step.payload).as_ref().map(subject),
    }
}

/// What an agent may do although its project is paused: tidy up, show that it is there, and leave.
fn is_tidying(kind: Kind) -> bool {
    kind.row().leaving >= WhenLeaving::Paused
}

/// Whether an event is the end of a job, or of what the toolkit itself ends.
fn ends_by_itself(state: &State, step: &Step<'_>) -> bool {
    let task = match step.subject.entity {
        EntityType::Task => Some(step.subject.clone()),
        EntityType::Run => state.entity(step.subject).and_then(|run| run.as_run().task()),
        _ => None,
    };
    let job = task.and_then(|task| state.entity(&task)).is_some_and(|task| task.is_job());
    let end = step.kind.row().ending == Ending::End;
    end && (job || step.actor.kind == ActorKind::Core || step.subject.entity == EntityType::Session)
}

/// What the toolkit itself records because something ended, or because its time is over.
fn follows_an_end(step: &Step<'_>) -> bool {
    step.kind.row().ending == Ending::Consequence && step.actor.kind == ActorKind::Core
}

/// Refuses what a paused or archived project does not allow.
pub fn check(state: &State, step: &Step<'_>) -> Result<()> {
    if step.kind == Kind::ProjectResumed && state.phase_of(&Subject::SYSTEM) == Phase::Stopped {
        return Err(rules::stopped(state));
    }
    // Where no project was ever paused there is nothing to look for.
    if state.tally().made(EntityType::Project) == 0 {
        return Ok(());
    }
    if step.kind == Kind::PauseDrained && !has_drained(state, step.subject) {
        let why = match still_there(state, step.subject).first() {
            Some(first) => format!("project {} has not come to rest: {first} is still there", step.subject.id()),
            None => format!("project {} has come to rest before", step.subject.id()),
        };
        return Err(Error::refused(Reason::IllegalTransition, why));
    }
    let Some(project) = project_of_step(state, step) else { return Ok(()) };
    match phase(state, &project) {
        Phase::Paused if ends_by_itself(state, step) => Ok(()),
        Phase::Paused if step.actor.kind == ActorKind::Agent && !is_tidying(step.kind) => Err(leave(state, &project)),
        Phase::Paused if starts(state, step) => Err(Error::refused(Reason::ProjectPaused, paused(state, &project))),
        Phase::Archived if !ends_by_itself(state, step) && !follows_an_end(step) => {
            let why = format!("project {} is archived: it can only be read", project.id());
            Err(Error::refused(Reason::ProjectArchived, why))
        }
        _ => Ok(()),
    }
}

/// What a pause holds back, whoever asks. A person may give a task to somebody; nobody begins it.
fn starts(state: &State, step: &Step<'_>) -> bool {
    match step.kind.row().starts {
        Starts::Run | Starts::Session => true,
        Starts::Claim => {
            let job = step.payload.get("job") == Some(&Value::Bool(true));
            state.phase_of(step.subject) == Phase::Ready && (step.actor.is_autonomous() || job)
        }
        Starts::Nothing | Starts::Retry => false,
    }
}

fn paused(state: &State, project: &Subject) -> String {
    let project = state.entity(project);
    let known = project.as_ref().map(|project| project.as_project());
    let id = project.as_ref().map_or(MAIN, |project| project.subject.id());
    let since = known.and_then(|project| project.paused_at()).map(|since| since.to_string()).unwrap_or_default();
    let why = known.and_then(|project| project.pause_reason()).unwrap_or_default();
    format!("project {id} is paused since {since}: {}", text::cut(why, 80))
}

/// What an agent of a paused project is told.
fn leave(state: &State, project: &Subject) -> Error {
    let why = format!("{}; tidy up what is half done, and leave", paused(state, project));
    Error::new(ErrorKind::ExitRequested(Reason::ProjectPaused), why)
}

/// Refuses an agent that wants to go on with something of a paused project.
pub fn check_going_on(state: &State, entity: &Entity) -> Result<()> {
    match project_of(entity).filter(|project| phase(state, project) == Phase::Paused) {
        Some(project) => Err(leave(state, &project)),
        None => Ok(()),
    }
}

/// The project that what is asked for is about.
pub fn of_request(state: &State, request: &Request) -> Option<Subject> {
    if state.tally().made(EntityType::Project) == 0 {
        return None;
    }
    let subject = super::subject_of(state, request, &mut crate::base::Ulid::nil).ok()?;
    let Request { kind, actor, payload, .. } = request;
    project_of_step(state, &Step { kind: *kind, subject: &subject, actor, payload })
}

/// The project that a request is the first to name, and the event that opens it. `main` is there before
/// anything names it, so that it can be paused; a pause of another one is more likely a slip.
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

/// Whose shell a request comes from, as far as sessions and projects go.
#[derive(Clone, Debug)]
pub enum Membership {
    /// Nobody's: a person, or the toolkit itself.
    Free,
    /// An agent without a session, at work for this project.
    Agent(Subject),
    /// An agent in a session that is void, and why.
    Void(String),
    /// An agent that names the session of another one.
    Foreign(String),
    /// An agent in a session that holds, of this project.
    Session(Subject),
}

impl Membership {
    /// Refuses what may not be recorded from here. `own` is the project of what it is about.
    pub fn check(&self, state: &State, kind: Kind, own: Option<&Subject>) -> Result<()> {
        let project = match self {
            Membership::Free => return Ok(()),
            Membership::Foreign(why) => return Err(Error::refused(Reason::NotHolder, why.clone())),
            Membership::Void(_) if kind.row().leaving >= WhenLeaving::Void => return Ok(()),
            Membership::Void(why) => {
                return Err(Error::new(ErrorKind::ExitRequested(Reason::SessionVoid), why.clone()));
            }
            Membership::Session(project) => project,
            // A job may end in a pause; that is its supervisor's to say.
            Membership::Agent(_) if own.is_some_and(|own| phase(state, own) != Phase::Paused) => return Ok(()),
            Membership::Agent(project) => own.unwrap_or(project),
        };
        match phase(state, project) {
            Phase::Paused if !is_tidying(kind) => Err(leave(state, project)),
            Phase::Archived if kind.row().leaving < WhenLeaving::Archived => {
                let why = format!("project {} is archived: leave", project.id());
                Err(Error::new(ErrorKind::ExitRequested(Reason::ProjectArchived), why))
            }
            _ => Ok(()),
        }
    }
}

/// Sessions of a project that are open.
pub fn sessions(state: &State, project: &Subject) -> Vec<Entity> {
    let mut open = state.in_phase(EntityType::Session, Phase::Active, usize::MAX);
    open.retain(|session| project_of(session).as_ref() == Some(project));
    open
}

/// Jobs of a project that run.
pub fn jobs(state: &State, project: &Subject) -> Vec<Entity> {
    let mut running = state.in_phase(EntityType::Task, Phase::Running, usize::MAX);
    running.retain(|task| task.is_job() && project_of(task).as_ref() == Some(project));
    running
}

/// Who is still there in a project: sessions and jobs, by name.
pub fn still_there(state: &State, project: &Subject) -> Vec<String> {
    let there = sessions(state, project).into_iter().chain(jobs(state, project));
    there.map(|entity| entity.name()).collect()
}

/// Whether a paused project has just come to rest: nobody is logged in and no job runs.
pub fn has_drained(state: &State, project: &Subject) -> bool {
    let waits =
        state.entity(project).is_some_and(|p| p.phase == Phase::Paused && p.as_project().drained_at().is_none());
    waits && sessions(state, project).is_empty() && jobs(state, project).is_empty()
}

/// Which projects are held up, and since when the others are at work again; read once for many tasks.
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

    /// From when time counts for an agent; nothing if everything that it is at stands still.
    pub fn counts_from_for(&self, state: &State, agent: &Subject, held: &[Entity]) -> Option<Timestamp> {
        if self.known.is_empty() {
            return Some(Timestamp(i64::MIN));
        }
        let actor = agent.to_string();
        let sessions = state.in_phase(EntityType::Session, Phase::Active, usize::MAX);
        let sessions = sessions.iter().filter(|session| session.as_session().agent() == Some(agent.id()));
        let tasks = held.iter().filter(|task| task.as_task().last_holder() == Some(&actor));
        let mut at: Vec<Subject> = sessions.chain(tasks).filter_map(project_of).collect();
        if at.is_empty() {
            // Whoever left when it was asked to is still of the project that it left.
            let last = state.made_for(agent, EntityType::Session).into_iter().max_by_key(|session| session.ordinal);
            at.push(last.and_then(|session| project_of(&session)).unwrap_or_else(main));
        }
        let going = at.iter().map(|project| self.project(project)).filter(|(at, _)| *at == Phase::Active);
        going.map(|(_, resumed)| resumed.unwrap_or(Timestamp(i64::MIN))).max()
    }

    /// Whether everything that is not archived is paused.
    pub fn all_paused(&self) -> bool {
        let main = self.project(&main()).0;
        let mut others = self.known.values().map(|(at, _)| *at).filter(|at| *at != Phase::Archived);
        main != Phase::Active
            && self.known.values().any(|(at, _)| *at == Phase::Paused)
            && others.all(|at| at == Phase::Paused)
    }
}
