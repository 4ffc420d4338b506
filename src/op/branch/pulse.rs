//! What a persona can do now, its branches, and its working memory for a prompt.

use serde_json::{Value, json};

use super::super::Context;
use super::super::project::{ListEntry, ListOutcome, ListRequest, Projection};
use super::context::Memory;
use super::message::FullMessage;
use super::{at_branch, me, settle_before_reading};
use crate::base::{EntityId, EntityType, Error, ErrorKind, Result, Subject, Ulid, limits};
use crate::event::{Kind, parse_ulid};
use crate::machine::Phase;
use crate::op::kernel::with_view;
use crate::policy::{Standing, project};
use crate::state::{Entity, State};

/// How many branches a working memory has at most.
const WORKING_MAX: usize = 10;

/// Every branch of a persona, oldest first.
pub(super) fn all_of(state: &State, persona: &EntityId) -> Vec<Entity> {
    let agent = Subject::new(EntityType::Agent, persona.clone());
    let mut all = state.made_for(&agent, EntityType::Branch);
    all.retain(|branch| branch.as_branch().persona_id() == Some(persona.as_str()));
    all.sort_by_key(|branch| branch.ordinal);
    all
}

/// Which branches to list.
#[derive(Clone, Debug)]
pub struct BranchesRequest {
    /// Only branches in one of these phases; if empty, all that are not archived.
    pub phases: Vec<Phase>,
    /// At most this many.
    pub limit: usize,
    /// Only branches after this id.
    pub cursor: Option<String>,
}

impl Default for BranchesRequest {
    fn default() -> Self {
        BranchesRequest { phases: Vec::new(), limit: limits::PAGE_DEFAULT_COUNT, cursor: None }
    }
}

/// One page of a persona's branches.
#[derive(Debug)]
pub struct BranchesOutcome {
    pub page: ListOutcome,
    pub active: Option<Entity>,
}

/// Lists the branches of a persona; records nothing.
pub fn branches(ctx: &Context, request: BranchesRequest) -> Result<BranchesOutcome> {
    let BranchesRequest { phases, limit, cursor } = request;
    let max = limits::PAGE_MAX_COUNT;
    if limit == 0 || limit > max {
        return Err(Error::new(ErrorKind::LimitExceeded, format!("invalid limit {limit}; must be 1 to {max}")));
    }
    let name = me(ctx)?;
    with_view(&ctx.open()?, |snapshot, state| {
        let mut all = all_of(state, &name);
        if let Some(cursor) = &cursor {
            let index = all.iter().position(|branch| branch.subject.id() == cursor.as_str());
            let unknown = || {
                Error::new(ErrorKind::InvalidCursor, "unknown cursor; it must be the id of a branch of this persona")
            };
            all.drain(..=index.ok_or_else(unknown)?);
        }
        let wanted = |branch: &Entity| match phases.as_slice() {
            [] => !branch.archived,
            some => some.contains(&branch.phase),
        };
        all.retain(wanted);
        let more = all.len() > limit;
        all.truncate(limit);
        let next_cursor = all.last().filter(|_| more).and_then(|last| EntityId::parse(last.subject.id()).ok());
        let entries = all.into_iter().map(|branch| ListEntry::Entity(Box::new(branch))).collect();
        let active = state.root(&name).map(|root| at_branch(state, &root));
        let request =
            ListRequest { phases, limit, cursor, ..ListRequest::first_page(Projection::Of(EntityType::Branch)) };
        let (due, now) = (Default::default(), ctx.now.timestamp());
        let tasks = Default::default();
        let page = ListOutcome { entries, due, tasks, next_cursor, more, head: snapshot.head(), request, now };
        Ok(BranchesOutcome { page, active })
    })
}

/// A persona's working memory, as JSON for a prompt.
#[derive(Debug)]
pub struct WorkingOutcome {
    pub memory: Value,
    pub count: usize,
}

