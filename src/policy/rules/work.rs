//! What can be proposed and edited as a task, and the steps of one.

use std::collections::HashSet;

use serde_json::Value;

use super::Step;
use super::ends::{is_done, is_lost, is_over, newest_rework};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, limits};
use crate::machine;
use crate::state::{Entity, State, linked};

/// Refuses a task that could never start, and a rework of something that needs none.
pub(super) fn can_be_proposed(state: &State, step: &Step<'_>) -> Result<()> {
    let never = |why: String| Err(Error::refused(Reason::NotReady, why));
    let requirement = linked(step.kind, step.payload).and_then(|requirement| state.entity(&requirement));
    if let Some(over) = requirement.filter(|requirement| is_over(requirement.phase)) {
        return never(format!("{} is {}, which is final; propose a new requirement", over.name(), over.phase));
    }
    for task in named_dependencies(state, step) {
        can_be_waited_for(state, &task)?;
    }
    let reworked = step.text("rework_of").and_then(|id| EntityId::parse(id).ok());
    let Some(reworked) = reworked.and_then(|id| state.entity(&Subject::new(EntityType::Task, id))) else {
        return Ok(());
    };
    let has_ended = reworked.as_task().succeeded_at().is_some() || reworked.as_task().aborted_at().is_some();
    // The reactor proposes a rework just before it aborts the task.
    if !has_ended && step.actor.kind != ActorKind::Core {
        let (name, phase) = (reworked.name(), reworked.phase);
        return never(format!("{name} is {phase}; only a task that has ended can be reworked"));
    }
    match newest_rework(state, &reworked).filter(|newest| newest.as_task().aborted_at().is_none()) {
        Some(newest) => {
            let (name, newest) = (reworked.name(), newest.name());
            never(format!("{newest} repeats the work of {name} already"))
        }
        None => Ok(()),
    }
}

/// The tasks that a payload says must succeed first.
fn named_dependencies(state: &State, step: &Step<'_>) -> Vec<Entity> {
    let ids = step.payload.get("after").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let tasks = ids.filter_map(|id| EntityId::parse(id).ok()).map(|id| Subject::new(EntityType::Task, id));
    tasks.filter_map(|task| state.entity(&task).map(|task| task.into_owned())).collect()
}

/// Refuses to wait for a task that can no longer be done.
fn can_be_waited_for(state: &State, task: &Entity) -> Result<()> {
    match is_lost(state, task) {
        true => {
            let name = task.name();
            let why = format!("{name} was aborted, so a task after it could never start; rework {name} first");
            Err(Error::refused(Reason::NotReady, why))
        }
        false => Ok(()),
    }
}

/// Steps are few, and differ from each other.
pub(super) fn steps_are_plain(step: &Step<'_>) -> Result<()> {
    let steps = step.payload.get("steps").and_then(Value::as_array).into_iter().flatten();
    let steps: Vec<&str> = steps.filter_map(Value::as_str).map(str::trim).collect();
    if steps.len() > limits::STEPS_MAX_COUNT {
        let (count, max) = (steps.len(), limits::STEPS_MAX_COUNT);
        return Err(Error::usage(format!("a task has at most {max} steps, not {count}")));
    }
    let max = limits::FACT_MAX_CHARS;
    if steps.iter().any(|text| text.is_empty() || text.chars().count() > max) {
        return Err(Error::usage(format!("a step must have 1 to {max} characters")));
    }
    match (1..steps.len()).find(|n| steps[..*n].contains(&steps[*n])) {
        Some(n) => Err(Error::usage(format!("step {} repeats an earlier one; each needs words of its own", n + 1))),
        None => Ok(()),
    }
}

/// The members that an edit changes.
const EDITABLE: &[&str] = &["title", "description", "steps", "priority", "after"];
/// Those of them that are what an approval is for.
const APPROVED: &[&str] = &["title", "description", "steps"];

/// Refuses a program that edits a task: an agent edits only what it proposed, until that is assigned.
pub fn may_be_edited_by(state: &State, task: &Subject, actor: &Actor) -> Result<()> {
    let Some(task) = state.entity(task) else { return Ok(()) };
    let is_proposer = actor.is_autonomous() && task.as_task().proposed_by() == Some(&actor.to_string());
    if is_proposer && task.as_task().generation() == 0 {
        return Ok(());
    }
    let why = format!(
        "editing {} requires an operator; an agent can edit only what it proposed, until it is assigned",
        task.name()
    );
    Err(Error::refused(Reason::OperatorOnly, why))
}

