//! What the model says must become of a request.

use serde_json::{Value, json};

use super::legal_steps::Rules;
use super::{Asked, Model, TASKS_AT_ONCE, Verdict, digest, entity_of, id_of};

/// What only an operator may ask for.
const OPERATORS: &[&str] = &[
    "DecisionApproved",
    "DecisionRejected",
    "RequirementRejected",
    "RequirementSuperseded",
    "RequirementVerified",
    "EscalationAcknowledged",
];

/// The states in which a requirement is over.
pub(super) const ENDED: &[&str] = &["Rejected", "Superseded", "Verified"];

impl Model {
    /// Whether a decision is about what its target still is.
    pub(super) fn fits(&self, decision: &str) -> bool {
        let now = match self.fact(decision, "change") {
            Some(change) => Some(digest(&change.to_string())),
            None => self.text(decision, "target").and_then(|target| self.text(target, "content")).map(str::to_owned),
        };
        now.as_deref() == self.text(decision, "target_hash")
    }

    /// Whether an answer has consequences: the toolkit asked, or the question states a change of a constraint.
    pub(super) fn opens_gate(&self, decision: &str) -> bool {
        self.own_questions.contains(decision) || self.fact(decision, "change").is_some()
    }

    /// Whether a request is to lift a constraint that does not exist.
    fn lifts_nothing(&self, asked: &Asked) -> bool {
        let lifts = asked.payload.get("change").is_some_and(|change| change["do"] == "remove");
        lifts && asked.payload["target"].as_str().is_some_and(|target| self.state(target) == "-")
    }

    /// Whether a task has ended, though it may have been put away since.
    pub(super) fn has_ended(&self, task: &str) -> bool {
        self.fact(task, "succeeded_at").is_some() || self.fact(task, "aborted_at").is_some()
    }

    /// The last of those that repeat a task.
    pub(super) fn newest_rework(&self, task: &str) -> Option<String> {
        let next = self.other(task, "reworked_by", "task")?;
        Some(self.newest_rework(&next).unwrap_or(next))
    }

    /// The attempt at the same work before a task.
    pub(super) fn attempt_before(&self, task: &str) -> Option<String> {
        self.with("task", "reworked_by", id_of(task)).pop()
    }

    /// Whether a task waits for nothing.
    pub(super) fn free(&self, task: &str) -> bool {
        self.other(task, "requirement_id", "requirement").is_none_or(|r| self.state(&r) == "Approved")
    }

    /// The task whose holder alone may do this.
    pub(super) fn held(&self, asked: &Asked) -> Option<String> {
        match asked.kind {
            "ClaimRenewed" | "TaskSucceeded" | "TaskFailed" => Some(asked.subject.clone()),
            "TaskAborted" | "ClaimExpired" if asked.agent.is_some() => Some(asked.subject.clone()),
            "RunStarted" => asked.named("task_id", "task"),
            "Heartbeat" | "RunFinished" | "RunCrashed" | "RunTimedOut" => self.other(&asked.subject, "task_id", "task"),
            _ => None,
        }
    }

    /// Whether something is already so.
    pub(super) fn holds(&self, rules: &Rules, asked: &Asked) -> bool {
        let (entity, state) = (entity_of(&asked.subject), self.state(&asked.subject));
        let arrives = rules
            .iter()
            .any(|(rule, to)| (rule.0, rule.2, *to) == (entity, asked.kind, state) && rule.1 != state && rule.1 != "-");
        let choice = match asked.kind {
            "DecisionApproved" => "chosen_option",
            "TaskAssigned" => "holder",
            "RunFinished" => "success",
            _ => "",
        };
        let same = choice.is_empty() || asked.payload.get(choice) == self.fact(&asked.subject, choice);
        state != "-" && arrives && !rules.contains_key(&(entity, state, asked.kind)) && same
    }

    /// Whether who asks held the task before and lost it, so that its end is not their doing.
    fn has_lost(&self, asked: &Asked) -> bool {
        let needs_claim = asked.kind != "TaskAborted" && asked.kind != "ClaimExpired";
        let Some(task) = self.held(asked).filter(|_| needs_claim) else { return false };
        let me = asked.actor();
        if self.text(&task, "holder") == Some(me) {
            // Somebody else ended it, and not because its holder reported a failure.
            let reported = self.failed_by.get(&task).is_some_and(|by| by == me);
            let is_aborted = self.fact(&task, "aborted_at").is_some();
            return is_aborted && !reported && self.text(&task, "aborted_by") != Some(me);
        }
        let past = self.fact(&task, "past_holders").and_then(Value::as_array).into_iter().flatten();
        past.filter_map(Value::as_str).any(|past| past == me)
    }

    /// Who holds the task that a subject is, or is a run of.
    pub(super) fn held_by(&self, entity: &str, subject: &str) -> Option<String> {
        let task = if entity == "run" { self.other(subject, "task_id", "task")? } else { subject.to_owned() };
        self.text(&task, "holder").map(str::to_owned)
    }

