//! Every key of every reply, in one list. Keys are only ever added.

use crate::base::names;

names! {
    /// Every key of the toolkit. The first four begin every reply.
    pub enum Key {
        Exit = "EXIT",
        Status = "STATUS",
        Next = "NEXT",
        Sum = "SUM",
        Reason = "REASON",
        EventId = "EVENT_ID",
        Subject = "SUBJECT",
        Ref = "REF",
        Hash = "HASH",
        PrevHash = "PREV_HASH",
        IdempotencyKey = "KEY",
        Recorded = "RECORDED",
        Duplicates = "DUPLICATES",
        Vault = "VAULT",
        VaultId = "VAULT_ID",
        Event = "EVENT",
        Count = "COUNT",
        HasMore = "HAS_MORE",
        NextCursor = "NEXT_CURSOR",
        Chain = "CHAIN",
        Tail = "TAIL",
        Head = "HEAD",
        Anchor = "ANCHOR",
        Projections = "PROJECTIONS",
        Policy = "POLICY",
        Events = "EVENTS",
        HeadId = "HEAD_ID",
        HeadHash = "HEAD_HASH",
        Finding = "FINDING",
        Quarantined = "QUARANTINED",
        Bytes = "BYTES",
        Files = "FILES",
        Path = "PATH",
        Projection = "PROJECTION",
        Entity = "ENTITY",
        Stale = "STALE",
        Difference = "DIFFERENCE",
        Root = "ROOT",
        Node = "NODE",
        Edge = "EDGE",
        Truncated = "TRUNCATED",
        Command = "COMMAND",
        State = "STATE",
        Fact = "FACT",
        Because = "BECAUSE",
        Holder = "HOLDER",
        LeaseUntil = "LEASE_UNTIL",
        Generation = "GENERATION",
        Sha256 = "SHA256",
        SizeBytes = "SIZE_BYTES",
        SystemState = "SYSTEM_STATE",
        Tasks = "TASKS",
        PendingApprovals = "PENDING_APPROVALS",
        LastEventId = "LAST_EVENT_ID",
        LastEventAt = "LAST_EVENT_AT",
        Watchdog = "WATCHDOG",
        UptimeSeconds = "UPTIME_SECONDS",
        Problems = "PROBLEMS",
        Problem = "PROBLEM",
        Metric = "METRIC",
        Drained = "DRAINED",
        Artifacts = "ARTIFACTS",
        Anomaly = "ANOMALY",
        Did = "DID",
        HeartbeatId = "HEARTBEAT_ID",
        TickMs = "TICK_MS",
        ElapsedS = "ELAPSED_S",
        Previous = "PREVIOUS",
        Advice = "ADVICE",
        File = "FILE",
        Completed = "COMPLETED",
        IntrospectionDue = "INTROSPECTION_DUE",
        Mode = "MODE",
        Until = "UNTIL",
        DeepWork = "DEEP_WORK",
        TaskId = "TASK_ID",
        RunId = "RUN_ID",
        Logref = "LOGREF",
        Last5 = "LAST5",
        Job = "JOB",
        Left = "LEFT",
        M1Status = "M1_STATUS",
        Goal = "GOAL",
        Constraint = "CONSTRAINT",
        OpenK = "OPEN_K",
        Round = "ROUND",
        LastAction = "LAST_ACTION",
        NextAction = "NEXT_ACTION",
        Turn = "TURN",
        Converged = "CONVERGED",
        Review = "REVIEW",
        Fail = "FAIL",
        Document = "DOCUMENT",
        SessionId = "SESSION_ID",
        ExpiresAt = "EXPIRES_AT",
        Action = "ACTION",
        Project = "PROJECT",
        ResumedFromPause = "RESUMED_FROM_PAUSE",
        Instruction = "INSTRUCTION",
        Branch = "BRANCH",
        Active = "ACTIVE",
        Thread = "THREAD",
        Message = "MESSAGE",
        Unread = "UNREAD",
        Choice = "CHOICE",
        Candidate = "CANDIDATE",
        Words = "WORDS",
        LeftOut = "LEFT_OUT",
    }
}

