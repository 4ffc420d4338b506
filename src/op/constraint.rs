//! hf-constraint: what holds for all work, changed only through an operator's decision.

use serde_json::{Map, Value, json};

use super::{AppendOutcome, Env, project, random_ulid, record_one};
use crate::base::{EntityType, Error, Result, Subject, limits};
use crate::event::{Kind, parse_ulid};
use crate::policy::approval::{Change, Question};

/// Asks an operator to let a constraint hold. `priority` is a task or a requirement that goes first.
pub fn apply(env: &Env, text: &str, priority: Option<&str>, key: Option<String>) -> Result<AppendOutcome> {
    if text.chars().count() > limits::FACT_MAX_CHARS {
        return Err(Error::usage(format!("a constraint has at most {} characters", limits::FACT_MAX_CHARS)));
    }
    let priority = priority.map(|reference| {
        let first = project::with_view(&env.open()?, |_, state| state.resolve(reference, None))?;
        match first.entity {
            EntityType::Task | EntityType::Requirement => Ok(first.to_string()),
            _ => Err(Error::usage(format!("only a task or a requirement can go first, not {first}"))),
        }
    });
    let mut change = Map::from_iter([("text".to_owned(), Value::from(text))]);
    change.extend(priority.transpose()?.map(|first| ("priority".to_owned(), first.into())));
    let target = match key.as_deref().map(|key| asked_before(env, key)).transpose()?.flatten() {
        Some(target) => target,
        None => format!("{}:{}", EntityType::Constraint, random_ulid(env.now)?),
    };
    ask(env, &target, Change::Apply, change, format!("Apply the constraint: {text}"), key)
}

/// The constraint that a wish with this key was about: it is named before it is recorded, so a repetition
/// has to name the same one.
fn asked_before(env: &Env, key: &str) -> Result<Option<String>> {
    project::with_view(&env.open()?, |snapshot, state| {
        let Some(first) = state.keyed(key).or_else(|| parse_ulid(key)) else { return Ok(None) };
        let event = snapshot.find(first)?.map(|(_, event)| event);
        Ok(event.and_then(|event| event.payload.get("target")?.as_str().map(str::to_owned)))
    })
}

/// Asks an operator to lift a constraint.
pub fn remove(env: &Env, reference: &str, key: Option<String>) -> Result<AppendOutcome> {
    let (subject, text) = project::with_view(&env.open()?, |_, state| {
        let subject = state.find(reference, EntityType::Constraint)?;
        let text = state.entity(&subject).and_then(|entity| entity.text("text").map(str::to_owned));
        Ok::<(Subject, _), _>((subject, text.unwrap_or_default()))
    })?;
    ask(env, &subject.to_string(), Change::Remove, Map::new(), format!("Lift the constraint: {text}"), key)
}

fn ask(
    env: &Env,
    target: &str,
    change: Change,
    mut members: Map<String, Value>,
    summary: String,
    key: Option<String>,
) -> Result<AppendOutcome> {
    members.insert("do".to_owned(), change.as_str().into());
    let payload =
        json!({"kind": Question::Constraint.as_str(), "target": target, "summary": summary, "change": members});
    record_one(env, Kind::DecisionRequested, None, payload, key)
}
