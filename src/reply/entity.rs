//! Entities as rows and sentences, and the reply to whatever records an event.

use std::borrow::Cow;

use serde_json::{Value as Json, json};

use super::{Cell, Key, Next, Replies, Reply, Row, Status, row};
use crate::base::text::{self, count_noun};
use crate::base::{EntityType, ShortRef, Timestamp, limits};
use crate::machine::Phase;
use crate::op::constraint::ActiveConstraints;
use crate::op::decide::ApproveOutcome;
use crate::op::task::{
    AbortOutcome, ClaimOutcome, ExplainOutcome, MarkStepOutcome, StartTaskOutcome, TaskNote, TaskNotes, WorkBrief,
};
use crate::op::{BoundLine, Recorded, ShowOutcome};
use crate::policy::approval;
use crate::policy::command::NOT_BOUND;
use crate::state::Entity;

/// Subject, reference, status and title. JSON has the entity's projection instead; a table adds agent, project, creation
/// time and expiry.
pub fn row(entity: &Entity) -> Row {
    row_with(entity, &Detail::default())
}

/// What a list adds to an entity.
#[derive(Debug, Default)]
pub struct Detail<'a> {
    /// What about it is due.
    pub due: Option<&'a str>,
    /// Who holds the task, and until when.
    pub holder: Option<&'a str>,
    pub until: Option<Timestamp>,
    /// Since when a task that nobody holds is in its phase.
    pub since: Option<Timestamp>,
    /// What the task waits for.
    pub waits_for: Option<&'a str>,
}

/// The row of an entity, with what a list adds to it.
pub fn row_with(entity: &Entity, detail: &Detail<'_>) -> Row {
    let kind = || match entity.subject.entity {
        EntityType::Artifact => entity.as_artifact().kind(),
        EntityType::Document => entity.as_document().kind(),
        _ => None,
    };
    let title = entity.heading().or_else(|| kind().map(Cow::Borrowed)).or_else(|| seat(entity).map(Cow::Owned));
    let is_session = entity.subject.entity == EntityType::Session;
    row![
        &entity.subject,
        entity.reference(),
        entity.phase.as_str(),
        title.map(|title| text::cut(&title, limits::SUMMARY_MAX_CHARS)),
        detail.holder,
        entity.agent_id(),
        entity.declared_project(),
        entity.created_at,
        is_session.then(|| entity.as_session().expires_at()).flatten(),
        detail.until,
        detail.since,
        detail.waits_for,
        detail.due
    ]
    .whole(whole(entity, detail))
}

/// Who has a session, where and until when: `builder in main until 2026-01-31T13:00:00Z`.
fn seat(session: &Entity) -> Option<String> {
    let known = (session.subject.entity == EntityType::Session).then(|| session.as_session())?;
    let project = session.project.as_ref().map(ToString::to_string).unwrap_or_default();
    let until = known.expires_at().map(|until| format!(" until {until}")).unwrap_or_default();
    Some(format!("{} in {project}{until}", known.agent()?))
}

/// The object of seed 004's appendix E, with the subject added.
fn whole(entity: &Entity, detail: &Detail<'_>) -> Json {
    let mut object = entity.projection();
    object["subject"] = json!(entity.subject.to_string());
    let until = detail.until.map(|until| until.to_string());
    for (name, value) in [("lease_until", until.as_deref()), ("waits_for", detail.waits_for), ("due", detail.due)] {
        if let Some(value) = value {
            object[name] = json!(value);
        }
    }
    object
}

/// `T-0001 is Ready: Login form`.
pub fn sentence(entity: &Entity) -> String {
    let name = || match entity.subject.entity {
        EntityType::DeepWork => entity.as_deep_work().activity(),
        EntityType::Artifact => entity.as_artifact().filename(),
        _ => None,
    };
    let title = entity.heading().or_else(|| name().map(Cow::Borrowed));
    let title = title.map(|title| format!(": {}", text::cut(&title, limits::SUMMARY_MAX_CHARS))).unwrap_or_default();
    format!("{} is {}{title}", entity.spoken_name(), entity.phase)
}

