//! References, ids and other names: whatever parses is printed exactly as it was read.

use hiveforge::base::{Actor, Digest, EntityId, HeartbeatId, ShortRef, Subject, Timestamp};
use hiveforge::chain::{Head, SegmentName};
use hiveforge::event::parse_ulid;
use hiveforge::state::State;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(reference) = ShortRef::parse(text) {
        assert_eq!(ShortRef::parse(&reference.to_string()), Some(reference));
    }
    if let Ok(id) = EntityId::parse(text) {
        assert_eq!(id.as_str(), text);
        // It is safe as a file name and as a word in a shell; letters can be of any script.
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || !c.is_ascii();
        assert!(text.chars().all(|c| is_safe(c) && !c.is_whitespace() && !c.is_control()) && !text.starts_with('-'));
        assert!(text.len() <= 255, "a file name has at most 255 bytes");
    }
    if let Ok(subject) = Subject::parse(text) {
        assert_eq!(subject.to_string(), text);
    }
    if let Ok(actor) = Actor::parse(text) {
        assert_eq!(actor.to_string(), text);
    }
    if let Some(id) = parse_ulid(text) {
        assert_eq!(id.to_string(), text);
    }
    if let Some(digest) = Digest::parse(text) {
        assert_eq!(digest.to_string(), text);
    }
    if let Some(head) = Head::parse(text) {
        assert_eq!(head.to_string(), text);
    }
    if let Some(time) = Timestamp::parse(text) {
        assert_eq!(time.to_string(), text);
    }
    let _ = Timestamp::parse_lenient(text);
    if let Some(id) = HeartbeatId::parse(text) {
        assert_eq!(id.to_string(), text);
    }
    if let Some(name) = SegmentName::parse(text) {
        assert_eq!(name.to_string(), text);
    }
    if let Some(name) = SegmentName::parse_file(text) {
        assert_eq!(name.file(), text);
    }
    // In an empty vault nothing has a name except the system itself.
    if let Ok(subject) = State::default().resolve(text, None) {
        assert_eq!(subject, Subject::SYSTEM);
    }
}
