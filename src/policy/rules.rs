//! The rules that hold whatever the settings and the clock say. `decide` asks them before an event
//! is recorded, the audit asks the same ones afterwards.

use serde_json::{Map, Value};

use super::approval::{self, ConstraintChange, Question};
use super::{mission, project, review};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Error, HeartbeatId, Reason, Result, Subject};
use crate::event::Kind;
use crate::event::kind::{Claim, LinkRule, RecordedBy, SpeaksFor, Starts, SubjectType};
use crate::machine;
use crate::state::{Entity, State, linked};

/// An event that is to be recorded, or was.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub kind: Kind,
    pub subject: &'a Subject,
    pub actor: &'a Actor,
    pub payload: &'a Map<String, Value>,
}

impl Step<'_> {
    /// A member of the payload that is a text.
    pub(super) fn text(&self, member: &str) -> Option<&str> {
        self.payload.get(member).and_then(Value::as_str)
    }
}

type Rule = fn(&State, &Step<'_>) -> Result<()>;

/// Every rule, in the order in which they are asked: the first that refuses gives the answer.
const RULES: &[Rule] = &[
    names_exist,
    speaks_for_itself,
    claim_is_held,
    waits_for_nothing,
    step_is_legal,
    operator_decides,
    not_while_stopped,
    project_is_at_work,
    gate_is_open,
    stays_short,
    takes_turns,
    super::branch::keeps_branches,
];

/// Whether the rules allow this where the state stands now.
pub fn check(state: &State, step: &Step<'_>) -> Result<()> {
    RULES.iter().try_for_each(|rule| rule(state, step))
}

/// What only a person may do.
pub fn is_operators(kind: Kind) -> bool {
    kind.row().by == RecordedBy::Operator
}

/// What the payload names must exist; only the constraint that a decision is about comes later.
fn names_exist(state: &State, step: &Step<'_>) -> Result<()> {
    let later = |named: &Subject| step.kind == Kind::DecisionRequested && named.entity == EntityType::Constraint;
    for named in step.kind.required_references(step.payload) {
        if named == *step.subject {
            return Err(Error::usage(format!("{named} cannot name itself")));
        }
        if !later(&named) && state.entity(&named).is_none() {
            return Err(Error::not_found(format!("{named}, which the payload names, does not exist")));
        }
    }
    Ok(())
}

/// Whoever would begin too early is told what to wait for, not only that it is not his turn.
fn waits_for_nothing(state: &State, step: &Step<'_>) -> Result<()> {
    let task = match step.kind.row().starts {
        Starts::Claim | Starts::Run => step.claimed_task(state).map(|task| task.subject),
        Starts::Nothing | Starts::Session | Starts::Retry => None,
    };
    match task.filter(|task| state.phase_of(task) == machine::Phase::Proposed) {
        Some(task) => may_begin(state, &task),
        None => Ok(()),
    }
}

/// An agent says what it does itself, and nothing for another.
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
            Err(Error::refused(Reason::NotHolder, format!("{} cannot speak for {agent}", step.actor)))
        }
        _ => Ok(()),
    }
}

/// The own step of the subject, and that of the entity which moves along.
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
            Err(Error::not_found(format!("{other} is not at work")))
        }
        LinkRule::MustBeLegal | LinkRule::MustBeActive | LinkRule::IfLegal => Ok(()),
    }
}

pub(super) fn illegal(state: &State, subject: &Subject, kind: Kind) -> Error {
    let from = state.phase_of(subject);
    let legal: Vec<&str> = machine::legal(subject.entity, from).into_iter().map(Kind::as_str).collect();
    let legal = if legal.is_empty() { "nothing".to_owned() } else { legal.join(", ") };
    Error::refused(Reason::IllegalTransition, format!("{subject} is {from}; {kind} is not legal there, only {legal}"))
}

/// Nothing starts while everything is stopped.
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

/// That everything is stopped, and why.
pub fn stopped(state: &State) -> Error {
    let system = state.entity(&Subject::SYSTEM);
    let why = system.as_ref().and_then(|system| system.as_system().stop_reason()).unwrap_or("no reason was given");
    Error::refused(Reason::SystemStopped, format!("everything is stopped: {}", crate::base::text::cut(why, 80)))
}

