//! Pages of lists, each with the command for the next page.

use serde_json::json;

use super::{Cell, Key, Next, Replies, Reply, Row, Status, Value, entity, row};
use crate::base::text::count_noun;
use crate::base::{Actor, EntityType, ShortRef};
use crate::op::{ListEntry, ListFilter, ListOutcome, Projection};

/// A page as hf-project shows it: of any projection, with the head that it covers.
#[derive(Debug)]
pub struct Page<'a>(pub &'a ListOutcome);

impl Replies for Page<'_> {
    fn reply(&self) -> Reply {
        let Page(done) = self;
        let next = Next::run("hf-project").word(done.request.projection.name());
        let reply = page(done, next_page(done, next, "--status"));
        let items = done.entries.iter().map(|entry| match entry {
            ListEntry::Entity(entity) => {
                let mut projected = entity.projection();
                if let Some(why) = done.due.get(&entity.subject.to_string()) {
                    projected["due"] = why.as_str().into();
                }
                (entity.subject.id().to_owned(), projected)
            }
            ListEntry::Key(key, id) => (key.clone(), id.to_string().into()),
        });
        super::project::with_head(reply, done.head)
            .with_text_rows(Key::Entity, done.entries.iter().map(|entry| listed(done, entry)))
            .with_json(Key::Type, Value::One(Cell::from(done.request.projection.name())))
            .with_json(Key::Item, Value::Map(items.collect()))
    }
}

impl Replies for ListOutcome {
    /// A page as its noun's own command shows it.
    fn reply(&self) -> Reply {
        match self.request.projection {
            Projection::Of(EntityType::DeepWork) => {
                let rows = self.entities().map(|work| super::agent::deep_work(work, self.now));
                page(self, own_command(self)).with_rows(Key::DeepWork, rows)
            }
            _ => page(self, own_command(self))
                .with_rows(Key::Entity, self.entries.iter().map(|entry| listed(self, entry))),
        }
    }
}

fn listed(done: &ListOutcome, entry: &ListEntry) -> Row {
    match entry {
        ListEntry::Entity(entity) => {
            let subject = entity.subject.to_string();
            let standing = done.tasks.get(&subject);
            let detail = entity::Detail {
                due: done.due.get(&subject).map(String::as_str),
                holder: entity.holder(),
                until: standing.and_then(|standing| standing.held_until),
                since: standing.and_then(|standing| standing.since),
                waits_for: standing.and_then(|standing| standing.waits_for.as_deref()),
            };
            entity::row_with(entity, &detail)
        }
        ListEntry::Key(key, id) => row![*id, key.as_str()].whole(json!({"key": key, "event_id": id.to_string()})),
    }
}

/// The command of the listed noun, for the next page.
fn own_command(done: &ListOutcome) -> Next {
    let Projection::Of(noun) = done.request.projection else { return Next::None };
    let some = !done.request.phases.is_empty();
    let (command, words) = match noun {
        EntityType::Task => ("hf-task", "list"),
        EntityType::Requirement => ("hf-require", "list"),
        EntityType::Artifact => ("hf-artifact", "list"),
        EntityType::DeepWork => ("hf-deepwork", "list"),
        EntityType::Branch => ("hf-branch", "list"),
        EntityType::Decision => ("hf-decide", if some { "list --open" } else { "list" }),
        EntityType::Escalation => ("hf-decide", if some { "list --escalations --open" } else { "list --escalations" }),
        EntityType::Constraint => ("hf-constraint", if some { "list" } else { "list --all" }),
        EntityType::Session => ("hf-session", if some { "list" } else { "list --all" }),
        _ => return Next::None,
    };
    let by_status = matches!(noun, EntityType::Task | EntityType::Requirement | EntityType::Branch);
    next_page(done, Next::run(command).word(words), if by_status { "--status" } else { "" })
}

/// Adds the options that select the next page of the same list.
fn next_page(done: &ListOutcome, next: Next, status: &'static str) -> Next {
    let mut next = next.arg("--limit", &done.request.limit);
    match (done.request.phases.as_slice(), status.is_empty()) {
        _ if done.request.claimable => next = next.word("--ready"),
        (&[phase], false) => next = next.word(status).word(phase.as_str()),
        _ => {}
    }
    let ListFilter { project, actor } = &done.request.filter;
    if let Some(project) = project {
        next = next.arg("--project", project);
    }
    next = match actor.as_ref().map(Actor::agent) {
        Some(Some(agent)) => next.arg("--agent", &agent),
        Some(None) => next.word("--mine"),
        None => next,
    };
    match &done.request.made_for {
        None | Some((_, EntityType::Agent)) => {}
        // Only a short reference is safe to repeat; without it the command would show a different list.
        Some((text, wanted)) => match ShortRef::parse(text) {
            Some(reference) if *wanted == EntityType::Requirement => next = next.arg("--requirement", &reference),
            Some(reference) => next = next.arg("--for", &reference),
            None => return Next::None,
        },
    }
    match &done.next_cursor {
        Some(cursor) => next.arg("--cursor", cursor),
        None => Next::None,
    }
}

/// `1 task`, `2 tasks`: entries of a projection.
pub fn count_entries(count: usize, projection: Projection) -> String {
    match projection {
        Projection::Of(EntityType::DeepWork) => format!("{} of deep work", count_noun(count, "period")),
        Projection::Of(entity) => count_noun(count, entity.as_str()),
        Projection::Idempotency => count_noun(count, "idempotency key"),
    }
}

/// A page without its entries.
pub fn page(done: &ListOutcome, next: Next) -> Reply {
    let cursor = match (done.entries.last(), done.more) {
        (Some(ListEntry::Entity(entity)), true) => Some(entity.subject.id().to_owned()),
        (Some(ListEntry::Key(key, _)), true) => Some(key.clone()),
        _ => None,
    };
    Reply::new(Status::Ok, count_entries(done.entries.len(), done.request.projection))
        .next(next)
        .with(Key::Count, done.entries.len())
        .with(Key::HasMore, done.more)
        .with_some(Key::NextCursor, cursor)
}

/// A page of a persona's branches, without its entries.
pub fn page_of_branches(done: &ListOutcome) -> Reply {
    page(done, own_command(done))
}
