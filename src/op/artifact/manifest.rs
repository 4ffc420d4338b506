//! `manifest.json` beside a content. Everything in it follows from the log, so it is compared with the log and can be
//! written again; it is never believed.
//!
//! The event of an earlier version does not have the media type, and its manifest says when storing began. There, what
//! the log does not know is not compared.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::media;
use crate::base::{Timestamp, Ulid, text};
use crate::event::{Event, Kind, parse_ulid};
use crate::state::{Entity, State};
use crate::vault::{ARTIFACTS, Log, MANIFEST, Vault};

/// How many events after the declaration are examined to find the one that stored the content.
const CHILDREN_MAX: usize = 1000;
/// The longest value that a finding quotes.
const QUOTED_MAX_CHARS: usize = 80;

/// The path of a manifest in the vault.
pub fn path(artifact: &Entity) -> String {
    format!("{ARTIFACTS}/{}/{MANIFEST}", artifact.subject.id())
}

/// The event that stored the content of an artifact. `named` is the one that its manifest names.
pub fn source(log: &dyn Log, state: &State, artifact: &Entity, named: Option<Ulid>) -> Option<Event> {
    let is_source = |event: &Event| {
        event.event_type.known() == Some(Kind::ArtifactMaterialized) && event.subject == artifact.subject.to_string()
    };
    let find = |id: Ulid| log.find(id).ok().flatten().filter(is_source);
    let children = || state.children(artifact.first_event, CHILDREN_MAX).into_iter().find_map(find);
    find(artifact.last_event).or_else(children).or_else(|| find(named?))
}

/// Whether an event has all that is in a manifest.
fn is_complete(source: &Event) -> bool {
    source.payload.contains_key("mime_type")
}

/// The manifest of a content. `traits` are those of the content, in case its event does not have them.
pub fn of_content(artifact: &Entity, source: &Event, traits: &Map<String, Value>) -> Value {
    let traits = if is_complete(source) { &source.payload } else { traits };
    let mut metadata = Map::new();
    for name in ["language", "line_count"] {
        metadata.extend(traits.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    let member = |name: &str| source.payload.get(name).cloned().unwrap_or_default();
    let stored = source.payload.get("path").and_then(Value::as_str).unwrap_or_default();
    json!({
        "artifact_id": artifact.subject.id(),
        "kind": artifact.as_artifact().kind(),
        "filename": Path::new(stored).file_name().and_then(|name| name.to_str()),
        "mime_type": traits.get("mime_type"),
        "sha256": member("sha256"),
        "size_bytes": member("size_bytes"),
        "created_at": source.timestamp.to_string(),
        "source_event_id": source.id.to_string(),
        "metadata": metadata,
    })
}

/// What is wrong with the manifest of an artifact, one sentence each.
pub fn findings(vault: &Vault, log: &dyn Log, state: &State, artifact: &Entity) -> Vec<String> {
    let file = path(artifact);
    let bytes = match vault.manifest(artifact.subject.id()) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return vec![format!("{file} is missing")],
        Err(error) => return vec![format!("{file}: {}", error.message)],
    };
    let Ok(Value::Object(found)) = serde_json::from_slice(&bytes) else {
        return vec![format!("{file} is not a JSON object")];
    };
    let named = found.get("source_event_id").and_then(Value::as_str).and_then(parse_ulid);
    let Some(source) = source(log, state, artifact, named) else {
        return vec![format!("{file}: the event that stored the content was not found")];
    };
    let Value::Object(expected) = of_content(artifact, &source, &Map::new()) else { unreachable!("it is an object") };
    let all: Vec<&String> = expected.keys().chain(found.keys().filter(|name| !expected.contains_key(*name))).collect();
    let differs = |name: &&&String| !agrees(name, found.get(**name), expected.get(**name), &source);
    let quoted = |value: Option<&Value>| value.map(|value| text::cut(&value.to_string(), QUOTED_MAX_CHARS));
    let sentence = |name: &String| {
        let is = quoted(found.get(name)).unwrap_or_else(|| "missing".to_owned());
        let recorded = quoted(expected.get(name)).unwrap_or_else(|| "nothing".to_owned());
        format!("{file}: {name} is {is}, but {recorded} is recorded")
    };
    all.iter().filter(differs).map(|name| sentence(name)).collect()
}

/// Whether a member of a manifest is as the log says.
fn agrees(name: &str, found: Option<&Value>, expected: Option<&Value>, source: &Event) -> bool {
    if is_complete(source) || found == expected {
        return found == expected;
    }
    match name {
        "mime_type" | "metadata" => true,
        // Storing began at that time, or earlier.
        "created_at" => {
            let began = found.and_then(Value::as_str).and_then(Timestamp::parse);
            began.is_some_and(|began| began <= source.timestamp)
        }
        _ => expected.is_none(),
    }
}

/// What is known of a content from its name and its bytes.
pub fn traits_of(artifact: &Entity, lines: Option<u64>) -> Map<String, Value> {
    let stored = artifact.as_artifact().path().unwrap_or_default();
    media::traits(media::extension(Path::new(stored)), lines)
}
