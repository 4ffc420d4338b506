//! Projection files: one JSON map per type, for `jq` and other programs.
//!
//! A small file is rewritten by rename when an event changes its type. Large ones, and files that are missing or
//! broken, are left to the next hf-project or watchdog tick. `meta.json` says up to which event each file is current, and
//! what its content was. The toolkit answers nothing from them: it uses the log and the index.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Vault;
use super::lock::LockMode;
use super::quarantine::Quarantine;
use crate::base::{Digest, EntityType, Result, Subject, Ulid, limits};
use crate::chain::Head;
use crate::event::{Event, parse_ulid};
use crate::machine;
use crate::state::{State, linked};

const PROJECTIONS: &str = "projections";
const META: &str = "meta.json";
const CONTEXT: &str = "Context";
const ACTIVE_CONSTRAINTS: &str = "active_constraints.json";
const SNAPSHOTS: &str = "snapshots";
const LATEST: &str = "latest.json";
/// Entities read at a time.
const PAGE_ENTITIES: usize = 1000;
/// The same as long as a file may turn out to be large.
const SMALL_PAGE_ENTITIES: usize = 64;
/// The file of a type with more live entities is not small, without looking.
const SMALL_ENTITIES: u64 = 256;

/// The map of one type, from id to projection.
pub fn map(state: &State, entity: EntityType) -> Map<String, Value> {
    let mut map = Map::new();
    let mut after: Option<String> = None;
    loop {
        let page = state.entities(entity, after.as_deref(), PAGE_ENTITIES);
        let full = page.len() == PAGE_ENTITIES;
        after = page.last().map(|e| e.subject.id().to_owned());
        map.extend(page.iter().map(|e| (e.subject.id().to_owned(), e.projection())));
        if !full {
            return map;
        }
    }
}

/// All idempotency keys with the ids of their events.
pub fn idempotency(state: &State) -> Map<String, Value> {
    let mut map = Map::new();
    let mut after: Option<String> = None;
    loop {
        let page = state.keys(after.as_deref(), PAGE_ENTITIES);
        let full = page.len() == PAGE_ENTITIES;
        after = page.last().map(|(key, _)| key.clone());
        map.extend(page.into_iter().map(|(key, id)| (key, id.to_string().into())));
        if !full {
            return map;
        }
    }
}

/// A map as text with one entry per line, so that line tools can read it, too.
#[derive(Default)]
struct Rendered {
    bytes: Vec<u8>,
}

impl Rendered {
    fn add(&mut self, id: &str, value: &Value) {
        self.bytes.extend(if self.bytes.is_empty() { b"{\n".as_slice() } else { b",\n" });
        serde_json::to_writer(&mut self.bytes, id).expect("writing to a vector cannot fail");
        self.bytes.push(b':');
        serde_json::to_writer(&mut self.bytes, value).expect("writing to a vector cannot fail");
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.extend(if self.bytes.is_empty() { b"{}\n".as_slice() } else { b"\n}\n" });
        self.bytes
    }
}

pub fn render(map: &Map<String, Value>) -> Vec<u8> {
    let mut text = Rendered::default();
    map.iter().for_each(|(id, value)| text.add(id, value));
    text.end()
}

fn file(entity: EntityType) -> String {
    format!("{}.json", entity.plural())
}

/// The types whose files an event rewrites, if they are small: all that it changes, none for a kind that
/// is frequent.
pub fn touched(event: &Event) -> Vec<EntityType> {
    let Some(kind) = event.event_type.known().filter(|kind| !kind.row().is_frequent) else { return Vec::new() };
    let subjects = Subject::parse(&event.subject).ok().into_iter().chain(linked(kind, &event.payload));
    let also = kind.row().also_changes.iter().copied();
    subjects.map(|subject| subject.entity).chain(also).filter(|entity| entity.has_id()).collect()
}

