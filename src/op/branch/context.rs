//! The context of a persona's active branch, in this order: who and when it is, the newest messages of its root, how its
//! other branches stand, earlier summaries of this branch, the anchor (its newest summary, and what was noted since),
//! the task, the thread itself, and how to go on. It is limited to a number of words: the oldest messages are dropped
//! first, then the other branches, then what is known about the task; the summary is shortened last.
//!
//! Invariant: ten questions that somebody who has never seen a context would ask are answered under the headings
//! (`m9_ten_questions_are_answered_by_every_context`).

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::task::{TaskNote, WorkBrief, brief};
use super::super::{Context, Recorded, artifact, constraint};
use super::{FullMessage, knowledge, words};
use crate::base::{EntityId, EntityType, Error, Result, Subject, Timestamp, Ulid, limits, text};
use crate::event::{Event, parse_ulid};
use crate::machine::Phase;
use crate::op::kernel::with_view;
use crate::state::{Entity, State};
use crate::vault::{Log, Vault};

/// A message takes at most one part in `PARTS` of the budget.
const PARTS: usize = 4;
/// How many words of a label a heading has at most.
const LABEL_MAX_WORDS: usize = 12;
/// How many lines of a given tail are used at most.
const TAIL_MAX_LINES: usize = 50;
/// How many artifacts of a task are named at most.
const ARTIFACTS_MAX: usize = 5;
/// How many personas the part about how to go on names at most.
const PARTNERS_MAX: usize = 3;

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

/// Some lines of a part of the context, and how many it has in all.
#[derive(Clone, Debug, Default)]
struct ContextLines {
    shown: Vec<ContextLine>,
    total: usize,
}

impl ContextLines {
    fn left_out(&self) -> usize {
        self.total.saturating_sub(self.shown.len())
    }
}

/// Another branch, and how it stands.
#[derive(Clone, Debug)]
struct OtherBranch {
    branch: Entity,
    /// Its newest thread.
    thread: Option<Entity>,
    state: String,
}

/// What is remembered of the branch itself; empty if this is its first thread.
#[derive(Clone, Debug, Default)]
struct AnchorMemory {
    /// The previous thread.
    thread: Option<Entity>,
    /// The newest thread with a summary: the previous one, or one before it.
    summarized: Option<Entity>,
    summary: Option<String>,
    /// What was noted since that thread began.
    lines: ContextLines,
    /// Earlier threads with their summaries, oldest first, and how many such threads there are.
    earlier: Vec<(Entity, String)>,
    earlier_total: usize,
}

impl AnchorMemory {
    fn earlier_left_out(&self) -> usize {
        self.earlier_total.saturating_sub(self.earlier.len())
    }
}

#[derive(Clone, Debug)]
pub struct BranchContext {
    now: Timestamp,
    root: Entity,
    branch: Entity,
    thread: Option<Entity>,
    /// The task that the branch is for, and what is to be known about it, each with what it is.
    task: Option<Entity>,
    work: Vec<(String, String)>,
    root_lines: ContextLines,
    /// Other branches, and how many of them something was heard of.
    elsewhere: Vec<OtherBranch>,
    elsewhere_total: usize,
    anchor: AnchorMemory,
    /// The constraints on the work, on a branch for a task.
    constraints: Vec<String>,
    /// Pages of knowledge whose titles occur in the context.
    knowledge: Vec<Entity>,
    lines: ContextLines,
    /// The personas among the senders, who can be answered.
    partners: Vec<String>,
    /// Whether the part about how to go on is there.
    has_help: bool,
    /// How many pages of knowledge, and lines about the task, were dropped.
    dropped: usize,
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

    /// The messages of these events.
    fn lines(&self, ids: &[Ulid], wanted: usize) -> Result<Vec<ContextLine>> {
        let line = |event: &Event| {
            let (at, who, text) = self.line(event, wanted);
            ContextLine { place: (event.id, 0), at, who, text: words::cut(&text, wanted) }
        };
        Ok(self.events(ids)?.iter().map(line).collect())
    }

    /// The last messages of a thread.
    fn tail(&self, thread: &Entity, wanted: usize) -> Result<ContextLines> {
        let ids: Vec<Ulid> = thread.as_thread().tail().filter_map(parse_ulid).collect();
        Ok(ContextLines { shown: self.lines(&ids, wanted)?, total: thread.as_thread().messages() as usize })
    }

