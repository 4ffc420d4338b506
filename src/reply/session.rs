//! Replies to an agent that logs in, asks for work, reports and logs out.

use super::{Key, Next, Replies, Reply, Row, Status, entity, event, row, sentence};
use crate::base::EntityId;
use crate::machine::Phase;
use crate::op::Recorded;
use crate::op::session::{
    Action, ActionReason, LoginOutcome, LogoutOutcome, Meanwhile, MyTaskOutcome, NextOutcome, PauseOver, RenewOutcome,
    ReportOutcome, TaskChange,
};

/// What an agent should do first after a pause.
const INSTRUCTION: &str = "work was paused and has been resumed: check the current state and clean up what is half done; \
                           the repository and its dependencies may have changed";

fn session_reply(done: &Recorded) -> Reply {
    let session = done.entity.as_ref();
    done.reply()
        .with_some(Key::SessionId, session.map(|session| session.subject.id()))
        .with_some(Key::ExpiresAt, session.and_then(|session| session.as_session().expires_at()))
}

impl Replies for LoginOutcome {
    fn reply(&self) -> Reply {
        let id = self.recorded.entity.as_ref().and_then(|session| EntityId::parse(session.subject.id()).ok());
        let id = id.filter(|_| self.can_work);
        let task = Next::run("hf-session").word("task");
        let reply = session_reply(&self.recorded).next(id.map_or(Next::None, |id| task.arg("--session", &id)));
        with_meanwhile(reply, &self.meanwhile)
    }
}

impl Replies for RenewOutcome {
    fn reply(&self) -> Reply {
        with_meanwhile(session_reply(&self.recorded), &self.meanwhile)
    }
}

impl Replies for LogoutOutcome {
    fn reply(&self) -> Reply {
        match &self.recorded {
            Some(done) => session_reply(done),
            None => Reply::new(Status::Duplicate, "no session is open"),
        }
        // A caller that has left need not be told to leave.
        .tells_standing()
    }
}

impl Replies for ReportOutcome {
    fn reply(&self) -> Reply {
        self.recorded.reply().next(Next::run("hf-session").word("next"))
    }
}

/// What to do and why: `wait; no task is ready`.
fn next_sentence(done: &NextOutcome) -> String {
    let project = done.project.id();
    let why = done.reason.map(|reason| match reason {
        ActionReason::AlreadyRunning => "the agent is already running".to_owned(),
        ActionReason::ProjectPaused => format!("project {project} is paused"),
        ActionReason::ProjectArchived => format!("project {project} is archived"),
        ActionReason::NoTask => "no task is ready".to_owned(),
        ActionReason::TaskLimit => "the task limit is reached".to_owned(),
        ActionReason::SystemStopped => "everything is stopped".to_owned(),
        ActionReason::SessionVoid => "the session is unknown or has ended".to_owned(),
    });
    let what = match (done.action, &done.task) {
        (Action::Start, Some(task)) => format!("start with {}", task.name()),
        (Action::Start, None) => "start".to_owned(),
        // That will not change.
        (Action::Hold, _) if done.reason == Some(ActionReason::ProjectArchived) => "do not start".to_owned(),
        (Action::Hold, _) => "wait".to_owned(),
        (Action::Exit, _) => "log out".to_owned(),
    };
    why.map_or_else(|| what.clone(), |why| format!("{what}; {why}"))
}

impl Replies for NextOutcome {
    fn reply(&self) -> Reply {
        let next = match self.action {
            Action::Start if self.in_session => Next::run("hf-session").word("task"),
            Action::Start => {
                let next = Next::run("hf-session").word("login").arg("--agent", &self.agent);
                match EntityId::parse(self.project.id()) {
                    Ok(project) if project.as_str() != "main" => next.arg("--project", &project),
                    _ => next,
                }
            }
            Action::Hold => Next::None,
            Action::Exit => Next::run("hf-session").word("logout"),
        };
        let reply = Reply::new(Status::Ok, format!("{}: {}", self.agent, next_sentence(self)))
            .next(next)
            .with_some(Key::Reason, self.reason.map(|reason| reason.as_str()))
            .with(Key::Action, self.action.as_str())
            .with_rows(Key::Project, [row![self.project.id()]])
            .with_some(Key::TaskId, self.task.as_ref().map(|task| task.name()))
            .with_some_row(Key::Step, self.task.as_ref().and_then(entity::active_step))
            .with_some(Key::ExpiresAt, self.leave_by);
        with_meanwhile(reply, &self.meanwhile)
    }
}

fn pause_row(pause: &PauseOver) -> Row {
    row![pause.since, pause.until, pause.by.as_deref(), pause.why.as_deref()]
}

/// `T-0001 TaskEdited by user:jo: the direction was wrong`.
fn change(change: &TaskChange) -> String {
    let event = &change.event;
    let why = event.payload.get("reason").and_then(|why| why.as_str()).map(|why| format!(": {why}"));
    format!("{} {} by {}{}", change.task, event.event_type.as_str(), event.actor, why.unwrap_or_default())
}

/// Adds what happened since the agent was last there.
fn with_meanwhile(reply: Reply, meanwhile: &Meanwhile) -> Reply {
    let pause = meanwhile.pause.as_ref();
    reply
        .with_some(Key::ResumedFromPause, pause.map(|_| true))
        .with_some(Key::Instruction, pause.map(|_| INSTRUCTION))
        .with_some_row(Key::Paused, pause.map(pause_row))
        .with_some(Key::Comment, pause.and_then(|pause| pause.comment.as_deref()))
        .with_texts(Key::Changed, meanwhile.changes.iter().map(change))
}

impl Replies for MyTaskOutcome {
    fn reply(&self) -> Reply {
        let reply = match &self.task {
            None => Reply::new(Status::NoTask, "no task is ready"),
            Some(task) => {
                let next = match task.phase {
                    Phase::Assigned => entity::next_about("hf-task", "start", task),
                    _ => Next::None,
                };
                let status = if self.claimed { Status::Claimed } else { Status::Ok };
                Reply::new(status, sentence(task)).next(next).with(Key::TaskId, task.name())
            }
        };
        let reply =
            reply.acting(self.agent.clone()).with_some(Key::State, self.task.as_ref().map(|task| task.phase.as_str()));
        let reply = with_meanwhile(reply, &self.meanwhile)
            .with_some(Key::Previous, self.checkpoint.as_deref())
            .with_some_row(Key::Step, self.task.as_ref().and_then(entity::active_step))
            .with_rows(Key::Event, self.events.iter().map(event::row))
            .with_rows(Key::Entity, self.artifacts.iter().map(entity::row))
            .warn(self.warnings.clone());
        entity::with_constraints(entity::with_brief(reply, &self.brief), &self.constraints)
    }
}
