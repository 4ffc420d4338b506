//! The commands as their users meet them: real files, real processes, whole replies.
//!
//! - `commands`: each command by itself, one file or folder per command.
//! - `rules`: what must be true whatever the command: policy, time, storage, crashes, concurrency, random models.
//! - `docs`: what is written down is what happens: manual, README, replies, scripts, source layers.
//! - `support`: fixtures for the other three; no tests.

mod commands;
mod docs;
mod rules;
mod support;
