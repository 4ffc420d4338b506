//! The settings: one table of all settings with their defaults and meanings, and the values in force.
//!
//! The first event of a log, every `SettingsChanged` and every `SettingsAdopted` record all values, so that the audit can
//! judge each event by the settings of its time. `vault::config` reads the values from the configuration file; whether
//! the file or the log has the last word is a matter of the regime.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::code::Code;
use super::rules::{Step, operator_only};
use crate::base::{Digest, Error, Reason, Result, Strength, limits, names};
use crate::event::Kind;
use crate::event::kind::{CHANGED, FROM, SETTINGS, TO};
use crate::state::State;

names! {
    /// Every setting, by its path in the configuration file.
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
        ApprovalStrength = "governance.approval_strength",
        DestructiveCommands = "governance.destructive_commands",
        JobsMaxParallel = "jobs.max_parallel",
        JobsLogMaxBytes = "jobs.log_max_bytes",
        JobsKillGrace = "jobs.kill_grace",
        JobsControlGroups = "jobs.control_groups",
        JobsPollMaxSeconds = "jobs.poll_max_seconds",
        JobsPassEnv = "jobs.pass_env",
        JobsTransientExitCodes = "jobs.transient_exit_codes",
        JobsTransientSignals = "jobs.transient_signals",
        JobsOnFinish = "jobs.on_finish",
        JobsCheckCmd = "jobs.check_cmd",
        HooksTimeoutSeconds = "hooks.timeout_seconds",
        OnDecision = "hooks.on_decision",
        OnEscalation = "hooks.on_escalation",
        OnDone = "hooks.on_done",
        NeverSeenWarnSeconds = "liveness.never_seen_warn_seconds",
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
        LivenessLogDirs = "liveness.log_dirs",
        WatchdogIntervalSeconds = "watchdog.interval_seconds",
        RemindEvery = "watchdog.remind_every",
        MaxRecoveryAttempts = "watchdog.max_recovery_attempts",
        RecoveryWaitCycles = "watchdog.recovery_wait_cycles",
        RecoverFrom = "watchdog.recover_from",
        OnBeat = "watchdog.hooks.on_beat",
        OnWarning = "watchdog.hooks.on_warning",
        OnAnomaly = "watchdog.hooks.on_anomaly",
        OnCleared = "watchdog.hooks.on_cleared",
        OnGivingUp = "watchdog.hooks.on_giving_up",
        PauseGraceSeconds = "pause.grace_seconds",
        SessionTtlSeconds = "session.ttl_seconds",
        ReviewersOrder = "reviewers.order",
        ReviewersTimeoutSeconds = "reviewers.timeout_seconds",
        RunnerCommand = "runner.command",
        FixerCommand = "fixer.command",
        EventsMaxFileSizeMb = "logging.events_max_file_size_mb",
    }
}

/// The largest integer that the canonical JSON form of an event represents exactly.
const WHOLE_MAX: u64 = (1 << 53) - 1;

/// The type and default of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// A number, 1 or more.
    Count(u64),
    /// A number; 0 has a meaning too: never, or at once.
    CountOrZero(u64),
    /// A number, 1 or more. The default is this part of another setting: its value times the first number, divided by
    /// the second.
    PartOf(Setting, u64, u64),
    /// A number, 1 or more, that limits something. By default there is no limit.
    NoLimit,
    Text(&'static str),
    Flag(bool),
    /// One of these strings; the first is the default.
    Choice(&'static [&'static str]),
    /// A list of strings.
    Texts(&'static [&'static str]),
    /// A list of some of these strings; all of them are the default.
    SomeOf(&'static [&'static str]),
    /// A list of numbers.
    Counts(&'static [u64]),
}

