//! A command that outlives its caller. Knows processes and files, not events or tasks.
//!
//! ```text
//! caller        lock ──────────────┐ passed on as descriptor 0, without a gap
//! supervisor    lock held until after the exit record; session leader, child subreaper
//!   command     `alive` held; own process group; TERM if the supervisor dies
//! ```
//!
//! One attempt: reserve the exit record → make the log and `alive` → fork, held at a gate →
//! publish the identity → look at the control files → open the gate → wait in one poll → write
//! the exit record. The lock is let go by whoever called, after that.
//!
//! | lock | exit record | `alive` or the main process | standing |
//! |---|---|---|---|
//! | held | - | - | Supervised |
//! | free | of this run | - | Ended |
//! | free | none | lives, in this boot | Orphaned |
//! | free | none | - | Lost |
//!
//! | room | what is in it |
//! |---|---|
//! | `files` | the folder `Jobs/<task id>/` |
//! | `spec`, `identity`, `exit` | its records |
//! | `lock` | the lock as a value |
//! | `detach`, `birth` | starting a supervisor; what a new process does before it is another program |
//! | `run`, `processes` | one attempt, and its processes; `notice` tells it of control files, `signals` of signals |
//! | `log`, `lines` | what the command printed |
//! | `probe`, `orphan` | how a job stands; ending what lost its supervisor |
//! | `wait` | waiting for the end of jobs |
//! | `ask` | a short command beside us, such as a hook |
//! | `clock` | durations |
//!
//! **Invariant: a job is judged by locks that the kernel lets go, never by a pid alone**
//! (`a_supervisor_killed_with_9_leaves_an_orphan_that_can_be_ended`).

mod ask;
mod birth;
mod clock;
mod detach;
mod exit;
mod files;
mod identity;
mod lines;
mod lock;
mod log;
mod notice;
mod orphan;
mod probe;
mod processes;
mod run;
mod signals;
mod spec;
#[cfg(test)]
mod tests;
mod wait;

pub use ask::{Answer, ask};
pub use clock::now as moment;
pub use detach::{SupervisorProgram, start_supervisor, take_over};
pub use exit::{Ended, ExitRecord, LogSize};
pub use files::{CancelReason, JobDir};
pub use identity::Identity;
pub use lock::JobLock;
pub use orphan::kill_orphan;
pub use probe::{JobLiveness, probe};
pub use run::{Halt, Observer, Run, RunOutcome};
pub use signals::{Cancel, Signals};
pub use spec::{Beat, RawText, Spec};
pub use wait::{ControlWatch, Need, Waited, wait_for_end};
