//! HiveForge: a flight recorder and a heartbeat for autonomous agents.
//!
//! One library under a set of small commands. The layers, from the inside out:
//!
//! ```text
//! base → event → chain, machine → state, policy → vault → job → op → reply → cli → bin
//! ```
//!
//! | layer | room for |
//! |---|---|
//! | `base` | names, ids, time, text, limits, errors |
//! | `event` | the closed list of event kinds, the envelope, strict intake of JSON |
//! | `chain` | hash links, the head record, what a log's tail may look like |
//! | `machine` | one table of transitions per entity |
//! | `state` | the fold: events in, entities out |
//! | `policy` | what may happen next, and what follows from it |
//! | `vault` | files: lock, segments, head, recovery, verification, backup |
//! | `job` | a command that outlives its caller: lock, supervisor, one attempt, its end |
//! | `op` | one function per command: lock, read, decide, append, outcome |
//! | `reply` | what a caller is told: a value, and its renderings as text, JSON and tables |
//! | `cli` | one file per command: its arguments, and how they become a request |
//!
//! **Invariant: imports point left only**, and up to `policy` nothing touches a file, a clock, the
//! environment or the terminal (held by `tests/e2e/docs/layers.rs` and `clippy.toml`).

pub mod base;
pub mod chain;
pub mod cli;
pub mod event;
pub mod job;
pub mod machine;
pub mod op;
pub mod policy;
pub mod reply;
pub mod state;
pub mod vault;