    /// The summary and the tail of a closed thread. The last thread of a task that has ended says what it brought, below
    /// the summary that its persona gave.
    pub fn closing_note(&self, thread: &Entity, wanted: usize) -> Result<(Option<String>, Vec<String>)> {
        let Some(closed_by) = thread.as_thread().closed_by() else { return Ok((None, Vec::new())) };
        let closing = self.event(closed_by)?;
        // A summary that was given later has an event of its own.
        let summary = match thread.as_thread().summary().is_some() && !closing.payload.contains_key("summary") {
            true => Some(self.event(thread.last_event)?),
            false => None,
        };
        let with_summary = summary.as_ref().unwrap_or(&closing);
        let summary = self.text(&with_summary.payload, "summary", "summary_artifact_id", wanted);
        let is_own = !with_summary.actor.starts_with("core:");
        let summary = match self.result_of(thread, &closing) {
            Some(result) => Some(match summary.filter(|_| is_own) {
                Some(own) => format!("{own}\n{result}"),
                None => result,
            }),
            None => summary,
        };
        let with_tail = if with_summary.payload.contains_key("tail") { with_summary } else { &closing };
        let tail = self.text(&with_tail.payload, "tail", "tail_artifact_id", wanted).unwrap_or_default();
        let all: Vec<String> = tail.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        Ok((summary, all))
    }

    /// What the task brought, if this thread is the last one of its branch, and the persona did not leave it itself.
    fn result_of(&self, thread: &Entity, closing: &Event) -> Option<String> {
        let branch = self.state.entity(&thread.as_thread().branch()?)?;
        let is_last = branch.as_branch().last_thread_id() == Some(thread.subject.id());
        (is_last && closing.actor.starts_with("core:")).then(|| self.task_result(&branch)).flatten()
    }

    /// What the task of a branch brought, once it has ended: the summary that its agent reported, and its artifacts.
    fn task_result(&self, branch: &Entity) -> Option<String> {
        let task = self.state.entity(&branch.as_branch().task()?)?;
        if task.phase != Phase::Succeeded && task.phase != Phase::Aborted && task.phase != Phase::Archived {
            return None;
        }
        let run = task.as_task().last_run().and_then(|run| self.state.entity(&run));
        let reported = run.as_ref().and_then(|run| run.as_run().summary()).map(str::to_owned);
        let reported = reported.or_else(|| task.as_task().abort_reason().map(str::to_owned));
        let made = self.state.made_for(&task.subject, EntityType::Artifact);
        let artifact = |made: &Entity| match made.as_artifact().filename() {
            Some(file) => format!("{} {file}", made.name()),
            None => made.name(),
        };
        let listed: Vec<String> = made.iter().take(ARTIFACTS_MAX).map(artifact).collect();
        let more = made.len().saturating_sub(listed.len());
        let mut parts = vec![format!("{} is {}", task.name(), task.phase)];
        parts.extend(reported);
        if !listed.is_empty() {
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            parts.push(format!("artifacts: {}{more}", listed.join(", ")));
        }
        Some(parts.join("; "))
    }

    /// What is remembered of a branch when its current thread begins: its newest summary, and what was noted since.
    fn anchor(&self, branch: &Entity, thread: Option<&Entity>, budget: usize, wanted: usize) -> Result<AnchorMemory> {
        let of = |id: &str| {
            let id = EntityId::parse(id).ok()?;
            self.state.entity(&Subject::new(EntityType::Thread, id)).map(|thread| thread.into_owned())
        };
        let Some(thread) = thread.filter(|_| !branch.is_root()) else { return Ok(AnchorMemory::default()) };
        let before = thread.as_thread().anchor_id().and_then(of);
        let Some(before) = before else { return Ok(AnchorMemory::default()) };
        let number = |thread: &Entity| thread.as_thread().number();
        let mut summaries: Vec<Entity> = branch.as_branch().summaries().filter_map(of).collect();
        summaries.retain(|summarized| number(summarized) < number(thread));
        summaries.sort_by_key(number);
        let summarized = summaries.pop();
        let summary = match &summarized {
            Some(summarized) => self.closing_note(summarized, budget)?.0,
            None => None,
        };
        let first = summarized.as_ref().map_or(0, |summarized| summarized.as_thread().messages_before());
        let mut lines = ContextLines {
            shown: Vec::new(),
            total: thread.as_thread().messages_before().saturating_sub(first) as usize,
        };
        let mut next = Some(before.clone());
        while let Some(at) = next.take().filter(|_| lines.shown.len() < limits::TAIL_MAX_COUNT) {
            let mut of_thread = self.tail(&at, wanted)?.shown;
            let (_, given) = self.closing_note(&at, budget)?;
            lines.total += given.len();
            let from = given.len().saturating_sub(TAIL_MAX_LINES);
            let closed = at.as_thread().closed_by().unwrap_or(at.last_event);
            of_thread.extend(given[from..].iter().enumerate().map(|(n, line)| ContextLine {
                place: (closed, n),
                at: at.as_thread().closed_at().unwrap_or_default().to_owned(),
                who: String::new(),
                text: words::cut(line, wanted),
            }));
            of_thread.append(&mut lines.shown);
            lines.shown = of_thread;
            if summarized.as_ref().is_none_or(|summarized| summarized.subject != at.subject) {
                next = at.as_thread().anchor_id().and_then(of);
            }
        }
        let brief = |thread: Entity| {
            let text = thread.as_thread().summary().unwrap_or_default().to_owned();
            (thread, text::cut(&text, limits::BRIEF_MAX_CHARS))
        };
        let earlier = summaries.into_iter().map(brief).collect();
        let earlier_total = (branch.as_branch().summary_count() as usize).saturating_sub(1);
        Ok(AnchorMemory { thread: Some(before), summarized, summary, lines, earlier, earlier_total })
    }

