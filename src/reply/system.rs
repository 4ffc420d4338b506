//! Replies about the whole vault: init, backup, status and metrics.

use super::{Cell, Key, Replies, Reply, Row, Status, project, row};
use crate::base::text::count_noun;
use crate::machine::Phase;
use crate::op::pause::ProjectView;
use crate::op::{BackupOutcome, InitOutcome, Metric, MetricsOutcome, StatusOutcome};

impl Replies for InitOutcome {
    fn reply(&self) -> Reply {
        let reply = match &self.created {
            None => Reply::new(Status::Exists, "the vault already exists; nothing was changed"),
            Some(first) => Reply::new(Status::Initialized, "created a new vault with its first event")
                .with(Key::EventId, first.id)
                .with(Key::Hash, first.hash)
                .with_some(Key::VaultId, first.payload["vault_id"].as_str()),
        };
        reply.with(Key::Hive, self.hive.as_str()).with(Key::Vault, self.vault.display().to_string())
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
        let problem = self.problems.first();
        let sum = match problem {
            Some((since, what)) => format!("{}; since {since}: {what}", self.system),
            None => format!("{}; nothing needs attention", self.system),
        };
        let watchdog = match self.watchdog {
            Some(tick) => row![tick, (self.now.0 - tick.0).max(0)],
            None => Row::new(vec![Cell::Never]),
        };
        let reply = Reply::new(Status::Ok, sum)
            .with(Key::SystemState, self.system.as_str())
            .with_counts(Key::Tasks, tasks(&self.tasks))
            .with_rows(Key::Project, self.projects.iter().map(project_row))
            .with(Key::PendingApprovals, self.pending_approvals)
            .with_some(Key::LastEventId, self.last_event.map(|(id, _)| id))
            .with_some(Key::LastEventAt, self.last_event.map(|(_, at)| at))
            .with_row(Key::Watchdog, watchdog)
            .with(Key::UptimeSeconds, self.uptime_seconds)
            .with(Key::Problems, self.problems.len());
        match problem {
            Some((since, what)) => reply.with_row(Key::Problem, row![*since, what.as_str()]),
            None => reply,
        }
    }
}

/// Tasks by phase. The usual phases are listed even if no task is in them.
fn tasks(counted: &[(Phase, u64)]) -> Vec<(Phase, u64)> {
    let usual = [Phase::Running, Phase::Ready, Phase::Succeeded, Phase::Failed, Phase::Aborted];
    let absent = usual.into_iter().filter(|phase| counted.iter().all(|(known, _)| known != phase));
    counted.iter().copied().chain(absent.map(|phase| (phase, 0))).collect()
}

fn project_row(view: &ProjectView) -> Row {
    row![view.name.as_str(), view.phase.as_str(), view.sessions, view.running, view.open]
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
