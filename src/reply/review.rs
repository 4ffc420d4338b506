//! Replies about reviews.

use super::{Key, Next, Replies, Reply, Status, mission};
use crate::base::text::count_noun;
use crate::machine::Phase;
use crate::op::review::{DebateView, FailsOutcome, PromptOutcome, ReviewOutcome};

/// Adds the current state of the debate.
fn with_debate(reply: Reply, view: &DebateView) -> Reply {
    reply
        .with(Key::Round, mission::round(view.round()))
        .with_some(Key::Turn, view.turn.as_deref())
        .with(Key::Converged, view.is(Phase::Converged))
        .with_some(Key::M1Status, view.m1_status)
}

/// The next step: ask an operator, fix the spec, or none.
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
            (_, true, _) => "all rounds are used up, and there is still something to fix".to_owned(),
            (_, _, Some(turn)) => format!("it is {turn}'s turn"),
            (_, _, None) => "it is nobody's turn".to_owned(),
        };
        with_debate(Reply::new(Status::Ok, sum), self).with_texts(Key::Fail, self.fails()).next(next(self))
    }
}

impl Replies for ReviewOutcome {
    /// A recorded review. After `hf-review run` the status is the result of the run.
    fn reply(&self) -> Reply {
        let status = match (self.ran, self.fails.is_empty()) {
            (true, _) if self.view.is(Phase::Exhausted) => Status::RoundLimit,
            (true, false) => Status::Fail,
            (true, true) => Status::Converged,
            (false, _) if self.recorded.duplicate => Status::Duplicate,
            (false, _) => Status::Recorded,
        };
        let sum = format!("{}: {} PASS, {} FAIL", self.review, self.passes, self.fails.len());
        with_debate(Reply::new(status, sum), &self.view)
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
        Reply::new(Status::Ok, format!("{} has {}", self.review, count_noun(self.fails.len(), "FAIL line")))
            .with(Key::Review, self.review.as_str())
            .with_texts(Key::Fail, &self.fails)
    }
}

impl Replies for PromptOutcome {
    /// The reply that accompanies the prompt.
    fn reply(&self) -> Reply {
        Reply::new(Status::Ok, format!("prompt of {}", count_noun(self.prompt.len(), "byte")))
    }
}
