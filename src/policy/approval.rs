//! Approvals: what each kind of decision is about, and whether an approval is still valid.
//!
//! Invariant: an approval is valid only for its target exactly as it was when the decision was requested
//! (`an_approval_does_not_cover_later_changes`).

use serde_json::{Map, Value};

use super::authority::Find;
use super::command::{self, RecordedCommand};
use super::statement::Bound;
use crate::base::{Actor, Digest, EntityType, Error, Result, Subject, Ulid, limits, names};
use crate::event::Kind;
use crate::machine;
use crate::state::{Entity, State};

names! {
    /// What an operator can be asked to approve.
    pub enum Question {
        Requirement = "requirement_approval",
        Destructive = "destructive_operation",
        Constraint = "constraint_change",
    }
}

names! {
    /// A change of a constraint.
    pub enum ConstraintChange {
        Apply = "apply",
        Remove = "remove",
    }
}

impl ConstraintChange {
    /// The event that makes this change.
    pub const fn kind(self) -> Kind {
        match self {
            ConstraintChange::Apply => Kind::ConstraintApplied,
            ConstraintChange::Remove => Kind::ConstraintRemoved,
        }
    }
}

impl Question {
    /// The type of its target.
    pub const fn target(self) -> EntityType {
        match self {
            Question::Requirement => EntityType::Requirement,
            Question::Destructive => EntityType::Task,
            Question::Constraint => EntityType::Constraint,
        }
    }

    /// The question of a recorded decision.
    pub fn of_decision(decision: &Entity) -> Option<Self> {
        Question::parse(decision.as_decision().kind()?)
    }
}

/// Reads the question and the target of a requested decision. Refuses an invalid request.
pub fn read(payload: &Map<String, Value>) -> Result<(Question, Subject)> {
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let question =
        Question::parse(text("kind")).ok_or_else(|| Error::usage("payload.kind must name a kind of decision"))?;
    let target = Subject::parse(text("target"))?;
    if target.entity != question.target() {
        return Err(Error::usage(format!(
            "the target of {question} must be {}, not {target}",
            question.target().with_article()
        )));
    }
    if question == Question::Constraint {
        let wrong = || Error::usage("constraint_change requires payload.change: {\"do\":\"apply\" or \"remove\", …}");
        let (change, members) = change(payload.get("change")).ok_or_else(wrong)?;
        // The change is recorded exactly as it was approved, so it must be valid.
        change.kind().check_payload(&members)?;
    }
    Ok((question, target))
}

/// The change that a constraint_change requests.
pub fn change(value: Option<&Value>) -> Option<(ConstraintChange, Map<String, Value>)> {
    let mut members = value?.as_object()?.clone();
    let change = ConstraintChange::parse(members.remove("do")?.as_str()?)?;
    Some((change, members))
}

/// The change that a request to change a constraint is about, as an operator reads it.
pub fn change_in_words(state: &State, payload: &Map<String, Value>) -> Option<String> {
    let (change, members) = change(payload.get("change"))?;
    let target = Subject::parse(payload.get("target")?.as_str()?).ok()?;
    let text = |member: &str| members.get(member).and_then(Value::as_str);
    Some(match change {
        ConstraintChange::Apply => {
            let first = text("priority").and_then(|first| Subject::parse(first).ok());
            let first = first.and_then(|first| Some(state.entity(&first)?.name()));
            let first = first.map(|first| format!(" (priority: {first})")).unwrap_or_default();
            format!("Apply the constraint: {}{first}", text("text").unwrap_or_default())
        }
        ConstraintChange::Remove => {
            let constraint = state.entity(&target)?;
            format!("Lift the constraint: {}", constraint.as_constraint().text().unwrap_or_default())
        }
    })
}

/// Whether an option of a question means no. To approve is to choose an option, so none of them may.
pub fn means_no(option: &str) -> bool {
    let words = option.trim().trim_end_matches(['.', '!']).to_lowercase();
    let first = words.split([' ', ',', ':', '-', '_']).next().unwrap_or_default();
    NO.contains(&first) || words == "do not" || words.starts_with("do not ")
}

/// Words with which a refusal begins.
const NO: &[&str] = &[
    "no",
    "n",
    "not",
    "nope",
    "never",
    "none",
    "don't",
    "dont",
    "reject",
    "rejected",
    "deny",
    "denied",
    "decline",
    "declined",
    "refuse",
    "refused",
    "disapprove",
    "disapproved",
    "disallow",
    "forbid",
    "veto",
    "cancel",
    "abort",
    "nein",
    "non",
    "nie",
    "いいえ",
    "却下",
    "拒否",
    "否",
    "否決",
];

/// Whether the answer to a decision has consequences. The toolkit asks the questions that open a gate in its own words,
/// and a change of a constraint is asked in the words of the change. An answer to anybody else's question is only
/// recorded: its author could have worded it in any way.
pub fn opens_gate(state: &State, decision: &Entity) -> bool {
    let by_toolkit = decision.as_decision().requested_by() == Some(&Actor::core(super::REACTOR).to_string());
    // Version 0.1, which recorded no settings, carried out every answer.
    let is_old = |since: Ulid| !OPEN.contains(&decision.phase) && decision.last_event < since;
    by_toolkit
        || Question::of_decision(decision) == Some(Question::Constraint)
        || state.tally().settings_since.is_none_or(is_old)
}

