//! What the model remembers of a recorded event.

use serde_json::{Map, Value, json};

use super::legal_steps::Rules;
use super::{Asked, Model, Step, Trial, Verdict, digest, entity_of, id_of, object};

impl Model {
    /// What must come of a request here, and the model after it.
    pub(super) fn take(&mut self, rules: &Rules, asked: &Asked, mut trial: Trial<'_>) -> Verdict {
        let verdict = self.judge(rules, asked);
        if verdict != Verdict::Recorded {
            return verdict;
        }
        let step = |kind, subject: &str, payload: &Map<String, Value>| Step {
            kind,
            subject: subject.to_owned(),
            actor: asked.actor().to_owned(),
            payload: payload.clone(),
        };
        if let Some(agent) = asked.agent.as_ref().filter(|agent| self.state(agent) == "-") {
            let announced = Map::from_iter([("announced".to_owned(), json!(true))]);
            self.record(rules, step("AgentStarted", agent, &announced), None, &mut trial);
        }
        let mut payload = asked.payload.clone();
        let hash = match (asked.kind, payload.get("change"), payload.get("target")) {
            ("DecisionRequested", Some(change), _) => Some(json!(digest(&change.to_string()))),
            ("DecisionRequested", None, Some(target)) => self.fact(target.as_str().unwrap(), "content").cloned(),
            ("DecisionApproved", ..) => self.fact(&asked.subject, "target_hash").cloned(),
            _ => None,
        };
        payload.extend(hash.map(|hash| ("target_hash".to_owned(), hash)));
        let mut unit = vec![self.record(rules, step(asked.kind, &asked.subject, &payload), None, &mut trial)];
        let mut at = 0;
        while at < unit.len() {
            let cause = unit[at].clone();
            // Whatever follows continues what it is about, as that was then.
            let follows = self.follow(rules, &cause.0).into_iter().map(|follow| {
                let history = follow.1.as_ref().and_then(|subject| self.changed_by.get(subject)).cloned();
                let parents = history.filter(|history| *history != cause.1).into_iter().chain([cause.1.clone()]);
                (follow, parents.collect::<Vec<_>>())
            });
            for ((kind, subject, payload), parents) in follows.collect::<Vec<_>>() {
                *self.followed.entry(kind).or_default() += 1;
                let step = Step {
                    kind,
                    subject: subject.unwrap_or_default(),
                    actor: "core:reactor".to_owned(),
                    payload: object(payload),
                };
                unit.push(self.record(rules, step, Some(parents), &mut trial));
            }
            at += 1;
        }
        if let Some(key) = &asked.key {
            self.keys.insert(key.clone(), asked.clone());
        }
        Verdict::Recorded
    }

    /// Takes one event in, which the log must have next. Gives it with its id.
    pub(super) fn record(
        &mut self,
        rules: &Rules,
        mut step: Step,
        parents: Option<Vec<String>>,
        trial: &mut Trial<'_>,
    ) -> (Step, String) {
        let mints = step.subject.is_empty();
        let entity = match step.kind {
            "TaskProposed" => "task",
            "BranchCreated" => "branch",
            "ThreadOpened" => "thread",
            _ => "decision",
        };
        let id = match trial {
            Trial::Paper => {
                if mints {
                    step.subject = format!("{entity}:?{}", self.events);
                }
                String::new()
            }
            Trial::Log(recorded) => {
                let event = recorded.pop_front().unwrap_or_else(|| panic!("{step:?} is not recorded"));
                let text = |member: &str| event[member].as_str().unwrap().to_owned();
                if mints {
                    step.subject = text("subject");
                    assert_eq!((entity_of(&step.subject), self.state(&step.subject)), (entity, "-"), "{event:#}");
                }
                assert_eq!(event["event_type"], step.kind, "{event:#}");
                assert_eq!(event["payload"], Value::Object(step.payload.clone()), "{event:#}");
                let found = ["subject", "actor", "timestamp"].map(text);
                assert_eq!(found, [&step.subject, &step.actor, &self.now].map(String::clone), "{event:#}");
                if let Some(parents) = parents {
                    assert_eq!(event["parents"], json!(parents), "{event:#}");
                }
                text("event_id")
            }
        };
        self.fold(rules, &step, &id);
        (step, id)
    }

