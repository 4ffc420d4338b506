//! hf-require: what is wanted, analysed, approved by an operator, built and verified.

use serde_json::json;

use super::{AppendOutcome, Env, project, record_one};
use crate::base::{EntityType, Result};
use crate::event::Kind;

/// Puts a requirement in.
pub fn propose(env: &Env, title: &str, description: Option<String>, key: Option<String>) -> Result<AppendOutcome> {
    let project = super::pause::member(env.project.as_ref());
    record_one(
        env,
        Kind::RequirementProposed,
        None,
        json!({"title": title, "description": description, "project_id": project}),
        key,
    )
}

/// Records its analysis and thereby asks an operator. An analysis that came before no longer counts.
pub fn analyze(env: &Env, reference: &str, analysis: Option<String>, key: Option<String>) -> Result<AppendOutcome> {
    record_one(env, Kind::RequirementAnalyzed, Some(reference), json!({"analysis": analysis}), key)
}

/// What was built was checked and holds.
pub fn verify(env: &Env, reference: &str, key: Option<String>) -> Result<AppendOutcome> {
    record_one(env, Kind::RequirementVerified, Some(reference), json!({}), key)
}

/// Another requirement takes its place.
pub fn supersede(env: &Env, reference: &str, by: Option<&str>, key: Option<String>) -> Result<AppendOutcome> {
    let by = by.map(|by| find(env, by, EntityType::Requirement)).transpose()?;
    record_one(env, Kind::RequirementSuperseded, Some(reference), json!({"by": by}), key)
}

/// An operator gives it up before anybody was asked.
pub fn reject(env: &Env, reference: &str, reason: &str, key: Option<String>) -> Result<AppendOutcome> {
    record_one(env, Kind::RequirementRejected, Some(reference), json!({"reason": reason}), key)
}

/// The id of what a reference names. Ids never change, so this may be asked before the lock is held.
pub(super) fn find(env: &Env, reference: &str, wanted: EntityType) -> Result<String> {
    project::with_view(&env.open()?, |_, state| Ok(state.find(reference, wanted)?.id().to_owned()))
}
