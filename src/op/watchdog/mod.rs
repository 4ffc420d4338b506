//! hf-watchdog: one tick. It evaluates every rule on the state, the time, the supervisors of jobs and the files of
//! agents, records what changed, and runs hooks after the lock is released.
//!
//! An anomaly of an agent is recorded twice: when a rule starts to fail and when it passes again. In between,
//! hooks remind of it, and only attempts to wake the agent and their failure are recorded. What is overdue is recorded
//! as its timeout; warnings and runaway actors are only reported.

mod agents;
mod edges;
mod files;
mod hooks;
mod quiet;
mod timer;

use std::time::Duration;

use super::agent::{AgentFiles, Intake, record, remembered_looks};
use super::job::{LostJob, OutlivedTask};
use super::{Context, References, agent, job, notify, project, references};
use crate::base::{EntityId, EntityType, HeartbeatId, Result, Subject, Timestamp, names};
use crate::event::Event;
use crate::job::{CancelReason, JobDir, JobLiveness};
use crate::machine::{self, Phase};
use crate::op::kernel::{Mode, Transaction};
use crate::policy::code::Code;
use crate::policy::due::{MachineFacts, Moment, SupervisorState};
use crate::policy::liveness::{self, Finding, Level, SignsOfLife};
use crate::policy::project::ProjectActivity;
use crate::policy::settings::Setting;
use crate::state::{Entity, Timer};
use crate::vault::{Looks, Tick, Vault};

use agents::WatchedAgent;
pub use quiet::{DueWarningsRequest, warnings_to_print};
pub use timer::{
    InstallTimerRequest, InstalledTimer, TimerCheck, TimerOutcome, TimerState, UninstallTimerRequest, WatchdogProgram,
    check_timer, install_timer, uninstall_timer,
};

names! {
    /// The health of the system at a tick.
    pub enum Health {
        Healthy = "HEALTHY",
        Warning = "WARNING",
        Anomaly = "ANOMALY",
        Paused = "PAUSED",
        Stopped = "STOPPED",
    }
}

/// Options of a tick.
#[derive(Clone, Debug)]
pub struct WatchdogRequest {
    /// A dry run changes nothing.
    pub mode: Mode,
}

#[derive(Debug)]
pub struct WatchdogOutcome {
    pub health: Health,
    /// Every rule that fails, worst first.
    pub findings: Vec<Finding>,
    /// The recorded events: type and subject.
    pub did: Vec<(String, String)>,
    pub heartbeat_id: HeartbeatId,
    pub tick_ms: u64,
    pub warnings: Vec<String>,
    /// The short references of the findings' subjects.
    pub references: References,
    /// The jobs that have no supervisor: in progress, or with processes that outlive their task.
    pub jobs: Vec<(Entity, JobLiveness)>,
    /// The signs of life of every active agent.
    pub agents: Vec<SignsOfLife>,
}

/// After this many events the batch is recorded; the rest follows in the next pass of the same tick.
const PASS_EVENTS: usize = 4000;
/// How many waiting tasks are checked for jobs without a supervisor, oldest first.
const QUEUED_CHECK_MAX: usize = 1000;
/// How many events are read at most to find runaway actors.
const RUNAWAY_READ_MAX: usize = 10_000;

