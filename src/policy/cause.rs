//! The default causes of an event: its parents if the request names none.

use serde_json::{Map, Value};

use crate::base::{Actor, EntityId, EntityType, Subject, Ulid};
use crate::event::Kind;
use crate::event::kind::Cause;
use crate::state::State;

/// The last change of the entity; for a new entity, the last change of what its payload names, else of the acting agent,
/// else the first event. A task is caused by the approval of its requirement and by the end of what it repeats. Kinds
/// with `Cause::Outside` have no cause.
pub fn natural(state: &State, kind: Kind, subject: &Subject, actor: &Actor, payload: &Map<String, Value>) -> Vec<Ulid> {
    let cause = kind.row().cause;
    if cause == Cause::Outside {
        return Vec::new();
    }
    if let Some(entity) = state.entity(subject) {
        return vec![entity.last_change()];
    }
    let last_of = |subject: Subject| {
        let entity = state.entity(&subject)?;
        // Other work may have changed the requirement since its approval; that is no cause of this task.
        let approval = match subject.entity == EntityType::Requirement && kind == Kind::TaskProposed {
            true => entity.as_requirement().approved_by(),
            false => None,
        };
        Some(approval.unwrap_or_else(|| entity.last_change()))
    };
    let member = |name: &str| payload.get(name).and_then(Value::as_str);
    let named = match cause {
        Cause::Named(entity, name) => {
            member(name).and_then(|id| EntityId::parse(id).ok()).and_then(|id| last_of(Subject::new(entity, id)))
        }
        Cause::History | Cause::Outside => None,
    };
    let target = || member("target").and_then(|text| Subject::parse(text).ok()).and_then(last_of);
    let agent = || actor.agent().and_then(|id| last_of(Subject::new(EntityType::Agent, id)));
    let reworked = member("rework_of").and_then(|id| EntityId::parse(id).ok());
    let reworked = reworked.and_then(|id| last_of(Subject::new(EntityType::Task, id)));
    let named: Vec<Ulid> = named.into_iter().chain(reworked).collect();
    match named.is_empty() {
        true => target().or_else(agent).or(state.first_event()).into_iter().collect(),
        false => named,
    }
}
