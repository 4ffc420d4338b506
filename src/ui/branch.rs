//! What hf-branch replies.

use super::{Key, Next, Report, Status, outcome};
use crate::base::{EntityType, limits, text};
use crate::machine::State;
use crate::op::branch::{
    BranchesOutcome, ContextOutcome, DecideOutcome, InboxOutcome, NoteOutcome, Outcome, ReadOutcome, RecallOutcome,
    Told,
};
use crate::op::{AppendOutcome, Listed};
use crate::state::Entity;

/// `BR-0002 free Active 2026-01-31T12:00:00Z A walk round the lake`.
fn line(branch: &Entity) -> String {
    let fact = |name: &str| branch.text(name).unwrap_or("-");
    format!("{} {} {} {} {}", branch.name(), fact("branch_type"), branch.state, fact("last_activity"), fact("label"))
}

/// `MSG-0001 Unread 2026-01-31T12:00:00Z user:jo How far are you?`; in a list, not all of a long one.
fn message(told: &Told, listed: bool) -> String {
    let fact = |name: &str| told.message.text(name).unwrap_or("-");
    let said = if listed { text::cut(&told.text, limits::BLOCK_LINE_MAX_CHARS) } else { told.text.clone() };
    format!("{} {} {} {} {said}", told.message.name(), told.message.state, fact("sent_at"), fact("from"))
}

/// To look at what was told; `named` is the persona, where a flag said which.
fn look(named: Option<&str>) -> Next {
    Next::run("hf-branch").word("inbox --unread").of_agent(named)
}

/// Somebody came before what was asked for.
pub fn interrupted(left: &Entity, named: Option<&str>) -> Report {
    let sum = format!("somebody told you something: {} is left, and the root is active", left.name());
    Report::new(Status::Interrupted, sum).next(look(named))
}

/// A branch that was made; to a social one its persona has yet to go.
pub fn created(done: &Outcome<AppendOutcome>, named: Option<&str>) -> Report {
    match done {
        Outcome::Interrupted { left } => interrupted(left, named),
        Outcome::Done(done) => {
            let social = done.entity.as_ref().filter(|branch| branch.text("branch_type") == Some("social"));
            let next = social.map_or(Next::None, |branch| outcome::next_about("hf-branch", "resume", branch));
            outcome::recorded(done).next(next.of_agent(named))
        }
    }
}

/// The report of a working memory.
pub fn worked(count: usize) -> Report {
    Report::new(Status::Ok, format!("{count} branches")).with(Key::Count, count as u64)
}

/// One page of branches.
pub fn listed(done: &BranchesOutcome, state: Option<State>, limit: usize, named: Option<&str>) -> Report {
    let mut next = Next::run("hf-branch").word("list").arg("--limit", &limit).of_agent(named);
    if let Some(state) = state {
        next = next.word("--status").word(state.as_str());
    }
    let lines = done.page.entries.iter().filter_map(|entry| match entry {
        Listed::Entity(branch) => Some(line(branch)),
        Listed::Key(..) => None,
    });
    outcome::page(&done.page, EntityType::Branch.plural(), next)
        .with_some(Key::Active, done.active.as_ref().map(line))
        .with_each(Key::Branch, lines)
}

/// The report of a context.
pub fn resumed(done: &ContextOutcome) -> Report {
    let status = if done.recorded.duplicate { Status::Duplicate } else { Status::Resumed };
    let thread = done.thread.as_ref().map(|thread| format!("{} {}", thread.name(), thread.count("number")));
    Report::new(status, outcome::sentence(&done.branch))
        .with_each(Key::EventId, done.recorded.ids.iter().map(ToString::to_string))
        .with(Key::Subject, done.branch.subject.to_string())
        .with_some(Key::Ref, done.branch.reference().map(|reference| reference.to_string()))
        .with(Key::State, done.branch.state.as_str())
        .with_some(Key::Thread, thread)
        .with(Key::Words, done.context.words() as u64)
        .with(Key::LeftOut, done.context.left_out as u64)
        .warn(done.recorded.warnings.clone())
}

/// The report of what was remembered.
pub fn recalled(found: &RecallOutcome) -> Report {
    Report::new(Status::Ok, format!("{} threads, {} messages", found.threads, found.messages))
        .with(Key::Count, found.messages as u64)
}

/// Something was noted; whoever was interrupted looks who came.
pub fn noted(done: &NoteOutcome, named: Option<&str>) -> Report {
    let next = if done.interrupted { look(named) } else { Next::None };
    outcome::recorded(&done.recorded).next(next).with_each(Key::Branch, [line(&done.branch)])
}

/// What can be done now.
pub fn decided(done: &DecideOutcome, named: Option<&str>) -> Report {
    let (choices, sum): (&[&str], String) = match (done.unread.len(), done.candidates.len()) {
        (0, 0) => (&["CREATE", "WAIT"], "nothing waits for you".to_owned()),
        (0, waiting) => (&["RESUME"], format!("{waiting} branches wait for you")),
        (unread, _) => (&["REACT"], format!("{unread} messages are unread")),
    };
    let candidate = |(branch, waited): &(Entity, u64)| {
        let fact = |name: &str| branch.text(name).unwrap_or("-");
        format!("{} {} {waited} {}", branch.name(), fact("branch_type"), fact("label"))
    };
    Report::new(Status::Ok, sum)
        .next(if done.unread.is_empty() { Next::None } else { look(named) })
        .with_some(Key::Active, done.active.as_ref().map(line))
        .with_each(Key::Choice, choices.iter().copied())
        .with_each(Key::Message, done.unread.iter().map(|told| message(told, true)))
        .with_each(Key::Candidate, done.candidates.iter().map(candidate))
}

/// What was told.
pub fn inbox(done: &InboxOutcome, named: Option<&str>) -> Report {
    let next = if done.unread > 0 { Next::run("hf-branch").word("read").of_agent(named) } else { Next::None };
    Report::new(Status::Ok, format!("{} messages, {} unread", done.messages.len(), done.unread))
        .next(next)
        .with(Key::Count, done.messages.len() as u64)
        .with(Key::HasMore, if done.more { "yes" } else { "no" })
        .with(Key::Unread, done.unread)
        .with_each(Key::Message, done.messages.iter().map(|told| message(told, true)))
}

/// What was read, all of it.
pub fn read(done: Option<&ReadOutcome>) -> Report {
    match done {
        None => Report::new(Status::Duplicate, "nothing is unread").with(Key::Unread, 0),
        Some(done) => outcome::recorded(&done.recorded)
            .with(Key::Unread, done.unread)
            .with_each(Key::Message, done.messages.iter().map(|told| message(told, false))),
    }
}
