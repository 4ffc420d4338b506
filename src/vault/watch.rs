//! Waiting for the log to grow: by inotify where available, and by looking every second.

use std::time::Duration;

use super::Vault;

/// How long to wait without a notification: on network file systems, they get lost.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Waits for the log of a vault to grow.
#[derive(Debug)]
pub struct VaultWatch {
    #[cfg(target_os = "linux")]
    inotify: Option<inotify::Inotify>,
}

impl Vault {
    /// Starts watching. Call this before reading the log, so that no change is missed.
    pub fn watch(&self) -> VaultWatch {
        VaultWatch {
            #[cfg(target_os = "linux")]
            inotify: notices(self.akashic.path()),
        }
    }
}

/// A watch on the directory of the head record; `None` if inotify is not available.
#[cfg(target_os = "linux")]
fn notices(akashic: &std::path::Path) -> Option<inotify::Inotify> {
    use inotify::WatchMask;
    let inotify = inotify::Inotify::init().ok()?;
    let mask = WatchMask::MODIFY | WatchMask::CREATE | WatchMask::MOVED_TO;
    inotify.watches().add(akashic, mask).ok()?;
    Some(inotify)
}

impl VaultWatch {
    /// Waits until something may have changed, for a second at most.
    pub fn wait(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &mut self.inotify {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let timeout = Timespec { tv_sec: CHECK_EVERY.as_secs() as i64, tv_nsec: 0 };
            // An interrupted or failed poll is just a shorter wait.
            let _ = poll(&mut [PollFd::new(&*inotify, PollFlags::IN)], Some(&timeout));
            let mut buffer = [0; 4096];
            let _ = inotify.read_events(&mut buffer);
            return;
        }
        std::thread::sleep(CHECK_EVERY);
    }
}
