//! Replies to agents about themselves: hf-checkpoint, hf-activity, hf-deepwork, hf-session.

use super::{ASK, Expected, LIST, NONE, Question, refused};
use crate::model::Phase::{Archived, Assigned, Paused, Running};
use crate::model::Task;

/// How often strict deep work may be extended.
const EXTENSIONS_MAX: u32 = 2;

impl Question<'_> {
    pub(super) fn sign(&self) -> Option<Expected> {
        if self.is_void || self.phase() == Archived {
            return self.kept_out();
        }
        let agent = self.after.agents.get(self.actor.strip_prefix("agent:")?)?;
        let due = self.words.program == "hf-activity" && agent.duty != crate::model::Duty::None;
        // A holder that fell silent is told by its next sign of life.
        let me = self.view.agents.get(self.actor.strip_prefix("agent:")?);
        let is_lost = |name: &&String| self.view.tasks[*name].lost_by.contains(&self.actor);
        let lost = me.and_then(|me| me.lost.iter().rfind(is_lost));
        let next = match lost {
            _ if due => self.action("hf-activity --kind introspection"),
            Some(lost) => self.after_loss(lost),
            None => NONE.to_owned(),
        };
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
            "extend" => match open {
                Some(work) if !work.strict => Some(Expected::new("USAGE", "ACTION hf-deepwork --help")),
                Some(work) if work.extended >= EXTENSIONS_MAX => Some(Expected::new("REFUSED", ASK)),
                _ => Some(Expected::new("RECORDED", NONE)),
            },
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
                let next = match self.after.is_full() && self.own_task().is_none() {
                    true => NONE.to_owned(),
                    false => format!("ACTION hf-session task --session {id}"),
                };
                Some(Expected::new("RECORDED", next))
            }
            "renew" => self.kept_out().or_else(|| Some(Expected::new("RECORDED", NONE))),
            "next" => Some(Expected::new("OK", self.next_in_session())),
            "task" => self.session_task(),
            _ => None,
        }
    }

    /// The task that a caller holds and can go on with.
    fn own_task(&self) -> Option<(&String, &Task)> {
        let mine = |task: &Task| task.holder.as_ref() == Some(&self.actor) && task.is_held() && !task.job;
        // One that is running comes first.
        let mine = || self.view.tasks.iter().filter(|(_, task)| mine(task) && task.project == self.shell);
        mine().find(|(_, task)| task.phase == Running).or_else(|| mine().next())
    }

    fn next_in_session(&self) -> String {
        let full = self.view.is_full();
        match self.own_task().is_some() || self.view.next_claim(Some(&self.shell)).is_some() && !full {
            true => self.action("hf-session task"),
            // A session without work is over.
            false if self.has_session => self.logout(),
            false => NONE.to_owned(),
        }
    }

    /// The task of a session, which is claimed if there is none.
    fn session_task(&self) -> Option<Expected> {
        if self.is_stopped {
            return Some(self.stopped(&self.project));
        }
        if let Some(kept) = self.kept_out() {
            return Some(kept);
        }
        match self.own_task() {
            Some((name, task)) if task.phase == Assigned => {
                Some(Expected::new("OK", self.action(&format!("hf-task start {name}"))))
            }
            Some(_) => Some(Expected::new("OK", NONE)),
            None => match self.view.next_claim(Some(&self.shell)) {
                Some(_) if self.view.in_progress() >= self.view.settings.concurrent => refused(LIST),
                Some(name) => Some(Expected::new("CLAIMED", self.action(&format!("hf-task start {name}")))),
                None => Some(Expected::new("NO_TASK", NONE)),
            },
        }
    }
}
