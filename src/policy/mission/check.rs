//! What is refused about a mission: a file that is too long, a round or a mission beyond the limit, work that is not done.

use serde_json::{Map, Value};

use super::standing::{current, has_failed, has_succeeded, is_in_progress, out_of_rounds, plan, task_named};
use super::{LINES, MissionFile, Rounds, running};
use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, limits, text};
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::{Entity, State};

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

/// Refuses a mission beside another one, and one with which an agent would get new rounds.
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
    Rounds::check_start(state, requirement.as_deref())
}

/// Refuses to change the requirement of a mission that has begun, which only an operator can: the rounds of the old one
/// would no longer count.
pub fn check_requirement(state: &State, mission: &Entity, to: Option<&str>) -> Result<()> {
    let from = mission.as_mission().requirement_id();
    match from.is_some() && from != to && Rounds::of_mission(state, mission).begun > 0 {
        true => {
            let why = format!("{} has begun; only an operator can change its requirement", mission.name());
            Err(Error::refused(Reason::OperatorOnly, why))
        }
        false => Ok(()),
    }
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
        Some((rounds, name)) if rounds.are_used_up() => Err(rounds.used_up(&name)),
        _ => Ok(()),
    }
}

/// Refuses a task of a mission to an agent while the mission has no round left: only an operator can say how to go on.
pub fn check_may_claim(state: &State, actor: &Actor, task: &Entity) -> Result<()> {
    match out_of_rounds(state, task).filter(|_| actor.is_autonomous()) {
        Some(mission) => Err(Rounds::of_mission(state, &mission).used_up(&mission.name())),
        None => Ok(()),
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
        (Kind::MissionChanged, Some(mission)) if actor.is_autonomous() && state.tally().has_settings() => {
            check_requirement(state, mission, payload.get("requirement_id").and_then(Value::as_str))?;
        }
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
