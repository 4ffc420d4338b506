//! The reply: `KEY:VALUE`, one pair a line, or the same as one JSON object.
//!
//! Invariant: a reply has exactly one line per pair, whatever the values hold
//! (`no_value_can_make_a_line`). Keys are only ever added.

use serde_json::{Map, Value, json};

use super::Next;
use crate::base::{ErrorKind, Reason, limits, names, text};

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
        }
    }
}

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
            | Status::Warning => 0,
            Status::Failed | Status::Fail | Status::Lost | Status::NoTask | Status::AnomalyFound => 1,
            Status::Usage | Status::InvalidCursor | Status::LimitExceeded => 2,
            Status::Refused | Status::ApprovalRequired | Status::ClaimLost => 3,
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
            ErrorKind::Refused(_) => Status::Refused,
            ErrorKind::Corrupt => Status::Corrupt,
            ErrorKind::Busy => Status::Busy,
            ErrorKind::NotFound => Status::NotFound,
            ErrorKind::NoVault => Status::NoVault,
            ErrorKind::System => Status::SystemError,
            ErrorKind::Uncertain { .. } => Status::Uncertain,
        }
    }
}

impl Status {
    /// The colour that a person sees it in: green for done, yellow for no, red for trouble.
    pub const fn colour(self) -> &'static str {
        match self.exit() {
            0 => "32",
            1 | 3 | 5 | 6 => "33",
            _ => "31",
        }
    }
}

fn write_line(lines: &mut String, key: Key, value: &str) {
    lines.push_str(key.as_str());
    lines.push(':');
    lines.push_str(&text::escape(value));
    lines.push('\n');
}

/// Whether a line could be read as `KEY:`.
fn reads_as_pair(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, _)| {
        key.starts_with(|c: char| c.is_ascii_uppercase())
            && key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    })
}

/// A value: a text, or a number that JSON readers get as one.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    Text(String),
    Number(u64),
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Shown::Text(text)
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Shown::Text(text.to_owned())
    }
}

impl From<u64> for Shown {
    fn from(number: u64) -> Self {
        Shown::Number(number)
    }
}

/// One reply.
#[derive(Clone, Debug)]
pub struct Report {
    pub status: Status,
    pub next: Next,
    pub sum: String,
    fields: Vec<(Key, Shown)>,
    /// Keys of lists, also of those that turned out empty: in JSON they are there.
    lists: Vec<Key>,
    /// Lines of a block, behind the fields that came before it: its key, and how many those are.
    block: Option<(Key, usize, Vec<String>)>,
    /// Another number than that of the status.
    exit: Option<u8>,
    /// Prose for standard error.
    pub warnings: Vec<String>,
}

impl Report {
    pub fn new(status: Status, sum: impl Into<String>) -> Self {
        Report {
            status,
            next: Next::None,
            sum: sum.into(),
            fields: Vec::new(),
            lists: Vec::new(),
            block: None,
            exit: None,
            warnings: Vec::new(),
        }
    }

    pub fn next(mut self, next: Next) -> Self {
        self.next = next;
        self
    }

    pub fn with(mut self, key: Key, value: impl Into<Shown>) -> Self {
        debug_assert!(key.is_list() || self.fields.iter().all(|(k, _)| *k != key), "{key} stands twice");
        self.fields.push((key, value.into()));
        self
    }

