//! `Akashic/notify/HOOK/cursor.json`: how far a hook was notified of events. One process at a time sends to a
//! hook: it holds a lock on the directory.
//!
//! The cursor is part of backups and copies, so that a restored vault does not send its history again. Without it, a
//! hook is notified of everything since it was configured.

use serde_json::{Value, json};

use super::Vault;
use super::files::Dir;
use crate::base::{Result, Timestamp, Ulid};
use crate::event::parse_ulid;
use crate::policy::settings::Setting;

const NOTIFY: &str = "notify";
const CURSOR_FILE: &str = "cursor.json";

/// How far a hook was notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The last event that was sent, skipped, or of no interest.
    pub through: Ulid,
    /// How often the next event of interest was sent without success, and when last.
    pub attempts: u64,
    pub tried_at: Timestamp,
}

impl Cursor {
    /// Everything through this event is done.
    pub fn at(through: Ulid) -> Cursor {
        Cursor { through, attempts: 0, tried_at: Timestamp(0) }
    }

    fn parse(text: &[u8]) -> Option<Cursor> {
        let record: Value = serde_json::from_slice(text).ok()?;
        Some(Cursor {
            through: parse_ulid(record["through"].as_str()?)?,
            attempts: record["attempts"].as_u64()?,
            tried_at: Timestamp(record["tried_at"].as_i64()?),
        })
    }
}

/// The right to send to a hook, as long as this value lives. The kernel releases it when the process dies.
#[derive(Debug)]
pub struct Outbox {
    dir: Dir,
}

impl Outbox {
    pub fn cursor(&self) -> Result<Option<Cursor>> {
        Ok(self.dir.read(CURSOR_FILE)?.and_then(|text| Cursor::parse(&text)))
    }

    /// Writes the cursor durably.
    pub fn put(&self, cursor: &Cursor) -> Result<()> {
        let through = cursor.through.to_string();
        let record = json!({"through": through, "attempts": cursor.attempts, "tried_at": cursor.tried_at.0});
        self.dir.put(CURSOR_FILE, format!("{record}\n").as_bytes())
    }
}

impl Vault {
    /// How far a hook was notified, if it ever was; for a process that does not send.
    pub fn cursor(&self, hook: Setting) -> Result<Option<Cursor>> {
        let dir = self.akashic.dir(NOTIFY)?.map_or(Ok(None), |all| all.dir(hook.as_str()))?;
        dir.map_or(Ok(None), |dir| Outbox { dir }.cursor())
    }

    /// The right to send to a hook; none if another process has it.
    pub fn outbox(&self, hook: Setting) -> Result<Option<Outbox>> {
        self.check_private()?;
        let (all, _) = self.akashic.make_dir(NOTIFY)?;
        let (dir, _) = all.make_dir(hook.as_str())?;
        if !dir.try_lock()? {
            return Ok(None);
        }
        dir.sweep()?;
        Ok(Some(Outbox { dir }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_cursor_is_none() {
        let whole = br#"{"attempts":2,"through":"01KG9QZSFRG75ATFNN252J0ATV","tried_at":7}"#;
        let cursor = Cursor::parse(whole).unwrap();
        assert_eq!((cursor.attempts, cursor.tried_at), (2, Timestamp(7)));
        for at in 0..whole.len() {
            assert_eq!(Cursor::parse(&whole[..at]), None, "{at}");
        }
    }
}
