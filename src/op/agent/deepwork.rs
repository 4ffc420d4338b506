//! hf-deepwork: declares a time of quiet work in advance.

use serde_json::json;

use super::intake::take_unread;
use super::{
    Declaration, Wording, current_id, declared_path, dir_of, known_files, me, one_line, open_work, request_about,
    subject, unclaim_unless_recorded, zone_of,
};
use crate::base::{Error, HeartbeatId, Reason, Result, Timestamp, text};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::kernel::{Added, Transaction};
use crate::op::{Context, Recorded};
use crate::policy::liveness::{DeclaredDeepWork, DeepWorkMode};
use crate::policy::settings::Setting;
use crate::state::Entity;
use crate::vault::{AgentDir, DeclarationEnd, FileSort, NameUse};

/// The longest activity.
const TEXT_MAX_CHARS: usize = 400;

/// A deep work to declare.
#[derive(Clone, Debug, Default)]
pub struct StartDeepWorkRequest {
    /// The activity, in one line.
    pub activity: String,
    /// The minutes of strict deep work; none for flexible deep work.
    pub strict_minutes: Option<u64>,
}

#[derive(Debug)]
pub struct DeepWorkOutcome {
    pub recorded: Recorded,
    pub heartbeat_id: Option<HeartbeatId>,
    /// When a strict deep work should end.
    pub until: Option<Timestamp>,
    pub warnings: Vec<String>,
}

/// The open deep work of an agent, if there is one.
#[derive(Debug)]
pub struct DeepWorkStatusOutcome {
    pub work: Option<Entity>,
    pub now: Timestamp,
}

/// Declares deep work. An open deep work is completed.
pub fn start(ctx: &Context, request: StartDeepWorkRequest) -> Result<DeepWorkOutcome> {
    let activity = one_line("the activity", &request.activity, TEXT_MAX_CHARS)?;
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let mut tx = Transaction::begin(ctx, &vault)?;
    take_unread(ctx, &vault, &mut tx, &name)?;
    tx.settle_agent(&ctx.caller.actor)?;
    let config = tx.config.for_agent(name.as_str());
    let max = config.count(Setting::StrictMaxMinutes);
    if let Some(minutes) = request.strict_minutes.filter(|minutes| *minutes > max) {
        let (minutes, max) = (text::count_noun(minutes, "minute"), text::count_noun(max, "minute"));
        return Err(Error::usage(format!("{minutes} is too long; strict deep work can last at most {max}")));
    }
    let dir = dir_of(ctx, &vault, &config, &name)?;
    let (id, id_warning) = current_id(ctx, &config, &dir)?;
    let agent = subject(&name);
    let before = open_work(&tx, &agent);
    if let Some(before) = &before {
        let by = json!({"agent_id": name.as_str(), "by": "declaration"});
        tx.ask(request_about(ctx, Kind::DeepWorkCompleted, &before.subject, by))?;
    }
    let mode = if request.strict_minutes.is_some() { DeepWorkMode::Strict } else { DeepWorkMode::Flexible };
    let old = before.as_ref().and_then(|before| declared_path(&dir, before));
    // The file of the deep work before is renamed first; one that the agent wrote itself is not replaced.
    let known = known_files(&tx, &agent, zone_of(ctx, &config));
    let use_of = |path: &str| match old.as_deref() == Some(path) {
        true => NameUse::Replaced,
        false if known.has_path(FileSort::Declaration, path) => NameUse::Taken,
        false => NameUse::Free,
    };
    let claimed = dir.claim(FileSort::Declaration, &id, &use_of);
    let path = claimed.as_ref().map(|claimed| claimed.path.clone()).ok();
    let payload = json!({
        "agent_id": name.as_str(), "heartbeat_id": id.as_str(), "mode": mode.as_str(), "activity": activity,
        "minutes": request.strict_minutes, "file": path,
    });
    let recorded = (|| {
        // A declaration requires an active agent, and this may be the agent's first command.
        if tx.state().phase_of(&agent) != crate::machine::Phase::Active {
            tx.ask(ctx.request(Kind::AgentStarted, None, json!({"announced": true})))?;
        }
        let asked = tx.ask(ctx.request(Kind::DeepWorkStarted, None, payload))?;
        tx.finish(&[asked])
    })();
    let recorded = unclaim_unless_recorded(&dir, claimed.as_ref().ok(), recorded)?;
    let mut warnings: Vec<String> = id_warning.into_iter().collect();
    let declared = Declaration { mode, activity, minutes: request.strict_minutes };
    let written = old.map_or(Ok(()), |old| dir.end_declaration(&old, DeclarationEnd::Completed));
    let text = declared.write(Wording::of_dir(&dir));
    if let Err(error) = written.and(claimed).and_then(|claimed| dir.put_file(&claimed.path, &text)) {
        warnings.push(format!("the declaration is recorded, but its file could not be written: {error}"));
    }
    Ok(outcome(recorded, Some(id), warnings))
}

fn outcome(recorded: Recorded, heartbeat_id: Option<HeartbeatId>, warnings: Vec<String>) -> DeepWorkOutcome {
    let until = recorded.entity.as_ref().and_then(DeclaredDeepWork::from_entity).and_then(|work| work.until);
    DeepWorkOutcome { recorded, heartbeat_id, until, warnings }
}

