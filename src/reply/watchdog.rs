//! Replies of hf-watchdog: what a tick found and did, and which timer makes ticks.

use super::{Cell, Key, Next, Replies, Reply, Row, Status, row};
use crate::base::text::count_noun;
use crate::op::{Health, InstalledTimer, TimerCheck, TimerOutcome, TimerState, WatchdogOutcome};

impl Replies for WatchdogOutcome {
    fn reply(&self) -> Reply {
        let status = match self.health {
            Health::Healthy => Status::Healthy,
            Health::Warning => Status::Warning,
            Health::Anomaly => Status::AnomalyFound,
            Health::Paused => Status::Paused,
            Health::Stopped => Status::Stopped,
        };
        let sum = match (self.findings.len(), self.health) {
            (0, Health::Stopped) => "everything is stopped; nothing is expected of anybody".to_owned(),
            (0, Health::Paused) => "all work is paused; nothing is expected of anybody".to_owned(),
            (0, _) => "nothing is wrong".to_owned(),
            (n, _) => format!("{}, {}", count_noun(n, "finding"), count_noun(self.did.len(), "action")),
        };
        let mut advice: Vec<&str> = self.findings.iter().map(|finding| finding.advice()).collect();
        advice.dedup();
        let anomalies = self.findings.iter().map(|finding| {
            let subject = finding.subject.to_string();
            let reference = self.references.get(&subject).map(String::as_str);
            let detail = finding.detail.as_deref();
            row![finding.code.as_str(), subject.as_str(), finding.level.as_str(), finding.seconds, reference, detail]
        });
        Reply::new(status, sum)
            .next(if status == Status::AnomalyFound { Next::run("hf-status") } else { Next::None })
            .with(Key::HeartbeatId, self.heartbeat_id.to_string())
            .with_rows(Key::Anomaly, anomalies)
            .with_texts(Key::Advice, advice)
            .with_rows(Key::Did, self.did.iter().map(|(what, subject)| row![what.as_str(), subject.as_str()]))
            .with(Key::TickMs, self.tick_ms)
            .warn(self.warnings.clone())
    }
}

impl Replies for TimerOutcome {
    fn reply(&self) -> Reply {
        let status = match self.state {
            TimerState::Installed => Status::Installed,
            TimerState::Incomplete => Status::Incomplete,
            TimerState::NotInstalled => Status::NotInstalled,
            TimerState::Uninstalled => Status::Uninstalled,
        };
        let timer = |timer: &InstalledTimer| row![timer.scheduler.as_str(), timer.place.as_str(), timer.entry.as_str()];
        let check = |check: &TimerCheck| {
            row![check.name.as_str(), check.result.as_str(), check.what.as_str(), check.remedy.as_deref()]
        };
        let last_tick = match self.last_tick {
            Some(tick) => row![tick, self.now.0.saturating_sub(tick.0).max(0)],
            None => Row::new(vec![Cell::Never]),
        };
        // Only an operator can help.
        let next = if status.exit() == 0 { Next::None } else { Next::OPERATOR };
        Reply::new(status, self.sum.as_str())
            .next(next)
            .with_rows(Key::Timer, self.timers.iter().map(timer))
            .with_rows(Key::Check, self.checks.iter().map(check))
            .with_row(Key::Watchdog, last_tick)
            .with_texts(Key::Notice, &self.notices)
    }
}
