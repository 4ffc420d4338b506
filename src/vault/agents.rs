//! An agent's files: `Agents/<name>/` in the vault, or an `ai-works/` tree that is served in place.
//!
//! | here | in a works tree |
//! |---|---|
//! | `current_heartbeat_id.txt`, `checkpoints/`, `deep_work/` | the same under `stats/` |
//! | `activity/<id>.md` | `artifacts/*/histories/<id>*.md` |
//!
//! They are for the agents and for whoever used files before. The log is the truth; a file that no
//! event names is taken in by the watchdog. Nothing is followed through a link.

use std::path::Path;

use super::Vault;
use super::files::Dir;
use crate::base::{EntityId, Error, HeartbeatId, Result};

const AGENTS: &str = "Agents";
const CURRENT_ID: &str = "current_heartbeat_id.txt";
const CHECKPOINTS: &str = "checkpoints";
const DEEP_WORK: &str = "deep_work";
/// What `deep_work/` was called before.
const EXTENDED: &str = "extended_processing";
const ACTIVITY: &str = "activity";
const STATS: &str = "stats";
const ARTIFACTS: &str = "artifacts";
const HISTORIES: &str = "histories";
/// A file with more than this is not one of ours.
const FILE_MAX_BYTES: usize = 1024 * 1024;
/// How the name of a log begins.
const HEARTBEAT_ID_CHARS: usize = 14;
/// Logs that are read to find the newest introspection.
const READ_BACK_MAX: usize = 200;

/// How a declaration ended; its file is renamed to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclarationEnd {
    Completed,
    Expired,
    /// It could not be read.
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

/// A log that is there as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    pub id: HeartbeatId,
    pub introspection: bool,
}

/// An agent's folder.
#[derive(Debug)]
pub struct AgentDir {
    stats: Dir,
    logs: ActivityLogs,
}

#[derive(Debug)]
enum ActivityLogs {
    /// In a folder beside the others.
    Own,
    /// In the works tree, under the name of the agent; read from wherever they are.
    Works { artifacts: Dir, name: String },
}

impl Vault {
    /// The folder of an agent, made if it is missing.
    pub fn agent_dir(&self, name: &EntityId) -> Result<AgentDir> {
        self.check_private()?;
        let (agents, _) = self.root.make_dir(AGENTS)?;
        let (stats, made) = agents.make_dir(name.as_str())?;
        if made {
            agents.sync()?;
        }
        Ok(AgentDir { stats, logs: ActivityLogs::Own })
    }

    /// The folder of an agent, if it is there.
    pub fn agent_dir_there(&self, name: &EntityId) -> Result<Option<AgentDir>> {
        let Some(agents) = self.root.dir(AGENTS)? else { return Ok(None) };
        Ok(agents.dir(name.as_str())?.map(|stats| AgentDir { stats, logs: ActivityLogs::Own }))
    }
}

impl AgentDir {
    /// A works tree that somebody else's programs write too.
    pub fn in_works(works: &Path, name: &EntityId) -> Result<AgentDir> {
        let gone = || Error::usage(format!("{} is not a folder", works.display()));
        let root = Dir::open_root(works)?.ok_or_else(gone)?;
        let (stats, _) = root.make_dir(STATS)?;
        let (artifacts, _) = root.make_dir(ARTIFACTS)?;
        Ok(AgentDir { stats, logs: ActivityLogs::Works { artifacts, name: name.to_string() } })
    }

    /// The same, if its folders are there.
    pub fn there_in_works(works: &Path, name: &EntityId) -> Result<Option<AgentDir>> {
        let gone = || Error::usage(format!("{} is not a folder", works.display()));
        let root = Dir::open_root(works)?.ok_or_else(gone)?;
        let (Some(stats), Some(artifacts)) = (root.dir(STATS)?, root.dir(ARTIFACTS)?) else { return Ok(None) };
        Ok(Some(AgentDir { stats, logs: ActivityLogs::Works { artifacts, name: name.to_string() } }))
    }

    /// Whether this is somebody else's tree, in whose words files are written.
    pub fn is_works(&self) -> bool {
        matches!(self.logs, ActivityLogs::Works { .. })
    }

