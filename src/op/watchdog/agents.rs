//! The agents' part of a tick: judges their signs of life.

use super::TickRun;
use crate::base::{EntityType, Result, Subject, Timestamp};
use crate::machine::Phase;
use crate::op::agent;
use crate::op::kernel::Transaction;
use crate::policy::liveness::{self, AudibleTime, SignsOfLife};
use crate::policy::project::ProjectActivity;
use crate::policy::settings::Setting;
use crate::state::Entity;

/// An agent that the watchdog checks.
#[derive(Debug)]
pub struct WatchedAgent {
    pub subject: Subject,
    /// The codes of its recorded anomalies.
    pub anomalies: Vec<String>,
}

/// The tasks that are held and the sessions that are open, once what is due is settled.
type Busy<'a> = (&'a [Entity], &'a [Entity]);

/// Judges every active agent.
pub fn judge_all(tick: &mut TickRun<'_>, tx: &mut Transaction<'_>, busy: Busy<'_>) -> Result<Vec<WatchedAgent>> {
    let agents = tx.state().in_phase(EntityType::Agent, Phase::Active, usize::MAX);
    let activity = ProjectActivity::read(tx.state());
    let mut watched = Vec::new();
    for agent in &agents {
        judge(tick, tx, agent, busy, &activity)?;
        let known = agent.as_agent().anomalies().into_iter().flatten();
        watched.push(WatchedAgent {
            subject: agent.subject.clone(),
            anomalies: known.map(|(code, _)| code.clone()).collect(),
        });
    }
    Ok(watched)
}

fn judge(
    tick: &mut TickRun<'_>,
    tx: &mut Transaction<'_>,
    agent: &Entity,
    (held, seated): Busy<'_>,
    activity: &ProjectActivity,
) -> Result<()> {
    let config = tx.config.for_agent(agent.subject.id());
    // While all of its projects are paused nothing is expected of the agent; its time counts again from the resume.
    let from = activity.active_since(tx.state(), &agent.subject, held).filter(|_| !tick.stopped);
    if from.is_some() {
        tick.intake.expire(tx, &agent.subject, None)?;
    }
    let now_agent = tx.state().entity(&agent.subject).map(|agent| agent.into_owned());
    let agent = now_agent.as_ref().unwrap_or(agent);
    let mut signs = SignsOfLife::of_agent(tx.state(), agent, held, seated);
    // Whatever was declared, deep work is never longer than the settings allow.
    let max = config.count(Setting::StrictMaxMinutes).saturating_mul(60);
    if let Some(work) = &mut signs.deep_work {
        work.until = work.until.map(|until| until.min(Timestamp(work.started_at.0.saturating_add_unsigned(max))));
    }
    let mut found = match from {
        Some(from) => {
            let audible = AudibleTime::since(tx.state(), from);
            liveness::findings(&signs, &agent::thresholds(&config), tick.now, &audible)
        }
        None => Vec::new(),
    };
    let in_files = tick.intake.in_works.contains(agent.subject.id());
    found.iter_mut().for_each(|finding| finding.in_files = in_files);
    let expired =
        tick.intake.expired.iter().filter(|finding| finding.subject == agent.subject && from.is_some()).cloned();
    let of_files = tick.files_findings.iter().filter(|finding| finding.subject == agent.subject).cloned();
    found.extend(expired.chain(of_files));
    tick.findings.extend(found);
    tick.agents.push(signs);
    Ok(())
}
