//! Acts of operators. In a vault with operator keys each one is signed, either here, by the operator who calls, or
//! elsewhere, and carried in by anybody; in any other vault the caller must be an operator.

use serde_json::{Map, Value};

use super::kernel::{Transaction, record_all};
use super::require::{RejectRequirementRequest, SupersedeRequest, VerifyRequirementRequest};
use super::sign::{self, SignRequest};
use super::{Context, Recorded, config, decide, key, pause, require, stop, verify};
use crate::base::{Error, OperatorKey, Reason, Result, Signature};
use crate::event::Draft;
use crate::op::decide::{ApproveRequest, RejectDecisionRequest};
use crate::op::kernel::with_view;
use crate::op::key::{AddKeyRequest, RemoveKeyRequest};
use crate::op::pause::{ArchiveRequest, ResumeProjectRequest};
use crate::op::stop::ResumeSystemRequest;
use crate::policy::statement::Statement;
use crate::policy::{Request, authority};
use crate::vault::Vault;

/// What an operator would do.
#[derive(Clone, Debug)]
pub enum ActRequest {
    Approve(ApproveRequest),
    Reject(RejectDecisionRequest),
    Verify(VerifyRequirementRequest),
    Supersede(SupersedeRequest),
    RejectRequirement(RejectRequirementRequest),
    LiftStop(ResumeSystemRequest),
    ResumeProject(ResumeProjectRequest),
    ArchiveProject(ArchiveRequest),
    AdoptSettings,
    AddKey(AddKeyRequest),
    RemoveKey(RemoveKeyRequest),
    Recover,
}

/// A statement to be signed.
#[derive(Clone, Debug)]
pub struct StatementOutcome {
    pub statement: Statement,
}

/// Returns the statement that an operator has to sign for an act. Changes nothing.
pub fn statement(ctx: &Context, request: ActRequest) -> Result<StatementOutcome> {
    planned(ctx, request).map(|statement| StatementOutcome { statement })
}

fn planned(ctx: &Context, request: ActRequest) -> Result<Statement> {
    let vault = ctx.open()?;
    let acts = match request {
        ActRequest::Approve(request) => decide::approvals(ctx, &request),
        ActRequest::Reject(request) => vec![decide::rejection(ctx, &request)],
        ActRequest::Verify(request) => vec![require::verification(ctx, &request)],
        ActRequest::Supersede(request) => vec![require::superseding(ctx, &request)?],
        ActRequest::RejectRequirement(request) => vec![require::rejection(ctx, &request)],
        ActRequest::LiftStop(request) => vec![stop::resuming(ctx, &request)],
        ActRequest::ResumeProject(request) => vec![pause::resuming(ctx, &request)],
        ActRequest::ArchiveProject(request) => vec![pause::archiving(ctx, &request)],
        ActRequest::AdoptSettings => return plan_draft(ctx, &vault, &|tx| config::plan_adoption(ctx, &vault, tx)),
        ActRequest::AddKey(request) => return plan_draft(ctx, &vault, &|tx| key::plan_addition(ctx, tx, &request)),
        ActRequest::RemoveKey(request) => return plan_draft(ctx, &vault, &|tx| key::plan_removal(ctx, tx, &request)),
        ActRequest::Recover => return verify::recovery_statement(ctx, &vault),
    };
    check_keyed(&vault)?;
    plan(ctx, &vault, acts)?.ok_or_else(in_effect)
}

fn in_effect() -> Error {
    Error::refused(Reason::IllegalTransition, "this is in effect already; there is nothing to sign")
}

/// Refuses a statement that nobody needs.
fn check_keyed(vault: &Vault) -> Result<()> {
    match with_view(vault, |_, state| Ok(state.tally().is_keyed()))? {
        true => Ok(()),
        false => Err(Error::usage("this vault has no operator keys, so nothing is signed; see hf-key(1)")),
    }
}

/// Records acts of an operator in one batch. `what` is the action, such as "approving".
pub(super) fn record_acts(ctx: &Context, what: &str, acts: Vec<Request>) -> Result<Recorded> {
    record_all(ctx, authorize(ctx, what, acts)?)
}

/// Records approvals in one batch. Where a person can be asked, they see what they approve first.
pub(super) fn record_approvals(ctx: &Context, acts: Vec<Request>) -> Result<Recorded> {
    let vault = ctx.open()?;
    let is_signed = with_view(&vault, |_, state| Ok(state.tally().is_keyed()))?;
    if let Some(confirm) = ctx.signing.confirm_approval.filter(|_| !is_signed && ctx.caller.is_operator())
        && let Some(statement) = plan(ctx, &vault, acts.clone())?
    {
        confirm(&statement)?;
    }
    record_acts(ctx, "approving", acts)
}

