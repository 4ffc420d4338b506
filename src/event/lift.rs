//! Upgrades events of older versions to the newest one before they are folded.
//!
//! The log is never rewritten; old events are converted by this table when they are read.

use std::borrow::Cow;

use super::{Event, SCHEMA_VERSION};

/// A version, and how an event of that version becomes one of the next.
pub type Lift = (u64, fn(Event) -> Event);

/// One row per version before the newest, oldest first. Version 1 is the first, so there are no rows yet.
const LIFTS: &[Lift] = &[];

/// The event as the newest version would have written it. Events of a still newer version are left unchanged.
pub fn lift(event: &Event) -> Cow<'_, Event> {
    match event.version < SCHEMA_VERSION {
        false => Cow::Borrowed(event),
        true => Cow::Owned(lift_with(LIFTS, event.clone())),
    }
}

fn lift_with(lifts: &[Lift], mut event: Event) -> Event {
    for (from, lift) in lifts {
        if event.version == *from {
            event = Event { version: from + 1, ..lift(event) };
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::{Actor, Subject, Timestamp, Ulid};
    use crate::event::{Draft, Kind};

    #[test]
    fn an_old_event_goes_through_every_version_up_to_the_newest() {
        let draft = Draft {
            kind: Kind::RequirementProposed,
            subject: Subject::parse("requirement:r").unwrap(),
            actor: Actor::core("test"),
            parents: vec![],
            key: None,
            payload: json!({"name": "Login"}).as_object().unwrap().clone(),
        };
        let rename = |mut event: Event| {
            let name = event.payload.remove("name").unwrap();
            event.payload.insert("title".to_owned(), name);
            event
        };
        let shout = |mut event: Event| {
            let title = event.payload["title"].as_str().unwrap().to_uppercase();
            event.payload.insert("title".to_owned(), title.into());
            event
        };
        let mut event = Event::from_draft(draft, Ulid::from_parts(1, 1), Timestamp(0));
        for (version, expected) in [(5, json!({"title": "LOGIN"})), (7, json!({"name": "Login"}))] {
            event.version = version;
            let lifted = lift_with(&[(5, rename), (6, shout)], event.clone());
            assert_eq!((lifted.version, json!(lifted.payload)), (7, expected));
        }
    }
}
