//! What happened in a project since an agent was last there: a pause that is over, and what others changed about its tasks.
//!
//! Every login and every renewal of a session tells it, and so do hf-session task and next in between. So what is told is
//! what came after the last login or renewal before this session, and in this session after its last renewal: nothing has
//! to be recorded about it, it is never lost, and it may be told again until the session is renewed.

use std::ops::ControlFlow;

use super::held_task;
use crate::base::{Actor, EntityId, EntityType, Result, Subject, Timestamp, Ulid};
use crate::event::{Event, Kind};
use crate::machine::Phase;
use crate::policy::project;
use crate::state::{Entity, State};
use crate::vault::Log;

/// How long after a resume an agent that was never there before is informed of it.
const RESUMED_SECONDS: i64 = 300;
/// How many changes are shown.
const CHANGES_SHOWN: usize = 5;
/// How many events are read at most to find them.
const EVENTS_READ_MAX: usize = 2000;

/// What happened since an agent was last in a project.
#[derive(Clone, Debug, Default)]
pub struct Meanwhile {
    /// The last pause, if it is over.
    pub pause: Option<PauseOver>,
    /// What others changed about the agent's tasks, oldest first; the latest changes only.
    pub changes: Vec<TaskChange>,
}

/// A pause that is over.
#[derive(Clone, Debug)]
pub struct PauseOver {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub by: Option<String>,
    pub why: Option<String>,
    /// What the operator said when the work was resumed.
    pub comment: Option<String>,
}

/// A change of a task.
#[derive(Clone, Debug)]
pub struct TaskChange {
    /// The task, by name.
    pub task: String,
    pub event: Event,
}

/// From where on changes are told.
enum Since {
    /// What came after this event.
    Event(Ulid),
    /// What came after the last pause began, at this time.
    Pause(Option<Timestamp>),
}

impl Meanwhile {
    /// What an agent has not been told yet, in its session or, without one, when it logs in.
    pub fn read(
        log: &dyn Log,
        state: &State,
        agent: &EntityId,
        project: &Subject,
        session: Option<&Entity>,
    ) -> Result<Meanwhile> {
        let me = Subject::new(EntityType::Agent, agent.clone());
        let mut others = state.made_for(&me, EntityType::Session);
        let is_other = |other: &Entity| session.is_none_or(|session| session.subject != other.subject);
        others.retain(|other| is_other(other) && project::project_of(other).as_ref() == Some(project));
        let renewed = session.and_then(|session| session.as_session().renewed_by());
        let visit = Visit { state, agent, project, session, renewed, others };
        let pause = visit.pause();
        let last = renewed.or_else(|| visit.last_there());
        let is_before = |last: Ulid, at: Timestamp| (last.timestamp_ms() / 1000) as i64 <= at.0;
        let since = match (&pause, last) {
            // It left before the pause began.
            (Some(over), Some(last)) if over.since.is_some_and(|began| is_before(last, began)) => Since::Event(last),
            (Some(over), _) => Since::Pause(over.since),
            (None, Some(last)) => Since::Event(last),
            (None, None) => return Ok(Meanwhile::default()),
        };
        let changes = visit.changes(log, &since)?;
        Ok(Meanwhile { pause, changes })
    }
}

/// An agent in a project.
struct Visit<'a> {
    state: &'a State,
    agent: &'a EntityId,
    project: &'a Subject,
    session: Option<&'a Entity>,
    /// The event that renewed the session last.
    renewed: Option<Ulid>,
    /// The other sessions of the agent in the project.
    others: Vec<Entity>,
}

