//! hf-deepwork: saying beforehand that little will be shown for a while.

use serde_json::json;

use super::{Declaration, current_id, dir_of, me, one_line, open_work, said, subject};
use crate::base::{EntityType, Error, HeartbeatId, Reason, Result, Timestamp};
use crate::event::Kind;
use crate::op::append::finish;
use crate::op::desk::{Asked, Desk};
use crate::op::project::with_view;
use crate::op::task::request as asking;
use crate::op::{AppendOutcome, Env};
use crate::policy::liveness::{DeepWork, Mode};
use crate::state::Entity;
use crate::vault::config::Setting;
use crate::vault::{End, Vault};

/// A declaration is short.
const TEXT_MAX_CHARS: usize = 400;

#[derive(Debug)]
pub struct DeepWorkRequest {
    pub activity: String,
    /// Minutes of a strict one; none for a flexible one.
    pub strict_minutes: Option<u64>,
}

#[derive(Debug)]
pub struct DeepWorkOutcome {
    pub recorded: AppendOutcome,
    pub heartbeat_id: Option<HeartbeatId>,
    /// When a strict one should be over.
    pub until: Option<Timestamp>,
    pub warnings: Vec<String>,
}

/// Declares deep work. One that is open is superseded.
pub fn start(env: &Env, request: &DeepWorkRequest) -> Result<DeepWorkOutcome> {
    let activity = one_line("the activity", &request.activity, TEXT_MAX_CHARS)?;
    let (name, vault) = (me(env)?, env.open()?);
    let mut desk = Desk::open(env, &vault, false)?;
    let config = desk.config.for_agent(name.as_str());
    let most = config.count(Setting::StrictMaxMinutes);
    if let Some(minutes) = request.strict_minutes.filter(|minutes| *minutes > most) {
        return Err(Error::usage(format!("{minutes} minutes are too long: a strict deep work has at most {most}")));
    }
    let dir = dir_of(env, &vault, &config, &name)?;
    let (id, fresh) = current_id(env, &config, &dir)?;
    let agent = subject(&name);
    let before = open_work(&desk, &agent);
    if let Some(before) = &before {
        let by = json!({"agent_id": name.as_str(), "by": "declaration"});
        desk.ask(said(env, Kind::DeepWorkCompleted, &before.subject, by))?;
    }
    let mode = if request.strict_minutes.is_some() { Mode::Strict } else { Mode::Flexible };
    let payload = json!({
        "agent_id": name.as_str(), "heartbeat_id": id.as_str(), "mode": mode.as_str(), "activity": activity,
        "minutes": request.strict_minutes,
    });
    // The first command of an agent announces it; a declaration needs it to be there.
    if desk.state().of(&agent) != crate::machine::State::Active {
        desk.ask(asking(env, Kind::AgentStarted, None, json!({"announced": true})))?;
    }
    let asked = desk.ask(asking(env, Kind::DeepWorkStarted, None, payload))?;
    let recorded = finish(&vault, desk, &[asked])?;
    let mut warnings: Vec<String> = fresh.into_iter().collect();
    let declared = Declaration { mode, activity, minutes: request.strict_minutes };
    let old = before.as_ref().and_then(|before| before.text("heartbeat_id"));
    let written = old.map_or(Ok(()), |old| dir.end_declaration(old, End::Completed));
    if let Err(error) = written.and_then(|()| dir.declare(&id, &declared.write(dir.is_works()))) {
        warnings.push(format!("the declaration is recorded, but its file could not be written: {error}"));
    }
    Ok(outcome(recorded, Some(id), warnings))
}

fn outcome(recorded: AppendOutcome, heartbeat_id: Option<HeartbeatId>, warnings: Vec<String>) -> DeepWorkOutcome {
    let until = recorded.entity.as_ref().and_then(DeepWork::of).and_then(|work| work.until);
    DeepWorkOutcome { recorded, heartbeat_id, until, warnings }
}

/// What the agent is in: its open deep work, if there is one.
pub fn status(env: &Env) -> Result<Option<Entity>> {
    let (agent, vault) = (subject(&me(env)?), env.open()?);
    with_view(&vault, |_, state| {
        let work = state.entity(&agent).and_then(|agent| agent.named("deepwork_id", EntityType::DeepWork));
        Ok(work.and_then(|work| state.entity(&work).map(|work| work.into_owned())))
    })
}

/// Says that it is over, before the log that closes it.
pub fn complete(env: &Env) -> Result<DeepWorkOutcome> {
    on_open(env, |env, vault, desk, work| {
        let by = json!({"agent_id": me(env)?.as_str(), "by": "word"});
        let asked = desk.ask(said(env, Kind::DeepWorkCompleted, &work.subject, by))?;
        let dir = dir_of(env, vault, &desk.config, &me(env)?)?;
        dir.end_declaration(work.text("heartbeat_id").unwrap_or_default(), End::Completed)?;
        Ok(asked)
    })
}

/// A strict one takes longer.
pub fn extend(env: &Env, minutes: u64) -> Result<DeepWorkOutcome> {
    on_open(env, |env, vault, desk, work| {
        let config = desk.config.for_agent(me(env)?.as_str());
        let (times, most) = (config.count(Setting::DeepworkExtendMax), config.count(Setting::StrictMaxMinutes));
        if work.text("mode") != Some(Mode::Strict.as_str()) {
            return Err(Error::usage("a flexible deep work has no time to extend"));
        }
        if work.count("extensions") >= times {
            let why = format!("{} was extended {times} times, which is the most", work.name());
            return Err(Error::refused(Reason::LimitReached, why));
        }
        if work.count("minutes").saturating_add(minutes) > most {
            return Err(Error::usage(format!("that would be longer than {most} minutes, which is the most")));
        }
        let payload = json!({"agent_id": me(env)?.as_str(), "minutes": minutes});
        let asked = desk.ask(said(env, Kind::DeepWorkExtended, &work.subject, payload))?;
        let declared = Declaration {
            mode: Mode::Strict,
            activity: work.text("activity").unwrap_or_default().to_owned(),
            minutes: Some(work.count("minutes") + minutes),
        };
        let dir = dir_of(env, vault, &config, &me(env)?)?;
        if let Some(id) = work.text("heartbeat_id").and_then(HeartbeatId::parse) {
            dir.declare(&id, &declared.write(dir.is_works()))?;
        }
        Ok(asked)
    })
}

fn on_open(
    env: &Env,
    act: impl FnOnce(&Env, &Vault, &mut Desk<'_>, &Entity) -> Result<Asked>,
) -> Result<DeepWorkOutcome> {
    let vault = env.open()?;
    let mut desk = Desk::open(env, &vault, false)?;
    let agent = subject(&me(env)?);
    let work = open_work(&desk, &agent).ok_or_else(|| Error::not_found(format!("{agent} is in no deep work")))?;
    let asked = act(env, &vault, &mut desk, &work)?;
    Ok(outcome(finish(&vault, desk, &[asked])?, None, Vec::new()))
}

/// Renames what an older version left. Gives what was done.
pub fn migrate(env: &Env) -> Result<Vec<String>> {
    let (name, vault) = (me(env)?, env.open()?);
    let (config, _) = vault.config()?;
    dir_of(env, &vault, &config, &name)?.migrate()
}
