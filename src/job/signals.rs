//! Signals that a poll can wait for.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::clock;
use crate::base::{Error, Result};

/// Signals that ask this process to end. They are caught as long as this value lives, and then no longer end the process
/// by themselves.
#[derive(Debug)]
pub struct Signals {
    caught: UnixStream,
    newest: Arc<AtomicUsize>,
    ids: Vec<SigId>,
    /// Keeps the other end open when nothing is caught.
    _end: UnixStream,
}

impl Signals {
    /// For a supervisor: TERM, INT and QUIT ask it to end its job; HUP is ignored. The command it starts has the default
    /// action for all of them, whatever its caller ignored.
    pub fn of_supervisor() -> Result<Signals> {
        let mut signals = Self::catch(&[SIGTERM, SIGINT, SIGQUIT])?;
        let ignored = signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)));
        signals.ids.push(ignored.map_err(|e| failed(&e))?);
        Ok(signals)
    }

    /// For a command that waits: TERM, INT and HUP.
    pub fn of_waiter() -> Result<Signals> {
        Self::catch(&[SIGTERM, SIGINT, SIGHUP])
    }

    /// Catches nothing.
    pub fn none() -> Result<Signals> {
        Self::catch(&[])
    }

    fn catch(numbers: &[i32]) -> Result<Signals> {
        let (caught, end) = UnixStream::pair().map_err(|e| failed(&e))?;
        let mut signals = Signals { caught, newest: Arc::default(), ids: Vec::new(), _end: end };
        for &number in numbers {
            signals.add(number).map_err(|e| failed(&e))?;
        }
        Ok(signals)
    }

    /// Registers the number before the byte that wakes the poll, so that it is set when the poll returns.
    fn add(&mut self, number: i32) -> io::Result<()> {
        let newest = Arc::clone(&self.newest);
        self.ids.push(signal_hook::flag::register_usize(number, newest, number as usize)?);
        self.ids.push(signal_hook::low_level::pipe::register(number, self._end.try_clone()?)?);
        Ok(())
    }

    /// Waits for `max`, or until a signal arrives.
    pub fn pause(&self, max: Duration) -> Result<()> {
        let until = clock::after(clock::now(), max);
        while self.asked().is_none() && until.is_none_or(|until| clock::now() < until) {
            clock::poll_until(&mut [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)], until)?;
        }
        Ok(())
    }

    /// Asks to end as a signal would, for a caller in another thread.
    pub fn ask(&self) -> Result<()> {
        self.newest.store(SIGTERM as usize, Ordering::SeqCst);
        (&self._end).write_all(&[0]).map_err(|e| failed(&e))
    }

    /// The last signal that arrived, if any. It stays set: a request to end is not withdrawn.
    pub fn asked(&self) -> Option<i32> {
        match self.newest.load(Ordering::SeqCst) {
            0 => None,
            number => Some(number as i32),
        }
    }
}

/// Whether a request is cancelled: never, or when a signal arrives or is simulated.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<Arc<Signals>>);

impl Cancel {
    /// Never cancelled.
    pub fn never() -> Cancel {
        Cancel(None)
    }

    /// Cancelled when one of these signals arrives.
    pub fn on(signals: Signals) -> Cancel {
        Cancel(Some(Arc::new(signals)))
    }

    /// The signals to wait for.
    pub fn signals(&self) -> Result<Arc<Signals>> {
        match &self.0 {
            Some(signals) => Ok(Arc::clone(signals)),
            None => Signals::none().map(Arc::new),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.caught.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

fn failed(error: &io::Error) -> Error {
    Error::system("cannot catch signals", error)
}
