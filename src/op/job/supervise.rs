//! The supervisor: holds the job's lock from before its first event until after its last, waits for its turn, runs
//! the command, and retries it where that is allowed.
//!
//! At the end of a run, in this order: exit record on disk, events, unlock. If the events cannot be recorded the exit
//! record remains, and the next command that checks the job records them.
//!
//! Invariant: a supervisor does not outlive its job in the vault. If the job's directory is deleted it can no
//! longer be cancelled, so the supervisor ends its command and exits
//! (`a_job_whose_vault_is_deleted_ends_with_everything_it_started`).

use std::time::Duration;

use serde_json::{Value, json};

use super::command::LoggedCommand;
use super::{end, log_path, log_reference, queue, run_of};
use crate::base::{EntityId, EntityType, Error, ErrorKind, Result, Subject, limits, text};
use crate::event::Kind;
use crate::job::{
    CancelReason, ControlWatch, ExitRecord, Halt, Identity, JobDir, JobLock, JobRun, Leftover, Observer, RunTree,
    Signals, Spec, end_rest, take_over,
};
use crate::machine::Phase;
use crate::op::hook::{self, HookInput};
use crate::op::kernel::{Transaction, with_view};
use crate::op::{Caller, Context, Shell};
use crate::policy::Request;
use crate::policy::command::RecordedCommand;
use crate::policy::rules;
use crate::policy::settings::Setting;
use crate::state::Entity;
use crate::vault::{StopFlag, Vault};

/// How often a waiting supervisor checks by itself; usually it is notified.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// How long a heartbeat waits for the lock: watching the command is more important.
const BEAT_LOCK_WAIT: Duration = Duration::from_millis(300);
/// How long the events at the end wait for the lock.
const END_LOCK_WAIT: Duration = Duration::from_secs(60);
/// How long to wait before recording anything after the directory is gone: a deletion of the vault may be in progress,
/// and new files would get in the way.
const DELETE_WAIT: Duration = Duration::from_secs(1);
/// The reason for the end of a job whose directory was deleted.
const LOST: &str = "its directory in the vault is missing";

/// A job to supervise.
#[derive(Clone, Debug, Default)]
pub struct SuperviseRequest {
    /// The task's id.
    pub task: String,
}

/// Supervises a job until it ends; the main function of the supervisor process.
pub fn supervise(ctx: &Context, request: SuperviseRequest) -> Result<()> {
    let vault = ctx.open()?;
    let id = EntityId::parse(&request.task)?;
    let job = JobDir::open(vault.path(), &id)?.ok_or_else(|| Error::not_found(format!("job {id} not found")))?;
    let lock = take_over(&job)?;
    let signals = ctx.cancel.signals()?;
    let spec = job.spec()?;
    // Who fired it, and what it runs, is in the log: the files of a job can be changed.
    let actor = with_view(&vault, |log, state| {
        let task = state.entity(&Subject::new(EntityType::Task, id.clone()));
        let task = task.ok_or_else(|| Error::not_found(format!("task {id} does not exist")))?;
        LoggedCommand::read(log, &task).map(|logged| logged.actor)
    })?;
    // A job continues after the session that fired it.
    let shell = Shell::Supervisors;
    let caller = Caller { actor, shell };
    let ctx = Context { caller, session: None, project: None, ..ctx.clone() };
    // One watch for the whole time. It is closed after the lock is released, because that takes milliseconds.
    let control = ControlWatch::of_job(&job);
    let supervisor = Supervision {
        ctx: &ctx,
        vault: &vault,
        job: &job,
        lock: &lock,
        spec: &spec,
        signals: &signals,
        control: &control,
    };
    let (mut last, mut leftover) = (None, Leftover::default());
    while let Some((task, run)) = supervisor.wait_for_turn()? {
        // A job never runs beside itself: what an earlier run left behind may still do its work, also if the supervisor of
        // that run is gone.
        leftover.end(spec.kill_grace);
        end_rest(&job, spec.kill_grace)?;
        let FinishedRun { record, logref, recorded, rest } = supervisor.run(&task, &run)?;
        leftover.add(rest);
        // The next command that checks the job records it, which requires the lock, and has the hook run.
        if recorded.is_err() {
            last = None;
            break;
        }
        // The log knows the end, even if the exit record could not be written.
        if leftover.living().is_empty() {
            job.forget_running();
        }
        last = Some((task, record, logref));
    }
    // Before the lock is released, so that a stop finds one of them held.
    let left = if leftover.living().is_empty() { None } else { Some(job.hold_left()?) };
    drop(lock);
    if let Some((task, record, logref)) = last {
        let ended = with_view(&vault, |_, state| Ok(state.entity(&task.subject).map(|task| task.into_owned())));
        let task = ended.ok().flatten().unwrap_or(task);
        let report = end::report(&vault, &task, Some(&record), &logref);
        let subject = task.subject.to_string();
        let (report, variables) = (&report.text, &report.variables);
        hook::run(&ctx, &vault, HookInput { hook: Setting::JobsOnFinish, subject: &subject, report, variables });
    }
    if let Some(left) = left {
        let halts = || {
            let is_cancelled = matches!(job.cancel_reason(), Ok(Some(_)));
            is_cancelled || stop_flag(&ctx, &vault).is_some() || !job.is_kept_with_rest(&left)
        };
        leftover.look_after(spec.kill_grace, &signals, &control, &halts)?;
        job.forget_running();
    }
    Ok(())
}

