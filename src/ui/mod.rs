//! The edge: arguments, environment and clock in, one report out, one exit code.
//!
//! Every command is `run::<Args>(|args, env| …)`: only this layer parses, writes and maps errors.

mod args;
pub mod commands;
mod env;
mod next;
mod report;
mod run;

pub use args::{Acting, Cli, Common, read_lines};
pub use env::Outer;
pub use next::Next;
pub use report::{Key, Report, Status};
pub use run::{Out, Output, run};
