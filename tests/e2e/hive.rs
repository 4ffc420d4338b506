//! A vault of its own for every test, and the commands to run on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

/// The moment at which tests begin.
pub const START: &str = "2026-01-31T12:00:00Z";

/// A temporary folder, with or without a vault in it.
pub struct Hive {
    dir: TempDir,
    now: String,
}

impl Hive {
    /// A folder without a vault.
    pub fn empty() -> Self {
        Hive { dir: tempfile::tempdir().expect("a temporary folder"), now: START.to_owned() }
    }

    /// A folder with a fresh vault.
    pub fn new() -> Self {
        let hive = Hive::empty();
        hive.run("init", &[]).expect_exit(0);
        hive
    }

    /// Moves the clock of the commands that follow.
    pub fn at(&mut self, now: &str) -> &Self {
        self.now = now.to_owned();
        self
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn vault(&self) -> PathBuf {
        self.dir().join("Vault")
    }

    /// A command with a clean environment, in this folder.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(binary(name));
        command.current_dir(self.dir()).env_clear().env("USER", "jo").env("HF_NOW", &self.now);
        command
    }

    /// Runs `hf-NAME ARGS`.
    pub fn run(&self, name: &str, args: &[&str]) -> Reply {
        Reply::of(self.command(name).args(args).output().expect("the command runs"))
    }

    /// The same with standard input.
    pub fn pipe(&self, name: &str, args: &[&str], input: impl Into<Vec<u8>>) -> Reply {
        Reply::of(self.command(name).args(args).write_stdin(input).output().expect("the command runs"))
    }

    /// Every file of the vault with its content, to show that nothing changed.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        collect(&self.vault(), &mut all);
        all.sort();
        all
    }

    /// The only segment of a young vault.
    pub fn segment(&self) -> PathBuf {
        self.vault().join("Akashic/events/2026-01/2026-01-31.jsonl")
    }

    pub fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.segment()).expect("a segment").lines().map(str::to_owned).collect()
    }
}

fn collect(dir: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        match fs::symlink_metadata(&path).expect("it is there").is_dir() {
            true => collect(&path, all),
            false => all.push((path.clone(), fs::read(&path).unwrap_or_default())),
        }
    }
}

/// The built command, beside this test.
pub fn binary(name: &str) -> PathBuf {
    let file = if name.is_empty() { "hf".to_owned() } else { format!("hf-{name}") };
    assert_cmd::cargo::cargo_bin!("hf").with_file_name(file)
}

/// What a command answered.
#[derive(Debug)]
pub struct Reply {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl Reply {
    pub fn of(output: Output) -> Self {
        Reply {
            stdout: String::from_utf8(output.stdout).expect("replies are UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("replies are UTF-8"),
            code: output.status.code(),
        }
    }

    /// Fails unless the exit code is this one, in the process and in the reply.
    #[track_caller]
    pub fn expect_exit(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(self.stdout.starts_with(&format!("EXIT:{code}\nSTATUS:")), "{self:#?}");
        self
    }

    /// Every value of a key.
    pub fn all(&self, key: &str) -> Vec<&str> {
        self.stdout.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(':')).collect()
    }

    /// The only value of a key.
    #[track_caller]
    pub fn get(&self, key: &str) -> &str {
        match self.all(key).as_slice() {
            [one] => one,
            other => panic!("{key} stands {} times: {self:#?}", other.len()),
        }
    }

    /// Standard output with what differs from run to run replaced: ids, digests, the folder.
    pub fn masked(&self, hive: &Hive) -> String {
        mask(&self.stdout.replace(&hive.dir().display().to_string(), "<dir>"))
    }
}

/// Replaces ULIDs, digests, reference tags and vault ids by their kind.
pub fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let hex = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        masked.push_str(match word.len() {
            26 if word.starts_with('0') => "<ulid>",
            64 if hex => "<digest>",
            32 if hex => "<random>",
            4 if hex && masked.ends_with('@') => "<tag>",
            _ => &word,
        });
        word.clear();
        masked.push(c);
    }
    masked.pop();
    masked
}
