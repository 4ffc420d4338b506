//! Where a persona believes to be, compared with where it is, and what it has to be told about that.
//!
//! Invariant: what a persona says without naming a branch is kept on the branch that it believes to be on, or refused
//! (`tests/minds`).

use crate::base::{EntityId, EntityType, Subject};
use crate::machine::Phase;
use crate::state::{Entity, State};

/// That a persona is not where it believes to be, or that somebody waits for it. Every reply to it says so, until it does
/// something on the branch that it is on, and has read or answered what the user said.
#[derive(Clone, Debug)]
pub struct Displacement {
    /// The branch that it was on, or that it is about to leave.
    pub left: Option<Entity>,
    /// The branch that it is on now.
    pub at: Entity,
    /// The root of the persona, where it answers the user.
    pub root: Entity,
    /// What took it away, and what waits for it.
    pub causes: Vec<DisplacementCause>,
    /// Whether the branch that it left can still be summarized.
    pub needs_summary: bool,
}

/// A message or a task, and who sent the message, assigned the task or ended it.
#[derive(Clone, Debug)]
pub struct DisplacementCause {
    pub entity: Entity,
    pub by: Option<String>,
}

impl DisplacementCause {
    fn message(message: Entity) -> DisplacementCause {
        let by = message.as_message().from().map(str::to_owned);
        DisplacementCause { entity: message, by }
    }

    fn assigned(task: Entity) -> DisplacementCause {
        let by = task.as_task().assigned_by().map(str::to_owned);
        DisplacementCause { entity: task, by }
    }

    fn ended(task: Entity) -> DisplacementCause {
        let by = task.as_task().aborted_by().or(task.as_task().succeeded_by()).map(str::to_owned);
        DisplacementCause { entity: task, by }
    }
}

/// The branch that a persona is on: the active one, or its root.
fn at(state: &State, root: &Entity) -> Entity {
    state.active_branch(root).unwrap_or_else(|| root.clone())
}

/// The branch that a persona believes to be on, if others took it to another one. Back on its root it may have learned of
/// that other one, and not that it left it again.
pub fn believed_elsewhere(state: &State, persona: &EntityId) -> Option<Entity> {
    let root = state.root(persona)?;
    let is_moved = |believed: &Subject| *believed != at(state, &root).subject || root.as_branch().taken_to().is_some();
    let believed = root.as_branch().believed().filter(is_moved)?;
    state.entity(&believed).map(|branch| branch.into_owned())
}

/// What took a persona away from where it believes to be, and which message of the user it has not heard yet.
pub fn displacement(state: &State, persona: &EntityId) -> Option<Displacement> {
    let root = state.root(persona)?;
    let entity = |subject: Subject| state.entity(&subject).map(|entity| entity.into_owned());
    let at = at(state, &root);
    let believed = believed_elsewhere(state, persona);
    let unheard = root.as_branch().unheard().next().and_then(|id| EntityId::parse(id).ok());
    let unheard = unheard.and_then(|id| entity(Subject::new(EntityType::Message, id)));
    let claimed_from = root.as_branch().claimed_from().and_then(entity);
    if believed.is_none() && unheard.is_none() && claimed_from.is_none() {
        return None;
    }
    let causes = causes(state, &root, &at, believed.as_ref(), unheard);
    let leaves_soon = || root.as_branch().interrupt().map(|_| at.clone()).filter(|at| !at.is_root());
    let left = believed.or(claimed_from).or_else(leaves_soon);
    let is_open = |left: &Entity| left.subject == at.subject || unsummarized_thread(state, left).is_some();
    let needs_summary = left.as_ref().is_some_and(|left| !left.is_root() && is_open(left));
    Some(Displacement { left, at, root, causes, needs_summary })
}

/// The causes of a displacement: a message first, then tasks.
fn causes(
    state: &State,
    root: &Entity,
    at: &Entity,
    believed: Option<&Entity>,
    unheard: Option<Entity>,
) -> Vec<DisplacementCause> {
    let entity = |subject: Subject| state.entity(&subject).map(|entity| entity.into_owned());
    let task_of = |branch: &Entity| branch.as_branch().task().and_then(entity);
    let interrupted_by = || last_thread(state, believed?)?.as_thread().interrupted_by().and_then(entity);
    let mut causes: Vec<DisplacementCause> =
        unheard.or_else(interrupted_by).map(DisplacementCause::message).into_iter().collect();
    let completed = believed.filter(|believed| believed.phase == Phase::Completed);
    causes.extend(completed.and_then(task_of).map(DisplacementCause::ended));
    let taken_to = root.as_branch().taken_to().filter(|_| believed.is_some()).and_then(entity);
    let claimed = root.as_branch().claimed_from().map(|_| at.clone());
    causes.extend(taken_to.or(claimed).as_ref().and_then(task_of).map(DisplacementCause::assigned));
    causes
}

/// The last thread of a branch.
fn last_thread(state: &State, branch: &Entity) -> Option<Entity> {
    let last = EntityId::parse(branch.as_branch().last_thread_id()?).ok()?;
    state.entity(&Subject::new(EntityType::Thread, last)).map(|thread| thread.into_owned())
}

/// The thread of a branch that a summary can still be given for: its last one, if it ended without.
pub fn unsummarized_thread(state: &State, branch: &Entity) -> Option<Entity> {
    last_thread(state, branch).filter(|thread| thread.phase == Phase::Aborted)
}

/// The branch that a persona was on last, of its own accord, if its thread there ended without a summary.
pub fn unsummarized_branch(state: &State, root: &Entity) -> Option<Entity> {
    let branch = state.entity(&root.as_branch().was_at()?)?.into_owned();
    unsummarized_thread(state, &branch).map(|_| branch)
}
