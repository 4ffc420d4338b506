//! Messages between personas, and from the user.

use serde_json::json;

use super::super::{Context, Recorded, check_actor};
use super::context::Memory;
use super::{begin_as_persona, known_agent, make_persona, me, settle_before_reading, store_text};
use crate::base::{EntityId, EntityType, Error, ErrorKind, Reason, Result, Subject, limits};
use crate::event::Kind;
use crate::op::kernel::Transaction;
use crate::op::kernel::with_view;
use crate::policy::Request;
use crate::state::{Entity, State};

/// A message to send.
#[derive(Clone, Debug, Default)]
pub struct TellRequest {
    /// The receiving agents.
    pub to: Vec<String>,
    /// The text.
    pub text: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Sends a message to one agent or several: to all of them or to none.
pub fn tell(ctx: &Context, request: TellRequest) -> Result<Recorded> {
    let TellRequest { to, text, key } = request;
    // A message from a user interrupts, so no agent may send one as a user.
    check_actor(&ctx.caller.actor, &ctx.caller.shell)?;
    let vault = ctx.open()?;
    let mut all: Vec<EntityId> = Vec::new();
    for name in &to {
        let name = with_view(&vault, |_, state| known_agent(state, name))?;
        if ctx.caller.actor.agent().as_ref() == Some(&name) {
            return Err(Error::usage(format!("agent:{name} cannot send a message to itself; record a note instead")));
        }
        if !all.contains(&name) {
            all.push(name);
        }
    }
    if all.is_empty() || all.len() > RECIPIENTS_MAX {
        return Err(Error::usage(format!("a message needs 1 to {RECIPIENTS_MAX} recipients")));
    }
    let stored = store_text(ctx, "the message", Some(&text))?;
    let mut tx = match ctx.caller.actor.agent() {
        Some(_) => begin_as_persona(ctx, &vault)?.0,
        None => Transaction::begin(ctx, &vault)?,
    };
    let mut asked = Vec::new();
    for (n, to) in all.iter().enumerate() {
        make_persona(&mut tx, to)?;
        let payload = json!({"to": to.as_str(), "text": stored.text, "artifact_id": stored.artifact});
        // They are recorded together, so the first one stands for all.
        let message = Request { key: key.clone().filter(|_| n == 0), ..ctx.request(Kind::MessageSent, None, payload) };
        if let Some(first) = tx.repeated(&message)? {
            return Ok(first);
        }
        asked.push(tx.ask(message)?);
    }
    tx.finish(&asked)
}

/// How many agents a message can be sent to.
const RECIPIENTS_MAX: usize = 100;

/// Which messages to list.
#[derive(Clone, Debug)]
pub struct InboxRequest {
    /// Only unread messages.
    pub only_unread: bool,
    /// At most this many.
    pub limit: usize,
}

impl Default for InboxRequest {
    fn default() -> Self {
        InboxRequest { only_unread: false, limit: limits::PAGE_DEFAULT_COUNT }
    }
}

/// Messages, oldest first.
#[derive(Debug)]
pub struct InboxOutcome {
    pub messages: Vec<FullMessage>,
    pub unread: u64,
    /// Whether there are more messages.
    pub more: bool,
    /// The persona's root.
    pub root: Option<Entity>,
    /// The branch that was left because of a user's message.
    pub left: Option<Entity>,
}

/// A message with its full text.
#[derive(Debug)]
pub struct FullMessage {
    pub message: Entity,
    pub text: String,
}

/// Lists the messages to a persona: the unread ones, or all.
pub fn inbox(ctx: &Context, request: InboxRequest) -> Result<InboxOutcome> {
    let InboxRequest { only_unread, limit } = request;
    let max = limits::PAGE_MAX_COUNT;
    if limit == 0 || limit > max {
        return Err(Error::new(ErrorKind::LimitExceeded, format!("invalid limit {limit}; must be 1 to {max}")));
    }
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let left = settle_before_reading(ctx, &vault)?;
    with_view(&vault, |snapshot, state| {
        let mut found = match only_unread {
            true => state.unread_by(name.as_str(), limit + 1),
            false => {
                let agent = Subject::new(EntityType::Agent, name.clone());
                let mut all = state.made_for(&agent, EntityType::Message);
                all.sort_by_key(|message| message.ordinal);
                all
            }
        };
        let more = found.len() > limit;
        // Unread messages are listed from the oldest on; of all messages, the newest are listed.
        let found = if only_unread {
            found.drain(..limit.min(found.len())).collect()
        } else {
            found.split_off(found.len().saturating_sub(limit))
        };
        let memory = Memory { ctx, snapshot, state };
        let messages = found.into_iter().map(|message| memory.full_message(message)).collect::<Result<_>>()?;
        let root = state.root(&name);
        let unread = root.as_ref().map_or(0, |root| root.as_branch().unread());
        Ok(InboxOutcome { messages, unread, more, root, left })
    })
}

/// Messages to mark as read.
#[derive(Clone, Debug, Default)]
pub struct ReadRequest {
    /// The messages; if empty, all unread ones.
    pub references: Vec<String>,
}

#[derive(Debug)]
pub struct ReadOutcome {
    pub recorded: Recorded,
    pub messages: Vec<FullMessage>,
    pub unread: u64,
    /// The persona's root.
    pub root: Option<Entity>,
}

/// Marks messages as read: the named ones, or all unread ones. Returns none if there is no unread message.
pub fn read(ctx: &Context, request: ReadRequest) -> Result<Option<ReadOutcome>> {
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let (mut tx, _) = begin_as_persona(ctx, &vault)?;
    let messages: Vec<Entity> = match request.references.as_slice() {
        [] => tx.state().unread_by(name.as_str(), limits::PAGE_MAX_COUNT),
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
    let root = tx.state().root(&name);
    let unread = root.as_ref().map_or(0, |root| root.as_branch().unread());
    let mut recorded = tx.finish(&asked)?;
    let full = with_view(&vault, |snapshot, state| {
        let memory = Memory { ctx, snapshot, state };
        messages.iter().cloned().map(|message| memory.full_message(message)).collect::<Result<Vec<_>>>()
    });
    // They are recorded as read: if the full texts cannot be read, only the start of each is returned.
    let messages = full.unwrap_or_else(|error| {
        recorded.warnings.push(format!("cannot read the full text of long messages: {error}"));
        let cut =
            |message: Entity| FullMessage { text: message.as_message().text().unwrap_or_default().to_owned(), message };
        messages.into_iter().map(cut).collect()
    });
    Ok(Some(ReadOutcome { recorded, messages, unread, root }))
}

fn own_message(state: &State, name: &EntityId, reference: &str) -> Result<Entity> {
    let subject = state.find(reference, EntityType::Message)?;
    let message = state.entity(&subject).expect("it was resolved").into_owned();
    match message.as_message().to() == Some(name.as_str()) {
        true => Ok(message),
        false => Err(Error::refused(Reason::NotHolder, format!("{} is not a message to agent:{name}", message.name()))),
    }
}
