//! A new job: its directory and lock first, then its events, then its supervisor.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::settle::is_in_progress;
use super::{command, log_reference, queue};
use crate::base::{EntityId, EntityType, Error, ErrorKind, Reason, Result, Subject, limits, text};
use crate::event::Kind;
use crate::job::{Beat, JobDir, JobLock, RawText, SUPERVISE, Spec, StartWith, SupervisorProgram, start_supervisor};
use crate::machine::Phase;
use crate::op::kernel::{Added, Transaction, is_stopped};
use crate::op::{Context, Recorded, mission, random_ulid};
use crate::policy::command::{Binding, RecordedCommand};
use crate::policy::pattern::matches_any;
use crate::policy::rules::{self, Blocker, blockers};
use crate::policy::settings::Setting;
use crate::policy::{Request, project};
use crate::state::Entity;
use crate::vault::Vault;
use crate::vault::config::Config;

/// How long to wait for a job's lock that no supervisor holds: somebody may be checking the job.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(1);
/// Enough for a thread that makes one system call.
const STACK_BYTES: usize = 128 * 1024;

/// A command to run as a job.
#[derive(Clone, Debug)]
pub struct FireRequest {
    /// The command and its arguments.
    pub argv: Vec<OsString>,
    /// A one-line title; default: the command.
    pub title: Option<String>,
    /// An existing task; default: a new one.
    pub task: Option<String>,
    /// The requirement that the task is for.
    pub requirement: Option<String>,
    /// Jobs or tasks that have to succeed first.
    pub after: Vec<String>,
    /// The job is ended after this time; default: no limit.
    pub timeout_seconds: Option<u64>,
    /// How many times it is retried after a transient failure; default: as often as the proposer of an existing task said,
    /// else never.
    pub retries: Option<u64>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Additional environment variables.
    pub env: Vec<(OsString, OsString)>,
    /// The names of variables of the caller that the command gets and that are not stored.
    pub secrets: Vec<String>,
    /// What counts as a sign of life.
    pub beat: Beat,
    /// Whether it requires approval by an operator.
    pub destructive: bool,
    /// The step of a mission's round that it is.
    pub mission: Option<MissionStep>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// A step of a mission's round.
#[derive(Clone, Debug)]
pub struct MissionStep {
    /// The mission's id.
    pub mission: String,
    /// One of `MISSION_STEPS`.
    pub step: &'static str,
}

impl FireRequest {
    /// A command and its directory, with defaults for everything else.
    pub fn new(argv: Vec<OsString>, cwd: PathBuf) -> Self {
        FireRequest {
            argv,
            cwd,
            title: None,
            task: None,
            requirement: None,
            after: Vec::new(),
            timeout_seconds: None,
            retries: None,
            env: Vec::new(),
            secrets: Vec::new(),
            beat: Beat::Timer,
            destructive: false,
            mission: None,
            key: None,
        }
    }
}

#[derive(Debug)]
pub struct FireOutcome {
    pub task: Entity,
    pub run_id: String,
    pub logref: String,
    /// Whether it requires approval by an operator before it starts.
    pub waits_for_approval: bool,
    /// The requested event, and its consequences.
    pub recorded: Recorded,
}

/// Fires a job and returns immediately.
pub fn fire(ctx: &Context, request: FireRequest) -> Result<FireOutcome> {
    let vault = ctx.open()?;
    if request.argv.is_empty() {
        return Err(Error::usage("missing command; put it after --"));
    }
    if request.argv[0].is_empty() {
        return Err(Error::usage("the command after -- is empty"));
    }
    if request.title.as_ref().is_some_and(|title| title.trim().is_empty()) {
        return Err(Error::usage("the title is empty"));
    }
    let no_supervisor = || Error::system("cannot fire a job", "hf-job not found");
    let supervisor = ctx.host.supervisor.clone().ok_or_else(no_supervisor)?;
    let missing = |why: &str| Error::usage(format!("the working directory {} {why}", request.cwd.display()));
    match std::fs::metadata(&request.cwd) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(missing("is not a directory")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(missing("does not exist")),
        Err(e) => return Err(Error::system(format!("cannot read {}", request.cwd.display()), e)),
    }
    for name in &request.secrets {
        command::check_secret(name)?;
        if (ctx.host.variable)(name.as_ref()).is_none() {
            return Err(Error::usage(format!("the variable {name} is not set")));
        }
    }
    let mut firing = Firing { ctx, vault: &vault, request, supervisor, binding: None };
    loop {
        match firing.fire(Transaction::begin(ctx, &vault)?)? {
            FireStep::Fired(outcome) => {
                // The first call may have been killed before it came to the mission's file.
                if outcome.recorded.duplicate {
                    mission::settle_file(ctx, &vault);
                }
                return Ok(*outcome);
            }
            // What an approval binds is read without the lock.
            FireStep::MustBind(settings) => firing.binding = Some(command::bind(ctx, &firing.request, &settings)?),
        }
    }
}

/// What came of an attempt to fire a job.
enum FireStep {
    Fired(Box<FireOutcome>),
    /// It requires approval, and nothing says yet what an approval would bind.
    MustBind(Box<Config>),
}

struct Firing<'a> {
    ctx: &'a Context,
    vault: &'a Vault,
    request: FireRequest,
    supervisor: SupervisorProgram,
    /// What an approval binds, if it requires one.
    binding: Option<Binding>,
}