/// A program cannot decide what is a person's to decide. A decision that timed out may be closed.
fn operator_decides(state: &State, step: &Step<'_>) -> Result<()> {
    let Step { kind, subject, actor, .. } = *step;
    let follows = match kind {
        Kind::DecisionRejected => state.phase_of(subject) == machine::Phase::Escalated && actor.kind == ActorKind::Core,
        Kind::RequirementRejected => approval::rejected(state, Question::Requirement, subject),
        _ => false,
    };
    let refused = match kind.row().by {
        RecordedBy::Anyone => false,
        RecordedBy::NotAgents => actor.kind == ActorKind::Agent,
        RecordedBy::Operator => actor.is_autonomous() && !follows,
    };
    if refused {
        return Err(Error::refused(Reason::OperatorOnly, format!("{kind} is for an operator, not for {actor}")));
    }
    if kind == Kind::DecisionApproved {
        check_choice(state, step)?;
    }
    Ok(())
}

/// What is approved must be one of the options, and what it was when it was asked for.
fn check_choice(state: &State, step: &Step<'_>) -> Result<()> {
    let Some(decision) = state.entity(step.subject) else { return Ok(()) };
    let options: Vec<&str> = decision.as_decision().options().collect();
    match step.text("chosen_option") {
        None if options.is_empty() => {}
        Some(chosen) if options.contains(&chosen) => {}
        None => return Err(Error::usage(format!("choose one of its options: {}", options.join(", ")))),
        Some(chosen) if options.is_empty() => {
            return Err(Error::usage(format!("'{chosen}' is not an option: it has none")));
        }
        Some(chosen) => {
            return Err(Error::usage(format!("'{chosen}' is not one of its options: {}", options.join(", "))));
        }
    }
    match approval::still_fits(state, &decision) {
        true => Ok(()),
        false => Err(Error::refused(
            Reason::Changed,
            format!("what {} was asked about has changed since: it has to be asked anew", decision.name()),
        )),
    }
}

/// What needs an approval, or other things done first.
fn gate_is_open(state: &State, step: &Step<'_>) -> Result<()> {
    let Step { kind, subject, .. } = *step;
    match kind {
        Kind::DecisionRequested => {
            let (question, target) = approval::read(step.payload)?;
            can_be_asked(state, question, &target)
        }
        Kind::DeepWorkStarted => one_work_at_a_time(state, step),
        Kind::RequirementApproved => need(state, Question::Requirement, subject),
        Kind::ConstraintApplied => need_change(state, step, ConstraintChange::Apply),
        Kind::ConstraintRemoved => need_change(state, step, ConstraintChange::Remove),
        // A task that is tried again was allowed to begin before.
        Kind::TaskReady if state.phase_of(subject) == machine::Phase::Retrying => need_if_destructive(state, subject),
        Kind::TaskReady => may_begin(state, subject),
        // A task that is tried again was allowed to begin before.
        Kind::TaskAssigned if state.phase_of(subject) == machine::Phase::Ready => may_begin(state, subject),
        Kind::TaskAssigned => need_if_destructive(state, subject),
        Kind::RunStarted => linked(kind, step.payload).map_or(Ok(()), |task| need_if_destructive(state, &task)),
        _ => Ok(()),
    }
}

/// Nothing starts in a project that is paused, and nothing changes in one that is archived.
fn project_is_at_work(state: &State, step: &Step<'_>) -> Result<()> {
    project::check(state, step)
}

/// A mission's state can be read at a glance, and its rounds are counted.
fn stays_short(state: &State, step: &Step<'_>) -> Result<()> {
    match step.subject.entity {
        EntityType::Mission if step.kind.row().about == SubjectType::One(EntityType::Mission) => {
            mission::check(state, step.kind, step.subject, step.payload)
        }
        _ => Ok(()),
    }
}

/// Reviewers reply in turn, and only in the form that was asked for.
fn takes_turns(state: &State, step: &Step<'_>) -> Result<()> {
    review::check(state, step.kind, step.subject, step.actor, step.payload)
}

