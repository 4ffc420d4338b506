//! hf-project --check: whether index, projection files and newest snapshot agree with the events.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::{Context, all_maps};
use crate::base::{Digest, EntityType, Result, Ulid, names};
use crate::chain::Head;
use crate::op::kernel::with_view;
use crate::state::State;
use crate::vault::projections::{self, ProjectionFile};
use crate::vault::{Log, Vault};

names! {
    /// How the caches compare with the events. None of this is a verdict about the log.
    pub enum CacheVerdict {
        Ok = "OK",
        /// A projection file is right for an earlier event. Not a failure: it is refreshed later.
        Stale = "STALE",
        /// A projection file cannot be read.
        Broken = "BROKEN",
        Different = "DIFFERENT",
    }
}

#[derive(Debug)]
pub struct CheckOutcome {
    pub events: u64,
    pub head: Option<Head>,
    /// Projection files that are not current, and through which event they are.
    pub stale: Vec<String>,
    pub differences: Vec<String>,
    /// Whether a rebuild would fix some of them; it does not change snapshots.
    pub rebuild_helps: bool,
    pub verdict: CacheVerdict,
}

/// Compares index, projection files and the newest snapshot with the state folded from the events.
pub fn check(ctx: &Context) -> Result<CheckOutcome> {
    check_caches(&ctx.open()?)
}

pub(in crate::op) fn check_caches(vault: &Vault) -> Result<CheckOutcome> {
    let (files, newest) = vault.caches()?;
    with_view(vault, |snapshot, state| {
        let newest_head = newest.as_ref().and_then(|(_, document)| Head::parse(document["head"].as_str()?));
        let mut history = History::new(&files, newest_head);
        let folded = history.fold(snapshot)?;
        let (mut differences, mut stale, mut broken) = (Vec::new(), Vec::new(), vault.projection_ages_are_lost());
        compare_state(state, &folded, &mut differences);
        if broken {
            differences.push("projections/meta.json cannot be read".to_owned());
        }
        for entity in EntityType::projected() {
            let place = format!("projections/{}.json", entity.plural());
            match files.get(&entity) {
                None if projections::map(&folded, entity).is_empty() => {}
                None => stale.push(format!("{place} is missing")),
                Some((_, None)) => {
                    broken = true;
                    differences.push(format!("{place} cannot be read"));
                }
                Some((through, Some(found))) => match history.compare_file(&place, entity, *through, found, &folded) {
                    FileVerdict::Current => {}
                    FileVerdict::Through(event) => stale.push(format!("{place} is through {event}")),
                    FileVerdict::Differs(found) => differences.extend(found),
                },
            }
        }
        let rebuild_helps = !differences.is_empty();
        if let Some((name, document)) = &newest {
            let place = format!("snapshots/{name}");
            match newest_head.and_then(|head| history.at_event.get(&head.id).filter(|(hash, _)| *hash == head.hash)) {
                None => differences.push(format!("{place} is of an event that is not in the log")),
                Some((_, maps)) => {
                    for (name, map) in maps {
                        let found = object(&document["projections"][name]);
                        compare_maps(&format!("{place} {name}"), found, object(map), &mut differences);
                    }
                }
            }
        }
        let verdict = match (broken, differences.is_empty(), stale.is_empty()) {
            (true, ..) => CacheVerdict::Broken,
            (false, false, _) => CacheVerdict::Different,
            (false, true, false) => CacheVerdict::Stale,
            (false, true, true) => CacheVerdict::Ok,
        };
        let (events, head) = (snapshot.count(), snapshot.head());
        Ok(CheckOutcome { events, head, stale, differences, rebuild_helps, verdict })
    })
}

/// The projections as they were at the events that the caches claim to be of.
struct History {
    wanted: BTreeSet<Ulid>,
    /// The hash of each wanted event, and all projections after it.
    at_event: BTreeMap<Ulid, (Digest, Map<String, Value>)>,
    /// Types whose file may be one batch newer than it says, because a writer was killed in between.
    waiting: BTreeMap<EntityType, Option<Ulid>>,
    /// The end of that batch, and the projection of such a type after it.
    next: BTreeMap<EntityType, (Ulid, Map<String, Value>)>,
}

impl History {
    fn new(files: &BTreeMap<EntityType, ProjectionFile>, snapshot: Option<Head>) -> Self {
        let waiting: BTreeMap<EntityType, Option<Ulid>> =
            files.iter().map(|(entity, (through, _))| (*entity, *through)).collect();
        let wanted = waiting.values().flatten().copied().chain(snapshot.map(|head| head.id)).collect();
        History { wanted, at_event: BTreeMap::new(), waiting, next: BTreeMap::new() }
    }

