//! The end of a run: what it means for its task.

use serde_json::{Value, json};

use crate::base::{EntityId, EntityType, Result, Subject, text};
use crate::event::{Event, Kind};
use crate::job::{CancelReason, Ended, ExitRecord, JobDir};
use crate::machine::Phase;
use crate::op::Context;
use crate::op::kernel::Transaction;
use crate::policy::Request;
use crate::policy::rules;
use crate::policy::settings::{Setting, Settings};
use crate::state::{Entity, Task as TaskView};
use crate::vault::Vault;

/// How the reason begins for which a command that was approved did not start.
pub(super) const CHANGED: &str = "changed since it was approved";

/// The reason for the end of a job that lost its supervisor.
pub const LOST: &str = rules::LOST_REASON;

/// The longest line of output that is used as a summary.
const SUMMARY_MAX_CHARS: usize = 200;

/// The job's own last line, if it is short and printable.
pub fn summary(record: &ExitRecord) -> Option<String> {
    let line = record.last_line.as_deref().map(str::trim).filter(|line| !line.is_empty())?;
    let plain = line.chars().count() <= SUMMARY_MAX_CHARS && !line.chars().any(text::is_unsafe);
    plain.then(|| line.to_owned())
}

/// How the command ended, in a few words.
pub fn reason(ended: &Ended) -> String {
    match ended {
        Ended::Exited { code } => format!("exit code {code}"),
        Ended::Signalled { signal } => format!("signal {signal}"),
        Ended::TimedOut => "timed out".to_owned(),
        Ended::Halted { why } => why.clone(),
        Ended::NotStarted { reason } => reason.clone(),
    }
}

/// How a run of a failed job ended: as its summary begins. Why the task ended follows if that is something else, or how
/// often it was retried.
fn how(ended: &Ended, task: TaskView<'_>) -> String {
    let how = match ended {
        Ended::Exited { code } => format!("exit {code}"),
        Ended::Signalled { signal } => format!("signal {signal}"),
        Ended::TimedOut | Ended::Halted { .. } | Ended::NotStarted { .. } => {
            let recorded = task.abort_reason().or(task.failure()).map(str::to_owned);
            return recorded.unwrap_or_else(|| reason(ended));
        }
    };
    match task.abort_reason().map(|why| (why, why.strip_prefix(&reason(ended)))) {
        Some((_, Some(gave_up))) => format!("{how}{gave_up}"),
        Some((why, None)) => format!("{how}; {why}"),
        None => how,
    }
}

/// A sentence about a run that ended: its own last line, after how it ended if that is no success, and what its log
/// lacks.
pub fn sentence(record: &ExitRecord, task: TaskView<'_>, is_success: bool) -> String {
    let own = summary(record);
    // How it ended comes first: the last line of a failed job may say anything.
    let sentence = match (is_success, own) {
        (true, own) => own.unwrap_or_else(|| "Job finished".to_owned()),
        (false, Some(own)) => format!("{}: {own}", how(&record.ended, task)),
        (false, None) => how(&record.ended, task),
    };
    match record.log.gap() {
        Some(gap) => format!("{sentence}; {gap}"),
        None => sentence,
    }
}

/// What an event is about.
#[derive(Clone, Copy)]
enum About {
    Run,
    Task,
}

/// The events that record an end.
fn closing(record: &ExitRecord, config: &Settings) -> Vec<(About, Kind, Value)> {
    let reason = reason(&record.ended);
    let failed = |class: &str| json!({"error_class": class, "reason": reason, "escalate": false});
    let finished =
        |success: bool, code: Option<i32>| json!({"success": success, "exit_code": code, "summary": summary(record)});
    match &record.ended {
        Ended::Exited { code: 0 } => {
            vec![
                (About::Run, Kind::RunFinished, finished(true, Some(0))),
                (About::Task, Kind::TaskSucceeded, json!({})),
            ]
        }
        Ended::Exited { code } => {
            let transient = config.counts(Setting::JobsTransientExitCodes).contains(&(*code as u64));
            let class = if transient { "transient" } else { "permanent" };
            vec![
                (About::Run, Kind::RunFinished, finished(false, Some(*code))),
                (About::Task, Kind::TaskFailed, failed(class)),
            ]
        }
        Ended::NotStarted { .. } => {
            vec![
                (About::Run, Kind::RunFinished, finished(false, None)),
                (About::Task, Kind::TaskFailed, failed("permanent")),
            ]
        }
        Ended::Signalled { signal } => {
            let only = config.counts(Setting::JobsTransientSignals);
            let transient = only.is_empty() || only.contains(&(*signal as u64));
            vec![(About::Run, Kind::RunCrashed, json!({"reason": reason, "transient": transient, "escalate": false}))]
        }
        Ended::TimedOut => vec![(About::Run, Kind::RunTimedOut, json!({"reason": "overtime"}))],
        Ended::Halted { why } if *why == CancelReason::Silent.as_str() => {
            vec![(About::Run, Kind::RunTimedOut, json!({"reason": "silent"}))]
        }
        Ended::Halted { why } if *why == CancelReason::Cancelled.as_str() || why.starts_with(rules::STOP_REASON) => {
            vec![(About::Task, Kind::TaskAborted, json!({"reason": why}))]
        }
        Ended::Halted { why } => {
            // If its supervisor did not get to ask again, the next attempt does.
            let transient = why.starts_with(CHANGED);
            vec![(About::Run, Kind::RunCrashed, json!({"reason": why, "transient": transient, "escalate": false}))]
        }
    }
}