impl Fallback {
    /// Whether a value has the right type and range.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Fallback::Count(_) | Fallback::PartOf(..) | Fallback::NoLimit => {
                value.as_u64().is_some_and(|n| (1..=WHOLE_MAX).contains(&n))
            }
            Fallback::CountOrZero(_) => value.as_u64().is_some_and(|n| n <= WHOLE_MAX),
            Fallback::Text(_) => value.is_string(),
            Fallback::Flag(_) => value.is_boolean(),
            Fallback::Choice(names) => value.as_str().is_some_and(|name| names.contains(&name)),
            Fallback::Texts(_) => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Fallback::SomeOf(names) => value
                .as_array()
                .is_some_and(|list| list.iter().all(|name| name.as_str().is_some_and(|name| names.contains(&name)))),
            Fallback::Counts(_) => {
                value.as_array().is_some_and(|list| list.iter().all(|n| n.as_u64().is_some_and(|n| n <= WHOLE_MAX)))
            }
        }
    }

    /// Describes the valid values, as in `must be …`.
    pub fn wants(self) -> String {
        match self {
            Fallback::Count(_) | Fallback::PartOf(..) | Fallback::NoLimit => "a whole number, 1 or more".to_owned(),
            Fallback::CountOrZero(_) => "a whole number, 0 or more".to_owned(),
            Fallback::Text(_) => "a string".to_owned(),
            Fallback::Flag(_) => "true or false".to_owned(),
            Fallback::Choice(names) => format!("one of {}", names.join(", ")),
            Fallback::Texts(_) => "a list of strings".to_owned(),
            Fallback::SomeOf(names) => format!("a list of {}", names.join(", ")),
            Fallback::Counts(_) => "a list of whole numbers".to_owned(),
        }
    }

    /// The default as JSON, which is also valid YAML; null if there is none.
    pub fn value(self) -> Value {
        match self {
            Fallback::Count(n) | Fallback::CountOrZero(n) => n.into(),
            Fallback::PartOf(whole, part, of) => share(Settings::default().count(whole), part, of),
            Fallback::NoLimit => Value::Null,
            Fallback::Text(text) => text.into(),
            Fallback::Flag(flag) => flag.into(),
            Fallback::Choice(names) => names[0].into(),
            Fallback::Texts(texts) | Fallback::SomeOf(texts) => texts.into(),
            Fallback::Counts(counts) => counts.into(),
        }
    }
}

/// The default of a setting that is a part of another one.
fn share(whole: u64, part: u64, of: u64) -> Value {
    (whole.saturating_mul(part) / of).into()
}

/// A row of the table.
#[derive(Debug)]
pub struct SettingRow {
    pub setting: Setting,
    pub fallback: Fallback,
    pub meaning: &'static str,
    /// Whether an agent can have a value of its own. Default: no.
    pub per_agent: bool,
    /// Whether its value is a command line, which runs only in a trusted vault. Default: no.
    pub is_command: bool,
}

const fn row(setting: Setting, fallback: Fallback, meaning: &'static str) -> SettingRow {
    SettingRow { setting, fallback, meaning, per_agent: false, is_command: false }
}

/// A row of a setting whose value is a command line.
const fn command(setting: Setting, meaning: &'static str) -> SettingRow {
    SettingRow { is_command: true, ..row(setting, Fallback::Text(""), meaning) }
}

impl SettingRow {
    const fn per_agent(self) -> SettingRow {
        SettingRow { per_agent: true, ..self }
    }
}

