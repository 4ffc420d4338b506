//! hf-init: make a vault, or finish one whose making was interrupted.

use std::path::PathBuf;

use super::{Context, random_id};
use crate::base::Result;
use crate::event::Event;
use crate::policy::Settings;
use crate::vault::{Created, Vault};

#[derive(Debug)]
pub struct InitOutcome {
    /// The first event; nothing if the vault was there already.
    pub created: Option<Event>,
    pub vault: PathBuf,
}

/// Makes the vault of the context, or finishes one whose making was interrupted.
pub fn init(ctx: &Context) -> Result<InitOutcome> {
    let options = ctx.write_options(&Settings::default());
    let (vault, created) = Vault::create(&ctx.vault, ctx.caller.actor.clone(), &random_id()?, options)?;
    if let (Some(clocks), Created::New(_)) = ((ctx.host.clocks)(), &created) {
        // Without it the next command only knows that it does not know.
        let _ = vault.remember_clock(&clocks);
    }
    Ok(InitOutcome {
        created: match created {
            Created::New(event) => Some(*event),
            Created::Existed => None,
        },
        vault: ctx.vault.clone(),
    })
}
