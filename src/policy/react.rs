//! Reactions: consequences of an event that are recorded automatically, in the same batch; a long cascade continues in
//! further batches.
//!
//! Every reaction depends on the current state and adds only what is still missing. So after the last batch of a
//! cascade there is nothing left to add, and the audit can check a log by asking for reactions again.

use serde_json::{Map, Value, json};

use super::approval::{self, OPEN, Question};
use super::settings::{Setting, Settings};
use super::{command, mission, project, ready, review, rules};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Subject, Timestamp, Ulid, limits, text};
use crate::event::{Draft, Event, Kind};
use crate::machine::{self, Phase};
use crate::state::{Entity, State, linked};

/// How many tasks one event can affect.
const AFFECTED_TASKS_MAX: usize = limits::BATCH_MAX_EVENTS;

/// The reason for a failure whose run crashed without reporting one.
const CRASH: &str = "crash";

/// The reason for a failure whose artifact was found invalid.
const REWORK: &str = "rework";

/// The reason why a run ended whose task was given to somebody else.
const REASSIGNED: &str = "reassigned";

/// The rationale of a rejection because of a timeout.
const NO_ANSWER: &str = "no answer in time";

/// The actor that records reactions.
pub const REACTOR: &str = "reactor";

/// Returns the reactions to an event, in the state after it. `mint` supplies the ids of new entities.
pub fn react(state: &State, settings: &Settings, cause: &Event, mint: &mut dyn FnMut() -> Ulid) -> Vec<Draft> {
    let (Some(kind), Ok(subject)) = (cause.event_type.known(), Subject::parse(&cause.subject)) else {
        return Vec::new();
    };
    // A forged log may name anything.
    if !kind.fits(&subject) {
        return Vec::new();
    }
    let mut reactor = Reactor { state, settings, cause, subject, mint, drafts: Vec::new() };
    reactor.follow(kind);
    reactor.follow_branches(kind);
    reactor.drafts
}

/// The maximum number of entities that the reactions to an event create.
pub fn makes_at_most(cause: &Event) -> usize {
    match cause.event_type.known() {
        // A thread, and two social branches for every other persona.
        Some(Kind::BranchCreated) => 1 + 2 * limits::PERSONAS_MAX_COUNT,
        _ => 2,
    }
}

pub(super) struct Reactor<'a> {
    pub(super) state: &'a State,
    settings: &'a Settings,
    pub(super) cause: &'a Event,
    pub(super) subject: Subject,
    mint: &'a mut dyn FnMut() -> Ulid,
    pub(super) drafts: Vec<Draft>,
}

