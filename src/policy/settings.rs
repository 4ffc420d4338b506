//! The settings: every one of them in one table, with its default and its meaning, and their values.
//!
//! What a rule follows comes from here, and what is in force is on the record: `SettingsChanged`, and the first event of
//! the log, carry all of it, so that a log can be judged by the settings of its time. Where values come from is no
//! concern of policy: see `vault::config`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::base::{limits, names};
use crate::state::State;

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

/// The largest number that is still whole in the canonical form of an event.
const WHOLE_MAX: u64 = (1 << 53) - 1;

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
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Fallback::Count(_) => value.as_u64().is_some_and(|n| (1..=WHOLE_MAX).contains(&n)),
            Fallback::Text(_) => value.is_string(),
            Fallback::Flag(_) => value.is_boolean(),
            Fallback::Choice(names) => value.as_str().is_some_and(|name| names.contains(&name)),
            Fallback::Texts(_) => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Fallback::Counts(_) => {
                value.as_array().is_some_and(|list| list.iter().all(|n| n.as_u64().is_some_and(|n| n <= WHOLE_MAX)))
            }
        }
    }

    pub fn wants(self) -> String {
        match self {
            Fallback::Count(_) => format!("a whole number, 1 or more, at most {WHOLE_MAX}"),
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

/// One setting.
#[derive(Debug)]
pub struct SettingRow {
    pub setting: Setting,
    pub fallback: Fallback,
    pub meaning: &'static str,
}

const fn row(setting: Setting, fallback: Fallback, meaning: &'static str) -> SettingRow {
    SettingRow { setting, fallback, meaning }
}

/// The table itself, in the order of `Setting`.
#[rustfmt::skip]
pub const TABLE: &[SettingRow] = &[
    row(Setting::HiveName, Fallback::Text("hive"), "a name for people"),
    row(Setting::HiveVaultPath, Fallback::Text("./Vault"), "where the vault is; counts only in a file beside the vault"),
    row(Setting::MaxRetries, Fallback::Count(3), "how often a transient failure is tried again"),
    row(Setting::MaxOscillations, Fallback::Count(5), "how often verifying may send work back before it is blocked"),
    row(Setting::MaxConcurrentTasks, Fallback::Count(10), "tasks that may be assigned or running at once"),
    row(Setting::TaskTimeoutSeconds, Fallback::Count(300), "how long a task may take"),
    row(Setting::HeartbeatIntervalSeconds, Fallback::Count(30), "how often a run shows that it is alive"),
    row(Setting::ApprovalTimeoutHours, Fallback::Count(24), "how long a decision may stay open"),
    row(Setting::ArchiveAfterDays, Fallback::Count(7), "when a finished task leaves the projections"),
    row(Setting::LeaseSeconds, Fallback::Count(900), "how long a claim holds without a heartbeat"),
    row(Setting::AutoAssign, Fallback::Flag(false), "whether ready tasks are assigned without being claimed"),
    row(Setting::ApprovalTimeoutPolicy, Fallback::Choice(&["escalate", "reject"]), "what becomes of a decision that stayed open: escalate or reject"),
    row(Setting::DestructiveCommands, Fallback::Texts(&[]), "commands that need an approval; * stands for anything"),
    row(Setting::JobsMaxParallel, Fallback::Count(10), "jobs that may run at once; max_concurrent_tasks if not given"),
    row(Setting::JobsLogMaxBytes, Fallback::Count(10 * 1024 * 1024), "what is kept of a job's output: the first and the last half of this"),
    row(Setting::JobsKillGrace, Fallback::Count(5), "seconds between asking a job to end and killing it"),
    row(Setting::JobsTransientExitCodes, Fallback::Counts(&[75]), "exit codes after which a job may be tried again"),
    row(Setting::JobsTransientSignals, Fallback::Counts(&[]), "signals after which a job may be tried again"),
    row(Setting::JobsOnFinish, Fallback::Text(""), "a command that gets the report of every finished job on standard input"),
    row(Setting::JobsCheckCmd, Fallback::Text(""), "a command that tells of a foreign job; {} stands for its id"),
    row(Setting::HooksTimeoutSeconds, Fallback::Count(30), "how long a hook may take"),
    row(Setting::NeverSeenSeconds, Fallback::Count(300), "an agent that began and shows nothing is an anomaly after this"),
    row(Setting::InactiveWarnSeconds, Fallback::Count(300), "no activity log or checkpoint for so long is worth a warning"),
    row(Setting::InactiveErrorSeconds, Fallback::Count(600), "no activity log or checkpoint for so long is an anomaly"),
    row(Setting::IntrospectionNoticeSeconds, Fallback::Count(900), "no introspection for so long is worth a notice"),
    row(Setting::IntrospectionWarnSeconds, Fallback::Count(1200), "no introspection for so long is worth a warning"),
    row(Setting::IntrospectionErrorSeconds, Fallback::Count(1800), "no introspection for so long is an anomaly"),
    row(Setting::DeepworkCheckpointSeconds, Fallback::Count(600), "flexible deep work needs a checkpoint this often"),
    row(Setting::ClockSkewSeconds, Fallback::Count(120), "an id that is further in the future is an anomaly"),
    row(Setting::StrictMaxMinutes, Fallback::Count(240), "the longest strict deep work that can be declared"),
    row(Setting::DeepworkExtendMax, Fallback::Count(2), "how often a strict deep work can be extended"),
    row(Setting::SuggestDeepworkSeconds, Fallback::Count(480), "without an activity log for so long, a checkpoint suggests deep work"),
    row(Setting::RunawayEvents, Fallback::Count(50), "more events than this by one actor are worth a warning"),
    row(Setting::RunawaySeconds, Fallback::Count(60), "the time within which they are counted"),
    row(Setting::LivenessTimezone, Fallback::Choice(&["utc", "local"]), "the time that heartbeat ids are in: utc or local"),
    row(Setting::LivenessWorksDir, Fallback::Text(""), "an ai-works tree that is served in place"),
    row(Setting::WatchdogIntervalSeconds, Fallback::Count(60), "how often the watchdog is meant to look"),
    row(Setting::RemindEvery, Fallback::Count(3600), "seconds between two reminders of the same anomaly"),
    row(Setting::MaxRecoveryAttempts, Fallback::Count(3), "how often a silent agent is tried to be woken"),
    row(Setting::RecoveryWaitCycles, Fallback::Count(5), "looks of the watchdog between two tries"),
    row(Setting::OnBeat, Fallback::Text(""), "a command that gets every report on standard input"),
    row(Setting::OnWarning, Fallback::Text(""), "the same when something is worth a warning"),
    row(Setting::OnAnomaly, Fallback::Text(""), "the same when an anomaly begins, for reminders, and for every try to wake an agent"),
    row(Setting::OnCleared, Fallback::Text(""), "the same when an anomaly is over"),
    row(Setting::PauseGraceSeconds, Fallback::Count(300), "how long agents have to leave a project that was paused"),
    row(Setting::SessionTtlSeconds, Fallback::Count(3600), "how long a session holds without being renewed"),
    row(Setting::ReviewersOrder, Fallback::Texts(&["gpt", "gem"]), "who reviews, in turn; reviewers.NAME.command reads a prompt and prints a reply"),
    row(Setting::ReviewersTimeoutSeconds, Fallback::Count(120), "how long a reviewer may take"),
    row(Setting::RunnerCommand, Fallback::Text(""), "a command that does the work of a mission; hf-state go fires it"),
    row(Setting::FixerCommand, Fallback::Text(""), "a command that gets the last lines of a failed run, and mends it"),
    row(Setting::EventsMaxFileSizeMb, Fallback::Count(100), "size at which a segment of the log is followed by another"),
];

impl Setting {
    pub fn row(self) -> &'static SettingRow {
        &TABLE[self as usize]
    }

    pub fn fallback(self) -> Fallback {
        self.row().fallback
    }

    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }
}

