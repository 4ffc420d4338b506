//! Policy: what may be recorded next, with which cause, and what follows from it. Pure functions: they never read the
//! log or the clock.
//!
//! | module | contents |
//! |---|---|
//! | `rules` | rules that do not depend on settings or time: checked before recording and again by the audit |
//! | `approval` | what a decision is about, and whether an approval is still valid |
//! | `command` | the command of a job in the log, and everything that an approval of it binds |
//! | `pattern` | patterns of commands that require approval |
//! | `react` | consequences that are recorded automatically |
//! | `ready` | which task to start next |
//! | `liveness` | whether an agent shows signs of conscious work |
//! | `due` | what is overdue: leases, runs, decisions, sessions, deep work and archiving |
//! | `component` | what each of the toolkit's own components records |
//! | `code` | the watchdog's rules, by code |
//! | `settings` | every setting, and the values in force |
//! | `plan` | the tasks of a mission: their format, and the order in which they can be done |
//! | `mission`, `review` | limits on a mission's state file, and how reviewers take turns |
//! | `project` | which project something belongs to, and what a pause forbids |
//! | `standing` | what stands in the way of all work: a stop, a pause, the end of a session |
//! | `statement` | what an operator signs in a vault with operator keys |
//! | `authority` | which events operators sign, and whether a signed event keeps to its statement |
//! | `branch` | rules and reactions for a persona's branches |
//! | `clock` | suspends, boots and clock changes, found by comparing clocks |
//! | `scheduler` | how cron and systemd run the watchdog |
//! | `cause` | the default parent of an event |
//! | `audit` | replay of a whole log against the rules |

pub mod approval;
pub mod audit;
pub mod authority;
pub mod belief;
pub mod branch;
mod cause;
pub mod clock;
pub mod code;
pub mod command;
pub mod component;
pub mod due;
pub mod knowledge;
pub mod liveness;
pub mod mission;
pub mod pattern;
pub mod plan;
pub mod project;
mod react;
pub mod ready;
pub mod review;
pub mod rules;
pub mod scheduler;
pub mod settings;
pub mod standing;
pub mod statement;
pub mod waiting;

use serde_json::{Map, Value};

use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, Ulid, limits};
use crate::event::kind::{RecordedBy, SubjectType, is_filled_in};
use crate::event::{Draft, Event, Kind};
use crate::machine;
use crate::state::{Entity, State};

use due::Moment;
pub use react::{REACTOR, makes_at_most, react};
use rules::Step;
pub use settings::Settings;
pub use standing::Standing;

/// A request to record an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub kind: Kind,
    /// A reference. Without one the request creates an entity, or is about the system or the acting agent.
    pub subject: Option<String>,
    pub actor: Actor,
    /// Whether a program sent the request, whatever actor it names.
    pub autonomous: bool,
    /// Ids of existing events; if empty, the default cause is used.
    pub parents: Vec<Ulid>,
    pub key: Option<String>,
    pub payload: Map<String, Value>,
}

/// The decision on a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// Record this event.
    Record(Draft),
    /// The requested state is already in effect, since this event.
    Already(Ulid),
}

/// The event that announces an agent which acts without having been started. None if it is active, or if the request
/// itself reports its presence.
pub fn announce(state: &State, request: &Request) -> Option<Draft> {
    let agent = Subject::new(EntityType::Agent, request.actor.agent()?);
    let about_itself = request.subject.as_ref().is_none_or(|s| *s == agent.to_string() || s == agent.id());
    let is_active = state.phase_of(&agent) == machine::Phase::Active;
    let reports_presence = about_itself && request.kind.row().tells_presence;
    if reports_presence || is_active {
        return None;
    }
    Some(Draft {
        kind: Kind::AgentStarted,
        subject: agent,
        actor: request.actor.clone(),
        parents: state.first_event().into_iter().collect(),
        key: None,
        payload: Map::from_iter([("announced".to_owned(), Value::Bool(true))]),
    })
}

