//! hf-require: requirements, which are analyzed, approved by an operator, implemented and verified.

use serde_json::json;

use super::authorize::record_acts;
use super::{Context, Recorded};
use crate::base::{EntityType, Result};
use crate::event::Kind;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::policy::Request;

/// A requirement to propose.
#[derive(Clone, Debug, Default)]
pub struct ProposeRequirementRequest {
    /// A one-line title.
    pub title: String,
    /// A longer description.
    pub description: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Proposes a requirement.
pub fn propose(ctx: &Context, request: ProposeRequirementRequest) -> Result<Recorded> {
    let ProposeRequirementRequest { title, description, key } = request;
    let project = super::pause::project_member(ctx.project.as_ref());
    record_one(
        ctx,
        Kind::RequirementProposed,
        None,
        json!({"title": title, "description": description, "project_id": project}),
        key,
    )
}

/// The analysis of a requirement.
#[derive(Clone, Debug, Default)]
pub struct AnalyzeRequest {
    /// The requirement.
    pub reference: String,
    /// The result of the analysis.
    pub analysis: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records an analysis, which requests an operator's approval. It replaces an earlier analysis.
pub fn analyze(ctx: &Context, request: AnalyzeRequest) -> Result<Recorded> {
    let AnalyzeRequest { reference, analysis, key } = request;
    record_one(ctx, Kind::RequirementAnalyzed, Some(&reference), json!({"analysis": analysis}), key)
}

/// A requirement that was verified.
#[derive(Clone, Debug, Default)]
pub struct VerifyRequirementRequest {
    /// The requirement.
    pub reference: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records that the implementation was verified. An act of an operator.
pub fn verify(ctx: &Context, request: VerifyRequirementRequest) -> Result<Recorded> {
    record_acts(ctx, "verifying a requirement", vec![verification(ctx, &request)])
}

pub(super) fn verification(ctx: &Context, request: &VerifyRequirementRequest) -> Request {
    let VerifyRequirementRequest { reference, key } = request;
    Request { key: key.clone(), ..ctx.request(Kind::RequirementVerified, Some(reference), json!({})) }
}

/// A requirement to supersede.
#[derive(Clone, Debug, Default)]
pub struct SupersedeRequest {
    /// The requirement.
    pub reference: String,
    /// The requirement that replaces it.
    pub by: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Supersedes a requirement. An act of an operator.
pub fn supersede(ctx: &Context, request: SupersedeRequest) -> Result<Recorded> {
    record_acts(ctx, "superseding a requirement", vec![superseding(ctx, &request)?])
}

pub(super) fn superseding(ctx: &Context, request: &SupersedeRequest) -> Result<Request> {
    let SupersedeRequest { reference, by, key } = request;
    let by = by.as_ref().map(|by| find(ctx, by, EntityType::Requirement)).transpose()?;
    let request = ctx.request(Kind::RequirementSuperseded, Some(reference), json!({"by": by}));
    Ok(Request { key: key.clone(), ..request })
}

/// A requirement to reject.
#[derive(Clone, Debug, Default)]
pub struct RejectRequirementRequest {
    /// The requirement.
    pub reference: String,
    /// The reason.
    pub reason: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Rejects a requirement before its approval is requested. An act of an operator.
pub fn reject(ctx: &Context, request: RejectRequirementRequest) -> Result<Recorded> {
    record_acts(ctx, "rejecting a requirement", vec![rejection(ctx, &request)])
}

pub(super) fn rejection(ctx: &Context, request: &RejectRequirementRequest) -> Request {
    let RejectRequirementRequest { reference, reason, key } = request;
    let request = ctx.request(Kind::RequirementRejected, Some(reference), json!({"reason": reason}));
    Request { key: key.clone(), ..request }
}

/// The id of a referenced entity. Ids never change, so no lock is needed.
pub(super) fn find(ctx: &Context, reference: &str, wanted: EntityType) -> Result<String> {
    with_view(&ctx.open()?, |_, state| Ok(state.find(reference, wanted)?.id().to_owned()))
}
