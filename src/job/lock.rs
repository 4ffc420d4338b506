//! A job's lock as a value. How it is taken and waited for is in `vault::lock`.

use std::fs::File;
use std::time::Duration;

use crate::base::Result;
use crate::vault::lock::{self, LockMessages, LockMode};

/// What is said when there is nothing to wait for a job's lock with.
pub(super) const CANNOT_WAIT: &str = "cannot wait for a lock";

const OF_JOB: LockMessages = LockMessages { lock: "cannot lock a job's file", wait: CANNOT_WAIT };

/// A job's lock, held for as long as this value or a process that was given it lives.
#[derive(Debug)]
pub struct JobLock {
    file: File,
}

impl JobLock {
    /// A file that is locked already.
    pub(super) fn new(file: File) -> JobLock {
        JobLock { file }
    }

    /// Takes the lock, waiting at most `timeout`; `None` if it was held for longer.
    pub(super) fn take(file: File, timeout: Duration) -> Result<Option<JobLock>> {
        Ok(lock::take_within(file, LockMode::Exclusive, timeout, OF_JOB)?.map(JobLock::new))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}
