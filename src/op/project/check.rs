//! hf-project --check: whether index, projection files and newest snapshot say what the events say.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::{Context, all_maps};
use crate::base::{Digest, EntityType, Result, Ulid};
use crate::chain::Head;
use crate::op::kernel::with_view;
use crate::state::State;
use crate::vault::projections::{self, ProjectionFile};
use crate::vault::{Log, Vault};

#[derive(Debug)]
pub struct CheckOutcome {
    pub events: u64,
    pub head: Option<Head>,
    pub differences: Vec<String>,
    /// Whether making index and projections anew mends something; a snapshot it leaves as it is.
    pub rebuild_mends: bool,
}

/// Compares index, projection files and the newest snapshot with what the events alone give.
pub fn check(ctx: &Context) -> Result<CheckOutcome> {
    check_caches(&ctx.open()?)
}

pub(in crate::op) fn check_caches(vault: &Vault) -> Result<CheckOutcome> {
    let (files, newest) = vault.caches()?;
    with_view(vault, |snapshot, state| {
        let newest_head = newest.as_ref().and_then(|(_, document)| Head::parse(document["head"].as_str()?));
        let mut history = History::new(&files, newest_head);
        let folded = history.fold(snapshot)?;
        let mut differences = Vec::new();
        compare_state(state, &folded, &mut differences);
        for (entity, (through, found)) in &files {
            let place = format!("projections/{}.json", entity.plural());
            match found {
                None => differences.push(format!("{place} cannot be read")),
                Some(found) => history.compare_file(&place, *entity, *through, found, &folded, &mut differences),
            }
        }
        let rebuild_mends = !differences.is_empty();
        if let Some((name, document)) = &newest {
            let place = format!("snapshots/{name}");
            match newest_head.and_then(|head| history.then.get(&head.id).filter(|(hash, _)| *hash == head.hash)) {
                None => differences.push(format!("{place} stands for an event that is not in the log")),
                Some((_, maps)) => {
                    for (name, map) in maps {
                        let found = object(&document["projections"][name]);
                        compare_maps(&format!("{place} {name}"), found, object(map), &mut differences);
                    }
                }
            }
        }
        Ok(CheckOutcome { events: snapshot.count(), head: snapshot.head(), differences, rebuild_mends })
    })
}

/// The maps as they were at the moments that the caches may stand for.
struct History {
    wanted: BTreeSet<Ulid>,
    /// All maps at an event that something stands for, and the event's hash.
    then: BTreeMap<Ulid, (Digest, Map<String, Value>)>,
    /// Types whose file may be one unit newer than it says: a writer can be killed in between.
    waiting: BTreeMap<EntityType, Option<Ulid>>,
    /// The map of such a type after that unit.
    next: BTreeMap<EntityType, Map<String, Value>>,
}

impl History {
    fn new(files: &BTreeMap<EntityType, ProjectionFile>, snapshot: Option<Head>) -> Self {
        let waiting: BTreeMap<EntityType, Option<Ulid>> =
            files.iter().map(|(entity, (through, _))| (*entity, *through)).collect();
        let wanted = waiting.values().flatten().copied().chain(snapshot.map(|head| head.id)).collect();
        History { wanted, then: BTreeMap::new(), waiting, next: BTreeMap::new() }
    }

    /// Folds the whole log and keeps what is wanted on the way.
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
                        self.next.insert(entity, projections::map(&state, entity));
                    }
                }
            }
            if self.wanted.contains(&event.id) {
                self.then.insert(event.id, (event.hash, all_maps(&state)));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(state)
    }

    /// Compares a file with what it says it stands for, unless it is what the next writer, or a
    /// refresh of all files, was about to say.
    fn compare_file(
        &self,
        place: &str,
        entity: EntityType,
        through: Option<Ulid>,
        found: &Map<String, Value>,
        folded: &State,
        differences: &mut Vec<String>,
    ) {
        let then = through.map(|id| self.then.get(&id));
        if then.is_some_and(|then| then.is_none()) {
            return differences.push(format!("{place} is through an event that is not in the log"));
        }
        if self.next.get(&entity) == Some(found) || projections::map(folded, entity) == *found {
            return;
        }
        let nothing = Map::new();
        let expected = then.flatten().map_or(&nothing, |(_, maps)| object(&maps[entity.plural()]));
        compare_maps(place, found, expected, differences);
    }
}

/// Compares what the index says, with the log behind it, with the folded log.
fn compare_state(state: &State, folded: &State, differences: &mut Vec<String>) {
    if state.tally() != folded.tally() {
        differences.push("the index counts differently".to_owned());
    }
    let known = &folded.changes().entities;
    for (subject, entity) in known {
        match state.entity(subject) {
            None => differences.push(format!("the index has no {subject}")),
            Some(found) if *found != *entity => differences.push(format!("the index says something else of {subject}")),
            Some(_) => {}
        }
    }
    for ((entity, ordinal), subject) in &folded.changes().made {
        if state.nth(*entity, *ordinal).as_ref() != Some(subject) {
            differences.push(format!("the index does not know {subject} as the {entity} number {ordinal}"));
        }
    }
    for (key, id) in &folded.changes().keys {
        if state.keyed(key) != Some(*id) {
            differences.push(format!("the index has another event for the key '{key}'"));
        }
    }
    let mut children: BTreeMap<Ulid, Vec<Ulid>> = BTreeMap::new();
    for (parent, child) in &folded.changes().children {
        children.entry(*parent).or_default().push(*child);
    }
    for (parent, expected) in children {
        if state.children(parent, expected.len() + 1) != expected {
            differences.push(format!("the index has other children of event {parent}"));
        }
    }
    for entity in EntityType::projected() {
        let expected = known.keys().filter(|subject| subject.entity == entity && !known[*subject].archived).count();
        if projections::map(state, entity).len() != expected {
            differences.push(format!("the index lists other {}", entity.plural()));
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
            (Some(_), Some(_)) => differences.push(format!("{place} says something else of {id}")),
            (None, _) => differences.push(format!("{place} has no {id}")),
            (_, None) => differences.push(format!("{place} has {id}, which the events do not give")),
        }
    }
}