/// Decides on a request at a moment. `mint` supplies the id of a new entity.
pub fn decide(moment: &Moment<'_>, request: Request, mint: &mut dyn FnMut() -> Ulid) -> Result<Ruling> {
    let Moment { state, settings, .. } = *moment;
    let kind = request.kind;
    if kind.row().reserved {
        return Err(Error::refused(
            Reason::ReservedKind,
            format!("{kind} is reserved; only the vault itself records it"),
        ));
    }
    kind.check_payload(&request.payload)?;
    let subject = subject_of(state, &request, mint)?;
    // A signature decides, not the shell that carries it in.
    let by_signature = authority::is_by_signature(state, kind, &request.payload);
    if request.autonomous && rules::requires_operator(kind) && !by_signature {
        return Err(rules::operator_only(kind.as_str(), &request.actor));
    }
    if request.autonomous && kind.row().by == RecordedBy::OperatorOrProposer {
        rules::may_be_edited_by(state, &subject, &request.actor)?;
    }
    if let Some(since) = subject_in_effect_since(state, kind, &subject, &request.payload) {
        let (actor, payload) = (&request.actor, &request.payload);
        rules::ended_by_holder(state, &Step { kind, subject: &subject, actor, payload })?;
        return Ok(Ruling::Already(since));
    }
    let Request { actor, mut parents, key, mut payload, .. } = request;
    fill_in(state, kind, &subject, &actor, &mut payload);
    let step = Step { kind, subject: &subject, actor: &actor, payload: &payload };
    rules::check(state, &step)?;
    moment.check(&step)?;
    command::is_gated_by_settings(state, settings, &step)?;
    liveness::check_declared(state, settings, &step)?;
    check_task_limit(state, settings, kind, &subject)?;
    check_agent_limit(state, kind, &payload)?;
    if parents.is_empty() {
        parents.extend(cause::natural(state, kind, &subject, &actor, &payload));
    }
    Ok(Ruling::Record(Draft { kind, subject, actor, parents, key, payload }))
}

/// The event since which the state that a request asks for has been in effect, if it is.
pub fn in_effect_since(state: &State, request: &Request) -> Option<Ulid> {
    let subject = subject_of(state, request, &mut Ulid::nil).ok()?;
    subject_in_effect_since(state, request.kind, &subject, &request.payload)
}

/// The mission that a job belongs to, if the request fires one.
pub fn mission_of_job(
    state: &State,
    kind: Kind,
    subject: &Subject,
    actor: &Actor,
    payload: &Map<String, Value>,
) -> Option<Entity> {
    let fires = matches!(kind, Kind::TaskProposed | Kind::TaskAssigned) && payload.contains_key(command::COMMAND_HASH);
    let task = state.entity(subject);
    fires.then(|| mission::of_job(state, actor, task.as_deref(), payload)).flatten()
}

/// Adds members that policy knows: the hash that binds a decision to its target, the anchor of a thread, and the mission
/// of a job.
fn fill_in(state: &State, kind: Kind, subject: &Subject, actor: &Actor, payload: &mut Map<String, Value>) {
    if let Some(mission) = mission_of_job(state, kind, subject, actor, payload) {
        payload.insert("of_mission".to_owned(), mission.subject.id().into());
    }
    let hash = match kind {
        Kind::DecisionRequested => approval::read(payload)
            .ok()
            .and_then(|(question, target)| approval::bound_to(state, question, &target, payload.get("change"))),
        Kind::DecisionApproved => state.entity(subject).and_then(|d| d.as_decision().target_hash().map(str::to_owned)),
        _ => None,
    };
    if let Some(anchor) = branch::anchor(state, kind, payload).filter(|_| !payload.contains_key("anchor_id")) {
        payload.insert("anchor_id".to_owned(), anchor.into());
    }
    if let Some(hash) = hash.filter(|_| !payload.contains_key("target_hash")) {
        payload.insert("target_hash".to_owned(), hash.into());
    }
}

/// The event since which a subject has been in the phase that an event of this kind leads to, if it is.
fn subject_in_effect_since(state: &State, kind: Kind, subject: &Subject, payload: &Map<String, Value>) -> Option<Ulid> {
    let entity = state.entity(subject)?;
    let mut rules = machine::table(subject.entity).iter().filter(|rule| rule.1 == kind);
    let arrives = rules.any(|rule| rule.2 == entity.phase && rule.0 != rule.2 && rule.0 != machine::Phase::Absent);
    let differs = |entity: &Entity| {
        let mut choices = kind.row().fields.iter().filter(|field| field.distinguishes);
        choices.any(|field| payload.get(field.name) != entity.facts().get(field.name))
    };
    // An event with choices changes nothing if it repeats the one that was made.
    let has_choices = kind.row().fields.iter().any(|field| field.distinguishes);
    let stays = match machine::step(subject.entity, entity.phase, kind) {
        Some(next) => next == entity.phase && has_choices,
        None => true,
    };
    (arrives && stays && !differs(&entity)).then_some(entity.last_event)
}

