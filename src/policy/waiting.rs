//! What an agent that waits for a job has to record: waiting is working, so it keeps its claims and is not inactive.
//!
//! A sign is repeated after a third of the time that it lasts, so that a late one still comes in time. At the start and
//! the end of a wait one that is younger than `FRESH_SECONDS` is not repeated: polls that follow each other every few
//! seconds do not fill the log, and are no runaway
//! (`a_fresh_sign_is_not_repeated_and_an_old_one_is_long_before_it_expires`).

use super::due::Moment;
use super::liveness::{self, SignsOfLife, Thresholds};
use crate::base::Subject;
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::Entity;

/// A sign of this age is repeated by the next start or end of a wait, however long it lasts.
const FRESH_SECONDS: u64 = 30;

/// The signs of life that are needed at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingSigns {
    /// The events that keep the agent's claims, by kind and subject.
    pub renewals: Vec<(Kind, Subject)>,
    /// Whether the wait itself has to be recorded. A heartbeat among the renewals is progress as well.
    pub waited: bool,
    /// The seconds after which the next sign is needed; none if nothing of the agent expires.
    pub next_seconds: Option<u64>,
}

impl WaitingSigns {
    /// What an agent that waits now has to record.
    pub fn needed(moment: &Moment<'_>, agent: &Subject, limits: &Thresholds) -> WaitingSigns {
        let state = moment.state;
        let mut signs = WaitingSigns::default();
        for task in state.held_by(&agent.to_string()).iter().filter(|task| !task.is_job()) {
            let (Some(renewal), Some(claim)) = (renewal_of(task), moment.claim_age(task)) else { continue };
            if signs.is_due(Some(claim.seconds), claim.limit) {
                signs.renewals.push(renewal);
            }
        }
        let Some(agent) = state.entity(agent).filter(|agent| agent.phase == Phase::Active) else { return signs };
        let shown = SignsOfLife::of_agent(state, &agent, &liveness::held(state), &liveness::seated(state));
        if shown.is_watched() {
            let age = shown.last_shown().map(|at| moment.now.0.saturating_sub(at.0).max(0) as u64);
            let is_heard = |signs: &Self| signs.renewals.iter().any(|(kind, _)| *kind == Kind::Heartbeat);
            signs.waited = signs.is_due(age, limits.inactive_warn) && !is_heard(&signs);
        }
        signs
    }

    /// Whether there is nothing to record.
    pub fn is_empty(&self) -> bool {
        self.renewals.is_empty() && !self.waited
    }

    /// Whether a sign of this age that lasts `limit` seconds is repeated now. Notes when that is needed next.
    fn is_due(&mut self, age: Option<u64>, limit: u64) -> bool {
        let third = (limit / 3).max(1);
        let fresh = age.filter(|age| *age < third.min(FRESH_SECONDS));
        let next = third - fresh.unwrap_or(0);
        self.next_seconds = Some(self.next_seconds.map_or(next, |earlier| earlier.min(next)));
        fresh.is_none()
    }
}

/// The event with which the holder of a task keeps its claim; none if the task is not held.
pub fn renewal_of(task: &Entity) -> Option<(Kind, Subject)> {
    match task.phase {
        Phase::Running => task.as_task().last_run().map(|run| (Kind::Heartbeat, run)),
        Phase::Assigned => Some((Kind::ClaimRenewed, task.subject.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_sign_is_not_repeated_and_an_old_one_is_long_before_it_expires() {
        let check = |age: Option<u64>, limit: u64, expected: (bool, u64)| {
            let mut signs = WaitingSigns::default();
            let is_due = signs.is_due(age, limit);
            assert_eq!((is_due, signs.next_seconds), (expected.0, Some(expected.1)), "{age:?} of {limit}");
        };
        check(None, 900, (true, 300));
        check(Some(0), 900, (false, 300));
        check(Some(29), 900, (false, 271));
        check(Some(30), 900, (true, 300));
        check(Some(1000), 900, (true, 300));
        check(Some(19), 60, (false, 1));
        check(Some(20), 60, (true, 20));
        check(Some(0), 2, (false, 1));
        check(Some(1), 2, (true, 1));
        let mut both = WaitingSigns::default();
        both.is_due(Some(0), 900);
        both.is_due(Some(10), 60);
        assert_eq!(both.next_seconds, Some(10), "the first that is needed");
    }
}
