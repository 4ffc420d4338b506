//! hf-verify: checks the log, and lets an operator recover from damage.

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::artifact::ArtifactFindings;
use super::authorize::sign_now;
use super::kernel::View;
use super::project::CheckOutcome;
use super::{Context, artifact, project, random_id};
use crate::base::{Error, OperatorKey, Result, Subject, Ulid};
use crate::chain::Head;
use crate::event::Kind;
use crate::policy::audit::{Aspect, Audit, SignatureVerdict};
use crate::policy::rules::Step;
use crate::policy::settings::Regime;
use crate::policy::statement::{EventRef, Statement};
use crate::policy::{Settings, authority};
use crate::state::State;
use crate::vault::{ChainVerdict, HeadVerdict, Log, Method, Position, Progress, Recovery, Scope, Vault, Verified};

/// What to check.
#[derive(Clone, Debug)]
pub struct VerifyRequest {
    /// How to check the hash chain.
    pub method: Method,
    /// Head anchors that the log must contain.
    pub expected_heads: Vec<Head>,
    /// Only from this event on.
    pub since: Option<Ulid>,
    /// Also compare the caches with the events.
    pub projections: bool,
    /// Also replay the log against the rules.
    pub policy: bool,
    /// Also check the content and the manifest of every artifact.
    pub artifacts: bool,
    /// The keys with which operators may have signed, from outside the vault. Replays the log against the rules, too:
    /// what an act allows is as important as the act.
    pub operator_keys: Option<Vec<OperatorKey>>,
}

/// A log with more events is not folded only to count what is due.
const FOLD_MAX_EVENTS: u64 = 100_000;

#[derive(Debug)]
pub struct VerifyOutcome {
    pub verified: Verified,
    /// How the caches compare with the events; none if not checked.
    pub caches: Option<CheckOutcome>,
    /// Events that break the rules; none if not checked.
    pub violations: Option<Vec<String>>,
    /// Operators' signatures; none if not checked.
    pub signatures: Option<SignatureFindings>,
    /// What is wrong with artifacts; none if not checked.
    pub artifacts: Option<ArtifactFindings>,
    /// Which settings are in force; none if the log is damaged or too long.
    pub settings: Option<Regime>,
    /// How much is due and not recorded yet; none if the log is damaged or too long.
    pub due: Option<usize>,
    pub warnings: Vec<String>,
}

/// What was found out about operators' signatures.
#[derive(Debug)]
pub struct SignatureFindings {
    pub verdict: SignatureVerdict,
    /// The newest event that an operator vouched for.
    pub through: Option<EventRef>,
    /// What is wrong, one sentence each.
    pub findings: Vec<String>,
}

impl VerifyOutcome {
    /// Whether all checks passed.
    pub fn passed(&self) -> bool {
        let none = |found: &Option<Vec<String>>| found.as_ref().is_none_or(Vec::is_empty);
        let caches = self.caches.as_ref().is_none_or(|caches| caches.differences.is_empty());
        let intact = |found: &ArtifactFindings| found.contents.is_empty() && found.manifests.is_empty();
        let artifacts = self.artifacts.as_ref().is_none_or(intact);
        let is_unsigned =
            |found: &SignatureFindings| matches!(found.verdict, SignatureVerdict::Missing | SignatureVerdict::Bad);
        let signed = !self.signatures.as_ref().is_some_and(is_unsigned);
        self.verified.passed() && caches && none(&self.violations) && artifacts && signed
    }
}

/// Checks the log, and what else is requested. Reports how far it is to `progress`.
pub fn verify(ctx: &Context, request: VerifyRequest, progress: Progress<'_>) -> Result<VerifyOutcome> {
    let vault = ctx.open()?;
    let warnings = vault.check_log_private().err().map(|e| e.message).into_iter().collect();
    let scope = Scope { method: request.method, anchors: &request.expected_heads, since: request.since };
    let verified = vault.verify(scope, progress)?;
    // On a damaged log the other checks would only report the same damage.
    let good = verified.chain == ChainVerdict::Ok
        && !matches!(verified.head_verdict, HeadVerdict::Ahead | HeadVerdict::Mismatch);
    let caches = (request.projections && good).then(|| project::check_caches(&vault)).transpose()?;
    let is_replayed = (request.policy || request.operator_keys.is_some()) && good;
    let replayed = is_replayed.then(|| replay(&vault, &verified, request.operator_keys)).transpose()?;
    let (violations, signatures) = replayed.unzip();
    let artifacts = (request.artifacts && good).then(|| artifact::check_all(&vault)).transpose()?;
    // A long log without an index is not read once more only for these two.
    let cheap = request.policy || verified.count < FOLD_MAX_EVENTS || vault.has_index();
    let view = (good && cheap).then(|| View::open(ctx, &vault).ok()).flatten();
    let settings = view.as_ref().map(|view| Regime::of(view.recorded()));
    let due = view.as_ref().map(|view| view.due.len());
    Ok(VerifyOutcome { verified, caches, violations, signatures, artifacts, settings, due, warnings })
}

