//! A program that cannot outlive the one who asked for it.
//!
//! ```text
//! caller ── lifeline ── attendant: child subreaper, own process group
//!                         program: own process group; KILL if the attendant dies
//! ```
//!
//! The attendant is forked between the caller's fork and the program's exec, and executes nothing. It waits for the end
//! of the program and ends the same way. If the lifeline closes before, because the caller let go of it or died, by
//! whatever signal, it ends the program with everything that it started.
//!
//! When the program ends by itself, the attendant also ends what it left behind, unless that may continue (`Rest`): a
//! hook may start something.
//!
//! An attendant that is killed itself takes only the program along. Its caller then looks for what the program started, by
//! the variable that marks it (`is_clean`). The attendant has a name of its own, so that who kills all processes with
//! the caller's name does not kill both.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, write};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, kill_process, pidfd_open, set_child_subreaper,
    set_parent_process_death_signal, setpgid, waitpid,
};

use super::children;
use super::descendants::{Process, ProcessTable, has_variable, supervises};
use super::tree::{end_all, unique};

/// How long killed processes may take to disappear.
const KILLED_WAIT: Duration = Duration::from_secs(5);

/// The exit code of an attendant that ended everything because the lifeline was closed.
const ENDED_ALL: i32 = 0;
/// The exit code of an attendant that could not end everything, such as a process of another user.
const SOME_LEFT: i32 = 1;

/// What becomes of the processes that a program leaves behind when it ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    Continues,
    /// They are killed before the attendant ends.
    Ends,
}

/// The name of an attendant in a list of processes.
const ATTENDANT_NAME: &[u8] = b"hf-attendant";
/// The variable that marks a program and what it starts: its caller, and how many programs that one has started before.
const MARK_VAR: &str = "HF_ATTENDED";

/// A program that is attended. As long as this exists, and `let_go` was not called, the program may run.
#[derive(Debug)]
pub struct Attended {
    lifeline: Option<UnixStream>,
    rest: Rest,
    mark: OsString,
}

impl Attended {
    /// The program must end, with everything that it started.
    pub fn let_go(&mut self) {
        self.lifeline = None;
    }

    /// After the attendant has ended with this status: whether nothing is left that had to end. What an attendant that was
    /// killed left behind is ended here.
    pub fn is_clean(&self, status: ExitStatus) -> bool {
        match status.code() {
            Some(code) => code == ENDED_ALL || self.lifeline.is_some(),
            None if self.lifeline.is_some() && self.rest == Rest::Continues => true,
            None => {
                let kill = |left: &[Process]| left.iter().for_each(|process| process.signal(Signal::KILL));
                end_all(Duration::ZERO, &|| self.marked(), &kill).is_empty()
            }
        }
    }

    /// The live processes with the mark, and what is below them. A job that the program fired is not part of it.
    fn marked(&self) -> Vec<Process> {
        let table = ProcessTable::read();
        let is_marked = |pid: &i32| has_variable(*pid, &|variable| variable == self.mark.as_bytes());
        let roots: Vec<i32> = table.pids().filter(is_marked).filter(|pid| !is_of_job(&table, *pid)).collect();
        let mut found = table.below(&roots);
        found.extend(roots.iter().filter_map(|pid| table.process(*pid)));
        unique(found)
    }
}

/// Whether a process supervises a job, or is below one that does and is not above this process.
fn is_of_job(table: &ProcessTable, pid: i32) -> bool {
    let me = getpid().as_raw_nonzero().get();
    let above = |pid: i32| std::iter::successors(Some(pid), |pid| table.stat(*pid).map(|stat| stat.parent));
    above(pid).take_while(|pid| *pid > 1).any(|pid| supervises(pid) && !above(me).any(|mine| mine == pid))
}

