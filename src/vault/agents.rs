//! An agent's files: `Agents/<name>/` in the vault, or an existing `ai-works/` tree.
//!
//! | in the vault | in a works tree |
//! |---|---|
//! | `current_heartbeat_id.txt`, `checkpoints/`, `deep_work/` | the same under `stats/` |
//! | `activity/<id>.md` | `artifacts/*/histories/<id>*.md` |
//!
//! They are for agents and for programs that work with files. The log is authoritative; the watchdog records files that
//! no event mentions yet. Symbolic links are not followed.

use std::path::Path;

use super::Vault;
use super::files::Dir;
use crate::base::{EntityId, Error, HeartbeatId, Result};

const AGENTS: &str = "Agents";
const CURRENT_ID: &str = "current_heartbeat_id.txt";
const CHECKPOINTS: &str = "checkpoints";
const DEEP_WORK: &str = "deep_work";
/// The former name of `deep_work/`.
const EXTENDED: &str = "extended_processing";
const ACTIVITY: &str = "activity";
const STATS: &str = "stats";
const ARTIFACTS: &str = "artifacts";
const HISTORIES: &str = "histories";
/// A larger file is not one of ours.
const FILE_MAX_BYTES: usize = 1024 * 1024;
/// As much as is read to find the current id, and shown if it is none.
const CURRENT_ID_MAX_BYTES: usize = 80;
/// The length of the heartbeat id at the start of a log's name.
const HEARTBEAT_ID_CHARS: usize = 14;
/// How many logs are read at most to find the newest introspection.
const READ_BACK_MAX: usize = 200;

/// How a declaration of deep work ended; its file is renamed accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclarationEnd {
    Completed,
    Expired,
    /// It could not be parsed.
    Malformed,
}

impl DeclarationEnd {
    const fn suffix(self) -> &'static str {
        match self {
            DeclarationEnd::Completed => ".completed.txt",
            DeclarationEnd::Expired => ".expired.txt",
            DeclarationEnd::Malformed => ".malformed.txt",
        }
    }
}

/// An activity log that exists as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    pub id: HeartbeatId,
    pub introspection: bool,
}

/// The directory of an agent.
#[derive(Debug)]
pub struct AgentDir {
    stats: Dir,
    logs: ActivityLogs,
}

/// Where the activity logs are.
#[derive(Debug)]
enum ActivityLogs {
    /// In a directory next to the other files.
    Own,
    /// In the works tree. Written under the agent's name, read from all projects.
    Works { artifacts: Dir, name: String },
}

impl Vault {
    /// The directory of an agent, created if it is missing.
    pub fn agent_dir(&self, name: &EntityId) -> Result<AgentDir> {
        self.check_private()?;
        let (agents, _) = self.root.make_dir(AGENTS)?;
        // Not synced: the files in it are not either, and the log has what counts.
        let (stats, _) = agents.make_dir(name.as_str())?;
        Ok(AgentDir { stats, logs: ActivityLogs::Own })
    }

    /// The directory of an agent, if it exists.
    pub fn agent_dir_there(&self, name: &EntityId) -> Result<Option<AgentDir>> {
        let Some(agents) = self.root.dir(AGENTS)? else { return Ok(None) };
        Ok(agents.dir(name.as_str())?.map(|stats| AgentDir { stats, logs: ActivityLogs::Own }))
    }
}

impl AgentDir {
    /// A works tree, which other programs write to as well.
    pub fn in_works(works: &Path, name: &EntityId) -> Result<AgentDir> {
        let not_a_directory = || Error::usage(format!("{} is not a directory", works.display()));
        let root = Dir::open_root(works)?.ok_or_else(not_a_directory)?;
        let (stats, _) = root.make_dir(STATS)?;
        let (artifacts, _) = root.make_dir(ARTIFACTS)?;
        Ok(AgentDir { stats, logs: ActivityLogs::Works { artifacts, name: name.to_string() } })
    }

