//! A mission: its rounds, the job that it is about now, what to do next, and its state file `M1.md` with its limits.
//!
//! What a mission is about follows from the log, not from what somebody wrote down: a job that belongs to it becomes the
//! current one when it is fired, and the event of its end changes what the file says. A text that an agent
//! writes counts until something happens after it.
//!
//! Invariant: whatever is recorded about a mission, its file has at most 200 words and 2,000 bytes
//! (`no_change_makes_the_state_file_too_long`).

mod design;

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::rules;
use super::settings::{Setting, Settings};
use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, limits, text};
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::{Entity, State};

pub use design::{DesignStanding, DesignStep};

/// The value of a line that has none.
pub const NONE: &str = "NONE";

/// The single-line members of a mission: the name in the file, and the member of the payload.
pub const LINES: &[(&str, &str)] = &[
    ("GOAL", "goal"),
    ("LOGREF", "logref"),
    ("OPEN_K", "open_k"),
    ("LAST_ACTION", "last_action"),
    ("NEXT_ACTION", "next_action"),
];

/// How many rounds were begun, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    pub begun: u64,
    pub max: u64,
}

impl Rounds {
    /// The rounds of a mission. They belong to its requirement, so that another mission for it does not get new ones.
    /// Versions that recorded no settings counted them for each mission.
    pub fn of_mission(state: &State, mission: &Entity) -> Rounds {
        let view = mission.as_mission();
        let own = Rounds { begun: view.round(), max: limits::ROUNDS_MAX_COUNT + view.rounds_added() };
        let requirement = view.requirement().filter(|_| state.tally().has_settings());
        match requirement.and_then(|requirement| state.entity(&requirement)) {
            // Rounds that began while it was for another requirement count, too.
            Some(requirement) => Rounds::of_requirement(&requirement).or_more(own),
            None => own,
        }
    }

    fn or_more(self, other: Rounds) -> Rounds {
        Rounds { begun: self.begun.max(other.begun), max: self.max.max(other.max) }
    }

    pub fn of_requirement(requirement: &Entity) -> Rounds {
        let requirement = requirement.as_requirement();
        Rounds { begun: requirement.rounds(), max: limits::ROUNDS_MAX_COUNT + requirement.rounds_added() }
    }

    pub fn are_used_up(self) -> bool {
        self.begun >= self.max
    }

    pub fn check_left(self) -> Result<()> {
        match self.are_used_up() {
            true => Err(Error::refused(Reason::RoundLimit, format!("all {} rounds are used up", self.max))),
            false => Ok(()),
        }
    }
}

impl Default for Rounds {
    fn default() -> Self {
        Rounds { begun: 0, max: limits::ROUNDS_MAX_COUNT }
    }
}

/// `2/4`.
impl std::fmt::Display for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.begun, self.max)
    }
}

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
    /// As its agent wrote down.
    Written,
    /// Reviewers have replied about its design.
    Reviewed(DesignStanding),
    /// A job is in progress.
    InProgress { job: Entity, driver: Driver },
    /// The last job succeeded.
    Succeeded { job: Entity, driver: Driver },
    /// The last job failed, and nobody has fired another one since.
    Failed { job: Entity, driver: Driver, is_reported: bool, again: Option<Entity> },
    /// A person ended the last job, and has to say how to go on.
    EndedByPerson { job: Entity },
    /// The last job failed, and no round is left.
    OutOfRounds { job: Option<Entity> },
    /// A round has begun in which nothing was fired.
    RoundBegun { driver: Driver },
    /// Every task of its plan succeeded.
    PlanDone { of: usize },
    /// The next task of its plan.
    Planned { task: Entity, take_up: TakeUp, done: usize, of: usize },
}

/// Whether a task has not ended and somebody works on it, or will.
pub fn is_in_progress(task: &Entity) -> bool {
    match task.phase {
        Phase::Assigned | Phase::Running | Phase::Retrying => true,
        Phase::Proposed | Phase::Ready => task.is_job(),
        _ => false,
    }
}

fn has_succeeded(task: &Entity) -> bool {
    task.as_task().succeeded_at().is_some()
}

fn has_failed(task: &Entity) -> bool {
    task.is_job() && !is_in_progress(task) && !has_succeeded(task)
}

fn driver_of(job: &Entity) -> Driver {
    if job.as_task().mission_step().is_some() { Driver::Go } else { Driver::Agent }
}

