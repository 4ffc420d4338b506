//! An agent's directory or tree, and which of its files count already.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::DEFAULT_AGENT;
use crate::base::{EntityId, HeartbeatId, Result, Timestamp, Zone};
use crate::op::Context;
use crate::policy::settings::{Setting, Settings};
use crate::state::Entity;
use crate::vault::{AgentDir, FileSort, Vault, WorksTree, open_path};

/// The directory of an agent, created if needed: its works tree if it has one, else in the vault.
pub(in crate::op) fn dir_of(ctx: &Context, vault: &Vault, config: &Settings, name: &EntityId) -> Result<AgentDir> {
    match works_of(ctx, vault, config, name) {
        Some(works) => in_works(&works, config, name),
        None => vault.agent_dir(name),
    }
}

/// The works tree of an agent, if it has one.
pub(in crate::op) fn in_works(works: &std::path::Path, config: &Settings, name: &EntityId) -> Result<AgentDir> {
    let log_dirs = config.for_agent(name.as_str()).texts(Setting::LivenessLogDirs);
    AgentDir::in_works(&WorksTree { path: works, log_dirs }, name)
}

/// The path of an agent's works tree. A tree has one agent: the one that calls, `main` if none does, or the one whose
/// setting names it.
pub(in crate::op) fn works_of(ctx: &Context, vault: &Vault, config: &Settings, name: &EntityId) -> Option<PathBuf> {
    let caller = ctx.caller.actor.agent();
    let owner = caller.as_ref().map_or(DEFAULT_AGENT, EntityId::as_str);
    let given = ctx.host.works.clone().filter(|_| name.as_str() == owner);
    let own = own_works(config, name.as_str()).map(str::to_owned);
    let configured = own.or_else(|| (name.as_str() == DEFAULT_AGENT).then(|| config.text(Setting::LivenessWorksDir)));
    let configured = configured.filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let works = given.or(configured).map(|works| vault.path().join(works))?;
    // The agent whose own setting names it comes first.
    let is_own = own_works(config, name.as_str()).is_some();
    let others = config.agents.keys().filter(|other| other.as_str() != name.as_str());
    let mut others = others.filter_map(|other| own_works(config, other)).map(|other| vault.path().join(other));
    (is_own || !others.any(|other| other == works)).then_some(works)
}

/// The works tree that an agent's own setting names.
fn own_works<'a>(config: &'a Settings, name: &str) -> Option<&'a str> {
    let own = config.agents.get(name)?.get(&Setting::LivenessWorksDir)?.as_str();
    own.filter(|dir| !dir.is_empty())
}

/// The time zone of an agent's heartbeat ids.
pub(in crate::op) fn zone_of(ctx: &Context, config: &Settings) -> Zone {
    if config.text(Setting::LivenessTimezone) == "local" { Zone::Local(ctx.host.local_offset) } else { Zone::Utc }
}

/// The files of an agent that count already.
#[derive(Debug, Default)]
pub(in crate::op) struct KnownFiles {
    /// Files up to this time never counted; none if no file has counted so far.
    pub since: Option<Timestamp>,
    logs: KnownSort,
    checkpoints: KnownSort,
    declarations: KnownSort,
    /// When the latest deep work was declared.
    declared_at: Option<Timestamp>,
}

/// The same for one sort.
#[derive(Debug, Default)]
struct KnownSort {
    paths: BTreeSet<String>,
    /// Files up to this time are older than those in `paths`.
    floor: Option<Timestamp>,
}

impl KnownSort {
    fn new<'a>(files: impl Iterator<Item = &'a str>, floor: Option<Timestamp>, legacy: Option<Timestamp>) -> KnownSort {
        let paths: BTreeSet<String> =
            files.filter_map(|file| file.split_once(' ').map(|(_, path)| open_path(path))).collect();
        // Version 0.1 recorded the newest id and no files.
        let legacy = legacy.filter(|_| paths.is_empty());
        KnownSort { paths, floor: floor.max(legacy) }
    }
}

impl KnownFiles {
    pub fn of_agent(agent: Option<&Entity>, zone: Zone, now: Timestamp) -> KnownFiles {
        let Some(agent) = agent.map(|agent| agent.as_agent()) else { return KnownFiles::default() };
        let time = |id: Option<&str>| Some(HeartbeatId::parse(id?)?.time(zone, now));
        KnownFiles {
            since: agent.files_since(),
            logs: KnownSort::new(agent.logs(), agent.logs_floor(), time(agent.last_activity_id())),
            checkpoints: KnownSort::new(
                agent.checkpoints(),
                agent.checkpoints_floor(),
                time(agent.last_checkpoint_id()),
            ),
            declarations: KnownSort::new(agent.declarations(), agent.declarations_floor(), None),
            declared_at: agent.declared_at(),
        }
    }

    fn sort(&self, sort: FileSort) -> &KnownSort {
        match sort {
            FileSort::Log => &self.logs,
            FileSort::Checkpoint => &self.checkpoints,
            FileSort::Declaration => &self.declarations,
        }
    }

    /// Whether the file at a path counts already, by name.
    pub fn has_path(&self, sort: FileSort, path: &str) -> bool {
        let path = if sort == FileSort::Declaration { Cow::Owned(open_path(path)) } else { Cow::Borrowed(path) };
        self.sort(sort).paths.contains(path.as_ref())
    }

    /// The paths of the files with an id that count already.
    pub fn paths_of(&self, sort: FileSort, id: &HeartbeatId) -> impl Iterator<Item = &str> {
        let is_of = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with(id.as_str()));
        self.sort(sort).paths.iter().map(String::as_str).filter(is_of)
    }

    /// Whether a file counts already, or never will because it is too old.
    pub fn has(&self, sort: FileSort, path: &str, at: Timestamp) -> bool {
        // A declaration that ended before the latest one was made is of no interest any more.
        let is_over = sort == FileSort::Declaration && open_path(path) != path && Some(at) <= self.declared_at;
        Some(at) <= self.since.max(self.sort(sort).floor) || is_over || self.has_path(sort, path)
    }

    /// Up to which time files of a sort do not count, if the next event is the first one that names a file: version 0.1
    /// counted files by their ids alone.
    pub fn legacy_since(&self, sort: FileSort) -> Option<Timestamp> {
        let known = self.sort(sort);
        known.floor.filter(|_| known.paths.is_empty())
    }
}
