//! The context of a persona's active branch, in this order: the newest messages of its root, how threads of other
//! branches ended, the anchor (summary and last messages of the previous thread), and the thread itself. It is limited
//! to a number of words: the oldest messages are dropped first, then the other branches; the summary is shortened last.

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::{Context, Recorded, artifact, constraint};
use super::{FullMessage, words};
use crate::base::{EntityId, EntityType, Error, Result, Subject, Ulid, limits, text};
use crate::event::{Event, parse_ulid};
use crate::op::kernel::with_view;
use crate::state::{Entity, State};
use crate::vault::{Log, Vault};

/// A message takes at most one part in `PARTS` of the budget.
const PARTS: usize = 4;
/// How many words of a label a heading has at most.
const LABEL_MAX_WORDS: usize = 12;
/// How many lines of a given tail are used at most.
const TAIL_MAX_LINES: usize = 50;

/// How many other events are skipped before the next one is looked up by its id.
const SKIPPED_MAX: usize = 32;

/// A resumed branch and its context.
#[derive(Debug)]
pub struct ContextOutcome {
    pub recorded: Recorded,
    pub branch: Entity,
    pub thread: Option<Entity>,
    pub context: BranchContext,
}

/// A message with its time and sender. `place` is its position among all messages.
#[derive(Clone, Debug, PartialEq)]
struct ContextLine {
    place: (Ulid, usize),
    at: String,
    who: String,
    text: String,
}

/// How a thread of another branch ended.
#[derive(Clone, Debug)]
struct OtherThread {
    branch: String,
    thread: Entity,
    ending: String,
}

/// The previous thread; empty if there is none.
#[derive(Clone, Debug, Default)]
struct AnchorMemory {
    thread: Option<Entity>,
    summary: Option<String>,
    lines: Vec<ContextLine>,
}

#[derive(Clone, Debug)]
pub struct BranchContext {
    root: Entity,
    branch: Entity,
    thread: Option<Entity>,
    root_lines: Vec<ContextLine>,
    elsewhere: Vec<OtherThread>,
    anchor: AnchorMemory,
    /// The constraints on the work, on a branch for a task.
    constraints: Vec<String>,
    lines: Vec<ContextLine>,
    /// How many messages were left out.
    pub left_out: usize,
    /// The limit, in words.
    pub budget: usize,
}

/// Access to the events and contents that a context consists of.
pub(super) struct Memory<'a> {
    pub ctx: &'a Context,
    pub snapshot: &'a dyn Log,
    pub state: &'a State,
}