fn task_named(state: &State, id: &str) -> Option<Entity> {
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
    /// Where a mission stands that is running.
    pub fn of_mission(state: &State, mission: &Entity) -> MissionStanding {
        let view = mission.as_mission();
        let out_of_rounds = Rounds::of_mission(state, mission).are_used_up();
        let job = current(state, mission).filter(Entity::is_job);
        let plan = plan(state, mission);
        let since = |event: Option<crate::base::Ulid>| event > view.written_by();
        let is_done = !plan.is_empty() && plan.iter().all(has_succeeded);
        if mission.phase == Phase::Passed && is_done && plan.iter().any(|task| since(Some(task.last_event))) {
            return MissionStanding::PlanDone { of: plan.len() };
        }
        if mission.phase != Phase::Running {
            return match mission.phase == Phase::Failed && out_of_rounds {
                true => MissionStanding::OutOfRounds { job: None },
                false => MissionStanding::Written,
            };
        }
        if let Some(design) = newest_design(state, mission, job.as_ref(), &plan) {
            return MissionStanding::Reviewed(design);
        }
        let next = plan.iter().find(|task| !has_succeeded(task));
        let driver = job.as_ref().map_or(Driver::Agent, driver_of);
        match job {
            Some(job) if is_in_progress(&job) && since(Some(job.last_event)) => {
                MissionStanding::InProgress { job, driver }
            }
            Some(job) if has_failed(&job) && view.was_tried() && since(Some(job.last_event)) => {
                // After a stop, hf-state go takes the next round by itself.
                let is_gos = driver == Driver::Go && rules::was_stopped(&job);
                if rules::was_ended_by_person(&job) && !is_gos {
                    return MissionStanding::EndedByPerson { job };
                }
                match out_of_rounds && needs_round(state, mission) {
                    true => MissionStanding::OutOfRounds { job: Some(job) },
                    false => {
                        let is_reported = view.reported().as_ref() == Some(&job.subject);
                        let again = next.filter(|task| task.as_task().aborted_at().is_none()).cloned();
                        MissionStanding::Failed { job, driver, is_reported, again }
                    }
                }
            }
            job => match next {
                Some(task) if since(Some(task.last_event)) || since(job.as_ref().map(|job| job.last_event)) => {
                    let done = plan.iter().filter(|task| has_succeeded(task)).count();
                    let (task, of) = (task.clone(), plan.len());
                    MissionStanding::Planned { take_up: take_up(&task), task, done, of }
                }
                Some(_) => MissionStanding::Written,
                None => match job {
                    Some(job) if has_succeeded(&job) && view.was_tried() && since(Some(job.last_event)) => {
                        MissionStanding::Succeeded { job, driver }
                    }
                    Some(_) if !view.was_tried() && since(view.round_by()) => MissionStanding::RoundBegun { driver },
                    _ => MissionStanding::Written,
                },
            },
        }
    }
}

/// Where the design of a running mission stands, if nothing was written down or worked on since the last reply about it.
fn newest_design(state: &State, mission: &Entity, job: Option<&Entity>, plan: &[Entity]) -> Option<DesignStanding> {
    let view = mission.as_mission();
    if Rounds::of_mission(state, mission).are_used_up() || job.is_some_and(is_in_progress) {
        return None;
    }
    let (design, reviewed_by) = DesignStanding::of_mission(state, mission)?;
    let work = job.into_iter().chain(plan).map(|task| task.last_event);
    let newest = work.chain(view.written_by()).chain(view.round_by()).max();
    (Some(reviewed_by) > newest).then_some(design)
}

