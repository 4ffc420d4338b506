//! Replies about settings.

use serde_json::Value;

use super::{Key, Replies, Reply, Status, row};
use crate::base::text::count_noun;
use crate::op::config::{ConfigDiffOutcome, ConfigOutcome};

/// A value as it would appear in the file; a dash if there is none.
fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if !text.is_empty() => text.clone(),
        value => value.to_string(),
    }
}

fn verdict(recorded: bool) -> &'static str {
    if recorded { "RECORDED" } else { "UNRECORDED" }
}

impl Replies for ConfigOutcome {
    fn reply(&self) -> Reply {
        let given = self.settings.iter().filter(|setting| setting.source.as_str() == "file").count();
        let rows = self
            .settings
            .iter()
            .map(|setting| row![setting.name.as_str(), setting.source.as_str(), value_text(&setting.value)]);
        let from = self.file.as_ref().map_or("no file".to_owned(), |file| file.display().to_string());
        Reply::new(Status::Ok, format!("{}, {given} from {from}", count_noun(self.settings.len(), "setting")))
            .with(Key::Settings, verdict(self.recorded))
            .with_rows(Key::Setting, rows)
    }
}

impl Replies for ConfigDiffOutcome {
    fn reply(&self) -> Reply {
        let value = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), value_text);
        let rows =
            self.differences.iter().map(|found| row![found.name.as_str(), value(&found.recorded), value(&found.file)]);
        let (status, sum) = match (self.differences.len(), self.recorded) {
            (0, _) => (Status::Ok, "the recorded settings match the file".to_owned()),
            (1, true) => (
                Status::Different,
                "1 setting differs; the next command that records an event adopts the file".to_owned(),
            ),
            (n, true) => (
                Status::Different,
                format!("{n} settings differ; the next command that records an event adopts the file"),
            ),
            (_, false) => (
                Status::Different,
                "no settings recorded yet; the next command that records an event adds them".to_owned(),
            ),
        };
        Reply::new(status, sum).with(Key::Settings, verdict(self.recorded)).with_rows(Key::SettingDiffers, rows)
    }
}
