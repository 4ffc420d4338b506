//! Replies of hf-constraint, hf-pause and hf-resume.

use super::{ASK, Expected, NONE, Question, refused};
use crate::model::Phase::{Archived, Paused, Removed};

impl Question<'_> {
    pub(super) fn constraint(&self) -> Option<Expected> {
        if let Some(kept) = self.kept_out().filter(|_| self.is_agent) {
            return Some(kept);
        }
        if self.words.verb() == "remove" {
            let found = self.words.object().and_then(|name| self.view.constraints.get(name));
            return match found.map(|constraint| constraint.phase) {
                None => Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20")),
                Some(Removed) => None,
                Some(_) => Some(Expected::new("RECORDED", ASK)),
            };
        }
        match self.words.option("priority") {
            Some(name) if !self.view.tasks.contains_key(name) && !self.view.requirements.contains_key(name) => {
                Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"))
            }
            _ => Some(Expected::new("RECORDED", ASK)),
        }
    }

    fn unknown_project(&self) -> Option<Expected> {
        let unknown = self.project != "main" && !self.view.projects.contains_key(&self.project);
        unknown.then(|| Expected::new("NOT_FOUND", "ACTION hf-log --last 20"))
    }

    pub(super) fn pause(&self) -> Option<Expected> {
        if let Some(kept) = self.for_operators() {
            return Some(kept);
        }
        if let Some(unknown) = self.unknown_project() {
            return Some(unknown);
        }
        let archive = self.words.flag("archive");
        match (self.view.project_phase(&self.project), archive) {
            (Archived, true) | (Paused, false) => Some(Expected::new("DUPLICATE", NONE)),
            (Archived, false) => refused(NONE),
            (_, true) => Some(Expected::new("ARCHIVED", NONE)),
            (_, false) => Some(Expected::new("PAUSED", NONE)),
        }
    }

    pub(super) fn resume(&self) -> Option<Expected> {
        if let Some(kept) = self.for_operators() {
            return Some(kept);
        }
        if self.words.flag("system") {
            let status = if self.view.stop.is_some() { "RESUMED" } else { "DUPLICATE" };
            return Some(Expected::new(status, NONE));
        }
        if let Some(unknown) = self.unknown_project() {
            return Some(unknown);
        }
        match self.view.project_phase(&self.project) {
            _ if self.view.stop.is_some() => Some(Expected::new("STOPPED?", ASK)),
            Paused => Some(Expected::new("RESUMED", NONE)),
            Archived => refused(NONE),
            _ => Some(Expected::new("DUPLICATE", NONE)),
        }
    }
}
