//! An agent's files: `Agents/<name>/` in the vault, or an existing `ai-works/` tree.
//!
//! | in the vault | in a works tree |
//! |---|---|
//! | `current_heartbeat_id.txt`, `checkpoints/`, `deep_work/` | the same under `stats/` |
//! | `activity/<id>*.md` | `artifacts/*/histories/<id>*.md`, `artifacts/*/subthemes/*/histories/<id>*.md` |
//!
//! They are for agents and for programs that work with files. The log is authoritative; the watchdog records files that
//! no event mentions yet. Symbolic links are not followed.

mod look;
mod looks;
mod names;

use std::path::Path;

use super::Vault;
use super::files::Dir;
use crate::base::{EntityId, Error, HeartbeatId, Result, names};

pub use look::{AgentFile, FileFault, FilesLook, Looked};
pub use looks::Looks;
pub use names::{FileName, FileSort, open_path};

const AGENTS: &str = "Agents";
const CURRENT_ID: &str = "current_heartbeat_id.txt";
const CHECKPOINTS: &str = "checkpoints";
const DEEP_WORK: &str = "deep_work";
/// The former name of `deep_work/`.
const EXTENDED: &str = "extended_processing";
const ACTIVITY: &str = "activity";
const STATS: &str = "stats";
const HISTORIES: &str = "histories";
const SUBTHEMES: &str = "subthemes";
/// Where a works tree has the activity logs that commands write.
const ARTIFACTS: &str = "artifacts";
/// No more of a file is read.
const FILE_MAX_BYTES: usize = 1024 * 1024;
/// As much as is read to find the current id, and shown if it is none.
const CURRENT_ID_MAX_BYTES: usize = 80;

names! {
    /// How a declaration of deep work ended; its file is renamed accordingly.
    pub enum DeclarationEnd {
        Completed = "completed",
        Expired = "expired",
        /// It could not be parsed.
        Malformed = "malformed",
    }
}

impl DeclarationEnd {
    /// What the name of the file has before its suffix.
    const fn word(self) -> &'static str {
        match self {
            DeclarationEnd::Completed => ".completed",
            DeclarationEnd::Expired => ".expired",
            DeclarationEnd::Malformed => ".malformed",
        }
    }
}

/// The directory of an agent, or its tree.
#[derive(Debug)]
pub struct AgentDir {
    root: Dir,
    tree: Tree,
}

/// Where the files are.
#[derive(Debug)]
enum Tree {
    /// All in the agent's directory.
    Own,
    /// In a works tree. Logs are written under the agent's name and read from all themes.
    Works { log_dirs: Vec<String>, name: String },
}

/// What a name is already used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// For nothing that is known; a file that is there all the same is the agent's own.
    Free,
    /// For a file that was recorded, and may be missing.
    Taken,
    /// For a file that the new one replaces.
    Replaced,
}

/// A name that was claimed for a file.
#[derive(Clone, Debug)]
pub struct ClaimedFile {
    pub path: String,
    is_new: bool,
}

/// A works tree: its path, and which of its directories have activity logs.
#[derive(Clone, Debug)]
pub struct WorksTree<'a> {
    pub path: &'a Path,
    pub log_dirs: Vec<String>,
}

impl Vault {
    /// The directory of an agent, created if it is missing.
    pub fn agent_dir(&self, name: &EntityId) -> Result<AgentDir> {
        self.check_private()?;
        let (agents, _) = self.root.make_dir(AGENTS)?;
        // Not synced: the files in it are not either, and the log has what counts.
        let (root, _) = agents.make_dir(name.as_str())?;
        Ok(AgentDir { root, tree: Tree::Own })
    }

    /// The directory of all agents, if it exists.
    pub fn agents_dir(&self) -> Result<Option<Dir>> {
        self.root.dir(AGENTS)
    }

    /// The names of the agents that have a directory.
    pub fn agents_with_files(&self) -> Result<Vec<EntityId>> {
        let Some(agents) = self.agents_dir()? else { return Ok(Vec::new()) };
        let dirs = agents.list_types()?.into_iter().filter(|(_, file_type)| file_type.is_dir());
        Ok(dirs.filter_map(|(name, _)| EntityId::parse(&name).ok()).collect())
    }
}