/// Rewrites the small files of the types that these events changed. They are a convenience: a file that cannot be written
/// is left as it is, and `meta.json` still says how old it is.
pub(super) fn refresh_touched(vault: &Vault, state: &State, events: &[Event]) {
    let mut touched: Vec<EntityType> = events.iter().flat_map(touched).collect();
    touched.sort();
    touched.dedup();
    touched.retain(|entity| state.tally().live(*entity) <= SMALL_ENTITIES);
    let small: Vec<_> = touched.into_iter().filter_map(|entity| Some((entity, small_file(state, entity)?))).collect();
    if small.iter().any(|(entity, _)| *entity == EntityType::Constraint) {
        let _ = write_active_constraints(vault, state);
    }
    let _ = match small.is_empty() {
        false => write(vault, small, events.last().map(|event| event.id)),
        // A process that died while the files were small may have left temporary files.
        true => vault.akashic.dir(PROJECTIONS).and_then(|dir| dir.map_or(Ok(()), |dir| dir.sweep())),
    };
}

/// The content of a type's file, if it is small. Stops as soon as it is not.
fn small_file(state: &State, entity: EntityType) -> Option<Vec<u8>> {
    let mut text = Rendered::default();
    let mut after: Option<String> = None;
    loop {
        let page = state.entities(entity, after.as_deref(), SMALL_PAGE_ENTITIES);
        for entity in &page {
            text.add(entity.subject.id(), &entity.projection());
        }
        if text.bytes.len() > limits::PROJECTION_SMALL_BYTES {
            return None;
        }
        if page.len() < SMALL_PAGE_ENTITIES {
            return Some(text.end());
        }
        after = page.last().map(|entity| entity.subject.id().to_owned());
    }
}

/// Rewrites every file whose content has changed.
pub(super) fn refresh_all(vault: &Vault, state: &State, head: Option<Ulid>) -> Result<()> {
    let files = EntityType::projected().map(|entity| (entity, render(&map(state, entity)))).collect();
    match state.fault() {
        Some(fault) => Err(fault),
        None => write_active_constraints(vault, state).and_then(|()| write(vault, files, head)),
    }
}

/// Writes the constraints in force, where agents look for their context.
fn write_active_constraints(vault: &Vault, state: &State) -> Result<()> {
    let active = state.in_phase(EntityType::Constraint, machine::Phase::Active, usize::MAX);
    let map: Map<String, Value> = active.iter().map(|e| (e.subject.id().to_owned(), e.projection())).collect();
    let (context, _) = vault.root.make_dir(CONTEXT)?;
    context.replace(ACTIVE_CONSTRAINTS, &render(&map))
}

fn write(vault: &Vault, files: Vec<(EntityType, Vec<u8>)>, through: Option<Ulid>) -> Result<()> {
    let (dir, _) = vault.akashic.make_dir(PROJECTIONS)?;
    // Best effort: a link in the place of a file must not keep the file from being replaced.
    let _ = dir.sweep();
    let mut meta = read_meta(vault).unwrap_or_default();
    for (entity, text) in files {
        // A file that cannot be read, whatever the reason, is replaced.
        if dir.read(&file(entity)).ok().flatten().as_ref() != Some(&text) {
            dir.replace(&file(entity), &text)?;
        }
        meta.insert(entity.plural().to_owned(), entry(&text, through));
    }
    dir.replace(META, &render(&meta))
}

/// What `meta.json` says about a file.
fn entry(text: &[u8], through: Option<Ulid>) -> Value {
    let through = through.map(|id| id.to_string());
    json!({"through": through, "bytes": text.len(), "sha256": Digest::of_bytes(text).hex()})
}

/// Removes every file; the next refresh writes them again.
pub(super) fn clear(vault: &Vault) -> Result<()> {
    let Some(dir) = vault.akashic.dir(PROJECTIONS)? else { return Ok(()) };
    // First what says how old the files are.
    dir.remove(META)?;
    EntityType::projected().try_for_each(|entity| dir.remove(&file(entity)))
}

