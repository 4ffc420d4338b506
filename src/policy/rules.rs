//! The rules that do not depend on settings or time. `decide` checks them before an event is recorded, and the audit
//! checks the same rules afterwards.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::approval::{self, ConstraintChange, Question};
use super::due::WATCHDOG;
use super::settings::{Setting, Settings};
use super::{authority, mission, project, review};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Error, HeartbeatId, Reason, Result, Subject, Timestamp, limits};
use crate::event::Kind;
use crate::event::kind::{Claim, LinkRule, RecordedBy, SpeaksFor, Starts, SubjectType};
use crate::machine;
use crate::state::{Entity, State, linked};

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

/// Refuses a task that could never start, and a rework of something that needs none.
fn can_be_proposed(state: &State, step: &Step<'_>) -> Result<()> {
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
fn steps_are_plain(step: &Step<'_>) -> Result<()> {
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

/// An edit changes something, makes no cycle, and leaves what is approved or runs as it is.
fn can_be_edited(state: &State, step: &Step<'_>) -> Result<()> {
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
fn step_exists(state: &State, step: &Step<'_>) -> Result<()> {
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
fn steps_are_closed(state: &State, step: &Step<'_>) -> Result<()> {
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

/// Whether a requirement has ended.
pub fn is_over(phase: machine::Phase) -> bool {
    matches!(phase, machine::Phase::Rejected | machine::Phase::Superseded | machine::Phase::Verified)
}

/// The last task of the chain of reworks of a task; none if it was never reworked.
pub fn newest_rework(state: &State, task: &Entity) -> Option<Entity> {
    let mut newest: Option<Entity> = None;
    while let Some(next) = newest.as_ref().unwrap_or(task).as_task().rework() {
        newest = Some(state.entity(&next)?.into_owned());
    }
    newest
}

/// A task and the attempts before it, newest first.
pub fn attempts(state: &State, task: &Entity) -> Vec<Entity> {
    let mut attempts = vec![task.clone()];
    while let Some(before) = attempts.last().and_then(|task| state.entity(&task.as_task().continues()?)) {
        attempts.push(before.into_owned());
    }
    attempts
}

/// The reason with which a stop aborts a task; the reason of the stop follows it.
pub const STOP_REASON: &str = "emergency_stop";

/// The reason with which a job is aborted whose supervisor was lost, so that nobody knows its result.
pub const LOST_REASON: &str = "lost";

/// Whether a job was aborted because it was lost.
pub fn was_lost(task: &Entity) -> bool {
    task.is_job() && task.as_task().abort_reason().is_some_and(|why| why.starts_with(LOST_REASON))
}

/// Whether a stop aborted a task.
pub fn was_stopped(task: &Entity) -> bool {
    let by_reactor = task.as_task().aborted_by() == Some(&Actor::core(super::REACTOR).to_string());
    let why = task.as_task().abort_reason();
    // The supervisor of a job may be faster than the reactor.
    (by_reactor || task.is_job()) && why.is_some_and(|why| why.starts_with(STOP_REASON))
}

/// Whether a person ended a task on purpose: by a stop, by cancelling or aborting it, or by rejecting it.
pub fn was_ended_by_person(task: &Entity) -> bool {
    let by = task.as_task().aborted_by().and_then(|by| Actor::parse(by).ok());
    was_stopped(task) || by.is_some_and(|by| by.kind == ActorKind::User) || was_rejected(task)
}

/// How the reason begins with which a task is aborted that an operator rejected; the name of the decision is before it.
pub const WAS_REJECTED: &str = " was rejected";

/// Whether a task was aborted because an operator rejected it.
pub fn was_rejected(task: &Entity) -> bool {
    let by_reactor = task.as_task().aborted_by() == Some(&Actor::core(super::REACTOR).to_string());
    let decision = |why: &str| why.split_once(WAS_REJECTED).is_some_and(|(name, _)| !name.contains(' '));
    by_reactor && task.as_task().abort_reason().is_some_and(decision)
}

/// Whether a task can no longer be done: it was aborted, and so was its newest rework. What a stop aborted can be
/// reworked after it.
pub fn is_lost(state: &State, task: &Entity) -> bool {
    let newest = newest_rework(state, task);
    let last = newest.as_ref().unwrap_or(task);
    !is_done(state, task) && last.as_task().aborted_at().is_some() && !was_stopped(last)
}

/// Refuses a question that an operator could take for another one: an option that means no, and a change of a constraint
/// in other words than its own.
fn question_is_plain(state: &State, step: &Step<'_>, question: Question) -> Result<()> {
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
fn can_be_decided(state: &State, step: &Step<'_>, question: Question, target: &Subject) -> Result<()> {
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
fn require_approval(state: &State, question: Question, target: &Subject) -> Result<()> {
    match approval::approved(state, question, target) {
        Some(_) => Ok(()),
        None => Err(not_approved(state, question, target)),
    }
}

fn not_approved(state: &State, question: Question, target: &Subject) -> Error {
    let name = state.entity(target).map_or_else(|| target.to_string(), |entity| entity.name());
    Error::refused(Reason::ApprovalRequired, format!("{name} requires approval by an operator ({question})"))
}

fn require_approval_if_destructive(state: &State, task: &Subject) -> Result<()> {
    let destructive = state.entity(task).is_some_and(|t| t.as_task().is_destructive());
    if destructive { require_approval(state, Question::Destructive, task) } else { Ok(()) }
}

/// A change to a constraint must be exactly the one that was approved.
fn require_approved_change(state: &State, step: &Step<'_>, wanted: ConstraintChange) -> Result<()> {
    let approvals = approval::decisions(state, Question::Constraint, step.subject, &[machine::Phase::Approved]);
    let mut members = step.payload.clone();
    members.remove("decision_id");
    let same = |decision: &Entity| approval::change(decision.as_decision().change()) == Some((wanted, members.clone()));
    match approvals.iter().any(same) {
        true => Ok(()),
        false => Err(not_approved(state, Question::Constraint, step.subject)),
    }
}

/// Refuses to start a task that is blocked.
fn may_start(state: &State, subject: &Subject) -> Result<()> {
    let Some(task) = state.entity(subject) else { return Ok(()) };
    match blockers(state, &task).first() {
        Some(Blocker::Approval) => require_approval(state, Question::Destructive, subject),
        Some(blocker) => {
            Err(Error::refused(Reason::NotReady, format!("{} cannot start: {}", task.name(), blocker.why())))
        }
        None => Ok(()),
    }
}

/// Something that a task waits for before it can start.
#[derive(Clone, Debug, PartialEq)]
pub enum Blocker {
    Requirement(Box<Entity>),
    Dependency(Box<Entity>),
    /// It is destructive and an operator has not approved it.
    Approval,
}

impl Blocker {
    /// The reason as a clause, for `cannot start: …`.
    pub fn why(&self) -> String {
        match self {
            Blocker::Requirement(requirement) => {
                format!("requirement {} is {}, not Approved", requirement.name(), requirement.phase)
            }
            Blocker::Dependency(task) => format!("it waits for {}, which is {}", task.name(), task.phase),
            Blocker::Approval => "it is destructive and requires approval by an operator".to_owned(),
        }
    }
}

/// Whether a task, or a later attempt at it, succeeded.
fn is_done(state: &State, task: &Entity) -> bool {
    let mut attempt = Some(task.clone());
    while let Some(undone) = attempt.take_if(|task| task.as_task().succeeded_at().is_none()) {
        attempt = undone.as_task().rework().and_then(|rework| Some(state.entity(&rework)?.into_owned()));
    }
    attempt.is_some()
}

/// Everything that a task waits for before it can start.
pub fn blockers(state: &State, task: &Entity) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    let requirement = task.as_task().requirement().and_then(|r| state.entity(&r));
    if let Some(requirement) = requirement.filter(|r| r.phase != machine::Phase::Approved) {
        blockers.push(Blocker::Requirement(Box::new(requirement.into_owned())));
    }
    for id in task.as_task().after() {
        let Ok(subject) = Subject::parse(&format!("{}:{id}", EntityType::Task)) else { continue };
        if let Some(other) = state.entity(&subject).filter(|other| !is_done(state, other)) {
            blockers.push(Blocker::Dependency(Box::new(other.into_owned())));
        }
    }
    if require_approval_if_destructive(state, &task.subject).is_err() {
        blockers.push(Blocker::Approval);
    }
    blockers
}

impl Step<'_> {
    /// The task that an event is about, that it moves, or that its run belongs to.
    pub(super) fn claimed_task(&self, state: &State) -> Option<Entity> {
        let row = self.kind.row();
        let task = match (row.about, row.moves) {
            (SubjectType::One(EntityType::Task), _) => Some(self.subject.clone()),
            (_, Some(_)) => linked(self.kind, self.payload),
            (_, None) => state.entity(self.subject).and_then(|run| run.as_run().task()),
        };
        state.entity(&task?).map(|task| task.into_owned())
    }
}

/// Only the holder of a task works on it; the toolkit itself may end work that fell silent.
fn claim_is_held(state: &State, step: &Step<'_>) -> Result<()> {
    let Step { kind, actor, .. } = *step;
    if actor.kind == ActorKind::Core {
        return Ok(());
    }
    match kind.row().claim {
        Claim::Unneeded => return Ok(()),
        Claim::Makes => return may_assign(state, step),
        Claim::NeedsIfAgent if actor.kind != ActorKind::Agent => return Ok(()),
        Claim::Needs | Claim::NeedsIfAgent => {}
    }
    let Some(task) = step.claimed_task(state) else { return Ok(()) };
    use machine::Phase::{Assigned, Retrying, Running};
    let me = actor.to_string();
    let is_others = |holder: &str| holder != me && matches!(task.phase, Assigned | Running | Retrying);
    let held_by_other = task.as_task().recorded_holder().filter(|holder| is_others(holder));
    // A former holder may abort a task that nobody works on.
    let is_told = kind != Kind::TaskAborted || held_by_other.is_some();
    // Tell the former holder what happened to the task, not that the transition is illegal.
    if let Some(lost) = lost_claim(state, &task, &me).filter(|_| is_told) {
        return Err(lost);
    }
    match held_by_other {
        Some(holder) => Err(Error::refused(Reason::NotHolder, format!("{} is held by {holder}", task.name()))),
        None => Ok(()),
    }
}

/// Refuses to count the end of a task as the doing of a holder that had lost it before.
pub fn ended_by_holder(state: &State, step: &Step<'_>) -> Result<()> {
    let needs_claim = step.kind.row().claim == Claim::Needs && step.actor.kind != ActorKind::Core;
    let task = needs_claim.then(|| step.claimed_task(state)).flatten();
    match task.and_then(|task| lost_claim(state, &task, &step.actor.to_string())) {
        Some(lost) => Err(lost),
        None => Ok(()),
    }
}

/// The refusal of a former holder that has lost its claim, with what became of the task; none if it has not.
pub fn lost_claim(state: &State, task: &Entity, me: &str) -> Option<Error> {
    let known = task.as_task();
    let why = if known.recorded_holder() == Some(me) {
        // A task that was aborted keeps its last holder.
        known.aborted_at()?;
        match timed_out(state, task) {
            true => format!("{}; its run timed out and the task was aborted", how_lost(state, task)),
            false if was_taken(task, me) => {
                let why = known.abort_reason().map(|why| format!(": {why}")).unwrap_or_default();
                format!("{} was aborted{why}", task.name())
            }
            false => return None,
        }
    } else {
        known.past_holders().find(|holder| *holder == me)?;
        match known.taken_from() == Some(me) {
            true => {
                let why = known.assigned_because().map(|why| format!(": {why}")).unwrap_or_default();
                format!("{} was taken from you{why}; {}", task.name(), fate(task)?)
            }
            false => format!("{}; {}", how_lost(state, task), fate(task)?),
        }
    };
    let is_free = task.phase == machine::Phase::Ready && super::ready::may_start(state, task);
    let error = Error::refused(Reason::ClaimLost, why);
    Some(error.about(task.short_reference().filter(|_| is_free)))
}

/// What became of a task after its holder lost it.
fn fate(task: &Entity) -> Option<String> {
    use machine::Phase::{Aborted, Archived, Assigned, Proposed, Ready, Retrying, Running, Succeeded};
    let known = task.as_task();
    Some(match (task.phase, known.recorded_holder()) {
        (Ready, _) => "the task can be claimed again".to_owned(),
        (Proposed, _) => "the task waits again".to_owned(),
        (Assigned | Running | Retrying, Some(holder)) => format!("{holder} holds the task now"),
        (Succeeded | Archived | Aborted, _) => match (known.succeeded_at(), known.abort_reason()) {
            (Some(_), _) => "the task has succeeded since".to_owned(),
            (None, Some(why)) => format!("the task was aborted since: {why}"),
            (None, None) => "the task was aborted since".to_owned(),
        },
        _ => return None,
    })
}

/// How a task was lost: its last run took too long, or its lease expired.
fn how_lost(state: &State, task: &Entity) -> String {
    let run = task.as_task().last_run().and_then(|run| state.entity(&run));
    let is_overtime =
        run.is_some_and(|run| run.phase == machine::Phase::TimedOut && run.as_run().reason() == Some("overtime"));
    match is_overtime {
        true => format!("the run of {} exceeded its time limit", task.name()),
        false => format!("your claim on {} has expired", task.name()),
    }
}

/// Whether somebody else aborted a task, and not because its holder reported a failure.
fn was_taken(task: &Entity, holder: &str) -> bool {
    let known = task.as_task();
    known.failed_actor() != Some(holder) && known.aborted_by() != Some(holder)
}

/// Whether the last run of a task timed out.
fn timed_out(state: &State, task: &Entity) -> bool {
    let run = task.as_task().last_run();
    run.is_some_and(|run| state.phase_of(&run) == machine::Phase::TimedOut)
}

/// An agent claims tasks only for itself, and a job is started only by its supervisor.
fn may_assign(state: &State, step: &Step<'_>) -> Result<()> {
    let job = state.entity(step.subject).filter(|task| task.is_job());
    if let Some(task) = job.filter(|_| step.payload.get("job") != Some(&Value::Bool(true))) {
        let why = format!("{} is a job; only its supervisor can start it", task.name());
        return Err(Error::refused(Reason::NotHolder, why));
    }
    // Only an operator takes a task from its holder, and says why.
    let is_held = matches!(state.phase_of(step.subject), machine::Phase::Assigned | machine::Phase::Running);
    if is_held && (step.actor.is_autonomous() || step.text("reason").is_none() || step.text("holder").is_none()) {
        return Err(illegal(state, step.subject, step.kind));
    }
    match step.text("holder") {
        Some(holder) if step.actor.kind == ActorKind::Agent && holder != step.actor.to_string() => {
            Err(Error::refused(Reason::NotHolder, format!("{} cannot claim a task for {holder}", step.actor)))
        }
        _ => Ok(()),
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