    /// What an event says, from nothing but the event.
    pub(super) fn fold(&mut self, rules: &Rules, step: &Step, id: &str) {
        self.events += 1;
        let (subject, linked) = (step.subject.clone(), |member: &str, entity: &str| {
            Some(format!("{entity}:{}", step.payload.get(member)?.as_str()?))
        });
        let from = self.state(&subject);
        match step.kind {
            // It opens something, and moves nothing.
            "EscalationRequired" => {
                let opened = if id.is_empty() { format!("?{}", self.events) } else { id.to_owned() };
                self.advance(rules, step, &format!("escalation:{opened}"), id);
            }
            _ => self.advance(rules, step, &subject, id),
        }
        self.count_task(&subject, from, &step.actor);
        if from == "-" && step.kind == "TaskProposed" {
            self.mark_reworked(&subject);
        }
        let moved = match step.kind {
            "RunStarted" => linked("task_id", "task"),
            "TaskProposed" => linked("requirement_id", "requirement"),
            "ThreadOpened" | "ThreadCompleted" | "ThreadAborted" => linked("branch_id", "branch"),
            _ => None,
        };
        if let Some(moved) = moved {
            self.advance(rules, step, &moved, id);
            if entity_of(&moved) == "branch" {
                self.keep_root(step, &moved);
            }
        }
        if step.kind == "BranchCompleted" {
            self.archived.extend(self.other(&subject, "last_thread_id", "thread"));
        }
        if step.kind == "TaskArchived" {
            self.archived.extend(self.with("run", "task_id", id_of(&subject)));
            self.archived.extend(self.with("branch", "task_id", id_of(&subject)));
            self.archived.insert(subject);
        }
    }

    pub(super) fn advance(&mut self, rules: &Rules, step: &Step, subject: &str, id: &str) {
        let entity = entity_of(subject);
        let to = match (entity, step.kind) {
            ("agent", "AgentStarted") => "Active",
            _ => match rules.get(&(entity, self.state(subject), step.kind)) {
                Some(to) => to,
                None => return,
            },
        };
        // Another analysis changes what a requirement is, and not its state.
        if self.state(subject) != to || step.kind == "RequirementAnalyzed" {
            self.changed_by.insert(subject.to_owned(), id.to_owned());
        }
        self.set(subject, to);
        match step.kind {
            "RequirementApproved" | "TaskAborted" => drop(self.decided_at.insert(subject.to_owned(), self.events)),
            "TaskFailed" => drop(self.failed_by.insert(subject.to_owned(), step.actor.clone())),
            "TaskRetrying" => drop(self.failed_by.remove(subject)),
            "DecisionRequested" if step.actor == "core:reactor" => drop(self.own_questions.insert(subject.to_owned())),
            _ => {}
        }
        let (now, mut facts) = (json!(self.now), self.facts.remove(subject).unwrap_or_default());
        self.gather(&mut facts, entity, step, &now);
        self.facts.insert(subject.to_owned(), facts);
    }