/// An agent is in one deep work at a time, and a strict one says how long.
fn one_work_at_a_time(state: &State, step: &Step<'_>) -> Result<()> {
    if step.text("mode") == Some("strict") && !step.payload.contains_key("minutes") {
        return Err(Error::usage("a strict deep work needs payload.minutes"));
    }
    if step.text("heartbeat_id").and_then(HeartbeatId::parse).is_none() {
        return Err(Error::usage("payload.heartbeat_id must be YYYYMMDDHHMMSS"));
    }
    let agent = linked(step.kind, step.payload).and_then(|agent| state.entity(&agent));
    let open = agent.and_then(|agent| agent.as_agent().deep_work());
    match open.filter(|open| state.phase_of(open) == machine::Phase::Open) {
        Some(open) => {
            Err(Error::refused(Reason::IllegalTransition, format!("{open} is Open: one deep work has to end first")))
        }
        None => Ok(()),
    }
}

/// Whether an answer would lead anywhere.
fn can_be_asked(state: &State, question: Question, target: &Subject) -> Result<()> {
    use machine::Phase::{Absent, Active, Proposed, Rejected, Superseded, Verified};
    let at = state.phase_of(target);
    let fits = match question {
        // One may ask early; the analysis asks anew.
        Question::Requirement => !matches!(at, Rejected | Superseded | Verified),
        Question::Destructive => at == Proposed,
        Question::Constraint => matches!(at, Absent | Active),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::refused(
            Reason::NotReady,
            format!("{target} is {at}: there is nothing to decide about it ({question})"),
        )),
    }
}

fn need(state: &State, question: Question, target: &Subject) -> Result<()> {
    match approval::approved(state, question, target) {
        Some(_) => Ok(()),
        None => Err(not_approved(state, question, target)),
    }
}

fn not_approved(state: &State, question: Question, target: &Subject) -> Error {
    let name = state.entity(target).map_or_else(|| target.to_string(), |entity| entity.name());
    Error::refused(Reason::ApprovalRequired, format!("{name} needs an operator's approval ({question}) first"))
}

fn need_if_destructive(state: &State, task: &Subject) -> Result<()> {
    let destructive = state.entity(task).is_some_and(|t| t.as_task().is_destructive());
    if destructive { need(state, Question::Destructive, task) } else { Ok(()) }
}

/// A change to a constraint must be the one that was approved, to the letter.
fn need_change(state: &State, step: &Step<'_>, wanted: ConstraintChange) -> Result<()> {
    let approvals = approval::decisions(state, Question::Constraint, step.subject, &[machine::Phase::Approved]);
    let mut said = step.payload.clone();
    said.remove("decision_id");
    let same = |decision: &Entity| approval::change(decision.as_decision().change()) == Some((wanted, said.clone()));
    match approvals.iter().any(same) {
        true => Ok(()),
        false => Err(not_approved(state, Question::Constraint, step.subject)),
    }
}

/// Whether a task's requirement is approved, its dependencies are done, and it is allowed.
fn may_begin(state: &State, subject: &Subject) -> Result<()> {
    let Some(task) = state.entity(subject) else { return Ok(()) };
    match waits_for(state, &task).first() {
        Some(Blocker::Approval) => need(state, Question::Destructive, subject),
        Some(wait) => Err(Error::refused(Reason::NotReady, format!("{} cannot begin: {}", task.name(), wait.why()))),
        None => Ok(()),
    }
}

/// What a task waits for before it can begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Blocker {
    Requirement(Box<Entity>),
    Dependency(Box<Entity>),
    /// An operator's word on something destructive.
    Approval,
}

impl Blocker {
    pub fn why(&self) -> String {
        match self {
            Blocker::Requirement(requirement) => format!("{} is {}", requirement.name(), requirement.phase),
            Blocker::Dependency(task) => format!("it waits for {}, which is {}", task.name(), task.phase),
            Blocker::Approval => "it is destructive, and an operator has to approve it".to_owned(),
        }
    }
}

