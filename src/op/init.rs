//! hf-init: creates a vault, or finishes creating one after an interruption.

use std::path::PathBuf;

use super::{Context, random_id};
use crate::base::Result;
use crate::event::Event;
use crate::policy::settings::{Setting, Settings};
use crate::vault::config::Config;
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
    let vault = vault.with_notices(ctx.notices.clone()).with_trust(ctx.host.trust.clone());
    let config = vault.config();
    if let Created::New(_) = &created {
        vault.notices().add(trust_new(&vault, &config));
    }
    let hive = config.text(Setting::HiveName);
    Ok(InitOutcome {
        created: match created {
            Created::New(event) => Some(*event),
            Created::Existed => None,
        },
        vault: ctx.vault.clone(),
        hive,
    })
}

/// Adds a new vault to those that the user trusts. Returns what the user should know about its commands.
fn trust_new(vault: &Vault, config: &Config) -> Option<String> {
    let commands = config.commands();
    match vault.make_trusted(config.adopted.as_ref()) {
        Err(error) => Some(format!(
            "cannot note that this vault is trusted, so commands in its settings are not run until hf-config trust: {error}"
        )),
        Ok(_) if commands.is_empty() => None,
        Ok(_) => Some(format!("the settings file names commands, which will be run: {}", commands.join(", "))),
    }
}
