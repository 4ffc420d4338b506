//! What is fuzzed: one file each, with `run(&[u8])`. cargo-fuzz drives them from `fuzz_targets/`, and
//! `tests/fuzz` drives the same functions with a generator of its own, where cargo-fuzz is not wanted.
//!
//! A new target is a file here, a line in `TARGETS`, three lines in `fuzz_targets/`, an entry in
//! `fuzz/Cargo.toml`, and a folder of `seeds/`.

mod config;
mod declaration;
mod event_line;
mod reference;
mod reply;
mod review_reply;

/// A name, which is also that of its seeds, and what takes the input.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("config", config::run),
    ("declaration", declaration::run),
    ("event_line", event_line::run),
    ("reference", reference::run),
    ("reply", reply::run),
    ("review_reply", review_reply::run),
];