/// Moves the latest snapshot to quarantine if its head was cut off. Returns its name there.
pub(super) fn set_snapshot_aside(
    vault: &Vault,
    quarantine: &Quarantine,
    was_cut_off: impl FnOnce(Option<Head>) -> bool,
) -> Result<Option<String>> {
    let Some(dir) = vault.akashic.dir(SNAPSHOTS)? else { return Ok(None) };
    let Some(text) = dir.read(LATEST)? else { return Ok(None) };
    let document: Value = serde_json::from_slice(&text).unwrap_or_default();
    if !was_cut_off(document["head"].as_str().and_then(Head::parse)) {
        return Ok(None);
    }
    let name = quarantine.keep(&format!("snapshot-{}", &Digest::of_bytes(&text).hex()[..8]), ".json", &text)?;
    dir.remove(LATEST)?;
    Ok(Some(name))
}

/// The content of `meta.json`, empty if it does not exist. `None` if it cannot be read.
fn read_meta(vault: &Vault) -> Option<Map<String, Value>> {
    let text = match vault.akashic.dir(PROJECTIONS).ok()? {
        Some(dir) => dir.read(META).ok()?,
        None => None,
    };
    text.map_or(Some(Map::new()), |text| serde_json::from_slice(&text).ok())
}

/// A projection file: up to which event it is current, according to `meta.json`, and its map, if it can be read.
pub type ProjectionFile = (Option<Ulid>, Option<Map<String, Value>>);

/// The existing projection files, and the latest snapshot with its name.
pub type Caches = (BTreeMap<EntityType, ProjectionFile>, Option<(String, Value)>);

impl Vault {
    /// Writes a snapshot under its own name and as the latest. Returns the name of its file.
    pub fn put_snapshot(&self, name: &str, document: &Value) -> Result<String> {
        let (dir, _) = self.akashic.make_dir(SNAPSHOTS)?;
        let mut text = serde_json::to_vec_pretty(document).expect("a JSON value");
        text.push(b'\n');
        let file = format!("{name}.json");
        dir.put(&file, &text)?;
        dir.put(LATEST, &text)?;
        Ok(file)
    }

    /// The projection files and the latest snapshot, read while no writer is active. They must be compared with a log that
    /// is read afterwards.
    pub fn caches(&self) -> Result<Caches> {
        let _guard = self.lock_if_possible(LockMode::Shared)?;
        Ok((self.projection_files()?, self.newest_snapshot()?))
    }

    /// The latest snapshot, if there is one. If it cannot be parsed, it is null.
    fn newest_snapshot(&self) -> Result<Option<(String, Value)>> {
        let Some(dir) = self.akashic.dir(SNAPSHOTS)? else { return Ok(None) };
        let text = dir.read(LATEST)?;
        Ok(text.map(|text| (LATEST.to_owned(), serde_json::from_slice(&text).unwrap_or_default())))
    }

    /// Whether every file is current up to this event, and still has the content that was written.
    pub fn projections_are_current(&self, head: Option<Ulid>) -> bool {
        let (Some(meta), Ok(Some(dir))) = (read_meta(self), self.akashic.dir(PROJECTIONS)) else { return false };
        EntityType::projected().all(|entity| {
            let text = dir.read(&file(entity)).ok().flatten();
            text.is_some_and(|text| meta.get(entity.plural()) == Some(&entry(&text, head)))
        })
    }

    /// Whether the ages of the files cannot be read.
    pub fn projection_ages_are_lost(&self) -> bool {
        read_meta(self).is_none()
    }

    /// The existing files.
    pub fn projection_files(&self) -> Result<BTreeMap<EntityType, ProjectionFile>> {
        let meta = read_meta(self).unwrap_or_default();
        let mut files = BTreeMap::new();
        let Some(dir) = self.akashic.dir(PROJECTIONS)? else { return Ok(files) };
        for entity in EntityType::projected() {
            let through = meta.get(entity.plural()).and_then(|m| parse_ulid(m["through"].as_str()?));
            match dir.read(&file(entity)) {
                Ok(None) => {}
                Ok(Some(text)) => drop(files.insert(entity, (through, serde_json::from_slice(&text).ok()))),
                Err(_) => drop(files.insert(entity, (through, None))),
            }
        }
        Ok(files)
    }
}
