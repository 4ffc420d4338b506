//! Messages between personas, and from the user.

use serde_json::json;

use super::super::{Context, Recorded, check_actor};
use super::context::Memory;
use super::{keep, known, make_persona, me, settle_before_looking, sit_down};
use crate::base::{EntityId, EntityType, Error, ErrorKind, Reason, Result, Subject, limits};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::kernel::Transaction;
use crate::op::kernel::with_view;
use crate::policy::Request;
use crate::state::{Entity, State};

/// Something that an agent is to be told.
#[derive(Clone, Debug, Default)]
pub struct TellRequest {
    /// The agent.
    pub to: String,
    /// What.
    pub text: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Tells an agent something.
pub fn tell(ctx: &Context, request: TellRequest) -> Result<Recorded> {
    let TellRequest { to, text, key } = request;
    // A user's word interrupts, so no agent may speak as one.
    check_actor(&ctx.caller.actor, &ctx.caller.shell)?;
    let vault = ctx.open()?;
    let to = with_view(&vault, |_, state| known(state, &to))?;
    if ctx.caller.actor.agent().as_ref() == Some(&to) {
        return Err(Error::usage(format!("agent:{to} cannot tell itself something: that is a note")));
    }
    let kept = keep(ctx, "the message", Some(&text))?;
    let mut tx = match ctx.caller.actor.agent() {
        Some(_) => sit_down(ctx, &vault)?.0,
        None => Transaction::begin(ctx, &vault)?,
    };
    make_persona(&mut tx, &to)?;
    let payload = json!({"to": to.as_str(), "text": kept.text, "artifact_id": kept.artifact});
    let told = Request { key, ..ctx.request(Kind::MessageSent, None, payload) };
    if let Some(first) = tx.repeated(&told)? {
        return Ok(first);
    }
    let asked = tx.ask(told)?;
    tx.finish(&[asked])
}

/// Which messages.
#[derive(Clone, Debug)]
pub struct InboxRequest {
    /// Only what is not read yet.
    pub only_unread: bool,
    /// How many at most.
    pub limit: usize,
}

impl Default for InboxRequest {
    fn default() -> Self {
        InboxRequest { only_unread: false, limit: limits::LOG_PAGE_DEFAULT_EVENTS }
    }
}

/// Messages, oldest first.
#[derive(Debug)]
pub struct InboxOutcome {
    pub messages: Vec<Told>,
    pub unread: u64,
    /// Whether there are older ones.
    pub more: bool,
    /// The branch that was left for them, if one was.
    pub left: Option<Entity>,
}

/// A message with all of its text.
#[derive(Debug)]
pub struct Told {
    pub message: Entity,
    pub text: String,
}

/// The unread messages of a persona, oldest first.
pub(super) fn unread(state: &State, persona: &EntityId) -> Vec<Entity> {
    let some = state.root(persona).is_some_and(|root| root.as_branch().unread() > 0);
    let all = if some { state.in_phase(EntityType::Message, Phase::Unread, usize::MAX) } else { Vec::new() };
    all.into_iter().filter(|message| message.as_message().to() == Some(persona.as_str())).collect()
}

/// What was told to a persona: what it has not read yet, or all of it.
pub fn inbox(ctx: &Context, request: InboxRequest) -> Result<InboxOutcome> {
    let InboxRequest { only_unread, limit } = request;
    let most = limits::LOG_PAGE_MAX_EVENTS;
    if limit == 0 || limit > most {
        return Err(Error::new(ErrorKind::LimitExceeded, format!("a page has 1 to {most} entries, not {limit}")));
    }
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let left = settle_before_looking(ctx, &vault)?;
    with_view(&vault, |snapshot, state| {
        let mut found = match only_unread {
            true => unread(state, &name),
            false => {
                let agent = Subject::new(EntityType::Agent, name.clone());
                let mut all = state.made_for(&agent, EntityType::Message);
                all.sort_by_key(|message| message.ordinal);
                all
            }
        };
        let more = found.len() > limit;
        // Whoever reads what is new begins with the oldest, whoever looks back with the newest.
        let found = if only_unread {
            found.drain(..limit.min(found.len())).collect()
        } else {
            found.split_off(found.len().saturating_sub(limit))
        };
        let memory = Memory { ctx, snapshot, state };
        let messages = found.into_iter().map(|message| memory.told(message)).collect::<Result<_>>()?;
        let unread = state.root(&name).map_or(0, |root| root.as_branch().unread());
        Ok(InboxOutcome { messages, unread, more, left })
    })
}

/// Messages that are to be read.
#[derive(Clone, Debug, Default)]
pub struct ReadRequest {
    /// These; all that are new if none is named.
    pub references: Vec<String>,
}

#[derive(Debug)]
pub struct ReadOutcome {
    pub recorded: Recorded,
    pub messages: Vec<Told>,
    pub unread: u64,
}

/// Reads messages: those that are named, or all that are new. Nothing if there is none.
pub fn read(ctx: &Context, request: ReadRequest) -> Result<Option<ReadOutcome>> {
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let (mut tx, _) = sit_down(ctx, &vault)?;
    let messages: Vec<Entity> = match request.references.as_slice() {
        [] => unread(tx.state(), &name).into_iter().take(limits::LOG_PAGE_MAX_EVENTS).collect(),
        some => some.iter().map(|reference| own_message(tx.state(), &name, reference)).collect::<Result<_>>()?,
    };
    if messages.is_empty() {
        return Ok(None);
    }
    let mut asked = Vec::new();
    for message in &messages {
        let subject = message.subject.to_string();
        asked.push(tx.ask(ctx.request(Kind::MessageRead, Some(&subject), json!({"to": name.as_str()})))?);
    }
    let now = |message: Entity| tx.state().entity(&message.subject).map_or(message, |now| now.into_owned());
    let messages: Vec<Entity> = messages.into_iter().map(now).collect();
    let unread = tx.state().root(&name).map_or(0, |root| root.as_branch().unread());
    let mut recorded = tx.finish(&asked)?;
    let told = with_view(&vault, |snapshot, state| {
        let memory = Memory { ctx, snapshot, state };
        messages.iter().cloned().map(|message| memory.told(message)).collect::<Result<Vec<_>>>()
    });
    // They are read whatever happens now: what is remembered of them has to do.
    let messages = told.unwrap_or_else(|error| {
        recorded.warnings.push(format!("long messages are cut, they could not be read: {error}"));
        let cut = |message: Entity| Told { text: message.as_message().text().unwrap_or_default().to_owned(), message };
        messages.into_iter().map(cut).collect()
    });
    Ok(Some(ReadOutcome { recorded, messages, unread }))
}

fn own_message(state: &State, name: &EntityId, reference: &str) -> Result<Entity> {
    let subject = state.find(reference, EntityType::Message)?;
    let message = state.entity(&subject).expect("it was resolved").into_owned();
    match message.as_message().to() == Some(name.as_str()) {
        true => Ok(message),
        false => Err(Error::refused(Reason::NotHolder, format!("{} was told to somebody else", message.name()))),
    }
}
