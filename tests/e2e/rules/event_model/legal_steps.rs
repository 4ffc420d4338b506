//! Every legal step, as a table of its own.

use std::collections::BTreeMap;

/// Every legal step, written down from the design and apart from the toolkit's tables.
const RULES: &str = "
    requirement: - RequirementProposed Proposed RequirementAnalyzed Analyzed RequirementApproved Approved
        RequirementImplemented Implemented RequirementVerified Verified
    requirement: Proposed RequirementRejected Rejected
    requirement: Analyzed RequirementRejected Rejected
    requirement: Approved RequirementSuperseded Superseded
    requirement: Approved OscillationDetected Blocked RequirementApproved Approved
    requirement: Implemented OscillationDetected Blocked RequirementRejected Rejected
    requirement: Blocked RequirementSuperseded Superseded
    requirement: Implemented TaskProposed Approved
    requirement: Analyzed RequirementAnalyzed Analyzed
    decision: - DecisionRequested Requested DecisionApproved Approved DecisionSuperseded Superseded
    decision: Requested DecisionRejected Rejected
    decision: Requested ApprovalTimedOut Escalated DecisionApproved Approved
    decision: Escalated DecisionRejected Rejected
    decision: Requested DecisionSuperseded Superseded
    decision: Escalated DecisionSuperseded Superseded
    task: - TaskProposed Proposed TaskReady Ready TaskAssigned Assigned ClaimExpired Ready
    task: Assigned ClaimRenewed Assigned RunStarted Running
    task: Running TaskSucceeded Succeeded TaskArchived Archived
    task: Running TaskFailed Failed TaskRetrying Retrying TaskAssigned Assigned
    task: Proposed TaskAborted Aborted TaskArchived Archived
    task: Ready TaskAborted Aborted
    task: Assigned TaskAborted Aborted
    task: Running TaskAborted Aborted
    task: Failed TaskAborted Aborted
    task: Retrying TaskAborted Aborted
    run: - RunStarted Running RunFinished Finished
    run: Running RunCrashed Crashed
    run: Running RunTimedOut TimedOut
    run: Running Heartbeat Running
    artifact: - ArtifactDeclared Declared ArtifactMaterialized Materialized ArtifactValidated Validated
        ArtifactCorrupted Corrupted
    artifact: Materialized ArtifactInvalidated Invalidated ArtifactCorrupted Corrupted
    artifact: Materialized ArtifactCorrupted Corrupted
    constraint: - ConstraintApplied Active ConstraintRemoved Removed
    branch: - BranchCreated Suspended ThreadOpened Active ThreadCompleted Suspended BranchCompleted Completed
    branch: Active ThreadAborted Suspended
    thread: - ThreadOpened Active ThreadCompleted Completed
    thread: Active ThreadAborted Aborted
    escalation: - EscalationRequired Open EscalationAcknowledged Acknowledged EscalationClosed Closed
    escalation: Open EscalationClosed Closed
";

/// Steps that an event about something else makes.
pub(super) const MOVED_ALONG: &[(&str, &str)] =
    &[("requirement", "TaskProposed"), ("task", "RunStarted"), ("escalation", "EscalationRequired")];

/// (type, state, event) → state.
pub(super) type Rules = BTreeMap<(&'static str, &'static str, &'static str), &'static str>;

pub(super) fn rules() -> Rules {
    let (mut rules, mut entity, mut words) = (Rules::new(), "", Vec::new());
    let mut close = |entity: &'static str, words: &mut Vec<&'static str>| {
        for n in (0..words.len().saturating_sub(2)).step_by(2) {
            rules.insert((entity, words[n], words[n + 1]), words[n + 2]);
        }
        words.clear();
    };
    for word in RULES.split_whitespace() {
        match word.strip_suffix(':') {
            Some(next) => {
                close(entity, &mut words);
                entity = next;
            }
            None => words.push(word),
        }
    }
    close(entity, &mut words);
    rules
}
