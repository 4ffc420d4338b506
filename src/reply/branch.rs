//! What a persona is told of its branches, threads and messages.

use super::{Cell, Key, Next, Replies, Reply, Row, Status, entity, list, row, sentence};
use crate::base::{limits, text};
use crate::op::Recorded;
use crate::op::branch::{
    BranchesOutcome, ContextOutcome, DecideOutcome, InboxOutcome, NoteOutcome, Outcome, ReadOutcome, RecallOutcome,
    Told, WorkingOutcome,
};
use crate::state::Entity;

/// Reference, type, state, last activity and label.
fn branch(branch: &Entity) -> Row {
    let last = branch.as_branch().last_activity().map_or(Cell::None, Cell::time);
    row![branch.name(), branch.as_branch().branch_type(), branch.phase.as_str(), last, branch.as_branch().label()]
}

/// Reference, state, time, sender and text; in a list, not all of a long one.
fn message(told: &Told, listed: bool) -> Row {
    let said = if listed { text::cut(&told.text, limits::BLOCK_LINE_MAX_CHARS) } else { told.text.clone() };
    let sent = told.message.as_message().sent_at().map_or(Cell::None, Cell::time);
    row![told.message.name(), told.message.phase.as_str(), sent, told.message.as_message().from(), said]
}

/// To look at what was told.
fn look() -> Next {
    Next::run("hf-branch").word("inbox --unread")
}

/// Somebody came before what was asked for.
fn interrupted(left: &Entity) -> Reply {
    let sum = format!("somebody told you something: {} is left, and the root is active", left.name());
    Reply::new(Status::Interrupted, sum).next(look())
}

impl Replies for Outcome<Recorded> {
    /// A branch that was made; to a social one its persona has yet to go.
    fn reply(&self) -> Reply {
        match self {
            Outcome::Interrupted { left } => interrupted(left),
            Outcome::Done(done) => {
                let social = done.entity.as_ref().filter(|branch| branch.as_branch().branch_type() == Some("social"));
                done.reply().next(social.map_or(Next::None, |made| entity::next_about("hf-branch", "resume", made)))
            }
        }
    }
}

impl Replies for Outcome<ContextOutcome> {
    fn reply(&self) -> Reply {
        let done = match self {
            Outcome::Interrupted { left } => return interrupted(left),
            Outcome::Done(done) => done,
        };
        let status = if done.recorded.duplicate { Status::Duplicate } else { Status::Resumed };
        let reply = Reply::new(status, sentence(&done.branch))
            .with_texts(Key::EventId, &done.recorded.ids)
            .with(Key::Subject, &done.branch.subject)
            .with_some(Key::Ref, done.branch.reference())
            .with(Key::State, done.branch.phase.as_str());
        let reply = match &done.thread {
            Some(thread) => reply.with_row(Key::Thread, row![thread.name(), thread.as_thread().number()]),
            None => reply,
        };
        reply
            .with(Key::Words, done.context.words())
            .with(Key::LeftOut, done.context.left_out)
            .warn(done.recorded.warnings.clone())
    }
}

impl Replies for WorkingOutcome {
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, format!("{} branches", self.count)).with(Key::Count, self.count)
    }
}

impl Replies for BranchesOutcome {
    fn reply(&self) -> Reply {
        let reply = list::page_of_branches(&self.page);
        let reply = match &self.active {
            Some(active) => reply.with_row(Key::Active, branch(active)),
            None => reply,
        };
        reply.with_rows(Key::Branch, self.page.entities().map(branch))
    }
}

impl Replies for RecallOutcome {
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, format!("{} threads, {} messages", self.threads, self.messages))
            .with(Key::Count, self.messages)
    }
}

impl Replies for NoteOutcome {
    /// Something was noted; whoever was interrupted looks who came.
    fn reply(&self) -> Reply {
        let next = if self.interrupted { look() } else { Next::None };
        self.recorded.reply().next(next).with_rows(Key::Branch, [branch(&self.branch)])
    }
}

impl Replies for DecideOutcome {
    /// What can be done now.
    fn reply(&self) -> Reply {
        let (choices, sum): (&[&str], String) = match (self.unread.len(), self.candidates.len()) {
            (0, 0) => (&["CREATE", "WAIT"], "nothing waits for you".to_owned()),
            (0, waiting) => (&["RESUME"], format!("{waiting} branches wait for you")),
            (unread, _) => (&["REACT"], format!("{unread} messages are unread")),
        };
        let candidate = |(branch, waited): &(Entity, u64)| {
            row![branch.name(), branch.as_branch().branch_type(), *waited, branch.as_branch().label()]
        };
        let reply = Reply::new(Status::Ok, sum).next(if self.unread.is_empty() { Next::None } else { look() });
        let reply = match &self.active {
            Some(active) => reply.with_row(Key::Active, branch(active)),
            None => reply,
        };
        reply
            .with_texts(Key::Choice, choices)
            .with_rows(Key::Message, self.unread.iter().map(|told| message(told, true)))
            .with_rows(Key::Candidate, self.candidates.iter().map(candidate))
    }
}

impl Replies for InboxOutcome {
    fn reply(&self) -> Reply {
        let next = if self.unread > 0 { Next::run("hf-branch").word("read") } else { Next::None };
        Reply::new(Status::Ok, format!("{} messages, {} unread", self.messages.len(), self.unread))
            .next(next)
            .with(Key::Count, self.messages.len())
            .with(Key::HasMore, self.more)
            .with(Key::Unread, self.unread)
            .with_rows(Key::Message, self.messages.iter().map(|told| message(told, true)))
    }
}

impl Replies for Option<ReadOutcome> {
    /// What was read, all of it.
    fn reply(&self) -> Reply {
        match self {
            None => Reply::new(Status::Duplicate, "nothing is unread").with(Key::Unread, 0u64),
            Some(done) => done
                .recorded
                .reply()
                .with(Key::Unread, done.unread)
                .with_rows(Key::Message, done.messages.iter().map(|told| message(told, false))),
        }
    }
}
