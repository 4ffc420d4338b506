//! `hiveforge.config.yaml`: the settings file.
//!
//! The table of settings drives the parser, the commented file that `hf-init` writes, and the warnings about unknown
//! keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::files::Dir;
use super::layout::CONFIG_FILE;
use crate::base::{Error, Reason, Result, limits};
use crate::policy::settings::{Setting, Settings};
use crate::state::State;

/// The section whose members are agents, each with its own `liveness` settings.
const AGENTS: &str = "agents";
const LIVENESS: &str = "liveness";

/// The section whose subsections are reviewers, each with its command.
const REVIEWERS: &str = "reviewers";
const COMMAND: &str = "command";

/// Sections that belong to related programs.
const FOREIGN_SECTIONS: &[&str] = &["llm", "auth", "server"];

/// The settings in force, and whether the commands in them may be run.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub settings: Settings,
    /// The file they come from, if there is one.
    pub file: Option<PathBuf>,
    /// Why its commands must not be run, if the file is not trusted.
    foreign: Option<String>,
}

impl Deref for Config {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Config {
    /// A command to run. Refused if the file is not trusted.
    pub fn command(&self, setting: Setting) -> Result<Option<String>> {
        self.own(setting.as_str(), &self.settings.text(setting))
    }

    /// The command of a reviewer. Refused if the file is not trusted.
    pub fn reviewer(&self, name: &str) -> Result<Option<String>> {
        let command = self.settings.reviewers.get(name).map(String::as_str).unwrap_or_default();
        self.own(&format!("{REVIEWERS}.{name}.{COMMAND}"), command)
    }

