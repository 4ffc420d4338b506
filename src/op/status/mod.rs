//! hf-status: the state of the whole system on one screen: its agents, and everything that needs somebody. And metrics.

mod problems;
mod scope;

use std::sync::Arc;

use super::pause::{ProjectView, views};
use super::project;
use super::watchdog::{self, WatchdogRequest};
use super::{Context, Host, ListFilter, Mode};
use crate::base::{Actor, EntityType, Result, Subject, Timestamp, Ulid, names};
use crate::event::Kind;
use crate::machine::{self, Phase};
use crate::op::kernel::View;
use crate::policy::due;
use crate::policy::liveness::{DeepWorkMode, Level, SignsOfLife};
use crate::policy::project::ProjectActivity;
use crate::policy::settings::{Regime, Setting};
use crate::state::{Entity, State};
use crate::vault::Vault;

use scope::StatusScope;

pub use problems::{Problem, WATCHDOG_INSTALL, WATCHDOG_LATE_INTERVALS, WATCHDOG_LOOP};

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
    /// The name of the hive.
    pub hive: String,
    /// Which settings are in force.
    pub regime: Regime,
    pub system: SystemState,
    pub tasks: Vec<(machine::Phase, u64)>,
    /// Every project; empty if there is only `main` and it was never paused.
    pub projects: Vec<ProjectView>,
    /// Every agent that was not stopped.
    pub agents: Vec<AgentView>,
    pub pending_approvals: u64,
    pub last_event: Option<(Ulid, Timestamp)>,
    /// The watchdog's last tick.
    pub watchdog: Option<Timestamp>,
    pub uptime_seconds: u64,
    pub now: Timestamp,
    /// What needs somebody, most urgent first.
    pub problems: Vec<Problem>,
    /// Remarks that are not problems.
    pub notices: Vec<String>,
    pub warnings: Vec<String>,
    /// What it is limited to.
    pub filter: ListFilter,
}

names! {
    /// What an agent last did that shows that it is alive.
    pub enum Sign {
        Started = "started",
        Checkpoint = "checkpoint",
        Activity = "activity",
        Heartbeat = "heartbeat",
        /// It waits for a job.
        Wait = "wait",
        /// Anything else about a task.
        Seen = "seen",
    }
}

/// An agent as hf-status shows it.
#[derive(Debug)]
pub struct AgentView {
    pub name: String,
    /// The codes of the rules that it breaks now.
    pub anomalies: Vec<String>,
    pub last_sign: (Timestamp, Sign),
    /// The tasks that it holds, by name.
    pub holds: Vec<String>,
    /// The deep work that it declared, in words.
    pub deep_work: Option<String>,
    /// The projects in which it has an open session.
    pub projects: Vec<String>,
}

/// What to show.
#[derive(Clone, Debug, Default)]
pub struct StatusRequest {
    /// Only what concerns this project or this actor, and what concerns everybody.
    pub filter: ListFilter,
}

pub fn status(ctx: &Context, request: StatusRequest) -> Result<StatusOutcome> {
    let vault = ctx.open()?;
    let now = ctx.now.timestamp();
    // What the watchdog would report now, whether or not one is running; the answer does not depend on who asks.
    let tick = watchdog::watchdog(&like_the_last_tick(ctx, &vault)?, WatchdogRequest { mode: Mode::DryRun })?;
    let view = View::open(ctx, &vault)?;
    let (snapshot, state) = (view.log(), view.state());
    // What is due may have taken somebody out of a project; the record says where they are.
    let scope = StatusScope::of_filter(view.recorded(), request.filter);
    let system = state.entity(&Subject::SYSTEM);
    let stopped = state.phase_of(&Subject::SYSTEM) == Phase::Stopped;
    let last = snapshot.head().map(|head| snapshot.find(head.id)).transpose()?.flatten();
    let from = system.as_ref().and_then(|system| system.as_system().running_since()).unwrap_or(now);
    let (mut problems, notices) = problems::find(ctx, &vault, &view, &tick)?;
    problems.retain(|problem| scope.has(view.recorded(), &problem.concerns));
    let signs = tick.agents.iter().filter(|signs| scope.has_agent(view.recorded(), &signs.agent)).map(|signs| {
        let failing = tick.findings.iter().filter(|f| f.subject == signs.agent && f.level == Level::Error);
        agent_view(state, now, signs, failing.map(|finding| finding.code.to_string()).collect())
    });
    let mut projects = views(state);
    projects.retain(|view| scope.has_project(&view.name));
    Ok(StatusOutcome {
        hive: view.config().text(Setting::HiveName),
        regime: Regime::of(view.recorded()),
        system: match stopped {
            true => SystemState::Stopped,
            false if ProjectActivity::read(state).all_paused() => SystemState::Paused,
            false => SystemState::Running,
        },
        projects,
        tasks: scope.tasks(state),
        agents: signs.collect(),
        pending_approvals: scope.pending_approvals(state),
        last_event: last.map(|event| (event.id, event.timestamp)),
        watchdog: vault.last_tick()?,
        uptime_seconds: if stopped { 0 } else { now.0.saturating_sub(from.0).max(0) as u64 },
        now,
        problems,
        notices,
        warnings: tick.warnings,
        filter: scope.filter,
    })
}

/// The same call for a tick like the last one, which may have been given a works tree.
fn like_the_last_tick(ctx: &Context, vault: &Vault) -> Result<Context> {
    let ctx = ctx.without_session();
    let works = vault.tick()?.and_then(|tick| tick.works).filter(|works| works.is_dir());
    Ok(match works.filter(|_| ctx.host.works.is_none()) {
        Some(works) => {
            let host = Host { works: Some(works), ..(*ctx.host).clone() };
            Context { host: Arc::new(host), ..ctx.acting_as(Actor::core(due::WATCHDOG)) }
        }
        None => ctx,
    })
}

fn agent_view(state: &State, now: Timestamp, signs: &SignsOfLife, anomalies: Vec<String>) -> AgentView {
    let held = state.held_by(&signs.agent.to_string());
    let mut seats = state.made_for(&signs.agent, EntityType::Session);
    seats.retain(|session| session.phase == Phase::Active);
    // Of two in the same second, the later row counts: what it declared, then what it did, then what shows that it runs.
    let shown = [
        (Some(signs.started_at), Sign::Started),
        (signs.last_wait, Sign::Wait),
        (signs.last_heartbeat, Sign::Heartbeat),
        (signs.last_seen, Sign::Seen),
        (signs.last_checkpoint, Sign::Checkpoint),
        (signs.last_activity, Sign::Activity),
    ];
    let last = shown.into_iter().filter_map(|(at, sign)| Some((at?, sign))).max_by_key(|(at, _)| *at);
    let is_over = |until: Timestamp| now > until;
    let in_progress = signs.deep_work.as_ref().filter(|work| !work.until.is_some_and(is_over));
    let deep_work = in_progress.map(|work| match (work.mode, work.until) {
        (DeepWorkMode::Strict, Some(until)) => format!("strict until {until}"),
        (mode, _) => mode.to_string(),
    });
    AgentView {
        name: signs.agent.id().to_owned(),
        anomalies,
        last_sign: last.unwrap_or((signs.started_at, Sign::Started)),
        holds: held.iter().map(Entity::name).collect(),
        deep_work,
        projects: seats.iter().filter_map(|seat| seat.project.as_ref().map(ToString::to_string)).collect(),
    }
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
