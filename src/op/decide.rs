//! hf-decide: the approval gate.

use serde_json::{Value, json};

use super::{AppendOutcome, Env, project, record_one};
use crate::base::Result;
use crate::event::Kind;
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
pub fn request(env: &Env, request: DecisionRequest, key: Option<String>) -> Result<AppendOutcome> {
    let DecisionRequest { question, target, summary, options } = request;
    let target = project::with_view(&env.open()?, |_, state| state.find(&target, question.target()))?;
    let options = if options.is_empty() { Value::Null } else { json!(options) };
    let payload =
        json!({"kind": question.as_str(), "target": target.to_string(), "summary": summary, "options": options});
    record_one(env, Kind::DecisionRequested, None, payload, key)
}

/// The answer is yes. For an operator.
pub fn approve(
    env: &Env,
    reference: &str,
    option: Option<String>,
    comment: Option<String>,
    key: Option<String>,
) -> Result<AppendOutcome> {
    env.check_operator("approving")?;
    let payload = json!({"chosen_option": option, "rationale": comment});
    record_one(env, Kind::DecisionApproved, Some(reference), payload, key)
}

/// The answer is no. For an operator.
pub fn reject(env: &Env, reference: &str, reason: &str, key: Option<String>) -> Result<AppendOutcome> {
    env.check_operator("rejecting")?;
    record_one(env, Kind::DecisionRejected, Some(reference), json!({"rationale": reason}), key)
}
