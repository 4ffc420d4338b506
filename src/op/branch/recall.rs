//! Recalling earlier threads, a page at a time: how they ended, their messages, and what was written down for good.
//!
//! Without a thread or a search text, only how each thread ended. With one, the log is read from where the page begins,
//! and at most so far that a page stays cheap; its cursor says where the next one begins.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::super::Context;
use super::context::{Memory, indented};
use super::pulse::all_of;
use super::{me, own_branch};
use crate::base::{Actor, EntityId, EntityType, Error, ErrorKind, Result, Subject, Ulid, limits, text};
use crate::event::{Event, Kind, parse_ulid};
use crate::op::kernel::with_view;
use crate::state::{Entity, State};

/// How many events are read for one page at most.
const SCANNED_MAX_EVENTS: usize = 5_000;

/// The events with something that was left with a task or a session: the member with the text, and what it is.
const REMARKS: &[(Kind, &str, &str)] = &[
    (Kind::TaskNoted, "text", "Note"),
    (Kind::TaskAssigned, "handoff", "Handoff"),
    (Kind::StepMarked, "reason", "Skipped"),
    (Kind::TaskSucceeded, "skipped", "Skipped"),
    (Kind::SessionEnded, "summary", "Summary"),
];

/// What to recall.
#[derive(Clone, Debug)]
pub struct RecallRequest {
    /// A branch; default: all of them.
    pub reference: Option<String>,
    /// Only this thread, with all of its messages.
    pub thread: Option<u64>,
    /// Only texts that contain this, in any case and Unicode form.
    pub grep: Option<String>,
    /// At most this many threads, or messages.
    pub limit: usize,
    /// Only what comes after this thread, or this event.
    pub cursor: Option<String>,
}

impl Default for RecallRequest {
    fn default() -> Self {
        RecallRequest { reference: None, thread: None, grep: None, limit: limits::PAGE_DEFAULT_COUNT, cursor: None }
    }
}

/// A message with its time and sender.
type RecalledMessage = (String, String, String);

/// A recalled thread; without one, what came while the branch had none.
#[derive(Debug, Default)]
struct RecalledThread {
    thread: Option<Entity>,
    summary: Option<String>,
    messages: Vec<RecalledMessage>,
    tail: Vec<String>,
}

/// A revision of a page of knowledge.
#[derive(Debug)]
struct RecalledPage {
    page: Entity,
    at: String,
    text: String,
}

/// What a task brought.
#[derive(Debug)]
struct RecalledResult {
    task: Entity,
    at: String,
    text: String,
}

/// What was left with a task: a note, a handoff, why a step was skipped; or the summary of a session.
#[derive(Debug)]
struct RecalledRemark {
    about: Entity,
    at: String,
    by: String,
    /// What it is, in a word.
    kind: &'static str,
    text: String,
}

#[derive(Debug)]
pub struct RecallOutcome {
    branches: Vec<(Entity, Vec<RecalledThread>)>,
    pages: Vec<RecalledPage>,
    results: Vec<RecalledResult>,
    remarks: Vec<RecalledRemark>,
    pub threads: usize,
    pub messages: usize,
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<String>,
}

impl RecallOutcome {
    /// How many pages of knowledge were found, each revision for itself.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// How many results of tasks were found.
    pub fn result_count(&self) -> usize {
        self.results.len()
    }

    /// How many notes about tasks and summaries of sessions were found.
    pub fn remark_count(&self) -> usize {
        self.remarks.len()
    }
}

/// Recalls threads. Without a thread or a search text, only how each thread ended.
pub fn recall(ctx: &Context, request: RecallRequest) -> Result<RecallOutcome> {
    let max = limits::PAGE_MAX_COUNT;
    if request.limit == 0 || request.limit > max {
        let why = format!("invalid limit {}; must be 1 to {max}", request.limit);
        return Err(Error::new(ErrorKind::LimitExceeded, why));
    }
    let name = me(ctx)?;
    with_view(&ctx.open()?, |snapshot, state| {
        let branch = request.reference.as_ref().map(|reference| own_branch(state, &name, reference)).transpose()?;
        let memory = Memory { ctx, snapshot, state };
        match request.thread.is_some() || request.grep.is_some() {
            true => in_detail(&memory, &name, branch, &request),
            false => ends(&memory, &name, branch, &request),
        }
    })
}

