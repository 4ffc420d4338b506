//! Entities as rows and sentences, and what is said when something was recorded.

use serde_json::{Value as Json, json};

use super::{Cell, Key, Next, Replies, Reply, Row, Status, row};
use crate::base::{EntityType, ShortRef, Timestamp, limits, text};
use crate::machine::Phase;
use crate::op::task::{ClaimOutcome, ExplainOutcome};
use crate::op::{Recorded, ShowOutcome};
use crate::policy::approval;
use crate::state::Entity;

/// Subject, reference, status and title; programs get what its projection holds, and a table who has it, what
/// it is for, and until when.
pub fn row(entity: &Entity) -> Row {
    row_with(entity, None)
}

/// The same of something that is due, and why.
pub fn row_with(entity: &Entity, due: Option<&String>) -> Row {
    let title = entity.title().or_else(|| match entity.subject.entity {
        EntityType::Artifact => entity.as_artifact().kind(),
        EntityType::Document => entity.as_document().kind(),
        _ => None,
    });
    let (holder, until) = match entity.subject.entity {
        EntityType::Task => (entity.as_task().last_holder(), lease_until(entity)),
        EntityType::Session => (entity.agent_id(), entity.as_session().expires_at()),
        _ => (entity.agent_id(), None),
    };
    row![
        &entity.subject,
        entity.reference(),
        entity.phase.as_str(),
        title.map(|title| text::cut(title, limits::SUMMARY_MAX_CHARS)),
        holder,
        entity.declared_project(),
        entity.created_at,
        until,
        due.map(String::as_str)
    ]
    .whole(whole(entity, due))
}

/// The object of seed 004's appendix E, and the subject.
fn whole(entity: &Entity, due: Option<&String>) -> Json {
    let mut object = entity.projection();
    object["subject"] = json!(entity.subject.to_string());
    if let Some(due) = due {
        object["due"] = json!(due);
    }
    object
}

/// Until when a claim holds, while somebody has one.
pub fn lease_until(task: &Entity) -> Option<Timestamp> {
    let held = matches!(task.phase, Phase::Assigned | Phase::Running) && task.as_task().lease_seconds() > 0;
    held.then_some(())?;
    let until = task.as_task().claimed_at()?.0.checked_add_unsigned(task.as_task().lease_seconds())?;
    Some(Timestamp(until))
}

/// `T-0001 is Ready: Login form`.
pub fn sentence(entity: &Entity) -> String {
    let title = entity.title().or_else(|| match entity.subject.entity {
        EntityType::DeepWork => entity.as_deep_work().activity(),
        EntityType::Artifact => entity.as_artifact().filename(),
        _ => None,
    });
    let title = title.map(|title| format!(": {}", text::cut(title, limits::SUMMARY_MAX_CHARS))).unwrap_or_default();
    format!("{} is {}{title}", entity.name(), entity.phase)
}

/// The reference of an entity in a command line.
pub fn plain_reference(entity: &Entity) -> Option<ShortRef> {
    entity.reference().map(|reference| ShortRef { tag: None, ..reference })
}

/// A command of ours about an entity, by its short reference.
pub fn next_about(command: &'static str, words: &'static str, entity: &Entity) -> Next {
    match plain_reference(entity) {
        Some(reference) => Next::run(command).word(words).value(&reference),
        None => Next::None,
    }
}

/// What follows from the state that something is in. `stopped` means that no work can begin.
pub fn next_step(entity: &Entity, stopped: bool) -> Next {
    match (entity.subject.entity, entity.phase) {
        (EntityType::Task, Phase::Ready | Phase::Assigned) if stopped => Next::OPERATOR,
        (EntityType::Task, Phase::Proposed) => next_about("hf-task", "explain", entity),
        (EntityType::Task, Phase::Ready) => next_about("hf-task", "claim", entity),
        (EntityType::Task, Phase::Assigned) => next_about("hf-task", "start", entity),
        (EntityType::Requirement, Phase::Proposed) => next_about("hf-require", "analyze", entity),
        (EntityType::Requirement, Phase::Analyzed) => Next::OPERATOR,
        (EntityType::Decision, state) if approval::OPEN.contains(&state) => Next::OPERATOR,
        _ => Next::None,
    }
}

impl Recorded {
    /// What was recorded, under a status of its own; the next step follows from the state.
    pub fn told(&self, status: Status) -> Reply {
        let status = if self.duplicate { Status::Duplicate } else { status };
        let entity = self.entity.as_ref();
        let sum = match entity {
            Some(entity) => sentence(entity),
            None => format!("{} {}", self.asked.event_type.as_str(), self.asked.subject),
        };
        Reply::new(status, sum)
            .next(entity.map_or(Next::None, |entity| next_step(entity, self.stopped)))
            .with_texts(Key::EventId, &self.ids)
            .with(Key::Subject, self.asked.subject.as_str())
            .with_some(Key::Ref, entity.and_then(Entity::reference))
            .with_some(Key::State, entity.map(|entity| entity.phase.as_str()))
            .with_rows(Key::Entity, self.followed.iter().map(row))
            .warn(self.warnings.clone())
    }
}

impl Replies for Recorded {
    fn reply(&self) -> Reply {
        self.told(Status::Recorded)
    }
}

impl Replies for ClaimOutcome {
    fn reply(&self) -> Reply {
        match self {
            ClaimOutcome::NoTask { waiting } => {
                Reply::new(Status::NoTask, format!("no task is ready; {waiting} wait for something"))
            }
            ClaimOutcome::Claimed(done) => {
                let task = done.entity.as_ref();
                done.told(Status::Claimed)
                    .with_some(Key::Holder, task.and_then(|task| task.as_task().last_holder()))
                    .with_some(Key::LeaseUntil, task.and_then(lease_until))
                    .with_some(Key::Generation, task.map(|task| task.as_task().generation()))
            }
        }
    }
}

impl Replies for ShowOutcome {
    /// Everything that is known of one entity, and what was made for it.
    fn reply(&self) -> Reply {
        let entity = &self.entity;
        Reply::new(Status::Ok, sentence(entity))
            .with(Key::Subject, &entity.subject)
            .with_some(Key::Ref, entity.reference())
            .with(Key::State, entity.phase.as_str())
            .with_rows(Key::Fact, self.facts.iter().map(|fact| row_of(fact, self.names.get(&fact.0))))
            .with_some(Key::Overdue, self.due.get(&entity.subject.to_string()).map(String::as_str))
            .with_rows(
                Key::Entity,
                self.related.iter().map(|other| row_with(other, self.due.get(&other.subject.to_string()))),
            )
    }
}

/// A fact by its name; programs get its value as it is in the log, and a person what it names.
fn row_of((name, value): &(String, Json), named: Option<&String>) -> Row {
    let said = match value {
        Json::String(text) if name.ends_with("_at") => Cell::time(text),
        Json::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    };
    row![name.as_str(), said, named.map(String::as_str)].whole(json!({"name": name, "value": value}))
}

impl Replies for ExplainOutcome {
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, sentence(&self.task)).with_texts(Key::Because, &self.because)
    }
}
