//! The closed list of event kinds: the subject, payload and properties of each.
//!
//! To add a kind, add a row here, its transitions to `machine`, its facts to `state::facts` and its consequences to
//! `policy::react`. Everything that rules need to know about a kind is a column of its row; `event::row` has the columns
//! and their defaults. Events of unknown types, from a newer version, stay in the log byte for byte and are verified,
//! but do not change the state.

use serde_json::{Map, Value};

pub use super::row::{
    Cause, Claim, Ending, KindRow, LinkRule, LinkedEntity, Opens, RecordedBy, SideEffect, SpeaksFor, Starts,
    WhenLeaving,
};
use super::row::{reserved, row};
use crate::base::{Actor, EntityId, EntityType, Error, Result, Subject, Timestamp, names, text};

names! {
    pub enum Kind {
        VaultInitialized = "VaultInitialized",
        TailQuarantined = "TailQuarantined",
        TailAdopted = "TailAdopted",
        VaultRecovered = "VaultRecovered",
        SettingsChanged = "SettingsChanged",
        SettingsAdopted = "SettingsAdopted",
        OperatorKeyAdded = "OperatorKeyAdded",
        OperatorKeyRemoved = "OperatorKeyRemoved",
        MachineSuspended = "MachineSuspended",
        MachineBooted = "MachineBooted",
        ClockStepped = "ClockStepped",
        EmergencyStopIssued = "EmergencyStopIssued",
        SystemResumed = "SystemResumed",
        EscalationRequired = "EscalationRequired",
        EscalationAcknowledged = "EscalationAcknowledged",
        EscalationClosed = "EscalationClosed",
        HookFailed = "HookFailed",
        HookRecovered = "HookRecovered",
        AnomalyDetected = "AnomalyDetected",
        AnomalyCleared = "AnomalyCleared",
        AgentStarted = "AgentStarted",
        AgentStopped = "AgentStopped",
        ActivityLogged = "ActivityLogged",
        CheckpointRecorded = "CheckpointRecorded",
        AgentWaited = "AgentWaited",
        RecoveryAttempted = "RecoveryAttempted",
        DeepWorkStarted = "DeepWorkStarted",
        DeepWorkExtended = "DeepWorkExtended",
        DeepWorkCompleted = "DeepWorkCompleted",
        DeepWorkExpired = "DeepWorkExpired",
        RequirementProposed = "RequirementProposed",
        RequirementAnalyzed = "RequirementAnalyzed",
        RequirementApproved = "RequirementApproved",
        RequirementRejected = "RequirementRejected",
        RequirementImplemented = "RequirementImplemented",
        RequirementVerified = "RequirementVerified",
        RequirementSuperseded = "RequirementSuperseded",
        OscillationDetected = "OscillationDetected",
        DecisionRequested = "DecisionRequested",
        DecisionApproved = "DecisionApproved",
        DecisionRejected = "DecisionRejected",
        DecisionSuperseded = "DecisionSuperseded",
        ApprovalTimedOut = "ApprovalTimedOut",
        TaskProposed = "TaskProposed",
        TaskReady = "TaskReady",
        TaskBlocked = "TaskBlocked",
        TaskAssigned = "TaskAssigned",
        TaskEdited = "TaskEdited",
        TaskNoted = "TaskNoted",
        StepMarked = "StepMarked",
        CommandChanged = "CommandChanged",
        ClaimRenewed = "ClaimRenewed",
        ClaimExpired = "ClaimExpired",
        TaskSucceeded = "TaskSucceeded",
        TaskFailed = "TaskFailed",
        TaskRetrying = "TaskRetrying",
        TaskAborted = "TaskAborted",
        TaskArchived = "TaskArchived",
        RunStarted = "RunStarted",
        Heartbeat = "Heartbeat",
        RunFinished = "RunFinished",
        RunCrashed = "RunCrashed",
        RunTimedOut = "RunTimedOut",
        ArtifactDeclared = "ArtifactDeclared",
        ArtifactMaterialized = "ArtifactMaterialized",
        ArtifactValidated = "ArtifactValidated",
        ArtifactInvalidated = "ArtifactInvalidated",
        ArtifactCorrupted = "ArtifactCorrupted",
        ConstraintApplied = "ConstraintApplied",
        ConstraintRemoved = "ConstraintRemoved",
        MissionStarted = "MissionStarted",
        MissionChanged = "MissionChanged",
        MissionRoundBegun = "MissionRoundBegun",
        MissionRoundsAdded = "MissionRoundsAdded",
        MissionPlanned = "MissionPlanned",
        MissionFailureReported = "MissionFailureReported",
        MissionPassed = "MissionPassed",
        MissionFailed = "MissionFailed",
        DebateOpened = "DebateOpened",
        ReviewRecorded = "ReviewRecorded",
        DebateConverged = "DebateConverged",
        DebateExhausted = "DebateExhausted",
        DebateClosed = "DebateClosed",
        DocumentAdded = "DocumentAdded",
        DocumentChanged = "DocumentChanged",
        ProjectOpened = "ProjectOpened",
        ProjectPaused = "ProjectPaused",
        PauseDrained = "PauseDrained",
        ProjectResumed = "ProjectResumed",
        ProjectArchived = "ProjectArchived",
        SessionStarted = "SessionStarted",
        SessionRenewed = "SessionRenewed",
        SessionCut = "SessionCut",
        SessionEnded = "SessionEnded",
        SessionExpired = "SessionExpired",
        BranchCreated = "BranchCreated",
        BranchCompleted = "BranchCompleted",
        ThreadOpened = "ThreadOpened",
        NoteRecorded = "NoteRecorded",
        ThreadCompleted = "ThreadCompleted",
        ThreadAborted = "ThreadAborted",
        ThreadSummarized = "ThreadSummarized",
        MessageSent = "MessageSent",
        MessageRead = "MessageRead",
        KnowledgeRecorded = "KnowledgeRecorded",
    }
}

/// What the subject of an event must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectType {
    /// An entity of this type.
    One(EntityType),
    /// Any existing entity.
    Any,
}

/// The type of a payload member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A non-empty string.
    Text,
    /// Any string.
    AnyText,
    /// A non-negative integer.
    Count,
    Bool,
    /// The id of an entity of this type.
    Id(EntityType),
    /// `TYPE:ID`.
    Subject,
    /// `user:NAME`, `agent:NAME`, …
    Actor,
    OneOf(&'static [&'static str]),
    /// A list of strings.
    Texts,
    /// A list of ids of entities of this type.
    Ids(EntityType),
    /// A JSON object.
    Object,
    /// A JSON object of non-negative integers.
    Counts,
    /// `YYYY-MM-DDTHH:MM:SSZ`.
    Time,
}

/// A member of a payload. Members that are not listed are allowed and kept unchanged.
#[derive(Clone, Copy, Debug)]
pub struct PayloadField {
    pub name: &'static str,
    pub field_type: FieldType,
    pub required: bool,
    /// Who fills it in. Default: the author of the event.
    pub filled_by: FilledBy,
    /// Whether two requests that lead to the same phase are different requests if they differ in this. Default: no.
    pub distinguishes: bool,
}

/// Who fills in a payload member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilledBy {
    /// The author of the event.
    Author,
    /// The author, or the policy if the author does not.
    Policy,
    /// The operator's signature.
    Signature,
    /// Only `hf-job fire`. It binds a task to a command: anyone who could set it directly could show an operator one
    /// command and run another, or take a job away from its supervisor.
    Jobs,
    /// The same, after it has read everything that an approval binds. Repeating a request does not read it again.
    Binding,
}

