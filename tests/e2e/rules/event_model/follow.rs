//! What the model says must follow from a recorded event by itself.

use serde_json::{Map, Value, json};

use super::judge::ENDED;
use super::legal_steps::Rules;
use super::{Follows, Model, RETRIES, RETURNS, Step, entity_of, id_of, object};

impl Model {
    /// The branches of an agent that is given a task, and what it leaves for it.
    pub(super) fn begin_task_branch(&self, task: &str, cause: &Step, follows: &mut Follows) {
        let holder = cause.payload.get("holder").and_then(Value::as_str);
        let Some(persona) = holder.and_then(|holder| holder.strip_prefix("agent:")) else { return };
        let of_task = self.with("branch", "task_id", id_of(task));
        if of_task.iter().any(|branch| self.text(branch, "persona_id") == Some(persona)) {
            return;
        }
        let root = format!("branch:{persona}");
        if self.state(&root) == "-" {
            let payload = json!({"persona_id": persona, "branch_type": "user", "label": "the user"});
            follows.push(("BranchCreated", Some(root), payload));
        }
        let label = self.text(task, "title").unwrap();
        let payload = json!({"persona_id": persona, "branch_type": "task", "label": label, "task_id": id_of(task)});
        follows.push(("BranchCreated", None, payload));
    }

    /// What a new branch begins with.
    pub(super) fn begin_branch(&self, branch: &str, follows: &mut Follows) {
        let persona = self.text(branch, "persona_id").unwrap();
        let (root, kind) = (format!("branch:{persona}"), self.text(branch, "branch_type").unwrap());
        if kind != "social" {
            if let Some(other) = self.other(&root, "active_branch_id", "branch") {
                let thread = self.other(&other, "current_thread_id", "thread").unwrap();
                let reason = format!("{} began", self.reference(branch).unwrap());
                let payload = json!({"branch_id": id_of(&other), "reason": reason});
                follows.push(("ThreadAborted", Some(thread), payload));
            }
            follows.push(("ThreadOpened", None, json!({"branch_id": id_of(branch)})));
        }
        if kind == "user" {
            let known = self.made["branch"].iter().filter(|other| self.text(other, "branch_type") == Some("user"));
            for other in known.map(|other| id_of(other)).filter(|other| *other != persona) {
                for (one, another) in [(persona, other), (other, persona)] {
                    let payload = json!({"persona_id": one, "branch_type": "social",
                        "label": format!("with {another}"), "partner_persona_id": another});
                    follows.push(("BranchCreated", None, payload));
                }
            }
        }
    }

    /// The branches of a task that is over.
    pub(super) fn end_task_branches(&self, task: &str, follows: &mut Follows) {
        for branch in self.with("branch", "task_id", id_of(task)) {
            let (id, how) = (id_of(&branch), format!("{} is {}", self.reference(task).unwrap(), self.state(task)));
            if let Some(thread) = self.other(&branch, "current_thread_id", "thread") {
                follows.push(match self.state(task) {
                    "Aborted" => ("ThreadAborted", Some(thread), json!({"branch_id": id, "reason": how})),
                    _ => ("ThreadCompleted", Some(thread), json!({"branch_id": id, "summary": how})),
                });
            }
            if self.state(&branch) != "Completed" {
                follows.push(("BranchCompleted", Some(branch), json!({})));
            }
        }
    }