/// These requests with a signature, where one is needed.
pub(super) fn authorize(ctx: &Context, what: &str, mut acts: Vec<Request>) -> Result<Vec<Request>> {
    let vault = ctx.open()?;
    if !with_view(&vault, |_, state| Ok(state.tally().is_keyed()))? {
        ctx.check_operator(what)?;
        return Ok(acts);
    }
    let plan = || plan(ctx, &vault, acts.clone());
    let Some((statement, signature)) = signed(ctx, &vault, what, &plan)? else { return Ok(acts) };
    for (n, request) in acts.iter_mut().enumerate() {
        request.payload.extend(authority::signed_members(&statement, &signature, n + 1));
    }
    Ok(acts)
}

/// The members that a signature adds to an event that the toolkit itself requests; none where no signature is needed.
pub(super) fn authorize_draft(
    ctx: &Context,
    what: &str,
    vault: &Vault,
    is_signed: bool,
    draft: &dyn Fn(&Transaction<'_>) -> Result<Option<Draft>>,
) -> Result<Map<String, Value>> {
    if !is_signed {
        ctx.check_operator(what)?;
        return Ok(Map::new());
    }
    let plan = || plan_draft(ctx, vault, draft).map(Some);
    let signed = signed(ctx, vault, what, &plan)?;
    Ok(signed.map(|(statement, signature)| authority::signed_members(&statement, &signature, 1)).unwrap_or_default())
}

/// A statement and its signature: the given ones, or made now. None if there is nothing to sign.
fn signed(
    ctx: &Context,
    vault: &Vault,
    what: &str,
    plan: &dyn Fn() -> Result<Option<Statement>>,
) -> Result<Option<(Statement, Signature)>> {
    if let Some(given) = &ctx.signing.given {
        return Ok(Some((given.statement.clone(), given.signature.clone())));
    }
    ctx.check_operator(what)?;
    // What is in the way of every command is recorded first: a stop that has only its flag could not be named.
    drop(Transaction::begin(ctx, vault)?);
    let Some(statement) = plan()? else { return Ok(None) };
    let (keys, needed) = with_view(vault, |_, state| {
        let settings = crate::policy::Settings::recorded(state).unwrap_or_default();
        Ok((authority::keys(state), settings.approval_strength()))
    })?;
    sign_now(ctx, statement, &keys, needed).map(Some)
}

/// Shows a statement and signs it with one of these keys.
pub(super) fn sign_now(
    ctx: &Context,
    statement: Statement,
    keys: &[OperatorKey],
    needed: crate::base::Strength,
) -> Result<(Statement, Signature)> {
    (ctx.signing.confirm)(&statement)?;
    let key = ctx.signing.key.clone().or_else(|| ctx.host.operator_key.clone());
    let key = key.or_else(|| sign::own_key(ctx.host.ssh_dir.as_deref()?, keys, needed));
    let signed = sign::sign(ctx, SignRequest { statement, key, prompts: ctx.signing.prompts })?;
    Ok((signed.statement, signed.signature))
}

/// The statement for requests as they would be decided now; none if all of them are in effect already.
fn plan(ctx: &Context, vault: &Vault, acts: Vec<Request>) -> Result<Option<Statement>> {
    let mut tx = Transaction::dry_run(ctx, vault)?;
    if tx.all_repeated(&acts.iter().collect::<Vec<_>>(), &|_| None)?.is_some() {
        return Ok(None);
    }
    let before = tx.state().clone();
    let mut stated = Vec::new();
    for act in acts {
        stated.extend(tx.plan(act)?);
    }
    if stated.is_empty() {
        return Ok(None);
    }
    tx.statement(&before, stated).map(Some)
}

/// The statement for an event that the toolkit itself requests.
fn plan_draft(
    ctx: &Context,
    vault: &Vault,
    draft: &dyn Fn(&Transaction<'_>) -> Result<Option<Draft>>,
) -> Result<Statement> {
    let mut tx = Transaction::dry_run(ctx, vault)?;
    let before = tx.state().clone();
    let draft = draft(&tx)?.ok_or_else(in_effect)?;
    let stated = tx.plan_draft(draft)?;
    tx.statement(&before, vec![stated])
}
