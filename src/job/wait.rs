//! Waiting for jobs to end: one thread per job, blocked in flock, and one poll for all of them, for signals and for the
//! timeout. There is no busy waiting.

use std::fs::File;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use std::os::fd::AsFd;
use std::path::PathBuf;

use super::clock;
use super::files::JobDir;
use super::lock::CANNOT_WAIT;
use super::notice::Notice;
use super::signals::Signals;
use crate::base::{Error, Result, names};
use crate::vault::lock::{self, LockMode, Waiter};

names! {
    /// How many of several jobs must end.
    pub enum Need {
        Any = "any",
        All = "all",
    }
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The jobs, or one of them, are no longer supervised.
    Ended,
    /// The timeout passed.
    TimeUp,
    /// A signal arrived.
    Interrupted,
}

/// Watches the control files of a job: cancellation, a stop and, while the job is queued, pokes. Create it before reading
/// the files, so that no change is missed.
#[derive(Debug)]
pub struct ControlWatch {
    notice: Notice,
}

impl ControlWatch {
    pub fn of_job(job: &JobDir) -> ControlWatch {
        ControlWatch::of_paths(job.control_paths())
    }

    /// Watches these files, which need not exist.
    pub fn of_paths(paths: impl Into<Vec<PathBuf>>) -> ControlWatch {
        ControlWatch { notice: Notice::watching(paths) }
    }

    pub(super) fn notice(&self) -> &Notice {
        &self.notice
    }

    /// Waits for a change, a signal, or the end of `max`.
    pub fn wait(&self, max: Duration, signals: &Signals) -> Result<()> {
        let until = clock::after(clock::now(), max);
        let mut fds = vec![PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        fds.extend(self.notice.descriptor().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        clock::poll_until(&mut fds, until)?;
        self.notice.clear();
        Ok(())
    }
}

/// Waits until jobs are no longer supervised. `probe` tells how they ended.
pub fn wait_for_end(jobs: &[&JobDir], need: Need, max: Duration, signals: &Signals) -> Result<Waited> {
    let locks = jobs.iter().map(|job| job.lock_file()).collect::<Result<Vec<_>>>()?;
    wait_for_locks(locks, need, max, signals)
}

/// Waits until no supervisor looks after processes that these jobs left behind. Returns whether that is so.
pub fn wait_for_rest(jobs: &[&JobDir], max: Duration) -> Result<bool> {
    let locks = jobs.iter().map(|job| job.left_file()).collect::<Result<Vec<_>>>()?;
    Ok(wait_for_locks(locks, Need::All, max, &Signals::none()?)? == Waited::Ended)
}

fn wait_for_locks(locks: Vec<Option<File>>, need: Need, max: Duration, signals: &Signals) -> Result<Waited> {
    let until = clock::after(clock::now(), max);
    let count = locks.len();
    let mut waiters = Vec::new();
    for lock in locks.into_iter().flatten() {
        match lock::try_acquire(&lock, LockMode::Shared).map_err(|e| Error::system("cannot check a job's lock", e))? {
            true => drop(lock),
            false => waiters.push(Waiter::start(lock, LockMode::Shared).map_err(|e| Error::system(CANNOT_WAIT, e))?),
        }
    }
    loop {
        let enough = match need {
            Need::Any => waiters.len() < count || count == 0,
            Need::All => waiters.is_empty(),
        };
        if enough {
            return Ok(Waited::Ended);
        }
        if signals.asked().is_some() {
            return Ok(Waited::Interrupted);
        }
        if until.is_some_and(|until| clock::now() >= until) {
            return Ok(Waited::TimeUp);
        }
        let mut fds: Vec<_> =
            waiters.iter().map(|waiter| PollFd::from_borrowed_fd(waiter.as_fd(), PollFlags::IN)).collect();
        fds.push(PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN));
        clock::poll_until(&mut fds, until)?;
        let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        // Dropping a waiter releases its lock.
        waiters.retain(|_| !ended.next().unwrap_or_default());
    }
}
