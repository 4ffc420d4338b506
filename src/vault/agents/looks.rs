//! `Akashic/looks.json`: what the watchdog remembers of its looks at agents' files, so that it lists only directories that
//! changed. It can be deleted at any time: whether a file counted is in the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Looked;
use crate::base::Result;
use crate::vault::Vault;

const LOOKS_FILE: &str = "looks.json";

/// The last look at each agent's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// The last event of the log when the looks were remembered. In a log without this event, such as a restored older
    /// one, they are void.
    pub through: String,
    pub agents: BTreeMap<String, Looked>,
}

impl Vault {
    /// What is remembered; nothing if there is no such file or it is damaged.
    pub fn looks(&self) -> Result<Looks> {
        let text = self.akashic.read(LOOKS_FILE)?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
    }

    /// Remembers the looks.
    pub fn put_looks(&self, looks: &Looks) -> Result<()> {
        self.check_private()?;
        let text = serde_json::to_string(looks).expect("a plain struct") + "\n";
        self.akashic.replace(LOOKS_FILE, text.as_bytes())
    }
}
