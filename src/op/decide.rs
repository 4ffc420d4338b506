//! hf-decide: the approval gate.

use serde_json::{Value, json};

use super::{Context, Recorded};
use crate::base::Result;
use crate::event::Kind;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::policy::approval::Question;

/// What an operator is to be asked.
#[derive(Clone, Debug)]
pub struct DecisionRequest {
    /// What is asked.
    pub question: Question,
    /// A reference to what it is about.
    pub target: String,
    /// The question, in one line.
    pub summary: String,
    /// What there is to choose from.
    pub options: Vec<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Asks an operator.
pub fn request(ctx: &Context, request: DecisionRequest) -> Result<Recorded> {
    let DecisionRequest { question, target, summary, options, key } = request;
    let target = with_view(&ctx.open()?, |_, state| state.find(&target, question.target()))?;
    let options = if options.is_empty() { Value::Null } else { json!(options) };
    let payload =
        json!({"kind": question.as_str(), "target": target.to_string(), "summary": summary, "options": options});
    record_one(ctx, Kind::DecisionRequested, None, payload, key)
}

/// A decision whose answer is yes.
#[derive(Clone, Debug, Default)]
pub struct ApproveRequest {
    /// The decision.
    pub reference: String,
    /// Which of its options.
    pub option: Option<String>,
    /// Why.
    pub comment: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// The answer is yes. For an operator.
pub fn approve(ctx: &Context, request: ApproveRequest) -> Result<Recorded> {
    ctx.check_operator("approving")?;
    let ApproveRequest { reference, option, comment, key } = request;
    let payload = json!({"chosen_option": option, "rationale": comment});
    record_one(ctx, Kind::DecisionApproved, Some(&reference), payload, key)
}

/// A decision whose answer is no.
#[derive(Clone, Debug, Default)]
pub struct RejectDecisionRequest {
    /// The decision.
    pub reference: String,
    /// Why.
    pub reason: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// The answer is no. For an operator.
pub fn reject(ctx: &Context, request: RejectDecisionRequest) -> Result<Recorded> {
    ctx.check_operator("rejecting")?;
    let RejectDecisionRequest { reference, reason, key } = request;
    record_one(ctx, Kind::DecisionRejected, Some(&reference), json!({"rationale": reason}), key)
}
