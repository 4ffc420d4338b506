//! The facts of entities, as one table: which event sets which fact, and to what.

use serde_json::{Value, json};

use super::Entity;
use super::duty::{self, DutySign};
use crate::base::{Digest, EntityType, Timestamp, limits, text};
use crate::event::kind::SIGNED_BY;
use crate::event::{Event, Kind};

/// Where a fact's value comes from.
enum FactSource {
    /// A member of the payload; without it the fact is kept.
    Payload(&'static str),
    /// A member of the payload; without it the fact is removed.
    PayloadOrRemove(&'static str),
    /// A member of the payload; without it the fact is kept if the same holder gets the task again, else removed.
    OfClaim(&'static str),
    /// The fact is removed.
    Remove,
    /// The list of past holders with the current holder added.
    PastHolders,
    /// The holder from which the task is taken, if this member of the payload says why; kept if the same holder gets the
    /// task again, else removed.
    TakenFrom(&'static str),
    /// The steps in the payload; one that was there before keeps its mark.
    Steps,
    /// The steps, with the mark of one of them changed.
    MarkedStep,
    /// The steps; if this member of the payload says why they are not needed, those that are open are skipped.
    SkippedSteps(&'static str),
    /// A digest of the payload and of the previous digest.
    Content,
    /// The same, if the payload has one of these members.
    ContentIf(&'static [&'static str]),
    /// The event's time.
    Time,
    /// An earlier time in a member of the payload, else the event's time.
    EarlierTime(&'static str),
    /// When a sign of life was given, unless the fact is later; see `sign_time`.
    LatestSign,
    /// The same, if a member of the payload has this value.
    LatestSignIf(&'static str, &'static str),
    /// The same, unless the deep work only went on under another declaration, or was past its time.
    LatestSignIfOver,
    /// When something was declared; see `sign_time`.
    SignTime,
    /// The same, if a member of the payload has this value.
    SignTimeIf(&'static str, &'static str),
    /// A member of the payload of the sign of life from which this other fact has its time.
    PayloadOfLatest(&'static str, &'static str),
    /// The later of the fact and a time in a member of the payload.
    LatestTime(&'static str),
    /// The file of the event, added to the latest files of the same sort, each with the time of its sign of life.
    Files,
    /// The time of the last file that this event's file displaces from that list.
    FilesFloor(&'static str),
    /// The fact is removed if the agent itself recorded the event, and so got a reply.
    RemoveIfReplied,
    /// The event's time plus the seconds in a member of the payload.
    TimePlusSeconds(&'static str),
    /// The same, unless the fact is already earlier.
    AtMostTimePlusSeconds(&'static str),
    /// The previous value of another fact.
    ValueOf(&'static str),
    /// When it was declared plus its minutes, if a member of the payload has this value.
    SignTimePlusMinutesIf(&'static str, &'static str),
    /// The fact plus the event's minutes.
    PlusMinutes,
    /// When it ended, unless the fact is already earlier; see `sign_time`.
    AtMostSignTime,
    /// The fact plus a member of the payload.
    Plus(&'static str),
    /// The signs on which the duty to write an introspection depends, with this one added.
    DutySigns,
    /// That duty; see `duty`.
    Duty,
    /// Since when it is broken, if it is.
    DutyBrokenAt,
    /// The event's actor.
    Actor,
    /// The event's subject.
    EventSubject,
    /// The event's id.
    EventId,
    /// The event's id, if the payload has this member.
    EventIdIf(&'static str),
    /// The event's id, unless the payload has this member.
    EventIdUnless(&'static str),
    /// The id of the event's subject.
    SubjectId,
    /// A counter that is reset by this event.
    Zero,
    /// The fact plus one.
    Increment,
    Null,
    /// The first line of a member of the payload, cut to a short length.
    FirstLine(&'static str),
    /// The ids of the last few events, with this event's id added.
    LastIds,
    /// The same, if the payload has this member.
    LastIdsIf(&'static str),
    /// The fact plus one, if the payload has this member.
    IncrementIf(&'static str),
    /// The event's id, if the payload has this member; otherwise the fact is kept if the same holder gets the task again,
    /// else removed.
    EventIdOfClaim(&'static str),
}

use FactSource::*;

/// The member and the fact with the steps of a task.
pub(super) const STEPS: &str = "steps";

/// The order of rows is the order of facts in a projection. A fact whose name starts with `_` is internal and not part of
/// the projection.
const FACTS: &[(EntityType, Kind, &str, FactSource)] = &[
    (EntityType::System, Kind::VaultInitialized, "running_since", Time),
    (EntityType::System, Kind::SystemResumed, "running_since", Time),
    (EntityType::System, Kind::EmergencyStopIssued, "stopped_at", EarlierTime("raised_at")),
    (EntityType::System, Kind::EmergencyStopIssued, "stopped_by", Actor),
    (EntityType::System, Kind::EmergencyStopIssued, "stop_reason", Payload("reason")),
    (EntityType::Requirement, Kind::RequirementProposed, "title", Payload("title")),
    (EntityType::Requirement, Kind::RequirementProposed, "project_id", Payload("project_id")),
    (EntityType::Requirement, Kind::RequirementProposed, "_proposed_by", Actor),
    (EntityType::Requirement, Kind::RequirementProposed, "content", Content),
    (EntityType::Requirement, Kind::RequirementAnalyzed, "content", Content),
    (EntityType::Requirement, Kind::OscillationDetected, "content", Content),
    (EntityType::Requirement, Kind::OscillationDetected, "blocked_at", Time),
    (EntityType::Requirement, Kind::RequirementAnalyzed, "_analyzed_by", EventId),
    (EntityType::Requirement, Kind::RequirementApproved, "returns", Zero),
    (EntityType::Requirement, Kind::RequirementApproved, "tasks_unmet", Zero),
    (EntityType::Requirement, Kind::RequirementApproved, "_approved_by", EventId),
    (EntityType::Requirement, Kind::RequirementRejected, "reason", Payload("reason")),
    (EntityType::Decision, Kind::DecisionRequested, "kind", Payload("kind")),
    (EntityType::Decision, Kind::DecisionRequested, "target", Payload("target")),
    (EntityType::Decision, Kind::DecisionRequested, "summary", Payload("summary")),
    (EntityType::Decision, Kind::DecisionRequested, "options", Payload("options")),
    (EntityType::Decision, Kind::DecisionRequested, "change", Payload("change")),
    (EntityType::Decision, Kind::DecisionRequested, "target_hash", Payload("target_hash")),
    (EntityType::Decision, Kind::DecisionRequested, "requested_at", Time),
    (EntityType::Decision, Kind::DecisionRequested, "_requested_by", Actor),
    (EntityType::Decision, Kind::ApprovalTimedOut, "timed_out_at", EarlierTime("due_at")),
    (EntityType::Decision, Kind::DecisionApproved, "chosen_option", Payload("chosen_option")),
    (EntityType::Decision, Kind::DecisionApproved, "rationale", Payload("rationale")),
    (EntityType::Decision, Kind::DecisionApproved, "decided_at", Time),
    (EntityType::Decision, Kind::DecisionApproved, "decided_by", Actor),
    (EntityType::Decision, Kind::DecisionApproved, "signed_by", Payload(SIGNED_BY)),
    (EntityType::Decision, Kind::DecisionRejected, "rationale", Payload("rationale")),
    (EntityType::Decision, Kind::DecisionRejected, "decided_at", Time),
    (EntityType::Decision, Kind::DecisionRejected, "decided_by", Actor),
    (EntityType::Decision, Kind::DecisionRejected, "signed_by", Payload(SIGNED_BY)),
    (EntityType::Task, Kind::TaskProposed, "requirement_id", Payload("requirement_id")),
    (EntityType::Task, Kind::TaskProposed, "project_id", Payload("project_id")),
    (EntityType::Task, Kind::TaskProposed, "title", Payload("title")),
    (EntityType::Task, Kind::TaskEdited, "title", Payload("title")),
    (EntityType::Task, Kind::TaskProposed, "description", Payload("description")),
    (EntityType::Task, Kind::TaskEdited, "description", Payload("description")),
    (EntityType::Task, Kind::TaskEdited, "_described_by", EventIdIf("description")),
    (EntityType::Task, Kind::TaskProposed, STEPS, Steps),
    (EntityType::Task, Kind::TaskEdited, STEPS, Steps),
    (EntityType::Task, Kind::StepMarked, STEPS, MarkedStep),
    (EntityType::Task, Kind::TaskSucceeded, STEPS, SkippedSteps("skipped")),
    (EntityType::Task, Kind::StepMarked, "_marked_by", EventId),
    (EntityType::Task, Kind::TaskProposed, "priority", Payload("priority")),
    (EntityType::Task, Kind::TaskEdited, "priority", Payload("priority")),
    (EntityType::Task, Kind::TaskEdited, "edited_at", Time),
    (EntityType::Task, Kind::TaskEdited, "edited_because", Payload("reason")),
    (EntityType::Task, Kind::TaskEdited, "_edited_by", EventId),
    (EntityType::Task, Kind::TaskNoted, "note", Payload("text")),
    (EntityType::Task, Kind::TaskNoted, "_noted_by", EventId),
    (EntityType::Task, Kind::TaskNoted, "_notes", LastIds),
    (EntityType::Task, Kind::TaskNoted, "_note_count", Increment),
    (EntityType::Task, Kind::TaskAssigned, "_notes", LastIdsIf("handoff")),
    (EntityType::Task, Kind::TaskAssigned, "_note_count", IncrementIf("handoff")),
    (EntityType::Task, Kind::TaskAssigned, "_handoff_by", EventIdOfClaim("handoff")),
    (EntityType::Task, Kind::TaskProposed, "_proposed_by", Actor),
    (EntityType::Task, Kind::TaskProposed, "after", Payload("after")),
    (EntityType::Task, Kind::TaskEdited, "after", Payload("after")),
    (EntityType::Task, Kind::TaskProposed, "destructive", Payload("destructive")),
    (EntityType::Task, Kind::TaskProposed, "max_retries", Payload("max_retries")),
    (EntityType::Task, Kind::TaskAssigned, "max_retries", Payload("max_retries")),
    (EntityType::Task, Kind::TaskProposed, "rework_of", Payload("rework_of")),
    (EntityType::Task, Kind::TaskProposed, "rework_reason", Payload("reason")),
    (EntityType::Task, Kind::TaskProposed, "command_hash", Payload("command_hash")),
    (EntityType::Task, Kind::TaskAssigned, "command_hash", Payload("command_hash")),
    (EntityType::Task, Kind::TaskProposed, "_command_by", EventIdIf("command_hash")),
    (EntityType::Task, Kind::TaskAssigned, "_command_by", EventIdIf("command_hash")),
    (EntityType::Task, Kind::CommandChanged, "_command_by", EventId),
    (EntityType::Task, Kind::TaskProposed, "_bound_digest", Payload("bound_digest")),
    (EntityType::Task, Kind::CommandChanged, "_bound_digest", Payload("bound_digest")),
    (EntityType::Task, Kind::CommandChanged, "changed_because", Payload("reason")),
    (EntityType::Task, Kind::RunStarted, "changed_because", Remove),
    (EntityType::Task, Kind::TaskProposed, "job", Payload("job")),
    (EntityType::Task, Kind::TaskAssigned, "job", Payload("job")),
    (EntityType::Task, Kind::TaskProposed, "of_mission", Payload("of_mission")),
    (EntityType::Task, Kind::TaskAssigned, "of_mission", Payload("of_mission")),
    (EntityType::Task, Kind::TaskProposed, "_mission_step", Payload("mission_step")),
    (EntityType::Task, Kind::TaskAssigned, "_mission_step", Payload("mission_step")),
    (EntityType::Task, Kind::TaskProposed, "_planned", Payload("planned")),
    (EntityType::Task, Kind::TaskProposed, "content", Content),
    (EntityType::Task, Kind::TaskEdited, "content", ContentIf(&["title", "description", "steps"])),
    (EntityType::Task, Kind::CommandChanged, "content", Content),
    (EntityType::Task, Kind::CommandChanged, "holder", Remove),
    (EntityType::Task, Kind::CommandChanged, "lease_seconds", Remove),
    (EntityType::Task, Kind::TaskProposed, "retry_count", Zero),
    (EntityType::Task, Kind::TaskRetrying, "retry_count", Increment),
    (EntityType::Task, Kind::TaskReady, "past_holders", PastHolders),
    (EntityType::Task, Kind::TaskReady, "holder", Remove),
    (EntityType::Task, Kind::TaskReady, "lease_seconds", Remove),
    (EntityType::Task, Kind::TaskAssigned, "past_holders", PastHolders),
    // Before the holder, which it compares.
    (EntityType::Task, Kind::TaskAssigned, "constraint_id", OfClaim("constraint_id")),
    (EntityType::Task, Kind::TaskAssigned, "_taken_from", TakenFrom("reason")),
    (EntityType::Task, Kind::TaskAssigned, "assigned_because", OfClaim("reason")),
    (EntityType::Task, Kind::TaskAssigned, "handoff", OfClaim("handoff")),
    (EntityType::Task, Kind::TaskAssigned, "holder", PayloadOrRemove("holder")),
    (EntityType::Task, Kind::TaskAssigned, "lease_seconds", PayloadOrRemove("lease_seconds")),
    (EntityType::Task, Kind::TaskAssigned, "claimed_at", Time),
    (EntityType::Task, Kind::TaskAssigned, "generation", Increment),
    (EntityType::Task, Kind::TaskAssigned, "_assigned_by", Actor),
    (EntityType::Task, Kind::ClaimRenewed, "claimed_at", Time),
    (EntityType::Task, Kind::ClaimExpired, "past_holders", PastHolders),
    (EntityType::Task, Kind::ClaimExpired, "holder", Remove),
    (EntityType::Task, Kind::ClaimExpired, "lease_seconds", Remove),
    (EntityType::Task, Kind::RunStarted, "last_run_id", SubjectId),
    (EntityType::Task, Kind::TaskFailed, "error_class", Payload("error_class")),
    (EntityType::Task, Kind::TaskFailed, "failure", Payload("reason")),
    (EntityType::Task, Kind::TaskFailed, "_failed_by", EventId),
    (EntityType::Task, Kind::TaskRetrying, "_failed_by", Remove),
    (EntityType::Task, Kind::TaskFailed, "_failed_actor", Actor),
    (EntityType::Task, Kind::TaskRetrying, "_failed_actor", Remove),
    (EntityType::Task, Kind::TaskSucceeded, "succeeded_at", Time),
    (EntityType::Task, Kind::TaskSucceeded, "_succeeded_by", Actor),
    (EntityType::Task, Kind::TaskAborted, "aborted_at", Time),
    (EntityType::Task, Kind::TaskAborted, "aborted_by", Actor),
    (EntityType::Task, Kind::TaskAborted, "abort_reason", Payload("reason")),
    (EntityType::Task, Kind::TaskAborted, "_abort_id", EventId),
    (EntityType::Run, Kind::RunStarted, "task_id", Payload("task_id")),
    (EntityType::Run, Kind::RunStarted, "started_at", Time),
    (EntityType::Run, Kind::RunStarted, "last_heartbeat_at", Time),
    (EntityType::Run, Kind::RunStarted, "finished_at", Null),
    (EntityType::Run, Kind::Heartbeat, "last_heartbeat_at", Time),
    (EntityType::Run, Kind::RunStarted, "timeout_seconds", Payload("timeout_seconds")),
    (EntityType::Run, Kind::RunFinished, "finished_at", Time),
    (EntityType::Run, Kind::RunFinished, "success", Payload("success")),
    (EntityType::Run, Kind::RunFinished, "_summary", Payload("summary")),
    (EntityType::Run, Kind::RunFinished, "exit_code", Payload("exit_code")),
    (EntityType::Run, Kind::RunFinished, "prompt_artifact_id", Payload("prompt_artifact_id")),
    (EntityType::Run, Kind::RunFinished, "response_artifact_id", Payload("response_artifact_id")),
    (EntityType::Run, Kind::RunFinished, "token_usage", Payload("token_usage")),
    (EntityType::Run, Kind::RunCrashed, "finished_at", Time),
    (EntityType::Run, Kind::RunCrashed, "reason", Payload("reason")),
    (EntityType::Run, Kind::RunTimedOut, "finished_at", Time),
    (EntityType::Run, Kind::RunTimedOut, "reason", Payload("reason")),
    (EntityType::Artifact, Kind::ArtifactDeclared, "kind", Payload("kind")),
    (EntityType::Artifact, Kind::ArtifactDeclared, "filename", Payload("filename")),
    (EntityType::Artifact, Kind::ArtifactDeclared, "task_id", Payload("task_id")),
    (EntityType::Artifact, Kind::ArtifactMaterialized, "sha256", Payload("sha256")),
    (EntityType::Artifact, Kind::ArtifactMaterialized, "size_bytes", Payload("size_bytes")),
    (EntityType::Artifact, Kind::ArtifactMaterialized, "path", Payload("path")),
    (EntityType::Artifact, Kind::ArtifactInvalidated, "invalid_reason", Payload("reason")),
    (EntityType::Artifact, Kind::ArtifactCorrupted, "corrupted_at", Time),
    (EntityType::Agent, Kind::AgentStarted, "announced", PayloadOrRemove("announced")),
    (EntityType::Agent, Kind::AgentStarted, "started_at", SignTime),
    (EntityType::Agent, Kind::AgentStopped, "_stopped_at", Time),
    (EntityType::Agent, Kind::ActivityLogged, "_files_since", LatestTime("since")),
    // Before the list of files, whose end it needs.
    (EntityType::Agent, Kind::ActivityLogged, "_logs_floor", FilesFloor("_logs")),
    (EntityType::Agent, Kind::ActivityLogged, "_logs", Files),
    (EntityType::Agent, Kind::ActivityLogged, duty::SIGNS, DutySigns),
    (EntityType::Agent, Kind::ActivityLogged, "duty", Duty),
    (EntityType::Agent, Kind::ActivityLogged, "_duty_broken_at", DutyBrokenAt),
    (EntityType::Agent, Kind::ActivityLogged, "last_introspection_at", LatestSignIf("kind", "introspection")),
    (EntityType::Agent, Kind::ActivityLogged, "last_activity_at", LatestSign),
    (EntityType::Agent, Kind::ActivityLogged, "last_activity_id", PayloadOfLatest("heartbeat_id", "last_activity_at")),
    (EntityType::Agent, Kind::ActivityLogged, "_lost_tasks", RemoveIfReplied),
    (EntityType::Agent, Kind::CheckpointRecorded, "_lost_tasks", RemoveIfReplied),
    (EntityType::Agent, Kind::CheckpointRecorded, "_files_since", LatestTime("since")),
    (EntityType::Agent, Kind::CheckpointRecorded, "_checkpoints_floor", FilesFloor("_checkpoints")),
    (EntityType::Agent, Kind::CheckpointRecorded, "_checkpoints", Files),
    (EntityType::Agent, Kind::CheckpointRecorded, "last_checkpoint_at", LatestSign),
    (
        EntityType::Agent,
        Kind::CheckpointRecorded,
        "last_checkpoint_id",
        PayloadOfLatest("heartbeat_id", "last_checkpoint_at"),
    ),
    (EntityType::Agent, Kind::CheckpointRecorded, "last_checkpoint", PayloadOfLatest("text", "last_checkpoint_at")),
    (EntityType::Agent, Kind::AgentWaited, "_waited_at", Time),
    (EntityType::Agent, Kind::RecoveryAttempted, "_tries", Payload("attempt")),
    (EntityType::Agent, Kind::RecoveryAttempted, "_tried_for", Payload("code")),
    (EntityType::Agent, Kind::RecoveryAttempted, "_tried_at", Time),
    (EntityType::Agent, Kind::DeepWorkStarted, "deepwork_id", SubjectId),
    (EntityType::Agent, Kind::DeepWorkStarted, "_quiet_before", ValueOf("_quiet_until")),
    (EntityType::Agent, Kind::DeepWorkStarted, "_quiet_since", SignTimeIf("mode", "strict")),
    (EntityType::Agent, Kind::DeepWorkStarted, "_quiet_until", SignTimePlusMinutesIf("mode", "strict")),
    (EntityType::Agent, Kind::DeepWorkStarted, duty::SIGNS, DutySigns),
    (EntityType::Agent, Kind::DeepWorkStarted, "duty", Duty),
    (EntityType::Agent, Kind::DeepWorkStarted, "_duty_broken_at", DutyBrokenAt),
    (EntityType::Agent, Kind::DeepWorkStarted, "_declared_at", SignTime),
    (EntityType::Agent, Kind::DeepWorkStarted, "_files_since", LatestTime("since")),
    (EntityType::Agent, Kind::DeepWorkStarted, "_declarations_floor", FilesFloor("_declarations")),
    (EntityType::Agent, Kind::DeepWorkStarted, "_declarations", Files),
    (EntityType::Agent, Kind::DeepWorkExtended, "_quiet_until", PlusMinutes),
    (EntityType::Agent, Kind::DeepWorkCompleted, "_quiet_until", AtMostSignTime),
    (EntityType::Agent, Kind::DeepWorkCompleted, "deepwork_id", Remove),
    (EntityType::Agent, Kind::DeepWorkCompleted, "duty", Duty),
    (EntityType::Agent, Kind::DeepWorkCompleted, "last_deepwork_end", LatestSignIfOver),
    (EntityType::Agent, Kind::DeepWorkExpired, "deepwork_id", Remove),
    (EntityType::Agent, Kind::DeepWorkExpired, "duty", Duty),
    (EntityType::DeepWork, Kind::DeepWorkStarted, "agent_id", Payload("agent_id")),
    (EntityType::DeepWork, Kind::DeepWorkStarted, "heartbeat_id", Payload("heartbeat_id")),
    (EntityType::DeepWork, Kind::DeepWorkStarted, "mode", Payload("mode")),
    (EntityType::DeepWork, Kind::DeepWorkStarted, "activity", Payload("activity")),
    (EntityType::DeepWork, Kind::DeepWorkStarted, "minutes", Payload("minutes")),
    (EntityType::DeepWork, Kind::DeepWorkStarted, "started_at", SignTime),
    (EntityType::DeepWork, Kind::DeepWorkStarted, "_file", Payload("file")),
    (EntityType::DeepWork, Kind::DeepWorkStarted, "_found_at", Payload("at")),
    (EntityType::DeepWork, Kind::DeepWorkExtended, "minutes", Plus("minutes")),
    (EntityType::DeepWork, Kind::DeepWorkExtended, "extensions", Increment),
    (EntityType::DeepWork, Kind::DeepWorkCompleted, "ended_at", SignTime),
    (EntityType::DeepWork, Kind::DeepWorkCompleted, "by", Payload("by")),
    (EntityType::DeepWork, Kind::DeepWorkExpired, "ended_at", Time),
    (EntityType::Constraint, Kind::ConstraintApplied, "text", Payload("text")),
    (EntityType::Constraint, Kind::ConstraintApplied, "priority", Payload("priority")),
    (EntityType::Constraint, Kind::ConstraintApplied, "applied_at", Time),
    (EntityType::Mission, Kind::MissionStarted, "goal", PayloadOrRemove("goal")),
    (EntityType::Mission, Kind::MissionStarted, "constraints", PayloadOrRemove("constraints")),
    (EntityType::Mission, Kind::MissionStarted, "requirement_id", PayloadOrRemove("requirement_id")),
    (EntityType::Mission, Kind::MissionStarted, "task_id", PayloadOrRemove("task_id")),
    (EntityType::Mission, Kind::MissionStarted, "logref", PayloadOrRemove("logref")),
    (EntityType::Mission, Kind::MissionStarted, "open_k", PayloadOrRemove("open_k")),
    (EntityType::Mission, Kind::MissionStarted, "last_action", PayloadOrRemove("last_action")),
    (EntityType::Mission, Kind::MissionStarted, "next_action", PayloadOrRemove("next_action")),
    (EntityType::Mission, Kind::MissionStarted, "round", Zero),
    (EntityType::Mission, Kind::MissionStarted, "_started_by", Actor),
    (EntityType::Mission, Kind::MissionStarted, "_last_action_by", EventId),
    (EntityType::Mission, Kind::MissionStarted, "_next_action_by", EventId),
    (EntityType::Mission, Kind::MissionChanged, "_last_action_by", EventIdUnless("keeps_last_action")),
    (EntityType::Mission, Kind::MissionChanged, "_next_action_by", EventIdUnless("keeps_next_action")),
    (EntityType::Mission, Kind::MissionChanged, "goal", PayloadOrRemove("goal")),
    (EntityType::Mission, Kind::MissionChanged, "constraints", PayloadOrRemove("constraints")),
    (EntityType::Mission, Kind::MissionChanged, "requirement_id", PayloadOrRemove("requirement_id")),
    (EntityType::Mission, Kind::MissionChanged, "task_id", PayloadOrRemove("task_id")),
    (EntityType::Mission, Kind::MissionChanged, "logref", PayloadOrRemove("logref")),
    (EntityType::Mission, Kind::MissionChanged, "open_k", PayloadOrRemove("open_k")),
    (EntityType::Mission, Kind::MissionChanged, "last_action", PayloadOrRemove("last_action")),
    (EntityType::Mission, Kind::MissionChanged, "next_action", PayloadOrRemove("next_action")),
    (EntityType::Mission, Kind::MissionRoundBegun, "round", Increment),
    (EntityType::Mission, Kind::MissionRoundBegun, "_round_by", EventId),
    // A job that was fired in this round, and the failure of it that was reported.
    (EntityType::Mission, Kind::MissionRoundBegun, "_tried", Remove),
    (EntityType::Mission, Kind::MissionRoundBegun, "_reported", Remove),
    (EntityType::Mission, Kind::MissionFailureReported, "_reported", Payload("task_id")),
    (EntityType::Mission, Kind::MissionRoundsAdded, "rounds_added", Plus("rounds")),
    // The failure was reported before somebody allowed more rounds.
    (EntityType::Mission, Kind::MissionRoundsAdded, "_reported", ValueOf("task_id")),
    (EntityType::Mission, Kind::MissionRoundsAdded, "ended_at", Remove),
    (EntityType::Mission, Kind::MissionPlanned, "plan", Payload("tasks")),
    (EntityType::Mission, Kind::MissionPlanned, "_plan_digest", Payload("digest")),
    (EntityType::Mission, Kind::MissionPlanned, "_planned_by", EventId),
    (EntityType::Mission, Kind::MissionPassed, "last_action", Payload("last_action")),
    (EntityType::Mission, Kind::MissionPassed, "_last_action_by", EventIdIf("last_action")),
    (EntityType::Mission, Kind::MissionPassed, "next_action", Remove),
    (EntityType::Mission, Kind::MissionPassed, "ended_at", Time),
    (EntityType::Mission, Kind::MissionFailed, "last_action", Payload("last_action")),
    (EntityType::Mission, Kind::MissionFailed, "next_action", Remove),
    (EntityType::Mission, Kind::MissionFailed, "ended_at", Time),
    (EntityType::Mission, Kind::MissionFailed, "_ended_by", Actor),
    (EntityType::Debate, Kind::DebateOpened, "reviewers", Payload("reviewers")),
    (EntityType::Debate, Kind::DebateOpened, "mission_id", Payload("mission_id")),
    (EntityType::Debate, Kind::DebateOpened, "round", Zero),
    (EntityType::Debate, Kind::ReviewRecorded, "round", Increment),
    (EntityType::Debate, Kind::ReviewRecorded, "newest", SubjectId),
    (EntityType::Review, Kind::ReviewRecorded, "debate_id", Payload("debate_id")),
    (EntityType::Review, Kind::ReviewRecorded, "reviewer", Payload("reviewer")),
    (EntityType::Review, Kind::ReviewRecorded, "fails", Payload("fails")),
    (EntityType::Review, Kind::ReviewRecorded, "document_sha256", Payload("document_sha256")),
    (EntityType::Review, Kind::ReviewRecorded, "document", Payload("document")),
    (EntityType::Document, Kind::DocumentAdded, "kind", Payload("kind")),
    (EntityType::Document, Kind::DocumentAdded, "path", Payload("path")),
    (EntityType::Document, Kind::DocumentAdded, "sha256", Payload("sha256")),
    (EntityType::Document, Kind::DocumentAdded, "size_bytes", Payload("size_bytes")),
    (EntityType::Document, Kind::DocumentChanged, "sha256", Payload("sha256")),
    (EntityType::Document, Kind::DocumentChanged, "size_bytes", Payload("size_bytes")),
    (EntityType::Project, Kind::ProjectPaused, "paused_at", Time),
    (EntityType::Project, Kind::ProjectPaused, "paused_by", Actor),
    (EntityType::Project, Kind::ProjectPaused, "pause_reason", Payload("reason")),
    (EntityType::Project, Kind::ProjectPaused, "drained_at", Remove),
    (EntityType::Project, Kind::PauseDrained, "drained_at", Time),
    (EntityType::Project, Kind::ProjectResumed, "_resumed_before", ValueOf("resumed_at")),
    (EntityType::Project, Kind::ProjectResumed, "resumed_at", Time),
    (EntityType::Project, Kind::ProjectResumed, "resume_comment", PayloadOrRemove("comment")),
    (EntityType::Project, Kind::ProjectArchived, "archived_at", Time),
    (EntityType::Project, Kind::ProjectArchived, "archived_by", Actor),
    (EntityType::Project, Kind::ProjectArchived, "archive_reason", Payload("reason")),
    (EntityType::Session, Kind::SessionStarted, "agent_id", Payload("agent_id")),
    (EntityType::Session, Kind::SessionStarted, "project_id", Payload("project_id")),
    (EntityType::Session, Kind::SessionStarted, "started_at", Time),
    (EntityType::Session, Kind::SessionStarted, "expires_at", TimePlusSeconds("ttl_seconds")),
    (EntityType::Session, Kind::SessionRenewed, "expires_at", TimePlusSeconds("ttl_seconds")),
    (EntityType::Session, Kind::SessionRenewed, "_renewed_by", EventId),
    (EntityType::Session, Kind::SessionCut, "expires_at", AtMostTimePlusSeconds("seconds")),
    (EntityType::Session, Kind::SessionEnded, "ended_at", Time),
    (EntityType::Session, Kind::SessionEnded, "end_reason", Payload("reason")),
    (EntityType::Session, Kind::SessionEnded, "summary", Payload("summary")),
    (EntityType::Session, Kind::SessionExpired, "ended_at", Time),
    (EntityType::Branch, Kind::BranchCreated, "persona_id", Payload("persona_id")),
    (EntityType::Branch, Kind::BranchCreated, "branch_type", Payload("branch_type")),
    (EntityType::Branch, Kind::BranchCreated, "label", Payload("label")),
    (EntityType::Branch, Kind::BranchCreated, "task_id", Payload("task_id")),
    (EntityType::Branch, Kind::BranchCreated, "partner_persona_id", Payload("partner_persona_id")),
    (EntityType::Branch, Kind::BranchCreated, "threads", Zero),
    (EntityType::Branch, Kind::BranchCreated, "suspended_at", Time),
    (EntityType::Branch, Kind::BranchCreated, "last_activity", Time),
    (EntityType::Branch, Kind::ThreadOpened, "threads", Increment),
    (EntityType::Branch, Kind::ThreadOpened, "current_thread_id", SubjectId),
    (EntityType::Branch, Kind::ThreadOpened, "last_thread_id", SubjectId),
    (EntityType::Branch, Kind::ThreadOpened, "suspended_at", Remove),
    (EntityType::Branch, Kind::ThreadOpened, "last_activity", Time),
    (EntityType::Branch, Kind::NoteRecorded, "last_activity", Time),
    (EntityType::Branch, Kind::NoteRecorded, "brief_state", FirstLine("text")),
    (EntityType::Branch, Kind::NoteRecorded, "_messages", Increment),
    (EntityType::Branch, Kind::ThreadCompleted, "current_thread_id", Remove),
    (EntityType::Branch, Kind::ThreadCompleted, "suspended_at", Time),
    (EntityType::Branch, Kind::ThreadCompleted, "last_activity", Time),
    (EntityType::Branch, Kind::ThreadCompleted, "brief_state", FirstLine("summary")),
    (EntityType::Branch, Kind::ThreadAborted, "current_thread_id", Remove),
    (EntityType::Branch, Kind::ThreadAborted, "suspended_at", Time),
    (EntityType::Branch, Kind::ThreadAborted, "last_activity", Time),
    (EntityType::Branch, Kind::ThreadSummarized, "brief_state", FirstLine("summary")),
    (EntityType::Branch, Kind::BranchCompleted, "suspended_at", Remove),
    (EntityType::Branch, Kind::BranchCompleted, "completed_at", Time),
    (EntityType::Branch, Kind::BranchCompleted, "last_activity", Time),
    (EntityType::Branch, Kind::MessageSent, "unread", Increment),
    (EntityType::Thread, Kind::ThreadOpened, "branch_id", Payload("branch_id")),
    (EntityType::Thread, Kind::ThreadOpened, "anchor_id", Payload("anchor_id")),
    (EntityType::Thread, Kind::ThreadOpened, "messages", Zero),
    (EntityType::Thread, Kind::ThreadOpened, "opened_at", Time),
    (EntityType::Thread, Kind::NoteRecorded, "messages", Increment),
    (EntityType::Thread, Kind::NoteRecorded, "tail", LastIds),
    (EntityType::Thread, Kind::ThreadCompleted, "summary", Payload("summary")),
    (EntityType::Thread, Kind::ThreadCompleted, "closed_at", Time),
    (EntityType::Thread, Kind::ThreadCompleted, "_closed_by", EventId),
    (EntityType::Thread, Kind::ThreadAborted, "reason", Payload("reason")),
    (EntityType::Thread, Kind::ThreadAborted, "closed_at", Time),
    (EntityType::Thread, Kind::ThreadAborted, "_closed_by", EventId),
    (EntityType::Thread, Kind::ThreadAborted, "_interrupted_by", Payload("message_id")),
    (EntityType::Thread, Kind::ThreadSummarized, "summary", Payload("summary")),
    (EntityType::Message, Kind::MessageSent, "to", Payload("to")),
    (EntityType::Message, Kind::MessageSent, "from", Actor),
    (EntityType::Message, Kind::MessageSent, "text", Payload("text")),
    (EntityType::Message, Kind::MessageSent, "sent_at", Time),
    (EntityType::Message, Kind::MessageRead, "read_at", Time),
    (EntityType::Knowledge, Kind::KnowledgeRecorded, "persona_id", Payload("persona_id")),
    (EntityType::Knowledge, Kind::KnowledgeRecorded, "title", Payload("title")),
    (EntityType::Knowledge, Kind::KnowledgeRecorded, "text", FirstLine("text")),
    (EntityType::Knowledge, Kind::KnowledgeRecorded, "recorded_at", Time),
    (EntityType::Knowledge, Kind::KnowledgeRecorded, "revisions", Increment),
    (EntityType::Knowledge, Kind::KnowledgeRecorded, "_revisions", LastIds),
    (EntityType::Escalation, Kind::EscalationRequired, "about", EventSubject),
    (EntityType::Escalation, Kind::EscalationRequired, "reason", Payload("reason")),
    (EntityType::Escalation, Kind::EscalationRequired, "code", Payload("code")),
    (EntityType::Escalation, Kind::EscalationRequired, "raised_at", Time),
    (EntityType::Escalation, Kind::EscalationRequired, "raised_by", Actor),
    (EntityType::Escalation, Kind::EscalationAcknowledged, "acknowledged_at", Time),
    (EntityType::Escalation, Kind::EscalationAcknowledged, "acknowledged_by", Actor),
    (EntityType::Escalation, Kind::EscalationAcknowledged, "acknowledged_because", Payload("reason")),
    (EntityType::Escalation, Kind::EscalationClosed, "closed_at", Time),
    (EntityType::Escalation, Kind::EscalationClosed, "closed_because", Payload("reason")),
];

/// Whether some event sets this fact for this type of entity.
#[cfg(test)]
pub(super) fn is_written(entity: EntityType, fact: &str) -> bool {
    FACTS.iter().any(|row| row.0 == entity && row.2 == fact)
}

/// Updates the facts of an entity that an event moved.
pub fn gather(entity: &mut Entity, kind: Kind, event: &Event) {
    let is_superseded = is_of_superseded_work(entity, kind, event);
    let rows = FACTS.iter().filter(|row| row.0 == entity.subject.entity && row.1 == kind);
    for (_, _, name, from) in rows.filter(|row| !is_superseded || OF_SUPERSEDED_WORK.contains(&row.2)) {
        match value(entity, name, from, event) {
            FactChange::Set(value) => drop(entity.facts.insert((*name).to_owned(), value)),
            FactChange::Remove => drop(entity.facts.remove(*name)),
            FactChange::Keep => {}
        }
    }
}

/// Whether an event is about a deep work of an agent that is not its current one: it was superseded before its file was
/// found.
fn is_of_superseded_work(agent: &Entity, kind: Kind, event: &Event) -> bool {
    let Some(current) = agent.text("deepwork_id").filter(|_| agent.subject.entity == EntityType::Agent) else {
        return false;
    };
    matches!(kind, Kind::DeepWorkStarted | Kind::DeepWorkCompleted | Kind::DeepWorkExpired)
        && event.subject.split_once(':').is_none_or(|(_, id)| id != current)
}

/// The facts of an agent that such an event concerns.
const OF_SUPERSEDED_WORK: &[&str] =
    &[duty::SIGNS, "duty", "_duty_broken_at", "_files_since", "_declarations_floor", "_declarations"];

/// What a row does to its fact.
enum FactChange {
    Set(Value),
    Remove,
    Keep,
}

fn value(entity: &Entity, name: &str, from: &FactSource, event: &Event) -> FactChange {
    FactChange::Set(match from {
        Payload(member) => match event.payload.get(*member) {
            Some(value) => short(value),
            None => return FactChange::Keep,
        },
        PayloadOrRemove(member) => match event.payload.get(*member) {
            Some(value) => short(value),
            None => return FactChange::Remove,
        },
        OfClaim(member) => match event.payload.get(*member) {
            Some(value) => short(value),
            None if event.payload.get("holder") == entity.facts.get("holder") => return FactChange::Keep,
            None => return FactChange::Remove,
        },
        Remove => return FactChange::Remove,
        PastHolders => match past_holders(entity, event) {
            Some(holders) => holders,
            None => return FactChange::Keep,
        },
        TakenFrom(_) if event.payload.get("holder") == entity.facts.get("holder") => return FactChange::Keep,
        TakenFrom(member) => match entity.text("holder").filter(|_| event.payload.contains_key(*member)) {
            Some(holder) => holder.into(),
            None => return FactChange::Remove,
        },
        Steps => match event.payload.get(STEPS).and_then(Value::as_array) {
            Some(steps) if steps.is_empty() => return FactChange::Remove,
            Some(steps) => steps.iter().filter_map(Value::as_str).map(|text| kept_step(entity, text)).collect(),
            None => return FactChange::Keep,
        },
        MarkedStep => match with_mark(entity, event) {
            Some(steps) => steps,
            None => return FactChange::Keep,
        },
        SkippedSteps(member) => match with_skipped(entity, event.payload.get(*member)) {
            Some(steps) => steps,
            None => return FactChange::Keep,
        },
        Content => content(entity, event).to_string().into(),
        ContentIf(members) if !members.iter().any(|member| event.payload.contains_key(*member)) => {
            return FactChange::Keep;
        }
        ContentIf(_) => content(entity, event).to_string().into(),
        Time => event.timestamp.to_string().into(),
        EarlierTime(member) => {
            let named = event.payload.get(*member).and_then(Value::as_str).and_then(Timestamp::parse);
            named.map_or(event.timestamp, |named| named.min(event.timestamp)).to_string().into()
        }
        LatestSign => latest(entity, name, sign_time(event)),
        LatestSignIf(member, value) if !has_text(event, member, value) => return FactChange::Keep,
        LatestSignIf(..) => latest(entity, name, sign_time(event)),
        LatestSignIfOver if has_text(event, "by", "declaration") || has_text(event, "by", "expired_file") => {
            return FactChange::Keep;
        }
        LatestSignIfOver => latest(entity, name, sign_time(event)),
        SignTime => sign_time(event).to_string().into(),
        SignTimeIf(member, value) if !has_text(event, member, value) => return FactChange::Keep,
        SignTimeIf(..) => sign_time(event).to_string().into(),
        PayloadOfLatest(member, time) => match event.payload.get(*member) {
            Some(value) if entity.time(time) == Some(sign_time(event)) => short(value),
            _ => return FactChange::Keep,
        },
        LatestTime(member) => match event.payload.get(*member).and_then(Value::as_str).and_then(Timestamp::parse) {
            Some(time) => latest(entity, name, time),
            None => return FactChange::Keep,
        },
        Files => match event.payload.get("file").and_then(Value::as_str) {
            Some(file) => {
                let entry = format!("{} {file}", sign_time(event));
                super::branch::append_capped(entity.facts.get(name), &entry, limits::FILES_KNOWN_MAX_COUNT)
            }
            None => return FactChange::Keep,
        },
        FilesFloor(list) => match displaced_file(entity, list).filter(|_| event.payload.contains_key("file")) {
            Some(time) => latest(entity, name, time),
            None => return FactChange::Keep,
        },
        RemoveIfReplied if is_found_in_a_file(event) => return FactChange::Keep,
        RemoveIfReplied => return FactChange::Remove,
        ValueOf(fact) => match entity.facts.get(*fact) {
            Some(value) => value.clone(),
            None => return FactChange::Remove,
        },
        SignTimePlusMinutesIf(member, value) if !has_text(event, member, value) => return FactChange::Keep,
        SignTimePlusMinutesIf(..) => plus_minutes(sign_time(event), event).to_string().into(),
        PlusMinutes => match entity.time(name) {
            Some(before) => plus_minutes(before, event).to_string().into(),
            None => return FactChange::Keep,
        },
        AtMostSignTime => match entity.time(name) {
            Some(before) => before.min(sign_time(event)).to_string().into(),
            None => return FactChange::Keep,
        },
        TimePlusSeconds(member) => after(event, member).to_string().into(),
        AtMostTimePlusSeconds(member) => match entity.time(name) {
            Some(before) => before.min(after(event, member)).to_string().into(),
            None => after(event, member).to_string().into(),
        },
        Plus(member) => (entity.count(name) + event.payload.get(*member).and_then(Value::as_u64).unwrap_or(0)).into(),
        DutySigns => match duty_sign(event) {
            Some(sign) => duty::with_sign(entity, sign_time(event), sign),
            None => return FactChange::Keep,
        },
        Duty => match duty::of_agent(entity) {
            Some(duty) => duty.as_str().into(),
            None => return FactChange::Remove,
        },
        DutyBrokenAt => match duty::of_agent(entity).and_then(duty::Duty::broken_at) {
            // What is broken stays so from then on, even if the log that broke it is no longer remembered.
            Some(at) => entity.time(name).map_or(at, |known| known.min(at)).to_string().into(),
            None => return FactChange::Remove,
        },
        Actor => event.actor.clone().into(),
        EventSubject => event.subject.clone().into(),
        EventId => event.id.to_string().into(),
        EventIdIf(member) => match event.payload.contains_key(*member) {
            true => event.id.to_string().into(),
            false => return FactChange::Keep,
        },
        EventIdUnless(member) => match event.payload.contains_key(*member) {
            true => return FactChange::Keep,
            false => event.id.to_string().into(),
        },
        SubjectId => event.subject.split_once(':').map_or(Value::Null, |(_, id)| id.into()),
        Zero => 0.into(),
        Increment => (entity.count(name) + 1).into(),
        Null => Value::Null,
        FirstLine(member) => match event.payload.get(*member).and_then(Value::as_str) {
            Some(text) => super::branch::brief(text).into(),
            None => return FactChange::Keep,
        },
        LastIdsIf(member) | IncrementIf(member) if !event.payload.contains_key(*member) => return FactChange::Keep,
        IncrementIf(_) => (entity.count(name) + 1).into(),
        EventIdOfClaim(member) => match event.payload.contains_key(*member) {
            true => event.id.to_string().into(),
            false if event.payload.get("holder") == entity.facts.get("holder") => return FactChange::Keep,
            false => return FactChange::Remove,
        },
        LastIds | LastIdsIf(_) => {
            super::branch::append_capped(entity.facts.get(name), &event.id.to_string(), limits::TAIL_MAX_COUNT)
        }
    })
}

fn has_text(event: &Event, member: &str, value: &str) -> bool {
    event.payload.get(member).and_then(Value::as_str) == Some(value)
}

/// Whether the watchdog found a sign of life in a file, so that the agent got no reply.
fn is_found_in_a_file(event: &Event) -> bool {
    event.payload.contains_key("at")
}

/// When a sign of life was given: for one that was found in a file, the time in the file's name, which can be slightly
/// ahead of the event; else the event's time.
fn sign_time(event: &Event) -> Timestamp {
    let at = event.payload.get("at").and_then(Value::as_str).and_then(Timestamp::parse);
    let latest = Timestamp(event.timestamp.0.saturating_add(limits::ID_AHEAD_MAX_SECONDS));
    at.map_or(event.timestamp, |at| at.min(latest))
}

/// The later of a fact and a time.
fn latest(entity: &Entity, name: &str, time: Timestamp) -> Value {
    entity.time(name).map_or(time, |known| known.max(time)).to_string().into()
}

/// The time of the file that the next one displaces from a full list.
fn displaced_file(entity: &Entity, list: &str) -> Option<Timestamp> {
    let files = entity.facts.get(list)?.as_array()?;
    let first = files.first().filter(|_| files.len() >= limits::FILES_KNOWN_MAX_COUNT)?;
    Timestamp::parse(first.as_str()?.split(' ').next()?)
}

/// The event's time plus the seconds in a member of its payload.
fn after(event: &Event, member: &str) -> Timestamp {
    let seconds = event.payload.get(member).and_then(Value::as_u64).unwrap_or(0);
    Timestamp(event.timestamp.0.saturating_add_unsigned(seconds))
}

/// A time plus the minutes in an event's payload.
fn plus_minutes(moment: Timestamp, event: &Event) -> Timestamp {
    let minutes = event.payload.get("minutes").and_then(Value::as_u64).unwrap_or(0);
    Timestamp(moment.0.saturating_add_unsigned(minutes.saturating_mul(60)))
}

/// A string cut to the maximum length of a fact; the event has the whole text.
fn short(value: &Value) -> Value {
    match value {
        Value::String(long) => text::cut(long, limits::FACT_MAX_CHARS).into(),
        value => value.clone(),
    }
}

/// The past holders of a task, latest last; none if there is no one to add, for example when the same holder gets it
/// again.
fn past_holders(task: &Entity, event: &Event) -> Option<Value> {
    let holder = Value::from(task.text("holder")?);
    if event.payload.get("holder") == Some(&holder) {
        return None;
    }
    let mut holders = task.facts.get("past_holders").and_then(Value::as_array).cloned().unwrap_or_default();
    holders.retain(|other| *other != holder);
    holders.push(holder);
    let from = holders.len().saturating_sub(limits::PAST_HOLDERS_MAX_COUNT);
    Some(holders.split_off(from).into())
}

/// A step as a task keeps it: its text, and what it is marked as. A step that was there before keeps its mark.
fn kept_step(task: &Entity, text: &str) -> Value {
    let text = text::cut(text, limits::FACT_MAX_CHARS);
    let known = task.facts.get(STEPS).and_then(Value::as_array).into_iter().flatten();
    let known = known.clone().find(|step| step.get("text").and_then(Value::as_str) == Some(&text));
    known.cloned().unwrap_or_else(|| json!({"text": text, "mark": "open"}))
}

/// The steps of a task with the mark that an event gives one of them; none if it has no such step.
fn with_mark(task: &Entity, event: &Event) -> Option<Value> {
    let mut steps = task.facts.get(STEPS)?.as_array()?.clone();
    let number = event.payload.get("step").and_then(Value::as_u64)?;
    let step = steps.get_mut(usize::try_from(number).ok()?.checked_sub(1)?)?;
    *step = marked(step, event.payload.get("mark")?, event.payload.get("reason"));
    Some(steps.into())
}

/// A step with another mark, and the reason for it if there is one.
fn marked(step: &Value, mark: &Value, reason: Option<&Value>) -> Value {
    let mut marked = json!({"text": step["text"], "mark": mark});
    if let Some(reason) = reason {
        marked["reason"] = short(reason);
    }
    marked
}

/// The steps of a task, the open ones skipped for a reason; none if there is no reason or no such step.
fn with_skipped(task: &Entity, reason: Option<&Value>) -> Option<Value> {
    let steps = task.facts.get(STEPS)?.as_array().filter(|_| reason.is_some())?;
    let is_open = |step: &Value| step["mark"] == "open";
    let skip = |step: &Value| if is_open(step) { marked(step, &"skipped".into(), reason) } else { step.clone() };
    Some(steps.iter().map(skip).collect())
}

/// What an approval is bound to: a digest of everything recorded about the entity's content so far.
fn content(entity: &Entity, event: &Event) -> Digest {
    let payload = serde_jcs::to_string(&event.payload).expect("parsed JSON always has a canonical form");
    Digest::of_bytes(format!("{}{payload}", entity.text("content").unwrap_or_default()).as_bytes())
}

/// What an event says about the duty to write an introspection.
fn duty_sign(event: &Event) -> Option<DutySign> {
    let [log, emergency, introspection] = match (event.event_type.known()?, is_found_in_a_file(event)) {
        (Kind::DeepWorkStarted, _) => return Some(DutySign::Declared),
        (Kind::ActivityLogged, true) => [DutySign::FileLog, DutySign::FileEmergency, DutySign::FileIntrospection],
        (Kind::ActivityLogged, false) => {
            [DutySign::CommandLog, DutySign::CommandEmergency, DutySign::CommandIntrospection]
        }
        _ => return None,
    };
    Some(match event.payload.contains_key("emergency") {
        _ if has_text(event, "kind", "introspection") => introspection,
        true => emergency,
        false => log,
    })
}
