//! The layers: imports point left only, and the inner ones are pure.

use std::collections::BTreeMap;
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
                false => files.push((path.clone(), String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned())),
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
                // A macro of ours is at the root of the crate.
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
fn the_kernel_imports_no_entity_module() {
    for (path, text) in sources("op/kernel") {
        assert!(!text.contains("super::super"), "{}: the kernel reaches out", path.display());
        for part in text.split("op::").skip(1) {
            let room: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            assert!(room == "kernel", "{}: the kernel imports {room}", path.display());
        }
    }
}

/// The nouns of `op`: everything but the kernel.
fn nouns() -> Vec<(PathBuf, String)> {
    sources("op").into_iter().filter(|(path, _)| !path.components().any(|part| part.as_os_str() == "kernel")).collect()
}

/// The arguments of a signature, each with its type.
fn arguments(signature: &str) -> Vec<(String, String)> {
    let inside = &signature[signature.find('(').expect("arguments") + 1..];
    let (mut depth, mut all, mut one) = (0, Vec::new(), String::new());
    let mut before = ' ';
    for c in inside.chars() {
        match c {
            '(' | '<' | '[' => depth += 1,
            ')' if depth == 0 => break,
            // The arrow of a callback closes nothing.
            '>' if before == '-' => {}
            ')' | '>' | ']' => depth -= 1,
            ',' if depth == 0 => {
                all.push(std::mem::take(&mut one));
                continue;
            }
            _ => {}
        }
        one.push(c);
        before = c;
    }
    all.push(one);
    let split = |argument: &String| argument.split_once(':').map(|(name, of)| (name.trim().into(), of.trim().into()));
    all.iter().filter_map(split).collect()
}

/// What is wrong with the shape of a public function that is given a context; nothing if it is given none.
fn misshapen(signature: &str, callbacks: &[String]) -> Option<String> {
    if !is_operation(signature) {
        return None;
    }
    let all = arguments(signature);
    if all[0] != ("ctx".to_owned(), "&Context".to_owned()) {
        return Some("the context comes first".to_owned());
    }
    let streams = |of: &str| of.starts_with("&mut dyn ") || callbacks.iter().any(|name| of == format!("{name}<'_>"));
    let asks = |(name, of): &(String, String)| name == "request" && of.trim_start_matches('&').ends_with("Request");
    match &all[1..] {
        [] => None,
        [request] if asks(request) => None,
        [request, (_, of)] if asks(request) && streams(of) => None,
        more => Some(format!("{more:?} is not one request, with at most one callback after it")),
    }
}

/// Every operation as a program names it, such as `task::claim` or `op::verify`.
pub fn operations() -> Vec<String> {
    let op = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/op");
    let rooms = fs::read_to_string(op.join("mod.rs")).unwrap();
    let mut all = Vec::new();
    for (path, text) in nouns() {
        let room = path.strip_prefix(&op).unwrap().components().next().unwrap().as_os_str().to_string_lossy();
        let room = room.trim_end_matches(".rs");
        let room = if rooms.contains(&format!("pub mod {room};")) { room } else { "op" };
        for signature in signatures(&text).filter(|signature| is_operation(signature)) {
            all.push(format!("{room}::{}", signature.split(['(', '<']).next().unwrap_or_default()));
        }
    }
    all
}

/// The public functions at the margin of a file: whatever can be called from outside. What is for `op` alone says so.
fn signatures(text: &str) -> impl Iterator<Item = &str> {
    text.split("\npub fn ").skip(1)
}

fn is_operation(signature: &str) -> bool {
    arguments(signature).iter().any(|(_, of)| of == "&Context")
}

#[test]
fn every_operation_takes_a_request() {
    let all = nouns();
    let is_callback = |line: &&str| line.starts_with("pub type ") && line.contains("<'a> = &'a mut dyn FnMut(");
    let named = |line: &str| line.trim_start_matches("pub type ").split('<').next().unwrap_or_default().to_owned();
    let everywhere = [sources("vault"), all.clone()].concat();
    let callbacks: Vec<String> =
        everywhere.iter().flat_map(|(_, text)| text.lines().filter(is_callback).map(named)).collect();
    for (path, text) in &all {
        for signature in signatures(text) {
            let name = signature.split(['(', '<']).next().unwrap_or_default();
            assert_eq!(misshapen(signature, &callbacks), None, "{}: {name}", path.display());
        }
    }
    let found = operations();
    assert!(found.len() > 70, "this test looks past most of them: {found:?}");
    for positional in [
        "fail(ctx: &Context, reference: &str) -> Result<Recorded> {",
        "fail(ctx: &Context, request: FailRequest, key: Option<String>) -> Result<Recorded> {",
        "fail(ctx: &Context, request: FailRequest, begins: bool) -> Result<Recorded> {",
        "fail(request: FailRequest, ctx: &Context) -> Result<Recorded> {",
        "fail(ctx: &Context, tell: &mut dyn FnMut(&str) -> Result<()>) {",
        "log(ctx: &Context, request: LogRequest, a: &mut dyn FnMut(), b: &mut dyn FnMut()) {",
    ] {
        assert!(misshapen(positional, &callbacks).is_some(), "{positional}");
    }
}

