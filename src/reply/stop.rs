//! Replies about stopping, pausing, archiving and resuming.

use super::{Key, Next, Replies, Reply, Status};
use crate::machine::Phase;
use crate::op::pause::{PauseOutcome, PauseProgress, RestOutcome};
use crate::op::{ResumeOutcome, StopOutcome};

/// EXIT of a wait that was over before the project was drained.
const GAVE_UP_EXIT: u8 = 1;

impl Replies for StopOutcome {
    fn reply(&self) -> Reply {
        let (status, sum) = match (&self.unrecorded, self.duplicate) {
            (Some(error), _) => (Status::StoppedUnrecorded, format!("stopped, but not recorded yet: {error}")),
            (None, true) => (Status::Duplicate, format!("already stopped: {}", self.reason)),
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
        self.recorded.reply_with(Status::Resumed)
    }
}

/// The phase of a project, and what is still in progress there.
fn project_reply(status: Status, project: &PauseProgress) -> Reply {
    Reply::new(status, format!("project {} is {}", project.subject.id(), project.phase))
        .with(Key::State, project.phase.as_str())
        .with(Key::Drained, project.left.is_empty())
        .with_texts(Key::Left, &project.left)
}

impl Replies for RestOutcome {
    fn reply(&self) -> Reply {
        let status = match (&self.recorded, self.project.phase) {
            (Some(recorded), _) if recorded.duplicate => Status::Duplicate,
            (Some(_), Phase::Archived) => Status::Archived,
            (_, Phase::Paused) => Status::Paused,
            (Some(_), _) => Status::Paused,
            // Nothing was requested but to wait.
            (None, _) => Status::Ok,
        };
        let ids = self.recorded.iter().flat_map(|recorded| &recorded.ids);
        let warnings = self.recorded.as_ref().map(|recorded| recorded.warnings.clone()).unwrap_or_default();
        let reply = project_reply(status, &self.project).with_texts(Key::EventId, ids).warn(warnings);
        if self.gave_up { reply.exit(GAVE_UP_EXIT) } else { reply }
    }
}

impl Replies for PauseOutcome {
    /// The reply of hf-resume for one project.
    fn reply(&self) -> Reply {
        match &self.recorded {
            Some(recorded) => recorded.reply_with(Status::Resumed),
            None => {
                let project = &self.project;
                Reply::new(Status::Duplicate, format!("project {} is {}", project.subject.id(), project.phase))
                    .with(Key::Subject, &project.subject)
                    .with(Key::State, project.phase.as_str())
            }
        }
    }
}
