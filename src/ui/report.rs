//! The reply: `KEY:VALUE`, one pair a line, or the same as one JSON object.
//!
//! Invariant: a reply has exactly one line per pair, whatever the values hold
//! (`no_value_can_make_a_line`).

use serde_json::{Map, Value, json};

use super::{Key, Next, Status};
use crate::base::{limits, text};

fn write_line(lines: &mut String, key: Key, value: &str) {
    lines.push_str(key.as_str());
    lines.push(':');
    lines.push_str(&text::escape(value));
    lines.push('\n');
}

/// Whether a line could be read as `KEY:`.
fn reads_as_pair(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, _)| {
        key.starts_with(|c: char| c.is_ascii_uppercase())
            && key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    })
}

/// A value: a text, or a number that JSON readers get as one.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    Text(String),
    Number(u64),
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Shown::Text(text)
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Shown::Text(text.to_owned())
    }
}

impl From<u64> for Shown {
    fn from(number: u64) -> Self {
        Shown::Number(number)
    }
}

/// One reply.
#[derive(Clone, Debug)]
pub struct Report {
    pub status: Status,
    pub next: Next,
    pub sum: String,
    fields: Vec<(Key, Shown)>,
    /// Keys of lists, also of those that turned out empty: in JSON they are there.
    lists: Vec<Key>,
    /// Lines of a block, behind the fields that came before it: its key, and how many those are.
    block: Option<(Key, usize, Vec<String>)>,
    /// Another number than that of the status.
    exit: Option<u8>,
    /// Prose for standard error.
    pub warnings: Vec<String>,
}

impl Report {
    pub fn new(status: Status, sum: impl Into<String>) -> Self {
        Report {
            status,
            next: Next::None,
            sum: sum.into(),
            fields: Vec::new(),
            lists: Vec::new(),
            block: None,
            exit: None,
            warnings: Vec::new(),
        }
    }

    pub fn next(mut self, next: Next) -> Self {
        self.next = next;
        self
    }

    pub fn with(mut self, key: Key, value: impl Into<Shown>) -> Self {
        debug_assert!(key.is_list() || self.fields.iter().all(|(k, _)| *k != key), "{key} stands twice");
        self.fields.push((key, value.into()));
        self
    }

    /// The pair, if there is a value.
    pub fn with_some(self, key: Key, value: Option<impl Into<Shown>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// One pair for each value.
    pub fn with_each(mut self, key: Key, values: impl IntoIterator<Item = impl Into<Shown>>) -> Self {
        self.lists.push(key);
        for value in values {
            self = self.with(key, value);
        }
        self
    }

    /// The exit code, if it is not that of the status.
    pub fn with_exit(mut self, exit: u8) -> Self {
        self.exit = Some(exit);
        self
    }

    /// What EXIT says.
    pub fn exit(&self) -> u8 {
        self.exit.unwrap_or(self.status.exit())
    }

    /// A block of lines from elsewhere, behind what was added so far.
    pub fn with_block(mut self, key: Key, lines: Vec<String>) -> Self {
        self.block = Some((key, self.fields.len(), lines));
        self
    }

    pub fn warn(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// The reply as lines, each with its end.
    pub fn lines(&self, vault_flag: Option<&str>) -> String {
        let mut lines = String::new();
        let mut line = |key: Key, value: &str| write_line(&mut lines, key, value);
        line(Key::Exit, &self.exit().to_string());
        line(Key::Status, self.status.as_str());
        line(Key::Next, &self.next.render(vault_flag));
        line(Key::Sum, &self.sum);
        for (n, (key, value)) in self.fields.iter().enumerate() {
            self.write_block(n, &mut lines);
            match value {
                Shown::Text(value) => write_line(&mut lines, *key, value),
                Shown::Number(number) => write_line(&mut lines, *key, &number.to_string()),
            }
        }
        self.write_block(self.fields.len(), &mut lines);
        lines
    }

    /// Writes the block if this is its place. Its lines are foreign: none may be taken for a pair.
    fn write_block(&self, place: usize, lines: &mut String) {
        let Some((key, _, block)) = self.block.as_ref().filter(|(_, at, _)| *at == place) else { return };
        write_line(lines, *key, "");
        for line in block {
            let line = text::escape(&text::cut(line, limits::BLOCK_LINE_MAX_CHARS));
            if reads_as_pair(&line) {
                lines.push(' ');
            }
            lines.push_str(&line);
            lines.push('\n');
        }
    }

    /// The reply for a person's eyes: the same lines, with a colour where it tells something.
    pub fn coloured(&self, vault_flag: Option<&str>) -> String {
        let paint = |line: &str| {
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            let colour = match (Key::parse(key), value) {
                (Some(Key::Status), _) => self.status.colour(),
                (Some(Key::SystemState), "running") => "32",
                (Some(Key::SystemState), "paused") => "33",
                (Some(Key::SystemState), _) | (Some(Key::Problem), _) => "31",
                _ => return format!("{line}\n"),
            };
            format!("{key}:\x1b[{colour}m{value}\x1b[0m\n")
        };
        self.lines(vault_flag).lines().map(paint).collect()
    }

    /// The reply as one JSON object on one line.
    pub fn json(&self, vault_flag: Option<&str>) -> String {
        let mut object = Map::new();
        object.insert("schema".to_owned(), json!(1));
        object.insert(Key::Exit.to_string(), json!(self.exit()));
        if let Some((key, _, lines)) = &self.block {
            object.insert(key.to_string(), json!(lines));
        }
        object.insert(Key::Status.to_string(), json!(self.status.as_str()));
        object.insert(Key::Next.to_string(), json!(self.next.render(vault_flag)));
        object.insert(Key::Sum.to_string(), json!(self.sum));
        for key in &self.lists {
            object.insert(key.to_string(), json!([]));
        }
        for (key, value) in &self.fields {
            let value = match value {
                Shown::Text(text) => json!(text),
                Shown::Number(number) => json!(number),
            };
            if key.is_list() {
                let list = object.entry(key.as_str()).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().expect("a list key holds a list").push(value);
            } else {
                object.insert(key.to_string(), value);
            }
        }
        escape_json(&Value::Object(object).to_string()) + "\n"
    }
}

/// The same JSON with characters escaped that end or hide a line for some reader. They can stand
/// only inside strings, so replacing them keeps the document what it was.
fn escape_json(json: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_make_a_line() {
        let everything: String = ('\0'..=char::MAX).collect();
        let report = Report::new(Status::Ok, everything.clone())
            .with(Key::Subject, everything.clone())
            .with(Key::Event, everything.clone());
        let lines = report.lines(None);
        assert_eq!(lines.split_terminator('\n').count(), 6);
        assert!(!lines.replace('\n', "").chars().any(text::is_unsafe));
        let json = report.json(None);
        assert!(!json.trim_end_matches('\n').chars().any(text::is_unsafe));
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["SUM"], json!(everything));
        assert_eq!(value["EVENT"], json!([everything]));
    }

    #[test]
    fn the_first_four_lines_are_always_the_same() {
        let report = Report::new(Status::Refused, "no").with(Key::Reason, "key_conflict");
        assert_eq!(report.lines(None), "EXIT:3\nSTATUS:REFUSED\nNEXT:NONE\nSUM:no\nREASON:key_conflict\n");
        assert_eq!(
            report.json(None),
            "{\"EXIT\":3,\"NEXT\":\"NONE\",\"REASON\":\"key_conflict\",\"STATUS\":\"REFUSED\",\"SUM\":\"no\",\"schema\":1}\n"
        );
    }
}
