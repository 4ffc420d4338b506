//! hf-key: the keys with which operators sign.

use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::authorize::authorize_draft;
use super::kernel::{Transaction, with_view};
use super::{Context, Signing, sign};
use crate::base::{Error, Fingerprint, OperatorKey, Result, Strength, Subject, Ulid};
use crate::chain::Head;
use crate::event::kind::{COMPROMISED, OPERATOR_KEY, SETTINGS};
use crate::event::{Draft, Kind};
use crate::policy::Settings;
use crate::policy::authority;
use crate::policy::statement::Act;
use crate::state::State;

/// A key to add.
#[derive(Clone, Debug)]
pub struct AddKeyRequest {
    /// The key.
    pub key: OperatorKey,
    /// Its `.pub` file.
    pub file: PathBuf,
}

/// A key to remove.
#[derive(Clone, Debug)]
pub struct RemoveKeyRequest {
    /// Its fingerprint.
    pub key: Fingerprint,
    /// Whether somebody else may have it.
    pub compromised: bool,
}

/// The keys of a vault after a change.
#[derive(Debug)]
pub struct KeyOutcome {
    /// The key that was added or removed.
    pub key: OperatorKey,
    pub kind: Kind,
    /// The event.
    pub event: Ulid,
    pub keys: Vec<OperatorKey>,
    /// Whether it is the first key of the vault.
    pub is_first: bool,
    /// What a compromised key has signed, newest last.
    pub acts: Vec<SignedAct>,
    /// The head of the log, to be kept elsewhere.
    pub anchor: Option<Head>,
    pub warnings: Vec<String>,
}

/// Something that a key has signed.
#[derive(Debug)]
pub struct SignedAct {
    pub event: Ulid,
    pub act: Option<Act>,
    pub subject: String,
}

/// The keys of a vault.
#[derive(Debug)]
pub struct KeysOutcome {
    pub keys: Vec<OperatorKey>,
    /// What a signature must prove.
    pub strength: Strength,
}

/// Returns the keys in force.
pub fn list(ctx: &Context) -> Result<KeysOutcome> {
    with_view(&ctx.open()?, |_, state| {
        let strength = Settings::recorded(state).unwrap_or_default().approval_strength();
        Ok(KeysOutcome { keys: authority::keys(state), strength })
    })
}

/// Adds a key. The first key signs itself, and makes the vault strict.
pub fn add(ctx: &Context, request: AddKeyRequest) -> Result<KeyOutcome> {
    let is_keyed = with_view(&ctx.open()?, |_, state| Ok(state.tally().is_keyed()))?;
    let own = || sign::signing_file(&request.file);
    let key = ctx.signing.key.clone().or_else(|| (!is_keyed).then(own));
    let ctx = &ctx.with_signing(Signing { key, ..ctx.signing.clone() });
    change(ctx, "adding an operator key", request.key.clone(), &|tx| plan_addition(ctx, tx, &request))
}

/// Removes a key. What it signed before stays valid.
pub fn remove(ctx: &Context, request: RemoveKeyRequest) -> Result<KeyOutcome> {
    let vault = ctx.open()?;
    let key = with_view(&vault, |_, state| find(state, request.key))?;
    let mut done = change(ctx, "removing an operator key", key, &|tx| plan_removal(ctx, tx, &request))?;
    if request.compromised {
        done.acts = signed_by(ctx, request.key)?;
        done.anchor = with_view(&vault, |log, _| Ok(log.head()))?;
    }
    Ok(done)
}

/// The event that adds a key.
pub(super) fn plan_addition(ctx: &Context, tx: &Transaction<'_>, request: &AddKeyRequest) -> Result<Option<Draft>> {
    let mut payload = json!({OPERATOR_KEY: request.key.to_string()});
    if !tx.state().tally().is_keyed() {
        payload[SETTINGS] = tx.state().settings().unwrap_or_default();
    }
    let is_known = authority::keys(tx.state()).iter().any(|known| known.is_same_key(&request.key));
    Ok((!is_known).then(|| draft(ctx, tx, Kind::OperatorKeyAdded, payload)))
}

/// The event that removes a key.
pub(super) fn plan_removal(ctx: &Context, tx: &Transaction<'_>, request: &RemoveKeyRequest) -> Result<Option<Draft>> {
    let key = find(tx.state(), request.key)?;
    let mut payload = json!({OPERATOR_KEY: key.to_string()});
    if request.compromised {
        payload[COMPROMISED] = true.into();
    }
    Ok(Some(draft(ctx, tx, Kind::OperatorKeyRemoved, payload)))
}

fn find(state: &State, key: Fingerprint) -> Result<OperatorKey> {
    let mut keys = authority::keys(state).into_iter();
    let missing = || Error::not_found(format!("{key} is not an operator key of this vault"));
    keys.find(|known| known.fingerprint() == key).ok_or_else(missing)
}

fn draft(ctx: &Context, tx: &Transaction<'_>, kind: Kind, payload: Value) -> Draft {
    let parents = tx.state().tally().authority.into_iter().collect();
    let payload = payload.as_object().cloned().unwrap_or_default();
    Draft { kind, subject: Subject::SYSTEM, actor: ctx.caller.actor.clone(), parents, key: None, payload }
}

fn change(
    ctx: &Context,
    what: &str,
    key: OperatorKey,
    plan: &dyn Fn(&Transaction<'_>) -> Result<Option<Draft>>,
) -> Result<KeyOutcome> {
    let vault = ctx.open()?;
    let members = authorize_draft(ctx, what, &vault, true, plan)?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let is_first = !tx.state().tally().is_keyed();
    let already = || Error::usage(format!("{} is an operator key of this vault already", key.fingerprint()));
    let mut draft = plan(&tx)?.ok_or_else(already)?;
    draft.payload.extend(members);
    let kind = draft.kind;
    tx.add(draft)?;
    let event = tx.batch().events().last().map(|event| event.id).unwrap_or_default();
    let keys = authority::keys(tx.state());
    let settings = tx.state().settings().unwrap_or_default();
    let mut warnings = tx.commit(event)?.warnings;
    if is_first {
        // A vault with adopted settings runs the commands in them only if these settings are trusted.
        warnings.extend(super::config::trust_adopted(&vault, &Settings::from_json(&settings)));
    }
    Ok(KeyOutcome { key, kind, event, keys, is_first, acts: Vec::new(), anchor: None, warnings })
}

/// Everything that a key has signed.
fn signed_by(ctx: &Context, key: Fingerprint) -> Result<Vec<SignedAct>> {
    let vault = ctx.open()?;
    with_view(&vault, |log, _| {
        let mut acts = Vec::new();
        let key = key.to_string();
        log.read_from(Ulid::nil(), &mut |event| {
            let by = event.payload.get(crate::event::kind::SIGNED_BY).and_then(Value::as_str);
            if by == Some(&key) {
                let act = event.event_type.known().and_then(Act::of_kind);
                acts.push(SignedAct { event: event.id, act, subject: event.subject });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(acts)
    })
}
