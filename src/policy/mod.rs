//! Policy: what may be recorded next, and with which cause. Pure; the log and the clock stay outside.

pub mod audit;
mod cause;

use serde_json::{Map, Value};

use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, Ulid};
use crate::event::kind::{About, Is};
use crate::event::{Draft, Event, Kind};
use crate::machine;
use crate::state::{State, linked};

/// Somebody's wish to record an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub kind: Kind,
    /// A reference, or nothing: then a new entity is made, or it is about the system.
    pub subject: Option<String>,
    pub actor: Actor,
    /// Ids that are known to exist; empty for the natural cause.
    pub parents: Vec<Ulid>,
    pub key: Option<String>,
    pub payload: Map<String, Value>,
}

/// The event that announces an agent, if this is its first command.
pub fn announce(state: &State, request: &Request) -> Option<Draft> {
    let agent = Subject::new(EntityType::Agent, request.actor.agent()?);
    let itself = request.subject.as_ref().is_none_or(|s| *s == agent.to_string() || s == agent.id());
    if (request.kind == Kind::AgentStarted && itself) || state.entity(&agent).is_some() {
        return None;
    }
    Some(Draft {
        kind: Kind::AgentStarted,
        subject: agent,
        actor: request.actor.clone(),
        parents: state.first_event().into_iter().collect(),
        key: None,
        payload: Map::new(),
    })
}

/// Decides on a request. `mint` gives the id of an entity that is to be made.
pub fn decide(state: &State, request: Request, mint: &mut dyn FnMut() -> Ulid) -> Result<Draft> {
    let kind = request.kind;
    if kind.row().reserved {
        return Err(Error::refused(Reason::ReservedKind, format!("{kind} is recorded by the vault itself")));
    }
    kind.check_payload(&request.payload)?;
    let subject = subject_of(state, &request, mint)?;
    check_step(state, kind, &subject)?;
    check_named(state, kind, &request.payload)?;
    let Request { actor, mut parents, key, payload, .. } = request;
    if parents.is_empty() {
        parents.extend(cause::natural(state, kind, &subject, &actor, &payload));
    }
    Ok(Draft { kind, subject, actor, parents, key, payload })
}

/// Whether a request says the same as the event that has its key.
pub fn check_repeats(state: &State, first: &Event, request: &Request) -> Result<()> {
    let wanted = match request.kind.row().about {
        About::One(entity) => Some(entity),
        About::Any => None,
    };
    let same_subject = match &request.subject {
        None => true,
        Some(text) => {
            *text == first.subject || state.resolve(text, wanted).is_ok_and(|s| s.to_string() == first.subject)
        }
    };
    if first.event_type.known() == Some(request.kind) && first.payload == request.payload && same_subject {
        return Ok(());
    }
    let key = request.key.as_deref().unwrap_or_default();
    Err(Error::refused(
        Reason::KeyConflict,
        format!("the key '{key}' belongs to event {}, which says something else", first.id),
    ))
}

fn subject_of(state: &State, request: &Request, mint: &mut dyn FnMut() -> Ulid) -> Result<Subject> {
    let kind = request.kind;
    let creates = machine::creates(kind);
    let Some(text) = &request.subject else {
        return match kind.row().about {
            About::One(EntityType::System) => Ok(Subject::SYSTEM),
            About::One(EntityType::Agent) => request
                .actor
                .agent()
                .map(|agent| Subject::new(EntityType::Agent, agent))
                .ok_or_else(|| Error::usage(format!("{kind} needs --subject agent:NAME"))),
            About::One(entity) if creates => Ok(Subject::new(entity, EntityId::parse(&mint().to_string())?)),
            _ => Err(Error::usage(format!("{kind} needs --subject"))),
        };
    };
    let wanted = match kind.row().about {
        About::One(entity) => Some(entity),
        About::Any => None,
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
            Some(entity @ (EntityType::Agent | EntityType::Artifact)) => format!("an {entity}"),
            Some(entity) => format!("a {entity}"),
        };
        Err(Error::usage(format!("{kind} is about {about}, not about {subject}")))
    }
}

/// The own step of the subject, and that of the entity which moves along.
fn check_step(state: &State, kind: Kind, subject: &Subject) -> Result<()> {
    if kind.row().about == About::Any {
        return match state.entity(subject) {
            Some(_) => Ok(()),
            None => Err(Error::not_found(format!("{subject} does not exist"))),
        };
    }
    let from = state.of(subject);
    if machine::step(subject.entity, from, kind).is_some() {
        return Ok(());
    }
    if from == machine::State::Absent {
        return Err(Error::not_found(format!("{subject} does not exist")));
    }
    Err(illegal(subject, from, kind))
}

/// The entities that a payload names and that must exist. Agents are named before their first command.
fn named_entities(kind: Kind, payload: &Map<String, Value>) -> impl Iterator<Item = Subject> {
    let named = kind.row().fields.iter().filter_map(move |field| {
        let text = payload.get(field.name)?.as_str()?;
        match field.is {
            Is::Id(entity) => Some(Subject::new(entity, EntityId::parse(text).ok()?)),
            Is::Subject => Subject::parse(text).ok(),
            _ => None,
        }
    });
    named.filter(|named| named.entity != EntityType::Agent)
}

/// What the payload names must exist, and be where this event may find it.
fn check_named(state: &State, kind: Kind, payload: &Map<String, Value>) -> Result<()> {
    if let Some(missing) = named_entities(kind, payload).find(|named| state.entity(named).is_none()) {
        return Err(Error::not_found(format!("{missing}, which the payload names, does not exist")));
    }
    match (kind, linked(kind, payload)) {
        (Kind::RunStarted, Some(task)) => match machine::step(task.entity, state.of(&task), kind) {
            Some(_) => Ok(()),
            None => Err(illegal(&task, state.of(&task), kind)),
        },
        _ => Ok(()),
    }
}

fn illegal(subject: &Subject, from: machine::State, kind: Kind) -> Error {
    let legal: Vec<&str> = machine::legal(subject.entity, from).into_iter().map(Kind::as_str).collect();
    let legal = if legal.is_empty() { "nothing".to_owned() } else { legal.join(", ") };
    Error::refused(Reason::IllegalTransition, format!("{subject} is {from}; {kind} is not legal there, only {legal}"))
}
