//! What an entity remembers beyond its state, as one table: on which event, which fact, from where.

use serde_json::Value;

use super::Entity;
use crate::base::{EntityId, EntityType, Subject, limits, text};
use crate::event::{Event, Kind};

/// Where a fact's value comes from.
enum From {
    /// A member of the payload, if it is there.
    Payload(&'static str),
    /// The event's time.
    Time,
    /// Who did it.
    Actor,
    /// The id of the event's subject.
    SubjectId,
    /// The same, added to a list.
    SubjectIds,
    /// A counter that starts at this event.
    Zero,
    /// One more than before.
    Next,
    Null,
}

use From::*;

/// The order of rows is the order of facts in a projection.
const FACTS: &[(EntityType, Kind, &str, From)] = &[
    (EntityType::Requirement, Kind::RequirementProposed, "title", Payload("title")),
    (EntityType::Decision, Kind::DecisionRequested, "kind", Payload("kind")),
    (EntityType::Decision, Kind::DecisionRequested, "target", Payload("target")),
    (EntityType::Decision, Kind::DecisionRequested, "summary", Payload("summary")),
    (EntityType::Decision, Kind::DecisionRequested, "options", Payload("options")),
    (EntityType::Decision, Kind::DecisionRequested, "requested_at", Time),
    (EntityType::Decision, Kind::DecisionApproved, "chosen_option", Payload("chosen_option")),
    (EntityType::Decision, Kind::DecisionApproved, "rationale", Payload("rationale")),
    (EntityType::Decision, Kind::DecisionApproved, "decided_at", Time),
    (EntityType::Decision, Kind::DecisionApproved, "decided_by", Actor),
    (EntityType::Decision, Kind::DecisionRejected, "rationale", Payload("rationale")),
    (EntityType::Decision, Kind::DecisionRejected, "decided_at", Time),
    (EntityType::Decision, Kind::DecisionRejected, "decided_by", Actor),
    (EntityType::Task, Kind::TaskProposed, "requirement_id", Payload("requirement_id")),
    (EntityType::Task, Kind::TaskProposed, "title", Payload("title")),
    (EntityType::Task, Kind::TaskProposed, "retry_count", Zero),
    (EntityType::Task, Kind::TaskRetrying, "retry_count", Next),
    (EntityType::Task, Kind::RunStarted, "last_run_id", SubjectId),
    (EntityType::Task, Kind::RunStarted, "run_ids", SubjectIds),
    (EntityType::Run, Kind::RunStarted, "task_id", Payload("task_id")),
    (EntityType::Run, Kind::RunStarted, "started_at", Time),
    (EntityType::Run, Kind::RunStarted, "last_heartbeat_at", Time),
    (EntityType::Run, Kind::RunStarted, "finished_at", Null),
    (EntityType::Run, Kind::Heartbeat, "last_heartbeat_at", Time),
    (EntityType::Run, Kind::RunFinished, "finished_at", Time),
    (EntityType::Run, Kind::RunCrashed, "finished_at", Time),
    (EntityType::Run, Kind::RunTimedOut, "finished_at", Time),
    (EntityType::Artifact, Kind::ArtifactDeclared, "kind", Payload("kind")),
    (EntityType::Artifact, Kind::ArtifactDeclared, "task_id", Payload("task_id")),
    (EntityType::Artifact, Kind::ArtifactMaterialized, "sha256", Payload("sha256")),
    (EntityType::Artifact, Kind::ArtifactMaterialized, "size_bytes", Payload("size_bytes")),
    (EntityType::Artifact, Kind::ArtifactMaterialized, "path", Payload("path")),
    (EntityType::Constraint, Kind::ConstraintApplied, "text", Payload("text")),
    (EntityType::Constraint, Kind::ConstraintApplied, "priority", Payload("priority")),
];

/// Takes the facts of one event into an entity that it moved.
pub fn gather(entity: &mut Entity, kind: Kind, event: &Event) {
    for (_, _, name, from) in FACTS.iter().filter(|row| row.0 == entity.subject.entity && row.1 == kind) {
        let value = match from {
            Payload(member) => match event.payload.get(*member) {
                // The event has the whole text; what is carried along stays small.
                Some(Value::String(long)) => text::cut(long, limits::FACT_MAX_CHARS).into(),
                Some(value) => value.clone(),
                None => continue,
            },
            Time => event.timestamp.to_string().into(),
            Actor => event.actor.clone().into(),
            SubjectId => subject_id(event),
            SubjectIds => {
                let mut ids = entity.facts.get(*name).and_then(Value::as_array).cloned().unwrap_or_default();
                ids.push(subject_id(event));
                ids.into()
            }
            Zero => 0.into(),
            Next => (entity.facts.get(*name).and_then(Value::as_u64).unwrap_or(0) + 1).into(),
            Null => Value::Null,
        };
        entity.facts.insert((*name).to_owned(), value);
    }
}

fn subject_id(event: &Event) -> Value {
    event.subject.split_once(':').map_or(Value::Null, |(_, id)| id.into())
}

/// The runs of a task.
pub fn runs(task: &Entity) -> Vec<Subject> {
    let ids = task.facts.get("run_ids").and_then(Value::as_array).into_iter().flatten();
    ids.filter_map(|id| EntityId::parse(id.as_str()?).ok()).map(|id| Subject::new(EntityType::Run, id)).collect()
}
