//! Replies about jobs.

use super::{Key, Next, Replies, Reply, Row, Status, Value, entity, row};
use crate::base::limits;
use crate::base::text::{self, count_noun};
use crate::job::{Ended, ExitRecord, Need};
use crate::op::job::{
    CancelOutcome, FireOutcome, JobLogOutcome, JobStanding, JobView, JobWait, JobsOutcome, PollOutcome, WaitOutcome,
};

fn title(task: &crate::state::Entity) -> String {
    text::cut(task.as_task().title().unwrap_or_default(), limits::SUMMARY_MAX_CHARS)
}

/// LOGREF of a job that ended before its command ran.
const NO_LOG: &str = "NONE";

/// The command that continues after a failed step of a mission.
fn go() -> Next {
    Next::run("hf-state").word("go")
}

/// The command that waits for a job.
fn poll(task: &crate::state::Entity) -> Option<Next> {
    entity::plain_reference(task).map(|reference| Next::run("hf-poll").value(&reference))
}

impl Replies for FireOutcome {
    fn reply(&self) -> Reply {
        let FireOutcome { task, run_id, logref, waits_for_approval, recorded } = self;
        let approval = *waits_for_approval;
        let status = match (recorded.duplicate, approval) {
            (true, _) => Status::Duplicate,
            (false, true) => Status::ApprovalRequired,
            (false, false) => Status::Fired,
        };
        let again = match recorded.duplicate && task.as_task().aborted_at().is_some() {
            true => "; another attempt needs another key",
            false => "",
        };
        Reply::new(status, format!("{} is {}: {}{again}", task.name(), task.phase, title(task)))
            .next(poll(task).filter(|_| !approval).unwrap_or(Next::OPERATOR))
            .with(Key::TaskId, task.name())
            .with(Key::RunId, run_id.as_str())
            .with(Key::Logref, logref.as_str())
            .with_rows(Key::Entity, recorded.followed.iter().filter(|_| approval).map(entity::row))
            .warn(recorded.warnings.clone())
    }
}

fn status_of(view: &JobView) -> Status {
    match view.standing {
        JobStanding::Queued => Status::Queued,
        JobStanding::Running => Status::Running,
        JobStanding::Done => Status::Done,
        JobStanding::Fail => Status::Fail,
        JobStanding::Orphaned => Status::Orphaned,
        JobStanding::Lost => Status::Lost,
    }
}

/// The last lines that a job printed.
fn last_lines(view: &JobView) -> Vec<String> {
    view.record.as_ref().map(ExitRecord::last_lines).unwrap_or_default()
}

fn about(status: Status, view: &JobView) -> Reply {
    Reply::new(status, view.summary())
        .with(Key::TaskId, view.task.name())
        .with_some(Key::RunId, view.run_id.as_deref())
        .with(Key::State, view.task.phase.as_str())
        .with(Key::Logref, view.logref().unwrap_or(NO_LOG))
}

impl Replies for JobView {
    fn reply(&self) -> Reply {
        let reply = about(status_of(self), self).with_json(Key::Job, Value::Rows(vec![job(self)]));
        let last5 = last_lines(self);
        let next = match self.standing {
            JobStanding::Done => Next::None,
            _ if self.needs_operator() => Next::OPERATOR,
            JobStanding::Fail | JobStanding::Lost if self.is_gos => go(),
            JobStanding::Fail | JobStanding::Lost => Next::Patch,
            _ => poll(&self.task).unwrap_or(Next::None),
        };
        match self.standing {
            JobStanding::Fail | JobStanding::Lost => reply.next(next).with_lines(Key::Last5, last5),
            _ => reply.next(next),
        }
    }
}

impl Replies for JobLogOutcome {
    /// The reply that accompanies a job's output.
    fn reply(&self) -> Reply {
        about(status_of(&self.view), &self.view)
    }
}

impl Replies for CancelOutcome {
    fn reply(&self) -> Reply {
        // A process that could not be ended is named, and is no success.
        if !self.left.is_empty() || self.view.standing == JobStanding::Orphaned {
            return about(Status::NotEnded, &self.view).next(Next::OPERATOR).with_texts(Key::Left, &self.left);
        }
        about(if self.already_ended { Status::Duplicate } else { Status::Cancelled }, &self.view)
    }
}

/// Task, status, log and title; tables and JSON add run, holder, start time, duration and exit code.
fn job(view: &JobView) -> Row {
    let exit = view.record.as_ref().and_then(|record| match record.ended {
        Ended::Exited { code } => Some(i64::from(code)),
        _ => None,
    });
    row![
        view.task.name(),
        view.standing.as_str(),
        view.logref().unwrap_or(NO_LOG),
        title(&view.task),
        view.run_id.as_deref(),
        view.task.as_task().recorded_holder(),
        view.started_at,
        view.seconds,
        exit
    ]
}