impl AgentDir {
    /// The directory of an agent in the directory of all agents, if it exists.
    pub fn existing_in(agents: &Dir, name: &EntityId) -> Result<Option<AgentDir>> {
        Ok(agents.dir(name.as_str())?.map(|root| AgentDir { root, tree: Tree::Own }))
    }

    /// A works tree, which other programs write to as well.
    pub fn in_works(works: &WorksTree<'_>, name: &EntityId) -> Result<AgentDir> {
        let not_a_directory = || Error::usage(format!("{} is not a directory", works.path.display()));
        let root = Dir::open_shared_root(works.path)?.ok_or_else(not_a_directory)?;
        Ok(AgentDir { root, tree: Tree::Works { log_dirs: works.log_dirs.clone(), name: name.to_string() } })
    }

    /// Whether this is a works tree, whose files have their own wording.
    pub fn is_works(&self) -> bool {
        matches!(self.tree, Tree::Works { .. })
    }

    /// The path of the directory of declarations and checkpoints, with a slash, or nothing if it is this directory.
    const fn stats_prefix(&self) -> &'static str {
        match self.tree {
            Tree::Own => "",
            Tree::Works { .. } => "stats/",
        }
    }

    /// Opens or creates a directory by its path.
    fn make(&self, path: &str) -> Result<Dir> {
        let mut names = path.split('/');
        let mut dir = self.root.make_dir(names.next().unwrap_or_default())?.0;
        for name in names {
            dir = dir.make_dir(name)?.0;
        }
        Ok(dir)
    }

    /// The current heartbeat id; the inner error is the text found instead of an id.
    pub fn current_id(&self) -> Result<Option<Result<HeartbeatId, String>>> {
        let Some(bytes) = self.read_at(&format!("{}{CURRENT_ID}", self.stats_prefix()), CURRENT_ID_MAX_BYTES)? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        Ok(Some(HeartbeatId::parse(&text).ok_or(text)))
    }

    pub fn put_current_id(&self, id: &HeartbeatId) -> Result<()> {
        let stats = match self.tree {
            Tree::Own => None,
            Tree::Works { .. } => Some(self.root.make_dir(STATS)?.0),
        };
        let stats = stats.as_ref().unwrap_or(&self.root);
        // Another watchdog that is writing it right now writes one that is as good.
        match stats.try_lock()? {
            true => stats.replace(CURRENT_ID, format!("{id}\n").as_bytes()),
            false => Ok(()),
        }
    }

    /// The content of a file by its path; of a long one, the beginning. None if it is gone.
    pub fn read_file(&self, path: &str) -> Result<Option<String>> {
        Ok(self.read_at(path, FILE_MAX_BYTES)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn read_at(&self, path: &str, max_bytes: usize) -> Result<Option<Vec<u8>>> {
        match self.root.dir_of(path)? {
            Some((dir, name)) => dir.read_prefix(name, max_bytes),
            None => Ok(None),
        }
    }

    /// The directory of a sort of files.
    fn path_of(&self, sort: FileSort) -> String {
        match (&self.tree, sort) {
            (_, FileSort::Checkpoint) => format!("{}{CHECKPOINTS}", self.stats_prefix()),
            (_, FileSort::Declaration) => format!("{}{DEEP_WORK}", self.stats_prefix()),
            (Tree::Own, FileSort::Log) => ACTIVITY.to_owned(),
            (Tree::Works { name, .. }, FileSort::Log) => format!("{ARTIFACTS}/{name}/{HISTORIES}"),
        }
    }

    /// Claims a name for a file of a sort: `<id>`, `<id>_2`, … An empty file takes it until the content is written, so
    /// the caller holds the vault's lock only for this.
    pub fn claim(&self, sort: FileSort, id: &HeartbeatId, use_of: &dyn Fn(&str) -> NameUse) -> Result<ClaimedFile> {
        let (dir, suffix) = (self.path_of(sort), sort.suffix());
        let open = self.make(&dir)?;
        let mut name = format!("{id}{suffix}");
        let mut n = 2;
        loop {
            let path = format!("{dir}/{name}");
            let is_there = open.entry(&name)?.is_some();
            match use_of(&path) {
                NameUse::Replaced => return Ok(ClaimedFile { path, is_new: false }),
                NameUse::Free if !is_there && open.claim(&name)? => return Ok(ClaimedFile { path, is_new: true }),
                NameUse::Free | NameUse::Taken => {}
            }
            name = format!("{id}_{n}{suffix}");
            n += 1;
        }
    }

    /// Gives up a name for which nothing was recorded.
    pub fn unclaim(&self, file: &ClaimedFile) {
        if let (true, Ok(Some((dir, name)))) = (file.is_new, self.root.dir_of(&file.path)) {
            // Best effort: an empty file does no harm.
            let _ = dir.remove(name);
        }
    }

    /// Writes a file by its path; whatever is there is replaced.
    pub fn put_file(&self, path: &str, text: &str) -> Result<()> {
        let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
        self.make(dir)?.put(name, text.as_bytes())
    }

    /// The same for a file that need not survive a crash of the machine.
    pub fn replace_file(&self, path: &str, text: &str) -> Result<()> {
        let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
        self.make(dir)?.replace(name, text.as_bytes())
    }

    /// The path of the declaration with this id that was made without a number.
    pub fn declaration_path(&self, id: &str) -> String {
        format!("{}/{id}{}", self.path_of(FileSort::Declaration), FileSort::Declaration.suffix())
    }

    /// Whether the file of a declaration was renamed in this way.
    pub fn has_ended_as(&self, path: &str, end: DeclarationEnd) -> bool {
        let suffix = FileSort::Declaration.suffix();
        let stem = path.strip_suffix(suffix).unwrap_or(path);
        self.root.entry(&format!("{stem}{}{suffix}", end.word())).is_ok_and(|entry| entry.is_some())
    }

    /// Renames a declaration to say how it ended, if it exists.
    pub fn end_declaration(&self, path: &str, end: DeclarationEnd) -> Result<()> {
        let Some((dir, name)) = self.root.dir_of(path)? else { return Ok(()) };
        if open_path(path) != path || dir.entry(name)?.is_none() {
            return Ok(());
        }
        let (stem, suffix) = (name.trim_end_matches(".txt"), FileSort::Declaration.suffix());
        let mut target = format!("{stem}{}{suffix}", end.word());
        let mut n = 2;
        // What ended before is kept.
        while dir.entry(&target)?.is_some() {
            target = format!("{stem}_{n}{}{suffix}", end.word());
            n += 1;
        }
        dir.rename(name, &target)
    }

    /// Renames files of an older version: the directory, and files by their prefix. Returns the old and new names; when
    /// repeated, there are none.
    pub fn migrate(&self) -> Result<Vec<(String, String)>> {
        let mut did = Vec::new();
        let stats = if self.is_works() { self.root.dir(STATS)? } else { None };
        let stats = stats.as_ref().unwrap_or(&self.root);
        if let (Some(old), None) = (stats.dir(EXTENDED)?, stats.dir(DEEP_WORK)?) {
            drop(old);
            stats.rename(EXTENDED, DEEP_WORK)?;
            did.push((EXTENDED.to_owned(), DEEP_WORK.to_owned()));
        } else if let (Some(old), Some(new)) = (stats.dir(EXTENDED)?, stats.dir(DEEP_WORK)?) {
            for (name, _) in old.list()?.into_iter().filter(|(_, is_dir)| !is_dir) {
                if new.open_file(&name)?.is_none() {
                    old.move_to(&name, &new, &name)?;
                    did.push((format!("{EXTENDED}/{name}"), format!("{DEEP_WORK}/{name}")));
                }
            }
            if old.list()?.is_empty() {
                stats.remove_dir(EXTENDED)?;
            }
        }
        let Some(dir) = stats.dir(DEEP_WORK)? else { return Ok(did) };
        for (name, is_dir) in dir.list()? {
            for (prefix, end) in [("processed.", DeclarationEnd::Completed), ("expired.", DeclarationEnd::Expired)] {
                let Some(rest) = name.strip_prefix(prefix).filter(|rest| !is_dir && !rest.is_empty()) else { continue };
                // Older tools named their files .conf.
                let stem = OLD_SUFFIXES.iter().find_map(|suffix| rest.strip_suffix(suffix)).unwrap_or(rest);
                let target = format!("{stem}{}{}", end.word(), FileSort::Declaration.suffix());
                if dir.open_file(&target)?.is_none() {
                    dir.rename(&name, &target)?;
                    did.push((name.clone(), target));
                }
            }
        }
        Ok(did)
    }
}

/// The suffixes of declarations, old and new.
const OLD_SUFFIXES: &[&str] = &[".txt", ".conf"];
