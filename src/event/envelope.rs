//! The envelope: an event as one line of canonical JSON.
//!
//! Invariant: the bytes of a line without its `hash` member are exactly the bytes that were hashed
//! (`a_sealed_line_is_the_canonical_form_of_its_event`).

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::Kind;
use crate::base::{Actor, Digest, Error, Result, Subject, Timestamp, Ulid, limits};

/// The version of the events that this program writes, and the newest it understands.
pub const SCHEMA_VERSION: u64 = 1;

/// An event to be recorded, before it gets its id, time and hashes under the lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub kind: Kind,
    pub subject: Subject,
    pub actor: Actor,
    pub parents: Vec<Ulid>,
    pub key: Option<String>,
    pub payload: Map<String, Value>,
}

/// The position of an event in its batch: number `no`, from 1, of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchPosition {
    pub no: u64,
    pub of: u64,
}

/// The type of a recorded event: a known kind, or a name from a newer version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventType {
    Known(Kind),
    Unknown(String),
}

impl EventType {
    pub fn as_str(&self) -> &str {
        match self {
            EventType::Known(kind) => kind.as_str(),
            EventType::Unknown(name) => name,
        }
    }

    pub fn known(&self) -> Option<Kind> {
        match self {
            EventType::Known(kind) => Some(*kind),
            EventType::Unknown(_) => None,
        }
    }
}

/// A recorded event. Subject and actor are kept as text, because a newer version may write types that this one does
/// not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: Ulid,
    pub event_type: EventType,
    pub version: u64,
    pub timestamp: Timestamp,
    pub actor: String,
    pub subject: String,
    pub parents: Vec<Ulid>,
    pub key: Option<String>,
    pub batch: Option<BatchPosition>,
    pub payload: Map<String, Value>,
    pub prev_hash: Digest,
    pub hash: Digest,
}

impl Event {
    /// The event of a draft, with its id and time; `seal` sets the hashes.
    pub fn from_draft(draft: Draft, id: Ulid, timestamp: Timestamp) -> Self {
        Event {
            id,
            event_type: EventType::Known(draft.kind),
            version: SCHEMA_VERSION,
            timestamp,
            actor: draft.actor.to_string(),
            subject: draft.subject.to_string(),
            parents: draft.parents,
            key: draft.key,
            batch: None,
            payload: draft.payload,
            prev_hash: Digest::ZERO,
            hash: Digest::ZERO,
        }
    }

    /// When it happened in the log's own time. Ids never go back, while a clock can, so the later of the two counts.
    pub fn log_time(&self) -> Timestamp {
        self.timestamp.max(Timestamp((self.id.timestamp_ms() / 1000) as i64))
    }

    /// Whether its hash is that of its content.
    pub fn is_intact(&self) -> bool {
        let mut again = self.clone();
        again.seal(self.prev_hash, self.batch);
        again.hash == self.hash
    }

    /// Links the event to `prev` and computes its hash. Returns its line without the line end.
    ///
    /// The text is built once, member by member in canonical order, and hashed; then `hash` is inserted at its place
    /// in that order, right after `event_type`.
    pub fn seal(&mut self, prev: Digest, batch: Option<BatchPosition>) -> Vec<u8> {
        self.prev_hash = prev;
        self.batch = batch;
        let mut line = String::with_capacity(512);
        line += "{\"$schema\":\"event.v1.schema.json\",\"actor\":";
        push_text(&mut line, &self.actor);
        if let Some(batch) = batch {
            line += &format!(",\"batch\":{{\"no\":{},\"of\":{}}}", batch.no, batch.of);
        }
        line += ",\"event_id\":\"";
        line += self.id.array_to_str(&mut [0; ulid::ULID_LEN]);
        line += "\",\"event_type\":";
        push_text(&mut line, self.event_type.as_str());
        line.push(',');
        let hash_at = line.len();
        if let Some(key) = &self.key {
            line += "\"idempotency_key\":";
            push_text(&mut line, key);
            line.push(',');
        }
        line += "\"parents\":[";
        for (n, parent) in self.parents.iter().enumerate() {
            line += if n == 0 { "\"" } else { ",\"" };
            line += parent.array_to_str(&mut [0; ulid::ULID_LEN]);
            line.push('"');
        }
        line += "],\"payload\":";
        line += &serde_jcs::to_string(&self.payload).expect("parsed JSON always has a canonical form");
        line += ",\"prev_hash\":\"";
        line += &prev.to_string();
        line += "\",\"subject\":";
        push_text(&mut line, &self.subject);
        line += &format!(",\"timestamp\":\"{}\",\"version\":{}}}", self.timestamp, self.version);
        self.hash = Digest::of_bytes(line.as_bytes());
        line.insert_str(hash_at, &format!("\"hash\":\"{}\",", self.hash));
        line.into_bytes()
    }

