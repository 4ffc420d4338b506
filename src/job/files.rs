//! The directory of a job, `Jobs/<task id>/`:
//!
//! | file | what it is |
//! |---|---|
//! | `lock` | held by the caller, then by the supervisor, until the exit record is written |
//! | `alive` | held by the live processes of the newest run; a new file for every run |
//! | `taken` | exists as soon as a supervisor has taken the job over |
//! | `left` | held by the supervisor after the last run, as long as processes of it are left |
//! | `control` | a request to end, rewritten in place, so that it works on a full disk |
//! | `spec.json` | what to run |
//! | `identity.json` | the main process of the newest run |
//! | `exit-<run id>.json` | how that run ended |
//!
//! Only the holder of the lock writes here, except for `control`. Symbolic links are not followed.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::exit::{self, EXIT_RECORD_MAX_BYTES, ExitRecord, ExitSlot};
use super::identity::Identity;
use super::lock::JobLock;
use super::spec::Spec;
use crate::base::{Actor, EntityId, Error, ErrorKind, Result, names, seal, serde_by_name};
use crate::vault::lock::{self, LockMode};
use crate::vault::{AKASHIC, Dir};

const JOBS: &str = "Jobs";
/// In `Akashic/`: the names of jobs that have a directory, but whose task is not recorded yet.
const FIRING: &str = "firing";
/// In `Akashic/`: the names of jobs whose command was started, until its supervisor has written down its end.
const RUNNING: &str = "running";
const LOCK: &str = "lock";
const ALIVE: &str = "alive";
const TAKEN: &str = "taken";
const LEFT: &str = "left";
const CONTROL: &str = "control";
/// Created and removed to wake a supervisor whose job is queued.
const WORD: &str = "word";
const SPEC: &str = "spec.json";
const IDENTITY: &str = "identity.json";
const EXIT_PREFIX: &str = "exit-";
const EXIT_SUFFIX: &str = ".json";

/// Arguments and variables can be as long as the kernel allows, and are escaped here.
const SPEC_MAX_BYTES: usize = 32 * 1024 * 1024;
const IDENTITY_MAX_BYTES: usize = 4096;
/// The control record, padded with spaces to this size.
const CONTROL_BYTES: usize = 256;
/// A read during a rewrite can see parts of both versions, so it is tried this often.
const READ_ATTEMPTS: usize = 5;

/// The control record as it is written.
#[derive(Default, Serialize, Deserialize)]
struct JobControl {
    cancel: Option<CancelReason>,
    /// Who asked for it; none if the toolkit itself did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

names! {
    /// Why a job is asked to end.
    pub enum CancelReason {
        /// By request.
        Cancelled = "cancelled",
        /// It showed no sign of life for too long.
        Silent = "silent",
    }
}

serde_by_name!(CancelReason);

impl JobControl {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = seal::seal(self);
        assert!(bytes.len() <= CONTROL_BYTES, "the control record outgrew its size");
        bytes.resize(CONTROL_BYTES, b' ');
        bytes
    }
}

/// The task of a job whose supervisor holds the file at this path. Allocates nothing: it is also used between fork and exec.
pub(super) fn task_of_held_file(path: &Path) -> Option<&str> {
    let mut names = path.iter().rev();
    let [file, task, jobs] = [names.next()?, names.next()?, names.next()?];
    let is_held = file == LOCK || file == LEFT;
    task.to_str().filter(|task| is_held && jobs == JOBS && EntityId::is_valid(task))
}

/// The directory of a job.
#[derive(Debug)]
pub struct JobDir {
    vault: Dir,
    dir: Dir,
    task: EntityId,
}

impl JobDir {
    /// Creates the directory with its lock and control file, or completes an existing one.
    pub fn create(vault: &Path, task: &EntityId) -> Result<JobDir> {
        let root = open_vault(vault)?;
        let (jobs, made) = root.make_dir(JOBS)?;
        if made {
            root.sync()?;
        }
        let (dir, made) = jobs.make_dir(task.as_str())?;
        dir.check_private()?;
        dir.make_file(LOCK)?;
        let job = JobDir { vault: root, dir, task: task.clone() };
        if job.dir.open_file(CONTROL)?.is_none() {
            job.dir.put(CONTROL, &JobControl::default().bytes())?;
        }
        job.dir.sync()?;
        if made {
            jobs.sync()?;
        }
        Ok(job)
    }