/// All settings, in the order of `Setting`.
#[rustfmt::skip]
pub const TABLE: &[SettingRow] = &[
    row(Setting::HiveName, Fallback::Text("hive"), "name of this hive, shown by hf-status and hf-init"),
    row(Setting::HiveVaultPath, Fallback::Text("./Vault"), "path of the vault; used only in a file next to the vault"),
    row(Setting::MaxRetries, Fallback::CountOrZero(3), "how often a task is retried after a transient failure"),
    row(Setting::MaxOscillations, Fallback::CountOrZero(5), "how often verification may send work back before the requirement is blocked"),
    row(Setting::MaxConcurrentTasks, Fallback::Count(10), "maximum number of tasks in progress"),
    row(Setting::TaskTimeoutSeconds, Fallback::NoLimit, "time limit of a run started with hf-task start, in seconds; no limit if not set"),
    row(Setting::HeartbeatIntervalSeconds, Fallback::Count(30), "seconds between the heartbeats of a run"),
    row(Setting::ApprovalTimeoutHours, Fallback::Count(24), "hours after which an open decision times out"),
    row(Setting::ArchiveAfterDays, Fallback::CountOrZero(7), "days after which a finished task is archived"),
    row(Setting::LeaseSeconds, Fallback::Count(900), "seconds after which a claim without a heartbeat expires"),
    row(Setting::AutoAssign, Fallback::Flag(false), "whether ready tasks are assigned without being claimed"),
    row(Setting::ApprovalTimeoutPolicy, Fallback::Choice(&["escalate", "reject"]), "what happens to a decision that timed out: escalate or reject"),
    row(Setting::ApprovalStrength, Fallback::Choice(&["key", "touch", "touch_and_pin"]), "in a vault with operator keys, what a signature must prove: key, or a FIDO key that was touched, or touched after its PIN was entered"),
    row(Setting::DestructiveCommands, Fallback::Texts(&[]), "commands that require approval; * matches anything"),
    row(Setting::JobsMaxParallel, Fallback::PartOf(Setting::MaxConcurrentTasks, 1, 1), "maximum number of running jobs; max_concurrent_tasks if not set"),
    row(Setting::JobsLogMaxBytes, Fallback::Count(10 * 1024 * 1024), "maximum size of a job's log; of a longer output the beginning and the end are kept"),
    row(Setting::JobsKillGrace, Fallback::CountOrZero(5), "seconds between asking a job to end and killing it"),
    row(Setting::JobsControlGroups, Fallback::Flag(true), "whether the processes of a job get a control group, where one can be made"),
    row(Setting::JobsPollMaxSeconds, Fallback::Count(270), "how many seconds hf-poll and hf-job wait take at most, unless their caller says otherwise"),
    row(Setting::JobsPassEnv, Fallback::Texts(&[]), "variables of the caller that a job that requires approval gets besides PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_*, TZ and TMPDIR"),
    row(Setting::JobsTransientExitCodes, Fallback::Counts(&[75]), "exit codes after which a job may be retried"),
    row(Setting::JobsTransientSignals, Fallback::Counts(&[]), "signals after which a job may be retried; all of them if the list is empty"),
    command(Setting::JobsOnFinish, "command that receives the report of every job that finished or was lost on standard input"),
    command(Setting::JobsCheckCmd, "command that reports the state of a foreign job; {} is replaced by its id"),
    row(Setting::HooksTimeoutSeconds, Fallback::Count(30), "seconds after which a hook is killed"),
    command(Setting::OnDecision, "command that is notified on standard input when a decision is requested"),
    command(Setting::OnEscalation, "the same, when something is escalated to an operator"),
    command(Setting::OnDone, "the same, when a task succeeded or was aborted, or a requirement was implemented, verified, rejected or superseded"),
    row(Setting::NeverSeenWarnSeconds, Fallback::Count(300), "seconds without any sign of life of a started agent that cause a warning").per_agent(),
    row(Setting::NeverSeenSeconds, Fallback::Count(600), "seconds without any sign of life after which a started agent is an anomaly").per_agent(),
    row(Setting::InactiveWarnSeconds, Fallback::Count(300), "seconds without an activity log, a checkpoint, a heartbeat of a run or a wait for a job that cause a warning").per_agent(),
    row(Setting::InactiveErrorSeconds, Fallback::Count(600), "seconds without any of these that are an anomaly").per_agent(),
    row(Setting::IntrospectionNoticeSeconds, Fallback::PartOf(Setting::IntrospectionErrorSeconds, 1, 2), "seconds without an introspection that cause a notice; half of introspection_error_seconds if not set").per_agent(),
    row(Setting::IntrospectionWarnSeconds, Fallback::PartOf(Setting::IntrospectionErrorSeconds, 2, 3), "seconds without an introspection that cause a warning; two thirds of introspection_error_seconds if not set").per_agent(),
    row(Setting::IntrospectionErrorSeconds, Fallback::Count(1800), "seconds without an introspection that are an anomaly").per_agent(),
    row(Setting::DeepworkCheckpointSeconds, Fallback::Count(600), "maximum number of seconds between checkpoints in flexible deep work").per_agent(),
    row(Setting::ClockSkewSeconds, Fallback::Count(120), "an id further in the future than this, in seconds, is an anomaly").per_agent(),
    row(Setting::StrictMaxMinutes, Fallback::CountOrZero(240), "maximum length of strict deep work, in minutes; 0 forbids it").per_agent(),
    row(Setting::DeepworkExtendMax, Fallback::CountOrZero(2), "how often strict deep work can be extended").per_agent(),
    row(Setting::SuggestDeepworkSeconds, Fallback::Count(480), "seconds without an activity log after which a checkpoint suggests deep work").per_agent(),
    row(Setting::RunawayEvents, Fallback::Count(50), "number of events by one actor above which there is a warning"),
    row(Setting::RunawaySeconds, Fallback::Count(60), "seconds within which these events are counted"),
    row(Setting::LivenessTimezone, Fallback::Choice(&["utc", "local"]), "time zone of heartbeat ids: utc or local").per_agent(),
    row(Setting::LivenessWorksDir, Fallback::Text(""), "path of an existing ai-works tree with the files of agent main, or of the agent that has this setting, to use in place").per_agent(),
    row(Setting::LivenessLogDirs, Fallback::Texts(&["artifacts"]), "directories of such a tree that have activity logs in */histories and */subthemes/*/histories").per_agent(),
    row(Setting::WatchdogIntervalSeconds, Fallback::Count(60), "seconds between two ticks of the watchdog"),
    row(Setting::RemindEvery, Fallback::CountOrZero(3600), "seconds between two reminders of the same anomaly; 0 is every tick"),
    row(Setting::MaxRecoveryAttempts, Fallback::CountOrZero(3), "how often the watchdog tries to recover an agent"),
    row(Setting::RecoveryWaitCycles, Fallback::CountOrZero(5), "wait between two attempts to recover an agent, as a multiple of watchdog.interval_seconds"),
    row(Setting::RecoverFrom, Fallback::SomeOf(Code::RECOVERABLE), "the anomalies of an agent from which the watchdog tries to recover it with watchdog.hooks.on_anomaly"),
    command(Setting::OnBeat, "command that receives every report of the watchdog on standard input"),
    command(Setting::OnWarning, "the same, for reports with a warning"),
    command(Setting::OnAnomaly, "the same, for new anomalies, reminders and attempts to recover an agent"),
    command(Setting::OnCleared, "the same, for anomalies that were cleared"),
    command(Setting::OnGivingUp, "command that is notified on standard input when the watchdog gives up recovering an agent"),
    row(Setting::PauseGraceSeconds, Fallback::CountOrZero(300), "seconds that agents have to leave a paused project"),
    row(Setting::SessionTtlSeconds, Fallback::Count(3600), "seconds after which a session expires unless it is renewed"),
    row(Setting::ReviewersOrder, Fallback::Texts(&["gpt", "gem"]), "the reviewers, in turn; reviewers.NAME.command reads a prompt and prints a reply"),
    row(Setting::ReviewersTimeoutSeconds, Fallback::Count(120), "seconds after which a reviewer is killed"),
    command(Setting::RunnerCommand, "command that does the work of a mission; started by hf-state go"),
    command(Setting::FixerCommand, "command that fixes a failed run; receives its last lines"),
    row(Setting::EventsMaxFileSizeMb, Fallback::Count(100), "size in MiB at which a new segment of the log is started"),
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

    /// Its name without the section.
    pub fn name(self) -> &'static str {
        last_name(self.as_str())
    }

    /// The setting that was probably meant by an unknown path: the most similar one, if it is similar enough, else one of
    /// the same name in another section.
    pub fn meant_by(path: &str) -> Option<Setting> {
        let similarity = |setting: &Setting| strsim::normalized_damerau_levenshtein(path, setting.as_str());
        let best = Setting::ALL.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
        let best = best.filter(|best| similarity(best) >= MIN_SIMILARITY);
        let namesake = || Setting::ALL.iter().find(|setting| setting.name() == last_name(path));
        best.or_else(namesake).copied()
    }
}

