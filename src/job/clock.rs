//! The monotonic clock, for durations only; no record carries what it says.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::base::{Error, Result};

/// This moment.
#[expect(
    clippy::disallowed_methods,
    reason = "timers of a supervisor need a clock that nobody sets; it is read here only"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Waits until a descriptor is ready or the moment has come. An interrupted wait is a short one.
pub fn poll_until(fds: &mut [PollFd<'_>], until: Option<Instant>) -> Result<()> {
    let timeout = until.map(|until| {
        let left = until.saturating_duration_since(now());
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    });
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(Error::system("cannot wait", e)),
    }
}

/// A moment so far from now, or none if there is no such moment.
pub fn after(from: Instant, duration: Duration) -> Option<Instant> {
    from.checked_add(duration)
}
