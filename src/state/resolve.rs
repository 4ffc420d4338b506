//! Finding and listing entities, in the base and in the changes on top of it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{Deadline, DeadlineQuery, Entity, Query, State, Timer};
use crate::base::{EntityId, EntityType, Error, Result, ShortRef, Subject, Ulid};
use crate::machine;

/// A shorter text is never treated as the prefix of a ULID.
const PREFIX_MIN_CHARS: usize = 4;
const ULID_CHARS: usize = 26;
/// How many matches of an ambiguous reference are listed.
const MATCHES_SHOWN: usize = 5;

impl State {
    /// Finds an entity by subject, exact id, short reference or unique ULID prefix. `wanted` restricts ids and prefixes to
    /// one type. Refuses a text that names different entities, depending on how it is read.
    pub fn resolve(&self, text: &str, wanted: Option<EntityType>) -> Result<Subject> {
        if text.contains(':') {
            let subject = Subject::parse(text)?;
            return self.entity(&subject).map(|e| e.subject.clone()).ok_or_else(|| unknown(text));
        }
        if text == EntityType::System.as_str() {
            return Ok(Subject::SYSTEM);
        }
        let types: Vec<EntityType> =
            EntityType::ALL.iter().copied().filter(|e| e.has_id() && wanted.is_none_or(|w| w == *e)).collect();
        let mut readings = self.with_id(text, &types);
        let reference = ShortRef::parse(text).map(|reference| self.by_reference(&reference));
        match &reference {
            Some(Ok(subject)) => readings.push(subject.clone()),
            Some(Err(_)) => {}
            // No other ULID starts with a whole one.
            None if text.len() == ULID_CHARS && !readings.is_empty() && text == text.to_ascii_uppercase() => {}
            None => readings.append(&mut self.with_prefix(text, &types)),
        }
        readings.sort();
        readings.dedup();
        match (only(text, readings)?, reference) {
            (Some(found), _) => Ok(found),
            (None, Some(Err(error))) => Err(error),
            (None, _) => Err(unknown(text)),
        }
    }

    /// The entities with exactly this id.
    fn with_id(&self, text: &str, types: &[EntityType]) -> Vec<Subject> {
        let Ok(id) = EntityId::parse(text) else { return Vec::new() };
        types.iter().map(|e| Subject::new(*e, id.clone())).filter(|s| self.entity(s).is_some()).collect()
    }