/// Returns the agent's open deep work, if there is one.
pub fn status(ctx: &Context) -> Result<DeepWorkStatusOutcome> {
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let (_, mut tx) = Transaction::read_only(ctx, &vault)?;
    take_unread(ctx, &vault, &mut tx, &name)?;
    tx.settle_agent(&ctx.caller.actor)?;
    let state = tx.state();
    let work = state.entity(&subject(&name)).and_then(|agent| agent.as_agent().deep_work());
    let work = work.and_then(|work| state.entity(&work).map(|work| work.into_owned()));
    Ok(DeepWorkStatusOutcome { work, now: ctx.now.timestamp() })
}

/// Completes the open deep work before the activity log that would complete it.
pub fn complete(ctx: &Context) -> Result<DeepWorkOutcome> {
    let ask = |tx: &mut Transaction<'_>, work: &Entity| {
        if work.phase == Phase::Expired {
            return Ok(Added { id: work.last_event, already: true });
        }
        let by = json!({"agent_id": me(ctx)?.as_str(), "by": "word"});
        tx.ask(request_about(ctx, Kind::DeepWorkCompleted, &work.subject, by))
    };
    let write = |dir: &AgentDir, work: &Entity| {
        let end = if work.phase == Phase::Expired { DeclarationEnd::Expired } else { DeclarationEnd::Completed };
        declared_path(dir, work).map_or(Ok(()), |path| dir.end_declaration(&path, end))
    };
    on_open(ctx, Kind::DeepWorkCompleted, ask, write)
}

/// An extension of a strict deep work.
#[derive(Clone, Debug, Default)]
pub struct ExtendRequest {
    /// How many minutes to add.
    pub minutes: u64,
}

/// Extends the open strict deep work.
pub fn extend(ctx: &Context, request: ExtendRequest) -> Result<DeepWorkOutcome> {
    let minutes = request.minutes;
    let ask = |tx: &mut Transaction<'_>, work: &Entity| {
        let config = tx.config.for_agent(me(ctx)?.as_str());
        let (times, max) = (config.count(Setting::DeepworkExtendMax), config.count(Setting::StrictMaxMinutes));
        if work.as_deep_work().mode() != Some(DeepWorkMode::Strict.as_str()) {
            return Err(Error::usage("flexible deep work has no time limit to extend"));
        }
        if work.phase == Phase::Expired {
            let why = format!("{} has expired; declare a new deep work", work.name());
            return Err(Error::refused(Reason::LimitReached, why));
        }
        if work.as_deep_work().extensions() >= times {
            let why = format!("{} cannot be extended again; at most {times} extensions", work.name());
            return Err(Error::refused(Reason::LimitReached, why));
        }
        if work.as_deep_work().minutes().saturating_add(minutes) > max {
            return Err(Error::usage(format!("the total would exceed {max} minutes")));
        }
        let payload = json!({"agent_id": me(ctx)?.as_str(), "minutes": minutes});
        tx.ask(request_about(ctx, Kind::DeepWorkExtended, &work.subject, payload))
    };
    let write = |dir: &AgentDir, work: &Entity| {
        let declared = Declaration {
            mode: DeepWorkMode::Strict,
            activity: work.as_deep_work().activity().unwrap_or_default().to_owned(),
            minutes: Some(work.as_deep_work().minutes() + minutes),
        };
        declared_path(dir, work).map_or(Ok(()), |path| dir.put_file(&path, &declared.write(Wording::of_dir(dir))))
    };
    on_open(ctx, Kind::DeepWorkExtended, ask, write)
}

/// Records a request about the agent's open deep work, then writes its file.
fn on_open(
    ctx: &Context,
    kind: Kind,
    ask: impl FnOnce(&mut Transaction<'_>, &Entity) -> Result<Added>,
    write: impl FnOnce(&AgentDir, &Entity) -> Result<()>,
) -> Result<DeepWorkOutcome> {
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let mut tx = Transaction::begin(ctx, &vault)?;
    take_unread(ctx, &vault, &mut tx, &name)?;
    let config = tx.config.for_agent(name.as_str());
    let agent = subject(&name);
    let open = open_work(&tx, &agent).ok_or_else(|| Error::not_found(format!("{agent} has no open deep work")))?;
    tx.settle_agent(&ctx.caller.actor)?;
    // It may just have expired.
    let work = tx.state().entity(&open.subject).map_or(open, |work| work.into_owned());
    // An agent that has to leave is told that, not what is wrong with the request.
    tx.membership.check(tx.state(), kind, None)?;
    let asked = ask(&mut tx, &work)?;
    let recorded = tx.finish(&[asked])?;
    let written = dir_of(ctx, &vault, &config, &name).and_then(|dir| write(&dir, &work));
    let warning = written.err().map(|e| format!("the deep work is recorded, but its file could not be written: {e}"));
    Ok(outcome(recorded, None, warning.into_iter().collect()))
}

/// The renamed files and directories: old and new name.
#[derive(Debug)]
pub struct MigrateOutcome {
    pub renamed: Vec<(String, String)>,
}

/// Renames files and directories of an older version.
pub fn migrate(ctx: &Context) -> Result<MigrateOutcome> {
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let config = vault.config();
    Ok(MigrateOutcome { renamed: dir_of(ctx, &vault, &config, &name)?.migrate()? })
}