fn invalid_cursor() -> Error {
    Error::new(ErrorKind::InvalidCursor, "unknown cursor; it must be the NEXT_CURSOR of the page before")
}

/// The threads of a branch, in order.
fn threads_of(state: &State, branch: &Entity) -> Vec<Entity> {
    let mut threads = state.made_for(&branch.subject, EntityType::Thread);
    threads.sort_by_key(|thread| thread.as_thread().number());
    threads
}

/// How the threads of some branches ended.
fn ends(memory: &Memory<'_>, name: &EntityId, one: Option<Entity>, request: &RecallRequest) -> Result<RecallOutcome> {
    let after = match &request.cursor {
        None => (0, 0),
        Some(cursor) => {
            let id = EntityId::parse(cursor).map_err(|_| invalid_cursor())?;
            let thread = memory.state.entity(&Subject::new(EntityType::Thread, id)).ok_or_else(invalid_cursor)?;
            let branch = thread.as_thread().branch().and_then(|branch| memory.state.entity(&branch));
            (branch.ok_or_else(invalid_cursor)?.ordinal, thread.as_thread().number())
        }
    };
    let mut branches = match one {
        Some(branch) => vec![branch],
        None => all_of(memory.state, name),
    };
    branches.retain(|branch| branch.ordinal >= after.0);
    let (mut found, mut threads, mut last, mut more) = (Vec::new(), 0, None, false);
    for branch in branches {
        let mut recalled = Vec::new();
        for thread in threads_of(memory.state, &branch) {
            if (branch.ordinal, thread.as_thread().number()) <= after {
                continue;
            }
            more = threads == request.limit;
            if more {
                break;
            }
            let (summary, _) = memory.closing_note(&thread, usize::MAX)?;
            last = Some(thread.subject.id().to_owned());
            threads += 1;
            recalled.push(RecalledThread { thread: Some(thread), summary, ..RecalledThread::default() });
        }
        if !recalled.is_empty() || request.reference.is_some() {
            found.push((branch, recalled));
        }
        if more {
            break;
        }
    }
    let next_cursor = last.filter(|_| more);
    let (pages, results, remarks) = (Vec::new(), Vec::new(), Vec::new());
    Ok(RecallOutcome { branches: found, pages, results, remarks, threads, messages: 0, next_cursor })
}

/// Reads the log for what a persona said and heard.
struct Search<'a> {
    memory: &'a Memory<'a>,
    persona: &'a EntityId,
    /// Only this branch, and only this thread of it.
    branch: Option<Entity>,
    thread: Option<Entity>,
    /// In the form in which texts are compared.
    word: Option<String>,
    /// The threads of the branches in which it talks with others.
    conversations: BTreeMap<Subject, Vec<Entity>>,
    found: BTreeMap<(u64, u64), (Entity, RecalledThread)>,
    pages: Vec<RecalledPage>,
    results: Vec<RecalledResult>,
    remarks: Vec<RecalledRemark>,
    count: usize,
}

