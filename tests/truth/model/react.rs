//! What must follow from an event, in the same batch: the consequences that the design gives to the core.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::Phase::{
    Acknowledged, Active, Analyzed, Approved, Assigned, Blocked, Open, Paused, Proposed, Retrying, Running,
};
use super::{Phase, World};
use crate::log::Event;
use crate::say::{TITLE_MAX, cut};

/// The actor of consequences.
const REACTOR: &str = "core:reactor";

impl World {
    /// Applies an event and everything that follows from it. Returns what follows.
    pub fn unfold(&mut self, event: &Event) -> Vec<Event> {
        let (mut queue, mut said) = (VecDeque::from([event.clone()]), Vec::new());
        let mut touched = BTreeSet::new();
        loop {
            while let Some(event) = queue.pop_front() {
                if event.actor == REACTOR && !self.is_due_now(&event) {
                    continue;
                }
                self.take(&event);
                queue.extend(self.direct(&event));
                touched.extend(self.touched(&event));
                if event.actor == REACTOR {
                    said.push(event);
                }
            }
            queue.extend(std::mem::take(&mut touched).iter().filter_map(|name| self.close(name, event.at)));
            if queue.is_empty() {
                return said;
            }
        }
    }

    /// Whether a consequence still applies: another one may have come first.
    fn is_due_now(&self, event: &Event) -> bool {
        let name = self.name(&event.subject);
        match event.kind.as_str() {
            "TaskAborted" | "TaskReady" => self.tasks[&name].is_open(),
            "RunCrashed" | "RunFinished" => self.runs[&name].phase == Running,
            "DecisionSuperseded" => self.decisions[&name].is_open(),
            "EscalationClosed" => matches!(self.escalations[&name].phase, Open | Acknowledged),
            "SessionEnded" => self.sessions[&name].phase == Active,
            "PauseDrained" => self.projects.values().any(|project| !project.drained),
            _ => true,
        }
    }

    fn because(&self, at: i64, kind: &str, name: &str, payload: Value) -> Event {
        let subject = self.subjects.get(name).cloned().unwrap_or_else(|| name.to_owned());
        // What is only due has no id yet; new entities need different ones.
        let id = format!("due-{}", self.count);
        Event { id, at, kind: kind.to_owned(), subject, actor: REACTOR.to_owned(), payload, batch: (1, 1) }
    }

    /// The immediate consequences of an event that was just applied.
    fn direct(&self, event: &Event) -> Vec<Event> {
        let (name, at) = (self.name(&event.subject), event.at);
        match event.kind.as_str() {
            "RequirementAnalyzed" => self.on_analysis(&name, at),
            "RequirementApproved" => self.ready(at, |task| task.requirement.as_deref() == Some(&name)),
            "RequirementImplemented" => self.closed(at, |about| about == name),
            "RequirementRejected" | "RequirementSuperseded" | "RequirementVerified" => self.on_end(&name, event),
            "DecisionApproved" => self.on_approval(&name, event),
            "DecisionRejected" => self.on_rejection(&name, event),
            "ApprovalTimedOut" if self.settings.reject_late => {
                vec![self.because(at, "DecisionRejected", &name, json!({"rationale": "no answer in time"}))]
            }
            "TaskProposed" => self.on_proposal(&name, event),
            "ArtifactInvalidated" => self.on_invalidation(&name, event),
            "OscillationDetected" => {
                let summary = format!(
                    "Reworked too often. Continue with {name}, {}?",
                    cut(&self.requirements[&name].title, TITLE_MAX)
                );
                let mut all = self.superseded(&name, at);
                all.push(self.question(at, "requirement_approval", &name, &summary));
                all
            }
            "TaskAssigned" => self.on_assignment(&name, at),
            "TaskSucceeded" => self.on_success(&name, at),
            "TaskFailed" => self.on_failure(&name, event),
            "TaskAborted" => self.on_abort(&name, event),
            "RunFinished" => self.drained(&self.tasks[&self.runs[&name].task].project, at).into_iter().collect(),
            "RunCrashed" if event.actor == REACTOR => {
                self.drained(&self.tasks[&self.runs[&name].task].project, at).into_iter().collect()
            }
            "RunTimedOut" => {
                let payload = json!({"error_class": "transient", "reason": "timeout", "released": true});
                vec![self.because(at, "TaskFailed", &self.runs[&name].task, payload)]
            }
            "RunCrashed" if event.actor != REACTOR => {
                // Only jobs crash by themselves: by a signal, or with their supervisor.
                let payload = json!({"error_class": "transient", "reason": event.text("reason")});
                let task = &self.runs[&name].task;
                let drained = self.drained(&self.tasks[task].project, at);
                std::iter::once(self.because(at, "TaskFailed", task, payload)).chain(drained).collect()
            }
            "EmergencyStopIssued" => self.on_stop(event),
            "ProjectPaused" => self.on_pause(&name, event),
            "ProjectArchived" => self.on_archive(&name, event),
            "SessionEnded" | "SessionExpired" => self.drained(&self.sessions[&name].project, at).into_iter().collect(),
            "AgentStopped" => self.closed(at, |about| about == event.subject),
            "AnomalyCleared" => {
                let of_code = |esc: &super::Escalation| esc.about == event.subject && esc.code == event.text("code");
                self.closed_where(at, of_code)
            }
            _ => Vec::new(),
        }
    }

