//! Strict parsing of JSON from outside.
//!
//! Size and depth are checked before parsing. Parsing then refuses everything that JSON readers disagree about:
//! duplicate keys, NUL, lone surrogates, integers that are not exact.
//!
//! Invariant: accepted text, made canonical, is accepted again and stays the same
//! (`canonical_text_passes_intake_again`).

use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::base::{Error, Result, limits};

/// Parses one JSON value. `outer` is the number of levels that surround it in the event.
pub fn parse(bytes: &[u8], outer: usize) -> Result<Value> {
    if bytes.len() > limits::EVENT_MAX_BYTES {
        return Err(Error::usage(format!(
            "too large: an event has at most {} bytes; store the content with hf-artifact and refer to it",
            limits::EVENT_MAX_BYTES
        )));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(Error::usage("invalid JSON: starts with a byte order mark"));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Error::usage(format!("not UTF-8: invalid byte at offset {}", e.valid_up_to())))?;
    if depth(bytes) + outer > limits::EVENT_MAX_DEPTH {
        return Err(Error::usage(format!(
            "nested too deeply: an event has at most {} levels",
            limits::EVENT_MAX_DEPTH
        )));
    }
    let strict: Strict = serde_json::from_str(text).map_err(|e| {
        // The caller numbers the lines of a batch; "line 1" would contradict that.
        let message = match bytes.contains(&b'\n') {
            true => e.to_string(),
            false => e.to_string().replace(" at line 1 column ", " at column "),
        };
        // Our own messages are complete; the parser's get a prefix.
        match message.strip_prefix(REFUSAL) {
            Some(rest) => Error::usage(rest),
            None => Error::usage(format!("invalid JSON: {message}")),
        }
    })?;
    Ok(strict.0)
}

/// Parses a payload: an object inside the envelope.
pub fn parse_payload(bytes: &[u8]) -> Result<Map<String, Value>> {
    match parse(bytes, 1)? {
        Value::Object(payload) => Ok(payload),
        _ => Err(Error::usage("the payload must be a JSON object")),
    }
}

/// The nesting depth, from the brackets outside strings, without parsing.
fn depth(bytes: &[u8]) -> usize {
    let (mut level, mut deepest) = (0usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' if !in_string => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Marks our own messages inside a parser error, which adds the position.
const REFUSAL: &str = "refused: ";

/// A `Value` that was parsed strictly.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

impl<'de> DeserializeSeed<'de> for StrictVisitor {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

#[derive(Clone, Copy)]
struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        exact(value.unsigned_abs() <= limits::INTEGER_MAX as u64, value, value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        exact(value <= limits::INTEGER_MAX as u64, value, value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // In canonical form, whole numbers below 1e21 have no exponent, so they are integers.
        let integer = value.fract() == 0.0 && value.abs() < 1e21;
        if integer && value.abs() <= limits::INTEGER_MAX as f64 {
            return Ok(Value::Number((value as i64).into()));
        }
        let number = Number::from_f64(value).ok_or_else(|| E::custom(format!("{REFUSAL}{value} is not a number")))?;
        exact(!integer, value, number)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        text(value).map(|s| Value::String(s.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            text::<A::Error>(&key)?;
            let value = map.next_value_seed(self)?;
            if object.insert(key.clone(), value).is_some() {
                return Err(de::Error::custom(format!("{REFUSAL}duplicate key {key:?}")));
            }
        }
        Ok(Value::Object(object))
    }
}

fn exact<E: de::Error>(fits: bool, shown: impl fmt::Display, number: Number) -> Result<Value, E> {
    if fits {
        Ok(Value::Number(number))
    } else {
        Err(E::custom(format!("{REFUSAL}integer {shown} is beyond ±(2^53−1); write it as a string")))
    }
}

fn text<E: de::Error>(value: &str) -> Result<&str, E> {
    if value.contains('\0') { Err(E::custom(format!("{REFUSAL}a string contains a NUL character"))) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        parse(bytes, 0).expect_err(&String::from_utf8_lossy(bytes)).message
    }

    #[test]
    fn what_readers_disagree_about_is_refused_with_a_reason() {
        for (input, reason) in [
            (&br#"{"a":1,"a":2}"#[..], "duplicate key"),
            (br#"{"x":[{"a":1,"b":2,"a":1}]}"#, "duplicate key"),
            (br#"{"a":"\u0000"}"#, "NUL"),
            (br#"{"\u0000":1}"#, "NUL"),
            (br#"{"a":"\ud800"}"#, "invalid JSON"),
            (br#"9007199254740992"#, "beyond"),
            (br#"-9007199254740992"#, "beyond"),
            (br#"18446744073709551616"#, "beyond"),
            (br#"1e16"#, "beyond"),
            (br#"1e999"#, "invalid JSON"),
            (b"\xff", "not UTF-8"),
            (b"\xef\xbb\xbf{}", "byte order mark"),
            (b"{} {}", "invalid JSON"),
            (b"", "invalid JSON"),
            (b"{\"a\":NaN}", "invalid JSON"),
            (b"{'a':1}", "invalid JSON"),
            (b"\"a\nb\"", "invalid JSON"),
        ] {
            let message = refusal(input);
            assert!(message.contains(reason), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn depth_and_size_are_measured_before_parsing() {
        let nested = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        assert!(parse(&nested(limits::EVENT_MAX_DEPTH), 0).is_ok());
        assert!(refusal(&nested(limits::EVENT_MAX_DEPTH + 1)).contains("too deeply"));
        assert!(refusal(&vec![b'['; 1 << 20]).contains("too deeply"));
        assert!(refusal(&vec![b' '; (1 << 20) + 1]).contains("too large"));
        assert!(parse(br#"["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[[["]"#, 0).is_ok());
    }

    #[test]
    fn canonical_text_passes_intake_again() {
        for input in [
            "1e21",
            "-0",
            "5e-324",
            "1.0",
            "0.1",
            "9007199254740991",
            "-9007199254740991",
            r#"{"é":"\u00e9\u2028","\ud83d\ude00":1}"#,
        ] {
            let value = parse(input.as_bytes(), 0).unwrap();
            let canonical = serde_jcs::to_string(&value).unwrap();
            let again = parse(canonical.as_bytes(), 0).unwrap();
            assert_eq!(serde_jcs::to_string(&again).unwrap(), canonical, "{input}");
        }
    }
}
