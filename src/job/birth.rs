//! What a new process does between fork and exec, which needs unsafe code.
//!
//! Invariant: besides standard input, output and error, a supervisor inherits nothing, and a command only its `alive` file
//! (`a_command_inherits_its_alive_file_and_nothing_else`).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal, setsid};

/// The byte that tells the child to become the command.
const GO: u8 = b'g';

/// The role of a new process.
#[derive(Debug)]
pub enum Birth {
    /// A supervisor, in its own session.
    Supervisor,
    /// A command: keeps its `alive` file open, enters the control group of its run, gets TERM if the thread that forked it
    /// ends, and waits at the gate.
    Command { alive: File, entrance: Option<File>, gate: ChildGate },
}

/// The supervisor's side of the gate where a new command waits.
#[derive(Debug)]
pub struct Gate {
    end: UnixStream,
}

/// The command's side of the gate.
#[derive(Debug)]
pub struct ChildGate {
    end: UnixStream,
    /// The supervisor's descriptor. The child closes its copy, or it would not notice that the supervisor is gone.
    other: RawFd,
}

impl Gate {
    pub fn new() -> io::Result<(Gate, ChildGate)> {
        let (ours, childs) = UnixStream::pair()?;
        let other = ours.as_raw_fd();
        Ok((Gate { end: ours }, ChildGate { end: childs, other }))
    }

    /// Waits for the new process to arrive at the gate; `None` if it did not.
    pub fn arrival(&mut self) -> Option<Pid> {
        let mut pid = [0; 4];
        self.end.read_exact(&mut pid).ok()?;
        Pid::from_raw(i32::from_ne_bytes(pid))
    }

    /// Lets the child become the command. If the gate is dropped instead, the child ends.
    pub fn open(mut self) -> io::Result<()> {
        self.end.write_all(&[GO])
    }
}

/// Registers what the new process does before exec.
#[expect(unsafe_code, reason = "there is no safe way to act between fork and exec; see the SAFETY comments")]
pub fn prepare(command: &mut Command, birth: Birth) -> io::Result<()> {
    let inherited = descriptors()?;
    let parent = getpid();
    let act = move || -> io::Result<()> {
        for &fd in &inherited {
            // SAFETY: used for one call; if the descriptor is no longer open, the error is ignored.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
        }
        match &birth {
            Birth::Supervisor => setsid().map(drop)?,
            Birth::Command { alive, entrance, gate } => {
                set_parent_process_death_signal(Some(Signal::TERM))?;
                // Checked afterwards: if the parent died before, there is no signal.
                if getppid() != Some(parent) {
                    return Err(Errno::CANCELED.into());
                }
                fcntl_setfd(alive, FdFlags::empty())?;
                if let Some(entrance) = entrance {
                    // Without it, its supervisor still finds everything below itself.
                    let _ = rustix::io::write(entrance, b"0");
                }
                // SAFETY: nothing in this process owns the copy; the owner of the number is in the parent.
                unsafe { rustix::io::close(gate.other) };
                wait_at(gate)?;
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec, `act` only makes system calls, through rustix, which calls the kernel without the C
    // library. It does not allocate, take locks or panic.
    unsafe { command.pre_exec(act) };
    Ok(())
}

/// Reports the pid and waits for the gate to open.
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

/// All open descriptors above standard error: a shell may have left some without CLOEXEC.
fn descriptors() -> io::Result<Vec<RawFd>> {
    let names = fs::read_dir("/proc/self/fd")?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).filter(|&fd| fd > 2).collect())
}
