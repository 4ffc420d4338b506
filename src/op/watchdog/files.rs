//! The files of agents, read before the tick takes the lock: whose are looked at, and who gets the next heartbeat id.

use std::collections::BTreeSet;

use super::TickRun;
use crate::base::{EntityId, EntityType, ErrorKind, HeartbeatId, Result, Subject};
use crate::machine::Phase;
use crate::op::agent::{self, AgentFiles, DEFAULT_AGENT, Looker, Place};
use crate::op::kernel::Mode;
use crate::policy::code::Code;
use crate::policy::liveness::{self, Finding, Level, SignsOfLife};
use crate::policy::settings::Settings;
use crate::state::{Entity, State};
use crate::vault::{Dir, Looked, Looks};

/// Looks at the files of every agent, and writes the next heartbeat id of those that are watched.
pub fn look_at_all(tick: &mut TickRun<'_>, state: &State, config: &Settings, looks: &Looks) -> Result<Vec<AgentFiles>> {
    let agents = tick.vault.agents_dir()?;
    let active = state.in_phase(EntityType::Agent, Phase::Active, usize::MAX);
    let mut names: BTreeSet<EntityId> =
        active.iter().map(|agent| EntityId::parse(agent.subject.id())).collect::<Result<_>>()?;
    // Agents that nobody started, but that may have written files.
    if agents.is_some() {
        names.extend(tick.vault.agents_with_files()?);
    }
    names.extend(config.agents.keys().filter_map(|name| EntityId::parse(name).ok()));
    names.insert(EntityId::parse(DEFAULT_AGENT)?);
    let all = AllAgents {
        state,
        config,
        agents,
        held: liveness::held(state),
        seated: liveness::seated(state),
        is_nobody: active.is_empty(),
    };
    let mut found = Vec::new();
    for name in names {
        found.extend(all.look_at(tick, &name, looks.agents.get(name.as_str()))?);
    }
    Ok(found)
}

/// What a look at an agent's files needs to know of all of them.
struct AllAgents<'a> {
    state: &'a State,
    config: &'a Settings,
    /// The directory of all agents.
    agents: Option<Dir>,
    held: Vec<Entity>,
    seated: Vec<Entity>,
    /// Whether no agent is active.
    is_nobody: bool,
}

impl AllAgents<'_> {
    /// Looks at the files of one agent. None if it has none, or they cannot be read, which is reported.
    fn look_at(&self, tick: &mut TickRun<'_>, name: &EntityId, before: Option<&Looked>) -> Result<Option<AgentFiles>> {
        let subject = Subject::new(EntityType::Agent, name.clone());
        let agent = self.state.entity(&subject).map(|agent| agent.into_owned());
        let active = agent.as_ref().filter(|agent| agent.phase == Phase::Active);
        let is_expected = |agent: &Entity| SignsOfLife::of_agent(self.state, agent, &self.held, &self.seated).expected;
        // The first agent finds an id.
        let is_first = self.is_nobody && name.as_str() == DEFAULT_AGENT;
        let place = Place {
            agents: self.agents.as_ref(),
            works: agent::works_of(tick.ctx, tick.vault, self.config, name),
            creates: is_first || active.is_some_and(is_expected),
        };
        let config = self.config.for_agent(name.as_str());
        let looker = Looker { intake: &tick.intake, state: self.state, config, agent: agent.as_ref() };
        match looker.look(name, &place, before) {
            Ok(Some((dir, files))) => {
                let is_watched = active.is_some() || is_first || !files.signs.is_empty();
                if tick.mode == Mode::Write && is_watched {
                    let id = HeartbeatId::from_time(tick.now, files.zone);
                    if let Err(error) = dir.put_current_id(&id) {
                        let detail = format!("the heartbeat id cannot be written: {}", error.message);
                        let subject = if active.is_some() { subject } else { Subject::SYSTEM };
                        let finding = Finding::new(Code::FileUnreadable, subject, Level::Warn, 0);
                        tick.files_findings.push(Finding { detail: Some(detail), ..finding });
                    }
                }
                Ok(Some(files))
            }
            Ok(None) => Ok(None),
            // What the caller named is not there, and never was.
            Err(error) if error.kind == ErrorKind::Usage && tick.ctx.host.works.is_some() && agent.is_none() => {
                Err(error)
            }
            Err(error) => {
                let subject = if active.is_some() { subject } else { Subject::SYSTEM };
                let finding = Finding::new(Code::FileUnreadable, subject, Level::Warn, 0);
                tick.files_findings.push(Finding { detail: Some(error.message), ..finding });
                Ok(None)
            }
        }
    }
}
