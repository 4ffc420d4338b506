//! Replies to a persona about its branches, threads and messages.

use super::{Cell, Key, Next, Replies, Reply, Row, Status, entity, list, row, sentence};
use crate::base::limits;
use crate::base::text::{self, count_noun};
use crate::machine::Phase;
use crate::op::Recorded;
use crate::op::branch::{
    BranchesOutcome, ChangeSeen, ContextOutcome, DecideOutcome, FullMessage, InboxOutcome, Interruptible, KnownOutcome,
    NoteOutcome, ReadOutcome, RecallOutcome, WorkingOutcome,
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

/// Something to react to: what happened, to what, when, who did it, and a title.
pub(super) fn change(change: &ChangeSeen) -> Row {
    let title = change.title.as_deref().map(|title| text::cut(title, limits::SUMMARY_MAX_CHARS));
    row![change.kind, change.about.as_str(), Cell::time(&change.at), change.by.as_str(), title]
}

/// The command that shows unread messages.
pub(super) fn read_inbox() -> Next {
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
            .with(Key::LeftOut, done.context.left_out())
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

impl Replies for KnownOutcome {
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, sentence(&self.page))
            .with_some(Key::Ref, self.page.reference())
            .with(Key::Count, self.revisions.len())
    }
}

impl Replies for RecallOutcome {
    fn reply(&self) -> Reply {
        let more = [(self.page_count(), "page"), (self.result_count(), "result"), (self.remark_count(), "note")];
        Reply::new(
            Status::Ok,
            [(self.threads, "thread"), (self.messages, "message")]
                .into_iter()
                .chain(more.into_iter().filter(|(count, _)| *count > 0))
                .map(|(count, noun)| count_noun(count, noun))
                .collect::<Vec<_>>()
                .join(", "),
        )
        .with(Key::Count, self.messages + self.page_count() + self.result_count() + self.remark_count())
        .with(Key::HasMore, self.next_cursor.is_some())
        .with_some(Key::NextCursor, self.next_cursor.as_deref())
    }
}

impl Replies for Interruptible<NoteOutcome> {
    /// A recorded note. If a message interrupted the persona, the next step is to read it.
    fn reply(&self) -> Reply {
        match self {
            Interruptible::Interrupted { left } => {
                let sum = format!("not recorded: you were taken away from {}; say where the note belongs", left.name());
                Reply::new(Status::Interrupted, sum)
            }
            Interruptible::Done(done) => {
                let next = if done.interrupted { read_inbox() } else { Next::None };
                done.recorded.reply().next(next).with_rows(Key::Branch, [branch(&done.branch)])
            }
        }
    }
}

/// How to answer the senders of these messages: the user at the root, an agent by a message.
fn how_to_answer<'a>(root: Option<&Entity>, messages: impl IntoIterator<Item = &'a FullMessage>) -> Vec<String> {
    let mut ways: Vec<String> = Vec::new();
    for full in messages {
        let way = match full.message.as_message().from().and_then(|from| from.strip_prefix("agent:")) {
            Some(agent) => format!("hf-branch tell {agent} TEXT"),
            None => {
                let root =
                    root.map_or_else(|| full.message.as_message().to().unwrap_or_default().to_owned(), Entity::name);
                format!("hf-branch note --branch {root} TEXT")
            }
        };
        if !ways.contains(&way) && ways.len() < WAYS_MAX {
            ways.push(way);
        }
    }
    ways
}

/// How many ways to answer are named at most.
const WAYS_MAX: usize = 3;

impl Replies for DecideOutcome {
    /// What the persona can do now, each with its reason.
    fn reply(&self) -> Reply {
        let (unread, changes, waiting) = (self.unread_count, self.changes.len(), self.candidate_count);
        let elsewhere = self.active.as_ref().filter(|active| !active.is_root());
        let mut choices: Vec<(&str, String)> = Vec::new();
        if unread > 0 || changes > 0 {
            let some = [(unread, "unread message"), (changes as u64, "change")].into_iter().filter(|(n, _)| *n > 0);
            let some: Vec<String> = some.map(|(n, what)| count_noun(n, what)).collect();
            choices.push(("REACT", some.join(", ")));
        }
        if waiting > 0 {
            choices.push(("RESUME", format!("{} suspended", count_noun(waiting, "branch"))));
        }
        choices.push(("CREATE", "something new".to_owned()));
        if unread == 0 && changes == 0 {
            let why = elsewhere
                .map_or("nothing has to be done now".to_owned(), |active| format!("{} is active", active.name()));
            choices.push(("WAIT", why));
        }
        let sum = match choices.first() {
            Some(("REACT" | "RESUME", why)) => why.clone(),
            _ => "nothing is waiting for you".to_owned(),
        };
        let candidate = |(branch, waited): &(Entity, u64)| {
            let known = branch.as_branch();
            row![branch.name(), known.branch_type(), *waited, known.label(), known.brief_state()]
        };
        let reply = Reply::new(Status::Ok, sum).next(if unread == 0 { Next::None } else { read_inbox() });
        let reply = match &self.active {
            Some(active) => reply.with_row(Key::Active, branch(active)),
            None => reply,
        };
        let more = waiting > self.candidates.len();
        let advice = how_to_answer(self.root.as_ref(), &self.unread);
        let advice = advice.into_iter().chain(more.then(|| "hf-branch list --status Suspended".to_owned()));
        reply
            .with_texts(Key::Choice, choices.iter().map(|(choice, _)| choice))
            .with_texts(Key::Because, choices.iter().map(|(choice, why)| format!("{choice}: {why}")))
            .with_some(Key::Unread, (unread > 0).then_some(unread))
            .with_rows(Key::Message, self.unread.iter().map(listed_message))
            .with_rows(Key::Change, self.changes.iter().map(change))
            .with_rows(Key::Candidate, self.candidates.iter().map(candidate))
            .with_texts(Key::Advice, advice)
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
            .with_texts(Key::Advice, how_to_answer(self.root.as_ref(), unread(&self.messages)))
    }
}

/// The messages that are unread.
fn unread(messages: &[FullMessage]) -> impl Iterator<Item = &FullMessage> {
    messages.iter().filter(|full| full.message.phase == Phase::Unread)
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
                .with_rows(Key::Message, done.messages.iter().map(full_message))
                .and_texts(Key::Advice, how_to_answer(done.root.as_ref(), &done.messages)),
        }
    }
}
