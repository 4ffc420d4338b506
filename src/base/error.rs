//! The library's only error type: a kind, which decides the exit code, and a message of one line.
//!
//! Invariant: `reply` chooses the next command from the kind and a validated reference, never from the message, so
//! text that was read from a log cannot steer an agent.

use std::fmt;

use super::{ShortRef, names};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as far as callers need to distinguish it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is invalid.
    Usage,
    /// A paging cursor that is not an event of this log.
    InvalidCursor,
    /// More than fits in one batch or one reply.
    LimitExceeded,
    /// A rule forbids the request.
    Refused(Reason),
    /// The agent must finish up and leave.
    ExitRequested(Reason),
    /// The log is damaged; nothing was changed.
    Corrupt,
    /// Another process holds the lock.
    Busy,
    /// Something that the request names does not exist.
    NotFound,
    /// The project that the request names does not exist.
    NoProject,
    /// No vault was found.
    NoVault,
    /// A system call failed; nothing was recorded.
    System,
    /// A system call failed after the write began, so the events may or may not be recorded. Repeating the request
    /// with `key` is safe.
    Uncertain { key: String },
}

names! {
    /// Why a rule refused a request.
    pub enum Reason {
        IllegalTransition = "illegal_transition",
        KeyConflict = "key_conflict",
        NotPrivate = "not_private",
        NotOwner = "not_owner",
        NewerVersion = "newer_version",
        Symlink = "symlink",
        NotEmpty = "not_empty",
        OddName = "odd_name",
        /// The id could be taken for a short reference.
        MisleadingId = "misleading_id",
        /// Only the toolkit itself acts under this name.
        ReservedActor = "reserved_actor",
        NotConfirmed = "not_confirmed",
        OperatorOnly = "operator_only",
        /// Another task repeats the work of this one.
        Repeated = "repeated",
        /// The commands in the settings of this vault must not be run on this machine.
        NotTrusted = "not_trusted",
        ReservedKind = "reserved_kind",
        /// An operator must approve it first.
        ApprovalRequired = "approval_required",
        /// The request differs from what the operator approved.
        Changed = "changed",
        /// The caller's lease has expired.
        ClaimLost = "claim_lost",
        /// The task is held by someone else.
        NotHolder = "not_holder",
        SystemStopped = "system_stopped",
        NotReady = "not_ready",
        NotDue = "not_due",
        TooManyTasks = "too_many_tasks",
        LimitReached = "limit_reached",
        /// All rounds have been used.
        RoundLimit = "round_limit",
        NotYourTurn = "not_your_turn",
        ProjectPaused = "project_paused",
        ProjectArchived = "project_archived",
        /// The session has ended or never existed.
        SessionVoid = "session_void",
        /// Leaving a branch requires a summary.
        SummaryRequired = "summary_required",
        /// A signature that does not verify, or not in the way it must.
        BadSignature = "bad_signature",
        /// ssh-keygen made no signature.
        NotSigned = "not_signed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    /// What the error is about, for the next command to name.
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

    /// The same error, about something that the next command may name.
    pub fn about(mut self, reference: Option<ShortRef>) -> Self {
        self.about = reference;
        self
    }

    /// The same error with a location in front, as in `line 3: …`.
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