/// Whether nothing has happened on a branch yet: a social branch exists as soon as two personas do.
fn is_unused(branch: &Entity) -> bool {
    let known = branch.as_branch();
    known.branch_type() == Some("social") && known.threads() == 0 && known.messages() == 0
}

/// Returns the most recently active branches of a persona that are not completed, and its situation.
pub fn working(ctx: &Context) -> Result<WorkingOutcome> {
    let name = me(ctx)?;
    with_view(&ctx.open()?, |_, state| {
        let mut open = all_of(state, &name);
        open.retain(|branch| branch.phase != Phase::Completed && !is_unused(branch));
        open.sort_by(|a, b| {
            (b.as_branch().last_activity(), b.ordinal).cmp(&(a.as_branch().last_activity(), a.ordinal))
        });
        open.truncate(WORKING_MAX);
        let entries: Vec<Value> = open.iter().map(entry).collect();
        let count = entries.len();
        let situation = situation(ctx, state, &name);
        Ok(WorkingOutcome { memory: json!({"situation_snapshot": situation, "branches": entries}), count })
    })
}

/// Where a persona is, and what is around it.
fn situation(ctx: &Context, state: &State, name: &EntityId) -> Value {
    let root = state.root(name);
    let active = root.as_ref().map(|root| at_branch(state, root).name());
    let held = state.held_by(&format!("agent:{name}"));
    let task =
        |task: &Entity| json!({"ref": task.name(), "status": task.phase.as_str(), "title": task.as_task().title()});
    let obstacle = Standing::of_project(state, &ctx.project());
    json!({
        "at": ctx.now.timestamp().to_string(),
        "persona_id": name.as_str(),
        "active_branch": active,
        "unread": root.map_or(0, |root| root.as_branch().unread()),
        "tasks": held.iter().take(WORKING_MAX).map(task).collect::<Vec<_>>(),
        "obstacle": obstacle.map(|standing| standing.obstacle.as_str()),
    })
}

fn entry(branch: &Entity) -> Value {
    json!({
        "branch_id": branch.subject.id(),
        "ref": branch.name(),
        "branch_type": branch.as_branch().branch_type(),
        "label": branch.as_branch().label(),
        "status": branch.phase.as_str().to_lowercase(),
        "last_activity": branch.as_branch().last_activity(),
        "brief_state": branch.as_branch().brief_state().unwrap_or_default(),
    })
}

/// Something that happened to a persona and that it has not reacted to.
#[derive(Debug)]
pub struct ChangeSeen {
    /// The kind of event.
    pub kind: &'static str,
    /// What it is about.
    pub about: String,
    pub at: String,
    pub by: String,
    pub title: Option<String>,
}

/// What the persona can choose from. The choice is up to the caller.
#[derive(Debug)]
pub struct DecideOutcome {
    /// The active branch.
    pub active: Option<Entity>,
    /// How many messages are unread.
    pub unread_count: u64,
    /// The oldest of them.
    pub unread: Vec<FullMessage>,
    /// What else there is to react to.
    pub changes: Vec<ChangeSeen>,
    /// Suspended branches with the seconds since they were suspended, longest first.
    pub candidates: Vec<(Entity, u64)>,
    /// How many such branches there are.
    pub candidate_count: usize,
    /// The persona's root.
    pub root: Option<Entity>,
    /// The branch that was left because of a user's message.
    pub left: Option<Entity>,
}

/// How many messages, and how many branches, are listed at most.
const LISTED_MAX: usize = 20;