impl Reactor<'_> {
    fn follow(&mut self, kind: Kind) {
        match kind {
            Kind::RequirementAnalyzed => self.ask_about_requirement("Build"),
            Kind::OscillationDetected => self.ask_about_requirement("Reworked too often. Continue with"),
            Kind::RequirementApproved => {
                self.ready_tasks_of(&self.subject.clone(), EntityType::Task);
                self.assign_next();
            }
            Kind::RequirementRejected | Kind::RequirementSuperseded | Kind::RequirementVerified => {
                self.end_requirement(kind)
            }
            Kind::RequirementImplemented => self.resolve(&self.subject.clone(), None, "was implemented"),
            Kind::DecisionApproved => self.carry_out_approval(),
            Kind::DecisionRejected => self.carry_out_rejection(),
            Kind::ApprovalTimedOut if self.settings.rejects_on_timeout() => {
                let rationale = json!({"rationale": NO_ANSWER});
                self.record_if_legal(Kind::DecisionRejected, &self.subject.clone(), rationale);
            }
            Kind::TaskProposed => self.task_proposed(),
            Kind::TaskEdited => self.task_edited(),
            Kind::CommandChanged => self.ask_again(),
            Kind::TaskReady | Kind::ClaimExpired => self.assign_next(),
            // There may be room for another task.
            Kind::TaskAssigned if self.cause.actor == Actor::core(REACTOR).to_string() => self.assign_next(),
            Kind::TaskAssigned => self.end_run_of_former_holder(),
            Kind::TaskRetrying => self.assign_again(),
            Kind::TaskFailed => self.task_failed(),
            Kind::TaskSucceeded => self.task_ended(Kind::RunFinished, json!({"success": true})),
            Kind::TaskAborted => {
                let why = self.cause.payload.get("reason").filter(|_| self.is_current());
                let why = why.cloned().unwrap_or_else(|| "aborted".into());
                self.task_ended(Kind::RunCrashed, json!({"reason": why}));
            }
            Kind::RunTimedOut => self.run_lost("timeout"),
            Kind::RunCrashed => self.run_lost(CRASH),
            Kind::ArtifactInvalidated => self.rework(),
            Kind::EmergencyStopIssued => self.abort_everything(),
            Kind::SystemResumed => self.assign_next(),
            Kind::ReviewRecorded => self.judge(),
            Kind::ProjectPaused => self.ask_to_leave(),
            Kind::ProjectResumed => self.assign_next(),
            Kind::ProjectArchived => self.close_project(),
            Kind::SessionStarted => self.assign_next(),
            Kind::SessionEnded | Kind::SessionExpired => self.drain(),
            Kind::AnomalyCleared => self.anomaly_cleared(),
            Kind::AgentStopped => self.resolve(&self.subject.clone(), None, "was stopped"),
            Kind::MissionStarted | Kind::MissionPassed | Kind::MissionFailed => self.close_debate(),
            _ => {}
        }
    }

    /// Adds an event. Its parents are the last change of what it is about, and the cause.
    pub(super) fn record(&mut self, kind: Kind, subject: Subject, payload: Value) {
        let Value::Object(payload) = payload else { unreachable!("payloads are objects") };
        let history = self.state.entity(&subject).map(|entity| entity.last_change()).filter(|id| *id != self.cause.id);
        let parents = history.into_iter().chain([self.cause.id]).collect();
        self.drafts.push(Draft { kind, subject, actor: Actor::core(REACTOR), parents, key: None, payload });
    }

    /// Whether the log is of a version that recorded settings. Older logs keep the consequences of their version.
    fn is_current(&self) -> bool {
        self.state.tally().has_settings()
    }

    /// Whether the reactions so far contain an event of this kind about a subject.
    fn records(&self, kind: Kind, subject: &Subject) -> bool {
        self.drafts.iter().any(|draft| draft.kind == kind && draft.subject == *subject)
    }

    fn record_if_legal(&mut self, kind: Kind, subject: &Subject, payload: Value) {
        if machine::step(subject.entity, self.state.phase_of(subject), kind).is_some() {
            self.record(kind, subject.clone(), payload);
        }
    }

    pub(super) fn entity(&self, subject: &Subject) -> Option<Entity> {
        self.state.entity(subject).map(|entity| entity.into_owned())
    }

    pub(super) fn new_subject(&mut self, entity: EntityType) -> Subject {
        Subject::new(entity, EntityId::parse(&(self.mint)().to_string()).expect("a ULID is an id"))
    }

    /// Requests a decision, unless one was requested for exactly this before. Older open requests are superseded.
    fn ask(&mut self, question: Question, target: &Entity, summary: &str) {
        let asked = approval::decisions(self.state, question, &target.subject, Phase::ALL);
        let is_asked = |decision: &Entity| {
            approval::opens_gate(self.state, decision) && approval::still_fits(self.state, decision)
        };
        if asked.iter().any(is_asked) {
            return;
        }
        let subject = self.new_subject(EntityType::Decision);
        for old in asked.iter().filter(|decision| OPEN.contains(&decision.phase)) {
            self.record(Kind::DecisionSuperseded, old.subject.clone(), json!({}));
        }
        // For a job, show the operator the command itself: its author can choose any title. Nothing else is bound to a
        // command, whatever its author says.
        let job = target.is_job().then_some(&self.cause.payload);
        let shown = job.and_then(|job| job.get(command::COMMAND)).and_then(Value::as_array);
        let words: Option<Vec<&str>> = shown.map(|words| words.iter().filter_map(Value::as_str).collect());
        let title = words.map_or_else(|| target.title().unwrap_or_default().to_owned(), |words| words.join(" "));
        let title = text::cut(&title, limits::SUMMARY_MAX_CHARS);
        let bound = job.and_then(|job| job.get(command::BOUND)).and_then(|bound| bound.get("given"));
        let given = bound.and_then(Value::as_array).into_iter().flatten();
        let given: Vec<&str> = given.filter_map(Value::as_str).collect();
        let title = match given.is_empty() {
            true => title,
            false => format!("{title} with {}", text::cut(&given.join(", "), limits::SUMMARY_MAX_CHARS)),
        };
        let hash = approval::bound_to(self.state, question, &target.subject, None);
        let payload = json!({
            "kind": question.as_str(),
            "target": target.subject.to_string(),
            "summary": format!("{summary} {}, {title}?", target.name()),
            "target_hash": hash,
        });
        self.record(Kind::DecisionRequested, subject, payload);
    }

    /// Supersedes the open decisions about a target that has ended.
    fn close_questions(&mut self, question: Question, target: &Subject) {
        for open in approval::decisions(self.state, question, target, OPEN) {
            self.record(Kind::DecisionSuperseded, open.subject, json!({}));
        }
    }

    fn ask_about_requirement(&mut self, summary: &str) {
        let needs_approval = |e: &Entity| matches!(e.phase, Phase::Analyzed | Phase::Blocked);
        if let Some(requirement) = self.entity(&self.subject.clone()).filter(needs_approval) {
            self.ask(Question::Requirement, &requirement, summary);
        }
    }

    /// The decision that is the subject, its question and its target, if the answer has consequences.
    fn decided(&self) -> Option<(Entity, Question, Subject)> {
        let decision = self.entity(&self.subject).filter(|decision| approval::opens_gate(self.state, decision))?;
        let question = Question::of_decision(&decision)?;
        let target = decision.as_decision().target()?;
        Some((decision, question, target))
    }

    /// Supersedes the other open decisions about the target of one that was answered.
    fn close_other_questions(&mut self, answered: &Entity, question: Question, target: &Subject) {
        if !self.is_current() {
            return;
        }
        let others = approval::decisions(self.state, question, target, OPEN);
        for other in others.into_iter().filter(|other| other.subject != answered.subject) {
            if self.is_older(&other) {
                self.record(Kind::DecisionSuperseded, other.subject, json!({"by": answered.subject.id()}));
            }
        }
    }

    fn carry_out_approval(&mut self) {
        let Some((decision, question, target)) = self.decided() else { return };
        self.answered(&decision, question, &target, "was approved");
        let id = json!({"decision_id": decision.subject.id()});
        match question {
            // The audit asks again after the batch, when the requirement may have been analyzed again.
            Question::Requirement if !approval::still_fits(self.state, &decision) => {}
            Question::Requirement => self.record_if_legal(Kind::RequirementApproved, &target, id),
            Question::Destructive => self.ready_if_possible(&target),
            Question::Constraint => {
                if let Some((change, mut members)) = approval::change(decision.as_decision().change()) {
                    members.insert("decision_id".to_owned(), decision.subject.id().into());
                    self.record_if_legal(change.kind(), &target, Value::Object(members));
                }
            }
        }
    }

    fn carry_out_rejection(&mut self) {
        let Some((decision, question, target)) = self.decided() else { return };
        self.answered(&decision, question, &target, "was rejected");
        let rationale = decision.as_decision().rationale();
        match question {
            Question::Requirement => {
                let reason = rationale.map_or_else(|| format!("rejected by {}", self.cause.actor), str::to_owned);
                self.record_if_legal(Kind::RequirementRejected, &target, json!({"reason": reason}));
            }
            Question::Destructive => {
                let name = decision.name();
                let by = match self.cause_is_core() {
                    true => String::new(),
                    false => format!(" by {}", self.cause.actor),
                };
                let reason = with_reason(format!("{name}{}{by}", rules::WAS_REJECTED), rationale);
                self.record_if_legal(Kind::TaskAborted, &target, json!({"reason": reason}));
            }
            Question::Constraint => {}
        }
    }

    /// An answer closes every other question about the same target, and the escalations about the decision.
    fn answered(&mut self, decision: &Entity, question: Question, target: &Subject, how: &str) {
        self.close_other_questions(decision, question, target);
        self.resolve(&decision.subject, None, how);
    }

    /// Closes the escalations about a subject, by one rule of the watchdog or by any.
    fn resolve(&mut self, about: &Subject, code: Option<&str>, how: &str) {
        if self.state.tally().made(EntityType::Escalation) == 0 {
            return;
        }
        let name = self.entity(about).map_or_else(|| about.to_string(), |entity| entity.spoken_name());
        for escalation in self.state.made_for(about, EntityType::Escalation) {
            let is_open = matches!(escalation.phase, Phase::Open | Phase::Acknowledged) && self.is_older(&escalation);
            if is_open && (code.is_none() || escalation.as_escalation().code() == code) {
                self.record(Kind::EscalationClosed, escalation.subject, json!({"reason": format!("{name} {how}")}));
            }
        }
    }

    /// Whether an entity existed before the cause. When the audit asks again, there may be newer ones.
    fn is_older(&self, entity: &Entity) -> bool {
        entity.first_event < self.cause.id
    }

    fn anomaly_cleared(&mut self) {
        let code = self.cause.payload.get("code").and_then(Value::as_str).map(str::to_owned);
        if let Some(code) = code {
            self.resolve(&self.subject.clone(), Some(&code), &format!("is no longer {code}"));
        }
    }

    /// Takes everything that belongs to a requirement with it: its open questions, tasks and escalations.
    fn end_requirement(&mut self, kind: Kind) {
        let requirement = self.subject.clone();
        self.close_questions(Question::Requirement, &requirement);
        if !self.is_current() {
            return;
        }
        let member = |name: &str| self.cause.payload.get(name).and_then(Value::as_str);
        let by = member("by").and_then(|id| EntityId::parse(id).ok());
        let by = by.and_then(|id| self.entity(&Subject::new(EntityType::Requirement, id)));
        let how = match (kind, by) {
            (Kind::RequirementSuperseded, Some(by)) => format!("was superseded by {}", by.name()),
            (Kind::RequirementSuperseded, None) => "was superseded".to_owned(),
            (Kind::RequirementVerified, _) => "was verified".to_owned(),
            _ => with_reason("was rejected".to_owned(), member("reason")),
        };
        let name = self.entity(&requirement).map_or_else(|| requirement.to_string(), |entity| entity.name());
        for task in self.state.made_for(&requirement, EntityType::Task) {
            let is_open = machine::step(EntityType::Task, task.phase, Kind::TaskAborted).is_some();
            if is_open {
                self.record(Kind::TaskAborted, task.subject.clone(), json!({"reason": format!("{name} {how}")}));
            }
            self.resolve(&task.subject, None, &format!("belongs to {name}, which {how}"));
        }
        self.resolve(&requirement, None, &how);
    }

    fn task_proposed(&mut self) {
        let Some(task) = self.entity(&self.subject.clone()) else { return };
        // New work resolves that there was none.
        if let Some(requirement) = task.as_task().requirement().filter(|_| self.is_current()) {
            self.resolve(&requirement, None, &format!("has new work: {}", task.name()));
        }
        // Asked first: if its requirement is blocked, nothing asks again when that is released.
        let asks_first = self.is_current();
        if asks_first {
            self.ask_if_destructive(&task);
        }
        let requirement = linked(Kind::TaskProposed, &self.cause.payload).and_then(|r| self.entity(&r));
        if let Some(requirement) =
            requirement.filter(|r| r.as_requirement().returns() > self.settings.count(Setting::MaxOscillations))
        {
            let count = json!({"count": requirement.as_requirement().returns()});
            if machine::step(EntityType::Requirement, requirement.phase, Kind::OscillationDetected).is_some() {
                return self.record(Kind::OscillationDetected, requirement.subject, count);
            }
        }
        if !asks_first {
            self.ask_if_destructive(&task);
        }
        self.ready_if_possible(&self.subject.clone());
    }

    /// Requests a new approval of what was approved, and blocks or releases the task by what it depends on now.
    fn task_edited(&mut self) {
        let is_waiting = |task: &Entity| matches!(task.phase, Phase::Proposed | Phase::Ready);
        let Some(task) = self.entity(&self.subject.clone()).filter(is_waiting) else { return };
        match rules::blockers(self.state, &task).first() {
            // First, because only what waits can be decided on.
            Some(blocker) if task.phase == Phase::Ready => {
                self.record(Kind::TaskBlocked, task.subject.clone(), json!({"reason": blocker.why()}));
            }
            Some(_) => {}
            None => self.ready_if_possible(&self.subject.clone()),
        }
        self.ask_if_destructive(&task);
    }

    /// Ends the run of a task that an operator took from its holder.
    fn end_run_of_former_holder(&mut self) {
        if let Some(task) = self.entity(&self.subject.clone()).filter(|task| task.phase == Phase::Assigned) {
            self.end_run(&task, Kind::RunCrashed, json!({"reason": REASSIGNED}));
        }
    }

    fn ask_if_destructive(&mut self, task: &Entity) {
        if rules::blockers(self.state, task).contains(&rules::Blocker::Approval) {
            self.ask(Question::Destructive, task, "Allow destructive task");
        }
    }

    /// Ends the run that was about to start, and requests approval of its command as it is now.
    fn ask_again(&mut self) {
        let Some(task) = self.entity(&self.subject.clone()).filter(|task| task.phase == Phase::Proposed) else {
            return;
        };
        let why = self.cause.payload.get("reason").cloned().unwrap_or_default();
        self.end_run(&task, Kind::RunCrashed, json!({"reason": why}));
        self.ask(Question::Destructive, &task, "Changed since it was approved. Allow destructive task");
        self.drain();
        self.assign_next();
    }

    fn ready_if_possible(&mut self, subject: &Subject) {
        let can_start = |task: &Entity| task.phase == Phase::Proposed && rules::blockers(self.state, task).is_empty();
        let Some(task) = self.entity(subject).filter(can_start) else { return };
        // It may depend on several attempts at the same work.
        if self.records(Kind::TaskReady, subject) {
            return;
        }
        let met = self.met_conditions(&task);
        self.record(Kind::TaskReady, subject.clone(), json!({}));
        let parents = &mut self.drafts.last_mut().expect("it was just added").parents;
        // The cause, which is one of them, comes last.
        let trigger = parents.pop();
        parents.extend(met.into_iter().filter(|event| Some(*event) != trigger));
        parents.extend(trigger);
    }

    /// The events that allow a task to start: the approvals of its requirement and of the task itself, and the ends of
    /// those that it waited for.
    fn met_conditions(&self, task: &Entity) -> Vec<Ulid> {
        let known = task.as_task();
        let requirement = known.requirement().and_then(|requirement| self.entity(&requirement));
        let approval = requirement.and_then(|requirement| requirement.as_requirement().approved_by());
        // A proposal after the approval descends from it.
        let mut met: Vec<Ulid> = approval.into_iter().filter(|approval| *approval > task.first_event).collect();
        for id in known.after().filter_map(|id| EntityId::parse(id).ok()) {
            let mut other = self.entity(&Subject::new(EntityType::Task, id));
            while let Some(undone) = other.take_if(|other| other.as_task().succeeded_at().is_none()) {
                other = undone.as_task().rework().and_then(|rework| self.entity(&rework));
            }
            met.extend(other.map(|done| done.last_event));
        }
        if known.is_destructive() {
            let decision = approval::approved(self.state, Question::Destructive, &task.subject);
            met.extend(decision.map(|decision| decision.last_event));
        }
        met
    }

    /// Makes ready the tasks that named `subject` when they were created and are no longer blocked.
    fn ready_tasks_of(&mut self, subject: &Subject, entity: EntityType) {
        for task in self.state.made_for(subject, entity) {
            self.ready_if_possible(&task.subject);
        }
    }

    /// With `auto_assign`, assigns the next ready task for which an agent is free, if the task limit allows it.
    fn assign_next(&mut self) {
        if !self.settings.flag(Setting::AutoAssign) || !self.is_current() {
            return;
        }
        let stopped = self.state.phase_of(&Subject::SYSTEM) == Phase::Stopped;
        if stopped || ready::is_full(self.state, self.settings) {
            return;
        }
        let free = ready::free_agents(self.state, self.cause.timestamp);
        let Some((choice, agent)) = ready::next_for(self.state, &free) else { return };
        let lease = self.settings.count(Setting::LeaseSeconds);
        let mut payload = json!({"holder": format!("agent:{agent}"), "lease_seconds": lease});
        if let Some(constraint) = &choice.constraint {
            payload["constraint_id"] = constraint.subject.id().into();
        }
        self.record(Kind::TaskAssigned, choice.task.subject, payload);
        let parents = &mut self.drafts.last_mut().expect("it was just added").parents;
        parents.extend(choice.constraint.map(|constraint| constraint.last_event));
    }

    /// Assigns a task that is retried to its holder again, with a new lease.
    fn assign_again(&mut self) {
        let Some(task) = self.entity(&self.subject.clone()).filter(|task| task.phase == Phase::Retrying) else {
            return;
        };
        // A holder that fell silent loses the task; anyone may claim it.
        if self.cause.payload.get("released") == Some(&Value::Bool(true)) {
            return self.record(Kind::TaskReady, task.subject, json!({}));
        }
        let mut payload = Map::new();
        for member in ["holder", "lease_seconds", "job"] {
            payload.extend(task.facts().get(member).map(|value| (member.to_owned(), value.clone())));
        }
        self.record(Kind::TaskAssigned, task.subject, Value::Object(payload));
    }

    fn task_failed(&mut self) {
        let Some(task) = self.entity(&self.subject.clone()).filter(|task| task.phase == Phase::Failed) else { return };
        self.end_run(&task, Kind::RunFinished, json!({"success": false}));
        self.drain();
        let text = |member: &str| self.cause.payload.get(member).and_then(Value::as_str).unwrap_or_default();
        let max_retries = rules::max_retries(self.state, self.settings, &task);
        let (transient, retries) = (text("error_class") == "transient", task.as_task().retry_count());
        if transient && retries < max_retries && !self.is_archived(&task) {
            let mut retry = json!({"attempt": retries + 1, "of": max_retries});
            if let Some(released) = self.cause.payload.get("released") {
                retry["released"] = released.clone();
            }
            return self.record(Kind::TaskRetrying, task.subject, retry);
        }
        let is_repeated = self.repeat_planned(&task);
        let failure = text("reason").to_owned();
        let reason = match transient && retries > 0 {
            true => format!("{failure}; gave up after {}", text::count_noun(retries, "retry")),
            false => failure,
        };
        self.record(Kind::TaskAborted, task.subject.clone(), json!({"reason": reason}));
        // A job's caller waits for the job anyway, and a rework is already proposed. In all other cases a failure is
        // always escalated.
        let quiet = self.cause.payload.get("escalate") == Some(&Value::Bool(false));
        let may_be_quiet = task.is_job() || self.cause.actor == Actor::core(REACTOR).to_string();
        if !(is_repeated || quiet && may_be_quiet) {
            self.record(Kind::EscalationRequired, task.subject, json!({"reason": reason}));
        }
    }

    /// Proposes a task of a running mission's plan again that has failed, before it is aborted: the tasks that depend on it
    /// wait for the next attempt. Returns whether it did.
    fn repeat_planned(&mut self, task: &Entity) -> bool {
        let mission = task.as_task().mission().filter(|_| task.as_task().planned().is_some());
        let is_running = |mission: &Subject| self.state.phase_of(mission) == Phase::Running;
        if !mission.as_ref().is_some_and(is_running) || self.is_archived(task) {
            return false;
        }
        let requirement = task.as_task().requirement().map(|requirement| self.state.phase_of(&requirement));
        if requirement.is_some_and(rules::is_over) || rules::newest_rework(self.state, task).is_some() {
            return false;
        }
        let mut payload = Map::new();
        payload.extend(repeated(task, &["requirement_id", "project_id", "after", "max_retries", "of_mission"]));
        payload.extend(task.as_task().planned().map(|planned| ("planned".to_owned(), planned.clone().into())));
        payload.insert("rework_of".to_owned(), task.subject.id().into());
        let subject = self.new_subject(EntityType::Task);
        self.record(Kind::TaskProposed, subject, Value::Object(payload));
        true
    }

    /// Records that a mission passed whose plan was completed by the task that succeeded. If there is a runner, it has to
    /// succeed first, as the final check.
    fn complete_plan(&mut self, task: &Entity) {
        let mission = task.as_task().mission().and_then(|mission| self.entity(&mission));
        let Some(mission) = mission.filter(|mission| mission.phase == Phase::Running) else { return };
        if mission::has_runner(self.state) {
            return;
        }
        let plan = mission::plan(self.state, &mission);
        if !plan.is_empty() && plan.iter().all(|task| task.as_task().succeeded_at().is_some()) {
            self.record(Kind::MissionPassed, mission.subject, json!({}));
        }
    }

    /// Whether the project of an entity is archived.
    fn is_archived(&self, entity: &Entity) -> bool {
        let project = project::project_of(entity);
        project.is_some_and(|project| project::phase(self.state, &project) == Phase::Archived)
    }

    /// Whether the toolkit itself recorded the cause.
    fn cause_is_core(&self) -> bool {
        Actor::parse(&self.cause.actor).is_ok_and(|actor| actor.kind == ActorKind::Core)
    }

    /// Ends the run of a task that has ended.
    fn end_run(&mut self, task: &Entity, kind: Kind, payload: Value) {
        let run = task.as_task().last_run();
        if let Some(run) = run.filter(|run| self.state.phase_of(run) == Phase::Running) {
            self.record(kind, run, payload);
        }
    }

    fn task_ended(&mut self, run_ends: Kind, payload: Value) {
        let Some(task) = self.entity(&self.subject.clone()) else { return };
        self.end_run(&task, run_ends, payload);
        self.drain();
        if task.phase == Phase::Succeeded {
            let by_rework = format!("was done by {}", task.name());
            // Tasks that depend on an earlier attempt can start after its rework, too.
            for attempt in rules::attempts(self.state, &task) {
                let how = if attempt.subject == task.subject { "succeeded" } else { &by_rework };
                self.ready_tasks_of(&attempt.subject, EntityType::Task);
                self.resolve(&attempt.subject, None, how);
            }
        }
        if task.phase == Phase::Succeeded {
            self.complete_plan(&task);
        }
        // A job that was cancelled or stopped has failed, as far as its plan is concerned.
        let is_cut_off = (task.is_job() || rules::was_stopped(&task)) && !rules::was_rejected(&task);
        let is_repeated = task.phase == Phase::Aborted && is_cut_off && self.repeat_planned(&task);
        if task.phase == Phase::Aborted && !is_repeated {
            self.abort_dependents(&task);
        }
        self.close_questions(Question::Destructive, &task.subject);
        self.finish_requirement(&task);
        self.assign_next();
    }

    /// Records that the requirement of a task that ended is implemented, or escalates what is missing, once none of its
    /// tasks is open. What a stop aborted is not escalated: it can be reworked after the stop. Nor is what ends with its
    /// project.
    fn finish_requirement(&mut self, task: &Entity) {
        let requirement = task.as_task().requirement().and_then(|requirement| self.entity(&requirement));
        let is_settled = |r: &Entity| r.phase == Phase::Approved && r.as_requirement().open_tasks() == 0;
        let Some(requirement) = requirement.filter(is_settled) else { return };
        let (done, unmet) =
            (requirement.as_requirement().succeeded_tasks(), requirement.as_requirement().unmet_tasks());
        if done > 0 && (unmet == 0 || !self.is_current()) {
            return self.record(Kind::RequirementImplemented, requirement.subject, json!({}));
        }
        // One that was acknowledged was about the work until then.
        let is_known = |escalation: &Entity| escalation.phase == Phase::Open;
        let known = self.state.made_for(&requirement.subject, EntityType::Escalation).iter().any(is_known);
        if !self.is_current() || known || rules::was_stopped(task) || self.is_archived(&requirement) {
            return;
        }
        let aborted = match unmet {
            1 => "1 task was aborted".to_owned(),
            unmet => format!("{unmet} tasks were aborted"),
        };
        let last = match task.phase {
            Phase::Aborted => self.last_aborted(&requirement.subject),
            _ => None,
        };
        let last = last.map(|last| format!(" ({})", with_reason(last.name(), last.as_task().abort_reason())));
        let last = last.unwrap_or_default();
        let reason = format!("not implemented: no task is open, and {aborted}{last}");
        self.record(Kind::EscalationRequired, requirement.subject, json!({"reason": reason}));
    }

    /// The task of a requirement that was aborted last.
    fn last_aborted(&self, requirement: &Subject) -> Option<Entity> {
        let tasks = self.state.made_for(requirement, EntityType::Task).into_iter();
        tasks.filter(|task| task.as_task().aborted_at().is_some()).max_by_key(|task| task.as_task().aborted_by_event())
    }

    /// Aborts the tasks that depend on an aborted task, or on an earlier attempt at it, and so could never start.
    fn abort_dependents(&mut self, aborted: &Entity) {
        for task in rules::attempts(self.state, aborted) {
            if !rules::is_lost(self.state, &task) {
                return;
            }
            let waits = |other: &Entity| {
                let depends = other.as_task().after().any(|id| id == task.subject.id());
                other.phase == Phase::Proposed && depends && (self.is_current() || other.is_job())
            };
            // The rework takes the place of the task that the others depend on.
            let what = match task.subject == aborted.subject {
                true => task.name(),
                false => format!("{}, the rework of {}", aborted.name(), task.name()),
            };
            let why = with_reason(
                format!("{what}, which it depends on, was aborted"),
                aborted.as_task().abort_reason().filter(|_| self.is_current()),
            );
            let waiting = self.state.made_for(&task.subject, EntityType::Task);
            for other in waiting.into_iter().filter(|other| waits(other)).collect::<Vec<_>>() {
                // It may depend on the original task and on the rework.
                if !self.records(Kind::TaskAborted, &other.subject) {
                    self.record(Kind::TaskAborted, other.subject, json!({"reason": why}));
                }
            }
        }
    }

    /// Fails the task of a run that crashed or timed out, if it is still running.
    fn run_lost(&mut self, reason: &str) {
        let task = self.entity(&self.subject.clone()).and_then(|run| {
            let task = self.entity(&run.as_run().task()?)?;
            (task.phase == Phase::Running && task.as_task().last_run().as_ref() == Some(&run.subject)).then_some(task)
        });
        let Some(task) = task else { return };
        let member = |name: &str| self.cause.payload.get(name);
        let class = if member("transient") == Some(&Value::Bool(false)) { "permanent" } else { "transient" };
        // A crash may report a reason; a run that timed out always has the reason `timeout`.
        let why = member("reason").and_then(Value::as_str).filter(|_| reason == CRASH).unwrap_or(reason);
        let mut payload = json!({"error_class": class, "reason": why});
        // A failure that its holder did not report releases the task. Versions that recorded no settings did not do this.
        if self.cause_is_core() && !task.is_job() && self.state.settings().is_some() {
            payload["released"] = true.into();
        }
        // The caller of a job waits for it, so its failures are not escalated.
        let quiet = (task.is_job() && self.is_current()).then_some(Value::Bool(false));
        if let Some(escalate) = member("escalate").cloned().or(quiet) {
            payload["escalate"] = escalate;
        }
        self.record(Kind::TaskFailed, task.subject, payload);
    }

    /// Fails the task of an invalid artifact and proposes it again.
    fn rework(&mut self) {
        let task = self.entity(&self.subject.clone()).and_then(|a| self.entity(&a.as_artifact().task()?));
        let is_built = |task: &Entity| match task.phase {
            Phase::Running | Phase::Succeeded => true,
            Phase::Archived => task.as_task().succeeded_at().is_some() && self.is_current(),
            _ => false,
        };
        let Some(task) = task.filter(is_built) else { return };
        // When the audit asks again, the rework exists already; and another result of the same task may have been found
        // invalid before.
        let newest = rules::newest_rework(self.state, &task);
        if newest.is_some_and(|newest| newest.as_task().aborted_at().is_none()) {
            return;
        }
        if task.phase == Phase::Running {
            let why = self.cause.payload.get("reason").and_then(Value::as_str).filter(|_| self.is_current());
            let reason = with_reason(REWORK.to_owned(), why);
            let failed = json!({"error_class": "permanent", "reason": reason, "escalate": false});
            self.record(Kind::TaskFailed, task.subject.clone(), failed);
        }
        // The work of a requirement that is over is not repeated.
        let requirement = task.as_task().requirement().map(|requirement| self.state.phase_of(&requirement));
        if self.is_current() && requirement.is_some_and(rules::is_over) {
            return;
        }
        let mut payload = Map::new();
        payload.extend(repeated(&task, &["requirement_id", "project_id", "after", "destructive", "max_retries"]));
        payload.insert("rework_of".to_owned(), task.subject.id().into());
        let why = self.cause.payload.get("reason").filter(|_| self.is_current());
        payload.extend(why.map(|why| ("reason".to_owned(), why.clone())));
        let subject = self.new_subject(EntityType::Task);
        self.record(Kind::TaskProposed, subject, Value::Object(payload));
    }

    /// Limits the open sessions of a paused project to the grace period.
    fn ask_to_leave(&mut self) {
        let seconds = self.cause.payload.get("grace_seconds").and_then(Value::as_u64).unwrap_or(0);
        let until = Timestamp(self.cause.timestamp.0.saturating_add_unsigned(seconds));
        for session in project::sessions(self.state, &self.subject.clone()) {
            // An expiry too far in the future to be parsed is cut like any other.
            if session.as_session().expires_at().is_none_or(|expires| expires > until) {
                self.record(Kind::SessionCut, session.subject, json!({"seconds": seconds}));
            }
        }
        self.drain_of(&self.subject.clone());
    }

    /// Ends the sessions of an archived project and aborts its claimed tasks and waiting jobs. A running job runs to its
    /// end.
    fn close_project(&mut self) {
        let why = self.cause.payload.get("reason").and_then(Value::as_str).filter(|_| self.is_current());
        let archived = json!({"reason": with_reason("archived".to_owned(), why)});
        if self.is_current() {
            self.close_questions_of_project();
            for phase in [Phase::Open, Phase::Acknowledged] {
                for escalation in self.state.in_phase(EntityType::Escalation, phase, AFFECTED_TASKS_MAX) {
                    if project::project_of(&escalation).as_ref() == Some(&self.subject) && self.is_older(&escalation) {
                        let why = format!("project {} was archived", self.subject.id());
                        self.record(Kind::EscalationClosed, escalation.subject, json!({"reason": why}));
                    }
                }
            }
        }
        for session in project::sessions(self.state, &self.subject.clone()) {
            // Why it was archived is the project's to say.
            self.record(Kind::SessionEnded, session.subject, json!({"reason": "archived"}));
        }
        for phase in [Phase::Proposed, Phase::Ready, Phase::Assigned, Phase::Running, Phase::Retrying] {
            for task in self.state.in_phase(EntityType::Task, phase, AFFECTED_TASKS_MAX) {
                let aborts = match task.is_job() {
                    true => phase != Phase::Running,
                    false => !matches!(phase, Phase::Proposed | Phase::Ready),
                };
                if aborts && project::project_of(&task).as_ref() == Some(&self.subject) {
                    self.record(Kind::TaskAborted, task.subject, archived.clone());
                }
            }
        }
    }

    /// Closes the questions about the requirements of an archived project, which nobody can answer any more. Those about
    /// its tasks end with the tasks.
    fn close_questions_of_project(&mut self) {
        for phase in OPEN {
            for decision in self.state.in_phase(EntityType::Decision, *phase, AFFECTED_TASKS_MAX) {
                let target = decision.as_decision().target().and_then(|target| self.entity(&target));
                let is_here = |target: &Entity| {
                    target.subject.entity == EntityType::Requirement
                        && project::project_of(target).as_ref() == Some(&self.subject)
                };
                if target.is_some_and(|target| is_here(&target)) && self.is_older(&decision) {
                    self.record(Kind::DecisionSuperseded, decision.subject, json!({}));
                }
            }
        }
    }

    /// Records that the project of the subject is drained, if what just ended was the last thing in progress.
    fn drain(&mut self) {
        let project = self.entity(&self.subject.clone()).and_then(|entity| project::project_of(&entity));
        if let Some(project) = project {
            self.drain_of(&project);
        }
    }

    fn drain_of(&mut self, project: &Subject) {
        if project::has_drained(self.state, project) {
            self.record(Kind::PauseDrained, project.clone(), json!({}));
        }
    }

    /// Ends a debate if the reply that was just recorded is its last.
    fn judge(&mut self) {
        let debate = linked(Kind::ReviewRecorded, &self.cause.payload).and_then(|debate| self.entity(&debate));
        let verdict = debate.as_ref().and_then(|debate| review::verdict(self.state, debate));
        if let (Some(debate), Some(verdict)) = (debate, verdict) {
            self.record(verdict, debate.subject, json!({}));
        }
    }

    /// Closes the open debate when its mission ends, or when a new mission starts.
    fn close_debate(&mut self) {
        let mission = self.subject.clone();
        let mission_starts = self.cause.event_type.known() == Some(Kind::MissionStarted);
        let old = |debate: &Entity| mission_starts != (debate.as_debate().mission().as_ref() == Some(&mission));
        if let Some(debate) = review::open(self.state).filter(old) {
            self.record(Kind::DebateClosed, debate.subject, json!({}));
        }
    }

    /// Aborts every task in progress.
    fn abort_everything(&mut self) {
        let why = self.cause.payload.get("reason").and_then(Value::as_str).filter(|_| self.is_current());
        let reason = json!({"reason": with_reason(rules::STOP_REASON.to_owned(), why)});
        for phase in [Phase::Assigned, Phase::Running, Phase::Retrying] {
            for task in self.state.in_phase(EntityType::Task, phase, AFFECTED_TASKS_MAX) {
                self.end_run(&task, Kind::RunCrashed, reason.clone());
                self.record(Kind::TaskAborted, task.subject, reason.clone());
            }
        }
    }
}

/// What the proposal of a task has in common with that of its next attempt: its title, priority and steps, and these
/// members. Earlier versions did not repeat its description, so an attempt without one has that of the attempt before it.
fn repeated(task: &Entity, members: &[&str]) -> Map<String, Value> {
    let mut payload = Map::new();
    for member in ["title", "priority"].iter().chain(members) {
        payload.extend(task.facts().get(*member).map(|value| ((*member).to_owned(), value.clone())));
    }
    let steps: Vec<String> = task.as_task().steps().into_iter().map(|step| step.text).collect();
    if !steps.is_empty() {
        payload.insert("steps".to_owned(), steps.into());
    }
    payload
}

/// A statement, with the reason that somebody gave for it.
fn with_reason(what: String, why: Option<&str>) -> String {
    match why {
        // One reason may have thousands of consequences.
        Some(why) => format!("{what}: {}", text::cut(why, limits::FACT_MAX_CHARS)),
        None => what,
    }
}
