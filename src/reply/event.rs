//! One event as a row, and pages of events.

use serde_json::{Value as Json, json};

use super::{Cell, Key, Next, Replies, Reply, Row, Status, row};
use crate::base::text::count_noun;
use crate::base::{Actor, Subject};
use crate::event::{Event, Kind, kind};
use crate::op::{EventFilter, LineageOutcome, LogOutcome, LogSource, ShowEventOutcome};

/// Id, time, type, subject, actor, and a short text if the payload has one. JSON has the envelope instead.
pub fn row(event: &Event) -> Row {
    row![
        event.id,
        event.timestamp,
        event.event_type.as_str(),
        event.subject.as_str(),
        event.actor.as_str(),
        kind::headline(&event.payload)
    ]
    .whole(envelope(event))
}

/// The row of an event with the short reference of its subject, for a table.
fn row_with_reference(event: &Event, reference: Option<&str>) -> Row {
    let mut row = row(event);
    row.cells.push(Cell::from(reference));
    row
}

/// The event as in seed 004's §5.5.
fn envelope(event: &Event) -> Json {
    let mut object = json!({
        "$schema": "event.v1.schema.json",
        "event_id": event.id.to_string(),
        "event_type": event.event_type.as_str(),
        "version": event.version,
        "timestamp": event.timestamp.to_string(),
        "actor": event.actor,
        "subject": event.subject,
        "parents": event.parents.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "payload": event.payload,
        "prev_hash": event.prev_hash.to_string(),
        "hash": event.hash.to_string(),
    });
    if let Some(key) = &event.key {
        object["idempotency_key"] = json!(key);
    }
    if let Some(batch) = event.batch {
        object["batch"] = json!({"no": batch.no, "of": batch.of});
    }
    object
}

impl LogOutcome {
    /// The reply that accompanies the events as lines of JSON.
    pub fn reply_beside_jsonl(&self) -> Reply {
        self.reply_without_events(|next| next.word("--jsonl"))
    }

    /// The reply without its events. `format` adds the option that gives the next page the same format.
    fn reply_without_events(&self, format: fn(Next) -> Next) -> Reply {
        let count = self.entries.len();
        let next = self.next_cursor.and_then(|cursor| {
            let next = match self.source {
                LogSource::Log => Next::run("hf-log"),
                LogSource::Quarantine => Next::run("hf-log").word("--quarantined"),
            };
            let next = next.arg("--cursor", &cursor).arg("--limit", &self.limit);
            repeat_filter(format(next), &self.filter)
        });
        let sum = match self.source {
            LogSource::Log => count_noun(count, "event"),
            LogSource::Quarantine => format!("{} in quarantine, not part of the log", count_noun(count, "event")),
        };
        Reply::new(Status::Ok, sum)
            .next(next.unwrap_or(Next::None))
            .warn(self.warnings.clone())
            .with(Key::Count, count)
            .with(Key::HasMore, self.next_cursor.is_some())
            .with_some(Key::NextCursor, self.next_cursor)
    }
}

impl Replies for LogOutcome {
    fn reply(&self) -> Reply {
        let rows = self
            .entries
            .iter()
            .map(|(event, _)| row_with_reference(event, self.references.get(&event.subject).map(String::as_str)));
        self.reply_without_events(|next| next).with_rows(Key::Event, rows)
    }
}

impl Replies for ShowEventOutcome {
    /// Every member of the event: one line each in text, the envelope in JSON.
    fn reply(&self) -> Reply {
        let event = &self.event;
        let (kind, subject, actor) = (event.event_type.as_str(), &event.subject, &event.actor);
        let place = if self.quarantined_in.is_some() { "; in quarantine, not part of the log" } else { "" };
        let facts = members(event).into_iter().map(|(name, value)| {
            let whole = json!({"name": name, "value": value});
            row![name, value, None::<&str>].whole(whole)
        });
        Reply::new(Status::Ok, format!("{kind} of {subject} by {actor} at {}{place}", event.timestamp))
            .with_rows(Key::Event, [row_with_reference(event, None)])
            .with_some(Key::Ref, self.subject_ref.clone())
            .with_text_rows(Key::Fact, facts)
            .with_texts(Key::Quarantined, self.quarantined_in.iter())
    }
}

/// The members of the envelope and of the payload, each with its whole value.
fn members(event: &Event) -> Vec<(String, String)> {
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut members = vec![
        ("event_id".to_owned(), event.id.to_string()),
        ("event_type".to_owned(), event.event_type.as_str().to_owned()),
        ("version".to_owned(), event.version.to_string()),
        ("timestamp".to_owned(), event.timestamp.to_string()),
        ("actor".to_owned(), event.actor.clone()),
        ("subject".to_owned(), event.subject.clone()),
    ];
    members.extend(event.batch.map(|batch| ("batch".to_owned(), format!("{} of {}", batch.no, batch.of))));
    members.extend(event.parents.iter().map(|id| ("parent".to_owned(), id.to_string())));
    members.extend(event.key.iter().map(|key| ("idempotency_key".to_owned(), key.clone())));
    members.extend(event.payload.iter().map(|(name, value)| (format!("payload.{name}"), text(value))));
    members.push(("prev_hash".to_owned(), event.prev_hash.to_string()));
    members.push(("hash".to_owned(), event.hash.to_string()));
    members
}

/// Adds the same filter for the next page; none if a part of it would need quoting.
fn repeat_filter(mut next: Next, filter: &EventFilter) -> Option<Next> {
    if let Some(name) = &filter.event_type {
        next = next.word("--type").word(Kind::parse(name)?.as_str());
    }
    if let Some(subject) = &filter.subject {
        next = next.arg("--subject", &Subject::parse(subject).ok()?);
    }
    if let Some(actor) = &filter.actor {
        next = next.arg("--actor", &Actor::parse(actor).ok()?);
    }
    for (option, time) in [("--since", filter.since), ("--until", filter.until)] {
        if let Some(time) = time {
            next = next.arg(option, &time);
        }
    }
    Some(next)
}

impl LineageOutcome {
    /// The reply that accompanies the graph when that is a document of its own.
    pub fn brief(&self) -> Reply {
        Reply::new(
            Status::Ok,
            format!("{}, {}", count_noun(self.nodes.len(), "event"), count_noun(self.edges.len(), "link")),
        )
        .with(Key::Root, self.root)
        .with(Key::Count, self.nodes.len())
        .with(Key::Truncated, self.truncated)
    }
}

impl Replies for LineageOutcome {
    /// Nodes and edges; JSON also has the two lists of seed 004's §10.1.1.
    fn reply(&self) -> Reply {
        let nodes = self.nodes.iter().map(|node| {
            let mut cells = vec![Cell::from(node.distance)];
            cells.extend(row(&node.event).cells);
            Row::new(cells)
        });
        let ids = |is_wanted: fn(i64) -> bool| {
            let wanted = self.nodes.iter().filter(|node| is_wanted(node.distance));
            super::Value::Texts(wanted.map(|node| node.event.id.to_string()).collect())
        };
        self.brief()
            .with_rows(Key::Node, nodes)
            .with_rows(Key::Edge, self.edges.iter().map(|(cause, consequence)| row![*cause, *consequence]))
            .with_json(Key::Ancestor, ids(|distance| distance < 0))
            .with_json(Key::Descendant, ids(|distance| distance > 0))
    }
}