/// The messages of a thread, or what contains a word.
fn in_detail(
    memory: &Memory<'_>,
    persona: &EntityId,
    branch: Option<Entity>,
    request: &RecallRequest,
) -> Result<RecallOutcome> {
    let thread = match (&branch, request.thread) {
        (Some(branch), Some(number)) => Some(thread_with_number(memory.state, branch, number)?),
        _ => None,
    };
    let word = request.grep.as_ref().map(|word| text::caseless(word));
    let (conversations, found) = (BTreeMap::new(), BTreeMap::new());
    let (pages, results, remarks) = (Vec::new(), Vec::new(), Vec::new());
    let mut search =
        Search { memory, persona, branch, thread, word, conversations, found, pages, results, remarks, count: 0 };
    let next_cursor = search.run(request)?;
    if next_cursor.is_none() || request.cursor.is_none() {
        search.add_ending(request.cursor.is_none(), next_cursor.is_none())?;
    }
    let mut branches: Vec<(Entity, Vec<RecalledThread>)> = Vec::new();
    for (branch, recalled) in search.found.into_values() {
        match branches.last_mut().filter(|(known, _)| known.subject == branch.subject) {
            Some((_, threads)) => threads.push(recalled),
            None => branches.push((branch, vec![recalled])),
        }
    }
    let all = || branches.iter().flat_map(|(_, threads)| threads);
    let threads = all().filter(|recalled| recalled.thread.is_some()).count();
    let messages = all().map(|recalled| recalled.messages.len() + recalled.tail.len()).sum();
    let (pages, results, remarks) = (search.pages, search.results, search.remarks);
    Ok(RecallOutcome { threads, messages, branches, pages, results, remarks, next_cursor })
}

fn thread_with_number(state: &State, branch: &Entity, number: u64) -> Result<Entity> {
    let found = threads_of(state, branch).into_iter().find(|thread| thread.as_thread().number() == number);
    found.ok_or_else(|| {
        let threads = text::count_noun(branch.as_branch().threads(), "thread");
        Error::not_found(format!("{} has no thread {number}; it has {threads}", branch.name()))
    })
}

