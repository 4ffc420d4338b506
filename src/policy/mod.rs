//! Policy: what may be recorded next, with which cause, and what follows from it. Pure; the log and
//! the clock stay outside.
//!
//! | room | what is in it |
//! |---|---|
//! | `rules` | what holds whatever the settings say: asked before recording, and again by the audit |
//! | `approval` | what decisions are about and whether one still counts |
//! | `react` | what follows an event by itself |
//! | `ready` | which task is next |
//! | `liveness` | whether an agent is consciously at work |
//! | `due` | what the passing of time asks for: the one place that compares a time with a limit |
//! | `code` | the rules of the watchdog, by their codes |
//! | `settings` | every setting, and what is in force |
//! | `mission`, `review` | how short the state of a mission is, and how reviewers take turns |
//! | `project` | what belongs to which project, and what a pause forbids |
//! | `branch` | what a persona's branches keep, and what they follow |
//! | `clock` | what the machine's clocks tell |
//! | `cause` | the natural parents of an event |
//! | `audit` | a whole log replayed |

pub mod approval;
pub mod audit;
pub mod branch;
mod cause;
pub mod clock;
pub mod code;
pub mod due;
pub mod liveness;
pub mod mission;
pub mod project;
mod react;
pub mod ready;
pub mod review;
pub mod rules;
pub mod settings;

use serde_json::{Map, Value};

use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, Ulid};
use crate::event::kind::{SubjectType, is_filled_by_policy};
use crate::event::{Draft, Event, Kind};
use crate::machine;
use crate::state::{Entity, State};

use due::Moment;
pub use react::{REACTOR, makes_at_most, react};
use rules::Step;
pub use settings::Settings;

/// Somebody's wish to record an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub kind: Kind,
    /// A reference, or nothing: then a new entity is made, or it is about the system.
    pub subject: Option<String>,
    pub actor: Actor,
    /// Whether a program asks, whatever actor it names.
    pub autonomous: bool,
    /// Ids that are known to exist; empty for the natural cause.
    pub parents: Vec<Ulid>,
    pub key: Option<String>,
    pub payload: Map<String, Value>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It is to be recorded.
    Record(Draft),
    /// What it asks for is so already, since this event.
    Already(Ulid),
}

/// The event that announces an agent, if this is its first command.
pub fn announce(state: &State, request: &Request) -> Option<Draft> {
    let agent = Subject::new(EntityType::Agent, request.actor.agent()?);
    let itself = request.subject.as_ref().is_none_or(|s| *s == agent.to_string() || s == agent.id());
    let here = state.phase_of(&agent) == machine::Phase::Active;
    let speaks_of_itself = itself && request.kind.row().tells_presence;
    if speaks_of_itself || here {
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

/// Decides on a request at a moment. `mint` gives the id of an entity that is to be made.
pub fn decide(moment: &Moment<'_>, request: Request, mint: &mut dyn FnMut() -> Ulid) -> Result<Ruling> {
    let Moment { state, settings, .. } = *moment;
    let kind = request.kind;
    if kind.row().reserved {
        return Err(Error::refused(Reason::ReservedKind, format!("{kind} is recorded by the vault itself")));
    }
    kind.check_payload(&request.payload)?;
    let subject = subject_of(state, &request, mint)?;
    if request.autonomous && rules::is_operators(kind) {
        let why = format!("{kind} is for an operator, not for {} in an agent's shell", request.actor);
        return Err(Error::refused(Reason::OperatorOnly, why));
    }
    if let Some(since) = holds_already(state, kind, &subject, &request.payload) {
        return Ok(Ruling::Already(since));
    }
    let Request { actor, mut parents, key, mut payload, .. } = request;
    fill_in(state, kind, &subject, &mut payload);
    let step = Step { kind, subject: &subject, actor: &actor, payload: &payload };
    rules::check(state, &step)?;
    moment.check(&step)?;
    liveness::check_declared(state, settings, &step)?;
    check_room(state, settings, kind, &subject)?;
    if parents.is_empty() {
        parents.extend(cause::natural(state, kind, &subject, &actor, &payload));
    }
    Ok(Ruling::Record(Draft { kind, subject, actor, parents, key, payload }))
}

/// Whether what a request asks for is so already, since which event.
pub fn holds(state: &State, request: &Request) -> Option<Ulid> {
    let subject = subject_of(state, request, &mut Ulid::nil).ok()?;
    holds_already(state, request.kind, &subject, &request.payload)
}

/// Binds a question, and its answer, to what it is about.
fn fill_in(state: &State, kind: Kind, subject: &Subject, payload: &mut Map<String, Value>) {
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

/// Whether something is already where an event of this kind would take it, since which event.
fn holds_already(state: &State, kind: Kind, subject: &Subject, payload: &Map<String, Value>) -> Option<Ulid> {
    let entity = state.entity(subject)?;
    let mut rules = machine::table(subject.entity).iter().filter(|rule| rule.1 == kind);
    let arrives = rules.any(|rule| rule.2 == entity.phase && rule.0 != rule.2 && rule.0 != machine::Phase::Absent);
    let differs = |entity: &Entity| {
        let mut choices = kind.row().fields.iter().filter(|field| field.distinguishes);
        choices.any(|field| payload.get(field.name) != entity.facts().get(field.name))
    };
    let stays = machine::step(subject.entity, entity.phase, kind).is_none();
    (arrives && stays && !differs(&entity)).then_some(entity.last_event)
}

/// No more tasks at once than the settings allow.
fn check_room(state: &State, settings: &Settings, kind: Kind, subject: &Subject) -> Result<()> {
    let most = settings.max_concurrent_tasks();
    let takes = kind == Kind::TaskAssigned && state.phase_of(subject) == machine::Phase::Ready;
    match takes && ready::active(state) >= most {
        true => Err(Error::refused(Reason::TooManyTasks, format!("{most} tasks are under way, which is the most"))),
        false => Ok(()),
    }
}

/// Whether a request says the same as the event that has its key.
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
    let mut said = first.payload.clone();
    said.retain(|member, _| request.payload.contains_key(member) || !is_filled_by_policy(member));
    if first.event_type.known() == Some(request.kind) && said == request.payload && same_subject {
        return Ok(());
    }
    let key = request.key.as_deref().unwrap_or_default();
    Err(Error::refused(
        Reason::KeyConflict,
        format!("the key '{key}' belongs to event {}, which says something else", first.id),
    ))
}

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
                .ok_or_else(|| Error::usage(format!("{kind} needs --subject agent:NAME"))),
            SubjectType::One(entity) if creates => Ok(Subject::new(entity, EntityId::parse(&mint().to_string())?)),
            _ => Err(Error::usage(format!("{kind} needs --subject"))),
        };
    };
    let wanted = match kind.row().about {
        SubjectType::One(entity) => Some(entity),
        SubjectType::Any => None,
    };
    let subject = match state.resolve(text, wanted) {
        Ok(subject) => subject,
        // A whole subject that nobody has yet is how a caller names what is to be made.
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
        Err(Error::usage(format!("{kind} is about {about}, not about {subject}")))
    }
}
