//! `Akashic/watchdog.json`: the watchdog's last tick. Not an event, so that a tick that changes nothing leaves no trace
//! in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Vault;
use crate::base::{Result, Timestamp};

const TICK_FILE: &str = "watchdog.json";

/// What is remembered of a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Its time, in seconds since 1970.
    pub at: i64,
    /// The works tree that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub works: Option<PathBuf>,
    /// When each anomaly was last reported, by code and subject.
    #[serde(default, rename = "told")]
    pub reported_at: BTreeMap<String, i64>,
    /// Warnings below the level of an anomaly that were reported.
    #[serde(default)]
    pub warned: BTreeSet<String>,
}

impl Vault {
    /// The last tick; `None` if there is none or its file is damaged.
    pub fn tick(&self) -> Result<Option<Tick>> {
        let text = self.akashic.read(TICK_FILE)?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// The time of the last tick.
    pub fn last_tick(&self) -> Result<Option<Timestamp>> {
        Ok(self.tick()?.map(|tick| Timestamp(tick.at)))
    }

    /// Writes the tick.
    pub fn put_tick(&self, tick: &Tick) -> Result<()> {
        self.check_private()?;
        let text = serde_json::to_string(tick).expect("a plain struct") + "\n";
        self.akashic.replace(TICK_FILE, text.as_bytes())
    }
}
