//! flock on a job's files. Waiting is done by a thread that blocks in flock and lets go of a pipe
//! when it is through, so that one poll can wait for many locks, for signals and for an end.

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::clock;
use crate::base::{Error, Result};

/// Enough for a thread that makes one system call; hundreds may wait.
const STACK_BYTES: usize = 128 * 1024;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Exclusive,
    Shared,
}

impl Mode {
    fn waiting(self) -> FlockOperation {
        match self {
            Mode::Exclusive => FlockOperation::LockExclusive,
            Mode::Shared => FlockOperation::LockShared,
        }
    }

    fn at_once(self) -> FlockOperation {
        match self {
            Mode::Exclusive => FlockOperation::NonBlockingLockExclusive,
            Mode::Shared => FlockOperation::NonBlockingLockShared,
        }
    }
}

/// A job's lock, held for as long as this value or a process that was given it lives.
#[derive(Debug)]
pub struct Held {
    file: File,
}

impl Held {
    pub(super) fn new(file: File) -> Held {
        Held { file }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

/// Whether two open files are the same one.
pub fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Takes a lock if it is free now.
pub fn try_hold(fd: impl AsFd, mode: Mode) -> io::Result<bool> {
    loop {
        match flock(&fd, mode.at_once()) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Takes a lock, however long that lasts.
pub fn hold(fd: impl AsFd, mode: Mode) -> io::Result<()> {
    loop {
        match flock(&fd, mode.waiting()) {
            Err(Errno::INTR) => continue,
            done => return Ok(done?),
        }
    }
}

/// Takes a lock, waiting at most `timeout`; `None` if it was held for longer.
pub fn take(file: File, mode: Mode, timeout: Duration) -> Result<Option<File>> {
    let failed = |e| Error::system("cannot lock a job's file", e);
    if try_hold(&file, mode).map_err(failed)? {
        return Ok(Some(file));
    }
    let until = clock::after(clock::now(), timeout);
    let waiter = Waiter::start(file, mode)?;
    loop {
        let mut fds = [PollFd::from_borrowed_fd(waiter.as_fd(), PollFlags::IN)];
        clock::poll_until(&mut fds, until)?;
        if !fds[0].revents().is_empty() {
            return waiter.finish().map(Some).map_err(failed);
        }
        if until.is_some_and(|until| clock::now() >= until) {
            return Ok(None);
        }
    }
}

/// A thread that is blocked in flock. Its descriptor hangs up when it is through. Dropped before
/// that, it lets go of the lock as soon as it has it.
#[derive(Debug)]
pub struct Waiter {
    through: PipeReader,
    result: Receiver<io::Result<File>>,
}

impl Waiter {
    pub fn start(file: File, mode: Mode) -> Result<Waiter> {
        let failed = |e| Error::system("cannot wait for a lock", e);
        let (through, hang_up) = io::pipe().map_err(failed)?;
        let (sender, result) = mpsc::channel();
        let block = move || {
            let held = hold(&file, mode);
            let _ = sender.send(held.map(|()| file));
            drop(hang_up);
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(block).map_err(failed)?;
        Ok(Waiter { through, result })
    }

    /// The locked file, once its descriptor has hung up.
    pub fn finish(self) -> io::Result<File> {
        self.result.recv().unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
    }
}

impl AsFd for Waiter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.through.as_fd()
    }
}
