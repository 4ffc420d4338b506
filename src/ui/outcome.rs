//! Outcomes that many commands share, as reports.

use super::{Key, Next, Report, Status, show};
use crate::base::{ShortRef, Timestamp, limits, text};
use crate::op::{AppendOutcome, ListOutcome, Listed, ShowOutcome};
use crate::state::Entity;

/// Something was recorded, or was so before.
pub fn recorded(done: &AppendOutcome) -> Report {
    let status = if done.duplicate { Status::Duplicate } else { Status::Recorded };
    as_status(status, done)
}

/// The same with a status of its own.
pub fn as_status(status: Status, done: &AppendOutcome) -> Report {
    let entity = done.entity.as_ref();
    let sum = match entity {
        Some(entity) => sentence(entity),
        None => format!("{} {}", done.asked.event_type.as_str(), done.asked.subject),
    };
    Report::new(status, sum)
        .with_each(Key::EventId, done.ids.iter().map(ToString::to_string))
        .with(Key::Subject, done.asked.subject.as_str())
        .with_some(Key::Ref, entity.and_then(Entity::reference).map(|reference| reference.to_string()))
        .with_some(Key::State, entity.map(|entity| entity.state.as_str()))
        .with_each(Key::Entity, done.followed.iter().map(show::entity))
        .warn(done.warnings.clone())
}

/// `T-0001 is Ready: Login form`.
pub fn sentence(entity: &Entity) -> String {
    let title = ["title", "summary", "text", "activity", "filename", "label"].iter().find_map(|fact| entity.text(fact));
    let title = title.map(|title| format!(": {}", text::cut(title, limits::SUMMARY_MAX_CHARS))).unwrap_or_default();
    format!("{} is {}{title}", entity.name(), entity.state)
}

/// Until when a fresh claim holds.
pub fn lease_until(task: &Entity) -> Option<String> {
    let until = task.time("claimed_at")?.0.checked_add_unsigned(task.count("lease_seconds"))?;
    Some(Timestamp(until).to_string())
}

/// A command of ours about an entity, by its short reference.
pub fn next_about(command: &'static str, words: &'static str, entity: &Entity) -> Next {
    match entity.reference() {
        Some(reference) => Next::run(command).word(words).value(&ShortRef { tag: None, ..reference }),
        None => Next::None,
    }
}

/// One page of a list, with the step to the next; `next` is the command that lists.
pub fn listed(done: &ListOutcome, what: &str, next: Next) -> Report {
    page(done, what, next).with_each(Key::Entity, lines(done))
}

/// The entries of a page, one line each.
pub fn lines(done: &ListOutcome) -> impl Iterator<Item = String> {
    done.entries.iter().map(|entry| match entry {
        Listed::Entity(entity) => show::entity(entity),
        Listed::Key(key, id) => format!("{id} {key}"),
    })
}

/// A page of a list without its entries.
pub fn page(done: &ListOutcome, what: &str, next: Next) -> Report {
    let ListOutcome { entries, next_cursor, more, .. } = done;
    let next = match next_cursor {
        Some(cursor) => next.arg("--cursor", cursor),
        None => Next::None,
    };
    let cursor = match (entries.last(), more) {
        (Some(Listed::Entity(entity)), true) => Some(entity.subject.id().to_owned()),
        (Some(Listed::Key(key, _)), true) => Some(key.clone()),
        _ => None,
    };
    Report::new(Status::Ok, format!("{} {what}", entries.len()))
        .next(next)
        .with(Key::Count, entries.len() as u64)
        .with(Key::HasMore, if *more { "yes" } else { "no" })
        .with_some(Key::NextCursor, cursor)
}

/// Everything that is known of one entity, and what was made for it.
pub fn shown(done: &ShowOutcome) -> Report {
    let entity = &done.entity;
    let fact = |(name, value): &(String, String)| format!("{name} {value}");
    Report::new(Status::Ok, sentence(entity))
        .with(Key::Subject, entity.subject.to_string())
        .with_some(Key::Ref, entity.reference().map(|reference| reference.to_string()))
        .with(Key::State, entity.state.as_str())
        .with_each(Key::Fact, done.facts.iter().map(fact))
        .with_each(Key::Entity, done.related.iter().map(show::entity))
}
