//! Every key of every reply, in one table: its name in text and in JSON, its shape, its meaning.
//!
//! hf-output(7) and the JSON Schema of replies are generated from this table. Keys are added, never removed or renamed.

use super::value::{CellKind, Column, Shape, hidden, named, optional, plain};

const EVENT: &[Column] = &[
    plain("event_id", CellKind::Name),
    plain("timestamp", CellKind::Time),
    plain("event_type", CellKind::Text),
    plain("subject", CellKind::Name),
    plain("actor", CellKind::Name),
    plain("text", CellKind::Text),
    hidden("ref", CellKind::Name),
];
const NODE: &[Column] = &[
    plain("distance", CellKind::Number),
    plain("event_id", CellKind::Name),
    plain("timestamp", CellKind::Time),
    plain("event_type", CellKind::Text),
    plain("subject", CellKind::Name),
    plain("actor", CellKind::Name),
    plain("text", CellKind::Text),
];
const EDGE: &[Column] = &[plain("cause", CellKind::Name), plain("consequence", CellKind::Name)];
const ENTITY: &[Column] = &[
    plain("subject", CellKind::Name),
    plain("ref", CellKind::Name),
    plain("status", CellKind::Text),
    plain("title", CellKind::Text),
    optional("holder", CellKind::Name),
    hidden("agent", CellKind::Name),
    hidden("project", CellKind::Text),
    hidden("created_at", CellKind::Time),
    hidden("expires_at", CellKind::Time),
    optional("until", CellKind::Time),
    optional("since", CellKind::Time),
    optional("waits_for", CellKind::Text),
    named("due", CellKind::Text),
];
const PLANNED: &[Column] = &[plain("task_id", CellKind::Name), plain("id", CellKind::Text)];
const OPERATOR_KEY: &[Column] =
    &[plain("fingerprint", CellKind::Text), plain("type", CellKind::Text), plain("comment", CellKind::Text)];
const SIGNED_ACT: &[Column] =
    &[plain("event_id", CellKind::Text), plain("act", CellKind::Text), plain("subject", CellKind::Text)];
const SETTING: &[Column] =
    &[plain("name", CellKind::Text), plain("source", CellKind::Text), plain("value", CellKind::Text)];
const SETTING_DIFFERS: &[Column] =
    &[plain("name", CellKind::Text), named("recorded", CellKind::Text), named("file", CellKind::Text)];
const PROJECTION: &[Column] =
    &[plain("type", CellKind::Text), plain("count", CellKind::Number), plain("states", CellKind::Counts)];
const COMMAND: &[Column] = &[plain("name", CellKind::Text), plain("about", CellKind::Text)];
const FACT: &[Column] = &[plain("name", CellKind::Text), plain("value", CellKind::Text), hidden("is", CellKind::Text)];
const COVERS: &[Column] = &[
    plain("what", CellKind::Text),
    plain("state", CellKind::Text),
    plain("content", CellKind::Text),
    plain("name", CellKind::Text),
];
const METRIC: &[Column] = &[
    plain("name", CellKind::Text),
    plain("percent", CellKind::Percent),
    named("part", CellKind::Number),
    named("whole", CellKind::Number),
    named("aim", CellKind::Text),
    plain("means", CellKind::Text),
];
const ANOMALY: &[Column] = &[
    plain("code", CellKind::Text),
    plain("subject", CellKind::Name),
    plain("level", CellKind::Text),
    plain("seconds", CellKind::Seconds),
    hidden("ref", CellKind::Name),
    plain("detail", CellKind::Text),
];
const DID: &[Column] = &[plain("what", CellKind::Text), plain("subject", CellKind::Name)];
const DEEP_WORK: &[Column] = &[
    plain("ref", CellKind::Name),
    plain("status", CellKind::Text),
    plain("mode", CellKind::Text),
    plain("declared_minutes", CellKind::Number),
    plain("taken_minutes", CellKind::Number),
    plain("activity", CellKind::Text),
];
const JOB: &[Column] = &[
    plain("task", CellKind::Name),
    plain("status", CellKind::Text),
    plain("logref", CellKind::Text),
    plain("title", CellKind::Text),
    hidden("run_id", CellKind::Name),
    hidden("holder", CellKind::Name),
    hidden("started_at", CellKind::Time),
    hidden("seconds", CellKind::Seconds),
    hidden("exit_code", CellKind::Number),
];
const DOCUMENT: &[Column] =
    &[plain("ref", CellKind::Name), plain("status", CellKind::Text), plain("path", CellKind::Text)];
