//! The agents' part of a tick: their files, their recorded signs of life, their next heartbeat id.

use serde_json::json;

use super::TickRun;
use crate::base::{EntityId, EntityType, HeartbeatId, Result, Subject, Timestamp};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::agent::{self, Declaration};
use crate::op::kernel::{Mode, Transaction};
use crate::policy::code::Code;
use crate::policy::liveness::{self, AudibleTime, Level, SignsOfLife};
use crate::policy::project::ProjectActivity;
use crate::policy::settings::{Setting, Settings};
use crate::state::Entity;
use crate::vault::{AgentDir, DeclarationEnd, LogFile};

/// The longest activity that a declaration may have.
const DECLARED_MAX_CHARS: usize = 400;

/// The newest activity log and the newest introspection among the files.
type NewestLogs = (Option<LogFile>, Option<LogFile>);

/// An agent that the watchdog checks.
#[derive(Debug)]
pub struct WatchedAgent {
    pub subject: Subject,
    /// The codes of its recorded anomalies.
    pub anomalies: Vec<String>,
}

/// The tasks that are held and the sessions that are open, once what is due is settled.
type Busy<'a> = (&'a [Entity], &'a [Entity]);

/// Checks every active agent and writes its next heartbeat id.
pub fn check_all(tick: &mut TickRun<'_>, tx: &mut Transaction<'_>, busy: Busy<'_>) -> Result<Vec<WatchedAgent>> {
    let agents = tx.state().in_phase(EntityType::Agent, Phase::Active, usize::MAX);
    let activity = ProjectActivity::read(tx.state());
    let mut watched = Vec::new();
    for agent in &agents {
        check_one(tick, tx, agent, busy, &activity)?;
        let known = agent.as_agent().anomalies().into_iter().flatten();
        watched.push(WatchedAgent {
            subject: agent.subject.clone(),
            anomalies: known.map(|(code, _)| code.clone()).collect(),
        });
    }
    if agents.is_empty() && tick.mode == Mode::Write {
        // The first agent finds an id.
        let main = EntityId::parse("main").expect("a plain word");
        let dir = agent::dir_of(tick.ctx, tick.vault, &tx.config, &main)?;
        dir.put_current_id(&tick.heartbeat_id)?;
    }
    Ok(watched)
}

fn check_one(
    tick: &mut TickRun<'_>,
    tx: &mut Transaction<'_>,
    agent: &Entity,
    (held, seated): Busy<'_>,
    activity: &ProjectActivity,
) -> Result<()> {
    let name = EntityId::parse(agent.subject.id())?;
    let config = tx.config.for_agent(name.as_str());
    let offset = agent::offset(tick.ctx, &config);
    // A dry run creates no directory, and nobody waits for an agent that only recorded something once.
    let creates = tick.mode == Mode::Write && SignsOfLife::of_agent(tx.state(), agent, held, seated).expected;
    let dir = match creates {
        false => or_warn(tick, agent, agent::existing_dir(tick.ctx, tick.vault, &config, &name)).flatten(),
        true => or_warn(tick, agent, agent::dir_of(tick.ctx, tick.vault, &config, &name)),
    };
    let writable = dir.as_ref().filter(|_| tick.mode == Mode::Write);
    // Searched once: the directory has every log ever written.
    let logs = dir.as_ref().and_then(|dir| or_warn(tick, agent, dir.newest_logs())).unwrap_or_default();
    if let Some(dir) = writable {
        let taken = record_files(tick, tx, agent, (dir, &logs), &config);
        or_warn(tick, agent, taken);
    }
    let now_agent = tx.state().entity(&agent.subject).map(|agent| agent.into_owned());
    let agent = now_agent.as_ref().unwrap_or(agent);
    let mut signs = SignsOfLife::of_agent(tx.state(), agent, held, seated);
    // Whatever was declared, deep work is never longer than the settings allow.
    let max = config.count(Setting::StrictMaxMinutes).saturating_mul(60);
    if let Some(work) = &mut signs.deep_work {
        work.until = work.until.map(|until| until.min(Timestamp(work.started_at.0.saturating_add_unsigned(max))));
    }
    if let Some(dir) = &dir {
        let seen = apply_files(tick, agent, (dir, &logs), offset, &mut signs);
        or_warn(tick, agent, seen);
    }
    let limits = agent::thresholds(&config);
    // While all of its projects are paused nothing is expected of the agent; its time counts again from the resume.
    let from = activity.active_since(tx.state(), &agent.subject, held).filter(|_| !tick.stopped);
    let found = match from {
        Some(from) => liveness::findings(&signs, &limits, tick.now, &AudibleTime::since(tx.state(), from)),
        None => Vec::new(),
    };
    if found.iter().any(|finding| finding.code == Code::DeepworkExpired) {
        expire(tick, tx, agent, writable)?;
    }
    tick.findings.extend(found);
    tick.agents.push(signs);
    if let Some(dir) = writable {
        // In the agent's own time zone.
        or_warn(tick, agent, dir.put_current_id(&HeartbeatId::from_time(tick.now, offset)));
    }
    Ok(())
}

