//! Where a persona believes to be. Its own acts take it to a branch: it creates one, resumes one, leaves one, claims a
//! task, ends its task, or notes something where it is. What others do can move it without its knowledge; then it is
//! somewhere else than it believes, until an act of its own says that it knows.
//!
//! A message from the user that comes meanwhile is unheard until the persona reads it, or says something on its root.

use serde_json::Value;

use super::{Entity, State};
use crate::base::{EntityId, EntityType, Subject};
use crate::event::{Event, Kind};
use crate::machine::Phase;

/// The branch that a persona believes to be on.
const BELIEVED: &str = "_believed";
/// The branch other than its root that it believed to be on before.
const WAS_AT: &str = "_was_at";
/// The first branch that others took it to since it last knew where it was.
const TAKEN_TO: &str = "_taken_to";
/// The branch that it left, without a word, by claiming a task.
const CLAIMED_FROM: &str = "_claimed_from";
/// The messages from the user that it has neither read nor answered, of those that came while it was elsewhere.
pub(super) const UNHEARD: &str = "_unheard";

impl Entity {
    /// Whether the persona of this root is on another branch, believes so, or has not heard all that was said here.
    pub(super) fn is_elsewhere(&self) -> bool {
        let is_believed_elsewhere = self.text(BELIEVED).is_some_and(|believed| believed != self.subject.id());
        let is_elsewhere = ["active_branch_id", TAKEN_TO, UNHEARD].iter().any(|fact| self.facts.contains_key(*fact));
        is_believed_elsewhere || is_elsewhere
    }

    /// The persona of this root has read a message.
    pub(super) fn heard(&mut self, message: &str) {
        let Some(Value::Array(unheard)) = self.facts.get_mut(UNHEARD) else { return };
        unheard.retain(|known| known.as_str() != Some(message));
        if unheard.is_empty() {
            self.facts.remove(UNHEARD);
        }
    }

    /// The persona of this root believes to be on a branch now. If it is there, it has been nowhere else.
    fn believe(&mut self, branch: &str) {
        let before = self.text(BELIEVED).filter(|before| *before != branch && *before != self.subject.id());
        if let Some(before) = before.map(str::to_owned) {
            self.facts.insert(WAS_AT.to_owned(), before.into());
        }
        self.facts.insert(BELIEVED.to_owned(), branch.into());
        if self.text("active_branch_id").unwrap_or(self.subject.id()) == branch {
            self.facts.remove(TAKEN_TO);
        }
    }
}

impl State {
    /// Notes where the persona of a branch believes to be after an event on that branch, and that it has reacted to
    /// what happened if the event is its own.
    pub(super) fn note_whereabouts(&mut self, branch: &Subject, event: &Event) {
        let (Some(kind), Some(branch)) = (event.event_type.known(), self.entity(branch).map(|b| b.into_owned())) else {
            return;
        };
        let persona = branch.text("persona_id").and_then(|name| EntityId::parse(name).ok());
        let Some(root) = persona.and_then(|persona| self.root(&persona)) else { return };
        let is_own = event.actor.strip_prefix("agent:") == Some(root.subject.id());
        let is_claim = !is_own && kind == Kind::ThreadOpened && self.is_own_claim(&branch);
        let believed = self.believed_after(kind, &branch, &root, is_own || is_claim);
        let claimed_from = root.text(BELIEVED).filter(|before| is_claim && *before != root.subject.id());
        let claimed_from = claimed_from.map(str::to_owned);
        let is_taken = kind == Kind::ThreadOpened && believed.is_none() && !branch.is_root();
        let is_answer = is_own && kind == Kind::NoteRecorded && branch.is_root();
        self.change(&root.subject, |root| {
            if is_own {
                root.facts.retain(|fact, _| fact != "_changes" && fact != CLAIMED_FROM);
            }
            if is_answer {
                root.facts.remove(UNHEARD);
            }
            if let Some(believed) = believed {
                root.believe(&believed);
            }
            if let Some(left) = claimed_from {
                root.facts.insert(CLAIMED_FROM.to_owned(), left.into());
            }
            if is_taken && !root.facts.contains_key(TAKEN_TO) {
                root.facts.insert(TAKEN_TO.to_owned(), branch.subject.id().into());
            }
        });
    }

    /// The branch that a persona believes to be on because of an event on this one; none if it believes what it did.
    fn believed_after(&self, kind: Kind, branch: &Entity, root: &Entity, is_own: bool) -> Option<String> {
        let (id, root_id) = (branch.subject.id(), root.subject.id());
        let at = root.text("active_branch_id").unwrap_or(root_id);
        let believed = root.text(BELIEVED);
        let believes_this = believed == Some(id);
        let is_social = branch.text("branch_type") == Some("social");
        let next = match kind {
            // A social branch is only resumed later; all others begin at once.
            Kind::BranchCreated => (is_own && !is_social && !branch.is_root()).then_some(id),
            // One that has done nothing yet is where it was put first.
            Kind::ThreadOpened => (!branch.is_root() && (is_own || believes_this || believed.is_none())).then_some(id),
            // A word on the root from another branch takes it nowhere.
            Kind::NoteRecorded => (is_own && at == id).then_some(id),
            Kind::ThreadCompleted | Kind::ThreadAborted => {
                (is_own || believes_this && self.is_own_end(branch)).then_some(root_id)
            }
            Kind::ThreadSummarized => (is_own && believes_this && at != id).then_some(root_id),
            Kind::BranchCompleted => {
                (believes_this && at != id && (is_own || self.is_own_end(branch))).then_some(root_id)
            }
            _ => None,
        };
        next.map(str::to_owned)
    }

    /// The task of a branch, and its persona as an actor.
    fn task_and_persona(&self, branch: &Entity) -> Option<(Entity, String)> {
        let task = self.entity(&branch.named("task_id", EntityType::Task)?)?.into_owned();
        Some((task, format!("agent:{}", branch.text("persona_id")?)))
    }

    /// Whether a persona has its task by its own claim.
    fn is_own_claim(&self, branch: &Entity) -> bool {
        self.task_and_persona(branch).is_some_and(|(task, me)| task.text("_assigned_by") == Some(&me))
    }

    /// Whether a persona has ended its task itself.
    fn is_own_end(&self, branch: &Entity) -> bool {
        self.task_and_persona(branch).is_some_and(|(task, me)| {
            let by = match task.phase {
                Phase::Succeeded => task.text("_succeeded_by"),
                Phase::Aborted => task.text("aborted_by").filter(|by| !by.starts_with("core:")),
                _ => return false,
            };
            // What failed for good is aborted as a consequence.
            by.or(task.text("_failed_actor")) == Some(&me)
        })
    }

    /// A persona that believes to be on its root, and begins to work on the task of the branch that it is on, is there.
    pub(super) fn began_work(&mut self, run: &Subject, event: &Event) {
        let Some(name) = event.actor.strip_prefix("agent:").and_then(|name| EntityId::parse(name).ok()) else { return };
        let Some(root) = self.root(&name).filter(|root| root.text(BELIEVED) == Some(root.subject.id())) else { return };
        let task = self.entity(run).and_then(|run| run.named("task_id", EntityType::Task));
        let active = self.active_branch(&root).filter(|active| active.named("task_id", EntityType::Task) == task);
        if let Some(active) = active {
            self.change(&root.subject, |root| root.believe(active.subject.id()));
        }
    }
}