    fn own(&self, setting: &str, command: &str) -> Result<Option<String>> {
        match (command.trim(), &self.foreign) {
            ("", _) => Ok(None),
            (_, Some(why)) => {
                Err(Error::refused(Reason::NotOwner, format!("the command in {setting} is not run: {why}")))
            }
            (command, None) => Ok(Some(command.to_owned())),
        }
    }
}

/// The settings in force if the file cannot be used: those recorded last.
pub fn instead_of(error: &Error, state: &State) -> (Config, Vec<String>) {
    let settings = Settings::recorded(state).unwrap_or_default();
    let why = format!("cannot use the settings file; the settings recorded last remain in force: {error}");
    (Config { settings, file: None, foreign: Some(error.message.clone()) }, vec![why])
}

/// Reads the file in the vault, or else the one next to the vault. A missing file is an empty one; a file that others can
/// write to is an error.
pub fn load(root: &Dir, path: &Path) -> Result<(Config, Vec<String>)> {
    let beside = || std::fs::canonicalize(path).ok().and_then(|p| p.parent().map(Path::to_owned));
    let (text, file, private) = match root.read(CONFIG_FILE)? {
        Some(bytes) => {
            (bytes, path.join(CONFIG_FILE), root.check_private().and_then(|()| root.check_file_private(CONFIG_FILE)))
        }
        None => match beside()
            .filter(|directory| directory.join(CONFIG_FILE).is_file())
            .map(|directory| (std::fs::read(directory.join(CONFIG_FILE)), directory))
        {
            Some((Ok(bytes), directory)) => {
                let private = Dir::open_root(&directory).and_then(|dir| match dir {
                    Some(dir) => dir.check_file_private(CONFIG_FILE),
                    None => Ok(()),
                });
                (bytes, directory.join(CONFIG_FILE), private)
            }
            _ => return Ok((Config::default(), Vec::new())),
        },
    };
    let text = String::from_utf8(text).map_err(|_| Error::usage(format!("{CONFIG_FILE} is not UTF-8")))?;
    // Settings that others can write must not be used.
    private?;
    let (settings, warnings) = parse(&text)?;
    // Settings are recorded in an event, which has a limited size.
    let size = settings.to_json().to_string().len();
    if size > limits::SETTINGS_MAX_BYTES {
        let max = limits::SETTINGS_MAX_BYTES;
        return Err(Error::usage(format!(
            "{CONFIG_FILE}: settings of {size} bytes are too large; at most {max} are allowed"
        )));
    }
    Ok((Config { settings, file: Some(file), foreign: None }, warnings))
}

/// Parses the text of a file. Returns the settings and the warnings.
pub fn parse(text: &str) -> Result<(Settings, Vec<String>)> {
    let (mut config, mut warnings) = (Settings::default(), Vec::new());
    let blank = text.lines().all(|line| matches!(line.trim_start().chars().next(), None | Some('#')));
    if blank {
        return Ok((config, warnings));
    }
    let wrong = |why: String| {
        let line = why.lines().next().unwrap_or_default();
        let line = line.strip_prefix("error: ").unwrap_or(line);
        // The parser adds advice for programmers.
        let line = line.split(", set DuplicateKeyPolicy").next().unwrap_or(line);
        Error::usage(format!("{CONFIG_FILE}: {line}"))
    };
    let file: Value = serde_saphyr::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let Value::Object(sections) = file else { return Err(wrong("must be a map of sections".to_owned())) };
    for (section, members) in sections {
        if FOREIGN_SECTIONS.contains(&section.as_str()) || members.is_null() {
            continue;
        }
        let Value::Object(mut members) = members else { return Err(wrong(format!("{section} must be a section"))) };
        if section == REVIEWERS {
            config.reviewers = reviewers(&mut members, &mut warnings).map_err(wrong)?;
        }
        match section == AGENTS {
            true => config.agents = agents(members, &mut warnings).map_err(wrong)?,
            false => walk(&section, "", members, &mut config.values, &mut warnings).map_err(wrong)?,
        }
    }
    Ok((config, warnings))
}

/// Takes the settings of a section and its subsections. `shown` is put before a path in messages.
fn walk(
    section: &str,
    shown: &str,
    members: Map<String, Value>,
    values: &mut BTreeMap<Setting, Value>,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    for (name, value) in members {
        let path = format!("{section}.{name}");
        match (Setting::parse(&path), value) {
            (Some(setting), value) if setting.fallback().fits(&value) => drop(values.insert(setting, value)),
            (Some(_), Value::Null) => {}
            (Some(setting), _) => return Err(format!("{shown}{path} must be {}", setting.fallback().wants())),
            (None, Value::Object(nested)) => walk(&path, shown, nested, values, warnings)?,
            (None, _) => warnings.push(format!("{CONFIG_FILE}: unknown setting {shown}{path}")),
        }
    }
    Ok(())
}

/// The settings of individual agents.
fn agents(
    members: Map<String, Value>,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, BTreeMap<Setting, Value>>, String> {
    let mut all = BTreeMap::new();
    for (name, value) in members {
        let settings = match value {
            Value::Object(settings) => settings,
            Value::Null => Map::new(),
            _ => return Err(format!("{AGENTS}.{name} must be a section")),
        };
        let mut values = BTreeMap::new();
        walk(LIVENESS, &format!("{AGENTS}.{name}: "), settings, &mut values, warnings)?;
        all.insert(name, values);
    }
    Ok(all)
}

/// Takes the reviewers and their commands out of their section.
fn reviewers(members: &mut Map<String, Value>, warnings: &mut Vec<String>) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    let names: Vec<String> = members.iter().filter(|(_, value)| value.is_object()).map(|(n, _)| n.clone()).collect();
    for name in names {
        let Some(Value::Object(settings)) = members.remove(&name) else { continue };
        for (setting, value) in settings {
            match (setting.as_str(), value) {
                (COMMAND, Value::String(command)) => drop(all.insert(name.clone(), command)),
                (COMMAND, Value::Null) => {}
                (COMMAND, _) => return Err(format!("{REVIEWERS}.{name}.{COMMAND} must be a string")),
                _ => warnings.push(format!("{CONFIG_FILE}: unknown setting {REVIEWERS}.{name}.{setting}")),
            }
        }
    }
    Ok(all)
}

/// A settings file in which every setting is commented out.
pub fn commented() -> String {
    let mut text = String::from("# HiveForge settings. Every line is optional; the values shown are the defaults.\n");
    let mut above: Vec<&str> = Vec::new();
    for setting in Setting::ALL {
        let mut path: Vec<&str> = setting.as_str().split('.').collect();
        let name = path.pop().unwrap_or_default();
        let same = path.iter().zip(&above).take_while(|(a, b)| a == b).count();
        for (depth, section) in path.iter().enumerate().skip(same) {
            let gap = if depth == 0 { "\n" } else { "" };
            writeln!(text, "{gap}# {}{section}:", "  ".repeat(depth)).expect("writing to a string cannot fail");
        }
        let (indent, value) = ("  ".repeat(path.len()), setting.fallback().value());
        writeln!(text, "# {indent}{name}: {value}  # {}", setting.meaning()).expect("writing to a string cannot fail");
        above = path;
    }
    text + "\n# agents:\n#   NAME:  # liveness settings for this agent only\n#     inactive_error_seconds: 600\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commented_file_uncommented_says_the_defaults() {
        let (config, warnings) = parse(&commented()).unwrap();
        assert!(config.values.is_empty() && warnings.is_empty());
        let active: String = commented()
            .lines()
            .skip(1)
            .map(|l| l.strip_prefix("# ").or(l.strip_prefix('#')).unwrap_or(l).to_owned() + "\n")
            .collect();
        assert_eq!(parse(&active).unwrap().0.for_agent("NAME").count(Setting::InactiveErrorSeconds), 600);
        let (config, warnings) = parse(&active).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(config.values.len(), Setting::ALL.len());
        for setting in Setting::ALL {
            assert_eq!(config.values[setting], setting.fallback().value(), "{setting}");
        }
    }

    #[test]
    fn unknown_keys_warn_and_wrong_values_are_refused() {
        let (config, warnings) = parse("governance:\n  max_retries: 7\n  max_retires: 8\nllm:\n  model: x\n").unwrap();
        assert_eq!(config.count(Setting::MaxRetries), 7);
        assert_eq!(config.count(Setting::MaxOscillations), 5);
        assert_eq!(warnings, ["hiveforge.config.yaml: unknown setting governance.max_retires"]);
        for wrong in [
            "governance: 3\n",
            "governance:\n  max_retries: -1\n",
            "governance:\n  max_retries: soon\n",
            "- a\n",
            "a: [\n",
        ] {
            let error = parse(wrong).unwrap_err();
            assert_eq!(error.message.lines().count(), 1, "{wrong}");
        }
    }
}
