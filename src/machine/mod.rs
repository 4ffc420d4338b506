//! The state machines: one table per entity type with every legal (phase, event) → phase.
//!
//! Anything not listed is illegal. The tables and diagrams in the manual are rendered from these tables.

use crate::base::{EntityType, names};
use crate::event::Kind;

names! {
    /// The phases of all entity types. Which ones a type uses is in its table.
    pub enum Phase {
        /// The entity does not exist yet.
        Absent = "-",
        Running = "Running",
        Stopped = "Stopped",
        Active = "Active",
        Removed = "Removed",
        Proposed = "Proposed",
        Analyzed = "Analyzed",
        Approved = "Approved",
        Rejected = "Rejected",
        Implemented = "Implemented",
        Verified = "Verified",
        Superseded = "Superseded",
        Blocked = "Blocked",
        Requested = "Requested",
        Escalated = "Escalated",
        Ready = "Ready",
        Assigned = "Assigned",
        Succeeded = "Succeeded",
        Failed = "Failed",
        Retrying = "Retrying",
        Aborted = "Aborted",
        Archived = "Archived",
        Finished = "Finished",
        Crashed = "Crashed",
        TimedOut = "TimedOut",
        Declared = "Declared",
        Materialized = "Materialized",
        Validated = "Validated",
        Invalidated = "Invalidated",
        Corrupted = "Corrupted",
        Open = "Open",
        Completed = "Completed",
        Expired = "Expired",
        Passed = "Passed",
        Converged = "Converged",
        Exhausted = "Exhausted",
        Closed = "Closed",
        Recorded = "Recorded",
        Kept = "Kept",
        Paused = "Paused",
        Ended = "Ended",
        Suspended = "Suspended",
        Unread = "Unread",
        Read = "Read",
        Acknowledged = "Acknowledged",
    }
}

/// A legal transition: from a phase, by an event of a kind, to a phase.
pub type Transition = (Phase, Kind, Phase);

use Kind::*;
use Phase::*;

const SYSTEM: &[Transition] = &[
    (Absent, VaultInitialized, Running),
    (Running, EmergencyStopIssued, Stopped),
    (Stopped, SystemResumed, Running),
    (Running, TailQuarantined, Running),
    (Stopped, TailQuarantined, Stopped),
    (Running, TailAdopted, Running),
    (Stopped, TailAdopted, Stopped),
    (Running, VaultRecovered, Running),
    (Stopped, VaultRecovered, Stopped),
    (Running, SettingsChanged, Running),
    (Stopped, SettingsChanged, Stopped),
    (Running, SettingsAdopted, Running),
    (Stopped, SettingsAdopted, Stopped),
    (Running, OperatorKeyAdded, Running),
    (Stopped, OperatorKeyAdded, Stopped),
    (Running, OperatorKeyRemoved, Running),
    (Stopped, OperatorKeyRemoved, Stopped),
    (Running, MachineSuspended, Running),
    (Stopped, MachineSuspended, Stopped),
    (Running, MachineBooted, Running),
    (Stopped, MachineBooted, Stopped),
    (Running, ClockStepped, Running),
    (Stopped, ClockStepped, Stopped),
];

const REQUIREMENT: &[Transition] = &[
    (Absent, RequirementProposed, Proposed),
    (Proposed, RequirementAnalyzed, Analyzed),
    (Proposed, RequirementRejected, Rejected),
    (Analyzed, RequirementAnalyzed, Analyzed),
    (Analyzed, RequirementApproved, Approved),
    (Analyzed, RequirementRejected, Rejected),
    (Approved, RequirementImplemented, Implemented),
    (Approved, RequirementSuperseded, Superseded),
    (Approved, OscillationDetected, Blocked),
    (Implemented, RequirementVerified, Verified),
    (Implemented, OscillationDetected, Blocked),
    (Implemented, TaskProposed, Approved),
    (Blocked, RequirementApproved, Approved),
    (Blocked, RequirementRejected, Rejected),
    (Blocked, RequirementSuperseded, Superseded),
];

