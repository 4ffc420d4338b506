//! hf-branch: many activities, one mind. A persona switches between branches and gets its context back: the
//! summary and the last messages of the previous thread.

mod context;
mod knowledge;
mod message;
mod pulse;
mod recall;
mod words;

use serde_json::{Value, json};

use super::agent::one_line;
use super::{Context, Recorded, artifact};
use crate::base::{EntityId, EntityType, Error, Reason, Result, Subject, limits, text};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::kernel::with_view;
use crate::op::kernel::{Added, Transaction};
use crate::policy::{Request, belief, branch as policy};
use crate::state::branch::root_of;
use crate::state::{Entity, State};
use crate::vault::Vault;

pub use context::{BranchContext, ContextOutcome};
pub use knowledge::{KnowRequest, KnownOutcome, KnownRequest, know, known};
pub use message::{FullMessage, InboxOutcome, InboxRequest, ReadOutcome, ReadRequest, TellRequest, inbox, read, tell};
pub use pulse::{
    BranchesOutcome, BranchesRequest, ChangeSeen, DecideOutcome, WorkingOutcome, branches, decide, reacted_to, working,
};
pub use recall::{RecallOutcome, RecallRequest, recall};
pub use words::{WORDS_DEFAULT, WORDS_MIN, count as count_words};

/// The longest label.
const LABEL_MAX_CHARS: usize = 80;

/// How to leave the active branch.
#[derive(Clone, Debug, Default)]
pub struct LeavingNote {
    /// A summary of the current state.
    pub summary: Option<String>,
    /// Its last messages, one per line.
    pub tail: Option<String>,
    /// Whether the branch may be left without a summary.
    pub abort: bool,
}

/// The outcome of a step that a user's message can interrupt.
#[derive(Debug)]
pub enum Interruptible<T> {
    Done(T),
    /// A message came first: the persona is back at its root, and nothing else was done.
    Interrupted {
        left: Box<Entity>,
    },
}

/// The name of the acting agent, which is the persona.
fn me(ctx: &Context) -> Result<EntityId> {
    ctx.caller.actor.agent().ok_or_else(|| Error::usage(format!("{} is not an agent; use --agent", ctx.caller.actor)))
}

/// Begins a transaction and makes sure that the persona and its root exist.
fn begin_as_persona<'v>(ctx: &Context, vault: &'v Vault) -> Result<(Transaction<'v>, Entity)> {
    me(ctx)?;
    with_persona(ctx, Transaction::begin(ctx, vault)?)
}

/// Like `begin_as_persona`, unless a user's message came first: then moves the persona back to its root and stops. The
/// summary and the tail that it gave stay with the branch that it leaves.
fn begin_unless_interrupted<'v>(
    ctx: &Context,
    vault: &'v Vault,
    note: &StoredNote,
) -> Result<Interruptible<(Transaction<'v>, Entity)>> {
    let name = me(ctx)?;
    let mut tx = Transaction::begin(ctx, vault)?;
    let left = match (policy::interruption(tx.state(), &name), tx.state().root(&name)) {
        (Some(_), Some(root)) if note.has_text() => {
            let left = at_branch(tx.state(), &root);
            // The message ends the thread, whether or not the persona would.
            let note = StoredNote { abort: true, ..note.clone() };
            leave(ctx, &mut tx, &root, &note)?.map(|asked| (left, asked))
        }
        _ => settle(&mut tx, &name)?,
    };
    match left {
        None => with_persona(ctx, tx).map(Interruptible::Done),
        Some((left, asked)) => {
            tx.commit(asked.id)?;
            Ok(Interruptible::Interrupted { left: Box::new(left) })
        }
    }
}

fn with_persona<'v>(ctx: &Context, mut tx: Transaction<'v>) -> Result<(Transaction<'v>, Entity)> {
    let name = me(ctx)?;
    let agent = Subject::new(EntityType::Agent, name.clone());
    if tx.state().phase_of(&agent) != Phase::Active {
        tx.ask(ctx.request(Kind::AgentStarted, None, json!({"announced": true})))?;
    }
    let root = make_persona(&mut tx, &name)?;
    Ok((tx, root))
}