/// Runs one tick.
pub fn watchdog(ctx: &Context, request: WatchdogRequest) -> Result<WatchdogOutcome> {
    let mode = request.mode;
    let began = crate::job::moment();
    let vault = ctx.open()?;
    let mut tick = TickRun::new(ctx, &vault, mode)?;
    let mut did = tick.check_jobs()?;
    let (looks, mut files) = tick.look_at_files()?;
    let (mut warnings, mut calls) = (Vec::new(), Vec::<hooks::HookCall>::new());
    loop {
        let mut tx = match mode {
            Mode::Write => Transaction::begin(ctx, &vault)?,
            Mode::DryRun => Transaction::read_only(ctx, &vault)?.1,
        };
        warnings.append(&mut tx.warnings);
        tx.machine = tick.machine.clone();
        tick.load_last()?;
        let (of_pass, more) = tick.pass(&mut tx, &mut files)?;
        if mode == Mode::DryRun {
            break;
        }
        // Of several passes of one tick only the last one runs the beat hook.
        calls.retain(|call| !call.is_beat());
        calls.extend(of_pass);
        vault.put_tick(&tick.tick)?;
        if let Some(first) = tx.batch().events().first().map(|event| event.id) {
            let done = tx.commit(first)?;
            did.extend(done.events.iter().map(action));
            warnings.extend(done.warnings);
        }
        if !more {
            break;
        }
    }
    if mode == Mode::Write {
        tick.finish_files(&looks, files);
        project::refresh(ctx, &vault);
    }
    warnings.append(&mut tick.warnings);
    let mut outcome = tick.outcome(did, warnings, began.elapsed());
    hooks::run(ctx, &vault, &calls, &outcome);
    if mode == Mode::Write
        && let Err(error) = notify::send_rest(ctx, &vault)
    {
        outcome.warnings.push(format!("cannot send notifications: {error}"));
    }
    Ok(outcome)
}

struct TickRun<'a> {
    ctx: &'a Context,
    vault: &'a Vault,
    mode: Mode,
    now: Timestamp,
    /// Whether jobs are supervised.
    machine: MachineFacts,
    tick: Tick,
    findings: Vec<Finding>,
    stopped: bool,
    paused: bool,
    /// Whether the settings name commands that must not be run here.
    commands_refused: bool,
    heartbeat_id: HeartbeatId,
    warnings: Vec<String>,
    jobs: Vec<(Entity, JobLiveness)>,
    agents: Vec<SignsOfLife>,
    /// The files that are taken in.
    intake: Intake<'a>,
    /// What is wrong with agents' files.
    files_findings: Vec<Finding>,
}

impl<'a> TickRun<'a> {
    fn new(ctx: &'a Context, vault: &'a Vault, mode: Mode) -> Result<Self> {
        let config = vault.config();
        let now = ctx.now.timestamp();
        let heartbeat_id = HeartbeatId::from_time(now, agent::zone_of(ctx, &config));
        Ok(TickRun {
            ctx,
            vault,
            mode,
            now,
            machine: MachineFacts::default(),
            tick: Tick::default(),
            findings: Vec::new(),
            stopped: false,
            paused: false,
            commands_refused: !config.commands().is_empty() && vault.check_commands(&config).is_err(),
            heartbeat_id,
            warnings: Vec::new(),
            jobs: Vec::new(),
            agents: Vec::new(),
            intake: Intake::for_tick(ctx, vault, mode)?,
            files_findings: Vec::new(),
        })
    }

    /// Reads the last tick under the lock: another watchdog may just have written one.
    fn load_last(&mut self) -> Result<()> {
        let before = self.vault.tick()?;
        self.tick = before.unwrap_or_default();
        self.tick.at = self.now.0;
        self.tick.works = self.ctx.host.works.clone();
        self.tick.reported_at.values_mut().for_each(|at| *at = (*at).min(self.now.0));
        Ok(())
    }

    /// Looks at the files of agents, before the lock is taken. Returns also what was remembered of the looks before.
    fn look_at_files(&mut self) -> Result<(Looks, Vec<AgentFiles>)> {
        let (log, state) = self.vault.view()?;
        let config = self.vault.config_with(&state);
        let looks = remembered_looks(self.vault, &*log)?;
        let files = files::look_at_all(self, &state, &config, &looks)?;
        let in_works = files.iter().filter(|files| files.is_works).map(|files| files.name.to_string());
        self.intake.in_works = in_works.collect();
        self.files_findings.extend(files.iter().flat_map(|files| files.findings.iter().cloned()));
        Ok((looks, files))
    }

    /// Renames declarations that ended, and remembers the look. What cannot be done now is done by the next tick.
    fn finish_files(&mut self, before: &Looks, files: Vec<AgentFiles>) {
        for agent in &files {
            let of_agent = agent.renames.iter().map(|(path, end)| (agent.name.clone(), path.clone(), *end));
            self.intake.renames.extend(of_agent);
        }
        self.warnings.append(&mut self.intake.rename_all());
        let agents = files.into_iter().map(|files| (files.name.to_string(), files.look.looked)).collect();
        let mut looks = Looks { agents, ..before.clone() };
        if looks == *before {
            return;
        }
        let head = self.vault.view().map(|(log, _)| log.head().map(|head| head.id.to_string()).unwrap_or_default());
        looks.through = head.unwrap_or_default();
        if let Err(error) = self.vault.put_looks(&looks) {
            self.warnings.push(format!("cannot remember what was looked at: {error}"));
        }
    }

