//! A mission's state file, `M1.md`: what it says, and how short it has to be.
//!
//! Invariant: whatever is recorded about a mission, its file has at most 200 words and 2,000 bytes
//! (`no_change_makes_the_file_longer_than_an_agent_should_read`).

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::base::{EntityId, EntityType, Error, Reason, Result, Subject, limits};
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::{Entity, State};

/// Where nothing is to be said.
pub const NONE: &str = "NONE";

/// Members of a mission that are one line each, by the names that the file gives them.
pub const LINES: &[(&str, &str)] = &[
    ("GOAL", "goal"),
    ("LOGREF", "logref"),
    ("OPEN_K", "open_k"),
    ("LAST_ACTION", "last_action"),
    ("NEXT_ACTION", "next_action"),
];

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct M1 {
    pub status: &'static str,
    pub goal: String,
    pub constraints: Vec<String>,
    pub task: String,
    pub logref: String,
    pub open_k: String,
    pub round: u64,
    pub last_action: String,
    pub next_action: String,
}

impl M1 {
    /// The file of a mission as it stands.
    pub fn of(state: &State, mission: &Entity) -> M1 {
        M1::with(state, mission.phase, mission.as_mission().round(), mission.facts())
    }

    fn with(state: &State, at: Phase, round: u64, members: &Map<String, Value>) -> M1 {
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or(NONE).to_owned();
        let task = members.get("task_id").and_then(Value::as_str).and_then(|id| EntityId::parse(id).ok());
        let task = task.and_then(|id| state.entity(&Subject::new(EntityType::Task, id)));
        let constraints = members.get("constraints").and_then(Value::as_array).into_iter().flatten();
        M1 {
            status: match at {
                Phase::Passed => "PASS",
                Phase::Failed => "FAIL",
                _ => "RUNNING",
            },
            goal: text("goal"),
            constraints: constraints.filter_map(Value::as_str).map(str::to_owned).collect(),
            task: task.map_or(NONE.to_owned(), |task| task.name()),
            logref: text("logref"),
            open_k: text("open_k"),
            round,
            last_action: text("last_action"),
            next_action: text("next_action"),
        }
    }

    /// `2/4`.
    pub fn rounds(&self) -> String {
        format!("{}/{}", self.round, limits::ROUNDS_MAX_COUNT)
    }

    /// The file.
    pub fn render(&self) -> String {
        let M1 { status, goal, task, logref, open_k, last_action, next_action, .. } = self;
        let mut text = format!("STATUS: {status}\nGOAL: {goal}\nCONSTRAINTS:\n");
        for constraint in &self.constraints {
            writeln!(text, "- {constraint}").expect("a string takes all");
        }
        let rounds = self.rounds();
        write!(
            text,
            "CURRENT:\n  TASK_ID: {task}\n  LOGREF: {logref}\nOPEN_K: {open_k}\nROUND: {rounds}\n\
             LAST_ACTION: {last_action}\nNEXT_ACTION: {next_action}\n"
        )
        .expect("a string takes all");
        text
    }
}

/// Refuses a text that is longer than an agent should have to read. Words are counted where there
/// are spaces, bytes for languages without.
pub fn check_short(what: &str, text: &str) -> Result<()> {
    let (words, most) = (text.split_whitespace().count(), limits::SHORT_MAX_WORDS);
    if words > most {
        return Err(Error::usage(format!("{what} has {words} words: at most {most}")));
    }
    let (bytes, most) = (text.len(), limits::SHORT_MAX_BYTES);
    if bytes > most {
        return Err(Error::usage(format!("{what} has {bytes} bytes: at most {most}")));
    }
    Ok(())
}

/// Refuses what would not stay on its line.
fn check_line(name: &str, text: &str) -> Result<()> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if text.contains(breaks) {
        return Err(Error::usage(format!("{name} is one line, without control characters")));
    }
    match text.chars().count() {
        chars if chars > limits::FACT_MAX_CHARS => {
            Err(Error::usage(format!("{name} has {chars} characters: at most {}", limits::FACT_MAX_CHARS)))
        }
        _ => Ok(()),
    }
}

/// Whether what is to be recorded of a mission leaves a file that can be read at a glance.
pub fn check(state: &State, kind: Kind, subject: &Subject, payload: &Map<String, Value>) -> Result<()> {
    let mission = state.entity(subject);
    let round = mission.as_ref().map_or(0, |mission| mission.as_mission().round());
    match kind {
        Kind::MissionStarted => {
            if let Some(other) = running(state) {
                let why = format!("{} is Running: one mission has to end first", other.name());
                return Err(Error::refused(Reason::IllegalTransition, why));
            }
        }
        Kind::MissionRoundBegun => {
            let most = limits::ROUNDS_MAX_COUNT;
            if round >= most {
                return Err(Error::refused(Reason::RoundLimit, format!("all {most} rounds are used")));
            }
            if payload.get("round").and_then(Value::as_u64) != Some(round + 1) {
                return Err(Error::usage(format!("the next round is {}", round + 1)));
            }
        }
        _ => {}
    }
    let mut members = payload.clone();
    if matches!(kind, Kind::MissionRoundBegun | Kind::MissionPassed | Kind::MissionFailed) {
        members = mission.map(|mission| mission.facts().clone()).unwrap_or_default();
        members.extend(payload.clone());
    }
    for (name, member) in LINES {
        if let Some(text) = members.get(*member).and_then(Value::as_str) {
            check_line(name, text)?;
        }
    }
    let file = M1::with(state, Phase::Running, round, &members);
    let (constraints, most) = (file.constraints.len(), limits::CONSTRAINTS_MAX_COUNT);
    if constraints > most {
        return Err(Error::usage(format!("there are {constraints} constraints: at most {most}")));
    }
    for constraint in &file.constraints {
        if constraint.trim().is_empty() {
            return Err(Error::usage("a constraint is empty"));
        }
        check_line("a constraint", constraint)?;
    }
    check_short("the state file", &file.render())
}

/// The mission that is under way.
pub fn running(state: &State) -> Option<Entity> {
    state.in_phase(EntityType::Mission, Phase::Running, 1).pop()
}

/// The newest mission, under way or over.
pub fn newest(state: &State) -> Option<Entity> {
    state.newest(EntityType::Mission)
}
