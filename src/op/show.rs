//! `show` of an entity: its facts, and the entities that were created for it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::bound::{self, BoundLine};
use super::task::TaskNotes;
use super::{Context, References};
use crate::base::{EntityId, EntityType, Error, Result, Subject, text};
use crate::op::kernel::View;
use crate::policy::approval;
use crate::policy::command::BOUND;
use crate::state::{Entity, State};
use crate::vault::Log;

/// An entity to show.
#[derive(Clone, Debug)]
pub struct ShowRequest {
    /// The entity.
    pub reference: String,
    /// The types it may have.
    pub wanted: &'static [EntityType],
}

#[derive(Debug)]
pub struct ShowOutcome {
    pub entity: Entity,
    /// Its facts, and further members of its first event.
    pub facts: Vec<(String, Value)>,
    /// The references of entities that facts name, by the name of the fact.
    pub names: References,
    /// Entities that were created for it: tasks of a requirement, runs and artifacts of a task, decisions about it.
    pub related: Vec<Entity>,
    /// What an approval of it covers, if it is a question about a command.
    pub covers: Vec<BoundLine>,
    /// Why they differ from the log: what is due, by subject.
    pub due: BTreeMap<String, String>,
    /// What was left with it, if it is a task.
    pub notes: Option<TaskNotes>,
}

/// Returns one entity in full.
pub fn show(ctx: &Context, request: ShowRequest) -> Result<ShowOutcome> {
    let vault = ctx.open()?;
    let view = View::open(ctx, &vault)?;
    let (snapshot, state) = (view.log(), view.state());
    let subject = find(view.recorded(), &request)?;
    let entity = view.shown(state.entity(&subject).expect("it was resolved").into_owned());
    let payload = snapshot.find(entity.first_event)?.map(|event| event.payload).unwrap_or_default();
    let projected = entity.projection();
    let known = projected.as_object().into_iter().flatten().filter(|(name, _)| !HEAD.contains(&name.as_str()));
    let mut facts: Vec<(String, Value)> = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in &payload {
        match facts.iter_mut().find(|(known, _)| known == name) {
            // Long facts are cut; the event has the full text.
            Some(fact) if fact.1.as_str().is_some_and(|text| text.ends_with('…')) => fact.1 = value.clone(),
            Some(_) => {}
            // An operator who decides sees it line by line.
            None if name == BOUND => {}
            None => facts.push((name.clone(), value.clone())),
        }
    }
    facts.extend(analysis(snapshot, &entity)?);
    restore_texts(snapshot, &entity, &mut facts)?;
    // An operator who decides sees everything that an approval would cover, and whether it has consequences at all.
    let decision = Some(&entity).filter(|entity| entity.subject.entity == EntityType::Decision);
    if let Some(decision) = decision {
        facts.push(("requested_by".to_owned(), decision.as_decision().requested_by().into()));
        facts.push(("opens_gate".to_owned(), approval::opens_gate(state, decision).into()));
    }
    let target = decision.and_then(|decision| decision.as_decision().target()).and_then(|target| state.entity(&target));
    if let Some(target) = target {
        let made = snapshot.find(target.first_event)?.map(|made| made.payload).unwrap_or_default();
        let covered = COVERED.iter().filter_map(|name| Some(((*name).to_owned(), made.get(*name)?.clone())));
        let mut covered: Vec<(String, Value)> = covered.collect();
        if target.subject.entity == EntityType::Task {
            edited_since(snapshot, &target, &mut covered)?;
        }
        facts.extend(covered);
        // A later analysis is not what was asked about.
        if approval::still_fits(state, &entity) {
            facts.extend(analysis(snapshot, &target)?);
        }
    }
    // What the newest run of a task asked a language model.
    let task = Some(&entity).filter(|entity| entity.subject.entity == EntityType::Task);
    if let Some(run) = task.and_then(|task| task.as_task().last_run()).and_then(|run| state.entity(&run)) {
        let of_run = MODEL_CALL.iter().filter_map(|name| Some(((*name).to_owned(), run.facts().get(*name)?.clone())));
        facts.extend(of_run);
    }
    let notes = task.map(|task| TaskNotes::shown(snapshot, task)).transpose()?;
    let related: Vec<Entity> = EntityType::projected()
        .flat_map(|entity| state.made_for(&subject, entity))
        .filter(|entity| view.is_recorded(entity))
        .map(|entity| view.shown(entity))
        .collect();
    let shown = || related.iter().chain([&entity]);
    let mut due = view.due_among(shown());
    due.extend(shown().filter_map(|task| super::job::mark(&vault, task)));
    let names = facts.iter().filter_map(|(name, value)| Some((name.clone(), named_by(state, name, value)?))).collect();
    let covers = bound::covered(snapshot, state, &entity)?;
    Ok(ShowOutcome { entity, facts, names, related, covers, due, notes })
}

