//! Replies to a persona about its branches, threads and messages.

use super::{Cell, Key, Next, Replies, Reply, Row, Status, entity, list, row, sentence};
use crate::base::limits;
use crate::base::text::{self, count_noun};
use crate::op::Recorded;
use crate::op::branch::{
    BranchesOutcome, ContextOutcome, DecideOutcome, FullMessage, InboxOutcome, Interruptible, NoteOutcome, ReadOutcome,
    RecallOutcome, WorkingOutcome,
};
use crate::state::Entity;

/// Reference, type, state, last activity and label.
fn branch(branch: &Entity) -> Row {
    let last = branch.as_branch().last_activity().map_or(Cell::None, Cell::time);
    row![branch.name(), branch.as_branch().branch_type(), branch.phase.as_str(), last, branch.as_branch().label()]
}

/// A message in a list: reference, state, time, sender, and the start of its text.
fn listed_message(full: &FullMessage) -> Row {
    message_row(full, text::cut(&full.text, limits::BLOCK_LINE_MAX_CHARS))
}

/// A message with all of its text.
fn full_message(full: &FullMessage) -> Row {
    message_row(full, full.text.clone())
}

fn message_row(full: &FullMessage, text: String) -> Row {
    let sent = full.message.as_message().sent_at().map_or(Cell::None, Cell::time);
    row![full.message.name(), full.message.phase.as_str(), sent, full.message.as_message().from(), text]
}

/// The command that shows unread messages.
fn read_inbox() -> Next {
    Next::run("hf-branch").word("inbox --unread")
}

/// A message interrupted the request before anything was done.
fn interrupted(left: &Entity) -> Reply {
    let sum = format!("interrupted by a message: left {}; the root is active", left.name());
    Reply::new(Status::Interrupted, sum).next(read_inbox())
}

impl Replies for Interruptible<Recorded> {
    /// A new branch. A social branch is not active yet, so the next step is to resume it.
    fn reply(&self) -> Reply {
        match self {
            Interruptible::Interrupted { left } => interrupted(left),
            Interruptible::Done(done) => {
                let social = done.entity.as_ref().filter(|branch| branch.as_branch().branch_type() == Some("social"));
                done.reply().next(social.map_or(Next::None, |made| entity::next_about("hf-branch", "resume", made)))
            }
        }
    }
}

impl Replies for Interruptible<ContextOutcome> {
    fn reply(&self) -> Reply {
        let done = match self {
            Interruptible::Interrupted { left } => return interrupted(left),
            Interruptible::Done(done) => done,
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
        Reply::new(Status::Ok, count_noun(self.count, "branch")).with(Key::Count, self.count)
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
        Reply::new(
            Status::Ok,
            format!("{}, {}", count_noun(self.threads, "thread"), count_noun(self.messages, "message")),
        )
        .with(Key::Count, self.messages)
    }
}

impl Replies for NoteOutcome {
    /// A recorded note. If a message interrupted the persona, the next step is to read it.
    fn reply(&self) -> Reply {
        let next = if self.interrupted { read_inbox() } else { Next::None };
        self.recorded.reply().next(next).with_rows(Key::Branch, [branch(&self.branch)])
    }
}

impl Replies for DecideOutcome {
    /// What the persona can do now.
    fn reply(&self) -> Reply {
        let (choices, sum): (&[&str], String) = match (self.unread.len(), self.candidates.len()) {
            (0, 0) => (&["CREATE", "WAIT"], "nothing is waiting for you".to_owned()),
            (0, waiting) => (&["RESUME"], format!("{} suspended", count_noun(waiting, "branch"))),
            (unread, _) => (&["REACT"], count_noun(unread, "unread message")),
        };
        let candidate = |(branch, waited): &(Entity, u64)| {
            row![branch.name(), branch.as_branch().branch_type(), *waited, branch.as_branch().label()]
        };
        let reply = Reply::new(Status::Ok, sum).next(if self.unread.is_empty() { Next::None } else { read_inbox() });
        let reply = match &self.active {
            Some(active) => reply.with_row(Key::Active, branch(active)),
            None => reply,
        };
        reply
            .with_texts(Key::Choice, choices)
            .with_rows(Key::Message, self.unread.iter().map(listed_message))
            .with_rows(Key::Candidate, self.candidates.iter().map(candidate))
    }
}

impl Replies for InboxOutcome {
    fn reply(&self) -> Reply {
        let next = if self.unread > 0 { Next::run("hf-branch").word("read") } else { Next::None };
        Reply::new(Status::Ok, format!("{}, {} unread", count_noun(self.messages.len(), "message"), self.unread))
            .next(next)
            .with(Key::Count, self.messages.len())
            .with(Key::HasMore, self.more)
            .with(Key::Unread, self.unread)
            .with_rows(Key::Message, self.messages.iter().map(listed_message))
    }
}

impl Replies for Option<ReadOutcome> {
    /// The messages that were read, in full.
    fn reply(&self) -> Reply {
        match self {
            None => Reply::new(Status::Duplicate, "no unread messages").with(Key::Unread, 0u64),
            Some(done) => done
                .recorded
                .reply()
                .with(Key::Unread, done.unread)
                .with_rows(Key::Message, done.messages.iter().map(full_message)),
        }
    }
}
