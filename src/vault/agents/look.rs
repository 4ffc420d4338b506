//! Looking for an agent's files. A directory that has not changed since the last look is not listed again, so a look
//! costs what changed, not what is there.
//!
//! What cannot be read is a fault with its name and reason, and hides nothing else.

use std::collections::BTreeMap;

use rustix::fs::FileType;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::names::{self, FileName, FileSort};
use super::{AgentDir, Tree};
use crate::base::Result;
use crate::vault::files::Dir;

/// A directory that changed within this time before it was listed may change again without a visible difference, because
/// the kernel's clock is coarse.
const SETTLED_NS: i64 = 100_000_000;
const NS_PER_SECOND: i64 = 1_000_000_000;

/// What is remembered of a look at an agent's directories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// The identity of the tree.
    tree: String,
    dirs: BTreeMap<String, LookedDir>,
    /// The open declarations, by path, and when each was last changed.
    pub declared: BTreeMap<String, i64>,
}

/// A directory whose files were all taken into account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LookedDir {
    number: String,
    changed_ns: i64,
    /// The directories in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dirs: Vec<String>,
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    pub sort: FileSort,
    /// Its path, relative to the agent's directory or tree.
    pub path: String,
    pub name: FileName,
}

impl AgentDir {
    /// When a file was last changed in any way, in seconds since 1970.
    pub fn changed_at(&self, path: &str) -> Option<i64> {
        let entry = self.root.entry(path).ok().flatten()?;
        i64::try_from(entry.changed_ns / i128::from(NS_PER_SECOND)).ok()
    }
}

/// Something that should be a file or a directory of an agent, but cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    pub path: String,
    pub reason: String,
}

/// What a look found.
#[derive(Debug, Default)]
pub struct FilesLook {
    /// The files that are new. Only these and what is in changed directories was looked at.
    pub files: Vec<AgentFile>,
    pub faults: Vec<FileFault>,
    /// Files in the directory of declarations whose names have no heartbeat id.
    pub misnamed: Vec<String>,
    /// What to remember, once the files have been taken into account.
    pub looked: Looked,
    /// Whether the declarations were listed, so that one that is not in `looked` is gone.
    pub is_declared_listed: bool,
    /// When the directory of declarations was last changed, in seconds since 1970.
    pub declared_changed_at: Option<i64>,
}

impl FilesLook {
    /// Forgets the directory of a file, which is then listed again at the next look.
    pub fn forget_dir_of(&mut self, path: &str) {
        if let Some((dir, _)) = path.rsplit_once('/') {
            self.looked.dirs.remove(dir);
        }
    }

    fn fault(&mut self, path: &str, reason: impl Into<String>) {
        self.forget_dir_of(path);
        self.faults.push(FileFault { path: path.to_owned(), reason: reason.into() });
    }
}

/// Which files are new, by sort, path and name.
pub type IsNew<'a> = &'a dyn Fn(FileSort, &str, &FileName) -> bool;

impl AgentDir {
    /// Looks for files that are new, using what is remembered of the look before.
    pub fn look(&self, before: Option<&Looked>, is_new: IsNew<'_>) -> Result<FilesLook> {
        let tree = self.root.number()?;
        let before = before.filter(|before| before.tree == tree);
        let mut walk = Walk { root: &self.root, before, is_new, look: FilesLook::default(), began_ns: now_ns() };
        walk.look.looked.tree = tree;
        let stats = self.stats_prefix();
        if stats.is_empty() || walk.is_directory("stats") {
            walk.files(FileSort::Checkpoint, &format!("{stats}{}", super::CHECKPOINTS));
            walk.declarations(&format!("{stats}{}", super::DEEP_WORK));
        }
        match &self.tree {
            Tree::Own => walk.files(FileSort::Log, super::ACTIVITY),
            Tree::Works { log_dirs, .. } => log_dirs.iter().for_each(|dir| walk.themes(dir)),
        }
        Ok(walk.look)
    }
}

impl AgentDir {
    /// Whether a file was changed within this many seconds.
    pub fn changed_within(&self, path: &str, seconds: i64) -> bool {
        let entry = self.root.entry(path).ok().flatten();
        let since = now_ns().saturating_sub(seconds.saturating_mul(NS_PER_SECOND));
        entry.is_some_and(|entry| entry.changed_ns >= i128::from(since))
    }
}

/// The kernel's clock for the times of files, in nanoseconds since 1970.
fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    now.tv_sec.saturating_mul(NS_PER_SECOND).saturating_add(now.tv_nsec)
}

struct Walk<'a> {
    root: &'a Dir,
    before: Option<&'a Looked>,
    is_new: IsNew<'a>,
    look: FilesLook,
    began_ns: i64,
}

/// The state of a directory before it is listed.
enum DirState {
    /// There is none, or it cannot be read.
    Absent,
    /// It is as it was at the last look.
    Unchanged(LookedDir),
    Changed(LookedDir),
}

