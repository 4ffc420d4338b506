//! hf-require: what is wanted, analysed, approved by an operator, built and verified.

use serde_json::json;

use super::{Context, Recorded};
use crate::base::{EntityType, Result};
use crate::event::Kind;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;

/// Something that somebody wants.
#[derive(Clone, Debug, Default)]
pub struct ProposeRequirementRequest {
    /// What is wanted, in one line.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Puts a requirement in.
pub fn propose(ctx: &Context, request: ProposeRequirementRequest) -> Result<Recorded> {
    let ProposeRequirementRequest { title, description, key } = request;
    let project = super::pause::member(ctx.project.as_ref());
    record_one(
        ctx,
        Kind::RequirementProposed,
        None,
        json!({"title": title, "description": description, "project_id": project}),
        key,
    )
}

/// A requirement that was analysed.
#[derive(Clone, Debug, Default)]
pub struct AnalyzeRequest {
    /// The requirement.
    pub reference: String,
    /// What the analysis found.
    pub analysis: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records its analysis and thereby asks an operator. An analysis that came before no longer counts.
pub fn analyze(ctx: &Context, request: AnalyzeRequest) -> Result<Recorded> {
    let AnalyzeRequest { reference, analysis, key } = request;
    record_one(ctx, Kind::RequirementAnalyzed, Some(&reference), json!({"analysis": analysis}), key)
}

/// A requirement whose work was checked.
#[derive(Clone, Debug, Default)]
pub struct VerifyRequirementRequest {
    /// The requirement.
    pub reference: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// What was built was checked and holds.
pub fn verify(ctx: &Context, request: VerifyRequirementRequest) -> Result<Recorded> {
    record_one(ctx, Kind::RequirementVerified, Some(&request.reference), json!({}), request.key)
}

/// A requirement that no longer counts.
#[derive(Clone, Debug, Default)]
pub struct SupersedeRequest {
    /// The requirement.
    pub reference: String,
    /// A reference to the one that takes its place.
    pub by: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Another requirement takes its place.
pub fn supersede(ctx: &Context, request: SupersedeRequest) -> Result<Recorded> {
    let SupersedeRequest { reference, by, key } = request;
    let by = by.map(|by| find(ctx, &by, EntityType::Requirement)).transpose()?;
    record_one(ctx, Kind::RequirementSuperseded, Some(&reference), json!({"by": by}), key)
}

/// A requirement that is given up.
#[derive(Clone, Debug, Default)]
pub struct RejectRequirementRequest {
    /// The requirement.
    pub reference: String,
    /// Why.
    pub reason: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// An operator gives it up before anybody was asked.
pub fn reject(ctx: &Context, request: RejectRequirementRequest) -> Result<Recorded> {
    let RejectRequirementRequest { reference, reason, key } = request;
    record_one(ctx, Kind::RequirementRejected, Some(&reference), json!({"reason": reason}), key)
}

/// The id of what a reference names. Ids never change, so this may be asked before the lock is held.
pub(super) fn find(ctx: &Context, reference: &str, wanted: EntityType) -> Result<String> {
    with_view(&ctx.open()?, |_, state| Ok(state.find(reference, wanted)?.id().to_owned()))
}