impl FilledBy {
    /// Whether only `hf-job fire` fills it in.
    pub const fn is_of_jobs(self) -> bool {
        matches!(self, FilledBy::Jobs | FilledBy::Binding)
    }
}

const fn required(name: &'static str, field_type: FieldType) -> PayloadField {
    PayloadField { name, field_type, required: true, filled_by: FilledBy::Author, distinguishes: false }
}

const fn optional(name: &'static str, field_type: FieldType) -> PayloadField {
    PayloadField { required: false, ..required(name, field_type) }
}

impl PayloadField {
    const fn filled_by(self, filled_by: FilledBy) -> PayloadField {
        PayloadField { filled_by, ..self }
    }

    const fn distinguishes(self) -> PayloadField {
        PayloadField { distinguishes: true, ..self }
    }
}

const SYSTEM: SubjectType = SubjectType::One(EntityType::System);
const REQUIREMENT: SubjectType = SubjectType::One(EntityType::Requirement);
const DECISION: SubjectType = SubjectType::One(EntityType::Decision);
const TASK: SubjectType = SubjectType::One(EntityType::Task);
const RUN: SubjectType = SubjectType::One(EntityType::Run);
const ARTIFACT: SubjectType = SubjectType::One(EntityType::Artifact);
const CONSTRAINT: SubjectType = SubjectType::One(EntityType::Constraint);
const AGENT: SubjectType = SubjectType::One(EntityType::Agent);
const DEEPWORK: SubjectType = SubjectType::One(EntityType::DeepWork);
const MISSION: SubjectType = SubjectType::One(EntityType::Mission);
const DEBATE: SubjectType = SubjectType::One(EntityType::Debate);
const REVIEW: SubjectType = SubjectType::One(EntityType::Review);
const DOCUMENT: SubjectType = SubjectType::One(EntityType::Document);
const PROJECT: SubjectType = SubjectType::One(EntityType::Project);
const SESSION: SubjectType = SubjectType::One(EntityType::Session);
const BRANCH: SubjectType = SubjectType::One(EntityType::Branch);
const THREAD: SubjectType = SubjectType::One(EntityType::Thread);
const MESSAGE: SubjectType = SubjectType::One(EntityType::Message);
const KNOWLEDGE: SubjectType = SubjectType::One(EntityType::Knowledge);
const ESCALATION: SubjectType = SubjectType::One(EntityType::Escalation);

/// The key that signed an operator's act, in a vault with operator keys: its fingerprint.
pub const SIGNED_BY: &str = "signed_by";
/// The statement that it signed.
pub const STATEMENT: &str = "statement";
/// The signature.
pub const SIGNATURE: &str = "signature";
/// Which act of the statement an event is, if there are several; counted from 1.
pub const ACT: &str = "act";
/// The operators' keys of a new vault, and the key that an event adds or removes.
pub const OPERATOR_KEYS: &str = "operator_keys";
pub const OPERATOR_KEY: &str = "key";
/// Whether a key was removed because somebody else may have it.
pub const COMPROMISED: &str = "compromised";

const fn signed(name: &'static str, field_type: FieldType) -> PayloadField {
    optional(name, field_type).filled_by(FilledBy::Signature)
}

const BY_KEY: PayloadField = signed(SIGNED_BY, FieldType::Text);
const STATED: PayloadField = signed(STATEMENT, FieldType::Text);
const SIGNED: PayloadField = signed(SIGNATURE, FieldType::Text);
const ACT_NO: PayloadField = signed(ACT, FieldType::Count);

const fn of_jobs(name: &'static str, field_type: FieldType) -> PayloadField {
    optional(name, field_type).filled_by(FilledBy::Jobs)
}

// The command of a job; see `policy::command`.
const COMMAND: PayloadField = of_jobs("command", FieldType::Texts);
const CWD: PayloadField = of_jobs("cwd", FieldType::Text);
const COMMAND_BYTES: PayloadField = of_jobs("command_bytes", FieldType::Texts);
const COMMAND_HASH: PayloadField = of_jobs("command_hash", FieldType::Text);
const BOUND: PayloadField = optional("bound", FieldType::Object).filled_by(FilledBy::Binding);
const BOUND_DIGEST: PayloadField = optional("bound_digest", FieldType::Text).filled_by(FilledBy::Binding);

/// When the time ran out, in events that say so.
const DUE_AT: PayloadField = optional("due_at", FieldType::Time);

// Signs of life in files. The name of the file, relative to the agent's directory or tree; when it happened according to
// the id in its name; and, with the first file that counts, the time up to which files do not count.
const FILE: PayloadField = optional("file", FieldType::Text);
const AT: PayloadField = optional("at", FieldType::Time);
const SINCE: PayloadField = optional("since", FieldType::Time);

pub const DECISION_KINDS: &[&str] = &["requirement_approval", "destructive_operation", "constraint_change"];
pub const DEEPWORK_MODES: &[&str] = &["flexible", "strict"];
/// What ends deep work before the watchdog does: an activity log, the agent's command, another declaration, the agent
/// renaming or deleting its file, its renaming the file as expired, or an activity log that was there before the
/// declaration was found.
pub const DEEPWORK_ENDS: &[&str] = &["log", "word", "declaration", "file", "expired_file", "earlier_log"];
pub const ERROR_CLASSES: &[&str] = &["transient", "permanent"];
/// How urgent a task is, most urgent first.
pub const TASK_PRIORITIES: &[&str] = &["urgent", "high", "normal", "low"];
/// What a step of a task can be marked as.
pub const STEP_MARKS: &[&str] = &["open", "done", "skipped"];

// What a task says about itself, and an edit changes.
const DESCRIPTION: PayloadField = optional("description", FieldType::AnyText);
const STEPS: PayloadField = optional("steps", FieldType::Texts);
const PRIORITY: PayloadField = optional("priority", FieldType::OneOf(TASK_PRIORITIES));
const AFTER: PayloadField = optional("after", FieldType::Ids(EntityType::Task));
/// What a file with a short reference can be.
pub const DOCUMENT_KINDS: &[&str] = &["design", "plan", "patch", "report"];
/// The content of a mission's state file, except for what the toolkit maintains.
const MISSION_FIELDS: &[PayloadField] = &[
    required("goal", FieldType::Text),
    optional("constraints", FieldType::Texts),
    optional("requirement_id", FieldType::Id(EntityType::Requirement)),
    optional("task_id", FieldType::Id(EntityType::Task)),
    optional("logref", FieldType::Text),
    optional("open_k", FieldType::Text),
    optional("last_action", FieldType::Text),
    optional("next_action", FieldType::Text),
    // A change of other lines: this one goes on following the jobs.
    optional("keeps_last_action", FieldType::Bool),
    optional("keeps_next_action", FieldType::Bool),
];
/// The steps of a round that `hf-state go` takes: the work itself, repairing what failed, and a task of the plan.
pub const MISSION_STEPS: &[&str] = &["run", "fix", "plan"];
const MISSION_STEP: PayloadField = of_jobs("mission_step", FieldType::OneOf(MISSION_STEPS));
/// The mission that a job belongs to. If its author does not say, the policy does.
const OF_MISSION: PayloadField = optional("of_mission", FieldType::Id(EntityType::Mission)).filled_by(FilledBy::Policy);
/// What ends a session in time: a logout, a new session that replaces it, or the archiving of its project.
pub const SESSION_ENDS: &[&str] = &["logout", "replaced", "archived"];
pub const ARTIFACT_KINDS: &[&str] = &["code", "text", "binary", "prompt", "response"];

