//! The default cause of an event: its parent if the request names none.

use serde_json::{Map, Value};

use crate::base::{Actor, EntityId, EntityType, Subject, Ulid};
use crate::event::Kind;
use crate::event::kind::Cause;
use crate::state::State;

/// The last change of the entity; for a new entity, the last change of what its payload names, else of the acting agent,
/// else the first event. Kinds with `Cause::Outside` have no cause.
pub fn natural(
    state: &State,
    kind: Kind,
    subject: &Subject,
    actor: &Actor,
    payload: &Map<String, Value>,
) -> Option<Ulid> {
    let cause = kind.row().cause;
    if cause == Cause::Outside {
        return None;
    }
    if let Some(entity) = state.entity(subject) {
        return Some(entity.last_event);
    }
    let last_of = |subject: Subject| state.entity(&subject).map(|e| e.last_event);
    let member = |name: &str| payload.get(name).and_then(Value::as_str);
    let named = match cause {
        Cause::Named(entity, name) => {
            member(name).and_then(|id| EntityId::parse(id).ok()).and_then(|id| last_of(Subject::new(entity, id)))
        }
        Cause::History | Cause::Outside => None,
    };
    let target = || member("target").and_then(|text| Subject::parse(text).ok()).and_then(last_of);
    let agent = || actor.agent().and_then(|id| last_of(Subject::new(EntityType::Agent, id)));
    named.or_else(target).or_else(agent).or(state.first_event())
}
