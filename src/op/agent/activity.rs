//! hf-activity: a log entry about what an agent has done.

use serde_json::json;

use super::intake::take_unread;
use super::{
    beat_for_held, current_id, declared_path, dir_of, known_files, lost_claims, me, one_line, open_work, request_about,
    subject, unclaim_unless_recorded, zone_of,
};
use crate::base::{EntityId, Error, HeartbeatId, Result, limits};
use crate::event::Kind;
use crate::op::Context;
use crate::op::kernel::Transaction;
use crate::vault::{DeclarationEnd, FileSort, NameUse};

/// The longest title or reason.
const LINE_MAX_CHARS: usize = 400;

/// An activity log to record.
#[derive(Clone, Debug, Default)]
pub struct ActivityRequest {
    /// thinking, observing, creating, introspection, or another word.
    pub kind: String,
    /// A one-line title.
    pub title: Option<String>,
    /// The log itself.
    pub text: Option<String>,
    /// Why the introspection that is due has to wait; this log comes first.
    pub emergency: Option<String>,
}

#[derive(Debug)]
pub struct ActivityOutcome {
    pub heartbeat_id: HeartbeatId,
    /// The file, relative to the agent's logs.
    pub file: Option<String>,
    /// The deep work that this log completed, by name.
    pub completed: Option<String>,
    /// Whether the next log must be an introspection.
    pub introspection_due: bool,
    /// The claims that the agent has lost since it was last heard.
    pub lost: Vec<Error>,
    pub warnings: Vec<String>,
}

/// Records an activity log.
pub fn activity(ctx: &Context, request: ActivityRequest) -> Result<ActivityOutcome> {
    EntityId::parse(&request.kind)
        .map_err(|_| Error::usage("invalid kind; it must be one word, such as thinking or introspection"))?;
    let title = request.title.as_deref().map(|title| one_line("the title", title, LINE_MAX_CHARS)).transpose()?;
    let emergency = request.emergency.as_deref().map(|why| one_line("the reason", why, LINE_MAX_CHARS)).transpose()?;
    let text = request.text.as_deref().unwrap_or_default();
    if text.len() > limits::EVENT_MAX_BYTES {
        return Err(Error::usage(format!("the log has {} bytes; at most {}", text.len(), limits::EVENT_MAX_BYTES)));
    }
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let mut tx = Transaction::begin(ctx, &vault)?;
    take_unread(ctx, &vault, &mut tx, &name)?;
    // Leases that have expired are recorded first: this sign of life comes too late for them.
    tx.settle_agent(&ctx.caller.actor)?;
    let config = tx.config.for_agent(name.as_str());
    let dir = dir_of(ctx, &vault, &config, &name)?;
    let (id, id_warning) = current_id(ctx, &config, &dir)?;
    let agent = subject(&name);
    let (work, lost) = (open_work(&tx, &agent), lost_claims(&tx, &agent));
    let known = known_files(&tx, &agent, zone_of(ctx, &config));
    // The event names the file, so that the watchdog does not count it again. A file that is there already is the agent's
    // own, and counts by itself.
    let use_of = |path: &str| match known.has_path(FileSort::Log, path) {
        true => NameUse::Taken,
        false => NameUse::Free,
    };
    let claimed = dir.claim(FileSort::Log, &id, &use_of);
    let path = claimed.as_ref().map(|claimed| claimed.path.clone()).ok();
    let payload = json!({
        "heartbeat_id": id.as_str(), "kind": request.kind, "title": title, "emergency": emergency, "file": path,
        "since": known.legacy_since(FileSort::Log).map(|since| since.to_string()),
    });
    let recorded = (|| {
        let asked = tx.ask(request_about(ctx, Kind::ActivityLogged, &agent, payload))?;
        if let Some(work) = &work {
            let by = json!({"agent_id": name.as_str(), "by": "log"});
            tx.ask(request_about(ctx, Kind::DeepWorkCompleted, &work.subject, by))?;
        }
        beat_for_held(ctx, &mut tx)?;
        let duty = tx.state().entity(&agent).and_then(|agent| agent.as_agent().duty().map(str::to_owned));
        Ok((tx.commit(asked.id)?.warnings, duty))
    })();
    let (mut warnings, duty) = unclaim_unless_recorded(&dir, claimed.as_ref().ok(), recorded)?;
    warnings.extend(id_warning);
    let mut header = format!("---\nkind: {}\nheartbeat_id: {id}\nagent: {name}\n", request.kind);
    header += &format!("created_at: {}\n", ctx.now.timestamp());
    header += &title.map(|title| format!("title: {title}\n")).unwrap_or_default();
    let body = if text.is_empty() { String::new() } else { format!("\n{}\n", text.trim_end()) };
    let written = claimed.and_then(|claimed| dir.put_file(&claimed.path, &format!("{header}---\n{body}")));
    let file = match written {
        Ok(()) => path.as_deref().and_then(|path| path.rsplit('/').next()).map(str::to_owned),
        Err(e) => {
            warnings.push(format!("the log is recorded, but its file could not be written: {e}"));
            None
        }
    };
    if let Some(declared) = work.as_ref().and_then(|work| declared_path(&dir, work))
        && let Err(error) = dir.end_declaration(&declared, DeclarationEnd::Completed)
    {
        warnings.push(format!("the deep work is completed, but its file could not be renamed: {error}"));
    }
    Ok(ActivityOutcome {
        heartbeat_id: id,
        file,
        completed: work.map(|work| work.name()),
        lost,
        introspection_due: matches!(duty.as_deref(), Some("due" | "deferred" | "broken")),
        warnings,
    })
}
