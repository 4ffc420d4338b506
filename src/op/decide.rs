//! hf-decide: requests for decisions, an operator's answers, and what was escalated to an operator.

use serde_json::{Value, json};

use super::{Context, Recorded};
use crate::base::Result;
use crate::event::Kind;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::policy::approval::Question;

/// A decision to request.
#[derive(Clone, Debug)]
pub struct DecisionRequest {
    /// The kind of question.
    pub question: Question,
    /// What it is about.
    pub target: String,
    /// The question, in one line.
    pub summary: String,
    /// The options to choose from.
    pub options: Vec<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Requests a decision by an operator.
pub fn request(ctx: &Context, request: DecisionRequest) -> Result<Recorded> {
    let DecisionRequest { question, target, summary, options, key } = request;
    let target = with_view(&ctx.open()?, |_, state| state.find(&target, question.target()))?;
    let options = if options.is_empty() { Value::Null } else { json!(options) };
    let payload =
        json!({"kind": question.as_str(), "target": target.to_string(), "summary": summary, "options": options});
    record_one(ctx, Kind::DecisionRequested, None, payload, key)
}

/// A decision to approve.
#[derive(Clone, Debug, Default)]
pub struct ApproveRequest {
    /// The decision.
    pub reference: String,
    /// The chosen option.
    pub option: Option<String>,
    /// The reason.
    pub comment: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Approves a decision. For an operator.
pub fn approve(ctx: &Context, request: ApproveRequest) -> Result<Recorded> {
    ctx.check_operator("approving")?;
    let ApproveRequest { reference, option, comment, key } = request;
    let payload = json!({"chosen_option": option, "rationale": comment});
    let recorded = record_one(ctx, Kind::DecisionApproved, Some(&reference), payload, key)?;
    Ok(with_effect(recorded))
}

/// Warns that an answer has no consequences, if it has none.
fn with_effect(mut recorded: Recorded) -> Recorded {
    if let Some(by) = recorded.entity.as_ref().and_then(|decision| decision.questioner()) {
        recorded.warnings.push(format!("{by} asked this, not the toolkit: the answer is recorded, and opens no gate"));
    }
    recorded
}

/// A decision to reject.
#[derive(Clone, Debug, Default)]
pub struct RejectDecisionRequest {
    /// The decision.
    pub reference: String,
    /// The reason.
    pub reason: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Rejects a decision. For an operator.
pub fn reject(ctx: &Context, request: RejectDecisionRequest) -> Result<Recorded> {
    ctx.check_operator("rejecting")?;
    let RejectDecisionRequest { reference, reason, key } = request;
    let recorded = record_one(ctx, Kind::DecisionRejected, Some(&reference), json!({"rationale": reason}), key)?;
    Ok(with_effect(recorded))
}

/// An escalation to acknowledge.
#[derive(Clone, Debug, Default)]
pub struct AcknowledgeRequest {
    /// The escalation.
    pub reference: String,
    /// What the operator makes of it.
    pub reason: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Acknowledges an escalation, which then needs nobody any more. For an operator.
pub fn acknowledge(ctx: &Context, request: AcknowledgeRequest) -> Result<Recorded> {
    ctx.check_operator("acknowledging an escalation")?;
    let AcknowledgeRequest { reference, reason, key } = request;
    record_one(ctx, Kind::EscalationAcknowledged, Some(&reference), json!({"reason": reason}), key)
}
