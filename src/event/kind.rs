//! The closed list of event kinds: what each is about, what its payload must hold, and what is known of it.
//!
//! Adding a kind is adding a row here (and its transitions to `machine`, its facts to `state::facts` and
//! its consequences to `policy::react`). What rules have to know of a kind is a column of its row; the
//! columns and their defaults are in `event::row`. Names of types that this version does not know are
//! kept in the log byte for byte, verified, and left out of the state.

use serde_json::{Map, Value};

pub use super::row::{Along, By, Cause, Claim, Ending, Leaving, Link, Opens, Row, SideEffect, SpeaksFor, Starts};
use super::row::{reserved, row};
use crate::base::{Actor, EntityId, EntityType, Error, Result, Subject, Timestamp, names, text};

names! {
    pub enum Kind {
        VaultInitialized = "VaultInitialized",
        TailQuarantined = "TailQuarantined",
        VaultRecovered = "VaultRecovered",
        SettingsChanged = "SettingsChanged",
        MachineSuspended = "MachineSuspended",
        MachineBooted = "MachineBooted",
        ClockStepped = "ClockStepped",
        EmergencyStopIssued = "EmergencyStopIssued",
        SystemResumed = "SystemResumed",
        EscalationRequired = "EscalationRequired",
        HookFailed = "HookFailed",
        AnomalyDetected = "AnomalyDetected",
        AnomalyCleared = "AnomalyCleared",
        AgentStarted = "AgentStarted",
        AgentStopped = "AgentStopped",
        ActivityLogged = "ActivityLogged",
        CheckpointRecorded = "CheckpointRecorded",
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
        TaskAssigned = "TaskAssigned",
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
        MessageSent = "MessageSent",
        MessageRead = "MessageRead",
    }
}

/// What an event of a kind is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// One entity of this type.
    One(EntityType),
    /// Any entity that exists.
    Any,
}

/// What a member of a payload must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// A string that is not empty.
    Text,
    /// A whole number, zero or more.
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
    /// `YYYY-MM-DDTHH:MM:SSZ`.
    Time,
}

/// One member of a payload. Members that are not listed are kept as they are.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub is: Is,
    pub required: bool,
    /// Who says it. Default: the author of the event.
    pub said: Said,
    /// Whether two requests for the same state differ if they differ in this. Default: no.
    pub tells_apart: bool,
}

/// Who says a member of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The author of the event.
    ByAuthor,
    /// The policy fills it in if the author does not.
    ByPolicy,
    /// `hf-job fire` alone. It binds a task to a command: anybody who could write it by hand could show
    /// an operator one command and run another, or take a job from its supervisor.
    ByJobs,
}

const fn must(name: &'static str, is: Is) -> Field {
    Field { name, is, required: true, said: Said::ByAuthor, tells_apart: false }
}

const fn may(name: &'static str, is: Is) -> Field {
    Field { required: false, ..must(name, is) }
}

impl Field {
    const fn said(self, said: Said) -> Field {
        Field { said, ..self }
    }

    const fn tells_apart(self) -> Field {
        Field { tells_apart: true, ..self }
    }
}

const SYSTEM: About = About::One(EntityType::System);
const REQUIREMENT: About = About::One(EntityType::Requirement);
const DECISION: About = About::One(EntityType::Decision);
const TASK: About = About::One(EntityType::Task);
const RUN: About = About::One(EntityType::Run);
const ARTIFACT: About = About::One(EntityType::Artifact);
const CONSTRAINT: About = About::One(EntityType::Constraint);
const AGENT: About = About::One(EntityType::Agent);
const DEEPWORK: About = About::One(EntityType::DeepWork);
const MISSION: About = About::One(EntityType::Mission);
const DEBATE: About = About::One(EntityType::Debate);
const REVIEW: About = About::One(EntityType::Review);
const DOCUMENT: About = About::One(EntityType::Document);
const PROJECT: About = About::One(EntityType::Project);
const SESSION: About = About::One(EntityType::Session);
const BRANCH: About = About::One(EntityType::Branch);
const THREAD: About = About::One(EntityType::Thread);
const MESSAGE: About = About::One(EntityType::Message);

/// When the time was over, where the event says that it is.
const DUE_AT: Field = may("due_at", Is::Time);

