//! Differences between the product and its design that are known and not yet settled. While one is listed here, the
//! model says what the product says, so that lives can go on behind it; `--strict` ignores the list. The goal is an
//! empty list: delete a row together with the product's mistake.

use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// A run's heartbeat does not hold off INACTIVE and NEVER_SEEN.
    HeartbeatIsNoSign,
    /// An agent's last sign of life is the heartbeat of somebody else's run of a task that it claimed later.
    HeartbeatOfOthers,
    /// An agent in an archived project is REFUSED where it should be EXIT_REQUESTED.
    ArchivedIsRefused,
    /// A holder whose claim expired before its task was aborted is REFUSED, not told that it lost the claim.
    LossIsForgotten,
    /// The reason of a task that was aborted behind a rework names the reworked task with the rework's reason.
    ReworkIsNotNamed,
    /// NEXT is a claim although the limit of tasks in progress is reached.
    ClaimBeyondLimit,
    /// hf-status lists escalations that are not raised yet, under references that do not exist, as of now.
    EscalationBeforeItIsRaised,
    /// A task that is aborted only by what is due was aborted "now", at another time with every question.
    AbortedAsOfNow,
    /// A task behind both a task and its rework is aborted twice, which the audit calls a violation.
    AbortedTwice,
    /// Without a ready task, NEXT is the start of a held task whose project is paused.
    StartInPause,
    /// Approving again says NEXT:start although the claim has expired.
    StartAfterLoss,
    /// The RUNNING block of hf-poll has a NEXT without the caller's interval and limit.
    PollForgetsItsLimits,
    /// The DONE block of hf-poll has a fifth line, LOGREF.
    DoneHasFiveLines,
    /// The SUM of a FAIL block does not begin with the exit code.
    SumWithoutCode,
    /// NEXT after the approval of a destructive job is a claim, which is refused.
    ClaimOfJob,
    /// Nothing but hf-poll, hf-job and the watchdog notices a lost job: readers show it as running, and what names it
    /// does not settle it. One with retries is no problem to hf-status, nor is one whose end is known.
    LostIsRunning,
    /// Cancelling somebody else's job that has ended is REFUSED, since it "is held by" who held it.
    EndedIsHeld,
    /// The FAIL block of a job that never ran has no LOGREF.
    FailWithoutLog,
    /// A job that waits is nothing to watch: a watchdog that never ran is only a notice.
    WaitingIsNotWatched,
    /// In a paused project, NEXT of a job that waits for an approval is to poll it.
    PauseHidesApproval,
    /// An agent may cancel a job of somebody else that has not begun.
    CancelOfOthers,
    /// hf-poll and hf-job check show a job whose approval is overdue, and rejected by that, as waiting for it.
    JobIgnoresDue,
    /// What is due is applied project by project: a task is rejected by its own question, although an older one of
    /// another project would have aborted it first.
    DueByProject,
    /// Every rework counts as a return, even one that an operator proposed for what failed or a stop aborted.
    EveryReworkReturns,
    /// An operator cannot assign a task that is held to somebody else.
    HeldIsNotReassigned,
    /// NEXT after an operator assigned a task to an agent is its start, which is refused to the operator.
    StartForOthers,
    /// hf-status in the shell of an expired session does not list that session as overdue.
    OwnSessionIsNoProblem,
}

const LISTED: &[Known] = &[
    Known::HeartbeatIsNoSign,
    Known::HeartbeatOfOthers,
    Known::ArchivedIsRefused,
    Known::LossIsForgotten,
    Known::ReworkIsNotNamed,
    Known::ClaimBeyondLimit,
    Known::EscalationBeforeItIsRaised,
    Known::AbortedAsOfNow,
    Known::AbortedTwice,
    Known::StartInPause,
    Known::StartAfterLoss,
    Known::PollForgetsItsLimits,
    Known::DoneHasFiveLines,
    Known::SumWithoutCode,
    Known::ClaimOfJob,
    Known::LostIsRunning,
    Known::EndedIsHeld,
    Known::FailWithoutLog,
    Known::WaitingIsNotWatched,
    Known::PauseHidesApproval,
    Known::CancelOfOthers,
    Known::JobIgnoresDue,
    Known::DueByProject,
    Known::EveryReworkReturns,
    Known::HeldIsNotReassigned,
    Known::StartForOthers,
    Known::OwnSessionIsNoProblem,
];

static STRICT: OnceLock<bool> = OnceLock::new();

/// Whether the list is ignored. Can be set once.
pub fn be_strict(strict: bool) {
    STRICT.get_or_init(|| strict);
}

impl Known {
    /// Whether the model imitates this mistake.
    pub fn stands(self) -> bool {
        !STRICT.get().copied().unwrap_or(false) && LISTED.contains(&self)
    }
}
