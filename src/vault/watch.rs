//! Waiting for the log to grow: a notice from the kernel where there is one, and a look every second.

use std::time::Duration;

use super::Vault;

/// How long a wait lasts if no notice comes: notices get lost on network file systems.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct VaultWatch {
    #[cfg(target_os = "linux")]
    inotify: Option<inotify::Inotify>,
}

impl Vault {
    /// Begins to watch. Make it before looking at the log, so that nothing falls in between.
    pub fn watch(&self) -> VaultWatch {
        VaultWatch {
            #[cfg(target_os = "linux")]
            inotify: notices(self.akashic.path()),
        }
    }
}

/// A watch on the folder of the head record, or nothing if the kernel has none to give.
#[cfg(target_os = "linux")]
fn notices(akashic: &std::path::Path) -> Option<inotify::Inotify> {
    use inotify::WatchMask;
    let inotify = inotify::Inotify::init().ok()?;
    let mask = WatchMask::MODIFY | WatchMask::CREATE | WatchMask::MOVED_TO;
    inotify.watches().add(akashic, mask).ok()?;
    Some(inotify)
}

impl VaultWatch {
    /// Waits until something may have changed, at most a second.
    pub fn wait(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &mut self.inotify {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let timeout = Timespec { tv_sec: LOOK_EVERY.as_secs() as i64, tv_nsec: 0 };
            // An interrupted or failed poll is a short wait, nothing more.
            let _ = poll(&mut [PollFd::new(&*inotify, PollFlags::IN)], Some(&timeout));
            let mut buffer = [0; 4096];
            let _ = inotify.read_events(&mut buffer);
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
