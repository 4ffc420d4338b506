//! `hiveforge.config.yaml`: the settings file.
//!
//! The table of settings drives the parser, the commented file that `hf-init` writes, and the warnings about unknown
//! keys. Nothing in the file is ignored in silence: a key that nothing reads is a warning, and a file that cannot be used
//! is said by every command that would need it, which goes on with the settings recorded last. `edit` changes a setting
//! in the file.
//!
//! Invariant: what others can write is never used, neither a file nor a file in a directory of theirs
//! (`a5_whoever_can_write_the_folder_next_to_the_vault_gets_no_command_executed`).

mod edit;

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::files::Dir;
use super::layout::CONFIG_FILE;
use crate::base::{Error, ErrorKind, Result, limits, text};
use crate::policy::settings::{Setting, Settings};

/// The section whose members are agents, each with its own `liveness` settings.
const AGENTS: &str = "agents";
const LIVENESS: &str = "liveness";

/// The section whose subsections are reviewers, each with its command.
const REVIEWERS: &str = "reviewers";
const COMMAND: &str = "command";

/// Sections of the file in seed 004, appendix C, that nothing reads.
pub const UNUSED_SECTIONS: &[&str] = &["llm", "auth", "server"];

/// The settings in force, and what the file has to do with them.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub settings: Settings,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
    /// What to tell the user about the file.
    pub warnings: Vec<String>,
    /// If only adopted settings are in force: these, as they are recorded.
    pub adopted: Option<Value>,
    /// The settings whose values in the file are not the adopted ones, which are in force.
    pub differs: Vec<String>,
    /// Why the file cannot be used.
    fault: Option<String>,
    /// Why the commands must not be run: others may have written them.
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
            warnings: vec![cannot_use(instead, error)],
            settings: recorded.unwrap_or_default(),
            fault: Some(error.message.clone()),
            foreign: trusted.err().map(|why| why.message),
            ..Config::default()
        }
    }

    /// The settings in force if only adopted ones are: the file has no effect, but it is compared.
    pub fn adopted(recorded: Value, file: Result<Config>) -> Config {
        let settings = Settings::from_json(&recorded);
        let config = Config { adopted: Some(recorded), ..Config::default() };
        match file {
            Ok(found) => {
                let differs = settings.changes_to(&found.settings).into_iter().map(|(name, _)| name).collect();
                Config { settings, differs, file: found.file, warnings: found.warnings, ..config }
            }
            Err(error) => {
                let warnings = vec![cannot_use("the adopted settings remain in force", &error)];
                Config { settings, warnings, fault: Some(error.message), ..config }
            }
        }
    }

    /// Why the settings file cannot be used; the settings are then those recorded last. None if it can be used.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Why the commands must not be run, because others may have written them; none if there is no such reason.
    pub(super) fn foreign(&self) -> Option<&str> {
        self.foreign.as_deref()
    }

    /// Says that the file is not in force, if it differs from the adopted settings.
    pub fn deviation(&self) -> Option<String> {
        let (named, more) = self.differs.split_at(self.differs.len().min(DIFFERS_MAX_COUNT));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let names = || format!("{}{more}", named.join(", "));
        let say = || format!("differs from the adopted settings, which remain in force; not in force: {}", names());
        (!named.is_empty()).then(say)
    }
}

/// How many settings are named at most if the file differs.
const DIFFERS_MAX_COUNT: usize = 3;

/// The setting with the command of a reviewer.
pub fn reviewer_setting(name: &str) -> String {
    format!("{REVIEWERS}.{name}.{COMMAND}")
}

fn cannot_use(instead: &str, error: &Error) -> String {
    format!("cannot use the settings file; {instead}: {error}")
}

/// The error for a setting that does not exist.
pub fn unknown_setting(name: &str) -> Error {
    let meant = Setting::meant_by(name).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    Error::not_found(format!("unknown setting '{}'{meant}", text::cut(name, 60)))
}

/// A settings file that nobody else can write to.
#[derive(Debug)]
struct FoundFile {
    text: String,
    path: PathBuf,
    /// The directory next to the vault, if the file is there and not in the vault.
    beside: Option<Dir>,
}

/// Reads the file in the vault, or else the one next to the vault. None if there is neither. Settings that others can
/// write must not be used, so that is an error.
fn find(root: &Dir, path: &Path) -> Result<Option<FoundFile>> {
    if let Some(bytes) = read(root, Dir::check_private)? {
        return Ok(Some(FoundFile { text: utf8(bytes)?, path: path.join(CONFIG_FILE), beside: None }));
    }
    let parent = std::fs::canonicalize(path).ok().and_then(|path| path.parent().map(Path::to_owned));
    let Some(dir) = parent.map(|parent| Dir::open_root(&parent)).transpose()?.flatten() else { return Ok(None) };
    match read(&dir, Dir::check_guarded)? {
        Some(bytes) => {
            let path = dir.path().join(CONFIG_FILE);
            Ok(Some(FoundFile { text: utf8(bytes)?, path, beside: Some(dir) }))
        }
        None => Ok(None),
    }
}

