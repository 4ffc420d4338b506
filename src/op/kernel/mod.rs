//! The kernel: the one way to write and the one way to read. It knows no noun.
//!
//! | room | what is in it |
//! |---|---|
//! | `context` | what an operation knows of the world: vault, caller, project, session, time, cancellation, host |
//! | `transaction` | lock, decide, react, commit, then what is to be done after a commit |
//! | `settle` | what is due before anything is decided |
//! | `membership` | whose shell a request comes from |
//! | `repeat` | a request that was recorded before gets the reply of the first time |
//! | `recorded` | what came of a request |
//! | `view` | the log and its state, for who only reads |
//!
//! Invariant: nothing here imports another room of `op` (`the_kernel_imports_no_noun`).

mod context;
mod membership;
mod recorded;
mod repeat;
mod settle;
mod transaction;
mod view;

pub use context::{Caller, Context, Host, Shell, SupervisorProgram, check_actor};
pub use recorded::{Recorded, is_stopped, record_one};
pub use repeat::{LineNumber, at};
pub use transaction::{Added, AfterCommit, Committing, FollowUp, Mode, Transaction};
pub use view::{View, with_view};