/// Replays the whole log, including what comes after its published head. Returns what breaks the rules, and what was
/// found out about signatures.
fn replay(
    vault: &Vault,
    verified: &Verified,
    listed: Option<Vec<OperatorKey>>,
) -> Result<(Vec<String>, SignatureFindings)> {
    let (mut audit, mut found) = (Audit::default().with_listed(listed), Vec::new());
    let log = vault.verified_log(verified)?;
    log.events(Position::START, &mut |_, event, _| {
        found.extend(audit.check_in(&event, &|id| Log::find(&log, id)));
        Ok(ControlFlow::Continue(()))
    })?;
    let about = |about: Aspect| found.iter().filter(move |one| one.about == about).map(ToString::to_string).collect();
    let (rules, mut findings): (Vec<String>, Vec<String>) = (about(Aspect::Rules), about(Aspect::Signatures));
    let verdict = audit.signatures();
    if verdict == SignatureVerdict::Missing && findings.is_empty() {
        findings.push("the log has no operator keys, although some are listed".to_owned());
    }
    Ok((rules, SignatureFindings { verdict, through: audit.signed_through(), findings }))
}

/// A damaged log to recover.
#[derive(Clone, Debug, Default)]
pub struct RecoverRequest {
    /// Whether the operator confirmed it, with `--yes`. Otherwise nothing is changed.
    pub confirmed: bool,
}

#[derive(Debug)]
pub struct RecoverOutcome {
    pub recovery: Recovery,
    /// Whether it was made, or only looked at.
    pub confirmed: bool,
}

/// Cuts off the log before its first damaged line, keeps the rest in quarantine, and records what is missing; or returns
/// what that would do.
pub fn recover(ctx: &Context, request: RecoverRequest) -> Result<RecoverOutcome> {
    let vault = ctx.open()?;
    let recovery = match request.confirmed {
        false => {
            ctx.check_operator("recovering the log")?;
            vault.preview_recovery()?
        }
        true => {
            let signed = signature_of_recovery(ctx, &vault)?;
            // Only the size of a segment is needed from the settings, so an invalid file does not matter.
            let settings = vault.config();
            vault.recover(ctx.caller.actor.clone(), &random_id()?, &signed, ctx.write_options(&settings))?
        }
    };
    Ok(RecoverOutcome { recovery, confirmed: request.confirmed })
}

/// What a signature adds to the event that records a recovery; nothing in a vault without operator keys.
fn signature_of_recovery(ctx: &Context, vault: &Vault) -> Result<Map<String, Value>> {
    if let Some(given) = &ctx.signing.given {
        return Ok(authority::signed_members(&given.statement, &given.signature, 1));
    }
    ctx.check_operator("recovering the log")?;
    let Some((statement, state)) = planned_recovery(ctx, vault)? else { return Ok(Map::new()) };
    let needed = Settings::recorded(&state).unwrap_or_default().approval_strength();
    let (statement, signature) = sign_now(ctx, statement, &authority::keys(&state), needed)?;
    Ok(authority::signed_members(&statement, &signature, 1))
}

/// The statement that an operator has to sign for a recovery.
pub(super) fn recovery_statement(ctx: &Context, vault: &Vault) -> Result<Statement> {
    let nothing = || Error::usage("nothing to sign: the log is intact, or has no operator keys before the damage");
    planned_recovery(ctx, vault)?.map(|(statement, _)| statement).ok_or_else(nothing)
}

/// The same, with the state before the damage; none if nothing is to be recovered, or to be signed.
fn planned_recovery(ctx: &Context, vault: &Vault) -> Result<Option<(Statement, State)>> {
    let recovery = vault.preview_recovery()?;
    let (Some(loss), Some(head)) = (&recovery.loss, recovery.found) else { return Ok(None) };
    let (log, state) = vault.intact_log(&recovery)?;
    if !state.tally().is_keyed() {
        return Ok(None);
    }
    let find = |id| Log::find(&log, id);
    let payload = loss.payload();
    let actor = &ctx.caller.actor;
    let step = Step { kind: Kind::VaultRecovered, subject: &Subject::SYSTEM, actor, payload: &payload };
    let acts = vec![authority::stated(&state, &step, &find)?];
    let seen = EventRef { id: head.id, hash: head.hash };
    Ok(Some((authority::statement(&state, acts, seen, &find)?, state)))
}