/// Where the settings of single agents, and the commands of reviewers, are on the record.
const AGENTS: &str = "agents";
const REVIEWERS: &str = "reviewers";

/// The settings of a vault. What was not given has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub values: BTreeMap<Setting, Value>,
    /// What holds for single agents.
    pub agents: BTreeMap<String, BTreeMap<Setting, Value>>,
    /// The command that asks each reviewer.
    pub reviewers: BTreeMap<String, String>,
}

impl Settings {
    pub fn count(&self, setting: Setting) -> u64 {
        match (self.values.get(&setting), setting.fallback()) {
            (Some(value), _) => value.as_u64().unwrap_or_else(|| unreachable!("{setting} is a number")),
            (None, Fallback::Count(count)) => count,
            _ => unreachable!("{setting} is a number"),
        }
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

    /// What was given; if nothing was, the default.
    pub fn value(&self, setting: Setting) -> Value {
        self.values.get(&setting).cloned().unwrap_or_else(|| setting.fallback().value())
    }

    /// The same settings, with what holds for one agent.
    pub fn for_agent(&self, name: &str) -> Settings {
        let mut settings = self.clone();
        settings.values.extend(self.agents.get(name).into_iter().flatten().map(|(s, v)| (*s, v.clone())));
        settings
    }

    /// How many tasks may be under way at once.
    pub fn max_concurrent_tasks(&self) -> u64 {
        self.count(Setting::MaxConcurrentTasks).min(limits::TASKS_AT_ONCE_MAX_COUNT)
    }

    /// How many jobs may run at once.
    pub fn max_parallel_jobs(&self) -> u64 {
        match self.values.contains_key(&Setting::JobsMaxParallel) {
            true => self.count(Setting::JobsMaxParallel),
            false => self.max_concurrent_tasks(),
        }
    }

    /// Whether a decision that nobody made in time is a no; else it stays open, escalated.
    pub fn rejects_on_timeout(&self) -> bool {
        self.text(Setting::ApprovalTimeoutPolicy) == "reject"
    }
}
/// The settings as an event carries them.
impl Settings {
    /// All of them, so that a later default changes nothing about what was in force.
    pub fn to_json(&self) -> Value {
        let mut all: Map<String, Value> = Map::new();
        for row in TABLE {
            all.insert(row.setting.as_str().to_owned(), self.value(row.setting));
        }
        // What follows from another setting is on the record as what it was.
        all.insert(Setting::JobsMaxParallel.as_str().to_owned(), self.max_parallel_jobs().into());
        let agents = self.agents.iter().map(|(name, values)| {
            let values: Map<String, Value> = values.iter().map(|(s, value)| (s.to_string(), value.clone())).collect();
            (name.clone(), values.into())
        });
        all.insert(AGENTS.to_owned(), agents.collect::<Map<_, _>>().into());
        let reviewers = self.reviewers.iter().map(|(name, command)| (name.clone(), command.as_str().into()));
        all.insert(REVIEWERS.to_owned(), reviewers.collect::<Map<_, _>>().into());
        all.into()
    }