/// The entity that a request names, of any of the types that it may have.
fn find(state: &State, request: &ShowRequest) -> Result<Subject> {
    let reference = &request.reference;
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for wanted in request.wanted {
        match state.find(reference, *wanted) {
            Ok(subject) => found.push(subject),
            Err(error) => errors.push(error),
        }
    }
    match (found.as_slice(), errors.into_iter().next()) {
        ([one], _) => Ok(one.clone()),
        ([], Some(error)) => Err(error),
        _ => {
            let names: Vec<String> = found.iter().map(ToString::to_string).collect();
            let shown = text::cut(reference, 80);
            Err(Error::not_found(format!("'{shown}' is ambiguous; it matches {}", names.join(", "))))
        }
    }
}

/// The whole text of a requirement's latest analysis.
fn analysis(log: &dyn Log, entity: &Entity) -> Result<Option<(String, Value)>> {
    let requirement = Some(entity).filter(|entity| entity.subject.entity == EntityType::Requirement);
    let Some(id) = requirement.and_then(|requirement| requirement.as_requirement().analyzed_by()) else {
        return Ok(None);
    };
    let text = log.find(id)?.and_then(|event| event.payload.get("analysis").cloned());
    Ok(text.map(|text| ("analysis".to_owned(), text)))
}

/// Replaces what a task said when it was proposed by what it says now.
fn edited_since(log: &dyn Log, task: &Entity, said: &mut Vec<(String, Value)>) -> Result<()> {
    let known = task.as_task();
    let steps: Vec<String> = known.steps().into_iter().map(|step| step.text).collect();
    if !steps.is_empty() {
        said.push(("steps".to_owned(), steps.into()));
    }
    if known.edited_at().is_none() {
        return Ok(());
    }
    said.retain(|(name, _)| name != "title" && (name != "description" || known.described_by().is_none()));
    said.extend(known.title().map(|title| ("title".to_owned(), title.into())));
    said.extend(known.description().map(|text| ("description".to_owned(), text.into())));
    restore_texts(log, task, said)
}

/// Puts the whole texts of a task in the place of those that were cut, from the events that have them.
fn restore_texts(log: &dyn Log, entity: &Entity, facts: &mut [(String, Value)]) -> Result<()> {
    let Some(task) = Some(entity).filter(|entity| entity.subject.entity == EntityType::Task) else { return Ok(()) };
    let known = task.as_task();
    for (event, member, name) in
        [(known.described_by(), "description", "description"), (known.noted_by(), "text", "note")]
    {
        let whole = event.map(|id| log.find(id)).transpose()?.flatten();
        let whole = whole.and_then(|event| event.payload.get(member).cloned());
        if let (Some(whole), Some(fact)) = (whole, facts.iter_mut().find(|(known, _)| known == name)) {
            fact.1 = whole;
        }
    }
    Ok(())
}

/// What an approval covers, by the members of the event that created its target.
const COVERED: &[&str] = &["title", "description", "command"];

/// The short references of the entities that a fact names; none if it names none.
fn named_by(state: &State, name: &str, value: &Value) -> Option<String> {
    // The noun is the last word, as in `last_run_id` and `prompt_artifact_id`.
    let name = name.strip_suffix("_id").unwrap_or(name);
    let entity_type = match name.rsplit('_').next().unwrap_or(name) {
        "after" => Some(EntityType::Task),
        "anchors" | "threads" => Some(EntityType::Thread),
        noun => EntityType::ALL.iter().copied().find(|entity| entity.as_str() == noun),
    };
    let one = |text: &str| {
        let subject =
            Subject::parse(text).ok().or_else(|| Some(Subject::new(entity_type?, EntityId::parse(text).ok()?)))?;
        let entity = state.entity(&subject)?;
        entity.reference().map(|_| entity.name())
    };
    match value {
        Value::String(text) => one(text),
        Value::Array(all) if !all.is_empty() => {
            let names: Option<Vec<String>> = all.iter().map(|value| one(value.as_str()?)).collect();
            names.map(|names| names.join(" "))
        }
        _ => None,
    }
}

/// The facts of a run about a language model.
const MODEL_CALL: &[&str] = &["prompt_artifact_id", "response_artifact_id", "token_usage"];

/// Members that a reply shows before the facts.
const HEAD: &[&str] = &["id", "status", "ref"];