    /// The pair, if there is a value.
    pub fn with_some(self, key: Key, value: Option<impl Into<Shown>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// One pair for each value.
    pub fn with_each(mut self, key: Key, values: impl IntoIterator<Item = impl Into<Shown>>) -> Self {
        self.lists.push(key);
        for value in values {
            self = self.with(key, value);
        }
        self
    }

    /// The exit code, if it is not that of the status.
    pub fn with_exit(mut self, exit: u8) -> Self {
        self.exit = Some(exit);
        self
    }

    /// What EXIT says.
    pub fn exit(&self) -> u8 {
        self.exit.unwrap_or(self.status.exit())
    }

    /// A block of lines from elsewhere, behind what was added so far.
    pub fn with_block(mut self, key: Key, lines: Vec<String>) -> Self {
        self.block = Some((key, self.fields.len(), lines));
        self
    }

    pub fn warn(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// The reply as lines, each with its end.
    pub fn lines(&self, vault_flag: Option<&str>) -> String {
        let mut lines = String::new();
        let mut line = |key: Key, value: &str| write_line(&mut lines, key, value);
        line(Key::Exit, &self.exit().to_string());
        line(Key::Status, self.status.as_str());
        line(Key::Next, &self.next.render(vault_flag));
        line(Key::Sum, &self.sum);
        for (n, (key, value)) in self.fields.iter().enumerate() {
            self.write_block(n, &mut lines);
            match value {
                Shown::Text(value) => write_line(&mut lines, *key, value),
                Shown::Number(number) => write_line(&mut lines, *key, &number.to_string()),
            }
        }
        self.write_block(self.fields.len(), &mut lines);
        lines
    }

    /// Writes the block if this is its place. Its lines are foreign: none may be taken for a pair.
    fn write_block(&self, place: usize, lines: &mut String) {
        let Some((key, _, block)) = self.block.as_ref().filter(|(_, at, _)| *at == place) else { return };
        write_line(lines, *key, "");
        for line in block {
            let line = text::escape(&text::cut(line, limits::BLOCK_LINE_MAX_CHARS));
            if reads_as_pair(&line) {
                lines.push(' ');
            }
            lines.push_str(&line);
            lines.push('\n');
        }
    }

    /// The reply for a person's eyes: the same lines, with a colour where it tells something.
    pub fn coloured(&self, vault_flag: Option<&str>) -> String {
        let paint = |line: &str| {
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            let colour = match (Key::parse(key), value) {
                (Some(Key::Status), _) => self.status.colour(),
                (Some(Key::SystemState), "running") => "32",
                (Some(Key::SystemState), "paused") => "33",
                (Some(Key::SystemState), _) | (Some(Key::Problem), _) => "31",
                _ => return format!("{line}\n"),
            };
            format!("{key}:\x1b[{colour}m{value}\x1b[0m\n")
        };
        self.lines(vault_flag).lines().map(paint).collect()
    }

    /// The reply as one JSON object on one line.
    pub fn json(&self, vault_flag: Option<&str>) -> String {
        let mut object = Map::new();
        object.insert("schema".to_owned(), json!(1));
        object.insert(Key::Exit.to_string(), json!(self.exit()));
        if let Some((key, _, lines)) = &self.block {
            object.insert(key.to_string(), json!(lines));
        }
        object.insert(Key::Status.to_string(), json!(self.status.as_str()));
        object.insert(Key::Next.to_string(), json!(self.next.render(vault_flag)));
        object.insert(Key::Sum.to_string(), json!(self.sum));
        for key in &self.lists {
            object.insert(key.to_string(), json!([]));
        }
        for (key, value) in &self.fields {
            let value = match value {
                Shown::Text(text) => json!(text),
                Shown::Number(number) => json!(number),
            };
            if key.is_list() {
                let list = object.entry(key.as_str()).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().expect("a list key holds a list").push(value);
            } else {
                object.insert(key.to_string(), value);
            }
        }
        escape_json(&Value::Object(object).to_string()) + "\n"
    }
}

/// The same JSON with characters escaped that end or hide a line for some reader. They can stand
/// only inside strings, so replacing them keeps the document what it was.
fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if text::is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_make_a_line() {
        let everything: String = ('\0'..=char::MAX).collect();
        let report = Report::new(Status::Ok, everything.clone())
            .with(Key::Subject, everything.clone())
            .with(Key::Event, everything.clone());
        let lines = report.lines(None);
        assert_eq!(lines.split_terminator('\n').count(), 6);
        assert!(!lines.replace('\n', "").chars().any(text::is_unsafe));
        let json = report.json(None);
        assert!(!json.trim_end_matches('\n').chars().any(text::is_unsafe));
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["SUM"], json!(everything));
        assert_eq!(value["EVENT"], json!([everything]));
    }

    #[test]
    fn the_first_four_lines_are_always_the_same() {
        let report = Report::new(Status::Refused, "no").with(Key::Reason, "key_conflict");
        assert_eq!(report.lines(None), "EXIT:3\nSTATUS:REFUSED\nNEXT:NONE\nSUM:no\nREASON:key_conflict\n");
        assert_eq!(
            report.json(None),
            "{\"EXIT\":3,\"NEXT\":\"NONE\",\"REASON\":\"key_conflict\",\"STATUS\":\"REFUSED\",\"SUM\":\"no\",\"schema\":1}\n"
        );
    }

    #[test]
    fn keys_are_words_in_capitals() {
        for key in Key::ALL {
            assert!(key.as_str().bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'), "{key}");
        }
    }
}
