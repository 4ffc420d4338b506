//! hf-task: work, from its proposal to its end.

mod explain;

use serde_json::{Map, Value, json};

use super::append::{finish, repeated};
use super::desk::{Asked, Desk};
use super::project::with_view;
use super::{AppendOutcome, Env, record_one, require};
use crate::base::actor::ActorKind;
use crate::base::{EntityId, EntityType, Result};
use crate::event::Kind;
use crate::machine::State as At;
use crate::policy::{Request, overdue, project, ready, rules};
use crate::state::Entity;
use crate::vault::config::Setting;

pub use explain::{ExplainOutcome, explain};

/// A piece of work that somebody wants done.
#[derive(Debug, Default)]
pub struct ProposeRequest {
    pub title: String,
    pub requirement: Option<String>,
    /// References to tasks that have to succeed first.
    pub after: Vec<String>,
    /// Whether an operator has to allow it.
    pub destructive: bool,
    pub max_retries: Option<u64>,
}

pub fn propose(env: &Env, request: ProposeRequest, key: Option<String>) -> Result<AppendOutcome> {
    let ProposeRequest { title, requirement, after, destructive, max_retries } = request;
    let requirement = requirement.map(|r| require::find(env, &r, EntityType::Requirement)).transpose()?;
    if let Some(requirement) = &requirement {
        with_view(&env.open()?, |_, state| super::pause::check_same(env, state, requirement))?;
    }
    let after = after.iter().map(|task| require::find(env, task, EntityType::Task)).collect::<Result<Vec<_>>>()?;
    let payload = json!({
        "title": title,
        "requirement_id": requirement,
        "project_id": super::pause::member(env.project.as_ref().filter(|_| requirement.is_none())),
        "after": if after.is_empty() { Value::Null } else { json!(after) },
        "destructive": destructive.then_some(true),
        "max_retries": max_retries,
    });
    record_one(env, Kind::TaskProposed, None, payload, key)
}

/// Says that nothing stands in its way; the reactor says so by itself as soon as it is true.
pub fn ready(env: &Env, reference: &str, key: Option<String>) -> Result<AppendOutcome> {
    record_one(env, Kind::TaskReady, Some(reference), json!({}), key)
}

pub fn abort(env: &Env, reference: &str, reason: Option<String>, key: Option<String>) -> Result<AppendOutcome> {
    record_one(env, Kind::TaskAborted, Some(reference), json!({"reason": reason}), key)
}

/// It failed: tried again if the cause may pass, given up if not.
pub fn fail(env: &Env, reference: &str, class: &str, reason: &str, key: Option<String>) -> Result<AppendOutcome> {
    let failed = End::Failed { class: class.to_owned(), reason: reason.to_owned() };
    end(env, reference, failed, false, key)
}

#[derive(Debug)]
pub enum ClaimOutcome {
    Claimed(Box<AppendOutcome>),
    /// Nothing can be taken; so many wait for something.
    NoTask {
        waiting: u64,
    },
}

/// Takes a task, or the next that is ready: one winner, decided under the lock.
pub fn claim(env: &Env, reference: Option<&str>, lease: Option<u64>, key: Option<String>) -> Result<ClaimOutcome> {
    let vault = env.open()?;
    let mut desk = Desk::open(env, &vault, false)?;
    let lease = lease.unwrap_or_else(|| desk.config.count(Setting::LeaseSeconds));
    let payload = json!({"holder": env.actor.to_string(), "lease_seconds": lease});
    let mut request = Request { key, ..request(env, Kind::TaskAssigned, reference, payload) };
    if let Some(first) = repeated(&desk, &request)? {
        return Ok(ClaimOutcome::Claimed(Box::new(first)));
    }
    if super::append::is_stopped(desk.state()) {
        return Err(rules::stopped(desk.state()));
    }
    // Whose project is paused is told so, not that there is nothing to do.
    if env.actor.kind == ActorKind::Agent && reference.is_none() {
        desk.seat.check(desk.state(), Kind::TaskAssigned, None)?;
    }
    // Whoever let his lease pass need not be waited for until a watchdog comes by.
    for late in overdue::leases(desk.state(), env.now.timestamp(), None) {
        desk.add(late.draft())?;
    }
    if reference.is_none() {
        let project = env.project.as_ref().map(project::subject);
        let Some((task, constraint)) = ready::next(desk.state(), project.as_ref()) else {
            let waiting = desk.state().tally().in_state(EntityType::Task, At::Proposed);
            return Ok(ClaimOutcome::NoTask { waiting });
        };
        request.subject = Some(task.subject.to_string());
        request.parents = [Some(task.last_event), constraint.map(|c| c.last_event)].into_iter().flatten().collect();
    }
    let asked = desk.ask(request)?;
    finish(&vault, desk, &[asked]).map(|done| ClaimOutcome::Claimed(Box::new(done)))
}

/// Gives a task to somebody, who then holds it: a person's word.
pub fn assign(env: &Env, reference: &str, agent: &str, key: Option<String>) -> Result<AppendOutcome> {
    let agent = EntityId::parse(agent)?;
    let vault = env.open()?;
    let mut desk = Desk::open(env, &vault, false)?;
    let lease = desk.config.count(Setting::LeaseSeconds);
    let payload = json!({"holder": format!("agent:{agent}"), "lease_seconds": lease});
    let asked = Request { key, ..request(env, Kind::TaskAssigned, Some(reference), payload) };
    if let Some(first) = repeated(&desk, &asked)? {
        return Ok(first);
    }
    let asked = desk.ask(asked)?;
    finish(&vault, desk, &[asked])
}

