//! What an approval of a command covers, compared with what is there now.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::base::{EntityType, Result, names};
use crate::event::Event;
use crate::policy::approval::{self, Question};
use crate::policy::command::{BoundFile, FileKind, RecordedCommand};
use crate::state::{Entity, State};
use crate::vault::Log;

names! {
    /// Whether something is still as an approval covers it.
    pub enum BoundState {
        Same = "SAME",
        Changed = "CHANGED",
        /// Its content is not covered, only its size and time, which are the same.
        NotBound = "NOT_BOUND",
        /// The caller may not read it.
        Unknown = "UNKNOWN",
    }
}

/// Something that an approval covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundLine {
    /// What it is: directory, variable, program, interpreter or argument.
    pub what: &'static str,
    pub state: BoundState,
    /// Its digest, or what else is known about it.
    pub content: Option<String>,
    pub name: String,
}

/// Everything that an approval of a decision covers, if it is about a command.
pub(super) fn covered(log: &dyn Log, state: &State, decision: &Entity) -> Result<Vec<BoundLine>> {
    let find = |id| Ok(log.find(id)?.filter(Event::is_intact));
    let target = Some(decision).filter(|decision| {
        decision.subject.entity == EntityType::Decision
            && Question::of_decision(decision) == Some(Question::Destructive)
    });
    let target = target.and_then(|decision| decision.as_decision().target()).and_then(|target| state.entity(&target));
    // A later question is about the command as it was then.
    let target = target.filter(|_| approval::still_fits(state, decision));
    let command = target.map(|task| approval::command_of(&task, &find)).transpose()?.flatten();
    Ok(command.map(|command| lines(&command)).unwrap_or_default())
}

fn lines(command: &RecordedCommand) -> Vec<BoundLine> {
    let cwd = PathBuf::from(OsString::from_vec(command.cwd.clone()));
    let is_there = std::fs::canonicalize(&cwd).is_ok_and(|real| real == cwd);
    let mut lines = vec![BoundLine {
        what: "directory",
        state: if is_there { BoundState::Same } else { BoundState::Changed },
        content: None,
        name: cwd.to_string_lossy().into_owned(),
    }];
    let Some(bound) = &command.bound else { return lines };
    // A job gets the variables that are recorded.
    let variable = |variable: &dyn std::fmt::Display| BoundLine {
        what: "variable",
        state: BoundState::Same,
        content: None,
        name: variable.to_string(),
    };
    lines.extend(bound.environment.iter().map(|one| variable(one)));
    // If the files cannot be followed any more, they have changed.
    let now = super::job::bound_now(command, bound, &cwd).unwrap_or_default();
    let line = |(bound, now): (Option<&BoundFile>, Option<&BoundFile>)| {
        let file = bound.or(now)?;
        Some(BoundLine {
            what: file.role.as_str(),
            state: compare(bound, now),
            content: Some(file.content()),
            name: file.name.clone(),
        })
    };
    lines.extend(bound.pairs(&now).into_iter().filter_map(line));
    lines
}

fn compare(bound: Option<&BoundFile>, now: Option<&BoundFile>) -> BoundState {
    match (bound, now) {
        (Some(bound), Some(now)) if now.kind == FileKind::Unreadable && bound.kind != now.kind => BoundState::Unknown,
        (Some(bound), Some(now)) if now == bound => match bound.kind {
            FileKind::Large | FileKind::Unreadable => BoundState::NotBound,
            _ => BoundState::Same,
        },
        _ => BoundState::Changed,
    }
}
