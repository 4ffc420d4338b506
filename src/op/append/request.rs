//! Checks of a request that do not need the vault.

use serde_json::{Map, Value};

use super::{Context, LineNumber, with_line};
use crate::base::{Actor, Error, Reason, Result, Subject, limits, text};
use crate::event::kind::PayloadField;
use crate::event::{Kind, check_callers_key, intake};
use crate::op::kernel::check_actor;
use crate::policy::Request;

/// One event to record.
#[derive(Clone, Debug, Default)]
pub struct NewEvent {
    /// The name of its kind.
    pub event_type: String,
    /// What it is about: an id, `TYPE:ID`, or a reference.
    pub subject: Option<String>,
    /// Its payload.
    pub payload: Map<String, Value>,
    /// References to the events or entities that caused it.
    pub parents: Vec<String>,
    /// Idempotency key.
    pub key: Option<String>,
    /// Its actor; default: the caller.
    pub actor: Option<String>,
}

/// The size of an event without payload and parents, and of an agent's announcement before it.
const ENVELOPE_MAX_BYTES: usize = 2048;

impl NewEvent {
    /// An upper bound of the bytes written for it. Canonical, because numbers can be longer in canonical form.
    pub fn written_bytes(&self) -> usize {
        let payload = serde_jcs::to_vec(&self.payload).map_or(0, |payload| payload.len());
        payload + 32 * self.parents.len() + ENVELOPE_MAX_BYTES
    }
}

/// Parses one line of a batch: an object with the members of a request.
pub fn parse_line(line: &[u8]) -> Result<NewEvent> {
    if line.ends_with(b"\r") {
        return Err(Error::usage("line ends in CR LF; it must end in LF"));
    }
    let Value::Object(object) = intake::parse(line, 0)? else {
        return Err(Error::usage("not a JSON object; each line of a batch must be one"));
    };
    let mut request = NewEvent::default();
    for (name, value) in object {
        match (name.as_str(), value) {
            ("event_type", Value::String(value)) => request.event_type = value,
            ("subject", Value::String(value)) => request.subject = Some(value),
            ("payload", Value::Object(value)) => request.payload = value,
            ("idempotency_key", Value::String(value)) => request.key = Some(value),
            ("actor", Value::String(value)) => request.actor = Some(value),
            ("parents", Value::Array(list)) if list.iter().all(Value::is_string) => {
                request.parents = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            }
            ("event_type" | "subject" | "payload" | "idempotency_key" | "actor" | "parents", _) => {
                let expected = match name.as_str() {
                    "payload" => "an object",
                    "parents" => "an array of strings",
                    _ => "a string",
                };
                return Err(Error::usage(format!("invalid {name}; must be {expected}")));
            }
            _ => return Err(Error::usage(format!("unknown member '{}'", text::cut(&name, 40)))),
        }
    }
    if request.event_type.is_empty() {
        return Err(Error::usage("missing event_type"));
    }
    Ok(request)
}

/// A request that is well-formed; its references are not resolved yet.
#[derive(Debug)]
pub struct CheckedEvent {
    pub request: Request,
    /// References to events or entities.
    pub parents: Vec<String>,
}

pub(super) fn check_all(
    ctx: &Context,
    requests: Vec<NewEvent>,
    line_number: LineNumber<'_>,
) -> Result<Vec<CheckedEvent>> {
    let with_lines = |(n, request)| check(ctx, request).map_err(|e| with_line(line_number, n, e));
    requests.into_iter().enumerate().map(with_lines).collect()
}

fn check(ctx: &Context, request: NewEvent) -> Result<CheckedEvent> {
    let kind = Kind::parse(&request.event_type).ok_or_else(|| Kind::unknown(&request.event_type))?;
    if let Some(key) = &request.key {
        check_callers_key(key)?;
    }
    if request.parents.len() > limits::PARENTS_MAX_COUNT {
        return Err(Error::usage(format!("{} parents; at most {}", request.parents.len(), limits::PARENTS_MAX_COUNT)));
    }
    kind.check_payload(&request.payload)?;
    let of_jobs = |field: &&PayloadField| field.filled_by.is_of_jobs() && request.payload.contains_key(field.name);
    if let Some(PayloadField { name, .. }) = kind.row().fields.iter().find(of_jobs) {
        return Err(Error::refused(Reason::ReservedKind, format!("payload.{name} is reserved for hf-job fire")));
    }
    // A reference, which has no colon, is resolved later.
    if let Some(subject) = request.subject.as_ref().filter(|s| s.contains(':')) {
        Subject::parse(subject)?;
    }
    let actor = match &request.actor {
        Some(actor) => Actor::parse(actor)?,
        None => ctx.caller.actor.clone(),
    };
    check_actor(&actor, &ctx.caller.shell)?;
    let NewEvent { subject, key, payload, parents, .. } = request;
    let autonomous = ctx.caller.is_in_agent_shell();
    let request = Request { kind, subject, actor, autonomous, parents: Vec::new(), key, payload };
    Ok(CheckedEvent { request, parents })
}
