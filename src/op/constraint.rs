//! hf-constraint: constraints on all work, changed only by an operator's decision.

use serde_json::{Map, Value, json};

use super::{Context, Recorded, random_ulid};
use crate::base::{EntityType, Error, Result, limits, text};
use crate::event::{Kind, parse_ulid};
use crate::machine::Phase;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::policy::approval::{self, ConstraintChange, Question};
use crate::state::State;

/// How many constraints a briefing shows, and how much of each.
const SHOWN_MAX_COUNT: usize = 5;
const SHOWN_MAX_CHARS: usize = 160;

/// The constraints that apply to all work.
#[derive(Clone, Debug, Default)]
pub struct ActiveConstraints {
    /// The first of them: reference and text.
    pub texts: Vec<String>,
    pub total: u64,
}

/// The constraints that apply now, for the agent that does the work.
pub(super) fn active(state: &State) -> ActiveConstraints {
    let total = state.tally().in_phase(EntityType::Constraint, Phase::Active);
    let shown = state.in_phase(EntityType::Constraint, Phase::Active, SHOWN_MAX_COUNT);
    let texts = shown.iter().map(|constraint| {
        let text = text::cut(constraint.as_constraint().text().unwrap_or_default(), SHOWN_MAX_CHARS);
        format!("{} {text}", constraint.name())
    });
    ActiveConstraints { texts: texts.collect(), total }
}

/// A constraint to apply.
#[derive(Clone, Debug, Default)]
pub struct ApplyRequest {
    /// The constraint, in one line.
    pub text: String,
    /// A task or requirement that has priority while the constraint applies.
    pub priority: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Requests an operator's approval of a constraint.
pub fn apply(ctx: &Context, request: ApplyRequest) -> Result<Recorded> {
    let ApplyRequest { text, priority, key } = request;
    let length = text.chars().count();
    if length > limits::FACT_MAX_CHARS {
        return Err(Error::usage(format!("constraint has {length} characters; at most {}", limits::FACT_MAX_CHARS)));
    }
    let priority = priority.map(|reference| {
        let first = with_view(&ctx.open()?, |_, state| state.resolve(&reference, None))?;
        match first.entity {
            EntityType::Task | EntityType::Requirement => Ok(first.to_string()),
            _ => Err(Error::usage(format!("invalid priority {first}; must be a task or a requirement"))),
        }
    });
    let mut change = Map::from_iter([("text".to_owned(), Value::from(text.as_str()))]);
    change.extend(priority.transpose()?.map(|first| ("priority".to_owned(), first.into())));
    let target = match key.as_deref().map(|key| target_of_key(ctx, key)).transpose()?.flatten() {
        Some(target) => target,
        None => format!("{}:{}", EntityType::Constraint, random_ulid(ctx.now)?),
    };
    ask(ctx, &target, ConstraintChange::Apply, change, key)
}

/// The constraint of an earlier request with this key. Its id is chosen before it is recorded, so a repeated request
/// has to use the same one.
fn target_of_key(ctx: &Context, key: &str) -> Result<Option<String>> {
    with_view(&ctx.open()?, |snapshot, state| {
        let Some(first) = state.keyed(key).or_else(|| parse_ulid(key)) else { return Ok(None) };
        let event = snapshot.find(first)?;
        Ok(event.and_then(|event| event.payload.get("target")?.as_str().map(str::to_owned)))
    })
}

/// A constraint to remove.
#[derive(Clone, Debug, Default)]
pub struct RemoveRequest {
    /// The constraint.
    pub reference: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Requests an operator's approval to remove a constraint.
pub fn remove(ctx: &Context, request: RemoveRequest) -> Result<Recorded> {
    let RemoveRequest { reference, key } = request;
    let subject = with_view(&ctx.open()?, |_, state| state.find(&reference, EntityType::Constraint))?;
    ask(ctx, &subject.to_string(), ConstraintChange::Remove, Map::new(), key)
}

fn ask(
    ctx: &Context,
    target: &str,
    change: ConstraintChange,
    mut members: Map<String, Value>,
    key: Option<String>,
) -> Result<Recorded> {
    members.insert("do".to_owned(), change.as_str().into());
    let mut payload = json!({"kind": Question::Constraint.as_str(), "target": target, "change": members});
    let words = payload.as_object().map(|payload| {
        with_view(&ctx.open()?, |_, state| Ok(approval::change_in_words(state, payload).unwrap_or_default()))
    });
    payload["summary"] = words.transpose()?.into();
    record_one(ctx, Kind::DecisionRequested, None, payload, key)
}