const PROJECT: &[Column] = &[
    plain("name", CellKind::Text),
    plain("status", CellKind::Text),
    named("sessions", CellKind::Number),
    named("running", CellKind::Number),
    named("open", CellKind::Number),
    named("since", CellKind::Time),
    named("by", CellKind::Name),
    named("why", CellKind::Text),
];
const BRANCH: &[Column] = &[
    plain("ref", CellKind::Name),
    plain("type", CellKind::Text),
    plain("status", CellKind::Text),
    plain("last_activity", CellKind::Time),
    plain("label", CellKind::Text),
];
const MESSAGE: &[Column] = &[
    plain("ref", CellKind::Name),
    plain("status", CellKind::Text),
    plain("sent_at", CellKind::Time),
    plain("from", CellKind::Name),
    plain("text", CellKind::Text),
];
const CANDIDATE: &[Column] = &[
    plain("ref", CellKind::Name),
    plain("type", CellKind::Text),
    plain("waited_seconds", CellKind::Seconds),
    plain("label", CellKind::Text),
    named("state", CellKind::Text),
];
const CHANGE: &[Column] = &[
    plain("kind", CellKind::Text),
    plain("subject", CellKind::Name),
    plain("at", CellKind::Time),
    plain("by", CellKind::Name),
    plain("title", CellKind::Text),
];
const THREAD: &[Column] = &[plain("ref", CellKind::Name), plain("number", CellKind::Number)];
const WATCHDOG: &[Column] = &[plain("last_tick", CellKind::Time), named("age_seconds", CellKind::Seconds)];
const PROBLEM: &[Column] = &[
    plain("since", CellKind::Time),
    named("age", CellKind::Seconds),
    plain("kind", CellKind::Text),
    plain("subject", CellKind::Name),
    plain("what", CellKind::Text),
    named("do", CellKind::Text),
];
const AGENT: &[Column] = &[
    plain("name", CellKind::Name),
    plain("health", CellKind::Text),
    plain("last_sign", CellKind::Time),
    plain("sign", CellKind::Text),
    named("age", CellKind::Seconds),
    named("holds", CellKind::Text),
    named("deep_work", CellKind::Text),
    named("in", CellKind::Text),
];
const INTERRUPTED: &[Column] = &[
    plain("cause", CellKind::Name),
    plain("by", CellKind::Name),
    plain("branch", CellKind::Name),
    plain("label", CellKind::Text),
];
const STANDING: &[Column] = &[
    plain("state", CellKind::Text),
    plain("since", CellKind::Time),
    named("project", CellKind::Name),
    named("by", CellKind::Name),
    plain("why", CellKind::Text),
    named("leave_by", CellKind::Time),
];

const STEP: &[Column] =
    &[plain("number", CellKind::Number), named("of", CellKind::Number), plain("text", CellKind::Text)];
const NOTE: &[Column] = &[plain("at", CellKind::Time), plain("by", CellKind::Name), plain("text", CellKind::Text)];
const PAUSED: &[Column] = &[
    plain("since", CellKind::Time),
    named("until", CellKind::Time),
    named("by", CellKind::Name),
    plain("why", CellKind::Text),
];
const TIMER: &[Column] =
    &[plain("scheduler", CellKind::Text), named("at", CellKind::Text), named("entry", CellKind::Text)];
const CHECK: &[Column] = &[
    plain("check", CellKind::Text),
    plain("result", CellKind::Text),
    plain("what", CellKind::Text),
    named("do", CellKind::Text),
];
const ACT: &[Column] = &[plain("act", CellKind::Text), plain("subject", CellKind::Name)];

/// A row of the key table.
#[derive(Debug)]
pub struct KeyRow {
    pub key: Key,
    /// The name in text.
    pub name: &'static str,
    /// The name in JSON.
    pub json: &'static str,
    pub shape: Shape,
    pub meaning: &'static str,
    /// Whether tables for people show it; ids, hashes and cursors are for programs.
    pub for_people: bool,
}

