//! Hooks: commands from the settings that are run when something happens. They run without any lock, within a time
//! limit, and only in a vault that the user trusts.
//!
//! A hook that fails is recorded once, when it begins to fail, and once more when it works again; in between the
//! system's fact `failed_hooks` says since when and why.

use std::time::Duration;

use serde_json::json;

use super::Context;
use crate::base::{Actor, Error, ErrorKind, Reason, Result, Subject, text};
use crate::event::Kind;
use crate::job::{self, Interruption, Program};
use crate::op::kernel::{Transaction, with_view};
use crate::policy::component;
use crate::policy::settings::Setting;
use crate::state::State;
use crate::vault::Vault;
use crate::vault::config::Config;

/// What hooks are given: the keys of the report on standard input and the environment variables. hf-hooks(7) is
/// generated from these tables, and a test compares them with what hooks get.
#[derive(Debug)]
pub struct HookRow {
    pub hooks: &'static [Setting],
    pub when: &'static str,
    /// The keys of every report; more may follow them.
    pub keys: &'static [&'static str],
    /// The variables, in addition to those of every hook.
    pub variables: &'static [&'static str],
}

/// Every hook.
pub const TABLE: &[HookRow] = &[
    HookRow {
        hooks: &[Setting::OnDecision, Setting::OnEscalation, Setting::OnDone],
        when: "for each event of interest, at least once, in the order of the log",
        keys: &["EVENT", "HIVE", "SUBJECT", "REF", "STATUS", "SUM", "WHEN", "DO"],
        variables: &["HF_EVENT", "HF_EVENT_ID", "HF_HIVE", "HF_SUBJECT", "HF_REF", "HF_STATUS", "HF_DO"],
    },
    HookRow {
        hooks: &[Setting::OnGivingUp],
        when: "for each such event, at least once",
        keys: &["EVENT", "HIVE", "SUBJECT", "REF", "STATUS", "SUM", "WHEN", "DO", "AGENT", "CODE", "CALL"],
        variables: &[
            "HF_EVENT",
            "HF_EVENT_ID",
            "HF_HIVE",
            "HF_SUBJECT",
            "HF_REF",
            "HF_STATUS",
            "HF_DO",
            "HF_ANOMALY_AGENT",
            "HF_CODE",
            "HF_CALL",
        ],
    },
    HookRow {
        hooks: &[Setting::OnBeat, Setting::OnWarning, Setting::OnAnomaly, Setting::OnCleared],
        when: "at a tick of the watchdog, for each agent it concerns",
        keys: &["HEARTBEAT_ID", "STATUS", "AGENT", "CALL"],
        variables: &[
            "HF_HEARTBEAT_ID",
            "HF_STATUS",
            "HF_ANOMALY_AGENT",
            "HF_CODE",
            "HF_CALL",
            "HF_TRY",
            "HF_TRY_LIMIT",
        ],
    },
    HookRow {
        hooks: &[Setting::JobsOnFinish],
        when: "once, after the last run of a job, or when a job is found lost",
        keys: &["TASK_ID", "STATUS", "SUM", "LOGREF"],
        variables: &["HF_TASK_ID", "HF_STATUS", "HF_EXIT_CODE", "HF_LOG"],
    },
];

/// The variables of every hook.
pub const EVERY_HOOK: &[&str] = &["HF_ATTENDED", "HF_HOOK", "HF_RUN_ID", "HF_VAULT"];

