//! Commands that outlive their caller. This layer knows processes and files, but not events.
//!
//! ```text
//! caller        lock ──────────────┐ passed on as descriptor 0, held without a gap
//! supervisor    lock held until after the exit record; session leader, child subreaper
//!   command     `alive` held; own process group; TERM if the supervisor dies
//! ```
//!
//! A run: reserve the exit record → create the log and `alive` → fork; the child waits at a gate → publish its identity
//! → check the control files → open the gate → wait in one poll → write the exit record. After that, the supervisor
//! releases the lock.
//!
//! | lock | exit record | `alive` or the main process | liveness |
//! |---|---|---|---|
//! | held | - | - | Supervised |
//! | free | of this run | - | Ended |
//! | free | none | alive, in this boot | Orphaned |
//! | free | none | - | Lost |
//!
//! | module | what it does |
//! |---|---|
//! | `files` | the directory `Jobs/<task id>/` |
//! | `spec`, `identity`, `exit` | the records in it |
//! | `lock` | the lock of a job |
//! | `detach`, `birth` | start a supervisor, or another detached process; what it does between fork and exec |
//! | `run`, `processes` | a run while it lasts; `notice` watches control files, `signals` catches signals |
//! | `tree`, `descendants`, `cgroup` | all processes of a run, and how they are ended |
//! | `leftover` | the processes that an ended run left behind |
//! | `log`, `lines` | the output of the command |
//! | `probe`, `orphan` | find out whether a job is alive; end one that lost its supervisor, signal one that has one |
//! | `wait` | waits for jobs to end |
//! | `bind` | the files that a command names |
//! | `ask` | runs a short command, such as a hook |
//! | `attend`, `children` | a program that cannot outlive its caller; ends everything below a process |
//! | `service` | whether a program of a certain name runs |
//! | `clock` | the monotonic clock |
//!
//! **Invariant: whether a job is alive is decided by locks that the kernel releases, never by a pid alone**
//! (`a_supervisor_killed_with_9_leaves_an_orphan_that_can_be_ended`).

mod ask;
mod attend;
mod bind;
mod birth;
mod cgroup;
mod children;
mod clock;
mod descendants;
mod detach;
mod exit;
mod files;
mod identity;
mod leftover;
mod lines;
mod lock;
mod log;
mod notice;
mod orphan;
mod probe;
mod processes;
mod run;
mod service;
mod signals;
mod spec;
#[cfg(test)]
mod tests;
mod tree;
mod wait;

pub use ask::{Answer, Interruption, OUTPUT_MAX_BYTES, OWNER_VARS, Program, ask, ask_for, ask_on_terminal, ask_unless};
pub use bind::{DEFAULT_PATH, find_program, named_files};
pub use clock::now as moment;
pub use detach::{SUPERVISE, StartWith, SupervisorProgram, start_detached, start_supervisor, take_over};
pub use exit::{Ended, ExitRecord, LogSize};
pub use files::{CancelReason, JobDir};
pub use identity::Identity;
pub use leftover::Leftover;
pub use lock::JobLock;
pub use orphan::{end_rest, has_rest, kill_orphan, rest, signal_supervisor};
pub use probe::{JobLiveness, probe, probe_locked};
pub use run::{Halt, JobRun, Observer, RunOutcome};
pub use service::is_running;
pub use signals::{Cancel, Signals};
pub use spec::{Beat, RawText, RunCommand, RunEnvironment, Spec};
pub use tree::RunTree;
pub use wait::{ControlWatch, Need, Waited, wait_for_end, wait_for_rest};
