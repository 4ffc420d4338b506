//! What may be asked of an operator, and what an approval allows.

use serde_json::{Map, Value};

use super::Step;
use super::ends::is_over;
use crate::base::{Error, Reason, Result, Subject};
use crate::machine;
use crate::policy::approval::{self, ConstraintChange, Question};
use crate::state::{Entity, State};

/// Refuses a question that an operator could take for another one: an option that means no, and a change of a constraint
/// in other words than its own.
pub(super) fn question_is_plain(state: &State, step: &Step<'_>, question: Question) -> Result<()> {
    if !state.tally().has_settings() {
        return Ok(());
    }
    let options = step.payload.get("options").and_then(Value::as_array).into_iter().flatten();
    if let Some(no) = options.filter_map(Value::as_str).find(|option| approval::means_no(option)) {
        let no = crate::base::text::cut(no, 40);
        let why =
            format!("option '{no}' means no, but approving chooses one; hf-decide reject is how an operator says no");
        return Err(Error::usage(why));
    }
    match question {
        Question::Constraint => change_is_plain(state, step),
        Question::Requirement | Question::Destructive => Ok(()),
    }
}

/// Refuses a change of a constraint that does more than its words say.
fn change_is_plain(state: &State, step: &Step<'_>) -> Result<()> {
    let question = Question::Constraint;
    if step.payload.contains_key("options") {
        return Err(Error::usage(format!("{question} takes no options")));
    }
    let (change, members) =
        approval::change(step.payload.get("change")).unwrap_or((ConstraintChange::Apply, Map::new()));
    let allowed: &[&str] = match change {
        ConstraintChange::Apply => &["text", "priority"],
        ConstraintChange::Remove => &[],
    };
    if let Some(other) = members.keys().find(|member| !allowed.contains(&member.as_str())) {
        return Err(Error::usage(format!("unknown member '{}' of payload.change", crate::base::text::cut(other, 40))));
    }
    let first = members.get("priority").and_then(Value::as_str).and_then(|first| Subject::parse(first).ok());
    if let Some(first) = first.filter(|first| state.entity(first).is_none()) {
        return Err(Error::not_found(format!("payload.change names {first}, which does not exist")));
    }
    match approval::change_in_words(state, step.payload) {
        Some(words) if step.text("summary") == Some(&words) => Ok(()),
        Some(words) => Err(Error::usage(format!("the summary of {question} must state the change: {words}"))),
        None => Err(Error::not_found("the constraint to lift does not exist")),
    }
}

/// Refuses a question whose answer would have no effect.
pub(super) fn can_be_decided(state: &State, step: &Step<'_>, question: Question, target: &Subject) -> Result<()> {
    use machine::Phase::{Absent, Active, Proposed};
    let change = approval::change(step.payload.get("change")).map(|(change, _)| change);
    let phase = state.phase_of(target);
    let is_open = match question {
        // A question may be asked before the analysis, which asks again.
        Question::Requirement => !is_over(phase),
        Question::Destructive => phase == Proposed,
        // Version 0.1 did not compare the change with the constraint.
        Question::Constraint if !state.tally().has_settings() => matches!(phase, Absent | Active),
        Question::Constraint if change == Some(ConstraintChange::Remove) => phase == Active,
        Question::Constraint => phase == Absent,
    };
    match is_open {
        true => Ok(()),
        false => {
            let why = format!("{target} is {phase}; there is nothing to decide ({question})");
            Err(Error::refused(Reason::NotReady, why))
        }
    }
}

/// Refuses a step whose target has no valid approval.
pub(super) fn require_approval(state: &State, question: Question, target: &Subject) -> Result<()> {
    match approval::approved(state, question, target) {
        Some(_) => Ok(()),
        None => Err(not_approved(state, question, target)),
    }
}

fn not_approved(state: &State, question: Question, target: &Subject) -> Error {
    let name = state.entity(target).map_or_else(|| target.to_string(), |entity| entity.name());
    Error::refused(Reason::ApprovalRequired, format!("{name} requires approval by an operator ({question})"))
}

pub(super) fn require_approval_if_destructive(state: &State, task: &Subject) -> Result<()> {
    let destructive = state.entity(task).is_some_and(|t| t.as_task().is_destructive());
    if destructive { require_approval(state, Question::Destructive, task) } else { Ok(()) }
}

/// A change to a constraint must be exactly the one that was approved.
pub(super) fn require_approved_change(state: &State, step: &Step<'_>, wanted: ConstraintChange) -> Result<()> {
    let approvals = approval::decisions(state, Question::Constraint, step.subject, &[machine::Phase::Approved]);
    let mut members = step.payload.clone();
    members.remove("decision_id");
    let same = |decision: &Entity| approval::change(decision.as_decision().change()) == Some((wanted, members.clone()));
    match approvals.iter().any(same) {
        true => Ok(()),
        false => Err(not_approved(state, Question::Constraint, step.subject)),
    }
}
