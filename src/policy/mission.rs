//! A mission's state file, `M1.md`: its contents and its limits.
//!
//! Invariant: whatever is recorded about a mission, its file has at most 200 words and 2,000 bytes
//! (`no_change_makes_the_state_file_too_long`).

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::base::{EntityId, EntityType, Error, Reason, Result, Subject, limits};
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::{Entity, State};

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

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissionFile {
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

impl MissionFile {
    /// The file of a mission in its current state.
    pub fn of_mission(state: &State, mission: &Entity) -> MissionFile {
        MissionFile::with(state, mission.phase, mission.as_mission().round(), mission.facts())
    }

    fn with(state: &State, phase: Phase, round: u64, members: &Map<String, Value>) -> MissionFile {
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or(NONE).to_owned();
        let task = members.get("task_id").and_then(Value::as_str).and_then(|id| EntityId::parse(id).ok());
        let task = task.and_then(|id| state.entity(&Subject::new(EntityType::Task, id)));
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
            round,
            last_action: text("last_action"),
            next_action: text("next_action"),
        }
    }

    /// `2/4`.
    pub fn rounds(&self) -> String {
        format!("{}/{}", self.round, limits::ROUNDS_MAX_COUNT)
    }

    /// The text of the file.
    pub fn render(&self) -> String {
        let MissionFile { status, goal, task, logref, open_k, last_action, next_action, .. } = self;
        let mut text = format!("STATUS: {status}\nGOAL: {goal}\nCONSTRAINTS:\n");
        for constraint in &self.constraints {
            writeln!(text, "- {constraint}").expect("writing to a string cannot fail");
        }
        let rounds = self.rounds();
        write!(
            text,
            "CURRENT:\n  TASK_ID: {task}\n  LOGREF: {logref}\nOPEN_K: {open_k}\nROUND: {rounds}\n\
             LAST_ACTION: {last_action}\nNEXT_ACTION: {next_action}\n"
        )
        .expect("writing to a string cannot fail");
        text
    }
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

/// Refuses an event after which a mission's file would be too long, and a mission or round beyond the limit.
pub fn check(state: &State, kind: Kind, subject: &Subject, payload: &Map<String, Value>) -> Result<()> {
    let mission = state.entity(subject);
    let round = mission.as_ref().map_or(0, |mission| mission.as_mission().round());
    match kind {
        Kind::MissionStarted => {
            if let Some(other) = running(state) {
                let why = format!("{} is still running; only one mission can run at a time", other.name());
                return Err(Error::refused(Reason::IllegalTransition, why));
            }
        }
        Kind::MissionRoundBegun => {
            let max = limits::ROUNDS_MAX_COUNT;
            if round >= max {
                return Err(Error::refused(Reason::RoundLimit, format!("all {max} rounds are used up")));
            }
            if payload.get("round").and_then(Value::as_u64) != Some(round + 1) {
                return Err(Error::usage(format!("payload.round must be {}, the next round", round + 1)));
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
    let file = MissionFile::with(state, Phase::Running, round, &members);
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
