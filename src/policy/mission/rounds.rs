//! The rounds of a mission: how many were begun, and how many there may be.

use crate::base::{Error, Reason, Result, limits};
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
