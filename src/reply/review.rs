//! What is said of reviews.

use super::{Key, Next, Replies, Reply, Status, mission};
use crate::machine::Phase;
use crate::op::review::{DebateView, FailsOutcome, PromptOutcome, ReviewOutcome};

/// Where the debate stands.
fn standing(reply: Reply, view: &DebateView) -> Reply {
    reply
        .with(Key::Round, mission::round(view.round()))
        .with_some(Key::Turn, view.turn.as_deref())
        .with(Key::Converged, view.is(Phase::Converged))
        .with_some(Key::M1Status, view.m1_status)
}

/// What comes next: a person's word, mending the spec, or nothing that can be named.
fn next(view: &DebateView) -> Next {
    match (view.is(Phase::Exhausted), view.fails().is_empty()) {
        (true, _) => Next::OPERATOR,
        (false, false) => Next::Patch,
        (false, true) => Next::None,
    }
}

impl Replies for DebateView {
    fn reply(&self) -> Reply {
        let sum = match (self.is(Phase::Converged), self.is(Phase::Exhausted), &self.turn) {
            (true, ..) => "the reviewers agree".to_owned(),
            (_, true, _) => "every round is used, and there is still something to fix".to_owned(),
            (_, _, turn) => format!("it is the turn of {}", turn.as_deref().unwrap_or("nobody")),
        };
        standing(Reply::new(Status::Ok, sum), self).with_texts(Key::Fail, self.fails()).next(next(self))
    }
}

impl Replies for ReviewOutcome {
    /// A reply was recorded; the status of a run tells how it ended.
    fn reply(&self) -> Reply {
        let status = match (self.ran, self.fails.is_empty()) {
            (true, _) if self.view.is(Phase::Exhausted) => Status::RoundLimit,
            (true, false) => Status::Fail,
            (true, true) => Status::Converged,
            (false, _) if self.recorded.duplicate => Status::Duplicate,
            (false, _) => Status::Recorded,
        };
        let sum = format!("{}: {} PASS, {} FAIL", self.review, self.passes, self.fails.len());
        standing(Reply::new(status, sum), &self.view)
            .next(next(&self.view))
            .with(Key::Review, self.review.as_str())
            .with(Key::File, self.file.as_str())
            .with_texts(Key::Fail, &self.fails)
            .with_texts(Key::EventId, &self.recorded.ids)
            .warn(self.recorded.warnings.clone())
    }
}

impl Replies for FailsOutcome {
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, format!("FAIL lines of {}: {}", self.review, self.fails.len()))
            .with(Key::Review, self.review.as_str())
            .with_texts(Key::Fail, &self.fails)
    }
}

impl Replies for PromptOutcome {
    /// What is said beside the prompt.
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, format!("a prompt of {} bytes", self.prompt.len()))
    }
}
