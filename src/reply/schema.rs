//! The JSON Schema of every reply, made from the tables.

use serde_json::{Map, Value as Json, json};

use super::value::{Column, Kind, Shape};
use super::{Status, json as rendering, key};

const TIME: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$";

/// The schema as one document.
pub fn document() -> Json {
    let mut properties = Map::new();
    for entry in key::TABLE {
        let mut schema = of_shape(entry.shape);
        schema["description"] = json!(entry.meaning);
        properties.insert(entry.json.to_owned(), schema);
    }
    let statuses: Vec<&str> = Status::TABLE.iter().map(|entry| entry.name).collect();
    properties.insert("schema".to_owned(), json!({"const": rendering::SCHEMA}));
    properties.insert("exit".to_owned(), json!({"type": "integer", "minimum": 0, "maximum": 255}));
    properties.insert("status".to_owned(), json!({"enum": statuses}));
    properties.insert("next".to_owned(), next());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A reply of a HiveForge command, as --json gives it",
        "type": "object",
        "required": ["schema", "exit", "status", "next", "sum"],
        "properties": properties,
        "additionalProperties": false,
        "$defs": {"entity": entity(), "event": event(), "fact": fact(), "time": {"type": "string", "pattern": TIME}},
    })
}

fn of_shape(shape: Shape) -> Json {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Number => json!({"type": "integer"}),
        Shape::Time => json!({"$ref": "#/$defs/time"}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Only => json!({"const": true}),
        Shape::Of => json!({
            "type": "object",
            "required": ["number", "of"],
            "properties": {"number": {"type": "integer"}, "of": {"type": "integer"}},
            "additionalProperties": false,
        }),
        Shape::Row(columns) => object(columns),
        Shape::Rows(columns) => json!({"type": "array", "items": object(columns)}),
        Shape::Objects(_, of) => json!({"type": "array", "items": {"$ref": format!("#/$defs/{of}")}}),
        Shape::Texts | Shape::Lines => json!({"type": "array", "items": {"type": "string"}}),
        Shape::Counts => counts(),
        Shape::Map => json!({
            "type": "object",
            "additionalProperties": {"anyOf": [{"$ref": "#/$defs/entity"}, {"type": "string"}]},
        }),
    }
}

fn counts() -> Json {
    json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}})
}

/// A row: every column by its name, null where it has no value.
fn object(columns: &[Column]) -> Json {
    let of_kind = |kind: Kind| match kind {
        Kind::Text | Kind::Name => json!({"type": ["string", "null"]}),
        Kind::Number | Kind::Seconds => json!({"type": ["integer", "null"]}),
        Kind::Percent => json!({"type": ["number", "null"]}),
        Kind::Time => json!({"anyOf": [{"$ref": "#/$defs/time"}, {"type": "null"}]}),
        Kind::Counts => counts(),
    };
    let properties: Map<String, Json> =
        columns.iter().map(|column| (column.name.to_owned(), of_kind(column.kind))).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    json!({"type": "object", "required": names, "properties": properties, "additionalProperties": false})
}

fn next() -> Json {
    json!({
        "description": "the safe next step",
        "oneOf": [
            {
                "type": "object",
                "required": ["kind"],
                "properties": {"kind": {"enum": ["none", "patch"]}},
                "additionalProperties": false,
            },
            {
                "type": "object",
                "required": ["kind", "who"],
                "properties": {"kind": {"const": "ask"}, "who": {"type": "string"}},
                "additionalProperties": false,
            },
            {
                "type": "object",
                "required": ["kind", "argv"],
                "properties": {
                    "kind": {"const": "action"},
                    "argv": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
                },
                "additionalProperties": false,
            },
        ],
    })
}

/// What a projection holds for an entity: some members always, the others by its type.
fn entity() -> Json {
    json!({
        "type": "object",
        "required": ["id", "status", "created_at", "last_event_id"],
        "properties": {
            "id": {"type": "string"},
            "subject": {"type": "string"},
            "ref": {"type": "string"},
            "status": {"type": "string"},
            "created_at": {"$ref": "#/$defs/time"},
            "last_event_id": {"type": "string"},
            "title": {"type": "string"},
            "kind": {"type": "string"},
            "target": {"type": "string"},
            "summary": {"type": "string"},
            "requested_at": {"$ref": "#/$defs/time"},
            "requirement_id": {"type": ["string", "null"]},
            "retry_count": {"type": "integer"},
            "last_run_id": {"type": ["string", "null"]},
            "task_id": {"type": ["string", "null"]},
            "started_at": {"$ref": "#/$defs/time"},
            "last_heartbeat_at": {"anyOf": [{"$ref": "#/$defs/time"}, {"type": "null"}]},
            "finished_at": {"anyOf": [{"$ref": "#/$defs/time"}, {"type": "null"}]},
            "sha256": {"type": "string"},
            "size_bytes": {"type": "integer"},
            "path": {"type": "string"},
        },
    })
}

/// An event as the log has it.
fn event() -> Json {
    json!({
        "type": "object",
        "required": [
            "event_id", "event_type", "version", "timestamp", "actor", "subject", "parents", "payload", "prev_hash",
            "hash",
        ],
        "properties": {
            "$schema": {"type": "string"},
            "event_id": {"type": "string"},
            "event_type": {"type": "string"},
            "version": {"type": "integer"},
            "timestamp": {"$ref": "#/$defs/time"},
            "actor": {"type": "string"},
            "subject": {"type": "string"},
            "parents": {"type": "array", "items": {"type": "string"}},
            "idempotency_key": {"type": "string"},
            "batch": {"type": "object"},
            "payload": {"type": "object"},
            "prev_hash": {"type": "string"},
            "hash": {"type": "string"},
        },
        "additionalProperties": false,
    })
}

fn fact() -> Json {
    json!({
        "type": "object",
        "required": ["name", "value"],
        "properties": {"name": {"type": "string"}, "value": true},
        "additionalProperties": false,
    })
}