/// An edit changes something, makes no cycle, and leaves what is approved or runs as it is.
pub(super) fn can_be_edited(state: &State, step: &Step<'_>) -> Result<()> {
    use machine::Phase::{Proposed, Ready};
    let Some(task) = state.entity(step.subject) else { return Ok(()) };
    let (name, phase) = (task.name(), task.phase);
    let changes = |members: &[&str]| members.iter().any(|member| step.payload.contains_key(*member));
    if !changes(EDITABLE) {
        return Err(Error::usage(format!("nothing to edit; one of {}", EDITABLE.join(", "))));
    }
    steps_are_plain(step)?;
    if changes(APPROVED) && task.is_job() {
        let why = format!("{name} is a job; only its priority and its dependencies can be edited");
        return Err(Error::refused(Reason::NotReady, why));
    }
    let is_waiting = matches!(phase, Proposed | Ready);
    if changes(APPROVED) && task.as_task().is_destructive() && !is_waiting {
        let why = format!("{name} is {phase} as it was approved; abort it, and propose it again");
        return Err(Error::refused(Reason::NotReady, why));
    }
    for other in named_dependencies(state, step) {
        can_be_waited_for(state, &other)?;
        if !is_waiting && !is_done(state, &other) {
            let why = format!("{name} is {phase}; it is too late to wait for {}", other.name());
            return Err(Error::refused(Reason::NotReady, why));
        }
        if waits_for(state, &other, step.subject) {
            let why = format!("{} waits for {name}; a task cannot wait for itself", other.name());
            return Err(Error::refused(Reason::NotReady, why));
        }
    }
    Ok(())
}

/// Whether a task cannot start before another one has succeeded: it, or what it depends on, names that task or an
/// earlier attempt at it.
fn waits_for(state: &State, task: &Entity, target: &Subject) -> bool {
    let mut seen: HashSet<Subject> = HashSet::new();
    let mut open = vec![task.subject.clone()];
    while let Some(subject) = open.pop() {
        if subject == *target {
            return true;
        }
        let Some(task) = state.entity(&subject).filter(|_| seen.insert(subject.clone())) else { continue };
        let after = task.as_task().after().filter_map(|id| EntityId::parse(id).ok());
        open.extend(after.map(|id| Subject::new(EntityType::Task, id)));
        // A later attempt takes its place.
        open.extend(task.as_task().rework());
    }
    false
}

/// A mark is for a step that the task has, and a step is skipped for a reason.
pub(super) fn step_exists(state: &State, step: &Step<'_>) -> Result<()> {
    let Some(task) = state.entity(step.subject) else { return Ok(()) };
    let (name, count) = (task.name(), task.as_task().steps().len() as u64);
    let number = step.payload.get("step").and_then(Value::as_u64).unwrap_or_default();
    if number == 0 || number > count {
        let steps = match count {
            0 => "no steps".to_owned(),
            count => crate::base::text::count_noun(count, "step"),
        };
        return Err(Error::not_found(format!("{name} has no step {number}; it has {steps}")));
    }
    match step.text("mark") == Some("skipped") && step.text("reason").is_none() {
        true => Err(Error::usage("missing reason; a step that is skipped must have one")),
        false => Ok(()),
    }
}

/// A task succeeds with all of its steps done or skipped. The end of a job is a fact.
pub(super) fn steps_are_closed(state: &State, step: &Step<'_>) -> Result<()> {
    let Some(task) = state.entity(step.subject).filter(|task| !task.is_job()) else { return Ok(()) };
    let steps = task.as_task().steps();
    let open: Vec<String> = steps.iter().filter(|step| step.is_open()).map(|step| step.number.to_string()).collect();
    if open.is_empty() || step.text("skipped").is_some() {
        return Ok(());
    }
    let (name, steps) = (task.name(), if open.len() == 1 { "step" } else { "steps" });
    let why = format!(
        "{steps} {} of {name} still open; mark what is done, or skip the rest with --skip REASON",
        open.join(", ")
    );
    Err(Error::refused(Reason::NotReady, why))
}