/// Turns an error about an agent's files into a warning. It stops neither the tick nor the rules: recorded events
/// still count.
fn or_warn<T>(tick: &mut TickRun<'_>, agent: &Entity, done: Result<T>) -> Option<T> {
    let warn = |error| tick.warnings.push(format!("ignored files of {}: {error}", agent.subject));
    done.map_err(warn).ok()
}

/// Records declarations and logs that exist only as files.
fn record_files(
    tick: &mut TickRun<'_>,
    tx: &mut Transaction<'_>,
    agent: &Entity,
    (dir, logs): (&AgentDir, &NewestLogs),
    config: &Settings,
) -> Result<()> {
    let offset = agent::offset(tick.ctx, config);
    // The limits of a file are those of the command.
    let max = config.count(Setting::StrictMaxMinutes);
    let fits = |declared: &Declaration| {
        declared.minutes.is_none_or(|minutes| minutes <= max) && declared.activity.chars().count() <= DECLARED_MAX_CHARS
    };
    let open = agent.as_agent().deep_work().and_then(|work| tx.state().entity(&work));
    let open = open.and_then(|work| work.as_deep_work().heartbeat_id().map(str::to_owned));
    // The agent's earlier deep works are searched only if the file does not belong to the open one.
    let ended_work = |name: &str| {
        let works = tx.state().made_for(&agent.subject, EntityType::DeepWork);
        works.into_iter().find(|work| work.as_deep_work().heartbeat_id() == Some(name))
    };
    let mut fresh = Vec::new();
    for (name, text) in dir.declarations()? {
        if open.as_deref() == Some(name.as_str()) {
            continue;
        }
        if let Some(work) = ended_work(&name) {
            let end = if work.phase == Phase::Expired { DeclarationEnd::Expired } else { DeclarationEnd::Completed };
            dir.end_declaration(&name, end)?;
            continue;
        }
        match (HeartbeatId::parse(&name), Declaration::read(&text)) {
            (Some(id), Ok(declared)) if fits(&declared) => fresh.push((id, declared)),
            _ => {
                dir.end_declaration(&name, DeclarationEnd::Malformed)?;
                tick.report(Code::DeepworkMalformed, agent.subject.clone(), Level::Warn, 0);
            }
        }
    }
    for (id, declared) in fresh {
        let open = tx.state().entity(&agent.subject).and_then(|a| a.as_agent().deep_work());
        if let Some(open) = open {
            let by = json!({"agent_id": agent.subject.id(), "by": "declaration"});
            tick.record(tx, Kind::DeepWorkCompleted, &open, by)?;
        }
        let payload = json!({
            "agent_id": agent.subject.id(), "heartbeat_id": id.as_str(), "mode": declared.mode.as_str(),
            "activity": declared.activity,
        });
        let mut payload = payload;
        if let Some(minutes) = declared.minutes {
            payload["minutes"] = minutes.into();
        }
        // The id names the file, unless it is too long or taken.
        let named = EntityId::parse(&format!("{}-{id}", agent.subject.id())).ok();
        let named = named.map(|id| Subject::new(EntityType::DeepWork, id));
        let subject = match named.filter(|named| tx.state().phase_of(named) == Phase::Absent) {
            Some(named) => named,
            None => {
                let id = crate::op::random_ulid(tick.ctx.now)?.to_string();
                Subject::new(EntityType::DeepWork, EntityId::parse(&id)?)
            }
        };
        tick.record(tx, Kind::DeepWorkStarted, &subject, payload)?;
    }
    record_log_file(tick, tx, agent, (dir, logs), offset)
}

