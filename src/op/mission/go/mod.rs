//! hf-state go: fire the work, wait for it, hand a failure to the fixer, fire again, as long as there are rounds.
//!
//! The work is the plan, if there is one, task by task (`follow`), and then the runner as the final check.
//!
//! A failure that nobody here can fix is reported. That is recorded after the reply was written
//! (`note_failure_was_reported`), so a call that was killed before reports the same failure again, and the call after the
//! report takes it for fixed and starts the next round (`j3_go_after_a_reported_failure_starts_the_next_round`). A job
//! that its agent fired by hand is waited for; if it failed, the next round begins.
//!
//! Every step is looked up in the log before it is taken: runs and fixes are jobs with a key made of mission and
//! round, so a new call continues where another was killed, and nothing is done twice
//! (`go_does_nothing_twice_when_killed_anywhere_and_restarted`). A job whose command never started, because the
//! process that fired it was killed before the supervisor started, is fired again in the same round.

mod follow;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{MissionEnd, MissionOutcome, MissionView, ending, file, members, next_round, no_mission, record, view_of};
use crate::base::{EntityId, EntityType, Error, Reason, Result, Subject, limits, text};
use crate::event::Kind;
use crate::job::{self as engine, CancelReason, ExitRecord, JobDir, Signals};
use crate::machine::Phase;
use crate::op::Context;
use crate::op::job::{
    CheckJobRequest, FireRequest, JobStanding, JobView, MissionStep, check, fire, log_path, wait_for_job,
};
use crate::op::kernel::is_stopped;
use crate::op::kernel::with_view;
use crate::policy::Request;
use crate::policy::approval::{self, Question};
use crate::policy::mission::{MissionFile, PLAN_STEP, Rounds, waits_for_approval};
use crate::policy::settings::Setting;
use crate::policy::{mission, project, rules};
use crate::state::{Entity, State};
use crate::vault::Vault;

/// The result of a call.
#[derive(Debug)]
pub struct GoOutcome {
    pub standing: GoStanding,
    pub view: MissionView,
    pub summary: String,
    /// The last lines that a failed run printed.
    pub last5: Vec<String>,
    pub logref: Option<String>,
    /// How long the call could take, as far as its caller said, to be repeated by the next call.
    pub max: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoStanding {
    Passed,
    /// The work takes longer than this call may wait.
    Running,
    /// The next task of the plan is somebody's to do.
    HandedOver,
    /// The command requires approval by an operator.
    WaitsForApproval,
    /// The run failed and has to be fixed outside of hf-state go.
    Failed,
    /// A person cancelled or rejected the run.
    EndedByPerson,
    /// All rounds are used up.
    OutOfRounds,
    /// The mission was ended as failed before its rounds were used up.
    GivenUp,
}

/// What to do after a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailureResponse {
    /// Run the fixer.
    Fix,
    /// The job was cut off and there is nothing to fix: start the next round.
    NextRound,
    /// The job was cancelled: leave it to the caller.
    LeaveToCaller,
}

/// How many times a job that never starts is fired in one round.
const ATTEMPTS_MAX_COUNT: u64 = 8;

fn response_to(job: &JobView) -> FailureResponse {
    let reason = job.task.as_task().abort_reason().unwrap_or_default();
    match job.standing {
        JobStanding::Lost => FailureResponse::NextRound,
        _ if rules::was_stopped(&job.task) => FailureResponse::NextRound,
        _ if reason == CancelReason::Cancelled.as_str() || job.record.is_none() => FailureResponse::LeaveToCaller,
        _ => FailureResponse::Fix,
    }
}

/// The two commands of a round.
#[derive(Clone, Copy)]
enum RoundStep {
    Run,
    Fix,
}

impl RoundStep {
    const fn name(self) -> &'static str {
        match self {
            RoundStep::Run => "run",
            RoundStep::Fix => "fix",
        }
    }

    const fn setting(self) -> Setting {
        match self {
            RoundStep::Run => Setting::RunnerCommand,
            RoundStep::Fix => Setting::FixerCommand,
        }
    }
}

/// Options of `go`.
#[derive(Clone, Debug, Default)]
pub struct GoRequest {
    /// How long one call may take; default: `MAX_DEFAULT`.
    pub max: Option<Duration>,
}

/// How long a call takes at most, unless its caller says otherwise.
const MAX_DEFAULT: Duration = Duration::from_secs(270);

