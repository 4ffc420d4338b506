//! An agent's signs of life: checkpoints, activity logs, deep work.
//!
//! The event is recorded first, then the file is written: a file that cannot be written is only a warning.

mod activity;
mod checkpoint;
mod declaration;
mod deepwork;
mod files;
mod intake;
mod wait;

use serde_json::{Value, json};

use super::Context;
use crate::base::{Actor, EntityId, EntityType, Error, ErrorKind, HeartbeatId, Result, Subject, Timestamp, Zone};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::kernel::Transaction;
use crate::policy::liveness::Thresholds;
use crate::policy::settings::{Setting, Settings};
use crate::policy::{rules, waiting};
use crate::state::Entity;
use crate::vault::{AgentDir, ClaimedFile};

pub use activity::{ActivityOutcome, ActivityRequest, activity};
pub use checkpoint::{CheckpointOutcome, CheckpointRequest, checkpoint};
pub use declaration::{Declaration, Wording};
pub use deepwork::{
    DeepWorkOutcome, DeepWorkStatusOutcome, ExtendRequest, MigrateOutcome, StartDeepWorkRequest, complete, extend,
    migrate, start, status,
};
pub(super) use files::{KnownFiles, dir_of, in_works, works_of, zone_of};
pub(super) use intake::{AgentFiles, Intake, Looker, Place, record, remembered_looks};
pub(super) use wait::WaitingAgent;

/// The agent to act as if none is named.
pub const DEFAULT_AGENT: &str = "main";

/// The name of the acting agent.
fn me(ctx: &Context) -> Result<EntityId> {
    ctx.caller.actor.agent().ok_or_else(|| Error::usage(format!("{} is not an agent; use --agent", ctx.caller.actor)))
}

fn subject(name: &EntityId) -> Subject {
    Subject::new(EntityType::Agent, name.clone())
}

/// The current heartbeat id; if there is no usable one, a new one and a warning that says why.
fn current_id(ctx: &Context, config: &Settings, dir: &AgentDir) -> Result<(HeartbeatId, Option<String>)> {
    let zone = zone_of(ctx, config);
    let now = ctx.now.timestamp();
    let fresh = || HeartbeatId::from_time(now, zone);
    let ahead = Timestamp(now.0.saturating_add(config.count(Setting::ClockSkewSeconds) as i64));
    Ok(match dir.current_id()? {
        Some(Ok(id)) if id.time(zone, ahead) <= ahead => (id, None),
        Some(Ok(id)) => (fresh(), Some(format!("the current heartbeat id {id} is in the future; using a new one"))),
        Some(Err(text)) => {
            let shown = crate::base::text::cut(&text, 40);
            (
                fresh(),
                Some(format!("'{shown}' is not a heartbeat id; using a new one until hf-watchdog writes the next")),
            )
        }
        None => (
            fresh(),
            Some("this agent has no heartbeat id yet; using a new one until hf-watchdog writes it".to_owned()),
        ),
    })
}

/// The files of the acting agent that count already.
fn known_files(tx: &Transaction<'_>, agent: &Subject, zone: Zone) -> KnownFiles {
    KnownFiles::of_agent(tx.state().entity(agent).as_deref(), zone, tx.now.timestamp())
}

/// The liveness limits of an agent.
pub(super) fn thresholds(config: &Settings) -> Thresholds {
    Thresholds {
        never_seen_warn: config.count(Setting::NeverSeenWarnSeconds),
        never_seen: config.count(Setting::NeverSeenSeconds),
        inactive_warn: config.count(Setting::InactiveWarnSeconds),
        inactive_error: config.count(Setting::InactiveErrorSeconds),
        introspection_notice: config.count(Setting::IntrospectionNoticeSeconds),
        introspection_warn: config.count(Setting::IntrospectionWarnSeconds),
        introspection_error: config.count(Setting::IntrospectionErrorSeconds),
        deepwork_checkpoint: config.count(Setting::DeepworkCheckpointSeconds),
    }
}

/// The claims that an agent lost without an act of its own, and does not know of yet: what became of each task.
fn lost_claims(tx: &Transaction<'_>, agent: &Subject) -> Vec<Error> {
    let known = tx.state().entity(agent);
    let ids = known.iter().flat_map(|agent| agent.as_agent().lost_tasks()).filter_map(|id| EntityId::parse(id).ok());
    let tasks = ids.filter_map(|id| tx.state().entity(&Subject::new(EntityType::Task, id)));
    tasks.filter_map(|task| rules::lost_claim(tx.state(), &task, &agent.to_string())).collect()
}

/// The claim that an agent lost last, if it does not know of it yet.
pub(super) fn last_lost_claim(tx: &Transaction<'_>, actor: &Actor) -> Option<Error> {
    let agent = Subject::new(EntityType::Agent, actor.agent()?);
    lost_claims(tx, &agent).pop()
}

/// Records a heartbeat for every task that the agent holds; its sign of life counts for them.
fn beat_for_held(ctx: &Context, tx: &mut Transaction<'_>) -> Result<()> {
    let name = ctx.caller.actor.to_string();
    for task in tx.state().held_by(&name).iter().filter(|task| !task.is_job()) {
        if let Some((kind, subject)) = waiting::renewal_of(task) {
            tx.ask(ctx.request(kind, Some(&subject.to_string()), json!({})))?;
        }
    }
    Ok(())
}

/// The agent's open deep work.
fn open_work(tx: &Transaction<'_>, agent: &Subject) -> Option<Entity> {
    let agent = tx.state().entity(agent)?;
    let work = agent.as_agent().deep_work()?;
    tx.state().entity(&work).filter(|work| work.phase == Phase::Open).map(|work| work.into_owned())
}

/// Gives up the name of a file if its event was not recorded.
fn unclaim_unless_recorded<T>(dir: &AgentDir, claimed: Option<&ClaimedFile>, recorded: Result<T>) -> Result<T> {
    // What may be recorded keeps its name.
    let is_refused = |error: &Error| !matches!(error.kind, ErrorKind::Uncertain { .. });
    if let (Some(claimed), true) = (claimed, recorded.as_ref().is_err_and(is_refused)) {
        dir.unclaim(claimed);
    }
    recorded
}

/// The path of the file in which a deep work was declared.
pub(super) fn declared_path(dir: &AgentDir, work: &Entity) -> Option<String> {
    let work = work.as_deep_work();
    // Version 0.1 did not record it.
    work.file().map(str::to_owned).or_else(|| work.heartbeat_id().map(|id| dir.declaration_path(id)))
}

/// Checks that a text is one line, not empty and not too long.
pub(super) fn one_line(what: &str, text: &str, max: usize) -> Result<String> {
    let text = text.trim();
    let (lines, length) = (text.lines().count(), text.chars().count());
    if text.is_empty() {
        return Err(Error::usage(format!("{what} is empty; it must be one line")));
    }
    if lines > 1 {
        return Err(Error::usage(format!("{what} has {lines} lines; it must be one line")));
    }
    if length > max {
        return Err(Error::usage(format!("{what} has {length} characters; at most {max}")));
    }
    Ok(text.to_owned())
}

fn seconds_between(now: Timestamp, then: Timestamp) -> u64 {
    now.0.saturating_sub(then.0).max(0) as u64
}

/// A request for an event about this subject.
fn request_about(ctx: &Context, kind: Kind, subject: &Subject, payload: Value) -> crate::policy::Request {
    ctx.request(kind, Some(&subject.to_string()), payload)
}