names! {
    /// Which settings are in force, and so who can change the rules.
    pub enum Regime {
        /// The log records none: version 0.1 wrote it. The next command that writes records those in the file.
        Unrecorded = "UNRECORDED",
        /// Those in the file; a change is recorded before it applies.
        Recorded = "RECORDED",
        /// Those that an operator adopted last; a changed file changes nothing.
        Adopted = "ADOPTED",
        /// The same, and operators sign what they do.
        Keyed = "KEYED",
    }
}

impl Regime {
    /// The regime of a log. Whatever else binds a vault to an operator's settings belongs here.
    pub fn of(state: &State) -> Regime {
        let tally = state.tally();
        match (tally.is_keyed(), tally.recorded(Kind::SettingsAdopted) > 0, tally.has_settings()) {
            (true, ..) => Regime::Keyed,
            (false, true, _) => Regime::Adopted,
            (false, false, true) => Regime::Recorded,
            (false, false, false) => Regime::Unrecorded,
        }
    }

    /// Whether only adopted settings are in force.
    pub fn is_strict(self) -> bool {
        matches!(self, Regime::Adopted | Regime::Keyed)
    }

    /// What it says about the settings alone: a vault with operator keys has adopted ones.
    pub fn of_settings(self) -> Regime {
        if self == Regime::Keyed { Regime::Adopted } else { self }
    }