/// The root of an agent, created the first time.
fn make_persona(tx: &mut Transaction<'_>, name: &EntityId) -> Result<Entity> {
    if tx.state().root(name).is_none() {
        if tx.state().entity(&root_of(name)).is_some() {
            let why = format!("branch:{name} exists and is not a root, so agent:{name} cannot have one");
            return Err(Error::refused(Reason::IllegalTransition, why));
        }
        tx.add(policy::root_draft(tx.state(), name, None))?;
    }
    tx.state().root(name).ok_or_else(|| Error::corrupt(format!("the root of agent:{name} is missing")))
}

/// The active branch of a persona; its root if no other is active.
fn at_branch(state: &State, root: &Entity) -> Entity {
    state.active_branch(root).unwrap_or_else(|| state.entity(&root.subject).expect("the root exists").into_owned())
}

/// Records the interruption if a user's message came first. Returns the branch that was left.
fn settle(tx: &mut Transaction<'_>, name: &EntityId) -> Result<Option<(Entity, Added)>> {
    let Some(draft) = policy::interruption(tx.state(), name) else { return Ok(None) };
    let left = tx.state().root(name).map(|root| at_branch(tx.state(), &root));
    tx.add(draft)?;
    let id = tx.batch().events().last().expect("it was just added").id;
    Ok(left.map(|left| (left, Added { id, already: false })))
}

/// Like `settle`, for a command that only reads: writes nothing unless there was an interruption.
fn settle_before_reading(ctx: &Context, vault: &Vault) -> Result<Option<Entity>> {
    let name = me(ctx)?;
    let due = with_view(vault, |_, state| Ok(policy::interruption(state, &name).is_some()))?;
    if !due {
        return Ok(None);
    }
    let mut tx = Transaction::begin(ctx, vault)?;
    match settle(&mut tx, &name)? {
        None => Ok(None),
        Some((left, asked)) => tx.commit(asked.id).map(|_| Some(left)),
    }
}

/// A text as an event stores it: its start, and the whole text as an artifact if it is long.
#[derive(Clone, Debug, Default)]
struct StoredText {
    text: Option<String>,
    artifact: Option<String>,
}

/// Stores a text that is too long for an event. Called without the lock.
fn store_text(ctx: &Context, what: &str, text: Option<&str>) -> Result<StoredText> {
    let Some(text) = text else { return Ok(StoredText::default()) };
    let text = text.trim_end();
    if text.trim().is_empty() {
        return Err(Error::usage(format!("{what} is empty")));
    }
    if text.contains('\0') {
        return Err(Error::usage(format!("{what} contains a NUL character")));
    }
    let short = crate::base::text::cut(text, limits::INLINE_MAX_CHARS);
    if short.len() == text.len() {
        return Ok(StoredText { text: Some(short), artifact: None });
    }
    let request = artifact::PutRequest { kind: Some("text".to_owned()), ..artifact::PutRequest::default() };
    let stored = artifact::put(ctx, request, &mut text.as_bytes())?.recorded;
    let id = Subject::parse(&stored.asked.subject)?.id().to_owned();
    Ok(StoredText { text: Some(short), artifact: Some(id) })
}

/// How to leave the active branch, with long texts stored as artifacts.
#[derive(Clone, Default)]
struct StoredNote {
    summary: StoredText,
    tail: StoredText,
    abort: bool,
}

/// Stores summary and tail; an error if there is no branch that they could be about.
fn store_note(ctx: &Context, vault: &Vault, leaving: &LeavingNote) -> Result<StoredNote> {
    let name = me(ctx)?;
    if leaving.summary.is_none() && leaving.tail.is_none() {
        return Ok(StoredNote { abort: leaving.abort, ..StoredNote::default() });
    }
    with_view(vault, |_, state| {
        let root = state.root(&name);
        let is_left = root.as_ref().is_some_and(|root| state.active_branch(root).is_some());
        let is_late = leaving.summary.is_some() && root.is_some_and(|root| late_branch(state, &name, &root).is_some());
        match is_left || is_late {
            true => Ok(()),
            false => Err(Error::usage("no active branch to leave; --summary and --tail do not apply")),
        }
    })?;
    store_texts(ctx, leaving)
}

