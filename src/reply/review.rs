//! Replies about reviews.

use super::{Cell, Key, Next, Replies, Reply, Status};
use crate::base::limits;
use crate::base::text::count_noun;
use crate::machine::Phase;
use crate::op::review::{DebateView, FailsOutcome, PromptOutcome, ReviewOutcome, RunReviewOutcome};
use crate::policy::review::{OpenFail, OpenReason};

/// Adds the current state of the debate.
fn with_debate(reply: Reply, view: &DebateView) -> Reply {
    reply
        .with(Key::Round, Cell::NumberOf(view.round(), limits::ROUNDS_MAX_COUNT))
        .with_some(Key::Turn, view.turn.as_deref())
        .with(Key::Converged, view.is(Phase::Converged))
        .with_some(Key::M1Status, view.m1_status)
}

/// Adds the open FAILs.
fn with_fails(reply: Reply, view: &DebateView) -> Reply {
    reply
        .with_texts(Key::Fail, view.fails().map(|fail| &fail.line))
        .with_texts(Key::StillOpen, view.still_open().map(still_open))
}

/// The next step: ask an operator, fix the spec, or none.
fn next(view: &DebateView) -> Next {
    match (view.is(Phase::Exhausted), view.open_fails.is_empty()) {
        (true, _) => Next::OPERATOR,
        (false, false) => Next::Patch,
        (false, true) => Next::None,
    }
}

/// A FAIL of an earlier review: the review, why it is still open, and its line.
fn still_open(fail: &OpenFail) -> String {
    format!("{} {} {}", fail.review, fail.why, fail.line)
}

/// Why FAILs of earlier reviews are still open; none if there are none.
fn why_open(view: &DebateView) -> Option<String> {
    let count = view.still_open().count();
    let why = match view.still_open().all(|fail| fail.why == OpenReason::Unchanged) {
        true => "the document is unchanged",
        false => "the document is not known to have changed",
    };
    (count > 0).then(|| format!("{} of earlier reviews still open, because {why}", count_noun(count, "FAIL")))
}

impl Replies for DebateView {
    fn reply(&self) -> Reply {
        let sum = match (self.is(Phase::Converged), self.is(Phase::Exhausted), &self.turn) {
            (true, ..) => "the reviewers agree".to_owned(),
            (_, true, _) => "all rounds are used up, and there is still something to fix".to_owned(),
            (_, _, Some(turn)) => format!("it is {turn}'s turn"),
            (_, _, None) => "it is nobody's turn".to_owned(),
        };
        with_fails(with_debate(Reply::new(Status::Ok, sum), self), self).next(next(self))
    }
}

impl Replies for ReviewOutcome {
    /// A recorded review. After `hf-review run` the status is the result of the run.
    fn reply(&self) -> Reply {
        let status = match self.ran {
            true if self.view.is(Phase::Exhausted) => Status::RoundLimit,
            true if self.view.is(Phase::Converged) => Status::Converged,
            true => Status::Fail,
            false if self.recorded.duplicate => Status::Duplicate,
            false => Status::Recorded,
        };
        let found = format!("{}: {} PASS, {} FAIL", self.review, self.passes, self.fails.len());
        let sum = [Some(found), why_open(&self.view)].into_iter().flatten().collect::<Vec<_>>().join("; ");
        with_debate(Reply::new(status, sum), &self.view)
            .next(next(&self.view))
            .with(Key::Review, self.review.as_str())
            .with(Key::File, self.file.as_str())
            .with_texts(Key::Fail, &self.fails)
            .with_texts(Key::StillOpen, self.view.still_open().map(still_open))
            .with_texts(Key::EventId, &self.recorded.ids)
            .warn(self.recorded.warnings.clone())
    }
}

impl Replies for RunReviewOutcome {
    fn reply(&self) -> Reply {
        match self {
            RunReviewOutcome::Reviewed(last) => last.reply(),
            RunReviewOutcome::Converged(view) => {
                let sum = "the reviewers have agreed on this document before; nobody was asked";
                with_debate(Reply::new(Status::Converged, sum), view)
            }
            RunReviewOutcome::Unchanged(view) => {
                let newest = view.newest.as_ref().map_or("the last review", |review| review.subject.id());
                let sum = format!("the document is unchanged since {newest}; nobody was asked");
                with_fails(with_debate(Reply::new(Status::Fail, sum), view), view).next(next(view))
            }
        }
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
            .with(Key::Sha256, self.document_sha256.as_str())
    }
}
