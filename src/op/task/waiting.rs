//! How a task stands, for a list: who has it until when, or since when it waits and what for.

use crate::base::Timestamp;
use crate::machine::Phase;
use crate::op::kernel::View;
use crate::policy::project;
use crate::policy::rules::{Blocker, blockers};
use crate::policy::standing::{Obstacle, Standing};
use crate::state::{Entity, State};

/// How a task stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskStanding {
    /// When the claim of its holder expires; none if it has none, or does not expire.
    pub held_until: Option<Timestamp>,
    /// Since when it is in its phase, if nobody holds it and it has not ended.
    pub since: Option<Timestamp>,
    /// What it waits for, in words.
    pub waits_for: Option<String>,
}

impl TaskStanding {
    pub(in crate::op) fn read(view: &View<'_>, task: &Entity) -> TaskStanding {
        let waits = matches!(task.phase, Phase::Proposed | Phase::Ready);
        // The id of an event has its time; what is only due has no event yet.
        let since = Timestamp((task.last_event.timestamp_ms() / 1000) as i64);
        let is_recorded = waits && view.changed_by(&task.subject).is_none();
        TaskStanding {
            held_until: task.holder().and_then(|_| view.moment().held_until(task)),
            since: is_recorded.then_some(since),
            waits_for: waits_for(view.state(), task),
        }
    }
}

/// What a task waits for: other tasks and approvals before it can start, and the end of a stop or a pause.
fn waits_for(state: &State, task: &Entity) -> Option<String> {
    let mut waits: Vec<String> = match task.phase {
        Phase::Proposed | Phase::Ready => blockers(state, task).iter().map(in_words).collect(),
        // The command of a job runs on.
        Phase::Running if task.is_job() => return None,
        Phase::Assigned | Phase::Running | Phase::Retrying => Vec::new(),
        _ => return None,
    };
    let project = project::project_of(task).unwrap_or_else(project::main);
    waits.extend(Standing::of_project(state, &project).and_then(|standing| match standing.obstacle {
        Obstacle::Stopped => Some("the end of the stop".to_owned()),
        Obstacle::Paused => Some(format!("the resume of project {}", project.id())),
        Obstacle::Archived | Obstacle::SessionOver | Obstacle::TaskLimit => None,
    }));
    (!waits.is_empty()).then(|| waits.join(", "))
}

fn in_words(blocker: &Blocker) -> String {
    match blocker {
        Blocker::Requirement(requirement) => format!("the approval of {}", requirement.name()),
        Blocker::Dependency(task) => task.name(),
        Blocker::Approval => "an operator's approval".to_owned(),
    }
}