/// How to take up a task of a plan that has not succeeded.
fn take_up(task: &Entity) -> TakeUp {
    match task.phase {
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

/// The contents of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct MissionFile {
    pub status: &'static str,
    pub goal: String,
    pub constraints: Vec<String>,
    pub task: String,
    pub logref: String,
    pub open_k: String,
    pub rounds: Rounds,
    pub last_action: String,
    pub next_action: String,
}

impl MissionFile {
    /// The file of a mission in its current state.
    pub fn of_mission(state: &State, mission: &Entity) -> MissionFile {
        let standing = MissionStanding::of_mission(state, mission);
        let mut file = MissionFile::with(state, Rounds::of_mission(state, mission), mission.phase, mission.facts());
        let named = match &standing {
            MissionStanding::InProgress { job, .. }
            | MissionStanding::Succeeded { job, .. }
            | MissionStanding::EndedByPerson { job }
            | MissionStanding::Failed { job, .. } => Some(job.clone()),
            MissionStanding::Planned { task, .. } => Some(task.clone()),
            _ => current(state, mission),
        };
        if let Some(task) = named {
            file.task = task.name();
            if task.is_job() && !mission.facts().contains_key("logref") {
                file.logref = newest_log(state, &task);
            }
        }
        let texts = standing.texts(file.rounds);
        match texts {
            Some(texts) => file.with_texts(&texts),
            None => {
                let is_new = file.next_action == NONE && file.task == NONE && mission.phase == Phase::Running;
                if standing == (MissionStanding::OutOfRounds { job: None }) {
                    file.next_action = ASK.to_owned();
                } else if is_new && has_runner(state) {
                    file.next_action = GO.to_owned();
                }
                file.fitted()
            }
        }
    }

    fn with(state: &State, rounds: Rounds, phase: Phase, members: &Map<String, Value>) -> MissionFile {
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or(NONE).to_owned();
        let task = members.get("task_id").and_then(Value::as_str).and_then(|id| task_named(state, id));
        let constraints = members.get("constraints").and_then(Value::as_array).into_iter().flatten();
        MissionFile {
            status: match phase {
                Phase::Passed => "PASS",
                Phase::Failed => "FAIL",
                _ => "RUNNING",
            },
            goal: text("goal"),
            constraints: constraints.filter_map(Value::as_str).map(str::to_owned).collect(),
            task: task.map_or(NONE.to_owned(), |task| task.name()),
            logref: text("logref"),
            open_k: text("open_k"),
            rounds,
            last_action: text("last_action"),
            next_action: text("next_action"),
        }
    }

    /// The same file with these texts: the last action as long as there is room for it.
    fn with_texts(self, texts: &Texts) -> MissionFile {
        let with =
            |last: &String| MissionFile { last_action: last.clone(), next_action: texts.next.clone(), ..self.clone() };
        let fits = |file: &MissionFile| check_short("the state file", &file.render()).is_ok();
        let found = texts.last.iter().map(with).find(fits);
        found.unwrap_or_else(|| with(&texts.last[texts.last.len() - 1]).fitted())
    }

    /// The same file within its limits: its longest line is cut as often as it takes. Texts that were recorded fit; what
    /// follows from a job may need a few words more.
    fn fitted(mut self) -> MissionFile {
        while check_short("the state file", &self.render()).is_err() {
            let lines = [&mut self.goal, &mut self.last_action].into_iter().chain(&mut self.constraints);
            let Some(longest) = lines.max_by_key(|line| line.len()) else { break };
            let half = longest.chars().count() / 2;
            *longest = text::cut(longest, half);
            if half == 0 {
                break;
            }
        }
        self
    }

    /// `2/4`.
    pub fn rounds(&self) -> String {
        self.rounds.to_string()
    }

    /// The text of the file.
    pub fn render(&self) -> String {
        let MissionFile { status, goal, task, logref, open_k, rounds, last_action, next_action, .. } = self;
        let mut text = format!("STATUS: {status}\nGOAL: {goal}\nCONSTRAINTS:\n");
        for constraint in &self.constraints {
            writeln!(text, "- {constraint}").expect("writing to a string cannot fail");
        }
        write!(
            text,
            "CURRENT:\n  TASK_ID: {task}\n  LOGREF: {logref}\nOPEN_K: {open_k}\nROUND: {rounds}\n\
             LAST_ACTION: {last_action}\nNEXT_ACTION: {next_action}\n"
        )
        .expect("writing to a string cannot fail");
        text
    }
}

/// What the file says about a standing: the last action, in full and shorter, and the next one.
struct Texts {
    last: Vec<String>,
    next: String,
}

/// The next actions, as far as they are commands.
const GO: &str = "hf-state go";
const DONE: &str = "hf-state done";
/// What an agent does that has its command in its own words.
const FIRE_AGAIN: &str = "fire it again with hf-job fire";
/// How the next action begins if only an operator can go on.
pub const ASK: &str = "ASK operator";

impl MissionStanding {
    fn texts(&self, rounds: Rounds) -> Option<Texts> {
        let round = rounds.begun;
        let (last, next) = match self {
            MissionStanding::Written => return None,
            MissionStanding::Reviewed(design) => {
                let (last, next) = design.texts();
                (vec![last, "reviewed".to_owned()], next)
            }
            MissionStanding::InProgress { job, driver } => {
                let name = job.name();
                let waits = job.phase == Phase::Proposed && job.as_task().is_destructive();
                let what = if waits { "waits for approval" } else { "was fired" };
                let next = match driver {
                    Driver::Go => GO.to_owned(),
                    Driver::Agent => format!("hf-poll {name}"),
                };
                (vec![format!("round {round}: {name} {what}"), "fired".to_owned()], next)
            }
            MissionStanding::Succeeded { job, driver } => {
                let next = if *driver == Driver::Go { GO } else { DONE };
                (vec![format!("round {round}: {} succeeded", job.name()), "succeeded".to_owned()], next.to_owned())
            }
            MissionStanding::Failed { job, driver, is_reported, again } => {
                let next = match (driver, again) {
                    (Driver::Go, _) => GO.to_owned(),
                    (Driver::Agent, Some(task)) => format!("hf-state fire {}", task.name()),
                    (Driver::Agent, None) => FIRE_AGAIN.to_owned(),
                };
                let is_callers = *driver == Driver::Agent || *is_reported;
                let next = match is_callers && !rules::was_lost(job) {
                    true => format!("fix it, then {next}"),
                    false => next,
                };
                (failure(round, job), next)
            }
            MissionStanding::EndedByPerson { job } => (failure(round, job), format!("{ASK} how to go on")),
            MissionStanding::OutOfRounds { job } => (failure(round, job.as_ref()?), format!("{ASK} for more rounds")),
            MissionStanding::RoundBegun { driver } => {
                let next = match driver {
                    Driver::Go => GO.to_owned(),
                    Driver::Agent => FIRE_AGAIN.to_owned(),
                };
                (vec![format!("round {round} started"), "started".to_owned()], next)
            }
            MissionStanding::PlanDone { of } => {
                let last = format!("{} succeeded", text::count_noun(*of as u64, "planned task"));
                (vec![last, "succeeded".to_owned()], NONE.to_owned())
            }
            MissionStanding::Planned { task, take_up, done, of } => {
                let name = task.name();
                let next = match take_up {
                    TakeUp::Fire => format!("hf-state fire {name}"),
                    TakeUp::Claim => format!("hf-task claim {name}"),
                    TakeUp::Show => format!("hf-task show {name}"),
                    TakeUp::Explain => format!("hf-task explain {name}"),
                };
                (vec![format!("{done} of {of} planned tasks are done"), "planned".to_owned()], next)
            }
        };
        Some(Texts { last, next })
    }
}

/// What the file says about a failed job.
fn failure(round: u64, job: &Entity) -> Vec<String> {
    let name = job.name();
    let why = job.as_task().abort_reason().map(|why| text::escape(&text::cut(why, limits::SUMMARY_MAX_CHARS)));
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    vec![format!("round {round}: {name} failed{why}"), format!("round {round}: {name} failed"), "failed".to_owned()]
}

/// The name of the log of a job's newest run.
fn newest_log(state: &State, job: &Entity) -> String {
    match state.made_for(&job.subject, EntityType::Run).len() {
        0 | 1 => format!("L-{:04}", job.ordinal),
        run => format!("L-{:04}-{run}", job.ordinal),
    }
}

/// Whether the settings say what `hf-state go` runs.
fn has_runner(state: &State) -> bool {
    Settings::recorded(state).is_some_and(|settings| !settings.text(Setting::RunnerCommand).is_empty())
}

/// Refuses a text with too many words or bytes for an agent to read. The limit in bytes is for languages without spaces
/// between words.
pub fn check_short(what: &str, text: &str) -> Result<()> {
    let (words, max) = (text.split_whitespace().count(), limits::SHORT_MAX_WORDS);
    if words > max {
        return Err(Error::usage(format!("{what} has {words} words; at most {max}")));
    }
    let (bytes, max) = (text.len(), limits::SHORT_MAX_BYTES);
    if bytes > max {
        return Err(Error::usage(format!("{what} has {bytes} bytes; at most {max}")));
    }
    Ok(())
}

/// Refuses a text that is too long or does not fit on one line.
fn check_line(name: &str, text: &str) -> Result<()> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if text.contains(breaks) {
        return Err(Error::usage(format!("{name} must be one line without control characters")));
    }
    match text.chars().count() {
        chars if chars > limits::FACT_MAX_CHARS => {
            let max = limits::FACT_MAX_CHARS;
            Err(Error::usage(format!("{name} has {chars} characters; at most {max}")))
        }
        _ => Ok(()),
    }
}

