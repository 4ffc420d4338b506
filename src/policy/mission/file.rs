//! The state file `M1.md`: what it says about a mission, within its limits.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::check::check_short;
use super::standing::{Driver, MissionStanding, TakeUp, WrittenLines, current, task_named, waits_for_approval};
use super::{NONE, Rounds};
use crate::base::{EntityType, limits, text};
use crate::machine::Phase;
use crate::policy::rules;
use crate::policy::settings::{Setting, Settings};
use crate::state::{Entity, State};

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
        let written = WrittenLines::of_mission(mission, &standing);
        match standing.texts(mission.phase, file.rounds) {
            Some(texts) => {
                let last = if written.last_action { vec![file.last_action.clone()] } else { texts.last };
                let next = if written.next_action { file.next_action.clone() } else { texts.next };
                file.with_texts(&Texts { last, next })
            }
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

    pub(super) fn with(state: &State, rounds: Rounds, phase: Phase, members: &Map<String, Value>) -> MissionFile {
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
pub(super) const GO: &str = "hf-state go";
const DONE: &str = "hf-state done";
/// What an agent does that has its command in its own words.
const FIRE_AGAIN: &str = "fire it again with hf-job fire";
/// How the next action begins if only an operator can go on.
pub const ASK: &str = "ASK operator";

impl MissionStanding {
    fn texts(&self, phase: Phase, rounds: Rounds) -> Option<Texts> {
        let round = rounds.begun;
        let (last, next) = match self {
            MissionStanding::Written => return None,
            MissionStanding::Reviewed(design) => {
                let (last, next) = design.texts();
                (vec![last, "reviewed".to_owned()], next)
            }
            MissionStanding::InProgress { job, driver } => {
                let name = job.name();
                let waits = waits_for_approval(job);
                let what = if waits { "waits for approval" } else { "was fired" };
                let next = match driver {
                    _ if waits => format!("{ASK} to approve {name}"),
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
                    // Somebody has the task already.
                    (Driver::Agent, None | Some((TakeUp::Show, _))) => FIRE_AGAIN.to_owned(),
                    (Driver::Agent, Some((take_up, task))) => take_up.command(&task.name()),
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
            MissionStanding::RoundBegun { driver, .. } => {
                let next = match driver {
                    Driver::Go => GO.to_owned(),
                    Driver::Agent => FIRE_AGAIN.to_owned(),
                };
                (vec![format!("round {round} started"), "started".to_owned()], next)
            }
            MissionStanding::PlanDone { of, driver, .. } => {
                let last = format!("{} succeeded", text::count_noun(*of as u64, "planned task"));
                let next = match (phase, driver) {
                    (Phase::Running, Driver::Go) => GO,
                    (Phase::Running, Driver::Agent) => DONE,
                    _ => NONE,
                };
                (vec![last, "succeeded".to_owned()], next.to_owned())
            }
            MissionStanding::Planned { task, take_up, done, of, .. } => {
                let next = take_up.command(&task.name());
                (vec![format!("{done} of {of} planned tasks are done"), "planned".to_owned()], next)
            }
        };
        Some(Texts { last, next })
    }
}

impl TakeUp {
    /// The command that takes a task up.
    fn command(self, name: &str) -> String {
        match self {
            TakeUp::Go => GO.to_owned(),
            TakeUp::Fire => format!("hf-state fire {name}"),
            TakeUp::Claim => format!("hf-task claim {name}"),
            TakeUp::Show => format!("hf-task show {name}"),
            TakeUp::Explain => format!("hf-task explain {name}"),
        }
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
pub fn has_runner(state: &State) -> bool {
    has_command(state, Setting::RunnerCommand)
}

/// Whether the settings say what repairs a failure.
pub(super) fn has_fixer(state: &State) -> bool {
    has_command(state, Setting::FixerCommand)
}

fn has_command(state: &State, setting: Setting) -> bool {
    Settings::recorded(state).is_some_and(|settings| !settings.text(setting).is_empty())
}
