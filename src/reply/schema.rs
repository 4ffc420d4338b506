//! The JSON Schema of every reply, generated from the tables.

use serde_json::{Map, Value as Json, json};

use super::value::{CellKind, Column, Shape};
use super::{Status, json as rendering, key};

const TIME: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$";

/// The schema as one document.
pub fn document() -> Json {
    let mut properties = Map::new();
    for row in key::TABLE {
        let mut schema = shape_schema(row.shape);
        schema["description"] = json!(row.meaning);
        properties.insert(row.json.to_owned(), schema);
    }
    let statuses: Vec<&str> = Status::TABLE.iter().map(|row| row.name).collect();
    properties.insert("schema".to_owned(), json!({"const": rendering::SCHEMA}));
    properties.insert("exit".to_owned(), json!({"type": "integer", "minimum": 0, "maximum": 255}));
    properties.insert("status".to_owned(), json!({"enum": statuses}));
    properties.insert("next".to_owned(), next());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A reply of a HiveForge command with --json",
        "type": "object",
        "required": ["schema", "exit", "status", "next", "sum"],
        "properties": properties,
        "additionalProperties": false,
        "$defs": {"entity": entity(), "event": event(), "fact": fact(), "time": {"type": "string", "pattern": TIME}},
    })
}

fn shape_schema(shape: Shape) -> Json {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Number => json!({"type": "integer"}),
        Shape::Time => json!({"$ref": "#/$defs/time"}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::TrueOnly => json!({"const": true}),
        Shape::NumberOf => json!({
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

/// A row: every column by name, null if it has no value.
fn object(columns: &[Column]) -> Json {
    let cell_schema = |kind: CellKind| match kind {
        CellKind::Text | CellKind::Name => json!({"type": ["string", "null"]}),
        CellKind::Number | CellKind::Seconds => json!({"type": ["integer", "null"]}),
        CellKind::Percent => json!({"type": ["number", "null"]}),
        CellKind::Time => json!({"anyOf": [{"$ref": "#/$defs/time"}, {"type": "null"}]}),
        CellKind::Counts => counts(),
    };
    let properties: Map<String, Json> =
        columns.iter().map(|column| (column.name.to_owned(), cell_schema(column.kind))).collect();
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

/// An entity as in its projection: some members always, the others depending on its type.
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

/// An event as in the log.
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