    /// Finds jobs whose supervisor is gone, before the lock is taken, and settles them. Returns what was recorded.
    fn check_jobs(&mut self) -> Result<Vec<(String, String)>> {
        let queued = [(Phase::Proposed, QUEUED_CHECK_MAX), (Phase::Ready, QUEUED_CHECK_MAX)];
        let in_progress = [Phase::Assigned, Phase::Running, Phase::Retrying].map(|phase| (phase, usize::MAX));
        // The state is dropped before anything is settled: it has the index open, and the holder of the vault's lock
        // may wait for the index.
        let (tasks, outlived): (Vec<Entity>, _) = {
            let (_, state) = self.vault.view()?;
            let checked = queued.into_iter().chain(in_progress);
            let tasks = checked.flat_map(|(phase, max)| state.in_phase(EntityType::Task, phase, max));
            (tasks.filter(Entity::is_job).collect(), job::outlived(self.vault, &state))
        };
        match outlived {
            Ok(outlived) => self.check_outlived(outlived),
            Err(error) => self.warnings.push(format!("cannot check the processes of jobs that ended: {error}")),
        }
        let mut did = Vec::new();
        for task in &tasks {
            let (liveness, lost) = match job::settle(self.ctx, self.vault, task, self.mode) {
                Ok(settled) => {
                    did.extend(settled.events.iter().map(action));
                    (settled.liveness, settled.lost)
                }
                // One broken directory must not hide everything else from the watchdog.
                Err(error) => {
                    self.warnings.push(format!("cannot check {}: {error}", task.name()));
                    (None, None)
                }
            };
            let supervisor = match liveness {
                Some(JobLiveness::Supervised) => SupervisorState::Supervised,
                _ => SupervisorState::Unsupervised,
            };
            // What is settled here, or would be, is not due as well.
            if lost.is_none() && !matches!(liveness, Some(JobLiveness::Ended(_))) {
                self.machine.jobs.insert(EntityId::parse(task.subject.id())?, supervisor);
            }
            if lost.is_none() && matches!(liveness, Some(JobLiveness::Orphaned(_))) {
                self.report(Code::JobOrphaned, task.subject.clone(), Level::Error, 0);
            }
            let without_supervisor = match (&lost, liveness) {
                (Some(LostJob::ForGood), _) => Some(JobLiveness::Lost),
                (None, Some(orphaned @ JobLiveness::Orphaned(_))) => Some(orphaned),
                // A tick would take care of it; until then somebody has to.
                (_, Some(unattended @ (JobLiveness::Lost | JobLiveness::Ended(_)))) if self.mode == Mode::DryRun => {
                    Some(unattended)
                }
                _ => None,
            };
            self.jobs.extend(without_supervisor.map(|liveness| (task.clone(), liveness)));
            match lost {
                Some(LostJob::ForGood) => self.report(Code::JobLost, task.subject.clone(), Level::Error, 0),
                // Somebody should know, but it goes on.
                Some(LostJob::Replaced) => self.report(Code::JobLost, task.subject.clone(), Level::Warn, 0),
                None => {}
            }
        }
        Ok(did)
    }

    /// Finds processes of jobs whose task has ended.
    fn check_outlived(&mut self, outlived: Vec<OutlivedTask>) {
        for job in outlived {
            if !job.may_live() && self.mode == Mode::Write {
                job.forget(self.vault);
            }
            match job.liveness {
                Ok(orphaned @ JobLiveness::Orphaned(_)) => {
                    self.report(Code::JobOrphaned, job.task.subject.clone(), Level::Error, 0);
                    self.jobs.push((job.task, orphaned));
                }
                Ok(_) => {}
                Err(error) => self.warnings.push(format!("cannot check {}: {error}", job.task.name())),
            }
        }
    }