/// What each key of a report means.
pub const KEYS: &[(&str, &str)] = &[
    ("EVENT", "the type of the event"),
    ("HIVE", "the name of the hive, hive.name"),
    ("SUBJECT", "what it is about, as TYPE:ID"),
    ("REF", "its short reference, such as T-0001; SUBJECT if it has none"),
    (
        "STATUS",
        "the state of the subject when the report was made; of the system (watchdog); DONE, FAIL or LOST (jobs)",
    ),
    ("SUM", "what happened, in one sentence; of a job that failed, it begins with the exit code or signal"),
    ("WHEN", "when it happened"),
    ("DO", "the command that shows what to do about it"),
    ("AGENT", "the name of the agent"),
    ("CODE", "the rule that the agent breaks"),
    (
        "CALL",
        "what the call is: beat, warning, anomaly (one begins), try (the agent is to be recovered), reminder (an anomaly lasts), cleared, or giving_up",
    ),
    ("HEARTBEAT_ID", "the id of the tick"),
    (
        "ANOMALY",
        "a rule that fails, its subject, its level, and the seconds since the time that it counts from; for RUNAWAY, the number of events; then, if it is about a file, which one and why (may repeat)",
    ),
    ("ADVICE", "what to do about it (may repeat)"),
    ("CLEARED", "a rule that holds again, and its subject"),
    ("TASK_ID", "the task of the job"),
    ("LOGREF", "the log of the job, relative to Autonomous/"),
];

/// What each variable means.
pub const VARIABLES: &[(&str, &str)] = &[
    ("HF_ATTENDED", "a mark by which the processes of the hook are found if they have to be ended"),
    ("HF_HOOK", "the setting of the hook, such as hooks.on_done"),
    ("HF_RUN_ID", "the same: its shell belongs to a program, so that no command in it counts as an operator's"),
    ("HF_VAULT", "the path of the vault, so that the hook can run other commands on it"),
    ("HF_EVENT", "EVENT of the report"),
    ("HF_EVENT_ID", "the id of the event; the same id if a hook is notified twice"),
    ("HF_HIVE", "HIVE of the report"),
    ("HF_SUBJECT", "SUBJECT of the report"),
    ("HF_REF", "REF of the report"),
    ("HF_STATUS", "STATUS of the report"),
    ("HF_DO", "DO of the report"),
    ("HF_HEARTBEAT_ID", "HEARTBEAT_ID of the report"),
    ("HF_ANOMALY_AGENT", "AGENT of the report"),
    ("HF_CODE", "the rule that the hook is run for, such as INACTIVE; empty in on_beat"),
    ("HF_CALL", "CALL of the report"),
    ("HF_TRY", "the number of the attempt to recover the agent, from 1; empty unless HF_CALL is try"),
    ("HF_TRY_LIMIT", "watchdog.max_recovery_attempts, together with HF_TRY"),
    ("HF_TASK_ID", "TASK_ID of the report"),
    ("HF_EXIT_CODE", "the exit code of the job; empty if it has none"),
    ("HF_LOG", "the path of the job's log"),
];

/// How much of a hook's error message is recorded.
const MESSAGE_MAX_CHARS: usize = 200;

/// A hook to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct HookInput<'a> {
    pub hook: Setting,
    /// What it is about.
    pub subject: &'a str,
    /// The report on its standard input.
    pub report: &'a str,
    /// Its environment variables, in addition to those of every hook.
    pub variables: &'a [(&'a str, String)],
}

/// What became of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookRun {
    Worked,
    Failed,
    /// It is not set, or its command is not trusted.
    NotRun,
}

/// Runs a hook, if it is set. Apart from what the command does, the only effect is that the beginning and the end of
/// its failures are recorded.
pub(super) fn run(ctx: &Context, vault: &Vault, input: HookInput<'_>) -> HookRun {
    let (ran, failure) = match command(vault, input.hook) {
        Ok(None) => return HookRun::NotRun,
        Err(error) if tells_untrusted(vault, &error) => return HookRun::NotRun,
        Err(error) => (HookRun::NotRun, Some(error)),
        Ok(Some((line, max))) => match start(vault, input, &line, max) {
            Ok(()) => (HookRun::Worked, None),
            Err(error) => (HookRun::Failed, Some(error)),
        },
    };
    let reason = failure.map(|error| text::cut(&error.message, MESSAGE_MAX_CHARS));
    // Best effort, like the hook itself.
    let _ = record_edge(ctx, vault, input, reason.as_deref());
    ran
}