    /// Opens the directory of a job, if it exists.
    pub fn open(vault: &Path, task: &EntityId) -> Result<Option<JobDir>> {
        let vault = open_vault(vault)?;
        let Some(jobs) = vault.dir(JOBS)? else { return Ok(None) };
        Ok(jobs.dir(task.as_str())?.map(|dir| JobDir { vault, dir, task: task.clone() }))
    }

    /// The task that this job belongs to.
    pub fn task(&self) -> &EntityId {
        &self.task
    }

    /// The path of the vault.
    pub fn vault_path(&self) -> &Path {
        self.vault.path()
    }

    /// Takes the lock, to start a supervisor or to write here. `Busy` if another process holds it for longer than
    /// `timeout`.
    pub fn take_lock(&self, timeout: Duration) -> Result<JobLock> {
        let (file, _) = self.dir.make_file(LOCK)?;
        let busy =
            || Error::new(ErrorKind::Busy, format!("job {} is already supervised by another process", self.task));
        JobLock::take(file, timeout)?.ok_or_else(busy)
    }

    /// The lock file, not locked; `None` if the job never started.
    pub(super) fn lock_file(&self) -> Result<Option<File>> {
        self.dir.open_file(LOCK)
    }

    /// The number of the lock's file; none if there is no such file.
    pub fn lock_inode(&self) -> Result<Option<u64>> {
        let inode = |file: File| file.metadata().map(|found| found.ino());
        let failed = |e| Error::system(format!("cannot read {}", self.dir.path().join(LOCK).display()), e);
        self.lock_file()?.map(inode).transpose().map_err(failed)
    }

    /// Whether the vault still contains this job, with the lock that is held. If the job or the log is gone, nobody can
    /// find the job, ask it to end, or record its result. Checked from the opened directory, because a vault that is moved
    /// takes its jobs along. If it cannot be checked, the job counts as kept.
    pub fn is_kept(&self, held: &JobLock) -> bool {
        self.has_file(LOCK, held.file())
    }

    /// The same after its end, with the file that is held while processes of it are left.
    pub fn is_kept_with_rest(&self, held: &File) -> bool {
        self.has_file(LEFT, held)
    }

    fn has_file(&self, name: &str, held: &File) -> bool {
        let file = || -> Result<Option<File>> {
            let (Some(_), Some(jobs)) = (self.vault.dir(AKASHIC)?, self.vault.dir(JOBS)?) else { return Ok(None) };
            jobs.dir(self.task.as_str())?.map_or(Ok(None), |dir| dir.open_file(name))
        };
        match file() {
            Ok(found) => found.is_some_and(|found| lock::is_same(&found, held).unwrap_or(true)),
            Err(e) => !matches!(e.kind, ErrorKind::Refused(_)),
        }
    }

    /// The file that the live processes of the newest run hold.
    pub(super) fn alive_file(&self) -> Result<Option<File>> {
        self.dir.open_file(ALIVE)
    }

    /// A new `alive` file, locked. Processes left by an earlier run keep the old one.
    pub(super) fn new_alive(&self) -> Result<File> {
        self.dir.remove(ALIVE)?;
        let (file, _) = self.dir.make_file(ALIVE)?;
        lock::acquire(&file, LockMode::Exclusive).map_err(|e| Error::system("cannot lock a job's alive file", e))?;
        Ok(file)
    }

    /// Notes that a supervisor has taken the job over. Not durable: after a power failure `identity.json` tells whether the
    /// command was started.
    pub(super) fn note_taken(&self) -> Result<()> {
        self.dir.make_file(TAKEN).map(drop)
    }

    /// Whether no supervisor ever had this job, so that its command cannot have run: its caller died before.
    pub fn was_never_taken(&self) -> Result<bool> {
        Ok(self.dir.open_file(TAKEN)?.is_none() && self.identity()?.is_none())
    }