/// Checks `K1,K2`: open points are numbered.
pub fn check_open_points(text: &str) -> Result<()> {
    let is_point = |point: &str| {
        let number = point.strip_prefix('K').filter(|number| (1..=4).contains(&number.len()));
        number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0'))
    };
    match text.split(',').all(is_point) {
        true => Ok(()),
        false => Err(Error::usage("invalid OPEN_K; must be numbered points such as K1,K2, or NONE")),
    }
}

/// Refuses a mission beside another one. Nor may an agent start one to get new rounds: not for a requirement that has
/// none left, and after a mission that used its rounds up only for another requirement.
fn check_start(state: &State, actor: &Actor, payload: &Map<String, Value>) -> Result<()> {
    if let Some(other) = running(state) {
        let why = format!("{} is still running; only one mission can run at a time", other.name());
        return Err(Error::refused(Reason::IllegalTransition, why));
    }
    if !actor.is_autonomous() || !state.tally().has_settings() {
        return Ok(());
    }
    check_agent_may_start(state, payload)
}

/// Refuses a mission with which an agent would get new rounds.
pub fn check_agent_may_start(state: &State, payload: &Map<String, Value>) -> Result<()> {
    let id = payload.get("requirement_id").and_then(Value::as_str).and_then(|id| EntityId::parse(id).ok());
    let requirement = id.and_then(|id| state.entity(&Subject::new(EntityType::Requirement, id)));
    let refused = |what: String, rounds: Rounds| {
        let why = format!("all {} rounds of {what} are used up; an operator can allow more", rounds.max);
        Err(Error::refused(Reason::RoundLimit, why))
    };
    match requirement {
        Some(requirement) => match Rounds::of_requirement(&requirement) {
            rounds if rounds.are_used_up() => refused(requirement.name(), rounds),
            _ => Ok(()),
        },
        None => match newest(state).filter(|mission| mission.phase == Phase::Failed) {
            Some(mission) if Rounds::of_mission(state, &mission).are_used_up() => {
                refused(mission.name(), Rounds::of_mission(state, &mission))
            }
            _ => Ok(()),
        },
    }
}

