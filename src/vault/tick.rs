//! `Akashic/watchdog.json`: the watchdog's own last tick. No event: a tick that changes nothing leaves
//! no trace in the log.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Vault;
use crate::base::{Result, Timestamp};

const TICK_FILE: &str = "watchdog.json";

/// What a tick leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// When it was, in seconds since 1970.
    pub at: i64,
    /// When each anomaly was last told of, by code and subject.
    #[serde(default)]
    pub told: BTreeMap<String, i64>,
    /// What is below an anomaly and was told of.
    #[serde(default)]
    pub warned: BTreeSet<String>,
}

impl Vault {
    /// The last tick; a file that cannot be read is none.
    pub fn tick(&self) -> Result<Option<Tick>> {
        let text = self.akashic.read(TICK_FILE)?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// When the watchdog last looked.
    pub fn last_tick(&self) -> Result<Option<Timestamp>> {
        Ok(self.tick()?.map(|tick| Timestamp(tick.at)))
    }

    /// Leaves a tick.
    pub fn put_tick(&self, tick: &Tick) -> Result<()> {
        self.check_private()?;
        let text = serde_json::to_string(tick).expect("a plain struct") + "\n";
        self.akashic.replace(TICK_FILE, text.as_bytes())
    }
}