    /// Marks the job as one whose processes outlive it, as long as the returned file is open.
    pub fn hold_left(&self) -> Result<File> {
        let (file, _) = self.dir.make_file(LEFT)?;
        lock::acquire(&file, LockMode::Exclusive).map_err(|e| Error::system("cannot lock a job's file", e))?;
        Ok(file)
    }

    /// The file that a supervisor holds while processes of an ended run are left.
    pub(super) fn left_file(&self) -> Result<Option<File>> {
        self.dir.open_file(LEFT)
    }

    /// Writes what to run, durably.
    pub fn put_spec(&self, spec: &Spec) -> Result<()> {
        self.dir.put(SPEC, &seal::seal(spec))
    }

    /// What to run.
    pub fn spec(&self) -> Result<Spec> {
        let missing = || Error::not_found(format!("job {} has no {SPEC}", self.task));
        self.record(SPEC, SPEC_MAX_BYTES)?.ok_or_else(missing)
    }

    /// Publishes the main process of a run, durably.
    pub(super) fn put_identity(&self, identity: &Identity) -> Result<()> {
        self.dir.put(IDENTITY, &seal::seal(identity))
    }

    /// The main process of the newest published run.
    pub fn identity(&self) -> Result<Option<Identity>> {
        self.record(IDENTITY, IDENTITY_MAX_BYTES)
    }

    /// How a run ended, if its exit record was written.
    pub fn exit_record(&self, run_id: &EntityId) -> Result<Option<ExitRecord>> {
        let name = exit_name(run_id);
        let Some(bytes) = self.bytes(&name, EXIT_RECORD_MAX_BYTES)? else { return Ok(None) };
        match exit::read(&bytes).map_err(|e| e.at(self.dir.path().join(&name).display()))? {
            Some(record) if record.run_id != run_id.as_str() => {
                Err(Error::corrupt(format!("{} belongs to another run", self.dir.path().join(&name).display())))
            }
            record => Ok(record),
        }
    }

    /// The ids of all runs that were started or about to start.
    pub(super) fn runs(&self) -> Result<Vec<String>> {
        let of_name = |name: &str| name.strip_prefix(EXIT_PREFIX)?.strip_suffix(EXIT_SUFFIX).map(str::to_owned);
        Ok(self.dir.list()?.iter().filter_map(|(name, _)| of_name(name)).collect())
    }

    /// Reserves the space for a run's exit record, durably. Refused if the run has ended already.
    pub(super) fn reserve_exit(&self, run_id: &EntityId) -> Result<ExitSlot> {
        let name = exit_name(run_id);
        if self.exit_record(run_id)?.is_some() {
            return Err(Error::usage(format!("run {run_id} has ended already")));
        }
        let (file, _) = self.dir.make_file(&name)?;
        let slot = ExitSlot::reserve(file, self.dir.path().join(&name))?;
        self.dir.sync()?;
        Ok(slot)
    }

    /// Asks the job to end, durably, for this actor if it is not the toolkit itself. Needs neither the lock nor disk
    /// space.
    pub fn cancel(&self, reason: CancelReason, by: Option<&Actor>) -> Result<()> {
        self.put_control(&JobControl { cancel: Some(reason), by: by.map(ToString::to_string) })
    }

    /// Withdraws a request to end that was carried out, before the next run.
    pub fn clear_cancel(&self) -> Result<()> {
        self.put_control(&JobControl::default())
    }

    fn put_control(&self, control: &JobControl) -> Result<()> {
        let (file, _) = self.dir.make_file(CONTROL)?;
        let done = file.write_all_at(&control.bytes(), 0).and_then(|()| file.sync_data());
        done.map_err(|e| Error::system(format!("cannot write {}", self.dir.path().join(CONTROL).display()), e))
    }

    /// Notes that the command is about to start, so that its processes can be found without opening the directory of
    /// every job there ever was. Not durable: no process survives a power failure.
    pub(super) fn note_running(&self) -> Result<()> {
        // A vault that was deleted is not created again.
        let Some(akashic) = self.vault.dir(AKASHIC)? else { return Ok(()) };
        let (running, _) = akashic.make_dir(RUNNING)?;
        running.check_private()?;
        running.make_file(self.task.as_str()).map(drop)
    }