/// The flag of a stop. One that cannot be read counts as not set. The log may have been moved away and replaced since the
/// supervisor started.
fn stop_flag(ctx: &Context, vault: &Vault) -> Option<StopFlag> {
    vault.stop_flag().or_else(|| ctx.open().ok().and_then(|vault| vault.stop_flag()))
}

/// A run that has ended.
struct FinishedRun {
    record: ExitRecord,
    logref: String,
    /// Whether its end is recorded.
    recorded: Result<()>,
    /// Its processes, if some may be left.
    rest: Option<RunTree>,
}

struct Supervision<'a> {
    ctx: &'a Context,
    vault: &'a Vault,
    job: &'a JobDir,
    lock: &'a JobLock,
    spec: &'a Spec,
    signals: &'a Signals,
    control: &'a ControlWatch,
}

impl Supervision<'_> {
    /// The context with the current time.
    fn now(&self, lock_timeout: Duration) -> Context {
        Context { lock_timeout, ..self.ctx.at_this_moment() }
    }

    /// Whether the job's directory was deleted.
    fn is_lost(&self) -> bool {
        let lost = !self.job.is_kept(self.lock);
        if lost {
            // If the pause fails we are early, which does no harm.
            let _ = self.signals.pause(DELETE_WAIT);
        }
        lost
    }

    /// Waits until the command may run. Returns its run, or none if it never will.
    fn wait_for_turn(&self) -> Result<Option<(Entity, EntityId)>> {
        loop {
            let mut ctx = self.now(END_LOCK_WAIT);
            let abort_reason = match (self.job.cancel_reason()?, self.signals.asked()) {
                (Some(CancelReason::Cancelled), _) => {
                    ctx = end::as_canceller(&ctx, self.job);
                    Some(CancelReason::Cancelled.as_str().to_owned())
                }
                (_, Some(signal)) => Some(format!("its supervisor received signal {signal}")),
                _ => self.is_lost().then(|| LOST.to_owned()),
            };
            // Other errors may pass, but a vault that is gone does not come back.
            match self.next_step(&ctx, abort_reason.as_deref()) {
                Ok(NextStep::Run(task, run)) => return Ok(Some((*task, run))),
                Ok(NextStep::Over) => return Ok(None),
                Err(e) if abort_reason.is_some() || e.kind == ErrorKind::NoVault => return Ok(None),
                Ok(NextStep::Wait) | Err(_) => self.control.wait(CHECK_EVERY, self.signals)?,
            }
        }
    }

    fn next_step(&self, ctx: &Context, abort_reason: Option<&str>) -> Result<NextStep> {
        let mut tx = Transaction::begin(ctx, self.vault)?;
        let subject = Subject::new(EntityType::Task, self.job.task().clone());
        let Some(task) = tx.state().entity(&subject).map(|task| task.into_owned()) else {
            return Err(Error::not_found(format!("{subject} does not exist")));
        };
        let run = run_of(&task);
        // Started by `fire`, or by an earlier supervisor that did not get to run it.
        if let Some(run) = run.filter(|_| task.phase == Phase::Running) {
            return Ok(match self.job.exit_record(&run)? {
                None => NextStep::Run(Box::new(task), run),
                Some(_) => NextStep::Over,
            });
        }
        if let Some(reason) = abort_reason.filter(|_| !has_ended(&task)) {
            let abort =
                tx.ask(ctx.request(Kind::TaskAborted, Some(&subject.to_string()), json!({"reason": reason})))?;
            tx.commit(abort.id)?;
            return Ok(NextStep::Over);
        }
        let stopped = tx.state().phase_of(&Subject::SYSTEM) == Phase::Stopped;
        let stopped = stopped || queue::is_project_inactive(tx.state(), &task);
        match task.phase {
            Phase::Ready if !stopped && queue::has_turn(self.vault, tx.state(), &tx.config, &task) => {
                let holder = json!({"holder": ctx.caller.actor.to_string(), "job": true});
                tx.ask(ctx.request(Kind::TaskAssigned, Some(&subject.to_string()), holder))?;
            }
            Phase::Assigned if !stopped && queue::has_room(tx.state(), &tx.config) => {}
            Phase::Proposed | Phase::Ready | Phase::Retrying | Phase::Assigned => return Ok(NextStep::Wait),
            _ => return Ok(NextStep::Over),
        }
        let run = self.next_run(&task)?;
        let timeout = self.spec.timeout.map(|timeout| timeout.as_secs());
        let logged = LoggedCommand::read(&*tx.log, &task)?;
        let asked = tx.ask(run_started(ctx, &task, &run, timeout, &logged.command))?;
        tx.commit(asked.id)?;
        Ok(NextStep::Run(Box::new(task), EntityId::parse(&run)?))
    }

    /// The id of the next run; that of the first one was chosen when the job was fired.
    fn next_run(&self, task: &Entity) -> Result<String> {
        let first = self.spec.extra.get("run_id").and_then(Value::as_str).filter(|id| EntityId::parse(id).is_ok());
        match first.filter(|_| run_of(task).is_none()) {
            Some(first) => Ok(first.to_owned()),
            None => Ok(crate::op::random_ulid((self.ctx.host.clock)())?.to_string()),
        }
    }

    /// Runs the command once, and records how it ended if possible.
    fn run(&self, task: &Entity, run: &EntityId) -> Result<FinishedRun> {
        let runs = self.vault.view()?.1.made_for(&task.subject, EntityType::Run).len();
        let logref = log_reference(task, runs);
        let clock = self.ctx.host.clock;
        let logged = with_view(self.vault, |log, _| LoggedCommand::read(log, task));
        let command = logged.as_ref().map_err(Error::clone).and_then(|logged| logged.to_run(self.ctx, self.spec));
        let (logged, command) = match (logged, command) {
            (Ok(logged), Ok(command)) => (logged, command),
            (Err(error), _) | (_, Err(error)) => {
                let record = ExitRecord::not_started(run, error.message, clock().timestamp());
                end::record(&self.now(END_LOCK_WAIT), self.vault, self.job, &record)?;
                return Ok(FinishedRun { record, logref, recorded: Ok(()), rest: None });
            }
        };
        let log = log_path(&logref);
        let attempt = JobRun {
            job: self.job,
            spec: self.spec,
            command: &command,
            run_id: run,
            log: &log,
            signals: self.signals,
            control: self.control,
            now: &|| clock(),
        };
        let run_subject = format!("{}:{run}", EntityType::Run);
        let mut watch = RunObserver { supervisor: self, run: run_subject, logged: &logged, changed: None };
        let outcome = attempt.run(&mut watch);
        if let Some(changed) = watch.changed
            && self.ask_again(task, changed).is_ok()
        {
            return Ok(FinishedRun { record: outcome.record, logref, recorded: Ok(()), rest: outcome.rest });
        }
        if self.job.cancel_reason()? == Some(CancelReason::Silent) {
            self.job.clear_cancel()?;
        }
        // If this fails the exit record remains.
        let recorded = end::record(&self.now(END_LOCK_WAIT), self.vault, self.job, &outcome.record);
        Ok(FinishedRun { record: outcome.record, logref, recorded: recorded.map(drop), rest: outcome.rest })
    }

    /// Requests approval of a command as it is now. If that cannot be recorded, the run is recorded as ended.
    fn ask_again(&self, task: &Entity, changed: ChangedCommand) -> Result<()> {
        if changed.command.stated_bytes() > limits::BOUND_CHANGED_MAX_BYTES {
            return Err(Error::usage("what has changed is too long to be approved"));
        }
        let ctx = self.now(END_LOCK_WAIT);
        let mut tx = Transaction::begin(&ctx, self.vault)?;
        let mut payload = changed.command.members_with_binding();
        payload.insert("reason".to_owned(), changed.why.into());
        let subject = task.subject.to_string();
        let asked = tx.ask(ctx.request(Kind::CommandChanged, Some(&subject), Value::Object(payload)))?;
        tx.commit(asked.id).map(drop)
    }
}

