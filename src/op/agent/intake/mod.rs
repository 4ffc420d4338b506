//! Taking agents' files into the log. A tick of the watchdog does it for all agents. A command of an agent does it for
//! that agent's own files before anything else: what they say is older than what the command says.
//!
//! Invariant: each file counts once, whichever of them takes it in
//! (`a_file_and_a_command_in_one_beat_count_once_each_and_in_order`).

mod look;
mod take;

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::Value;

use super::{dir_of, subject, works_of};
use crate::base::{Actor, EntityId, Result, Subject, Timestamp};
use crate::event::{Draft, Kind};
use crate::op::Context;
use crate::op::kernel::{Mode, Transaction};
use crate::policy::due::WATCHDOG;
use crate::policy::liveness::Finding;
use crate::state::Entity;
use crate::vault::{DeclarationEnd, Log, Looks, Vault};

pub(in crate::op) use look::{AgentFiles, Looker, Place};

/// What becomes of a file that is still incomplete, and that somebody seems to be writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// It is taken as it is after a pause.
    Tick,
    /// It is left to the next tick.
    Command,
}

/// The files that are taken in at one time.
#[derive(Debug)]
pub(in crate::op) struct Intake<'a> {
    pub ctx: &'a Context,
    pub vault: &'a Vault,
    pub mode: Mode,
    pub now: Timestamp,
    /// The time of the last tick.
    pub last_at: Option<i64>,
    patience: Patience,
    /// How often it may still pause because somebody seems to be writing a file.
    pauses: Cell<u32>,
    /// The agents whose files are in a works tree.
    pub in_works: BTreeSet<String>,
    /// Deep work that is found to be past its time.
    pub expired: Vec<Finding>,
    /// Declarations to rename once that they ended is recorded: agent, path and end.
    pub renames: Vec<(EntityId, String, DeclarationEnd)>,
}

impl<'a> Intake<'a> {
    /// For a tick, which can wait a moment for files that are being written.
    pub fn for_tick(ctx: &'a Context, vault: &'a Vault, mode: Mode) -> Result<Intake<'a>> {
        let last_at = vault.tick()?.map(|tick| tick.at);
        Ok(Intake {
            ctx,
            vault,
            mode,
            now: ctx.now.timestamp(),
            last_at,
            patience: Patience::Tick,
            pauses: Cell::new(look::PAUSES_MAX),
            in_works: BTreeSet::new(),
            expired: Vec::new(),
            renames: Vec::new(),
        })
    }

    /// For a command, which holds the lock and leaves incomplete files to the next tick.
    fn for_command(ctx: &'a Context, vault: &'a Vault, mode: Mode) -> Result<Intake<'a>> {
        Ok(Intake { patience: Patience::Command, pauses: Cell::new(0), ..Intake::for_tick(ctx, vault, mode)? })
    }

    /// Has the file of a deep work renamed once its end is recorded.
    fn rename(&mut self, agent: &Subject, work: &Entity, end: DeclarationEnd) {
        let path = work.as_deep_work().file().map(str::to_owned);
        let path = path.or_else(|| {
            let prefix = if self.in_works.contains(agent.id()) { "stats/" } else { "" };
            Some(format!("{prefix}deep_work/{}.txt", work.as_deep_work().heartbeat_id()?))
        });
        let name = EntityId::parse(agent.id()).ok();
        self.renames.extend(name.zip(path).map(|(name, path)| (name, path, end)));
    }

    /// Renames declarations that ended. Returns a warning for each that cannot be renamed now; the next tick tries again.
    pub fn rename_all(&mut self) -> Vec<String> {
        let config = self.vault.config();
        let mut warnings = Vec::new();
        for (name, path, end) in std::mem::take(&mut self.renames) {
            let dir = dir_of(self.ctx, self.vault, &config, &name);
            if let Err(error) = dir.and_then(|dir| dir.end_declaration(&path, end)) {
                warnings.push(format!("cannot rename {path} of agent:{name}: {error}"));
            }
        }
        warnings
    }
}

/// What is remembered of earlier looks, unless it belongs to another log.
pub(in crate::op) fn remembered_looks(vault: &Vault, log: &dyn Log) -> Result<Looks> {
    let remembered = vault.looks()?;
    let through = crate::event::parse_ulid(&remembered.through);
    let is_valid = through.is_some_and(|id| log.find(id).is_ok_and(|event| event.is_some()));
    Ok(if is_valid { remembered } else { Looks::default() })
}

/// Records what the acting agent has written by hand since the last tick, as a batch of its own. What cannot be read is
/// left to the next tick, which reports it.
pub(super) fn take_unread(ctx: &Context, vault: &Vault, tx: &mut Transaction<'_>, name: &EntityId) -> Result<()> {
    let mode = if tx.writes() { Mode::Write } else { Mode::DryRun };
    let mut intake = Intake::for_command(ctx, vault, mode)?;
    let looks = remembered_looks(vault, &*tx.log)?;
    let agent = tx.state().entity(&subject(name)).map(|agent| agent.into_owned());
    let agents = vault.agents_dir()?;
    let place = Place { agents: agents.as_ref(), works: works_of(ctx, vault, &tx.config, name), creates: false };
    let config = tx.config.for_agent(name.as_str());
    let looker = Looker { intake: &intake, state: tx.state(), config, agent: agent.as_ref() };
    let Ok(Some((_, mut files))) = looker.look(name, &place, looks.agents.get(name.as_str())) else { return Ok(()) };
    if files.is_works {
        intake.in_works.insert(name.to_string());
    }
    intake.take(tx, &mut files)?;
    tx.write_now()
}

/// Adds an event of the watchdog. A dry run applies it too, and writes nothing: its verdict is that of the tick.
pub(in crate::op) fn record(tx: &mut Transaction<'_>, kind: Kind, subject: &Subject, payload: Value) -> Result<()> {
    let state = tx.state();
    let agent = || Subject::parse(&format!("agent:{}", payload["agent_id"].as_str()?)).ok();
    let cause = state.entity(subject).or_else(|| state.entity(&agent()?)).map(|entity| entity.last_event);
    let parents = cause.or_else(|| state.first_event()).into_iter().collect();
    let payload = payload.as_object().cloned().unwrap_or_default();
    let payload = payload.into_iter().filter(|(_, value)| !value.is_null()).collect();
    tx.add(Draft { kind, subject: subject.clone(), actor: Actor::core(WATCHDOG), parents, key: None, payload })
}
