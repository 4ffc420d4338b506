//! Vaults in every condition that a crash can leave, and checks of what must be true afterwards.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::machine::must;
use crate::test_vault::{START, TestVault};

pub const NEXT_DAY: &str = "2026-02-01T12:00:00Z";
const ONE: &[&str] = &["RequirementProposed", "--payload"];

/// A vault as a command finds it.
pub struct Start {
    pub name: &'static str,
    hive: TestVault,
    /// The time at which the next command runs.
    pub now: &'static str,
    /// The intact part of its log, which must never be lost.
    pub kept: Vec<u8>,
    /// An incomplete write after it, which must be moved to quarantine.
    pub torn: Vec<u8>,
}

impl Start {
    fn new(name: &'static str, now: &'static str, hive: TestVault, torn: Vec<u8>) -> Start {
        let mut kept = log(&hive.vault());
        kept.truncate(kept.len() - torn.len());
        Start { name, hive, now, kept, torn }
    }

    /// A copy of the vault in another directory.
    pub fn copy(&self) -> TestVault {
        copy(&self.hive, self.now)
    }

    /// Checks that the intact part is complete, and that the torn part is still in the log or in quarantine.
    pub fn check_kept(&self, vault: &Path) -> Result<(), String> {
        let now = log(vault);
        if !now.starts_with(&self.kept) {
            return Err("LOST: the log no longer begins with its intact part".into());
        }
        if !self.torn.is_empty() && !now[self.kept.len()..].starts_with(&self.torn) && !in_quarantine(vault, &self.torn)
        {
            return Err("LOST: the incomplete write is neither in the log nor in quarantine".into());
        }
        Ok(())
    }

    /// Checks that a successful command has repaired the vault.
    pub fn check_repaired(&self, vault: &Path) -> Result<(), String> {
        self.check_kept(vault)?;
        if !self.torn.is_empty() {
            if !in_quarantine(vault, &self.torn) {
                return Err("the incomplete write is not in quarantine".into());
            }
            // There can be a second event, if the first one was interrupted, too.
            if count(&log(vault), "\"event_type\":\"TailQuarantined\"") == 0 {
                return Err("no event records that an incomplete write was moved to quarantine".into());
            }
        }
        match files(vault).into_iter().find(|path| path.to_string_lossy().ends_with(".tmp")) {
            Some(left) => Err(format!("{} was left behind", left.display())),
            None => Ok(()),
        }
    }
}

/// Copies a hive with its file modes.
pub fn copy(hive: &TestVault, now: &str) -> TestVault {
    let mut copy = TestVault::empty();
    copy.at(now);
    if hive.vault().exists() {
        must("cp", &["-a", &hive.vault().to_string_lossy(), &copy.dir().to_string_lossy()]);
    }
    copy
}

/// An empty directory, for `hf-init`.
pub fn nothing() -> Start {
    Start { name: "nothing", hive: TestVault::empty(), now: START, kept: Vec::new(), torn: Vec::new() }
}

/// The number of conditions in which every command is tested.
pub const STARTS: usize = 4;

/// A vault in one of these conditions; `prepare` brings it to a state in which the command can run.
pub fn start(number: usize, prepare: &dyn Fn(&TestVault)) -> Start {
    let hive = if number == 3 { TestVault::new() } else { clean() };
    prepare(&hive);
    match number {
        0 => Start::new("clean", START, hive, Vec::new()),
        1 => tear("torn tail", START, hive),
        2 => Start::new("rotation", NEXT_DAY, hive, Vec::new()),
        3 => Start::new("first run", START, hive, Vec::new()),
        _ => panic!("must be below {STARTS}"),
    }
}

/// Other conditions that a crash can leave.
pub fn more_starts() -> Vec<Start> {
    vec![half_batch(), torn("torn tail and rotation", NEXT_DAY), unpublished(), missing_head()]
}

pub fn clean() -> TestVault {
    let hive = TestVault::new();
    for title in ["one", "two"] {
        hive.run("append", &[ONE, &[&payload(title)]].concat()).expect_exit(0);
    }
    hive
}

