//! Applies the events of the log to the world, one after the other.

use std::collections::BTreeSet;

use super::Phase::*;
use super::{
    Act, Agent, Artifact, Constraint, Decision, DeepWork, Duty, Escalation, Phase, Project, Requirement, Run, Session,
    Task, World,
};
use crate::clock::second;
use crate::log::Event;

impl World {
    /// Applies the next event.
    pub fn take(&mut self, event: &Event) {
        self.last = (event.id.clone(), event.at);
        self.count += 1;
        let kind = event.kind.as_str();
        self.note_seen(event);
        match kind.chars().next() {
            Some('A') if kind == "ApprovalTimedOut" => self.take_decision(event),
            Some('A') if kind.starts_with("Artifact") => self.take_artifact(event),
            Some('A') => self.take_agent(event),
            Some('C') if kind.starts_with("Constraint") => self.take_constraint(event),
            Some('D') if kind.starts_with("DeepWork") => self.take_deep_work(event),
            Some('D') if kind.starts_with("Decision") => self.take_decision(event),
            _ if kind == "CheckpointRecorded" => self.take_agent(event),
            _ if kind.starts_with("Requirement") || kind == "OscillationDetected" => self.take_requirement(event),
            _ if kind.starts_with("Task") || kind.starts_with("Claim") => self.take_task(event),
            _ if kind.starts_with("Run") || kind == "Heartbeat" => self.take_run(event),
            _ if kind.starts_with("Session") => self.take_session(event),
            _ if kind.starts_with("Project") || kind == "PauseDrained" => self.take_project(event),
            _ if kind.starts_with("Escalation") => self.take_escalation(event),
            _ => self.take_system(event),
        }
    }

    /// Whoever does something about a task is seen. What a supervisor records about a job is no act of its agent.
    fn note_seen(&mut self, event: &Event) {
        let kind = event.kind.as_str();
        let about_work = ["Task", "Claim", "Run"].iter().any(|start| kind.starts_with(start));
        let is_act = about_work && !matches!(kind, "TaskProposed" | "TaskReady" | "TaskArchived" | "TaskRetrying");
        let of_run = self.runs.get(&self.name(&event.subject)).map(|run| run.task.clone());
        let task = of_run.or_else(|| self.named(event, "task_id", "task")).unwrap_or_else(|| self.name(&event.subject));
        let is_job = self.tasks.get(&task).is_some_and(|task| task.job);
        let agent = event.actor.strip_prefix("agent:").filter(|_| is_act && !is_job);
        if let Some(agent) = agent.and_then(|name| self.agents.get_mut(name)) {
            agent.seen = Some(event.at);
        }
    }

    fn take_system(&mut self, event: &Event) {
        match event.kind.as_str() {
            "VaultInitialized" => self.created = event.at,
            "EmergencyStopIssued" => self.stop = Some(act(event)),
            "SystemResumed" => (self.stop, self.resumed) = (None, Some(event.at)),
            _ => {}
        }
    }

    /// The short reference of an id in a payload.
    fn named(&self, event: &Event, member: &str, kind: &str) -> Option<String> {
        event.text(member).map(|id| self.name(&format!("{kind}:{id}")))
    }

    fn take_requirement(&mut self, event: &Event) {
        if event.kind == "RequirementProposed" {
            let name = self.call("REQ", &event.subject);
            let (title, project) = (event.text("title").expect("a title"), project_of(event));
            self.requirements.insert(name, Requirement { title, project, phase: Proposed, approved: None, returns: 0 });
            return;
        }
        let (name, count) = (self.name(&event.subject), self.count);
        let requirement = self.requirements.get_mut(&name).expect("a requirement");
        requirement.phase = match event.kind.as_str() {
            "RequirementAnalyzed" => Analyzed,
            "RequirementApproved" => Approved,
            "RequirementRejected" => Rejected,
            "RequirementImplemented" => Implemented,
            "RequirementVerified" => Verified,
            "RequirementSuperseded" => Superseded,
            "OscillationDetected" => Blocked,
            other => panic!("unknown event {other}"),
        };
        if requirement.phase == Approved {
            (requirement.approved, requirement.returns) = (Some(count), 0);
        }
    }

