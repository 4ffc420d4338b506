//! What was left with a task for those who take it up: notes, summaries of sessions, and operators' handoffs.
//!
//! A task keeps the ids of its latest notes and how many there are; the texts are read from the log. Older ones are found by
//! `hf-branch recall --all --grep` and `hf-log`.

use serde_json::Value;

use crate::base::{Result, Timestamp, Ulid, text};
use crate::event::{Event, parse_ulid};
use crate::policy::rules;
use crate::state::{Entity, State};
use crate::vault::Log;

/// How many notes a briefing has, and how much of each.
const BRIEF_NOTES: usize = 3;
const BRIEF_NOTE_MAX_CHARS: usize = 200;
/// How many notes are shown with the task.
const SHOWN_NOTES: usize = 10;

/// A note that was left with a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNote {
    pub at: Timestamp,
    pub by: String,
    pub text: String,
}

impl TaskNote {
    fn of_event(event: Event) -> Option<TaskNote> {
        let member = |name: &str| event.payload.get(name).and_then(Value::as_str).map(str::to_owned);
        let text = member("text").or_else(|| member("handoff"))?;
        Some(TaskNote { at: event.timestamp, by: event.actor, text })
    }
}

/// The notes of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskNotes {
    /// The operator's note for its holder.
    pub handoff: Option<TaskNote>,
    /// The latest others, oldest first.
    pub latest: Vec<TaskNote>,
    /// How many there are, with the handoff.
    pub total: u64,
}

impl TaskNotes {
    /// The notes of a task, for those who look at it.
    pub fn shown(log: &dyn Log, task: &Entity) -> Result<TaskNotes> {
        TaskNotes::read(log, task, SHOWN_NOTES)
    }

    /// The notes of a task, for those who take it up.
    pub fn brief(log: &dyn Log, task: &Entity) -> Result<TaskNotes> {
        let mut notes = TaskNotes::read(log, task, BRIEF_NOTES)?;
        for note in notes.handoff.iter_mut().chain(&mut notes.latest) {
            note.text = text::cut(&note.text, BRIEF_NOTE_MAX_CHARS);
        }
        Ok(notes)
    }

    fn read(log: &dyn Log, task: &Entity, max: usize) -> Result<TaskNotes> {
        let known = task.as_task();
        let find = |id: Ulid| Ok(log.find(id)?.and_then(TaskNote::of_event));
        let handoff_by = known.handoff_by();
        let ids: Vec<Ulid> = known.notes().filter_map(parse_ulid).filter(|id| Some(*id) != handoff_by).collect();
        let ids = ids[ids.len().saturating_sub(max)..].iter();
        let latest: Vec<Option<TaskNote>> = ids.map(|id| find(*id)).collect::<Result<_>>()?;
        let handoff = handoff_by.map(find).transpose()?.flatten();
        Ok(TaskNotes { handoff, latest: latest.into_iter().flatten().collect(), total: known.note_count() })
    }

    /// Whether there are more than these.
    pub fn has_more(&self) -> bool {
        self.total > (self.latest.len() + usize::from(self.handoff.is_some())) as u64
    }
}

/// What somebody who takes up a task has to know about it.
#[derive(Clone, Debug, Default)]
pub struct WorkBrief {
    pub description: Option<String>,
    pub notes: TaskNotes,
}

/// What is known about a task for those who take it up. An attempt without a description has that of the attempt before
/// it.
pub fn brief(log: &dyn Log, state: &State, task: &Entity) -> Result<WorkBrief> {
    let description = |task: &Entity| task.as_task().description().filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(WorkBrief {
        description: rules::attempts(state, task).iter().find_map(description),
        notes: TaskNotes::brief(log, task)?,
    })
}
