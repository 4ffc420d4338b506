//! An `ai-works/` tree next to the vault, written to as an agent without commands would.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::test_vault::{Reply, TestVault};
use crate::support::watchdog_fixture::{at, beat, configured};

/// A vault and a tree with one theme.
pub struct Works {
    pub hive: TestVault,
}

impl Works {
    pub fn new() -> Works {
        Works::configured("")
    }

    pub fn configured(settings: &str) -> Works {
        let works = Works { hive: configured(settings) };
        for dir in ["artifacts/t/histories", "stats/checkpoints", "stats/deep_work"] {
            fs::create_dir_all(works.path(dir)).expect("new directories");
        }
        works
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.hive.dir().join("ai-works").join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("new directories");
        fs::write(path, text).expect("a file");
    }

    /// An activity log with the id of this second.
    pub fn log(&self, second: i64, text: &str) {
        self.write(&format!("artifacts/t/histories/{}.md", beat(second)), text);
    }

    pub fn checkpoint(&self, second: i64) {
        self.write(&format!("stats/checkpoints/{}.txt", beat(second)), "at work\n");
    }

    pub fn strict(&self, second: i64, minutes: u64) {
        let text = format!("制限タイプ: strict\n活動予定内容: 調査\n予定時間: {minutes}分\n");
        self.write(&format!("stats/deep_work/{}.txt", beat(second)), &text);
    }

    pub fn flexible(&self, second: i64) {
        self.write(&format!("stats/deep_work/{}.txt", beat(second)), "制限タイプ: flexible\n活動予定内容: 調査\n");
    }

    pub fn declared(&self, second: i64, end: &str) -> PathBuf {
        self.path(&format!("stats/deep_work/{}{end}.txt", beat(second)))
    }

    pub fn reply(&mut self, second: i64, line: &str) -> Reply {
        at(&mut self.hive, second, &format!("{line} --works ai-works"))
    }

    /// What a tick finds. A check just before it must find the same and change nothing.
    #[track_caller]
    pub fn tick(&mut self, second: i64) -> Vec<String> {
        let before = (self.hive.contents(), self.names());
        let check = self.reply(second, "hf-watchdog --check");
        assert!((self.hive.contents(), self.names()) == before, "a check changed something");
        let tick = self.reply(second, "hf-watchdog");
        let found = |reply: &Reply| reply.all("ANOMALY").into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(found(&check), found(&tick), "at {second}");
        assert_eq!(check.code, tick.code, "at {second}");
        found(&tick)
    }

    /// Every file of the tree.
    pub fn names(&self) -> Vec<PathBuf> {
        let mut dirs = vec![self.path("")];
        let mut names = Vec::new();
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).expect("a directory") {
                let entry = entry.expect("an entry");
                match entry.file_type().expect("a type").is_dir() {
                    true => dirs.push(entry.path()),
                    false => names.push(entry.path()),
                }
            }
        }
        names.sort();
        names
    }

    /// The ids of the events of a type, in order.
    pub fn ids(&self, kind: &str) -> Vec<String> {
        let events = self.hive.events();
        let of_kind = events.iter().filter(|event| event["event_type"] == kind);
        of_kind.map(|event| event["payload"]["heartbeat_id"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.hive.events().into_iter().filter(|event| event["event_type"] == kind).collect()
    }
}

/// What was found, without seconds and details.
pub fn codes(found: &[String]) -> Vec<String> {
    let words = |line: &String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    found.iter().map(words).map(|words| format!("{} {}", words[0], words[2])).collect()
}