    /// What must come of a request here.
    pub(super) fn judge(&self, rules: &Rules, asked: &Asked) -> Verdict {
        if let Some(first) = asked.key.as_ref().and_then(|key| self.keys.get(key)) {
            let same = (first.kind, &first.subject, &first.payload) == (asked.kind, &asked.subject, &asked.payload);
            return if same { Verdict::Duplicate } else { Verdict::Refused };
        }
        let (entity, from) = (entity_of(&asked.subject), self.state(&asked.subject));
        let legal = rules.contains_key(&(entity, from, asked.kind)) || asked.kind == "EscalationRequired";
        // What is escalated must exist, be it an escalation itself.
        let creates = rules.contains_key(&(entity, "-", asked.kind)) && asked.kind != "EscalationRequired";
        if from == "-" && !creates {
            return Verdict::Unknown;
        }
        if asked.agent.is_some() && OPERATORS.contains(&asked.kind) {
            return Verdict::Refused;
        }
        if self.holds(rules, asked) {
            return if self.has_lost(asked) { Verdict::Refused } else { Verdict::Duplicate };
        }
        let target = asked.payload.get("target").map(|target| target.as_str().unwrap().to_owned());
        let target = target.filter(|target| !target.starts_with("constraint:"));
        let linked = [("task_id", "task"), ("requirement_id", "requirement"), ("rework_of", "task")];
        let linked = linked.map(|(member, entity)| asked.named(member, entity));
        let named = linked.into_iter().chain([target]).collect::<Vec<_>>();
        if named.iter().flatten().any(|named| self.state(named) == "-") {
            return Verdict::Unknown;
        }
        let not_agents = ["DecisionSuperseded", "ApprovalTimedOut", "OscillationDetected", "TaskArchived"];
        if asked.agent.is_some() && not_agents.contains(&asked.kind) {
            return Verdict::Refused;
        }
        // Nobody can say that a time is over that is not; what is over is another test's (moments.rs).
        let early = ["ApprovalTimedOut", "ClaimExpired", "RunTimedOut"].contains(&asked.kind);
        let reactors = ["RequirementImplemented", "EscalationClosed"].contains(&asked.kind);
        if legal && self.lifts_nothing(asked) {
            return Verdict::Unknown;
        }
        match self.may(asked) && legal && !early && !reactors {
            true => Verdict::Recorded,
            false => Verdict::Refused,
        }
    }

    /// Whether claims, approvals and the room that there is allow a request.
    pub(super) fn may(&self, asked: &Asked) -> bool {
        let (subject, me) = (asked.subject.as_str(), asked.actor());
        let active = |subject: &str| ["Assigned", "Running", "Retrying"].contains(&self.state(subject));
        if let Some(task) = self.held(asked).filter(|task| active(task))
            && self.text(&task, "holder").is_some_and(|holder| holder != me)
        {
            return false;
        }
        let approved = |d: &String| self.state(d) == "Approved";
        match asked.kind {
            "DecisionApproved" => self.fits(subject),
            "DecisionRequested" => {
                let target = asked.payload["target"].as_str().unwrap();
                match asked.payload.get("change").map(|change| change["do"] == "remove") {
                    Some(true) => self.state(target) == "Active",
                    Some(false) => self.state(target) == "-",
                    None => !ENDED.contains(&self.state(target)),
                }
            }
            "TaskProposed" => {
                let is_over = |r: String| ENDED.contains(&self.state(&r));
                let reworked = asked.named("rework_of", "task");
                let again = |task: String| {
                    let newest = self.newest_rework(&task);
                    self.has_ended(&task) && newest.is_none_or(|newest| self.fact(&newest, "aborted_at").is_some())
                };
                !asked.named("requirement_id", "requirement").is_some_and(is_over) && reworked.is_none_or(again)
            }
            "RequirementApproved" => self
                .with("decision", "target", subject)
                .iter()
                .any(|d| approved(d) && self.opens_gate(d) && self.fits(d)),
            "ConstraintApplied" | "ConstraintRemoved" => {
                let mut wanted = asked.payload.clone();
                wanted
                    .insert("do".to_owned(), json!(if asked.kind == "ConstraintApplied" { "apply" } else { "remove" }));
                let wanted = Value::Object(wanted);
                let same = |d: &String| approved(d) && self.fact(d, "change") == Some(&wanted);
                self.with("decision", "target", subject).iter().any(same)
            }
            "TaskReady" => self.free(subject),
            "TaskAssigned" => {
                let other = asked.payload.get("holder").is_some_and(|holder| holder != me);
                let busy = self.made.get("task").into_iter().flatten().filter(|task| active(task)).count();
                !(asked.agent.is_some() && other) && self.free(subject) && busy < TASKS_AT_ONCE
            }
            "RunStarted" => self.state(&asked.named("task_id", "task").unwrap()) == "Assigned",
            _ => true,
        }
    }
}