    /// The first few entities whose id is a ULID that starts with this text.
    fn with_prefix(&self, text: &str, types: &[EntityType]) -> Vec<Subject> {
        let is_prefix = (PREFIX_MIN_CHARS..=ULID_CHARS).contains(&text.len());
        if !is_prefix || !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Vec::new();
        }
        let prefix = text.to_ascii_uppercase();
        let all = types.iter().flat_map(|entity| [(*entity, false), (*entity, true)]);
        let found = all.flat_map(|(entity, archived)| {
            self.query(&Query { entity, archived, prefix: &prefix, after: None, limit: MATCHES_SHOWN + 1 })
        });
        found.map(|entity| entity.subject).filter(|subject| subject.id().len() == ULID_CHARS).collect()
    }

    /// Like `resolve`, but refuses an entity of another type.
    pub fn find(&self, text: &str, wanted: EntityType) -> Result<Subject> {
        let subject = self.resolve(text, Some(wanted))?;
        match subject.entity == wanted {
            true => Ok(subject),
            false => Err(Error::usage(format!(
                "{} is {}, not {}",
                crate::base::text::cut(text, 80),
                subject.entity.with_article(),
                wanted.with_article()
            ))),
        }
    }

    /// The entities of a type that are not archived, sorted by id, with ids greater than `after`.
    pub fn entities(&self, entity: EntityType, after: Option<&str>, limit: usize) -> Vec<Entity> {
        self.query(&Query { entity, archived: false, prefix: "", after, limit })
    }

    /// The entities that match a query, sorted by id.
    pub fn query(&self, query: &Query<'_>) -> Vec<Entity> {
        let Query { entity, archived, prefix, after, limit } = *query;
        // Changed entities replace those of the base, so fetch enough to make up for them.
        let changed = self.changes.entities.keys().filter(|subject| subject.entity == entity).count();
        let more = Query { limit: limit.saturating_add(changed), ..*query };
        let known = self.base.as_ref().map(|base| base.entities(&more)).unwrap_or_default();
        let mut found: BTreeMap<String, Entity> = known.into_iter().map(|e| (e.subject.id().to_owned(), e)).collect();
        for (subject, changed) in self.changes.entities.iter().filter(|(subject, _)| subject.entity == entity) {
            let id = subject.id();
            found.remove(id);
            if changed.archived == archived && id.starts_with(prefix) && after.is_none_or(|after| id > after) {
                found.insert(id.to_owned(), changed.clone());
            }
        }
        found.into_values().take(limit).collect()
    }

    /// The archived entities of a type that were created after the `after`th of it, in order of creation. Only lists
    /// need them, so they have no index of their own: their numbers are tried in turn.
    pub fn archived(&self, entity: EntityType, after: u64, limit: usize) -> Vec<Entity> {
        let made = self.tally().made(entity);
        let all = made.saturating_sub(self.tally().live(entity));
        let numbered = (after.saturating_add(1)..=made).filter_map(|ordinal| self.nth(entity, ordinal));
        let entities = numbered.filter_map(|subject| self.entity(&subject).map(Cow::into_owned));
        entities.filter(|entity| entity.archived).take(limit.min(all as usize)).collect()
    }

    /// The entities of a type that are in a phase and not archived, in order of creation.
    pub fn in_phase(&self, entity: EntityType, phase: machine::Phase, limit: usize) -> Vec<Entity> {
        let changed = || self.changes.entities.values().filter(|e| e.subject.entity == entity);
        let more = limit.saturating_add(changed().count());
        let mut found = self.base.as_ref().map(|base| base.in_phase(entity, phase, more)).unwrap_or_default();
        found.retain(|e| !self.changes.entities.contains_key(&e.subject));
        found.extend(changed().filter(|e| e.phase == phase && !e.archived).cloned());
        found.sort_by_key(|e| e.ordinal);
        found.truncate(limit);
        found
    }

    /// The entities of a type that named this one when they were created, in order of creation.
    pub fn made_for(&self, subject: &Subject, entity: EntityType) -> Vec<Entity> {
        let known = self.base.as_ref().map(|base| base.made_for(subject, entity)).unwrap_or_default();
        // The system sorts before every other subject.
        let since = (subject.clone(), Subject::SYSTEM);
        let new = self.changes.links.range(since..).take_while(|(from, _)| from == subject);
        let new = new.filter(|(_, to)| to.entity == entity);
        let all: BTreeSet<Subject> = known.into_iter().chain(new.map(|(_, to)| to.clone())).collect();
        let mut found: Vec<Entity> =
            all.iter().filter_map(|subject| self.entity(subject).map(Cow::into_owned)).collect();
        found.sort_by_key(|entity| entity.ordinal);
        found
    }

    /// The tasks that an actor holds, in order of creation.
    pub fn held_by(&self, holder: &str) -> Vec<Entity> {
        let mut found = self.base.as_ref().map(|base| base.held_by(holder)).unwrap_or_default();
        found.retain(|e| !self.changes.entities.contains_key(&e.subject));
        found.extend(self.changes.entities.values().filter(|e| e.holder() == Some(holder)).cloned());
        found.sort_by_key(|e| e.ordinal);
        found
    }

    /// The messages that a persona has not read, oldest first.
    pub fn unread_by(&self, persona: &str, limit: usize) -> Vec<Entity> {
        let changed = || self.changes.entities.values().filter(|e| e.subject.entity == EntityType::Message);
        let more = limit.saturating_add(changed().count());
        let mut found = self.base.as_ref().map(|base| base.unread_by(persona, more)).unwrap_or_default();
        found.retain(|e| !self.changes.entities.contains_key(&e.subject));
        found.extend(changed().filter(|e| e.reader() == Some(persona)).cloned());
        found.sort_by_key(|e| e.ordinal);
        found.truncate(limit);
        found
    }

    /// The lengths of a project's deadlines by one timer, sorted; 0 where the settings determine the length.
    pub fn limits(&self, project: Option<&str>, timer: Timer) -> Vec<u64> {
        let mut limits: BTreeSet<u64> =
            self.base.as_ref().map(|base| base.limits(project, timer)).unwrap_or_default().into_iter().collect();
        let changed = self.changes.entities.values().filter(|e| e.project.as_ref().map(EntityId::as_str) == project);
        limits.extend(changed.flat_map(Entity::deadlines).filter(|d| d.timer == timer).map(|d| d.limit.unwrap_or(0)));
        limits.into_iter().collect()
    }

    /// The entities with a deadline of this length that started at `until` or earlier, earliest first.
    pub fn counting_from(&self, query: &DeadlineQuery<'_>) -> Vec<Entity> {
        let DeadlineQuery { project, timer, limit, until, max } = *query;
        let from = |entity: &Entity| {
            let fits = |d: &Deadline| d.timer == timer && d.limit.unwrap_or(0) == limit && d.from <= until;
            entity.deadlines().into_iter().find(fits).map(|deadline| deadline.from)
        };
        let more = max.saturating_add(self.changes.entities.len());
        let known = self.base.as_ref().map(|base| base.counting_from(&DeadlineQuery { max: more, ..*query }));
        let mut found = known.unwrap_or_default();
        found.retain(|e| !self.changes.entities.contains_key(&e.subject));
        let changed = self.changes.entities.values().filter(|e| e.project.as_ref().map(EntityId::as_str) == project);
        found.extend(changed.filter(|entity| from(entity).is_some()).cloned());
        found.sort_by_key(|entity| (from(entity), entity.ordinal));
        found.truncate(max);
        found
    }

    /// Events that name this one as a parent, oldest first.
    pub fn children(&self, parent: Ulid, limit: usize) -> Vec<Ulid> {
        let mut children = self.base.as_ref().map(|base| base.children(parent, limit)).unwrap_or_default();
        children.extend(self.changes.children.iter().filter(|(p, _)| *p == parent).map(|(_, child)| *child));
        children.truncate(limit);
        children
    }

    /// Idempotency keys greater than `after` with their events, sorted by key.
    pub fn keys(&self, after: Option<&str>, limit: usize) -> Vec<(String, Ulid)> {
        let mut keys = self.base.as_ref().map(|base| base.keys(after, limit)).unwrap_or_default();
        let changed = self.changes.keys.iter().filter(|(key, _)| after.is_none_or(|after| key.as_str() > after));
        keys.extend(changed.map(|(key, id)| (key.clone(), *id)));
        keys.sort();
        keys.truncate(limit);
        keys
    }

    /// The nth entity of its type.
    pub fn nth(&self, entity: EntityType, ordinal: u64) -> Option<Subject> {
        self.changes.made.get(&(entity, ordinal)).cloned().or_else(|| self.base.as_ref()?.nth(entity, ordinal))
    }

    /// The newest entity of its type.
    pub fn newest(&self, entity: EntityType) -> Option<Entity> {
        let subject = self.nth(entity, self.tally().made(entity))?;
        self.entity(&subject).map(Cow::into_owned)
    }

    /// The first number whose id is free, if ids are used in the order of their numbers.
    pub fn free_number(&self, entity: EntityType, id: impl Fn(u64) -> String) -> u64 {
        let taken =
            |n: u64| n == 0 || EntityId::parse(&id(n)).is_ok_and(|id| self.entity(&Subject::new(entity, id)).is_some());
        let mut free = 1;
        while taken(free) {
            free *= 2;
        }
        // The answer is between the last power of two that is taken and the first that is free.
        let mut last = free / 2;
        while free - last > 1 {
            let middle = last + (free - last) / 2;
            if taken(middle) { last = middle } else { free = middle }
        }
        free
    }

    fn by_reference(&self, reference: &ShortRef) -> Result<Subject> {
        let subject = self.nth(reference.entity, reference.ordinal);
        let entity =
            subject.as_ref().and_then(|subject| self.entity(subject)).ok_or_else(|| unknown(&reference.to_string()))?;
        match &reference.tag {
            Some(tag) if *tag != entity.tag => Err(Error::not_found(format!(
                "{reference} does not exist; {}-{:04} is {}",
                reference.entity.ref_prefix().unwrap_or_default(),
                reference.ordinal,
                entity.reference().expect("it was found by its reference"),
            ))),
            _ => Ok(entity.subject.clone()),
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::not_found(format!("'{}' not found", crate::base::text::cut(text, 80)))
}

/// The only match, if there is one. Refuses several.
fn only(text: &str, mut found: Vec<Subject>) -> Result<Option<Subject>> {
    if found.len() <= 1 {
        return Ok(found.pop());
    }
    let shown: Vec<String> = found.iter().take(MATCHES_SHOWN).map(ToString::to_string).collect();
    let more = if found.len() > MATCHES_SHOWN { ", …" } else { "" };
    Err(Error::not_found(format!("'{text}' is ambiguous; it matches {}{more}", shown.join(", "))))
}