    /// What it means for those who rely on the rules.
    pub fn meaning(self) -> &'static str {
        match self {
            Regime::Unrecorded => "settings are not recorded yet: earlier events cannot be judged by them",
            Regime::Recorded => {
                "settings are recorded, not adopted: anyone who can write the settings file can change the rules"
            }
            Regime::Keyed => {
                "operator keys are set: what operators decide is signed; how far that proves a person, see hf-key(1)"
            }
            Regime::Adopted => {
                "settings are adopted: a changed file has no effect until an operator adopts it; any program of this user can act as one"
            }
        }
    }
}

/// In a strict vault settings change only by adoption; and an event that tells what changed tells the truth.
pub(super) fn settings_follow_the_regime(state: &State, step: &Step<'_>) -> Result<()> {
    if step.kind == Kind::SettingsChanged && Regime::of(state).is_strict() {
        return Err(operator_only("changing adopted settings", step.actor));
    }
    let (Kind::SettingsChanged | Kind::SettingsAdopted) = step.kind else { return Ok(()) };
    let told = step.payload.get(CHANGED).and_then(Value::as_object);
    let (Some(told), Some(before)) = (told, Settings::recorded(state)) else { return Ok(()) };
    let after = step.payload.get(SETTINGS).map(Settings::from_json).unwrap_or_default();
    // A newer version may know more settings.
    let known = |name: &&String| Settings::knows(name);
    let changed = before.changes_to(&after);
    let names = changed.keys().chain(told.keys().filter(known));
    match names.into_iter().find(|name| changed.get(*name) != told.get(*name)) {
        Some(name) => {
            Err(Error::refused(Reason::Changed, format!("{} does not tell truly what became of {name}", step.kind)))
        }
        None => Ok(()),
    }
}

/// The part of a path after its last dot.
fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The similarity from which on a path is taken for a misspelled one.
const MIN_SIMILARITY: f64 = 0.75;

