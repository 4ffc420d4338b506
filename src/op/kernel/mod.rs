//! The kernel: all writes and reads of the vault go through it. It knows none of the other modules of `op`.
//!
//! | module | contents |
//! |---|---|
//! | `context` | the context of a call: vault, caller, project, session, time, cancellation, host |
//! | `transaction` | lock, decide, react, commit, then follow-ups |
//! | `evidence` | reads from the log what a gate rests on |
//! | `settle` | records what is due before anything is decided |
//! | `membership` | which session and project a shell belongs to |
//! | `repeat` | idempotency: a repeated request gets the first reply again |
//! | `recorded` | the outcome of a request |
//! | `view` | the log and its state, for operations that only read |
//!
//! Invariant: nothing here imports another module of `op` (`the_kernel_imports_no_entity_module`).

mod context;
mod evidence;
mod membership;
mod recorded;
mod repeat;
mod settle;
mod transaction;
mod view;

pub use context::{
    Caller, CallersSituation, Context, Departure, GivenSignature, Host, Prompts, SeenStanding, Shell, Signing,
    SupervisorProgram, check_actor,
};
pub(in crate::op) use membership::check_project;
pub use recorded::{Recorded, is_stopped, record_all, record_one};
pub use repeat::{LineNumber, with_line};
pub use transaction::{Added, Committing, FindFollowUp, FollowUp, Mode, Transaction};
pub use view::{View, with_view};