impl Memory<'_> {
    pub fn event(&self, id: Ulid) -> Result<Event> {
        let missing = || Error::corrupt(format!("event {id} is missing"));
        self.snapshot.find(id)?.ok_or_else(missing)
    }

    /// Events in the order of the log. Most are close together, so one lookup finds many.
    fn events(&self, ids: &[Ulid]) -> Result<Vec<Event>> {
        let mut found: Vec<Event> = Vec::with_capacity(ids.len());
        while let Some(next) = ids.get(found.len()) {
            let (found_before, mut skipped) = (found.len(), 0);
            self.snapshot.read_from(*next, &mut |event| {
                match ids.get(found.len()) == Some(&event.id) {
                    true => found.push(event),
                    false => skipped += 1,
                }
                let enough = found.len() == ids.len() || skipped > SKIPPED_MAX;
                Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            if found.len() == found_before {
                return Err(Error::corrupt(format!("event {next} is missing")));
            }
        }
        Ok(found)
    }

    /// A text of an event: in full from its artifact if more than `wanted` words are needed, else the part that is in
    /// the event. If the artifact is damaged, also only that part.
    pub fn text(&self, payload: &Map<String, Value>, member: &str, artifact: &str, wanted: usize) -> Option<String> {
        let short = payload.get(member)?.as_str()?.to_owned();
        let Some(id) = payload.get(artifact).and_then(Value::as_str) else { return Some(short) };
        if words::count(&short) >= wanted {
            return Some(short);
        }
        let mut bytes = Vec::new();
        let all = artifact::GetRequest { reference: format!("{}:{id}", EntityType::Artifact) };
        // Damage is recorded, but without waiting for the lock: our state has the index open, and the holder of the
        // vault's lock may wait for the index.
        let ctx = &Context { lock_timeout: Duration::ZERO, ..self.ctx.clone() };
        let read = artifact::get(ctx, all).and_then(|mut found| {
            found.write(&mut |piece| {
                bytes.extend(&piece[..piece.len().min(limits::EVENT_MAX_BYTES.saturating_sub(bytes.len()))]);
                Ok(())
            })
        });
        Some(read.ok().map_or(short, |()| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A message with its full text.
    pub fn full_message(&self, message: Entity) -> Result<FullMessage> {
        let event = self.event(message.first_event)?;
        let text = self.text(&event.payload, "text", "artifact_id", usize::MAX).unwrap_or_default();
        Ok(FullMessage { message, text })
    }

    /// Time, sender and text of a message event.
    pub fn line(&self, event: &Event, wanted: usize) -> (String, String, String) {
        let text = self.text(&event.payload, "text", "artifact_id", wanted).unwrap_or_default();
        (event.timestamp.to_string(), event.actor.clone(), text)
    }

    /// The last messages of a thread.
    fn tail(&self, thread: &Entity, wanted: usize) -> Result<Vec<ContextLine>> {
        let ids: Vec<Ulid> = thread.as_thread().tail().filter_map(parse_ulid).collect();
        let line = |event: &Event| {
            let (at, who, text) = self.line(event, wanted);
            ContextLine { place: (event.id, 0), at, who, text: words::cut(&text, wanted) }
        };
        Ok(self.events(&ids)?.iter().map(line).collect())
    }

    /// The summary and the tail of a closed thread.
    pub fn closing_note(&self, thread: &Entity, wanted: usize) -> Result<(Option<String>, Vec<String>)> {
        if thread.as_thread().closed_at().is_none() {
            return Ok((None, Vec::new()));
        }
        let event = self.event(thread.last_event)?;
        let summary = self.text(&event.payload, "summary", "summary_artifact_id", wanted);
        let tail = self.text(&event.payload, "tail", "tail_artifact_id", wanted).unwrap_or_default();
        let all: Vec<String> = tail.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        Ok((summary, all))
    }

    fn anchor(&self, thread: Option<&Entity>, budget: usize, wanted: usize) -> Result<AnchorMemory> {
        let before = thread.and_then(|thread| thread.as_thread().anchor());
        let Some(before) = before.and_then(|before| self.state.entity(&before)) else {
            return Ok(AnchorMemory::default());
        };
        let before = before.into_owned();
        let (summary, given_tail) = self.closing_note(&before, budget)?;
        let mut lines = self.tail(&before, wanted)?;
        let from = given_tail.len().saturating_sub(TAIL_MAX_LINES);
        for (n, line) in given_tail[from..].iter().enumerate() {
            lines.push(ContextLine {
                place: (before.last_event, n),
                at: before.as_thread().closed_at().unwrap_or_default().to_owned(),
                who: String::new(),
                text: words::cut(line, wanted),
            });
        }
        Ok(AnchorMemory { thread: Some(before), summary, lines })
    }

    /// How the last threads of other branches ended.
    fn elsewhere(&self, root: &Entity, except: &Entity) -> Vec<OtherThread> {
        let ids = root.as_branch().anchors().filter_map(|id| EntityId::parse(id).ok());
        let threads = ids.filter_map(|id| self.state.entity(&Subject::new(EntityType::Thread, id)));
        let others = threads.filter(|thread| thread.as_thread().branch_id() != Some(except.subject.id()));
        let ending =
            |thread: &Entity| thread.as_thread().summary().or(thread.as_thread().reason()).unwrap_or("-").to_owned();
        others
            .map(|thread| OtherThread {
                branch: thread
                    .as_thread()
                    .branch()
                    .and_then(|branch| self.state.entity(&branch))
                    .map_or_else(String::new, |branch| branch.name()),
                ending: text::cut(&ending(&thread), limits::BRIEF_MAX_CHARS),
                thread: thread.into_owned(),
            })
            .collect()
    }
}

/// The branch, its thread and its context.
type CurrentBranch = (Entity, Option<Entity>, BranchContext);

/// The context of a persona's active branch.
pub(super) fn current(
    ctx: &Context,
    vault: &Vault,
    persona: &EntityId,
    branch: &Subject,
    budget: usize,
) -> Result<CurrentBranch> {
    with_view(vault, |snapshot, state| {
        let (branch, thread, bare) = without_messages(state, persona, branch, budget)?;
        let memory = Memory { ctx, snapshot, state };
        let wanted = budget / PARTS;
        let tail = |thread: Option<&Entity>| thread.map_or(Ok(Vec::new()), |thread| memory.tail(thread, wanted));
        let root_lines = if branch.is_root() { Vec::new() } else { tail(thread_of(state, &bare.root).as_ref())? };
        let context = BranchContext {
            elsewhere: memory.elsewhere(&bare.root, &branch),
            anchor: memory.anchor(thread.as_ref(), budget, wanted)?,
            lines: tail(thread.as_ref())?,
            root_lines,
            ..bare
        };
        Ok((branch, thread, context.fit_to_budget()))
    })
}

/// The context without any messages.
pub(super) fn without_messages(
    state: &State,
    persona: &EntityId,
    branch: &Subject,
    budget: usize,
) -> Result<CurrentBranch> {
    let missing = || Error::corrupt(format!("{branch} is missing"));
    let branch = state.entity(branch).ok_or_else(missing)?.into_owned();
    let root = state.root(persona).ok_or_else(missing)?;
    let thread = thread_of(state, &branch);
    let constraints = match branch.as_branch().task() {
        Some(_) => constraint::active(state).texts,
        None => Vec::new(),
    };
    let context = BranchContext {
        constraints,
        elsewhere: Vec::new(),
        anchor: AnchorMemory::default(),
        lines: Vec::new(),
        root_lines: Vec::new(),
        root,
        branch: branch.clone(),
        thread: thread.clone(),
        left_out: 0,
        budget,
    };
    Ok((branch, thread, context))
}

/// The current thread of a branch.
fn thread_of(state: &State, branch: &Entity) -> Option<Entity> {
    state.entity(&branch.as_branch().current_thread()?).map(|thread| thread.into_owned())
}

/// Adds a text, indented so that none of its lines looks like a heading.
pub(super) fn indented(out: &mut String, first: &str, text: &str) {
    for (n, line) in text.lines().enumerate() {
        let lead = if n == 0 { first } else { "  " };
        out.push_str("  ");
        out.push_str(lead);
        out.push_str(&text::escape(line));
        out.push('\n');
    }
}

fn write_lines(out: &mut String, lines: &[ContextLine]) {
    for line in lines {
        let lead = if line.who.is_empty() { String::new() } else { format!("{} {}: ", line.at, line.who) };
        indented(out, &lead, &line.text);
    }
}

impl BranchContext {
    /// Cuts the context to its budget: drops the oldest messages first, then how other branches ended, and shortens
    /// the summary last.
    fn fit_to_budget(mut self) -> Self {
        while self.words() > self.budget {
            let all = [&self.root_lines, &self.anchor.lines, &self.lines];
            let oldest =
                all.iter().enumerate().filter_map(|(n, lines)| lines.first().map(|line| (line.place, n))).min();
            match oldest {
                Some((_, n)) => {
                    [&mut self.root_lines, &mut self.anchor.lines, &mut self.lines][n].remove(0);
                    self.left_out += 1;
                }
                None if !self.elsewhere.is_empty() => drop(self.elsewhere.remove(0)),
                None => {
                    let excess = self.words() - self.budget;
                    let Some(summary) = self.anchor.summary.take() else { break };
                    let room = words::count(&summary).saturating_sub(excess);
                    self.anchor.summary = Some(words::cut(&summary, room)).filter(|_| room > 0);
                }
            }
        }
        self
    }

    /// The number of words of the text.
    pub fn words(&self) -> usize {
        words::count(&self.plain())
    }

    /// The context as text, for a model.
    pub fn plain(&self) -> String {
        let mut out = String::new();
        let heading = |out: &mut String, line: String| {
            out.push_str("# ");
            out.push_str(&text::escape(&line));
            out.push('\n');
        };
        let label = words::cut(self.branch.as_branch().label().unwrap_or_default(), LABEL_MAX_WORDS);
        if !self.branch.is_root() {
            heading(&mut out, format!("Root {}", self.root.name()));
            write_lines(&mut out, &self.root_lines);
        }
        for end in &self.elsewhere {
            let lead = format!("{} thread {} {}: ", end.branch, end.thread.as_thread().number(), end.thread.phase);
            indented(&mut out, &lead, &end.ending);
        }
        if let Some(thread) = &self.anchor.thread {
            let closed = thread.as_thread().closed_at().unwrap_or_default();
            heading(&mut out, format!("Anchor thread {}, {} {closed}", thread.as_thread().number(), thread.phase));
            if let Some(summary) = &self.anchor.summary {
                indented(&mut out, "Summary: ", summary);
            }
            write_lines(&mut out, &self.anchor.lines);
        }
        if !self.constraints.is_empty() {
            heading(&mut out, "Constraints on the work".to_owned());
            self.constraints.iter().for_each(|constraint| indented(&mut out, "", constraint));
        }
        let thread = self.thread.as_ref().map_or(0, |thread| thread.as_thread().number());
        let since = self.thread.as_ref().and_then(|thread| thread.as_thread().opened_at()).unwrap_or("-");
        heading(&mut out, format!("Now {} {label}, thread {thread} since {since}", self.branch.name()));
        write_lines(&mut out, &self.lines);
        out
    }

    /// The context as JSON.
    pub fn json(&self) -> Value {
        let lines = |lines: &[ContextLine]| -> Vec<Value> {
            let who = |who: &str| if who.is_empty() { Value::Null } else { who.into() };
            lines.iter().map(|line| json!({"at": line.at, "from": who(&line.who), "text": line.text})).collect()
        };
        let of_thread = |thread: &Entity| {
            let thread = thread.as_thread();
            json!({
                "thread_id": thread.subject.id(), "number": thread.number(),
                "status": thread.phase.as_str().to_lowercase(), "opened_at": thread.opened_at(),
                "closed_at": thread.closed_at(),
            })
        };
        let with = |mut object: Value, more: Value| {
            if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
                object.extend(more);
            }
            object
        };
        let elsewhere = self
            .elsewhere
            .iter()
            .map(|end| with(of_thread(&end.thread), json!({"branch": end.branch, "summary": end.ending})));
        let anchor = self.anchor.thread.as_ref().map(|thread| {
            with(of_thread(thread), json!({"summary": self.anchor.summary, "messages": lines(&self.anchor.lines)}))
        });
        let thread =
            self.thread.as_ref().map(|thread| with(of_thread(thread), json!({"messages": lines(&self.lines)})));
        json!({
            "schema": 1,
            "root": {"ref": self.root.name(), "messages": lines(&self.root_lines), "anchors": elsewhere.collect::<Vec<_>>()},
            "anchor": anchor,
            "constraints": self.constraints,
            "thread": thread,
            "branch": {
                "branch_id": self.branch.subject.id(), "ref": self.branch.name(),
                "branch_type": self.branch.as_branch().branch_type(), "label": self.branch.as_branch().label(),
                "status": self.branch.phase.as_str().to_lowercase(), "task_id": self.branch.as_branch().task_id(),
                "partner_persona_id": self.branch.as_branch().partner_id(),
            },
            "words": self.words(),
            "budget": self.budget,
            "left_out": self.left_out,
        })
    }
}
