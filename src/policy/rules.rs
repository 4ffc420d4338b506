//! The rules that do not depend on settings or time. `decide` checks them before an event is recorded, and the audit
//! checks the same rules afterwards.

mod blockers;
mod claims;
mod ends;
mod questions;
mod work;

use serde_json::{Map, Value};

use super::approval::{self, ConstraintChange, Question};
use super::due::WATCHDOG;
use super::settings::{Setting, Settings};
use super::{authority, mission, project, review};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Error, HeartbeatId, Reason, Result, Subject, Timestamp};
use crate::event::Kind;
use crate::event::kind::{LinkRule, RecordedBy, SpeaksFor, Starts, SubjectType};
use crate::machine;
use crate::state::{Entity, State, linked};

pub use blockers::{Blocker, blockers};
pub use claims::{ended_by_holder, lost_claim};
pub use ends::{
    LOST_REASON, STOP_REASON, WAS_REJECTED, attempts, is_lost, is_over, newest_rework, was_ended_by_person, was_lost,
    was_rejected, was_stopped,
};

use blockers::may_start;
use claims::claim_is_held;
use questions::{
    can_be_decided, question_is_plain, require_approval, require_approval_if_destructive, require_approved_change,
};
use work::{can_be_edited, can_be_proposed, step_exists, steps_are_closed, steps_are_plain};

pub use work::may_be_edited_by;

/// An event that is about to be recorded, or was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub kind: Kind,
    pub subject: &'a Subject,
    pub actor: &'a Actor,
    pub payload: &'a Map<String, Value>,
}

impl Step<'_> {
    /// A string member of the payload.
    pub(super) fn text(&self, member: &str) -> Option<&str> {
        self.payload.get(member).and_then(Value::as_str)
    }
}

