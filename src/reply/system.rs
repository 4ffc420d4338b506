//! Replies about the whole vault: init, backup, status and metrics.

use super::{Cell, Key, Next, Replies, Reply, Row, Status, project, row};
use crate::base::Timestamp;
use crate::base::text::count_noun;
use crate::machine::Phase;
use crate::op::pause::ProjectView;
use crate::op::{
    AgentView, BackupOutcome, InitOutcome, ListFilter, Metric, MetricsOutcome, Problem, StatusOutcome,
    WATCHDOG_INSTALL, WATCHDOG_LOOP,
};

impl Replies for InitOutcome {
    fn reply(&self) -> Reply {
        let reply = match &self.created {
            None => Reply::new(Status::Exists, "the vault already exists; nothing was changed"),
            Some(first) => Reply::new(Status::Initialized, "created a new vault with its first event")
                .with(Key::EventId, first.id)
                .with(Key::Hash, first.hash)
                .with_some(Key::VaultId, first.payload["vault_id"].as_str()),
        };
        let reply = reply.with(Key::Hive, self.hive.as_str()).with(Key::Vault, self.vault.display().to_string());
        let advice =
            format!("let a watchdog run: {WATCHDOG_INSTALL} (or systemd), or {WATCHDOG_LOOP}; see hf-watchdog(1)");
        reply.with_texts(Key::Advice, self.created.is_some().then_some(advice))
    }
}

impl Replies for BackupOutcome {
    fn reply(&self) -> Reply {
        let done = &self.copied;
        let reply = Reply::new(
            Status::BackedUp,
            format!("copied {} with {}", count_noun(done.files, "file"), count_noun(done.events, "event")),
        )
        .with(Key::Path, self.path.display().to_string())
        .with(Key::Events, done.events);
        project::with_head(reply, done.head).with(Key::Files, done.files).with(Key::Bytes, done.bytes)
    }
}

impl Replies for StatusOutcome {
    /// Uses the names of seed 004's get_status.
    fn reply(&self) -> Reply {
        let of = of_filter(&self.filter);
        let sum = match self.problems.first() {
            Some(Problem { subject, what, .. }) => {
                let count = count_noun(self.problems.len(), "problem");
                format!("{}; {count}{of}; most urgent: {subject}: {what}", self.system)
            }
            None => format!("{}; nothing needs attention{of}", self.system),
        };
        let (status, next) = match self.problems.is_empty() {
            true => (Status::Ok, Next::None),
            false => (Status::Attention, Next::OPERATOR),
        };
        let watchdog = match self.watchdog {
            Some(tick) => row![tick, age(tick, self.now)],
            None => Row::new(vec![Cell::Never]),
        };
        Reply::new(status, sum)
            .next(next)
            .with(Key::SystemState, self.system.as_str())
            .with(Key::Hive, self.hive.as_str())
            .with(Key::Regime, self.regime.meaning())
            .with_counts(Key::Tasks, tasks(&self.tasks))
            .with_rows(Key::Project, self.projects.iter().map(project_row))
            .with_rows(Key::Agent, self.agents.iter().map(|agent| agent_row(agent, self.now)))
            .with(Key::PendingApprovals, self.pending_approvals)
            .with_some(Key::LastEventId, self.last_event.map(|(id, _)| id))
            .with_some(Key::LastEventAt, self.last_event.map(|(_, at)| at))
            .with_row(Key::Watchdog, watchdog)
            .with(Key::UptimeSeconds, self.uptime_seconds)
            .with(Key::Problems, self.problems.len())
            .with_rows(Key::Problem, self.problems.iter().map(|problem| problem_row(problem, self.now)))
            .with_texts(Key::Notice, &self.notices)
            .warn(self.warnings.clone())
    }
}

/// What a reply is limited to: ` in project brand for agent:builder`; empty if it is not limited.
fn of_filter(filter: &ListFilter) -> String {
    let project = filter.project.as_ref().map(|project| format!(" in project {project}"));
    let actor = filter.actor.as_ref().map(|actor| format!(" for {actor}"));
    project.into_iter().chain(actor).collect()
}

/// Seconds between two times, never negative.
fn age(then: Timestamp, now: Timestamp) -> i64 {
    now.0.saturating_sub(then.0).max(0)
}

fn problem_row(problem: &Problem, now: Timestamp) -> Row {
    let Problem { kind, since, subject, what, remedy, .. } = problem;
    row![*since, since.map(|since| age(since, now)), kind.as_str(), subject.as_str(), what.as_str(), remedy.to_string()]
}

fn agent_row(agent: &AgentView, now: Timestamp) -> Row {
    let health = match agent.anomalies.is_empty() {
        true => "HEALTHY".to_owned(),
        false => agent.anomalies.join(","),
    };
    let (at, sign) = agent.last_sign;
    let holds = (!agent.holds.is_empty()).then(|| agent.holds.join(","));
    let projects = (!agent.projects.is_empty()).then(|| agent.projects.join(","));
    row![agent.name.as_str(), health, at, sign.as_str(), age(at, now), holds, agent.deep_work.as_deref(), projects]
}

/// Tasks by phase. The usual phases are listed even if no task is in them.
fn tasks(counted: &[(Phase, u64)]) -> Vec<(Phase, u64)> {
    let usual = [Phase::Running, Phase::Ready, Phase::Succeeded, Phase::Failed, Phase::Aborted];
    let absent = usual.into_iter().filter(|phase| counted.iter().all(|(known, _)| known != phase));
    counted.iter().copied().chain(absent.map(|phase| (phase, 0))).collect()
}

fn project_row(view: &ProjectView) -> Row {
    let standing = view.standing.as_ref();
    row![
        view.name.as_str(),
        view.phase.as_str(),
        view.sessions,
        view.running,
        view.open,
        standing.and_then(|standing| standing.since),
        standing.and_then(|standing| standing.by.as_deref()),
        standing.map(|standing| standing.why.as_str()).filter(|why| !why.is_empty())
    ]
}

impl Replies for MetricsOutcome {
    fn reply(&self) -> Reply {
        let metric = |m: &Metric| {
            let percent = (m.whole > 0).then(|| m.part as f64 * 100.0 / m.whole as f64);
            row![m.name, percent.map_or(Cell::None, Cell::Percent), m.part, m.whole, m.aim, m.means]
        };
        Reply::new(Status::Ok, count_noun(self.metrics.len(), "metric"))
            .with_rows(Key::Metric, self.metrics.iter().map(metric))
    }
}
