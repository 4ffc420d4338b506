//! The JSON Schema of events, generated from the table of kinds.

use serde_json::{Map, Value, json};

use super::kind::{FieldType, PayloadField, SubjectType, TABLE};
use crate::base::EntityType;

pub const EVENT_SCHEMA_FILE: &str = "event.v1.schema.json";

const ID: &str = "[A-Za-z0-9][A-Za-z0-9_-]{0,63}";
/// The same for what people name, in any script.
const NAME: &str = r"[\p{Alphabetic}\p{N}][\p{Alphabetic}\p{N}\p{M}_-]{0,63}";
const ULID: &str = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$";
const ACTOR: &str = "^(user|agent|core|external):";
const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

/// The content of `Akashic/schemas/event.v1.schema.json`, for tools that read the log without this library.
pub fn event_schema() -> Value {
    let rules: Vec<Value> = TABLE
        .iter()
        .map(|row| {
            let required: Vec<&str> = row.fields.iter().filter(|f| f.required).map(|f| f.name).collect();
            let fields: Map<String, Value> = row.fields.iter().map(|f| (f.name.to_owned(), field(f))).collect();
            json!({
                "if": {"properties": {"event_type": {"const": row.kind.as_str()}}},
                "then": {"properties": {
                    "subject": {"pattern": subject_pattern(row.about)},
                    "payload": {"required": required, "properties": fields},
                }},
            })
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "HiveForge event, version 1",
        "type": "object",
        "required": ["$schema", "actor", "event_id", "event_type", "hash", "parents", "payload", "prev_hash", "subject", "timestamp", "version"],
        "properties": {
            "$schema": {"const": EVENT_SCHEMA_FILE},
            "actor": {"type": "string", "pattern": ACTOR},
            "batch": {"type": "object", "required": ["no", "of"], "properties": {"no": {"type": "integer", "minimum": 1}, "of": {"type": "integer", "minimum": 1}}},
            "event_id": {"type": "string", "pattern": ULID},
            "event_type": {"type": "string"},
            "hash": {"type": "string", "pattern": DIGEST},
            "idempotency_key": {"type": "string", "minLength": 1},
            "parents": {"type": "array", "items": {"type": "string", "pattern": ULID}},
            "payload": {"type": "object"},
            "prev_hash": {"type": "string", "pattern": DIGEST},
            "subject": {"type": "string"},
            "timestamp": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"},
            "version": {"type": "integer", "minimum": 1},
        },
        "allOf": rules,
    })
}

fn subject_pattern(about: SubjectType) -> String {
    match about {
        SubjectType::One(EntityType::System) => "^system$".to_owned(),
        SubjectType::One(entity) => format!("^{entity}:{}$", id_pattern(entity)),
        SubjectType::Any => format!("^(system|[a-z]+:{NAME})$"),
    }
}

fn id_pattern(entity: EntityType) -> &'static str {
    if entity.is_named_by_people() { NAME } else { ID }
}

fn field(field: &PayloadField) -> Value {
    match field.field_type {
        FieldType::Text => json!({"type": "string", "minLength": 1}),
        FieldType::AnyText => json!({"type": "string"}),
        FieldType::Count => json!({"type": "integer", "minimum": 0}),
        FieldType::Bool => json!({"type": "boolean"}),
        FieldType::Id(entity) => json!({"type": "string", "pattern": format!("^{}$", id_pattern(entity))}),
        FieldType::Subject => json!({"type": "string", "pattern": subject_pattern(SubjectType::Any)}),
        FieldType::OneOf(names) => json!({"enum": names}),
        FieldType::Actor => json!({"type": "string", "pattern": ACTOR}),
        FieldType::Texts => json!({"type": "array", "items": {"type": "string"}}),
        FieldType::Ids(_) => json!({"type": "array", "items": {"type": "string", "pattern": format!("^{ID}$")}}),
        FieldType::Object => json!({"type": "object"}),
        FieldType::Counts => {
            json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}})
        }
        FieldType::Time => json!({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"}),
    }
}
