//! The reply for programs: one JSON object with `"schema":2` and the names of the key table.

use serde_json::{Map, Value as Json, json};

use super::{Audience, Reply};
use crate::base::text;

/// The version of the JSON form. It changes when a name or a type changes; new names do not change it.
pub const SCHEMA: u64 = 2;

impl Reply {
    /// The reply as a JSON value.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("schema".to_owned(), json!(SCHEMA));
        object.insert("exit".to_owned(), json!(self.exit));
        object.insert("status".to_owned(), json!(self.status.as_str()));
        object.insert("next".to_owned(), self.next.json());
        object.insert("sum".to_owned(), json!(self.sum));
        for field in self.fields.iter().filter(|field| field.audience != Audience::Text) {
            object.insert(field.key.row().json.to_owned(), field.json());
        }
        Json::Object(object)
    }

    /// The reply as one line of JSON, with a newline.
    pub fn json(&self) -> String {
        escape(&self.to_json().to_string()) + "\n"
    }
}

/// Escapes characters that some readers take for a line end, or do not show. They occur only inside strings, so
/// the escaped document means the same.
pub fn escape(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if text::is_unsafe(c) {
            for code_unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{code_unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}
