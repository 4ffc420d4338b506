//! The lock of a job. `vault::lock` takes it and waits for it.

use std::fs::File;
use std::time::Duration;

use crate::base::Result;
use crate::vault::lock::{self, LockMessages, LockMode};

/// The error message when the waiting thread cannot be started.
pub(super) const CANNOT_WAIT: &str = "cannot wait for a lock";

const OF_JOB: LockMessages = LockMessages { lock: "cannot lock a job's file", wait: CANNOT_WAIT };

/// The lock of a job, held as long as this value lives, or a process that inherited it.
#[derive(Debug)]
pub struct JobLock {
    file: File,
}

impl JobLock {
    /// The lock of a file that is already locked.
    pub(super) fn new(file: File) -> JobLock {
        JobLock { file }
    }

    /// Takes the lock, waiting at most `timeout`; `None` if it is held for longer.
    pub(super) fn take(file: File, timeout: Duration) -> Result<Option<JobLock>> {
        Ok(lock::take_within(file, LockMode::Exclusive, timeout, OF_JOB)?.map(JobLock::new))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}
