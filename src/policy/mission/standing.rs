//! Where a mission stands: the job that it is about, the plan that it follows, and who goes on.

use serde_json::{Map, Value};

use super::file::{has_fixer, has_runner};
use super::{DesignStanding, DesignStep, Rounds, running};
use crate::base::{Actor, EntityId, EntityType, Subject, Ulid};
use crate::machine::Phase;
use crate::policy::rules;
use crate::state::{Entity, State};

/// Who goes on with a mission after a job of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// `hf-state go`, which fired the job as a step of a round.
    Go,
    /// The agent that fired it.
    Agent,
}

/// How to take up a task of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeUp {
    /// `hf-state go` fires its command.
    Go,
    /// Fire its command.
    Fire,
    Claim,
    /// Somebody has it.
    Show,
    /// Find out what blocks it.
    Explain,
}

/// Where a mission stands.
#[derive(Clone, Debug, PartialEq)]
pub enum MissionStanding {
    /// Nothing has happened that says more than what its agent wrote down.
    Written,
    /// Reviewers have replied about its design.
    Reviewed(DesignStanding),
    /// A job is in progress.
    InProgress { job: Entity, driver: Driver },
    /// The last job succeeded.
    Succeeded { job: Entity, driver: Driver },
    /// The last job failed, and nobody has fired another one since.
    Failed { job: Entity, driver: Driver, is_reported: bool, again: Option<(TakeUp, Entity)> },
    /// A person ended the last job, and has to say how to go on.
    EndedByPerson { job: Entity },
    /// The last job failed, and no round is left.
    OutOfRounds { job: Option<Entity> },
    /// A round has begun in which nothing was fired.
    RoundBegun { driver: Driver, by: Option<Ulid> },
    /// Every task of its plan succeeded. Who goes on, if it has not passed.
    PlanDone { of: usize, driver: Driver, by: Option<Ulid> },
    /// The next task of its plan.
    Planned { task: Entity, take_up: TakeUp, done: usize, of: usize, by: Option<Ulid> },
}

/// Whether a task cannot start before an operator has approved its command.
pub fn waits_for_approval(task: &Entity) -> bool {
    task.phase == Phase::Proposed && task.as_task().is_destructive()
}

/// Whether a task has not ended and somebody works on it, or will.
pub fn is_in_progress(task: &Entity) -> bool {
    match task.phase {
        Phase::Assigned | Phase::Running | Phase::Retrying => true,
        Phase::Proposed | Phase::Ready => task.is_job(),
        _ => false,
    }
}

pub(super) fn has_succeeded(task: &Entity) -> bool {
    task.as_task().succeeded_at().is_some()
}

pub(super) fn has_failed(task: &Entity) -> bool {
    task.is_job() && !is_in_progress(task) && !has_succeeded(task)
}

fn driver_of(job: &Entity) -> Driver {
    if job.as_task().mission_step().is_some() { Driver::Go } else { Driver::Agent }
}

pub(super) fn task_named(state: &State, id: &str) -> Option<Entity> {
    let subject = Subject::new(EntityType::Task, EntityId::parse(id).ok()?);
    state.entity(&subject).map(|task| task.into_owned())
}

/// The tasks of a mission's plan, each in its newest attempt.
pub fn plan(state: &State, mission: &Entity) -> Vec<Entity> {
    let newest = |task: Entity| match rules::newest_rework(state, &task) {
        Some(rework) => rework,
        None => task,
    };
    mission.as_mission().plan().filter_map(|id| task_named(state, id)).map(newest).collect()
}

/// The first task of a mission's plan that has not succeeded.
pub fn next_planned(state: &State, mission: &Entity) -> Option<Entity> {
    plan(state, mission).into_iter().find(|task| !has_succeeded(task))
}

/// The task of a mission's plan that `hf-state go` fired in this round and that failed.
pub fn failed_step(state: &State, mission: &Entity) -> Option<Entity> {
    let mut jobs = state.made_for(&mission.subject, EntityType::Task);
    jobs.retain(|job| job.as_task().mission_step() == Some(PLAN_STEP));
    failure_in_round(mission, &jobs).cloned()
}

/// The step of a round that is a task of the plan.
pub const PLAN_STEP: &str = "plan";