    fn report(&mut self, code: Code, subject: Subject, level: Level, seconds: u64) {
        self.findings.push(Finding::new(code, subject, level, seconds));
    }

    /// Evaluates every rule once. Returns the hooks to run, and whether there is more to record.
    fn pass(&mut self, tx: &mut Transaction<'_>, files: &mut [AgentFiles]) -> Result<(Vec<hooks::HookCall>, bool)> {
        self.stopped = tx.state().phase_of(&Subject::SYSTEM) == Phase::Stopped;
        self.paused = ProjectActivity::read(tx.state()).all_paused();
        self.agents.clear();
        // Overdue items of the previous pass are settled; agents are checked again.
        let is_checked_again = |code| {
            matches!(
                code,
                Code::Runaway | Code::HookFailed | Code::SettingsDiffer | Code::NotTrusted | Code::FileUnreadable
            )
        };
        self.findings.retain(|finding| finding.subject.entity != EntityType::Agent && !is_checked_again(finding.code));
        let head = tx.log.head().map_or(0, |head| (head.id.timestamp_ms() / 1000) as i64);
        let ahead = head.saturating_sub(self.now.0).max(0) as u64;
        if ahead > tx.config.count(Setting::ClockSkewSeconds) {
            self.findings.retain(|finding| finding.code != Code::ClockSkew || finding.subject != Subject::SYSTEM);
            self.report(Code::ClockSkew, Subject::SYSTEM, Level::Error, ahead);
        }
        // Overdue items are settled before new files of agents are recorded: what has expired stays expired. And before
        // agents are judged: a session that is over expects nothing of its agent.
        let more = self.record_overdue(tx)?;
        for agent in files {
            self.intake.take(tx, agent)?;
            // Nobody is judged before all files are taken in.
            if tx.batch().events().len() > PASS_EVENTS {
                return Ok((Vec::new(), true));
            }
        }
        let (held, seated) = (liveness::held(tx.state()), liveness::seated(tx.state()));
        let watched = agents::judge_all(self, tx, (&held, &seated))?;
        let is_watched = |finding: &Finding| watched.iter().any(|agent| agent.subject == finding.subject);
        self.findings.extend(self.files_findings.iter().filter(|finding| !is_watched(finding)).cloned());
        self.find_runaways(tx)?;
        self.find_failed_hooks(tx);
        self.judge_settings(tx);
        let calls = self.record_edges(tx, &watched)?;
        self.findings.sort_by(|a, b| (b.level, a.code, &a.subject).cmp(&(a.level, b.code, &b.subject)));
        Ok((calls, more))
    }

    /// Records what is due, with its consequences. Returns whether some is left for the next pass.
    fn record_overdue(&mut self, tx: &mut Transaction<'_>) -> Result<bool> {
        self.end_silent_jobs(tx);
        for due in tx.moment().due(Timer::ALL, None, usize::MAX) {
            if tx.batch().events().len() > PASS_EVENTS {
                return Ok(true);
            }
            // `agents` ends a deep work, in its place among the files.
            if due.code == Code::DeepworkExpired {
                continue;
            }
            if due.code.is_anomaly() {
                self.report(due.code, due.subject.clone(), Level::Error, due.seconds);
            }
            // The consequences of an earlier finding may have settled a later one.
            let legal = machine::step(due.subject.entity, tx.state().phase_of(&due.subject), due.kind).is_some();
            // A dry run applies it, too, and writes nothing: its verdict is that of the tick.
            if legal {
                tx.add(due.draft())?;
            }
        }
        Ok(false)
    }

    /// Orders the supervisors of jobs whose output is their sign of life to end them if they are silent.
    fn end_silent_jobs(&self, tx: &Transaction<'_>) {
        let alone = MachineFacts {
            jobs: self.machine.jobs.keys().map(|id| (id.clone(), SupervisorState::Unsupervised)).collect(),
        };
        let silent = Moment { machine: &alone, ..tx.moment() }.due(&[Timer::Silence], None, usize::MAX);
        let tasks = silent.iter().filter_map(|due| tx.state().entity(&due.subject)?.as_run().task());
        let ids = tasks.filter_map(|task| EntityId::parse(task.id()).ok());
        let supervised = ids.filter(|id| self.machine.jobs.get(id) == Some(&SupervisorState::Supervised));
        for id in supervised.filter(|_| self.mode == Mode::Write) {
            // `check_jobs` warns about a directory that cannot be read.
            let Some(job) = JobDir::open(self.vault.path(), &id).ok().flatten() else { continue };
            if job.spec().is_ok_and(|spec| spec.beat == crate::job::Beat::Output) {
                let _ = job.cancel(CancelReason::Silent, None);
            }
        }
    }