    /// What follows from an event by itself in the current state.
    pub(super) fn follow(&self, rules: &Rules, cause: &Step) -> Follows {
        let subject = cause.subject.as_str();
        let legal = |kind, subject: &str| rules.contains_key(&(entity_of(subject), self.state(subject), kind));
        let mut follows = Follows::new();
        match cause.kind {
            "RequirementAnalyzed" => self.ask(subject, "Build", &mut follows),
            "OscillationDetected" => self.ask(subject, "Reworked too often. Continue with", &mut follows),
            "RequirementRejected" | "RequirementSuperseded" | "RequirementVerified" => {
                self.end_requirement(rules, cause, &mut follows);
            }
            "RequirementImplemented" => self.resolve(subject, "was implemented", &mut follows),
            "RequirementApproved" => {
                self.with("task", "requirement_id", id_of(subject))
                    .iter()
                    .for_each(|task| self.ready(task, &mut follows));
            }
            // An answer to a question in somebody's own words is only recorded.
            "DecisionApproved" | "DecisionRejected" if !self.opens_gate(subject) => {}
            "DecisionApproved" | "DecisionRejected" => {
                let target = self.text(subject, "target").unwrap().to_owned();
                let id = json!({"decision_id": id_of(subject)});
                // One answer is enough.
                for other in self.open_questions(&target).into_iter().filter(|other| other != subject) {
                    follows.push(("DecisionSuperseded", Some(other), json!({"by": id_of(subject)})));
                }
                let how = if cause.kind == "DecisionApproved" { "was approved" } else { "was rejected" };
                self.resolve(subject, how, &mut follows);
                let (kind, payload) = match (self.fact(subject, "change"), cause.kind) {
                    (None, "DecisionApproved") => ("RequirementApproved", id),
                    (None, _) => {
                        let by = format!("rejected by {}", cause.actor);
                        ("RequirementRejected", json!({"reason": self.text(subject, "rationale").unwrap_or(&by)}))
                    }
                    (Some(change), "DecisionApproved") => {
                        let mut members = object(change.clone());
                        let apply = members.remove("do") == Some(json!("apply"));
                        members.extend(object(id));
                        (if apply { "ConstraintApplied" } else { "ConstraintRemoved" }, Value::Object(members))
                    }
                    (Some(_), _) => return follows,
                };
                if legal(kind, &target) {
                    follows.push((kind, Some(target), payload));
                }
            }
            "TaskProposed" => {
                let requirement = self.other(subject, "requirement_id", "requirement");
                if let Some(requirement) = &requirement {
                    let name = self.reference(subject).unwrap();
                    self.resolve(requirement, &format!("has new work: {name}"), &mut follows);
                }
                let returns = requirement.as_ref().map_or(0, |requirement| self.count(requirement, "returns"));
                match requirement.filter(|r| returns > RETURNS && legal("OscillationDetected", r)) {
                    Some(requirement) => {
                        follows.push(("OscillationDetected", Some(requirement), json!({"count": returns})))
                    }
                    None => self.ready(subject, &mut follows),
                }
            }
            "TaskRetrying" => {
                let facts = &self.facts[subject];
                let again = facts.iter().filter(|(name, _)| ["holder", "lease_seconds"].contains(&name.as_str()));
                let again = again.map(|(name, value)| (name.clone(), value.clone())).collect();
                follows.push(("TaskAssigned", Some(subject.to_owned()), Value::Object(again)));
            }
            "TaskFailed" => {
                self.end_run(subject, "RunFinished", json!({"success": false}), &mut follows);
                let (tried, why) = (self.count(subject, "retry_count"), cause.payload["reason"].as_str().unwrap());
                let transient = cause.payload["error_class"] == "transient";
                let reason = match transient {
                    true => format!(
                        "{why}; gave up after {}",
                        if tried == 1 { "1 retry".to_owned() } else { format!("{tried} retries") }
                    ),
                    false => why.to_owned(),
                };
                if transient && tried < RETRIES {
                    let attempt = json!({"attempt": tried + 1, "of": RETRIES});
                    follows.push(("TaskRetrying", Some(subject.to_owned()), attempt));
                    return follows;
                }
                follows.push(("TaskAborted", Some(subject.to_owned()), json!({"reason": reason})));
                // Only what the toolkit itself says can stay quiet; none of these tasks is a job.
                let quiet = cause.payload.get("escalate") == Some(&json!(false)) && cause.actor == "core:reactor";
                if !quiet {
                    follows.push(("EscalationRequired", Some(subject.to_owned()), json!({"reason": reason})));
                }
            }
            "TaskSucceeded" | "TaskAborted" => {
                match cause.kind {
                    "TaskSucceeded" => {
                        self.end_run(subject, "RunFinished", json!({"success": true}), &mut follows);
                        self.resolve(subject, "succeeded", &mut follows);
                        let how = format!("was done by {}", self.reference(subject).unwrap());
                        let mut before = self.attempt_before(subject);
                        while let Some(task) = before {
                            self.resolve(&task, &how, &mut follows);
                            before = self.attempt_before(&task);
                        }
                    }
                    _ => {
                        let why = cause.payload.get("reason").cloned().unwrap_or(json!("aborted"));
                        self.end_run(subject, "RunCrashed", json!({"reason": why}), &mut follows);
                    }
                }
                self.finish_requirement(subject, &mut follows);
                self.end_task_branches(subject, &mut follows);
            }
            "TaskAssigned" => self.begin_task_branch(subject, cause, &mut follows),
            "BranchCreated" => self.begin_branch(subject, &mut follows),
            "RunTimedOut" | "RunCrashed" => {
                let task = self.other(subject, "task_id", "task").unwrap();
                let reason = match cause.kind {
                    "RunCrashed" => cause.payload.get("reason").cloned().unwrap_or(json!("crash")),
                    _ => json!("timeout"),
                };
                if self.state(&task) == "Running" && self.text(&task, "last_run_id") == Some(id_of(subject)) {
                    follows.push(("TaskFailed", Some(task), json!({"error_class": "transient", "reason": reason})));
                }
            }
            "ArtifactInvalidated" => self.rework(subject, &mut follows),
            _ => {}
        }
        follows
    }

