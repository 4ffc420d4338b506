//! What stands in the way of all work: a stop, a pause, the end of a session.

use super::project;
use crate::base::{EntityType, Subject, Timestamp, names, text};
use crate::machine::Phase;
use crate::state::State;

names! {
    /// The sort of obstacle.
    pub enum Obstacle {
        Stopped = "stopped",
        Paused = "paused",
        Archived = "archived",
        SessionOver = "session_over",
        /// As many tasks are in progress as allowed, so that none can be claimed.
        TaskLimit = "task_limit",
    }
}

/// What stands in the way of a caller, since when and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub obstacle: Obstacle,
    /// The project that is paused or archived.
    pub project: Option<Subject>,
    pub since: Option<Timestamp>,
    /// Who is responsible, if it is known.
    pub by: Option<String>,
    pub why: String,
}

/// How much of a reason is shown.
const WHY_MAX_CHARS: usize = 200;

impl Standing {
    /// A session that has ended, with the reason.
    pub fn session_over(why: &str) -> Standing {
        Standing { obstacle: Obstacle::SessionOver, project: None, since: None, by: None, why: why.to_owned() }
    }

    /// The limit of tasks in progress is reached.
    pub fn task_limit() -> Standing {
        Standing { obstacle: Obstacle::TaskLimit, project: None, since: None, by: None, why: String::new() }
    }

    /// The stop that is in force, or the pause or end of this project.
    pub fn of_project(state: &State, project: &Subject) -> Option<Standing> {
        Standing::of_system(state).or_else(|| Standing::of_project_alone(state, project))
    }

    /// The pause or end of this project, whether or not everything is stopped.
    pub fn of_project_alone(state: &State, project: &Subject) -> Option<Standing> {
        let project = state.entity(project).filter(|project| project.subject.entity == EntityType::Project)?;
        let (known, subject) = (project.as_project(), project.subject.clone());
        let (obstacle, since, by, why) = match project::phase(state, &subject) {
            Phase::Paused => (Obstacle::Paused, known.paused_at(), known.paused_by(), known.pause_reason()),
            Phase::Archived => (Obstacle::Archived, known.archived_at(), known.archived_by(), known.archive_reason()),
            _ => return None,
        };
        Some(Standing::new(obstacle, Some(subject), since, by, why))
    }

    /// The stop that is in force.
    pub fn of_system(state: &State) -> Option<Standing> {
        let system = state.entity(&Subject::SYSTEM).filter(|system| system.phase == Phase::Stopped)?;
        let system = system.as_system();
        let (since, by, why) = (system.stopped_at(), system.stopped_by(), system.stop_reason());
        Some(Standing::new(Obstacle::Stopped, None, since, by, why))
    }

    fn new(
        obstacle: Obstacle,
        project: Option<Subject>,
        since: Option<Timestamp>,
        by: Option<&str>,
        why: Option<&str>,
    ) -> Standing {
        let why = text::cut(why.unwrap_or_default(), WHY_MAX_CHARS);
        Standing { obstacle, project, since, by: by.map(str::to_owned), why }
    }
}
