//! `M1.md`: made again from the log whenever it is not what the log says. What somebody wrote into it
//! by hand is kept aside and told of.

use crate::base::{Result, Timestamp};
use crate::op::Context;
use crate::op::kernel::Transaction;
use crate::policy::mission::{self, MissionFile};
use crate::state::State;
use crate::vault::{M1File, Vault};

/// What the file should be.
pub(super) fn wanted(state: &State) -> Option<String> {
    mission::newest(state).map(|mission| MissionFile::of_mission(state, &mission).render())
}

/// Looks at the file, and mends it under the lock if that is needed. Before there is a mission it is
/// nobody's business.
pub(super) fn settle(ctx: &Context, vault: &Vault, warnings: &mut Vec<String>) -> Result<()> {
    // A state holds the index. Whoever waits for the vault's lock holds none: who has it may wait for the index.
    let Some(wanted_now) = wanted(&vault.view()?.1) else { return Ok(()) };
    if vault.look_at_m1(Some(&wanted_now))? == M1File::Current {
        return Ok(());
    }
    let mut writer = vault.write(ctx.write_options(&vault.config()?.0))?;
    let (_, state) = writer.view()?;
    mend(vault, wanted(&state), ctx.now.timestamp(), warnings)
}

/// The same for who holds the lock and is about to record something: afterwards the file is ours. `wanted`
/// is what it should have been before.
pub(super) fn settle_at(tx: &mut Transaction<'_>, vault: &Vault, ctx: &Context, wanted: Option<String>) -> Result<()> {
    let mut warnings = Vec::new();
    mend(vault, wanted, ctx.now.timestamp(), &mut warnings)?;
    tx.warnings.append(&mut warnings);
    Ok(())
}

fn mend(vault: &Vault, wanted: Option<String>, now: Timestamp, warnings: &mut Vec<String>) -> Result<()> {
    let found = vault.look_at_m1(wanted.as_deref())?;
    if found == M1File::Edited {
        let aside = vault.set_m1_aside(now)?;
        warnings.push(format!("M1.md was not what the events say: it is kept as {aside}, and made again"));
    }
    match (found, wanted) {
        (M1File::Current, Some(text)) => vault.seal_m1(&text),
        (_, Some(text)) => vault.put_m1(&text),
        (_, None) => Ok(()),
    }
}
