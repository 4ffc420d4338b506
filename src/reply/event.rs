//! One event as a row, and pages of them.

use serde_json::{Value as Json, json};

use super::{Cell, Key, Next, Replies, Reply, Row, Status, row};
use crate::base::{Actor, Subject};
use crate::event::{Event, Kind, kind};
use crate::op::{EventFilter, LineageOutcome, LogOutcome};

/// Id, time, type, subject, actor, and a short text if the payload has one; programs get the envelope.
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

/// The same, for a table, with the short reference of the subject.
fn row_with_reference(event: &Event, reference: Option<&str>) -> Row {
    let mut row = row(event);
    row.cells.push(Cell::from(reference));
    row
}

/// The event as seed 004's §5.5 has it.
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
    /// The reply without its events, where those are a document of their own; `jsonl` if so.
    pub fn page(&self, jsonl: bool) -> Reply {
        let count = self.entries.len();
        let next = self.next_cursor.and_then(|cursor| {
            let next = Next::run("hf-log").arg("--cursor", &cursor).arg("--limit", &self.limit);
            repeat_filter(if jsonl { next.word("--jsonl") } else { next }, &self.filter)
        });
        Reply::new(Status::Ok, format!("{count} events"))
            .next(next.unwrap_or(Next::None))
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
        self.page(false).with_rows(Key::Event, rows)
    }
}

/// The same filter for the next page; nothing if a part of it is not plain.
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
    /// The reply without its graph, where that is a document of its own.
    pub fn brief(&self) -> Reply {
        Reply::new(Status::Ok, format!("{} events, {} links", self.nodes.len(), self.edges.len()))
            .with(Key::Root, self.root)
            .with(Key::Count, self.nodes.len())
            .with(Key::Truncated, self.truncated)
    }
}

impl Replies for LineageOutcome {
    /// Text has the graph; programs also get the two lists of seed 004's §10.1.1.
    fn reply(&self) -> Reply {
        let nodes = self.nodes.iter().map(|node| {
            let mut cells = vec![Cell::from(node.distance)];
            cells.extend(row(&node.event).cells);
            Row::new(cells)
        });
        let on_side = |up: bool| {
            let side = self.nodes.iter().filter(move |node| if up { node.distance < 0 } else { node.distance > 0 });
            super::Value::Texts(side.map(|node| node.event.id.to_string()).collect())
        };
        self.brief()
            .with_rows(Key::Node, nodes)
            .with_rows(Key::Edge, self.edges.iter().map(|(cause, consequence)| row![*cause, *consequence]))
            .with_json(Key::Ancestor, on_side(true))
            .with_json(Key::Descendant, on_side(false))
    }
}