/// Does the work of the mission; a repeated call continues.
pub fn go(ctx: &Context, request: GoRequest) -> Result<GoOutcome> {
    let vault = ctx.open()?;
    let signals = ctx.cancel.signals()?;
    let until = engine::moment().checked_add(request.max.unwrap_or(MAX_DEFAULT));
    // An earlier call may have been killed before it came to the file; then nobody could read what it had reported.
    let is_told = file::is_current(&vault);
    file::settle_file(ctx, &vault);
    let mission = with_view(&vault, |_, state| mission::newest(state).ok_or_else(no_mission))?;
    let reported = mission.as_mission().reported().filter(|_| is_told);
    let mission = mission.subject;
    let warnings = Vec::new();
    let mut driver = MissionDriver { ctx: ctx.clone(), vault: &vault, mission, reported, signals, until, warnings };
    let mut outcome = loop {
        if let Some(outcome) = driver.step()? {
            break outcome;
        }
        driver.ctx.now = (ctx.host.clock)();
    };
    outcome.view.warnings.append(&mut driver.warnings);
    outcome.max = request.max;
    Ok(outcome)
}

struct MissionDriver<'a> {
    ctx: Context,
    vault: &'a Vault,
    /// The mission that was the newest when the call started, even if another starts meanwhile.
    mission: Subject,
    /// The job whose failure had been reported when the call started. Another call may report one meanwhile, but not to
    /// this caller.
    reported: Option<Subject>,
    signals: Arc<Signals>,
    until: Option<Instant>,
    warnings: Vec<String>,
}

