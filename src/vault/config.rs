//! `hiveforge.config.yaml`: every setting in one table, with its default and its meaning.
//!
//! The table feeds the reader, the commented file that `hf-init` writes, and the warning for keys
//! that are not known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use super::files::Dir;
use super::layout::CONFIG_FILE;
use crate::base::{Error, Reason, Result, names};

names! {
    /// Every setting, by its path in the file.
    pub enum Setting {
        HiveName = "hive.name",
        HiveVaultPath = "hive.vault_path",
        MaxRetries = "governance.max_retries",
        MaxOscillations = "governance.max_oscillations",
        MaxConcurrentTasks = "governance.max_concurrent_tasks",
        TaskTimeoutSeconds = "governance.task_timeout_seconds",
        HeartbeatIntervalSeconds = "governance.heartbeat_interval_seconds",
        ApprovalTimeoutHours = "governance.approval_timeout_hours",
        ArchiveAfterDays = "governance.archive_after_days",
        LeaseSeconds = "governance.lease_seconds",
        AutoAssign = "governance.auto_assign",
        ApprovalTimeoutPolicy = "governance.approval_timeout_policy",
        DestructiveCommands = "governance.destructive_commands",
        JobsMaxParallel = "jobs.max_parallel",
        JobsLogMaxBytes = "jobs.log_max_bytes",
        JobsKillGrace = "jobs.kill_grace",
        JobsTransientExitCodes = "jobs.transient_exit_codes",
        JobsTransientSignals = "jobs.transient_signals",
        JobsOnFinish = "jobs.on_finish",
        JobsCheckCmd = "jobs.check_cmd",
        HooksTimeoutSeconds = "hooks.timeout_seconds",
        NeverSeenSeconds = "liveness.never_seen_seconds",
        InactiveWarnSeconds = "liveness.inactive_warn_seconds",
        InactiveErrorSeconds = "liveness.inactive_error_seconds",
        IntrospectionNoticeSeconds = "liveness.introspection_notice_seconds",
        IntrospectionWarnSeconds = "liveness.introspection_warn_seconds",
        IntrospectionErrorSeconds = "liveness.introspection_error_seconds",
        DeepworkCheckpointSeconds = "liveness.deepwork_checkpoint_seconds",
        ClockSkewSeconds = "liveness.clock_skew_seconds",
        StrictMaxMinutes = "liveness.strict_max_minutes",
        DeepworkExtendMax = "liveness.deepwork_extend_max",
        SuggestDeepworkSeconds = "liveness.suggest_deepwork_seconds",
        RunawayEvents = "liveness.runaway_events",
        RunawaySeconds = "liveness.runaway_seconds",
        LivenessTimezone = "liveness.timezone",
        LivenessWorksDir = "liveness.works_dir",
        WatchdogIntervalSeconds = "watchdog.interval_seconds",
        RemindEvery = "watchdog.remind_every",
        MaxRecoveryAttempts = "watchdog.max_recovery_attempts",
        RecoveryWaitCycles = "watchdog.recovery_wait_cycles",
        OnBeat = "watchdog.hooks.on_beat",
        OnWarning = "watchdog.hooks.on_warning",
        OnAnomaly = "watchdog.hooks.on_anomaly",
        OnCleared = "watchdog.hooks.on_cleared",
        PauseGraceSeconds = "pause.grace_seconds",
        SessionTtlSeconds = "session.ttl_seconds",
        ReviewersOrder = "reviewers.order",
        ReviewersTimeoutSeconds = "reviewers.timeout_seconds",
        RunnerCommand = "runner.command",
        FixerCommand = "fixer.command",
        EventsMaxFileSizeMb = "logging.events_max_file_size_mb",
    }
}