/// The members of a recorded settings object that contain the settings of single agents and the commands of reviewers.
const AGENTS: &str = "agents";
const REVIEWERS: &str = "reviewers";
const COMMAND: &str = "command";
/// The member with the version of the record.
const VERSION: &str = "version";
/// The current version. A record without one has 300 as `governance.task_timeout_seconds` whether or not it was set,
/// because at that time nothing applied it; that value says nothing about what anybody wanted, so it is not used. Since
/// version 2, a setting without a value is recorded as null.
const RECORD_VERSION: u64 = 2;

/// The settings of a vault. A setting without a value has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub values: BTreeMap<Setting, Value>,
    /// Settings that apply to single agents, by agent name.
    pub agents: BTreeMap<String, BTreeMap<Setting, Value>>,
    /// The command of each reviewer, by reviewer name.
    pub reviewers: BTreeMap<String, String>,
}

impl Settings {
    pub fn count(&self, setting: Setting) -> u64 {
        self.limit(setting).unwrap_or_else(|| unreachable!("{setting} is a number"))
    }

    /// The value of a setting that limits something; none if there is no limit.
    pub fn limit(&self, setting: Setting) -> Option<u64> {
        self.value(setting).as_u64()
    }

    pub fn flag(&self, setting: Setting) -> bool {
        self.value(setting).as_bool().unwrap_or_else(|| unreachable!("{setting} is a flag"))
    }

    /// The value of a string setting or a choice.
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

    /// The value of a setting, or its default; null if it has neither.
    pub fn value(&self, setting: Setting) -> Value {
        match (self.values.get(&setting), setting.fallback()) {
            (Some(value), _) => value.clone(),
            (None, Fallback::PartOf(whole, part, of)) => share(self.count(whole), part, of),
            (None, fallback) => fallback.value(),
        }
    }

    /// The settings that apply to one agent.
    pub fn for_agent(&self, name: &str) -> Settings {
        let mut settings = self.clone();
        settings.values.extend(self.agents.get(name).into_iter().flatten().map(|(s, v)| (*s, v.clone())));
        settings
    }

    /// The maximum number of tasks in progress.
    pub fn max_concurrent_tasks(&self) -> u64 {
        self.count(Setting::MaxConcurrentTasks).min(limits::TASKS_AT_ONCE_MAX_COUNT)
    }

    /// The maximum number of running jobs.
    pub fn max_parallel_jobs(&self) -> u64 {
        self.count(Setting::JobsMaxParallel)
    }

    /// What an operator's signature must prove.
    pub fn approval_strength(&self) -> Strength {
        Strength::parse(&self.text(Setting::ApprovalStrength)).unwrap_or(Strength::Key)
    }

    /// Whether a decision that timed out is rejected; otherwise it stays open, escalated.
    pub fn rejects_on_timeout(&self) -> bool {
        self.text(Setting::ApprovalTimeoutPolicy) == "reject"
    }
}

/// Settings by name.
impl Settings {
    /// Every setting by its full name, including those of single agents and reviewers. Null if it has no value.
    pub fn by_name(&self) -> BTreeMap<String, Value> {
        let global = Setting::ALL.iter().map(|setting| (setting.to_string(), self.value(*setting)));
        let agents = self.agents.iter().flat_map(|(agent, own)| {
            own.iter().map(move |(setting, value)| (format!("{AGENTS}.{agent}.{}", setting.name()), value.clone()))
        });
        let reviewers = self.reviewers.iter();
        let reviewers =
            reviewers.map(|(name, command)| (format!("{REVIEWERS}.{name}.{COMMAND}"), command.as_str().into()));
        global.chain(agents).chain(reviewers).collect()
    }

    /// Whether this version knows a setting of this full name.
    fn knows(name: &str) -> bool {
        let is_in = |section: &str| name.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
        Setting::parse(name).is_some() || is_in(AGENTS) || (is_in(REVIEWERS) && last_name(name) == COMMAND)
    }

    /// The settings whose values differ, by name, with their old and new values.
    pub fn changes_to(&self, after: &Settings) -> Map<String, Value> {
        let (before, after) = (self.by_name(), after.by_name());
        let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
        changed.map(|name| (name.clone(), json!({FROM: before.get(name), TO: after.get(name)}))).collect()
    }

