//! Being told that a control file changed. Best effort: who waits looks once a second anyway.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// A watch on the files and, for one that is not there yet, on its folder.
#[derive(Debug)]
pub struct Notice {
    kernel: Option<OwnedFd>,
    paths: Vec<PathBuf>,
}

impl Notice {
    /// Begins to watch. Make it before looking, so that nothing falls in between.
    pub fn watching(paths: impl Into<Vec<PathBuf>>) -> Notice {
        let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let notice = Notice { kernel, paths: paths.into() };
        notice.arm();
        notice
    }

    /// Ready when something changed; nothing if the kernel has no watch to give.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.kernel.as_ref().map(AsFd::as_fd)
    }

    /// Forgets what was told, and watches files that have come since.
    pub fn clear(&self) {
        let Some(kernel) = &self.kernel else { return };
        let mut buffer = [0; 4096];
        while rustix::io::read(kernel, &mut buffer).is_ok_and(|read| read > 0) {}
        self.arm();
    }

    /// Watching what is watched already changes nothing. The folder tells of new names only: the
    /// head record beside a control file is rewritten with every event.
    fn arm(&self) {
        let Some(kernel) = &self.kernel else { return };
        for path in &self.paths {
            let folder = path.parent().unwrap_or(path);
            let _ = inotify::add_watch(kernel, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR);
            let _ = inotify::add_watch(kernel, path, WatchFlags::MODIFY | WatchFlags::DONT_FOLLOW);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::fs;

    /// Blocks until it is told.
    fn told(notice: &Notice) {
        let mut fds = [PollFd::from_borrowed_fd(notice.descriptor().unwrap(), PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, None)).unwrap();
        notice.clear();
    }

    #[test]
    fn a_file_is_noticed_when_it_comes_and_when_it_is_rewritten_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, "1").unwrap();
        let notice = Notice::watching([old.clone(), new.clone()]);
        for path in [&old, &new, &old, &new] {
            fs::write(path, "2").unwrap();
            told(&notice);
        }
        // A neighbour that is rewritten, as the head record is with every event, is not.
        let neighbour = folder.path().join("neighbour");
        fs::write(&neighbour, "1").unwrap();
        told(&notice);
        fs::write(&neighbour, "2").unwrap();
        let mut buffer = [0; 4096];
        assert!(rustix::io::read(notice.descriptor().unwrap(), &mut buffer).is_err());
    }
}
