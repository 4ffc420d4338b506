//! A line of the log, and a line of input: the readers agree on what they accept.

use hiveforge::base::{Actor, Digest, Subject, Timestamp, Ulid};
use hiveforge::chain::{check_line, strict};
use hiveforge::event::{Draft, Event, Kind, intake};
use hiveforge::op;
use serde_json::Value;

pub fn run(data: &[u8]) {
    let checked = check_line(data);
    let fast = strict::check(data);
    // The fast reader never accepts what the plain one refuses, and returns the same.
    if let Some(link) = &fast {
        let event = checked.as_ref().expect("the strict reader accepts only what the plain one accepts");
        assert_eq!(format!("{link:?}"), format!("{:?}", strict::ChainLink::from_event(event)));
    }
    if let Ok(event) = &checked {
        assert_eq!(Event::read(data).as_ref(), Ok(event));
    }
    let _ = op::parse_line(data);
    let Ok(value) = intake::parse(data, 0) else { return };
    let canonical = serde_jcs::to_vec(&value).expect("accepted input has a canonical form");
    assert_eq!(serde_json_canonicalizer::to_vec(&value).expect("it has one"), canonical);
    let again = intake::parse(&canonical, 0).expect("canonical text is accepted");
    assert_eq!(serde_jcs::to_vec(&again).expect("it has one"), canonical);
    // As a payload, it becomes a line that the reader accepts.
    let Value::Object(payload) = value else { return };
    let draft = Draft {
        kind: Kind::RequirementProposed,
        subject: Subject::parse("requirement:r1").expect("a subject"),
        actor: Actor::parse("user:jo").expect("an actor"),
        parents: Vec::new(),
        key: None,
        payload,
    };
    let mut event = Event::from_draft(draft, Ulid::from_parts(3, 4), Timestamp(0));
    let line = event.seal(Digest::ZERO, None);
    assert_eq!(check_line(&line).as_ref(), Ok(&event));
}