    /// How the other branches stand of which something was heard last.
    fn elsewhere(&self, root: &Entity, except: &Entity) -> Vec<OtherBranch> {
        let ids = root.as_branch().recent().filter_map(|id| EntityId::parse(id).ok());
        let branches = ids.filter_map(|id| self.state.entity(&Subject::new(EntityType::Branch, id)));
        let others = branches.filter(|branch| branch.subject != except.subject);
        others.map(|branch| self.other_branch(branch.into_owned())).collect()
    }

    /// How a branch stands: its newest summary and what was heard after it, or what its task brought.
    fn other_branch(&self, branch: Entity) -> OtherBranch {
        let thread = |id: &str| {
            let id = EntityId::parse(id).ok()?;
            self.state.entity(&Subject::new(EntityType::Thread, id)).map(|thread| thread.into_owned())
        };
        let last = branch.as_branch().last_thread_id().and_then(thread);
        let mut summaries: Vec<Entity> = branch.as_branch().summaries().filter_map(thread).collect();
        summaries.sort_by_key(|thread| thread.as_thread().number());
        let summary = summaries.last().and_then(|thread| thread.as_thread().summary()).map(str::to_owned);
        let brief = branch.as_branch().brief_state().map(str::to_owned);
        let result = (branch.phase == Phase::Completed).then(|| self.task_result(&branch)).flatten();
        let mut parts: Vec<String> = result.or(summary).into_iter().collect();
        if let Some(brief) = brief.filter(|brief| !parts.iter().any(|part| part.starts_with(brief.as_str()))) {
            let lead = if parts.is_empty() { "" } else { "then: " };
            parts.push(format!("{lead}{brief}"));
        }
        let state = match parts.is_empty() {
            true => "nothing was noted".to_owned(),
            false => parts.iter().map(|part| text::cut(part, limits::BRIEF_MAX_CHARS)).collect::<Vec<_>>().join("; "),
        };
        OtherBranch { branch, thread: last, state }
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
        let (branch, thread, bare) = without_messages(ctx, state, persona, branch, budget)?;
        let memory = Memory { ctx, snapshot, state };
        let wanted = budget / PARTS;
        let tail =
            |thread: Option<&Entity>| thread.map_or(Ok(ContextLines::default()), |thread| memory.tail(thread, wanted));
        let root_lines = match branch.is_root() {
            true => ContextLines::default(),
            false => tail(thread_of(state, &bare.root).as_ref())?,
        };
        let work = bare.task.as_ref().map(|task| work(snapshot, state, task, persona, wanted)).transpose()?;
        let mut context = BranchContext {
            work: work.unwrap_or_default(),
            elsewhere: memory.elsewhere(&bare.root, &branch),
            elsewhere_total: (bare.root.as_branch().heard_count() as usize)
                .saturating_sub(usize::from(branch.as_branch().is_heard_of())),
            anchor: memory.anchor(&branch, thread.as_ref(), budget, wanted)?,
            lines: tail(thread.as_ref())?,
            root_lines,
            ..bare
        };
        context.find_partners(persona);
        context.knowledge = knowledge::offered(state, &context.root, persona, &context.words_of_messages());
        Ok((branch, thread, context.fit_to_budget()))
    })
}

