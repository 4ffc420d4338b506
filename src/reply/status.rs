//! Every status of every reply, in one table: its exit code, its meaning; and which error gives which.

use crate::base::{ErrorKind, Reason};

/// A row of the table.
#[derive(Debug)]
pub struct Entry {
    pub status: Status,
    pub name: &'static str,
    pub exit: u8,
    pub meaning: &'static str,
}

macro_rules! statuses {
    ($($Status:ident = $name:literal, $exit:literal, $meaning:literal;)*) => {
        /// Every status of the toolkit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Status { $($Status),* }

        impl Status {
            /// Every status with what is known of it, in the order of the enum.
            pub const TABLE: &'static [Entry] =
                &[$(Entry { status: Status::$Status, name: $name, exit: $exit, meaning: $meaning }),*];
        }
    };
}

statuses! {
    Ok = "OK", 0, "the question is answered";
    Initialized = "INITIALIZED", 0, "a new vault was made";
    Exists = "EXISTS", 0, "the vault existed before; nothing was changed";
    Appended = "APPENDED", 0, "the events are recorded and durable";
    Duplicate = "DUPLICATE", 0, "it was recorded before, or is so already; nothing was recorded again";
    Valid = "VALID", 0, "a dry run: it could be recorded, and was not";
    Following = "FOLLOWING", 0, "events follow as they come";
    Verified = "VERIFIED", 0, "everything that was checked is right";
    Different = "DIFFERENT", 1, "the file and the log differ";
    Failed = "FAILED", 1, "something that was checked is wrong";
    Recovered = "RECOVERED", 0, "damaged bytes were moved to quarantine";
    Intact = "INTACT", 0, "there was nothing to recover";
    BackedUp = "BACKED_UP", 0, "the copy is complete and verified";
    Rebuilt = "REBUILT", 0, "the caches were rebuilt from the events";
    Snapshot = "SNAPSHOT", 0, "the whole state was written to a file";
    Consistent = "CONSISTENT", 0, "the caches say what the events say";
    Recorded = "RECORDED", 0, "the event is recorded and durable";
    Claimed = "CLAIMED", 0, "the task is yours";
    Stored = "STORED", 0, "the content is stored";
    Stopped = "STOPPED", 0, "everything is stopped";
    StoppedUnrecorded = "STOPPED_UNRECORDED", 0, "everything is stopped; the next command records it";
    Resumed = "RESUMED", 0, "work goes on";
    Healthy = "HEALTHY", 0, "nothing is wrong";
    Warning = "WARNING", 0, "something may go wrong; nothing was recorded of it";
    Fired = "FIRED", 0, "the job is on its way";
    Done = "DONE", 0, "it ended well";
    Queued = "QUEUED", 0, "it waits for its turn";
    Running = "RUNNING", 0, "it is not over yet";
    Orphaned = "ORPHANED", 0, "it runs without its supervisor";
    Cancelled = "CANCELLED", 0, "it was ended";
    Fail = "FAIL", 1, "it failed";
    Lost = "LOST", 1, "it ended with its supervisor, and how is not known";
    NoTask = "NO_TASK", 1, "no task is ready";
    AnomalyFound = "ANOMALY", 1, "something is wrong";
    Converged = "CONVERGED", 0, "the reviewers agree";
    RoundLimit = "ROUND_LIMIT", 3, "every round is used";
    Paused = "PAUSED", 0, "the project is paused";
    Archived = "ARCHIVED", 0, "the project is closed for good";
    ExitRequested = "EXIT_REQUESTED", 3, "tidy up and leave; then log out";
    Usage = "USAGE", 2, "the request is wrong; nothing was changed";
    InvalidCursor = "INVALID_CURSOR", 2, "the cursor is not one of this list";
    LimitExceeded = "LIMIT_EXCEEDED", 2, "more was asked for than one reply or batch may hold";
    Refused = "REFUSED", 3, "a rule forbids it; REASON names the rule";
    ApprovalRequired = "APPROVAL_REQUIRED", 3, "an operator has to approve it first";
    ClaimLost = "CLAIM_LOST", 3, "the claim expired";
    Corrupt = "CORRUPT", 4, "damaged bytes; nothing was changed";
    Busy = "BUSY", 5, "somebody else holds the lock; try again";
    NotFound = "NOT_FOUND", 6, "what the request names does not exist";
    NoVault = "NO_VAULT", 7, "there is no vault here";
    SystemError = "SYSTEM_ERROR", 111, "the system failed; nothing was recorded";
    Uncertain = "UNCERTAIN", 111, "it may or may not be recorded; repeat it with the same key";
    Interrupted = "INTERRUPTED", 1, "a message came first; read it";
}

impl Status {
    const fn entry(self) -> &'static Entry {
        &Self::TABLE[self as usize]
    }

    pub const fn as_str(self) -> &'static str {
        self.entry().name
    }

    /// The exit code that goes with it.
    pub const fn exit(self) -> u8 {
        self.entry().exit
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_stands_where_the_table_is_asked_for_it() {
        for (n, entry) in Status::TABLE.iter().enumerate() {
            assert_eq!(entry.status as usize, n);
        }
    }
}
