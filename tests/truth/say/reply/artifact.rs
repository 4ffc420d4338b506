//! Replies of hf-artifact.

use super::{Expected, NONE, Question, refused};
use crate::model::Phase::{Invalidated, Materialized, Paused, Validated};

impl Question<'_> {
    pub(super) fn artifact(&self) -> Option<Expected> {
        // Who has to leave may store what it has.
        let saves = self.words.verb() == "put" && !self.is_void && self.phase() == Paused;
        match self.kept_out().filter(|_| !saves) {
            Some(kept) => Some(self.kept_or(kept, self.on_artifact())),
            None => self.on_artifact(),
        }
    }

    /// The answer of a project that is active.
    fn on_artifact(&self) -> Option<Expected> {
        let goal = match self.words.verb() {
            "put" => {
                // The same content for the same task is the same artifact.
                let known = self.view.artifacts.values().any(|known| known.task.as_deref() == self.words.option("for"));
                let is_new = self.after.artifacts.len() > self.view.artifacts.len();
                return Some(Expected::new(if is_new || !known { "STORED" } else { "DUPLICATE" }, NONE));
            }
            "validate" => Validated,
            "invalidate" => Invalidated,
            _ => return None,
        };
        let Some(artifact) = self.words.object().and_then(|name| self.view.artifacts.get(name)) else {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        };
        match artifact.phase {
            Materialized => Some(Expected::new("RECORDED", NONE)),
            phase if phase == goal => Some(Expected::new("DUPLICATE", NONE)),
            _ => refused(NONE),
        }
    }
}
