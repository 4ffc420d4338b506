//! What the passing of time asks for: silent runs, leases, approvals and tasks that are long done.
//!
//! Each rule is a pure function of (state, now). "At" its limit something is still in time; it is
//! overdue from the next second on.

use std::collections::HashMap;

use serde_json::json;

use super::project::Calendar;
use super::settings::{Setting, Settings};
use crate::base::{Actor, EntityType, Subject, Timestamp, names};
use crate::event::{Draft, Kind};
use crate::machine::State as At;
use crate::state::{Entity, State};

/// Entities that one rule looks at in one go.
const LOOK_MAX: usize = 100_000;
/// Tasks that are archived in one go.
const ARCHIVE_MAX: usize = 1000;
/// A supervised run is silent after so many intervals without a heartbeat.
pub const SILENT_INTERVALS: u64 = 3;

/// Who acts when time has passed.
pub const WATCHDOG: &str = "watchdog";

names! {
    /// Every rule of the watchdog.
    pub enum Code {
        NeverSeen = "NEVER_SEEN",
        Inactive = "INACTIVE",
        IntrospectionOverdue = "INTROSPECTION_OVERDUE",
        IntrospectionDuty = "INTROSPECTION_DUTY",
        DeepworkUnchecked = "DEEPWORK_UNCHECKED",
        DeepworkExpired = "DEEPWORK_EXPIRED",
        DeepworkMalformed = "DEEPWORK_MALFORMED",
        ClockSkew = "CLOCK_SKEW",
        RunSilent = "RUN_SILENT",
        RunOvertime = "RUN_OVERTIME",
        JobLost = "JOB_LOST",
        LeaseExpired = "LEASE_EXPIRED",
        ApprovalOverdue = "APPROVAL_OVERDUE",
        SessionExpired = "SESSION_EXPIRED",
        Runaway = "RUNAWAY",
        ArchiveDue = "ARCHIVE_DUE",
    }
}

impl Code {
    /// Whether a person should look; the rest is housekeeping.
    pub const fn is_anomaly(self) -> bool {
        !matches!(self, Code::ArchiveDue)
    }

    /// Whether waking the agent may help.
    pub const fn is_silence(self) -> bool {
        matches!(self, Code::NeverSeen | Code::Inactive | Code::DeepworkUnchecked)
    }

    /// What the agent, or whoever looks after it, should do.
    pub const fn advice(self) -> &'static str {
        match self {
            Code::NeverSeen => "show what you are doing with hf-checkpoint",
            Code::Inactive => "write an activity log, or a checkpoint if you are in the middle of something",
            Code::IntrospectionOverdue => "look inward and log it with hf-activity --kind introspection",
            Code::IntrospectionDuty => "after deep work comes an introspection: hf-activity --kind introspection",
            Code::DeepworkUnchecked => "flexible deep work needs checkpoints: hf-checkpoint",
            Code::DeepworkExpired => "the declared time is over: log what was done with hf-activity",
            Code::DeepworkMalformed => {
                "a declaration could not be read and was set aside: declare again with hf-deepwork"
            }
            Code::ClockSkew => "an id lies in the future: check the clock and liveness.timezone",
            Code::RunSilent => "a run fell silent; its task is tried again or given up",
            Code::RunOvertime => "a run took longer than it may; its task is tried again or given up",
            Code::JobLost => "a job is gone without a word; look at its log",
            Code::LeaseExpired => "a claim was not renewed; claim the task again if you are still at it",
            Code::ApprovalOverdue => "an operator should decide: hf-decide list --open",
            Code::SessionExpired => "an agent did not log out in time; its session is void",
            Code::Runaway => "one actor records very much; is it in a loop?",
            Code::ArchiveDue => "nothing to do",
        }
    }
}

/// Something that is overdue, and the event that says so.
#[derive(Clone, Debug)]
pub struct Overdue {
    pub code: Code,
    pub subject: Subject,
    /// What it is called.
    pub name: String,
    /// How long it has lasted, in seconds.
    pub seconds: u64,
    kind: Kind,
    reason: Option<&'static str>,
    parent: crate::base::Ulid,
}

impl Overdue {
    /// The kind of that event.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The event that records it.
    pub fn draft(&self) -> Draft {
        let payload = self.reason.map_or(json!({}), |reason| json!({"reason": reason}));
        Draft {
            kind: self.kind,
            subject: self.subject.clone(),
            actor: Actor::core(WATCHDOG),
            parents: vec![self.parent],
            key: None,
            payload: payload.as_object().expect("an object").clone(),
        }
    }
}

/// Everything that is overdue, in the order of the rules, but sessions: those go by the log's own time.
///
/// Silence and leases do not count from before `armed_at`: nobody could have been heard then.
pub fn overdue(state: &State, rules: &Settings, now: Timestamp, armed_at: Option<Timestamp>) -> Vec<Overdue> {
    let mut all = leases(state, now, armed_at);
    all.extend(runs(state, rules, now, armed_at));
    all.extend(approvals(state, rules, now));
    all.extend(archive(state, rules, now));
    all
}

fn since(now: Timestamp, then: Timestamp) -> u64 {
    now.0.saturating_sub(then.0).max(0) as u64
}

fn found(code: Code, kind: Kind, entity: &Entity, seconds: u64, reason: Option<&'static str>) -> Overdue {
    let (subject, name, parent) = (entity.subject.clone(), entity.name(), entity.last_event);
    Overdue { code, subject, name, seconds, kind, reason, parent }
}

