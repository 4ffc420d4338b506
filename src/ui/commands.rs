//! The commands of the toolkit, each with one line.

/// A command's name without `hf-`, and what it is for.
pub const COMMANDS: &[(&str, &str)] = &[
    ("append", "record events"),
    ("backup", "make a consistent, verified copy of the vault"),
    ("init", "make a vault"),
    ("lineage", "ask why something is as it is, and what came of it"),
    ("log", "read events"),
    ("project", "show the state, list it, rebuild or check its caches"),
    ("verify", "check the hash chain and what it proves"),
];