/// Begins to work on a claimed task. One that is under way already stays so.
pub fn start(env: &Env, reference: &str, timeout: Option<u64>, key: Option<String>) -> Result<AppendOutcome> {
    on_task(env, reference, |desk, task| {
        let run = task.named("last_run_id", EntityType::Run).and_then(|run| desk.state().entity(&run));
        let mine = task.text("holder").is_none_or(|holder| holder == env.actor.to_string());
        if let Some(run) = run.filter(|run| run.state == At::Running && mine && key.is_none()) {
            if env.actor.kind == ActorKind::Agent {
                project::check_going_on(desk.state(), task)?;
            }
            return Ok(vec![Asked { id: run.first_event, held: true }]);
        }
        let payload = json!({"task_id": task.subject.id(), "timeout_seconds": timeout});
        let request = Request { key: key.clone(), ..request(env, Kind::RunStarted, None, payload) };
        match repeated(desk, &request)? {
            Some(first) => Ok(vec![Asked { id: first.asked.id, held: true }]),
            None => Ok(vec![desk.ask(request)?]),
        }
    })
}

/// Shows that the work goes on, and keeps the claim.
pub fn heartbeat(env: &Env, reference: &str, key: Option<String>) -> Result<AppendOutcome> {
    on_task(env, reference, |desk, task| {
        // A checkpoint is still a sign of life there; this one says that the work goes on.
        if env.actor.kind == ActorKind::Agent {
            project::check_going_on(desk.state(), task)?;
        }
        let run = task.named("last_run_id", EntityType::Run).filter(|_| task.state == At::Running);
        let (kind, subject) = match run {
            Some(run) => (Kind::Heartbeat, run),
            None => (Kind::ClaimRenewed, task.subject.clone()),
        };
        let beat = Request { key: key.clone(), ..request(env, kind, Some(&subject.to_string()), json!({})) };
        match repeated(desk, &beat)? {
            Some(first) => Ok(vec![Asked { id: first.asked.id, held: true }]),
            None => Ok(vec![desk.ask(beat)?]),
        }
    })
}

/// It is done.
pub fn succeed(env: &Env, reference: &str, summary: Option<String>, key: Option<String>) -> Result<AppendOutcome> {
    end(env, reference, End::Succeeded { summary }, false, key)
}

/// How a task went.
#[derive(Debug)]
pub enum End {
    Succeeded { summary: Option<String> },
    Failed { class: String, reason: String },
}

/// It is over. With `begins`, it is begun first, so that what was done has a run.
pub fn end(env: &Env, reference: &str, end: End, begins: bool, key: Option<String>) -> Result<AppendOutcome> {
    on_task(env, reference, |desk, task| {
        let subject = task.subject.to_string();
        let (kind, said) = match &end {
            End::Succeeded { .. } => (Kind::TaskSucceeded, json!({})),
            End::Failed { class, reason } => (Kind::TaskFailed, json!({"error_class": class, "reason": reason})),
        };
        let done = Request { key: key.clone(), ..request(env, kind, Some(&subject), said) };
        if let Some(first) = repeated(desk, &done)? {
            return Ok(vec![Asked { id: first.asked.id, held: true }]);
        }
        if begins {
            desk.ask(request(env, Kind::RunStarted, None, json!({"task_id": task.subject.id()})))?;
        }
        if let End::Succeeded { summary } = &end {
            let now = desk.state().entity(&task.subject).filter(|task| task.state == At::Running);
            let run = now.and_then(|task| task.named("last_run_id", EntityType::Run));
            if let Some(run) = run.filter(|run| desk.state().of(run) == At::Running) {
                let finished = json!({"success": true, "summary": summary});
                desk.ask(request(env, Kind::RunFinished, Some(&run.to_string()), finished))?;
            }
        }
        Ok(vec![desk.ask(done)?])
    })
}

/// Opens the desk, finds the task, and commits what `act` asks for about it.
fn on_task(
    env: &Env,
    reference: &str,
    act: impl FnOnce(&mut Desk<'_>, &Entity) -> Result<Vec<Asked>>,
) -> Result<AppendOutcome> {
    let vault = env.open()?;
    let mut desk = Desk::open(env, &vault, false)?;
    let subject = desk.state().find(reference, EntityType::Task)?;
    let task = desk.state().entity(&subject).expect("it was resolved").into_owned();
    let asked = act(&mut desk, &task)?;
    finish(&vault, desk, &asked)
}

/// A request by whoever runs the command.
pub(super) fn request(env: &Env, kind: Kind, subject: Option<&str>, payload: Value) -> Request {
    let Value::Object(payload) = payload else { unreachable!("payloads are objects") };
    Request {
        kind,
        subject: subject.map(str::to_owned),
        actor: env.actor.clone(),
        autonomous: env.in_agent_shell(),
        parents: Vec::new(),
        key: None,
        payload: payload.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>(),
    }
}