/// Half a line after the published head.
pub fn torn(name: &'static str, now: &'static str) -> Start {
    tear(name, now, clean())
}

fn tear(name: &'static str, now: &'static str, hive: TestVault) -> Start {
    let line = hive.lines().pop().expect("a line");
    let half = line.as_bytes()[..line.len() / 2].to_vec();
    write(&hive.segment(), &[&log(&hive.vault())[..], &half].concat());
    Start::new(name, now, hive, half)
}

fn half_batch() -> Start {
    let hive = clean();
    let (before, head) = (log(&hive.vault()), read(&head(&hive)));
    hive.pipe("append", &["--batch"], batch("old", 3)).expect_exit(0);
    let lines = hive.lines();
    let half: Vec<u8> = lines[3..5].iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    write(&hive.segment(), &[&before[..], &half].concat());
    write(&self::head(&hive), &head);
    Start::new("half batch", START, hive, half)
}

fn unpublished() -> Start {
    let hive = clean();
    let record = read(&head(&hive));
    hive.run("append", &[ONE, &[&payload("three")]].concat()).expect_exit(0);
    write(&head(&hive), &record);
    Start::new("unpublished event", START, hive, Vec::new())
}

fn missing_head() -> Start {
    let hive = clean();
    fs::remove_file(head(&hive)).expect("chain.json was there");
    Start::new("missing chain.json", START, hive, Vec::new())
}

pub fn head(hive: &TestVault) -> PathBuf {
    hive.vault().join("Akashic/chain.json")
}

pub fn payload(title: &str) -> String {
    format!("{{\"title\":\"{title}\"}}")
}

/// The lines of a batch.
pub fn batch(title: &str, length: usize) -> String {
    (1..=length)
        .map(|n| {
            format!("{{\"event_type\":\"RequirementProposed\",\"payload\":{}}}\n", payload(&format!("{title} {n}")))
        })
        .collect()
}

/// All segments, concatenated.
pub fn log(vault: &Path) -> Vec<u8> {
    let events = vault.join("Akashic/events");
    if !events.exists() {
        return Vec::new();
    }
    files(&events).iter().flat_map(|path| read(path)).collect()
}

/// How often each idempotency key occurs in a log.
pub fn keys(log: &[u8]) -> HashMap<String, usize> {
    let mut keys = HashMap::new();
    for line in log.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        // The key of a torn line does not count.
        let event: Value = serde_json::from_slice(line).unwrap_or_default();
        if let Some(key) = event["idempotency_key"].as_str() {
            *keys.entry(key.to_owned()).or_default() += 1;
        }
    }
    keys
}

/// How often a text occurs in a log.
pub fn count(log: &[u8], text: &str) -> usize {
    log.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
}

/// Runs `hf-verify` and reports what is wrong.
pub fn check_verifies(hive: &TestVault) -> Result<(), String> {
    let reply = hive.run("verify", &[]);
    let good = ["\nCHAIN:OK\n", "\nTAIL:CLEAN\n", "\nHEAD:OK\n"].iter().all(|line| reply.stdout.contains(line));
    if reply.code == Some(0) && good { Ok(()) } else { Err(format!("REFUSED to go on: {reply:?}")) }
}

/// Checks that appending an ordinary event works.
pub fn check_goes_on(hive: &TestVault) -> Result<(), String> {
    let reply = hive.run("append", &[ONE, &[&payload("after")]].concat());
    match reply.code == Some(0) && reply.all("STATUS") == ["APPENDED"] {
        true => check_verifies(hive),
        false => Err(format!("REFUSED to go on: {reply:?}")),
    }
}

fn in_quarantine(vault: &Path, bytes: &[u8]) -> bool {
    let folder = vault.join("Akashic/quarantine");
    folder.exists() && files(&folder).iter().any(|path| read(path) == bytes)
}

/// Every file below a directory, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all.sort();
    all
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
