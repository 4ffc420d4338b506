//! Hooks of the watchdog. They run after the lock is released.

use super::{WatchdogOutcome, WatchedAgent};
use crate::base::text;
use crate::op::Context;
use crate::op::hook::{self, HookInput};
use crate::policy::code::Code;
use crate::policy::liveness::Finding;
use crate::policy::settings::Setting;
use crate::vault::Vault;

/// One hook to run.
#[derive(Clone, Debug)]
pub struct HookCall {
    hook: Setting,
    subject: String,
    /// The lines of the report, after its heading.
    lines: Vec<String>,
    code: Option<String>,
    call: Call,
}

/// What a call of a hook is.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Beat,
    Warning,
    /// An anomaly begins.
    Anomaly,
    /// The agent is to be recovered from an anomaly.
    Try(Attempt),
    /// An anomaly lasts.
    Reminder,
    Cleared,
}

impl Call {
    const fn as_str(self) -> &'static str {
        match self {
            Call::Beat => "beat",
            Call::Warning => "warning",
            Call::Anomaly => "anomaly",
            Call::Try(_) => "try",
            Call::Reminder => "reminder",
            Call::Cleared => "cleared",
        }
    }

    const fn attempt(self) -> Option<Attempt> {
        match self {
            Call::Try(attempt) => Some(attempt),
            _ => None,
        }
    }
}

/// An attempt to recover an agent.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The rule that the agent breaks.
    pub code: Code,
    /// Its number, from 1.
    pub number: u64,
    /// How many attempts are made at most.
    pub of: u64,
}

fn line(finding: &Finding) -> [String; 2] {
    let detail = finding.detail.as_ref().map(|detail| format!(" {}", text::escape(detail))).unwrap_or_default();
    [
        format!("ANOMALY:{} {} {} {}{detail}", finding.code, finding.subject, finding.level, finding.seconds),
        format!("ADVICE:{}", finding.advice()),
    ]
}

impl HookCall {
    fn new(hook: Setting, call: Call, agent: &WatchedAgent, lines: Vec<String>, code: Option<String>) -> HookCall {
        HookCall { hook, subject: agent.subject.to_string(), lines, code, call }
    }

    /// A new anomaly, a reminder of one, or an attempt to recover the agent.
    pub fn anomaly(agent: &WatchedAgent, finding: &Finding, call: Call) -> HookCall {
        HookCall::new(Setting::OnAnomaly, call, agent, line(finding).to_vec(), Some(finding.code.to_string()))
    }

    pub fn cleared(agent: &WatchedAgent, code: &str) -> HookCall {
        let lines = vec![format!("CLEARED:{code} {}", agent.subject)];
        HookCall::new(Setting::OnCleared, Call::Cleared, agent, lines, Some(code.to_owned()))
    }

    pub fn warning(agent: &WatchedAgent, findings: &[&Finding]) -> HookCall {
        let lines = findings.iter().flat_map(|finding| line(finding)).collect();
        let code = findings.first().map(|finding| finding.code.to_string());
        HookCall::new(Setting::OnWarning, Call::Warning, agent, lines, code)
    }

    pub fn is_beat(&self) -> bool {
        self.hook == Setting::OnBeat
    }

    pub fn beat(agent: &WatchedAgent, findings: &[Finding]) -> HookCall {
        let lines = findings.iter().filter(|f| f.code != Code::ArchiveDue).flat_map(line).collect();
        HookCall::new(Setting::OnBeat, Call::Beat, agent, lines, None)
    }
}

/// Runs the hooks in order, each with a report on standard input.
pub(super) fn run(ctx: &Context, vault: &Vault, calls: &[HookCall], outcome: &WatchdogOutcome) {
    // Found out once: with many agents, most calls are of hooks that are not set.
    let config = vault.config();
    let is_set = |call: &&HookCall| !config.text(call.hook).trim().is_empty();
    for call in calls.iter().filter(is_set) {
        let agent = call.subject.trim_start_matches("agent:");
        let attempt = call.call.attempt();
        let (id, health, what) = (&outcome.heartbeat_id, outcome.health, call.call.as_str());
        let mut text = format!("HEARTBEAT_ID:{id}\nSTATUS:{health}\nAGENT:{agent}\nCALL:{what}\n");
        call.lines.iter().for_each(|line| text += &format!("{line}\n"));
        let env = [
            ("HF_HEARTBEAT_ID", outcome.heartbeat_id.to_string()),
            ("HF_STATUS", outcome.health.to_string()),
            ("HF_ANOMALY_AGENT", agent.to_owned()),
            ("HF_CODE", call.code.clone().unwrap_or_default()),
            ("HF_CALL", what.to_owned()),
            ("HF_TRY", attempt.map(|attempt| attempt.number.to_string()).unwrap_or_default()),
            ("HF_TRY_LIMIT", attempt.map(|attempt| attempt.of.to_string()).unwrap_or_default()),
        ];
        let input = HookInput { hook: call.hook, subject: &call.subject, report: &text, variables: &env };
        hook::run(ctx, vault, input);
    }
}
