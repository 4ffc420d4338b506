//! A mission: its rounds, the job that it is about now, what to do next, and its state file `M1.md` with its limits.
//!
//! What a mission is about follows from the log, not from what somebody wrote down: a job that belongs to it becomes the
//! current one when it is fired, and the event of its end changes what the file says. A text that an agent
//! writes counts until something happens after it.
//!
//! Invariant: whatever is recorded about a mission, its file has at most 200 words and 2,000 bytes
//! (`no_change_makes_the_state_file_too_long`).

mod check;
mod design;
mod file;
mod rounds;
mod standing;

use crate::base::EntityType;
use crate::machine::Phase;
use crate::state::{Entity, State};

pub use check::{
    check, check_agent_may_start, check_may_claim, check_may_pass, check_open_points, check_requirement,
    check_rounds_left, check_short, check_work,
};
pub use design::{DesignStanding, DesignStep};
pub use file::{ASK, MissionFile, has_runner};
pub use rounds::Rounds;
pub use standing::{
    Driver, MissionStanding, PLAN_STEP, TakeUp, WrittenLines, callers_step, current, failed_step, is_gos,
    is_in_progress, is_operators, needs_round, next_planned, of_job, out_of_rounds, plan, planned_command, take_up,
    waits_for_approval,
};

/// The value of a line that has none.
pub const NONE: &str = "NONE";

/// The single-line members of a mission: the name in the file, and the member of the payload.
pub const LINES: &[(&str, &str)] = &[
    ("GOAL", "goal"),
    ("LOGREF", "logref"),
    ("OPEN_K", "open_k"),
    ("LAST_ACTION", "last_action"),
    ("NEXT_ACTION", "next_action"),
];

/// The running mission.
pub fn running(state: &State) -> Option<Entity> {
    state.in_phase(EntityType::Mission, Phase::Running, 1).pop()
}

/// The newest mission, whether or not it is running.
pub fn newest(state: &State) -> Option<Entity> {
    state.newest(EntityType::Mission)
}
