//! A batch: events that will be recorded together. Assigns ids and provides the state with the events applied.
//!
//! Invariant: ids always increase, whatever the clock does (`ids_increase_whatever_the_clock_does`).

use crate::base::{Digest, Error, ErrorKind, Now, Result, Ulid, limits};
use crate::chain::Head;
use crate::event::{BatchPosition, Draft, Event};
use crate::state::State;

/// Events that will be recorded together or not at all. Touches no files, so that a dry run can use it, too.
#[derive(Debug)]
pub struct Batch {
    now: Now,
    last_id: Option<Ulid>,
    minted: bool,
    state: State,
    events: Vec<Event>,
}

impl Batch {
    pub fn new(state: State, head: Option<Head>, now: Now) -> Self {
        Batch { now, last_id: head.map(|head| head.id), minted: false, state, events: Vec::new() }
    }

    /// The state with the events of the batch applied.
    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn into_state(self) -> State {
        self.state
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The event of this batch with this id.
    pub fn event(&self, id: Ulid) -> Option<&Event> {
        self.events.iter().find(|event| event.id == id)
    }

    /// Makes the ids that follow greater than this one, too.
    pub(super) fn mint_after(&mut self, id: Ulid) {
        self.last_id = self.last_id.max(Some(id));
    }

    /// The next id: for the current time, or right after the last id if the clock stands still or goes back.
    pub fn mint(&mut self) -> Result<Ulid> {
        // Only the first id of a batch must be hard to guess; the others follow it.
        let following = self.last_id.filter(|_| self.minted).and_then(|last| last.increment().ok());
        let id = match following {
            Some(id) => id,
            None => next_id(self.now.millis, self.last_id)?,
        };
        (self.last_id, self.minted) = (Some(id), true);
        Ok(id)
    }

    /// Adds a draft and returns its index. Its hash is not known yet, so nothing may refer to it by hash.
    pub fn push(&mut self, draft: Draft) -> Result<usize> {
        if self.events.len() == limits::BATCH_MAX_EVENTS {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("a batch has at most {} events", limits::BATCH_MAX_EVENTS),
            ));
        }
        let id = self.mint()?;
        let event = Event::from_draft(draft, id, self.now.timestamp());
        self.state.apply(&event);
        self.events.push(event);
        Ok(self.events.len() - 1)
    }

    /// Refuses an event that will be too large, while it is still known which request it belongs to.
    pub fn check_size(&self, n: usize) -> Result<()> {
        let largest = limits::BATCH_MAX_EVENTS as u64;
        check_length(
            self.events[n].clone().seal(Digest::ZERO, Some(BatchPosition { no: largest, of: largest })).len() + 1,
        )
    }

    /// Links the events to `head`. Returns them, the bytes of their lines, and the state with them applied.
    pub fn seal(mut self, head: Option<Head>) -> Result<(Vec<Event>, Vec<u8>, State)> {
        let of = self.events.len() as u64;
        let mut prev = head.map_or(Digest::ZERO, |head| head.hash);
        let mut bytes = Vec::new();
        for (event, no) in self.events.iter_mut().zip(1..) {
            let line = event.seal(prev, (of > 1).then_some(BatchPosition { no, of }));
            check_length(line.len() + 1)?;
            bytes.extend(line);
            bytes.push(b'\n');
            prev = event.hash;
        }
        if bytes.len() > limits::BATCH_MAX_BYTES {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "a batch of {} bytes is too large; at most {} are allowed",
                    bytes.len(),
                    limits::BATCH_MAX_BYTES
                ),
            ));
        }
        self.state.seal(&self.events);
        Ok((self.events, bytes, self.state))
    }
}

fn check_length(bytes: usize) -> Result<()> {
    match bytes <= limits::EVENT_MAX_BYTES {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "an event of {bytes} bytes is too large; at most {} are allowed; store the content with hf-artifact",
            limits::EVENT_MAX_BYTES
        ))),
    }
}

/// A random id for this time, or one after `last` if the clock stands still or goes back. The step is random, too: an id
/// that was printed in an uncertain reply must not become the id of another event.
fn next_id(now_millis: u64, last: Option<Ulid>) -> Result<Ulid> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|e| Error::system("cannot get random numbers", e))?;
    let random = u128::from_le_bytes(random) >> 48;
    let Some(last) = last.filter(|last| last.timestamp_ms() >= now_millis) else {
        return Ok(Ulid::from_parts(now_millis, random));
    };
    let next = last.random() + 1 + (random >> 40);
    match (next < 1 << 80, last.timestamp_ms() + 1) {
        (true, _) => Ok(Ulid::from_parts(last.timestamp_ms(), next)),
        (false, millis) if millis < 1 << 48 => Ok(Ulid::from_parts(millis, random)),
        // A larger one would start again at zero.
        (false, _) => {
            Err(Error::corrupt(format!("no event id is left after {last}; the log was written with a wrong clock")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_whatever_the_clock_does() {
        let mut last = None;
        for now in [5, 5, 6, 3, 0, 1_000_000, 999_999, 1_000_000] {
            let next = next_id(now, last).unwrap();
            assert!(last.is_none_or(|last| next > last), "{now}");
            last = Some(next);
        }
        let full = Ulid::from_parts(7, (1 << 80) - 1);
        assert!(next_id(0, Some(full)).unwrap() > full);
        let last = Ulid::from_parts((1 << 48) - 1, (1 << 80) - 1);
        assert!(next_id(0, Some(last)).is_err());
    }
}
