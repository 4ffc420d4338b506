//! Whether a program of a certain name runs on this machine, as far as this user may see.

use std::fs;

const PROCESSES: &str = "/proc";
/// The first process, which everybody may see unless processes of others are hidden.
const FIRST: &str = "/proc/1/comm";

/// Whether a process with one of these names runs; `None` if that cannot be told here.
pub fn is_running(names: &[&str]) -> Option<bool> {
    let is_named = |path: std::path::PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| names.contains(&name.trim_end()))
    };
    let mut all = fs::read_dir(PROCESSES).ok()?.flatten();
    match all.any(|entry| is_named(entry.path())) {
        true => Some(true),
        false => fs::read(FIRST).is_ok().then_some(false),
    }
}
