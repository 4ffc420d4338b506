//! `hiveforge.config.yaml`: the settings file.
//!
//! The table of settings drives the parser, the commented file that `hf-init` writes, and the warnings about unknown
//! keys. Nothing in the file is ignored in silence: a key that nothing reads is a warning, and a file that cannot be used
//! is said by every command that would need it, which goes on with the settings recorded last.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::Read as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::files::Dir;
use super::layout::CONFIG_FILE;
use crate::base::{Error, ErrorKind, Reason, Result, limits};
use crate::policy::settings::{Setting, Settings};

/// The section whose members are agents, each with its own `liveness` settings.
const AGENTS: &str = "agents";
const LIVENESS: &str = "liveness";

/// The section whose subsections are reviewers, each with its command.
const REVIEWERS: &str = "reviewers";
const COMMAND: &str = "command";

/// Sections of the file in seed 004, appendix C, that nothing reads.
pub const UNUSED_SECTIONS: &[&str] = &["llm", "auth", "server"];

/// The settings in force, and whether the commands in them may be run.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub settings: Settings,
    /// The file they come from, if there is one.
    pub file: Option<PathBuf>,
    /// What to tell the user about the file.
    pub warnings: Vec<String>,
    /// Why the file cannot be used.
    fault: Option<String>,
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
    /// The settings in force if the file cannot be used: those recorded last, in a log that is private or not.
    pub fn instead_of_file(error: &Error, recorded: Option<Settings>, log_is_private: Result<()>) -> Config {
        let instead = match recorded {
            Some(_) => "the settings recorded last remain in force",
            None => "no settings are recorded, so the defaults apply",
        };
        // A mistake in the text must not silence hooks that were recorded before. But if others may have written the
        // file or the log, no command is run.
        let trusted = if error.kind == ErrorKind::Usage { log_is_private } else { Err(error.clone()) };
        Config {
            warnings: vec![format!("cannot use the settings file; {instead}: {error}")],
            settings: recorded.unwrap_or_default(),
            file: None,
            fault: Some(error.message.clone()),
            foreign: trusted.err().map(|why| why.message),
        }
    }

    /// Why the settings file cannot be used; the settings are then those recorded last. None if it can be used.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

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

/// Reads the file in the vault, or else the one next to the vault. A missing file is an empty one; a file that others can
/// write to is an error.
pub fn load(root: &Dir, path: &Path) -> Result<Config> {
    let beside =
        || std::fs::canonicalize(path).ok().and_then(|p| p.parent().map(|directory| directory.join(CONFIG_FILE)));
    let (bytes, file, private, is_inside) = match root.read_prefix(CONFIG_FILE, limits::CONFIG_FILE_MAX_BYTES + 1)? {
        Some(bytes) => {
            let private = root.check_private().and_then(|()| root.check_file_private(CONFIG_FILE));
            (bytes, path.join(CONFIG_FILE), private, true)
        }
        None => match beside().filter(|file| file.is_file()) {
            Some(file) => {
                let bytes = read_file(&file).map_err(|e| Error::system(format!("cannot read {CONFIG_FILE}"), e))?;
                let private = Dir::open_root(file.parent().unwrap_or(Path::new("/"))).and_then(|dir| match dir {
                    Some(dir) => dir.check_file_private(CONFIG_FILE),
                    None => Ok(()),
                });
                (bytes, file, private, false)
            }
            None => return Ok(Config::default()),
        },
    };
    // Settings that others can write must not be used.
    private?;
    let (settings, mut warnings) = parse_bytes(bytes)?;
    let elsewhere = settings.value(Setting::HiveVaultPath) != Setting::HiveVaultPath.fallback().value();
    if is_inside && elsewhere {
        warnings.push(format!("{CONFIG_FILE}: {} is used only in a file next to the vault", Setting::HiveVaultPath));
    }
    // Settings are recorded in an event, which has a limited size.
    let size = settings.to_json().to_string().len();
    if size > limits::SETTINGS_MAX_BYTES {
        let max = limits::SETTINGS_MAX_BYTES;
        return Err(Error::usage(format!(
            "{CONFIG_FILE}: settings of {size} bytes are too large; at most {max} are allowed"
        )));
    }
    Ok(Config { settings, file: Some(file), warnings, ..Config::default() })
}

/// The content of a settings file, as far as it can be one.
pub fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let max_bytes = limits::CONFIG_FILE_MAX_BYTES as u64 + 1;
    std::fs::File::open(path)?.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Parses the content of a file. Returns the settings and the warnings.
