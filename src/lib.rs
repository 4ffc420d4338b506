//! HiveForge: a flight recorder and heartbeat for autonomous agents.
//!
//! One library and a set of small commands on top of it. The layers, from the inside out:
//!
//! ```text
//! base → event → chain, machine → state, policy → vault → job → op → reply → cli → bin
//! ```
//!
//! | layer | contents |
//! |---|---|
//! | `base` | names, ids, time, text, limits, errors |
//! | `event` | the closed list of event kinds, the envelope, strict parsing of JSON |
//! | `chain` | hash links, the head record, the possible forms of a log's tail |
//! | `machine` | one table of transitions per entity |
//! | `state` | the fold: events in, entities out |
//! | `policy` | which events are allowed next, and which follow automatically |
//! | `vault` | files: lock, segments, head, recovery, verification, backup |
//! | `job` | a command that outlives its caller: lock, supervisor, a single attempt and how it ended |
//! | `op` | one function per command: lock, read, decide, append, outcome |
//! | `reply` | the reply to the caller: a value, and its renderings as text, JSON and tables |
//! | `cli` | one file per command: its arguments, and how they become a request |
//!
//! **Invariant: imports point left only**, and up to `policy` nothing touches a file, a clock, the
//! environment or the terminal (checked by `tests/e2e/docs/layers.rs` and `clippy.toml`).

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