    fn on_analysis(&self, name: &str, at: i64) -> Vec<Event> {
        let mut all = self.superseded(name, at);
        let summary = format!("Build {name}, {}?", cut(&self.requirements[name].title, TITLE_MAX));
        all.push(self.question(at, "requirement_approval", name, &summary));
        all
    }

    fn question(&self, at: i64, kind: &str, name: &str, summary: &str) -> Event {
        let payload = json!({"kind": kind, "target": self.subjects[name], "summary": summary});
        self.because(at, "DecisionRequested", &format!("decision:due-{}", self.count), payload)
    }

    /// Every open question about something is closed.
    fn superseded(&self, target: &str, at: i64) -> Vec<Event> {
        self.open_decisions(target).map(|(name, _)| self.because(at, "DecisionSuperseded", name, json!({}))).collect()
    }

    /// The proposed tasks that are ready now.
    fn ready(&self, at: i64, wanted: impl Fn(&super::Task) -> bool) -> Vec<Event> {
        let fits = |task: &super::Task| task.phase == Proposed && wanted(task) && self.is_unblocked(task);
        let ready = self.tasks.iter().filter(|(_, task)| fits(task));
        ready.map(|(name, _)| self.because(at, "TaskReady", name, json!({}))).collect()
    }

    fn closed(&self, at: i64, about: impl Fn(&str) -> bool) -> Vec<Event> {
        self.closed_where(at, |escalation| about(&escalation.about))
    }

    fn closed_where(&self, at: i64, wanted: impl Fn(&super::Escalation) -> bool) -> Vec<Event> {
        let open = |phase: Phase| matches!(phase, Open | Acknowledged);
        let closed = self.escalations.iter().filter(|(_, esc)| open(esc.phase) && wanted(esc));
        closed.map(|(name, _)| self.because(at, "EscalationClosed", name, json!({}))).collect()
    }

    /// A requirement that is over takes its open tasks and questions with it.
    fn on_end(&self, name: &str, event: &Event) -> Vec<Event> {
        let with = |text: &str, more: Option<String>, between: &str| match more {
            Some(more) => format!("{text}{between}{more}"),
            None => text.to_owned(),
        };
        let by = event.text("by").map(|id| self.name(&format!("requirement:{id}")));
        let reason = match event.kind.as_str() {
            "RequirementRejected" => with(&format!("{name} was rejected"), event.text("reason"), ": "),
            "RequirementSuperseded" => with(&format!("{name} was superseded"), by, " by "),
            _ => format!("{name} was verified"),
        };
        let mut all = self.superseded(name, event.at);
        let open = self.tasks_of(name).filter(|(_, task)| task.is_open());
        all.extend(open.map(|(task, _)| self.because(event.at, "TaskAborted", task, json!({"reason": reason}))));
        let ours = |about: &str| {
            about == name || self.tasks.get(about).is_some_and(|t| t.requirement.as_deref() == Some(name))
        };
        all.extend(self.closed(event.at, ours));
        all
    }