/// The context without anything that is read from the log.
pub(super) fn without_messages(
    ctx: &Context,
    state: &State,
    persona: &EntityId,
    branch: &Subject,
    budget: usize,
) -> Result<CurrentBranch> {
    let missing = || Error::corrupt(format!("{branch} is missing"));
    let branch = state.entity(branch).ok_or_else(missing)?.into_owned();
    let root = state.root(persona).ok_or_else(missing)?;
    let thread = thread_of(state, &branch);
    let task = branch.as_branch().task().and_then(|task| state.entity(&task).map(|task| task.into_owned()));
    let constraints = match &task {
        Some(_) => constraint::active(state).texts,
        None => Vec::new(),
    };
    let context = BranchContext {
        now: ctx.now.timestamp(),
        task,
        work: Vec::new(),
        constraints,
        knowledge: Vec::new(),
        elsewhere: Vec::new(),
        elsewhere_total: 0,
        anchor: AnchorMemory::default(),
        lines: ContextLines::default(),
        root_lines: ContextLines::default(),
        partners: Vec::new(),
        root,
        branch: branch.clone(),
        thread: thread.clone(),
        has_help: true,
        dropped: 0,
        budget,
    };
    Ok((branch, thread, context))
}

/// What a persona has to know about its task: whose it is if not its own, what it is about, where it goes on, and what
/// was left with it.
fn work(
    log: &dyn Log,
    state: &State,
    task: &Entity,
    persona: &EntityId,
    wanted: usize,
) -> Result<Vec<(String, String)>> {
    let known = task.as_task();
    let WorkBrief { description, notes } = brief(log, state, task)?;
    let said = |note: &TaskNote| format!("{} ({}, {})", note.text, note.by, note.at);
    let is_others = |holder: &&str| holder.strip_prefix("agent:") != Some(persona.as_str());
    let holder = task.holder().filter(is_others).map(|holder| format!("{holder}, not you"));
    let steps = known.steps();
    let count = steps.len();
    let step = known.active_step().map(|step| (format!("Step {} of {count}", step.number), step.text));
    let done = steps.iter().filter(|step| !step.is_open());
    let done: Vec<String> = done.map(|step| format!("{} {} ({})", step.number, step.text, step.mark)).collect();
    let done = Some(done.join(", ")).filter(|done| !done.is_empty());
    let named = |name: &str, text: Option<String>| text.map(|text| (name.to_owned(), text));
    let lines = [
        named("Held by", holder),
        named("Description", description),
        step,
        named("Handoff", notes.handoff.as_ref().map(said)),
    ];
    let notes = notes.latest.iter().map(|note| named("Note", Some(said(note))));
    let lines = lines.into_iter().chain(notes).chain([named("Steps so far", done)]).flatten();
    Ok(lines.map(|(name, text)| (name, words::cut(&text, wanted))).collect())
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

impl BranchContext {
    /// Everything that was said, noted or summarized, newest first.
    fn words_of_messages(&self) -> String {
        let label = self.branch.as_branch().label().unwrap_or_default();
        let mut texts: Vec<&str> = vec![label];
        for lines in [&self.lines, &self.anchor.lines, &self.root_lines] {
            texts.extend(lines.shown.iter().rev().map(|line| line.text.as_str()));
        }
        texts.extend(self.anchor.summary.as_deref());
        texts.extend(self.anchor.earlier.iter().map(|(_, summary)| summary.as_str()));
        texts.extend(self.elsewhere.iter().map(|other| other.state.as_str()));
        texts.join("\n")
    }

    /// Finds the personas among the senders.
    fn find_partners(&mut self, persona: &EntityId) {
        let partner = self.branch.as_branch().partner_id().map(str::to_owned);
        let all = self.root_lines.shown.iter().chain(&self.lines.shown);
        let senders = all.filter_map(|line| line.who.strip_prefix("agent:")).filter(|name| *name != persona.as_str());
        for name in partner.into_iter().chain(senders.map(str::to_owned)) {
            if !self.partners.contains(&name) && self.partners.len() < PARTNERS_MAX {
                self.partners.push(name);
            }
        }
    }

    /// Cuts the context to its budget: drops the oldest messages first, then how other branches stand and earlier
    /// summaries, then the part about how to go on and what is known about the task, and shortens the summary last.
    fn fit_to_budget(mut self) -> Self {
        while self.words() > self.budget {
            let all = [&self.root_lines, &self.anchor.lines, &self.lines];
            let oldest =
                all.iter().enumerate().filter_map(|(n, lines)| lines.shown.first().map(|line| (line.place, n))).min();
            match oldest {
                Some((_, n)) => {
                    let parts = [&mut self.root_lines, &mut self.anchor.lines, &mut self.lines];
                    drop(parts[n].shown.remove(0));
                }
                None if !self.elsewhere.is_empty() => drop(self.elsewhere.remove(0)),
                None if !self.anchor.earlier.is_empty() => drop(self.anchor.earlier.remove(0)),
                None if !self.knowledge.is_empty() => {
                    self.knowledge.pop();
                    self.dropped += 1;
                }
                None if self.has_help => self.has_help = false,
                None if !self.work.is_empty() => {
                    self.work.pop();
                    self.dropped += 1;
                }
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

    /// How many notes, messages, lines of a given tail, summaries, other branches, pages of knowledge and lines about the
    /// task were left out.
    pub fn left_out(&self) -> usize {
        let lines = self.root_lines.left_out() + self.anchor.lines.left_out() + self.lines.left_out();
        let elsewhere = self.elsewhere_total.saturating_sub(self.elsewhere.len());
        lines + elsewhere + self.anchor.earlier_left_out() + self.dropped
    }

    /// The number of words of the text.
    pub fn words(&self) -> usize {
        words::count(&self.plain())
    }

    fn write_lines(&self, out: &mut String, lines: &ContextLines) {
        let me = self.root.as_branch().persona_id().map(|name| format!("agent:{name}"));
        for line in &lines.shown {
            let who = if Some(&line.who) == me.as_ref() { "you" } else { &line.who };
            let lead = if who.is_empty() { String::new() } else { format!("{} {who}: ", line.at) };
            indented(out, &lead, &line.text);
        }
    }

    /// The context as text, for a model. Each heading is explained in hf-branch(1).
    pub fn plain(&self) -> String {
        let mut out = String::new();
        let heading = |out: &mut String, line: &str| {
            out.push_str("# ");
            out.push_str(&text::escape(line));
            out.push('\n');
        };
        let label = |branch: &Entity| words::cut(branch.as_branch().label().unwrap_or_default(), LABEL_MAX_WORDS);
        let kind = |branch: &Entity| branch.as_branch().branch_type().unwrap_or_default().to_owned();
        heading(&mut out, "You");
        let persona = self.root.as_branch().persona_id().unwrap_or_default();
        indented(&mut out, "", &format!("You are agent:{persona}; it is {}", self.now));
        if !self.root_lines.shown.is_empty() {
            heading(&mut out, &format!("With the user, {}", self.root.name()));
            self.write_lines(&mut out, &self.root_lines);
        }
        if !self.elsewhere.is_empty() {
            heading(&mut out, "On your other branches");
            for OtherBranch { branch, state, .. } in &self.elsewhere {
                let since = branch.as_branch().last_activity().unwrap_or_default();
                let lead = format!("{} {}, {} {since}: ", branch.name(), label(branch), branch.phase);
                indented(&mut out, &lead, state);
            }
        }
        if !self.anchor.earlier.is_empty() {
            heading(&mut out, "Earlier on this branch");
            for (thread, summary) in &self.anchor.earlier {
                let closed = thread.as_thread().closed_at().unwrap_or_default();
                indented(&mut out, &format!("Thread {}, {closed}: ", thread.as_thread().number()), summary);
            }
        }
        if let Some(thread) = &self.anchor.thread {
            let closed = thread.as_thread().closed_at().unwrap_or_default();
            let last = format!("thread {}, {} {closed}", thread.as_thread().number(), thread.phase);
            heading(&mut out, &format!("Last time on this branch, {last}"));
            if let Some(summary) = &self.anchor.summary {
                indented(&mut out, "Summary: ", summary);
            }
            self.write_lines(&mut out, &self.anchor.lines);
        }
        if let Some(task) = &self.task {
            heading(&mut out, "The task");
            let title = words::cut(task.as_task().title().unwrap_or_default(), LABEL_MAX_WORDS);
            indented(&mut out, "", &format!("{} {}: {title}", task.name(), task.phase));
            for (name, text) in &self.work {
                indented(&mut out, &format!("{name}: "), text);
            }
        }
        if !self.constraints.is_empty() {
            heading(&mut out, "Constraints on the work");
            self.constraints.iter().for_each(|constraint| indented(&mut out, "", constraint));
        }
        if !self.knowledge.is_empty() {
            heading(&mut out, "What you know");
            for page in &self.knowledge {
                let (title, text) = (page.as_knowledge().title(), page.as_knowledge().text());
                let lead = format!("{} {}: ", page.name(), title.unwrap_or_default());
                indented(&mut out, &lead, text.unwrap_or_default());
            }
        }
        let thread = self.thread.as_ref().map_or(0, |thread| thread.as_thread().number());
        let since = self.thread.as_ref().and_then(|thread| thread.as_thread().opened_at()).unwrap_or("-");
        let now = format!("{} {}, {}", self.branch.name(), label(&self.branch), kind(&self.branch));
        heading(&mut out, &format!("Now: {now}, thread {thread} since {since}"));
        self.write_lines(&mut out, &self.lines);
        if self.has_help {
            heading(&mut out, "How to go on");
            self.help().iter().for_each(|line| indented(&mut out, "", line));
        }
        out
    }

    /// How to answer, to note, to leave and to look back.
    fn help(&self) -> Vec<String> {
        let (root, branch) = (self.root.name(), self.branch.name());
        let mut lines = vec![format!("Answer the user: hf-branch note --branch {root} TEXT")];
        lines.extend(self.partners.iter().map(|partner| format!("Answer {partner}: hf-branch tell {partner} TEXT")));
        if !self.branch.is_root() {
            lines.push("Note what you do: hf-branch note TEXT".to_owned());
            lines.push("Leave: hf-branch suspend --summary TEXT".to_owned());
        }
        lines.extend(self.knowledge.first().map(|page| format!("Read what you know: hf-branch know {}", page.name())));
        lines.push(format!("Look back: hf-branch recall {branch}"));
        lines
    }

    /// The context as JSON.
    pub fn json(&self) -> Value {
        let lines = |lines: &ContextLines| -> Vec<Value> {
            let who = |who: &str| if who.is_empty() { Value::Null } else { who.into() };
            lines.shown.iter().map(|line| json!({"at": line.at, "from": who(&line.who), "text": line.text})).collect()
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
        let elsewhere = self.elsewhere.iter().map(|other| {
            let thread = other.thread.as_ref().map_or_else(|| json!({}), of_thread);
            let branch = &other.branch;
            with(
                thread,
                json!({
                    "branch": branch.name(), "label": branch.as_branch().label(), "summary": other.state,
                    "branch_type": branch.as_branch().branch_type(),
                    "branch_status": branch.phase.as_str().to_lowercase(),
                }),
            )
        });
        let anchor = self.anchor.thread.as_ref().map(|thread| {
            let summarized = self.anchor.summarized.as_ref().map(|thread| thread.as_thread().number());
            with(
                of_thread(thread),
                json!({
                    "summary": self.anchor.summary, "summary_of": summarized, "messages": lines(&self.anchor.lines),
                }),
            )
        });
        let earlier =
            self.anchor.earlier.iter().map(|(thread, summary)| with(of_thread(thread), json!({"summary": summary})));
        let work = |(name, text): &(String, String)| json!({"name": name, "text": text});
        let task = self.task.as_ref().map(|task| {
            json!({
                "ref": task.name(), "status": task.phase.as_str(), "title": task.as_task().title(),
                "holder": task.holder(), "work": self.work.iter().map(work).collect::<Vec<_>>(),
            })
        });
        let known = |page: &Entity| json!({"ref": page.name(), "title": page.as_knowledge().title(), "text": page.as_knowledge().text()});
        let thread =
            self.thread.as_ref().map(|thread| with(of_thread(thread), json!({"messages": lines(&self.lines)})));
        json!({
            "schema": 1,
            "now": self.now.to_string(),
            "persona_id": self.root.as_branch().persona_id(),
            "root": {"ref": self.root.name(), "messages": lines(&self.root_lines), "anchors": elsewhere.collect::<Vec<_>>()},
            "earlier": earlier.collect::<Vec<_>>(),
            "anchor": anchor,
            "task": task,
            "knowledge": self.knowledge.iter().map(known).collect::<Vec<_>>(),
            "constraints": self.constraints,
            "thread": thread,
            "branch": {
                "branch_id": self.branch.subject.id(), "ref": self.branch.name(),
                "branch_type": self.branch.as_branch().branch_type(), "label": self.branch.as_branch().label(),
                "status": self.branch.phase.as_str().to_lowercase(), "task_id": self.branch.as_branch().task_id(),
                "partner_persona_id": self.branch.as_branch().partner_id(),
            },
            "help": self.help(),
            "words": self.words(),
            "budget": self.budget,
            "left_out": self.left_out(),
        })
    }
}
