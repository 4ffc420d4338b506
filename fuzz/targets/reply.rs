//! `KEY:VALUE` lines: whatever the values contain, each is one line and can be read back.

use hiveforge::base::text;
use hiveforge::reply::key::TABLE;
use hiveforge::reply::{Key, Reply, Row, Shape, Status};
use serde_json::Value;

/// Undoes the escapes of a value.
fn unescape(line: &str) -> String {
    let mut value = String::new();
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (c, if c == '\\' { rest.next() } else { None }) {
            ('\\', Some('n')) => value.push('\n'),
            ('\\', Some('r')) => value.push('\r'),
            ('\\', Some('t')) => value.push('\t'),
            ('\\', Some('u')) => {
                let hex: String = rest.by_ref().skip(1).take_while(|&c| c != '}').collect();
                let code = u32::from_str_radix(&hex, 16).expect("a number");
                value.push(char::from_u32(code).expect("a character"));
            }
            ('\\', other) => value.push(other.expect("a whole escape")),
            (c, _) => value.push(c),
        }
    }
    value
}

/// Pieces are separated by 0xFF, which no text contains. The first byte of a piece selects the key, the rest is the
/// value. If the key takes no text, or was used before, the value becomes a line of the block.
pub fn run(data: &[u8]) {
    let mut pieces = data.split(|byte| *byte == 0xff);
    let sum = String::from_utf8_lossy(pieces.next().unwrap_or_default()).into_owned();
    let mut fields: Vec<(Key, String)> = Vec::new();
    let mut block = Vec::new();
    for piece in pieces {
        let Some((first, value)) = piece.split_first() else { continue };
        let value = String::from_utf8_lossy(value).into_owned();
        let key = TABLE[usize::from(*first) % TABLE.len()].key;
        let first_four = [Key::Exit, Key::Status, Key::Next, Key::Sum].contains(&key);
        let takes_text = matches!(key.shape(), Shape::Text | Shape::Time | Shape::Texts | Shape::Rows(_));
        match takes_text && !first_four && fields.iter().all(|(known, _)| *known != key) {
            true => fields.push((key, value)),
            false => block.push(value),
        }
    }
    let mut reply = Reply::new(Status::Ok, sum.clone());
    for (key, value) in &fields {
        reply = match key.shape() {
            Shape::Rows(_) => reply.with_rows(*key, [Row::new(vec![value.as_str().into()])]),
            _ => reply.with(*key, value.as_str()),
        };
    }
    let with_block = !block.is_empty();
    if with_block {
        reply = reply.with_lines(Key::Last5, block.clone());
    }
    let lines = reply.text();
    let more = if with_block { 1 + block.len() } else { 0 };
    assert_eq!(lines.split_terminator('\n').count(), 4 + fields.len() + more, "{lines:?}");
    assert!(lines.chars().all(|c| c == '\n' || !text::is_unsafe(c)), "{lines:?}");
    let mut said = lines.split_terminator('\n');
    assert_eq!((said.next(), said.next(), said.next()), (Some("EXIT:0"), Some("STATUS:OK"), Some("NEXT:NONE")));
    assert_eq!(said.next().and_then(|line| line.strip_prefix("SUM:")).map(unescape), Some(sum.clone()));
    for (key, value) in &fields {
        let line = said.next().expect("a line for every field");
        let (name, shown) = line.split_once(':').expect("a pair");
        assert_eq!((Key::parse(name), unescape(shown)), (Some(*key), value.clone()));
    }
    // No line of a block can be mistaken for a pair.
    for line in said.skip(1) {
        let name = line.split_once(':').map_or("", |(name, _)| name);
        assert_eq!(Key::parse(name), None, "{line:?}");
    }
    let json = reply.json();
    assert_eq!(json.split_terminator('\n').count(), 1);
    let value: Value = serde_json::from_str(&json).expect("one JSON object");
    assert_eq!(value["sum"], Value::from(sum));
    for (key, text) in fields.iter().filter(|(key, _)| key.shape() == Shape::Text) {
        assert_eq!(value[key.row().json], Value::from(text.as_str()));
    }
}