#[test]
fn a_request_has_one_meaning() {
    let mut places: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, text) in nouns() {
        for part in text.split("\npub struct ").skip(1) {
            let name: String = part.chars().take_while(|c| c.is_alphanumeric()).collect();
            if name.ends_with("Request")
                && let Some(other) = places.insert(name.clone(), path.clone())
            {
                panic!("{name} is in {} and in {}", other.display(), path.display());
            }
        }
    }
}

#[test]
fn no_operation_reads_its_environment_directly() {
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
    // What a caller is told is a value, too: rendering it needs no process.
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
fn only_the_parser_reads_the_arguments() {
    let readers = LAYERS.concat().into_iter().flat_map(sources).filter(|(_, text)| text.contains("env::args"));
    let readers: Vec<PathBuf> = readers.map(|(path, _)| path).filter(|path| !path.ends_with("job/tests.rs")).collect();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut expected = vec![src.join("cli/hf.rs"), src.join("cli/main.rs")];
    expected.sort();
    let mut found = readers;
    found.sort();
    assert_eq!(found, expected);
}

/// Names that every command has in its own file.
const OWN_NAMES: &[&str] = &["Args", "Verb"];

/// The type that a line of the macro `views!` in src/state/typed.rs declares: `Task of Task by as_task {`.
fn view_name(line: &str) -> Option<&str> {
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        [name, "of", _, "by", as_view, "{"] if as_view.starts_with("as_") => Some(name),
        _ => None,
    }
}

#[test]
fn each_type_name_is_defined_once() {
    let (mut defined, mut views) = (BTreeMap::<String, Vec<PathBuf>>::new(), 0);
    for (path, text) in sources("") {
        for line in text.lines().filter(|line| !line.starts_with("    type ")) {
            let words = line.trim().trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
            let mut words = words.trim_start_matches("pub ").split(' ');
            if let (Some("struct" | "enum" | "trait" | "type"), Some(rest)) = (words.next(), words.next()) {
                let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
                defined.entry(name).or_default().push(path.clone());
            }
            if let Some(name) = view_name(line) {
                defined.entry(name.to_owned()).or_default().push(path.clone());
                views += 1;
            }
        }
    }
    assert!(views > 10, "{views} views");
    assert!(defined.len() > 200, "{} types", defined.len());
    defined.retain(|name, files| files.len() > 1 && !name.is_empty() && !OWN_NAMES.contains(&name.as_str()));
    // An associated type is no definition of ours.
    defined.remove("Target");
    assert_eq!(defined, BTreeMap::new());
}

/// All test files, and their text.
fn test_files() -> Vec<(PathBuf, String)> {
    sources("../tests").into_iter().filter(|(path, _)| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

#[test]
fn every_test_named_in_a_comment_exists() {
    let all: Vec<(PathBuf, String)> = sources("").into_iter().chain(test_files()).collect();
    let is_defined = |name: &str| all.iter().any(|(_, text)| text.contains(&format!("fn {name}(")));
    let mut named = 0;
    for (path, text) in sources("") {
        for line in text.lines().filter(|line| line.trim_start().starts_with("//")) {
            let words = line.split('`').skip(1).step_by(2);
            // A sentence: a member or a setting has fewer words.
            let sentences = words.filter(|word| {
                word.bytes().filter(|b| *b == b'_').count() >= 4
                    && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
            });
            for name in sentences {
                assert!(is_defined(name), "{}: there is no test {name}", path.display());
                named += 1;
            }
        }
    }
    assert!(named > 20, "only {named} tests are named");
}

#[test]
fn test_files_stay_short() {
    for (path, text) in test_files() {
        assert!(text.lines().count() <= 650, "{} has {} lines", path.display(), text.lines().count());
    }
}
