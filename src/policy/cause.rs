//! The natural cause of an event: what it is linked to if its author says nothing.

use serde_json::{Map, Value};

use crate::base::{Actor, EntityId, EntityType, Subject, Ulid};
use crate::event::Kind;
use crate::state::State;

/// What an event that makes something comes from: a member of its payload that names the cause.
const NAMED: &[(Kind, EntityType, &str)] = &[
    (Kind::RunStarted, EntityType::Task, "task_id"),
    (Kind::TaskProposed, EntityType::Requirement, "requirement_id"),
    (Kind::ArtifactDeclared, EntityType::Task, "task_id"),
    (Kind::MissionStarted, EntityType::Requirement, "requirement_id"),
    (Kind::DebateOpened, EntityType::Mission, "mission_id"),
    (Kind::ReviewRecorded, EntityType::Debate, "debate_id"),
    (Kind::BranchCreated, EntityType::Task, "task_id"),
    (Kind::ThreadOpened, EntityType::Branch, "branch_id"),
];

/// The entity's last change; for a new one, what its payload names; else the agent's start, else the
/// first event. Requirements and stops come from outside and have none.
pub fn natural(
    state: &State,
    kind: Kind,
    subject: &Subject,
    actor: &Actor,
    payload: &Map<String, Value>,
) -> Option<Ulid> {
    if matches!(kind, Kind::RequirementProposed | Kind::EmergencyStopIssued) {
        return None;
    }
    if let Some(entity) = state.entity(subject) {
        return Some(entity.last_event);
    }
    let last_of = |subject: Subject| state.entity(&subject).map(|e| e.last_event);
    let member = |name: &str| payload.get(name).and_then(Value::as_str);
    let named = NAMED
        .iter()
        .filter(|row| row.0 == kind)
        .find_map(|(_, entity, name)| last_of(Subject::new(*entity, EntityId::parse(member(name)?).ok()?)));
    let target = || member("target").and_then(|text| Subject::parse(text).ok()).and_then(last_of);
    let agent = || actor.agent().and_then(|id| last_of(Subject::new(EntityType::Agent, id)));
    named.or_else(target).or_else(agent).or(state.first_event())
}
