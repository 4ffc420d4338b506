//! The one error type of the library: a kind, which decides the exit code, and one sentence.
//!
//! Invariant: a message is one line that says what was wrong. The next step is chosen by `reply` from the kind, and
//! names at most a validated reference, so nothing read from a log can steer it.

use std::fmt;

use super::{ShortRef, names};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as far as a caller must tell cases apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request itself is wrong.
    Usage,
    /// A paging cursor that is no event of this log.
    InvalidCursor,
    /// More was asked for than one reply may hold.
    LimitExceeded,
    /// A rule forbids it.
    Refused(Reason),
    /// An agent has to tidy up and leave.
    ExitRequested(Reason),
    /// The log is damaged; nothing was changed.
    Corrupt,
    /// Somebody else holds the lock.
    Busy,
    /// What the request names does not exist.
    NotFound,
    /// There is no vault here.
    NoVault,
    /// The system failed; nothing was recorded.
    System,
    /// The system failed between writing and knowing; `key` makes a repetition safe.
    Uncertain { key: String },
}

names! {
    /// Why a rule refused.
    pub enum Reason {
        IllegalTransition = "illegal_transition",
        KeyConflict = "key_conflict",
        NotPrivate = "not_private",
        NotOwner = "not_owner",
        NewerVersion = "newer_version",
        Symlink = "symlink",
        NotEmpty = "not_empty",
        OddName = "odd_name",
        NotConfirmed = "not_confirmed",
        OperatorOnly = "operator_only",
        ReservedKind = "reserved_kind",
        /// A decision of an operator has to come first.
        ApprovalRequired = "approval_required",
        /// What was asked for is not what an operator saw.
        Changed = "changed",
        /// The lease of whoever asks has passed.
        ClaimLost = "claim_lost",
        /// Somebody else has it.
        NotHolder = "not_holder",
        SystemStopped = "system_stopped",
        NotReady = "not_ready",
        NotDue = "not_due",
        TooManyTasks = "too_many_tasks",
        LimitReached = "limit_reached",
        /// Every round that there is has been used.
        RoundLimit = "round_limit",
        NotYourTurn = "not_your_turn",
        ProjectPaused = "project_paused",
        ProjectArchived = "project_archived",
        /// A session that is over, or was never there.
        SessionVoid = "session_void",
        /// Whoever leaves a branch says where it stands.
        SummaryRequired = "summary_required",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    /// What it is about, where the next step names it.
    pub about: Option<ShortRef>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), about: None }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    pub fn refused(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused(reason), message)
    }

    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    pub fn system(doing: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::new(ErrorKind::System, format!("{doing}: {error}"))
    }

    /// The same error, about something that the next step may name.
    pub fn about(mut self, reference: Option<ShortRef>) -> Self {
        self.about = reference;
        self
    }

    /// The same error with what it belongs to in front, as in `line 3: …`.
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
