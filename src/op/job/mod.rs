//! hf-job and hf-poll: commands that outlive their caller, each a run of a task.
//!
//! | module | contents |
//! |---|---|
//! | `command` | what it runs, as the log has it, and what an approval of it binds |
//! | `fire` | a new job: its task, its supervisor |
//! | `queue` | whose turn it is, and waking supervisors |
//! | `supervise` | the supervisor: waiting for its turn, running, retrying |
//! | `end` | what the end of a run means for its task |
//! | `settle` | a job without a supervisor: recording its end, or retrying it |
//! | `view`, `log` | the state of a job, and its output |
//! | `poll` | waiting for a limited time |
//! | `foreign` | jobs of another system |

mod command;
mod end;
mod fire;
mod foreign;
mod log;
mod poll;
mod queue;
mod settle;
mod supervise;
mod view;

use std::path::PathBuf;

use crate::base::{EntityId, EntityType};
use crate::job::JobDir;
use crate::state::{Entity, State};
use crate::vault::Vault;

pub(super) use command::bound_now;
pub(super) use end::JobReport;
pub(super) use fire::reap_when_ended;
pub use fire::{FireOutcome, FireRequest, MissionStep, fire};
pub use log::{JobLogOutcome, JobLogRequest, log};
pub(super) use poll::wait_for_job;
pub use poll::{PollOutcome, PollRequest, WaitOutcome, WaitRequest, poll, wait};
pub(super) use queue::wake;
pub(super) use settle::{LostJob, OutlivedTask, mark, outlived, settle, unattended, what_is_wrong};
pub use supervise::{SuperviseRequest, supervise};
pub use view::{
    CancelOutcome, CancelRequest, CheckJobRequest, JobStanding, JobView, JobWait, JobsOutcome, ListJobsRequest, cancel,
    check, list,
};
pub(super) use view::{RunningJob, drain, end_aborted};

/// The directory in the vault that log references are relative to.
const AUTONOMOUS: &str = "Autonomous";

/// The reference of the log of a task's nth run.
fn log_reference(task: &Entity, run: usize) -> String {
    match run {
        0 | 1 => format!("logs/L-{:04}.txt", task.ordinal),
        n => format!("logs/L-{:04}-{n}.txt", task.ordinal),
    }
}

/// The reference of the log of a task's newest run.
pub(super) fn newest_log(state: &State, task: &Entity) -> String {
    log_reference(task, state.made_for(&task.subject, EntityType::Run).len())
}

/// The path of a log, relative to the vault.
pub(super) fn log_path(reference: &str) -> PathBuf {
    PathBuf::from(AUTONOMOUS).join(reference)
}

/// The report of a job whose end is recorded, for its hook.
pub(super) fn report_of_ended(vault: &Vault, state: &State, task: &Entity) -> JobReport {
    // A directory that cannot be read does not keep anybody from being notified.
    let job = JobDir::open(vault.path(), &id_of(task)).ok().flatten();
    let record = job.zip(run_of(task)).and_then(|(job, run)| job.exit_record(&run).ok().flatten());
    end::report(vault, task, record.as_ref(), &newest_log(state, task))
}

/// The id of a task.
fn id_of(task: &Entity) -> EntityId {
    EntityId::parse(task.subject.id()).expect("a task has an id")
}

/// The id of the newest run of a task.
fn run_of(task: &Entity) -> Option<EntityId> {
    EntityId::parse(task.as_task().last_run_id()?).ok()
}
