//! What is said of settings.

use serde_json::Value;

use super::{Key, Replies, Reply, Status, row};
use crate::op::config::{ConfigDiffOutcome, ConfigOutcome};

/// A value as the file would say it.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        value => value.to_string(),
    }
}

fn recorded(is: bool) -> &'static str {
    if is { "RECORDED" } else { "UNRECORDED" }
}

impl Replies for ConfigOutcome {
    fn reply(&self) -> Reply {
        let given = self.settings.iter().filter(|setting| setting.source.as_str() == "file").count();
        let rows = self
            .settings
            .iter()
            .map(|setting| row![setting.name.as_str(), setting.source.as_str(), said(&setting.value)]);
        let from = self.file.as_ref().map_or("no file".to_owned(), |file| file.display().to_string());
        Reply::new(Status::Ok, format!("{} settings, {given} of them from {from}", self.settings.len()))
            .with(Key::Settings, recorded(self.recorded))
            .with_rows(Key::Setting, rows)
            .warn(self.warnings.clone())
    }
}

impl Replies for ConfigDiffOutcome {
    fn reply(&self) -> Reply {
        let value = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), said);
        let rows =
            self.differences.iter().map(|found| row![found.name.as_str(), value(&found.recorded), value(&found.file)]);
        let (status, sum) = match (self.differences.len(), self.recorded) {
            (0, _) => (Status::Ok, "the settings on the record are those of the file".to_owned()),
            (n, true) => (Status::Different, format!("{n} settings differ; the next event records those of the file")),
            (_, false) => (Status::Different, "no settings are recorded yet; the next event does".to_owned()),
        };
        Reply::new(status, sum)
            .with(Key::Settings, recorded(self.recorded))
            .with_rows(Key::SettingDiffers, rows)
            .warn(self.warnings.clone())
    }
}