const DECISION: &[Transition] = &[
    (Absent, DecisionRequested, Requested),
    (Requested, DecisionApproved, Approved),
    (Requested, DecisionRejected, Rejected),
    (Requested, ApprovalTimedOut, Escalated),
    (Requested, DecisionSuperseded, Superseded),
    (Escalated, DecisionApproved, Approved),
    (Escalated, DecisionRejected, Rejected),
    (Escalated, DecisionSuperseded, Superseded),
    (Approved, DecisionSuperseded, Superseded),
];

const TASK: &[Transition] = &[
    (Absent, TaskProposed, Proposed),
    (Proposed, TaskReady, Ready),
    (Proposed, TaskAborted, Aborted),
    (Proposed, TaskEdited, Proposed),
    (Proposed, TaskNoted, Proposed),
    (Ready, TaskAssigned, Assigned),
    (Ready, TaskAborted, Aborted),
    (Ready, TaskBlocked, Proposed),
    (Ready, TaskEdited, Ready),
    (Ready, TaskNoted, Ready),
    (Assigned, RunStarted, Running),
    (Assigned, ClaimRenewed, Assigned),
    (Assigned, ClaimExpired, Ready),
    (Assigned, TaskAborted, Aborted),
    (Assigned, TaskAssigned, Assigned),
    (Assigned, TaskEdited, Assigned),
    (Assigned, TaskNoted, Assigned),
    (Running, TaskSucceeded, Succeeded),
    (Running, TaskFailed, Failed),
    (Running, TaskAborted, Aborted),
    (Running, CommandChanged, Proposed),
    (Running, TaskAssigned, Assigned),
    (Running, TaskEdited, Running),
    (Running, TaskNoted, Running),
    (Running, StepMarked, Running),
    (Failed, TaskRetrying, Retrying),
    (Failed, TaskAborted, Aborted),
    (Retrying, TaskAssigned, Assigned),
    (Retrying, TaskReady, Ready),
    (Retrying, TaskAborted, Aborted),
    (Succeeded, TaskArchived, Archived),
    (Aborted, TaskArchived, Archived),
];

const RUN: &[Transition] = &[
    (Absent, RunStarted, Running),
    (Running, Heartbeat, Running),
    (Running, RunFinished, Finished),
    (Running, RunCrashed, Crashed),
    (Running, RunTimedOut, TimedOut),
];

const ARTIFACT: &[Transition] = &[
    (Absent, ArtifactDeclared, Declared),
    (Declared, ArtifactMaterialized, Materialized),
    (Materialized, ArtifactValidated, Validated),
    (Materialized, ArtifactInvalidated, Invalidated),
    (Materialized, ArtifactCorrupted, Corrupted),
    (Validated, ArtifactCorrupted, Corrupted),
    (Invalidated, ArtifactCorrupted, Corrupted),
];

const CONSTRAINT: &[Transition] = &[(Absent, ConstraintApplied, Active), (Active, ConstraintRemoved, Removed)];

const AGENT: &[Transition] = &[
    (Absent, AgentStarted, Active),
    (Active, ActivityLogged, Active),
    (Active, CheckpointRecorded, Active),
    (Active, AgentWaited, Active),
    (Active, DeepWorkStarted, Active),
    (Active, DeepWorkExtended, Active),
    (Active, DeepWorkCompleted, Active),
    (Active, DeepWorkExpired, Active),
    (Active, RecoveryAttempted, Active),
    (Active, AgentStopped, Stopped),
    (Stopped, AgentStarted, Active),
];

const DEEPWORK: &[Transition] = &[
    (Absent, DeepWorkStarted, Open),
    (Open, DeepWorkExtended, Open),
    (Open, DeepWorkCompleted, Completed),
    (Open, DeepWorkExpired, Expired),
];

