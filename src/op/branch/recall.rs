//! Recalling earlier threads: their messages, and how they ended.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::super::Context;
use super::context::{Memory, indented};
use super::{me, own_branch};
use crate::base::{Actor, EntityId, EntityType, Error, Result, Subject, Ulid, text};
use crate::event::{Event, Kind};
use crate::machine::Phase;
use crate::op::kernel::with_view;
use crate::state::Entity;

/// What to recall.
#[derive(Clone, Debug, Default)]
pub struct RecallRequest {
    /// A branch; default: all of them.
    pub reference: Option<String>,
    /// Only this thread, with all of its messages.
    pub thread: Option<u64>,
    /// Only texts that contain this, ignoring case.
    pub grep: Option<String>,
}

/// A recalled thread. `messages` has time, sender and text of each message, in the order of the log.
#[derive(Debug)]
struct RecalledThread {
    thread: Entity,
    summary: Option<String>,
    messages: Vec<(String, String, String)>,
    tail: Vec<String>,
}

#[derive(Debug)]
pub struct RecallOutcome {
    branches: Vec<(Entity, Vec<RecalledThread>)>,
    pub threads: usize,
    pub messages: usize,
}

/// Recalls threads. Without a thread or a search text, only how each thread ended.
pub fn recall(ctx: &Context, request: RecallRequest) -> Result<RecallOutcome> {
    let name = me(ctx)?;
    with_view(&ctx.open()?, |snapshot, state| {
        let branches = match &request.reference {
            Some(reference) => vec![own_branch(state, &name, reference)?],
            None => {
                let agent = Subject::new(EntityType::Agent, name.clone());
                let mut all = state.made_for(&agent, EntityType::Branch);
                all.retain(|branch| branch.as_branch().persona_id() == Some(name.as_str()));
                all.sort_by_key(|branch| branch.ordinal);
                all
            }
        };
        let memory = Memory { ctx, snapshot, state };
        let grep = request.grep.as_ref().map(|word| word.to_lowercase());
        let in_detail = request.thread.is_some() || grep.is_some();
        let mut found = Vec::new();
        for branch in branches {
            let mut threads = state.made_for(&branch.subject, EntityType::Thread);
            threads.sort_by_key(|thread| thread.as_thread().number());
            if let Some(number) = request.thread {
                threads.retain(|thread| thread.as_thread().number() == number);
                if threads.is_empty() {
                    let threads = text::count_noun(branch.as_branch().threads(), "thread");
                    let why = format!("{} has no thread {number}; it has {threads}", branch.name());
                    return Err(Error::not_found(why));
                }
            }
            let recalled = threads.into_iter().map(|thread| {
                let (summary, tail) = memory.closing_note(&thread, usize::MAX)?;
                Ok(RecalledThread {
                    thread,
                    summary,
                    messages: Vec::new(),
                    tail: if in_detail { tail } else { Vec::new() },
                })
            });
            found.push((branch, recalled.collect::<Result<Vec<_>>>()?));
        }
        if in_detail {
            add_messages(&memory, &mut found)?;
        }
        if let Some(word) = &grep {
            let has = |text: &str| text.to_lowercase().contains(word);
            for (_, threads) in &mut found {
                for recalled in threads.iter_mut() {
                    recalled.messages.retain(|(_, _, text)| has(text));
                    recalled.tail.retain(|line| has(line));
                    recalled.summary = recalled.summary.take().filter(|summary| has(summary));
                }
                threads.retain(|r| !r.messages.is_empty() || !r.tail.is_empty() || r.summary.is_some());
            }
            found.retain(|(_, threads)| !threads.is_empty());
        }
        let threads = found.iter().map(|(_, threads)| threads.len()).sum();
        let messages = found.iter().flat_map(|(_, threads)| threads).map(|r| r.messages.len() + r.tail.len()).sum();
        Ok(RecallOutcome { branches: found, threads, messages })
    })
}

/// A thread with a partner or the user: the messages between them while it is open belong to it.
struct OpenConversation {
    /// The indices of its branch and thread among the recalled ones.
    indices: (usize, usize),
    from: Ulid,
    to: Option<Ulid>,
    persona: EntityId,
    /// The other persona; none for the user.
    partner: Option<EntityId>,
}

