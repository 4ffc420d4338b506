//! The fuzz targets, one file each, with `run(&[u8])`. cargo-fuzz drives them from `fuzz_targets/`, and
//! `tests/fuzz` drives the same functions with its own generator, without cargo-fuzz.
//!
//! To add a target, add a file here, a line in `TARGETS`, a file in `fuzz_targets/`, an entry in
//! `fuzz/Cargo.toml`, and a directory in `seeds/`.

mod config;
mod declaration;
mod event_line;
mod reference;
mod reply;
mod review_reply;
mod signature;
mod statement;

/// A name, which is also the name of its seed directory, and the function that takes the input.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("config", config::run),
    ("declaration", declaration::run),
    ("event_line", event_line::run),
    ("reference", reference::run),
    ("reply", reply::run),
    ("review_reply", review_reply::run),
    ("signature", signature::run),
    ("statement", statement::run),
];
