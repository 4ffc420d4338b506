//! Hooks of the watchdog. They run after the lock is released.

use super::{WatchdogOutcome, WatchedAgent};
use crate::op::{Context, hook};
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
}

fn line(finding: &Finding) -> [String; 2] {
    [
        format!("ANOMALY:{} {} {} {}", finding.code, finding.subject, finding.level, finding.seconds),
        format!("ADVICE:{}", finding.code.advice()),
    ]
}

impl HookCall {
    fn new(hook: Setting, agent: &WatchedAgent, lines: Vec<String>, code: Option<String>) -> HookCall {
        HookCall { hook, subject: agent.subject.to_string(), lines, code }
    }

    pub fn anomaly(agent: &WatchedAgent, finding: &Finding) -> HookCall {
        HookCall::new(Setting::OnAnomaly, agent, line(finding).to_vec(), Some(finding.code.to_string()))
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
        ];
        hook::run(ctx, vault, call.hook, &call.subject, &text, &env);
    }
}