    /// The same, if its directories exist.
    pub fn there_in_works(works: &Path, name: &EntityId) -> Result<Option<AgentDir>> {
        let not_a_directory = || Error::usage(format!("{} is not a directory", works.display()));
        let root = Dir::open_root(works)?.ok_or_else(not_a_directory)?;
        let (Some(stats), Some(artifacts)) = (root.dir(STATS)?, root.dir(ARTIFACTS)?) else { return Ok(None) };
        Ok(Some(AgentDir { stats, logs: ActivityLogs::Works { artifacts, name: name.to_string() } }))
    }

    /// Whether this is a works tree, whose files have their own wording.
    pub fn is_works(&self) -> bool {
        matches!(self.logs, ActivityLogs::Works { .. })
    }

    /// The current heartbeat id; the inner error is the text found instead of an id.
    pub fn current_id(&self) -> Result<Option<Result<HeartbeatId, String>>> {
        let Some(bytes) = self.stats.read_prefix(CURRENT_ID, CURRENT_ID_MAX_BYTES)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        Ok(Some(HeartbeatId::parse(&text).ok_or(text)))
    }

    pub fn put_current_id(&self, id: &HeartbeatId) -> Result<()> {
        self.stats.replace(CURRENT_ID, format!("{id}\n").as_bytes())
    }

    pub fn put_checkpoint(&self, id: &HeartbeatId, text: &str) -> Result<()> {
        let (dir, _) = self.stats.make_dir(CHECKPOINTS)?;
        dir.replace(&format!("{id}.txt"), format!("{text}\n").as_bytes())
    }

    /// Writes an activity log under a free name: `<id>.md`, `<id>_2.md`, … Returns the name.
    pub fn put_activity(&self, id: &HeartbeatId, text: &str) -> Result<String> {
        let dir = match &self.logs {
            ActivityLogs::Own => self.stats.make_dir(ACTIVITY)?.0,
            ActivityLogs::Works { artifacts, name } => artifacts.make_dir(name)?.0.make_dir(HISTORIES)?.0,
        };
        let mut name = format!("{id}.md");
        let mut n = 2;
        while dir.open_file(&name)?.is_some() {
            name = format!("{id}_{n}.md");
            n += 1;
        }
        dir.put(&name, text.as_bytes())?;
        Ok(name)
    }

    /// Writes a declaration of deep work.
    pub fn declare(&self, id: &HeartbeatId, text: &str) -> Result<()> {
        let (dir, _) = self.stats.make_dir(DEEP_WORK)?;
        dir.put(&format!("{id}.txt"), text.as_bytes())
    }

    /// Renames a declaration to say how it ended, if it exists.
    pub fn end_declaration(&self, name: &str, end: DeclarationEnd) -> Result<()> {
        let Some(dir) = self.stats.dir(DEEP_WORK)? else { return Ok(()) };
        match dir.open_file(&format!("{name}.txt"))? {
            Some(_) => dir.rename(&format!("{name}.txt"), &format!("{name}{}", end.suffix())),
            None => Ok(()),
        }
    }

    /// The names and contents of the open declarations.
    pub fn declarations(&self) -> Result<Vec<(String, String)>> {
        let Some(dir) = self.stats.dir(DEEP_WORK)? else { return Ok(Vec::new()) };
        let mut open = Vec::new();
        for (name, is_dir) in dir.list()? {
            let Some(stem) = name.strip_suffix(".txt").filter(|stem| !is_dir && !stem.contains('.')) else { continue };
            let bytes = dir.read_prefix(&name, FILE_MAX_BYTES)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            open.push((stem.to_owned(), text));
        }
        Ok(open)
    }

    /// The newest checkpoint that exists as a file.
    pub fn newest_checkpoint(&self) -> Result<Option<HeartbeatId>> {
        let Some(dir) = self.stats.dir(CHECKPOINTS)? else { return Ok(None) };
        Ok(dir.list()?.iter().filter_map(|(name, _)| HeartbeatId::parse(name.strip_suffix(".txt")?)).max())
    }

