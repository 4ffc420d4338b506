//! One thing that events are about, in its current state.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::{EntityId, EntityType, ShortRef, Subject, Timestamp, Ulid};
use crate::event::{Event, parse_ulid};
use crate::machine::Phase;

#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    pub subject: Subject,
    /// Its position among the entities of its type, from 1.
    pub ordinal: u64,
    /// Four digits of its first event's hash.
    pub tag: String,
    pub phase: Phase,
    pub created_at: Timestamp,
    pub first_event: Ulid,
    /// The last event that changed the phase.
    pub last_event: Ulid,
    /// Whether it was removed from the projections.
    pub archived: bool,
    /// The project that it belongs to, if any; it never changes.
    pub project: Option<EntityId>,
    /// `Clock::lost_seconds` at the last event about it.
    pub lost_seconds: i64,
    /// Everything else that is known about it: title, requirement_id, …
    pub(super) facts: Map<String, Value>,
}

/// An entity as the index stores it.
#[derive(Serialize, Deserialize)]
struct StoredEntity {
    subject: String,
    ordinal: u64,
    tag: String,
    state: String,
    created_at: i64,
    first_event: String,
    last_event: String,
    archived: bool,
    project: Option<String>,
    lost_seconds: i64,
    facts: Map<String, Value>,
}

impl Entity {
    /// A new entity, created by `event`, still in phase `Absent`.
    pub(super) fn new(subject: Subject, ordinal: u64, event: &Event) -> Self {
        Entity {
            subject,
            ordinal,
            tag: event.hash.tag(),
            phase: Phase::Absent,
            created_at: event.timestamp,
            first_event: event.id,
            last_event: event.id,
            archived: false,
            project: None,
            lost_seconds: 0,
            facts: Map::new(),
        }
    }

    /// `T-0001@a13c`, for types that have short references.
    pub fn reference(&self) -> Option<ShortRef> {
        self.subject.entity.ref_prefix()?;
        Some(ShortRef { entity: self.subject.entity, ordinal: self.ordinal, tag: Some(self.tag.clone()) })
    }

    /// `T-0001`, without the digits of its hash.
    pub fn short_reference(&self) -> Option<ShortRef> {
        self.reference().map(|reference| ShortRef { tag: None, ..reference })
    }

    /// The last event that changed what it is: its phase, for a requirement its analysis, for a task an edit.
    pub fn last_change(&self) -> Ulid {
        let change = self.text("_analyzed_by").or_else(|| self.text("_edited_by")).and_then(parse_ulid);
        change.map_or(self.last_event, |change| change.max(self.last_event))
    }

    /// Everything known beyond its phase, by the names in its projection.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// A fact that is a string.
    pub(super) fn text(&self, fact: &str) -> Option<&str> {
        self.facts.get(fact).and_then(Value::as_str)
    }

