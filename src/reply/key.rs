//! Every key of every reply, in one table: its name in text and in JSON, its shape, its meaning.
//!
//! hf-output(7) and the JSON Schema of replies are made from this table. Keys are only ever added.

use super::value::{Column, Kind, Shape, named, plain, quiet};

const EVENT: &[Column] = &[
    plain("event_id", Kind::Name),
    plain("timestamp", Kind::Time),
    plain("event_type", Kind::Text),
    plain("subject", Kind::Name),
    plain("actor", Kind::Name),
    plain("text", Kind::Text),
    quiet("ref", Kind::Name),
];
const NODE: &[Column] = &[
    plain("distance", Kind::Number),
    plain("event_id", Kind::Name),
    plain("timestamp", Kind::Time),
    plain("event_type", Kind::Text),
    plain("subject", Kind::Name),
    plain("actor", Kind::Name),
    plain("text", Kind::Text),
];
const EDGE: &[Column] = &[plain("cause", Kind::Name), plain("consequence", Kind::Name)];
const ENTITY: &[Column] = &[
    plain("subject", Kind::Name),
    plain("ref", Kind::Name),
    plain("status", Kind::Text),
    plain("title", Kind::Text),
    quiet("holder", Kind::Name),
    quiet("project", Kind::Text),
    quiet("created_at", Kind::Time),
    quiet("until", Kind::Time),
    named("due", Kind::Text),
];
const SETTING: &[Column] = &[plain("name", Kind::Text), plain("source", Kind::Text), plain("value", Kind::Text)];
const SETTING_DIFFERS: &[Column] =
    &[plain("name", Kind::Text), named("recorded", Kind::Text), named("file", Kind::Text)];
const PROJECTION: &[Column] = &[plain("type", Kind::Text), plain("count", Kind::Number), plain("states", Kind::Counts)];
const COMMAND: &[Column] = &[plain("name", Kind::Text), plain("about", Kind::Text)];
const FACT: &[Column] = &[plain("name", Kind::Text), plain("value", Kind::Text), quiet("is", Kind::Text)];
const METRIC: &[Column] = &[
    plain("name", Kind::Text),
    plain("percent", Kind::Percent),
    named("part", Kind::Number),
    named("whole", Kind::Number),
    named("aim", Kind::Text),
    plain("means", Kind::Text),
];
const ANOMALY: &[Column] = &[
    plain("code", Kind::Text),
    plain("subject", Kind::Name),
    plain("level", Kind::Text),
    plain("seconds", Kind::Seconds),
    quiet("ref", Kind::Name),
];
const DID: &[Column] = &[plain("what", Kind::Text), plain("subject", Kind::Name)];
const DEEP_WORK: &[Column] = &[
    plain("ref", Kind::Name),
    plain("status", Kind::Text),
    plain("mode", Kind::Text),
    plain("declared_minutes", Kind::Number),
    plain("taken_minutes", Kind::Number),
    plain("activity", Kind::Text),
];
const JOB: &[Column] = &[
    plain("task", Kind::Name),
    plain("status", Kind::Text),
    plain("logref", Kind::Text),
    plain("title", Kind::Text),
    quiet("run_id", Kind::Name),
    quiet("holder", Kind::Name),
    quiet("started_at", Kind::Time),
    quiet("seconds", Kind::Seconds),
    quiet("exit_code", Kind::Number),
];
const DOCUMENT: &[Column] = &[plain("ref", Kind::Name), plain("status", Kind::Text), plain("path", Kind::Text)];
const PROJECT: &[Column] = &[
    plain("name", Kind::Text),
    plain("status", Kind::Text),
    named("sessions", Kind::Number),
    named("running", Kind::Number),
    named("open", Kind::Number),
];
const BRANCH: &[Column] = &[
    plain("ref", Kind::Name),
    plain("type", Kind::Text),
    plain("status", Kind::Text),
    plain("last_activity", Kind::Time),
    plain("label", Kind::Text),
];
const MESSAGE: &[Column] = &[
    plain("ref", Kind::Name),
    plain("status", Kind::Text),
    plain("sent_at", Kind::Time),
    plain("from", Kind::Name),
    plain("text", Kind::Text),
];
const CANDIDATE: &[Column] = &[
    plain("ref", Kind::Name),
    plain("type", Kind::Text),
    plain("waited_seconds", Kind::Seconds),
    plain("label", Kind::Text),
];
const THREAD: &[Column] = &[plain("ref", Kind::Name), plain("number", Kind::Number)];
const WATCHDOG: &[Column] = &[plain("last_tick", Kind::Time), named("age_seconds", Kind::Seconds)];
const PROBLEM: &[Column] = &[plain("since", Kind::Time), plain("what", Kind::Text)];

