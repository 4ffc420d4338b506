//! hf-state plan and hf-state fire: the tasks that a mission consists of.
//!
//! All tasks of a plan are proposed in one batch. A task that fails is proposed again by the reactor, so that those that
//! depend on it wait for the next attempt; the mission passes with its last task, or with the final check after it.

use serde_json::{Map, Value, json};

use super::{MissionOutcome, file, no_mission, view};
use crate::base::{EntityId, EntityType, Error, Reason, Result, Subject};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::job::{self, FireOutcome, FireRequest, MissionStep};
use crate::op::kernel::{Transaction, is_stopped, with_view};
use crate::op::{Context, random_ulid};
use crate::policy::mission::{self, PLAN_STEP};
use crate::policy::pattern::matches_any;
use crate::policy::plan::Plan;
use crate::policy::settings::Setting;
use crate::policy::{Request, check_repeats, rules};
use crate::state::{Entity, State};
use crate::vault::Vault;

/// A plan for the mission.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// The plan, as JSON.
    pub plan: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// A recorded plan.
#[derive(Debug)]
pub struct PlanOutcome {
    pub mission: MissionOutcome,
    /// The name of each task, and its id in the plan.
    pub tasks: Vec<(String, String)>,
}

/// Proposes the tasks of a plan, which the mission then follows.
pub fn plan(ctx: &Context, request: PlanRequest) -> Result<PlanOutcome> {
    let PlanRequest { plan, key } = request;
    let plan = Plan::parse(&plan)?;
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let mission = mission::newest(tx.state()).ok_or_else(no_mission)?;
    let asked = match repeated(&tx, &mission, &plan, key.as_deref(), ctx)? {
        Some(first) => first,
        None if is_stopped(tx.state()) => return Err(rules::stopped(tx.state())),
        None => {
            let before = file::wanted(tx.state());
            let requests = requests(ctx, &tx, &mission, &plan, key)?;
            let mut last = None;
            for request in requests {
                last = Some(tx.ask_sized(request)?);
            }
            file::settle_in(&mut tx, &vault, ctx, before)?;
            last.expect("a plan has tasks")
        }
    };
    let view = view(tx.state())?;
    let tasks = proposed(tx.state(), &view.mission);
    let mut recorded = tx.finish(&[asked])?;
    // The reply names the plan itself; there may be hundreds of events with it.
    recorded.ids.truncate(1);
    file::settle_file(ctx, &vault);
    Ok(PlanOutcome { mission: MissionOutcome { recorded, view }, tasks })
}

/// The tasks of a mission's plan, as they were proposed: the name of each, and its id in the plan.
fn proposed(state: &State, mission: &Entity) -> Vec<(String, String)> {
    let subjects = mission.as_mission().plan().filter_map(|id| EntityId::parse(id).ok());
    let tasks = subjects.filter_map(|id| state.entity(&Subject::new(EntityType::Task, id)));
    let id = |task: &Entity| Some(task.as_task().planned()?.get("id")?.as_str()?.to_owned());
    tasks.filter_map(|task| Some((task.name(), id(&task)?))).collect()
}

/// The event of the same plan, if it was recorded before. A mission has one plan.
fn repeated(
    tx: &Transaction<'_>,
    mission: &Entity,
    plan: &Plan,
    key: Option<&str>,
    ctx: &Context,
) -> Result<Option<crate::op::kernel::Added>> {
    let asked = Request {
        key: key.map(str::to_owned),
        ..ctx.request(Kind::MissionPlanned, None, json!({"digest": plan.digest.to_string()}))
    };
    if let Some(mut first) = tx.first_with_key(&asked)? {
        first.payload.retain(|name, _| name == "digest");
        check_repeats(tx.state(), &first, &asked)?;
        return Ok(Some(crate::op::kernel::Added { id: first.id, already: true }));
    }
    let view = mission.as_mission();
    match view.planned_by().filter(|_| mission.phase == Phase::Running) {
        Some(id) if view.plan_digest() == Some(&plan.digest.to_string()) => {
            Ok(Some(crate::op::kernel::Added { id, already: true }))
        }
        Some(_) => {
            let why = format!("{} has another plan", mission.name());
            Err(Error::refused(Reason::IllegalTransition, why))
        }
        None => Ok(None),
    }
}

