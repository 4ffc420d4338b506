//! hf-verify: the verdicts, and an operator's way out of damage.

use std::ops::ControlFlow;

use super::kernel::View;
use super::{Context, artifact, project, random_id};
use crate::base::{Error, Reason, Result, Ulid};
use crate::chain::Head;
use crate::policy::audit::Audit;
use crate::vault::{ChainVerdict, HeadVerdict, Method, Position, Progress, Recovered, Scope, Vault, Verified};

/// What is to be checked.
#[derive(Clone, Debug)]
pub struct VerifyRequest {
    /// How the chain is checked.
    pub method: Method,
    /// Heads that the log must have had.
    pub expected_heads: Vec<Head>,
    /// Only from this event on.
    pub since: Option<Ulid>,
    /// Also compare the caches with the events.
    pub projections: bool,
    /// Also replay the log against the rules.
    pub policy: bool,
    /// Also read every stored content.
    pub artifacts: bool,
}

/// A log of so many events is folded at once.
const FOLD_MAX_EVENTS: u64 = 100_000;

#[derive(Debug)]
pub struct VerifyOutcome {
    pub verified: Verified,
    /// What the caches say and the events do not; nothing if that was not asked for.
    pub differences: Option<Vec<String>>,
    /// What the rules forbid and the log holds; nothing if that was not asked for.
    pub violations: Option<Vec<String>>,
    /// Contents that are not what was stored; nothing if that was not asked for.
    pub damaged: Option<Vec<String>>,
    /// Whether the log says its settings; nothing if its bytes are not good.
    pub settings: Option<bool>,
    /// How much is due that nobody has recorded yet; nothing if its bytes are not good.
    pub due: Option<usize>,
    pub warnings: Vec<String>,
}

impl VerifyOutcome {
    /// Whether everything that was checked is right.
    pub fn passed(&self) -> bool {
        let none = |found: &Option<Vec<String>>| found.as_ref().is_none_or(Vec::is_empty);
        self.verified.passed() && none(&self.differences) && none(&self.violations) && none(&self.damaged)
    }
}

/// Checks the log, and what else is asked for. `progress` hears how far it is.
pub fn verify(ctx: &Context, request: VerifyRequest, progress: Progress<'_>) -> Result<VerifyOutcome> {
    let vault = ctx.open()?;
    let warnings = vault.check_log_private().err().map(|e| e.message).into_iter().collect();
    let scope = Scope { method: request.method, anchors: &request.expected_heads, since: request.since };
    let verified = vault.verify(scope, progress)?;
    // On a log whose bytes are not good, state and rules would only repeat that.
    let good = verified.chain == ChainVerdict::Ok
        && !matches!(verified.head_verdict, HeadVerdict::Ahead | HeadVerdict::Mismatch);
    let differences =
        (request.projections && good).then(|| project::check_caches(&vault)).transpose()?.map(|c| c.differences);
    let violations = (request.policy && good).then(|| replay(&vault)).transpose()?;
    let damaged = (request.artifacts && good).then(|| artifact::damaged_contents(&vault)).transpose()?;
    // A log that cannot be folded says nothing of either; one that is long is not read once more for them.
    let cheap = request.policy || verified.count < FOLD_MAX_EVENTS || vault.has_index();
    let view = (good && cheap).then(|| View::open(ctx, &vault).ok()).flatten();
    let settings = view.as_ref().map(|view| view.recorded_settings().is_some());
    let due = view.as_ref().map(|view| view.due.len());
    Ok(VerifyOutcome { verified, differences, violations, damaged, settings, due, warnings })
}

fn replay(vault: &Vault) -> Result<Vec<String>> {
    let (mut audit, mut violations) = (Audit::default(), Vec::new());
    vault.snapshot()?.events(Position::START, &mut |_, event, _| {
        violations.extend(audit.take(&event));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(violations)
}

pub type RecoverOutcome = Recovered;

/// A damaged log that is to be cut.
#[derive(Clone, Debug, Default)]
pub struct RecoverRequest {
    /// The operator's `--yes`.
    pub confirmed: bool,
}

/// Cuts off a damaged suffix.
pub fn recover(ctx: &Context, request: RecoverRequest) -> Result<RecoverOutcome> {
    ctx.check_operator("cutting off a damaged part of the log")?;
    if !request.confirmed {
        return Err(Error::refused(
            Reason::NotConfirmed,
            "recovering moves everything from the first bad line on to quarantine; an operator confirms that with --yes",
        ));
    }
    let vault = ctx.open()?;
    // The settings only say how large a segment may get; a broken file must not stand in the way here.
    let settings = vault.config_file().map(|(config, _)| config.settings).unwrap_or_default();
    let options = ctx.write_options(&settings);
    vault.recover(ctx.caller.actor.clone(), &random_id()?, options)
}