/// Stores summary and tail.
fn store_texts(ctx: &Context, leaving: &LeavingNote) -> Result<StoredNote> {
    Ok(StoredNote {
        summary: store_text(ctx, "the summary", leaving.summary.as_deref())?,
        tail: store_text(ctx, "the tail", leaving.tail.as_deref())?,
        abort: leaving.abort,
    })
}

/// The branch that a persona means when it gives a summary and its own thread there has ended already: the one that it
/// was taken away from, or, on its root, the one that it was on last.
fn late_branch(state: &State, name: &EntityId, root: &Entity) -> Option<Entity> {
    match belief::believed_elsewhere(state, name) {
        Some(believed) if !believed.is_root() => Some(believed),
        _ if state.active_branch(root).is_some() => None,
        _ => belief::unsummarized_branch(state, root),
    }
}

/// Refuses a summary that could be about several branches: a persona that believed to be on its root, and was taken from
/// there, may mean the one that it was on before, or any that it has been on since.
fn check_says_which(state: &State, name: &EntityId, root: &Entity) -> Result<()> {
    let Some(taken_to) = root.as_branch().taken_to() else { return Ok(()) };
    if belief::believed_elsewhere(state, name).is_none_or(|believed| !believed.is_root()) {
        return Ok(());
    }
    let is_one = state.active_branch(root).is_some_and(|active| active.subject == taken_to);
    match is_one && belief::unsummarized_branch(state, root).is_none() {
        true => Ok(()),
        false => Err(Error::usage("say which branch the summary is about: hf-branch suspend BRANCH --summary TEXT")),
    }
}

/// Leaves the active branch, unless that is the root. A persona that was taken away from its branch summarizes that one.
fn leave(ctx: &Context, tx: &mut Transaction<'_>, root: &Entity, note: &StoredNote) -> Result<Option<Added>> {
    let name = me(ctx)?;
    let believed = belief::believed_elsewhere(tx.state(), &name).filter(|believed| !believed.is_root());
    if let Some(believed) = believed.filter(|_| note.tail.text.is_some() && note.summary.text.is_none()) {
        let why = format!("you are no longer on {}; give its --tail together with a --summary", believed.name());
        return Err(Error::usage(why));
    }
    if note.has_text() {
        check_says_which(tx.state(), &name, root)?;
    }
    let late = match &note.summary.text {
        Some(_) => late_branch(tx.state(), &name, root).map(|late| summarize(ctx, tx, &late, note)).transpose()?,
        None => None,
    };
    let Some(branch) = tx.state().active_branch(root) else { return Ok(late) };
    match late {
        // It did not choose the branch that it is on, and says nothing about it.
        Some(_) => close(ctx, tx, &branch, &StoredNote { abort: true, ..StoredNote::default() }).map(Some),
        None => close(ctx, tx, &branch, note).map(Some),
    }
}

/// Closes the thread of the active branch.
fn close(ctx: &Context, tx: &mut Transaction<'_>, branch: &Entity, note: &StoredNote) -> Result<Added> {
    let thread = open_thread(branch)?;
    let mut payload = note.payload(branch);
    let kind = match &note.summary.text {
        Some(summary) => {
            payload["summary"] = summary.as_str().into();
            Kind::ThreadCompleted
        }
        None if note.abort => Kind::ThreadAborted,
        None => {
            return Err(Error::refused(
                Reason::SummaryRequired,
                format!("{} is Active: leave it with --summary, or with --abort", branch.name()),
            ));
        }
    };
    tx.ask(ctx.request(kind, Some(&thread.to_string()), payload))
}

/// Gives the last thread of a branch, which ended without one, its summary.
fn summarize(ctx: &Context, tx: &mut Transaction<'_>, branch: &Entity, note: &StoredNote) -> Result<Added> {
    let last = branch.as_branch().last_thread_id().map(|id| format!("{}:{id}", EntityType::Thread));
    let last = last.ok_or_else(|| Error::usage(format!("{} has no thread to summarize", branch.name())))?;
    let summary = note.summary.text.as_deref();
    let summary = summary.ok_or_else(|| Error::usage("missing --summary: what to remember"))?;
    let known = Subject::parse(&last).ok().and_then(|last| tx.state().entity(&last));
    if let Some(known) = known.filter(|thread| thread.phase == Phase::Completed)
        && known.as_thread().summary() != Some(text::cut(summary, limits::FACT_MAX_CHARS).as_str())
    {
        let why = format!("{} has its summary already; resume {} to say more", known.name(), branch.name());
        return Err(Error::refused(Reason::IllegalTransition, why));
    }
    let mut payload = note.payload(branch);
    payload["summary"] = summary.into();
    tx.ask(ctx.request(Kind::ThreadSummarized, Some(&last), payload))
}

