//! Replies about settings.

use serde_json::Value;

use super::{Key, Replies, Reply, Row, Status, row};
use crate::base::text::count_noun;
use crate::op::config::{
    ChangeConfigOutcome, ConfigDiffOutcome, ConfigOutcome, SettingDifference, SettingView, Source, TrustOutcome,
};
use crate::policy::settings::Regime;

/// A value as it would appear in the file; a dash if there is none.
fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if !text.is_empty() => text.clone(),
        value => value.to_string(),
    }
}

fn setting_row(setting: &SettingView) -> Row {
    row![setting.name.as_str(), setting.source.as_str(), value_text(&setting.value)]
}

fn difference_row(found: &SettingDifference) -> Row {
    let value = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), value_text);
    row![found.name.as_str(), value(&found.recorded), value(&found.file)]
}

impl Replies for ConfigOutcome {
    fn reply(&self) -> Reply {
        let given = self.settings.iter().filter(|setting| setting.source != Source::Default).count();
        let from = match (self.regime, &self.file) {
            (Regime::Adopted | Regime::Keyed, _) => "adopted".to_owned(),
            (_, Some(file)) => format!("from {}", file.display()),
            (_, None) => "from no file".to_owned(),
        };
        Reply::new(Status::Ok, format!("{}, {given} {from}", count_noun(self.settings.len(), "setting")))
            .with(Key::Settings, self.regime.of_settings().as_str())
            .with_rows(Key::Setting, self.settings.iter().map(setting_row))
    }
}

impl Replies for ConfigDiffOutcome {
    fn reply(&self) -> Reply {
        let differ = match self.differences.len() {
            1 => "1 setting differs".to_owned(),
            n => format!("{n} settings differ"),
        };
        let (status, sum) = match (self.differences.len(), self.regime) {
            (0, Regime::Adopted | Regime::Keyed) => (Status::Ok, "the adopted settings match the file".to_owned()),
            (0, _) => (Status::Ok, "the recorded settings match the file".to_owned()),
            (_, Regime::Adopted | Regime::Keyed) => {
                (Status::Different, format!("{differ}; the file has no effect until an operator adopts it"))
            }
            (_, Regime::Recorded) => {
                (Status::Different, format!("{differ}; the next command that records an event records the file"))
            }
            (_, Regime::Unrecorded) => (
                Status::Different,
                "no settings recorded yet; the next command that records an event adds them".to_owned(),
            ),
        };
        Reply::new(status, sum)
            .with(Key::Settings, self.regime.of_settings().as_str())
            .with_rows(Key::SettingDiffers, self.differences.iter().map(difference_row))
    }
}

impl Replies for ChangeConfigOutcome {
    fn reply(&self) -> Reply {
        let changed = count_noun(self.changes.len(), "setting");
        let (status, sum) = match (self.event, self.regime) {
            (None, _) => (Status::Duplicate, "these settings are in force already".to_owned()),
            (Some(_), Regime::Adopted | Regime::Keyed) => {
                (Status::Recorded, format!("{changed} changed; only adopted settings are in force from here on"))
            }
            (Some(_), _) => (Status::Recorded, format!("{changed} changed")),
        };
        Reply::new(status, sum)
            .with_texts(Key::EventId, self.event)
            .with(Key::Settings, self.regime.of_settings().as_str())
            .with_rows(Key::SettingDiffers, self.changes.iter().map(difference_row))
            .warn(self.warnings.clone())
    }
}

impl Replies for TrustOutcome {
    fn reply(&self) -> Reply {
        let sum = match self.commands.len() {
            0 => "this vault is trusted on this machine; its settings name no commands".to_owned(),
            n => format!("this vault is trusted on this machine; its settings name {}", count_noun(n, "command")),
        };
        Reply::new(Status::Ok, sum)
            .with(Key::Vault, self.trusted.path.as_str())
            .with(Key::VaultId, self.trusted.vault_id.as_str())
            .with_rows(Key::Setting, self.commands.iter().map(setting_row))
    }
}
