//! `M1.md`: rewritten from the log whenever it differs from it. A version that was edited is kept under another
//! name, with a warning.
//!
//! A session that was lost may read nothing else, so the process that records an event after which the file should be
//! different rewrites it: a supervisor at the end of a job, hf-poll, the watchdog. If it is killed before that, the next
//! command that records anything does (`the_file_is_rewritten_by_the_process_that_records_the_end_of_a_job`).

use std::time::Duration;

use crate::base::{Result, Timestamp, limits};
use crate::op::Context;
use crate::op::kernel::{Committing, FollowUp, Transaction};
use crate::policy::mission::{self, MissionFile};
use crate::policy::settings::Setting;
use crate::state::State;
use crate::vault::{M1File, Vault, WriteOptions};

/// The content that the file should have.
pub(super) fn wanted(state: &State) -> Option<String> {
    mission::newest(state).map(|mission| MissionFile::of_mission(state, &mission).render())
}

/// Checks the file, and repairs it under the lock if needed. Does nothing if there is no mission.
pub(super) fn settle(ctx: &Context, vault: &Vault, warnings: &mut Vec<String>) -> Result<()> {
    settle_with(vault, ctx.write_options(&vault.config()), warnings)
}

fn settle_with(vault: &Vault, options: WriteOptions, warnings: &mut Vec<String>) -> Result<()> {
    // The state is dropped before waiting for the lock: it has the index open, and the holder of the lock may wait for
    // the index.
    let Some(wanted_now) = wanted(&vault.view()?.1) else { return Ok(()) };
    if vault.look_at_m1(Some(&wanted_now))? == M1File::Current {
        return Ok(());
    }
    let mut writer = vault.write(options)?;
    let (_, state) = writer.view()?;
    rewrite(vault, wanted(&state), options.now.timestamp(), warnings)
}

/// Whether a reader of the file knows the current state.
pub(super) fn is_current(vault: &Vault) -> bool {
    let wanted = vault.view().map(|(_, state)| wanted(&state));
    wanted.is_ok_and(|wanted| matches!(vault.look_at_m1(wanted.as_deref()), Ok(M1File::Current)))
}

/// The same for a command that is about something else. Best effort: the vault may be somebody else's.
pub(in crate::op) fn settle_file(ctx: &Context, vault: &Vault) {
    let mut warnings = Vec::new();
    let _ = settle(ctx, vault, &mut warnings);
    warnings.into_iter().for_each(|warning| vault.notices().add(Some(warning)));
}

/// After a commit, rewrites the file if it differs from the log. Best effort: if it fails, the next command does it.
pub(in crate::op) fn refresh_file(committing: &Committing<'_>) -> Option<FollowUp> {
    let Committing { state, config, host, .. } = *committing;
    let wanted = wanted(state)?;
    let options = WriteOptions {
        lock_timeout: Duration::from_secs(limits::LOCK_TIMEOUT_DEFAULT_SECONDS),
        now: (host.clock)(),
        segment_max_bytes: config.count(Setting::EventsMaxFileSizeMb).saturating_mul(1024 * 1024),
    };
    Some(Box::new(move |vault| {
        if matches!(vault.look_at_m1(Some(&wanted)), Ok(M1File::Current)) {
            return;
        }
        let mut warnings = Vec::new();
        let _ = settle_with(vault, options, &mut warnings);
        warnings.into_iter().for_each(|warning| vault.notices().add(Some(warning)));
    }))
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