/// The open thread of the active branch, or of a root.
fn open_thread(branch: &Entity) -> Result<Subject> {
    let thread = branch.as_branch().current_thread();
    thread.ok_or_else(|| Error::corrupt(format!("{} is Active and has no thread", branch.name())))
}

impl StoredNote {
    /// Whether there is something to keep.
    fn has_text(&self) -> bool {
        self.summary.text.is_some() || self.tail.text.is_some()
    }

    /// The members of a payload that both ends of a thread have, and where the whole summary is.
    fn payload(&self, branch: &Entity) -> Value {
        json!({
            "branch_id": branch.subject.id(), "tail": self.tail.text, "tail_artifact_id": self.tail.artifact,
            "summary_artifact_id": self.summary.artifact,
        })
    }
}

/// A branch to create.
#[derive(Clone, Debug, Default)]
pub struct CreateRequest {
    /// The label, in one line.
    pub label: String,
    /// task, social or free.
    pub branch_type: String,
    /// The task that the branch is for.
    pub task: Option<String>,
    /// The agent to talk with.
    pub partner: Option<String>,
    /// How to leave the active branch.
    pub leaving: LeavingNote,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Creates a branch and makes it active; a social branch becomes active when it is resumed.
pub fn create(ctx: &Context, request: CreateRequest) -> Result<Interruptible<Recorded>> {
    let label = one_line("the label", &request.label, LABEL_MAX_CHARS)?;
    let name = me(ctx)?;
    let vault = ctx.open()?;
    let (kind, given) = (request.branch_type.as_str(), (request.task.is_some(), request.partner.is_some()));
    if given != (kind == "task", kind == "social") {
        let why = match kind {
            "task" => "a task branch requires --task and does not allow --partner",
            "social" => "a social branch requires --partner and does not allow --task",
            _ => "a free branch allows neither --task nor --partner",
        };
        return Err(Error::usage(why));
    }
    let (task, partner) = with_view(&vault, |_, state| {
        let task = request.task.as_deref().map(|task| state.find(task, EntityType::Task)).transpose()?;
        let partner = request.partner.as_deref().map(|partner| known_agent(state, partner)).transpose()?;
        Ok((task, partner))
    })?;
    let note = store_note(ctx, &vault, &request.leaving)?;
    if kind == "social" {
        check_is_left(&note, || "a social branch becomes active when it is resumed".to_owned())?;
    }
    let (mut tx, root) = match begin_unless_interrupted(ctx, &vault, &note)? {
        Interruptible::Done(begun) => begun,
        Interruptible::Interrupted { left } => return Ok(Interruptible::Interrupted { left }),
    };
    if let Some(partner) = &partner {
        make_persona(&mut tx, partner)?;
    }
    let payload = json!({
        "persona_id": name.as_str(), "branch_type": kind, "label": label,
        "task_id": task.as_ref().map(Subject::id), "partner_persona_id": partner.as_ref().map(EntityId::as_str),
    });
    let made = Request { key: request.key, ..ctx.request(Kind::BranchCreated, None, payload) };
    if let Some(first) = tx.repeated(&made)? {
        return Ok(Interruptible::Done(first));
    }
    let existing = match (&task, &partner) {
        (Some(task), _) => tx
            .state()
            .made_for(task, EntityType::Branch)
            .into_iter()
            .find(|branch| branch.as_branch().persona_id() == Some(name.as_str())),
        (_, Some(partner)) => tx.state().social_branch(&name, partner),
        _ => None,
    };
    if let Some(existing) = existing {
        check_is_left(&note, || format!("{} exists already; resume it", existing.name()))?;
        let already = tx.batch().event(existing.first_event).is_none();
        return tx.finish(&[Added { id: existing.first_event, already }]).map(Interruptible::Done);
    }
    if kind != "social" {
        leave(ctx, &mut tx, &root, &note)?;
    }
    let asked = tx.ask(made)?;
    tx.finish(&[asked]).map(Interruptible::Done)
}

/// Refuses a summary or a tail where no branch is left: they would be lost.
fn check_is_left(note: &StoredNote, why: impl FnOnce() -> String) -> Result<()> {
    match note.has_text() {
        true => Err(Error::usage(format!("{}; --summary and --tail do not apply", why()))),
        false => Ok(()),
    }
}

/// The agent with this name, if it is known.
fn known_agent(state: &State, name: &str) -> Result<EntityId> {
    let id = EntityId::parse(name.strip_prefix("agent:").unwrap_or(name))?;
    let agent = Subject::new(EntityType::Agent, id.clone());
    match state.entity(&agent).is_some() || state.root(&id).is_some() {
        true => Ok(id),
        false => Err(Error::not_found(format!("unknown agent '{id}'"))),
    }
}

/// The branch with this reference, if it belongs to the persona.
fn own_branch(state: &State, persona: &EntityId, reference: &str) -> Result<Entity> {
    let subject = state.find(reference, EntityType::Branch)?;
    let branch = state.entity(&subject).expect("it was resolved").into_owned();
    match branch.as_branch().persona_id() == Some(persona.as_str()) {
        true => Ok(branch),
        false => {
            Err(Error::refused(Reason::NotHolder, format!("{} is not a branch of agent:{persona}", branch.name())))
        }
    }
}

/// A branch to resume.
#[derive(Clone, Debug)]
pub struct ResumeBranchRequest {
    /// The branch; the root has the name of the persona.
    pub reference: String,
    /// The limit of its context, in words.
    pub words: usize,
    /// How to leave the active branch.
    pub leaving: LeavingNote,
}

/// Makes a branch active and returns its context.
pub fn resume(ctx: &Context, request: ResumeBranchRequest) -> Result<Interruptible<ContextOutcome>> {
    let ResumeBranchRequest { reference, words, leaving } = request;
    words::check(words)?;
    let name = me(ctx)?;
    let vault = ctx.open()?;
    // A persona without any branch can still resume its root.
    let switches = with_view(&vault, |_, state| match state.root(&name) {
        None if reference == name.as_str() => Ok(true),
        root => {
            let branch = own_branch(state, &name, &reference)?;
            Ok(root.is_some_and(|root| at_branch(state, &root).subject != branch.subject))
        }
    })?;
    let is_late = with_view(&vault, |_, state| {
        Ok(state.root(&name).is_some_and(|root| late_branch(state, &name, &root).is_some()))
    })?;
    if !switches && !is_late && (leaving.summary.is_some() || leaving.tail.is_some()) {
        return Err(Error::usage("the branch is already active; --summary and --tail do not apply"));
    }
    let note = store_note(ctx, &vault, &leaving)?;
    let (mut tx, root) = match begin_unless_interrupted(ctx, &vault, &note)? {
        Interruptible::Done(begun) => begun,
        Interruptible::Interrupted { left } => return Ok(Interruptible::Interrupted { left }),
    };
    let branch = own_branch(tx.state(), &name, &reference)?;
    let asked = match at_branch(tx.state(), &root).subject == branch.subject {
        // It was taken away from another branch, and says how it left that.
        true if note.has_text() => {
            check_says_which(tx.state(), &name, &root)?;
            let late = late_branch(tx.state(), &name, &root);
            let late = late.ok_or_else(|| Error::usage("the branch is already active; --summary does not apply"))?;
            summarize(ctx, &mut tx, &late, &note)?
        }
        // The branch may have been created just now.
        true => Added { id: branch.last_event, already: tx.batch().event(branch.last_event).is_none() },
        false => {
            let left = leave(ctx, &mut tx, &root, &note)?;
            match branch.is_root() {
                true => left.ok_or_else(|| Error::corrupt("the root is Suspended, but no branch is Active"))?,
                false => tx.ask(ctx.request(Kind::ThreadOpened, None, json!({"branch_id": branch.subject.id()})))?,
            }
        }
    };
    let bare = context::without_messages(ctx, tx.state(), &name, &branch.subject, words)?;
    let mut recorded = tx.finish(&[asked])?;
    // The switch is recorded: from here on a failure is only a warning, and the persona can ask again.
    let (branch, thread, context) =
        context::current(ctx, &vault, &name, &branch.subject, words).unwrap_or_else(|error| {
            recorded.warnings.push(format!("cannot read the context: {error}"));
            bare
        });
    Ok(Interruptible::Done(ContextOutcome { recorded, branch, thread, context }))
}

/// A request to leave the active branch for the root, or to summarize one that was left without a summary.
#[derive(Clone, Debug, Default)]
pub struct SuspendRequest {
    /// The branch; default: the active one, or the one that the persona was taken away from.
    pub reference: Option<String>,
    /// How to leave it; without a summary its thread is aborted.
    pub leaving: LeavingNote,
}

/// Leaves the active branch, with a summary to continue from or without. Summarizes a branch that was left already.
pub fn suspend(ctx: &Context, request: SuspendRequest) -> Result<Recorded> {
    let SuspendRequest { reference, leaving } = request;
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let is_active = |state: &State, branch: &Entity| {
        state.root(&name).is_some_and(|root| at_branch(state, &root).subject == branch.subject)
    };
    let note = match &reference {
        None => store_note(ctx, &vault, &leaving)?,
        Some(reference) => {
            with_view(&vault, |_, state| match own_branch(state, &name, reference)? {
                branch if branch.is_root() => {
                    Err(Error::usage(format!("{} is a root, which is never left", branch.name())))
                }
                branch if !is_active(state, &branch) && leaving.summary.is_none() => {
                    let why =
                        format!("{} is {}; only a summary can be added, with --summary", branch.name(), branch.phase);
                    Err(Error::usage(why))
                }
                _ => Ok(()),
            })?;
            store_texts(ctx, &leaving)?
        }
    };
    let (mut tx, root) = begin_as_persona(ctx, &vault)?;
    let named = reference.map(|reference| own_branch(tx.state(), &name, &reference)).transpose()?;
    // With a reference, it says itself which branch it means.
    let late = match &named {
        Some(branch) => (!is_active(tx.state(), branch)).then(|| branch.clone()),
        None if note.summary.text.is_some() => {
            check_says_which(tx.state(), &name, &root)?;
            late_branch(tx.state(), &name, &root)
        }
        None => None,
    };
    let asked = match (late, named) {
        (Some(branch), _) => Some(summarize(ctx, &mut tx, &branch, &note)?),
        (None, Some(branch)) => Some(close(ctx, &mut tx, &branch, &StoredNote { abort: true, ..note })?),
        (None, None) => leave(ctx, &mut tx, &root, &StoredNote { abort: true, ..note })?,
    };
    let root = at_branch(tx.state(), &root);
    let already = tx.batch().event(root.last_event).is_none();
    let asked = asked.unwrap_or(Added { id: root.last_event, already });
    tx.finish(&[asked])
}

/// The summary of a thread whose branch was completed without one.
const COMPLETED: &str = "completed";

/// A branch to complete.
#[derive(Clone, Debug, Default)]
pub struct CompleteBranchRequest {
    /// The branch; default: the active one.
    pub reference: Option<String>,
    /// How to leave it.
    pub leaving: LeavingNote,
}

/// Completes a branch: the named one, or the active one.
pub fn complete(ctx: &Context, request: CompleteBranchRequest) -> Result<Recorded> {
    let CompleteBranchRequest { reference, leaving } = request;
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let find = |state: &State| match &reference {
        Some(reference) => own_branch(state, &name, reference),
        None => {
            let root = state.root(&name);
            let believed = belief::believed_elsewhere(state, &name).filter(|believed| !believed.is_root());
            let active = believed.or_else(|| state.active_branch(root.as_ref()?));
            active.ok_or_else(|| Error::not_found(format!("agent:{name} has no active branch besides its root")))
        }
    };
    let (active, is_late) = with_view(&vault, |_, state| {
        let branch = find(state)?;
        Ok((branch.phase == Phase::Active, belief::unsummarized_thread(state, &branch).is_some()))
    })?;
    let note = match active {
        true => store_note(
            ctx,
            &vault,
            &LeavingNote { summary: leaving.summary.or(Some(COMPLETED.to_owned())), ..leaving },
        )?,
        false if is_late && leaving.summary.is_some() => store_texts(ctx, &leaving)?,
        false if leaving.summary.is_some() || leaving.tail.is_some() => {
            return Err(Error::usage("the branch is not active; --summary and --tail do not apply"));
        }
        false => StoredNote::default(),
    };
    let (mut tx, _) = begin_as_persona(ctx, &vault)?;
    let branch = find(tx.state())?;
    if branch.phase == Phase::Active && !branch.is_root() {
        close(ctx, &mut tx, &branch, &note)?;
    } else if note.summary.text.is_some() {
        summarize(ctx, &mut tx, &branch, &note)?;
    }
    let asked = tx.ask(ctx.request(Kind::BranchCompleted, Some(&branch.subject.to_string()), json!({})))?;
    tx.finish(&[asked])
}

/// A note to record.
#[derive(Clone, Debug, Default)]
pub struct NoteRequest {
    /// The text of the note.
    pub text: String,
    /// The branch; default: the one that the persona is on, if it knows that.
    pub branch: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// A recorded note, and its branch.
#[derive(Debug)]
pub struct NoteOutcome {
    pub recorded: Recorded,
    pub branch: Entity,
    /// Whether a message interrupted the persona, so that it is back at its root.
    pub interrupted: bool,
}

/// Records a note in the persona's current thread, or at its root. A persona that was taken away from its branch, and has
/// done nothing on a branch since, has to name the branch: its note is about another one than that it is on.
pub fn note(ctx: &Context, request: NoteRequest) -> Result<Interruptible<NoteOutcome>> {
    let NoteRequest { text, branch: reference, key } = request;
    let name = me(ctx)?;
    let vault = ctx.open()?;
    let is_repeated = |state: &State| key.as_deref().is_some_and(|key| state.keyed(key).is_some());
    let interrupted = |state: &State| match reference {
        None if !is_repeated(state) => belief::believed_elsewhere(state, &name).map(Box::new),
        _ => None,
    };
    if let Some(left) = with_view(&vault, |_, state| Ok(interrupted(state)))? {
        return Ok(Interruptible::Interrupted { left });
    }
    let stored = store_text(ctx, "the note", Some(&text))?;
    let (mut tx, root) = begin_as_persona(ctx, &vault)?;
    if let Some(left) = interrupted(tx.state()) {
        return Ok(Interruptible::Interrupted { left });
    }
    let branch = match &reference {
        None => at_branch(tx.state(), &root),
        Some(reference) => own_branch(tx.state(), &name, reference)?,
    };
    if branch.phase != Phase::Active && !branch.is_root() {
        let why = format!("{} is {}; resume it to add a note", branch.name(), branch.phase);
        return Err(Error::refused(Reason::IllegalTransition, why));
    }
    let thread = open_thread(&branch)?;
    let payload = json!({"branch_id": branch.subject.id(), "text": stored.text, "artifact_id": stored.artifact});
    let mut noted = Request { key: key.clone(), ..ctx.request(Kind::NoteRecorded, Some(&thread.to_string()), payload) };
    if let Some(first) = repeated_note(&tx, &mut noted)? {
        return Ok(Interruptible::Done(NoteOutcome { recorded: first, branch, interrupted: false }));
    }
    let asked = tx.ask(noted)?;
    let interrupted = tx.state().phase_of(&branch.subject) == Phase::Suspended && !branch.is_root();
    let branch = tx.state().entity(&branch.subject).expect("it was there").into_owned();
    Ok(Interruptible::Done(NoteOutcome { recorded: tx.finish(&[asked])?, branch, interrupted }))
}

/// The first recording of a repeated note. The persona may have moved since: the note belongs to its first thread.
fn repeated_note(tx: &Transaction<'_>, noted: &mut Request) -> Result<Option<Recorded>> {
    let first = noted.key.as_deref().and_then(|key| tx.state().keyed(key));
    if let Some(first) = first.map(|id| tx.log.find(id)).transpose()?.flatten()
        && first.event_type.known() == Some(Kind::NoteRecorded)
    {
        noted.subject = Some(first.subject.clone());
        noted.payload.extend(first.payload.get("branch_id").map(|id: &Value| ("branch_id".to_owned(), id.clone())));
    }
    tx.repeated(noted)
}
