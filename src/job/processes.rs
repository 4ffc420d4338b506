//! A run while it lasts: its main process, all of its processes, and the pipes for its output.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, child_subreaper, pidfd_open, wait, waitpid};

use super::cgroup::RunGroup;
use super::clock;
use super::descendants::Process;
use super::exit::Ended;
use super::notice::Notice;
use super::signals::Signals;
use super::tree::{KILLED_WAIT, RunTree, SWEEP_EVERY};
use crate::base::Result;

/// How long output is read after the end of the main process.
const DRAIN_MAX: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 64 * 1024;

/// An output stream of the main process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub const ALL: [Stream; 2] = [Stream::Stdout, Stream::Stderr];
}

/// The state of a run that we are ending.
#[derive(Debug)]
struct Termination {
    ended: Ended,
    /// When KILL follows TERM. From then on, whatever is left is killed, until nothing is.
    kill_at: Option<Instant>,
    /// When to stop waiting for killed processes.
    give_up_at: Option<Instant>,
    /// Those that were left at the last look.
    left: Vec<Process>,
}

/// The processes of a run.
#[derive(Debug)]
pub struct RunProcesses {
    tree: RunTree,
    reaper: Reaper,
    /// Readable when the main process has ended. Without it, the end is noticed up to a second later.
    pidfd: Option<OwnedFd>,
    pipes: [Option<OwnedFd>; 2],
    buffer: Vec<u8>,
    stop: Option<Termination>,
    ended_at: Option<Instant>,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ready {
    pub notice: bool,
    pipes: [bool; 2],
}

impl RunProcesses {
    /// The processes of a command that has just started as the leader of its own process group.
    pub fn of_child(mut child: Child, group: Option<RunGroup>) -> RunProcesses {
        let main = Pid::from_child(&child);
        let adopts = child_subreaper().is_ok_and(|set| set.is_some());
        RunProcesses {
            tree: RunTree::new(main, adopts, group),
            reaper: Reaper { main, adopts, status: None },
            pidfd: pidfd_open(main, PidfdFlags::empty()).ok(),
            pipes: [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)],
            buffer: vec![0; READ_BYTES],
            stop: None,
            ended_at: None,
        }
    }

    /// Reaps dead processes, and kills those whose grace period is over. Returns whether the run continues: it has not
    /// ended, and we are not ending it.
    pub fn look(&mut self, now: Instant) -> bool {
        self.reaper.reap();
        if self.reaper.status.is_some() {
            self.ended_at.get_or_insert(now);
        }
        if let Some(stop) = &mut self.stop {
            let is_kill_time = stop.kill_at.is_some_and(|at| now >= at);
            if is_kill_time {
                self.tree.kill();
                self.reaper.reap();
            }
            // While the main process is alive, somebody is left anyway.
            if is_kill_time || self.reaper.status.is_some() {
                stop.left = self.tree.living();
            }
        }
        self.continues()
    }

    fn continues(&self) -> bool {
        self.stop.is_none() && self.ended_at.is_none()
    }

    /// Asks all of them to end.
    pub fn stop(&mut self, ended: Ended, grace: Duration, now: Instant) {
        self.tree.ask();
        let kill_at = clock::after(now, grace);
        let give_up_at = kill_at.and_then(|at| clock::after(at, KILLED_WAIT));
        self.stop = Some(Termination { ended, kill_at, give_up_at, left: self.tree.living() });
    }

    /// How the run ended, if it is over: its main process has ended, its output was read, and if we ended it, nothing else
    /// is left, or cannot be ended.
    pub fn over(&self, now: Instant) -> Option<Ended> {
        let status = self.reaper.status?;
        let drained = self.pipes.iter().all(Option::is_none) || self.drained_at().is_some_and(|at| now >= at);
        if !drained {
            return None;
        }
        match &self.stop {
            None => Some(match status.exit_status() {
                Some(code) => Ended::Exited { code },
                None => Ended::Signalled { signal: status.terminating_signal().unwrap_or_default() },
            }),
            Some(stop) => {
                (stop.left.is_empty() || stop.give_up_at.is_some_and(|at| now >= at)).then(|| stop.ended.clone())
            }
        }
    }

    /// The processes of the run; of one that we ended, also those that could not be ended.
    pub fn into_rest(self) -> (RunTree, Vec<Process>) {
        (self.tree, self.stop.map(|stop| stop.left).unwrap_or_default())
    }

    fn drained_at(&self) -> Option<Instant> {
        self.ended_at.and_then(|at| clock::after(at, DRAIN_MAX))
    }

    /// When to look again if nothing happens before.
    pub fn next_at(&self, now: Instant) -> Option<Instant> {
        let kill_at = self.stop.as_ref().and_then(|stop| stop.kill_at);
        let is_sweeping = self.stop.is_some() && (self.ended_at.is_some() || kill_at.is_some_and(|at| now >= at));
        let sweep_at = is_sweeping.then(|| now + SWEEP_EVERY);
        [kill_at.filter(|&at| at > now), sweep_at, self.drained_at().filter(|&at| at > now)].into_iter().flatten().min()
    }

    /// Waits until something happens or `until`. Once the run is ending, signals and control files no longer matter.
    pub fn wait(&self, until: Option<Instant>, signals: &Signals, notice: &Notice) -> Result<Ready> {
        let continues = self.continues();
        let sources: [Option<BorrowedFd<'_>>; 5] = [
            self.pipes[0].as_ref().map(AsFd::as_fd),
            self.pipes[1].as_ref().map(AsFd::as_fd),
            notice.descriptor().filter(|_| continues),
            self.pidfd.as_ref().filter(|_| self.ended_at.is_none()).map(AsFd::as_fd),
            continues.then(|| signals.as_fd()),
        ];
        let mut fds: Vec<_> = sources.iter().flatten().map(|&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        clock::poll_until(&mut fds, until)?;
        let mut found = fds.iter().map(|fd| !fd.revents().is_empty());
        let [stdout, stderr, notice, ..] = sources.map(|source| source.is_some() && found.next().unwrap_or_default());
        Ok(Ready { notice, pipes: [stdout, stderr] })
    }

    /// Reads what is in a pipe; closes the pipe at its end.
    pub fn read(&mut self, stream: Stream, ready: Ready) -> &[u8] {
        let at = stream as usize;
        let Some(pipe) = self.pipes[at].as_ref().filter(|_| ready.pipes[at]) else { return &[] };
        match rustix::io::read(pipe, &mut self.buffer[..]) {
            Err(Errno::INTR) => &[],
            Ok(0) | Err(_) => {
                self.pipes[at] = None;
                &[]
            }
            Ok(read) => &self.buffer[..read],
        }
    }
}

/// Reaps dead processes: the main process and, in a supervisor, also processes that the job left behind.
#[derive(Debug)]
struct Reaper {
    main: Pid,
    /// Whether this process is a child subreaper, so that all its children belong to the job.
    adopts: bool,
    status: Option<WaitStatus>,
}

impl Reaper {
    fn reap(&mut self) {
        while self.adopts || self.status.is_none() {
            let found = match self.adopts {
                true => wait(WaitOptions::NOHANG),
                false => waitpid(Some(self.main), WaitOptions::NOHANG),
            };
            match found {
                Ok(Some((pid, status))) if pid == self.main => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}