pub const DECISION_KINDS: &[&str] = &["requirement_approval", "destructive_operation", "constraint_change"];
pub const DEEPWORK_MODES: &[&str] = &["flexible", "strict"];
/// What ends a deep work in time: an activity log, the agent's word, or another declaration.
pub const DEEPWORK_ENDS: &[&str] = &["log", "word", "declaration"];
pub const ERROR_CLASSES: &[&str] = &["transient", "permanent"];
/// What a file can be that is known by a short reference.
pub const DOCUMENT_KINDS: &[&str] = &["design", "plan", "patch", "report"];
/// The whole content of a mission's state file, but for what the tool keeps itself.
const MISSION_FIELDS: &[Field] = &[
    must("goal", Is::Text),
    may("constraints", Is::Texts),
    may("requirement_id", Is::Id(EntityType::Requirement)),
    may("task_id", Is::Id(EntityType::Task)),
    may("logref", Is::Text),
    may("open_k", Is::Text),
    may("last_action", Is::Text),
    may("next_action", Is::Text),
];
/// What ends a session in time: the agent's word, another session in its place, or the end of its project.
pub const SESSION_ENDS: &[&str] = &["logout", "replaced", "archived"];
pub const ARTIFACT_KINDS: &[&str] = &["code", "text", "binary", "prompt", "response"];

/// What a branch is for; that of the user is the root.
pub const BRANCH_TYPES: &[&str] = &["user", "task", "social", "free"];

