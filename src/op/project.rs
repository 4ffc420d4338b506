//! hf-project: the state that the log folds to, its caches, and whether they tell the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::{Map, Value, json};

use super::Env;
use crate::base::{Digest, EntityId, EntityType, Error, ErrorKind, Result, Ulid, limits};
use crate::chain::Head;
use crate::machine;
use crate::state::{Entity, State};
use crate::vault::{Position, Snapshot, Vault, projections};

/// What hf-project can show: the entities of a type, or the idempotency keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    Of(EntityType),
    Idempotency,
}

impl Projection {
    pub const IDEMPOTENCY: &'static str = "idempotency";

    pub fn parse(name: &str) -> Result<Self> {
        let of = EntityType::projected().find(|entity| entity.plural() == name).map(Projection::Of);
        of.or_else(|| (name == Self::IDEMPOTENCY).then_some(Projection::Idempotency)).ok_or_else(|| {
            let names: Vec<&str> = EntityType::projected().map(EntityType::plural).chain([Self::IDEMPOTENCY]).collect();
            Error::usage(format!("'{}' is not a projection: {}", crate::base::text::cut(name, 40), names.join(", ")))
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Projection::Of(entity) => entity.plural(),
            Projection::Idempotency => Self::IDEMPOTENCY,
        }
    }
}

/// How many of a type there are, and how many in each state.
#[derive(Debug)]
pub struct Counts {
    pub entity: EntityType,
    pub live: u64,
    pub states: Vec<(machine::State, u64)>,
}

/// Counts, and what they are through.
#[derive(Debug)]
pub struct SummaryOutcome {
    pub counts: Vec<Counts>,
    pub events: u64,
    pub head: Option<Head>,
    /// Files that are not current, where they could not be refreshed.
    pub stale: Vec<&'static str>,
}

/// The whole state in numbers. Brings the projection files up to date where that needs no waiting.
pub fn summary(env: &Env) -> Result<SummaryOutcome> {
    let vault = env.open()?;
    refresh(env, &vault);
    let (snapshot, state) = sound_view(&vault)?;
    // Files that cannot be read are as good as none.
    let files = vault.projection_files().unwrap_or_default();
    let current = |entity: EntityType| {
        let through = files.get(&entity).and_then(|(through, _)| *through);
        state.tally().live(entity) == 0 || through == snapshot.head.map(|head| head.id)
    };
    Ok(SummaryOutcome {
        counts: EntityType::projected()
            .map(|entity| Counts {
                entity,
                live: state.tally().live(entity),
                states: state.tally().states(entity).collect(),
            })
            .collect(),
        events: snapshot.count,
        head: snapshot.head,
        stale: EntityType::projected().filter(|entity| !current(*entity)).map(EntityType::plural).collect(),
    })
}

/// Refreshes the files if the vault can be written and nobody else is at it. They are only a cache.
fn refresh(env: &Env, vault: &Vault) {
    let options = env.write_options(vault, &mut Vec::new());
    let now = options.map(|options| crate::vault::WriteOptions { lock_timeout: std::time::Duration::ZERO, ..options });
    let _ = now.and_then(|options| vault.write(options)?.refresh_projections());
}

/// A view whose answers can be relied on.
fn sound_view(vault: &Vault) -> Result<(Snapshot, State)> {
    let (snapshot, state) = vault.view()?;
    match state.fault() {
        Some(fault) => Err(fault),
        None => Ok((snapshot, state)),
    }
}

#[derive(Debug)]
pub struct ListRequest {
    pub projection: Projection,
    pub status: Option<String>,
    pub limit: usize,
    pub cursor: Option<String>,
}

#[derive(Debug)]
pub enum Listed {
    Entity(Box<Entity>),
    Key(String, Ulid),
}

#[derive(Debug)]
pub struct ListOutcome {
    pub entries: Vec<Listed>,
    /// The id behind which the next page begins, if there is one.
    pub next_cursor: Option<EntityId>,
    pub more: bool,
    pub head: Option<Head>,
}

/// One page of a projection, by id.
pub fn list(env: &Env, request: &ListRequest) -> Result<ListOutcome> {
    let most = limits::LOG_PAGE_MAX_EVENTS;
    if request.limit == 0 || request.limit > most {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!("a page has 1 to {most} entries, not {}", request.limit),
        ));
    }
    let status = match &request.status {
        None => None,
        Some(name) => Some(
            machine::State::parse(name)
                .filter(|s| *s != machine::State::Absent)
                .ok_or_else(|| Error::usage(format!("'{}' is not a status", crate::base::text::cut(name, 40))))?,
        ),
    };
    let (snapshot, state) = sound_view(&env.open()?)?;
    let mut entries = match request.projection {
        Projection::Of(entity) => list_entities(&state, entity, status, request)?,
        Projection::Idempotency => {
            let keys = state.keys(request.cursor.as_deref(), request.limit + 1);
            keys.into_iter().map(|(key, id)| Listed::Key(key, id)).collect()
        }
    };
    let more = entries.len() > request.limit;
    entries.truncate(request.limit);
    let next_cursor = match entries.last() {
        Some(Listed::Entity(entity)) if more => EntityId::parse(entity.subject.id()).ok(),
        _ => None,
    };
    Ok(ListOutcome { entries, next_cursor, more, head: snapshot.head })
}