    /// The open decisions about something.
    fn open_questions(&self, target: &str) -> Vec<String> {
        let about = self.with("decision", "target", target).into_iter();
        about.filter(|decision| ["Requested", "Escalated"].contains(&self.state(decision))).collect()
    }

    /// The escalations about something that nothing has resolved yet.
    fn unresolved(&self, about: &str) -> Vec<String> {
        let raised = self.with("escalation", "about", about).into_iter();
        raised.filter(|escalation| ["Open", "Acknowledged"].contains(&self.state(escalation))).collect()
    }

    fn resolve(&self, about: &str, how: &str, follows: &mut Follows) {
        for escalation in self.unresolved(about) {
            let reason = format!("{} {how}", self.reference(about).unwrap());
            follows.push(("EscalationClosed", Some(escalation), json!({"reason": reason})));
        }
    }

    /// A requirement that is over takes its open questions, tasks and escalations along.
    fn end_requirement(&self, rules: &Rules, cause: &Step, follows: &mut Follows) {
        let requirement = cause.subject.as_str();
        let open = self.open_questions(requirement).into_iter();
        follows.extend(open.map(|decision| ("DecisionSuperseded", Some(decision), json!({}))));
        let how = match (cause.kind, cause.payload.get("reason").and_then(Value::as_str)) {
            ("RequirementVerified", _) => "was verified".to_owned(),
            ("RequirementSuperseded", _) => "was superseded".to_owned(),
            (_, Some(why)) => format!("was rejected: {why}"),
            (_, None) => "was rejected".to_owned(),
        };
        let name = self.reference(requirement).unwrap();
        for task in self.with("task", "requirement_id", id_of(requirement)) {
            let why = format!("{name} {how}");
            if rules.contains_key(&("task", self.state(&task), "TaskAborted")) {
                follows.push(("TaskAborted", Some(task.clone()), json!({"reason": why})));
            }
            self.resolve(&task, &format!("belongs to {name}, which {how}"), follows);
        }
        self.resolve(requirement, &how, follows);
    }