/// Puts an attendant between the caller and the command. The process that the command spawns is the attendant.
#[expect(unsafe_code, reason = "there is no safe way to fork; see the SAFETY comments")]
pub fn attend(command: &mut Command, rest: Rest) -> io::Result<Attended> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (end, attendants) = UnixStream::pair()?;
    let me = Process::of_pid(getpid().as_raw_nonzero().get()).ok_or(Errno::SRCH)?;
    let mark = format!("{}-{}-{}", me.pid, me.start_ticks, COUNT.fetch_add(1, Ordering::Relaxed));
    command.process_group(0).env(MARK_VAR, &mark);
    let act = move || -> io::Result<()> {
        let attendant = getpid();
        set_child_subreaper(Some(attendant))?;
        // SAFETY: this process has one thread. Its child either returns to `Command`, like the process that `Command`
        // forked, or never.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                setpgid(None, None)?;
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // Checked afterwards: if the attendant died before, there is no signal.
                if getppid() == Some(attendant) { Ok(()) } else { Err(Errno::CANCELED.into()) }
            }
            program => wait_with(program, &attendants, rest),
        }
    };
    // SAFETY: between fork and exec, `act` only makes system calls. It does not allocate, take locks or panic.
    unsafe { command.pre_exec(act) };
    Ok(Attended { lifeline: Some(end), rest, mark: format!("{MARK_VAR}={mark}").into() })
}

/// Gives this process the name of an attendant in a list of processes. Nothing depends on it.
fn take_name() {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let _ = openat(CWD, c"/proc/self/comm", flags, Mode::empty()).and_then(|name| write(name, ATTENDANT_NAME));
}

/// The attendant: waits for the end of the program, and ends.
#[expect(unsafe_code, reason = "nothing that belongs to the caller may run at the exit of this process")]
fn wait_with(program: i32, lifeline: &UnixStream, rest: Rest) -> ! {
    ignore_signals();
    take_name();
    close_all_but(lifeline.as_raw_fd());
    let code = Pid::from_raw(program).map_or(SOME_LEFT, |program| match ends_by_itself(program, lifeline) {
        true => {
            let code = code_of(program);
            if rest == Rest::Ends {
                children::end_descendants(KILLED_WAIT);
            }
            code.unwrap_or_else(end_by_signal)
        }
        false if children::end_descendants(KILLED_WAIT) => ENDED_ALL,
        false => SOME_LEFT,
    });
    // SAFETY: it only ends the process.
    unsafe { libc::_exit(code) }
}

/// Waits for the end of the program; false if the lifeline was closed before.
fn ends_by_itself(program: Pid, lifeline: &UnixStream) -> bool {
    let Ok(program) = pidfd_open(program, PidfdFlags::empty()) else { return false };
    let mut fds = [PollFd::new(&program, PollFlags::IN), PollFd::new(lifeline, PollFlags::IN)];
    loop {
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return false,
            Ok(_) if !fds[1].revents().is_empty() => return false,
            Ok(_) if !fds[0].revents().is_empty() => return true,
            Ok(_) => {}
        }
    }
}

/// The exit code of the program, which has ended; none if a signal ended it.
fn code_of(program: Pid) -> Option<i32> {
    let status = loop {
        match waitpid(Some(program), WaitOptions::empty()) {
            Err(Errno::INTR) => continue,
            found => break found.ok().flatten(),
        }
    };
    status.and_then(|(_, status)| status.exit_status())
}

/// Ends the attendant as a signal ended the program.
fn end_by_signal() -> i32 {
    let _ = kill_process(getpid(), Signal::KILL);
    SOME_LEFT
}

/// Only the lifeline ends the attendant. The caller's handlers must not run here: what they use is about to be closed.
#[expect(unsafe_code, reason = "the actions of every signal are changed")]
fn ignore_signals() {
    for number in 1..=libc::SIGRTMAX() {
        let action = match number {
            // If it were ignored, the kernel would reap the program.
            libc::SIGCHLD => libc::SIG_DFL,
            libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGABRT => libc::SIG_DFL,
            _ => libc::SIG_IGN,
        };
        // SAFETY: these actions run no code. KILL and STOP stay as they are.
        unsafe { libc::signal(number, action) };
    }
}

/// Closes everything that the attendant inherited: who reads what the program writes waits for the end of all copies.
#[expect(unsafe_code, reason = "descriptors of the caller, which this process will not use, are closed by number")]
fn close_all_but(kept: i32) {
    let (kept, last) = (kept as libc::c_uint, libc::c_uint::MAX);
    // SAFETY: nothing in this process uses the copies; their owners are in the caller.
    let close = |from: libc::c_uint, to: libc::c_uint| unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
    if close(kept + 1, last) == 0 && (kept == 0 || close(0, kept - 1) == 0) {
        return;
    }
    // Before Linux 5.9.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1024);
    for number in (0..limit as i32).filter(|&number| number != kept as i32) {
        // SAFETY: as above.
        unsafe { libc::close(number) };
    }
}