/// What a branch is for; the `user` branch is the root.
pub const BRANCH_TYPES: &[&str] = &["user", "task", "social", "free"];

/// The table, in the order of `Kind`.
#[rustfmt::skip]
pub const TABLE: &[KindRow] = &[
    reserved(Kind::VaultInitialized, &[required("vault_id", FieldType::Text), required("schema_version", FieldType::Count), optional("settings", FieldType::Object), optional(OPERATOR_KEYS, FieldType::Texts), BY_KEY, STATED, SIGNED], "the vault was created; binds its random id")
        .side_effect(SideEffect::AdoptsSettings),
    reserved(Kind::TailQuarantined, &[required("segment", FieldType::Text), required("offset", FieldType::Count), required("bytes", FieldType::Count), required("file", FieldType::Text), optional("adopted", FieldType::Count)], "an unfinished write was moved to quarantine; adopted: how many unpublished events before it were not"),
    reserved(Kind::TailAdopted, &[required("after", FieldType::Text), required("events", FieldType::Count)], "events that were written but not published, after this one, belong to the log"),
    reserved(Kind::VaultRecovered, &[optional("expected_head", FieldType::Text), optional("found_head", FieldType::Text), optional("first_missing", FieldType::Text), optional("last_missing", FieldType::Text), optional("missing", FieldType::Count), optional("kept", FieldType::Count), BY_KEY, STATED, SIGNED, ACT_NO], "an operator cut off a damaged end of the log")
        .by(RecordedBy::Operator),
    reserved(Kind::SettingsChanged, &[required("settings", FieldType::Object), optional("changed", FieldType::Object), optional("noticed_by", FieldType::Actor)], "the settings file changed: these settings apply from here on; changed: the old and new value of each; noticed_by: whose command found the change")
        .side_effect(SideEffect::AdoptsSettings),
    reserved(Kind::SettingsAdopted, &[required("settings", FieldType::Object), optional("changed", FieldType::Object), BY_KEY, STATED, SIGNED, ACT_NO], "an operator put these settings in force; from here on only adopted settings apply")
        .by(RecordedBy::Operator).side_effect(SideEffect::AdoptsSettings),
    reserved(Kind::OperatorKeyAdded, &[required(OPERATOR_KEY, FieldType::Text), optional("settings", FieldType::Object), BY_KEY, STATED, SIGNED, ACT_NO], "an operator added this key; the first key of a vault also adopts the settings in force")
        .by(RecordedBy::Operator).side_effect(SideEffect::AdoptsSettings),
    reserved(Kind::OperatorKeyRemoved, &[required(OPERATOR_KEY, FieldType::Text), optional(COMPROMISED, FieldType::Bool), BY_KEY, STATED, SIGNED, ACT_NO], "an operator removed this key; compromised: somebody else may have it")
        .by(RecordedBy::Operator),
    reserved(Kind::MachineSuspended, &[required("from", FieldType::Time), required("to", FieldType::Time), required("seconds", FieldType::Count)], "the machine was suspended for this many seconds"),
    reserved(Kind::MachineBooted, &[required("at", FieldType::Time)], "the machine was booted, or the vault is on another machine"),
    reserved(Kind::ClockStepped, &[required("from", FieldType::Time), required("to", FieldType::Time)], "the clock was set: from the time it should have shown to the time it shows"),
    row(Kind::EmergencyStopIssued, SYSTEM, &[required("reason", FieldType::Text), optional("raised_at", FieldType::Time)], "all work stops")
        .leaving(WhenLeaving::Void).cause(Cause::Outside),
    row(Kind::SystemResumed, SYSTEM, &[BY_KEY, STATED, SIGNED, ACT_NO], "work may start again")
        .by(RecordedBy::Operator).wakes_jobs(),
    row(Kind::EscalationRequired, SubjectType::Any, &[optional("reason", FieldType::Text), optional("code", FieldType::Text)], "escalated to an operator; opens an escalation with the id of this event")
        .ending(Ending::End).leaving(WhenLeaving::Paused).also_changes(&[EntityType::Escalation]).side_effect(SideEffect::OpensEscalation),
    row(Kind::EscalationAcknowledged, ESCALATION, &[required("reason", FieldType::Text)], "an operator took note of it, with a reason")
        .by(RecordedBy::Operator),
    row(Kind::EscalationClosed, ESCALATION, &[required("reason", FieldType::Text)], "what it was about is resolved")
        .by(RecordedBy::Reactor).ending(Ending::Consequence),
    row(Kind::HookFailed, SubjectType::Any, &[required("hook", FieldType::Text), required("reason", FieldType::Text)], "a hook began to fail")
        .ending(Ending::End).leaving(WhenLeaving::Paused).side_effect(SideEffect::MarksHook),
    row(Kind::HookRecovered, SubjectType::Any, &[required("hook", FieldType::Text)], "a hook that failed works again")
        .by(RecordedBy::NotAgents).ending(Ending::End).side_effect(SideEffect::MarksHook),
    row(Kind::AnomalyDetected, SubjectType::Any, &[required("code", FieldType::Text), optional("seconds", FieldType::Count), optional("detail", FieldType::Text), DUE_AT], "the watchdog found an anomaly")
        .by(RecordedBy::NotAgents).ending(Ending::End),
    row(Kind::AnomalyCleared, SubjectType::Any, &[required("code", FieldType::Text)], "the anomaly is gone")
        .by(RecordedBy::NotAgents).ending(Ending::End),
    row(Kind::AgentStarted, AGENT, &[optional("announced", FieldType::Bool), AT], "an agent started; announced: it was recorded automatically, with the first command or file of the agent")
        .leaving(WhenLeaving::Paused).tells_presence(),
    row(Kind::AgentStopped, AGENT, &[optional("reason", FieldType::Text)], "an agent stopped; no sign of life is expected")
        .by(RecordedBy::NotAgents).speaks_for(SpeaksFor::Subject).leaving(WhenLeaving::Paused).tells_presence(),
    row(Kind::ActivityLogged, AGENT, &[required("heartbeat_id", FieldType::Text), required("kind", FieldType::Text), optional("title", FieldType::Text), FILE, AT, SINCE, optional("emergency", FieldType::Text)], "an agent wrote an activity log")
        .speaks_for(SpeaksFor::Subject).leaving(WhenLeaving::Paused),
    row(Kind::CheckpointRecorded, AGENT, &[required("heartbeat_id", FieldType::Text), required("text", FieldType::Text), FILE, AT, SINCE], "an agent says what it is doing")
        .speaks_for(SpeaksFor::Subject).leaving(WhenLeaving::Paused),
    row(Kind::AgentWaited, AGENT, &[optional("jobs", FieldType::Ids(EntityType::Task))], "an agent waits for jobs; without jobs, for one of another system")
        .speaks_for(SpeaksFor::Subject).leaving(WhenLeaving::Paused).frequent(),
    row(Kind::RecoveryAttempted, AGENT, &[required("code", FieldType::Text), required("attempt", FieldType::Count)], "an attempt was made to wake an agent")
        .by(RecordedBy::NotAgents),
    row(Kind::DeepWorkStarted, DEEPWORK, &[required("agent_id", FieldType::Id(EntityType::Agent)), required("heartbeat_id", FieldType::Text), required("mode", FieldType::OneOf(DEEPWORK_MODES)), required("activity", FieldType::Text), optional("minutes", FieldType::Count), FILE, AT, SINCE], "an agent declared deep work")
        .speaks_for(SpeaksFor::Linked).moves(EntityType::Agent, "agent_id", LinkRule::MustBeActive),
    row(Kind::DeepWorkExtended, DEEPWORK, &[required("agent_id", FieldType::Id(EntityType::Agent)), required("minutes", FieldType::Count)], "the deep work takes longer than declared")
        .speaks_for(SpeaksFor::Linked).moves(EntityType::Agent, "agent_id", LinkRule::MustBeActive),
    row(Kind::DeepWorkCompleted, DEEPWORK, &[required("agent_id", FieldType::Id(EntityType::Agent)), optional("by", FieldType::OneOf(DEEPWORK_ENDS)), AT], "the deep work ended")
        .speaks_for(SpeaksFor::Linked).leaving(WhenLeaving::Paused)
        .moves(EntityType::Agent, "agent_id", LinkRule::MustBeActive),
    row(Kind::DeepWorkExpired, DEEPWORK, &[required("agent_id", FieldType::Id(EntityType::Agent)), DUE_AT], "the deep work did not end in time")
        .by(RecordedBy::NotAgents).speaks_for(SpeaksFor::Linked).moves(EntityType::Agent, "agent_id", LinkRule::MustBeActive),
    row(Kind::RequirementProposed, REQUIREMENT, &[required("title", FieldType::Text), optional("description", FieldType::Text), optional("project_id", FieldType::Id(EntityType::Project))], "a requirement was proposed")
        .opens(Opens::Named("project_id")).cause(Cause::Outside),
    row(Kind::RequirementAnalyzed, REQUIREMENT, &[optional("analysis", FieldType::Text)], "its analysis was recorded"),
    row(Kind::RequirementApproved, REQUIREMENT, &[optional("decision_id", FieldType::Id(EntityType::Decision))], "it may be implemented")
        .wakes_jobs(),
    row(Kind::RequirementRejected, REQUIREMENT, &[optional("reason", FieldType::Text), BY_KEY, STATED, SIGNED, ACT_NO], "it will not be implemented")
        .by(RecordedBy::Operator).ending(Ending::Consequence),
    row(Kind::RequirementImplemented, REQUIREMENT, &[], "none of its tasks is open or was aborted for good, and at least one succeeded")
        .by(RecordedBy::Reactor).ending(Ending::Consequence),
    row(Kind::RequirementVerified, REQUIREMENT, &[BY_KEY, STATED, SIGNED, ACT_NO], "it was checked and is met")
        .by(RecordedBy::Operator),
    row(Kind::RequirementSuperseded, REQUIREMENT, &[optional("by", FieldType::Id(EntityType::Requirement)), BY_KEY, STATED, SIGNED, ACT_NO], "another requirement replaced it")
        .by(RecordedBy::Operator),
    row(Kind::OscillationDetected, REQUIREMENT, &[optional("count", FieldType::Count)], "it went back and forth between approved and implemented too often")
        .by(RecordedBy::NotAgents).depends_on_settings().wakes_jobs(),
    row(Kind::DecisionRequested, DECISION, &[required("kind", FieldType::OneOf(DECISION_KINDS)), required("target", FieldType::Subject), required("summary", FieldType::Text), optional("options", FieldType::Texts), optional("change", FieldType::Object), optional("target_hash", FieldType::Text).filled_by(FilledBy::Policy)], "an operator is asked to decide"),
    row(Kind::DecisionApproved, DECISION, &[optional("chosen_option", FieldType::Text).distinguishes(), optional("rationale", FieldType::Text), optional("target_hash", FieldType::Text).filled_by(FilledBy::Policy), BY_KEY, STATED, SIGNED, ACT_NO], "the answer is yes")
        .by(RecordedBy::Operator),
    row(Kind::DecisionRejected, DECISION, &[optional("rationale", FieldType::Text), BY_KEY, STATED, SIGNED, ACT_NO], "the answer is no")
        .by(RecordedBy::Operator).ending(Ending::Consequence).depends_on_settings(),
    row(Kind::DecisionSuperseded, DECISION, &[optional("by", FieldType::Id(EntityType::Decision))], "another decision replaced it")
        .by(RecordedBy::NotAgents).ending(Ending::Consequence),
    row(Kind::ApprovalTimedOut, DECISION, &[DUE_AT], "nobody answered in time")
        .by(RecordedBy::NotAgents).ending(Ending::Consequence),
    row(Kind::TaskProposed, TASK, &[required("title", FieldType::Text), DESCRIPTION, STEPS, PRIORITY, optional("requirement_id", FieldType::Id(EntityType::Requirement)), optional("project_id", FieldType::Id(EntityType::Project)), AFTER, optional("destructive", FieldType::Bool), optional("command", FieldType::Texts), CWD, COMMAND_BYTES, COMMAND_HASH, BOUND, BOUND_DIGEST, optional("job", FieldType::Bool).filled_by(FilledBy::Jobs), OF_MISSION, MISSION_STEP, optional("planned", FieldType::Object), optional("max_retries", FieldType::Count), optional("rework_of", FieldType::Id(EntityType::Task)), optional("reason", FieldType::Text)], "a task was proposed; of_mission: the mission that it is work of; planned: its id in the plan, and what it runs")
        .opens(Opens::Named("project_id")).moves(EntityType::Requirement, "requirement_id", LinkRule::IfLegal)
        .cause(Cause::Named(EntityType::Requirement, "requirement_id")).side_effect(SideEffect::Reworks)
        .also_changes(&[EntityType::Mission]),
    row(Kind::TaskReady, TASK, &[], "nothing blocks it")
        .ending(Ending::Consequence).wakes_jobs(),
    row(Kind::TaskBlocked, TASK, &[required("reason", FieldType::Text)], "after an edit something blocks it again, so it waits")
        .by(RecordedBy::Reactor).ending(Ending::Consequence),
    row(Kind::TaskAssigned, TASK, &[optional("holder", FieldType::Actor).distinguishes(), optional("reason", FieldType::Text), optional("handoff", FieldType::Text), optional("lease_seconds", FieldType::Count), optional("constraint_id", FieldType::Id(EntityType::Constraint)).filled_by(FilledBy::Policy), optional("job", FieldType::Bool).filled_by(FilledBy::Jobs), of_jobs("max_retries", FieldType::Count), OF_MISSION, MISSION_STEP, COMMAND, CWD, COMMAND_BYTES, COMMAND_HASH], "it was claimed or assigned; reason: why an operator took it from its holder; handoff: a note for the new holder; constraint_id: the constraint that put it first; command: what a job for it runs")
        .claim(Claim::Makes).starts(Starts::Claim).also_changes(&[EntityType::Mission]),
    row(Kind::TaskEdited, TASK, &[optional("title", FieldType::Text), DESCRIPTION, STEPS, PRIORITY, AFTER, required("reason", FieldType::Text)], "what it says, what it waits for, or how urgent it is was changed, by an operator or, before it was assigned, by the agent that proposed it")
        .by(RecordedBy::OperatorOrProposer),
    row(Kind::TaskNoted, TASK, &[required("text", FieldType::Text)], "a note for those who work on it next")
        .claim(Claim::NeedsIfAgent).leaving(WhenLeaving::Paused),
    row(Kind::StepMarked, TASK, &[required("step", FieldType::Count), required("mark", FieldType::OneOf(STEP_MARKS)), optional("reason", FieldType::Text)], "its holder marked one of its steps; step: its number, from 1; reason: why it was skipped")
        .claim(Claim::Needs).leaving(WhenLeaving::Paused),
    row(Kind::CommandChanged, TASK, &[COMMAND, CWD, COMMAND_BYTES, COMMAND_HASH, BOUND, BOUND_DIGEST, required("reason", FieldType::Text)], "what an approval of its command covers has changed since, so approval is requested again")
        .claim(Claim::Needs),
    row(Kind::ClaimRenewed, TASK, &[], "its holder renewed the lease")
        .claim(Claim::Needs).leaving(WhenLeaving::Paused),
    row(Kind::ClaimExpired, TASK, &[DUE_AT], "its lease expired")
        .claim(Claim::NeedsIfAgent).ending(Ending::Consequence).wakes_jobs(),
    row(Kind::TaskSucceeded, TASK, &[optional("skipped", FieldType::Text)], "it is done; skipped: why its open steps were not needed")
        .also_changes(&[EntityType::Requirement]).claim(Claim::Needs).ending(Ending::End).wakes_jobs(),
    row(Kind::TaskFailed, TASK, &[required("error_class", FieldType::OneOf(ERROR_CLASSES)), required("reason", FieldType::Text), optional("escalate", FieldType::Bool), optional("released", FieldType::Bool)], "it failed")
        .claim(Claim::Needs).ending(Ending::End),
    row(Kind::TaskRetrying, TASK, &[optional("released", FieldType::Bool)], "it will be retried")
        .starts(Starts::Retry),
    row(Kind::TaskAborted, TASK, &[optional("reason", FieldType::Text)], "it was aborted")
        .also_changes(&[EntityType::Requirement]).claim(Claim::NeedsIfAgent).ending(Ending::End).wakes_jobs(),
    row(Kind::TaskArchived, TASK, &[DUE_AT], "it was removed from the projections")
        .also_changes(&[EntityType::Run, EntityType::Branch]).by(RecordedBy::NotAgents).ending(Ending::End),
    row(Kind::RunStarted, RUN, &[required("task_id", FieldType::Id(EntityType::Task)), optional("timeout_seconds", FieldType::Count), COMMAND, CWD, COMMAND_BYTES, COMMAND_HASH, BOUND_DIGEST], "an attempt at a task started; command: what it runs, if it is a job")
        .side_effect(SideEffect::TakesLease).claim(Claim::Needs).starts(Starts::Run).moves(EntityType::Task, "task_id", LinkRule::MustBeLegal)
        .cause(Cause::Named(EntityType::Task, "task_id")),
    row(Kind::Heartbeat, RUN, &[], "the run is alive")
        .side_effect(SideEffect::NotesProgress).frequent().claim(Claim::Needs).ending(Ending::End).leaving(WhenLeaving::Paused),
    row(Kind::RunFinished, RUN, &[optional("success", FieldType::Bool).distinguishes(), optional("exit_code", FieldType::Count), optional("summary", FieldType::Text), optional("prompt_artifact_id", FieldType::Id(EntityType::Artifact)), optional("response_artifact_id", FieldType::Id(EntityType::Artifact)), optional("token_usage", FieldType::Counts)], "the run ended")
        .claim(Claim::Needs).ending(Ending::End),
    row(Kind::RunCrashed, RUN, &[optional("reason", FieldType::Text), optional("transient", FieldType::Bool), optional("escalate", FieldType::Bool)], "the run crashed")
        .claim(Claim::Needs).ending(Ending::End),
    row(Kind::RunTimedOut, RUN, &[optional("reason", FieldType::Text), DUE_AT], "the run timed out")
        .claim(Claim::Needs).ending(Ending::End),
    row(Kind::ArtifactDeclared, ARTIFACT, &[required("kind", FieldType::OneOf(ARTIFACT_KINDS)), optional("filename", FieldType::Text), optional("task_id", FieldType::Id(EntityType::Task))], "an artifact will be made")
        .leaving(WhenLeaving::Paused).cause(Cause::Named(EntityType::Task, "task_id")),
    row(Kind::ArtifactMaterialized, ARTIFACT, &[required("sha256", FieldType::Text), required("size_bytes", FieldType::Count), optional("path", FieldType::Text), optional("mime_type", FieldType::Text), optional("language", FieldType::Text), optional("line_count", FieldType::Count)], "its content was stored")
        .leaving(WhenLeaving::Paused),
    row(Kind::ArtifactValidated, ARTIFACT, &[], "its content was checked and is good"),
    row(Kind::ArtifactInvalidated, ARTIFACT, &[optional("reason", FieldType::Text)], "its content was checked and is bad"),
    row(Kind::ArtifactCorrupted, ARTIFACT, &[optional("found_sha256", FieldType::Text)], "its content differs from what was stored")
        .ending(Ending::End).leaving(WhenLeaving::Paused),
    row(Kind::ConstraintApplied, CONSTRAINT, &[optional("text", FieldType::Text), optional("priority", FieldType::Subject), optional("decision_id", FieldType::Id(EntityType::Decision))], "a constraint applies"),
    row(Kind::ConstraintRemoved, CONSTRAINT, &[optional("decision_id", FieldType::Id(EntityType::Decision))], "a constraint no longer applies"),
    row(Kind::MissionStarted, MISSION, MISSION_FIELDS, "a mission started")
        .cause(Cause::Named(EntityType::Requirement, "requirement_id")),
    row(Kind::MissionChanged, MISSION, MISSION_FIELDS, "its whole state, rewritten"),
    row(Kind::MissionRoundBegun, MISSION, &[required("round", FieldType::Count)], "its next round started; round: of its requirement, or of the mission if it has none")
        .also_changes(&[EntityType::Requirement]),
    row(Kind::MissionRoundsAdded, MISSION, &[required("rounds", FieldType::Count), optional("reason", FieldType::Text)], "an operator allowed more rounds; one that had failed continues")
        .by(RecordedBy::Operator).also_changes(&[EntityType::Requirement]),
    row(Kind::MissionPlanned, MISSION, &[required("tasks", FieldType::Ids(EntityType::Task)), optional("digest", FieldType::Text)], "it consists of these tasks, in this order"),
    row(Kind::MissionFailureReported, MISSION, &[required("task_id", FieldType::Id(EntityType::Task))], "hf-state go reported the failure of this job, so the next call starts the next round"),
    row(Kind::MissionPassed, MISSION, &[optional("last_action", FieldType::Text)], "it succeeded"),
    row(Kind::MissionFailed, MISSION, &[optional("last_action", FieldType::Text)], "it was given up"),
    row(Kind::DebateOpened, DEBATE, &[required("reviewers", FieldType::Texts), optional("mission_id", FieldType::Id(EntityType::Mission))], "reviewers take turns from here on")
        .cause(Cause::Named(EntityType::Mission, "mission_id")),
    row(Kind::ReviewRecorded, REVIEW, &[required("debate_id", FieldType::Id(EntityType::Debate)), required("reviewer", FieldType::Text), required("text", FieldType::Text), required("fails", FieldType::Texts), optional("document_sha256", FieldType::Text), optional("document", FieldType::Text)], "a reviewer replied; document: path or reference of what the reply is about, document_sha256: its content")
        .moves(EntityType::Debate, "debate_id", LinkRule::IfLegal).cause(Cause::Named(EntityType::Debate, "debate_id")),
    row(Kind::DebateConverged, DEBATE, &[], "every reviewer replied, and no FAIL is open"),
    row(Kind::DebateExhausted, DEBATE, &[], "all rounds were used, and there is still something to fix"),
    row(Kind::DebateClosed, DEBATE, &[], "it was closed because its mission ended, or another mission or debate was started")
        .by(RecordedBy::NotAgents),
    row(Kind::DocumentAdded, DOCUMENT, &[required("kind", FieldType::OneOf(DOCUMENT_KINDS)), required("path", FieldType::Text), required("sha256", FieldType::Text), optional("size_bytes", FieldType::Count)], "a file got a short reference"),
    row(Kind::DocumentChanged, DOCUMENT, &[required("sha256", FieldType::Text), optional("size_bytes", FieldType::Count)], "the content of its file changed"),
    row(Kind::ProjectOpened, PROJECT, &[], "something belongs to it for the first time"),
    row(Kind::ProjectPaused, PROJECT, &[required("reason", FieldType::Text), required("grace_seconds", FieldType::Count)], "nothing starts in it, and its agents are asked to leave")
        .by(RecordedBy::Operator).opens(Opens::Main),
    row(Kind::PauseDrained, PROJECT, &[], "its last session and its last job have ended")
        .by(RecordedBy::NotAgents),
    row(Kind::ProjectResumed, PROJECT, &[optional("comment", FieldType::Text), BY_KEY, STATED, SIGNED, ACT_NO], "its work continues")
        .by(RecordedBy::Operator).wakes_jobs(),
    row(Kind::ProjectArchived, PROJECT, &[optional("reason", FieldType::Text), BY_KEY, STATED, SIGNED, ACT_NO], "it is read-only from here on")
        .by(RecordedBy::Operator).opens(Opens::Main),
    row(Kind::SessionStarted, SESSION, &[required("agent_id", FieldType::Id(EntityType::Agent)), required("ttl_seconds", FieldType::Count), optional("project_id", FieldType::Id(EntityType::Project))], "an agent logged in")
        .speaks_for(SpeaksFor::Owner("agent_id")).starts(Starts::Session).opens(Opens::Named("project_id")),
    row(Kind::SessionRenewed, SESSION, &[required("ttl_seconds", FieldType::Count)], "the session was renewed")
        .speaks_for(SpeaksFor::Owner("agent_id")).starts(Starts::Session),
    row(Kind::SessionCut, SESSION, &[required("seconds", FieldType::Count)], "the session was shortened to this many seconds")
        .by(RecordedBy::NotAgents).ending(Ending::End),
    row(Kind::SessionEnded, SESSION, &[required("reason", FieldType::OneOf(SESSION_ENDS)), optional("summary", FieldType::Text)], "the session ended; summary: what its agent left for the next one")
        .speaks_for(SpeaksFor::Owner("agent_id")).ending(Ending::End).leaving(WhenLeaving::Archived),
    row(Kind::SessionExpired, SESSION, &[DUE_AT], "the session reached its limit")
        .by(RecordedBy::NotAgents).ending(Ending::End),
    row(Kind::BranchCreated, BRANCH, &[required("persona_id", FieldType::Id(EntityType::Agent)), required("branch_type", FieldType::OneOf(BRANCH_TYPES)), required("label", FieldType::Text), optional("task_id", FieldType::Id(EntityType::Task)), optional("partner_persona_id", FieldType::Id(EntityType::Agent))], "an agent has a new line of activity")
        .cause(Cause::Named(EntityType::Task, "task_id")).side_effect(SideEffect::CountsPersona),
    row(Kind::BranchCompleted, BRANCH, &[], "a line of activity ended for good")
        .also_changes(&[EntityType::Thread]).side_effect(SideEffect::ArchivesThread),
    row(Kind::ThreadOpened, THREAD, &[required("branch_id", FieldType::Id(EntityType::Branch)), optional("anchor_id", FieldType::Id(EntityType::Thread)).filled_by(FilledBy::Policy)], "an agent works on a branch from here on")
        .moves(EntityType::Branch, "branch_id", LinkRule::IfLegal).cause(Cause::Named(EntityType::Branch, "branch_id"))
        .side_effect(SideEffect::OpensThread),
    row(Kind::NoteRecorded, THREAD, &[required("branch_id", FieldType::Id(EntityType::Branch)), required("text", FieldType::Text), optional("artifact_id", FieldType::Id(EntityType::Artifact))], "something was said or done in a thread")
        .leaving(WhenLeaving::Paused).moves(EntityType::Branch, "branch_id", LinkRule::IfLegal).side_effect(SideEffect::NotesWhereabouts),
    row(Kind::ThreadCompleted, THREAD, &[required("branch_id", FieldType::Id(EntityType::Branch)), required("summary", FieldType::Text), optional("summary_artifact_id", FieldType::Id(EntityType::Artifact)), optional("tail", FieldType::Text), optional("tail_artifact_id", FieldType::Id(EntityType::Artifact))], "an agent left a branch with a summary")
        .leaving(WhenLeaving::Paused).moves(EntityType::Branch, "branch_id", LinkRule::IfLegal).side_effect(SideEffect::ClosesThread),
    row(Kind::ThreadAborted, THREAD, &[required("branch_id", FieldType::Id(EntityType::Branch)), optional("reason", FieldType::Text), optional("message_id", FieldType::Id(EntityType::Message)), optional("tail", FieldType::Text), optional("tail_artifact_id", FieldType::Id(EntityType::Artifact))], "an agent left a branch without a summary")
        .leaving(WhenLeaving::Paused).moves(EntityType::Branch, "branch_id", LinkRule::IfLegal).side_effect(SideEffect::ClosesThread),
    row(Kind::ThreadSummarized, THREAD, &[required("branch_id", FieldType::Id(EntityType::Branch)), required("summary", FieldType::Text), optional("summary_artifact_id", FieldType::Id(EntityType::Artifact)), optional("tail", FieldType::Text), optional("tail_artifact_id", FieldType::Id(EntityType::Artifact))], "an agent summarized a thread that had been aborted")
        .leaving(WhenLeaving::Paused).also_changes(&[EntityType::Branch]).moves(EntityType::Branch, "branch_id", LinkRule::IfLegal).side_effect(SideEffect::SummarizesThread),
    row(Kind::MessageSent, MESSAGE, &[required("to", FieldType::Id(EntityType::Agent)), required("text", FieldType::Text), optional("artifact_id", FieldType::Id(EntityType::Artifact))], "a message was sent to an agent")
        // An agent's root branch has the agent's name.
        .also_changes(&[EntityType::Thread]).leaving(WhenLeaving::Paused).moves(EntityType::Branch, "to", LinkRule::IfLegal)
        .side_effect(SideEffect::DeliversMessage),
    row(Kind::MessageRead, MESSAGE, &[required("to", FieldType::Id(EntityType::Agent))], "the agent read it")
        .leaving(WhenLeaving::Paused).moves(EntityType::Branch, "to", LinkRule::IfLegal)
        .side_effect(SideEffect::ArchivesMessage),
    row(Kind::KnowledgeRecorded, KNOWLEDGE, &[required("persona_id", FieldType::Id(EntityType::Agent)), required("title", FieldType::Text), required("text", FieldType::Text), optional("artifact_id", FieldType::Id(EntityType::Artifact))], "an agent wrote down something to know, or revised it")
        .leaving(WhenLeaving::Paused).also_changes(&[EntityType::Branch]).side_effect(SideEffect::RecordsKnowledge),
];

