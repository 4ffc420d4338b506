//! The same steps without and with a setting.

use std::fmt::Debug;
use std::fs;

use hiveforge::policy::settings::Setting;
use serde_json::{Map, Value, json};

use crate::support::job_fixture::TestJobVault;

/// A value of a setting to try.
pub struct Trial {
    setting: Setting,
    value: Value,
    /// Settings that both vaults have.
    given: Vec<(Setting, Value)>,
}

impl Trial {
    pub fn of(setting: Setting, value: impl Into<Value>) -> Trial {
        Trial { setting, value: value.into(), given: Vec::new() }
    }

    /// The same trial in vaults that also have this setting.
    pub fn given(mut self, setting: Setting, value: impl Into<Value>) -> Trial {
        self.given.push((setting, value.into()));
        self
    }

    /// Asserts what the steps give in a vault without the setting and in one with it. If an agent can have it for itself,
    /// it must be enough that agent main has it.
    #[track_caller]
    pub fn changes<T: PartialEq + Debug>(self, steps: impl Fn(&mut TestJobVault) -> T, without: T, with: T) {
        let Trial { setting, value, given } = self;
        assert_ne!(without, with, "{setting} has to change something");
        let path = |setting: Setting| setting.as_str().split('.').map(str::to_owned).collect::<Vec<_>>();
        let others: Vec<(Vec<String>, Value)> = given.into_iter().map(|(other, value)| (path(other), value)).collect();
        let file = |own: Option<Vec<String>>| {
            let own = own.map(|path| (path, value.clone()));
            let mut file = Value::Object(Map::new());
            for (path, value) in others.iter().cloned().chain(own) {
                let member = path.iter().fold(&mut file, |section, name| {
                    let members = section.as_object_mut().expect("a section");
                    members.entry(name.as_str()).or_insert_with(|| json!({}))
                });
                *member = value;
            }
            // JSON is YAML, too.
            file.to_string()
        };
        let run = |file: String| steps(&mut TestJobVault::new(&file));
        assert_eq!(run(file(None)), without, "without {setting}");
        assert_eq!(run(file(Some(path(setting)))), with, "with {setting}");
        if setting.row().per_agent {
            let own = ["agents", "main", setting.name()].map(str::to_owned).to_vec();
            assert_eq!(run(file(Some(own))), with, "with {setting} for one agent");
        }
    }
}

/// A hook that keeps what it is told.
pub const TELL: &str = "cat >>../told";

/// What it was told; nothing if it was not called.
pub fn told(story: &TestJobVault) -> String {
    fs::read_to_string(story.dir().join("told")).unwrap_or_default()
}

/// The codes and levels of what a tick finds.
pub fn found(anomalies: &[String]) -> Vec<String> {
    let brief = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        format!("{} {}", words[0], words[2])
    };
    anomalies.iter().map(brief).collect()
}
