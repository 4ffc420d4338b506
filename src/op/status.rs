//! hf-status: the state of the whole system on one screen, and metrics.

use super::pause::{ProjectView, views};
use super::project;
use super::watchdog::{self, WatchdogRequest};
use super::{Context, Mode};
use crate::base::{EntityType, Result, Subject, Timestamp, Ulid, names};
use crate::event::Kind;
use crate::machine::{self, Phase};
use crate::op::kernel::View;
use crate::policy::approval;
use crate::policy::liveness::Level;
use crate::policy::project::ProjectActivity;
use crate::policy::settings::Setting;
use crate::state::{Entity, State};

names! {
    /// Whether work is in progress.
    pub enum SystemState {
        Running = "running",
        Paused = "paused",
        Stopped = "stopped",
    }
}

#[derive(Debug)]
pub struct StatusOutcome {
    pub system: SystemState,
    pub tasks: Vec<(machine::Phase, u64)>,
    /// Every project; empty if there is only `main` and it was never paused.
    pub projects: Vec<ProjectView>,
    pub pending_approvals: u64,
    pub last_event: Option<(Ulid, Timestamp)>,
    /// The watchdog's last tick.
    pub watchdog: Option<Timestamp>,
    pub uptime_seconds: u64,
    pub now: Timestamp,
    /// What needs attention, oldest first: since when, and what.
    pub problems: Vec<(Timestamp, String)>,
}

/// After this many intervals without a tick the watchdog counts as dead.
const WATCHDOG_LATE_INTERVALS: u64 = 3;
/// How many problems of one sort are listed at most.
const PROBLEMS_MAX: usize = 1000;

pub fn status(ctx: &Context) -> Result<StatusOutcome> {
    let vault = ctx.open()?;
    let flag = vault.stop_flag()?;
    let now = ctx.now.timestamp();
    let tick = watchdog::watchdog(ctx, WatchdogRequest { mode: Mode::DryRun })?;
    let view = View::open(ctx, &vault)?;
    let (snapshot, state, config) = (view.log(), view.state(), view.config());
    let system = state.entity(&Subject::SYSTEM);
    let stopped = flag.is_some() || state.phase_of(&Subject::SYSTEM) == Phase::Stopped;
    let mut problems = problems(view.recorded());
    // What the watchdog would report now, whether or not one is running.
    let failing = tick.findings.iter().filter(|finding| finding.level == Level::Error);
    problems.extend(failing.map(|finding| {
        let name = state.entity(&finding.subject).map_or(finding.subject.to_string(), |entity| entity.name());
        (Timestamp(now.0.saturating_sub_unsigned(finding.seconds)), format!("{} {name}", finding.code))
    }));
    if stopped {
        let recorded = system.as_ref().filter(|system| system.phase == Phase::Stopped);
        let reason = recorded.and_then(|system| system.as_system().stop_reason().map(str::to_owned));
        let reason = reason.or_else(|| flag.map(|flag| flag.reason)).unwrap_or_default();
        let since = recorded.and_then(|system| system.as_system().stopped_at()).unwrap_or(now);
        problems.push((since, format!("everything is stopped: {reason}")));
    }
    let silent_after = config.count(Setting::WatchdogIntervalSeconds).saturating_mul(WATCHDOG_LATE_INTERVALS);
    if let Some(tick) = vault.last_tick()?.filter(|tick| now.0.saturating_sub(tick.0) > silent_after as i64) {
        problems.push((tick, "the watchdog has not run".to_owned()));
    }
    problems.sort();
    let last = snapshot.head().map(|head| snapshot.find(head.id)).transpose()?.flatten();
    let from = system.as_ref().and_then(|system| system.as_system().running_since()).unwrap_or(now);
    Ok(StatusOutcome {
        system: match stopped {
            true => SystemState::Stopped,
            false if ProjectActivity::read(state).all_paused() => SystemState::Paused,
            false => SystemState::Running,
        },
        projects: views(state),
        tasks: state.tally().phases(EntityType::Task).collect(),
        pending_approvals: approval::OPEN
            .iter()
            .map(|phase| state.tally().in_phase(EntityType::Decision, *phase))
            .sum(),
        last_event: last.map(|event| (event.id, event.timestamp)),
        watchdog: vault.last_tick()?,
        uptime_seconds: if stopped { 0 } else { now.0.saturating_sub(from.0).max(0) as u64 },
        now,
        problems,
    })
}

/// Problems that do not depend on the time.
fn problems(state: &State) -> Vec<(Timestamp, String)> {
    let mut all = Vec::new();
    let mut collect = |entity: EntityType, phase: Phase, since: fn(&Entity) -> Option<Timestamp>, what: &str| {
        for found in state.in_phase(entity, phase, PROBLEMS_MAX) {
            let since = since(&found).unwrap_or(found.created_at);
            all.push((since, format!("{} {what}", found.name())));
        }
    };
    collect(
        EntityType::Requirement,
        Phase::Blocked,
        |r| r.as_requirement().blocked_at(),
        "is Blocked: it failed verification too many times",
    );
    collect(EntityType::Decision, Phase::Escalated, |d| d.as_decision().timed_out_at(), "was not decided in time");
    collect(EntityType::Artifact, Phase::Corrupted, |a| a.as_artifact().corrupted_at(), "is Corrupted");
    all
}

/// One metric of the system.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub part: u64,
    pub whole: u64,
    pub means: &'static str,
    pub aim: &'static str,
}

#[derive(Debug)]
pub struct MetricsOutcome {
    pub metrics: Vec<Metric>,
}

/// Computes the metrics.
pub fn metrics(ctx: &Context) -> Result<MetricsOutcome> {
    let vault = ctx.open()?;
    let differences = project::check_caches(&vault)?.differences.len();
    let view = View::open(ctx, &vault)?;
    let state = view.recorded();
    let recorded = |kind| state.tally().recorded(kind);
    let silent = recorded(Kind::RunTimedOut);
    let missed = view.due.iter().filter(|due| due.kind == Kind::RunTimedOut).count() as u64;
    let metric = |name, part, whole, means, aim| Metric { name, part, whole, means, aim };
    let metrics = vec![
        metric("inconsistency", u64::from(differences > 0), 1, "rebuilds that differ / rebuilds", "<1%"),
        metric("silence_detection", silent, silent + missed, "silent runs found / silent runs", "100%"),
        metric(
            "task_completion",
            recorded(Kind::TaskSucceeded),
            recorded(Kind::TaskProposed),
            "succeeded / proposed",
            ">80%",
        ),
        metric(
            "approval_timeouts",
            recorded(Kind::ApprovalTimedOut),
            recorded(Kind::DecisionRequested),
            "timed out / requested",
            "-",
        ),
    ];
    Ok(MetricsOutcome { metrics })
}