    /// Parses a line. Does not check canonical form, hash or links; `chain` does.
    pub fn read(line: &[u8]) -> Result<Event, String> {
        let line: EventLine<'_> = serde_json::from_slice(line).map_err(|e| format!("not an event: {e}"))?;
        line.try_into()
    }

    /// Whether this event is the first of its batch. A single event is.
    pub fn begins_batch(&self) -> bool {
        self.batch.is_none_or(|batch| batch.no == 1)
    }

    /// Whether this event is the last of its batch. A single event is.
    pub fn ends_batch(&self) -> bool {
        self.batch.is_none_or(|batch| batch.no == batch.of)
    }
}

/// The members of a line. Unknown members are ignored: the hash covers them, and a newer version may use them.
#[derive(Deserialize)]
struct EventLine<'a> {
    #[serde(borrow)]
    actor: Cow<'a, str>,
    #[serde(default, deserialize_with = "present")]
    batch: Option<BatchPosition>,
    #[serde(borrow)]
    event_id: Cow<'a, str>,
    #[serde(borrow)]
    event_type: Cow<'a, str>,
    #[serde(borrow)]
    hash: Cow<'a, str>,
    #[serde(default, deserialize_with = "present")]
    idempotency_key: Option<String>,
    #[serde(borrow)]
    parents: Vec<Cow<'a, str>>,
    payload: Map<String, Value>,
    #[serde(borrow)]
    prev_hash: Cow<'a, str>,
    #[serde(borrow)]
    subject: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    version: u64,
}

/// Deserializes a member that may be missing, but not null.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl TryFrom<EventLine<'_>> for Event {
    type Error = String;

    fn try_from(line: EventLine<'_>) -> Result<Event, String> {
        let ulid = |name: &str, text: &str| parse_ulid(text).ok_or_else(|| format!("{name} is not a ULID"));
        let digest = |name: &str, text: &str| Digest::parse(text).ok_or_else(|| format!("{name} is not a digest"));
        if line.batch.is_some_and(|batch| !(1..=batch.of).contains(&batch.no)) {
            return Err("batch.no is not between 1 and batch.of".to_owned());
        }
        Ok(Event {
            id: ulid("event_id", &line.event_id)?,
            event_type: match Kind::parse(&line.event_type) {
                Some(kind) => EventType::Known(kind),
                None => EventType::Unknown(line.event_type.into_owned()),
            },
            version: line.version,
            timestamp: Timestamp::parse(&line.timestamp).ok_or("timestamp is not YYYY-MM-DDTHH:MM:SSZ")?,
            actor: line.actor.into_owned(),
            subject: line.subject.into_owned(),
            parents: line.parents.iter().map(|id| ulid("parents", id)).collect::<Result<_, _>>()?,
            key: line.idempotency_key,
            batch: line.batch,
            payload: line.payload,
            prev_hash: digest("prev_hash", &line.prev_hash)?,
            hash: digest("hash", &line.hash)?,
        })
    }
}

/// Parses a ULID in its canonical form: 26 characters, upper case.
pub fn parse_ulid(text: &str) -> Option<Ulid> {
    let id = Ulid::from_string(text).ok()?;
    (id.array_to_str(&mut [0; ulid::ULID_LEN]) == text).then_some(id)
}

/// Checks an idempotency key: short, printable, on one line.
pub fn check_key(key: &str) -> Result<()> {
    if key.is_empty() || key.len() > limits::KEY_MAX_BYTES || key.chars().any(crate::base::text::is_unsafe) {
        return Err(Error::usage(format!(
            "invalid key; must be 1 to {} bytes without control or invisible characters",
            limits::KEY_MAX_BYTES
        )));
    }
    Ok(())
}