impl Kind {
    pub const fn row(self) -> &'static KindRow {
        &TABLE[self as usize]
    }

    /// The error for a name that is no kind, with the kinds that it may stand for.
    pub fn unknown(name: &str) -> Error {
        let similar = text::similar(name, Kind::ALL.iter().map(|kind| kind.as_str()));
        let hint = match similar.as_slice() {
            [] => "hf-format(5) lists them all".to_owned(),
            some => format!("did you mean {}?", some.join(" or ")),
        };
        Error::usage(format!("unknown event type '{}'; {hint}", text::cut(name, 60)))
    }

    /// Whether an event of this kind may have this subject.
    pub fn fits(self, subject: &Subject) -> bool {
        match self.row().about {
            SubjectType::One(entity) => subject.entity == entity,
            SubjectType::Any => true,
        }
    }

    /// The entities named by the payload that must exist. Agents need not: they may be named before their first command.
    pub fn required_references(self, payload: &Map<String, Value>) -> Vec<Subject> {
        let mut named = self.references(payload);
        named.retain(|subject| subject.entity != EntityType::Agent);
        named
    }

    /// The entities named by the payload.
    pub fn references(self, payload: &Map<String, Value>) -> Vec<Subject> {
        let id = |entity, value: &Value| Some(Subject::new(entity, EntityId::parse(value.as_str()?).ok()?));
        let mut named = Vec::new();
        for field in self.row().fields {
            match (field.field_type, payload.get(field.name)) {
                (FieldType::Id(entity), Some(value)) => named.extend(id(entity, value)),
                (FieldType::Ids(entity), Some(Value::Array(list))) => {
                    named.extend(list.iter().filter_map(|value| id(entity, value)));
                }
                (FieldType::Subject, Some(Value::String(text))) => named.extend(Subject::parse(text)),
                _ => {}
            }
        }
        named
    }

    /// Checks the payload members listed in this kind's row.
    pub fn check_payload(self, payload: &Map<String, Value>) -> Result<()> {
        for field in self.row().fields {
            match payload.get(field.name) {
                None if field.required => {
                    return Err(Error::usage(format!(
                        "{self}: missing payload.{}; must be {}",
                        field.name,
                        field.field_type.description()
                    )));
                }
                Some(value) if !field.field_type.accepts(value) => {
                    return Err(Error::usage(format!(
                        "{self}: payload.{} must be {}",
                        field.name,
                        field.field_type.description()
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl FieldType {
    fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (FieldType::Text, Value::String(s)) => !s.trim().is_empty(),
            (FieldType::AnyText, Value::String(_)) => true,
            // In canonical form, a larger number is no longer an exact integer.
            (FieldType::Count, Value::Number(n)) => n.as_u64().is_some_and(|n| n < 1 << 53),
            (FieldType::Bool, Value::Bool(_)) => true,
            (FieldType::Id(_), Value::String(s)) => EntityId::parse(s).is_ok(),
            (FieldType::Subject, Value::String(s)) => Subject::parse(s).is_ok(),
            (FieldType::OneOf(names), Value::String(s)) => names.contains(&s.as_str()),
            (FieldType::Actor, Value::String(s)) => Actor::parse(s).is_ok(),
            (FieldType::Texts, Value::Array(list)) => list.iter().all(Value::is_string),
            (FieldType::Ids(entity), Value::Array(list)) => list.iter().all(|id| FieldType::Id(entity).accepts(id)),
            (FieldType::Object, Value::Object(_)) => true,
            (FieldType::Counts, Value::Object(counts)) => counts.values().all(|n| FieldType::Count.accepts(n)),
            (FieldType::Time, Value::String(s)) => Timestamp::parse(s).is_some(),
            _ => false,
        }
    }

    /// In words, for errors and the manual.
    pub fn description(self) -> String {
        match self {
            FieldType::Text => "a non-empty string".to_owned(),
            FieldType::AnyText => "a string".to_owned(),
            FieldType::Count => "a non-negative integer".to_owned(),
            FieldType::Bool => "true or false".to_owned(),
            FieldType::Id(entity) => format!("the id of {}", entity.with_article()),
            FieldType::Subject => "a subject, TYPE:ID".to_owned(),
            FieldType::OneOf(names) => format!("one of {}", names.join(", ")),
            FieldType::Actor => "an actor, KIND:NAME".to_owned(),
            FieldType::Texts => "a list of strings".to_owned(),
            FieldType::Ids(entity) => format!("a list of ids of {}", entity.plural()),
            FieldType::Object => "a JSON object".to_owned(),
            FieldType::Counts => "an object of non-negative integers".to_owned(),
            FieldType::Time => "a time, YYYY-MM-DDTHH:MM:SSZ".to_owned(),
        }
    }
}

/// Whether members with this name are filled in by the policy or with a signature, in any kind.
pub fn is_filled_in(member: &str) -> bool {
    let is_filled =
        |field: &PayloadField| matches!(field.filled_by, FilledBy::Policy | FilledBy::Signature | FilledBy::Binding);
    TABLE.iter().flat_map(|row| row.fields).any(|field| field.name == member && is_filled(field))
}

/// Members that summarize an event, best first. They are looked up by name and not by kind, so that events of unknown
/// types have a headline, too.
const HEADLINES: &[&str] = &["title", "summary", "reason", "rationale", "text", "last_action", "goal"];

/// The member that contains the settings.
pub const SETTINGS: &str = "settings";

/// The member that lists what an event changed, by name, each with its old and new value.
pub const CHANGED: &str = "changed";
/// The members of such a change.
pub const FROM: &str = "from";
pub const TO: &str = "to";

/// What an event changed, as in `a.b: 1 -> 2, a.c: 3 -> 4`.
fn changes(payload: &Map<String, Value>) -> Option<String> {
    let changed = payload.get(CHANGED)?.as_object().filter(|changed| !changed.is_empty())?;
    let value = |change: &Value, member: &str| change.get(member).unwrap_or(&Value::Null).to_string();
    let one = |(name, change): (&String, &Value)| format!("{name}: {} -> {}", value(change, FROM), value(change, TO));
    Some(changed.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// The first short text in a payload that summarizes it: of a failure with its class, of a retry its number, of changed
/// settings their old and new values.
pub fn headline(payload: &Map<String, Value>) -> Option<String> {
    let member = |name: &str| payload.get(name)?.as_str();
    let line = HEADLINES.iter().find_map(|name| member(name)).map(str::to_owned).or_else(|| changes(payload));
    let line = line.map(|line| text::cut(&line, crate::base::limits::SUMMARY_MAX_CHARS));
    let count = |name: &str| payload.get(name)?.as_u64();
    match (line, member("error_class"), count("attempt").zip(count("of"))) {
        (Some(line), Some(class), _) => Some(format!("{class}: {line}")),
        (None, None, Some((attempt, of))) => Some(format!("attempt {attempt} of {of}")),
        (line, ..) => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_has_one_row_per_kind_in_order() {
        assert_eq!(TABLE.len(), Kind::ALL.len());
        for (row, kind) in TABLE.iter().zip(Kind::ALL) {
            assert_eq!(row.kind, *kind);
        }
    }

    /// The kinds whose rows match, to be compared with a list that does not come from the table.
    fn kinds(fits: impl Fn(&KindRow) -> bool) -> Vec<Kind> {
        TABLE.iter().filter(|row| fits(row)).map(|row| row.kind).collect()
    }

    fn field(row: &KindRow, name: &str) -> PayloadField {
        let found = row.fields.iter().find(|field| field.name == name);
        *found.unwrap_or_else(|| panic!("{} has no field {name}", row.kind))
    }

    #[test]
    fn only_operators_decide_resume_pause_and_archive() {
        let operators = [
            Kind::VaultRecovered,
            Kind::SettingsAdopted,
            Kind::OperatorKeyAdded,
            Kind::OperatorKeyRemoved,
            Kind::SystemResumed,
            Kind::EscalationAcknowledged,
            Kind::RequirementRejected,
            Kind::RequirementVerified,
            Kind::RequirementSuperseded,
            Kind::DecisionApproved,
            Kind::DecisionRejected,
            Kind::MissionRoundsAdded,
            Kind::ProjectPaused,
            Kind::ProjectResumed,
            Kind::ProjectArchived,
        ];
        assert_eq!(kinds(|row| row.by == RecordedBy::Operator), operators);
        assert_eq!(kinds(|row| row.by == RecordedBy::OperatorOrProposer), [Kind::TaskEdited]);
    }

    #[test]
    fn agents_do_not_record_what_the_toolkit_finds() {
        let found = [
            Kind::HookRecovered,
            Kind::AnomalyDetected,
            Kind::AnomalyCleared,
            Kind::AgentStopped,
            Kind::RecoveryAttempted,
            Kind::DeepWorkExpired,
            Kind::OscillationDetected,
            Kind::DecisionSuperseded,
            Kind::ApprovalTimedOut,
            Kind::TaskArchived,
            Kind::DebateClosed,
            Kind::PauseDrained,
            Kind::SessionCut,
            Kind::SessionExpired,
        ];
        assert_eq!(kinds(|row| row.by == RecordedBy::NotAgents), found);
    }

    #[test]
    fn work_starts_with_a_claim_a_run_or_a_retry() {
        let starts = |starts| kinds(|row| row.starts == starts);
        assert_eq!(starts(Starts::Claim), [Kind::TaskAssigned]);
        assert_eq!(starts(Starts::Run), [Kind::RunStarted]);
        assert_eq!(starts(Starts::Retry), [Kind::TaskRetrying]);
        assert_eq!(starts(Starts::Session), [Kind::SessionStarted, Kind::SessionRenewed]);
        assert_eq!(kinds(|row| row.claim == Claim::Makes), starts(Starts::Claim));
    }

    #[test]
    fn an_agent_that_has_to_leave_starts_nothing_and_can_log_out_to_the_end() {
        assert_eq!(kinds(|row| row.leaving == WhenLeaving::Archived), [Kind::SessionEnded]);
        assert_eq!(kinds(|row| row.leaving == WhenLeaving::Void), [Kind::EmergencyStopIssued]);
        assert_eq!(kinds(|row| row.leaving > WhenLeaving::Refused && row.starts != Starts::Nothing), []);
    }

    #[test]
    fn nothing_that_starts_is_an_end() {
        assert_eq!(kinds(|row| row.ending != Ending::NoEnd && row.starts != Starts::Nothing), []);
    }

    #[test]
    fn a_link_names_a_field_of_its_row() {
        for row in TABLE {
            let Some(link) = row.moves else { continue };
            // The root of an agent is the branch with the agent's name.
            let named = if link.member == "to" { EntityType::Agent } else { link.entity };
            assert_eq!(field(row, link.member).field_type, FieldType::Id(named), "{}", row.kind);
            assert_ne!(row.about, SubjectType::One(link.entity), "{} moves its own subject twice", row.kind);
        }
    }

    #[test]
    fn a_cause_names_a_field_of_its_row() {
        for row in TABLE {
            if let Cause::Named(entity, member) = row.cause {
                assert_eq!(field(row, member).field_type, FieldType::Id(entity), "{}", row.kind);
            }
        }
    }

    #[test]
    fn whatever_names_a_project_opens_it() {
        let names =
            |row: &KindRow| row.fields.iter().any(|field| field.field_type == FieldType::Id(EntityType::Project));
        assert_eq!(kinds(|row| row.opens == Opens::Named("project_id")), kinds(names));
        assert!(kinds(|row| row.opens == Opens::Main).into_iter().all(|kind| kind.row().about == PROJECT));
    }

    #[test]
    fn whatever_moves_an_agent_speaks_for_it_and_needs_it_active() {
        let moves_agent = |row: &KindRow| row.moves.is_some_and(|link| link.entity == EntityType::Agent);
        let needs_active = |row: &KindRow| row.moves.is_some_and(|link| link.rule == LinkRule::MustBeActive);
        assert_eq!(kinds(moves_agent), kinds(|row| row.speaks_for == SpeaksFor::Linked));
        assert_eq!(kinds(moves_agent), kinds(needs_active));
        for row in TABLE {
            match row.speaks_for {
                SpeaksFor::Subject => assert_eq!(row.about, AGENT, "{}", row.kind),
                // The event that created the subject set the fact.
                SpeaksFor::Owner(member) => {
                    let made = kinds(|other| other.about == row.about)[0].row();
                    assert_eq!(field(made, member).field_type, FieldType::Id(EntityType::Agent), "{}", row.kind);
                }
                SpeaksFor::Nobody | SpeaksFor::Linked => {}
            }
        }
    }

    #[test]
    fn a_claim_is_on_a_task() {
        for kind in kinds(|row| row.claim != Claim::Unneeded) {
            assert!([TASK, RUN].contains(&kind.row().about), "{kind}");
            let other = kind.row().moves.map(|link| link.entity);
            assert!(kind.row().about == TASK || other.is_none_or(|other| other == EntityType::Task), "{kind}");
        }
    }

    #[test]
    fn what_the_author_does_not_fill_in_is_optional() {
        for row in TABLE {
            for field in row.fields.iter().filter(|field| field.filled_by != FilledBy::Author) {
                assert!(!field.required, "{}.{}", row.kind, field.name);
            }
        }
        assert!(is_filled_in("target_hash") && is_filled_in("anchor_id") && !is_filled_in("title"));
    }

    #[test]
    fn reserved_rows_leave_the_other_columns_alone() {
        for row in TABLE.iter().filter(|row| row.reserved) {
            let plain = reserved(row.kind, row.fields, row.meaning);
            let plain = plain.by(row.by).side_effect(row.side_effect);
            assert_eq!(format!("{row:?}"), format!("{plain:?}"));
        }
    }

    #[test]
    fn a_headline_is_a_member_that_can_be_read() {
        for name in HEADLINES {
            let mut fields = TABLE.iter().flat_map(|row| row.fields).filter(|field| field.name == *name).peekable();
            assert!(fields.peek().is_some(), "no kind has a field {name}");
            assert!(fields.all(|field| matches!(field.field_type, FieldType::Text | FieldType::OneOf(_))), "{name}");
        }
    }

    #[test]
    fn names_round_trip_and_are_unique() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(Kind::parse("taskready"), None);
    }

    #[test]
    fn a_payload_is_checked_against_its_row() {
        let check = |kind: Kind, payload: Value| kind.check_payload(payload.as_object().unwrap());
        assert!(check(Kind::TaskFailed, json!({"error_class": "transient", "reason": "timeout"})).is_ok());
        assert!(check(Kind::TaskFailed, json!({"error_class": "strange", "reason": "timeout"})).is_err());
        assert!(check(Kind::TaskFailed, json!({"error_class": "transient"})).is_err());
        assert!(check(Kind::RequirementProposed, json!({"title": "  "})).is_err());
        assert!(check(Kind::RequirementProposed, json!({"title": "x", "more": [1]})).is_ok());
        assert!(check(Kind::RunStarted, json!({"task_id": "../x"})).is_err());
        assert!(check(Kind::ArtifactMaterialized, json!({"sha256": "x", "size_bytes": -1})).is_err());
        assert!(check(Kind::RunFinished, json!({"token_usage": {"prompt": 1500, "completion": 2000}})).is_ok());
        assert!(check(Kind::RunFinished, json!({"token_usage": {"prompt": "many"}})).is_err());
    }
}