/// Adds the messages of the threads, in one pass over the log from the first thread's opening to the last message.
fn add_messages(memory: &Memory<'_>, found: &mut [(Entity, Vec<RecalledThread>)]) -> Result<()> {
    let (mut by_thread, mut conversations) = (BTreeMap::new(), Vec::new());
    let (mut missing, mut begin) = (0, None);
    for (b, (branch, threads)) in found.iter().enumerate() {
        for (t, recalled) in threads.iter().enumerate() {
            let thread = &recalled.thread;
            missing += thread.as_thread().messages();
            by_thread.insert(thread.subject.to_string(), (b, t));
            begin = Some(begin.map_or(thread.first_event, |begin: Ulid| begin.min(thread.first_event)));
            let persona = branch.as_branch().persona_id().and_then(|name| EntityId::parse(name).ok());
            let partner = branch.as_branch().partner_id().and_then(|name| EntityId::parse(name).ok());
            if let Some(persona) = persona.filter(|_| branch.is_root() || partner.is_some()) {
                let to = (thread.phase != Phase::Active).then_some(thread.last_event);
                conversations.push(OpenConversation {
                    indices: (b, t),
                    from: thread.first_event,
                    to,
                    persona,
                    partner,
                });
            }
        }
    }
    let Some(begin) = begin else { return Ok(()) };
    if missing == 0 {
        return Ok(());
    }
    memory.snapshot.read_from(begin, &mut |event| {
        let places: Vec<(usize, usize)> = match event.event_type.known() {
            Some(Kind::NoteRecorded) => by_thread.get(&event.subject).copied().into_iter().collect(),
            Some(Kind::MessageSent) => conversations
                .iter()
                .filter(|conversation| conversation.has(&event))
                .map(|conversation| conversation.indices)
                .collect(),
            _ => Vec::new(),
        };
        for (b, t) in places {
            found[b].1[t].messages.push(memory.line(&event, usize::MAX));
            missing = missing.saturating_sub(1);
        }
        Ok(if missing == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
}

impl OpenConversation {
    fn has(&self, event: &Event) -> bool {
        let from = Actor::parse(&event.actor).ok().and_then(|actor| actor.agent());
        let to = event.payload.get("to").and_then(Value::as_str);
        let between = |a: &EntityId, b: &EntityId| from.as_ref() == Some(a) && to == Some(b.as_str());
        let open = event.id > self.from && self.to.is_none_or(|end| event.id < end);
        open && match &self.partner {
            Some(partner) => between(&self.persona, partner) || between(partner, &self.persona),
            None => from.is_none() && to == Some(self.persona.as_str()),
        }
    }
}

impl RecallOutcome {
    /// The recalled threads as text, for a model.
    pub fn plain(&self) -> String {
        let mut out = String::new();
        for (branch, threads) in &self.branches {
            let label = text::escape(branch.as_branch().label().unwrap_or_default());
            let kind = branch.as_branch().branch_type().unwrap_or_default();
            out += &format!("# {} {kind} {}: {label}\n", branch.name(), branch.phase);
            for RecalledThread { thread, summary, messages, tail } in threads {
                let thread = thread.as_thread();
                let number = thread.number();
                let count = text::count_noun(thread.messages(), "message");
                out += &format!(
                    "## Thread {number} {}, {} to {}, {count}\n",
                    thread.phase,
                    thread.opened_at().unwrap_or("-"),
                    thread.closed_at().unwrap_or("-")
                );
                if let Some(summary) = summary {
                    indented(&mut out, "Summary: ", summary);
                }
                for (at, who, text) in messages {
                    indented(&mut out, &format!("{at} {who}: "), text);
                }
                for line in tail {
                    indented(&mut out, "", line);
                }
            }
        }
        out
    }

    /// The recalled threads as JSON.
    pub fn json(&self) -> Value {
        let of_thread = |recalled: &RecalledThread| {
            let thread = recalled.thread.as_thread();
            let message = |(at, who, text): &(String, String, String)| json!({"at": at, "from": who, "text": text});
            json!({
                "thread_id": thread.subject.id(), "number": thread.number(),
                "status": thread.phase.as_str().to_lowercase(), "opened_at": thread.opened_at(),
                "closed_at": thread.closed_at(), "summary": recalled.summary,
                "messages": recalled.messages.iter().map(message).collect::<Vec<_>>(), "tail": recalled.tail,
            })
        };
        let of_branch = |(branch, threads): &(Entity, Vec<RecalledThread>)| {
            json!({
                "branch_id": branch.subject.id(), "ref": branch.name(), "branch_type": branch.as_branch().branch_type(),
                "label": branch.as_branch().label(), "status": branch.phase.as_str().to_lowercase(),
                "threads": threads.iter().map(of_thread).collect::<Vec<_>>(),
            })
        };
        json!({"schema": 1, "branches": self.branches.iter().map(of_branch).collect::<Vec<_>>()})
    }
}