    /// Withdraws the note, because nothing is left of the run. If this fails, the next watchdog tries again.
    pub fn forget_running(&self) {
        let _ = running(&self.vault).and_then(|dir| dir.map_or(Ok(()), |dir| dir.remove(self.task.as_str())));
    }

    /// Whether the command was started, and no supervisor has written down its end.
    pub fn is_noted_running(&self) -> Result<bool> {
        running(&self.vault)?.map_or(Ok(false), |dir| Ok(dir.open_file(self.task.as_str())?.is_some()))
    }

    /// The tasks of all such jobs.
    pub fn noted_running(vault: &Path) -> Result<Vec<EntityId>> {
        let Some(dir) = running(&open_vault(vault)?)? else { return Ok(Vec::new()) };
        Ok(dir.list()?.iter().filter_map(|(name, _)| EntityId::parse(name).ok()).collect())
    }

    /// Makes a supervisor that waits in `ControlWatch::wait` look again. Changes nothing.
    pub fn poke(&self) -> Result<()> {
        self.dir.make_file(WORD)?;
        self.dir.remove(WORD)
    }

    /// Announces the directory of a job that is not recorded yet, so that `sweep` finds it if this process dies in between.
    pub fn announce(vault: &Path, task: &EntityId) -> Result<()> {
        let (akashic, _) = open_vault(vault)?.make_dir(AKASHIC)?;
        let (firing, _) = akashic.make_dir(FIRING)?;
        firing.check_private()?;
        firing.make_file(task.as_str()).map(drop)
    }

    /// Withdraws the announcement, because the job is recorded or the directory is gone. If this fails, `sweep` finds out.
    pub fn settle(vault: &Path, task: &EntityId) {
        let _ = announced(vault).and_then(|firing| firing.map_or(Ok(()), |firing| firing.remove(task.as_str())));
    }

    /// Removes the directories of jobs whose caller died before they started. The caller holds the vault's lock, so that
    /// `is_recorded` stays true.
    pub fn sweep(vault: &Path, is_recorded: &dyn Fn(&EntityId) -> bool) -> Result<()> {
        let Some(firing) = announced(vault)? else { return Ok(()) };
        for (name, _) in firing.list()? {
            if let Ok(task) = EntityId::parse(&name)
                && !is_recorded(&task)
                && let Some(job) = JobDir::open(vault, &task)?
            {
                job.discard()?;
            }
            firing.remove(&name)?;
        }
        Ok(())
    }

    /// Removes the directory of a job that never started.
    pub fn discard(self) -> Result<()> {
        for (name, _) in self.dir.list()? {
            self.dir.remove(&name)?;
        }
        match self.vault.dir(JOBS)? {
            Some(jobs) => jobs.remove_dir(self.task.as_str()),
            None => Ok(()),
        }
    }

    /// Why the job was asked to end, if it was.
    pub fn cancel_reason(&self) -> Result<Option<CancelReason>> {
        Ok(self.control()?.and_then(|control| control.cancel))
    }

    /// Who cancelled the job, if somebody did.
    pub fn cancelled_by(&self) -> Result<Option<Actor>> {
        let control = self.control()?.filter(|control| control.cancel == Some(CancelReason::Cancelled));
        control.and_then(|control| control.by).map(|by| Actor::parse(&by)).transpose()
    }

    fn control(&self) -> Result<Option<JobControl>> {
        let mut attempts = 0..READ_ATTEMPTS;
        loop {
            attempts.next();
            match self.record::<JobControl>(CONTROL, CONTROL_BYTES) {
                Err(_) if !attempts.is_empty() => continue,
                control => return control,
            }
        }
    }

    /// The files that tell a job to end: the vault's and its own.
    pub(super) fn control_paths(&self) -> [PathBuf; 2] {
        [self.vault.path().join(AKASHIC).join(CONTROL), self.dir.path().join(CONTROL)]
    }