    /// The names of the settings that name a command to run.
    pub fn commands(&self) -> Vec<String> {
        let is_set = |value: &Value| value.as_str().is_some_and(|line| !line.trim().is_empty());
        let is_command = |name: &str| match Setting::parse(name) {
            Some(setting) => setting.row().is_command,
            None => name.starts_with(REVIEWERS),
        };
        let named = self.by_name().into_iter().filter(|(name, value)| is_command(name) && is_set(value));
        named.map(|(name, _)| name).collect()
    }
}

/// The digest of recorded settings.
pub fn digest(recorded: &Value) -> Digest {
    let text = serde_jcs::to_string(recorded).expect("parsed JSON always has a canonical form");
    Digest::of_bytes(text.as_bytes())
}

/// The settings as an event records them.
impl Settings {
    /// All settings, including defaults: a later version may have different defaults. A default that is a part of
    /// another setting is null: that setting may differ from agent to agent.
    pub fn to_json(&self) -> Value {
        let mut all: Map<String, Value> = Map::from_iter([(VERSION.to_owned(), RECORD_VERSION.into())]);
        for SettingRow { setting, fallback, .. } in TABLE {
            let is_derived = matches!(fallback, Fallback::PartOf(..)) && !self.values.contains_key(setting);
            let value = if is_derived { Value::Null } else { self.value(*setting) };
            all.insert(setting.as_str().to_owned(), value);
        }
        let agents = self.agents.iter().map(|(name, values)| {
            let values: Map<String, Value> = values.iter().map(|(s, value)| (s.to_string(), value.clone())).collect();
            (name.clone(), values.into())
        });
        all.insert(AGENTS.to_owned(), agents.collect::<Map<_, _>>().into());
        let reviewers = self.reviewers.iter().map(|(name, command)| (name.clone(), command.as_str().into()));
        all.insert(REVIEWERS.to_owned(), reviewers.collect::<Map<_, _>>().into());
        all.into()
    }

    /// Reads recorded settings. Unknown settings and invalid values are ignored.
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
        let mut values = known(value.as_object());
        if value.get(VERSION).and_then(Value::as_u64).is_none_or(|version| version < RECORD_VERSION) {
            values.remove(&Setting::TaskTimeoutSeconds);
        }
        Settings {
            values,
            agents: agents.map(|(name, values)| (name.clone(), known(values.as_object()))).collect(),
            reviewers: reviewers.filter_map(command).collect(),
        }
    }

    /// The settings in force according to the log; none if it was written by a version that did not record them.
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

    #[test]
    fn a_time_limit_counts_only_if_it_was_recorded_by_a_version_that_applies_it() {
        let limit = |recorded: Value| Settings::from_json(&recorded).limit(Setting::TaskTimeoutSeconds);
        assert_eq!(limit(json!({"governance.task_timeout_seconds": 300})), None);
        assert_eq!(limit(json!({"governance.task_timeout_seconds": 300, "version": 2})), Some(300));
        assert_eq!(limit(Settings::default().to_json()), None);
    }

    #[test]
    fn a_default_that_is_a_part_follows_the_whole_even_for_one_agent_and_when_recorded() {
        let mut settings = Settings::default();
        let own = BTreeMap::from([(Setting::IntrospectionErrorSeconds, 60.into())]);
        settings.agents.insert("a".to_owned(), own);
        settings.values.insert(Setting::MaxConcurrentTasks, 3.into());
        for settings in [settings.clone(), Settings::from_json(&settings.to_json())] {
            let limits = |settings: &Settings| {
                [Setting::IntrospectionNoticeSeconds, Setting::IntrospectionWarnSeconds].map(|s| settings.count(s))
            };
            assert_eq!(limits(&settings), [900, 1200]);
            assert_eq!(limits(&settings.for_agent("a")), [30, 40]);
            assert_eq!(settings.max_parallel_jobs(), 3);
        }
    }
}