/// Whether only an operator can say how to go on after the end of a job: a person ended it, or its mission has no round
/// left.
pub fn is_operators(state: &State, job: &Entity) -> bool {
    let mission = job.as_task().mission().and_then(|mission| state.entity(&mission));
    let is_out = |mission: &Entity| mission.phase != Phase::Passed && Rounds::of_mission(state, mission).are_used_up();
    has_failed(job) && (rules::was_ended_by_person(job) || mission.is_some_and(|mission| is_out(&mission)))
}

/// Refuses to call a mission passed whose work is not done, as far as the log tells.
pub fn check_may_pass(state: &State, mission: &Entity) -> Result<()> {
    let not_ready = |why: String| Err(Error::refused(Reason::NotReady, why));
    if mission.phase != Phase::Running {
        return Ok(());
    }
    let missing: Vec<Entity> = plan(state, mission).into_iter().filter(|task| !has_succeeded(task)).collect();
    if let Some(first) = missing.first() {
        let count = text::count_noun(missing.len() as u64, "planned task");
        return not_ready(format!("{count} not done yet; {} is {}", first.name(), first.phase));
    }
    match current(state, mission).filter(Entity::is_job) {
        Some(job) if is_in_progress(&job) => not_ready(format!("{} is {}", job.name(), job.phase)),
        Some(job) if has_failed(&job) && Some(job.last_event) > mission.as_mission().round_by() => {
            not_ready(format!("{} failed and was not fired again; hf-state fail gives up", job.name()))
        }
        _ => Ok(()),
    }
}

/// Refuses a job that an agent fires for a requirement whose rounds are used up, beside any mission.
pub fn check_rounds_left(state: &State, actor: &Actor, payload: &Map<String, Value>) -> Result<()> {
    let is_job = payload.get("job") == Some(&Value::Bool(true));
    if !is_job || !actor.is_autonomous() || !state.tally().has_settings() || payload.contains_key("of_mission") {
        return Ok(());
    }
    let id = payload.get("requirement_id").and_then(Value::as_str).and_then(|id| EntityId::parse(id).ok());
    let requirement = id.and_then(|id| state.entity(&Subject::new(EntityType::Requirement, id)));
    match requirement.map(|requirement| (Rounds::of_requirement(&requirement), requirement.name())) {
        Some((rounds, name)) if rounds.are_used_up() => {
            let why = format!("all {} rounds of {name} are used up; an operator can allow more", rounds.max);
            Err(Error::refused(Reason::RoundLimit, why))
        }
        _ => Ok(()),
    }
}

