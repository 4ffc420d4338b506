//! The edge: arguments, environment and clock in, one report out, one exit code.
//!
//! Every command is `run::<Args>(|args, env| …)`: only this layer parses, writes and maps errors.

mod args;
pub mod commands;
mod env;
pub mod graph;
mod next;
pub mod outcome;
mod progress;
mod report;
mod run;
pub mod show;

pub use args::{Acting, Agentic, Cli, Common, Keyed, Paged, on_terminal, parse_seconds, read_lines, read_text};
pub use env::Outer;
pub use next::Next;
pub use progress::ProgressBar;
pub use report::{Key, Report, Status};
pub use run::{Out, Output, report_error, run};
