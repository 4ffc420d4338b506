//! The rounds of a mission: how many were begun, and how many there may be.

use super::newest;
use crate::base::{Actor, Error, Reason, Result, limits};
use crate::machine::Phase;
use crate::state::{Entity, State};

/// How many rounds were begun, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    pub begun: u64,
    pub max: u64,
}

impl Rounds {
    /// The rounds of a mission. They belong to its requirement, so that another mission for it does not get new ones.
    /// Versions that recorded no settings counted them for each mission.
    pub fn of_mission(state: &State, mission: &Entity) -> Rounds {
        let view = mission.as_mission();
        let own = Rounds { begun: view.round(), max: limits::ROUNDS_MAX_COUNT + view.rounds_added() };
        let requirement = view.requirement().filter(|_| state.tally().has_settings());
        match requirement.and_then(|requirement| state.entity(&requirement)) {
            // Rounds that began while it was for another requirement count, too.
            Some(requirement) => Rounds::of_requirement(&requirement).or_more(own),
            None => own,
        }
    }

    fn or_more(self, other: Rounds) -> Rounds {
        Rounds { begun: self.begun.max(other.begun), max: self.max.max(other.max) }
    }

    pub fn of_requirement(requirement: &Entity) -> Rounds {
        let requirement = requirement.as_requirement();
        Rounds { begun: requirement.rounds(), max: limits::ROUNDS_MAX_COUNT + requirement.rounds_added() }
    }

    /// Refuses a mission with which an agent would get new rounds. Rounds that were used count until an operator gives
    /// more: with `hf-state more-rounds`, or by starting a mission. So after a mission that failed with its rounds used up
    /// or that an agent gave up in one of them, an agent starts none, except for the same requirement, whose rounds
    /// continue to count.
    pub fn check_start(state: &State, requirement: Option<&Entity>) -> Result<()> {
        if let Some(requirement) = requirement.filter(|found| Rounds::of_requirement(found).are_used_up()) {
            return Err(Rounds::of_requirement(requirement).used_up(&requirement.name()));
        }
        let Some(last) = newest(state).filter(|mission| mission.phase == Phase::Failed) else { return Ok(()) };
        let (rounds, view) = (Rounds::of_mission(state, &last), last.as_mission());
        let continues = requirement.is_some_and(|found| view.requirement().as_ref() == Some(&found.subject));
        let by_agent = view.ended_by().and_then(|by| Actor::parse(by).ok()).is_none_or(|by| by.is_autonomous());
        match rounds.are_used_up() {
            true => Err(rounds.used_up(&last.name())),
            false if rounds.begun > 0 && by_agent && !continues => {
                let why = format!("{} was given up in round {rounds}; an operator can start a mission", last.name());
                Err(Error::refused(Reason::RoundLimit, why))
            }
            false => Ok(()),
        }
    }

    /// The refusal of an agent that needs another round.
    pub fn used_up(self, what: &str) -> Error {
        let why = format!("all {} rounds of {what} are used up; an operator can allow more", self.max);
        Error::refused(Reason::RoundLimit, why)
    }

    pub fn are_used_up(self) -> bool {
        self.begun >= self.max
    }

    pub fn check_left(self) -> Result<()> {
        match self.are_used_up() {
            true => Err(Error::refused(Reason::RoundLimit, format!("all {} rounds are used up", self.max))),
            false => Ok(()),
        }
    }
}

impl Default for Rounds {
    fn default() -> Self {
        Rounds { begun: 0, max: limits::ROUNDS_MAX_COUNT }
    }
}

/// `2/4`.
impl std::fmt::Display for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.begun, self.max)
    }
}