    fn take_artifact(&mut self, event: &Event) {
        let phase = match event.kind.as_str() {
            "ArtifactDeclared" => {
                let task = self.named(event, "task_id", "task");
                let name = self.call("ART", &event.subject);
                self.artifacts.insert(name, Artifact { task, reason: None, phase: Declared });
                return;
            }
            "ArtifactMaterialized" => Materialized,
            "ArtifactValidated" => Validated,
            "ArtifactInvalidated" => Invalidated,
            "ArtifactCorrupted" => Corrupted,
            other => panic!("unknown event {other}"),
        };
        let name = self.name(&event.subject);
        let artifact = self.artifacts.get_mut(&name).expect("an artifact");
        artifact.phase = phase;
        if phase == Invalidated {
            artifact.reason = event.text("reason");
        }
    }

    fn take_decision(&mut self, event: &Event) {
        if event.kind == "DecisionRequested" {
            let target = self.name(&event.text("target").expect("a target"));
            let decision = Decision {
                kind: event.text("kind").expect("a kind"),
                target,
                summary: event.text("summary").expect("a summary"),
                change: event.payload["change"]["do"].as_str().map(str::to_owned),
                asked: event.at,
                no: self.count,
                timed_out: None,
                phase: Requested,
            };
            let name = self.call("DEC", &event.subject);
            self.decisions.insert(name, decision);
            return;
        }
        let name = self.name(&event.subject);
        let decision = self.decisions.get_mut(&name).expect("a decision");
        if event.kind == "ApprovalTimedOut" {
            decision.timed_out = event.text("due_at").map(|at| second(&at));
        }
        decision.phase = match event.kind.as_str() {
            "ApprovalTimedOut" => Escalated,
            "DecisionApproved" => Approved,
            "DecisionRejected" => Rejected,
            "DecisionSuperseded" => Superseded,
            other => panic!("unknown event {other}"),
        };
        if decision.phase == Approved
            && decision.kind == "destructive_operation"
            && let Some(task) = self.tasks.get_mut(&decision.target)
        {
            task.approved = true;
        }
    }

