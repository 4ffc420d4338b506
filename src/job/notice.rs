//! Notifications about changed control files. Best effort: a supervisor also checks the files itself, every
//! second during a run and every 5 seconds while the job is queued.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// An inotify watch on files and on their directories, for files that do not exist yet.
#[derive(Debug)]
pub struct Notice {
    kernel: Option<OwnedFd>,
    paths: Vec<PathBuf>,
}

impl Notice {
    /// Starts watching these paths. Call this before reading the files, so that no change is missed.
    pub fn watching(paths: impl Into<Vec<PathBuf>>) -> Notice {
        let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let notice = Notice { kernel, paths: paths.into() };
        notice.arm();
        notice
    }

    /// Becomes readable when something changed; `None` if inotify is not available.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.kernel.as_ref().map(AsFd::as_fd)
    }

    /// Discards pending notifications and watches files that were created since.
    pub fn clear(&self) {
        let Some(kernel) = &self.kernel else { return };
        let mut buffer = [0; 4096];
        while rustix::io::read(kernel, &mut buffer).is_ok_and(|read| read > 0) {}
        self.arm();
    }

    /// Adding a watch twice has no effect. Directories are watched only for new names, because the head record next to a
    /// control file is rewritten with every event.
    fn arm(&self) {
        let Some(kernel) = &self.kernel else { return };
        for path in &self.paths {
            let dir = path.parent().unwrap_or(path);
            let _ = inotify::add_watch(kernel, dir, WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR);
            let _ = inotify::add_watch(kernel, path, WatchFlags::MODIFY | WatchFlags::DONT_FOLLOW);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::fs;

    /// Blocks until there is a notification.
    fn await_notice(notice: &Notice) {
        let mut fds = [PollFd::from_borrowed_fd(notice.descriptor().unwrap(), PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, None)).unwrap();
        notice.clear();
    }

    #[test]
    fn a_file_is_noticed_when_it_is_created_and_when_it_is_rewritten_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "1").unwrap();
        let notice = Notice::watching([old.clone(), new.clone()]);
        for path in [&old, &new, &old, &new] {
            fs::write(path, "2").unwrap();
            await_notice(&notice);
        }
        // A rewritten neighbour, such as the head record, causes no notification.
        let neighbour = dir.path().join("neighbour");
        fs::write(&neighbour, "1").unwrap();
        await_notice(&notice);
        fs::write(&neighbour, "2").unwrap();
        let mut buffer = [0; 4096];
        assert!(rustix::io::read(notice.descriptor().unwrap(), &mut buffer).is_err());
    }
}
