//! Entities as rows and sentences, and the reply to whatever records an event.

use serde_json::{Value as Json, json};

use super::{Cell, Key, Next, Replies, Reply, Row, Status, row};
use crate::base::text::{self, count_noun};
use crate::base::{EntityType, ShortRef, Timestamp, limits};
use crate::machine::Phase;
use crate::op::task::{ClaimOutcome, ExplainOutcome};
use crate::op::{Recorded, ShowOutcome};
use crate::policy::approval;
use crate::state::Entity;

/// Subject, reference, status and title. JSON has the entity's projection instead; a table adds holder, project,
/// creation time and expiry.
pub fn row(entity: &Entity) -> Row {
    row_with(entity, None)
}

/// The row of an entity, and what about it is due.
pub fn row_with(entity: &Entity, due: Option<&String>) -> Row {
    let title = entity.title().or_else(|| match entity.subject.entity {
        EntityType::Artifact => entity.as_artifact().kind(),
        EntityType::Document => entity.as_document().kind(),
        _ => None,
    });
    let (holder, until) = match entity.subject.entity {
        EntityType::Task => (entity.as_task().recorded_holder(), lease_until(entity)),
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

/// The object of seed 004's appendix E, with the subject added.
fn whole(entity: &Entity, due: Option<&String>) -> Json {
    let mut object = entity.projection();
    object["subject"] = json!(entity.subject.to_string());
    if let Some(due) = due {
        object["due"] = json!(due);
    }
    object
}

/// When the lease of a claimed task expires; none if nobody holds the task.
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
    format!("{} is {}{title}", entity.spoken_name(), entity.phase)
}

/// The reference of an entity without its hash, for a command line.
pub fn plain_reference(entity: &Entity) -> Option<ShortRef> {
    entity.reference().map(|reference| ShortRef { tag: None, ..reference })
}

/// A command about an entity, by its short reference.
pub fn next_about(command: &'static str, words: &'static str, entity: &Entity) -> Next {
    match plain_reference(entity) {
        Some(reference) => Next::run(command).word(words).value(&reference),
        None => Next::None,
    }
}

/// The next step for an entity in its current phase, if work can start.
pub fn next_step(entity: &Entity) -> Next {
    match (entity.subject.entity, entity.phase) {
        (EntityType::Task, Phase::Proposed) => next_about("hf-task", "explain", entity),
        (EntityType::Task, Phase::Ready) => next_about("hf-task", "claim", entity),
        (EntityType::Task, Phase::Assigned) => next_about("hf-task", "start", entity),
        (EntityType::Requirement, Phase::Proposed) => next_about("hf-require", "analyze", entity),
        (EntityType::Requirement, Phase::Analyzed) => Next::OPERATOR,
        (EntityType::Decision, phase) if approval::OPEN.contains(&phase) => Next::OPERATOR,
        _ => Next::None,
    }
}

/// The same while no work can start: an operator has to resume it first.
fn next_step_while_blocked(entity: &Entity) -> Next {
    match (entity.subject.entity, entity.phase) {
        (EntityType::Task, Phase::Ready | Phase::Assigned) => Next::OPERATOR,
        _ => next_step(entity),
    }
}

impl Recorded {
    /// The reply with this status, or DUPLICATE; the next step follows from the entity's phase.
    pub fn reply_with(&self, status: Status) -> Reply {
        let status = if self.duplicate { Status::Duplicate } else { status };
        let entity = self.entity.as_ref();
        let sum = match entity {
            Some(entity) => sentence(entity),
            None => format!("{} {}", self.asked.event_type.as_str(), self.asked.subject),
        };
        let next_step = if self.is_work_blocked { next_step_while_blocked } else { next_step };
        Reply::new(status, sum)
            .next(entity.map_or(Next::None, next_step))
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
        self.reply_with(Status::Recorded)
    }
}

impl Replies for ClaimOutcome {
    fn reply(&self) -> Reply {
        match self {
            ClaimOutcome::NoTask { waiting } => {
                Reply::new(Status::NoTask, format!("no task is ready; {} waiting", count_noun(waiting, "task")))
            }
            ClaimOutcome::Claimed(done) => {
                let task = done.entity.as_ref();
                done.reply_with(Status::Claimed)
                    .with_some(Key::Holder, task.and_then(|task| task.as_task().recorded_holder()))
                    .with_some(Key::LeaseUntil, task.and_then(lease_until))
                    .with_some(Key::Generation, task.map(|task| task.as_task().generation()))
            }
        }
    }
}

impl Replies for ShowOutcome {
    /// All facts about one entity, and the entities that belong to it.
    fn reply(&self) -> Reply {
        let entity = &self.entity;
        Reply::new(Status::Ok, sentence(entity))
            .with(Key::Subject, &entity.subject)
            .with_some(Key::Ref, entity.reference())
            .with(Key::State, entity.phase.as_str())
            .with_rows(Key::Fact, self.facts.iter().map(|fact| fact_row(fact, self.names.get(&fact.0))))
            .with_some(Key::Overdue, self.due.get(&entity.subject.to_string()).map(String::as_str))
            .with_rows(
                Key::Entity,
                self.related.iter().map(|other| row_with(other, self.due.get(&other.subject.to_string()))),
            )
    }
}

/// A fact: JSON has its value as in the log, a table the reference of the entity that it names.
fn fact_row((name, value): &(String, Json), named: Option<&String>) -> Row {
    let shown = match value {
        Json::String(text) if name.ends_with("_at") => Cell::time(text),
        Json::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    };
    row![name.as_str(), shown, named.map(String::as_str)].whole(json!({"name": name, "value": value}))
}

impl Replies for ExplainOutcome {
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, sentence(&self.task)).with_texts(Key::Because, &self.because)
    }
}
