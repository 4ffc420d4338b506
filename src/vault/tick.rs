//! `Akashic/watchdog.json`: the watchdog's own last tick. No event: a tick that changes nothing leaves
//! no trace in the log.

use serde::{Deserialize, Serialize};

use super::Vault;
use crate::base::{Result, Timestamp};

const TICK_FILE: &str = "watchdog.json";

/// What a tick leaves behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Seconds since 1970.
    pub at: i64,
}

impl Vault {
    /// When the watchdog last looked; a file that cannot be read is none.
    pub fn last_tick(&self) -> Result<Option<Timestamp>> {
        let text = self.akashic.read(TICK_FILE)?;
        Ok(text.and_then(|text| serde_json::from_slice::<Tick>(&text).ok()).map(|tick| Timestamp(tick.at)))
    }

    /// Leaves a tick.
    pub fn put_tick(&self, tick: &Tick) -> Result<()> {
        self.check_private()?;
        let text = serde_json::to_string(tick).expect("a plain struct") + "\n";
        self.akashic.replace(TICK_FILE, text.as_bytes())
    }
}
