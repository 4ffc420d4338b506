//! The reply for scripts and agents: one `KEY:VALUE` pair per line.
//!
//! Invariant: a reply has exactly one line per pair, whatever the values contain
//! (`no_value_can_make_a_line`).

use super::{Audience, Key, Reply, Row, Value};
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

/// A line of foreign output, indented if it could be taken for a `KEY:VALUE` pair.
pub(super) fn foreign(line: &str) -> String {
    let line = text::escape(&text::cut(line, limits::BLOCK_LINE_MAX_CHARS));
    if reads_as_pair(&line) { format!(" {line}") } else { line }
}

/// One line of a list that is written as it grows, as `hf-log --follow` does.
pub fn list_line(key: Key, row: &Row) -> String {
    let mut line = String::new();
    write_line(&mut line, key, &row.plain(key.shape().columns()));
    line
}

impl Reply {
    /// The reply as lines, each with a newline.
    pub fn text(&self) -> String {
        let mut lines = String::new();
        write_line(&mut lines, Key::Exit, &self.exit.to_string());
        write_line(&mut lines, Key::Status, self.status.as_str());
        write_line(&mut lines, Key::Next, &self.next.to_string());
        write_line(&mut lines, Key::Sum, &self.sum);
        for field in self.fields.iter().filter(|field| field.audience != Audience::Json) {
            if let Value::Lines(block) = &field.value {
                write_line(&mut lines, field.key, "");
                block.iter().for_each(|line| lines.extend([foreign(line).as_str(), "\n"]));
            }
            field.plain().iter().for_each(|value| write_line(&mut lines, field.key, value));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use crate::reply::{Key, Reply, Status, row};

    use super::*;

    #[test]
    fn no_value_can_make_a_line() {
        let everything: String = ('\0'..=char::MAX).collect();
        let reply = Reply::new(Status::Ok, everything.clone())
            .with(Key::Subject, everything.clone())
            .with_texts(Key::Finding, [everything.clone()])
            .with_rows(Key::Document, [row![everything.clone(), everything.clone()]]);
        let lines = reply.text();
        assert_eq!(lines.split_terminator('\n').count(), 7);
        assert!(!lines.replace('\n', "").chars().any(text::is_unsafe));
        let json = reply.json();
        assert!(!json.trim_end_matches('\n').chars().any(text::is_unsafe));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["sum"], serde_json::json!(everything));
        assert_eq!(value["findings"], serde_json::json!([everything]));
        assert_eq!(value["documents"][0]["status"], serde_json::json!(everything));
    }

    #[test]
    fn the_first_four_lines_are_always_the_same() {
        let reply = Reply::new(Status::Refused, "no").with(Key::Reason, "key_conflict");
        assert_eq!(reply.text(), "EXIT:3\nSTATUS:REFUSED\nNEXT:NONE\nSUM:no\nREASON:key_conflict\n");
        let json =
            r#"{"schema":2,"exit":3,"status":"REFUSED","next":{"kind":"none"},"sum":"no","reason":"key_conflict"}"#;
        assert_eq!(reply.to_json(), serde_json::from_str::<serde_json::Value>(json).unwrap());
    }

    #[test]
    fn a_row_says_its_columns_and_leaves_out_what_is_missing_at_its_end() {
        let rows =
            [row!["BR-0001", None::<String>, "Active"], row!["BR-0002", "free", "Active", None::<String>, "A walk"]];
        let reply = Reply::new(Status::Ok, "2 branches").with_rows(Key::Branch, rows);
        assert!(
            reply.text().ends_with("SUM:2 branches\nBRANCH:BR-0001 - Active\nBRANCH:BR-0002 free Active - A walk\n")
        );
        let json = reply.to_json();
        assert_eq!(
            (&json["branches"][0]["type"], &json["branches"][1]["label"]),
            (&serde_json::Value::Null, &"A walk".into())
        );
    }

    #[test]
    fn a_line_from_elsewhere_is_never_taken_for_a_pair() {
        let reply = Reply::new(Status::Fail, "it failed").with_lines(Key::Last5, vec!["EXIT:0".into(), "x".into()]);
        assert!(reply.text().ends_with("SUM:it failed\nLAST5:\n EXIT:0\nx\n"));
        assert_eq!(reply.to_json()["last5"], serde_json::json!(["EXIT:0", "x"]));
    }
}
