//! hf-decide: requests for decisions, an operator's answers, and what was escalated to an operator.

use serde_json::{Value, json};

use super::authorize::{record_acts, record_approvals};
use super::bound::{BoundLine, covered};
use super::{Context, Recorded};
use crate::base::{EntityType, Error, Result};
use crate::event::Kind;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::policy::Request;
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

/// Decisions to approve.
#[derive(Clone, Debug, Default)]
pub struct ApproveRequest {
    /// The decisions.
    pub references: Vec<String>,
    /// The chosen option.
    pub option: Option<String>,
    /// The reason.
    pub comment: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// What was approved.
#[derive(Debug)]
pub struct ApproveOutcome {
    pub recorded: Recorded,
    /// What the approvals cover, of those that are about a command.
    pub covers: Vec<BoundLine>,
}

/// Approves decisions, all of them or none. An act of an operator.
pub fn approve(ctx: &Context, request: ApproveRequest) -> Result<ApproveOutcome> {
    match (request.references.len(), &request.key) {
        (0, _) => return Err(Error::usage("no decision named")),
        (2.., Some(_)) => return Err(Error::usage("an idempotency key is for one decision")),
        _ => {}
    }
    // Compared before it is recorded: afterwards the command may run.
    let covers = with_view(&ctx.open()?, |log, state| {
        let mut covers = Vec::new();
        for reference in &request.references {
            let decision = state.entity(&state.find(reference, EntityType::Decision)?);
            covers.extend(decision.map(|decision| covered(log, state, &decision)).transpose()?.unwrap_or_default());
        }
        Ok(covers)
    });
    let recorded = record_approvals(ctx, approvals(ctx, &request)).map(with_effect)?;
    // What is wrong with a reference was said by now.
    Ok(ApproveOutcome { recorded, covers: covers.unwrap_or_default() })
}

pub(super) fn approvals(ctx: &Context, request: &ApproveRequest) -> Vec<Request> {
    let ApproveRequest { references, option, comment, key } = request;
    let payload = json!({"chosen_option": option, "rationale": comment});
    let one = |reference: &String| Request {
        key: key.clone(),
        ..ctx.request(Kind::DecisionApproved, Some(reference), payload.clone())
    };
    references.iter().map(one).collect()
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

/// Rejects a decision. An act of an operator.
pub fn reject(ctx: &Context, request: RejectDecisionRequest) -> Result<Recorded> {
    record_acts(ctx, "rejecting", vec![rejection(ctx, &request)]).map(with_effect)
}

pub(super) fn rejection(ctx: &Context, request: &RejectDecisionRequest) -> Request {
    let RejectDecisionRequest { reference, reason, key } = request;
    let request = ctx.request(Kind::DecisionRejected, Some(reference), json!({"rationale": reason}));
    Request { key: key.clone(), ..request }
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
