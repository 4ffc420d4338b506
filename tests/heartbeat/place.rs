//! A vault and an `ai-works/` tree in a directory of their own, and the watchdog that looks at them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::clock::time;
use crate::judge::compare::{Said, Wrong};
use crate::timeline::Timeline;
use crate::tree::Deed;

/// The parent directory of the places: in memory if possible, since nothing here is about power cuts.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if tempfile::tempfile_in(&memory).is_ok() { memory } else { std::env::temp_dir() }
}

pub struct Place<'a> {
    binary: &'a Path,
    timeline: &'a Timeline,
    dir: TempDir,
    /// How far each file of the log has been read.
    read: BTreeMap<PathBuf, u64>,
}

/// A path and what is there: the bytes of a file, or the target of a link.
pub type Snapshot = BTreeMap<PathBuf, Vec<u8>>;

impl<'a> Place<'a> {
    pub fn new(binary: &'a Path, timeline: &'a Timeline) -> Place<'a> {
        let dir = tempfile::tempdir_in(folder()).expect("a directory");
        let mut place = Place { binary, timeline, dir, read: BTreeMap::new() };
        fs::create_dir_all(place.path("home")).expect("a directory");
        fs::create_dir_all(place.path("ai-works")).expect("a directory");
        if timeline.seed.is_multiple_of(2) {
            for name in ["stats/checkpoints", "stats/deep_work", "artifacts/brand/histories"] {
                fs::create_dir_all(place.path("ai-works").join(name)).expect("a directory");
            }
        }
        let made = place.command(timeline.start - 1, &["init"]).output().expect("the command runs");
        assert!(made.status.success(), "{made:?}");
        let zone = if timeline.zone == crate::zone::Zone::Utc { "utc" } else { "local" };
        let settings = format!("liveness:\n  timezone: {zone}\n  strict_max_minutes: {}\n", timeline.strict_max);
        let file = place.path("Vault/hiveforge.config.yaml");
        fs::write(&file, settings).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("our own file");
        place.fresh();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, now: i64, args: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        let machine = &self.timeline.machine;
        command.args(args).current_dir(self.dir.path()).env_clear();
        command.envs([("PATH", "/usr/bin:/bin"), ("TZ", self.timeline.zone.name()), ("HF_NOW", &time(now))]);
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("home"));
        command.env("HF_SLEPT", machine.slept(now).to_string()).env("HF_BOOT", machine.boot(now).to_string());
        command
    }

    /// Does a deed to the files. What the watchdog renamed meanwhile is not there any more, and is left alone.
    pub fn perform(&self, deed: &Deed) {
        let path = |path: &str| {
            let path = self.path("ai-works").join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            path
        };
        match deed {
            Deed::Write { path: to, text } => {
                // As an atomic write does it: whole, or not at all.
                let aside = self.path("home/written");
                fs::write(&aside, text).expect("a file");
                match to.strip_prefix("../") {
                    Some(outside) => {
                        let outside = self.path(outside);
                        fs::create_dir_all(outside.parent().expect("a parent")).expect("a directory");
                        fs::rename(aside, outside).expect("the same disk");
                    }
                    None => fs::rename(aside, path(to)).expect("the same disk"),
                }
            }
            Deed::Remove(name) => {
                let path = path(name);
                let removed =
                    if path.is_dir() && !path.is_symlink() { fs::remove_dir(path) } else { fs::remove_file(path) };
                // Already renamed.
                drop(removed);
            }
            Deed::Rename { from, to } if path(from).exists() => fs::rename(path(from), path(to)).expect("our own file"),
            Deed::Rename { .. } => {}
            Deed::Link { path: at, target } => symlink(self.path("elsewhere").join(target), path(at)).expect("a link"),
            Deed::Folder(at) => fs::create_dir_all(path(at)).expect("a directory"),
            Deed::Forget => {
                let caches =
                    fs::read_dir(self.path("Vault/Akashic")).expect("a vault").map(|entry| entry.expect("one").path());
                for cache in caches.filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
                    fs::remove_file(cache).expect("our own file");
                }
            }
        }
    }

    /// One tick, or a look that changes nothing. `paths` are asked for afterwards.
    pub fn tick(&mut self, now: i64, check: bool, paths: &[&String]) -> Result<Said, Wrong> {
        let mut args = vec!["watchdog", "--works", "ai-works", "--json"];
        args.extend(check.then_some("--check"));
        let output = self.command(now, &args).output().expect("the command runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let reply: Value = serde_json::from_str(&text)
            .map_err(|_| Wrong::new("no JSON", format!("{:?}\n{text}\n{errors}", output.status)))?;
        let Some(anomalies) = reply["anomalies"].as_array() else {
            return Err(Wrong::new("no report", format!("{:?}\n{text}\n{errors}", output.status)));
        };
        let mut said = Said { exit: output.status.code().unwrap_or(-1), ..Said::default() };
        said.status = reply["status"].as_str().unwrap_or_default().to_owned();
        said.heartbeat_id = reply["heartbeat_id"].as_str().unwrap_or_default().to_owned();
        for anomaly in anomalies {
            let text = |member: &str| anomaly[member].as_str().unwrap_or_default().to_owned();
            let (code, level) = (text("code"), text("level"));
            let known = said.codes.entry(code.clone()).or_insert_with(|| level.clone());
            if level == "error" || known == "notice" {
                *known = level;
            }
            if let Some(seconds) = anomaly["seconds"].as_i64() {
                said.seconds.insert(code.clone(), seconds);
            }
            let details = said.details.entry(code).or_default();
            *details += &text("detail");
            details.push('\n');
        }
        if !check {
            self.take_events(&mut said);
            said.there = paths
                .iter()
                .filter(|path| self.path("ai-works").join(path).exists())
                .map(|path| (**path).clone())
                .collect();
            let written = fs::read_to_string(self.path("ai-works/stats/current_heartbeat_id.txt")).unwrap_or_default();
            let id = self.timeline.zone.id(now);
            // In the hour that occurs twice, no id may be given twice: the first ones are even, the second ones odd.
            let readings = self.timeline.zone.readings(&id);
            let is_shifted = |shift: i64| {
                let parity = i64::from(readings.last() == Some(&now));
                readings.len() == 2
                    && (now + shift) % 2 == parity
                    && written.trim() == self.timeline.zone.id(now + shift)
            };
            let is_right =
                if readings.len() == 2 { [-1, 0, 1].into_iter().any(is_shifted) } else { written.trim() == id };
            if !is_right {
                let text = format!("current_heartbeat_id.txt says {written:?} instead of {id}");
                return Err(Wrong::new("heartbeat id", text));
            }
        }
        Ok(said)
    }

    fn take_events(&mut self, said: &mut Said) {
        for event in self.fresh() {
            let kind = event["event_type"].as_str().unwrap_or_default();
            let text = |member: &str| event["payload"][member].as_str().unwrap_or_default().to_owned();
            match kind {
                "ActivityLogged" | "CheckpointRecorded" | "DeepWorkStarted" => {
                    said.counted.push((kind.to_owned(), text("heartbeat_id").chars().take(14).collect()));
                }
                // The end of deep work is an event of its own.
                "DeepWorkExpired" => said.begun.extend(["DEEPWORK_EXPIRED".to_owned()]),
                "AnomalyDetected" => said.begun.extend([text("code")]),
                "AnomalyCleared" => said.ended.extend([text("code")]),
                _ => {}
            }
        }
    }

    /// The events that were not read before.
    fn fresh(&mut self) -> Vec<Value> {
        let sorted = |dir: &Path| {
            let mut all: Vec<PathBuf> =
                fs::read_dir(dir).into_iter().flatten().map(|e| e.expect("one").path()).collect();
            all.sort();
            all
        };
        let months = sorted(&self.path("Vault/Akashic/events"));
        let mut events = Vec::new();
        for path in months.iter().flat_map(|month| sorted(month)) {
            let from = self.read.entry(path.clone()).or_default();
            let mut file = File::open(&path).expect("a segment of the log");
            if file.metadata().expect("a file").len() == *from {
                continue;
            }
            let mut text = String::new();
            file.seek(SeekFrom::Start(*from)).expect("a file");
            *from += file.read_to_string(&mut text).expect("text") as u64;
            events.extend(
                text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of the log is JSON")),
            );
        }
        events
    }

    /// Every byte of the vault and the tree.
    pub fn snapshot(&self) -> Snapshot {
        let mut all = Snapshot::new();
        let mut folders = vec![self.path("Vault"), self.path("ai-works")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a directory") {
                let path = entry.expect("one").path();
                let metadata = fs::symlink_metadata(&path).expect("there");
                let bytes = if metadata.is_symlink() {
                    fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
                } else if metadata.is_dir() {
                    folders.push(path.clone());
                    Vec::new()
                } else {
                    fs::read(&path).expect("a file")
                };
                all.insert(path.strip_prefix(self.dir.path()).expect("below").to_owned(), bytes);
            }
        }
        all
    }
}
