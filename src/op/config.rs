//! hf-config: the settings in force, where each comes from, and how the file differs from the log.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::Context;
use super::kernel::View;
use crate::base::{Error, Result, names, text};
use crate::policy::settings::{Setting, Settings};

names! {
    /// Where the value of a setting comes from.
    pub enum Source {
        Default = "default",
        File = "file",
    }
}

/// One setting in force.
#[derive(Debug)]
pub struct SettingView {
    /// Its name in the file, with dots between the sections.
    pub name: String,
    pub value: Value,
    pub source: Source,
}

/// The settings in force.
#[derive(Debug)]
pub struct ConfigOutcome {
    pub settings: Vec<SettingView>,
    /// Whether they are recorded; if not, the next command that writes records them.
    pub recorded: bool,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
}

/// Which settings to show.
#[derive(Clone, Debug, Default)]
pub struct ShowConfigRequest {
    /// One setting or one section; default: all.
    pub name: Option<String>,
}

/// Returns the settings in force.
pub fn show(ctx: &Context, request: ShowConfigRequest) -> Result<ConfigOutcome> {
    let vault = ctx.open()?;
    // Unlike everywhere else, a file that cannot be read is an error.
    let config = vault.config_file()?;
    let recorded = View::open(ctx, &vault)?.recorded().settings().is_some_and(|recorded| recorded == config.to_json());
    let mut settings = flat(&config.settings);
    if let Some(name) = &request.name {
        let section = format!("{name}.");
        settings.retain(|known, _| known == name || known.starts_with(&section));
        if settings.is_empty() {
            let meant = Setting::meant_by(name).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            return Err(Error::not_found(format!("unknown setting '{}'{meant}", text::cut(name, 60))));
        }
    }
    let source = |name: &str| match Setting::parse(name) {
        Some(setting) if !config.values.contains_key(&setting) => Source::Default,
        _ => Source::File,
    };
    let settings =
        settings.into_iter().map(|(name, value)| SettingView { source: source(&name), name, value }).collect();
    Ok(ConfigOutcome { settings, recorded, file: config.file.clone() })
}

/// One setting that differs between the file and the log.
#[derive(Debug)]
pub struct SettingDifference {
    pub name: String,
    pub recorded: Option<Value>,
    pub file: Option<Value>,
}

#[derive(Debug)]
pub struct ConfigDiffOutcome {
    /// Whether any settings are recorded.
    pub recorded: bool,
    pub differences: Vec<SettingDifference>,
}

/// Returns how the file differs from the log. The next command that writes records the file's settings.
pub fn diff(ctx: &Context) -> Result<ConfigDiffOutcome> {
    let vault = ctx.open()?;
    let config = vault.config_file()?;
    let recorded = View::open(ctx, &vault)?.recorded_settings();
    let (before, after) = (recorded.as_ref().map(flat).unwrap_or_default(), flat(&config.settings));
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differences = names.into_iter().filter(|name| before.get(*name) != after.get(*name)).map(|name| {
        SettingDifference { name: name.clone(), recorded: before.get(name).cloned(), file: after.get(name).cloned() }
    });
    Ok(ConfigDiffOutcome { recorded: recorded.is_some(), differences: differences.collect() })
}

/// Every setting by its full name, including those of single agents and reviewers. Null if it has no value.
fn flat(settings: &Settings) -> BTreeMap<String, Value> {
    let global = Setting::ALL.iter().map(|setting| (setting.to_string(), settings.value(*setting)));
    let agents = settings.agents.iter().flat_map(|(agent, own)| {
        own.iter().map(move |(setting, value)| (format!("agents.{agent}.{}", setting.name()), value.clone()))
    });
    let reviewers = settings.reviewers.iter();
    let reviewers = reviewers.map(|(name, command)| (format!("reviewers.{name}.command"), command.as_str().into()));
    global.chain(agents).chain(reviewers).collect()
}