    /// Finds actors that record too many events.
    fn find_runaways(&mut self, tx: &Transaction<'_>) -> Result<()> {
        let seconds = tx.config.count(Setting::RunawaySeconds);
        let max = tx.config.count(Setting::RunawayEvents);
        let from = Timestamp(self.now.0.saturating_sub(seconds as i64));
        let mut counts = std::collections::BTreeMap::<String, u64>::new();
        let mut read = 0;
        tx.log.read_back(&mut |event| {
            read += 1;
            if event.timestamp <= from || read > RUNAWAY_READ_MAX {
                return Ok(std::ops::ControlFlow::Break(()));
            }
            *counts.entry(event.actor).or_default() += 1;
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        for (actor, count) in counts.into_iter().filter(|(actor, n)| *n > max && !actor.starts_with("core:")) {
            let agent = Subject::parse(&actor).ok().filter(|subject| subject.entity == EntityType::Agent);
            self.report(Code::Runaway, agent.unwrap_or(Subject::SYSTEM), Level::Warn, count);
        }
        Ok(())
    }

    /// Finds hooks that failed when they were last run.
    fn find_failed_hooks(&mut self, tx: &Transaction<'_>) {
        let system = tx.state().entity(&Subject::SYSTEM);
        let failed = system.as_ref().and_then(|system| system.as_system().failed_hooks()).into_iter().flatten();
        for (hook, failure) in failed {
            let text = |member: &str| failure.get(member).and_then(serde_json::Value::as_str).unwrap_or_default();
            let since = Timestamp::parse(text("at"));
            let seconds = since.map_or(0, |since| self.now.0.saturating_sub(since.0).max(0) as u64);
            let finding = Finding::new(Code::HookFailed, Subject::SYSTEM, Level::Error, seconds);
            self.findings.push(Finding { detail: Some(format!("{hook}: {}", text("reason"))), ..finding });
        }
    }

    /// Finds a settings file that is not in force, and commands that must not be run.
    fn judge_settings(&mut self, tx: &Transaction<'_>) {
        if !tx.config.differs.is_empty() {
            self.report(Code::SettingsDiffer, Subject::SYSTEM, Level::Warn, 0);
        }
        if self.commands_refused {
            self.report(Code::NotTrusted, Subject::SYSTEM, Level::Error, 0);
        }
    }

    fn outcome(self, did: Vec<(String, String)>, warnings: Vec<String>, took: Duration) -> WatchdogOutcome {
        let worst = self.findings.iter().map(|finding| finding.level).max();
        let health = match (self.stopped, worst) {
            (true, _) => Health::Stopped,
            (false, Some(Level::Error)) => Health::Anomaly,
            (false, _) if self.paused => Health::Paused,
            (false, Some(_)) => Health::Warning,
            (false, None) => Health::Healthy,
        };
        // Best effort: if the state cannot be read there are no references.
        let state = if self.findings.is_empty() { None } else { self.vault.view().ok() };
        let subjects: Vec<String> = self.findings.iter().map(|finding| finding.subject.to_string()).collect();
        let named = |(_, state)| references(&state, subjects.iter().map(String::as_str));
        WatchdogOutcome {
            references: state.map(named).unwrap_or_default(),
            health,
            findings: self.findings,
            did,
            heartbeat_id: self.heartbeat_id,
            tick_ms: took.as_millis() as u64,
            warnings,
            jobs: self.jobs,
            agents: self.agents,
        }
    }
}

/// A recorded event, as a reply lists it.
fn action(event: &Event) -> (String, String) {
    (event.event_type.as_str().to_owned(), event.subject.clone())
}
