//! What a new process does between its birth and becoming another program: the one place with
//! unsafe code.
//!
//! Invariant: beside standard input, output and error a supervisor inherits nothing and a command
//! its `alive` only (`a_command_inherits_its_alive_file_and_nothing_else`).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal, setsid};

/// What the byte from the supervisor means: become the command.
const GO: u8 = b'g';

/// Who is born.
#[derive(Debug)]
pub enum Birth {
    /// A supervisor, in a session of its own.
    Supervisor,
    /// A command: keeps its `alive`, gets TERM if the thread that forked it ends, and waits at the gate.
    Command { alive: File, gate: ChildGate },
}

/// The supervisor's side of the gate at which a new command waits.
#[derive(Debug)]
pub struct Gate {
    end: UnixStream,
}

/// The command's side of it.
#[derive(Debug)]
pub struct ChildGate {
    end: UnixStream,
    /// The other side's descriptor, of which the child has a copy that would keep the gate from falling shut.
    other: RawFd,
}

impl Gate {
    pub fn new() -> io::Result<(Gate, ChildGate)> {
        let (ours, childs) = UnixStream::pair()?;
        let other = ours.as_raw_fd();
        Ok((Gate { end: ours }, ChildGate { end: childs, other }))
    }

    /// Waits for the new process at the gate; `None` if it did not get there.
    pub fn arrival(&mut self) -> Option<Pid> {
        let mut pid = [0; 4];
        self.end.read_exact(&mut pid).ok()?;
        Pid::from_raw(i32::from_ne_bytes(pid))
    }

    /// Lets it become the command. Without this, dropping the gate ends it.
    pub fn open(mut self) -> io::Result<()> {
        self.end.write_all(&[GO])
    }
}

/// Has the command do its part before it becomes another program.
#[expect(unsafe_code, reason = "there is no safe way to act between fork and exec; reasons stand at each block")]
pub fn prepare(command: &mut Command, birth: Birth) -> io::Result<()> {
    let inherited = descriptors()?;
    let parent = getpid();
    let act = move || -> io::Result<()> {
        for &fd in &inherited {
            // SAFETY: used for one call; a number that is not open any more is an error that is passed over.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
        }
        match &birth {
            Birth::Supervisor => setsid().map(drop)?,
            Birth::Command { alive, gate } => {
                set_parent_process_death_signal(Some(Signal::TERM))?;
                // Asked after that: a parent that died before it sends no signal.
                if getppid() != Some(parent) {
                    return Err(Errno::CANCELED.into());
                }
                fcntl_setfd(alive, FdFlags::empty())?;
                // SAFETY: this process's copy has no owner: the one that owns the number is the parent.
                unsafe { rustix::io::close(gate.other) };
                wait_at(gate)?;
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec `act` makes system calls only, through rustix, which calls the
    // kernel without the C library. It allocates nothing, takes no lock and cannot panic.
    unsafe { command.pre_exec(act) };
    Ok(())
}

/// Says who has come, and waits to be let through.
fn wait_at(gate: &ChildGate) -> io::Result<()> {
    rustix::io::write(&gate.end, &getpid().as_raw_nonzero().get().to_ne_bytes())?;
    let mut byte = [0];
    let read = loop {
        match rustix::io::read(&gate.end, &mut byte) {
            Err(Errno::INTR) => continue,
            read => break read?,
        }
    };
    if read == 1 && byte[0] == GO { Ok(()) } else { Err(Errno::CANCELED.into()) }
}

/// Every open descriptor above standard error: a shell may have left some without CLOEXEC.
fn descriptors() -> io::Result<Vec<RawFd>> {
    let names = fs::read_dir("/proc/self/fd")?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).filter(|&fd| fd > 2).collect())
}
