//! What a persona can do now, its branches, and its working memory for a prompt.

use serde_json::{Value, json};

use super::super::Context;
use super::super::project::{ListEntry, ListOutcome, ListRequest, Projection};
use super::context::Memory;
use super::message::{FullMessage, unread};
use super::{at_branch, me, settle_before_reading};
use crate::base::{EntityId, EntityType, Error, ErrorKind, Result, Subject, limits};
use crate::machine::Phase;
use crate::op::kernel::with_view;
use crate::state::{Entity, State};

/// How many branches a working memory has at most.
const WORKING_MAX: usize = 10;

/// Every branch of a persona, oldest first.
fn all_of(state: &State, persona: &EntityId) -> Vec<Entity> {
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
        let held_until = Default::default();
        let page = ListOutcome { entries, due, held_until, next_cursor, more, head: snapshot.head(), request, now };
        Ok(BranchesOutcome { page, active })
    })
}

/// A persona's working memory, as JSON for a prompt.
#[derive(Debug)]
pub struct WorkingOutcome {
    pub memory: Value,
    pub count: usize,
}

/// Returns the most recently active branches of a persona that are not completed.
pub fn working(ctx: &Context) -> Result<WorkingOutcome> {
    let name = me(ctx)?;
    with_view(&ctx.open()?, |_, state| {
        let mut open = all_of(state, &name);
        open.retain(|branch| branch.phase != Phase::Completed);
        open.sort_by(|a, b| {
            (b.as_branch().last_activity(), b.ordinal).cmp(&(a.as_branch().last_activity(), a.ordinal))
        });
        open.truncate(WORKING_MAX);
        let entries: Vec<Value> = open.iter().map(entry).collect();
        let count = entries.len();
        Ok(WorkingOutcome { memory: json!({"branches": entries}), count })
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

/// What the persona can choose from. The choice is up to the caller.
#[derive(Debug)]
pub struct DecideOutcome {
    /// The active branch.
    pub active: Option<Entity>,
    /// Unread messages; while there are any, no candidates are listed.
    pub unread: Vec<FullMessage>,
    /// Suspended branches with the seconds since they were suspended, longest first.
    pub candidates: Vec<(Entity, u64)>,
    /// The branch that was left because of a user's message.
    pub left: Option<Entity>,
}

/// Returns everything that waits for a persona.
pub fn decide(ctx: &Context) -> Result<DecideOutcome> {
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let left = settle_before_reading(ctx, &vault)?;
    with_view(&vault, |snapshot, state| {
        let active = state.root(&name).map(|root| at_branch(state, &root));
        let memory = Memory { ctx, snapshot, state };
        let listed = unread(state, &name).into_iter().take(limits::PAGE_DEFAULT_COUNT);
        let unread: Vec<FullMessage> = listed.map(|message| memory.full_message(message)).collect::<Result<_>>()?;
        let waiting = |branch: &Entity| branch.phase == Phase::Suspended && !branch.is_root();
        let now = ctx.now.timestamp();
        let waited = |branch: &Entity| {
            let since = branch.as_branch().suspended_at().unwrap_or(branch.created_at);
            now.0.saturating_sub(since.0).max(0) as u64
        };
        let mut candidates: Vec<(Entity, u64)> = match unread.is_empty() {
            true => all_of(state, &name).into_iter().filter(waiting).map(|b| (b.clone(), waited(&b))).collect(),
            false => Vec::new(),
        };
        candidates.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.ordinal.cmp(&b.0.ordinal)));
        Ok(DecideOutcome { active, unread, candidates, left })
    })
}