/// The list itself, in the order of `Kind`.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    reserved(Kind::VaultInitialized, &[must("vault_id", Is::Text), must("schema_version", Is::Count), may("settings", Is::Object)], "the vault begins; binds its random id")
        .side_effect(SideEffect::Settles),
    reserved(Kind::TailQuarantined, &[must("segment", Is::Text), must("offset", Is::Count), must("bytes", Is::Count), must("file", Is::Text)], "an unfinished write was moved to quarantine"),
    reserved(Kind::VaultRecovered, &[may("expected_head", Is::Text), may("found_head", Is::Text)], "an operator cut a damaged suffix off"),
    reserved(Kind::SettingsChanged, &[must("settings", Is::Object)], "these settings are in force from here on")
        .side_effect(SideEffect::Settles),
    reserved(Kind::MachineSuspended, &[must("from", Is::Time), must("to", Is::Time), must("seconds", Is::Count)], "the machine was suspended for so many seconds"),
    reserved(Kind::MachineBooted, &[must("at", Is::Time)], "the machine was started, or the vault is on another machine"),
    reserved(Kind::ClockStepped, &[must("from", Is::Time), must("to", Is::Time)], "the clock was set: from the time that it should have shown, to the time that it shows"),
    row(Kind::EmergencyStopIssued, SYSTEM, &[must("reason", Is::Text)], "everything stops")
        .leaving(Leaving::Void).cause(Cause::Outside),
    row(Kind::SystemResumed, SYSTEM, &[], "work may start again")
        .by(By::Operator).wakes_jobs(),
    row(Kind::EscalationRequired, About::Any, &[may("reason", Is::Text), may("code", Is::Text)], "a person must look")
        .ending(Ending::End).leaving(Leaving::Paused),
    row(Kind::HookFailed, About::Any, &[must("hook", Is::Text), must("reason", Is::Text)], "a hook did not do its work")
        .ending(Ending::End).leaving(Leaving::Paused),
    row(Kind::AnomalyDetected, About::Any, &[must("code", Is::Text), may("seconds", Is::Count)], "a rule of the watchdog began to fail")
        .by(By::NotAgents).ending(Ending::End),
    row(Kind::AnomalyCleared, About::Any, &[must("code", Is::Text)], "a rule of the watchdog holds again")
        .by(By::NotAgents).ending(Ending::End),
    row(Kind::AgentStarted, AGENT, &[may("announced", Is::Bool)], "an agent begins; announced if by its first command")
        .leaving(Leaving::Paused).tells_presence(),
    row(Kind::AgentStopped, AGENT, &[may("reason", Is::Text)], "an agent is gone for now, and nobody waits for it")
        .by(By::NotAgents).speaks_for(SpeaksFor::Subject).leaving(Leaving::Paused).tells_presence(),
    row(Kind::ActivityLogged, AGENT, &[must("heartbeat_id", Is::Text), must("kind", Is::Text), may("title", Is::Text), may("file", Is::Text), may("emergency", Is::Text)], "an agent wrote an activity log")
        .speaks_for(SpeaksFor::Subject).leaving(Leaving::Paused),
    row(Kind::CheckpointRecorded, AGENT, &[must("heartbeat_id", Is::Text), must("text", Is::Text)], "an agent says what it is doing")
        .speaks_for(SpeaksFor::Subject).leaving(Leaving::Paused),
    row(Kind::RecoveryAttempted, AGENT, &[must("code", Is::Text), must("attempt", Is::Count)], "somebody tried to wake an agent")
        .by(By::NotAgents),
    row(Kind::DeepWorkStarted, DEEPWORK, &[must("agent_id", Is::Id(EntityType::Agent)), must("heartbeat_id", Is::Text), must("mode", Is::OneOf(DEEPWORK_MODES)), must("activity", Is::Text), may("minutes", Is::Count)], "an agent will be deep in work")
        .speaks_for(SpeaksFor::Linked).moves(EntityType::Agent, "agent_id", Along::MustBeActive),
    row(Kind::DeepWorkExtended, DEEPWORK, &[must("agent_id", Is::Id(EntityType::Agent)), must("minutes", Is::Count)], "it takes longer than declared")
        .speaks_for(SpeaksFor::Linked).moves(EntityType::Agent, "agent_id", Along::MustBeActive),
    row(Kind::DeepWorkCompleted, DEEPWORK, &[must("agent_id", Is::Id(EntityType::Agent)), may("by", Is::OneOf(DEEPWORK_ENDS))], "it is over")
        .speaks_for(SpeaksFor::Linked).leaving(Leaving::Paused)
        .moves(EntityType::Agent, "agent_id", Along::MustBeActive),
    row(Kind::DeepWorkExpired, DEEPWORK, &[must("agent_id", Is::Id(EntityType::Agent)), DUE_AT], "its time is over and it is not")
        .by(By::NotAgents).speaks_for(SpeaksFor::Linked).moves(EntityType::Agent, "agent_id", Along::MustBeActive),
    row(Kind::RequirementProposed, REQUIREMENT, &[must("title", Is::Text), may("description", Is::Text), may("project_id", Is::Id(EntityType::Project))], "a requirement was put in")
        .opens(Opens::Named("project_id")).cause(Cause::Outside),
    row(Kind::RequirementAnalyzed, REQUIREMENT, &[may("analysis", Is::Text)], "its analysis is recorded"),
    row(Kind::RequirementApproved, REQUIREMENT, &[may("decision_id", Is::Id(EntityType::Decision))], "it may be built"),
    row(Kind::RequirementRejected, REQUIREMENT, &[may("reason", Is::Text)], "it will not be built")
        .by(By::Operator).ending(Ending::Consequence),
    row(Kind::RequirementImplemented, REQUIREMENT, &[], "its tasks are done")
        .ending(Ending::Consequence),
    row(Kind::RequirementVerified, REQUIREMENT, &[], "it was checked and holds"),
    row(Kind::RequirementSuperseded, REQUIREMENT, &[may("by", Is::Id(EntityType::Requirement))], "another one took its place"),
    row(Kind::OscillationDetected, REQUIREMENT, &[may("count", Is::Count)], "verifying and building went back and forth too often")
        .by(By::NotAgents).depends_on_settings(),
    row(Kind::DecisionRequested, DECISION, &[must("kind", Is::OneOf(DECISION_KINDS)), must("target", Is::Subject), must("summary", Is::Text), may("options", Is::Texts), may("change", Is::Object), may("target_hash", Is::Text).said(Said::ByPolicy)], "a person is asked"),
    row(Kind::DecisionApproved, DECISION, &[may("chosen_option", Is::Text).tells_apart(), may("rationale", Is::Text), may("target_hash", Is::Text).said(Said::ByPolicy)], "the answer is yes")
        .by(By::Operator),
    row(Kind::DecisionRejected, DECISION, &[may("rationale", Is::Text)], "the answer is no")
        .by(By::Operator).ending(Ending::Consequence).depends_on_settings(),
    row(Kind::DecisionSuperseded, DECISION, &[may("by", Is::Id(EntityType::Decision))], "another decision took its place")
        .by(By::NotAgents).ending(Ending::Consequence),
    row(Kind::ApprovalTimedOut, DECISION, &[DUE_AT], "nobody answered in time")
        .by(By::NotAgents).ending(Ending::Consequence),
    row(Kind::TaskProposed, TASK, &[must("title", Is::Text), may("requirement_id", Is::Id(EntityType::Requirement)), may("project_id", Is::Id(EntityType::Project)), may("after", Is::Ids(EntityType::Task)), may("destructive", Is::Bool), may("command", Is::Texts), may("command_hash", Is::Text).said(Said::ByJobs), may("job", Is::Bool), may("max_retries", Is::Count), may("rework_of", Is::Id(EntityType::Task))], "a piece of work was proposed")
        .opens(Opens::Named("project_id")).moves(EntityType::Requirement, "requirement_id", Along::IfLegal)
        .cause(Cause::Named(EntityType::Requirement, "requirement_id")),
    row(Kind::TaskReady, TASK, &[], "nothing stands in its way")
        .ending(Ending::Consequence).wakes_jobs(),
    row(Kind::TaskAssigned, TASK, &[may("holder", Is::Actor).tells_apart(), may("lease_seconds", Is::Count), may("job", Is::Bool).said(Said::ByJobs)], "somebody took it")
        .claim(Claim::Makes).starts(Starts::Claim),
    row(Kind::ClaimRenewed, TASK, &[], "whoever took it is still at it")
        .claim(Claim::Needs).leaving(Leaving::Paused),
    row(Kind::ClaimExpired, TASK, &[DUE_AT], "whoever took it let the lease pass")
        .claim(Claim::NeedsIfAgent).ending(Ending::Consequence).wakes_jobs(),
    row(Kind::TaskSucceeded, TASK, &[], "it is done")
        .also_changes(&[EntityType::Requirement]).claim(Claim::Needs).ending(Ending::End).wakes_jobs(),
    row(Kind::TaskFailed, TASK, &[must("error_class", Is::OneOf(ERROR_CLASSES)), must("reason", Is::Text), may("escalate", Is::Bool), may("released", Is::Bool)], "it failed")
        .claim(Claim::Needs).ending(Ending::End),
    row(Kind::TaskRetrying, TASK, &[may("released", Is::Bool)], "it will be tried again")
        .starts(Starts::Retry),
    row(Kind::TaskAborted, TASK, &[may("reason", Is::Text)], "it was given up")
        .also_changes(&[EntityType::Requirement]).claim(Claim::NeedsIfAgent).ending(Ending::End).wakes_jobs(),
    row(Kind::TaskArchived, TASK, &[DUE_AT], "it left the projections")
        .also_changes(&[EntityType::Run, EntityType::Branch]).by(By::NotAgents).ending(Ending::End),
    row(Kind::RunStarted, RUN, &[must("task_id", Is::Id(EntityType::Task)), may("timeout_seconds", Is::Count)], "one attempt at a task began")
        .side_effect(SideEffect::TakesLease).claim(Claim::Needs).starts(Starts::Run).moves(EntityType::Task, "task_id", Along::MustBeLegal)
        .cause(Cause::Named(EntityType::Task, "task_id")),
    row(Kind::Heartbeat, RUN, &[], "the run is alive")
        .frequent().claim(Claim::Needs).ending(Ending::End).leaving(Leaving::Paused),
    row(Kind::RunFinished, RUN, &[may("success", Is::Bool).tells_apart(), may("exit_code", Is::Count), may("summary", Is::Text)], "the run came to its end")
        .claim(Claim::Needs).ending(Ending::End),
    row(Kind::RunCrashed, RUN, &[may("reason", Is::Text), may("transient", Is::Bool), may("escalate", Is::Bool)], "the run died")
        .claim(Claim::Needs).ending(Ending::End),
    row(Kind::RunTimedOut, RUN, &[may("reason", Is::Text), DUE_AT], "the run fell silent")
        .claim(Claim::Needs).ending(Ending::End),
    row(Kind::ArtifactDeclared, ARTIFACT, &[must("kind", Is::OneOf(ARTIFACT_KINDS)), may("filename", Is::Text), may("task_id", Is::Id(EntityType::Task))], "something will be made")
        .leaving(Leaving::Paused).cause(Cause::Named(EntityType::Task, "task_id")),
    row(Kind::ArtifactMaterialized, ARTIFACT, &[must("sha256", Is::Text), must("size_bytes", Is::Count), may("path", Is::Text)], "its content is stored")
        .leaving(Leaving::Paused),
    row(Kind::ArtifactValidated, ARTIFACT, &[], "its content was checked and is good"),
    row(Kind::ArtifactInvalidated, ARTIFACT, &[may("reason", Is::Text)], "its content was checked and is not good"),
    row(Kind::ArtifactCorrupted, ARTIFACT, &[may("found_sha256", Is::Text)], "its content is no longer what was stored")
        .ending(Ending::End).leaving(Leaving::Paused),
    row(Kind::ConstraintApplied, CONSTRAINT, &[may("text", Is::Text), may("priority", Is::Subject), may("decision_id", Is::Id(EntityType::Decision))], "a constraint holds"),
    row(Kind::ConstraintRemoved, CONSTRAINT, &[may("decision_id", Is::Id(EntityType::Decision))], "a constraint no longer holds"),
    row(Kind::MissionStarted, MISSION, MISSION_FIELDS, "an autonomous piece of work begins")
        .cause(Cause::Named(EntityType::Requirement, "requirement_id")),
    row(Kind::MissionChanged, MISSION, MISSION_FIELDS, "its state, rewritten whole"),
    row(Kind::MissionRoundBegun, MISSION, &[must("round", Is::Count)], "its next round begins"),
    row(Kind::MissionPassed, MISSION, &[may("last_action", Is::Text)], "it is done"),
    row(Kind::MissionFailed, MISSION, &[may("last_action", Is::Text)], "it was given up"),
    row(Kind::DebateOpened, DEBATE, &[must("reviewers", Is::Texts), may("mission_id", Is::Id(EntityType::Mission))], "reviewers take turns from here")
        .cause(Cause::Named(EntityType::Mission, "mission_id")),
    row(Kind::ReviewRecorded, REVIEW, &[must("debate_id", Is::Id(EntityType::Debate)), must("reviewer", Is::Text), must("text", Is::Text), must("fails", Is::Texts)], "a reviewer replied")
        .moves(EntityType::Debate, "debate_id", Along::IfLegal).cause(Cause::Named(EntityType::Debate, "debate_id")),
    row(Kind::DebateConverged, DEBATE, &[], "every reviewer replied, and the newest found nothing"),
    row(Kind::DebateExhausted, DEBATE, &[], "every round was used, and there is still something to fix"),
    row(Kind::DebateClosed, DEBATE, &[], "what it was for is over")
        .by(By::NotAgents),
    row(Kind::DocumentAdded, DOCUMENT, &[must("kind", Is::OneOf(DOCUMENT_KINDS)), must("path", Is::Text), must("sha256", Is::Text), may("size_bytes", Is::Count)], "a file got a short reference"),
    row(Kind::DocumentChanged, DOCUMENT, &[must("sha256", Is::Text), may("size_bytes", Is::Count)], "its file has another content"),
    row(Kind::ProjectOpened, PROJECT, &[], "something belongs to it for the first time"),
    row(Kind::ProjectPaused, PROJECT, &[must("reason", Is::Text), must("grace_seconds", Is::Count)], "nothing starts in it, and its agents are asked to leave")
        .by(By::Operator).opens(Opens::Main),
    row(Kind::PauseDrained, PROJECT, &[], "its last session and its last job are gone")
        .by(By::NotAgents),
    row(Kind::ProjectResumed, PROJECT, &[may("comment", Is::Text)], "its work goes on where it was")
        .by(By::Operator).wakes_jobs(),
    row(Kind::ProjectArchived, PROJECT, &[may("reason", Is::Text)], "it can only be read from now on")
        .by(By::Operator).opens(Opens::Main),
    row(Kind::SessionStarted, SESSION, &[must("agent_id", Is::Id(EntityType::Agent)), must("ttl_seconds", Is::Count), may("project_id", Is::Id(EntityType::Project))], "an agent comes to work")
        .speaks_for(SpeaksFor::Owner("agent_id")).starts(Starts::Session).opens(Opens::Named("project_id")),
    row(Kind::SessionRenewed, SESSION, &[must("ttl_seconds", Is::Count)], "it stays")
        .speaks_for(SpeaksFor::Owner("agent_id")).starts(Starts::Session),
    row(Kind::SessionCut, SESSION, &[must("seconds", Is::Count)], "it has so long to leave")
        .by(By::NotAgents).ending(Ending::End),
    row(Kind::SessionEnded, SESSION, &[must("reason", Is::OneOf(SESSION_ENDS))], "it left")
        .speaks_for(SpeaksFor::Owner("agent_id")).ending(Ending::End).leaving(Leaving::Archived),
    row(Kind::SessionExpired, SESSION, &[DUE_AT], "it stayed longer than it may")
        .by(By::NotAgents).ending(Ending::End),
    row(Kind::BranchCreated, BRANCH, &[must("persona_id", Is::Id(EntityType::Agent)), must("branch_type", Is::OneOf(BRANCH_TYPES)), must("label", Is::Text), may("task_id", Is::Id(EntityType::Task)), may("partner_persona_id", Is::Id(EntityType::Agent))], "an agent has one activity more")
        .cause(Cause::Named(EntityType::Task, "task_id")).side_effect(SideEffect::CountsPersona),
    row(Kind::BranchCompleted, BRANCH, &[], "an activity is over for good")
        .also_changes(&[EntityType::Thread]).side_effect(SideEffect::ArchivesThread),
    row(Kind::ThreadOpened, THREAD, &[must("branch_id", Is::Id(EntityType::Branch)), may("anchor_id", Is::Id(EntityType::Thread)).said(Said::ByPolicy)], "an agent is at a branch, from here on")
        .moves(EntityType::Branch, "branch_id", Along::IfLegal).cause(Cause::Named(EntityType::Branch, "branch_id"))
        .side_effect(SideEffect::OpensThread),
    row(Kind::NoteRecorded, THREAD, &[must("branch_id", Is::Id(EntityType::Branch)), must("text", Is::Text), may("artifact_id", Is::Id(EntityType::Artifact))], "something was said or done in a thread")
        .moves(EntityType::Branch, "branch_id", Along::IfLegal),
    row(Kind::ThreadCompleted, THREAD, &[must("branch_id", Is::Id(EntityType::Branch)), must("summary", Is::Text), may("summary_artifact_id", Is::Id(EntityType::Artifact)), may("tail", Is::Text), may("tail_artifact_id", Is::Id(EntityType::Artifact))], "an agent left a branch, and said where it stands")
        .moves(EntityType::Branch, "branch_id", Along::IfLegal).side_effect(SideEffect::ClosesThread),
    row(Kind::ThreadAborted, THREAD, &[must("branch_id", Is::Id(EntityType::Branch)), may("reason", Is::Text), may("message_id", Is::Id(EntityType::Message)), may("tail", Is::Text), may("tail_artifact_id", Is::Id(EntityType::Artifact))], "an agent left a branch without a summary")
        .moves(EntityType::Branch, "branch_id", Along::IfLegal).side_effect(SideEffect::ClosesThread),
    row(Kind::MessageSent, MESSAGE, &[must("to", Is::Id(EntityType::Agent)), must("text", Is::Text), may("artifact_id", Is::Id(EntityType::Artifact))], "somebody told an agent something")
        // The root of an agent has its name.
        .also_changes(&[EntityType::Thread]).leaving(Leaving::Paused).moves(EntityType::Branch, "to", Along::IfLegal)
        .side_effect(SideEffect::DeliversMessage),
    row(Kind::MessageRead, MESSAGE, &[must("to", Is::Id(EntityType::Agent))], "the agent has read it")
        .leaving(Leaving::Paused).moves(EntityType::Branch, "to", Along::IfLegal)
        .side_effect(SideEffect::ArchivesMessage),
];