const MISSION: &[Transition] = &[
    (Absent, MissionStarted, Running),
    (Running, MissionChanged, Running),
    (Running, MissionRoundBegun, Running),
    (Running, MissionRoundsAdded, Running),
    (Failed, MissionRoundsAdded, Running),
    (Running, MissionPlanned, Running),
    (Running, MissionFailureReported, Running),
    (Running, MissionPassed, Passed),
    (Running, MissionFailed, Failed),
];

const DEBATE: &[Transition] = &[
    (Absent, DebateOpened, Open),
    (Open, ReviewRecorded, Open),
    (Open, DebateConverged, Converged),
    (Open, DebateExhausted, Exhausted),
    (Open, DebateClosed, Closed),
];

const REVIEW: &[Transition] = &[(Absent, ReviewRecorded, Recorded)];

const DOCUMENT: &[Transition] = &[(Absent, DocumentAdded, Kept), (Kept, DocumentChanged, Kept)];

const PROJECT: &[Transition] = &[
    (Absent, ProjectOpened, Active),
    (Active, ProjectPaused, Paused),
    (Active, ProjectArchived, Archived),
    (Paused, PauseDrained, Paused),
    (Paused, ProjectResumed, Active),
    (Paused, ProjectArchived, Archived),
];

const SESSION: &[Transition] = &[
    (Absent, SessionStarted, Active),
    (Active, SessionRenewed, Active),
    (Active, SessionCut, Active),
    (Active, SessionEnded, Ended),
    (Active, SessionExpired, Expired),
];

/// Threads activate and suspend their branch. The root is suspended while another branch of its persona is active; see
/// `state::branch`.
const BRANCH: &[Transition] = &[
    (Absent, BranchCreated, Suspended),
    (Suspended, ThreadOpened, Active),
    (Active, ThreadCompleted, Suspended),
    (Active, ThreadAborted, Suspended),
    (Suspended, ThreadSummarized, Suspended),
    (Active, ThreadSummarized, Active),
    (Suspended, BranchCompleted, Completed),
    (Active, NoteRecorded, Active),
    (Suspended, NoteRecorded, Suspended),
    (Active, MessageSent, Active),
    (Suspended, MessageSent, Suspended),
    (Active, MessageRead, Active),
    (Suspended, MessageRead, Suspended),
];

const THREAD: &[Transition] = &[
    (Absent, ThreadOpened, Active),
    (Active, NoteRecorded, Active),
    (Active, ThreadCompleted, Completed),
    (Active, ThreadAborted, Aborted),
    (Aborted, ThreadSummarized, Completed),
];

/// A page of knowledge is revised in place.
const KNOWLEDGE: &[Transition] = &[(Absent, KnowledgeRecorded, Recorded), (Recorded, KnowledgeRecorded, Recorded)];

const MESSAGE: &[Transition] = &[(Absent, MessageSent, Unread), (Unread, MessageRead, Read)];

const ESCALATION: &[Transition] = &[
    (Absent, EscalationRequired, Open),
    (Open, EscalationAcknowledged, Acknowledged),
    (Open, EscalationClosed, Closed),
    (Acknowledged, EscalationClosed, Closed),
];

/// The table of an entity type.
pub const fn table(entity: EntityType) -> &'static [Transition] {
    match entity {
        EntityType::System => SYSTEM,
        EntityType::Requirement => REQUIREMENT,
        EntityType::Decision => DECISION,
        EntityType::Task => TASK,
        EntityType::Run => RUN,
        EntityType::Artifact => ARTIFACT,
        EntityType::Constraint => CONSTRAINT,
        EntityType::Agent => AGENT,
        EntityType::DeepWork => DEEPWORK,
        EntityType::Mission => MISSION,
        EntityType::Debate => DEBATE,
        EntityType::Review => REVIEW,
        EntityType::Document => DOCUMENT,
        EntityType::Project => PROJECT,
        EntityType::Session => SESSION,
        EntityType::Branch => BRANCH,
        EntityType::Thread => THREAD,
        EntityType::Message => MESSAGE,
        EntityType::Knowledge => KNOWLEDGE,
        EntityType::Escalation => ESCALATION,
    }
}