impl Search<'_> {
    /// Reads one page. Returns where the next one begins, if there is one.
    fn run(&mut self, request: &RecallRequest) -> Result<Option<String>> {
        let after =
            request.cursor.as_deref().map(|cursor| parse_ulid(cursor).ok_or_else(invalid_cursor)).transpose()?;
        let end = self.thread.as_ref().and_then(|thread| thread.as_thread().closed_by());
        let Some(begin) = after.map_or_else(|| self.begin(), |after| Ok(Some(after)))? else { return Ok(None) };
        let (mut scanned, mut last, mut more) = (0, None, false);
        let (memory, limit) = (self.memory, request.limit);
        memory.snapshot.read_from(begin, &mut |event| {
            if after == Some(event.id) {
                return Ok(ControlFlow::Continue(()));
            }
            if end.is_some_and(|end| event.id > end) {
                return Ok(ControlFlow::Break(()));
            }
            more = self.count >= limit || scanned == SCANNED_MAX_EVENTS;
            if more {
                return Ok(ControlFlow::Break(()));
            }
            (scanned, last) = (scanned + 1, Some(event.id));
            self.look_at(&event)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(last.filter(|_| more).map(|last| last.to_string()))
    }

    /// The first event that can belong to what is wanted.
    fn begin(&self) -> Result<Option<Ulid>> {
        // A branch may exist because of a message, which comes before it.
        let of_branch = |branch: &Entity| {
            let created = self.memory.event(branch.first_event)?;
            Ok(created.parents.into_iter().chain([created.id]).min())
        };
        let state = self.memory.state;
        // It may have worked on something before it had a branch, and what it works on may be older than itself.
        let everything = || {
            let root = state.root(self.persona).map_or(Ok(None), |root| of_branch(&root))?;
            let me = state.entity(&Subject::new(EntityType::Agent, self.persona.clone()));
            let held = state.held_by(&format!("agent:{}", self.persona)).into_iter().map(|task| task.first_event);
            Ok(held.chain(root).chain(me.map(|me| me.first_event)).min())
        };
        match (&self.branch, &self.thread) {
            (Some(branch), Some(thread)) if branch.as_branch().partner_id().is_some() => {
                match thread.as_thread().anchor().and_then(|before| self.memory.state.entity(&before)) {
                    Some(before) => Ok(before.as_thread().closed_by()),
                    None => of_branch(branch),
                }
            }
            (_, Some(thread)) => Ok(Some(thread.first_event)),
            (Some(branch), None) => of_branch(branch),
            (None, None) => everything(),
        }
    }

    fn has_word(&self, text: &str) -> bool {
        self.word.as_ref().is_none_or(|word| text::caseless(text).contains(word))
    }

    fn look_at(&mut self, event: &Event) -> Result<()> {
        match event.event_type.known() {
            Some(Kind::NoteRecorded | Kind::MessageSent) => {
                let Some(place) = self.place_of(event) else { return Ok(()) };
                let line = self.memory.line(event, usize::MAX);
                if self.has_word(&line.2) {
                    self.count += 1;
                    self.thread_at(place).messages.push(line);
                }
            }
            // Without a word, the ending of the thread is added as a whole.
            Some(Kind::ThreadCompleted | Kind::ThreadAborted | Kind::ThreadSummarized) if self.word.is_some() => {
                let Some(place) = self.place_of(event) else { return Ok(()) };
                let text = |member, artifact| self.memory.text(&event.payload, member, artifact, usize::MAX);
                let summary = text("summary", "summary_artifact_id").filter(|summary| self.has_word(summary));
                let tail = text("tail", "tail_artifact_id").unwrap_or_default();
                let tail: Vec<String> = tail.lines().filter(|line| self.has_word(line)).map(str::to_owned).collect();
                if summary.is_some() || !tail.is_empty() {
                    self.count += 1;
                    let recalled = self.thread_at(place);
                    recalled.summary = summary.or(recalled.summary.take());
                    recalled.tail.extend(tail);
                }
            }
            Some(Kind::KnowledgeRecorded) if self.word.is_some() && self.branch.is_none() => {
                let page = Subject::parse(&event.subject).ok().and_then(|page| self.memory.state.entity(&page));
                let Some(page) = page.filter(|page| page.as_knowledge().persona() == Some(self.persona.clone())) else {
                    return Ok(());
                };
                let (at, _, text) = self.memory.line(event, usize::MAX);
                if self.has_word(&text) || self.has_word(page.as_knowledge().title().unwrap_or_default()) {
                    self.count += 1;
                    self.pages.push(RecalledPage { page: page.into_owned(), at, text });
                }
            }
            Some(Kind::RunFinished) if self.word.is_some() => {
                let Some(task) = self.own_result(event) else { return Ok(()) };
                let summary = event.payload.get("summary").and_then(Value::as_str);
                if let Some(summary) = summary.filter(|summary| self.has_word(summary)) {
                    self.count += 1;
                    let (at, text) = (event.timestamp.to_string(), summary.to_owned());
                    self.results.push(RecalledResult { task, at, text });
                }
            }
            Some(kind) if self.word.is_some() => self.look_for_remark(kind, event),
            _ => {}
        }
        Ok(())
    }

    /// Looks for something that was left with one of the persona's tasks, or with its session.
    fn look_for_remark(&mut self, kind: Kind, event: &Event) {
        let Some((member, what)) = REMARKS.iter().find(|row| row.0 == kind).map(|row| (row.1, row.2)) else { return };
        let text = event.payload.get(member).and_then(Value::as_str).filter(|text| self.has_word(text));
        let Some((about, text)) = self.own_subject(event).zip(text) else { return };
        let (at, by) = (event.timestamp.to_string(), event.actor.clone());
        // A summary that was left with the task is also that of the session.
        let is_repeated = |last: &RecalledRemark| {
            kind == Kind::SessionEnded && (&last.at, &last.by, last.text.as_str()) == (&at, &by, text)
        };
        if !self.remarks.last().is_some_and(is_repeated) {
            self.count += 1;
            self.remarks.push(RecalledRemark { about, at, by, kind: what, text: text.to_owned() });
        }
    }

    /// The task or session that an event is about, if it is the persona's and wanted.
    fn own_subject(&self, event: &Event) -> Option<Entity> {
        let me = format!("agent:{}", self.persona);
        let about = self.memory.state.entity(&Subject::parse(&event.subject).ok()?)?.into_owned();
        if about.subject.entity == EntityType::Session {
            let is_own = about.as_session().agent() == Some(self.persona.as_str());
            return (is_own && self.branch.is_none()).then_some(about);
        }
        let known = about.as_task();
        let is_own = event.actor == me
            || known.recorded_holder() == Some(&me)
            || known.past_holders().any(|holder| holder == me);
        let of_task = |branch: &Entity| branch.as_branch().task().as_ref() == Some(&about.subject);
        let is_wanted = self.thread.is_none() && self.branch.as_ref().is_none_or(of_task);
        (is_own && is_wanted).then_some(about)
    }

    /// The task whose run the persona finished with an event, if it is wanted: there may be no branch for it.
    fn own_result(&self, event: &Event) -> Option<Entity> {
        let is_own = Actor::parse(&event.actor).ok()?.agent().as_ref() == Some(self.persona);
        let run = self.memory.state.entity(&Subject::parse(&event.subject).ok()?)?;
        let task = self.memory.state.entity(&run.as_run().task()?)?.into_owned();
        let of_task = |branch: &Entity| branch.as_branch().task().as_ref() == Some(&task.subject);
        let is_wanted = self.thread.is_none() && self.branch.as_ref().is_none_or(of_task);
        (is_own && is_wanted).then_some(task)
    }

    /// The branch and the thread that an event belongs to, if they are wanted.
    fn place_of(&mut self, event: &Event) -> Option<(Entity, Option<Entity>)> {
        let state = self.memory.state;
        let (branch, thread) = match event.event_type.known() == Some(Kind::MessageSent) {
            true => self.conversation_of(event)?,
            false => {
                let thread = state.entity(&Subject::parse(&event.subject).ok()?)?.into_owned();
                (state.entity(&thread.as_thread().branch()?)?.into_owned(), Some(thread))
            }
        };
        let is_own = branch.as_branch().persona_id() == Some(self.persona.as_str());
        let fits_branch = self.branch.as_ref().is_none_or(|wanted| wanted.subject == branch.subject);
        let same = |wanted: &Entity| thread.as_ref().is_some_and(|thread| thread.subject == wanted.subject);
        let fits_thread = self.thread.as_ref().is_none_or(same);
        (is_own && fits_branch && fits_thread).then_some((branch, thread))
    }

    /// The branch in which the persona sent or got a message, and its thread: the one that was open, or the next one.
    fn conversation_of(&mut self, event: &Event) -> Option<(Entity, Option<Entity>)> {
        let (state, me) = (self.memory.state, self.persona);
        let from = Actor::parse(&event.actor).ok().and_then(|actor| actor.agent());
        let to = event.payload.get("to").and_then(Value::as_str).and_then(|to| EntityId::parse(to).ok())?;
        let branch = match from {
            None if to == *me => state.root(me)?,
            Some(from) if to == *me => state.social_branch(me, &from)?,
            Some(from) if from == *me => state.social_branch(me, &to)?,
            _ => return None,
        };
        let known = self.conversations.entry(branch.subject.clone());
        let threads = known.or_insert_with(|| threads_of(state, &branch));
        let is_before_end = |thread: &&Entity| thread.as_thread().closed_by().is_none_or(|end| event.id < end);
        let thread = threads.iter().find(is_before_end).cloned();
        Some((branch, thread))
    }

    /// The entry of a thread among what was found.
    fn thread_at(&mut self, (branch, thread): (Entity, Option<Entity>)) -> &mut RecalledThread {
        let number = thread.as_ref().map_or(u64::MAX, |thread| thread.as_thread().number());
        let new = || (branch.clone(), RecalledThread { thread, ..RecalledThread::default() });
        &mut self.found.entry((branch.ordinal, number)).or_insert_with(new).1
    }

    /// Adds how the wanted thread ended: its summary on the first page, the tail on the last.
    fn add_ending(&mut self, is_first: bool, is_last: bool) -> Result<()> {
        let Some((branch, thread)) = self.branch.clone().zip(self.thread.clone()).filter(|_| self.word.is_none())
        else {
            return Ok(());
        };
        let (summary, tail) = self.memory.closing_note(&thread, usize::MAX)?;
        let recalled = self.thread_at((branch, Some(thread)));
        recalled.summary = summary.filter(|_| is_first);
        recalled.tail = if is_last { tail } else { Vec::new() };
        Ok(())
    }
}

impl RecallOutcome {
    /// The recalled threads as text, for a model.
    pub fn plain(&self) -> String {
        let mut out = String::new();
        for RecalledPage { page, at, text } in &self.pages {
            let title = text::escape(page.as_knowledge().title().unwrap_or_default());
            out += &format!("# {} {title}, {at}\n", page.name());
            indented(&mut out, "", text);
        }
        for RecalledResult { task, at, text } in &self.results {
            let title = text::escape(task.as_task().title().unwrap_or_default());
            out += &format!("# {} {title}, {at}\n", task.name());
            indented(&mut out, "Summary: ", text);
        }
        for RecalledRemark { about, at, by, kind, text } in &self.remarks {
            let title = about.title().map(|title| format!(" {}", text::escape(title))).unwrap_or_default();
            out += &format!("# {}{title}, {at}\n", about.name());
            indented(&mut out, &format!("{kind} by {by}: "), text);
        }
        for (branch, threads) in &self.branches {
            let label = text::escape(branch.as_branch().label().unwrap_or_default());
            let kind = branch.as_branch().branch_type().unwrap_or_default();
            out += &format!("# {} {kind} {}: {label}\n", branch.name(), branch.phase);
            for RecalledThread { thread, summary, messages, tail } in threads {
                match thread {
                    None => out += "## Since then\n",
                    Some(thread) => {
                        let thread = thread.as_thread();
                        out += &format!(
                            "## Thread {} {}, {} to {}, {}\n",
                            thread.number(),
                            thread.phase,
                            thread.opened_at().unwrap_or("-"),
                            thread.closed_at().unwrap_or("-"),
                            text::count_noun(thread.messages(), "message")
                        );
                    }
                }
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
            let message = |(at, who, text): &RecalledMessage| json!({"at": at, "from": who, "text": text});
            let messages = recalled.messages.iter().map(message).collect::<Vec<_>>();
            let thread = recalled.thread.as_ref().map(|thread| thread.as_thread());
            json!({
                "thread_id": thread.map(|thread| thread.subject.id().to_owned()), "number": thread.map(|t| t.number()),
                "status": thread.map(|thread| thread.phase.as_str().to_lowercase()),
                "opened_at": thread.and_then(|thread| thread.opened_at()),
                "closed_at": thread.and_then(|thread| thread.closed_at()), "summary": recalled.summary,
                "messages": messages, "tail": recalled.tail,
            })
        };
        let of_branch = |(branch, threads): &(Entity, Vec<RecalledThread>)| {
            json!({
                "branch_id": branch.subject.id(), "ref": branch.name(), "branch_type": branch.as_branch().branch_type(),
                "label": branch.as_branch().label(), "status": branch.phase.as_str().to_lowercase(),
                "threads": threads.iter().map(of_thread).collect::<Vec<_>>(),
            })
        };
        let of_page = |page: &RecalledPage| {
            json!({
                "ref": page.page.name(), "title": page.page.as_knowledge().title(), "at": page.at, "text": page.text,
            })
        };
        let of_result = |result: &RecalledResult| {
            json!({
                "ref": result.task.name(), "title": result.task.as_task().title(), "at": result.at, "summary": result.text,
            })
        };
        let of_remark = |remark: &RecalledRemark| {
            json!({
                "ref": remark.about.name(), "title": remark.about.title(), "at": remark.at, "by": remark.by,
                "kind": remark.kind.to_lowercase(), "text": remark.text,
            })
        };
        json!({
            "schema": 1, "branches": self.branches.iter().map(of_branch).collect::<Vec<_>>(),
            "knowledge": self.pages.iter().map(of_page).collect::<Vec<_>>(),
            "results": self.results.iter().map(of_result).collect::<Vec<_>>(),
            "notes": self.remarks.iter().map(of_remark).collect::<Vec<_>>(), "next_cursor": self.next_cursor,
        })
    }
}