    /// The facts that an event adds to what it moved.
    pub(super) fn gather(&self, facts: &mut Map<String, Value>, entity: &str, step: &Step, now: &Value) {
        let said = |facts: &mut Map<String, Value>, members: &[&str]| {
            for member in members {
                facts.extend(step.payload.get(*member).map(|value| ((*member).to_owned(), value.clone())));
            }
        };
        let content = |facts: &Map<String, Value>| {
            let before = facts.get("content").map_or("", |content| content.as_str().unwrap());
            json!(digest(&format!("{before}{}", Value::Object(step.payload.clone()))))
        };
        let next =
            |facts: &Map<String, Value>, name: &str| json!(facts.get(name).map_or(0, |n| n.as_u64().unwrap()) + 1);
        let pass_on = |facts: &mut Map<String, Value>| {
            // Who gets it back was never without it.
            let holder = facts.remove("holder");
            if let Some(holder) = holder.filter(|holder| step.payload.get("holder") != Some(holder)) {
                let mut past = facts.get("past_holders").map_or(Vec::new(), |past| past.as_array().unwrap().clone());
                past.retain(|other| *other != holder);
                past.push(holder);
                let past = past.split_off(past.len().saturating_sub(8));
                facts.insert("past_holders".to_owned(), json!(past));
            }
            facts.remove("lease_seconds");
        };
        let set = |facts: &mut Map<String, Value>, name: &str, value: Value| drop(facts.insert(name.to_owned(), value));
        match (entity, step.kind) {
            ("requirement", "RequirementProposed") => {
                said(facts, &["title"]);
                set(facts, "content", content(facts));
            }
            ("requirement", "RequirementAnalyzed") => set(facts, "content", content(facts)),
            ("requirement", "OscillationDetected") => {
                set(facts, "content", content(facts));
                set(facts, "blocked_at", now.clone());
            }
            ("requirement", "RequirementApproved") => {
                set(facts, "returns", json!(0));
                set(facts, "tasks_unmet", json!(0));
            }
            ("requirement", "RequirementRejected") => said(facts, &["reason"]),
            ("decision", "DecisionRequested") => {
                said(facts, &["kind", "target", "summary", "options", "change", "target_hash"]);
                set(facts, "requested_at", now.clone());
            }
            ("decision", "ApprovalTimedOut") => set(facts, "timed_out_at", now.clone()),
            ("decision", "DecisionApproved" | "DecisionRejected") => {
                said(facts, &["chosen_option", "rationale"]);
                set(facts, "decided_at", now.clone());
                set(facts, "decided_by", json!(step.actor));
            }
            ("task", "TaskProposed") => {
                said(facts, &["title", "requirement_id", "rework_of"]);
                set(facts, "content", content(facts));
                set(facts, "retry_count", json!(0));
            }
            ("task", "TaskRetrying") => set(facts, "retry_count", next(facts, "retry_count")),
            ("task", "TaskAssigned") => {
                pass_on(facts);
                said(facts, &["holder", "lease_seconds"]);
                set(facts, "claimed_at", now.clone());
                set(facts, "generation", next(facts, "generation"));
            }
            ("task", "ClaimRenewed") => set(facts, "claimed_at", now.clone()),
            ("task", "ClaimExpired") => pass_on(facts),
            ("task", "RunStarted") => set(facts, "last_run_id", json!(id_of(&step.subject))),
            ("task", "TaskFailed") => {
                said(facts, &["error_class"]);
                set(facts, "failure", step.payload["reason"].clone());
            }
            ("task", "TaskSucceeded") => set(facts, "succeeded_at", now.clone()),
            ("task", "TaskAborted") => {
                facts.extend(step.payload.get("reason").map(|reason| ("abort_reason".to_owned(), reason.clone())));
                set(facts, "aborted_at", now.clone());
                set(facts, "aborted_by", json!(step.actor));
            }
            ("escalation", "EscalationRequired") => {
                said(facts, &["reason"]);
                set(facts, "about", json!(step.subject));
                set(facts, "raised_at", now.clone());
                set(facts, "raised_by", json!(step.actor));
            }
            ("escalation", "EscalationAcknowledged") => {
                set(facts, "acknowledged_because", step.payload["reason"].clone());
                set(facts, "acknowledged_at", now.clone());
                set(facts, "acknowledged_by", json!(step.actor));
            }
            ("escalation", "EscalationClosed") => {
                set(facts, "closed_because", step.payload["reason"].clone());
                set(facts, "closed_at", now.clone());
            }
            ("run", "RunStarted") => {
                said(facts, &["task_id"]);
                set(facts, "started_at", now.clone());
                set(facts, "last_heartbeat_at", now.clone());
                set(facts, "finished_at", Value::Null);
            }
            ("run", "Heartbeat") => set(facts, "last_heartbeat_at", now.clone()),
            ("run", _) => {
                said(facts, &["success", "reason"]);
                set(facts, "finished_at", now.clone());
            }
            ("artifact", "ArtifactCorrupted") => set(facts, "corrupted_at", now.clone()),
            ("artifact", _) => said(facts, &["kind", "task_id", "sha256", "size_bytes"]),
            ("agent", "AgentStarted") => {
                said(facts, &["announced"]);
                set(facts, "started_at", now.clone());
            }
            ("constraint", "ConstraintApplied") => {
                said(facts, &["text"]);
                set(facts, "applied_at", now.clone());
            }
            ("branch", "BranchCreated") => {
                said(facts, &["persona_id", "branch_type", "label", "task_id", "partner_persona_id"]);
                set(facts, "threads", json!(0));
                set(facts, "suspended_at", now.clone());
                set(facts, "last_activity", now.clone());
            }
            ("branch", "ThreadOpened") => {
                set(facts, "threads", next(facts, "threads"));
                set(facts, "current_thread_id", json!(id_of(&step.subject)));
                set(facts, "last_thread_id", json!(id_of(&step.subject)));
                set(facts, "last_activity", now.clone());
                facts.remove("suspended_at");
            }
            ("branch", "ThreadCompleted" | "ThreadAborted") => {
                facts.extend(step.payload.get("summary").map(|summary| ("brief_state".to_owned(), summary.clone())));
                set(facts, "suspended_at", now.clone());
                set(facts, "last_activity", now.clone());
                facts.remove("current_thread_id");
            }
            ("branch", "BranchCompleted") => {
                set(facts, "completed_at", now.clone());
                set(facts, "last_activity", now.clone());
                facts.remove("suspended_at");
            }
            ("thread", "ThreadOpened") => {
                said(facts, &["branch_id"]);
                set(facts, "messages", json!(0));
                set(facts, "number", json!(1));
                set(facts, "opened_at", now.clone());
            }
            ("thread", _) => {
                said(facts, &["summary", "reason"]);
                set(facts, "closed_at", now.clone());
            }
            _ => {}
        }
    }

