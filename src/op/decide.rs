//! hf-decide: the approval gate.

use serde_json::{Value, json};

use super::{Context, Recorded};
use crate::base::Result;
use crate::event::Kind;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::policy::approval::Question;

/// What an operator is to be asked.
#[derive(Debug)]
pub struct DecisionRequest {
    pub question: Question,
    /// A reference to what it is about.
    pub target: String,
    pub summary: String,
    pub options: Vec<String>,
}

/// Asks an operator.
pub fn request(ctx: &Context, request: DecisionRequest, key: Option<String>) -> Result<Recorded> {
    let DecisionRequest { question, target, summary, options } = request;
    let target = with_view(&ctx.open()?, |_, state| state.find(&target, question.target()))?;
    let options = if options.is_empty() { Value::Null } else { json!(options) };
    let payload =
        json!({"kind": question.as_str(), "target": target.to_string(), "summary": summary, "options": options});
    record_one(ctx, Kind::DecisionRequested, None, payload, key)
}

/// The answer is yes. For an operator.
pub fn approve(
    ctx: &Context,
    reference: &str,
    option: Option<String>,
    comment: Option<String>,
    key: Option<String>,
) -> Result<Recorded> {
    ctx.check_operator("approving")?;
    let payload = json!({"chosen_option": option, "rationale": comment});
    record_one(ctx, Kind::DecisionApproved, Some(reference), payload, key)
}

/// The answer is no. For an operator.
pub fn reject(ctx: &Context, reference: &str, reason: &str, key: Option<String>) -> Result<Recorded> {
    ctx.check_operator("rejecting")?;
    record_one(ctx, Kind::DecisionRejected, Some(reference), json!({"rationale": reason}), key)
}
