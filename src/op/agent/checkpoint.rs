//! hf-checkpoint: one short line about what an agent is doing.

use serde_json::json;

use super::intake::take_unread;
use super::{
    beat_for_held, current_id, dir_of, known_files, lost_claims, me, one_line, open_work, request_about,
    seconds_between, subject, unclaim_unless_recorded, zone_of,
};
use crate::base::{Error, HeartbeatId, Result, text};
use crate::event::Kind;
use crate::op::Context;
use crate::op::kernel::Transaction;
use crate::policy::mission::{self, MissionFile, NONE, Rounds};
use crate::policy::settings::Setting;
use crate::vault::{FileSort, M1File, NameUse, Vault};

/// The longest checkpoint.
const TEXT_MAX_CHARS: usize = 400;

/// A checkpoint to record.
#[derive(Clone, Debug, Default)]
pub struct CheckpointRequest {
    /// What the agent is doing, in one line.
    pub activity: String,
    /// Also appends a block to `Autonomous/state/CHECKPOINTS.md`.
    pub state: bool,
}

#[derive(Debug)]
pub struct CheckpointOutcome {
    pub heartbeat_id: HeartbeatId,
    /// Seconds since the last activity log, if there was one.
    pub elapsed_seconds: Option<u64>,
    /// The text of the previous checkpoint.
    pub previous: Option<String>,
    /// The claims that the agent has lost since it was last heard.
    pub lost: Vec<Error>,
    /// Whether deep work should be declared.
    pub suggest_deepwork: bool,
    pub warnings: Vec<String>,
}

/// Records a checkpoint.
pub fn checkpoint(ctx: &Context, request: CheckpointRequest) -> Result<CheckpointOutcome> {
    let activity = one_line("the checkpoint", &request.activity, TEXT_MAX_CHARS)?;
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let mut tx = Transaction::begin(ctx, &vault)?;
    // Checkpoints are frequent, and cost more only for an agent that is known to write files as well.
    if tx.state().entity(&subject(&name)).is_some_and(|agent| agent.as_agent().files_since().is_some()) {
        take_unread(ctx, &vault, &mut tx, &name)?;
    }
    // Leases that have expired are recorded first: this sign of life comes too late for them.
    tx.settle_agent(&ctx.caller.actor)?;
    let config = tx.config.for_agent(name.as_str());
    let dir = dir_of(ctx, &vault, &config, &name)?;
    let (id, id_warning) = current_id(ctx, &config, &dir)?;
    let agent = subject(&name);
    let before = tx.state().entity(&agent).map(|agent| agent.into_owned());
    let lost = lost_claims(&tx, &agent);
    let known = known_files(&tx, &agent, zone_of(ctx, &config));
    // One that counts already is replaced, as it always was; one that the agent wrote itself is not.
    let use_of = |path: &str| match known.has_path(FileSort::Checkpoint, path) {
        true => NameUse::Replaced,
        false => NameUse::Free,
    };
    let claimed = dir.claim(FileSort::Checkpoint, &id, &use_of);
    let path = claimed.as_ref().map(|claimed| claimed.path.clone()).ok();
    let payload = json!({
        "heartbeat_id": id.as_str(), "text": activity, "file": path,
        "since": known.legacy_since(FileSort::Checkpoint).map(|since| since.to_string()),
    });
    let recorded = (|| {
        let asked = tx.ask(request_about(ctx, Kind::CheckpointRecorded, &agent, payload))?;
        beat_for_held(ctx, &mut tx)?;
        let no_deep_work = open_work(&tx, &agent).is_none();
        // A block that is too long is refused before anything is recorded.
        let block = request.state.then(|| block(ctx, &tx, &activity)).transpose()?;
        Ok((tx.commit(asked.id)?.warnings, no_deep_work, block))
    })();
    let (mut warnings, no_deep_work, block) = unclaim_unless_recorded(&dir, claimed.as_ref().ok(), recorded)?;
    warnings.extend(id_warning);
    if let Err(error) = claimed.and_then(|claimed| dir.replace_file(&claimed.path, &format!("{activity}\n"))) {
        warnings.push(format!("the checkpoint is recorded, but its file could not be written: {error}"));
    }
    // After the commit: until then nobody can say whether the file is in step.
    if let Some(Err(error)) = block.map(|block| vault.append_state("CHECKPOINTS.md", &block.render(&vault))) {
        warnings.push(format!("the checkpoint is recorded, but its block could not be written: {error}"));
    }
    let now = ctx.now.timestamp();
    let since = before.as_ref().and_then(|agent| agent.as_agent().last_activity_at());
    let since_activity = seconds_between(now, since.or(before.as_ref().map(|agent| agent.created_at)).unwrap_or(now));
    Ok(CheckpointOutcome {
        heartbeat_id: id,
        elapsed_seconds: since.map(|then| seconds_between(now, then)),
        previous: before.as_ref().and_then(|agent| agent.as_agent().last_checkpoint().map(str::to_owned)),
        lost,
        suggest_deepwork: no_deep_work && since_activity > config.count(Setting::SuggestDeepworkSeconds),
        warnings,
    })
}

/// The task that the agent holds, for the block.
fn held_task(ctx: &Context, tx: &Transaction<'_>) -> Option<String> {
    use crate::machine::Phase;
    let held = tx.state().held_by(&ctx.caller.actor.to_string());
    let in_phase = |phase: Phase| held.iter().find(|task| task.phase == phase);
    in_phase(Phase::Running).or_else(|| in_phase(Phase::Assigned)).map(|task| task.name())
}

/// The block from which a session that has lost its context can continue: round and task of the mission, and what
/// the agent is doing.
struct Block {
    /// The file that the mission should have, if there is a mission.
    m1: Option<String>,
    /// The lines after the first two.
    lines: String,
}

/// What a block says about `M1.md`.
const SYNCED: &str = "M1 synced.";
const NOT_SYNCED: &str = "M1 not synced; hf-state show rewrites it.";
const NO_MISSION: &str = "No mission.";

impl Block {
    fn with(&self, m1: &str) -> String {
        format!("CHECKPOINT:\n{m1}\n{}\n", self.lines)
    }

    /// The text, with what is true of `M1.md` now.
    fn render(&self, vault: &Vault) -> String {
        self.with(match &self.m1 {
            None => NO_MISSION,
            Some(wanted) => match vault.look_at_m1(Some(wanted)) {
                Ok(M1File::Current) => SYNCED,
                Ok(M1File::Old | M1File::Edited) | Err(_) => NOT_SYNCED,
            },
        })
    }
}

fn block(ctx: &Context, tx: &Transaction<'_>, activity: &str) -> Result<Block> {
    let m1 = mission::newest(tx.state()).map(|mission| MissionFile::of_mission(tx.state(), &mission));
    let round = m1.as_ref().map_or_else(|| Rounds::default().to_string(), MissionFile::rounds);
    let task = m1.as_ref().map(|m1| m1.task.clone()).filter(|task| task != NONE).or_else(|| held_task(ctx, tx));
    let task = task.as_deref().unwrap_or(NONE);
    let lines = format!("ROUND: {round}\nTASK: {task}\nNEXT: {}\n", text::escape(activity));
    let block = Block { m1: m1.map(|m1| m1.render()), lines };
    mission::check_short("the block", &block.with(NOT_SYNCED)).map(|()| block)
}