/// Refuses to start more agents than the watchdog can look after. One that is only announced is not waited for, and
/// costs nothing.
fn check_agent_limit(state: &State, kind: Kind, payload: &Map<String, Value>) -> Result<()> {
    let is_announced = payload.get("announced").and_then(Value::as_bool).unwrap_or_default();
    let active = state.tally().in_phase(EntityType::Agent, machine::Phase::Active);
    match kind == Kind::AgentStarted && !is_announced && active >= limits::AGENTS_MAX_COUNT {
        true => Err(Error::refused(Reason::LimitReached, format!("agent limit reached: {active} active"))),
        false => Ok(()),
    }
}

/// Refuses a claim beyond the number of concurrent tasks that the settings allow.
fn check_task_limit(state: &State, settings: &Settings, kind: Kind, subject: &Subject) -> Result<()> {
    let max = settings.max_concurrent_tasks();
    let takes = kind == Kind::TaskAssigned && state.phase_of(subject) == machine::Phase::Ready;
    match takes && ready::is_full(state, settings) {
        true => Err(Error::refused(Reason::TooManyTasks, format!("task limit reached: {max} in progress"))),
        false => Ok(()),
    }
}

/// Checks that a request is the same as the event that was recorded with its key.
pub fn check_repeats(state: &State, first: &Event, request: &Request) -> Result<()> {
    let wanted = match request.kind.row().about {
        SubjectType::One(entity) => Some(entity),
        SubjectType::Any => None,
    };
    let same_subject = match &request.subject {
        None => true,
        Some(text) => {
            *text == first.subject || state.resolve(text, wanted).is_ok_and(|s| s.to_string() == first.subject)
        }
    };
    let mut first_payload = first.payload.clone();
    first_payload.retain(|member, _| request.payload.contains_key(member) || !is_filled_in(member));
    if first.event_type.known() == Some(request.kind) && first_payload == request.payload && same_subject {
        return Ok(());
    }
    let key = request.key.as_deref().unwrap_or_default();
    Err(Error::refused(
        Reason::KeyConflict,
        format!("the key '{key}' was already used by event {}, for a different request", first.id),
    ))
}

/// The subject that a request is about; one from `mint` for a new entity.
pub(crate) fn subject_of(state: &State, request: &Request, mint: &mut dyn FnMut() -> Ulid) -> Result<Subject> {
    let kind = request.kind;
    let creates = machine::creates(kind);
    let Some(text) = &request.subject else {
        return match kind.row().about {
            SubjectType::One(EntityType::System) => Ok(Subject::SYSTEM),
            SubjectType::One(EntityType::Agent) => request
                .actor
                .agent()
                .map(|agent| Subject::new(EntityType::Agent, agent))
                .ok_or_else(|| Error::usage(format!("{kind} requires --subject agent:NAME"))),
            SubjectType::One(entity) if creates => Ok(Subject::new(entity, EntityId::parse(&mint().to_string())?)),
            _ => Err(Error::usage(format!("{kind} requires --subject"))),
        };
    };
    let wanted = match kind.row().about {
        SubjectType::One(entity) => Some(entity),
        SubjectType::Any => None,
    };
    let subject = match state.resolve(text, wanted) {
        Ok(subject) => subject,
        // A full subject that does not exist yet names the entity to create.
        Err(unknown) => match Subject::parse(text) {
            Ok(subject) if creates || !kind.fits(&subject) => subject,
            Ok(_) => return Err(unknown),
            Err(malformed) if text.contains(':') => return Err(malformed),
            Err(_) => return Err(unknown),
        },
    };
    if kind.fits(&subject) {
        Ok(subject)
    } else {
        let about = match wanted {
            None => "anything".to_owned(),
            Some(EntityType::System) => "the system".to_owned(),
            Some(entity) => entity.with_article(),
        };
        let name = state.entity(&subject).map_or_else(|| subject.to_string(), |entity| entity.spoken_name());
        Err(Error::usage(format!("the subject of {kind} must be {about}, not {name}")))
    }
}
