//! Events and entities on one line: words without spaces first, then a short text.

use serde_json::Value;

use crate::base::{limits, text};
use crate::event::{Event, kind};
use crate::state::Entity;

/// `ID TIME TYPE SUBJECT ACTOR`, and a short text if the payload has one.
pub fn event(event: &Event) -> String {
    let Event { id, timestamp, subject, actor, .. } = event;
    let words = format!("{id} {timestamp} {} {subject} {actor}", event.event_type.as_str());
    with_text(words, kind::headline(&event.payload))
}

/// `SUBJECT REF STATUS`, and its title or summary. `-` stands for no reference.
pub fn entity(entity: &Entity) -> String {
    let reference = entity.reference().map_or("-".to_owned(), |r| r.to_string());
    let words = format!("{} {reference} {}", entity.subject, entity.state);
    let title = ["title", "summary", "text", "kind", "label"]
        .iter()
        .find_map(|name| entity.facts.get(*name).and_then(Value::as_str));
    with_text(words, title.map(|title| text::cut(title, limits::SUMMARY_MAX_CHARS)))
}

fn with_text(words: String, text: Option<String>) -> String {
    match text {
        Some(text) => format!("{words} {text}"),
        None => words,
    }
}