/// The proposals of the tasks, and the plan itself.
fn requests(
    ctx: &Context,
    tx: &Transaction<'_>,
    mission: &Entity,
    plan: &Plan,
    key: Option<String>,
) -> Result<Vec<Request>> {
    let patterns = tx.config.texts(Setting::DestructiveCommands);
    let mut ids: Vec<(&str, String)> = Vec::new();
    let mut requests = Vec::new();
    for task in &plan.tasks {
        if task.command.as_ref().is_some_and(|words| matches_any(&patterns, words)) {
            let why = format!("the command of task '{}' requires approval; fire it with hf-job fire", task.id);
            return Err(Error::refused(Reason::ApprovalRequired, why));
        }
        let id = random_ulid(ctx.now)?.to_string();
        let after: Vec<&str> = ids
            .iter()
            .filter(|(local, _)| task.depends_on.iter().any(|id| id == local))
            .map(|(_, id)| id.as_str())
            .collect();
        let mut payload = task.members.clone();
        let mut planned = Map::from_iter([("id".to_owned(), Value::from(task.id.as_str()))]);
        planned.extend(task.command.as_ref().map(|words| ("command".to_owned(), json!(words))));
        payload.insert("planned".to_owned(), planned.into());
        payload.insert("of_mission".to_owned(), mission.subject.id().into());
        payload.extend(mission.as_mission().requirement_id().map(|id| ("requirement_id".to_owned(), id.into())));
        if !after.is_empty() {
            payload.insert("after".to_owned(), json!(after));
        }
        let subject = format!("{}:{id}", EntityType::Task);
        requests.push(ctx.request(Kind::TaskProposed, Some(&subject), payload.into()));
        ids.push((&task.id, id));
    }
    let tasks: Vec<&String> = ids.iter().map(|(_, id)| id).collect();
    let mut payload = plan.members.clone();
    payload.insert("tasks".to_owned(), json!(tasks));
    payload.insert("digest".to_owned(), plan.digest.to_string().into());
    let planned = ctx.request(Kind::MissionPlanned, Some(&mission.subject.to_string()), payload.into());
    requests.push(Request { key, ..planned });
    Ok(requests)
}

/// A task of the plan whose command is to be fired.
#[derive(Clone, Debug, Default)]
pub struct FirePlannedRequest {
    /// The task.
    pub reference: String,
}

/// Fires the command that the plan has for a task, once.
pub fn fire_planned(ctx: &Context, request: FirePlannedRequest) -> Result<FireOutcome> {
    fire_as(ctx, request, None)
}

/// The same, as a step of a mission's round if one is given.
pub(super) fn fire_as(ctx: &Context, request: FirePlannedRequest, step: Option<MissionStep>) -> Result<FireOutcome> {
    let vault = ctx.open()?;
    let (task, newest) = with_view(&vault, |_, state| {
        let subject = state.find(&request.reference, EntityType::Task)?;
        let task = state.entity(&subject).expect("it was resolved").into_owned();
        let newest = rules::newest_rework(state, &task);
        Ok((task, newest))
    })?;
    if let Some(newest) = newest.filter(|_| task.as_task().aborted_at().is_some()) {
        let why = format!("{} failed; {} is the next attempt", task.name(), newest.name());
        return Err(Error::refused(Reason::Repeated, why).about(newest.short_reference()));
    }
    let words = mission::planned_command(&task).and_then(Value::as_array).into_iter().flatten();
    let argv: Vec<_> = words.filter_map(Value::as_str).map(Into::into).collect();
    if argv.is_empty() {
        let why = format!("{} has no command in a plan; claim it with hf-task claim", task.name());
        return Err(Error::usage(why).about(task.short_reference()));
    }
    let fired = FireRequest {
        mission: step.or_else(|| fired_step(&task)),
        task: Some(task.subject.to_string()),
        key: Some(format!("{}:fire", task.subject.id())),
        ..FireRequest::new(argv, directory(&vault)?)
    };
    job::fire(ctx, fired)
}

/// The step that a task was fired as: repeating that changes nothing.
fn fired_step(task: &Entity) -> Option<MissionStep> {
    task.as_task().mission_step()?;
    Some(MissionStep { mission: task.as_task().mission()?.id().to_owned(), step: PLAN_STEP })
}

/// Where commands of the settings and of a plan run: in the directory that contains the vault.
pub(super) fn directory(vault: &Vault) -> Result<std::path::PathBuf> {
    let path = std::path::absolute(vault.path());
    let path = path.map_err(|e| Error::system("cannot resolve the path of the vault", e))?;
    Ok(path.parent().unwrap_or(&path).to_owned())
}
