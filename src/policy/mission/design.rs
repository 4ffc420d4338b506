//! Where the design of a mission stands: what its reviewers said last, and what to do about it.

use super::file::{ASK, GO, has_runner};
use super::standing::Driver;
use crate::base::{EntityType, Ulid, text};
use crate::machine::Phase;
use crate::policy::review;
use crate::state::{Entity, State};

/// The newest reply of the reviewers of a mission, or their verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignStanding {
    /// The id of the newest reply.
    review: String,
    /// How many FAILs are open.
    fails: usize,
    pub next: DesignStep,
    /// The newest event about it.
    pub(super) by: Ulid,
}

/// What to do about a design.
#[derive(Clone, Debug, PartialEq)]
pub enum DesignStep {
    /// Fix what the reviewers found, and ask again.
    Fix { document: Option<String> },
    /// Ask the next reviewer.
    Ask { document: Option<String> },
    /// The reviewers agree; an operator has to approve the requirement.
    Approve { requirement: String },
    /// The reviewers agree; do the work.
    Work { driver: Driver },
    /// The reviewers do not agree, and no round is left.
    Judge,
}

impl DesignStanding {
    /// Where the design of a mission stands, if a reviewer has replied.
    pub fn of_mission(state: &State, mission: &Entity) -> Option<DesignStanding> {
        let is_own = |debate: &Entity| debate.as_debate().mission().as_ref() == Some(&mission.subject);
        let debate = state.newest(EntityType::Debate).filter(is_own)?;
        let newest = review::newest(state, &debate)?;
        let fails = review::open_fails(state, &debate).len();
        let document = newest.as_review().document().map(str::to_owned);
        let next = match debate.phase {
            Phase::Open if fails > 0 => DesignStep::Fix { document },
            Phase::Open => DesignStep::Ask { document },
            Phase::Converged => after_agreement(state, mission),
            Phase::Exhausted => DesignStep::Judge,
            _ => return None,
        };
        let review = newest.subject.id().to_owned();
        Some(DesignStanding { review, fails, next, by: debate.last_event })
    }

    /// What the file says: the last action, and the next one.
    pub(super) fn texts(&self) -> (String, String) {
        let DesignStanding { review, fails, next, .. } = self;
        let run = |document: &Option<String>| match document {
            Some(document) => format!("hf-review run {document}"),
            None => "hf-review run with the document".to_owned(),
        };
        match next {
            DesignStep::Fix { document } => (
                format!("{review}: {} open", text::count_noun(*fails as u64, "FAIL")),
                format!("fix the document (hf-review status lists the FAILs), then {}", run(document)),
            ),
            DesignStep::Ask { document } => (format!("{review}: no FAIL"), run(document)),
            DesignStep::Approve { requirement } => {
                ("the reviewers agree".to_owned(), format!("{ASK} to approve {requirement}"))
            }
            DesignStep::Work { driver: Driver::Go } => ("the reviewers agree".to_owned(), GO.to_owned()),
            DesignStep::Work { driver: Driver::Agent } => {
                ("the reviewers agree".to_owned(), "fire the work with hf-job fire".to_owned())
            }
            DesignStep::Judge => ("the reviewers do not agree".to_owned(), format!("{ASK} to judge the design")),
        }
    }
}

fn after_agreement(state: &State, mission: &Entity) -> DesignStep {
    let requirement = mission.as_mission().requirement().and_then(|requirement| state.entity(&requirement));
    match requirement.filter(|requirement| matches!(requirement.phase, Phase::Proposed | Phase::Analyzed)) {
        Some(requirement) => DesignStep::Approve { requirement: requirement.name() },
        None => DesignStep::Work { driver: if has_runner(state) { Driver::Go } else { Driver::Agent } },
    }
}