/// Reads the file in a directory that passes this check. The file is opened once and judged by that descriptor.
fn read(dir: &Dir, check: fn(&Dir) -> Result<()>) -> Result<Option<Vec<u8>>> {
    let bytes = dir.read_private(CONFIG_FILE, limits::SETTINGS_FILE_MAX_BYTES)?;
    if bytes.is_some() {
        check(dir)?;
    }
    Ok(bytes)
}

fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::usage(format!("{CONFIG_FILE} is not UTF-8")))
}

/// Reads the settings in the file. A missing file is an empty one.
pub fn load(root: &Dir, path: &Path) -> Result<Config> {
    let Some(found) = find(root, path)? else { return Ok(Config::default()) };
    let (settings, mut warnings) = parse(&found.text)?;
    let elsewhere = settings.value(Setting::HiveVaultPath) != Setting::HiveVaultPath.fallback().value();
    if found.beside.is_none() && elsewhere {
        warnings.push(format!("{CONFIG_FILE}: {} is used only in a file next to the vault", Setting::HiveVaultPath));
    }
    check_size(&settings)?;
    Ok(Config { settings, file: Some(found.path), warnings, ..Config::default() })
}

/// Reads the settings that a new vault at `path` will have. A file next to it does not count: every vault gets its own.
pub fn of_new_vault(path: &Path) -> Result<Settings> {
    let Some(root) = Dir::open_root(path)? else { return Ok(Settings::default()) };
    let Some(bytes) = read(&root, Dir::check_private)? else { return Ok(Settings::default()) };
    let (settings, _) = parse(&utf8(bytes)?)?;
    check_size(&settings)?;
    Ok(settings)
}

/// Settings are recorded in an event, which has a limited size.
fn check_size(settings: &Settings) -> Result<()> {
    let (size, max) = (settings.to_json().to_string().len(), limits::SETTINGS_MAX_BYTES);
    match size > max {
        true => Err(Error::usage(format!(
            "{CONFIG_FILE}: settings of {size} bytes are too large; at most {max} are allowed"
        ))),
        false => Ok(()),
    }
}

/// The vault that the file in a directory names, if it does. A file that others can write names none; that is an error,
/// because skipping it would make the command use another vault.
pub fn vault_named_in(directory: &Path) -> Result<Option<PathBuf>> {
    let Some(dir) = Dir::open_root(directory)? else { return Ok(None) };
    let Some(bytes) = read(&dir, Dir::check_guarded)? else { return Ok(None) };
    let (settings, _) = parse(&utf8(bytes)?).map_err(|e| e.at(directory.display()))?;
    let named = settings.values.get(&Setting::HiveVaultPath).and_then(Value::as_str);
    Ok(named.map(|path| directory.join(path)))
}

/// A change of the settings file that was checked and not made yet.
#[derive(Debug)]
pub struct SettingsEdit {
    /// The settings after it.
    pub settings: Settings,
    pub file: PathBuf,
    before: Option<String>,
    after: String,
    beside: Option<Dir>,
}

impl SettingsEdit {
    /// Checks that a setting can be given this value; changes nothing.
    pub(super) fn plan(root: &Dir, path: &Path, name: &str, value: &str) -> Result<SettingsEdit> {
        let found = find(root, path)?;
        let before = found.as_ref().map(|found| found.text.clone());
        let (after, settings) = edit::with_setting(before.as_deref().unwrap_or_default(), name, value)?;
        check_size(&settings)?;
        let (file, beside) = match found {
            Some(found) => (found.path, found.beside),
            None => (path.join(CONFIG_FILE), None),
        };
        Ok(SettingsEdit { settings, file, before, after, beside })
    }

    /// Changes the file.
    pub(super) fn make(&self, root: &Dir) -> Result<()> {
        self.put(root, &self.after)
    }

    /// Takes the change back.
    pub(super) fn undo(&self, root: &Dir) -> Result<()> {
        match &self.before {
            Some(before) => self.put(root, before),
            None => root.remove(CONFIG_FILE),
        }
    }

    fn put(&self, root: &Dir, text: &str) -> Result<()> {
        let dir = self.beside.as_ref().unwrap_or(root);
        let mode = dir.mode_of(CONFIG_FILE)?;
        dir.put(CONFIG_FILE, text.as_bytes())?;
        mode.map_or(Ok(()), |mode| dir.set_mode(CONFIG_FILE, mode))
    }
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