type Rule = fn(&State, &Step<'_>) -> Result<()>;

/// Every rule, in the order in which they are checked: the first refusal is returned.
const RULES: &[Rule] = &[
    ids_do_not_mislead,
    super::component::components_keep_to_their_own,
    names_exist,
    speaks_for_itself,
    claim_is_held,
    is_not_blocked,
    step_is_legal,
    operator_decides,
    not_while_stopped,
    project_is_active,
    gate_is_open,
    super::command::is_the_recorded_one,
    mission_stays_short,
    reviewers_take_turns,
    super::branch::branches_are_consistent,
    super::settings::settings_follow_the_regime,
];

/// Checks that every rule allows a step in this state.
pub fn check(state: &State, step: &Step<'_>) -> Result<()> {
    RULES.iter().try_for_each(|rule| rule(state, step))
}

/// Whether only an operator may record this kind.
pub fn requires_operator(kind: Kind) -> bool {
    kind.row().by == RecordedBy::Operator
}

/// What the payload names must exist, except for a constraint that a decision is about: it may be created later.
fn names_exist(state: &State, step: &Step<'_>) -> Result<()> {
    let may_come_later = |named: &Subject| match step.kind {
        Kind::DecisionRequested => named.entity == EntityType::Constraint,
        // Version 0.1, which recorded no settings, did not check the artifacts of a run.
        Kind::RunFinished => state.settings().is_none(),
        _ => false,
    };
    for named in step.kind.required_references(step.payload) {
        if named == *step.subject {
            return Err(Error::usage(format!("{named} cannot refer to itself")));
        }
        if !may_come_later(&named) && state.entity(&named).is_none() {
            return Err(Error::not_found(format!("the payload names {named}, which does not exist")));
        }
    }
    Ok(())
}

/// A new entity's id must not be one that somebody could take for a short reference: who answers `DEC-0003` would answer
/// another question.
fn ids_do_not_mislead(state: &State, step: &Step<'_>) -> Result<()> {
    if !state.tally().has_settings() {
        return Ok(());
    }
    // A decision may be about a constraint that does not exist yet.
    let target = step.text("target").filter(|_| step.kind == Kind::DecisionRequested);
    let target = target.and_then(|target| Subject::parse(target).ok());
    let mut made = [Some(step.subject.clone()), target].into_iter().flatten();
    match made.find(|subject| subject.misleads() && state.entity(subject).is_none()) {
        Some(subject) => {
            let why = format!("the id of {subject} reads like a short reference; choose another one");
            Err(Error::refused(Reason::MisleadingId, why))
        }
        None => Ok(()),
    }
}

/// Refuses to start a task that is still proposed, and says what blocks it. `step_is_legal` could only say that the
/// transition is illegal.
fn is_not_blocked(state: &State, step: &Step<'_>) -> Result<()> {
    let task = match step.kind.row().starts {
        Starts::Claim | Starts::Run => step.claimed_task(state).map(|task| task.subject),
        Starts::Nothing | Starts::Session | Starts::Retry => None,
    };
    match task.filter(|task| state.phase_of(task) == machine::Phase::Proposed) {
        Some(task) => may_start(state, &task),
        None => Ok(()),
    }
}

/// An agent reports only about itself, not about other agents.
fn speaks_for_itself(state: &State, step: &Step<'_>) -> Result<()> {
    let about = match step.kind.row().speaks_for {
        SpeaksFor::Nobody => None,
        SpeaksFor::Subject => Some(step.subject.clone()),
        SpeaksFor::Linked => linked(step.kind, step.payload),
        SpeaksFor::Owner(member) => {
            let started = state.entity(step.subject).map(|session| session.facts().clone());
            let members = started.as_ref().unwrap_or(step.payload);
            let agent = members.get(member).and_then(Value::as_str).and_then(|id| EntityId::parse(id).ok());
            agent.map(|agent| Subject::new(EntityType::Agent, agent))
        }
    };
    match (about, step.actor.agent()) {
        (Some(agent), Some(me)) if agent.id() != me.as_str() => {
            Err(Error::refused(Reason::NotHolder, format!("{} cannot act for {agent}", step.actor)))
        }
        _ => Ok(()),
    }
}

/// The transitions of the subject, and of the second entity that the event moves, must be legal.
fn step_is_legal(state: &State, step: &Step<'_>) -> Result<()> {
    let Step { kind, subject, .. } = *step;
    if kind.row().about == SubjectType::Any {
        return match state.entity(subject) {
            Some(_) => Ok(()),
            None => Err(Error::not_found(format!("{subject} does not exist"))),
        };
    }
    let from = state.phase_of(subject);
    if machine::step(subject.entity, from, kind).is_none() {
        return Err(match from {
            machine::Phase::Absent => Error::not_found(format!("{subject} does not exist")),
            _ => illegal(state, subject, kind),
        });
    }
    let Some((link, other)) = kind.row().moves.zip(linked(kind, step.payload)) else { return Ok(()) };
    match link.rule {
        LinkRule::MustBeLegal if machine::step(other.entity, state.phase_of(&other), kind).is_none() => {
            Err(illegal(state, &other, kind))
        }
        LinkRule::MustBeActive if state.phase_of(&other) != machine::Phase::Active => {
            Err(Error::not_found(format!("{other} is not active")))
        }
        LinkRule::MustBeLegal | LinkRule::MustBeActive | LinkRule::IfLegal => Ok(()),
    }
}

/// The error for an event that is illegal in the subject's phase.
pub(super) fn illegal(state: &State, subject: &Subject, kind: Kind) -> Error {
    let from = state.phase_of(subject);
    let entity = state.entity(subject);
    let name = entity.as_ref().map_or_else(|| subject.to_string(), |entity| entity.spoken_name());
    let held = entity.as_ref().and_then(|entity| entity.holder()).map(|holder| format!(" (held by {holder})"));
    let held = held.unwrap_or_default();
    let is_callers = |legal: &Kind| *legal != kind && legal.row().by != RecordedBy::Reactor;
    let legal = machine::legal(subject.entity, from).into_iter().filter(is_callers);
    let legal: Vec<&str> = legal.map(Kind::as_str).collect();
    let why = match legal.is_empty() {
        true => format!("{name} is {from}, which is final"),
        false => format!("{name} is {from}{held}, which does not allow {kind}; allowed: {}", legal.join(", ")),
    };
    Error::refused(Reason::IllegalTransition, why)
}

/// No work starts while everything is stopped.
fn not_while_stopped(state: &State, step: &Step<'_>) -> Result<()> {
    let work = match step.kind.row().starts {
        Starts::Claim | Starts::Run | Starts::Retry => true,
        Starts::Nothing | Starts::Session => false,
    };
    if !work || state.phase_of(&Subject::SYSTEM) != machine::Phase::Stopped {
        return Ok(());
    }
    Err(stopped(state))
}

/// The error that everything is stopped, with the reason.
pub fn stopped(state: &State) -> Error {
    let system = state.entity(&Subject::SYSTEM);
    let why = system.as_ref().and_then(|system| system.as_system().stop_reason()).unwrap_or("no reason given");
    stopped_because(why)
}

/// The error that everything is stopped, for a flag that may not be recorded yet.
pub fn stopped_because(why: &str) -> Error {
    Error::refused(Reason::SystemStopped, format!("everything is stopped: {}", crate::base::text::cut(why, 80)))
}

/// The refusal of what only an operator may do. A person's name in an agent's shell counts for nothing.
pub fn operator_only(what: &str, actor: &Actor) -> Error {
    let why = match actor.is_autonomous() {
        true => format!("{what} requires an operator; {actor} is not one"),
        false => format!("{what} requires an operator; this shell belongs to an agent"),
    };
    Error::refused(Reason::OperatorOnly, why)
}

/// Kinds that require an operator cannot be recorded by programs, except as the consequence of an operator's decision or
/// of a decision that timed out.
fn operator_decides(state: &State, step: &Step<'_>) -> Result<()> {
    let Step { kind, subject, actor, .. } = *step;
    let is_reaction = *actor == Actor::core(super::REACTOR);
    let is_consequence = match kind {
        Kind::DecisionRejected => state.phase_of(subject) == machine::Phase::Escalated && is_reaction,
        Kind::RequirementRejected => is_reaction && approval::rejected(state, Question::Requirement, subject),
        _ => false,
    };
    // Version 0.1 let agents verify and supersede requirements, and services decide.
    let is_current = state.tally().has_settings();
    let is_program = match is_current {
        true => actor.is_autonomous(),
        false => matches!(actor.kind, ActorKind::Agent | ActorKind::Core),
    };
    let was_open = !is_current && matches!(kind, Kind::RequirementVerified | Kind::RequirementSuperseded);
    let refused = match kind.row().by {
        RecordedBy::Anyone => false,
        RecordedBy::NotAgents => is_program && actor.kind != ActorKind::Core,
        RecordedBy::Operator => is_program && !is_consequence && !was_open,
        RecordedBy::OperatorOrProposer if is_program => return may_be_edited_by(state, subject, actor),
        RecordedBy::OperatorOrProposer => false,
        RecordedBy::Reactor if is_current && !is_reaction => {
            let why = format!("{kind} is recorded only as the consequence of another event");
            return Err(Error::refused(Reason::ReservedKind, why));
        }
        RecordedBy::Reactor => false,
    };
    // A signature decides, not who carries it in; whether it is valid is checked with the log.
    if refused && !authority::is_by_signature(state, kind, step.payload) {
        return Err(operator_only(kind.as_str(), actor));
    }
    if kind == Kind::DecisionApproved {
        check_choice(state, step)?;
    }
    Ok(())
}

/// The chosen option must exist, and the target must not have changed since the decision was requested.
fn check_choice(state: &State, step: &Step<'_>) -> Result<()> {
    let Some(decision) = state.entity(step.subject) else { return Ok(()) };
    let (name, options) = (decision.name(), decision.as_decision().options().collect::<Vec<&str>>());
    match step.text("chosen_option") {
        None if options.is_empty() => {}
        Some(chosen) if options.contains(&chosen) => {}
        None => return Err(Error::usage(format!("{name} requires an option: one of {}", options.join(", ")))),
        Some(chosen) if options.is_empty() => {
            return Err(Error::usage(format!("unknown option '{chosen}'; {name} has no options")));
        }
        Some(chosen) => {
            return Err(Error::usage(format!("unknown option '{chosen}'; one of {}", options.join(", "))));
        }
    }
    match approval::still_fits(state, &decision) {
        true => Ok(()),
        false => Err(Error::refused(
            Reason::Changed,
            format!("the target of {name} has changed since the decision was requested; request a new decision"),
        )),
    }
}

/// Some events require an approval, or other work to be done first.
fn gate_is_open(state: &State, step: &Step<'_>) -> Result<()> {
    let Step { kind, subject, .. } = *step;
    match kind {
        Kind::DecisionRequested => {
            let (question, target) = approval::read(step.payload)?;
            question_is_plain(state, step, question)?;
            can_be_decided(state, step, question, &target)
        }
        Kind::DeepWorkStarted => one_deep_work_at_a_time(state, step),
        Kind::TaskProposed if state.tally().has_settings() => {
            steps_are_plain(step)?;
            can_be_proposed(state, step)
        }
        Kind::TaskEdited => can_be_edited(state, step),
        Kind::StepMarked => step_exists(state, step),
        Kind::TaskSucceeded => steps_are_closed(state, step),
        Kind::RequirementApproved => require_approval(state, Question::Requirement, subject),
        Kind::ConstraintApplied => require_approved_change(state, step, ConstraintChange::Apply),
        Kind::ConstraintRemoved => require_approved_change(state, step, ConstraintChange::Remove),
        // A task that is retried was allowed to start before.
        Kind::TaskReady if state.phase_of(subject) == machine::Phase::Retrying => {
            require_approval_if_destructive(state, subject)
        }
        Kind::TaskReady => may_start(state, subject),
        Kind::TaskAssigned if state.phase_of(subject) == machine::Phase::Ready => may_start(state, subject),
        Kind::TaskAssigned => require_approval_if_destructive(state, subject),
        Kind::RunStarted => {
            linked(kind, step.payload).map_or(Ok(()), |task| require_approval_if_destructive(state, &task))
        }
        _ => Ok(()),
    }
}

/// Nothing starts in a paused project, and nothing changes in an archived one.
fn project_is_active(state: &State, step: &Step<'_>) -> Result<()> {
    project::check(state, step)
}

/// A mission's state file stays short, its rounds are limited, and work is only fired for one that is running.
fn mission_stays_short(state: &State, step: &Step<'_>) -> Result<()> {
    match step.subject.entity {
        EntityType::Mission if step.kind.row().about == SubjectType::One(EntityType::Mission) => {
            mission::check(state, step.kind, step.subject, step.actor, step.payload)
        }
        EntityType::Task if matches!(step.kind, Kind::TaskProposed | Kind::TaskAssigned) => {
            mission::check_rounds_left(state, step.actor, step.payload)?;
            mission::check_work(state, step.payload)
        }
        _ => Ok(()),
    }
}

/// Reviewers reply in turn and in the required format.
fn reviewers_take_turns(state: &State, step: &Step<'_>) -> Result<()> {
    review::check(state, step.kind, step.subject, step.actor, step.payload)
}

/// An agent has one deep work at a time, and strict deep work declares its length.
fn one_deep_work_at_a_time(state: &State, step: &Step<'_>) -> Result<()> {
    if step.text("mode") == Some("strict") && !step.payload.contains_key("minutes") {
        return Err(Error::usage("strict deep work requires payload.minutes"));
    }
    if step.text("heartbeat_id").and_then(HeartbeatId::parse).is_none() {
        return Err(Error::usage("payload.heartbeat_id must have the form YYYYMMDDHHMMSS"));
    }
    let agent = linked(step.kind, step.payload).and_then(|agent| state.entity(&agent));
    let open = agent.and_then(|agent| agent.as_agent().deep_work());
    let open = open.and_then(|open| state.entity(&open)).filter(|open| open.phase == machine::Phase::Open);
    // A declaration that the watchdog finds in a file may be older than the one in force, and was superseded by it.
    let is_found = *step.actor == Actor::core(WATCHDOG);
    let at = step.text("at").and_then(Timestamp::parse).filter(|_| is_found);
    let is_superseded = |open: &Entity| at.is_some_and(|at| Some(at) <= open.as_deep_work().started_at());
    match open.filter(|open| !is_superseded(open)) {
        Some(open) => {
            let open = &open.subject;
            let why = format!("{open} is still open; an agent can have only one deep work at a time");
            Err(Error::refused(Reason::IllegalTransition, why))
        }
        None => Ok(()),
    }
}

/// How often a task may be retried after transient failures. A job is retried as often as its fire or its proposer says,
/// and otherwise never: repeating a command is its caller's decision. Version 0.1 treated a job for an existing task like
/// any other task.
pub fn max_retries(state: &State, settings: &Settings, task: &Entity) -> u64 {
    let default = || match task.is_job() && state.tally().has_settings() {
        true => 0,
        false => settings.count(Setting::MaxRetries),
    };
    task.as_task().max_retries().unwrap_or_else(default)
}
