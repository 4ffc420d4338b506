//! Replies of hf-task.

use super::{ASK, Expected, LIST, NONE, Question, refused};
use crate::model::Phase::{
    Aborted, Active, Approved, Archived, Assigned, Implemented, Proposed, Ready, Running, Succeeded,
};
use crate::model::{Task, World};

impl Question<'_> {
    pub(super) fn task(&self) -> Option<Expected> {
        let verb = self.words.verb();
        if verb == "propose" {
            return self.proposal();
        }
        if verb == "list" {
            return Some(Expected::new("OK", NONE));
        }
        let Some(name) = self.words.object() else { return self.claim_any() };
        let Some(task) = self.view.tasks.get(name) else {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        };
        match verb {
            "show" => return Some(Expected::new("OK", NONE)),
            "archive" => return self.archive(task),
            "assign" => return self.assign(name, task),
            _ => {}
        }
        let held = task.holder.as_ref() == Some(&self.actor);
        let lost = task.lost_by.contains(&self.actor);
        if self.is_stopped && self.is_agent && verb != "abort" {
            return Some(self.stopped(&task.project));
        }
        if self.is_void {
            return self.kept_out();
        }
        let ended = matches!(task.phase, Succeeded | Aborted | Archived);
        if lost && verb != "claim" && (verb != "abort" || task.is_held() && self.is_agent) {
            let or = (self.phase() != Active).then_some("EXIT_REQUESTED");
            return Some(Expected { or, ..Expected::new("CLAIM_LOST", self.after_loss(name)) });
        }
        if ended && verb != "abort" && self.phase() != Active {
            return Some(Expected { or: Some("EXIT_REQUESTED"), ..Expected::new("REFUSED", NONE) });
        }
        let leaves = self.is_agent && self.phase() != Active;
        if verb == "abort" && task.phase == Aborted && !leaves {
            return Some(self.ended("DUPLICATE", name));
        }
        if verb == "abort" && matches!(task.phase, Succeeded | Archived) && !self.is_agent {
            return refused(NONE);
        }
        // A job may be ended in a project that is not active, by an operator or by an agent that belongs elsewhere.
        let is_elsewhere = self.has_session && self.is_between();
        let ends_job = verb == "abort" && task.job && (!self.is_agent || is_elsewhere);
        let answer = self.on_task(verb, name, task, held);
        match self.kept_out().filter(|_| !ends_job) {
            // Whoever has to leave one project may still keep what it holds in another.
            Some(kept) if verb == "heartbeat" && self.view.project_phase(&task.project) == Active => {
                Some(Expected { or: answer.map(|answer| answer.status), ..kept })
            }
            Some(kept) => {
                let kept = self.kept_or(kept, answer);
                // While everything is stopped, two rules refuse it.
                let stopped = Some("STOPPED").filter(|_| self.is_stopped && self.is_agent);
                Some(Expected { or: kept.or.or(stopped), ..kept })
            }
            None => answer,
        }
    }

    /// The answer of a project that is active.
    fn on_task(&self, verb: &str, name: &str, task: &Task, held: bool) -> Option<Expected> {
        match verb {
            // Only its supervisor works on a job.
            "claim" | "start" | "heartbeat" | "succeed" | "fail" if task.job && task.is_open() => refused(NONE),
            "claim" => self.claim(name, held),
            "start" | "heartbeat" | "succeed" | "fail" => self.work(verb, name, held),
            "abort" => match task.phase {
                Aborted => Some(self.ended("DUPLICATE", name)),
                Succeeded | Archived if self.is_stopped && self.is_agent => {
                    Some(Expected { or: Some("STOPPED"), ..Expected::new("REFUSED", NONE) })
                }
                Succeeded | Archived => refused(NONE),
                _ if task.is_held() && !held && self.is_agent => refused(NONE),
                _ => Some(self.ended("RECORDED", name)),
            },
            _ => None,
        }
    }

    fn archive(&self, task: &Task) -> Option<Expected> {
        self.for_operators().or_else(|| match task.phase {
            Archived => Some(Expected::new("DUPLICATE", NONE)),
            Succeeded | Aborted if self.phase() == Archived => self.kept_out(),
            Succeeded | Aborted => Some(Expected::new("RECORDED", NONE)),
            _ => refused(NONE),
        })
    }

    /// An operator gives a task to an agent, or to another one.
    fn assign(&self, name: &str, task: &Task) -> Option<Expected> {
        let to = format!("agent:{}", self.words.plain.get(2)?);
        match task.phase {
            // A job that is retried has its holder already.
            Assigned if task.job && task.holder.as_ref() == Some(&to) => {
                let or_next = vec![self.action(&format!("hf-poll {name}"))];
                return Some(Expected { or: Some("DUPLICATE"), or_next, ..Expected::new("REFUSED", NONE) });
            }
            _ if task.job && task.is_open() => return refused(NONE),
            Succeeded | Aborted | Archived => return refused(NONE),
            Proposed => return self.not_ready(name),
            _ => {}
        }
        if self.is_stopped {
            return Some(self.stopped(&task.project));
        }
        if let Some(kept) = self.kept_out() {
            return Some(kept);
        }
        match task.phase {
            Ready if !self.view.is_unblocked(task) => self.not_ready(name),
            Ready if self.view.in_progress() >= self.view.settings.concurrent => refused(LIST),
            Ready => Some(Expected::new("RECORDED", NONE)),
            Assigned if task.holder.as_ref() == Some(&to) => Some(Expected::new("DUPLICATE", NONE)),
            // Giving it to somebody else is not possible yet.
            _ => refused(NONE),
        }
    }

    pub(super) fn proposal(&self) -> Option<Expected> {
        let requirement = self.words.option("requirement").map(|name| self.view.requirements.get(name));
        let after: Option<Vec<_>> = self.words.all("after").iter().map(|name| self.view.tasks.get(name)).collect();
        let reworked = self.words.option("rework-of").map(|name| (name, self.view.tasks.get(name)));
        if self.is_named && requirement.flatten().is_some_and(|requirement| requirement.project != self.shell) {
            return None;
        }
        if let Some(kept) = self.kept_out() {
            return Some(kept);
        }
        if matches!(requirement, Some(None)) || after.is_none() || matches!(reworked, Some((_, None))) {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        }
        let of_rework = reworked.and_then(|(_, task)| task?.requirement.as_ref());
        let requirement = requirement.flatten().or_else(|| self.view.requirements.get(of_rework?));
        let copied = reworked.and_then(|(_, task)| Some(task?.after.as_slice())).unwrap_or_default();
        let after = if self.words.all("after").is_empty() { copied } else { self.words.all("after") };
        let hopeless = after.iter().any(|name| self.view.is_hopeless(name));
        let again = reworked.is_some_and(|(name, task)| {
            let rework = self.view.rework_of(name);
            let is_live = |rework: &String| !self.view.tasks[rework].was_aborted();
            task.is_some_and(|task| task.is_open()) || rework.is_some_and(is_live)
        });
        if requirement.is_some_and(crate::model::Requirement::is_over) || hopeless || again {
            return refused(LIST);
        }
        let (name, made) = self.after.tasks.iter().next_back()?;
        let next = |world: &World, phase| match phase {
            Ready => self.claim_of(world, name),
            _ => format!("ACTION hf-task explain {name}"),
        };
        let or_next = vec![next(self.recorded, self.recorded.tasks[name].phase)];
        Some(Expected { or_next, ..Expected::new("RECORDED", next(self.after, made.phase)) })
    }

    /// A claim without a name.
    pub(super) fn claim_any(&self) -> Option<Expected> {
        if self.words.verb() != "claim" {
            return None;
        }
        if self.is_stopped {
            return Some(self.stopped(&self.project));
        }
        if let Some(kept) = self.kept_out() {
            return Some(kept);
        }
        let Some(name) = self.view.next_claim(Some(self.project.as_str())) else {
            let goes_on = |project: &str| self.view.project_phase(project) == Active;
            let mine = |task: &Task| {
                task.holder.as_ref() == Some(&self.actor) && task.is_held() && !task.job && goes_on(&task.project)
            };
            let held = self.view.tasks.iter().find(|(_, task)| mine(task));
            let next = match held {
                Some((name, task)) if task.phase == Assigned => self.action(&format!("hf-task start {name}")),
                Some((name, _)) => format!("ACTION hf-task show {name}"),
                None => NONE.to_owned(),
            };
            return Some(Expected::new("NO_TASK", next));
        };
        if self.view.in_progress() >= self.view.settings.concurrent {
            return refused(LIST);
        }
        Some(Expected::new("CLAIMED", self.action(&format!("hf-task start {name}"))))
    }

    pub(super) fn claim(&self, name: &str, held: bool) -> Option<Expected> {
        let task = &self.view.tasks[name];
        if self.is_stopped {
            return Some(self.stopped(&task.project));
        }
        let start = self.action(&format!("hf-task start {name}"));
        match task.phase {
            Ready if !self.view.is_unblocked(task) => self.not_ready(name),
            Ready if self.view.in_progress() >= self.view.settings.concurrent => refused(LIST),
            Ready => Some(Expected::new("CLAIMED", start)),
            Assigned if held => Some(Expected::new("DUPLICATE", start)),
            Proposed => self.not_ready(name),
            _ => refused(NONE),
        }
    }

    /// The refusal of a task that something blocks.
    fn not_ready(&self, name: &str) -> Option<Expected> {
        let task = &self.view.tasks[name];
        let unapproved = task.requirement.as_ref().is_some_and(|req| self.view.requirements[req].phase != Approved);
        let waits = task.after.iter().any(|other| !self.view.is_done(other));
        match unapproved || waits {
            true => refused(LIST),
            false => Some(Expected::new("APPROVAL_REQUIRED", ASK)),
        }
    }

    /// What the holder of a task may do.
    fn work(&self, verb: &str, name: &str, held: bool) -> Option<Expected> {
        let task = &self.view.tasks[name];
        match (task.phase, verb) {
            (Succeeded, "succeed") => Some(self.ended("DUPLICATE", name)),
            (Assigned | Running, _) if !held => refused(NONE),
            (Proposed, "start") => self.not_ready(name),
            (Assigned, "start") | (Running, "heartbeat") => Some(Expected::new("RECORDED", NONE)),
            (Running, "start") => Some(Expected::new("DUPLICATE", NONE)),
            (Assigned, "heartbeat") => Some(Expected::new("RECORDED", self.action(&format!("hf-task start {name}")))),
            (Running, "succeed" | "fail") => Some(self.ended("RECORDED", name)),
            _ => refused(NONE),
        }
    }

    /// The reply after a task ended, or went back to its holder.
    fn ended(&self, status: &'static str, name: &str) -> Expected {
        let or_next = vec![self.after_end(self.recorded, name)];
        Expected { or_next, ..Expected::new(status, self.after_end(self.after, name)) }
    }

    fn after_end(&self, world: &World, name: &str) -> String {
        let task = &world.tasks[name];
        let requirement = task.requirement.as_ref().map(|name| world.requirements[name].phase);
        if requirement == Some(Implemented) {
            return ASK.to_owned();
        }
        if task.phase == Assigned {
            return self.action(&format!("hf-task start {name}"));
        }
        match world.next_claim(Some(&task.project)).filter(|_| !task.job) {
            Some(next) => self.claim_of(world, &next),
            None => NONE.to_owned(),
        }
    }

    /// The next step of an agent that lost a task.
    pub(super) fn after_loss(&self, name: &str) -> String {
        if self.after.is_full() {
            return NONE.to_owned();
        }
        let task = &self.after.tasks[name];
        let goes_on = self.after.project_phase(&task.project) == Active;
        match task.phase == Ready && goes_on && self.after.is_unblocked(task) {
            true => self.action(&format!("hf-task claim {name}")),
            false => self.action("hf-task claim"),
        }
    }
}
