//! Reactions: the consequences that follow an event by themselves, recorded in the same batch.
//!
//! Every reaction looks at the state it finds and does only what is still missing. So after a batch
//! nothing is left to do, and the audit can ask the same question of a log.

use serde_json::{Map, Value, json};

use super::approval::{self, OPEN, Question};
use super::settings::{Setting, Settings};
use super::{project, ready, review, rules};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Subject, Timestamp, Ulid, limits, text};
use crate::event::{Draft, Event, Kind};
use crate::machine::{self, Phase};
use crate::state::{Entity, State, linked};

/// Tasks that one event can reach.
const REACHED_MAX: usize = limits::BATCH_MAX_EVENTS;

/// The reason of a failure whose run died without a word.
const CRASH: &str = "crash";

/// Who acts when something follows by itself.
pub const REACTOR: &str = "reactor";

/// What follows from an event, in the state behind it. `mint` gives ids for what is made.
pub fn react(state: &State, rules: &Settings, cause: &Event, mint: &mut dyn FnMut() -> Ulid) -> Vec<Draft> {
    let (Some(kind), Ok(subject)) = (cause.event_type.known(), Subject::parse(&cause.subject)) else {
        return Vec::new();
    };
    let mut reactor = Reactor { state, rules, cause, subject, mint, drafts: Vec::new() };
    reactor.follow(kind);
    reactor.follow_branches(kind);
    reactor.drafts
}

/// How many entities what follows from an event makes at most.
pub fn makes_at_most(cause: &Event) -> usize {
    match cause.event_type.known() {
        // A thread, and two branches for every acquaintance.
        Some(Kind::BranchCreated) => 1 + 2 * limits::PERSONAS_MAX_COUNT,
        _ => 2,
    }
}

pub(super) struct Reactor<'a> {
    pub(super) state: &'a State,
    rules: &'a Settings,
    pub(super) cause: &'a Event,
    pub(super) subject: Subject,
    mint: &'a mut dyn FnMut() -> Ulid,
    pub(super) drafts: Vec<Draft>,
}

