//! `M1.md`: rewritten from the log whenever it differs from it. A version that was edited is kept under another
//! name, with a warning.

use crate::base::{Result, Timestamp};
use crate::op::Context;
use crate::op::kernel::Transaction;
use crate::policy::mission::{self, MissionFile};
use crate::state::State;
use crate::vault::{M1File, Vault};

/// The content that the file should have.
pub(super) fn wanted(state: &State) -> Option<String> {
    mission::newest(state).map(|mission| MissionFile::of_mission(state, &mission).render())
}

/// Checks the file, and repairs it under the lock if needed. Does nothing if there is no mission.
pub(super) fn settle(ctx: &Context, vault: &Vault, warnings: &mut Vec<String>) -> Result<()> {
    // The state is dropped before waiting for the lock: it has the index open, and the holder of the lock may wait for
    // the index.
    let Some(wanted_now) = wanted(&vault.view()?.1) else { return Ok(()) };
    if vault.look_at_m1(Some(&wanted_now))? == M1File::Current {
        return Ok(());
    }
    let mut writer = vault.write(ctx.write_options(&vault.config()))?;
    let (_, state) = writer.view()?;
    rewrite(vault, wanted(&state), ctx.now.timestamp(), warnings)
}

/// Repairs the file under the lock, before something is recorded. `wanted` is the content before that.
pub(super) fn settle_in(tx: &mut Transaction<'_>, vault: &Vault, ctx: &Context, wanted: Option<String>) -> Result<()> {
    let mut warnings = Vec::new();
    rewrite(vault, wanted, ctx.now.timestamp(), &mut warnings)?;
    tx.warnings.append(&mut warnings);
    Ok(())
}

fn rewrite(vault: &Vault, wanted: Option<String>, now: Timestamp, warnings: &mut Vec<String>) -> Result<()> {
    let found = vault.look_at_m1(wanted.as_deref())?;
    if found == M1File::Edited {
        let aside = vault.set_m1_aside(now)?;
        warnings.push(format!("M1.md did not match the events; kept it as {aside} and rewrote it"));
    }
    match (found, wanted) {
        (M1File::Current, Some(text)) => vault.seal_m1(&text),
        (_, Some(text)) => vault.put_m1(&text),
        (_, None) => Ok(()),
    }
}