/// What a setting is if the file says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    Count(u64),
    Text(&'static str),
    Flag(bool),
    /// One of these; the first if the file says nothing.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts(&'static [&'static str]),
    /// A list of numbers.
    Counts(&'static [u64]),
}

impl Fallback {
    fn fits(self, value: &Value) -> bool {
        match self {
            Fallback::Count(_) => value.as_u64().is_some_and(|n| n > 0),
            Fallback::Text(_) => value.is_string(),
            Fallback::Flag(_) => value.is_boolean(),
            Fallback::Choice(names) => value.as_str().is_some_and(|name| names.contains(&name)),
            Fallback::Texts(_) => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Fallback::Counts(_) => value.as_array().is_some_and(|list| list.iter().all(Value::is_u64)),
        }
    }

    fn wants(self) -> String {
        match self {
            Fallback::Count(_) => "a whole number, 1 or more".to_owned(),
            Fallback::Text(_) => "a text".to_owned(),
            Fallback::Flag(_) => "true or false".to_owned(),
            Fallback::Choice(names) => format!("one of {}", names.join(", ")),
            Fallback::Texts(_) => "a list of texts".to_owned(),
            Fallback::Counts(_) => "a list of numbers".to_owned(),
        }
    }

    /// As the file would say it, in JSON, which is YAML too.
    pub fn value(self) -> Value {
        match self {
            Fallback::Count(n) => n.into(),
            Fallback::Text(text) => text.into(),
            Fallback::Flag(flag) => flag.into(),
            Fallback::Choice(names) => names[0].into(),
            Fallback::Texts(texts) => texts.into(),
            Fallback::Counts(counts) => counts.into(),
        }
    }
}

impl Setting {
    pub const fn fallback(self) -> Fallback {
        match self {
            Setting::HiveName => Fallback::Text("hive"),
            Setting::HiveVaultPath => Fallback::Text("./Vault"),
            Setting::MaxRetries => Fallback::Count(3),
            Setting::MaxOscillations => Fallback::Count(5),
            Setting::MaxConcurrentTasks => Fallback::Count(10),
            Setting::TaskTimeoutSeconds => Fallback::Count(300),
            Setting::HeartbeatIntervalSeconds => Fallback::Count(30),
            Setting::ApprovalTimeoutHours => Fallback::Count(24),
            Setting::ArchiveAfterDays => Fallback::Count(7),
            Setting::LeaseSeconds => Fallback::Count(900),
            Setting::AutoAssign => Fallback::Flag(false),
            Setting::ApprovalTimeoutPolicy => Fallback::Choice(&["escalate", "reject"]),
            Setting::DestructiveCommands => Fallback::Texts(&[]),
            Setting::JobsMaxParallel => Fallback::Count(10),
            Setting::JobsLogMaxBytes => Fallback::Count(10 * 1024 * 1024),
            Setting::JobsKillGrace => Fallback::Count(5),
            Setting::JobsTransientExitCodes => Fallback::Counts(&[75]),
            Setting::JobsTransientSignals => Fallback::Counts(&[]),
            Setting::JobsOnFinish => Fallback::Text(""),
            Setting::JobsCheckCmd => Fallback::Text(""),
            Setting::HooksTimeoutSeconds => Fallback::Count(30),
            Setting::NeverSeenSeconds => Fallback::Count(300),
            Setting::InactiveWarnSeconds => Fallback::Count(300),
            Setting::InactiveErrorSeconds => Fallback::Count(600),
            Setting::IntrospectionNoticeSeconds => Fallback::Count(900),
            Setting::IntrospectionWarnSeconds => Fallback::Count(1200),
            Setting::IntrospectionErrorSeconds => Fallback::Count(1800),
            Setting::DeepworkCheckpointSeconds => Fallback::Count(600),
            Setting::ClockSkewSeconds => Fallback::Count(120),
            Setting::StrictMaxMinutes => Fallback::Count(240),
            Setting::DeepworkExtendMax => Fallback::Count(2),
            Setting::SuggestDeepworkSeconds => Fallback::Count(480),
            Setting::RunawayEvents => Fallback::Count(50),
            Setting::RunawaySeconds => Fallback::Count(60),
            Setting::LivenessTimezone => Fallback::Choice(&["utc", "local"]),
            Setting::LivenessWorksDir => Fallback::Text(""),
            Setting::WatchdogIntervalSeconds => Fallback::Count(60),
            Setting::RemindEvery => Fallback::Count(3600),
            Setting::MaxRecoveryAttempts => Fallback::Count(3),
            Setting::RecoveryWaitCycles => Fallback::Count(5),
            Setting::OnBeat | Setting::OnWarning | Setting::OnAnomaly | Setting::OnCleared => Fallback::Text(""),
            Setting::PauseGraceSeconds => Fallback::Count(300),
            Setting::SessionTtlSeconds => Fallback::Count(3600),
            Setting::ReviewersOrder => Fallback::Texts(&["gpt", "gem"]),
            Setting::ReviewersTimeoutSeconds => Fallback::Count(120),
            Setting::RunnerCommand | Setting::FixerCommand => Fallback::Text(""),
            Setting::EventsMaxFileSizeMb => Fallback::Count(100),
        }
    }

    pub const fn meaning(self) -> &'static str {
        match self {
            Setting::HiveName => "a name for people",
            Setting::HiveVaultPath => "where the vault is; counts only in a file beside the vault",
            Setting::MaxRetries => "how often a transient failure is tried again",
            Setting::MaxOscillations => "how often verifying may send work back before it is blocked",
            Setting::MaxConcurrentTasks => "tasks that may be assigned or running at once",
            Setting::TaskTimeoutSeconds => "how long a task may take",
            Setting::HeartbeatIntervalSeconds => "how often a run shows that it is alive",
            Setting::ApprovalTimeoutHours => "how long a decision may stay open",
            Setting::ArchiveAfterDays => "when a finished task leaves the projections",
            Setting::LeaseSeconds => "how long a claim holds without a heartbeat",
            Setting::AutoAssign => "whether ready tasks are assigned without being claimed",
            Setting::ApprovalTimeoutPolicy => "what becomes of a decision that stayed open: escalate or reject",
            Setting::DestructiveCommands => "commands that need an approval; * stands for anything",
            Setting::JobsMaxParallel => "jobs that may run at once; max_concurrent_tasks if not given",
            Setting::JobsLogMaxBytes => "what is kept of a job's output: the first and the last half of this",
            Setting::JobsKillGrace => "seconds between asking a job to end and killing it",
            Setting::JobsTransientExitCodes => "exit codes after which a job may be tried again",
            Setting::JobsTransientSignals => "signals after which a job may be tried again",
            Setting::JobsOnFinish => "a command that gets the report of every finished job on standard input",
            Setting::JobsCheckCmd => "a command that tells of a foreign job; {} stands for its id",
            Setting::HooksTimeoutSeconds => "how long a hook may take",
            Setting::NeverSeenSeconds => "an agent that began and shows nothing is an anomaly after this",
            Setting::InactiveWarnSeconds => "no activity log or checkpoint for so long is worth a warning",
            Setting::InactiveErrorSeconds => "no activity log or checkpoint for so long is an anomaly",
            Setting::IntrospectionNoticeSeconds => "no introspection for so long is worth a notice",
            Setting::IntrospectionWarnSeconds => "no introspection for so long is worth a warning",
            Setting::IntrospectionErrorSeconds => "no introspection for so long is an anomaly",
            Setting::DeepworkCheckpointSeconds => "flexible deep work needs a checkpoint this often",
            Setting::ClockSkewSeconds => "an id that is further in the future is an anomaly",
            Setting::StrictMaxMinutes => "the longest strict deep work that can be declared",
            Setting::DeepworkExtendMax => "how often a strict deep work can be extended",
            Setting::SuggestDeepworkSeconds => "without an activity log for so long, a checkpoint suggests deep work",
            Setting::RunawayEvents => "more events than this by one actor are worth a warning",
            Setting::RunawaySeconds => "the time within which they are counted",
            Setting::LivenessTimezone => "the time that heartbeat ids are in: utc or local",
            Setting::LivenessWorksDir => "an ai-works tree that is served in place",
            Setting::WatchdogIntervalSeconds => "how often the watchdog is meant to look",
            Setting::RemindEvery => "seconds between two reminders of the same anomaly",
            Setting::MaxRecoveryAttempts => "how often a silent agent is tried to be woken",
            Setting::RecoveryWaitCycles => "looks of the watchdog between two tries",
            Setting::OnBeat => "a command that gets every report on standard input",
            Setting::OnWarning => "the same when something is worth a warning",
            Setting::OnAnomaly => "the same when an anomaly begins, for reminders, and for every try to wake an agent",
            Setting::OnCleared => "the same when an anomaly is over",
            Setting::PauseGraceSeconds => "how long agents have to leave a project that was paused",
            Setting::SessionTtlSeconds => "how long a session holds without being renewed",
            Setting::ReviewersOrder => "who reviews, in turn; reviewers.NAME.command reads a prompt and prints a reply",
            Setting::ReviewersTimeoutSeconds => "how long a reviewer may take",
            Setting::RunnerCommand => "a command that does the work of a mission; hf-state go fires it",
            Setting::FixerCommand => "a command that gets the last lines of a failed run, and mends it",
            Setting::EventsMaxFileSizeMb => "size at which a segment of the log is followed by another",
        }
    }
}

