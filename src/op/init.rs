//! hf-init: creates a vault, or finishes creating one after an interruption.

use std::path::PathBuf;

use super::authorize::sign_now;
use super::{Context, Signing, random_id, sign};
use crate::base::Result;
use crate::event::Event;
use crate::event::kind::{ACT, OPERATOR_KEYS};
use crate::policy::authority;
use crate::policy::settings::{Setting, Settings};
use crate::policy::statement::{Statement, StatementRefusal};
use crate::vault::config::{self, Config};
use crate::vault::{Created, FirstEvent, Vault};

#[derive(Debug)]
pub struct InitOutcome {
    /// The first event; none if the vault existed already.
    pub created: Option<Event>,
    pub vault: PathBuf,
    /// The name of the hive.
    pub hive: String,
}

/// A vault to create.
#[derive(Clone, Debug, Default)]
pub struct InitRequest {
    /// The `.pub` files of its operators' keys; the first one signs.
    pub operator_keys: Vec<PathBuf>,
}

/// Creates the vault of the context, or finishes creating it after an interruption.
pub fn init(ctx: &Context, request: InitRequest) -> Result<InitOutcome> {
    let options = ctx.write_options(&Settings::default());
    let first = first_event(ctx, &request.operator_keys)?;
    let (vault, created) = Vault::create(&ctx.vault, ctx.caller.actor.clone(), &first, options)?;
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

/// What the first event has to say. The keys sign themselves and the settings, before anything is created.
fn first_event(ctx: &Context, files: &[PathBuf]) -> Result<FirstEvent> {
    let vault_id = random_id()?;
    if files.is_empty() || Vault::exists(&ctx.vault)? {
        return Ok(FirstEvent { vault_id, ..FirstEvent::default() });
    }
    let keys = files.iter().map(|file| sign::read_key(file)).collect::<Result<Vec<_>>>()?;
    let lines: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let settings = config::of_new_vault(&ctx.vault)?;
    let recorded = settings.to_json();
    let acts = authority::first_acts(&recorded, &lines);
    let statement = Statement::new(&vault_id, None, None, acts).map_err(StatementRefusal::into_error)?;
    let by = ctx.signing.key.clone().unwrap_or_else(|| sign::signing_file(&files[0]));
    let ctx = &ctx.with_signing(Signing { key: Some(by), ..ctx.signing.clone() });
    ctx.check_operator("setting operator keys")?;
    let (statement, signature) = sign_now(ctx, statement, &keys, settings.approval_strength())?;
    let mut members = authority::signed_members(&statement, &signature, 1);
    members.remove(ACT);
    members.insert(OPERATOR_KEYS.to_owned(), lines.into());
    let payload = authority::check_first(&FirstEvent::payload_of(&vault_id, &recorded, &members));
    payload.map(|_| FirstEvent { vault_id, settings: Some(settings), members })
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