impl Firing<'_> {
    fn fire(&mut self, mut tx: Transaction<'_>) -> Result<FireStep> {
        let task = |id: &EntityId| tx.state().entity(&Subject::new(EntityType::Task, id.clone()));
        let is_recorded = |id: &EntityId| task(id).is_some_and(|task| task.is_job());
        JobDir::sweep(self.vault.path(), &is_recorded)?;
        // Once it was bound its words are full paths, which a pattern need not match.
        let matches = || self.matches(&tx.config.texts(Setting::DestructiveCommands));
        let destructive = self.request.destructive || self.binding.is_some() || matches();
        if destructive {
            // The approval is for this program, not for whatever its name resolves to later.
            command::resolve(self.ctx, &mut self.request)?;
        }
        let asked = match &self.request.task {
            Some(reference) => self.assign(&tx, reference, destructive)?,
            None => self.propose(&tx, destructive)?,
        };
        if let Some(first) = tx.repeated(&Request { subject: None, ..asked.clone() })? {
            self.check_variables(&first)?;
            let may_start = self.check_may_queue(&tx, &asked).is_ok();
            // Starting a supervisor needs no lock.
            drop(tx);
            if may_start {
                self.start_if_never_taken(&first)?;
            }
            return self.outcome(first);
        }
        self.check_may_queue(&tx, &asked)?;
        let asked = match (destructive && self.request.task.is_none(), &self.binding) {
            (true, None) => return Ok(FireStep::MustBind(Box::new(tx.config.clone()))),
            (true, Some(_)) => self.with_binding(asked),
            (false, _) => asked,
        };
        let subject = asked.subject.clone().unwrap_or_default();
        let id = EntityId::parse(subject.split_once(':').map_or("", |(_, id)| id))?;
        let path = self.vault.path();
        let is_new = JobDir::open(path, &id)?.is_none();
        if is_new {
            JobDir::announce(path, &id)?;
        }
        let job = JobDir::create(path, &id)?;
        let prepared = self.prepare(&mut tx, &job, asked);
        let (lock, first) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                // The job was not recorded, so its directory is removed. An earlier job of the same task keeps its own.
                if is_new {
                    job.discard()?;
                    JobDir::settle(path, &id);
                }
                return Err(error);
            }
        };
        let done = match tx.finish(&[first]) {
            Ok(done) => done,
            Err(error) => {
                drop(lock);
                if is_new && !matches!(error.kind, ErrorKind::Uncertain { .. }) {
                    job.discard()?;
                    JobDir::settle(path, &id);
                }
                return Err(error);
            }
        };
        let key = done.asked.key.clone().unwrap_or_else(|| done.asked.id.to_string());
        let started = start(&self.supervisor, self.vault, &id, lock, StartWith::CallersVariables);
        // The events are recorded, so an error is no longer a refusal: the job exists, and is lost at worst.
        let outcome = started.and_then(|()| self.outcome(done));
        outcome.map_err(|error| Error::new(ErrorKind::Uncertain { key }, error.message))
    }

    /// Starts the supervisor of a repeated request if the first caller died before that.
    fn start_if_never_taken(&self, first: &Recorded) -> Result<()> {
        let Some(task) = first.entity.as_ref().filter(|task| is_in_progress(task)) else { return Ok(()) };
        let id = super::id_of(task);
        let Some(job) = JobDir::open(self.vault.path(), &id)? else { return Ok(()) };
        if !job.was_never_taken()? {
            return Ok(());
        }
        // Somebody who holds it is about to start it.
        let lock = match job.take_lock(LOCK_WAIT) {
            Err(error) if error.kind == ErrorKind::Busy => return Ok(()),
            lock => lock?,
        };
        match job.was_never_taken()? {
            true => start(&self.supervisor, self.vault, &id, lock, StartWith::CallersVariables),
            false => Ok(()),
        }
    }

    /// Refuses a job while everything is stopped or its project is paused: it would start by itself when an operator
    /// resumes the work.
    fn check_may_queue(&self, tx: &Transaction<'_>, asked: &Request) -> Result<()> {
        if is_stopped(tx.state()) {
            return Err(rules::stopped(tx.state()));
        }
        let waiting = tx.state().tally().waiting_jobs();
        if waiting >= limits::JOBS_WAITING_MAX_COUNT {
            let why = format!("job limit reached: {waiting} are waiting for their turn");
            return Err(Error::refused(Reason::LimitReached, why));
        }
        match project::of_request(tx.state(), asked) {
            Some(project) => project::check_may_queue(tx.state(), &project, &self.ctx.caller.actor),
            None => Ok(()),
        }
    }

    /// Everything but the commit: lock, events, and the spec of the command.
    fn prepare(&self, tx: &mut Transaction<'_>, job: &JobDir, asked: Request) -> Result<(JobLock, Added)> {
        let lock = job.take_lock(LOCK_WAIT)?;
        mission::begin_round_for(self.ctx, tx, &asked)?;
        let first = tx.ask(asked)?;
        let run = random_ulid(self.ctx.now)?.to_string();
        let subject = tx.state().resolve(job.task().as_str(), Some(EntityType::Task))?;
        let task = tx.state().entity(&subject).expect("it was just created").into_owned();
        // Nothing would say that it is a job, and its holder could start it, too.
        if first.already {
            return Err(is_held(&task));
        }
        let turn = task.phase == Phase::Ready && queue::has_turn(self.vault, tx.state(), &tx.config, &task);
        if turn {
            let holder = json!({"holder": self.ctx.caller.actor.to_string(), "job": true});
            tx.ask(self.ctx.request(Kind::TaskAssigned, Some(&subject.to_string()), holder))?;
        }
        if turn || task.phase == Phase::Assigned {
            let logged = self.command();
            tx.ask(super::supervise::run_started(self.ctx, &task, &run, self.request.timeout_seconds, &logged))?;
        }
        job.put_spec(&Spec { lock_inode: job.lock_inode()?, ..self.spec(tx, &run) })?;
        Ok((lock, first))
    }

    /// Refuses a repeated request with other variables, as far as they are recorded.
    fn check_variables(&self, first: &Recorded) -> Result<()> {
        let bound = RecordedCommand::read(&first.asked.payload)?.and_then(|command| command.bound);
        match bound.is_none_or(|bound| command::has_same_variables(self.ctx, &self.request, &bound)) {
            true => Ok(()),
            false => {
                let key = self.request.key.as_deref().unwrap_or_default();
                let why = format!("the key '{key}' was already used by a job with other variables");
                Err(Error::refused(Reason::KeyConflict, why))
            }
        }
    }

    /// The command as it is recorded.
    fn command(&self) -> RecordedCommand {
        RecordedCommand { bound: self.binding.clone(), ..command::requested(&self.request) }
    }

    /// The request of a job that requires approval, with everything that an approval binds.
    fn with_binding(&self, asked: Request) -> Request {
        let mut payload = asked.payload;
        payload.extend(self.command().members_with_binding());
        Request { payload, ..asked }
    }

    /// The event that creates the task of a new job.
    fn propose(&self, tx: &Transaction<'_>, destructive: bool) -> Result<Request> {
        let words: Vec<String> = self.request.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let title =
            self.request.title.clone().unwrap_or_else(|| text::cut(&words.join(" "), limits::SUMMARY_MAX_CHARS));
        let mut after = Vec::new();
        for reference in &self.request.after {
            after.push(tx.state().find(reference, EntityType::Task)?.id().to_owned());
        }
        let requirement = self.request.requirement.as_ref();
        let requirement = requirement.map(|r| tx.state().find(r, EntityType::Requirement)).transpose()?;
        if let Some(requirement) = &requirement {
            crate::op::pause::check_same_project(self.ctx, tx.state(), requirement.id())?;
        }
        let mut payload = json!({
            "title": title,
            "requirement_id": requirement.as_ref().map(|requirement| requirement.id()),
            "project_id": crate::op::pause::project_member(self.ctx.project.as_ref().filter(|_| requirement.is_none())),
            "job": true,
            "max_retries": self.request.retries.unwrap_or(0),
            "after": if after.is_empty() { Value::Null } else { json!(after) },
            "destructive": destructive.then_some(true),
            "of_mission": self.request.mission.as_ref().map(|step| &step.mission),
            "mission_step": self.request.mission.as_ref().map(|step| step.step),
        });
        payload.as_object_mut().expect("it is an object").extend(command::requested(&self.request).members());
        let subject = format!("{}:{}", EntityType::Task, random_ulid(self.ctx.now)?);
        Ok(Request { key: self.request.key.clone(), ..self.ctx.request(Kind::TaskProposed, Some(&subject), payload) })
    }

    /// The event that assigns an existing task.
    fn assign(&self, tx: &Transaction<'_>, reference: &str, destructive: bool) -> Result<Request> {
        let subject = tx.state().find(reference, EntityType::Task)?;
        let task = tx.state().entity(&subject).expect("it was resolved").into_owned();
        let name = task.name();
        let refused = |why: String| Err(Error::refused(Reason::ApprovalRequired, why));
        match task.as_task().is_destructive() {
            true if task.is_job() => {
                return refused(format!("{name} keeps the command that it was fired with; its supervisor starts it"));
            }
            true => return refused(format!("{name} was not approved for this command")),
            false if destructive => return refused(format!("{name} was not approved for this command")),
            false => {}
        }
        let holder = self.ctx.caller.actor.to_string();
        let mut payload = json!({
            "holder": holder,
            "job": true,
            "max_retries": self.request.retries,
            "of_mission": self.request.mission.as_ref().map(|step| &step.mission),
            "mission_step": self.request.mission.as_ref().map(|step| step.step),
        });
        payload.as_object_mut().expect("it is an object").extend(command::requested(&self.request).members());
        Ok(Request {
            key: self.request.key.clone(),
            ..self.ctx.request(Kind::TaskAssigned, Some(&subject.to_string()), payload)
        })
    }

    /// Whether the settings say that it requires approval.
    fn matches(&self, patterns: &[String]) -> bool {
        let words: Vec<String> = self.request.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        matches_any(patterns, &words)
    }

    /// The caller's variables that are stored, for another supervisor: no secrets.
    fn kept_env(&self) -> Vec<(OsString, OsString)> {
        let is_secret = |name: &OsString| self.request.secrets.iter().any(|secret| name.to_str() == Some(secret));
        self.ctx.host.kept_env.iter().filter(|(name, _)| !is_secret(name)).cloned().collect()
    }

    fn spec(&self, tx: &Transaction<'_>, run: &str) -> Spec {
        let FireRequest { env, secrets, timeout_seconds, beat, .. } = &self.request;
        let extra = Map::from_iter([("run_id".to_owned(), run.into())]);
        Spec {
            // The variables of a command that requires approval are in the log.
            env: if self.binding.is_some() { Vec::new() } else { raw(env) },
            secrets: secrets.clone(),
            timeout: timeout_seconds.map(Duration::from_secs),
            kill_grace: Duration::from_secs(tx.config.count(Setting::JobsKillGrace)),
            log_max_bytes: tx.config.count(Setting::JobsLogMaxBytes),
            heartbeat: Some(Duration::from_secs(tx.config.count(Setting::HeartbeatIntervalSeconds))),
            beat: *beat,
            extra,
            kept_env: raw(&self.kept_env()),
            control_group: tx.config.flag(Setting::JobsControlGroups),
            lock_inode: None,
        }
    }

    fn outcome(&self, recorded: Recorded) -> Result<FireStep> {
        let missing_task = || Error::corrupt("the job's task is missing");
        let task = recorded.entity.clone().ok_or_else(missing_task)?;
        let job = JobDir::open(self.vault.path(), &super::id_of(&task))?;
        let first_run = || Some(job?.spec().ok()?.extra.get("run_id")?.as_str()?.to_owned());
        let run_id = task.as_task().last_run_id().map(str::to_owned).or_else(first_run).unwrap_or_default();
        let logref = log_reference(&task, 1);
        let blockers = blockers(&self.vault.view()?.1, &task);
        let waits_for_approval =
            task.phase == Phase::Proposed && blockers.iter().any(|blocker| matches!(blocker, Blocker::Approval));
        Ok(FireStep::Fired(Box::new(FireOutcome { task, run_id, logref, waits_for_approval, recorded })))
    }
}

