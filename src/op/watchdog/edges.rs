//! The beginning and the end of agents' anomalies, the attempts to recover agents, and which hooks are run for them.

use std::collections::BTreeSet;

use serde_json::json;

use super::agents::WatchedAgent;
use super::{TickRun, hooks, record};
use crate::base::Result;
use crate::event::Kind;
use crate::op::kernel::Transaction;
use crate::policy::liveness::{Finding, Level};
use crate::policy::settings::{Setting, Settings};

impl TickRun<'_> {
    /// Records the start and end of agents' anomalies and the attempts to wake them. Returns the hooks to run.
    pub(super) fn record_edges(
        &mut self,
        tx: &mut Transaction<'_>,
        watched: &[WatchedAgent],
    ) -> Result<Vec<hooks::HookCall>> {
        let mut calls = Vec::new();
        for agent in watched {
            let mine: Vec<Finding> =
                self.findings.iter().filter(|finding| finding.subject == agent.subject).cloned().collect();
            let failing: Vec<&Finding> =
                mine.iter().filter(|f| f.level == Level::Error && f.code.has_duration()).collect();
            let attempt = self.recover(tx, agent, &failing)?;
            for &finding in &failing {
                let is_new = !agent.anomalies.iter().any(|code| code == finding.code.as_str());
                if is_new {
                    record(tx, Kind::AnomalyDetected, &agent.subject, payload_of(finding))?;
                    self.tick.reported_at.insert(anomaly_key(finding), self.now.0);
                }
                let is_reminder = !is_new && self.remind(&tx.config, finding);
                // One run of the hook is both a report and an attempt.
                let call = match attempt.filter(|attempt| attempt.code == finding.code) {
                    Some(attempt) => hooks::Call::Try(attempt),
                    None if is_new => hooks::Call::Anomaly,
                    None if is_reminder => hooks::Call::Reminder,
                    None => continue,
                };
                calls.push(hooks::HookCall::anomaly(agent, finding, call));
            }
            // An error without a duration is an event of its own.
            for finding in mine.iter().filter(|f| f.level == Level::Error && !f.code.has_duration()) {
                calls.push(hooks::HookCall::anomaly(agent, finding, hooks::Call::Anomaly));
            }
            for code in agent.anomalies.iter().filter(|code| !failing.iter().any(|f| f.code.as_str() == code.as_str()))
            {
                record(tx, Kind::AnomalyCleared, &agent.subject, json!({"code": code}))?;
                self.tick.reported_at.remove(&format!("{code} {}", agent.subject));
                calls.push(hooks::HookCall::cleared(agent, code));
            }
            calls.extend(self.warn(agent, &mine));
            // While somebody waits for the agent to recover, or has given up on it, nothing else disturbs it.
            let is_recovering = tx.state().entity(&agent.subject).is_some_and(|a| a.as_agent().recovery_attempts() > 0);
            if !is_recovering {
                calls.push(hooks::HookCall::beat(agent, &mine));
            }
        }
        Ok(calls)
    }

    /// Whether it is time for a reminder of the same anomaly.
    fn remind(&mut self, config: &Settings, finding: &Finding) -> bool {
        let every = config.count(Setting::RemindEvery) as i64;
        let reminded_at = self.tick.reported_at.entry(anomaly_key(finding)).or_insert(self.now.0);
        let due = self.now.0.saturating_sub(*reminded_at) >= every;
        if due {
            *reminded_at = self.now.0;
        }
        due
    }

    /// Tries to recover an agent: a limited number of times, with a pause between attempts, then escalates to an
    /// operator. The attempts are in the log, so that a second watchdog does not start over. Returns the attempt that
    /// is made now; giving up is none, and `notify` runs the hook for that.
    fn recover(
        &mut self,
        tx: &mut Transaction<'_>,
        agent: &WatchedAgent,
        failing: &[&Finding],
    ) -> Result<Option<hooks::Attempt>> {
        let config = &tx.config;
        let recoverable = config.texts(Setting::RecoverFrom);
        let is_recoverable = |finding: &&&Finding| recoverable.iter().any(|code| code == finding.code.as_str());
        let Some(failure) = failing.iter().find(is_recoverable) else { return Ok(None) };
        let max = config.count(Setting::MaxRecoveryAttempts);
        let interval = config.count(Setting::WatchdogIntervalSeconds);
        let wait_seconds = config.count(Setting::RecoveryWaitCycles).saturating_mul(interval);
        // Without a hook nothing could be tried.
        if config.text(Setting::OnAnomaly).trim().is_empty() || self.commands_refused || self.stopped {
            return Ok(None);
        }
        let Some(known) = tx.state().entity(&agent.subject).map(|agent| agent.into_owned()) else {
            return Ok(None);
        };
        let (tries, tried_at) = (known.as_agent().recovery_attempts(), known.as_agent().last_recovery_at());
        let is_too_early = tried_at.is_some_and(|at| self.now.0.saturating_sub(at.0).max(0) as u64 <= wait_seconds);
        if is_too_early || known.as_agent().gave_up_on().is_some() {
            return Ok(None);
        }
        if tries < max {
            let payload = json!({"code": failure.code.as_str(), "attempt": tries + 1});
            record(tx, Kind::RecoveryAttempted, &agent.subject, payload)?;
            return Ok(Some(hooks::Attempt { code: failure.code, number: tries + 1, of: max }));
        }
        let reason = format!("{} for {} s; recovery attempts failed: {max}", failure.code, failure.seconds);
        let payload = json!({"reason": reason, "code": failure.code.as_str()});
        record(tx, Kind::EscalationRequired, &agent.subject, payload)?;
        Ok(None)
    }

    /// Findings below an anomaly run a hook when they start, and are never recorded.
    fn warn(&mut self, agent: &WatchedAgent, mine: &[Finding]) -> Option<hooks::HookCall> {
        let below: Vec<&Finding> = mine.iter().filter(|finding| finding.level != Level::Error).collect();
        let keys: BTreeSet<String> =
            below.iter().map(|finding| format!("{} {}", anomaly_key(finding), finding.level)).collect();
        let of_agent = format!(" {}", agent.subject);
        let new = keys.iter().any(|key| !self.tick.warned.contains(key));
        self.tick.warned.retain(|key| !key.contains(&of_agent) || keys.contains(key));
        self.tick.warned.extend(keys);
        new.then(|| hooks::HookCall::warning(agent, &below))
    }
}

/// What is recorded of a finding.
fn payload_of(finding: &Finding) -> serde_json::Value {
    json!({
        "code": finding.code.as_str(), "seconds": finding.seconds, "detail": finding.detail,
        "due_at": finding.due_at.map(|due_at| due_at.to_string()),
    })
}

fn anomaly_key(finding: &Finding) -> String {
    format!("{} {}", finding.code, finding.subject)
}