/// The context of the actor that cancelled a job: the end is its act, not that of the process that records it.
pub(super) fn as_canceller(ctx: &Context, job: &JobDir) -> Context {
    // If that cannot be read any more, the end is recorded all the same.
    let by = job.cancelled_by().ok().flatten();
    by.map_or_else(|| ctx.clone(), |by| ctx.acting_as(by))
}

/// Records the end of a job's run, once. Returns what was recorded.
pub(super) fn record(ctx: &Context, vault: &Vault, job: &JobDir, record: &ExitRecord) -> Result<Vec<Event>> {
    let is_cancelled = matches!(&record.ended, Ended::Halted { why } if *why == CancelReason::Cancelled.as_str());
    let ctx = &if is_cancelled { as_canceller(ctx, job) } else { ctx.clone() };
    let task = Subject::new(EntityType::Task, job.task().clone());
    let mut tx = Transaction::begin(ctx, vault)?;
    let run = Subject::new(EntityType::Run, EntityId::parse(&record.run_id)?);
    // A stop, or a watchdog, may have been first.
    if tx.state().phase_of(&run) != Phase::Running {
        return Ok(Vec::new());
    }
    let steps = closing(record, &tx.config);
    let mut first = None;
    for (n, (about, kind, payload)) in steps.into_iter().enumerate() {
        let subject = match about {
            About::Run => run.to_string(),
            About::Task => task.to_string(),
        };
        let key = (n == 0).then(|| format!("{}:end", record.run_id));
        let request = Request { key, ..ctx.request(kind, Some(&subject), payload) };
        if n == 0 && tx.repeated(&request)?.is_some() {
            return Ok(Vec::new());
        }
        let asked = tx.ask(request)?;
        first.get_or_insert(asked.id);
    }
    match first {
        Some(first) => tx.commit(first).map(|done| done.events),
        None => Ok(Vec::new()),
    }
}

/// The input of a hook about a finished job.
pub struct JobReport {
    pub text: String,
    pub variables: Vec<(&'static str, String)>,
}

/// The report of a job that has ended; without an exit record nobody saw how.
pub fn report(vault: &Vault, task: &Entity, record: Option<&ExitRecord>, logref: &str) -> JobReport {
    // Of a job that was lost, it is the record of an earlier attempt.
    let record = record.filter(|_| lost(task).is_none());
    let is_success = record.is_some_and(|record| record.ended == Ended::Exited { code: 0 });
    let status = match record {
        None if lost(task).is_some() => "LOST",
        _ if is_success => "DONE",
        _ => "FAIL",
    };
    let code = match record.map(|record| &record.ended) {
        Some(Ended::Exited { code }) => code.to_string(),
        _ => String::new(),
    };
    let name = task.name();
    let log = vault.path().join(super::log_path(logref)).to_string_lossy().into_owned();
    let sum = match record {
        Some(record) => sentence(record, task.as_task(), is_success),
        None => unseen(task),
    };
    JobReport {
        text: format!("TASK_ID:{name}\nSTATUS:{status}\nSUM:{}\nLOGREF:{logref}\n", text::escape(&sum)),
        variables: vec![
            ("HF_TASK_ID", name),
            ("HF_STATUS", status.to_owned()),
            ("HF_EXIT_CODE", code),
            ("HF_LOG", log),
        ],
    }
}

/// A sentence about a job of which nobody saw how its command ended.
pub fn unseen(task: &Entity) -> String {
    match lost(task) {
        Some(gave_up) => format!("Job was lost with its supervisor{gave_up}"),
        None => {
            let reason = task.as_task().abort_reason().or(task.as_task().failure());
            reason.unwrap_or("Job failed").to_owned()
        }
    }
}

/// What follows `lost` in the reason for the end of a lost job: nothing, or after how many retries it was given up.
pub fn lost(task: &Entity) -> Option<&str> {
    let rest = task.as_task().abort_reason()?.strip_prefix(LOST)?;
    (rest.is_empty() || rest.starts_with("; gave up")).then_some(rest)
}