impl MissionDriver<'_> {
    /// Takes the mission one step further. Returns the outcome when the call is finished.
    fn step(&mut self) -> Result<Option<GoOutcome>> {
        let mission = self.current()?;
        if mission.phase != Phase::Running {
            return self.final_outcome(&mission).map(Some);
        }
        self.check_not_stopped()?;
        let bound = with_view(self.vault, |_, state| requirement(state, &mission))?;
        let round = mission.as_mission().round();
        if round == 0 {
            // Without work, or in a paused project, nothing is recorded.
            self.check_has_work(&mission)?;
            self.check_not_paused(Some(&bound))?;
        }
        if mission.as_mission().requirement_id() != Some(bound.id()) {
            return self.bind(&mission, &bound).map(|()| None);
        }
        if let Some(outcome) = self.wait_for_job_in_progress(&mission)? {
            return Ok(Some(outcome));
        }
        if self.fired(&mission, RoundStep::Run)?.is_some() {
            return self.run(&mission);
        }
        if let Some(failed) = self.failed_step(&mission)? {
            return self.after_failure(&mission, &failed);
        }
        let planned = with_view(self.vault, |_, state| Ok(mission::next_planned(state, &mission)))?;
        if let Some(outcome) = planned.as_ref().map(|task| self.hand_over(task)).transpose()?.flatten() {
            return Ok(Some(outcome));
        }
        if self.needs_round(&mission)? {
            return self.next_round_or_end(&mission).map(|()| None);
        }
        match planned {
            Some(task) => self.fire_planned(&mission, &task).map(|()| None),
            None if self.is_plan_all(&mission)? => self.finish_plan(&mission).map(|()| None),
            None => self.run(&mission),
        }
    }

    /// Runs the runner, which is all the work, or the final check after the plan.
    fn run(&mut self, mission: &Entity) -> Result<Option<GoOutcome>> {
        let Some(run) = self.ensure(mission, RoundStep::Run, None)? else { return Ok(None) };
        match run.standing {
            _ if self.is_round_over(mission)? => Ok(None),
            // A plan that came meanwhile is followed in the next round, and then it runs again.
            JobStanding::Done if !self.may_pass()? => self.next_round_or_end(mission).map(|()| None),
            JobStanding::Done => {
                let round = self.rounds(mission)?.begun;
                let summary = format!("round {round}: {}", text::cut(&run.summary(), limits::SUMMARY_MAX_CHARS));
                self.finish(mission, MissionEnd::Passed, summary)?;
                Ok(None)
            }
            JobStanding::Fail | JobStanding::Lost => self.after_failure(mission, &run),
            _ => self.in_progress_outcome(&run).map(Some),
        }
    }

    /// Begins the next round, or ends the mission if there is none.
    fn next_round_or_end(&mut self, mission: &Entity) -> Result<()> {
        match self.rounds(mission)?.are_used_up() {
            true => {
                let why = with_view(self.vault, |_, state| Ok(MissionFile::of_mission(state, mission).last_action))?;
                self.finish(mission, MissionEnd::Failed, why)
            }
            false => self.begin_round(mission),
        }
    }

    /// The current state of the mission.
    fn current(&self) -> Result<Entity> {
        let found = |state: &State| state.entity(&self.mission).map(|mission| mission.into_owned());
        with_view(self.vault, |_, state| found(state).ok_or_else(no_mission))
    }

    /// How many rounds there were, and how many there may be.
    fn rounds(&self, mission: &Entity) -> Result<Rounds> {
        with_view(self.vault, |_, state| Ok(Rounds::of_mission(state, mission)))
    }

    /// Waits for a job in progress that the mission's agent fired itself, or that is a task of the plan. Returns the outcome
    /// if it takes longer than this call.
    fn wait_for_job_in_progress(&mut self, mission: &Entity) -> Result<Option<GoOutcome>> {
        let job = with_view(self.vault, |_, state| {
            let is_in_plan = |job: &Entity| job.as_task().mission_step().is_none_or(|step| step == PLAN_STEP);
            let is_waited_for = |job: &Entity| job.is_job() && is_in_plan(job) && mission::is_in_progress(job);
            Ok(mission::current(state, mission).filter(is_waited_for))
        })?;
        let Some(job) = job else { return Ok(None) };
        let view = self.check_job(&job.subject)?;
        if waits_for_approval(&view.task) {
            return self.in_progress_outcome(&view).map(Some);
        }
        let view = wait_for_job(&self.ctx, self.vault, &job.subject.to_string(), self.time_left(), &self.signals)?;
        match view.standing {
            JobStanding::Done | JobStanding::Fail | JobStanding::Lost => Ok(None),
            _ => self.in_progress_outcome(&view).map(Some),
        }
    }

    fn time_left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(engine::moment()))
    }

    /// Whether the mission ended or its round changed while a job was waited for.
    fn is_round_over(&self, mission: &Entity) -> Result<bool> {
        let now = self.current()?;
        Ok(now.phase != Phase::Running || now.as_mission().round() != mission.as_mission().round())
    }

    fn check_not_stopped(&self) -> Result<()> {
        with_view(self.vault, |_, state| match is_stopped(state) {
            true => Err(rules::stopped(state)),
            false => Ok(()),
        })
    }

    /// Refuses a round whose job could not be fired, because the project of the requirement is paused.
    fn check_not_paused(&self, requirement: Option<&Subject>) -> Result<()> {
        with_view(self.vault, |_, state| {
            let requirement = requirement.and_then(|requirement| state.entity(requirement));
            let project = requirement.and_then(|requirement| project::project_of(&requirement));
            let project = project.unwrap_or_else(|| self.ctx.project());
            project::check_may_queue(state, &project, &self.ctx.caller.actor)
        })
    }

    /// The outcome for a mission that has ended; the same for every call.
    fn final_outcome(&self, mission: &Entity) -> Result<GoOutcome> {
        let standing = match mission.phase {
            Phase::Passed => GoStanding::Passed,
            _ if self.rounds(mission)?.are_used_up() => GoStanding::OutOfRounds,
            _ => GoStanding::GivenUp,
        };
        let run = match (standing, self.fired(mission, RoundStep::Run)?) {
            (GoStanding::OutOfRounds, Some((run, _))) => Some(self.check_job(&run)?),
            (GoStanding::OutOfRounds, None) => self.failed_step(mission)?,
            _ => None,
        };
        let failed = run.filter(|run| matches!(run.standing, JobStanding::Fail | JobStanding::Lost));
        self.outcome(standing, None, failed.as_ref())
    }

    /// Continues after a failed run: fix and next round, or the end.
    fn after_failure(&mut self, mission: &Entity, run: &JobView) -> Result<Option<GoOutcome>> {
        let response = response_to(run);
        if response == FailureResponse::NextRound {
            self.check_not_cut_off(run)?;
        }
        let rounds = self.rounds(mission)?;
        let summary = text::cut(&run.summary(), limits::SUMMARY_MAX_CHARS);
        let why = format!("{summary}; round {} failed", rounds.begun);
        if rounds.are_used_up() {
            self.finish(mission, MissionEnd::Failed, why.clone())?;
            return self.outcome(GoStanding::OutOfRounds, Some(why), Some(run)).map(Some);
        }
        let fix_fired = self.fired(mission, RoundStep::Fix)?.is_some();
        match response {
            FailureResponse::NextRound => return self.begin_round(mission).map(|()| None),
            FailureResponse::LeaveToCaller => return self.leave_to_caller(mission, why, run),
            FailureResponse::Fix if !fix_fired && self.configured_command(RoundStep::Fix)?.is_none() => {
                return self.leave_to_caller(mission, why, run);
            }
            FailureResponse::Fix => {}
        }
        let Some(fix) = self.ensure(mission, RoundStep::Fix, Some(run))? else { return Ok(None) };
        match fix.standing {
            _ if self.is_round_over(mission)? => Ok(None),
            JobStanding::Done => self.begin_round(mission).map(|()| None),
            JobStanding::Fail | JobStanding::Lost if response_to(&fix) == FailureResponse::NextRound => {
                self.check_not_cut_off(&fix)?;
                self.begin_round(mission).map(|()| None)
            }
            JobStanding::Fail | JobStanding::Lost => {
                let why = format!("{why}; the fixer failed: {}", text::cut(&fix.summary(), limits::SUMMARY_MAX_CHARS));
                self.leave_to_caller(mission, why, run)
            }
            _ => self.in_progress_outcome(&fix).map(Some),
        }
    }

    /// Refuses to continue while the stop that ended a job is in force: its flag is set before its event is recorded.
    fn check_not_cut_off(&self, job: &JobView) -> Result<()> {
        self.check_not_stopped()?;
        match self.vault.stop_flag().filter(|_| rules::was_stopped(&job.task)) {
            Some(stop) => {
                let why = format!("everything is stopped: {}", text::cut(&stop.reason, limits::SUMMARY_MAX_CHARS));
                Err(Error::refused(Reason::SystemStopped, why))
            }
            None => Ok(()),
        }
    }

    /// Ends the call, since the caller has to fix the failure. If it was told so before, it has.
    fn leave_to_caller(&mut self, mission: &Entity, why: String, run: &JobView) -> Result<Option<GoOutcome>> {
        match self.reported.is_some() && self.reported == self.current()?.as_mission().task() {
            true => self.begin_round(mission).map(|()| None),
            false => {
                let by_person = rules::was_ended_by_person(&run.task);
                let standing = if by_person { GoStanding::EndedByPerson } else { GoStanding::Failed };
                self.outcome(standing, Some(why), Some(run)).map(Some)
            }
        }
    }

    fn in_progress_outcome(&self, job: &JobView) -> Result<GoOutcome> {
        let standing = if waits_for_approval(&job.task) { GoStanding::WaitsForApproval } else { GoStanding::Running };
        self.outcome(standing, Some(format!("{}: {}", job.task.name(), job.summary())), None)
    }

    fn outcome(&self, standing: GoStanding, summary: Option<String>, failed: Option<&JobView>) -> Result<GoOutcome> {
        let mission = self.current()?;
        let view = with_view(self.vault, |_, state| Ok(view_of(state, mission)))?;
        let record = failed.and_then(|job| job.record.as_ref());
        Ok(GoOutcome {
            standing,
            summary: summary.unwrap_or_else(|| view.m1.last_action.clone()),
            last5: record.map(ExitRecord::last_lines).unwrap_or_default(),
            logref: failed.and_then(|job| job.logref().map(str::to_owned)),
            view,
            max: None,
        })
    }

    /// Binds a mission that names no requirement to the only approved one.
    fn bind(&mut self, mission: &Entity, requirement: &Subject) -> Result<()> {
        let mut members = members(mission);
        members.insert("requirement_id".to_owned(), requirement.id().into());
        self.change(mission, members.into())
    }

    /// The command of a step, if it is set.
    fn configured_command(&self, step: RoundStep) -> Result<Option<String>> {
        self.vault.command(&self.vault.config(), step.setting())
    }

    fn command(&self, step: RoundStep) -> Result<String> {
        self.configured_command(step)?.ok_or_else(|| Error::usage(format!("{} is not set", step.setting())))
    }

    fn begin_round(&mut self, mission: &Entity) -> Result<()> {
        self.check_not_paused(mission.as_mission().requirement().as_ref())?;
        let key = Some(key(mission, "round", mission.as_mission().round() + 1, 1));
        let asked = with_view(self.vault, |_, state| {
            let now = state.entity(&mission.subject).ok_or_else(no_mission)?;
            let is_same = now.as_mission().round() == mission.as_mission().round();
            Ok(is_same.then(|| next_round(&self.ctx, state, mission)))
        })?;
        // Otherwise another call was faster.
        asked.map_or(Ok(()), |asked| self.record(Request { key, ..asked }))
    }

    fn finish(&mut self, mission: &Entity, end: MissionEnd, text: String) -> Result<()> {
        let fits = |text: &str| {
            let payload = json!({"last_action": text});
            let payload = payload.as_object().expect("an object");
            let (subject, actor) = (&mission.subject, &self.ctx.caller.actor);
            with_view(self.vault, |_, state| mission::check(state, end.kind(), subject, actor, payload)).is_ok()
        };
        let text = Some(text).filter(|text| fits(text));
        // An operator may allow more rounds, and then it ends again.
        let key = Some(key(mission, "end", mission.as_mission().round(), 1));
        self.record(Request { key, ..ending(&self.ctx, mission, end, text) })
    }

    /// The current state of a job of the mission.
    fn check_job(&self, task: &Subject) -> Result<JobView> {
        check(&self.ctx, CheckJobRequest { reference: task.to_string() })
    }

    /// Fires the job of this step of the round if needed, and waits for it. None if the mission ended meanwhile.
    fn ensure(&mut self, mission: &Entity, step: RoundStep, failed: Option<&JobView>) -> Result<Option<JobView>> {
        loop {
            let (task, attempt) = match self.fired(mission, step)? {
                Some(fired) => fired,
                None => match self.fire(mission, step, failed, 1)? {
                    Some(task) => (task, 1),
                    None => return Ok(None),
                },
            };
            let job = self.check_job(&task)?;
            if waits_for_approval(&job.task) {
                return Ok(Some(job));
            }
            let job = wait_for_job(&self.ctx, self.vault, &task.to_string(), self.time_left(), &self.signals)?;
            if attempt >= ATTEMPTS_MAX_COUNT || !self.never_started(&job)? || self.is_round_over(mission)? {
                return Ok(Some(job));
            }
            if self.fire(mission, step, failed, attempt + 1)?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Whether a job was lost before its command started: its identity is published before it may run.
    fn never_started(&self, job: &JobView) -> Result<bool> {
        if job.standing != JobStanding::Lost {
            return Ok(false);
        }
        let dir = JobDir::open(self.vault.path(), &EntityId::parse(job.task.subject.id())?)?;
        let identity = dir.map(|dir| dir.identity()).transpose();
        Ok(matches!(identity, Ok(Some(None))))
    }

    /// The task of a step of the round if it was fired, and how many times it was.
    fn fired(&self, mission: &Entity, step: RoundStep) -> Result<Option<(Subject, u64)>> {
        let round = mission.as_mission().round();
        with_view(self.vault, |snapshot, state| {
            let fired = |attempt| state.keyed(&key(mission, step.name(), round, attempt));
            let Some((attempt, id)) = (1..).map_while(|n| Some((n, fired(n)?))).last() else { return Ok(None) };
            let event = snapshot.find(id)?;
            event.map(|event| Ok((Subject::parse(&event.subject)?, attempt))).transpose()
        })
    }

    /// Fires the job of a step. None if the mission ended meanwhile.
    fn fire(
        &mut self,
        mission: &Entity,
        step: RoundStep,
        failed: Option<&JobView>,
        attempt: u64,
    ) -> Result<Option<Subject>> {
        let command = self.command(step)?;
        let (round, name) = (self.rounds(mission)?.begun, mission.name());
        let mut env = vec![
            ("HF_MISSION", name.clone()),
            ("HF_ROUND", round.to_string()),
            ("HF_GOAL", mission.as_mission().goal().unwrap_or_default().to_owned()),
        ];
        let dir = std::path::absolute(self.vault.path())
            .map_err(|e| Error::system("cannot resolve the path of the vault", e))?;
        if let Some(job) = failed {
            let last5 = job.record.as_ref().map(|record| record.last_lines().join("\n")).unwrap_or_default();
            let log = dir.join(log_path(&job.logref));
            env.extend([
                ("HF_LAST5", last5.replace('\0', " ")),
                // Not HF_TASK_ID, which is the fix itself.
                ("HF_FAILED_TASK", job.task.name()),
                ("HF_LOG", log.to_string_lossy().into_owned()),
            ]);
        }
        let script = match step {
            RoundStep::Run => command,
            // The fixer gets the last lines on standard input.
            RoundStep::Fix => format!("printf '%s\\n' \"$HF_LAST5\" | (\n{command}\n)"),
        };
        let argv = vec!["sh".into(), "-c".into(), script.into()];
        let request = FireRequest {
            title: Some(format!("{name} round {round}: {}", step.name())),
            requirement: mission
                .as_mission()
                .requirement_id()
                .map(str::to_owned)
                .filter(|_| matches!(step, RoundStep::Run)),
            env: env.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect(),
            mission: Some(MissionStep { mission: mission.subject.id().to_owned(), step: step.name() }),
            key: Some(key(mission, step.name(), mission.as_mission().round(), attempt)),
            ..FireRequest::new(argv, dir.parent().unwrap_or(&dir).to_owned())
        };
        match fire(&self.ctx, request) {
            Ok(done) => {
                self.warnings.extend(done.recorded.warnings);
                Ok(Some(done.task.subject))
            }
            Err(error) => match self.current()?.phase {
                Phase::Running => Err(error),
                _ => Ok(None),
            },
        }
    }

    fn change(&mut self, mission: &Entity, members: Value) -> Result<()> {
        let asked = self.ctx.request(Kind::MissionChanged, Some(&mission.subject.to_string()), members);
        self.record(asked)
    }

    /// Records a step of the mission.
    fn record(&mut self, asked: Request) -> Result<()> {
        let warnings = record(&self.ctx, asked).map(|done| done.recorded.warnings);
        self.unless_over(warnings)
    }

    /// Keeps the warnings of a step. If the mission has ended meanwhile an error is ignored, and the next step reports the
    /// end.
    fn unless_over(&mut self, warnings: Result<Vec<String>>) -> Result<()> {
        match warnings {
            Ok(warnings) => {
                self.warnings.extend(warnings);
                Ok(())
            }
            Err(error) => match self.current()?.phase {
                Phase::Running => Err(error),
                _ => Ok(()),
            },
        }
    }
}

/// A failure that `go` has reported, or hf-poll in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedFailureRequest {
    pub mission: Subject,
    /// The job that failed.
    pub job: Subject,
}

