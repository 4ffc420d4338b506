//! hf-require: what is wanted, analysed, approved by an operator, built and verified.

use serde_json::json;

use super::{Context, Recorded};
use crate::base::{EntityType, Result};
use crate::event::Kind;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;

/// Puts a requirement in.
pub fn propose(ctx: &Context, title: &str, description: Option<String>, key: Option<String>) -> Result<Recorded> {
    let project = super::pause::member(ctx.project.as_ref());
    record_one(
        ctx,
        Kind::RequirementProposed,
        None,
        json!({"title": title, "description": description, "project_id": project}),
        key,
    )
}

/// Records its analysis and thereby asks an operator. An analysis that came before no longer counts.
pub fn analyze(ctx: &Context, reference: &str, analysis: Option<String>, key: Option<String>) -> Result<Recorded> {
    record_one(ctx, Kind::RequirementAnalyzed, Some(reference), json!({"analysis": analysis}), key)
}

/// What was built was checked and holds.
pub fn verify(ctx: &Context, reference: &str, key: Option<String>) -> Result<Recorded> {
    record_one(ctx, Kind::RequirementVerified, Some(reference), json!({}), key)
}

/// Another requirement takes its place.
pub fn supersede(ctx: &Context, reference: &str, by: Option<&str>, key: Option<String>) -> Result<Recorded> {
    let by = by.map(|by| find(ctx, by, EntityType::Requirement)).transpose()?;
    record_one(ctx, Kind::RequirementSuperseded, Some(reference), json!({"by": by}), key)
}

/// An operator gives it up before anybody was asked.
pub fn reject(ctx: &Context, reference: &str, reason: &str, key: Option<String>) -> Result<Recorded> {
    record_one(ctx, Kind::RequirementRejected, Some(reference), json!({"reason": reason}), key)
}

/// The id of what a reference names. Ids never change, so this may be asked before the lock is held.
pub(super) fn find(ctx: &Context, reference: &str, wanted: EntityType) -> Result<String> {
    with_view(&ctx.open()?, |_, state| Ok(state.find(reference, wanted)?.id().to_owned()))
}