    /// Creates a new file in the vault and its parent directories, without following links.
    pub(super) fn new_vault_file(&self, path: &Path) -> Result<File> {
        let odd =
            || Error::usage(format!("invalid path '{}'; must be a relative path inside the vault", path.display()));
        let mut names = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => names.push(name.to_str().ok_or_else(odd)?),
                _ => return Err(odd()),
            }
        }
        let name = names.pop().ok_or_else(odd)?;
        let mut dir: Option<Dir> = None;
        for name in names {
            dir = Some(dir.as_ref().unwrap_or(&self.vault).make_dir(name)?.0);
        }
        match dir.as_ref().unwrap_or(&self.vault).make_file(name)? {
            (file, true) => Ok(file),
            (_, false) => Err(Error::usage(format!("{} already exists", self.vault.path().join(path).display()))),
        }
    }

    fn record<T: DeserializeOwned>(&self, name: &str, max_bytes: usize) -> Result<Option<T>> {
        let Some(bytes) = self.bytes(name, max_bytes)? else { return Ok(None) };
        seal::open(&bytes).map(Some).map_err(|e| e.at(self.dir.path().join(name).display()))
    }

    fn bytes(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.dir.open_file(name)? else { return Ok(None) };
        let path = || self.dir.path().join(name);
        let mut bytes = Vec::new();
        let read = file.take(max_bytes as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|e| Error::system(format!("cannot read {}", path().display()), e))?;
        match bytes.len() > max_bytes {
            true => Err(Error::corrupt(format!("{} is larger than {max_bytes} bytes", path().display()))),
            false => Ok(Some(bytes)),
        }
    }
}

fn announced(vault: &Path) -> Result<Option<Dir>> {
    open_vault(vault)?.dir(AKASHIC)?.map_or(Ok(None), |akashic| akashic.dir(FIRING))
}

fn running(vault: &Dir) -> Result<Option<Dir>> {
    vault.dir(AKASHIC)?.map_or(Ok(None), |akashic| akashic.dir(RUNNING))
}

fn open_vault(path: &Path) -> Result<Dir> {
    let none = || Error::new(ErrorKind::NoVault, format!("no vault at {}", path.display()));
    Dir::open_root(path)?.ok_or_else(none)
}