    fn take_task(&mut self, event: &Event) {
        if event.kind == "TaskProposed" {
            return self.take_proposal(event);
        }
        let (name, put_first_by) = (self.name(&event.subject), self.named(event, "constraint_id", "constraint"));
        let count = self.count;
        let task = self.tasks.get_mut(&name).expect("a task");
        let before = task.phase;
        let is_taken = matches!(before, Assigned | Running) && task.holder.as_ref() != Some(&event.actor);
        let was_silent = event.kind == "ClaimExpired" || event.flag("released");
        let is_ended = matches!(event.kind.as_str(), "TaskFailed" | "TaskAborted");
        let is_lost = was_silent || is_ended && before != Failed && task.holder.as_ref() != Some(&event.actor);
        let agent = task.holder.as_deref().and_then(|holder| holder.strip_prefix("agent:"));
        if let Some(agent) = agent.filter(|_| is_lost && !task.job).and_then(|name| self.agents.get_mut(name)) {
            agent.has_lost |= was_silent;
            agent.lost.push(name.clone());
        }
        if event.kind != "ClaimRenewed" {
            (task.since, task.due) = (event.at, None);
        }
        match event.kind.as_str() {
            "TaskReady" => task.phase = Ready,
            "TaskAssigned" => {
                task.lost_by.remove(&event.text("holder").unwrap_or_default());
                // A retry goes back to its holder, and what put the task first when it was claimed remains true.
                if put_first_by.is_some() || task.holder != event.text("holder") {
                    task.put_first_by = put_first_by;
                }
                (task.phase, task.holder, task.renewed) = (Assigned, event.text("holder"), event.at);
                task.assigned = count;
                task.lease = event.number("lease_seconds");
            }
            "ClaimRenewed" => task.renewed = event.at,
            "ClaimExpired" => task.lose(Ready),
            "TaskSucceeded" => {
                task.phase = Succeeded;
                task.end = Some(Act { at: event.at, by: String::new(), reason: None });
            }
            "TaskFailed" => {
                let member = |name: &str| event.text(name).unwrap_or_default();
                (task.phase, task.failure) = (Failed, Some((member("error_class"), member("reason"))));
                task.failed_for_good = true;
                // Its result was rejected while the holder was still at work.
                if event.actor == "core:reactor" && !event.flag("released") {
                    task.lose(Failed);
                }
                if event.flag("released") {
                    task.lose(Failed);
                }
            }
            "TaskRetrying" => {
                (task.phase, task.retries, task.failed_for_good) = (Retrying, task.retries + 1, false);
            }
            "TaskAborted" => {
                if is_taken {
                    task.lose(Aborted);
                }
                (task.phase, task.end) = (Aborted, Some(act(event)));
                let by_stop = self.stop.as_ref().and_then(|stop| stop.reason.clone());
                let by_stop = by_stop.map(|reason| format!("emergency_stop: {reason}"));
                task.by_stop = by_stop.is_some() && event.text("reason") == by_stop;
                let of_person = |of: &str| of.starts_with("DEC-") || of.starts_with("REQ-");
                let is_no = |why: &str| why.split_once(" was rejected").is_some_and(|(of, _)| of_person(of));
                let rejected = event.actor == "core:reactor" && event.text("reason").as_deref().is_some_and(is_no);
                task.by_person = task.by_stop || event.actor.starts_with("user:") || rejected;
            }
            "TaskArchived" => task.phase = Archived,
            other => panic!("unknown event {other}"),
        }
        if matches!(event.kind.as_str(), "TaskSucceeded" | "TaskAborted") {
            task.ended = count;
        }
        if !matches!(task.phase, Assigned | Running | Failed | Retrying) {
            (task.holder, task.lease) = (None, None);
        }
    }

    fn take_proposal(&mut self, event: &Event) {
        let after = event.payload["after"].as_array().into_iter().flatten();
        let after = after.filter_map(|id| Some(self.name(&format!("task:{}", id.as_str()?)))).collect();
        let requirement = self.named(event, "requirement_id", "requirement");
        let of_requirement = requirement.as_ref().map(|name| self.requirements[name].project.clone());
        let task = Task {
            title: event.text("title").expect("a title"),
            project: event.text("project_id").or(of_requirement).unwrap_or_else(|| "main".to_owned()),
            proposed_by: event.actor.clone(),
            proposed_at: event.at,
            requirement: requirement.clone(),
            after,
            destructive: event.flag("destructive"),
            approved: false,
            job: event.flag("job"),
            command: texts(event, "command"),
            max_retries: event.number("max_retries"),
            rework_of: self.named(event, "rework_of", "task"),
            rework_reason: event.text("reason"),
            phase: Proposed,
            since: event.at,
            assigned: 0,
            holder: None,
            lost_by: BTreeSet::new(),
            lease: None,
            renewed: event.at,
            put_first_by: None,
            run: None,
            failure: None,
            failed_for_good: false,
            retries: 0,
            end: None,
            ended: 0,
            by_stop: false,
            by_person: false,
            due: None,
        };
        let name = self.call("T", &event.subject);
        self.tasks.insert(name, task);
        // New work under an implemented requirement takes it back, and so does a rework after a verification.
        if let Some(requirement) = requirement.and_then(|name| self.requirements.get_mut(&name)) {
            let reopens = requirement.phase == Implemented;
            requirement.returns += usize::from(reopens || event.actor == "core:reactor");
            if reopens {
                requirement.phase = Approved;
            }
        }
    }