/// The task that a mission is about: its last job, or one of its jobs that is still in progress; else what its file
/// names.
pub fn current(state: &State, mission: &Entity) -> Option<Entity> {
    let last = mission.as_mission().task().and_then(|task| state.entity(&task)).map(|task| task.into_owned());
    if last.as_ref().is_some_and(|last| is_in_progress(last) || !last.is_job()) || mission.phase != Phase::Running {
        return last;
    }
    let jobs = state.made_for(&mission.subject, EntityType::Task);
    let in_progress = jobs.iter().rfind(|task| task.is_job() && is_in_progress(task));
    in_progress.or_else(|| failure_in_round(mission, &jobs)).cloned().or(last)
}

/// The newest failed job of a mission's round, if the next one needs a new round. A job that was lost has no result and is
/// repeated in its round; the next one that is lost counts as failed.
fn failure_in_round<'a>(mission: &Entity, jobs: &'a [Entity]) -> Option<&'a Entity> {
    let view = mission.as_mission();
    let in_round = |job: &&Entity| has_failed(job) && Some(job.last_event) > view.round_by();
    let is_lost = |job: &&Entity| rules::was_lost(job);
    let failed = jobs.iter().rfind(|job| in_round(job) && !is_lost(job));
    let mut lost = jobs.iter().filter(|job| in_round(job) && is_lost(job));
    failed.or_else(|| lost.nth(LOST_MAX_COUNT)).filter(|_| view.was_tried())
}

/// How many jobs of one round can be lost before that counts as a failure.
const LOST_MAX_COUNT: usize = 1;

/// Whether the next job of a mission needs a new round: the first one does, and one after a failure.
pub fn needs_round(state: &State, mission: &Entity) -> bool {
    let jobs = state.made_for(&mission.subject, EntityType::Task);
    mission.as_mission().round() == 0 || failure_in_round(mission, &jobs).is_some()
}

/// The running mission that a job belongs to: its own if it names one, else that of its requirement, or that of the agent
/// that fires it in the same project. What a step of `hf-state go` fires while it runs is part of that step.
pub fn of_job(state: &State, actor: &Actor, task: Option<&Entity>, payload: &Map<String, Value>) -> Option<Entity> {
    let mission = running(state)?;
    let member = |name: &str| payload.get(name).and_then(Value::as_str);
    let view = mission.as_mission();
    let is_named = |id: &str| id == mission.subject.id();
    if let Some(id) = member("of_mission") {
        return is_named(id).then_some(mission);
    }
    if current(state, &mission).is_some_and(|job| is_in_progress(&job) && driver_of(&job) == Driver::Go) {
        return None;
    }
    let given = task.and_then(|task| task.as_task().mission()).is_some_and(|of| of == mission.subject);
    let requirement = match task {
        Some(task) => task.as_task().requirement().map(|requirement| requirement.id().to_owned()),
        None => member("requirement_id").map(str::to_owned),
    };
    let for_requirement = requirement.is_some() && requirement.as_deref() == view.requirement_id();
    let project_of_mission = view.requirement().and_then(|requirement| state.entity(&requirement)?.project.clone());
    let project_of_job = match task {
        Some(task) => task.project.clone(),
        None => state.project_of(EntityType::Task, payload),
    };
    let same_project = project_of_mission.is_none() || project_of_mission == project_of_job;
    let for_no_other = requirement.is_none() || view.requirement_id().is_none();
    // What an operator starts is for every agent.
    let started_by = view.started_by().and_then(|by| Actor::parse(by).ok());
    let by_its_agent = started_by.is_some_and(|by| by == *actor || !by.is_autonomous());
    let by_its_agent = for_no_other && same_project && by_its_agent;
    (given || for_requirement || by_its_agent).then_some(mission)
}

impl MissionStanding {
    /// Where a mission stands, whatever somebody wrote down about it.
    pub fn of_mission(state: &State, mission: &Entity) -> MissionStanding {
        let plan = plan(state, mission);
        let is_done = !plan.is_empty() && plan.iter().all(has_succeeded);
        let out_of_rounds = Rounds::of_mission(state, mission).are_used_up();
        match mission.phase {
            Phase::Running => MissionStanding::of_running(state, mission, &plan),
            Phase::Passed if is_done => MissionStanding::plan_done(state, &plan),
            Phase::Failed if out_of_rounds => MissionStanding::OutOfRounds { job: None },
            _ => MissionStanding::Written,
        }
    }