/// A row of the table.
#[derive(Debug)]
pub struct Entry {
    pub key: Key,
    /// The name in text.
    pub name: &'static str,
    /// The name in JSON.
    pub json: &'static str,
    pub shape: Shape,
    pub meaning: &'static str,
    /// Whether a person wants to see it; ids, hashes and cursors are for programs.
    pub for_people: bool,
}

macro_rules! keys {
    (@for_people) => { true };
    (@for_people for programs) => { false };
    ($($Key:ident = $name:literal, $json:literal, $shape:expr, $meaning:literal $(, for $who:ident)?;)*) => {
        /// Every key of the toolkit. The first four begin every reply.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Key { $($Key),* }

        /// Every key with what is known of it, in the order of the enum.
        pub const TABLE: &[Entry] =
            &[$(Entry {
                key: Key::$Key,
                name: $name,
                json: $json,
                shape: $shape,
                meaning: $meaning,
                for_people: keys!(@for_people $(for $who)?),
            }),*];
    };
}

keys! {
    Exit = "EXIT", "exit", Shape::Number, "the exit code";
    Status = "STATUS", "status", Shape::Text, "what happened, one word";
    Next = "NEXT", "next", Shape::Text, "the safe next step: NONE, ACTION <command>, PATCH, or ASK <who>";
    Sum = "SUM", "sum", Shape::Text, "what happened, one sentence";
    Reason = "REASON", "reason", Shape::Text, "which rule refused";
    EventId = "EVENT_ID", "event_ids", Shape::Texts, "an event that was recorded; what was asked for comes first", for programs;
    Subject = "SUBJECT", "subject", Shape::Text, "what the event is about; of a batch, its last event";
    Ref = "REF", "ref", Shape::Text, "the short reference of the subject";
    Hash = "HASH", "hash", Shape::Text, "the hash of the event; of a batch, of its last event", for programs;
    PrevHash = "PREV_HASH", "prev_hash", Shape::Text, "the hash before it; of a batch, before its first event", for programs;
    IdempotencyKey = "KEY", "key", Shape::Text, "the idempotency key; repeating with it is safe";
    Recorded = "RECORDED", "recorded", Shape::Number, "events of a stream that are recorded";
    Duplicates = "DUPLICATES", "duplicates", Shape::Number, "events of a stream that were recorded before";
    Vault = "VAULT", "vault", Shape::Text, "the vault's path";
    VaultId = "VAULT_ID", "vault_id", Shape::Text, "the random id that the first event binds", for programs;
    Event = "EVENT", "events", Shape::Objects(EVENT, "event"), "one event: id, time, type, subject, actor, and a short text if it has one";
    Count = "COUNT", "count", Shape::Number, "how many entries this reply lists", for programs;
    HasMore = "HAS_MORE", "has_more", Shape::Flag, "whether there is another page: yes or no", for programs;
    NextCursor = "NEXT_CURSOR", "next_cursor", Shape::Text, "the cursor of the next page", for programs;
    Chain = "CHAIN", "chain", Shape::Text, "every line canonical, hashed and linked: OK or BROKEN";
    Tail = "TAIL", "tail", Shape::Text, "behind the published head: CLEAN, UNPUBLISHED, TORN or DAMAGED";
    Head = "HEAD", "head", Shape::Text, "the head record against the log: OK, BEHIND, MISSING, INVALID, AHEAD or MISMATCH";
    Anchor = "ANCHOR", "anchor", Shape::Text, "expected heads: OK, FAILED, or NONE if none was given";
    Projections = "PROJECTIONS", "projections", Shape::Text, "index, projection files and newest snapshot against the events: OK, DIFFERENT or NOT_CHECKED";
    Policy = "POLICY", "policy", Shape::Text, "the log replayed against the rules: OK, VIOLATED or NOT_CHECKED";
    Settings = "SETTINGS", "settings_verdict", Shape::Text, "whether the settings in force are on the record: RECORDED, or UNRECORDED in a log that does not say them";
    Due = "DUE", "due", Shape::Number, "how many overdue things are not recorded yet; not a verdict";
    Setting = "SETTING", "settings", Shape::Rows(SETTING), "a setting, where it comes from, and its value";
    SettingDiffers = "SETTING_DIFFERS", "setting_differences", Shape::Rows(SETTING_DIFFERS), "a setting that the file and the log say differently";
    Events = "EVENTS", "event_count", Shape::Number, "how many events there are, or were checked";
    HeadId = "HEAD_ID", "head_id", Shape::Text, "the last event", for programs;
    HeadHash = "HEAD_HASH", "head_hash", Shape::Text, "the last event's hash", for programs;
    Finding = "FINDING", "findings", Shape::Texts, "one thing that is wrong, and where";
    Quarantined = "QUARANTINED", "quarantined", Shape::Texts, "a file in quarantine that holds what was cut off";
    Bytes = "BYTES", "bytes", Shape::Number, "bytes that were copied or moved";
    Files = "FILES", "files", Shape::Number, "files that were copied";
    Path = "PATH", "path", Shape::Text, "where something was put";
    Projection = "PROJECTION", "totals", Shape::Rows(PROJECTION), "a type, how many of it there are, and how many in each state";
    Entity = "ENTITY", "entities", Shape::Objects(ENTITY, "entity"), "one entity: subject, reference, status, and a short text if it has one";
    Stale = "STALE", "stale", Shape::Texts, "a projection file that is not current and could not be refreshed";
    Difference = "DIFFERENCE", "differences", Shape::Texts, "something that a cache says and the events do not";
    Root = "ROOT", "event_id", Shape::Text, "the event that the question is about", for programs;
    Node = "NODE", "nodes", Shape::Rows(NODE), "an event of the graph: steps from the root, id, time, type, subject, actor, short text";
    Edge = "EDGE", "edges", Shape::Rows(EDGE), "a cause and its consequence", for programs;
    Truncated = "TRUNCATED", "truncated", Shape::Flag, "whether something was left out: yes or no";
    Command = "COMMAND", "commands", Shape::Rows(COMMAND), "a command and what it is for";
    State = "STATE", "state", Shape::Text, "the state that the subject is in now";
    Fact = "FACT", "facts", Shape::Objects(FACT, "fact"), "one thing that is known of the subject: its name, then its value";
    Overdue = "OVERDUE", "overdue", Shape::Text, "why the state differs from the log: what is overdue and not recorded yet";
    Because = "BECAUSE", "because", Shape::Texts, "one step of the answer to why; each leads to the next";
    Holder = "HOLDER", "holder", Shape::Text, "who holds the task";
    LeaseUntil = "LEASE_UNTIL", "lease_until", Shape::Time, "until when the claim holds without a heartbeat";
    Generation = "GENERATION", "generation", Shape::Number, "how often the task was given out", for programs;
    Sha256 = "SHA256", "sha256", Shape::Text, "the hash of the content";
    SizeBytes = "SIZE_BYTES", "size_bytes", Shape::Number, "the size of the content";
    SystemState = "SYSTEM_STATE", "system_state", Shape::Text, "running, paused or stopped";
    Tasks = "TASKS", "tasks", Shape::Counts, "a state of tasks, and how many are in it";
    PendingApprovals = "PENDING_APPROVALS", "pending_approvals", Shape::Number, "decisions that an operator has not made yet";
    LastEventId = "LAST_EVENT_ID", "last_event_id", Shape::Text, "the newest event", for programs;
    LastEventAt = "LAST_EVENT_AT", "last_event_at", Shape::Time, "its time";
    Watchdog = "WATCHDOG", "watchdog", Shape::Row(WATCHDOG), "the watchdog's last tick, or never";
    UptimeSeconds = "UPTIME_SECONDS", "uptime_seconds", Shape::Number, "seconds since the vault was made or everything was resumed";
    Problems = "PROBLEMS", "problem_count", Shape::Number, "how many things need somebody to look at them", for programs;
    Problem = "PROBLEM", "problem", Shape::Row(PROBLEM), "the oldest of them";
    Metric = "METRIC", "metrics", Shape::Rows(METRIC), "one figure: its name, its value, how it comes about, and its aim";
    Drained = "DRAINED", "drained", Shape::Flag, "whether nothing runs any more: yes or no";
    Artifacts = "ARTIFACTS", "artifacts", Shape::Text, "stored contents against their hashes: OK, CORRUPT or NOT_CHECKED";
    Anomaly = "ANOMALY", "anomalies", Shape::Rows(ANOMALY), "one finding: code, subject, level, seconds";
    Did = "DID", "did", Shape::Rows(DID), "one thing that was done about it: event type and subject";
    HeartbeatId = "HEARTBEAT_ID", "heartbeat_id", Shape::Text, "the current heartbeat id; use it from now on";
    TickMs = "TICK_MS", "tick_ms", Shape::Number, "how long the look took, in milliseconds", for programs;
    ElapsedS = "ELAPSED_S", "elapsed_s", Shape::Number, "seconds since the last activity log";
    Previous = "PREVIOUS", "previous", Shape::Text, "the text of the checkpoint before";
    Advice = "ADVICE", "advice", Shape::Texts, "what to do about it";
    File = "FILE", "file", Shape::Text, "the file that was written";
    Completed = "COMPLETED", "completed", Shape::Text, "the deep work that this completed";
    IntrospectionDue = "INTROSPECTION_DUE", "introspection_due", Shape::Flag, "whether the next activity log has to be an introspection: yes or no";
    Mode = "MODE", "mode", Shape::Text, "what kind of deep work: flexible or strict";
    Until = "UNTIL", "until", Shape::Time, "when it should be over";
    DeepWork = "DEEP_WORK", "deep_works", Shape::Rows(DEEP_WORK), "one deep work: reference, state, mode, minutes declared, minutes it took, activity";
    TaskId = "TASK_ID", "task_id", Shape::Text, "the task that a job is the run of";
    RunId = "RUN_ID", "run_id", Shape::Text, "the id of the run", for programs;
    Logref = "LOGREF", "logref", Shape::Text, "where the job's output is kept, relative to Autonomous/";
    Last5 = "LAST5", "last5", Shape::Lines, "the last lines of standard error follow, up to five; they are not ours";
    Job = "JOB", "jobs", Shape::Rows(JOB), "one job: task, how it stands, log, and its title";
    Left = "LEFT", "left", Shape::Texts, "a job that is still there";
    M1Status = "M1_STATUS", "m1_status", Shape::Text, "how the mission stands: RUNNING, PASS or FAIL";
    Goal = "GOAL", "goal", Shape::Text, "what the mission is about";
    Constraint = "CONSTRAINT", "constraints", Shape::Texts, "one thing that holds for the mission";
    OpenK = "OPEN_K", "open_k", Shape::Text, "points that are still open, or NONE";
    Round = "ROUND", "round", Shape::Of, "which round, of how many";
    LastAction = "LAST_ACTION", "last_action", Shape::Text, "what was done last";
    NextAction = "NEXT_ACTION", "next_action", Shape::Text, "what the mission says comes next; a text, not to be run as it stands";
    Turn = "TURN", "turn", Shape::Text, "the reviewer who replies next";
    Converged = "CONVERGED", "converged", Shape::Flag, "whether the reviewers agree: yes or no";
    Review = "REVIEW", "review", Shape::Text, "the reply of a reviewer";
    Fail = "FAIL", "fails", Shape::Texts, "something that a reviewer wants fixed, and how";
    Document = "DOCUMENT", "documents", Shape::Rows(DOCUMENT), "one file: its reference, whether it holds (OK, CHANGED, MISSING, UNREADABLE), its path";
    SessionId = "SESSION_ID", "session_id", Shape::Text, "the id of the session; set HF_SESSION to it";
    ExpiresAt = "EXPIRES_AT", "expires_at", Shape::Time, "until when the session holds";
    Action = "ACTION", "action", Shape::Text, "what to do: start, hold or exit";
    Project = "PROJECT", "projects", Shape::Rows(PROJECT), "a project; in hf-status with its state, open sessions, tasks under way and tasks that are not over";
    ResumedFromPause = "RESUMED_FROM_PAUSE", "resumed_from_pause", Shape::Only, "true if the project was paused and goes on";
    Instruction = "INSTRUCTION", "instruction", Shape::Text, "what to do first";
    Branch = "BRANCH", "branches", Shape::Rows(BRANCH), "one branch: reference, type, state, last activity, and its label";
    Active = "ACTIVE", "active", Shape::Row(BRANCH), "the branch that the persona is at, the same way";
    Thread = "THREAD", "thread", Shape::Row(THREAD), "the thread that the persona is in: reference and number";
    Message = "MESSAGE", "messages", Shape::Rows(MESSAGE), "one message: reference, state, time, from whom, and its text";
    Unread = "UNREAD", "unread", Shape::Number, "how many messages were not read yet";
    Choice = "CHOICE", "choices", Shape::Texts, "what a persona can do now: REACT, RESUME, CREATE or WAIT";
    Candidate = "CANDIDATE", "candidates", Shape::Rows(CANDIDATE), "one branch that waits: reference, type, seconds that it has waited, and its label";
    Words = "WORDS", "words", Shape::Number, "how many words the document has";
    LeftOut = "LEFT_OUT", "left_out", Shape::Number, "how many messages found no room in it";
    Ancestor = "ANCESTOR", "ancestors", Shape::Texts, "an event that led to the one in question (JSON only; text has NODE)", for programs;
    Descendant = "DESCENDANT", "descendants", Shape::Texts, "an event that came of the one in question (JSON only; text has NODE)", for programs;
    Type = "TYPE", "type", Shape::Text, "which projection (JSON only)", for programs;
    Item = "ITEM", "items", Shape::Map, "the entities of a projection by id, as its file holds them (JSON only; text has ENTITY)", for programs;
}

