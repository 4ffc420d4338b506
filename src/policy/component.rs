//! The toolkit's own actors: what each of its components records. Nobody else acts under these names, and no component
//! records what is another's.
//!
//! What `core:reactor` records is checked by the audit: it must be what `react` returns for its cause.

use super::clock::KERNEL;
use super::due::WATCHDOG;
use super::react::REACTOR;
use super::rules::Step;
use crate::base::actor::ActorKind;
use crate::base::{Error, Reason, Result};
use crate::event::Kind;
use crate::state::State;

/// Records what happened to the log itself.
pub const VAULT: &str = "vault";
/// Records the end of a job that has no supervisor.
pub const JOBS: &str = "jobs";
/// Records that a hook fails or works again.
pub const HOOKS: &str = "hooks";

/// What each component records, besides the reactor.
const RECORDS: &[(&str, &[Kind])] = &[
    (VAULT, &[Kind::TailQuarantined, Kind::TailAdopted]),
    (
        KERNEL,
        &[
            Kind::SettingsChanged,
            Kind::MachineSuspended,
            Kind::MachineBooted,
            Kind::ClockStepped,
            Kind::EmergencyStopIssued,
        ],
    ),
    (
        WATCHDOG,
        &[
            Kind::AnomalyDetected,
            Kind::AnomalyCleared,
            Kind::RecoveryAttempted,
            Kind::EscalationRequired,
            Kind::ApprovalTimedOut,
            Kind::ClaimExpired,
            Kind::DeepWorkExpired,
            Kind::RunTimedOut,
            Kind::SessionExpired,
            Kind::TaskArchived,
            // What it finds in agents' files.
            Kind::AgentStarted,
            Kind::CheckpointRecorded,
            Kind::ActivityLogged,
            Kind::DeepWorkStarted,
            Kind::DeepWorkExtended,
            Kind::DeepWorkCompleted,
        ],
    ),
    (
        JOBS,
        &[
            Kind::RunFinished,
            Kind::RunCrashed,
            Kind::RunTimedOut,
            Kind::TaskSucceeded,
            Kind::TaskFailed,
            Kind::TaskAborted,
        ],
    ),
    (HOOKS, &[Kind::HookFailed, Kind::HookRecovered]),
];

/// Each component records only what is its own, and `core:jobs` only about jobs.
pub(super) fn components_keep_to_their_own(state: &State, step: &Step<'_>) -> Result<()> {
    let is_core = step.actor.kind == ActorKind::Core && step.actor.name() != REACTOR;
    let is_reports =
        |component: &str| RECORDS.iter().any(|(name, kinds)| *name == component && kinds.contains(&step.kind));
    // Version 0.1, which recorded no settings, let anybody use these names.
    if !state.tally().has_settings() || !is_core && !is_reports(VAULT) {
        return Ok(());
    }
    let name = step.actor.name();
    let is_own = RECORDS.iter().any(|(component, kinds)| *component == name && kinds.contains(&step.kind));
    let is_job = || step.claimed_task(state).is_some_and(|task| task.is_job());
    match is_own && (name != JOBS || is_job()) {
        true => Ok(()),
        false => {
            let why = format!("{} does not record {} of {}", step.actor, step.kind, step.subject);
            Err(Error::refused(Reason::ReservedActor, why))
        }
    }
}