    fn of_running(state: &State, mission: &Entity, plan: &[Entity]) -> MissionStanding {
        let view = mission.as_mission();
        let job = current(state, mission).filter(Entity::is_job);
        let next = plan.iter().find(|task| !has_succeeded(task));
        let design = newest_design(state, mission, job.as_ref(), plan);
        let reviewed_by = design.as_ref().map(|design| design.by);
        // What the reviewers agree to is the plan, if there is one.
        let is_planned = |design: &DesignStanding| matches!(design.next, DesignStep::Work { .. }) && next.is_some();
        if let Some(design) = design.filter(|design| !is_planned(design)) {
            return MissionStanding::Reviewed(design);
        }
        let driver = job.as_ref().map_or(Driver::Agent, driver_of);
        let is_taken_up =
            |job: &Entity| next.is_some_and(|task| is_in_progress(task) && task.last_event > job.last_event);
        match job {
            Some(job) if is_in_progress(&job) => MissionStanding::InProgress { job, driver },
            Some(job) if has_failed(&job) && view.was_tried() && !is_taken_up(&job) => {
                let again = next.filter(|task| task.as_task().aborted_at().is_none());
                MissionStanding::after_failure(state, mission, job, again)
            }
            job => match next {
                Some(task) => {
                    let done = plan.iter().filter(|task| has_succeeded(task)).count();
                    let by = Some(task.last_event).max(job.map(|job| job.last_event)).max(reviewed_by);
                    let (take_up, task) = (take_up(state, task), task.clone());
                    MissionStanding::Planned { take_up, task, done, of: plan.len(), by }
                }
                None if !plan.is_empty() && !job.as_ref().is_some_and(|job| follows(job, plan)) => {
                    MissionStanding::plan_done(state, plan)
                }
                None => match job {
                    Some(job) if has_succeeded(&job) && view.was_tried() => MissionStanding::Succeeded { job, driver },
                    Some(_) if !view.was_tried() => MissionStanding::RoundBegun { driver, by: view.round_by() },
                    _ => MissionStanding::Written,
                },
            },
        }
    }

    fn plan_done(state: &State, plan: &[Entity]) -> MissionStanding {
        let driver = if has_runner(state) { Driver::Go } else { Driver::Agent };
        let by = plan.iter().map(|task| task.last_event).max();
        MissionStanding::PlanDone { of: plan.len(), driver, by }
    }

    fn after_failure(state: &State, mission: &Entity, job: Entity, again: Option<&Entity>) -> MissionStanding {
        let (driver, view) = (driver_of(&job), mission.as_mission());
        // After a stop, hf-state go takes the next round by itself.
        let is_gos = driver == Driver::Go && rules::was_stopped(&job);
        if rules::was_ended_by_person(&job) && !is_gos {
            return MissionStanding::EndedByPerson { job };
        }
        match Rounds::of_mission(state, mission).are_used_up() && needs_round(state, mission) {
            true => MissionStanding::OutOfRounds { job: Some(job) },
            false => {
                let is_reported = view.reported().as_ref() == Some(&job.subject);
                let again = again.map(|task| (take_up(state, task), task.clone()));
                MissionStanding::Failed { job, driver, is_reported, again }
            }
        }
    }

    /// The event that it follows from.
    fn by(&self) -> Option<Ulid> {
        match self {
            MissionStanding::Written | MissionStanding::OutOfRounds { job: None } => None,
            MissionStanding::Reviewed(design) => Some(design.by),
            MissionStanding::InProgress { job, .. }
            | MissionStanding::Succeeded { job, .. }
            | MissionStanding::Failed { job, .. }
            | MissionStanding::EndedByPerson { job }
            | MissionStanding::OutOfRounds { job: Some(job) } => Some(job.last_event),
            MissionStanding::RoundBegun { by, .. }
            | MissionStanding::PlanDone { by, .. }
            | MissionStanding::Planned { by, .. } => *by,
        }
    }

    /// The job that the file of a mission is about, and that no other task replaces in it.
    pub fn job(&self) -> Option<&Entity> {
        match self {
            MissionStanding::InProgress { job, .. }
            | MissionStanding::Failed { job, .. }
            | MissionStanding::EndedByPerson { job }
            | MissionStanding::OutOfRounds { job: Some(job) } => Some(job),
            _ => None,
        }
    }

    /// Whether only an operator can go on.
    pub fn is_operators(&self) -> bool {
        matches!(self, MissionStanding::EndedByPerson { .. } | MissionStanding::OutOfRounds { .. })
    }
}