/// `T-0001 (Assigned): Login form`.
fn held_sentence(task: &Entity) -> String {
    let title = text::cut(task.title().unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
    format!("{} ({}): {title}", task.name(), task.phase)
}

/// The reference of an entity without its hash, for a command line.
pub fn plain_reference(entity: &Entity) -> Option<ShortRef> {
    entity.reference().map(|reference| ShortRef { tag: None, ..reference })
}

/// A command about an entity, by its short reference.
pub fn next_about(command: &'static str, words: &'static str, entity: &Entity) -> Next {
    match plain_reference(entity) {
        Some(reference) => Next::run(command).word(words).value(&reference),
        None => Next::None,
    }
}

/// The next step for an entity in its current phase, if work can start. A job is waited for; its supervisor starts it.
pub fn next_step(entity: &Entity) -> Next {
    match (entity.subject.entity, entity.phase) {
        (EntityType::Task, Phase::Proposed | Phase::Ready | Phase::Assigned | Phase::Running) if entity.is_job() => {
            plain_reference(entity).map_or(Next::None, |reference| Next::run("hf-poll").value(&reference))
        }
        (EntityType::Task, Phase::Proposed) => next_about("hf-task", "explain", entity),
        (EntityType::Task, Phase::Ready) => next_about("hf-task", "claim", entity),
        (EntityType::Task, Phase::Assigned) => next_about("hf-task", "start", entity),
        (EntityType::Requirement, Phase::Analyzed | Phase::Implemented | Phase::Blocked) => Next::OPERATOR,
        (EntityType::Decision, phase) if approval::OPEN.contains(&phase) => Next::OPERATOR,
        _ => Next::None,
    }
}

/// The command to run next if it needs words of the caller's own, which NEXT cannot contain.
pub fn advice(entity: &Entity) -> Option<String> {
    let reference = plain_reference(entity)?;
    Some(match (entity.subject.entity, entity.phase) {
        (EntityType::Requirement, Phase::Proposed) => format!("hf-require analyze {reference} TEXT"),
        (EntityType::Requirement, Phase::Approved) if entity.as_requirement().open_tasks() == 0 => {
            format!("hf-task propose TITLE --requirement {reference}")
        }
        (EntityType::Decision, phase) if approval::OPEN.contains(&phase) => {
            format!("hf-decide approve {reference}, or hf-decide reject {reference} --reason TEXT (operators only)")
        }
        (EntityType::Escalation, Phase::Open) => {
            format!("hf-decide acknowledge {reference} --reason TEXT (operators only)")
        }
        _ => return None,
    })
}

/// The same while no work can start: an operator has to resume it first.
fn next_step_while_blocked(entity: &Entity) -> Next {
    match (entity.subject.entity, entity.phase) {
        (EntityType::Task, Phase::Ready | Phase::Assigned) if !entity.is_job() => Next::OPERATOR,
        _ => next_step(entity),
    }
}

impl Recorded {
    /// The reply with this status, or DUPLICATE; the next step follows from the entity's phase.
    pub fn reply_with(&self, status: Status) -> Reply {
        let status = if self.duplicate { Status::Duplicate } else { status };
        let entity = self.entity.as_ref();
        let sum = match entity {
            Some(entity) => sentence(entity),
            None => format!("{} {}", self.asked.event_type.as_str(), self.asked.subject),
        };
        let next_step = if self.is_work_blocked { next_step_while_blocked } else { next_step };
        let work = self.leads_to.as_ref().or(entity);
        // Only its holder can start a task.
        let caller = self.caller.to_string();
        let is_theirs = |work: &&Entity| work.is_job() || work.holder().is_none_or(|holder| holder == caller);
        Reply::new(status, sum)
            .next(work.filter(is_theirs).map_or(Next::None, next_step))
            .with_texts(Key::EventId, &self.ids)
            .with(Key::Subject, self.asked.subject.as_str())
            .with_some(Key::Ref, entity.and_then(Entity::reference))
            .with_some(Key::State, entity.map(|entity| entity.phase.as_str()))
            .with_rows(Key::Entity, self.followed.iter().map(row))
            .with_texts(
                Key::Advice,
                work.filter(|work| work.subject.entity == EntityType::Requirement).and_then(advice),
            )
            .warn(self.warnings.clone())
    }
}

impl Replies for Recorded {
    fn reply(&self) -> Reply {
        self.reply_with(Status::Recorded)
    }
}

impl Replies for AbortOutcome {
    fn reply(&self) -> Reply {
        let reply = self.recorded.reply();
        match self.left.is_empty() {
            true => reply,
            false => reply.status(Status::NotEnded).next(Next::OPERATOR).with_texts(Key::Left, &self.left),
        }
    }
}

impl Replies for ClaimOutcome {
    fn reply(&self) -> Reply {
        match self {
            ClaimOutcome::NoTask { waiting, held: None, .. } => {
                Reply::new(Status::NoTask, format!("no task is ready; {} waiting", count_noun(waiting, "task")))
            }
            ClaimOutcome::NoTask { held: Some(held), on_hold, .. } => {
                let next = match held.phase {
                    _ if *on_hold => Next::None,
                    Phase::Running => next_about("hf-task", "show", held),
                    _ => next_step(held),
                };
                Reply::new(Status::NoTask, format!("no task is ready; you hold {}", held_sentence(held))).next(next)
            }
            ClaimOutcome::Claimed { recorded, held_until, constraints, brief } => {
                let task = recorded.entity.as_ref();
                let reply = recorded
                    .reply_with(Status::Claimed)
                    .with_some(Key::Holder, task.and_then(|task| task.as_task().recorded_holder()))
                    .with_some(Key::LeaseUntil, *held_until)
                    .with_some(Key::Generation, task.map(|task| task.as_task().generation()));
                let reply = reply.with_some_row(Key::Step, task.and_then(active_step));
                with_constraints(with_brief(reply, brief), constraints)
            }
        }
    }
}

/// Adds what somebody who takes up a task has to know about it.
pub fn with_brief(reply: Reply, brief: &WorkBrief) -> Reply {
    with_notes(reply.with_some(Key::Description, brief.description.as_deref()), &brief.notes)
}

/// Adds what was left with a task.
fn with_notes(reply: Reply, notes: &TaskNotes) -> Reply {
    let more = Some(notes.total).filter(|_| notes.has_more());
    reply
        .with_some_row(Key::Handoff, notes.handoff.as_ref().map(note))
        .with_rows(Key::Note, notes.latest.iter().map(note))
        .with_some(Key::Notes, more)
}

fn note(note: &TaskNote) -> Row {
    row![note.at, note.by.as_str(), note.text.as_str()]
}

/// The step of a task to work on, as a row; none if it has none that is open.
pub fn active_step(task: &Entity) -> Option<Row> {
    let step = task.as_task().active_step()?;
    Some(row![step.number, task.as_task().steps().len(), step.text])
}

/// Adds the constraints that apply to the work.
pub fn with_constraints(reply: Reply, constraints: &ActiveConstraints) -> Reply {
    let more = constraints.total > constraints.texts.len() as u64;
    reply.with_texts(Key::Constraint, &constraints.texts).with_some(Key::Constraints, more.then_some(constraints.total))
}

impl Replies for StartTaskOutcome {
    fn reply(&self) -> Reply {
        let count = Some(self.constraints).filter(|count| *count > 0);
        let step = active_step(&self.task);
        let handoff = self.handoff.as_ref().map(note);
        let reply = self.recorded.reply().with_some_row(Key::Step, step).with_some_row(Key::Handoff, handoff);
        reply.with_some(Key::Constraints, count)
    }
}

impl Replies for MarkStepOutcome {
    fn reply(&self) -> Reply {
        let step = self.recorded.entity.as_ref().and_then(active_step);
        self.recorded.reply().with_some_row(Key::Step, step)
    }
}

impl Replies for ShowOutcome {
    /// All facts about one entity, and the entities that belong to it.
    fn reply(&self) -> Reply {
        let entity = &self.entity;
        let reply = Reply::new(Status::Ok, sentence(entity))
            .with(Key::Subject, &entity.subject)
            .with_some(Key::Ref, entity.reference())
            .with(Key::State, entity.phase.as_str())
            .with_rows(Key::Fact, self.facts.iter().map(|fact| fact_row(fact, self.names.get(&fact.0))))
            .with_some_row(
                Key::Step,
                (entity.subject.entity == EntityType::Task).then(|| active_step(entity)).flatten(),
            );
        self.notes
            .iter()
            .fold(reply, with_notes)
            .with_rows(Key::Covers, self.covers.iter().map(covers_row))
            .with_some(Key::NotCovered, (!self.covers.is_empty()).then_some(NOT_BOUND))
            .with_some(Key::Overdue, self.due.get(&entity.subject.to_string()).map(String::as_str))
            .with_texts(Key::Advice, advice(entity))
            .with_rows(
                Key::Entity,
                self.related.iter().map(|other| {
                    let due = self.due.get(&other.subject.to_string()).map(String::as_str);
                    row_with(other, &Detail { due, ..Detail::default() })
                }),
            )
    }
}

impl Replies for ApproveOutcome {
    fn reply(&self) -> Reply {
        let not_covered = (!self.covers.is_empty()).then_some(NOT_BOUND);
        self.recorded
            .reply()
            .with_rows(Key::Covers, self.covers.iter().map(covers_row))
            .with_some(Key::NotCovered, not_covered)
    }
}

/// Something that an approval covers.
fn covers_row(line: &BoundLine) -> Row {
    row![line.what, line.state.as_str(), line.content.as_deref(), line.name.as_str()]
}

/// A fact: JSON has its value as in the log, a table the reference of the entity that it names.
fn fact_row((name, value): &(String, Json), named: Option<&String>) -> Row {
    let shown = match value {
        Json::String(text) if name.ends_with("_at") => Cell::time(text),
        Json::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    };
    row![name.as_str(), shown, named.map(String::as_str)].whole(json!({"name": name, "value": value}))
}

impl Replies for ExplainOutcome {
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, sentence(&self.task)).with_texts(Key::Because, &self.because)
    }
}