    fn on_approval(&self, name: &str, event: &Event) -> Vec<Event> {
        let (decision, at) = (&self.decisions[name], event.at);
        let mut all = self.superseded(&decision.target, at);
        all.extend(self.closed(at, |about| about == name));
        match decision.kind.as_str() {
            "requirement_approval" if self.may_approve(&decision.target) => {
                all.push(self.because(at, "RequirementApproved", &decision.target, json!({})));
            }
            "destructive_operation" => all
                .extend(self.ready(at, |task| self.tasks.get(&decision.target).is_some_and(|t| std::ptr::eq(t, task)))),
            "constraint_change" => {
                let kind = match decision.change.as_deref() {
                    Some("remove") => "ConstraintRemoved",
                    _ => "ConstraintApplied",
                };
                all.push(self.because(at, kind, &decision.target, json!({})));
            }
            _ => {}
        }
        all
    }

    fn may_approve(&self, target: &str) -> bool {
        self.requirements.get(target).is_some_and(|requirement| matches!(requirement.phase, Analyzed | Blocked))
    }

    fn on_rejection(&self, name: &str, event: &Event) -> Vec<Event> {
        let (decision, at) = (&self.decisions[name], event.at);
        let mut all = self.superseded(&decision.target, at);
        all.extend(self.closed(at, |about| about == name));
        let said = event.text("rationale").unwrap_or_default();
        match decision.kind.as_str() {
            "requirement_approval" if self.may_approve(&decision.target) => {
                all.push(self.because(at, "RequirementRejected", &decision.target, json!({"reason": said})));
            }
            "destructive_operation" if self.tasks[&decision.target].is_open() => {
                let by = if event.actor == REACTOR { String::new() } else { format!(" by {}", event.actor) };
                let reason = format!("{name} was rejected{by}: {said}");
                all.push(self.because(at, "TaskAborted", &decision.target, json!({"reason": reason})));
            }
            _ => {}
        }
        all
    }

    fn on_proposal(&self, name: &str, event: &Event) -> Vec<Event> {
        let (task, at) = (&self.tasks[name], event.at);
        let mut all = Vec::new();
        let requirement = task.requirement.as_ref().map(|name| (name, &self.requirements[name]));
        // New work resolves that there was none.
        all.extend(requirement.iter().flat_map(|(of, _)| self.closed(at, |about| about == of.as_str())));
        let too_often = requirement.filter(|(_, of)| of.phase == Approved && of.returns > self.settings.oscillations);
        if let Some((of, _)) = too_often {
            all.push(self.because(at, "OscillationDetected", of, json!({})));
        }
        if task.destructive {
            let summary = format!("Allow destructive task {name}, {}?", cut(&task.title, TITLE_MAX));
            all.push(self.question(at, "destructive_operation", name, &summary));
        }
        if too_often.is_none() {
            all.extend(self.ready(at, |other| std::ptr::eq(other, task)));
        }
        all
    }

    /// What a verification found wrong has to be done again.
    fn on_invalidation(&self, name: &str, event: &Event) -> Vec<Event> {
        let Some(name) = &self.artifacts[name].task else { return Vec::new() };
        let (task, at) = (&self.tasks[name], event.at);
        let is_live = |rework: &String| !self.tasks[rework].was_aborted();
        // What is not begun is still to be done.
        let is_built = task.phase == Running || task.succeeded();
        let is_over = task.requirement.as_ref().is_some_and(|name| self.requirements[name].is_over());
        if !is_built || is_over || self.rework_of(name).is_some_and(is_live) {
            return Vec::new();
        }
        let id = |name: &String| Value::from(self.subjects[name].split_once(':').expect("a subject").1);
        let mut rework = json!({"title": task.title, "rework_of": id(name), "project_id": task.project});
        let members = [
            ("requirement_id", task.requirement.as_ref().map(id)),
            ("destructive", task.destructive.then_some(Value::from(true))),
            ("max_retries", task.max_retries.map(Value::from)),
            ("after", Some(task.after.iter().map(id).collect())),
        ];
        for (member, value) in members {
            if let Some(value) = value {
                rework[member] = value;
            }
        }
        let reason = match event.text("reason") {
            Some(reason) => format!("rework: {reason}"),
            None => "rework".to_owned(),
        };
        let failed = json!({"error_class": "permanent", "reason": reason, "rework": true});
        let failed = task.is_open().then(|| self.because(at, "TaskFailed", name, failed));
        let again = self.because(at, "TaskProposed", &format!("task:due-{}", self.count), rework);
        failed.into_iter().chain([again]).collect()
    }

