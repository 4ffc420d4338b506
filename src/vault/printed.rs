//! `Akashic/printed.json`: the warnings that `hf-watchdog --quiet` has printed, and when, so that cron does not mail the
//! same one every minute. Only a convenience: without the file everything is printed again.

use std::collections::BTreeMap;

use super::Vault;
use crate::base::Result;

const PRINTED_FILE: &str = "printed.json";

/// The warnings of the last tick, each with the time in seconds since 1970 when it was last printed.
pub type PrintedWarnings = BTreeMap<String, i64>;

impl Vault {
    /// What was printed; nothing if the file is damaged.
    pub fn printed_warnings(&self) -> Result<PrintedWarnings> {
        let text = self.akashic.read(PRINTED_FILE)?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
    }

    pub fn put_printed_warnings(&self, printed: &PrintedWarnings) -> Result<()> {
        self.check_private()?;
        let text = serde_json::to_string(printed).expect("a map of numbers") + "\n";
        self.akashic.replace(PRINTED_FILE, text.as_bytes())
    }
}
