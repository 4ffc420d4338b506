//! hf-verify: checks the log, and lets an operator recover from damage.

use std::ops::ControlFlow;

use super::artifact::ArtifactFindings;
use super::kernel::View;
use super::project::CheckOutcome;
use super::{Context, artifact, project, random_id};
use crate::base::{Result, Ulid};
use crate::chain::Head;
use crate::policy::audit::Audit;
use crate::policy::settings::Regime;
use crate::vault::{ChainVerdict, HeadVerdict, Method, Position, Progress, Recovery, Scope, Vault, Verified};

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
    /// What is wrong with artifacts; none if not checked.
    pub artifacts: Option<ArtifactFindings>,
    /// Which settings are in force; none if the log is damaged or too long.
    pub settings: Option<Regime>,
    /// How much is due and not recorded yet; none if the log is damaged or too long.
    pub due: Option<usize>,
    pub warnings: Vec<String>,
}

impl VerifyOutcome {
    /// Whether all checks passed.
    pub fn passed(&self) -> bool {
        let none = |found: &Option<Vec<String>>| found.as_ref().is_none_or(Vec::is_empty);
        let caches = self.caches.as_ref().is_none_or(|caches| caches.differences.is_empty());
        let intact = |found: &ArtifactFindings| found.contents.is_empty() && found.manifests.is_empty();
        let artifacts = self.artifacts.as_ref().is_none_or(intact);
        self.verified.passed() && caches && none(&self.violations) && artifacts
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
    let violations = (request.policy && good).then(|| replay(&vault, &verified)).transpose()?;
    let artifacts = (request.artifacts && good).then(|| artifact::check_all(&vault)).transpose()?;
    // A long log without an index is not read once more only for these two.
    let cheap = request.policy || verified.count < FOLD_MAX_EVENTS || vault.has_index();
    let view = (good && cheap).then(|| View::open(ctx, &vault).ok()).flatten();
    let settings = view.as_ref().map(|view| Regime::of(view.recorded()));
    let due = view.as_ref().map(|view| view.due.len());
    Ok(VerifyOutcome { verified, caches, violations, artifacts, settings, due, warnings })
}

/// Replays the whole log, including what comes after its published head.
fn replay(vault: &Vault, verified: &Verified) -> Result<Vec<String>> {
    let (mut audit, mut violations) = (Audit::default(), Vec::new());
    vault.verified_log(verified)?.events(Position::START, &mut |_, event, _| {
        violations.extend(audit.check(&event));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(violations)
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
    ctx.check_operator("recovering the log")?;
    let vault = ctx.open()?;
    let recovery = match request.confirmed {
        false => vault.preview_recovery()?,
        true => {
            // Only the size of a segment is needed from the settings, so an invalid file does not matter.
            let settings = vault.config();
            vault.recover(ctx.caller.actor.clone(), &random_id()?, ctx.write_options(&settings))?
        }
    };
    Ok(RecoverOutcome { recovery, confirmed: request.confirmed })
}