/// The digest of what a decision would approve now.
pub fn bound_to(state: &State, question: Question, target: &Subject, change: Option<&Value>) -> Option<String> {
    match question {
        Question::Constraint => {
            let text = serde_jcs::to_string(change?).expect("parsed JSON always has a canonical form");
            Some(Digest::of_bytes(text.as_bytes()).to_string())
        }
        Question::Requirement | Question::Destructive => {
            let target = state.entity(target)?;
            match target.subject.entity {
                EntityType::Requirement => target.as_requirement().content().map(str::to_owned),
                EntityType::Task => target.as_task().content().map(str::to_owned),
                _ => None,
            }
        }
    }
}

/// Everything that an approval of a decision binds, in the order in which it is shown. `find` looks up events.
pub fn binds(state: &State, decision: &Entity, find: Find<'_>) -> Result<Vec<Bound>> {
    let known = decision.as_decision();
    let mut binds = vec![Bound::new("question", known.kind().unwrap_or_default())];
    binds.extend(known.target().map(|target| Bound::new("target", target.to_string())));
    binds.extend(known.summary().map(|summary| Bound::new("summary", summary)));
    let target = known.target().and_then(|target| state.entity(&target));
    binds.extend(target.as_ref().and_then(|target| target.title()).map(|title| Bound::new("title", title)));
    for (name, said) in target.as_ref().map(|target| texts(target, find)).transpose()?.unwrap_or_default() {
        binds.push(Bound::new(name, stated(&said)));
    }
    // A change is stated in the summary; its digest covers every member of it.
    binds.extend(known.target_hash().map(|hash| Bound::new("content", hash)));
    if let Some(task) = target.filter(|_| Question::of_decision(decision) == Some(Question::Destructive)) {
        binds.extend(command_of(&task, find)?.iter().flat_map(RecordedCommand::binds));
    }
    Ok(binds)
}

/// What the author of a target says about it: its description, and its latest analysis.
fn texts(target: &Entity, find: Find<'_>) -> Result<Vec<(&'static str, String)>> {
    let is_requirement = target.subject.entity == EntityType::Requirement;
    let analyzed = is_requirement.then(|| target.as_requirement().analyzed_by()).flatten();
    let mut texts = Vec::new();
    let edited = (target.subject.entity == EntityType::Task).then(|| target.as_task().described_by()).flatten();
    for (event, name) in [(edited.or(Some(target.first_event)), "description"), (analyzed, "analysis")] {
        let event = event.map(find).transpose()?.flatten().filter(|event| event.subject == target.subject.to_string());
        let text = event.as_ref().and_then(|event| event.payload.get(name)?.as_str()).filter(|text| !text.is_empty());
        texts.extend(text.map(|text| (name, text.to_owned())));
    }
    Ok(texts)
}

/// A text as a statement has it: a long one by its digest, or there would be no room for others.
fn stated(text: &str) -> String {
    match text.len() > limits::STATED_TEXT_MAX_BYTES {
        true => format!("{} ({} bytes; hf-decide show prints it)", Digest::of_bytes(text.as_bytes()), text.len()),
        false => text.to_owned(),
    }
}

/// The command of a task, as the log has it; none if it is not a job of this version.
pub fn command_of(task: &Entity, find: Find<'_>) -> Result<Option<RecordedCommand>> {
    let Some(event) = task.as_job().command_by().map(find).transpose()?.flatten() else { return Ok(None) };
    let is_its = event.subject == task.subject.to_string() && event.payload.contains_key(command::CWD);
    if is_its { RecordedCommand::read(&event.payload) } else { Ok(None) }
}

/// Whether the target of a decision is unchanged since the decision was requested.
pub fn still_fits(state: &State, decision: &Entity) -> bool {
    let fits = || {
        let target = decision.as_decision().target()?;
        let now = bound_to(state, Question::of_decision(decision)?, &target, decision.as_decision().change())?;
        Some(decision.as_decision().target_hash()? == now)
    };
    fits().unwrap_or(false)
}

/// The decisions about a target, of one question, in one of these phases.
pub fn decisions(state: &State, question: Question, target: &Subject, phases: &[machine::Phase]) -> Vec<Entity> {
    let mut found = state.made_for(target, EntityType::Decision);
    found.retain(|d| Question::of_decision(d) == Some(question) && phases.contains(&d.phase));
    found
}

/// Decisions that an operator can still make.
pub const OPEN: &[machine::Phase] = &[machine::Phase::Requested, machine::Phase::Escalated];

/// The valid approval of a target, if any.
pub fn approved(state: &State, question: Question, target: &Subject) -> Option<Entity> {
    let mut approvals = decisions(state, question, target, &[machine::Phase::Approved]);
    approvals.retain(|decision| opens_gate(state, decision) && still_fits(state, decision));
    approvals.pop()
}

/// Whether an operator rejected a target as it is now.
pub fn rejected(state: &State, question: Question, target: &Subject) -> bool {
    let rejected = decisions(state, question, target, &[machine::Phase::Rejected]);
    rejected.iter().any(|decision| opens_gate(state, decision) && still_fits(state, decision))
}
