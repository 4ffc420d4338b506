//! The edge: arguments, environment and clock in, one report out, one exit code.
//!
//! Every command is `run::<Args>(|args, env| …)`: only this layer parses, writes and maps errors.

mod args;
pub mod branch;
pub mod commands;
mod env;
pub mod graph;
mod key;
mod next;
pub mod outcome;
mod progress;
mod report;
mod run;
pub mod show;
mod status;

pub use args::{
    Acting, Agentic, Cli, Common, Keyed, Paged, Projected, on_terminal, parse_seconds, read_lines, read_text,
};
pub use env::Outer;
pub use key::Key;
pub use next::Next;
pub use progress::ProgressBar;
pub use report::Report;
pub use run::{Out, Output, report_error, run};
pub use status::Status;
