//! Hooks of the watchdog. They run after the lock is released.

use super::{WatchdogOutcome, WatchedAgent};
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
    /// The attempt to wake the agent that it makes, if any.
    attempt: Option<Attempt>,
}

/// An attempt to wake a silent agent.
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
    [
        format!("ANOMALY:{} {} {} {}", finding.code, finding.subject, finding.level, finding.seconds),
        format!("ADVICE:{}", finding.code.advice()),
    ]
}

impl HookCall {
    fn new(hook: Setting, agent: &WatchedAgent, lines: Vec<String>, code: Option<String>) -> HookCall {
        HookCall { hook, subject: agent.subject.to_string(), lines, code, attempt: None }
    }

    /// A new anomaly, a reminder of one, or an attempt to wake the agent.
    pub fn anomaly(agent: &WatchedAgent, finding: &Finding, attempt: Option<Attempt>) -> HookCall {
        let call = HookCall::new(Setting::OnAnomaly, agent, line(finding).to_vec(), Some(finding.code.to_string()));
        HookCall { attempt: attempt.filter(|attempt| attempt.code == finding.code), ..call }
    }

    pub fn cleared(agent: &WatchedAgent, code: &str) -> HookCall {
        HookCall::new(
            Setting::OnCleared,
            agent,
            vec![format!("CLEARED:{code} {}", agent.subject)],
            Some(code.to_owned()),
        )
    }

    pub fn warning(agent: &WatchedAgent, findings: &[&Finding]) -> HookCall {
        let lines = findings.iter().flat_map(|finding| line(finding)).collect();
        HookCall::new(Setting::OnWarning, agent, lines, findings.first().map(|finding| finding.code.to_string()))
    }

    pub fn is_beat(&self) -> bool {
        self.hook == Setting::OnBeat
    }

    pub fn beat(agent: &WatchedAgent, findings: &[Finding]) -> HookCall {
        let lines = findings.iter().filter(|f| f.code != Code::ArchiveDue).flat_map(line).collect();
        HookCall::new(Setting::OnBeat, agent, lines, None)
    }
}

/// Runs the hooks in order, each with a report on standard input.
pub(super) fn run(ctx: &Context, vault: &Vault, calls: &[HookCall], outcome: &WatchdogOutcome) {
    for call in calls {
        let agent = call.subject.trim_start_matches("agent:");
        let mut text = format!("HEARTBEAT_ID:{}\nSTATUS:{}\nAGENT:{agent}\n", outcome.heartbeat_id, outcome.health);
        call.lines.iter().for_each(|line| text += &format!("{line}\n"));
        let env = [
            ("HF_HEARTBEAT_ID", outcome.heartbeat_id.to_string()),
            ("HF_STATUS", outcome.health.to_string()),
            ("HF_ANOMALY_AGENT", agent.to_owned()),
            ("HF_CODE", call.code.clone().unwrap_or_default()),
            ("HF_TRY", call.attempt.map(|attempt| attempt.number.to_string()).unwrap_or_default()),
            ("HF_TRY_LIMIT", call.attempt.map(|attempt| attempt.of.to_string()).unwrap_or_default()),
        ];
        let input = HookInput { hook: call.hook, subject: &call.subject, report: &text, variables: &env };
        hook::run(ctx, vault, input);
    }
}