/// Claims that were not renewed: free again, if nothing runs.
pub fn leases(state: &State, now: Timestamp, armed_at: Option<Timestamp>) -> Vec<Overdue> {
    let assigned = state.in_state(EntityType::Task, At::Assigned, LOOK_MAX);
    let calendar = Calendar::of(state);
    let expired = |task: &Entity| {
        let from = calendar.counts_from(state, task)?.max(armed_at.unwrap_or(Timestamp(0)));
        let seconds = since(now, task.time("claimed_at")?.max(from));
        (seconds > lease(task)?).then(|| found(Code::LeaseExpired, Kind::ClaimExpired, task, seconds, None))
    };
    assigned.iter().filter_map(expired).collect()
}

/// The lease that a task was claimed with.
pub fn lease(task: &Entity) -> Option<u64> {
    task.facts.get("lease_seconds").and_then(serde_json::Value::as_u64)
}

/// Until when a claim holds: from the claim, its renewal, the last heartbeat of its run, or the resume of
/// its project. Nothing while that stands still.
pub fn held_until(state: &State, task: &Entity) -> Option<Timestamp> {
    let counts = Calendar::of(state).counts_from(state, task)?;
    let run = task.named("last_run_id", EntityType::Run).and_then(|run| state.entity(&run));
    let beat = run.filter(|_| task.state == At::Running).and_then(|run| run.time("last_heartbeat_at"));
    let from = task.time("claimed_at")?.max(beat.unwrap_or(Timestamp(0))).max(counts);
    Some(Timestamp(from.0.saturating_add(lease(task)? as i64)))
}

/// Runs that fell silent, or took longer than they may. A claimed task is silent after its lease.
fn runs(state: &State, rules: &Settings, now: Timestamp, armed_at: Option<Timestamp>) -> Vec<Overdue> {
    let running = state.in_state(EntityType::Run, At::Running, LOOK_MAX);
    // Read in one go: asking for the task of each run would cost as much again.
    let tasks = if running.is_empty() { Vec::new() } else { state.in_state(EntityType::Task, At::Running, LOOK_MAX) };
    let leases: HashMap<&str, u64> = tasks.iter().filter_map(|task| Some((task.subject.id(), lease(task)?))).collect();
    let calendar = Calendar::of(state);
    let counts: HashMap<&str, Option<Timestamp>> =
        tasks.iter().map(|task| (task.subject.id(), calendar.counts_from(state, task))).collect();
    let late = |run: &Entity| {
        let known = run.text("task_id").and_then(|task| counts.get(task).copied());
        let from = known.unwrap_or(Some(Timestamp(i64::MIN)))?;
        let quiet = since(now, run.time("last_heartbeat_at")?.max(from).max(armed_at.unwrap_or(Timestamp(0))));
        let leased = run.text("task_id").and_then(|task| leases.get(task).copied());
        let (code, limit) = match leased {
            Some(lease) => (Code::LeaseExpired, lease),
            None => (Code::RunSilent, rules.count(Setting::HeartbeatIntervalSeconds).saturating_mul(SILENT_INTERVALS)),
        };
        if quiet > limit {
            return Some(found(code, Kind::RunTimedOut, run, quiet, Some("silent")));
        }
        let took = since(now, run.time("started_at")?.max(from));
        let may_take = run.facts.get("timeout_seconds").and_then(serde_json::Value::as_u64)?;
        (took > may_take).then(|| found(Code::RunOvertime, Kind::RunTimedOut, run, took, Some("overtime")))
    };
    running.iter().filter_map(late).collect()
}

/// Sessions whose time is over. `now` is the log's own time: a clock that was set back makes nobody's
/// session good again.
pub fn sessions(state: &State, now: Timestamp) -> Vec<Overdue> {
    let open = state.in_state(EntityType::Session, At::Active, LOOK_MAX);
    let late = |session: &Entity| {
        let seconds = since(now, session.time("expires_at")?);
        (seconds > 0).then(|| found(Code::SessionExpired, Kind::SessionExpired, session, seconds, None))
    };
    open.iter().filter_map(late).collect()
}

/// Decisions that nobody made in time.
fn approvals(state: &State, rules: &Settings, now: Timestamp) -> Vec<Overdue> {
    let open = state.in_state(EntityType::Decision, At::Requested, LOOK_MAX);
    let late = |decision: &Entity| {
        let seconds = since(now, decision.time("requested_at")?);
        (seconds > rules.count(Setting::ApprovalTimeoutHours).saturating_mul(60 * 60))
            .then(|| found(Code::ApprovalOverdue, Kind::ApprovalTimedOut, decision, seconds, None))
    };
    open.iter().filter_map(late).collect()
}

/// Tasks that ended long ago.
fn archive(state: &State, rules: &Settings, now: Timestamp) -> Vec<Overdue> {
    let mut all = Vec::new();
    for (at, fact) in [(At::Succeeded, "succeeded_at"), (At::Aborted, "aborted_at")] {
        let ended = state.in_state(EntityType::Task, at, ARCHIVE_MAX);
        all.extend(ended.iter().filter_map(|task| {
            let seconds = since(now, task.time(fact)?);
            (seconds > rules.count(Setting::ArchiveAfterDays).saturating_mul(24 * 60 * 60))
                .then(|| found(Code::ArchiveDue, Kind::TaskArchived, task, seconds, None))
        }));
    }
    all
}