    /// What the end of a task means for its requirement: it is done, or somebody must know what is missing.
    fn finish_requirement(&self, task: &str, follows: &mut Follows) {
        let settled = |r: &String| self.state(r) == "Approved" && self.count(r, "tasks_open") == 0;
        let Some(requirement) = self.other(task, "requirement_id", "requirement").filter(settled) else { return };
        let (done, unmet) = (self.count(&requirement, "tasks_succeeded"), self.count(&requirement, "tasks_unmet"));
        if done > 0 && unmet == 0 {
            return follows.push(("RequirementImplemented", Some(requirement), json!({})));
        }
        // One that was acknowledged was about the work until then.
        if self.unresolved(&requirement).iter().any(|escalation| self.state(escalation) == "Open") {
            return;
        }
        let aborted = if unmet == 1 { "1 task was aborted".to_owned() } else { format!("{unmet} tasks were aborted") };
        let name = self.reference(task).unwrap();
        let last = match (self.state(task), self.text(task, "abort_reason")) {
            ("Aborted", Some(why)) => format!(" ({name}: {why})"),
            ("Aborted", None) => format!(" ({name})"),
            _ => String::new(),
        };
        let reason = format!("not implemented: no task is open, and {aborted}{last}");
        follows.push(("EscalationRequired", Some(requirement), json!({"reason": reason})));
    }

    pub(super) fn ask(&self, requirement: &str, question: &str, follows: &mut Follows) {
        let asked = self.with("decision", "target", requirement);
        if asked.iter().any(|decision| self.opens_gate(decision) && self.fits(decision)) {
            return;
        }
        for open in asked.into_iter().filter(|decision| ["Requested", "Escalated"].contains(&self.state(decision))) {
            follows.push(("DecisionSuperseded", Some(open), json!({})));
        }
        let (name, title) = (self.reference(requirement).unwrap(), self.text(requirement, "title").unwrap());
        let payload = json!({"kind": "requirement_approval", "target": requirement,
            "summary": format!("{question} {name}, {title}?"), "target_hash": self.text(requirement, "content")});
        follows.push(("DecisionRequested", None, payload));
    }

    pub(super) fn ready(&self, task: &str, follows: &mut Follows) {
        if self.state(task) == "Proposed" && self.free(task) {
            follows.push(("TaskReady", Some(task.to_owned()), json!({})));
        }
    }

    pub(super) fn end_run(&self, task: &str, kind: &'static str, payload: Value, follows: &mut Follows) {
        let run = self.other(task, "last_run_id", "run");
        follows.extend(run.filter(|run| self.state(run) == "Running").map(|run| (kind, Some(run), payload)));
    }

    pub(super) fn rework(&self, artifact: &str, follows: &mut Follows) {
        let task = self.other(artifact, "task_id", "task");
        let is_built = |task: &String| match self.state(task) {
            "Running" | "Succeeded" => true,
            "Archived" => self.fact(task, "succeeded_at").is_some(),
            _ => false,
        };
        let Some(task) = task.filter(is_built) else { return };
        if self.newest_rework(&task).is_some_and(|again| self.fact(&again, "aborted_at").is_none()) {
            return;
        }
        if self.state(&task) == "Running" {
            let failed = json!({"error_class": "permanent", "reason": "rework", "escalate": false});
            follows.push(("TaskFailed", Some(task.clone()), failed));
        }
        // Nobody needs it again if its requirement is over.
        let requirement = self.other(&task, "requirement_id", "requirement");
        if requirement.is_some_and(|requirement| ENDED.contains(&self.state(&requirement))) {
            return;
        }
        let mut again = Map::new();
        for name in ["title", "requirement_id"] {
            again.extend(self.fact(&task, name).map(|value| (name.to_owned(), value.clone())));
        }
        again.insert("rework_of".to_owned(), json!(id_of(&task)));
        follows.push(("TaskProposed", None, Value::Object(again)));
    }
}
