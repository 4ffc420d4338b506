//! What is said when everything stops, or a project rests, and when work goes on.

use super::{Key, Next, Replies, Reply, Status};
use crate::machine::Phase;
use crate::op::pause::{PauseOutcome, RestOutcome, Standing};
use crate::op::{ResumeOutcome, StopOutcome};

impl Replies for StopOutcome {
    fn reply(&self) -> Reply {
        let (status, sum) = match (&self.unrecorded, self.duplicate) {
            (Some(error), _) => (Status::StoppedUnrecorded, format!("stopped, not recorded yet: {error}")),
            (None, true) => (Status::Duplicate, format!("stopped before: {}", self.reason)),
            (None, false) => (Status::Stopped, format!("everything is stopped: {}", self.reason)),
        };
        Reply::new(status, sum)
            .next(Next::OPERATOR)
            .with(Key::Drained, self.left.is_empty())
            .with_texts(Key::Left, &self.left)
            .warn(self.warnings.clone())
    }
}

impl Replies for ResumeOutcome {
    fn reply(&self) -> Reply {
        self.recorded.told(Status::Resumed)
    }
}

/// How far a project has come to rest.
fn rest(status: Status, project: &Standing) -> Reply {
    Reply::new(status, format!("{} is {}", project.subject, project.state))
        .with(Key::State, project.state.as_str())
        .with(Key::Drained, project.left.is_empty())
        .with_texts(Key::Left, &project.left)
}

impl Replies for RestOutcome {
    fn reply(&self) -> Reply {
        let status = match (&self.recorded, self.project.state) {
            (Some(recorded), _) if recorded.duplicate => Status::Duplicate,
            (Some(_), Phase::Archived) => Status::Archived,
            (_, Phase::Paused) => Status::Paused,
            (Some(_), _) => Status::Paused,
            // Whoever only waited is told how it is.
            (None, _) => Status::Ok,
        };
        let ids = self.recorded.iter().flat_map(|recorded| &recorded.ids);
        let warnings = self.recorded.as_ref().map(|recorded| recorded.warnings.clone()).unwrap_or_default();
        rest(status, &self.project).with_texts(Key::EventId, ids).warn(warnings)
    }
}

impl Replies for PauseOutcome {
    /// A project that goes on.
    fn reply(&self) -> Reply {
        match &self.recorded {
            Some(recorded) => recorded.told(Status::Resumed),
            None => {
                let project = &self.project;
                Reply::new(Status::Duplicate, format!("{} is {}", project.subject, project.state))
                    .with(Key::Subject, &project.subject)
                    .with(Key::State, project.state.as_str())
            }
        }
    }
}
