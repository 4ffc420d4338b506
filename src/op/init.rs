//! hf-init: creates a vault, or finishes creating one after an interruption.

use std::path::PathBuf;

use super::{Context, random_id};
use crate::base::Result;
use crate::event::Event;
use crate::policy::settings::{Setting, Settings};
use crate::vault::{Created, Vault};

#[derive(Debug)]
pub struct InitOutcome {
    /// The first event; none if the vault existed already.
    pub created: Option<Event>,
    pub vault: PathBuf,
    /// The name of the hive.
    pub hive: String,
}

/// Creates the vault of the context, or finishes creating it after an interruption.
pub fn init(ctx: &Context) -> Result<InitOutcome> {
    let options = ctx.write_options(&Settings::default());
    let (vault, created) = Vault::create(&ctx.vault, ctx.caller.actor.clone(), &random_id()?, options)?;
    if let (Some(clocks), Created::New(_)) = ((ctx.host.clocks)(), &created) {
        // Best effort: if it fails the next command saves them.
        let _ = vault.remember_clock(&clocks);
    }
    let hive = vault.with_notices(ctx.notices.clone()).config().text(Setting::HiveName);
    Ok(InitOutcome {
        created: match created {
            Created::New(event) => Some(*event),
            Created::Existed => None,
        },
        vault: ctx.vault.clone(),
        hive,
    })
}