fn exit_name(run_id: &EntityId) -> String {
    format!("{EXIT_PREFIX}{run_id}{EXIT_SUFFIX}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::Fixture;
    use super::*;
    use crate::base::Timestamp;
    use crate::job::{Ended, LogSize};
    use std::fs;

    #[test]
    fn cancelling_is_seen_and_garbage_is_an_error() {
        let fixture = Fixture::new();
        assert_eq!(fixture.job.cancel_reason().unwrap(), None);
        // The longest name of an actor fits.
        let by = Actor::parse(&format!("external:{}", "x".repeat(64))).unwrap();
        fixture.job.cancel(CancelReason::Cancelled, Some(&by)).unwrap();
        assert_eq!(fixture.job.cancel_reason().unwrap(), Some(CancelReason::Cancelled));
        assert_eq!(fixture.job.cancelled_by().unwrap(), Some(by));
        let again = JobDir::create(fixture.vault(), fixture.job.task()).unwrap();
        assert_eq!(again.cancel_reason().unwrap(), Some(CancelReason::Cancelled));
        again.clear_cancel().unwrap();
        assert_eq!(fixture.job.cancel_reason().unwrap(), None);
        std::fs::write(fixture.job.dir.path().join(CONTROL), "cancel\n").unwrap();
        assert_eq!(fixture.job.cancel_reason().unwrap_err().kind, ErrorKind::Corrupt);
    }

    #[test]
    fn a_reserved_record_is_none_until_it_is_written() {
        let fixture = Fixture::new();
        let run = EntityId::parse("r1").unwrap();
        assert_eq!(fixture.job.exit_record(&run).unwrap(), None);
        let slot = fixture.job.reserve_exit(&run).unwrap();
        assert_eq!(fixture.job.exit_record(&run).unwrap(), None);
        // The largest possible record.
        let text = "\u{1}".repeat(400) + "…";
        let record = ExitRecord {
            run_id: "r1".to_owned(),
            ended: Ended::Halted { why: text.clone() },
            started_at: Timestamp(1),
            finished_at: Timestamp(2),
            last_line: Some(text.clone()),
            last5: vec![text.clone(); 5],
            log: LogSize { bytes: u64::MAX, cut: u64::MAX, problem: Some(text) },
            left: vec![format!("{} {}", i32::MAX, "\u{1}".repeat(15)); 20],
        };
        slot.write(&record).unwrap();
        assert_eq!(fixture.job.exit_record(&run).unwrap(), Some(record));
        assert_eq!(fixture.job.reserve_exit(&run).unwrap_err().kind, ErrorKind::Usage);
        std::fs::write(fixture.job.dir.path().join("exit-r1.json"), "{\"run_id\":\"r1\"}").unwrap();
        assert_eq!(fixture.job.exit_record(&run).unwrap_err().kind, ErrorKind::Corrupt);
    }

    #[test]
    fn a_file_that_is_too_large_or_a_link_is_refused() {
        let fixture = Fixture::new();
        let dir = fixture.job.dir.path();
        std::fs::write(dir.join(IDENTITY), vec![b' '; IDENTITY_MAX_BYTES + 1]).unwrap();
        assert_eq!(fixture.job.identity().unwrap_err().kind, ErrorKind::Corrupt);
        std::fs::remove_file(dir.join(IDENTITY)).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", dir.join(IDENTITY)).unwrap();
        assert!(matches!(fixture.job.identity().unwrap_err().kind, ErrorKind::Refused(_)));
        assert_eq!(fixture.job.spec().unwrap_err().kind, ErrorKind::NotFound);
    }

    #[test]
    fn a_log_stays_inside_the_vault() {
        let fixture = Fixture::new();
        for bad in ["/etc/x", "../x", "", "a/../../x"] {
            assert!(fixture.job.new_vault_file(Path::new(bad)).is_err(), "{bad}");
        }
        std::os::unix::fs::symlink("/tmp", fixture.vault().join("out")).unwrap();
        assert!(fixture.job.new_vault_file(Path::new("out/x")).is_err());
        fixture.job.new_vault_file(Path::new("Autonomous/logs/x")).unwrap();
        assert!(fixture.job.new_vault_file(Path::new("Autonomous/logs/x")).is_err());
    }

    #[test]
    fn a_vault_that_is_moved_keeps_its_jobs_and_one_that_is_deleted_does_not() {
        type Mishap = fn(&Path);
        let mishaps: [(bool, Mishap); 8] = [
            (true, |_| {}),
            (true, |vault| fs::rename(vault, vault.with_extension("moved")).unwrap()),
            (false, |vault| fs::remove_dir_all(vault).unwrap()),
            (false, |vault| fs::remove_dir_all(vault.join(JOBS)).unwrap()),
            (false, |vault| fs::remove_dir_all(vault.join(AKASHIC)).unwrap()),
            (false, |vault| fs::rename(vault.join("Jobs/t1"), vault.join("t1")).unwrap()),
            (false, |vault| {
                fs::rename(vault.join("Jobs/t1"), vault.join("t1")).unwrap();
                std::os::unix::fs::symlink(vault.join("t1"), vault.join("Jobs/t1")).unwrap();
            }),
            (false, |vault| {
                fs::remove_file(vault.join("Jobs/t1/lock")).unwrap();
                fs::write(vault.join("Jobs/t1/lock"), "").unwrap();
            }),
        ];
        for (n, (kept, mishap)) in mishaps.into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let vault = dir.path().join("Vault");
            fs::create_dir_all(vault.join(AKASHIC)).unwrap();
            let job = JobDir::create(&vault, &EntityId::parse("t1").unwrap()).unwrap();
            let held = job.take_lock(Duration::ZERO).unwrap();
            mishap(&vault);
            assert_eq!(job.is_kept(&held), kept, "{n}");
        }
    }

    #[test]
    fn the_lock_is_busy_while_it_is_held() {
        let fixture = Fixture::new();
        let held = fixture.job.take_lock(Duration::ZERO).unwrap();
        assert_eq!(fixture.job.take_lock(Duration::ZERO).unwrap_err().kind, ErrorKind::Busy);
        drop(held);
        fixture.job.take_lock(Duration::ZERO).unwrap();
    }
}
