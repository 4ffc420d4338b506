//! Small records on disk: a JSON object with a checksum of itself.
//!
//! Invariant: a record that is torn or changed in any byte is an error, never a different record
//! (`a_torn_or_changed_record_is_refused`).

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Digest, Error, Result};

const CHECK: &str = "check";

/// The record as bytes, with a line end.
pub fn seal(record: &impl Serialize) -> Vec<u8> {
    let mut value = serde_json::to_value(record).expect("a plain struct");
    let check = checksum(&value);
    value.as_object_mut().expect("an object").insert(CHECK.to_owned(), check.into());
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// Parses a record. Only whitespace may follow it.
pub fn open<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let bad = |why: &str| Error::corrupt(format!("damaged record: {why}"));
    let mut value: Value = serde_json::from_slice(bytes).map_err(|e| bad(&e.to_string()))?;
    let check = value.as_object_mut().and_then(|object| object.remove(CHECK)).ok_or_else(|| bad("missing checksum"))?;
    if check.as_str() != Some(&checksum(&value)) {
        return Err(bad("checksum mismatch"));
    }
    serde_json::from_value(value).map_err(|e| bad(&e.to_string()))
}

/// The checksum of the object without its `check` member.
fn checksum(value: &Value) -> String {
    Digest::of_bytes(value.to_string().as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_reads_back_even_with_spaces_after_it() {
        let record = json!({"run_id": "r1", "code": 3, "line": "é\u{2028}\0"});
        let mut bytes = seal(&record);
        bytes.resize(4096, b' ');
        assert_eq!(open::<Value>(&bytes).unwrap(), record);
    }

    #[test]
    fn a_torn_or_changed_record_is_refused() {
        let bytes = seal(&json!({"run_id": "r1", "code": 3}));
        for at in 0..bytes.len() - 1 {
            assert!(open::<Value>(&bytes[..at]).is_err(), "cut at {at}");
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(open::<Value>(&flipped).is_err(), "flip at {at}");
        }
    }
}