/// Refuses work of a mission that is not running, and tasks of a plan that are not the mission's.
pub fn check_work(state: &State, payload: &Map<String, Value>) -> Result<()> {
    let id = payload.get("of_mission").and_then(Value::as_str).and_then(|id| EntityId::parse(id).ok());
    let mission = id.and_then(|id| state.entity(&Subject::new(EntityType::Mission, id)));
    match mission.filter(|mission| mission.phase != Phase::Running) {
        Some(mission) => {
            let why = format!("{} is {}", mission.name(), mission.phase);
            Err(Error::refused(Reason::IllegalTransition, why))
        }
        None => Ok(()),
    }
}

/// Refuses a plan that is empty, or whose tasks were not proposed as work of this mission.
fn check_plan(state: &State, mission: &Subject, payload: &Map<String, Value>) -> Result<()> {
    let tasks: Vec<&str> =
        payload.get("tasks").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let is_own = |id: &str| task_named(state, id).and_then(|task| task.as_task().mission()).as_ref() == Some(mission);
    match tasks.iter().find(|id| !is_own(id)) {
        _ if tasks.is_empty() => Err(Error::usage("a plan has at least one task")),
        Some(other) => Err(Error::usage(format!("task:{other} is no work of this mission"))),
        None => Ok(()),
    }
}

/// Refuses an event after which a mission's file would be too long, and a mission or round beyond the limit.
pub fn check(state: &State, kind: Kind, subject: &Subject, actor: &Actor, payload: &Map<String, Value>) -> Result<()> {
    let mission = state.entity(subject);
    match (kind, &mission) {
        (Kind::MissionStarted, _) => check_start(state, actor, payload)?,
        (Kind::MissionRoundBegun, Some(mission)) => {
            let rounds = Rounds::of_mission(state, mission);
            rounds.check_left()?;
            if payload.get("round").and_then(Value::as_u64) != Some(rounds.begun + 1) {
                return Err(Error::usage(format!("payload.round must be {}, the next round", rounds.begun + 1)));
            }
        }
        (Kind::MissionRoundsAdded, _) => {
            let (rounds, max) = (payload.get("rounds").and_then(Value::as_u64), limits::ROUNDS_ADDED_MAX_COUNT);
            if !rounds.is_some_and(|rounds| (1..=max).contains(&rounds)) {
                return Err(Error::usage(format!("payload.rounds must be 1 to {max}")));
            }
            if let Some(other) = running(state).filter(|other| other.subject != *subject) {
                let why = format!("{} is still running; only one mission can run at a time", other.name());
                return Err(Error::refused(Reason::IllegalTransition, why));
            }
        }
        (Kind::MissionPlanned, _) => check_plan(state, subject, payload)?,
        _ => {}
    }
    let mut members = payload.clone();
    match kind {
        Kind::MissionStarted | Kind::MissionChanged => {}
        Kind::MissionPassed | Kind::MissionFailed if payload.contains_key("last_action") => {
            members = mission.as_ref().map(|mission| mission.facts().clone()).unwrap_or_default();
            members.extend(payload.clone());
        }
        // It writes no text.
        _ => return Ok(()),
    }
    if let Some(open) = members.get("open_k").and_then(Value::as_str).filter(|_| state.tally().has_settings()) {
        check_open_points(open)?;
    }
    for (name, member) in LINES {
        if let Some(text) = members.get(*member).and_then(Value::as_str) {
            check_line(name, text)?;
        }
    }
    let rounds = mission.as_ref().map(|mission| Rounds::of_mission(state, mission));
    let file = MissionFile::with(state, rounds.unwrap_or_default(), Phase::Running, &members);
    let (constraints, max) = (file.constraints.len(), limits::CONSTRAINTS_MAX_COUNT);
    if constraints > max {
        return Err(Error::usage(format!("there are {constraints} constraints; at most {max}")));
    }
    for constraint in &file.constraints {
        if constraint.trim().is_empty() {
            return Err(Error::usage("a constraint must not be empty"));
        }
        check_line("a constraint", constraint)?;
    }
    check_short("the state file", &file.render())
}

/// The running mission.
pub fn running(state: &State) -> Option<Entity> {
    state.in_phase(EntityType::Mission, Phase::Running, 1).pop()
}

/// The newest mission, whether or not it is running.
pub fn newest(state: &State) -> Option<Entity> {
    state.newest(EntityType::Mission)
}