    /// What an event says. What this version does not know, or cannot use, is left out.
    pub fn from_json(value: &Value) -> Settings {
        let known = |members: Option<&Map<String, Value>>| -> BTreeMap<Setting, Value> {
            let usable = |(name, value): (&String, &Value)| {
                let setting = Setting::parse(name).filter(|setting| setting.fallback().fits(value))?;
                Some((setting, value.clone()))
            };
            members.into_iter().flatten().filter_map(usable).collect()
        };
        let section = |name: &str| value.get(name).and_then(Value::as_object);
        let agents = section(AGENTS).into_iter().flatten();
        let reviewers = section(REVIEWERS).into_iter().flatten();
        let command = |(name, command): (&String, &Value)| Some((name.clone(), command.as_str()?.to_owned()));
        Settings {
            values: known(value.as_object()),
            agents: agents.map(|(name, values)| (name.clone(), known(values.as_object()))).collect(),
            reviewers: reviewers.filter_map(command).collect(),
        }
    }

    /// What is in force by the log alone; nothing in a log of a version that did not record it.
    pub fn recorded(state: &State) -> Option<Settings> {
        state.settings().as_ref().map(Settings::from_json)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_has_one_row_per_setting_in_order() {
        assert_eq!(TABLE.len(), Setting::ALL.len());
        assert!(TABLE.iter().zip(Setting::ALL).all(|(row, setting)| row.setting == *setting));
    }

    #[test]
    fn what_is_on_the_record_reads_back_and_names_every_setting() {
        let mut settings = Settings::default();
        settings.values.insert(Setting::MaxRetries, 7.into());
        settings.agents.insert("a".to_owned(), BTreeMap::from([(Setting::InactiveWarnSeconds, 5.into())]));
        settings.reviewers.insert("gpt".to_owned(), "ask gpt".to_owned());
        let recorded = settings.to_json();
        let back = Settings::from_json(&recorded);
        assert_eq!(back.to_json(), recorded);
        assert_eq!((back.count(Setting::MaxRetries), back.count(Setting::LeaseSeconds)), (7, 900));
        assert_eq!(back.for_agent("a").count(Setting::InactiveWarnSeconds), 5);
        assert!(Setting::ALL.iter().all(|setting| recorded.get(setting.as_str()).is_some()));
        let odd = json!({"governance.max_retries": "many", "governance.unheard_of": 1, "agents": 5});
        assert_eq!(Settings::from_json(&odd), Settings::default());
    }
}