impl Key {
    pub const fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    pub const fn as_str(self) -> &'static str {
        self.entry().name
    }

    /// The key of this exact name.
    pub fn parse(name: &str) -> Option<Key> {
        TABLE.iter().find(|entry| entry.name == name).map(|entry| entry.key)
    }

    pub const fn shape(self) -> Shape {
        self.entry().shape
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_stands_where_the_table_is_asked_for_it() {
        for (n, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.key as usize, n);
        }
    }

    #[test]
    fn keys_are_words_in_capitals_and_no_two_have_one_name() {
        let plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        let small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        for entry in TABLE {
            assert!(entry.name.bytes().all(plain) && entry.json.bytes().all(small), "{}", entry.name);
        }
        let names: BTreeSet<&str> = TABLE.iter().map(|entry| entry.name).collect();
        let json: BTreeSet<&str> = TABLE.iter().map(|entry| entry.json).collect();
        assert_eq!((names.len(), json.len()), (TABLE.len(), TABLE.len()));
    }

    #[test]
    fn no_row_repeats_a_column() {
        for entry in TABLE {
            let names: BTreeSet<&str> = entry.shape.columns().iter().map(|column| column.name).collect();
            assert_eq!(names.len(), entry.shape.columns().len(), "{}", entry.name);
        }
    }
}