    /// The current beat; an error says what stands there instead.
    pub fn current_id(&self) -> Result<Option<Result<HeartbeatId, String>>> {
        let Some(bytes) = self.stats.read(CURRENT_ID)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).trim().to_owned();
        Ok(Some(HeartbeatId::parse(&text).ok_or(text)))
    }

    pub fn put_current_id(&self, id: &HeartbeatId) -> Result<()> {
        self.stats.replace(CURRENT_ID, format!("{id}\n").as_bytes())
    }

    pub fn put_checkpoint(&self, id: &HeartbeatId, text: &str) -> Result<()> {
        let (dir, _) = self.stats.make_dir(CHECKPOINTS)?;
        dir.replace(&format!("{id}.txt"), format!("{text}\n").as_bytes())
    }

    /// Writes an activity log under a name that is free: `<id>.md`, `<id>_2.md`, … Gives its name.
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

    /// Renames a declaration to say how it ended. One that is not there is none.
    pub fn end_declaration(&self, name: &str, end: DeclarationEnd) -> Result<()> {
        let Some(dir) = self.stats.dir(DEEP_WORK)? else { return Ok(()) };
        match dir.open_file(&format!("{name}.txt"))? {
            Some(_) => dir.rename(&format!("{name}.txt"), &format!("{name}{}", end.suffix())),
            None => Ok(()),
        }
    }

    /// The declarations that did not end, by name, with what they say.
    pub fn declarations(&self) -> Result<Vec<(String, String)>> {
        let Some(dir) = self.stats.dir(DEEP_WORK)? else { return Ok(Vec::new()) };
        let mut open = Vec::new();
        for (name, is_dir) in dir.list()? {
            let Some(stem) = name.strip_suffix(".txt").filter(|stem| !is_dir && !stem.contains('.')) else { continue };
            let bytes = dir.read(&name)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(FILE_MAX_BYTES)]).into_owned();
            open.push((stem.to_owned(), text));
        }
        Ok(open)
    }

    /// The newest checkpoint that is there as a file.
    pub fn newest_checkpoint(&self) -> Result<Option<HeartbeatId>> {
        let Some(dir) = self.stats.dir(CHECKPOINTS)? else { return Ok(None) };
        Ok(dir.list()?.iter().filter_map(|(name, _)| HeartbeatId::parse(name.strip_suffix(".txt")?)).max())
    }

    /// The newest activity log that is there as a file, and the newest introspection.
    pub fn newest_logs(&self) -> Result<(Option<LogFile>, Option<LogFile>)> {
        let mut all: Vec<(HeartbeatId, String, usize)> = Vec::new();
        let folders: Vec<Dir> = match &self.logs {
            ActivityLogs::Own => self.stats.dir(ACTIVITY)?.into_iter().collect(),
            ActivityLogs::Works { artifacts, .. } => {
                let mut folders = Vec::new();
                for (name, _) in artifacts.list()?.into_iter().filter(|(_, is_dir)| *is_dir) {
                    let project = artifacts.dir(&name)?;
                    folders.extend(project.map(|project| project.dir(HISTORIES)).transpose()?.flatten());
                }
                folders
            }
        };
        for (folder, dir) in folders.iter().enumerate() {
            let logs = dir.list()?.into_iter().filter_map(|(name, _)| {
                let id = HeartbeatId::parse(name.strip_suffix(".md")?.get(..HEARTBEAT_ID_CHARS)?)?;
                Some((id, name, folder))
            });
            all.extend(logs);
        }
        all.sort_by(|a, b| b.cmp(a));
        let (mut newest, mut introspection) = (None, None);
        for (id, name, folder) in all.into_iter().take(READ_BACK_MAX) {
            let text = folders[folder].read(&name)?.unwrap_or_default();
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

    /// By its header; in a works tree also by the word.
    fn is_introspection(&self, text: &str) -> bool {
        let header = text.lines().take(10).any(|line| line.trim() == "kind: introspection");
        header || self.is_works() && text.contains("内省")
    }

    /// Renames what an older version left: the folder, and files by their prefix. Gives what was done;
    /// a second time there is nothing.
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