/// Whether a task succeeded, or one that did it anew.
fn is_done(state: &State, task: &Entity) -> bool {
    let anew = |other: &Entity| other.as_task().rework_of().as_ref() == Some(&task.subject);
    task.as_task().succeeded_at().is_some()
        || state.made_for(&task.subject, EntityType::Task).iter().any(|other| anew(other) && is_done(state, other))
}

/// Everything that a task waits for before it can begin.
pub fn waits_for(state: &State, task: &Entity) -> Vec<Blocker> {
    let mut waits = Vec::new();
    let requirement = task.as_task().requirement().and_then(|r| state.entity(&r));
    if let Some(requirement) = requirement.filter(|r| r.phase != machine::Phase::Approved) {
        waits.push(Blocker::Requirement(Box::new(requirement.into_owned())));
    }
    for id in task.as_task().after() {
        let Ok(subject) = Subject::parse(&format!("{}:{id}", EntityType::Task)) else { continue };
        if let Some(other) = state.entity(&subject).filter(|other| !is_done(state, other)) {
            waits.push(Blocker::Dependency(Box::new(other.into_owned())));
        }
    }
    if need_if_destructive(state, &task.subject).is_err() {
        waits.push(Blocker::Approval);
    }
    waits
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

/// Whoever holds a task works on it, nobody else; the toolkit itself may end what fell silent.
fn claim_is_held(state: &State, step: &Step<'_>) -> Result<()> {
    let Step { kind, actor, .. } = *step;
    if actor.kind == ActorKind::Core {
        return Ok(());
    }
    match kind.row().claim {
        Claim::Unneeded => return Ok(()),
        Claim::Makes => return assigns_itself(state, step),
        Claim::NeedsIfAgent if actor.kind != ActorKind::Agent => return Ok(()),
        Claim::Needs | Claim::NeedsIfAgent => {}
    }
    let Some(task) = step.claimed_task(state) else { return Ok(()) };
    use machine::Phase::{Aborted, Assigned, Ready, Retrying, Running};
    let me = actor.to_string();
    let held_once = task.as_task().past_holders().any(|holder| holder == me);
    match (task.phase, task.as_task().last_holder()) {
        (Assigned | Running | Retrying, Some(holder)) if holder != me => Err(match held_once {
            true => Error::refused(
                Reason::ClaimLost,
                format!("your claim on {} has passed: {holder} holds it now", task.name()),
            ),
            false => Error::refused(Reason::NotHolder, format!("{} is held by {holder}", task.name())),
        }),
        // Whoever let its time pass is told what became of the task, not that a step is not legal there.
        (Aborted, Some(holder)) if holder == me && timed_out(state, &task) => Err(Error::refused(
            Reason::ClaimLost,
            format!("your claim on {} has passed: its run timed out, and it was given up", task.name()),
        )),
        (Ready, _) if held_once && kind != Kind::TaskAborted => Err(Error::refused(
            Reason::ClaimLost,
            format!("your claim on {} has passed: it is free to be claimed again", task.name()),
        )
        .about(task.short_reference())),
        _ => Ok(()),
    }
}

/// Whether the last run of a task timed out.
fn timed_out(state: &State, task: &Entity) -> bool {
    let run = task.as_task().last_run();
    run.is_some_and(|run| state.phase_of(&run) == machine::Phase::TimedOut)
}

/// An agent takes work for itself only, and a job is started by its supervisor.
fn assigns_itself(state: &State, step: &Step<'_>) -> Result<()> {
    let job = state.entity(step.subject).filter(|task| task.is_job());
    if let Some(task) = job.filter(|_| step.payload.get("job") != Some(&Value::Bool(true))) {
        let why = format!("{} is a job, and its supervisor starts it", task.name());
        return Err(Error::refused(Reason::NotHolder, why));
    }
    match step.text("holder") {
        Some(holder) if step.actor.kind == ActorKind::Agent && holder != step.actor.to_string() => {
            Err(Error::refused(Reason::NotHolder, format!("{} cannot claim for {holder}", step.actor)))
        }
        _ => Ok(()),
    }
}
