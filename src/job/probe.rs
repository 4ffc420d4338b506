//! Whether a job is alive, according to its locks and records. The table is in `super`.

use super::exit::ExitRecord;
use super::files::JobDir;
use super::identity::Identity;
use super::lock::JobLock;
use super::orphan::Members;
use crate::base::{EntityId, Error, ErrorKind, Result};
use crate::vault::lock::{self, LockMode};

/// Whether a job is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobLiveness {
    /// It has a supervisor, or its caller is about to start one.
    Supervised,
    /// The run has ended, and its exit record was written.
    Ended(ExitRecord),
    /// The supervisor is gone, but processes of the run are alive.
    Orphaned(Identity),
    /// Nothing is left of the run, and there is no exit record.
    Lost,
}

/// Checks a job. `run_id` is the run in question; without one, the newest published run.
pub fn probe(job: &JobDir, run_id: Option<&EntityId>) -> Result<JobLiveness> {
    let failed = |e| Error::system("cannot check a job's lock", e);
    let Some(lock) = job.lock_file()? else { return Ok(JobLiveness::Lost) };
    // Shared, so that probes do not block each other. Held to the end, so that no run starts in the meantime.
    match lock::try_acquire(&lock, LockMode::Shared).map_err(failed)? {
        true => unsupervised(job, run_id),
        false => Ok(JobLiveness::Supervised),
    }
}

/// Checks a job whose lock the caller holds, so that it has no supervisor.
pub fn probe_locked(job: &JobDir, _: &JobLock, run_id: Option<&EntityId>) -> Result<JobLiveness> {
    unsupervised(job, run_id)
}

fn unsupervised(job: &JobDir, run_id: Option<&EntityId>) -> Result<JobLiveness> {
    let identity = whole(job.identity())?;
    let newest = identity.as_ref().map(|identity| EntityId::parse(&identity.run_id)).transpose()?;
    let Some(run_id) = run_id.or(newest.as_ref()) else { return Ok(JobLiveness::Lost) };
    if let Some(record) = whole(job.exit_record(run_id))? {
        return Ok(JobLiveness::Ended(record));
    }
    match identity.filter(|identity| identity.run_id == run_id.as_str()) {
        Some(identity) if identity.is_of_this_boot()? && lives(job, &identity)? => Ok(JobLiveness::Orphaned(identity)),
        _ => Ok(JobLiveness::Lost),
    }
}

/// Whether a process of the newest run is alive: it holds `alive`, it is the main process itself, which may have closed
/// inherited descriptors, or it belongs to the run in another way.
fn lives(job: &JobDir, identity: &Identity) -> Result<bool> {
    let held = match job.alive_file()? {
        Some(alive) => !lock::try_acquire(&alive, LockMode::Shared)
            .map_err(|e| Error::system("cannot check a job's alive file", e))?,
        None => false,
    };
    Ok(held || identity.lives()? || !Members::of_job(job, identity)?.living().is_empty())
}

/// Treats a record that was torn by a power failure as missing.
fn whole<T>(record: Result<Option<T>>) -> Result<Option<T>> {
    match record {
        Err(e) if e.kind == ErrorKind::Corrupt => Ok(None),
        record => record,
    }
}