    fn take_run(&mut self, event: &Event) {
        if event.kind == "RunStarted" {
            let task = self.named(event, "task_id", "task").expect("a task");
            let name = self.call("RUN", &event.subject);
            let held = self.tasks.get_mut(&task).expect("a task");
            (held.phase, held.since, held.run) = (Running, event.at, Some(name.clone()));
            let limit = event.number("timeout_seconds");
            self.note_progress(&task, event);
            let (began, no) = (event.at, self.count);
            self.runs.insert(name, Run { task, began, no, heard: began, limit, phase: Running });
            return;
        }
        let name = self.name(&event.subject);
        let run = self.runs.get_mut(&name).expect("a run");
        if event.kind != "Heartbeat" {
            run.phase = Ended;
            return;
        }
        run.heard = event.at;
        let task = run.task.clone();
        self.note_progress(&task, event);
    }

    /// Whoever sends the heartbeat of a run makes progress.
    fn note_progress(&mut self, task: &str, event: &Event) {
        let agent = event.actor.strip_prefix("agent:").filter(|_| !self.tasks[task].job);
        if let Some(agent) = agent.and_then(|name| self.agents.get_mut(name)) {
            agent.progress = Some(event.at);
        }
    }

    fn take_session(&mut self, event: &Event) {
        if event.kind == "SessionStarted" {
            let name = self.call("S", &event.subject);
            let until = event.at + event.number("ttl_seconds").expect("a limit");
            let agent = event.text("agent_id").expect("an agent");
            let (no, project) = (self.count, project_of(event));
            self.sessions.insert(name, Session { no, agent, project, until, phase: Active, left: false });
            return;
        }
        let name = self.name(&event.subject);
        let session = self.sessions.get_mut(&name).expect("a session");
        match event.kind.as_str() {
            "SessionRenewed" => session.until = event.at + event.number("ttl_seconds").expect("a limit"),
            "SessionCut" => session.until = session.until.min(event.at + event.number("seconds").expect("a limit")),
            "SessionEnded" => {
                (session.phase, session.left) = (Ended, event.text("reason").as_deref() == Some("logout"));
            }
            "SessionExpired" => session.phase = Expired,
            other => panic!("unknown event {other}"),
        }
    }

    fn take_project(&mut self, event: &Event) {
        let name = event.subject.trim_start_matches("project:").to_owned();
        if event.kind == "ProjectOpened" {
            self.opened.push(name.clone());
            self.projects.insert(name, Project { phase: Active, act: None, resumed: None, drained: false });
            return;
        }
        let project = self.projects.get_mut(&name).expect("a project");
        match event.kind.as_str() {
            "ProjectPaused" => (project.phase, project.act, project.drained) = (Paused, Some(act(event)), false),
            "ProjectResumed" => (project.phase, project.resumed) = (Active, Some(event.at)),
            "ProjectArchived" => (project.phase, project.act) = (Archived, Some(act(event))),
            "PauseDrained" => project.drained = true,
            other => panic!("unknown event {other}"),
        }
    }

    fn take_constraint(&mut self, event: &Event) {
        if event.kind == "ConstraintApplied" {
            let (text, priority) = (event.text("text").unwrap_or_default(), event.text("priority"));
            let priority = priority.map(|subject| self.name(&subject));
            let name = self.call("CON", &event.subject);
            self.constraints.insert(name, Constraint { text, priority, phase: Active });
            return;
        }
        let name = self.name(&event.subject);
        self.constraints.get_mut(&name).expect("a constraint").phase = Removed;
    }

    fn take_escalation(&mut self, event: &Event) {
        if event.kind == "EscalationRequired" {
            // An escalation has no event of its own: its id is that of the event that raised it.
            let name = self.call("ESC", &format!("escalation:{}", event.id));
            let (about, reason, code) = (self.name(&event.subject), event.text("reason"), event.text("code"));
            self.escalations.insert(name, Escalation { about, reason, code, raised: event.at, phase: Open });
            return;
        }
        let name = self.name(&event.subject);
        let escalation = self.escalations.get_mut(&name).expect("an escalation");
        escalation.phase = if event.kind == "EscalationAcknowledged" { Acknowledged } else { Closed };
    }

