//! Ends everything below a process that is a child subreaper: whatever sessions or groups its descendants made, each that
//! dies leaves its children to the subreaper, so killing its own children until it has none ends the whole tree.
//!
//! No signal can reach a stranger: a child keeps its pid until its parent reaps it, and the parent is the one who looks.
//!
//! The supervisor of a job, and what is below it, is left out: a job outlives the one who fired it. It is known by its
//! arguments and by the lock that it holds, as in `descendants`.
//!
//! Nothing here allocates or takes a lock, so that a process may use it between fork and exec.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, RawDir, openat, readlinkat_raw};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use super::clock;
use super::detach::is_supervisors;
use super::files::task_of_held_file;

const PROCESSES: &CStr = c"/proc";
/// How often to look again: there is no notification for a child that is inherited.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// Enough for `/proc/PID/stat` up to the parent: the name of a program has at most 64 bytes there.
const STAT_BYTES: usize = 256;
const ENTRIES_BYTES: usize = 4096;
/// The longest path that Linux knows.
const PATH_BYTES: usize = 4096;
/// Enough for the first two arguments of a program, of which the first may be a path.
const ARGUMENTS_BYTES: usize = PATH_BYTES + 64;
/// Enough for what the kernel tells about an open file and its locks.
const INFO_BYTES: usize = 1024;

/// Kills and reaps every descendant of this process, which must be a child subreaper with no other children. Returns
/// whether none is left; those of another user may be, after `max`.
pub fn end_descendants(max: Duration) -> bool {
    let until = clock::after(clock::now(), max);
    loop {
        let mut is_quiet = true;
        reap();
        each_child(|child| {
            is_quiet = false;
            // Fails if it belongs to another user.
            let _ = kill_process(child, Signal::KILL);
        });
        if is_quiet {
            return true;
        }
        if until.is_none_or(|until| clock::now() >= until) {
            return false;
        }
        let _ = poll(&mut [], Some(&LOOK_EVERY));
    }
}

/// Reaps the children that have ended.
fn reap() {
    while let Ok(Some(_)) | Err(Errno::INTR) = wait(WaitOptions::NOHANG) {}
}

/// Calls `act` with every child of this process that supervises no job.
fn each_child(mut act: impl FnMut(Pid)) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(processes) = openat(CWD, PROCESSES, flags, Mode::empty()) else { return };
    let me = getpid().as_raw_nonzero().get();
    let mut buffer = [MaybeUninit::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(&processes, &mut buffer);
    while let Some(entry) = entries.next() {
        let Ok(entry) = entry else { return };
        let name = entry.file_name().to_bytes();
        if let Some(pid) = number(name).and_then(Pid::from_raw)
            && parent_of(&processes, name) == Some(me)
            && !supervises(&processes, name)
        {
            act(pid);
        }
    }
}

/// The parent of the process with this name in `/proc`.
fn parent_of(processes: &OwnedFd, name: &[u8]) -> Option<i32> {
    let mut stat = [0; STAT_BYTES];
    let file = open_at(processes, &[name, b"stat"], OFlags::RDONLY)?;
    let bytes = retry_on_intr(|| read(&file, &mut stat)).ok()?;
    parent_in(&stat[..bytes])
}

/// Whether the process with this name in `/proc` supervises a job. Looks twice: a supervisor that is just starting moves the
/// lock from one descriptor to another.
fn supervises(processes: &OwnedFd, name: &[u8]) -> bool {
    has_arguments(processes, name) && (holds_lock(processes, name) || holds_lock(processes, name))
}

fn has_arguments(processes: &OwnedFd, name: &[u8]) -> bool {
    let mut arguments = [0; ARGUMENTS_BYTES];
    let Some(file) = open_at(processes, &[name, b"cmdline"], OFlags::RDONLY) else { return false };
    let bytes = retry_on_intr(|| read(&file, &mut arguments)).unwrap_or(0);
    is_supervisors(&arguments[..bytes])
}

fn holds_lock(processes: &OwnedFd, name: &[u8]) -> bool {
    let Some(open) = open_at(processes, &[name, b"fd"], OFlags::RDONLY | OFlags::DIRECTORY) else { return false };
    let mut buffer = [MaybeUninit::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(&open, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let mut path = [MaybeUninit::uninit(); PATH_BYTES];
        let is_lock = readlinkat_raw(&open, entry.file_name(), &mut path)
            .is_ok_and(|(path, _)| task_of_held_file(Path::new(OsStr::from_bytes(path))).is_some());
        if is_lock && is_locked(processes, name, entry.file_name().to_bytes()) {
            return true;
        }
    }
    false
}

/// Whether an open file of a process is locked by it.
fn is_locked(processes: &OwnedFd, process: &[u8], file: &[u8]) -> bool {
    let mut info = [0; INFO_BYTES];
    let Some(opened) = open_at(processes, &[process, b"fdinfo", file], OFlags::RDONLY) else { return false };
    let bytes = retry_on_intr(|| read(&opened, &mut info)).unwrap_or(0);
    let text = str::from_utf8(&info[..bytes]).unwrap_or_default();
    text.lines().any(|line| line.starts_with("lock:") && line.contains(" WRITE "))
}

/// Opens a path below `/proc`.
fn open_at(processes: &OwnedFd, names: &[&[u8]], flags: OFlags) -> Option<OwnedFd> {
    let mut path = [0; 64];
    let mut end = 0;
    for name in names {
        path.get_mut(end..end + name.len())?.copy_from_slice(name);
        end += name.len() + 1;
        *path.get_mut(end - 1)? = b'/';
    }
    *path.get_mut(end.checked_sub(1)?)? = 0;
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    openat(processes.as_fd(), path, flags | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// The parent in the contents of a `stat` file. The name of the program, in parentheses, may contain anything.
fn parent_in(stat: &[u8]) -> Option<i32> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = stat[after_name..].split(|&byte| byte == b' ').filter(|field| !field.is_empty());
    number(fields.nth(1)?)
}

fn number(digits: &[u8]) -> Option<i32> {
    match digits.first()?.is_ascii_digit() {
        true => str::from_utf8(digits).ok()?.parse().ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_and_spaces_does_not_shift_the_parent() {
        assert_eq!(parent_in(b"77 (a) R 1 2) S 12 70 60 0 -1"), Some(12));
        assert_eq!(parent_in(b"77 (sh) S"), None);
        assert_eq!(parent_in(b""), None);
    }
}
