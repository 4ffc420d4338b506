//! One event as a row, and pages of events.

use serde_json::{Value as Json, json};

use super::{Cell, Key, Next, Replies, Reply, Row, Status, row};
use crate::base::text::count_noun;
use crate::base::{Actor, Subject};
use crate::event::{Event, Kind, kind};
use crate::op::{EventFilter, LineageOutcome, LogOutcome};

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
            let next = Next::run("hf-log").arg("--cursor", &cursor).arg("--limit", &self.limit);
            repeat_filter(format(next), &self.filter)
        });
        Reply::new(Status::Ok, count_noun(count, "event"))
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
        self.reply_without_events(|next| next).with_rows(Key::Event, rows)
    }
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