    /// The newest activity log that exists as a file, and the newest introspection.
    pub fn newest_logs(&self) -> Result<(Option<LogFile>, Option<LogFile>)> {
        let mut all: Vec<(HeartbeatId, String, usize)> = Vec::new();
        let dirs: Vec<Dir> = match &self.logs {
            ActivityLogs::Own => self.stats.dir(ACTIVITY)?.into_iter().collect(),
            ActivityLogs::Works { artifacts, .. } => {
                let mut dirs = Vec::new();
                for (name, _) in artifacts.list()?.into_iter().filter(|(_, is_dir)| *is_dir) {
                    let project = artifacts.dir(&name)?;
                    dirs.extend(project.map(|project| project.dir(HISTORIES)).transpose()?.flatten());
                }
                dirs
            }
        };
        for (index, dir) in dirs.iter().enumerate() {
            let logs = dir.list()?.into_iter().filter_map(|(name, _)| {
                let id = HeartbeatId::parse(name.strip_suffix(".md")?.get(..HEARTBEAT_ID_CHARS)?)?;
                Some((id, name, index))
            });
            all.extend(logs);
        }
        all.sort_by(|a, b| b.cmp(a));
        let (mut newest, mut introspection) = (None, None);
        for (id, name, index) in all.into_iter().take(READ_BACK_MAX) {
            let text = dirs[index].read_prefix(&name, FILE_MAX_BYTES)?.unwrap_or_default();
            let log = LogFile { id, introspection: self.is_introspection(&String::from_utf8_lossy(&text)) };
            if log.introspection && introspection.is_none() {
                introspection = Some(log.clone());
            }
            newest.get_or_insert(log);
            if introspection.is_some() {
                break;
            }
        }
        Ok((newest, introspection))
    }

    /// Whether its header says so; in a works tree, also whether it contains the word.
    fn is_introspection(&self, text: &str) -> bool {
        let header = text.lines().take(10).any(|line| line.trim() == "kind: introspection");
        header || self.is_works() && text.contains("内省")
    }

    /// Renames files of an older version: the directory, and files by their prefix. Returns the old and new names; when
    /// repeated, there are none.
    pub fn migrate(&self) -> Result<Vec<(String, String)>> {
        let mut did = Vec::new();
        if let (Some(old), None) = (self.stats.dir(EXTENDED)?, self.stats.dir(DEEP_WORK)?) {
            drop(old);
            self.stats.rename(EXTENDED, DEEP_WORK)?;
            did.push((EXTENDED.to_owned(), DEEP_WORK.to_owned()));
        } else if let (Some(old), Some(new)) = (self.stats.dir(EXTENDED)?, self.stats.dir(DEEP_WORK)?) {
            for (name, _) in old.list()?.into_iter().filter(|(_, is_dir)| !is_dir) {
                if new.open_file(&name)?.is_none() {
                    old.move_to(&name, &new, &name)?;
                    did.push((format!("{EXTENDED}/{name}"), format!("{DEEP_WORK}/{name}")));
                }
            }
            if old.list()?.is_empty() {
                self.stats.remove_dir(EXTENDED)?;
            }
        }
        let Some(dir) = self.stats.dir(DEEP_WORK)? else { return Ok(did) };
        for (name, is_dir) in dir.list()? {
            for (prefix, end) in [("processed.", DeclarationEnd::Completed), ("expired.", DeclarationEnd::Expired)] {
                let Some(rest) = name.strip_prefix(prefix).filter(|rest| !is_dir && !rest.is_empty()) else { continue };
                let stem = rest.strip_suffix(".txt").unwrap_or(rest);
                let target = format!("{stem}{}", end.suffix());
                if dir.open_file(&target)?.is_none() {
                    dir.rename(&name, &target)?;
                    did.push((name.clone(), target));
                }
            }
        }
        Ok(did)
    }
}