    /// A fact that is a count; 0 if it is missing.
    pub(super) fn count(&self, fact: &str) -> u64 {
        self.facts.get(fact).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A fact that is a time.
    pub(super) fn time(&self, fact: &str) -> Option<Timestamp> {
        Timestamp::parse(self.text(fact)?)
    }

    /// A fact that names another entity by its id.
    pub(super) fn named(&self, fact: &str, entity: EntityType) -> Option<Subject> {
        Some(Subject::new(entity, EntityId::parse(self.text(fact)?).ok()?))
    }

    /// A fact that is a list of strings.
    pub(super) fn texts<'a>(&'a self, fact: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.facts.get(fact).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// Replaces the times that an event which is only due has set, the time of reading, by that at which it was due.
    pub fn backdate(&mut self, recorded: &Entity, read_at: Timestamp, due_at: Timestamp) {
        let (read_at, due_at) = (read_at.to_string(), due_at.to_string());
        for (fact, value) in &mut self.facts {
            if value.as_str() == Some(&read_at) && recorded.facts.get(fact) != Some(value) {
                *value = due_at.clone().into();
            }
        }
    }

    /// Whether it is a job: a task that a supervisor starts.
    pub fn is_job(&self) -> bool {
        self.facts.get("job") == Some(&Value::Bool(true))
    }

    /// The current holder, if it is a task that is held.
    pub fn holder(&self) -> Option<&str> {
        let held = matches!(self.phase, Phase::Assigned | Phase::Running | Phase::Retrying) && !self.archived;
        self.text("holder").filter(|_| held && self.subject.entity == EntityType::Task)
    }

    /// The name of the persona that has yet to read it, if it is an unread message.
    pub fn reader(&self) -> Option<&str> {
        let is_unread = self.phase == Phase::Unread && !self.archived;
        self.text("to").filter(|_| is_unread && self.subject.entity == EntityType::Message)
    }

    /// Whether it is a job whose command has not been started: it waits for an approval, another task or a free slot.
    pub(super) fn is_waiting_job(&self) -> bool {
        matches!(self.phase, Phase::Proposed | Phase::Ready) && self.is_job()
    }

    /// Whether it is a ready task whose priority is not the usual one.
    pub(super) fn is_ranked(&self) -> bool {
        let is_usual = |priority: &str| priority == "normal";
        self.phase == Phase::Ready && self.text("priority").is_some_and(|priority| !is_usual(priority))
    }

    /// Its name for people: the short reference without the tag, or the subject.
    pub fn name(&self) -> String {
        match self.short_reference() {
            Some(reference) => reference.to_string(),
            None => self.subject.to_string(),
        }
    }

    /// Its name in a sentence: `T-0001`, `project main`, `the system`.
    pub fn spoken_name(&self) -> String {
        match (self.short_reference(), self.subject.entity) {
            (Some(reference), _) => reference.to_string(),
            (None, EntityType::System) => "the system".to_owned(),
            (None, entity) => format!("{entity} {}", self.subject.id()),
        }
    }

    /// Its object in the projection of its type.
    pub fn projection(&self) -> Value {
        let mut object = Map::new();
        object.insert("id".to_owned(), self.subject.id().into());
        object.insert("status".to_owned(), self.phase.as_str().into());
        object.insert("created_at".to_owned(), self.created_at.to_string().into());
        object.insert("last_event_id".to_owned(), self.last_event.to_string().into());
        if let Some(reference) = self.reference() {
            object.insert("ref".to_owned(), reference.to_string().into());
        }
        let shown = self.facts.iter().filter(|(name, _)| !name.starts_with('_'));
        object.extend(shown.map(|(name, value)| (name.clone(), value.clone())));
        Value::Object(object)
    }

    pub fn encode(&self) -> Vec<u8> {
        let stored = StoredEntity {
            subject: self.subject.to_string(),
            ordinal: self.ordinal,
            tag: self.tag.clone(),
            state: self.phase.to_string(),
            created_at: self.created_at.0,
            first_event: self.first_event.to_string(),
            last_event: self.last_event.to_string(),
            archived: self.archived,
            project: self.project.as_ref().map(ToString::to_string),
            lost_seconds: self.lost_seconds,
            facts: self.facts.clone(),
        };
        serde_json::to_vec(&stored).expect("a plain struct")
    }

    pub fn decode(bytes: &[u8]) -> Option<Entity> {
        let stored: StoredEntity = serde_json::from_slice(bytes).ok()?;
        Some(Entity {
            subject: Subject::parse(&stored.subject).ok()?,
            ordinal: stored.ordinal,
            tag: stored.tag,
            phase: Phase::parse(&stored.state)?,
            created_at: Timestamp(stored.created_at),
            first_event: parse_ulid(&stored.first_event)?,
            last_event: parse_ulid(&stored.last_event)?,
            archived: stored.archived,
            project: match stored.project {
                Some(project) => Some(EntityId::parse(&project).ok()?),
                None => None,
            },
            lost_seconds: stored.lost_seconds,
            facts: stored.facts,
        })
    }
}
