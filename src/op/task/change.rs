//! Changing work: an operator, or the agent that proposed it, edits a task; an operator gives it to somebody else; its
//! holder marks its steps and leaves notes.

use serde_json::{Value, json};

use crate::base::{EntityId, EntityType, Error, Reason, Result, Ulid};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::kernel::{Added, Transaction, record_one};
use crate::op::{Context, Recorded};
use crate::policy::settings::Setting;
use crate::policy::{Request, rules};
use crate::state::{Entity, State, TaskStep};

/// A task to edit. What is not given stays as it is.
#[derive(Clone, Debug, Default)]
pub struct EditTaskRequest {
    /// The task.
    pub reference: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// One of `event::kind::TASK_PRIORITIES`.
    pub priority: Option<String>,
    /// The tasks that have to succeed first, instead of those before.
    pub after: Option<Vec<String>>,
    /// The steps, instead of those before; a step that stays keeps its mark.
    pub steps: Option<Vec<String>>,
    /// The reason.
    pub reason: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Edits a task that has not ended. For an operator, and for the agent that proposed it until it is assigned.
pub fn edit(ctx: &Context, request: EditTaskRequest) -> Result<Recorded> {
    let EditTaskRequest { reference, title, description, priority, after, steps, reason, key } = request;
    let vault = ctx.open()?;
    let tx = Transaction::begin(ctx, &vault)?;
    let find = |task: &String| Ok(tx.state().find(task, EntityType::Task)?.id().to_owned());
    let after = after.map(|tasks| tasks.iter().map(find).collect::<Result<Vec<String>>>()).transpose()?;
    let payload = json!({
        "title": title,
        "description": description,
        "priority": priority,
        "after": after,
        "steps": steps,
        "reason": reason,
    });
    let request = Request { key, ..ctx.request(Kind::TaskEdited, Some(&reference), payload) };
    record_on_task(tx, request, |state, task, edit| {
        if !ctx.caller.is_operator() {
            rules::may_be_edited_by(state, &task.subject, &ctx.caller.actor)?;
        }
        let is_so = changes_nothing(task, edit);
        Ok(is_so.then(|| task.as_task().edited_by().unwrap_or(task.first_event)))
    })
}

/// Records a request about a task, unless it was recorded with the same key, or `in_effect` names the event since which
/// the task is as requested.
fn record_on_task(
    mut tx: Transaction<'_>,
    request: Request,
    in_effect: impl FnOnce(&State, &Entity, &Request) -> Result<Option<Ulid>>,
) -> Result<Recorded> {
    if let Some(first) = tx.repeated(&request)? {
        return Ok(first);
    }
    let subject = tx.state().find(request.subject.as_deref().unwrap_or_default(), EntityType::Task)?;
    // First, so that a caller whose lease has expired learns of that.
    tx.settle(std::slice::from_ref(&subject))?;
    let task = tx.state().entity(&subject).expect("it was resolved").into_owned();
    let asked = match in_effect(tx.state(), &task, &request)? {
        Some(id) => Added { id, already: true },
        None => tx.ask(request)?,
    };
    tx.finish(&[asked])
}

/// Whether a task is already as an edit wants it.
fn changes_nothing(task: &Entity, edit: &Request) -> bool {
    let mut members = edit.payload.iter().filter(|(name, _)| *name != "reason").peekable();
    let is_same = |(name, value): (&String, &Value)| match name.as_str() {
        "steps" => {
            let steps: Vec<String> = task.as_task().steps().into_iter().map(|step| step.text).collect();
            *value == json!(steps)
        }
        "after" => *value == json!(task.as_task().after().collect::<Vec<_>>()),
        name => task.facts().get(name) == Some(value),
    };
    members.peek().is_some() && members.all(is_same)
}

/// A task to assign.
#[derive(Clone, Debug, Default)]
pub struct AssignRequest {
    /// The task.
    pub reference: String,
    /// The agent's name.
    pub agent: String,
    /// Why it is taken from its holder, if it has one.
    pub reason: Option<String>,
    /// A note for the new holder.
    pub handoff: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Assigns a task to an agent, which then holds it. A holder that had it before loses it. For an operator.
pub fn assign(ctx: &Context, request: AssignRequest) -> Result<Recorded> {
    let AssignRequest { reference, agent, reason, handoff, key } = request;
    let holder = format!("agent:{}", EntityId::parse(&agent)?);
    let vault = ctx.open()?;
    let tx = Transaction::begin(ctx, &vault)?;
    let lease = tx.config.count(Setting::LeaseSeconds);
    let payload = json!({"holder": holder, "lease_seconds": lease, "reason": reason, "handoff": handoff});
    let request = Request { key, ..ctx.request(Kind::TaskAssigned, Some(&reference), payload) };
    record_on_task(tx, request, |_, task, _| {
        let is_others = |current: &&str| *current != holder && !task.is_job() && ctx.caller.is_operator();
        match task.holder().filter(is_others).filter(|_| reason.is_none()) {
            Some(current) => Err(Error::refused(
                Reason::NotHolder,
                format!("{} is held by {current}; say why with --reason", task.name()),
            )),
            None => Ok(None),
        }
    })
}

/// A note to leave with a task.
#[derive(Clone, Debug, Default)]
pub struct NoteTaskRequest {
    /// The task.
    pub reference: String,
    pub text: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Leaves a note with a task, for those who work on it next.
pub fn note(ctx: &Context, request: NoteTaskRequest) -> Result<Recorded> {
    let NoteTaskRequest { reference, text, key } = request;
    record_one(ctx, Kind::TaskNoted, Some(&reference), json!({"text": text}), key)
}

/// A step of a task to mark.
#[derive(Clone, Debug, Default)]
pub struct MarkStepRequest {
    /// The task.
    pub reference: String,
    /// The number of the step, from 1.
    pub step: u64,
    /// One of `event::kind::STEP_MARKS`.
    pub mark: String,
    /// Why it is skipped.
    pub reason: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// A step that was marked.
#[derive(Debug)]
pub struct MarkStepOutcome {
    pub recorded: Recorded,
}

/// Marks a step of a running task as done, skipped or open.
pub fn mark_step(ctx: &Context, request: MarkStepRequest) -> Result<MarkStepOutcome> {
    let MarkStepRequest { reference, step, mark, reason, key } = request;
    let vault = ctx.open()?;
    let tx = Transaction::begin(ctx, &vault)?;
    let payload = json!({"step": step, "mark": mark, "reason": reason});
    let request = Request { key, ..ctx.request(Kind::StepMarked, Some(&reference), payload) };
    let recorded = record_on_task(tx, request, |_, task, _| {
        let is_mine = task.holder() == Some(&ctx.caller.actor.to_string()) && task.phase == Phase::Running;
        let is_marked = |known: &TaskStep| known.number as u64 == step && known.mark == mark;
        let is_so = is_mine && task.as_task().steps().iter().any(is_marked);
        Ok(is_so.then(|| task.as_task().marked_by().unwrap_or(task.first_event)))
    })?;
    Ok(MarkStepOutcome { recorded })
}