/// Returns everything that waits for a persona.
pub fn decide(ctx: &Context) -> Result<DecideOutcome> {
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let left = settle_before_reading(ctx, &vault)?;
    with_view(&vault, |snapshot, state| {
        let root = state.root(&name);
        let active = root.as_ref().map(|root| at_branch(state, root));
        let memory = Memory { ctx, snapshot, state };
        let unread_count = root.as_ref().map_or(0, |root| root.as_branch().unread());
        let listed = state.unread_by(name.as_str(), LISTED_MAX).into_iter();
        let unread: Vec<FullMessage> = listed.map(|message| memory.full_message(message)).collect::<Result<_>>()?;
        let now = ctx.now.timestamp();
        let waited = |branch: &Entity| {
            let since = branch.as_branch().suspended_at().unwrap_or(branch.created_at);
            now.0.saturating_sub(since.0).max(0) as u64
        };
        let mut candidates: Vec<(Entity, u64)> = all_of(state, &name)
            .into_iter()
            .filter(|branch| can_be_resumed(state, branch))
            .map(|branch| {
                let waited = waited(&branch);
                (branch, waited)
            })
            .collect();
        candidates.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.ordinal.cmp(&b.0.ordinal)));
        let candidate_count = candidates.len();
        candidates.truncate(LISTED_MAX);
        let ids: Vec<Ulid> = root.iter().flat_map(|root| root.as_branch().changes()).filter_map(parse_ulid).collect();
        let changes = changes(&memory, &name, &ids)?;
        Ok(DecideOutcome { active, unread_count, unread, changes, candidates, candidate_count, root, left })
    })
}

/// Whether a persona can go on with a branch: it has something to go on with, nobody else has it in hand, and no pause is
/// in the way.
fn can_be_resumed(state: &State, branch: &Entity) -> bool {
    let task = branch.as_branch().task().and_then(|task| state.entity(&task));
    let holder = task.as_ref().and_then(|task| task.holder()).and_then(|holder| holder.strip_prefix("agent:"));
    if holder.is_some_and(|holder| branch.as_branch().persona_id() != Some(holder)) {
        return false;
    }
    let project = task.and_then(|task| task.project.clone());
    let is_paused = project.is_some_and(|project| Standing::of_project(state, &project::subject(&project)).is_some());
    branch.phase == Phase::Suspended && !branch.is_root() && !is_unused(branch) && !is_paused
}

/// What this call has reacted to by an act on a branch, whether the caller knew of it or not.
pub fn reacted_to(ctx: &Context) -> Result<Vec<ChangeSeen>> {
    let ids = ctx.standing.get().unwrap_or_default().reacted_to;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let name = me(ctx)?;
    with_view(&ctx.open()?, |snapshot, state| changes(&Memory { ctx, snapshot, state }, &name, &ids))
}

/// What these events mean to a persona, unless they no longer matter.
fn changes(memory: &Memory<'_>, persona: &EntityId, ids: &[Ulid]) -> Result<Vec<ChangeSeen>> {
    let mut seen = Vec::new();
    let is_own = |holder: &str| holder.strip_prefix("agent:") == Some(persona.as_str());
    for id in ids {
        let event = memory.event(*id)?;
        let Some(kind) = event.event_type.known() else { continue };
        let entity = Subject::parse(&event.subject).ok().and_then(|subject| memory.state.entity(&subject));
        let still_matters = entity.as_ref().is_none_or(|entity| match kind {
            Kind::TaskAssigned => {
                let holds = entity.as_task().recorded_holder().is_some_and(is_own);
                match event.payload.get("holder").and_then(Value::as_str).is_some_and(is_own) {
                    true => entity.phase == Phase::Assigned && holds,
                    // It was taken away.
                    false => !holds,
                }
            }
            Kind::AnomalyDetected => {
                let code = event.payload.get("code").and_then(Value::as_str).unwrap_or_default();
                entity.as_agent().anomalies().is_some_and(|known| known.contains_key(code))
            }
            _ => true,
        });
        if still_matters {
            let code = event.payload.get("code").and_then(Value::as_str).map(str::to_owned);
            seen.push(ChangeSeen {
                kind: kind.as_str(),
                about: entity.as_ref().map_or(event.subject.clone(), |entity| entity.name()),
                at: event.timestamp.to_string(),
                by: event.actor.clone(),
                title: code.or_else(|| entity?.title().map(str::to_owned)),
            });
        }
    }
    Ok(seen)
}
