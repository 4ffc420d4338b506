//! A control group for the processes of one run, where one can be made. No process can leave it without the right to, so
//! it knows them all, whatever sessions they made and whichever process is their parent by now.
//!
//! It is made next to the supervisor, as `hf-run-<run id>`, in the hierarchy of version 2. Where that is not mounted, not
//! writable or switched off, the supervisor finds the processes by their parents alone.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::base::EntityId;

const PREFIX: &str = "hf-run-";
const PROCS: &str = "cgroup.procs";
const EVENTS: &str = "cgroup.events";
const KILL: &str = "cgroup.kill";
/// How deep groups inside the group are followed.
const DEPTH_MAX: usize = 8;

/// The group of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunGroup {
    dir: PathBuf,
}

impl RunGroup {
    /// Makes the group of a run; none where that is not possible.
    pub fn make(run_id: &EntityId) -> Option<RunGroup> {
        let beside = own_dir()?;
        remove_empty(&beside);
        let dir = beside.join(format!("{PREFIX}{run_id}"));
        fs::create_dir(&dir).ok()?;
        let group = RunGroup { dir };
        // Without this file its processes could not be ended all at once.
        match group.dir.join(KILL).exists() {
            true => Some(group),
            false => {
                group.remove();
                None
            }
        }
    }

    /// The group at a recorded path, if it still exists.
    pub fn at(path: &Path) -> Option<RunGroup> {
        let is_ours = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        (is_ours && path.join(PROCS).exists()).then(|| RunGroup { dir: path.to_owned() })
    }

    /// The group of another run of the same job, made next to one at a recorded path, if it still exists.
    pub fn beside(path: &Path, run_id: &str) -> Option<RunGroup> {
        RunGroup::at(&path.with_file_name(format!("{PREFIX}{run_id}")))
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The file that a process writes `0` to in order to enter.
    pub fn entrance(&self) -> Option<File> {
        File::options().write(true).open(self.dir.join(PROCS)).ok()
    }

    /// The processes in it, and in groups inside it.
    pub fn pids(&self) -> Vec<i32> {
        let mut found = Vec::new();
        collect_pids(&self.dir, DEPTH_MAX, &mut found);
        found
    }

    /// Whether a process is alive in it. A zombie is not.
    pub fn is_populated(&self) -> bool {
        fs::read_to_string(self.dir.join(EVENTS)).is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
    }

    /// Kills all of its processes at once.
    pub fn kill(&self) {
        // Whether it worked shows in what is left.
        let _ = File::options().write(true).open(self.dir.join(KILL)).and_then(|mut file| file.write_all(b"1"));
    }

    /// Removes it if no process is left.
    pub fn remove(&self) {
        remove_dir(&self.dir, DEPTH_MAX);
    }
}

/// Takes this process out of the group of a run that started it: a job outlives the job that fired it.
pub fn leave() {
    let Some(dir) = own_dir() else { return };
    // The outermost one: a job can be fired by a job that was fired by a job.
    let group = dir.ancestors().filter(|dir| dir.file_name().is_some_and(is_of_run)).last();
    if let Some(above) = group.and_then(Path::parent) {
        let _ = File::options().write(true).open(above.join(PROCS)).and_then(|mut procs| procs.write_all(b"0"));
    }
}

fn is_of_run(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PREFIX))
}

/// The directory of this process's own group.
fn own_dir() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (root, mount) = mounts.lines().find_map(cgroup2_mount)?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(mount).join(below))
}

/// The root and the mount point of a line of mountinfo, if it mounts control groups of version 2.
fn cgroup2_mount(line: &str) -> Option<(&str, &str)> {
    let (mount, source) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let found = fields.next().zip(fields.next());
    found.filter(|_| source.starts_with("cgroup2 "))
}

fn collect_pids(dir: &Path, depth: usize, found: &mut Vec<i32>) {
    let procs = fs::read_to_string(dir.join(PROCS)).unwrap_or_default();
    found.extend(procs.lines().filter_map(|line| line.parse::<i32>().ok()));
    if depth > 0 {
        inner_dirs(dir).iter().for_each(|dir| collect_pids(dir, depth - 1, found));
    }
}

fn remove_dir(dir: &Path, depth: usize) {
    if depth > 0 {
        inner_dirs(dir).iter().for_each(|dir| remove_dir(dir, depth - 1));
    }
    let _ = fs::remove_dir(dir);
}

fn inner_dirs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

/// Removes groups of runs that have ended: those that left processes behind could not be removed before.
fn remove_empty(beside: &Path) {
    let groups = inner_dirs(beside).into_iter().filter(|dir| dir.file_name().is_some_and(is_of_run));
    for group in groups.map(|dir| RunGroup { dir }).filter(|group| !group.is_populated()) {
        group.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_among_others() {
        let line = "41 31 0:38 /a /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(cgroup2_mount(line), Some(("/a", "/sys/fs/cgroup/unified")));
        assert_eq!(cgroup2_mount("40 31 0:37 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids"), None);
    }
}