impl Key {
    /// Keys that may stand several times; in JSON they are always a list.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Key::EventId
                | Key::Event
                | Key::Finding
                | Key::Quarantined
                | Key::Projection
                | Key::Entity
                | Key::Stale
                | Key::Difference
                | Key::Node
                | Key::Edge
                | Key::Command
                | Key::Fact
                | Key::Because
                | Key::Tasks
                | Key::Metric
                | Key::Anomaly
                | Key::Did
                | Key::Advice
                | Key::DeepWork
                | Key::Job
                | Key::Left
                | Key::Constraint
                | Key::Fail
                | Key::Document
                | Key::Project
                | Key::Branch
                | Key::Message
                | Key::Choice
                | Key::Candidate
        )
    }

    pub const fn meaning(self) -> &'static str {
        match self {
            Key::Exit => "the exit code",
            Key::Status => "what happened, one word",
            Key::Next => "the safe next step: NONE, ACTION <command>, PATCH, or ASK <who>",
            Key::Sum => "what happened, one sentence",
            Key::Reason => "which rule refused",
            Key::EventId => "an event that was recorded; what was asked for comes first",
            Key::Subject => "what the event is about; of a batch, its last event",
            Key::Ref => "the short reference of the subject",
            Key::Hash => "the hash of the event; of a batch, of its last event",
            Key::PrevHash => "the hash before it; of a batch, before its first event",
            Key::IdempotencyKey => "the idempotency key; repeating with it is safe",
            Key::Recorded => "events of a stream that are recorded",
            Key::Duplicates => "events of a stream that were recorded before",
            Key::Vault => "the vault's path",
            Key::VaultId => "the random id that the first event binds",
            Key::Event => "one event: id, time, type, subject, actor, and a short text if it has one",
            Key::Count => "how many entries this reply lists",
            Key::HasMore => "whether there is another page: yes or no",
            Key::NextCursor => "the cursor of the next page",
            Key::Chain => "every line canonical, hashed and linked: OK or BROKEN",
            Key::Tail => "behind the published head: CLEAN, UNPUBLISHED, TORN or DAMAGED",
            Key::Head => "the head record against the log: OK, BEHIND, MISSING, INVALID, AHEAD or MISMATCH",
            Key::Anchor => "expected heads: OK, FAILED, or NONE if none was given",
            Key::Projections => {
                "index, projection files and newest snapshot against the events: OK, DIFFERENT or NOT_CHECKED"
            }
            Key::Policy => "the log replayed against the rules: OK, VIOLATED or NOT_CHECKED",
            Key::Events => "how many events there are, or were checked",
            Key::HeadId => "the last event",
            Key::HeadHash => "the last event's hash",
            Key::Finding => "one thing that is wrong, and where",
            Key::Quarantined => "a file in quarantine that holds what was cut off",
            Key::Bytes => "bytes that were copied or moved",
            Key::Files => "files that were copied",
            Key::Path => "where something was put",
            Key::Projection => "a type, how many of it there are, and how many in each state",
            Key::Entity => "one entity: subject, reference, status, and a short text if it has one",
            Key::Stale => "a projection file that is not current and could not be refreshed",
            Key::Difference => "something that a cache says and the events do not",
            Key::Root => "the event that the question is about",
            Key::Node => "an event of the graph: steps from the root, id, time, type, subject, actor, short text",
            Key::Edge => "a cause and its consequence",
            Key::Truncated => "whether something was left out: yes or no",
            Key::Command => "a command and what it is for",
            Key::State => "the state that the subject is in now",
            Key::Fact => "one thing that is known of the subject: its name, then its value",
            Key::Because => "one step of the answer to why; each leads to the next",
            Key::Holder => "who holds the task",
            Key::LeaseUntil => "until when the claim holds without a heartbeat",
            Key::Generation => "how often the task was given out",
            Key::Sha256 => "the hash of the content",
            Key::SizeBytes => "the size of the content",
            Key::SystemState => "running, paused or stopped",
            Key::Tasks => "a state of tasks, and how many are in it",
            Key::PendingApprovals => "decisions that an operator has not made yet",
            Key::LastEventId => "the newest event",
            Key::LastEventAt => "its time",
            Key::Watchdog => "the watchdog's last tick, or never",
            Key::UptimeSeconds => "seconds since the vault was made or everything was resumed",
            Key::Problems => "how many things need somebody to look at them",
            Key::Problem => "the oldest of them",
            Key::Metric => "one figure: its name, its value, how it comes about, and its aim",
            Key::Drained => "whether nothing runs any more: yes or no",
            Key::Artifacts => "stored contents against their hashes: OK, CORRUPT or NOT_CHECKED",
            Key::Anomaly => "one finding: code, subject, level, seconds",
            Key::Did => "one thing that was done about it: event type and subject",
            Key::HeartbeatId => "the current heartbeat id; use it from now on",
            Key::TickMs => "how long the look took, in milliseconds",
            Key::ElapsedS => "seconds since the last activity log",
            Key::Previous => "the text of the checkpoint before",
            Key::Advice => "what to do about it",
            Key::File => "the file that was written",
            Key::Completed => "the deep work that this completed",
            Key::IntrospectionDue => "whether the next activity log has to be an introspection: yes or no",
            Key::Mode => "what kind of deep work: flexible or strict",
            Key::Until => "when it should be over",
            Key::DeepWork => "one deep work: reference, state, mode, minutes declared, minutes it took, activity",
            Key::TaskId => "the task that a job is the run of",
            Key::RunId => "the id of the run",
            Key::Logref => "where the job's output is kept, relative to Autonomous/",
            Key::Last5 => "the last lines of standard error follow, up to five; they are not ours",
            Key::Job => "one job: task, how it stands, log, and its title",
            Key::Left => "a job that is still there",
            Key::M1Status => "how the mission stands: RUNNING, PASS or FAIL",
            Key::Goal => "what the mission is about",
            Key::Constraint => "one thing that holds for the mission",
            Key::OpenK => "points that are still open, or NONE",
            Key::Round => "which round, of how many",
            Key::LastAction => "what was done last",
            Key::NextAction => "what the mission says comes next; a text, not to be run as it stands",
            Key::Turn => "the reviewer who replies next",
            Key::Converged => "whether the reviewers agree: yes or no",
            Key::Review => "the reply of a reviewer",
            Key::Fail => "something that a reviewer wants fixed, and how",
            Key::Document => "one file: its reference, whether it holds (OK, CHANGED, MISSING, UNREADABLE), its path",
            Key::SessionId => "the id of the session; set HF_SESSION to it",
            Key::ExpiresAt => "until when the session holds",
            Key::Action => "what to do: start, hold or exit",
            Key::Project => {
                "a project; in hf-status with its state, open sessions, tasks under way and tasks that are not over"
            }
            Key::ResumedFromPause => "true if the project was paused and goes on",
            Key::Instruction => "what to do first",
            Key::Branch => "one branch: reference, type, state, last activity, and its label",
            Key::Active => "the branch that the persona is at, the same way",
            Key::Thread => "the thread that the persona is in: reference and number",
            Key::Message => "one message: reference, state, time, from whom, and its text",
            Key::Unread => "how many messages were not read yet",
            Key::Choice => "what a persona can do now: REACT, RESUME, CREATE or WAIT",
            Key::Candidate => "one branch that waits: reference, type, seconds that it has waited, and its label",
            Key::Words => "how many words the document has",
            Key::LeftOut => "how many messages found no room in it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_words_in_capitals() {
        let plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        for key in Key::ALL {
            assert!(key.as_str().bytes().all(plain), "{key}");
        }
    }
}
