//! Every status of every reply, in one table: its exit code and its meaning; and the status of each error.

use crate::base::{ErrorKind, Reason};

/// A row of the status table.
#[derive(Debug)]
pub struct StatusRow {
    pub status: Status,
    pub name: &'static str,
    pub exit: u8,
    pub meaning: &'static str,
}

macro_rules! statuses {
    ($($Status:ident = $name:literal, $exit:literal, $meaning:literal;)*) => {
        /// Every status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Status { $($Status),* }

        impl Status {
            /// One row per status, in the order of the enum.
            pub const TABLE: &'static [StatusRow] =
                &[$(StatusRow { status: Status::$Status, name: $name, exit: $exit, meaning: $meaning }),*];
        }
    };
}

statuses! {
    Ok = "OK", 0, "the question is answered";
    Attention = "ATTENTION", 1, "something needs attention; each PROBLEM names the command that deals with it";
    Initialized = "INITIALIZED", 0, "a new vault was created";
    Exists = "EXISTS", 0, "the vault already exists; nothing was changed";
    Appended = "APPENDED", 0, "the events are recorded and durable";
    Duplicate = "DUPLICATE", 0, "already recorded, or already so; nothing was recorded again";
    Valid = "VALID", 0, "a dry run: the request is valid; nothing was recorded";
    Following = "FOLLOWING", 0, "events follow as they are recorded";
    Verified = "VERIFIED", 0, "every check passed";
    Different = "DIFFERENT", 1, "the file and the log differ";
    Failed = "FAILED", 1, "at least one check failed";
    Recovered = "RECOVERED", 0, "damaged bytes were moved to quarantine";
    Intact = "INTACT", 0, "there was nothing to recover";
    BackedUp = "BACKED_UP", 0, "the copy is complete and verified";
    Rebuilt = "REBUILT", 0, "the caches, or a manifest, were rebuilt from the events";
    Snapshot = "SNAPSHOT", 0, "the whole state was written to a file";
    Stale = "STALE", 0, "a projection file is not current; everything else matches the events";
    Consistent = "CONSISTENT", 0, "the caches, or a manifest, match the events";
    Recorded = "RECORDED", 0, "the event is recorded and durable";
    Claimed = "CLAIMED", 0, "the task is yours";
    Signed = "SIGNED", 0, "the statement is signed; nothing is recorded yet";
    Stored = "STORED", 0, "the content is stored";
    Stopped = "STOPPED", 0, "everything is stopped; with EXIT:3, the request is refused because of that";
    StoppedUnrecorded = "STOPPED_UNRECORDED", 0, "everything is stopped; the next command records it";
    Resumed = "RESUMED", 0, "work may continue";
    Healthy = "HEALTHY", 0, "nothing is wrong";
    Warning = "WARNING", 0, "something may become a problem; no anomaly was recorded";
    Fired = "FIRED", 0, "the job was started or queued";
    Done = "DONE", 0, "the work succeeded";
    Queued = "QUEUED", 0, "the job is waiting for its turn";
    Running = "RUNNING", 0, "the work is still in progress";
    Orphaned = "ORPHANED", 0, "the job is running without its supervisor";
    Cancelled = "CANCELLED", 0, "the job was cancelled, and none of its processes is left";
    NotEnded = "NOT_ENDED", 1, "some processes of the job could not be ended";
    Fail = "FAIL", 1, "the work failed";
    Lost = "LOST", 1, "the job died with its supervisor; its result is unknown";
    NoTask = "NO_TASK", 1, "no task is ready";
    AnomalyFound = "ANOMALY", 1, "something is wrong";
    Converged = "CONVERGED", 0, "the reviewers agree";
    RoundLimit = "ROUND_LIMIT", 3, "all rounds are used up";
    Paused = "PAUSED", 0, "the project is paused";
    Archived = "ARCHIVED", 0, "the project is archived, which is final";
    ExitRequested = "EXIT_REQUESTED", 3, "clean up, stop working and log out";
    Usage = "USAGE", 2, "the request is invalid; nothing was changed";
    InvalidCursor = "INVALID_CURSOR", 2, "the cursor does not belong to this list";
    LimitExceeded = "LIMIT_EXCEEDED", 2, "the request exceeds the limit of a reply or batch";
    Refused = "REFUSED", 3, "a rule forbids the request; REASON names the rule";
    ApprovalRequired = "APPROVAL_REQUIRED", 3, "requires approval by an operator";
    ClaimLost = "CLAIM_LOST", 3, "the claim expired";
    Corrupt = "CORRUPT", 4, "the data is damaged; nothing was changed";
    Busy = "BUSY", 5, "the lock is in use; try again";
    NotFound = "NOT_FOUND", 6, "something that the request names does not exist";
    NoVault = "NO_VAULT", 7, "no vault found";
    SystemError = "SYSTEM_ERROR", 111, "the system failed; nothing was recorded";
    Uncertain = "UNCERTAIN", 111, "the request may or may not be recorded; repeat it with the same key";
    Installed = "INSTALLED", 0, "a timer runs the watchdog of this vault; CHECK names what could not be told";
    Incomplete = "INCOMPLETE", 1, "a timer is only partly installed or removed; CHECK says what is wrong, and what helps";
    NotInstalled = "NOT_INSTALLED", 1, "no timer runs the watchdog of this vault";
    Uninstalled = "UNINSTALLED", 0, "the timer is removed, or there was none";
    Interrupted = "INTERRUPTED", 1, "a message arrived first; read it";
}

impl Status {
    const fn row(self) -> &'static StatusRow {
        &Self::TABLE[self as usize]
    }

    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The exit code of the status.
    pub const fn exit(self) -> u8 {
        self.row().exit
    }

    /// The status of an error.
    pub fn for_error(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Status::Usage,
            ErrorKind::InvalidCursor => Status::InvalidCursor,
            ErrorKind::LimitExceeded => Status::LimitExceeded,
            ErrorKind::Refused(Reason::ApprovalRequired) => Status::ApprovalRequired,
            ErrorKind::Refused(Reason::ClaimLost) => Status::ClaimLost,
            ErrorKind::Refused(Reason::SystemStopped) => Status::Stopped,
            ErrorKind::Refused(Reason::RoundLimit) => Status::RoundLimit,
            ErrorKind::Refused(_) => Status::Refused,
            ErrorKind::ExitRequested(_) => Status::ExitRequested,
            ErrorKind::Corrupt => Status::Corrupt,
            ErrorKind::Busy => Status::Busy,
            ErrorKind::NotFound | ErrorKind::NoProject => Status::NotFound,
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
    fn the_table_is_in_the_order_of_the_enum() {
        for (n, row) in Status::TABLE.iter().enumerate() {
            assert_eq!(row.status as usize, n);
        }
    }
}