    /// The state of the root of a persona when another of its branches came to an end, or was gone to.
    pub(super) fn keep_root(&mut self, step: &Step, branch: &str) {
        let root = self.other(branch, "persona_id", "branch").unwrap();
        if root == branch {
            return;
        }
        let opened = step.kind == "ThreadOpened";
        self.set(&root, if opened { "Suspended" } else { "Active" });
        let now = json!(self.now);
        let facts = self.facts.get_mut(&root).unwrap();
        if opened {
            facts.insert("active_branch_id".to_owned(), json!(id_of(branch)));
            facts.insert("suspended_at".to_owned(), now);
            return;
        }
        facts.remove("active_branch_id");
        facts.remove("suspended_at");
        let mut ends = facts.get("anchors").map_or(Vec::new(), |ends| ends.as_array().unwrap().clone());
        ends.push(json!(id_of(&step.subject)));
        let ends = ends.split_off(ends.len().saturating_sub(10));
        facts.insert("anchors".to_owned(), json!(ends));
    }

    /// Counts a task that came or ended with its requirement, which moves only after this.
    pub(super) fn count_task(&mut self, task: &str, from: &str, actor: &str) {
        let to = self.state(task);
        let Some(requirement) = self.other(task, "requirement_id", "requirement") else { return };
        if entity_of(task) != "task" || from == to || !(from == "-" || to == "Succeeded" || to == "Aborted") {
            return;
        }
        // Only an invalid artifact sends work back; whoever repeats what failed does not.
        let rework = self.fact(task, "rework_of").is_some() && actor == "core:reactor";
        let returned = from == "-" && (self.state(&requirement) == "Implemented" || rework);
        let opened = if from == "-" { 1 } else { -1 };
        let unmet = to == "Aborted" && self.fact(task, "reworked_by").is_none();
        let facts = self.facts.get_mut(&requirement).unwrap();
        for (name, more) in [
            ("tasks_open", opened),
            ("tasks_succeeded", i64::from(to == "Succeeded")),
            ("tasks_unmet", i64::from(unmet)),
            ("returns", i64::from(returned)),
        ] {
            let count = facts.get(name).map_or(0, |n| n.as_i64().unwrap());
            facts.insert(name.to_owned(), json!(count + more));
        }
    }

    /// Remembers which task repeats another, or the last of those that repeat it. Its end is then no longer missing
    /// from its requirement, if it was counted there since the approval.
    fn mark_reworked(&mut self, rework: &str) {
        let Some(first) = self.other(rework, "rework_of", "task") else { return };
        let last = self.newest_rework(&first).unwrap_or(first);
        let facts = self.facts.get_mut(&last).unwrap();
        facts.insert("reworked_by".to_owned(), json!(id_of(rework)));
        let Some(requirement) = self.other(&last, "requirement_id", "requirement") else { return };
        let (ended, approved) = (self.decided_at.get(&last), self.decided_at.get(&requirement));
        if ended.is_some() && ended > approved {
            let unmet = self.count(&requirement, "tasks_unmet") - 1;
            self.facts.get_mut(&requirement).unwrap().insert("tasks_unmet".to_owned(), json!(unmet));
        }
    }

    pub(super) fn set(&mut self, subject: &str, state: &'static str) {
        if self.states.insert(subject.to_owned(), state).is_none() {
            self.made.entry(entity_of(subject)).or_default().push(subject.to_owned());
        }
    }
}