    fn take_agent(&mut self, event: &Event) {
        let Some(name) = event.subject.strip_prefix("agent:").map(str::to_owned) else { return };
        let at = event.at;
        if event.kind == "AgentStarted" {
            let fresh = Agent {
                phase: Active,
                started: at,
                announced: event.flag("announced"),
                was_stopped: false,
                has_lost: false,
                checkpoint: None,
                activity: None,
                introspection: None,
                progress: None,
                waited: None,
                seen: None,
                lost: Vec::new(),
                is_diving: false,
                duty: Duty::None,
                anomalies: Vec::new(),
            };
            if self.agents.insert(name.clone(), fresh).is_none() {
                self.crew.push(name);
            }
            return;
        }
        let agent = self.agents.get_mut(&name).expect("an agent");
        match event.kind.as_str() {
            "AgentStopped" => (agent.phase, agent.was_stopped) = (Stopped, true),
            "AgentWaited" => agent.waited = Some(at),
            "CheckpointRecorded" => (agent.checkpoint, agent.lost) = (Some(at), Vec::new()),
            "ActivityLogged" => {
                (agent.activity, agent.lost) = (Some(at), Vec::new());
                let introspection = event.text("kind").as_deref() == Some("introspection");
                let closes = std::mem::take(&mut agent.is_diving);
                agent.duty = match agent.duty {
                    _ if introspection => Duty::None,
                    // Whatever was declared since, the log after the closing one had to be an introspection.
                    Duty::Due if event.text("emergency").is_none() => Duty::Broken(at),
                    Duty::None if closes => Duty::Due,
                    duty => duty,
                };
                if introspection {
                    agent.introspection = Some(at);
                }
            }
            "AnomalyDetected" => agent.anomalies.extend(event.text("code")),
            "AnomalyCleared" => agent.anomalies.retain(|code| Some(code) != event.text("code").as_ref()),
            _ => {}
        }
    }

    fn take_deep_work(&mut self, event: &Event) {
        let minutes = event.number("minutes").unwrap_or_default();
        if event.kind == "DeepWorkStarted" {
            let (name, agent) = (self.call("DW", &event.subject), event.text("agent_id").expect("an agent"));
            self.agents.get_mut(&agent).expect("an agent").is_diving = true;
            let work = DeepWork {
                agent,
                strict: event.text("mode").as_deref() == Some("strict"),
                began: event.at,
                until: event.at + 60 * minutes,
                extended: 0,
                superseded: false,
                phase: Open,
            };
            self.deep_works.insert(name, work);
            return;
        }
        let name = self.name(&event.subject);
        let work = self.deep_works.get_mut(&name).expect("deep work");
        match event.kind.as_str() {
            "DeepWorkExtended" => (work.until, work.extended) = (work.until + 60 * minutes, work.extended + 1),
            // Completing it late changes nothing: it ended at its declared time.
            "DeepWorkCompleted" => {
                work.superseded = event.text("by").as_deref() == Some("declaration");
                (work.phase, work.until) = (Ended, if work.strict { work.until.min(event.at) } else { event.at })
            }
            _ => work.phase = Expired,
        }
    }
}

impl Task {
    /// Its holder loses it.
    fn lose(&mut self, phase: Phase) {
        self.lost_by.extend(self.holder.clone().filter(|_| !self.job));
        self.phase = phase;
    }
}

fn act(event: &Event) -> Act {
    Act { at: event.at, by: event.actor.clone(), reason: event.text("reason") }
}

/// A list of texts in a payload.
fn texts(event: &Event, member: &str) -> Vec<String> {
    let all = event.payload[member].as_array().into_iter().flatten();
    all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

fn project_of(event: &Event) -> String {
    event.text("project_id").unwrap_or_else(|| "main".to_owned())
}