/// Whether a hook is not run because the user does not trust the vault on this machine. The caller is told; it is not
/// recorded, because it is no fact about the vault.
pub(super) fn is_untrusted(vault: &Vault, config: &Config, hook: Setting) -> bool {
    vault.command(config, hook).is_err_and(|error| tells_untrusted(vault, &error))
}

fn tells_untrusted(vault: &Vault, error: &Error) -> bool {
    let is_untrusted = error.kind == ErrorKind::Refused(Reason::NotTrusted);
    vault.notices().add(is_untrusted.then(|| error.message.clone()));
    is_untrusted
}

/// The command of a hook and its time limit; none if it is not set.
fn command(vault: &Vault, hook: Setting) -> Result<Option<(String, Duration)>> {
    let config = vault.config();
    let max = Duration::from_secs(config.count(Setting::HooksTimeoutSeconds));
    Ok(vault.command(&config, hook)?.map(|line| (line, max)))
}

fn start(vault: &Vault, input: HookInput<'_>, line: &str, max: Duration) -> Result<()> {
    let vault_path = vault.path().to_string_lossy().into_owned();
    let mut variables = vec![("HF_HOOK", input.hook.as_str().to_owned()), ("HF_VAULT", vault_path)];
    variables.extend_from_slice(input.variables);
    let program = Program::shell(line, input.hook.as_str()).current_dir(vault.path()).envs(&variables);
    run_program("the hook", program, input.report, max, None).map(drop)
}

/// Whether a hook failed when it was run last.
fn is_failed(state: &State, hook: Setting) -> bool {
    let system = state.entity(&Subject::SYSTEM);
    system.is_some_and(|system| system.as_system().failed_hooks().is_some_and(|all| all.contains_key(hook.as_str())))
}

/// Records that a hook began to fail, for this reason, or that it works again. Nothing if that is recorded already.
fn record_edge(ctx: &Context, vault: &Vault, input: HookInput<'_>, reason: Option<&str>) -> Result<()> {
    let is_recorded = |state: &State| is_failed(state, input.hook) == reason.is_some();
    // Usually nothing has changed, and that can be found out without the lock.
    if with_view(vault, |_, state| Ok(is_recorded(state)))? {
        return Ok(());
    }
    let ctx = ctx.acting_as(Actor::core(component::HOOKS)).at_this_moment();
    let mut tx = Transaction::begin(&ctx, vault)?;
    if is_recorded(tx.state()) {
        return Ok(());
    }
    let (kind, payload) = match reason {
        Some(reason) => (Kind::HookFailed, json!({"hook": input.hook.as_str(), "reason": reason})),
        None => (Kind::HookRecovered, json!({"hook": input.hook.as_str()})),
    };
    let asked = tx.ask(ctx.request(kind, Some(input.subject), payload))?;
    tx.commit(asked.id).map(drop)
}

/// Runs a program of the settings and returns what it printed. A failure is an error with the last line that it printed:
/// on standard error, or on standard output if standard error has none.
pub(super) fn run_program(
    who: &str,
    program: Program,
    input: &str,
    max: Duration,
    interruption: Option<&Interruption<'_>>,
) -> Result<Vec<u8>> {
    let answer = job::ask_unless(program, input.as_bytes(), max, interruption).map_err(|error| match error.kind {
        ErrorKind::Refused(_) => error,
        _ => error.at(who),
    })?;
    match answer.code {
        Some(0) => Ok(answer.stdout),
        code => {
            let how = code.map_or("was killed".to_owned(), |code| format!("exited with {code}"));
            let last_line = |printed: &[u8]| {
                let printed = String::from_utf8_lossy(printed);
                let line = printed.lines().rev().find(|line| !line.trim().is_empty())?;
                Some(text::cut(line.trim(), MESSAGE_MAX_CHARS))
            };
            let message = last_line(&answer.stderr).or_else(|| last_line(&answer.stdout));
            let message = message.map_or_else(String::new, |message| format!(": {message}"));
            Err(Error::new(ErrorKind::System, format!("{who} {how}{message}")))
        }
    }
}