impl Visit<'_> {
    /// The last pause of the project, if it is over and the agent has not been told.
    fn pause(&self) -> Option<PauseOver> {
        let project = self.state.entity(self.project).filter(|project| project.phase == Phase::Active)?;
        let (resume, known) = (project.last_event, project.as_project());
        let at = known.resumed_at()?;
        let told = self.others.iter().flat_map(|other| [Some(other.first_event), other.as_session().renewed_by()]);
        if told.chain([self.renewed]).flatten().any(|told| told > resume) {
            return None;
        }
        let began = self.session.map(|session| (session.first_event, session.created_at));
        let was_there = began.is_some_and(|(event, _)| event < resume)
            || !self.others.is_empty()
            || held_task(self.state, self.agent, self.project).is_some();
        let is_soon = began.is_some_and(|(_, began)| began.0.saturating_sub(at.0) < RESUMED_SECONDS);
        (was_there || is_soon).then(|| PauseOver {
            since: known.paused_at(),
            until: known.resumed_at(),
            by: known.paused_by().map(str::to_owned),
            why: known.pause_reason().map(str::to_owned),
            comment: known.resume_comment().map(str::to_owned),
        })
    }

    /// The last event that shows the agent there before its session: a logout or, if it never left, the last login or
    /// renewal.
    fn last_there(&self) -> Option<Ulid> {
        let end = |other: &Entity| match other.as_session().end_reason() {
            Some(project::LOGOUT) => other.last_event,
            _ => other.as_session().renewed_by().unwrap_or(other.first_event),
        };
        self.others.iter().map(end).max()
    }

    /// What others changed about the agent's tasks.
    fn changes(&self, log: &dyn Log, since: &Since) -> Result<Vec<TaskChange>> {
        let (me, paused) = (Actor::parse(&format!("agent:{}", self.agent))?.to_string(), self.project.to_string());
        let (mut found, mut read) = (Vec::new(), 0);
        log.read_back(&mut |event| {
            read += 1;
            let is_before = match since {
                Since::Event(last) => event.id <= *last,
                Since::Pause(at) => {
                    let begins = event.event_type.known() == Some(Kind::ProjectPaused) && event.subject == paused;
                    begins || at.is_some_and(|at| event.timestamp < at)
                }
            };
            if is_before {
                return Ok(ControlFlow::Break(()));
            }
            found.extend(self.change(&me, event));
            Ok(match found.len() == CHANGES_SHOWN || read == EVENTS_READ_MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
        // A long absence: at least the last edit of each task that it still has.
        if read == EVENTS_READ_MAX && found.len() < CHANGES_SHOWN {
            self.add_edits(log, &me, since, &mut found)?;
        }
        found.sort_by_key(|change| change.event.id);
        found.dedup_by_key(|change| change.event.id);
        Ok(found)
    }

    /// An event as a change of one of the agent's tasks by somebody else, if it is one.
    fn change(&self, me: &str, event: Event) -> Option<TaskChange> {
        let changes = matches!(event.event_type.known()?, Kind::TaskEdited | Kind::TaskAssigned | Kind::TaskAborted);
        let subject = Subject::parse(&event.subject).ok().filter(|_| changes && event.actor != me)?;
        let task = self.state.entity(&subject)?;
        let known = task.as_task();
        let is_mine = known.recorded_holder() == Some(me) || known.past_holders().any(|holder| holder == me);
        let is_here = !task.is_job() && project::project_of(&task).as_ref() == Some(self.project);
        (is_mine && is_here).then(|| TaskChange { task: task.name(), event })
    }

    /// Adds the last edit of each task that the agent holds.
    fn add_edits(&self, log: &dyn Log, me: &str, since: &Since, found: &mut Vec<TaskChange>) -> Result<()> {
        for task in self.state.held_by(me) {
            let Some(edit) = task.as_task().edited_by().map(|id| log.find(id)).transpose()?.flatten() else { continue };
            let is_since = match since {
                Since::Event(last) => edit.id > *last,
                Since::Pause(at) => at.is_none_or(|at| edit.timestamp >= at),
            };
            let is_new = is_since && found.len() < CHANGES_SHOWN;
            found.extend(self.change(me, edit).filter(|_| is_new));
        }
        Ok(())
    }
}
