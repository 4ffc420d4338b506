//! Reading: an answer from the log and what it folds to.

use crate::base::Result;
use crate::state::State;
use crate::vault::{Snapshot, Vault};

/// An answer from the state that can be relied on: if the state could not give all of it, an error.
pub fn with_view<T>(vault: &Vault, answer: impl FnOnce(&Snapshot, &State) -> Result<T>) -> Result<T> {
    let (snapshot, state) = vault.view()?;
    let answer = answer(&snapshot, &state)?;
    match state.fault() {
        Some(fault) => Err(fault),
        None => Ok(answer),
    }
}