/// Refuses a key that the toolkit makes for its own events: `<id>:…` and `stop:…`. A caller that took it first could keep
/// such an event from being recorded.
pub fn check_callers_key(key: &str) -> Result<()> {
    check_key(key)?;
    let start = key.split_once(':').map(|(start, _)| start);
    match start.is_some_and(|start| start == "stop" || parse_ulid(start).is_some()) {
        true => Err(Error::usage(format!("key '{}' is reserved; use another one", crate::base::text::cut(key, 60)))),
        false => Ok(()),
    }
}

/// Appends a string in canonical form. Most need no escapes.
fn push_text(line: &mut String, text: &str) {
    if text.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\') {
        line.push('"');
        *line += text;
        line.push('"');
    } else {
        *line += &serde_jcs::to_string(text).expect("a string always has a canonical form");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(payload: Value, key: Option<&str>) -> Event {
        let draft = Draft {
            kind: Kind::RequirementProposed,
            subject: Subject::parse("requirement:r1").unwrap(),
            actor: Actor::parse("user:jo").unwrap(),
            parents: vec![Ulid::from_parts(1, 2)],
            key: key.map(str::to_owned),
            payload: payload.as_object().unwrap().clone(),
        };
        Event::from_draft(draft, Ulid::from_parts(3, 4), Timestamp::parse("2026-01-31T12:00:00Z").unwrap())
    }

    #[test]
    fn a_sealed_line_is_the_canonical_form_of_its_event() {
        let payload = json!({"title": "é\u{1F600}\n\"", "n": 1e21, "\u{1F600}": -0.5, "\u{fb33}": [null, true], "hash": "sha256:0"});
        for (key, batch) in [(None, None), (Some("k:\"1"), Some(BatchPosition { no: 2, of: 3 }))] {
            let mut event = event(payload.clone(), key);
            let line = event.seal(Digest::of_bytes(b"before"), batch);
            let mut value: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), line);
            value.as_object_mut().unwrap().remove("hash");
            assert_eq!(Digest::of_bytes(&serde_json_canonicalizer::to_vec(&value).unwrap()), event.hash);
            assert_eq!(Event::read(&line).unwrap(), event);
        }
    }

    #[test]
    fn canonical_numbers_and_keys_follow_rfc_8785() {
        // The number samples are those of the RFC's appendix B; the keys those of its section 3.2.3.
        for (bits, text) in [
            (0x0000_0000_0000_0000u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(serde_jcs::to_string(&f64::from_bits(bits)).unwrap(), text);
        }
        let keys: Value = serde_json::from_str(
            r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
        )
        .unwrap();
        let order: Vec<Value> = serde_json::from_str::<Vec<Value>>(&format!(
            "[{}]",
            serde_jcs::to_string(&keys).unwrap().trim_matches(['{', '}']).replace("\":\"", "\",\"")
        ))
        .unwrap();
        let names: Vec<&str> = order.iter().skip(1).step_by(2).map(|v| v.as_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "Carriage Return",
                "One",
                "Control",
                "Latin Small Letter O With Diaeresis",
                "Euro Sign",
                "Emoji: Grinning Face",
                "Hebrew Letter Dalet With Dagesh"
            ]
        );
    }

    #[test]
    fn a_member_of_the_wrong_form_is_named() {
        let mut event = event(json!({"title": "x"}), None);
        let good: Value = serde_json::from_slice(&event.seal(Digest::ZERO, None)).unwrap();
        for (name, wrong, hint) in [
            ("event_id", json!("01j0000000000000000000000a"), "event_id"),
            ("timestamp", json!("2026-01-31"), "timestamp"),
            ("hash", json!("sha256:00"), "hash"),
            ("parents", json!("x"), "sequence"),
            ("payload", json!([]), "map"),
            ("version", json!("1"), "u64"),
            ("batch", json!({"no": 3, "of": 2}), "batch"),
            ("batch", json!(null), "null"),
            ("idempotency_key", json!(null), "null"),
        ] {
            let mut value = good.clone();
            value[name] = wrong;
            let message = Event::read(value.to_string().as_bytes()).expect_err(name);
            assert!(message.contains(hint), "{name}: {message}");
        }
    }
}
