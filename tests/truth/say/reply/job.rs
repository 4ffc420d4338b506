//! Replies of hf-job.

use super::{ASK, Expected, LIST, NONE, Question, refused};
use crate::jobs::TRANSIENT;
use crate::model::Phase::{Assigned, Failed, Paused, Proposed, Ready, Retrying, Running};
use crate::model::Task;
use crate::say::poll;

impl Question<'_> {
    pub(super) fn job(&self) -> Option<Expected> {
        match self.words.verb() {
            "fire" => self.fire(),
            "list" => {
                let waits = self.after.stop.is_some() && self.after.jobs().any(|(_, task, _)| task.is_open());
                Some(Expected::new("OK", if waits { ASK } else { NONE }))
            }
            verb => {
                let name = self.words.object()?;
                let Some(task) = self.view.tasks.get(name) else {
                    return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
                };
                if !task.job {
                    return Some(Expected::new("USAGE", format!("ACTION hf-task show {name}")));
                }
                match verb {
                    "check" => Some(self.check(name)),
                    "cancel" => self.cancel(name, task),
                    _ => None,
                }
            }
        }
    }

    fn fire(&self) -> Option<Expected> {
        let requirement = self.words.option("requirement").and_then(|name| self.view.requirements.get(name));
        if self.is_named && requirement.is_some_and(|requirement| requirement.project != self.shell) {
            return None;
        }
        if self.is_stopped {
            return Some(self.stopped(&self.project));
        }
        if let Some(kept) = self.kept_out() {
            return Some(kept);
        }
        if self.phase() == Paused {
            return refused(ASK);
        }
        if let Some(refusal) = self.unbuildable() {
            return Some(refusal);
        }
        let (name, _) = self.after.tasks.iter().next_back()?;
        Some(match self.words.flag("destructive") {
            true => Expected::new("APPROVAL_REQUIRED", ASK),
            false => Expected::new("FIRED", self.action(&format!("hf-poll {name}"))),
        })
    }

    /// The refusal of new work that could never start.
    fn unbuildable(&self) -> Option<Expected> {
        let requirement = self.words.option("requirement").map(|name| self.view.requirements.get(name));
        let after = self.words.all("after");
        if matches!(requirement, Some(None)) || after.iter().any(|name| !self.view.tasks.contains_key(name)) {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        }
        let is_over = requirement.flatten().is_some_and(crate::model::Requirement::is_over);
        let hopeless = after.iter().any(|name| self.view.is_hopeless(name));
        if is_over || hopeless { refused(LIST) } else { None }
    }

    fn cancel(&self, name: &str, task: &Task) -> Option<Expected> {
        // What it fired is its own.
        let own = task.proposed_by == self.actor;
        let answer = match task.is_open() {
            false => Some(Expected::new("DUPLICATE", NONE)),
            true if self.is_agent && !own => refused(NONE),
            // Its end is settled first.
            true if self.view.ended.get(name).is_some_and(|code| *code != TRANSIENT || !self.view.is_retried(task)) => {
                Some(Expected::new("DUPLICATE", NONE))
            }
            true => Some(Expected::new("CANCELLED", NONE)),
        };
        match self.kept_out().filter(|_| self.is_agent) {
            // What somebody else fired is refused for that, too.
            Some(kept) if task.is_open() && !own => {
                Some(Expected { or: Some("REFUSED"), ..self.kept_or(kept, answer) })
            }
            Some(kept) => Some(self.kept_or(kept, answer)),
            None => answer,
        }
    }

    /// The state of a job as it is after the look, which may have recorded its end.
    fn check(&self, name: &str) -> Expected {
        let world = self.after;
        let (task, next) = (&world.tasks[name], poll::next(world, name, ""));
        match task.phase {
            _ if task.succeeded() => Expected::new("DONE", next),
            // A retry, or a job whose turn it is, may or may not have begun already.
            Ready | Assigned | Retrying | Failed => Expected { or: Some("RUNNING"), ..Expected::new("QUEUED", next) },
            Running => Expected::new("RUNNING", next),
            Proposed => Expected::new("QUEUED", next),
            _ if task.end.as_ref().and_then(|end| end.reason.as_deref()).is_some_and(|why| why.starts_with("lost")) => {
                Expected { exit: 1, ..Expected::new("LOST", next) }
            }
            _ => Expected { exit: 1, ..Expected::new("FAIL", next) },
        }
    }
}