    /// A run ends when its task is given to somebody else.
    fn on_assignment(&self, name: &str, at: i64) -> Vec<Event> {
        let running = self.tasks[name].run.as_ref().filter(|run| self.runs[*run].phase == Running);
        running.map(|run| self.because(at, "RunCrashed", run, json!({"reason": "reassigned"}))).into_iter().collect()
    }

    fn on_success(&self, name: &str, at: i64) -> Vec<Event> {
        let chain = self.chain(name);
        let mut all = self.ready(at, |task| task.after.iter().any(|other| chain.contains(other)));
        all.extend(self.closed(at, |about| chain.iter().any(|task| task == about)));
        all
    }

    fn on_failure(&self, name: &str, event: &Event) -> Vec<Event> {
        let (task, at) = (&self.tasks[name], event.at);
        let reason = event.text("reason").unwrap_or_default();
        let running = task.run.as_ref().filter(|run| self.runs[*run].phase == Running);
        let mut all: Vec<Event> =
            running.map(|run| self.because(at, "RunFinished", run, json!({"success": false}))).into_iter().collect();
        let default = if task.job { 0 } else { self.settings.retries };
        let (retried, limit) = (task.retries as i64, task.max_retries.unwrap_or(default));
        let transient = event.text("error_class").as_deref() == Some("transient");
        // Nothing is tried again in a project that is over.
        if transient && retried < limit && !self.is_archived(&task.project) {
            all.push(self.because(at, "TaskRetrying", name, json!({})));
            all.push(match event.flag("released") {
                true => self.because(at, "TaskReady", name, json!({})),
                false => {
                    let payload = json!({"holder": task.holder, "lease_seconds": task.lease});
                    self.because(at, "TaskAssigned", name, payload)
                }
            });
            return all;
        }
        let reason = match (transient, retried) {
            (true, 1) => format!("{reason}; gave up after 1 retry"),
            (true, n) if n > 1 => format!("{reason}; gave up after {n} retries"),
            _ => reason,
        };
        all.push(self.because(at, "TaskAborted", name, json!({"reason": reason})));
        if !task.job && !event.flag("rework") {
            all.push(self.because(at, "EscalationRequired", name, json!({"reason": reason})));
        }
        all
    }

    fn on_abort(&self, name: &str, event: &Event) -> Vec<Event> {
        let (task, at) = (&self.tasks[name], event.at);
        let running = task.run.as_ref().filter(|run| self.runs[*run].phase == Running);
        let reason = event.text("reason").unwrap_or_else(|| "aborted".to_owned());
        let crashed = running.map(|run| self.because(at, "RunCrashed", run, json!({"reason": reason})));
        let mut all: Vec<Event> = crashed.into_iter().collect();
        all.extend(self.superseded(name, at));
        let is_done_again = self.rework_of(name).is_some_and(|rework| !self.tasks[rework].was_aborted());
        if !task.by_stop && !is_done_again {
            // What succeeded is done, whatever became of its repetition.
            let mut chain = self.chain(name);
            chain.retain(|earlier| !self.is_done(earlier));
            for (behind, task) in self.tasks.iter().filter(|(_, task)| task.phase == Proposed) {
                // What it depends on is named: the aborted task itself, else the newest that it repeats.
                let hit = task.after.iter().filter(|other| chain.contains(other)).max();
                let Some(hit) = hit else { continue };
                let what = match hit == name {
                    true => name.to_owned(),
                    false => format!("{name}, the rework of {hit}"),
                };
                let reason = match event.text("reason") {
                    Some(reason) => format!("{what}, which it depends on, was aborted: {reason}"),
                    None => format!("{what}, which it depends on, was aborted"),
                };
                all.push(self.because(at, "TaskAborted", behind, json!({"reason": reason})));
            }
        }
        all
    }

    fn on_stop(&self, event: &Event) -> Vec<Event> {
        let reason = format!("emergency_stop: {}", event.text("reason").unwrap_or_default());
        let hit = self.tasks.iter().filter(|(_, task)| matches!(task.phase, Assigned | Running | Retrying));
        hit.map(|(name, _)| self.because(event.at, "TaskAborted", name, json!({"reason": reason}))).collect()
    }

