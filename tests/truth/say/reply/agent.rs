//! Replies to agents about themselves: hf-checkpoint, hf-activity, hf-deepwork, hf-session.

use super::{Expected, NONE, Question};
use crate::model::Phase::{Archived, Paused};

impl Question<'_> {
    pub(super) fn sign(&self) -> Option<Expected> {
        if self.is_void || self.phase() == Archived {
            return self.kept_out();
        }
        let agent = self.after.agents.get(self.actor.strip_prefix("agent:")?)?;
        let due = self.words.program == "hf-activity" && agent.duty != crate::model::Duty::None;
        let next = if due { self.action("hf-activity --kind introspection") } else { NONE.to_owned() };
        Some(Expected::new("RECORDED", next))
    }

    pub(super) fn deep_work(&self) -> Option<Expected> {
        let agent = self.actor.strip_prefix("agent:")?;
        let tidies = self.words.verb() == "complete" && !self.is_void && self.phase() == Paused;
        if let Some(kept) = self.kept_out().filter(|_| !tidies) {
            return Some(kept);
        }
        let open = self.view.deep_work(agent).filter(|work| !work.strict || self.now <= work.until);
        match self.words.verb() {
            "start" => Some(Expected::new("RECORDED", NONE)),
            _ if open.is_none() => None,
            // The log that closes deep work may be the introspection that is due after it.
            "complete" => Some(Expected::new("RECORDED", self.action("hf-activity --kind introspection"))),
            _ => None,
        }
    }

    pub(super) fn session(&self) -> Option<Expected> {
        match self.words.verb() {
            "login" => {
                if let Some(kept) = self.kept_out() {
                    return Some(kept);
                }
                let (name, _) = self.after.sessions.iter().next_back()?;
                let id = self.after.subjects[name].trim_start_matches("session:").to_owned();
                Some(Expected::new("RECORDED", format!("ACTION hf-session task --session {id}")))
            }
            "renew" => self.kept_out().or_else(|| Some(Expected::new("RECORDED", NONE))),
            "logout" => None,
            _ => None,
        }
    }
}