/// The section whose members are agents, each with settings of `liveness` of its own.
const AGENTS: &str = "agents";
const LIVENESS: &str = "liveness";

/// The section whose members that are sections are reviewers, each with its command.
const REVIEWERS: &str = "reviewers";
const COMMAND: &str = "command";

/// Sections that other programs of the family use.
const FOREIGN_SECTIONS: &[&str] = &["llm", "auth", "server"];

/// The settings of one vault.
#[derive(Clone, Debug, Default)]
pub struct Config {
    values: BTreeMap<Setting, Value>,
    /// What holds for single agents.
    agents: BTreeMap<String, BTreeMap<Setting, Value>>,
    /// How reviewers are asked, by their names.
    reviewers: BTreeMap<String, String>,
    /// Why its commands must not be run, if it is not the user's own.
    foreign: Option<String>,
}

impl Config {
    pub fn count(&self, setting: Setting) -> u64 {
        self.value(setting).as_u64().unwrap_or_else(|| unreachable!("{setting} is a number"))
    }

    pub fn flag(&self, setting: Setting) -> bool {
        self.value(setting).as_bool().unwrap_or_else(|| unreachable!("{setting} is a flag"))
    }

    /// A text, or one of a few words.
    pub fn text(&self, setting: Setting) -> String {
        self.value(setting).as_str().unwrap_or_else(|| unreachable!("{setting} is a text")).to_owned()
    }

