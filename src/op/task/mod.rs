//! hf-task: tasks, from proposal to end.

mod change;
mod explain;
mod notes;
mod waiting;

use std::borrow::Cow;

use serde_json::{Value, json};

use super::constraint::{self, ActiveConstraints};
use super::{Context, Recorded, job, require};
use crate::base::actor::ActorKind;
use crate::base::{EntityType, Error, Reason, Result, Subject, Timestamp};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::op::kernel::{Added, Transaction, is_stopped};
use crate::policy::settings::Setting;
use crate::policy::{Request, project, ready, rules};
use crate::state::{Entity, State};

pub use change::{
    AssignRequest, EditTaskRequest, MarkStepOutcome, MarkStepRequest, NoteTaskRequest, assign, edit, mark_step, note,
};
pub use explain::{ExplainOutcome, ExplainRequest, explain};
pub use notes::{TaskNote, TaskNotes, WorkBrief, brief};
pub use waiting::TaskStanding;

/// A task to propose.
#[derive(Clone, Debug, Default)]
pub struct ProposeTaskRequest {
    /// A one-line title; default: that of the task it repeats.
    pub title: Option<String>,
    /// What it is about, in full sentences.
    pub description: Option<String>,
    /// Its steps, in order.
    pub steps: Vec<String>,
    /// One of `event::kind::TASK_PRIORITIES`; default: normal.
    pub priority: Option<String>,
    /// The requirement that it is for.
    pub requirement: Option<String>,
    /// The task that it repeats.
    pub rework_of: Option<String>,
    /// Tasks that have to succeed first.
    pub after: Vec<String>,
    /// Whether it requires approval by an operator.
    pub destructive: bool,
    /// How many times it is retried; default: from the settings.
    pub max_retries: Option<u64>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Proposes a task.
pub fn propose(ctx: &Context, request: ProposeTaskRequest) -> Result<Recorded> {
    let ProposeTaskRequest {
        title,
        description,
        steps,
        priority,
        requirement,
        rework_of,
        after,
        destructive,
        max_retries,
        key,
    } = request;
    let reworked = rework_of.map(|task| {
        with_view(&ctx.open()?, |_, state| {
            let subject = state.find(&task, EntityType::Task)?;
            Ok(state.entity(&subject).expect("it was resolved").into_owned())
        })
    });
    let reworked = reworked.transpose()?;
    let requirement = requirement.map(|r| require::find(ctx, &r, EntityType::Requirement)).transpose()?;
    if let Some(requirement) = &requirement {
        with_view(&ctx.open()?, |_, state| super::pause::check_same_project(ctx, state, requirement))?;
    }
    let after = after.iter().map(|task| require::find(ctx, task, EntityType::Task)).collect::<Result<Vec<_>>>()?;
    let mut payload = json!({
        "title": title,
        "description": description,
        "steps": if steps.is_empty() { Value::Null } else { json!(steps) },
        "priority": priority,
        "requirement_id": requirement,
        "project_id": super::pause::project_member(ctx.project.as_ref().filter(|_| requirement.is_none())),
        "after": if after.is_empty() { Value::Null } else { json!(after) },
        "destructive": destructive.then_some(true),
        "max_retries": max_retries,
    });
    if let Some(reworked) = &reworked {
        // What the caller does not say is as it was.
        for (member, value) in payload.as_object_mut().into_iter().flatten().filter(|(_, value)| value.is_null()) {
            *value = match member.as_str() {
                // The whole text is in an event; an attempt without a description has that of the attempt before it.
                "description" => Value::Null,
                "steps" => steps_of(reworked),
                member => reworked.facts().get(member).cloned().unwrap_or(Value::Null),
            };
        }
        payload["rework_of"] = reworked.subject.id().into();
        // It takes the place of the first attempt in the plan of its mission.
        if let Some(planned) = reworked.as_task().planned().filter(|_| is_of_running_mission(ctx, reworked)) {
            payload["planned"] = planned.clone().into();
            payload["of_mission"] = reworked.as_task().mission().map(|mission| mission.id().to_owned()).into();
        }
    }
    record_one(ctx, Kind::TaskProposed, None, payload, key)
}

/// Whether a task is part of a mission that goes on.
fn is_of_running_mission(ctx: &Context, task: &Entity) -> bool {
    let phase = |state: &State| task.as_task().mission().map(|mission| state.phase_of(&mission));
    ctx.open().and_then(|vault| with_view(&vault, |_, state| Ok(phase(state)))).ok().flatten() == Some(Phase::Running)
}

/// The steps of a task, for a payload.
fn steps_of(task: &Entity) -> Value {
    let steps: Vec<String> = task.as_task().steps().into_iter().map(|step| step.text).collect();
    if steps.is_empty() { Value::Null } else { json!(steps) }
}

/// A task to mark as ready.
#[derive(Clone, Debug, Default)]
pub struct ReadyRequest {
    /// The task.
    pub reference: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Marks a task as ready. Rarely needed: the reactor does so as soon as nothing blocks it.
pub fn ready(ctx: &Context, request: ReadyRequest) -> Result<Recorded> {
    record_one(ctx, Kind::TaskReady, Some(&request.reference), json!({}), request.key)
}

/// A task to abort.
#[derive(Clone, Debug, Default)]
pub struct AbortRequest {
    /// The task.
    pub reference: String,
    /// The reason.
    pub reason: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// An aborted task.
#[derive(Debug)]
pub struct AbortOutcome {
    pub recorded: Recorded,
    /// Processes of its job that could not be ended, as `PID NAME`.
    pub left: Vec<String>,
}

/// Aborts a task. If it is a job, waits until all of its processes have ended.
pub fn abort(ctx: &Context, request: AbortRequest) -> Result<AbortOutcome> {
    let AbortRequest { reference, reason, key } = request;
    let mut recorded = record_one(ctx, Kind::TaskAborted, Some(&reference), json!({"reason": reason}), key)?;
    let ended = recorded.entity.as_ref().map(|task| job::end_aborted(&ctx.open()?, task));
    // The abort is recorded: what fails now is only a warning.
    let left = ended.unwrap_or(Ok(Vec::new())).unwrap_or_else(|error| {
        recorded.warnings.push(format!("cannot end the processes of the job: {error}"));
        Vec::new()
    });
    Ok(AbortOutcome { recorded, left })
}

/// A task that failed.
#[derive(Clone, Debug, Default)]
pub struct FailRequest {
    /// The task.
    pub reference: String,
    /// Whether a retry may help: transient or permanent.
    pub class: String,
    /// The reason.
    pub reason: String,
    pub model: ModelCall,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records that a task failed. It is retried if the failure is transient, else aborted.
pub fn fail(ctx: &Context, request: FailRequest) -> Result<Recorded> {
    let FailRequest { reference, class, reason, model, key } = request;
    end(ctx, EndTaskRequest { reference, end: TaskEnd::Failed { class, reason }, start_first: false, model, key })
}

/// A task to claim.
#[derive(Clone, Debug, Default)]
pub struct ClaimRequest {
    /// The task; default: the next that is ready.
    pub reference: Option<String>,
    /// How long the claim lasts without a heartbeat; default: from the settings.
    pub lease_seconds: Option<u64>,
    /// Idempotency key.
    pub key: Option<String>,
}

#[derive(Debug)]
pub enum ClaimOutcome {
    Claimed {
        recorded: Box<Recorded>,
        /// When the claim expires; none if it does not.
        held_until: Option<Timestamp>,
        /// The constraints on the work.
        constraints: ActiveConstraints,
        /// What its holder has to know about it.
        brief: WorkBrief,
    },
    /// No task is ready; `waiting` tasks are blocked.
    NoTask {
        waiting: u64,
        /// A task that the caller holds.
        held: Option<Box<Entity>>,
        /// Whether that task waits for its project to be resumed.
        on_hold: bool,
    },
}

/// Claims a task, or the next that is ready. The lock makes sure that only one caller gets it.
pub fn claim(ctx: &Context, request: ClaimRequest) -> Result<ClaimOutcome> {
    let ClaimRequest { reference, lease_seconds, key } = request;
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let lease = lease_seconds.unwrap_or_else(|| tx.config.count(Setting::LeaseSeconds));
    let payload = json!({"holder": ctx.caller.actor.to_string(), "lease_seconds": lease});
    let mut request = Request { key, ..ctx.request(Kind::TaskAssigned, reference.as_deref(), payload) };
    if let Some(first) = tx.repeated(&request)? {
        // It may have been lost since.
        let task = first.entity.as_ref().map(|task| task.subject.clone());
        tx.settle(task.as_slice())?;
        let first = tx.repeated(&request)?.unwrap_or(first);
        let me = ctx.caller.actor.to_string();
        if let Some(lost) = first.entity.as_ref().and_then(|task| rules::lost_claim(tx.state(), task, &me)) {
            return Err(lost);
        }
        let held_until = first.entity.as_ref().and_then(|task| tx.moment().held_until(task));
        let constraints = constraint::active(tx.state());
        let brief = first.entity.as_ref().map(|task| brief(&*tx.log, tx.state(), task)).transpose()?;
        let brief = brief.unwrap_or_default();
        return Ok(ClaimOutcome::Claimed { recorded: Box::new(first), held_until, constraints, brief });
    }
    if is_stopped(tx.state()) {
        return Err(rules::stopped(tx.state()));
    }
    // If the project is paused, that is the answer, not that no task is ready.
    if ctx.caller.actor.kind == ActorKind::Agent && reference.is_none() {
        tx.membership.check(tx.state(), Kind::TaskAssigned, None)?;
    }
    if reference.is_none() {
        let project = ctx.project();
        project::check_may_start(tx.state(), &project, &ctx.caller.actor)?;
        // Tasks with an expired lease are free now, without waiting for the watchdog.
        tx.settle_claims(Some(&project))?;
        let Some(choice) = ready::next(tx.state(), Some(&project)) else {
            // What it holds in other projects may be overdue, too.
            tx.settle_agent(&ctx.caller.actor)?;
            let waiting = tx.state().tally().in_phase(EntityType::Task, Phase::Proposed);
            let mut held = tx.state().held_by(&ctx.caller.actor.to_string());
            held.retain(|task| !task.is_job());
            let goes_on = held.iter().position(|task| !ready::is_on_hold(tx.state(), task));
            let on_hold = goes_on.is_none();
            let held = held.into_iter().nth(goes_on.unwrap_or(0)).map(Box::new);
            return Ok(ClaimOutcome::NoTask { waiting, held, on_hold });
        };
        request.subject = Some(choice.task.subject.to_string());
        request.parents.push(choice.task.last_event);
        if let Some(constraint) = choice.constraint {
            request.parents.push(constraint.last_event);
            request.payload.insert("constraint_id".to_owned(), constraint.subject.id().into());
        }
    }
    let asked = tx.ask(request)?;
    let (_, task) = tx.entity_of(asked.id)?;
    let held_until = task.as_ref().and_then(|task| tx.moment().held_until(task));
    let brief = task.map(|task| brief(&*tx.log, tx.state(), &task)).transpose()?.unwrap_or_default();
    let constraints = constraint::active(tx.state());
    let recorded = Box::new(tx.finish(&[asked])?);
    Ok(ClaimOutcome::Claimed { recorded, held_until, constraints, brief })
}

/// A task to start.
#[derive(Clone, Debug, Default)]
pub struct StartTaskRequest {
    /// The task.
    pub reference: String,
    /// How long the run may take; default: from the settings.
    pub timeout_seconds: Option<u64>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// A started task.
#[derive(Debug)]
pub struct StartTaskOutcome {
    pub recorded: Recorded,
    /// How many constraints apply to the work.
    pub constraints: u64,
    pub task: Entity,
    /// The operator's note for its holder.
    pub handoff: Option<TaskNote>,
}

/// Starts a claimed task. Starting a running task again has no effect.
pub fn start(ctx: &Context, request: StartTaskRequest) -> Result<StartTaskOutcome> {
    let StartTaskRequest { reference, timeout_seconds, key } = request;
    let (mut constraints, mut started, mut handoff) = (0, None, None);
    let recorded = on_task(ctx, &reference, |tx, task| {
        constraints = constraint::active(tx.state()).total;
        started = Some(task.clone());
        handoff = TaskNotes::brief(&*tx.log, task)?.handoff;
        let run = task.as_task().last_run().and_then(|run| tx.state().entity(&run));
        let mine = task.as_task().recorded_holder().is_none_or(|holder| holder == ctx.caller.actor.to_string());
        if let Some(run) = run.filter(|run| run.phase == Phase::Running && mine && key.is_none()) {
            if ctx.caller.actor.kind == ActorKind::Agent {
                project::check_may_continue(tx.state(), task)?;
            }
            return Ok(vec![Added { id: run.first_event, already: true }]);
        }
        // Recorded with the run, so that a later change of the settings does not change what was promised.
        let limit = timeout_seconds.or_else(|| tx.config.limit(Setting::TaskTimeoutSeconds));
        let payload = json!({"task_id": task.subject.id(), "timeout_seconds": limit});
        let request = Request { key: key.clone(), ..ctx.request(Kind::RunStarted, None, payload) };
        match tx.repeated(&request)? {
            Some(first) => Ok(vec![Added { id: first.asked.id, already: true }]),
            None => Ok(vec![tx.ask(request)?]),
        }
    })?;
    let task = started.expect("the task was found before it was started");
    Ok(StartTaskOutcome { recorded, constraints, task, handoff })
}

/// A task that its holder still works on.
#[derive(Clone, Debug, Default)]
pub struct HeartbeatRequest {
    /// The task.
    pub reference: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records a heartbeat, which renews the claim.
pub fn heartbeat(ctx: &Context, request: HeartbeatRequest) -> Result<Recorded> {
    let HeartbeatRequest { reference, key } = request;
    on_task(ctx, &reference, |tx, task| {
        // In a paused project an agent may record a checkpoint, but not continue its work.
        if ctx.caller.actor.kind == ActorKind::Agent {
            project::check_may_continue(tx.state(), task)?;
        }
        let run = task.as_task().last_run().filter(|_| task.phase == Phase::Running);
        let (kind, subject) = match run {
            Some(run) => (Kind::Heartbeat, run),
            None => (Kind::ClaimRenewed, task.subject.clone()),
        };
        let beat = Request { key: key.clone(), ..ctx.request(kind, Some(&subject.to_string()), json!({})) };
        match tx.repeated(&beat)? {
            Some(first) => Ok(vec![Added { id: first.asked.id, already: true }]),
            None => Ok(vec![tx.ask(beat)?]),
        }
    })
}

/// A task that succeeded.
#[derive(Clone, Debug, Default)]
pub struct SucceedRequest {
    /// The task.
    pub reference: String,
    /// The result, in one line.
    pub summary: Option<String>,
    /// Why its open steps are not needed.
    pub skip: Option<String>,
    pub model: ModelCall,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records that a task succeeded.
pub fn succeed(ctx: &Context, request: SucceedRequest) -> Result<Recorded> {
    let SucceedRequest { reference, summary, skip, model, key } = request;
    end(ctx, EndTaskRequest { reference, end: TaskEnd::Succeeded { summary, skip }, start_first: false, model, key })
}

/// What a run asked a language model, what came back, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelCall {
    /// The artifact with the prompt.
    pub prompt: Option<String>,
    /// The artifact with the response.
    pub response: Option<String>,
    pub tokens: Option<TokenUsage>,
}

/// The number of tokens of a prompt and of its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenUsage {
    pub prompt: u64,
    pub completion: u64,
}

/// How a task ended.
#[derive(Clone, Debug)]
pub enum TaskEnd {
    /// `skip`: why its open steps are not needed.
    Succeeded {
        summary: Option<String>,
        skip: Option<String>,
    },
    Failed {
        class: String,
        reason: String,
    },
}

/// The end of a task.
#[derive(Clone, Debug)]
pub struct EndTaskRequest {
    /// The task.
    pub reference: String,
    /// How it ended.
    pub end: TaskEnd,
    /// Whether to start it first, so that the work has a run.
    pub start_first: bool,
    pub model: ModelCall,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records how a task ended.
pub fn end(ctx: &Context, request: EndTaskRequest) -> Result<Recorded> {
    let EndTaskRequest { reference, end, start_first, model, key } = request;
    on_task(ctx, &reference, |tx, task| {
        let subject = task.subject.to_string();
        let (kind, payload) = match &end {
            TaskEnd::Succeeded { skip, .. } => (Kind::TaskSucceeded, json!({"skipped": skip})),
            TaskEnd::Failed { class, reason } => (Kind::TaskFailed, json!({"error_class": class, "reason": reason})),
        };
        let done = Request { key: key.clone(), ..ctx.request(kind, Some(&subject), payload) };
        if let Some(first) = tx.repeated(&done)? {
            return Ok(vec![Added { id: first.asked.id, already: true }]);
        }
        if start_first {
            tx.ask(ctx.request(Kind::RunStarted, None, json!({"task_id": task.subject.id()})))?;
        }
        let (success, summary) = match &end {
            TaskEnd::Succeeded { summary, .. } => (true, summary.as_deref()),
            TaskEnd::Failed { .. } => (false, None),
        };
        let has_model = model != ModelCall::default();
        // Without anything to add, the end of the run is a consequence of the failure.
        let finished = (success || has_model)
            && finish_run(ctx, tx, &task.subject, json!({"success": success, "summary": summary}), &model)?;
        let ended = tx.ask(done)?;
        if has_model && !finished && !ended.already {
            let why = format!("the run of {} has ended; nothing can be added to it", task.name());
            return Err(Error::refused(Reason::IllegalTransition, why));
        }
        Ok(vec![ended])
    })
}

/// Ends the run of a task with what is known about it. Returns false if the run has ended, or if there is none.
fn finish_run(
    ctx: &Context,
    tx: &mut Transaction<'_>,
    task: &Subject,
    mut finished: Value,
    model: &ModelCall,
) -> Result<bool> {
    let now = tx.state().entity(task).filter(|task| task.phase == Phase::Running);
    let run = now.and_then(|task| tx.state().entity(&task.as_task().last_run()?).map(Cow::into_owned));
    let Some(run) = run.filter(|run| run.phase == Phase::Running) else { return Ok(false) };
    let mut parents = Vec::new();
    for (member, artifact) in [("prompt_artifact_id", &model.prompt), ("response_artifact_id", &model.response)] {
        let Some(reference) = artifact else { continue };
        let subject = tx.state().find(reference, EntityType::Artifact)?;
        finished[member] = subject.id().into();
        parents.extend(tx.state().entity(&subject).map(|artifact| artifact.last_event));
    }
    if let Some(TokenUsage { prompt, completion }) = model.tokens {
        finished["token_usage"] = json!({"prompt": prompt, "completion": completion});
    }
    // What the run made is among the causes of its end.
    if !parents.is_empty() {
        parents.insert(0, run.last_event);
        parents.dedup();
    }
    let request = ctx.request(Kind::RunFinished, Some(&run.subject.to_string()), finished);
    tx.ask(Request { parents, ..request }).map(|_| true)
}

/// Opens a transaction, finds the task, and commits what `act` requests for it.
fn on_task(
    ctx: &Context,
    reference: &str,
    act: impl FnOnce(&mut Transaction<'_>, &Entity) -> Result<Vec<Added>>,
) -> Result<Recorded> {
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let subject = tx.state().find(reference, EntityType::Task)?;
    // First, so that a caller whose lease has expired learns of that.
    tx.settle(std::slice::from_ref(&subject))?;
    let task = tx.state().entity(&subject).expect("it was resolved").into_owned();
    let asked = act(&mut tx, &task);
    let asked = asked.map_err(|error| tx.noticed(error, project::project_of(&task).as_ref()))?;
    tx.finish(&asked)
}

/// A task to archive.
#[derive(Clone, Debug, Default)]
pub struct ArchiveTaskRequest {
    /// The task.
    pub reference: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Archives a task that has ended: it leaves the projections, with its runs, and can still be shown. For an operator;
/// the watchdog does the same after a while.
pub fn archive(ctx: &Context, request: ArchiveTaskRequest) -> Result<Recorded> {
    ctx.check_operator("archiving a task")?;
    record_one(ctx, Kind::TaskArchived, Some(&request.reference), json!({}), request.key)
}
