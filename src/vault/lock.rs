//! flock with a timeout. A process that appends holds `Akashic/.lock`, which is never unlinked; a job's files are locked
//! the same way.
//!
//! A thread that blocks in flock does the waiting, so that nothing spins. It closes a pipe when it is done, so that one
//! poll can wait for many locks, for signals and for a deadline.

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::base::{Error, ErrorKind, Result, text};

/// Enough for a thread that makes one system call; there may be hundreds.
const STACK_BYTES: usize = 128 * 1024;

/// Whether others can hold a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    Exclusive,
    Shared,
}

/// The error messages when a lock cannot be taken.
#[derive(Clone, Copy, Debug)]
pub struct LockMessages {
    /// flock itself failed.
    pub lock: &'static str,
    /// The waiting thread could not be started.
    pub wait: &'static str,
}

const OF_VAULT: LockMessages = LockMessages { lock: "cannot lock the vault", wait: "cannot wait for the vault's lock" };

/// A lock of the vault, held as long as this value lives. The kernel releases it when the process dies.
#[derive(Debug)]
pub struct LockGuard {
    _file: File,
}

/// Takes a lock of the vault. `Busy` if another process holds it for longer than `timeout`.
pub fn take(file: File, mode: LockMode, timeout: Duration) -> Result<LockGuard> {
    match take_within(file, mode, timeout, OF_VAULT)? {
        Some(file) => Ok(LockGuard { _file: file }),
        None => Err(Error::new(
            ErrorKind::Busy,
            format!(
                "the vault is in use: another command has held its lock for {}",
                text::count_noun(timeout.as_secs(), "second")
            ),
        )),
    }
}

/// Takes a lock, waiting at most `timeout`; `None` if it is held for longer.
pub fn take_within(file: File, mode: LockMode, timeout: Duration, messages: LockMessages) -> Result<Option<File>> {
    let failed = |e| Error::system(messages.lock, e);
    if try_acquire(&file, mode).map_err(failed)? {
        return Ok(Some(file));
    }
    let waiter = Waiter::start(file, mode).map_err(|e| Error::system(messages.wait, e))?;
    waiter.finish_within(timeout).map_err(failed)
}

/// Takes a lock if it is free now.
pub fn try_acquire(file: &File, mode: LockMode) -> io::Result<bool> {
    // Fully qualified, because `File` has methods with the same names.
    let tried = uninterrupted(|| match mode {
        LockMode::Exclusive => fs2::FileExt::try_lock_exclusive(file),
        LockMode::Shared => fs2::FileExt::try_lock_shared(file),
    });
    match tried {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == fs2::lock_contended_error().kind() => Ok(false),
        Err(e) => Err(e),
    }
}

/// Takes a lock, waiting as long as it takes.
pub fn acquire(file: &File, mode: LockMode) -> io::Result<()> {
    uninterrupted(|| match mode {
        LockMode::Exclusive => fs2::FileExt::lock_exclusive(file),
        LockMode::Shared => fs2::FileExt::lock_shared(file),
    })
}

/// Whether two open files are the same file.
pub fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Repeats a call that is interrupted by a signal.
fn uninterrupted(call: impl Fn() -> io::Result<()>) -> io::Result<()> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            done => return done,
        }
    }
}

/// A thread that is blocked in flock. Its descriptor hangs up when the thread is done. If this value is dropped before
/// that, the thread releases the lock as soon as it gets it.
#[derive(Debug)]
pub struct Waiter {
    through: PipeReader,
    result: Receiver<io::Result<File>>,
}

impl Waiter {
    pub fn start(file: File, mode: LockMode) -> io::Result<Waiter> {
        let (through, hang_up) = io::pipe()?;
        let (sender, result) = mpsc::channel();
        let block = move || {
            let held = acquire(&file, mode);
            // If nobody is waiting anymore, the file is dropped here, which releases the lock.
            let _ = sender.send(held.map(|()| file));
            drop(hang_up);
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(block)?;
        Ok(Waiter { through, result })
    }

    /// The locked file, immediately if the descriptor has hung up; `None` if it takes longer than `timeout`.
    pub fn finish_within(self, timeout: Duration) -> io::Result<Option<File>> {
        match self.result.recv_timeout(timeout) {
            Ok(held) => held.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

impl AsFd for Waiter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.through.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use tempfile::TempDir;

    use super::*;

    fn open(dir: &TempDir, name: &str) -> File {
        File::options().create(true).truncate(false).write(true).open(dir.path().join(name)).unwrap()
    }

    /// Which of the waiters are done; without a limit, blocks until one is.
    fn through(waiters: &[&Waiter], limit: Option<&Timespec>) -> Vec<bool> {
        let mut fds: Vec<_> = waiters.iter().map(|one| PollFd::new(*one, PollFlags::IN)).collect();
        rustix::io::retry_on_intr(|| poll(&mut fds, limit)).unwrap();
        fds.iter().map(|fd| !fd.revents().is_empty()).collect()
    }

    #[test]
    fn a_held_lock_is_busy_and_a_released_one_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let open = || open(&dir, "lock");
        let held = take(open(), LockMode::Exclusive, Duration::ZERO).unwrap();
        let busy = take(open(), LockMode::Exclusive, Duration::from_millis(1)).unwrap_err();
        assert_eq!(busy.kind, ErrorKind::Busy);
        let waiting = thread::spawn({
            let file = open();
            move || take(file, LockMode::Shared, Duration::from_secs(60)).map(drop)
        });
        drop(held);
        waiting.join().unwrap().unwrap();
    }

    #[test]
    fn one_poll_waits_for_many_locks() {
        const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (open(&dir, "first"), open(&dir, "second"));
        acquire(&first, LockMode::Exclusive).unwrap();
        acquire(&second, LockMode::Shared).unwrap();
        let of_first = Waiter::start(open(&dir, "first"), LockMode::Shared).unwrap();
        let of_second = Waiter::start(open(&dir, "second"), LockMode::Exclusive).unwrap();
        assert_eq!(through(&[&of_first, &of_second], Some(&NOW)), [false, false]);
        drop(second);
        assert_eq!(through(&[&of_first, &of_second], None), [false, true]);
        let taken = of_second.finish_within(Duration::ZERO).unwrap().unwrap();
        assert!(!try_acquire(&open(&dir, "second"), LockMode::Shared).unwrap());
        drop((first, taken));
        assert_eq!(through(&[&of_first], None), [true]);
        assert!(is_same(&of_first.finish_within(Duration::ZERO).unwrap().unwrap(), &open(&dir, "first")).unwrap());
    }

    #[test]
    fn a_waiter_that_is_dropped_keeps_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let held = open(&dir, "lock");
        acquire(&held, LockMode::Exclusive).unwrap();
        drop(Waiter::start(open(&dir, "lock"), LockMode::Exclusive).unwrap());
        drop(held);
        // Whichever thread gets the lock first, the other gets it afterwards.
        acquire(&open(&dir, "lock"), LockMode::Exclusive).unwrap();
    }
}