    /// Folds the whole log and keeps the wanted projections.
    fn fold(&mut self, snapshot: &dyn Log) -> Result<State> {
        let mut state = State::default();
        let mut touched: BTreeSet<EntityType> = BTreeSet::new();
        snapshot.read_from(Ulid::nil(), &mut |event| {
            state.apply(&event);
            touched.extend(projections::touched(&event));
            if event.ends_batch() {
                for entity in std::mem::take(&mut touched) {
                    if self.waiting.get(&entity).is_some_and(|through| Some(event.id) > *through) {
                        self.waiting.remove(&entity);
                        self.next.insert(entity, (event.id, projections::map(&state, entity)));
                    }
                }
            }
            if self.wanted.contains(&event.id) {
                self.at_event.insert(event.id, (event.hash, all_maps(&state)));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(state)
    }

    /// Compares a file with the projection at the end of the log, after the batch that follows its event, and at its
    /// event.
    fn compare_file(
        &self,
        place: &str,
        entity: EntityType,
        through: Option<Ulid>,
        found: &Map<String, Value>,
        folded: &State,
    ) -> FileVerdict {
        let then = through.map(|id| self.at_event.get(&id));
        if then.is_some_and(|then| then.is_none()) {
            return FileVerdict::Differs(vec![format!("{place} is of an event that is not in the log")]);
        }
        if projections::map(folded, entity) == *found {
            return FileVerdict::Current;
        }
        if let Some((event, next)) = self.next.get(&entity)
            && next == found
        {
            return FileVerdict::Through(format!("event {event}"));
        }
        let nothing = Map::new();
        let expected = then.flatten().map_or(&nothing, |(_, maps)| object(&maps[entity.plural()]));
        let mut differences = Vec::new();
        compare_maps(place, found, expected, &mut differences);
        match (differences.is_empty(), through) {
            (false, _) => FileVerdict::Differs(differences),
            (true, Some(event)) => FileVerdict::Through(format!("event {event}")),
            (true, None) => FileVerdict::Through("no event".to_owned()),
        }
    }
}

/// What a projection file turned out to be.
enum FileVerdict {
    Current,
    /// Right for an earlier event.
    Through(String),
    Differs(Vec<String>),
}

/// Compares the state from the index with the folded log.
fn compare_state(state: &State, folded: &State, differences: &mut Vec<String>) {
    if state.tally() != folded.tally() {
        differences.push("wrong counts in the index".to_owned());
    }
    let known = &folded.changes().entities;
    for (subject, entity) in known {
        match state.entity(subject) {
            None => differences.push(format!("{subject} is missing from the index")),
            Some(found) if *found != *entity => differences.push(format!("{subject} differs in the index")),
            Some(_) => {}
        }
    }
    for ((entity, ordinal), subject) in &folded.changes().made {
        if state.nth(*entity, *ordinal).as_ref() != Some(subject) {
            differences.push(format!("{subject} is not {entity} number {ordinal} in the index"));
        }
    }
    for (key, id) in &folded.changes().keys {
        if state.keyed(key) != Some(*id) {
            differences.push(format!("wrong event for key '{key}' in the index"));
        }
    }
    let mut children: BTreeMap<Ulid, Vec<Ulid>> = BTreeMap::new();
    for (parent, child) in &folded.changes().children {
        children.entry(*parent).or_default().push(*child);
    }
    for (parent, expected) in children {
        if state.children(parent, expected.len() + 1) != expected {
            differences.push(format!("wrong children of event {parent} in the index"));
        }
    }
    for entity in EntityType::projected() {
        let expected = known.keys().filter(|subject| subject.entity == entity && !known[*subject].archived).count();
        if projections::map(state, entity).len() != expected {
            differences.push(format!("wrong list of {} in the index", entity.plural()));
        }
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NOTHING)
}

fn compare_maps(place: &str, found: &Map<String, Value>, expected: &Map<String, Value>, differences: &mut Vec<String>) {
    let ids: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    for id in ids {
        match (found.get(id), expected.get(id)) {
            (Some(found), Some(expected)) if found == expected => {}
            (Some(_), Some(_)) => differences.push(format!("{place}: {id} differs")),
            (None, _) => differences.push(format!("{place}: {id} is missing")),
            (_, None) => differences.push(format!("{place}: {id} is not in the events")),
        }
    }
}