    pub fn texts(&self, setting: Setting) -> Vec<String> {
        let list = self.value(setting);
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub fn counts(&self, setting: Setting) -> Vec<u64> {
        self.value(setting).as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    /// A command to run. Refused if the file is not the user's own.
    pub fn command(&self, setting: Setting) -> Result<Option<String>> {
        self.own(setting.as_str(), &self.text(setting))
    }

    /// The command that asks a reviewer. Refused as above.
    pub fn reviewer(&self, name: &str) -> Result<Option<String>> {
        let command = self.reviewers.get(name).map(String::as_str).unwrap_or_default();
        self.own(&format!("{REVIEWERS}.{name}.{COMMAND}"), command)
    }

    fn own(&self, setting: &str, command: &str) -> Result<Option<String>> {
        match (command.trim(), &self.foreign) {
            ("", _) => Ok(None),
            (_, Some(why)) => Err(Error::refused(Reason::NotOwner, format!("{setting} is not run: {why}"))),
            (command, None) => Ok(Some(command.to_owned())),
        }
    }

    /// The same settings, with what the file says for one agent.
    pub fn for_agent(&self, name: &str) -> Config {
        let mut config = self.clone();
        config.values.extend(self.agents.get(name).into_iter().flatten().map(|(s, v)| (*s, v.clone())));
        config
    }

    /// A number that the file gives; nothing if it is silent.
    pub fn given_count(&self, setting: Setting) -> Option<u64> {
        self.values.get(&setting).and_then(Value::as_u64)
    }

    /// What the file says; if it is silent, the default.
    fn value(&self, setting: Setting) -> Value {
        self.values.get(&setting).cloned().unwrap_or_else(|| setting.fallback().value())
    }

    /// A text that the file gives; nothing if it is silent.
    pub fn given_text(&self, setting: Setting) -> Option<&str> {
        self.values.get(&setting).and_then(Value::as_str)
    }
}

/// Reads the file in the vault, else the one beside it. No file is a file that says nothing.
pub fn load(root: &Dir, path: &Path) -> Result<(Config, Vec<String>)> {
    let beside = || std::fs::canonicalize(path).ok().and_then(|p| p.parent().map(Path::to_owned));
    let (text, private) = match root.read(CONFIG_FILE)? {
        Some(bytes) => (bytes, root.check_private().and_then(|()| root.check_file_private(CONFIG_FILE))),
        None => match beside()
            .filter(|folder| folder.join(CONFIG_FILE).is_file())
            .map(|folder| (std::fs::read(folder.join(CONFIG_FILE)), folder))
        {
            Some((Ok(bytes), folder)) => {
                let private = Dir::open_root(&folder).and_then(|dir| match dir {
                    Some(dir) => dir.check_file_private(CONFIG_FILE),
                    None => Ok(()),
                });
                (bytes, private)
            }
            _ => return Ok((Config::default(), Vec::new())),
        },
    };
    let text = String::from_utf8(text).map_err(|_| Error::usage(format!("{CONFIG_FILE} is not UTF-8")))?;
    let (config, warnings) = parse(&text)?;
    Ok((Config { foreign: private.err().map(|error| error.message), ..config }, warnings))
}

/// Reads the text of a file; the second part are warnings.
pub fn parse(text: &str) -> Result<(Config, Vec<String>)> {
    let (mut config, mut warnings) = (Config::default(), Vec::new());
    let blank = text.lines().all(|line| matches!(line.trim_start().chars().next(), None | Some('#')));
    if blank {
        return Ok((config, warnings));
    }
    let wrong = |why: String| Error::usage(format!("{CONFIG_FILE}: {}", why.lines().next().unwrap_or_default()));
    let file: Value = serde_saphyr::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let Value::Object(sections) = file else { return Err(wrong("it is not a map of sections".to_owned())) };
    for (section, members) in sections {
        if FOREIGN_SECTIONS.contains(&section.as_str()) || members.is_null() {
            continue;
        }
        let Value::Object(mut members) = members else { return Err(wrong(format!("{section} is not a section"))) };
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

/// Takes the settings of a section and of what is nested in it. `shown` stands before a path in messages.
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
            (None, _) => warnings.push(format!("{CONFIG_FILE}: {shown}{path} is not a setting")),
        }
    }
    Ok(())
}

/// The settings of single agents.
fn agents(
    members: Map<String, Value>,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, BTreeMap<Setting, Value>>, String> {
    let mut all = BTreeMap::new();
    for (name, value) in members {
        let settings = match value {
            Value::Object(settings) => settings,
            Value::Null => Map::new(),
            _ => return Err(format!("{AGENTS}.{name} is not a section")),
        };
        let mut values = BTreeMap::new();
        walk(LIVENESS, &format!("{AGENTS}.{name}: "), settings, &mut values, warnings)?;
        all.insert(name, values);
    }
    Ok(all)
}

/// Takes the reviewers out of their section, each with its command.
fn reviewers(members: &mut Map<String, Value>, warnings: &mut Vec<String>) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    let names: Vec<String> = members.iter().filter(|(_, value)| value.is_object()).map(|(n, _)| n.clone()).collect();
    for name in names {
        let Some(Value::Object(settings)) = members.remove(&name) else { continue };
        for (setting, value) in settings {
            match (setting.as_str(), value) {
                (COMMAND, Value::String(command)) => drop(all.insert(name.clone(), command)),
                (COMMAND, Value::Null) => {}
                (COMMAND, _) => return Err(format!("{REVIEWERS}.{name}.{COMMAND} must be a text")),
                _ => warnings.push(format!("{CONFIG_FILE}: {REVIEWERS}.{name}.{setting} is not a setting")),
            }
        }
    }
    Ok(all)
}

/// A file that names every setting and says nothing: each one is commented out.
pub fn commented() -> String {
    let mut text = String::from("# HiveForge settings. Every line is optional; what stands here is the default.\n");
    let mut above: Vec<&str> = Vec::new();
    for setting in Setting::ALL {
        let mut path: Vec<&str> = setting.as_str().split('.').collect();
        let name = path.pop().unwrap_or_default();
        let same = path.iter().zip(&above).take_while(|(a, b)| a == b).count();
        for (depth, section) in path.iter().enumerate().skip(same) {
            let gap = if depth == 0 { "\n" } else { "" };
            writeln!(text, "{gap}# {}{section}:", "  ".repeat(depth)).expect("a string takes all");
        }
        let (indent, value) = ("  ".repeat(path.len()), setting.fallback().value());
        writeln!(text, "# {indent}{name}: {value}  # {}", setting.meaning()).expect("a string takes all");
        above = path;
    }
    text + "\n# agents:\n#   NAME:  # settings of liveness for this agent alone\n#     inactive_error_seconds: 600\n"
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
        assert_eq!(warnings, ["hiveforge.config.yaml: governance.max_retires is not a setting"]);
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