/// A command that an approval no longer covers.
struct ChangedCommand {
    command: RecordedCommand,
    why: String,
}

fn has_ended(task: &Entity) -> bool {
    matches!(task.phase, Phase::Succeeded | Phase::Aborted | Phase::Archived)
}

enum NextStep {
    Run(Box<Entity>, EntityId),
    Wait,
    Over,
}

/// The event that starts a run.
pub(super) fn run_started(
    ctx: &Context,
    task: &Entity,
    run: &str,
    timeout_seconds: Option<u64>,
    command: &RecordedCommand,
) -> Request {
    let mut payload = json!({"task_id": task.subject.id(), "timeout_seconds": timeout_seconds});
    payload.as_object_mut().expect("it is an object").extend(command.members());
    ctx.request(Kind::RunStarted, Some(&format!("{}:{run}", EntityType::Run)), payload)
}

struct RunObserver<'a> {
    supervisor: &'a Supervision<'a>,
    run: String,
    logged: &'a LoggedCommand,
    /// The command, if it was not as it was approved when it was about to start.
    changed: Option<ChangedCommand>,
}

impl Observer for RunObserver<'_> {
    fn at_gate(&mut self, waiting: &Identity) -> Option<Halt> {
        match self.logged.changed(waiting) {
            Ok(None) => None,
            Ok(Some(now)) => {
                let approved = self.logged.command.bound.clone().unwrap_or_default();
                let why = format!("{}: {}", end::CHANGED, now.differences(&approved).join(", "));
                let why = text::cut(&why, 2 * limits::SUMMARY_MAX_CHARS);
                let command = RecordedCommand { bound: Some(now), ..self.logged.command.clone() };
                self.changed = Some(ChangedCommand { command, why: why.clone() });
                Some(Halt { why })
            }
            Err(error) => Some(Halt { why: error.message }),
        }
    }

    fn started(&mut self, _: &Identity) {}

    fn beat(&mut self) {
        let Supervision { vault, .. } = self.supervisor;
        let ctx = self.supervisor.now(BEAT_LOCK_WAIT);
        // If a heartbeat cannot be recorded, the next one will be.
        let _ = Transaction::begin(&ctx, vault).and_then(|mut tx| {
            let asked = tx.ask(ctx.request(Kind::Heartbeat, Some(&self.run), json!({})))?;
            tx.commit(asked.id)
        });
    }

    fn halt(&mut self) -> Option<Halt> {
        let why = |why: &str| Some(Halt { why: why.to_owned() });
        if let Some(stop) = stop_flag(self.supervisor.ctx, self.supervisor.vault) {
            return why(&format!("{}: {}", rules::STOP_REASON, stop.reason));
        }
        match self.supervisor.job.cancel_reason() {
            Ok(Some(order)) => why(order.as_str()),
            _ if self.supervisor.is_lost() => why(LOST),
            _ => None,
        }
    }
}