    fn on_pause(&self, name: &str, event: &Event) -> Vec<Event> {
        let (project, at) = (name.trim_start_matches("project:"), event.at);
        let seconds = event.number("grace_seconds").expect("a grace");
        let longer = |session: &super::Session| session.until > at + seconds;
        let open = self.sessions.iter().filter(|(_, s)| s.project == project && s.phase == Active && longer(s));
        let mut all: Vec<Event> =
            open.map(|(name, _)| self.because(at, "SessionCut", name, json!({"seconds": seconds}))).collect();
        all.extend(self.drained(project, at));
        all
    }

    fn on_archive(&self, name: &str, event: &Event) -> Vec<Event> {
        let (project, at) = (name.trim_start_matches("project:"), event.at);
        let reason = match event.text("reason") {
            Some(why) => format!("archived: {why}"),
            None => "archived".to_owned(),
        };
        let open = self.sessions.iter().filter(|(_, session)| session.project == project && session.phase == Active);
        let mut all: Vec<Event> =
            open.map(|(name, _)| self.because(at, "SessionEnded", name, json!({"reason": "archived"}))).collect();
        let here = |name: &&String| self.requirements[*name].project == project;
        all.extend(self.requirements.keys().filter(here).flat_map(|name| self.superseded(name, at)));
        // A running job runs to its end; one that waits will not be started any more.
        let in_progress = |task: &super::Task| match task.job {
            true => matches!(task.phase, Proposed | Phase::Ready | Assigned | Retrying),
            false => matches!(task.phase, Assigned | Running | Retrying),
        };
        let busy = |task: &super::Task| task.project == project && in_progress(task);
        let busy = self.tasks.iter().filter(|(_, task)| busy(task));
        all.extend(busy.map(|(name, _)| self.because(at, "TaskAborted", name, json!({"reason": reason}))));
        let ours = |about: &str| self.project_of(about).is_some_and(|of| of == project);
        all.extend(self.closed(at, ours));
        all
    }

    /// A paused project has no session and no job any more.
    fn drained(&self, project: &str, at: i64) -> Option<Event> {
        self.projects.get(project).filter(|project| project.phase == Paused && !project.drained)?;
        let busy = self.sessions.values().any(|session| session.project == project && session.phase == Active)
            || self.runs.values().any(|run| {
                let task = &self.tasks[&run.task];
                task.project == project && task.job && run.phase == Running
            });
        (!busy).then(|| self.because(at, "PauseDrained", &format!("project:{project}"), json!({})))
    }

    /// The requirement whose work may be complete after an event.
    fn touched(&self, event: &Event) -> Option<String> {
        if !matches!(event.kind.as_str(), "TaskSucceeded" | "TaskAborted") {
            return None;
        }
        let task = &self.tasks[&self.name(&event.subject)];
        task.requirement.clone().filter(|_| !task.by_stop)
    }

    /// A requirement without an open task is implemented, or an operator is told what is missing.
    fn close(&self, name: &str, at: i64) -> Option<Event> {
        if self.requirements[name].phase != Approved || self.tasks_of(name).any(|(_, task)| task.is_open()) {
            return None;
        }
        let unmet = self.unmet(name);
        if unmet.is_empty() && self.tasks_of(name).any(|(_, task)| task.succeeded()) {
            return Some(self.because(at, "RequirementImplemented", name, json!({})));
        }
        // Nobody can act on it in a project that is over.
        if self.is_archived(&self.requirements[name].project) {
            return None;
        }
        let known = self.escalations.values().any(|esc| esc.about == name && esc.phase == Open);
        let (last, task) = self.tasks_of(name).max_by_key(|(_, task)| task.ended)?;
        let count = match unmet.len() {
            1 => "1 task was aborted".to_owned(),
            n => format!("{n} tasks were aborted"),
        };
        let reason = task.end.as_ref().and_then(|end| end.reason.clone());
        let bracket = match (task.succeeded(), reason) {
            (true, _) => String::new(),
            (false, Some(reason)) => format!(" ({last}: {reason})"),
            (false, None) => format!(" ({last})"),
        };
        let reason = format!("not implemented: no task is open, and {count}{bracket}");
        (!known).then(|| self.because(at, "EscalationRequired", name, json!({"reason": reason})))
    }
}