macro_rules! keys {
    (@for_people) => { true };
    (@for_people for programs) => { false };
    ($($Key:ident = $name:literal, $json:literal, $shape:expr, $meaning:literal $(, for $who:ident)?;)*) => {
        /// Every key. The first four start every reply.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Key { $($Key),* }

        /// One row per key, in the order of the enum.
        pub const TABLE: &[KeyRow] =
            &[$(KeyRow {
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
    Status = "STATUS", "status", Shape::Text, "what happened, in one word";
    Next = "NEXT", "next", Shape::Text, "the safe next step: NONE, ACTION <command>, PATCH, or ASK <who>";
    Sum = "SUM", "sum", Shape::Text, "what happened, in one sentence";
    Reason = "REASON", "reason", Shape::Text, "the rule that refused the request";
    EventId = "EVENT_ID", "event_ids", Shape::Texts, "a recorded event; the requested one comes first", for programs;
    Subject = "SUBJECT", "subject", Shape::Text, "what the event is about; for a batch, its last event";
    Ref = "REF", "ref", Shape::Text, "the short reference of the subject";
    Hash = "HASH", "hash", Shape::Text, "the hash of the event; for a batch, of its last event", for programs;
    PrevHash = "PREV_HASH", "prev_hash", Shape::Text, "the hash of the event before it; for a batch, before its first event", for programs;
    IdempotencyKey = "KEY", "key", Shape::Text, "the idempotency key; repeating the request with it is safe";
    Recorded = "RECORDED", "recorded", Shape::Number, "how many events of a stream were recorded";
    Duplicates = "DUPLICATES", "duplicates", Shape::Number, "how many events of a stream had been recorded before";
    Hive = "HIVE", "hive", Shape::Text, "the name of the hive, hive.name in the settings";
    Vault = "VAULT", "vault", Shape::Text, "the vault's path";
    VaultId = "VAULT_ID", "vault_id", Shape::Text, "the vault's random id, recorded in its first event", for programs;
    Event = "EVENT", "events", Shape::Objects(EVENT, "event"), "an event: id, time, type, subject, actor, and a short text if it has one";
    Count = "COUNT", "count", Shape::Number, "how many entries this reply lists", for programs;
    HasMore = "HAS_MORE", "has_more", Shape::Flag, "whether there is another page: yes or no", for programs;
    NextCursor = "NEXT_CURSOR", "next_cursor", Shape::Text, "the cursor of the next page", for programs;
    Chain = "CHAIN", "chain", Shape::Text, "whether every line is canonical, hashed and linked: OK or BROKEN";
    Tail = "TAIL", "tail", Shape::Text, "the log after the published head: CLEAN, UNPUBLISHED, REFUSED (its events break the rules), TORN or DAMAGED";
    Head = "HEAD", "head", Shape::Text, "the published head compared with the log: OK, BEHIND, MISSING, INVALID, AHEAD or MISMATCH";
    Behind = "BEHIND", "behind", Shape::Number, "how many valid events come after the published head";
    Anchor = "ANCHOR", "anchor", Shape::Text, "head anchors compared with the log: OK, FAILED, or NONE if none was given";
    Projections = "PROJECTIONS", "projections", Shape::Text, "index, projection files and newest snapshot compared with the events: OK, STALE (a file is not current, which is no failure), BROKEN (a file cannot be read), DIFFERENT or NOT_CHECKED";
    Policy = "POLICY", "policy", Shape::Text, "the log replayed against the rules: OK, VIOLATED or NOT_CHECKED";
    Signatures = "SIGNATURES", "signatures", Shape::Text, "operators' signatures: OK (every act of an operator is signed by a key in --operator-keys), UNPINNED (signed by keys of the log; nothing from outside says whose), MISSING, BAD, NONE (the log has no operator keys) or NOT_CHECKED";
    SignedThrough = "SIGNED_THROUGH", "signed_through", Shape::Text, "the newest event that an operator saw when signing, as ID:HASH: signatures vouch for the log up to it";
    Settings = "SETTINGS", "settings_verdict", Shape::Text, "whether the settings in force are recorded in the log: RECORDED, ADOPTED (by an operator) or UNRECORDED";
    Regime = "REGIME", "regime", Shape::Text, "who can change the rules, in one sentence";
    Due = "DUE", "due", Shape::Number, "how many overdue items are not recorded yet; not a failure";
    Setting = "SETTING", "settings", Shape::Rows(SETTING), "a setting, where it comes from (default, file, recorded or adopted), and its value";
    SettingDiffers = "SETTING_DIFFERS", "setting_differences", Shape::Rows(SETTING_DIFFERS), "a setting whose value in the file differs from the log; of set and adopt, one that was changed";
    Events = "EVENTS", "event_count", Shape::Number, "how many events there are, or how many were checked";
    HeadId = "HEAD_ID", "head_id", Shape::Text, "the last event", for programs;
    HeadHash = "HEAD_HASH", "head_hash", Shape::Text, "the last event's hash", for programs;
    Finding = "FINDING", "findings", Shape::Texts, "a problem and where it is";
    Quarantined = "QUARANTINED", "quarantined", Shape::Texts, "a file in Akashic/quarantine/: bytes that were cut off the log";
    CutAt = "CUT_AT", "cut_at", Shape::Text, "where a recovery cuts the log: the segment, and the byte in it";
    Kept = "KEPT", "kept", Shape::Number, "how many intact events after the damage are kept in quarantine";
    Missing = "MISSING", "missing", Shape::Number, "how many events are missing from the log, in quarantine or not; absent if that cannot be known";
    FirstMissing = "FIRST_MISSING", "first_missing", Shape::Text, "the first event that is missing; absent if its id cannot be known", for programs;
    LastMissing = "LAST_MISSING", "last_missing", Shape::Text, "the last event that is missing; absent if its id cannot be known", for programs;
    ExpectedHead = "EXPECTED_HEAD", "expected_head", Shape::Text, "the last event that chain.json names, and its hash", for programs;
    Bytes = "BYTES", "bytes", Shape::Number, "how many bytes were copied or moved";
    Files = "FILES", "files", Shape::Number, "how many files were copied";
    Path = "PATH", "path", Shape::Text, "the path of the file or directory";
    Projection = "PROJECTION", "totals", Shape::Rows(PROJECTION), "an entity type, how many there are, and how many in each state";
    Entity = "ENTITY", "entities", Shape::Objects(ENTITY, "entity"), "an entity: subject, reference, status, and a short text if it has one; hf-task list adds the holder and the end of its lease, or since when the task is in this state, and what it waits for";
    Stale = "STALE", "stale", Shape::Texts, "a projection file that is not current; a check says through which event it is";
    Difference = "DIFFERENCE", "differences", Shape::Texts, "a difference between a cache and the events";
    Root = "ROOT", "event_id", Shape::Text, "the event whose lineage is shown", for programs;
    Node = "NODE", "nodes", Shape::Rows(NODE), "an event of the graph: steps from the root, id, time, type, subject, actor, short text";
    Edge = "EDGE", "edges", Shape::Rows(EDGE), "a cause and its consequence", for programs;
    Truncated = "TRUNCATED", "truncated", Shape::Flag, "whether events were left out: yes or no";
    Command = "COMMAND", "commands", Shape::Rows(COMMAND), "a command and what it is for";
    State = "STATE", "state", Shape::Text, "the current state of the subject";
    Fact = "FACT", "facts", Shape::Objects(FACT, "fact"), "a fact about the subject: name and value";
    Covers = "COVERS", "covers", Shape::Rows(COVERS), "something that an approval of a command covers: what it is; SAME or CHANGED as of now, NOT_BOUND if only its size and time are covered, UNKNOWN if it cannot be read; its content; its name";
    NotCovered = "NOT_COVERED", "not_covered", Shape::Text, "what an approval of a command never covers";
    Overdue = "OVERDUE", "overdue", Shape::Text, "what is overdue but not recorded yet; the state shown already includes it";
    Because = "BECAUSE", "because", Shape::Texts, "a step of the explanation; each leads to the next";
    Holder = "HOLDER", "holder", Shape::Text, "the holder of the task";
    LeaseUntil = "LEASE_UNTIL", "lease_until", Shape::Time, "when the claim expires without a heartbeat";
    Generation = "GENERATION", "generation", Shape::Number, "how many times the task has been assigned", for programs;
    Sha256 = "SHA256", "sha256", Shape::Text, "the hash of the content";
    SizeBytes = "SIZE_BYTES", "size_bytes", Shape::Number, "the size of the content in bytes";
    SystemState = "SYSTEM_STATE", "system_state", Shape::Text, "running, paused or stopped";
    Tasks = "TASKS", "tasks", Shape::Counts, "a task state, and how many tasks are in it";
    PendingApprovals = "PENDING_APPROVALS", "pending_approvals", Shape::Number, "how many decisions wait for an operator";
    LastEventId = "LAST_EVENT_ID", "last_event_id", Shape::Text, "the newest event", for programs;
    LastEventAt = "LAST_EVENT_AT", "last_event_at", Shape::Time, "the time of the newest event";
    Watchdog = "WATCHDOG", "watchdog", Shape::Row(WATCHDOG), "the watchdog's last tick, or never";
    UptimeSeconds = "UPTIME_SECONDS", "uptime_seconds", Shape::Number, "seconds since the vault was created or last resumed";
    Problems = "PROBLEMS", "problem_count", Shape::Number, "how many problems need attention", for programs;
    Problem = "PROBLEM", "problems", Shape::Rows(PROBLEM), "a problem, most urgent first: since when, seconds since then, its kind, what it is about, what is wrong, and the command that deals with it";
    Metric = "METRIC", "metrics", Shape::Rows(METRIC), "a metric: name, value, how it is computed, and its target";
    Drained = "DRAINED", "drained", Shape::Flag, "whether no work is in progress any more: yes or no";
    Artifacts = "ARTIFACTS", "artifacts", Shape::Text, "stored contents and manifests compared with the log: OK, CORRUPT (a content), MANIFEST (only manifests; hf-artifact repair restores them) or NOT_CHECKED";
    Anomaly = "ANOMALY", "anomalies", Shape::Rows(ANOMALY), "a finding: code, subject, level, seconds, and which file or hook it is about and why";
    Did = "DID", "did", Shape::Rows(DID), "an action taken: event type and subject; for hf-deepwork migrate, the old and the new name";
    HeartbeatId = "HEARTBEAT_ID", "heartbeat_id", Shape::Text, "the current heartbeat id; use it from now on";
    TickMs = "TICK_MS", "tick_ms", Shape::Number, "how long the tick took, in milliseconds", for programs;
    ElapsedS = "ELAPSED_S", "elapsed_s", Shape::Number, "seconds since the last activity log";
    Previous = "PREVIOUS", "previous", Shape::Text, "the text of the previous checkpoint";
    Advice = "ADVICE", "advice", Shape::Texts, "what to do about a finding";
    File = "FILE", "file", Shape::Text, "the file that was written";
    Completed = "COMPLETED", "completed", Shape::Text, "the deep work that this activity log completed";
    IntrospectionDue = "INTROSPECTION_DUE", "introspection_due", Shape::Flag, "whether the next activity log must be an introspection: yes or no";
    Mode = "MODE", "mode", Shape::Text, "the mode of the deep work: flexible or strict";
    Until = "UNTIL", "until", Shape::Time, "when the deep work should end";
    DeepWork = "DEEP_WORK", "deep_works", Shape::Rows(DEEP_WORK), "a deep work: reference, state, mode, minutes declared, minutes taken, activity";
    TaskId = "TASK_ID", "task_id", Shape::Text, "the task of the job";
    RunId = "RUN_ID", "run_id", Shape::Text, "the id of the run", for programs;
    Logref = "LOGREF", "logref", Shape::Text, "the file with the job's output, relative to Autonomous/";
    Last5 = "LAST5", "last5", Shape::Lines, "up to five last lines of the command's standard error follow, or of its standard output if standard error has none";
    Job = "JOB", "jobs", Shape::Rows(JOB), "a job: task, status, log, and title";
    Left = "LEFT", "left", Shape::Texts, "a session, job or process that has not ended yet";
    Planned = "PLANNED", "planned", Shape::Rows(PLANNED), "a task of the plan: its reference, and its id in the plan";
    M1Status = "M1_STATUS", "m1_status", Shape::Text, "the status of the mission: RUNNING, PASS or FAIL";
    Goal = "GOAL", "goal", Shape::Text, "the goal of the mission";
    Constraint = "CONSTRAINT", "constraints", Shape::Texts, "a constraint on the work or the mission";
    OpenK = "OPEN_K", "open_k", Shape::Text, "points still open, or NONE";
    Round = "ROUND", "round", Shape::NumberOf, "the current round, and how many there are at most";
    LastAction = "LAST_ACTION", "last_action", Shape::Text, "what was done last";
    NextAction = "NEXT_ACTION", "next_action", Shape::Text, "what the mission file says comes next; free text, do not run it as a command";
    Turn = "TURN", "turn", Shape::Text, "the reviewer whose turn it is";
    Converged = "CONVERGED", "converged", Shape::Flag, "whether the reviewers agree: yes or no";
    Review = "REVIEW", "review", Shape::Text, "the id of a reviewer's reply";
    Fail = "FAIL", "fails", Shape::Texts, "a FAIL line of a reviewer: what to fix, and how";
    StillOpen = "STILL_OPEN", "still_open", Shape::Texts, "a FAIL of an earlier reply that is not closed: the reply, why (unchanged: the document is the same; unknown: it is not known to have changed), and its line";
    Document = "DOCUMENT", "documents", Shape::Rows(DOCUMENT), "a document: reference, whether its file is unchanged (OK, CHANGED, MISSING, UNREADABLE), path";
    SessionId = "SESSION_ID", "session_id", Shape::Text, "the id of the session; set HF_SESSION to it";
    ExpiresAt = "EXPIRES_AT", "expires_at", Shape::Time, "when the session expires";
    Action = "ACTION", "action", Shape::Text, "what to do: start, hold or exit";
    Project = "PROJECT", "projects", Shape::Rows(PROJECT), "a project; in hf-status with its state, open sessions, tasks in progress, open tasks, and if it is paused or archived since when, by whom and why";
    ResumedFromPause = "RESUMED_FROM_PAUSE", "resumed_from_pause", Shape::TrueOnly, "true if the project was resumed from a pause since you were last told";
    Instruction = "INSTRUCTION", "instruction", Shape::Text, "what to do first";
    Branch = "BRANCH", "branches", Shape::Rows(BRANCH), "a branch: reference, type, state, last activity, and label";
    Active = "ACTIVE", "active", Shape::Row(BRANCH), "the persona's active branch, with the same columns";
    Thread = "THREAD", "thread", Shape::Row(THREAD), "the persona's current thread: reference and number";
    Message = "MESSAGE", "messages", Shape::Rows(MESSAGE), "a message: reference, state, time, sender, and text";
    Unread = "UNREAD", "unread", Shape::Number, "how many messages are unread";
    Choice = "CHOICE", "choices", Shape::Texts, "what a persona can do now: REACT, RESUME, CREATE or WAIT";
    Candidate = "CANDIDATE", "candidates", Shape::Rows(CANDIDATE), "a suspended branch: reference, type, seconds since it was suspended, label, and how it stands";
    Change = "CHANGE", "changes", Shape::Rows(CHANGE), "something to react to that is no message: the kind of event, what it is about, time, who did it, and a title; of an act on a branch, what it has reacted to";
    Words = "WORDS", "words", Shape::Number, "how many words the context has";
    LeftOut = "LEFT_OUT", "left_out", Shape::Number, "how many notes, messages, lines, summaries, other branches and pages of knowledge were left out of the context";
    Ancestor = "ANCESTOR", "ancestors", Shape::Texts, "an event that led to the root (JSON only; text has NODE)", for programs;
    Descendant = "DESCENDANT", "descendants", Shape::Texts, "an event that followed from the root (JSON only; text has NODE)", for programs;
    Type = "TYPE", "type", Shape::Text, "the name of the projection (JSON only)", for programs;
    Standing = "STANDING", "standing", Shape::Row(STANDING), "while no work goes on: stopped, paused or archived, since when, by whom and why; for an agent, of a pause, also when its session ends at the latest";
    Interrupted = "INTERRUPTED", "interruptions", Shape::Rows(INTERRUPTED), "something took the agent away from its branch, or a message of the user waits: the message or task, whose it is, the branch, and its label; ADVICE says how to summarize it";
    Agent = "AGENT", "agents", Shape::Rows(AGENT), "an agent: name, HEALTHY or the codes of its anomalies, its last sign of life, what that was, seconds since then, what it holds, its deep work, and the projects that it is logged in to";
    Notice = "NOTICE", "notices", Shape::Texts, "a remark that is not a problem";
    Constraints = "CONSTRAINTS", "constraint_count", Shape::Number, "how many constraints apply; hf-constraint list shows them";
    Statement = "STATEMENT", "statement", Shape::Text, "the digest of the statement that an operator signs";
    Act = "ACT", "acts", Shape::Rows(ACT), "an act in the statement: its name and its subject";
    SignedBy = "SIGNED_BY", "signed_by", Shape::Text, "the fingerprint of the operator key that signed";
    Strength = "STRENGTH", "strength", Shape::Text, "what the signature proves: key, touch or touch_and_pin";
    OperatorKey = "OPERATOR_KEY", "operator_keys", Shape::Rows(OPERATOR_KEY), "an operator key of the vault: its fingerprint, its type and its comment";
    SignedAct = "SIGNED_ACT", "signed_acts", Shape::Rows(SIGNED_ACT), "what a compromised key has signed: the event, the act and its subject";
    Timer = "TIMER", "timers", Shape::Rows(TIMER), "a timer that runs this vault's watchdog: cron or systemd, where its entry is, and the entry";
    Check = "CHECK", "checks", Shape::Rows(CHECK), "a check of the timer: what is checked; ok, failed, or unknown if it cannot be told; the details; and the command that helps";
    Description = "DESCRIPTION", "description", Shape::Text, "what the task is about";
    Step = "STEP", "step", Shape::Row(STEP), "the step of the task to work on: its number, how many there are, and what to do";
    Handoff = "HANDOFF", "handoff", Shape::Row(NOTE), "the operator's note for the task's holder: when, by whom, and the text";
    Note = "NOTE", "notes", Shape::Rows(NOTE), "a note that was left with the task, the latest last: when, by whom, and the text";
    Notes = "NOTES", "note_count", Shape::Number, "how many notes the task has, if not all are shown; hf-branch recall --all --grep finds the others";
    Paused = "PAUSED", "paused", Shape::Row(PAUSED), "the pause that is over: since when and until when it lasted, by whom and why";
    Comment = "COMMENT", "comment", Shape::Text, "what the operator said when the work was resumed";
    Changed = "CHANGED", "changed", Shape::Texts, "what others changed about your tasks since you were last there: the task, the event, by whom and why; the latest five";
    Item = "ITEM", "items", Shape::Map, "the entities of a projection by id, as in its file (JSON only; text has ENTITY)", for programs;
}

impl Key {
    pub const fn row(self) -> &'static KeyRow {
        &TABLE[self as usize]
    }

    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The key with exactly this name.
    pub fn parse(name: &str) -> Option<Key> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.key)
    }

    pub const fn shape(self) -> Shape {
        self.row().shape
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
    fn the_table_is_in_the_order_of_the_enum() {
        for (n, row) in TABLE.iter().enumerate() {
            assert_eq!(row.key as usize, n);
        }
    }

    #[test]
    fn key_names_are_well_formed_and_unique() {
        let plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        let small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        for row in TABLE {
            assert!(row.name.bytes().all(plain) && row.json.bytes().all(small), "{}", row.name);
        }
        let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
        let json: BTreeSet<&str> = TABLE.iter().map(|row| row.json).collect();
        assert_eq!((names.len(), json.len()), (TABLE.len(), TABLE.len()));
    }

    #[test]
    fn no_row_repeats_a_column() {
        for row in TABLE {
            let names: BTreeSet<&str> = row.shape.columns().iter().map(|column| column.name).collect();
            assert_eq!(names.len(), row.shape.columns().len(), "{}", row.name);
        }
    }
}
