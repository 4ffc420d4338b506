//! The monotonic clock, for durations only; its time is never recorded.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::base::{Error, Result};

/// The current time of the monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "a supervisor's timers need a clock that nobody can set; it is read only here"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Waits until a descriptor is ready or `until`. A signal ends the wait early.
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

/// The time `duration` after `from`; `None` if it cannot be represented.
pub fn after(from: Instant, duration: Duration) -> Option<Instant> {
    from.checked_add(duration)
}
