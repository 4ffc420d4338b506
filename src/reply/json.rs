//! The reply for programs: one JSON object, `"schema":2`, the names of the key table.

use serde_json::{Map, Value as Json, json};

use super::{Audience, Reply};
use crate::base::text;

/// The version of the JSON form. It changes only if a name or a type does; new names come without.
pub const SCHEMA: u64 = 2;

impl Reply {
    /// The reply as a value.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("schema".to_owned(), json!(SCHEMA));
        object.insert("exit".to_owned(), json!(self.exit));
        object.insert("status".to_owned(), json!(self.status.as_str()));
        object.insert("next".to_owned(), self.next.json());
        object.insert("sum".to_owned(), json!(self.sum));
        for field in self.fields.iter().filter(|field| field.audience != Audience::Text) {
            object.insert(field.key.entry().json.to_owned(), field.json());
        }
        Json::Object(object)
    }

    /// The reply as one line of JSON, with its end.
    pub fn json(&self) -> String {
        escape(&self.to_json().to_string()) + "\n"
    }
}

/// The same JSON with characters escaped that end or hide a line for some reader. They can stand
/// only inside strings, so replacing them keeps the document what it was.
pub fn escape(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if text::is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}
