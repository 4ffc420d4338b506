//! Every status of every reply, its exit code, and which error gives which.

use crate::base::{ErrorKind, Reason, names};

names! {
    /// Every status of the toolkit.
    pub enum Status {
        Ok = "OK",
        Initialized = "INITIALIZED",
        Exists = "EXISTS",
        Appended = "APPENDED",
        Duplicate = "DUPLICATE",
        Valid = "VALID",
        Following = "FOLLOWING",
        Verified = "VERIFIED",
        Failed = "FAILED",
        Recovered = "RECOVERED",
        Intact = "INTACT",
        BackedUp = "BACKED_UP",
        Rebuilt = "REBUILT",
        Snapshot = "SNAPSHOT",
        Consistent = "CONSISTENT",
        Recorded = "RECORDED",
        Claimed = "CLAIMED",
        Stored = "STORED",
        Stopped = "STOPPED",
        StoppedUnrecorded = "STOPPED_UNRECORDED",
        Resumed = "RESUMED",
        Healthy = "HEALTHY",
        Warning = "WARNING",
        Fired = "FIRED",
        Done = "DONE",
        Queued = "QUEUED",
        Running = "RUNNING",
        Orphaned = "ORPHANED",
        Cancelled = "CANCELLED",
        Fail = "FAIL",
        Lost = "LOST",
        NoTask = "NO_TASK",
        AnomalyFound = "ANOMALY",
        Converged = "CONVERGED",
        RoundLimit = "ROUND_LIMIT",
        Paused = "PAUSED",
        Archived = "ARCHIVED",
        ExitRequested = "EXIT_REQUESTED",
        Usage = "USAGE",
        InvalidCursor = "INVALID_CURSOR",
        LimitExceeded = "LIMIT_EXCEEDED",
        Refused = "REFUSED",
        ApprovalRequired = "APPROVAL_REQUIRED",
        ClaimLost = "CLAIM_LOST",
        Corrupt = "CORRUPT",
        Busy = "BUSY",
        NotFound = "NOT_FOUND",
        NoVault = "NO_VAULT",
        SystemError = "SYSTEM_ERROR",
        Uncertain = "UNCERTAIN",
        Interrupted = "INTERRUPTED",
    }
}

impl Status {
    /// The exit code that goes with it.
    pub const fn exit(self) -> u8 {
        match self {
            Status::Ok
            | Status::Initialized
            | Status::Exists
            | Status::Appended
            | Status::Duplicate
            | Status::Valid
            | Status::Following
            | Status::Verified
            | Status::Recovered
            | Status::Intact
            | Status::BackedUp
            | Status::Rebuilt
            | Status::Snapshot
            | Status::Consistent
            | Status::Recorded
            | Status::Claimed
            | Status::Stored
            | Status::Stopped
            | Status::StoppedUnrecorded
            | Status::Resumed
            | Status::Fired
            | Status::Done
            | Status::Queued
            | Status::Running
            | Status::Orphaned
            | Status::Cancelled
            | Status::Healthy
            | Status::Converged
            | Status::Paused
            | Status::Archived
            | Status::Warning => 0,
            Status::Failed
            | Status::Fail
            | Status::Lost
            | Status::NoTask
            | Status::AnomalyFound
            | Status::Interrupted => 1,
            Status::Usage | Status::InvalidCursor | Status::LimitExceeded => 2,
            Status::Refused
            | Status::ApprovalRequired
            | Status::ClaimLost
            | Status::RoundLimit
            | Status::ExitRequested => 3,
            Status::Corrupt => 4,
            Status::Busy => 5,
            Status::NotFound => 6,
            Status::NoVault => 7,
            Status::SystemError | Status::Uncertain => 111,
        }
    }

    /// The status of an error.
    pub fn of(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Status::Usage,
            ErrorKind::InvalidCursor => Status::InvalidCursor,
            ErrorKind::LimitExceeded => Status::LimitExceeded,
            ErrorKind::Refused(Reason::ApprovalRequired) => Status::ApprovalRequired,
            ErrorKind::Refused(Reason::ClaimLost) => Status::ClaimLost,
            ErrorKind::Refused(Reason::RoundLimit) => Status::RoundLimit,
            ErrorKind::Refused(_) => Status::Refused,
            ErrorKind::ExitRequested(_) => Status::ExitRequested,
            ErrorKind::Corrupt => Status::Corrupt,
            ErrorKind::Busy => Status::Busy,
            ErrorKind::NotFound => Status::NotFound,
            ErrorKind::NoVault => Status::NoVault,
            ErrorKind::System => Status::SystemError,
            ErrorKind::Uncertain { .. } => Status::Uncertain,
        }
    }

    /// The colour that a person sees it in: green for done, yellow for no, red for trouble.
    pub const fn colour(self) -> &'static str {
        match self.exit() {
            0 => "32",
            1 | 3 | 5 | 6 => "33",
            _ => "31",
        }
    }
}