/// The phase that an event leads to; `None` if the event is illegal in this phase.
pub fn step(entity: EntityType, from: Phase, on: Kind) -> Option<Phase> {
    table(entity).iter().find(|rule| rule.0 == from && rule.1 == on).map(|rule| rule.2)
}

/// The kinds of events that are legal in a phase.
pub fn legal(entity: EntityType, from: Phase) -> Vec<Kind> {
    table(entity).iter().filter(|rule| rule.0 == from).map(|rule| rule.1).collect()
}

/// Whether an event of this kind can create its subject.
pub fn creates(kind: Kind) -> bool {
    EntityType::ALL
        .iter()
        .any(|&e| kind.row().about == crate::event::kind::SubjectType::One(e) && step(e, Absent, kind).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::kind::SubjectType;

    /// The final phases of every entity type, listed independently of the tables.
    fn expected_final_phases(entity: EntityType) -> &'static [Phase] {
        match entity {
            EntityType::System => &[],
            EntityType::Requirement => &[Rejected, Verified, Superseded],
            EntityType::Decision => &[Rejected, Superseded],
            EntityType::Task => &[Archived],
            EntityType::Run => &[Finished, Crashed, TimedOut],
            EntityType::Artifact => &[Corrupted],
            EntityType::Constraint => &[Removed],
            EntityType::Agent => &[],
            EntityType::DeepWork => &[Completed, Expired],
            EntityType::Mission => &[Passed],
            EntityType::Debate => &[Converged, Exhausted, Closed],
            EntityType::Review => &[Recorded],
            EntityType::Document => &[],
            EntityType::Project => &[Archived],
            EntityType::Session => &[Ended, Expired],
            EntityType::Branch => &[Completed],
            EntityType::Thread => &[Completed],
            EntityType::Message => &[Read],
            EntityType::Escalation => &[Closed],
            EntityType::Knowledge => &[],
        }
    }

    fn phases(entity: EntityType) -> Vec<Phase> {
        let mut all: Vec<Phase> = table(entity).iter().flat_map(|rule| [rule.0, rule.2]).collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn every_phase_and_event_has_at_most_one_rule() {
        for &entity in EntityType::ALL {
            for &from in Phase::ALL {
                for &on in Kind::ALL {
                    let rules = table(entity).iter().filter(|r| r.0 == from && r.1 == on).count();
                    assert!(rules <= 1, "{entity}: {from} on {on}");
                    assert_eq!(step(entity, from, on).is_some(), rules == 1);
                }
            }
        }
    }

    #[test]
    fn every_phase_can_be_reached_from_absent() {
        for &entity in EntityType::ALL {
            let mut reached = vec![Absent];
            while let Some(rule) = table(entity).iter().find(|r| reached.contains(&r.0) && !reached.contains(&r.2)) {
                reached.push(rule.2);
            }
            reached.sort();
            assert_eq!(reached, phases(entity), "{entity}");
        }
    }

    #[test]
    fn final_phases_have_no_way_out_and_nothing_leads_back_to_absent() {
        for &entity in EntityType::ALL {
            for phase in phases(entity) {
                let is_final = legal(entity, phase).is_empty();
                assert_eq!(is_final, expected_final_phases(entity).contains(&phase), "{entity}: {phase}");
            }
            assert!(table(entity).iter().all(|rule| rule.2 != Absent));
        }
    }

    #[test]
    fn every_kind_moves_what_it_is_about() {
        for &kind in Kind::ALL {
            if let SubjectType::One(entity) = kind.row().about {
                assert!(table(entity).iter().any(|rule| rule.1 == kind), "{kind} moves nothing");
            }
        }
    }

    #[test]
    fn a_task_can_be_aborted_unless_it_has_ended() {
        for phase in phases(EntityType::Task) {
            let has_ended = matches!(phase, Absent | Succeeded | Aborted | Archived);
            assert_eq!(step(EntityType::Task, phase, TaskAborted).is_some(), !has_ended, "{phase}");
        }
    }
}
