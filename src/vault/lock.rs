//! The vault's lock: flock on `Akashic/.lock`, held by whoever appends. The file is never unlinked.
//!
//! Waiting is done by a thread that blocks in flock, so that nothing spins and the wait has an end.

use std::fs::File;
use std::io::ErrorKind as IoKind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fs2::FileExt;

use crate::base::{Error, ErrorKind, Result};

/// Held for as long as this value lives; the kernel lets go when the process dies.
#[derive(Debug)]
pub struct LockGuard {
    _file: File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Exclusive,
    Shared,
}

/// Takes the lock, waiting at most `timeout`.
pub fn take(file: File, mode: Mode, timeout: Duration) -> Result<LockGuard> {
    let contended = fs2::lock_contended_error().kind();
    loop {
        let tried = match mode {
            Mode::Exclusive => FileExt::try_lock_exclusive(&file),
            Mode::Shared => FileExt::try_lock_shared(&file),
        };
        match tried {
            Ok(()) => return Ok(LockGuard { _file: file }),
            Err(e) if e.kind() == IoKind::Interrupted => continue,
            Err(e) if e.kind() == contended => break,
            Err(e) => return Err(Error::system("cannot lock the vault", e)),
        }
    }
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::Builder::new().spawn(move || {
        let locked = loop {
            let blocked = match mode {
                Mode::Exclusive => FileExt::lock_exclusive(&file),
                Mode::Shared => FileExt::lock_shared(&file),
            };
            match blocked {
                Err(e) if e.kind() == IoKind::Interrupted => continue,
                other => break other,
            }
        };
        // If nobody waits any more, the file is dropped here and with it the lock.
        let _ = sender.send(locked.map(|()| file));
    });
    waiter.map_err(|e| Error::system("cannot wait for the vault's lock", e))?;
    match receiver.recv_timeout(timeout) {
        Ok(Ok(file)) => Ok(LockGuard { _file: file }),
        Ok(Err(e)) => Err(Error::system("cannot lock the vault", e)),
        Err(_) => Err(Error::new(
            ErrorKind::Busy,
            format!("another command has held the vault's lock for {} seconds", timeout.as_secs()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_busy_and_a_released_one_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::options().create(true).truncate(false).write(true).open(dir.path().join("lock")).unwrap();
        let held = take(open(), Mode::Exclusive, Duration::ZERO).unwrap();
        let busy = take(open(), Mode::Exclusive, Duration::from_millis(1)).unwrap_err();
        assert_eq!(busy.kind, ErrorKind::Busy);
        let waiting = thread::spawn({
            let file = open();
            move || take(file, Mode::Shared, Duration::from_secs(60)).map(drop)
        });
        drop(held);
        waiting.join().unwrap().unwrap();
    }
}