/// Which lines somebody wrote down after what happened last. They count until something happens again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenLines {
    pub last_action: bool,
    pub next_action: bool,
}

impl WrittenLines {
    pub fn of_mission(mission: &Entity, standing: &MissionStanding) -> WrittenLines {
        let (view, by) = (mission.as_mission(), standing.by());
        let is_written = |name: &str| mission.facts().contains_key(name);
        WrittenLines {
            last_action: view.last_action_by() > by && is_written("last_action"),
            // An operator has to be asked, whatever an agent writes.
            next_action: view.next_action_by() > by && is_written("next_action") && !standing.is_operators(),
        }
    }
}

/// Whether a job is none of the plan's and came after it.
fn follows(job: &Entity, plan: &[Entity]) -> bool {
    job.as_task().planned().is_none() && plan.iter().all(|task| task.last_event < job.last_event)
}

/// Where the design of a running mission stands, if nothing was worked on since the last reply about it.
fn newest_design(state: &State, mission: &Entity, job: Option<&Entity>, plan: &[Entity]) -> Option<DesignStanding> {
    let view = mission.as_mission();
    if Rounds::of_mission(state, mission).are_used_up() || job.is_some_and(is_in_progress) {
        return None;
    }
    let design = DesignStanding::of_mission(state, mission)?;
    let work = job.into_iter().chain(plan).map(|task| task.last_event);
    let newest = work.chain(view.round_by()).max();
    (Some(design.by) > newest).then_some(design)
}

/// How to take up a task of a plan that has not succeeded.
pub fn take_up(state: &State, task: &Entity) -> TakeUp {
    match task.phase {
        Phase::Ready if planned_command(task).is_some() && has_runner(state) => TakeUp::Go,
        Phase::Ready if planned_command(task).is_some() => TakeUp::Fire,
        Phase::Ready => TakeUp::Claim,
        Phase::Assigned | Phase::Running | Phase::Retrying => TakeUp::Show,
        _ => TakeUp::Explain,
    }
}

/// The command that a plan has for a task.
pub fn planned_command(task: &Entity) -> Option<&Value> {
    task.as_task().planned()?.get("command")
}

/// Whether only an operator can say how to go on after the end of a job: a person ended it, or its mission has no round
/// left.
pub fn is_operators(state: &State, job: &Entity) -> bool {
    let mission = job.as_task().mission().and_then(|mission| state.entity(&mission));
    let is_out = |mission: &Entity| mission.phase != Phase::Passed && Rounds::of_mission(state, mission).are_used_up();
    has_failed(job) && (rules::was_ended_by_person(job) || mission.is_some_and(|mission| is_out(&mission)))
}

/// The running mission of which a failed job is a step, if `hf-state go` has not reported the failure. Then `go` goes on:
/// the fixer repairs it, the next round begins, or `go` reports it.
fn unreported_step(state: &State, job: &Entity) -> Option<Entity> {
    let mission = job.as_task().mission().and_then(|mission| state.entity(&mission))?.into_owned();
    let is_step = driver_of(job) == Driver::Go && has_failed(job) && mission.phase == Phase::Running;
    let is_current = Some(job.last_event) > mission.as_mission().round_by();
    (is_step && (!is_current || mission.as_mission().reported().is_none())).then_some(mission)
}

/// Whether `hf-state go` goes on after the failure of a job, so that its caller has nothing to repair.
pub fn is_gos(state: &State, job: &Entity) -> bool {
    unreported_step(state, job).is_some()
}

/// The mission of a failed step that its caller repairs, since nobody else does: there is no fixer.
pub fn callers_step(state: &State, job: &Entity) -> Option<Subject> {
    let mission = unreported_step(state, job)?;
    let is_last = mission.as_mission().task().as_ref() == Some(&job.subject);
    let is_current = Some(job.last_event) > mission.as_mission().round_by();
    let is_repaired = has_fixer(state) || rules::was_lost(job) || rules::was_stopped(job);
    (is_last && is_current && !is_repaired).then_some(mission.subject)
}

/// The running mission that a task belongs to, if it can go on only with more rounds.
pub fn out_of_rounds(state: &State, task: &Entity) -> Option<Entity> {
    let mission = task.as_task().mission().and_then(|mission| state.entity(&mission))?.into_owned();
    let is_out = Rounds::of_mission(state, &mission).are_used_up() && needs_round(state, &mission);
    (mission.phase == Phase::Running && is_out).then_some(mission)
}