/// Records a log that exists only as a file. It ends a deep work and counts like any other log.
fn record_log_file(
    tick: &mut TickRun<'_>,
    tx: &mut Transaction<'_>,
    agent: &Entity,
    (dir, logs): (&AgentDir, &NewestLogs),
    offset: i64,
) -> Result<()> {
    let newest = logs.0.as_ref();
    let named = agent.as_agent().last_activity_id().and_then(HeartbeatId::parse);
    let Some(log) = newest.filter(|log| Some(&log.id) > named.as_ref() && log.id.at(offset) <= tick.now) else {
        return Ok(());
    };
    // Only a log newer than the last recorded one counts.
    if agent.as_agent().last_activity_at().is_some_and(|last| log.id.at(offset) <= last) {
        return Ok(());
    }
    let kind = if log.introspection { "introspection" } else { "activity" };
    let payload = json!({"heartbeat_id": log.id.as_str(), "kind": kind});
    let open = tx.state().entity(&agent.subject).and_then(|a| a.as_agent().deep_work());
    tick.record(tx, Kind::ActivityLogged, &agent.subject, payload)?;
    if let Some(open) = open {
        let declared = tx.state().entity(&open).and_then(|work| work.as_deep_work().heartbeat_id().map(str::to_owned));
        tick.record(tx, Kind::DeepWorkCompleted, &open, json!({"agent_id": agent.subject.id(), "by": "log"}))?;
        dir.end_declaration(declared.as_deref().unwrap_or_default(), DeclarationEnd::Completed)?;
    }
    Ok(())
}

/// Takes checkpoint and log files into account, at the times in their ids.
fn apply_files(
    tick: &TickRun<'_>,
    agent: &Entity,
    (dir, logs): (&AgentDir, &NewestLogs),
    offset: i64,
    signs: &mut SignsOfLife,
) -> Result<()> {
    let mut newest: Vec<Timestamp> = Vec::new();
    if let Some(id) = dir.newest_checkpoint()? {
        let at = id.at(offset);
        newest.push(at);
        let named = agent.as_agent().last_checkpoint_id() == Some(id.as_str());
        if !named && at <= tick.now {
            signs.last_checkpoint = signs.last_checkpoint.max(Some(at));
        }
    }
    if let Some(Ok(id)) = dir.current_id()? {
        newest.push(id.at(offset));
    }
    if let (Some(log), introspection) = logs {
        newest.push(log.id.at(offset));
        // A recorded log counts from its event, which is newer than its id.
        let time_of = |log: &LogFile| Some(log.id.at(offset)).filter(|at| *at <= tick.now);
        signs.last_activity = signs.last_activity.max(time_of(log));
        signs.last_introspection = signs.last_introspection.max(introspection.as_ref().and_then(time_of));
    }
    signs.newest_id = newest.into_iter().max();
    Ok(())
}

/// Ends a strict deep work that is past its time, and marks its file as expired.
fn expire(tick: &TickRun<'_>, tx: &mut Transaction<'_>, agent: &Entity, dir: Option<&AgentDir>) -> Result<()> {
    let work = agent.as_agent().deep_work().and_then(|work| tx.state().entity(&work));
    let Some(work) = work.map(|work| work.into_owned()) else { return Ok(()) };
    let declared = work.as_deep_work().heartbeat_id().map(str::to_owned);
    let due = tx.moment().due_of(&work);
    if let Some(due) = due.filter(|_| tick.mode == Mode::Write) {
        tx.add(due.draft())?;
    }
    match (dir, declared) {
        (Some(dir), Some(declared)) => dir.end_declaration(&declared, DeclarationEnd::Expired),
        _ => Ok(()),
    }
}
