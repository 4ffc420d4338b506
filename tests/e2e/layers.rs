//! The layers: imports point left only, and the inner ones are pure.

use std::fs;
use std::path::{Path, PathBuf};

/// From the inside out; layers in one row may not import each other.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["event"],
    &["chain", "machine"],
    &["state"],
    &["policy"],
    &["vault"],
    &["job"],
    &["op"],
    &["reply"],
    &["cli"],
];

/// Up to this row nothing may touch a file, a clock, the environment or the terminal.
const LAST_PURE: &str = "policy";

const IMPURE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::io",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant",
    "println!",
    "eprintln!",
    "getrandom",
];

fn sources(layer: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(layer)];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => dirs.push(path),
                false => files.push((path.clone(), fs::read_to_string(&path).unwrap())),
            }
        }
    }
    assert!(!files.is_empty(), "{layer} has no files");
    files
}

fn row(layer: &str) -> usize {
    LAYERS.iter().position(|row| row.contains(&layer)).unwrap_or_else(|| panic!("{layer} is not a layer"))
}

#[test]
fn imports_point_left_only() {
    for layer in LAYERS.concat() {
        for (path, text) in sources(layer) {
            for part in text.split("crate::").skip(1) {
                let other: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                // A macro of ours stands at the root of the crate.
                let is_macro = part[other.len()..].starts_with('!');
                if other == layer || other.is_empty() || is_macro {
                    continue;
                }
                assert!(row(&other) < row(layer), "{}: {layer} imports {other}", path.display());
            }
        }
    }
}

#[test]
fn the_kernel_imports_no_noun() {
    for (path, text) in sources("op/kernel") {
        assert!(!text.contains("super::super"), "{}: the kernel reaches out", path.display());
        for part in text.split("op::").skip(1) {
            let room: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            assert!(room == "kernel", "{}: the kernel imports {room}", path.display());
        }
    }
}

#[test]
fn no_operation_reads_the_world_by_itself() {
    // Who called, when, on what machine and until when is the front end's to say.
    const WORLD: &[&str] = &[
        "SystemTime",
        "std::env::var",
        "env::args",
        "current_exe",
        "/proc/self/exe",
        "Signals::of",
        "println!",
        "eprintln!",
        "clap::",
        "stdin()",
        "stdout()",
    ];
    for (path, text) in sources("op") {
        let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for word in WORLD {
            assert!(!code.iter().any(|line| line.contains(word)), "{}: {word}", path.display());
        }
    }
}

#[test]
fn the_inner_layers_are_pure() {
    // What a caller is told is a value, too: whoever renders it needs no process.
    for layer in LAYERS.concat().into_iter().filter(|layer| row(layer) <= row(LAST_PURE) || *layer == "reply") {
        for (path, text) in sources(layer) {
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            for impure in IMPURE {
                assert!(!code.iter().any(|line| line.contains(impure)), "{}: {impure}", path.display());
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    for layer in LAYERS.concat().into_iter().chain(["bin"]) {
        for (path, text) in sources(layer) {
            assert!(text.starts_with("//! "), "{}", path.display());
        }
    }
}

#[test]
fn the_arguments_are_read_by_the_parser_alone() {
    let readers = LAYERS.concat().into_iter().flat_map(sources).filter(|(_, text)| text.contains("env::args"));
    let readers: Vec<PathBuf> = readers.map(|(path, _)| path).filter(|path| !path.ends_with("job/tests.rs")).collect();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut expected = vec![src.join("cli/hf.rs"), src.join("cli/main.rs")];
    expected.sort();
    let mut found = readers;
    found.sort();
    assert_eq!(found, expected);
}