/// Records that `go` has reported a failure. If that cannot be recorded, the next call reports it again.
pub fn note_failure_was_reported(ctx: &Context, request: ReportedFailureRequest) -> Result<MissionOutcome> {
    let ReportedFailureRequest { mission, job } = request;
    let payload = json!({"task_id": job.id()});
    let asked = ctx.request(Kind::MissionFailureReported, Some(&mission.to_string()), payload);
    record(ctx, Request { key: Some(format!("{}:reported:{}", mission.id(), job.id())), ..asked })
}

/// The key of a step, the same for every caller.
fn key(mission: &Entity, what: &str, round: u64, attempt: u64) -> String {
    let first = format!("{}:{what}:{round}", mission.subject.id());
    if attempt == 1 { first } else { format!("{first}:{attempt}") }
}

/// The requirement of the mission, if an operator approved it.
fn requirement(state: &State, mission: &Entity) -> Result<Subject> {
    let requirement = match mission.as_mission().requirement() {
        Some(requirement) => Some(requirement),
        None => match state.in_phase(EntityType::Requirement, Phase::Approved, 2).as_slice() {
            [only] => Some(only.subject.clone()),
            _ => None,
        },
    };
    let unapproved = |why: String| Error::refused(Reason::ApprovalRequired, why);
    let Some(requirement) = requirement else {
        return Err(unapproved(format!(
            "{} has no approved requirement; set one with hf-state set REQUIREMENT=REF",
            mission.name()
        )));
    };
    match approval::approved(state, Question::Requirement, &requirement) {
        Some(_) => Ok(requirement),
        None => {
            let name = state.entity(&requirement).map_or_else(|| requirement.to_string(), |r| r.name());
            Err(unapproved(format!("{name} requires approval by an operator ({})", Question::Requirement)))
        }
    }
}