impl Walk<'_> {
    /// Whether there is a directory at a path; something else there is a fault.
    fn is_directory(&mut self, path: &str) -> bool {
        match self.root.entry(path) {
            Ok(None) => false,
            Ok(Some(entry)) if entry.is_dir() => true,
            Ok(Some(entry)) => {
                self.look.fault(path, format!("it is {}, not a directory", entry.type_name()));
                false
            }
            Err(error) => {
                self.look.fault(path, error.message);
                false
            }
        }
    }

    fn state(&mut self, path: &str) -> DirState {
        if !self.is_directory(path) {
            return DirState::Absent;
        }
        let Ok(Some(entry)) = self.root.entry(path) else { return DirState::Absent };
        let changed_ns = i64::try_from(entry.changed_ns).unwrap_or(i64::MAX);
        let now = LookedDir { number: entry.number, changed_ns, dirs: Vec::new() };
        let known = self.before.and_then(|before| before.dirs.get(path));
        match known.filter(|known| (&known.number, known.changed_ns) == (&now.number, now.changed_ns)) {
            Some(known) => DirState::Unchanged(known.clone()),
            None => DirState::Changed(now),
        }
    }

    /// The names in a directory, with their types; none if it cannot be read.
    fn list(&mut self, path: &str) -> Option<Vec<(String, FileType)>> {
        let listed = self.root.dir_at(path).and_then(|dir| match dir {
            Some(dir) => dir.list_types(),
            None => Ok(Vec::new()),
        });
        match listed {
            Ok(names) => Some(names),
            Err(error) => {
                self.look.fault(path, error.message);
                None
            }
        }
    }

    /// Remembers a directory, unless it changed so recently that another change might look the same.
    fn remember(&mut self, path: &str, dir: LookedDir) {
        if dir.changed_ns < self.began_ns.saturating_sub(SETTLED_NS) {
            self.look.looked.dirs.insert(path.to_owned(), dir);
        }
    }

    /// The files of a sort in a directory.
    fn files(&mut self, sort: FileSort, path: &str) {
        match self.state(path) {
            DirState::Absent => {}
            DirState::Unchanged(dir) => self.remember(path, dir),
            DirState::Changed(dir) => self.list_files(sort, path, dir),
        }
    }

    fn list_files(&mut self, sort: FileSort, path: &str, dir: LookedDir) {
        let Some(names) = self.list(path) else { return };
        self.remember(path, dir);
        for (name, file_type) in names {
            let file = format!("{path}/{name}");
            let parsed = match names::parse(sort, &name) {
                None if sort == FileSort::Declaration && is_misnamed(&name, file_type) => {
                    self.look.misnamed.push(file);
                    continue;
                }
                None => continue,
                Some(Err(digits)) => {
                    self.look.fault(&file, format!("{digits} is not a time"));
                    continue;
                }
                Some(Ok(parsed)) => parsed,
            };
            if file_type != FileType::RegularFile {
                self.look.fault(&file, not_a_file(file_type));
                continue;
            }
            if sort == FileSort::Declaration && parsed.end.is_none() {
                let changed = self.changed_ns(&file);
                self.look.looked.declared.insert(file.clone(), changed);
            }
            if (self.is_new)(sort, &file, &parsed) {
                self.look.files.push(AgentFile { sort, path: file, name: parsed });
            }
        }
    }

    fn changed_ns(&self, path: &str) -> i64 {
        let entry = self.root.entry(path).ok().flatten();
        entry.map_or(0, |entry| i64::try_from(entry.changed_ns).unwrap_or(i64::MAX))
    }

    /// The declarations. One that was edited counts as a change of the directory.
    fn declarations(&mut self, path: &str) {
        let state = self.state(path);
        if let DirState::Unchanged(dir) | DirState::Changed(dir) = &state {
            self.look.declared_changed_at = Some(dir.changed_ns / NS_PER_SECOND);
        }
        let known = self.before.map(|before| before.declared.clone()).unwrap_or_default();
        let is_as_before = known.iter().all(|(file, changed)| self.changed_ns(file) == *changed);
        match state {
            DirState::Unchanged(dir) if is_as_before => {
                self.look.looked.declared = known;
                self.remember(path, dir);
            }
            DirState::Unchanged(dir) | DirState::Changed(dir) => {
                self.look.is_declared_listed = true;
                self.list_files(FileSort::Declaration, path, LookedDir { dirs: Vec::new(), ..dir });
            }
            DirState::Absent => self.look.is_declared_listed = true,
        }
    }

    /// The logs of all themes in a directory, and of their subthemes.
    fn themes(&mut self, path: &str) {
        for theme in self.directories_in(path) {
            self.files(FileSort::Log, &format!("{theme}/{}", super::HISTORIES));
            for subtheme in self.directories_in(&format!("{theme}/{}", super::SUBTHEMES)) {
                self.files(FileSort::Log, &format!("{subtheme}/{}", super::HISTORIES));
            }
        }
    }

    /// The paths of the directories in a directory.
    fn directories_in(&mut self, path: &str) -> Vec<String> {
        let dir = match self.state(path) {
            DirState::Absent => return Vec::new(),
            DirState::Unchanged(dir) => dir,
            DirState::Changed(dir) => {
                let Some(names) = self.list(path) else { return Vec::new() };
                let is_dir = |file_type: &FileType| *file_type == FileType::Directory;
                let dirs = names.iter().filter(|(_, file_type)| is_dir(file_type)).map(|(name, _)| name.clone());
                let dir = LookedDir { dirs: dirs.collect(), ..dir };
                self.remember(path, dir.clone());
                for (name, file_type) in names.iter().filter(|(_, file_type)| *file_type == FileType::Symlink) {
                    self.look.fault(&format!("{path}/{name}"), not_a_file(*file_type));
                }
                return dir.dirs.iter().map(|name| format!("{path}/{name}")).collect();
            }
        };
        self.remember(path, dir.clone());
        dir.dirs.iter().map(|name| format!("{path}/{name}")).collect()
    }
}

/// Whether a file was probably meant to be a declaration.
fn is_misnamed(name: &str, file_type: FileType) -> bool {
    let stem = name.strip_suffix(FileSort::Declaration.suffix());
    file_type == FileType::RegularFile && stem.is_some_and(|stem| !stem.is_empty() && !stem.contains('.'))
}

fn not_a_file(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Symlink => "it is a symbolic link, which is not followed",
        FileType::Directory => "it is a directory, not a file",
        _ => "it is not a regular file",
    }
}
