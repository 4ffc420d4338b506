//! Replies about missions.

use super::{Cell, Key, Next, Replies, Reply, Status, entity, row};
use crate::machine::Phase;
use crate::op::mission::{GoOutcome, GoStanding, MissionOutcome, MissionView, PlanOutcome};
use crate::policy::mission::{DesignStep, Driver, MissionStanding, Rounds, waits_for_approval};
use crate::policy::rules;

/// The content of the state file. SUM is kept short, so that the whole reply stays within the limit of the file.
fn mission_reply(status: Status, sum: String, view: &MissionView) -> Reply {
    let m1 = &view.m1;
    Reply::new(status, sum)
        .next(next(view))
        .with(Key::M1Status, m1.status)
        .with(Key::Goal, m1.goal.as_str())
        .with_texts(Key::Constraint, &m1.constraints)
        .with(Key::TaskId, m1.task.as_str())
        .with(Key::Logref, m1.logref.as_str())
        .with(Key::OpenK, m1.open_k.as_str())
        .with(Key::Round, round(m1.rounds))
        .with(Key::LastAction, m1.last_action.as_str())
        .with(Key::NextAction, m1.next_action.as_str())
        .warn(view.warnings.clone())
}

/// The round, and how many there are at most.
pub fn round(rounds: Rounds) -> Cell {
    Cell::NumberOf(rounds.begun, rounds.max)
}

/// Polls the job in progress, or shows the task; else the next step from the state file, if it is a safe command. A step
/// of `hf-state go` is never polled: the failure that hf-poll reports is the fixer's to repair.
fn next(view: &MissionView) -> Next {
    if let Some((task, reference)) = view.busy.as_ref().and_then(|task| Some((task, entity::plain_reference(task)?))) {
        return match (task.is_job(), task.as_task().mission_step()) {
            (true, _) if waits_for_approval(task) => Next::OPERATOR,
            (true, Some(_)) => Next::run("hf-state").word("go"),
            (true, None) => Next::run("hf-poll").value(&reference),
            (false, _) => Next::run("hf-task").word("show").value(&reference),
        };
    }
    match &view.standing {
        MissionStanding::OutOfRounds { .. } | MissionStanding::EndedByPerson { .. } => Next::OPERATOR,
        _ if view.written.next_action => Next::repeated(&view.m1.next_action),
        MissionStanding::Reviewed(design) => match design.next {
            DesignStep::Fix { .. } => Next::Patch,
            DesignStep::Ask { .. } => Next::run("hf-review").word("status"),
            DesignStep::Approve { .. } | DesignStep::Judge => Next::OPERATOR,
            DesignStep::Work { driver: Driver::Go } => Next::run("hf-state").word("go"),
            DesignStep::Work { driver: Driver::Agent } => Next::None,
        },
        MissionStanding::Failed { job, driver, is_reported, .. }
            if *driver == Driver::Agent || (*is_reported && !rules::was_lost(job)) =>
        {
            Next::Patch
        }
        _ if view.mission.phase == Phase::Running => Next::repeated(&view.m1.next_action),
        _ => Next::None,
    }
}

impl Replies for MissionView {
    fn reply(&self) -> Reply {
        mission_reply(Status::Ok, format!("{}: {}", self.mission.name(), self.mission.phase), self)
    }
}

impl Replies for MissionOutcome {
    fn reply(&self) -> Reply {
        let MissionOutcome { recorded, view } = self;
        let status = if recorded.duplicate { Status::Duplicate } else { Status::Recorded };
        let sum = format!("{} is {}, round {}", view.mission.name(), view.mission.phase, view.m1.rounds);
        mission_reply(status, sum, view).with_texts(Key::EventId, &recorded.ids).warn(recorded.warnings.clone())
    }
}

impl Replies for PlanOutcome {
    fn reply(&self) -> Reply {
        let rows = self.tasks.iter().map(|(name, id)| row![name.as_str(), id.as_str()]);
        self.mission.reply().with_rows(Key::Planned, rows)
    }
}

impl Replies for GoOutcome {
    fn reply(&self) -> Reply {
        let (status, next) = match self.standing {
            GoStanding::Passed => (Status::Done, Next::None),
            GoStanding::Running => {
                let again = Next::run("hf-state").word("go");
                let again = self.max.iter().fold(again, |next, max| next.arg("--max", &(max.as_secs() as usize)));
                (Status::Running, again)
            }
            GoStanding::HandedOver => (Status::Running, next(&self.view)),
            GoStanding::WaitsForApproval => (Status::ApprovalRequired, Next::OPERATOR),
            GoStanding::Failed => (Status::Fail, Next::Patch),
            GoStanding::EndedByPerson | GoStanding::GivenUp => (Status::Fail, Next::OPERATOR),
            GoStanding::OutOfRounds => (Status::RoundLimit, Next::OPERATOR),
        };
        let m1 = &self.view.m1;
        let reply = Reply::new(status, self.summary.as_str())
            .next(next)
            .with(Key::M1Status, m1.status)
            .with(Key::TaskId, m1.task.as_str())
            .with(Key::Round, round(m1.rounds));
        let reply = match self.standing {
            GoStanding::Failed | GoStanding::EndedByPerson | GoStanding::OutOfRounds => {
                reply.with_lines(Key::Last5, self.last5.clone())
            }
            _ => reply,
        };
        reply.with_some(Key::Logref, self.logref.as_deref()).warn(self.view.warnings.clone())
    }
}