pub fn parse_bytes(bytes: Vec<u8>) -> Result<(Settings, Vec<String>)> {
    if bytes.len() > limits::CONFIG_FILE_MAX_BYTES {
        let max = limits::CONFIG_FILE_MAX_BYTES;
        return Err(Error::usage(format!("{CONFIG_FILE} is too large; at most {max} bytes are allowed")));
    }
    parse(&String::from_utf8(bytes).map_err(|_| Error::usage(format!("{CONFIG_FILE} is not UTF-8")))?)
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
        if UNUSED_SECTIONS.contains(&section.as_str()) {
            warnings.push(format!("{CONFIG_FILE}: {section} is not used by this version"));
            continue;
        }
        let mut members = match members {
            Value::Object(members) if is_section(&section) || !members.is_empty() => members,
            _ if !is_section(&section) => {
                warnings.push(unknown(&section, Setting::meant_by(&section)));
                continue;
            }
            Value::Null => continue,
            _ => return Err(wrong(format!("{section} must be a section"))),
        };
        if section == REVIEWERS {
            config.reviewers = reviewers(&mut members, &mut warnings).map_err(wrong)?;
        }
        match section == AGENTS {
            true => config.agents = agents(members, &mut warnings).map_err(wrong)?,
            false => walk(&section, members, &mut config.values, &mut warnings).map_err(wrong)?,
        }
    }
    Ok((config, warnings))
}

/// Whether this is the path of a section.
fn is_section(path: &str) -> bool {
    let starts = |setting: &&Setting| setting.as_str().strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    path == AGENTS || Setting::ALL.iter().any(|setting| starts(&setting))
}

/// The warning about a setting that does not exist, with the one that was probably meant.
fn unknown(path: &str, meant: Option<impl Display>) -> String {
    let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    format!("{CONFIG_FILE}: unknown setting {path}{hint}")
}

/// Takes the settings of a section and its subsections.
fn walk(
    section: &str,
    members: Map<String, Value>,
    values: &mut BTreeMap<Setting, Value>,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    for (name, value) in members {
        let path = format!("{section}.{name}");
        match (Setting::parse(&path), value) {
            (Some(setting), value) => take(setting, &path, value, values)?,
            (None, Value::Object(nested)) if is_section(&path) || !nested.is_empty() => {
                walk(&path, nested, values, warnings)?;
            }
            (None, _) => warnings.push(unknown(&path, Setting::meant_by(&path))),
        }
    }
    Ok(())
}

/// Takes the value of a setting. `path` is its name in messages.
fn take(setting: Setting, path: &str, value: Value, values: &mut BTreeMap<Setting, Value>) -> Result<(), String> {
    match value {
        value if setting.fallback().fits(&value) => drop(values.insert(setting, value)),
        Value::Null => {}
        _ => return Err(format!("{path} must be {}", setting.fallback().wants())),
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
        for (key, value) in settings {
            let (path, global) = (format!("{AGENTS}.{name}.{key}"), format!("{LIVENESS}.{key}"));
            match Setting::parse(&global) {
                Some(setting) if setting.row().per_agent => take(setting, &path, value, &mut values)?,
                Some(setting) => {
                    warnings.push(unknown(&path, Some(format!("{setting}, which applies to all agents"))));
                }
                None => {
                    let meant = Setting::meant_by(&global).filter(|setting| setting.row().per_agent);
                    let own = meant.map(|setting| format!("{AGENTS}.{name}.{}", setting.name()));
                    warnings.push(unknown(&path, own));
                }
            }
        }
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
                _ => {
                    let section = format!("{REVIEWERS}.{name}");
                    warnings.push(unknown(&format!("{section}.{setting}"), Some(format!("{section}.{COMMAND}"))));
                }
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
        for setting in Setting::ALL {
            let value = config.values.get(setting).cloned().unwrap_or_default();
            assert_eq!(value, setting.fallback().value(), "{setting}");
        }
    }

    #[test]
    fn unknown_keys_warn_and_wrong_values_are_refused() {
        let (config, warnings) = parse("governance:\n  max_retries: 0\n  max_retires: 8\nllm:\n  model: x\n").unwrap();
        assert_eq!(config.count(Setting::MaxRetries), 0);
        assert_eq!(config.count(Setting::MaxOscillations), 5);
        let said = [
            "hiveforge.config.yaml: unknown setting governance.max_retires; did you mean governance.max_retries?",
            "hiveforge.config.yaml: llm is not used by this version",
        ];
        assert_eq!(warnings, said);
        for wrong in [
            "governance: 3\n",
            "governance:\n  max_retries: -1\n",
            "governance:\n  max_retries: soon\n",
            "governance:\n  lease_seconds: 0\n",
            "- a\n",
            "a: [\n",
        ] {
            let error = parse(wrong).unwrap_err();
            assert_eq!(error.message.lines().count(), 1, "{wrong}");
        }
    }
}