impl Reactor<'_> {
    fn follow(&mut self, kind: Kind) {
        match kind {
            Kind::RequirementAnalyzed => self.ask_about_requirement("Build"),
            Kind::OscillationDetected => self.ask_about_requirement("It went back and forth too often. Go on with"),
            Kind::RequirementApproved => self.ready_tasks_of(&self.subject.clone(), EntityType::Task),
            Kind::RequirementRejected | Kind::RequirementSuperseded => {
                self.close_questions(Question::Requirement, &self.subject.clone());
            }
            Kind::DecisionApproved => self.decided(true),
            Kind::DecisionRejected => self.decided(false),
            Kind::ApprovalTimedOut if self.rules.rejects_on_timeout() => {
                let rationale = json!({"rationale": "nobody answered in time"});
                self.say_if_legal(Kind::DecisionRejected, &self.subject.clone(), rationale);
            }
            Kind::TaskProposed => self.task_proposed(),
            Kind::TaskReady | Kind::ClaimExpired => self.assign_next(),
            // There may be room for one more.
            Kind::TaskAssigned if self.cause.actor == Actor::core(REACTOR).to_string() => self.assign_next(),
            Kind::TaskRetrying => self.assign_again(),
            Kind::TaskFailed => self.task_failed(),
            Kind::TaskSucceeded => self.task_ended(Kind::RunFinished, json!({"success": true})),
            Kind::TaskAborted => self.task_ended(Kind::RunCrashed, json!({"reason": "aborted"})),
            Kind::RunTimedOut => self.run_lost("timeout"),
            Kind::RunCrashed => self.run_lost(CRASH),
            Kind::ArtifactInvalidated => self.rework(),
            Kind::EmergencyStopIssued => self.abort_everything(),
            Kind::SystemResumed => self.assign_next(),
            Kind::ReviewRecorded => self.judge(),
            Kind::ProjectPaused => self.ask_to_leave(),
            Kind::ProjectResumed => self.assign_next(),
            Kind::ProjectArchived => self.close_project(),
            Kind::SessionEnded | Kind::SessionExpired => self.drain(),
            Kind::MissionStarted | Kind::MissionPassed | Kind::MissionFailed => self.close_debate(),
            _ => {}
        }
    }

    /// Adds an event with the cause as its parent.
    pub(super) fn say(&mut self, kind: Kind, subject: Subject, payload: Value) {
        let Value::Object(payload) = payload else { unreachable!("payloads are objects") };
        let (actor, parents) = (Actor::core(REACTOR), vec![self.cause.id]);
        self.drafts.push(Draft { kind, subject, actor, parents, key: None, payload });
    }

    fn say_if_legal(&mut self, kind: Kind, subject: &Subject, payload: Value) {
        if machine::step(subject.entity, self.state.phase_of(subject), kind).is_some() {
            self.say(kind, subject.clone(), payload);
        }
    }

    pub(super) fn entity(&self, subject: &Subject) -> Option<Entity> {
        self.state.entity(subject).map(|entity| entity.into_owned())
    }

    pub(super) fn new_subject(&mut self, entity: EntityType) -> Subject {
        Subject::new(entity, EntityId::parse(&(self.mint)().to_string()).expect("a ULID is an id"))
    }

    /// Asks an operator, unless he was asked about exactly this before. An older question is closed.
    fn ask(&mut self, question: Question, target: &Entity, summary: &str) {
        let asked = approval::decisions(self.state, question, &target.subject, Phase::ALL);
        if asked.iter().any(|decision| approval::still_fits(self.state, decision)) {
            return;
        }
        let subject = self.new_subject(EntityType::Decision);
        for old in asked.iter().filter(|decision| OPEN.contains(&decision.phase)) {
            self.say(Kind::DecisionSuperseded, old.subject.clone(), json!({}));
        }
        // Of a command, the operator sees the command: a title says what its author likes.
        let command = self.cause.payload.get("command").and_then(Value::as_array);
        let words: Option<Vec<&str>> = command.map(|words| words.iter().filter_map(Value::as_str).collect());
        let title = words.map_or_else(|| target.title().unwrap_or_default().to_owned(), |words| words.join(" "));
        let title = text::cut(&title, limits::SUMMARY_MAX_CHARS);
        let variables = self.cause.payload.get("variables").and_then(Value::as_array).into_iter().flatten();
        let variables: Vec<&str> = variables.filter_map(Value::as_str).collect();
        let title = match variables.is_empty() {
            true => title,
            false => format!("{title} with {}", text::cut(&variables.join(", "), limits::SUMMARY_MAX_CHARS)),
        };
        let hash = approval::bound_to(self.state, question, &target.subject, None);
        let payload = json!({
            "kind": question.as_str(),
            "target": target.subject.to_string(),
            "summary": format!("{summary} {}, {title}?", target.name()),
            "target_hash": hash,
        });
        self.say(Kind::DecisionRequested, subject, payload);
    }

    /// Questions about something that is over need no answer.
    fn close_questions(&mut self, question: Question, target: &Subject) {
        for open in approval::decisions(self.state, question, target, OPEN) {
            self.say(Kind::DecisionSuperseded, open.subject, json!({}));
        }
    }

    fn ask_about_requirement(&mut self, summary: &str) {
        let waits = |e: &Entity| matches!(e.phase, Phase::Analyzed | Phase::Blocked);
        if let Some(requirement) = self.entity(&self.subject.clone()).filter(waits) {
            self.ask(Question::Requirement, &requirement, summary);
        }
    }

    /// What an operator's answer leads to.
    fn decided(&mut self, yes: bool) {
        let Some(decision) = self.entity(&self.subject.clone()) else { return };
        let target = decision.as_decision().target();
        let (Some(question), Some(target)) = (Question::of(&decision), target) else { return };
        let id = json!({"decision_id": decision.subject.id()});
        match (question, yes) {
            // Asked again after a batch, what was approved may have been analysed anew since.
            (Question::Requirement, true) if !approval::still_fits(self.state, &decision) => {}
            (Question::Requirement, true) => self.say_if_legal(Kind::RequirementApproved, &target, id),
            (Question::Requirement, false) => {
                let reason = decision.as_decision().rationale().unwrap_or("an operator said no");
                self.say_if_legal(Kind::RequirementRejected, &target, json!({"reason": reason}));
            }
            (Question::Destructive, true) => self.ready_if_possible(&target),
            (Question::Destructive, false) => {
                self.say_if_legal(Kind::TaskAborted, &target, json!({"reason": "an operator said no"}));
            }
            (Question::Constraint, true) => {
                if let Some((change, mut members)) = approval::change(decision.as_decision().change()) {
                    members.insert("decision_id".to_owned(), decision.subject.id().into());
                    self.say_if_legal(change.kind(), &target, Value::Object(members));
                }
            }
            (Question::Constraint, false) => {}
        }
    }

    fn task_proposed(&mut self) {
        let Some(task) = self.entity(&self.subject.clone()) else { return };
        let requirement = linked(Kind::TaskProposed, &self.cause.payload).and_then(|r| self.entity(&r));
        if let Some(requirement) =
            requirement.filter(|r| r.as_requirement().returns() > self.rules.count(Setting::MaxOscillations))
        {
            let count = json!({"count": requirement.as_requirement().returns()});
            if machine::step(EntityType::Requirement, requirement.phase, Kind::OscillationDetected).is_some() {
                return self.say(Kind::OscillationDetected, requirement.subject, count);
            }
        }
        let waits = rules::waits_for(self.state, &task);
        let gone = waits.iter().find_map(|wait| match wait {
            rules::Wait::Dependency(other) if other.phase == Phase::Aborted => Some(other),
            _ => None,
        });
        if let Some(gone) = gone.filter(|_| task.phase == Phase::Proposed && task.is_job()) {
            return self.abort_behind(&task, gone);
        }
        if waits.contains(&rules::Wait::Approval) {
            self.ask(Question::Destructive, &task, "Allow the destructive");
        }
        self.ready_if_possible(&self.subject.clone());
    }

    fn ready_if_possible(&mut self, subject: &Subject) {
        let waits = |task: &Entity| task.phase == Phase::Proposed && rules::waits_for(self.state, task).is_empty();
        if self.entity(subject).is_some_and(|task| waits(&task)) {
            self.say(Kind::TaskReady, subject.clone(), json!({}));
        }
    }

    /// The tasks that named something when they were made, and waited for it.
    fn ready_tasks_of(&mut self, subject: &Subject, entity: EntityType) {
        for task in self.state.made_for(subject, entity) {
            self.ready_if_possible(&task.subject);
        }
    }

    /// With `auto_assign`, gives ready tasks out while there is room.
    fn assign_next(&mut self) {
        let room = ready::active(self.state) < self.rules.max_concurrent_tasks();
        let stopped = self.state.phase_of(&Subject::SYSTEM) == Phase::Stopped;
        if !self.rules.flag(Setting::AutoAssign) || !room || stopped {
            return;
        }
        if let Some((task, constraint)) = ready::next(self.state, None) {
            self.say(Kind::TaskAssigned, task.subject, json!({}));
            let why = [Some(task.last_event), constraint.map(|c| c.last_event)];
            let parents = &mut self.drafts.last_mut().expect("it was just added").parents;
            parents.extend(why.into_iter().flatten().filter(|id| *id != self.cause.id));
        }
    }

    /// The holder gets it back, with a fresh lease.
    fn assign_again(&mut self) {
        let Some(task) = self.entity(&self.subject.clone()).filter(|task| task.phase == Phase::Retrying) else {
            return;
        };
        // Whoever fell silent does not keep it; anybody may take it.
        if self.cause.payload.get("released") == Some(&Value::Bool(true)) {
            return self.say(Kind::TaskReady, task.subject, json!({}));
        }
        let mut payload = Map::new();
        for member in ["holder", "lease_seconds", "job"] {
            payload.extend(task.facts().get(member).map(|value| (member.to_owned(), value.clone())));
        }
        self.say(Kind::TaskAssigned, task.subject, Value::Object(payload));
    }

    fn task_failed(&mut self) {
        let Some(task) = self.entity(&self.subject.clone()).filter(|task| task.phase == Phase::Failed) else { return };
        self.end_run(&task, Kind::RunFinished, json!({"success": false}));
        self.drain();
        let text = |member: &str| self.cause.payload.get(member).and_then(Value::as_str).unwrap_or_default();
        let most = task.as_task().max_retries().unwrap_or_else(|| self.rules.count(Setting::MaxRetries));
        let (transient, tried) = (text("error_class") == "transient", task.as_task().retry_count());
        let project = project::of(&task);
        let archived = project.is_some_and(|project| project::standing(self.state, &project) == Phase::Archived);
        if transient && tried < most && !archived {
            let mut retry = json!({"attempt": tried + 1, "of": most});
            if let Some(released) = self.cause.payload.get("released") {
                retry["released"] = released.clone();
            }
            return self.say(Kind::TaskRetrying, task.subject, retry);
        }
        let failure = text("reason").to_owned();
        let reason = match transient && tried > 0 {
            true => format!("{failure}; tried again {tried} times, which is the most"),
            false => failure,
        };
        self.say(Kind::TaskAborted, task.subject.clone(), json!({"reason": reason}));
        // A job's caller waits for its end himself, and a rework is on its way; nobody else can keep
        // a failure from people.
        let quiet = self.cause.payload.get("escalate") == Some(&Value::Bool(false));
        let may_be = task.is_job() || self.cause.actor == Actor::core(REACTOR).to_string();
        if !(quiet && may_be) {
            self.say(Kind::EscalationRequired, task.subject, json!({"reason": reason}));
        }
    }

    /// Whether the toolkit itself found the cause. Versions that recorded no settings made no difference.
    fn cause_is_core(&self) -> bool {
        Actor::parse(&self.cause.actor).is_ok_and(|actor| actor.kind == ActorKind::Core)
    }

    /// Ends the run that a task's end leaves behind.
    fn end_run(&mut self, task: &Entity, kind: Kind, payload: Value) {
        let run = task.as_task().last_run();
        if let Some(run) = run.filter(|run| self.state.phase_of(run) == Phase::Running) {
            self.say(kind, run, payload);
        }
    }

    fn task_ended(&mut self, run_ends: Kind, payload: Value) {
        let Some(task) = self.entity(&self.subject.clone()) else { return };
        self.end_run(&task, run_ends, payload);
        self.drain();
        if task.phase == Phase::Succeeded {
            self.ready_tasks_of(&task.subject, EntityType::Task);
            // Whoever waits for a task that was done anew waits for this one.
            let mut before = task.as_task().rework_of();
            while let Some(subject) = before {
                self.ready_tasks_of(&subject, EntityType::Task);
                before = self.entity(&subject).and_then(|task| task.as_task().rework_of());
            }
        }
        if task.phase == Phase::Aborted {
            self.abort_jobs_behind(&task);
        }
        self.close_questions(Question::Destructive, &task.subject);
        let requirement = task.as_task().requirement().and_then(|r| self.entity(&r));
        let done = |r: &Entity| r.as_requirement().open_tasks() == 0 && r.as_requirement().succeeded_tasks() > 0;
        if let Some(requirement) = requirement.filter(|r| r.phase == Phase::Approved && done(r)) {
            self.say(Kind::RequirementImplemented, requirement.subject, json!({}));
        }
        self.assign_next();
    }

    /// A job that waits for the success of another will never be run if there is none.
    fn abort_jobs_behind(&mut self, task: &Entity) {
        let made = self.state.made_for(&task.subject, EntityType::Task);
        if made.iter().any(|other| other.as_task().rework_of().as_ref() == Some(&task.subject)) {
            return;
        }
        for job in made.iter().filter(|job| job.phase == Phase::Proposed && job.is_job()) {
            self.abort_behind(job, task);
        }
    }

    fn abort_behind(&mut self, job: &Entity, task: &Entity) {
        let reason = format!("{}, which it waited for, was aborted", task.name());
        self.say(Kind::TaskAborted, job.subject.clone(), json!({"reason": reason}));
    }

    /// A run that died takes its task with it, if that is still running.
    fn run_lost(&mut self, reason: &str) {
        let task = self.entity(&self.subject.clone()).and_then(|run| {
            let task = self.entity(&run.as_run().task()?)?;
            (task.phase == Phase::Running && task.as_task().last_run().as_ref() == Some(&run.subject)).then_some(task)
        });
        let Some(task) = task else { return };
        let said = |member: &str| self.cause.payload.get(member);
        let class = if said("transient") == Some(&Value::Bool(false)) { "permanent" } else { "transient" };
        // A crash may have said why; silence is always a time-out.
        let why = said("reason").and_then(Value::as_str).filter(|_| reason == CRASH).unwrap_or(reason);
        let mut payload = json!({"error_class": class, "reason": why});
        // A failure that its holder did not report itself is silence.
        if self.cause_is_core() && !task.is_job() && self.state.settings().is_some() {
            payload["released"] = true.into();
        }
        if let Some(escalate) = said("escalate") {
            payload["escalate"] = escalate.clone();
        }
        self.say(Kind::TaskFailed, task.subject, payload);
    }

    /// What was built is not good: the task failed, and the same is proposed anew.
    fn rework(&mut self) {
        let task = self.entity(&self.subject.clone()).and_then(|a| self.entity(&a.as_artifact().task()?));
        let Some(task) = task.filter(|task| matches!(task.phase, Phase::Running | Phase::Succeeded)) else { return };
        // Asked again after the fact, there is a successor already.
        let again = |t: &Entity| t.as_task().rework_of().as_ref() == Some(&task.subject);
        if self.state.made_for(&task.subject, EntityType::Task).iter().any(|t| again(t) && t.phase != Phase::Aborted) {
            return;
        }
        if task.phase == Phase::Running {
            let failed = json!({"error_class": "permanent", "reason": "rework", "escalate": false});
            self.say(Kind::TaskFailed, task.subject.clone(), failed);
        }
        let mut payload = Map::new();
        for member in ["title", "requirement_id", "project_id", "after", "destructive", "max_retries"] {
            payload.extend(task.facts().get(member).map(|value| (member.to_owned(), value.clone())));
        }
        payload.insert("rework_of".to_owned(), task.subject.id().into());
        let subject = self.new_subject(EntityType::Task);
        self.say(Kind::TaskProposed, subject, Value::Object(payload));
    }

    /// Whoever is logged in has a little time to tidy up.
    fn ask_to_leave(&mut self) {
        let seconds = self.cause.payload.get("grace_seconds").and_then(Value::as_u64).unwrap_or(0);
        let until = Timestamp(self.cause.timestamp.0.saturating_add_unsigned(seconds));
        for session in project::sessions(self.state, &self.subject.clone()) {
            // One that ends further away than a time can be written is cut like any other.
            if session.as_session().expires_at().is_none_or(|expires| expires > until) {
                self.say(Kind::SessionCut, session.subject, json!({"seconds": seconds}));
            }
        }
        self.drain_of(&self.subject.clone());
    }

    /// Nobody is left in it, nobody holds anything of it, and no job waits for what will never be. A job
    /// that runs ends by itself.
    fn close_project(&mut self) {
        let archived = json!({"reason": "archived"});
        for session in project::sessions(self.state, &self.subject.clone()) {
            self.say(Kind::SessionEnded, session.subject, archived.clone());
        }
        for at in [Phase::Proposed, Phase::Ready, Phase::Assigned, Phase::Running, Phase::Retrying] {
            for task in self.state.in_phase(EntityType::Task, at, REACHED_MAX) {
                let given_up = match task.is_job() {
                    true => at != Phase::Running,
                    false => !matches!(at, Phase::Proposed | Phase::Ready),
                };
                if given_up && project::of(&task).as_ref() == Some(&self.subject) {
                    self.say(Kind::TaskAborted, task.subject, archived.clone());
                }
            }
        }
    }

    /// Whatever ends may be the last that a paused project waited for.
    fn drain(&mut self) {
        let project = self.entity(&self.subject.clone()).and_then(|entity| project::of(&entity));
        if let Some(project) = project {
            self.drain_of(&project);
        }
    }

    fn drain_of(&mut self, project: &Subject) {
        if project::has_drained(self.state, project) {
            self.say(Kind::PauseDrained, project.clone(), json!({}));
        }
    }

    /// A reply can be the last one of its debate.
    fn judge(&mut self) {
        let debate = linked(Kind::ReviewRecorded, &self.cause.payload).and_then(|debate| self.entity(&debate));
        let verdict = debate.as_ref().and_then(|debate| review::verdict(self.state, debate));
        if let (Some(debate), Some(verdict)) = (debate, verdict) {
            self.say(verdict, debate.subject, json!({}));
        }
    }

    /// What reviewers talked about before is not what comes now.
    fn close_debate(&mut self) {
        let mission = self.subject.clone();
        let begins = self.cause.event_type.known() == Some(Kind::MissionStarted);
        let old = |debate: &Entity| begins != (debate.as_debate().mission().as_ref() == Some(&mission));
        if let Some(debate) = review::open(self.state).filter(old) {
            self.say(Kind::DebateClosed, debate.subject, json!({}));
        }
    }

    /// Everything that somebody is at ends here.
    fn abort_everything(&mut self) {
        for at in [Phase::Assigned, Phase::Running, Phase::Retrying] {
            for task in self.state.in_phase(EntityType::Task, at, REACHED_MAX) {
                self.end_run(&task, Kind::RunCrashed, json!({"reason": "emergency_stop"}));
                self.say(Kind::TaskAborted, task.subject, json!({"reason": "emergency_stop"}));
            }
        }
    }
}