impl Replies for JobsOutcome {
    fn reply(&self) -> Reply {
        let count = count_noun(self.jobs.len(), "job");
        let stops = self.jobs.iter().filter_map(|view| match &view.waits_for {
            Some(JobWait::Stop(why)) => Some(why),
            _ => None,
        });
        let (sum, next) = match stops.clone().next() {
            Some(why) => (format!("{count}; {} waiting: {why}", stops.count()), Next::OPERATOR),
            None => (count, Next::None),
        };
        Reply::new(Status::Ok, sum)
            .next(next)
            .with(Key::Count, self.jobs.len())
            .with_rows(Key::Job, self.jobs.iter().map(job))
    }
}

impl Replies for WaitOutcome {
    fn reply(&self) -> Reply {
        let is = |view: &&JobView, standing: &[JobStanding]| standing.contains(&view.standing);
        let failures = || self.jobs.iter().filter(|view| is(view, &[JobStanding::Fail, JobStanding::Lost]));
        let failed = failures().count();
        let over = self.jobs.iter().filter(|view| is(view, &[JobStanding::Done])).count() + failed;
        let sum = format!("{over} of {} ended, {failed} failed", count_noun(self.jobs.len(), "job"));
        // The first failure comes first, as in the reply about that job alone.
        let first = failures().next();
        let sum = match first {
            Some(view) => format!("{} ({}); {sum}", view.summary(), view.task.name()),
            None => sum,
        };
        let is_first = |view: &JobView| first.is_some_and(|first| first.task.subject == view.task.subject);
        let incomplete = self.jobs.iter().filter(|view| view.log_gap().is_some() && !is_first(view));
        let incomplete: Vec<String> = incomplete.map(|view| view.task.name()).collect();
        let sum = match incomplete.is_empty() {
            true => sum,
            false => format!("{sum}; logs with missing output: {}", incomplete.join(", ")),
        };
        let (status, next) = match (self.fulfilled, failed) {
            (true, 0) => (Status::Done, Next::None),
            (true, _) if failures().all(JobView::needs_operator) => (Status::Fail, Next::OPERATOR),
            (true, _) if failures().all(|view| view.is_gos) => (Status::Fail, go()),
            (true, _) => (Status::Fail, Next::Patch),
            (false, _) if self.jobs.iter().any(JobView::needs_operator) => (Status::Running, Next::OPERATOR),
            (false, _) => (Status::Running, again(self)),
        };
        let reply = Reply::new(status, sum).next(next).with_rows(Key::Job, self.jobs.iter().map(job));
        let reply = if self.fulfilled { reply } else { reply.exit(WAIT_RAN_OUT) };
        match first {
            Some(view) => reply.with_lines(Key::Last5, last_lines(view)),
            None => reply,
        }
    }
}

/// EXIT of a wait that ran out before enough jobs had ended.
const WAIT_RAN_OUT: u8 = 1;

/// The command that continues the same wait.
fn again(done: &WaitOutcome) -> Next {
    let names = done.jobs.iter().filter_map(|view| entity::plain_reference(&view.task));
    let words = match done.need {
        Need::Any => "wait --any",
        Need::All => "wait",
    };
    let next = names.fold(Next::run("hf-job").word(words), |next, name| next.value(&name));
    done.max.iter().fold(next, |next, max| next.arg("--max", &(max.as_secs() as usize)))
}

/// EXIT of a poll while the job is running. The exit codes of hf-poll are those that its callers expect, not those
/// of the status table.
const POLL_RUNNING: u8 = 2;
/// EXIT of a poll if there is no such job.
const POLL_NOT_FOUND: u8 = 99;

impl Replies for PollOutcome {
    /// The four blocks, exactly as their readers expect them.
    fn reply(&self) -> Reply {
        match self {
            PollOutcome::Done { summary } => Reply::new(Status::Done, summary),
            PollOutcome::Running { summary, id, called, needs_operator, limits } => {
                let again = limits.iter().fold(Next::poll(called.as_deref(), id), |next, limit| next.value(limit));
                let next = if *needs_operator { Next::OPERATOR } else { again };
                Reply::new(Status::Running, summary).exit(POLL_RUNNING).next(next)
            }
            PollOutcome::Fail { summary, needs_operator, is_gos, reports, last5, logref } => {
                Reply::new(Status::Fail, summary)
                    .next(match (needs_operator, *is_gos && reports.is_none()) {
                        (true, _) => Next::OPERATOR,
                        (false, true) => go(),
                        (false, false) => Next::Patch,
                    })
                    .with_lines(Key::Last5, last5.clone())
                    .with(Key::Logref, logref.as_deref().unwrap_or(NO_LOG))
            }
            PollOutcome::NotFound => Reply::new(Status::NotFound, "Job does not exist").exit(POLL_NOT_FOUND),
        }
    }
}