/// The refusal of a command for a task that somebody works on.
fn is_held(task: &Entity) -> Error {
    let (name, holder) = (task.name(), task.as_task().recorded_holder().unwrap_or("nobody"));
    let why = "--task needs a task that nobody holds; fire the command without --task";
    Error::refused(Reason::IllegalTransition, format!("{name} is held by {holder}; {why}"))
}

/// Starts the supervisor of a job that is recorded. It takes over the job's lock.
pub(super) fn start(
    supervisor: &SupervisorProgram,
    vault: &Vault,
    id: &EntityId,
    lock: JobLock,
    with: StartWith<'_>,
) -> Result<()> {
    // Here, and not where it was fired: that process may have been killed.
    JobDir::settle(vault.path(), id);
    // Absolute, because it starts in another directory.
    let vault =
        std::path::absolute(vault.path()).map_err(|e| Error::system("cannot resolve the path of the vault", e))?;
    let arguments = [SUPERVISE.into(), id.as_str().into(), "--vault".into(), vault.into_os_string()];
    start_supervisor(supervisor, lock, &arguments, with).map(reap_when_ended)
}

/// Reaps a detached process when it ends, so that a program that starts many does not collect zombies. Best effort: a
/// command usually exits before that, and then init reaps it.
pub(in crate::op) fn reap_when_ended(mut child: Child) {
    let reap = move || drop(child.wait());
    let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn(reap);
}

/// Variables as a spec has them.
fn raw(variables: &[(OsString, OsString)]) -> Vec<(RawText, RawText)> {
    variables.iter().cloned().map(|(name, value)| (RawText(name), RawText(value))).collect()
}