impl Kind {
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Whether an event of this kind can have this subject.
    pub fn fits(self, subject: &Subject) -> bool {
        match self.row().about {
            About::One(entity) => subject.entity == entity,
            About::Any => true,
        }
    }

    /// The entities that a payload names and that must exist. Agents are named before their first command.
    pub fn names(self, payload: &Map<String, Value>) -> Vec<Subject> {
        let mut named = self.mentions(payload);
        named.retain(|subject| subject.entity != EntityType::Agent);
        named
    }

    /// The entities that a payload names.
    pub fn mentions(self, payload: &Map<String, Value>) -> Vec<Subject> {
        let id = |entity, value: &Value| Some(Subject::new(entity, EntityId::parse(value.as_str()?).ok()?));
        let mut named = Vec::new();
        for field in self.row().fields {
            match (field.is, payload.get(field.name)) {
                (Is::Id(entity), Some(value)) => named.extend(id(entity, value)),
                (Is::Ids(entity), Some(Value::Array(list))) => {
                    named.extend(list.iter().filter_map(|value| id(entity, value)));
                }
                (Is::Subject, Some(Value::String(text))) => named.extend(Subject::parse(text)),
                _ => {}
            }
        }
        named
    }

    /// Checks the members that this kind's row names.
    pub fn check_payload(self, payload: &Map<String, Value>) -> Result<()> {
        for field in self.row().fields {
            match payload.get(field.name) {
                None if field.required => {
                    return Err(Error::usage(format!("{self} needs payload.{}: {}", field.name, field.is.wants())));
                }
                Some(value) if !field.is.holds(value) => {
                    return Err(Error::usage(format!("{self}: payload.{} must be {}", field.name, field.is.wants())));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Is {
    fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Is::Text, Value::String(s)) => !s.trim().is_empty(),
            // More is not a whole number any more in the canonical form.
            (Is::Count, Value::Number(n)) => n.as_u64().is_some_and(|n| n < 1 << 53),
            (Is::Bool, Value::Bool(_)) => true,
            (Is::Id(_), Value::String(s)) => EntityId::parse(s).is_ok(),
            (Is::Subject, Value::String(s)) => Subject::parse(s).is_ok(),
            (Is::OneOf(names), Value::String(s)) => names.contains(&s.as_str()),
            (Is::Actor, Value::String(s)) => Actor::parse(s).is_ok(),
            (Is::Texts, Value::Array(list)) => list.iter().all(Value::is_string),
            (Is::Ids(entity), Value::Array(list)) => list.iter().all(|id| Is::Id(entity).holds(id)),
            (Is::Object, Value::Object(_)) => true,
            (Is::Time, Value::String(s)) => Timestamp::parse(s).is_some(),
            _ => false,
        }
    }

    /// In words, for an error and for the manual.
    pub fn wants(self) -> String {
        match self {
            Is::Text => "a text that is not empty".to_owned(),
            Is::Count => "a whole number, 0 or more".to_owned(),
            Is::Bool => "true or false".to_owned(),
            Is::Id(entity) => format!("the id of {}", entity.with_article()),
            Is::Subject => "a subject, TYPE:ID".to_owned(),
            Is::OneOf(names) => format!("one of {}", names.join(", ")),
            Is::Actor => "an actor, KIND:NAME".to_owned(),
            Is::Texts => "a list of texts".to_owned(),
            Is::Ids(entity) => format!("a list of ids of {}", entity.plural()),
            Is::Object => "a JSON object".to_owned(),
            Is::Time => "a time, YYYY-MM-DDTHH:MM:SSZ".to_owned(),
        }
    }
}

/// Whether the policy fills in members of this name, of any kind.
pub fn is_filled_in(member: &str) -> bool {
    TABLE.iter().flat_map(|row| row.fields).any(|field| field.name == member && field.said == Said::ByPolicy)
}

/// Members that tell a reader what an event says, the best first. They go by name and not by kind, so
/// that an event of a kind that this version does not know has a headline, too.
const HEADLINES: &[&str] = &["title", "summary", "reason", "rationale", "text", "last_action", "goal"];

/// The first short text that a payload offers to a reader.
pub fn headline(payload: &Map<String, Value>) -> Option<String> {
    HEADLINES
        .iter()
        .find_map(|name| payload.get(*name)?.as_str())
        .map(|line| text::cut(line, crate::base::limits::SUMMARY_MAX_CHARS))
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

    /// The kinds whose rows fit, to be compared with a list that is written by hand, apart from the table.
    fn kinds(fits: impl Fn(&Row) -> bool) -> Vec<Kind> {
        TABLE.iter().filter(|row| fits(row)).map(|row| row.kind).collect()
    }

    fn field(row: &Row, name: &str) -> Field {
        let found = row.fields.iter().find(|field| field.name == name);
        *found.unwrap_or_else(|| panic!("{} has no field {name}", row.kind))
    }

    #[test]
    fn operators_alone_decide_resume_and_hold_projects() {
        let operators = [
            Kind::SystemResumed,
            Kind::RequirementRejected,
            Kind::DecisionApproved,
            Kind::DecisionRejected,
            Kind::ProjectPaused,
            Kind::ProjectResumed,
            Kind::ProjectArchived,
        ];
        assert_eq!(kinds(|row| row.by == By::Operator), operators);
    }

    #[test]
    fn agents_do_not_say_what_the_toolkit_finds() {
        let found = [
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
        assert_eq!(kinds(|row| row.by == By::NotAgents), found);
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
        assert_eq!(kinds(|row| row.leaving == Leaving::Archived), [Kind::SessionEnded]);
        assert_eq!(kinds(|row| row.leaving == Leaving::Void), [Kind::EmergencyStopIssued]);
        assert_eq!(kinds(|row| row.leaving > Leaving::Refused && row.starts != Starts::Nothing), []);
    }

    #[test]
    fn nothing_that_starts_is_an_end() {
        assert_eq!(kinds(|row| row.ending != Ending::NoEnd && row.starts != Starts::Nothing), []);
    }

    #[test]
    fn a_link_names_a_field_of_its_row() {
        for row in TABLE {
            let Some(link) = row.moves else { continue };
            // The root of an agent is the branch that has its name.
            let named = if link.member == "to" { EntityType::Agent } else { link.entity };
            assert_eq!(field(row, link.member).is, Is::Id(named), "{}", row.kind);
            assert_ne!(row.about, About::One(link.entity), "{} moves its own subject twice", row.kind);
        }
    }

    #[test]
    fn a_cause_names_a_field_of_its_row() {
        for row in TABLE {
            if let Cause::Named(entity, member) = row.cause {
                assert_eq!(field(row, member).is, Is::Id(entity), "{}", row.kind);
            }
        }
    }

    #[test]
    fn whatever_names_a_project_opens_it() {
        let names = |row: &Row| row.fields.iter().any(|field| field.is == Is::Id(EntityType::Project));
        assert_eq!(kinds(|row| row.opens == Opens::Named("project_id")), kinds(names));
        assert!(kinds(|row| row.opens == Opens::Main).into_iter().all(|kind| kind.row().about == PROJECT));
    }

    #[test]
    fn whatever_moves_an_agent_speaks_for_it_and_needs_it_active() {
        let moves_agent = |row: &Row| row.moves.is_some_and(|link| link.entity == EntityType::Agent);
        let needs_active = |row: &Row| row.moves.is_some_and(|link| link.along == Along::MustBeActive);
        assert_eq!(kinds(moves_agent), kinds(|row| row.speaks_for == SpeaksFor::Linked));
        assert_eq!(kinds(moves_agent), kinds(needs_active));
        for row in TABLE {
            match row.speaks_for {
                SpeaksFor::Subject => assert_eq!(row.about, AGENT, "{}", row.kind),
                // Its subject has the fact since the event that made it.
                SpeaksFor::Owner(member) => {
                    let made = kinds(|other| other.about == row.about)[0].row();
                    assert_eq!(field(made, member).is, Is::Id(EntityType::Agent), "{}", row.kind);
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
    fn what_the_author_does_not_say_is_optional() {
        for row in TABLE {
            for field in row.fields.iter().filter(|field| field.said != Said::ByAuthor) {
                assert!(!field.required, "{}.{}", row.kind, field.name);
            }
        }
        assert!(is_filled_in("target_hash") && is_filled_in("anchor_id") && !is_filled_in("title"));
    }

    #[test]
    fn reserved_rows_leave_the_other_columns_alone() {
        for row in TABLE.iter().filter(|row| row.reserved) {
            let plain = reserved(row.kind, row.fields, row.meaning);
            let plain = plain.side_effect(row.side_effect);
            assert_eq!(format!("{row:?}"), format!("{plain:?}"));
        }
    }

    #[test]
    fn a_headline_is_a_member_that_can_be_read() {
        for name in HEADLINES {
            let mut fields = TABLE.iter().flat_map(|row| row.fields).filter(|field| field.name == *name).peekable();
            assert!(fields.peek().is_some(), "no kind has a field {name}");
            assert!(fields.all(|field| matches!(field.is, Is::Text | Is::OneOf(_))), "{name}");
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
    }
}