fn list_entities(
    state: &State,
    entity: EntityType,
    status: Option<machine::State>,
    request: &ListRequest,
) -> Result<Vec<Listed>> {
    if let Some(cursor) = &request.cursor {
        EntityId::parse(cursor)
            .map_err(|_| Error::new(ErrorKind::InvalidCursor, "the cursor is not an id of this projection"))?;
    }
    let (mut entries, mut after) = (Vec::new(), request.cursor.clone());
    loop {
        let page = state.entities(entity, after.as_deref(), limits::LOG_PAGE_MAX_EVENTS);
        let Some(last) = page.last() else { return Ok(entries) };
        after = Some(last.subject.id().to_owned());
        let wanted = page.into_iter().filter(|e| status.is_none_or(|status| e.state == status));
        entries.extend(wanted.map(|e| Listed::Entity(Box::new(e))));
        if entries.len() > request.limit {
            return Ok(entries);
        }
    }
}

/// The whole map of a projection, as its file holds it.
pub fn map(env: &Env, projection: Projection) -> Result<(Map<String, Value>, Option<Head>)> {
    let (snapshot, state) = sound_view(&env.open()?)?;
    let map = match projection {
        Projection::Of(entity) => projections::map(&state, entity),
        Projection::Idempotency => projections::idempotency(&state),
    };
    Ok((map, snapshot.head))
}

#[derive(Debug)]
pub struct RebuildOutcome {
    pub events: u64,
    pub head: Option<Head>,
}

/// Makes index and projections anew, from the events alone.
pub fn rebuild(env: &Env) -> Result<RebuildOutcome> {
    let vault = env.open()?;
    let options = env.write_options(&vault, &mut Vec::new())?;
    let (snapshot, _) = vault.write(options)?.rebuild()?;
    Ok(RebuildOutcome { events: snapshot.count, head: snapshot.head })
}

#[derive(Debug)]
pub struct SnapshotOutcome {
    pub file: String,
    pub events: u64,
    pub head: Option<Head>,
}

/// Writes the whole state to `snapshots/`, with the head that it stands for.
pub fn snapshot(env: &Env, name: Option<&str>) -> Result<SnapshotOutcome> {
    let name = match name {
        Some("latest") => return Err(Error::usage("latest is always written; choose another name")),
        Some(name) => EntityId::parse(name)?.to_string(),
        None => env.now.timestamp().to_string().replace([':', '-'], ""),
    };
    let vault = env.open()?;
    let options = env.write_options(&vault, &mut Vec::new())?;
    let mut writer = vault.write(options)?;
    let (snapshot, state) = writer.view()?;
    if let Some(fault) = state.fault() {
        return Err(fault);
    }
    let document = json!({
        "schema": 1,
        "created_at": env.now.timestamp().to_string(),
        "head": snapshot.head.map(|head| head.to_string()),
        "events": snapshot.count,
        "projections": all_maps(&state),
    });
    let file = vault.put_snapshot(&name, &document)?;
    Ok(SnapshotOutcome { file, events: snapshot.count, head: snapshot.head })
}

fn all_maps(state: &State) -> Map<String, Value> {
    EntityType::projected()
        .map(|entity| (entity.plural().to_owned(), Value::Object(projections::map(state, entity))))
        .collect()
}

#[derive(Debug)]
pub struct CheckOutcome {
    pub events: u64,
    pub head: Option<Head>,
    pub differences: Vec<String>,
    /// Whether making index and projections anew mends something; a snapshot it leaves as it is.
    pub rebuild_mends: bool,
}

/// Compares index, projection files and the newest snapshot with what the events alone give.
pub fn check(env: &Env) -> Result<CheckOutcome> {
    check_caches(&env.open()?)
}

pub(super) fn check_caches(vault: &Vault) -> Result<CheckOutcome> {
    let (files, newest) = vault.caches()?;
    let (snapshot, state) = sound_view(vault)?;
    let newest_head = newest.as_ref().and_then(|(_, document)| Head::parse(document["head"].as_str()?));
    let mut wanted: BTreeSet<Ulid> = files.values().filter_map(|(through, _)| *through).collect();
    wanted.extend(newest_head.map(|head| head.id));
    let (folded, then) = fold_with_stops(&snapshot, &wanted)?;
    let mut differences = Vec::new();
    compare_state(&state, &folded, &mut differences);
    for (entity, (through, found)) in &files {
        let name = entity.plural();
        match (found, through.and_then(|id| then.get(&id))) {
            (None, _) => differences.push(format!("projections/{name}.json cannot be read")),
            (Some(_), None) => {
                differences.push(format!("projections/{name}.json is through an event that is not in the log"))
            }
            (Some(found), Some((_, maps))) => {
                compare_maps(&format!("projections/{name}.json"), found, object(&maps[name]), &mut differences)
            }
        }
    }
    let rebuild_mends = !differences.is_empty();
    if let Some((name, document)) = &newest {
        let place = format!("snapshots/{name}");
        match newest_head.and_then(|head| then.get(&head.id).filter(|(hash, _)| *hash == head.hash)) {
            None => differences.push(format!("{place} stands for an event that is not in the log")),
            Some((_, maps)) => {
                for (name, map) in maps {
                    compare_maps(
                        &format!("{place} {name}"),
                        object(&document["projections"][name]),
                        object(map),
                        &mut differences,
                    );
                }
            }
        }
    }
    Ok(CheckOutcome { events: snapshot.count, head: snapshot.head, differences, rebuild_mends })
}

/// All maps as they were at an event, and its hash.
type MapsThen = BTreeMap<Ulid, (Digest, Map<String, Value>)>;

/// Folds the whole log, and keeps all maps as they were at the events that are wanted.
fn fold_with_stops(snapshot: &Snapshot, wanted: &BTreeSet<Ulid>) -> Result<(State, MapsThen)> {
    let (mut state, mut then) = (State::default(), BTreeMap::new());
    snapshot.events(Position::START, &mut |_, event, _| {
        state.apply(&event);
        if wanted.contains(&event.id) {
            then.insert(event.id, (event.hash, all_maps(&state)));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((state, then))
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
