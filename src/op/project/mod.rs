//! hf-project: the state folded from the log, its caches, and whether they are correct.

mod check;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Context;
use super::task::TaskStanding;
use crate::base::{Actor, EntityId, EntityType, Error, ErrorKind, Result, Subject, Timestamp, Ulid, limits};
use crate::chain::Head;
use crate::machine;
use crate::op::kernel::{View, with_view};
use crate::policy::{Settings, ready};
use crate::state::{Entity, State};
use crate::vault::{Vault, projections};

pub(super) use check::check_caches;
pub use check::{CacheVerdict, CheckOutcome, check};

/// Parses a status of entities of a type, for a filter.
pub fn parse_status(entity: EntityType, name: &str) -> Result<machine::Phase> {
    let mut known: Vec<machine::Phase> = Vec::new();
    for (_, _, phase) in machine::table(entity) {
        if !known.contains(phase) {
            known.push(*phase);
        }
    }
    let named = machine::Phase::parse(name).filter(|phase| known.contains(phase));
    named.ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(|phase| phase.as_str()).collect();
        let name = crate::base::text::cut(name, 40);
        Error::usage(format!("unknown status '{name}' of {}; one of {}", entity.with_article(), known.join(", ")))
    })
}

/// What hf-project can show: the entities of a type, or the idempotency keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    Of(EntityType),
    Idempotency,
}

impl Projection {
    pub const IDEMPOTENCY: &'static str = "idempotency";

    pub fn parse(name: &str) -> Result<Self> {
        let of = EntityType::projected().find(|entity| entity.plural() == name).map(Projection::Of);
        of.or_else(|| (name == Self::IDEMPOTENCY).then_some(Projection::Idempotency)).ok_or_else(|| {
            let names: Vec<&str> = EntityType::projected().map(EntityType::plural).chain([Self::IDEMPOTENCY]).collect();
            Error::usage(format!(
                "unknown projection '{}'; one of {}",
                crate::base::text::cut(name, 40),
                names.join(", ")
            ))
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Projection::Of(entity) => entity.plural(),
            Projection::Idempotency => Self::IDEMPOTENCY,
        }
    }
}

/// How many entities of a type there are, and how many in each phase.
#[derive(Debug)]
pub struct TypeCounts {
    pub entity: EntityType,
    pub live: u64,
    pub phases: Vec<(machine::Phase, u64)>,
}

/// Counts, and the head of the log.
#[derive(Debug)]
pub struct SummaryOutcome {
    pub counts: Vec<TypeCounts>,
    pub events: u64,
    pub head: Option<Head>,
    /// Files that are out of date and could not be refreshed.
    pub stale: Vec<&'static str>,
}

/// Counts all entities. Refreshes the projection files if the lock is free.
pub fn summary(ctx: &Context) -> Result<SummaryOutcome> {
    let vault = ctx.open()?;
    refresh(ctx, &vault);
    let (snapshot, state) = vault.view()?;
    // Files that cannot be read count as missing.
    let files = vault.projection_files().unwrap_or_default();
    let current = |entity: EntityType| {
        let through = files.get(&entity).and_then(|(through, _)| *through);
        state.tally().live(entity) == 0 || through == snapshot.head().map(|head| head.id)
    };
    Ok(SummaryOutcome {
        counts: EntityType::projected()
            .map(|entity| TypeCounts {
                entity,
                live: state.tally().live(entity),
                phases: state.tally().phases(entity).collect(),
            })
            .collect(),
        events: snapshot.count(),
        head: snapshot.head(),
        stale: EntityType::projected().filter(|entity| !current(*entity)).map(EntityType::plural).collect(),
    })
}

/// Refreshes the files that are not current, if the vault is writable and not locked. Best effort: they are only a cache.
pub(super) fn refresh(ctx: &Context, vault: &Vault) {
    let head = vault.snapshot().map(|log| log.head.map(|head| head.id));
    if head.is_ok_and(|head| vault.projections_are_current(head)) {
        return;
    }
    let now = Context { lock_timeout: std::time::Duration::ZERO, ..ctx.clone() };
    let _ = vault.write(now.write_options(&Settings::default())).and_then(|mut writer| writer.refresh_projections());
}

/// Which of the entities are listed.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// Only those that belong to this project.
    pub project: Option<EntityId>,
    /// Only tasks that this actor holds, and what belongs to this agent.
    pub actor: Option<Actor>,
}

impl ListFilter {
    /// Whether an entity is listed.
    pub fn fits(&self, entity: &Entity) -> bool {
        let in_project = |project: &EntityId| entity.project.as_ref() == Some(project);
        let is_of = |actor: &Actor| match entity.subject.entity {
            // A job keeps the actor that fired it.
            EntityType::Task if entity.is_job() => entity.as_task().recorded_holder() == Some(&actor.to_string()),
            EntityType::Task => entity.holder() == Some(&actor.to_string()),
            _ => entity.agent_id().is_some() && entity.agent_id() == actor.agent().as_ref().map(EntityId::as_str),
        };
        self.project.as_ref().is_none_or(in_project) && self.actor.as_ref().is_none_or(is_of)
    }
}

/// One page of a projection.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// The projection.
    pub projection: Projection,
    /// Only entities in one of these phases; if empty, in any.
    pub phases: Vec<machine::Phase>,
    /// Only entities that were created for this one: its reference and type.
    pub made_for: Option<(String, EntityType)>,
    /// Only these.
    pub filter: ListFilter,
    /// Only tasks that can be claimed.
    pub claimable: bool,
    /// Archived entities, in order of creation, instead of those in the projection.
    pub archived: bool,
    /// At most this many.
    pub limit: usize,
    /// Only those after this id.
    pub cursor: Option<String>,
}

impl ListRequest {
    /// The first page, unfiltered.
    pub fn first_page(projection: Projection) -> Self {
        let limit = limits::PAGE_DEFAULT_COUNT;
        ListRequest {
            projection,
            phases: Vec::new(),
            made_for: None,
            filter: ListFilter::default(),
            claimable: false,
            archived: false,
            limit,
            cursor: None,
        }
    }
}

#[derive(Debug)]
pub enum ListEntry {
    Entity(Box<Entity>),
    Key(String, Ulid),
}

#[derive(Debug)]
pub struct ListOutcome {
    pub entries: Vec<ListEntry>,
    /// Why entries differ from the log: what is due, by subject.
    pub due: BTreeMap<String, String>,
    /// How tasks that have not ended stand, by subject.
    pub tasks: BTreeMap<String, TaskStanding>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<EntityId>,
    pub more: bool,
    pub head: Option<Head>,
    /// The request.
    pub request: ListRequest,
    /// The time of the request.
    pub now: Timestamp,
}

impl ListOutcome {
    /// The entities of the page, without keys.
    pub fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.entries.iter().filter_map(|entry| match entry {
            ListEntry::Entity(entity) => Some(&**entity),
            ListEntry::Key(..) => None,
        })
    }
}

/// Returns one page of a projection, ordered by id; one of archived entities is in order of creation.
pub fn list(ctx: &Context, request: ListRequest) -> Result<ListOutcome> {
    let max = limits::PAGE_MAX_COUNT;
    if request.limit == 0 || request.limit > max {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!("invalid limit {}; must be 1 to {max}", request.limit),
        ));
    }
    let vault = ctx.open()?;
    let view = View::open(ctx, &vault)?;
    let is_recorded = |entry: &ListEntry| match entry {
        ListEntry::Entity(entity) => view.is_recorded(entity),
        ListEntry::Key(..) => true,
    };
    let mut entries: Vec<ListEntry> = match request.projection {
        Projection::Of(entity) => {
            list_entities(view.state(), entity, &request)?.into_iter().filter(is_recorded).collect()
        }
        Projection::Idempotency => {
            let keys = view.state().keys(request.cursor.as_deref(), request.limit + 1);
            keys.into_iter().map(|(key, id)| ListEntry::Key(key, id)).collect()
        }
    };
    let more = entries.len() > request.limit;
    entries.truncate(request.limit);
    let next_cursor = match entries.last() {
        Some(ListEntry::Entity(entity)) if more => EntityId::parse(entity.subject.id()).ok(),
        _ => None,
    };
    let entries: Vec<ListEntry> = entries
        .into_iter()
        .map(|entry| match entry {
            ListEntry::Entity(entity) => ListEntry::Entity(Box::new(view.shown(*entity))),
            key => key,
        })
        .collect();
    let entities = || {
        entries.iter().filter_map(|entry| match entry {
            ListEntry::Entity(entity) => Some(&**entity),
            ListEntry::Key(..) => None,
        })
    };
    let tasks = entities().filter(|entity| entity.subject.entity == EntityType::Task);
    let tasks = tasks.map(|task| (task.subject.to_string(), TaskStanding::read(&view, task))).collect();
    let (mut due, head) = (view.due_among(entities()), view.log().head());
    due.extend(entities().filter_map(|task| super::job::mark(&vault, task)));
    Ok(ListOutcome { entries, due, tasks, next_cursor, more, head, request, now: ctx.now.timestamp() })
}

fn list_entities(state: &State, entity: EntityType, request: &ListRequest) -> Result<Vec<ListEntry>> {
    let mut after_number = 0;
    if let Some(cursor) = &request.cursor {
        let known = EntityId::parse(cursor).ok().and_then(|id| state.entity(&Subject::new(entity, id)));
        let unknown = || Error::new(ErrorKind::InvalidCursor, "unknown cursor; it must be an id of this projection");
        after_number = known.ok_or_else(unknown)?.ordinal;
    }
    let made_for = match &request.made_for {
        // An agent that has not started yet has nothing.
        Some((text, EntityType::Agent)) if state.find(text, EntityType::Agent).is_err() => return Ok(Vec::new()),
        Some((text, wanted)) => Some(state.find(text, *wanted)?),
        None => None,
    };
    let in_phase = |e: &Entity| request.phases.is_empty() || request.phases.contains(&e.phase);
    let wanted =
        |e: &Entity| in_phase(e) && request.filter.fits(e) && (!request.claimable || ready::may_start(state, e));
    let holder = request.filter.actor.as_ref().filter(|_| entity == EntityType::Task);
    let held = holder.map(|holder| state.held_by(&holder.to_string()));
    let among = made_for.map(|owner| state.made_for(&owner, entity)).or(held);
    if let Some(mut among) = among {
        let after_cursor = |e: &Entity| match request.archived {
            true => e.ordinal > after_number,
            false => request.cursor.as_deref().is_none_or(|cursor| e.subject.id() > cursor),
        };
        among.retain(|e| e.archived == request.archived && wanted(e) && after_cursor(e));
        match request.archived {
            true => among.sort_by_key(|e| e.ordinal),
            false => among.sort_by(|a, b| a.subject.cmp(&b.subject)),
        }
        return Ok(among.into_iter().map(|e| ListEntry::Entity(Box::new(e))).collect());
    }
    if request.archived {
        let is_filtered = request.filter.project.is_some();
        let limit = if is_filtered { usize::MAX } else { request.limit + 1 };
        let page = state.archived(entity, after_number, limit).into_iter().filter(|e| request.filter.fits(e));
        return Ok(page.take(request.limit + 1).map(|e| ListEntry::Entity(Box::new(e))).collect());
    }
    let (mut entries, mut after) = (Vec::new(), request.cursor.clone());
    loop {
        let page = state.entities(entity, after.as_deref(), limits::PAGE_MAX_COUNT);
        let Some(last) = page.last() else { return Ok(entries) };
        after = Some(last.subject.id().to_owned());
        entries.extend(page.into_iter().filter(wanted).map(|e| ListEntry::Entity(Box::new(e))));
        if entries.len() > request.limit {
            return Ok(entries);
        }
    }
}

/// A projection to return as a whole.
#[derive(Clone, Debug)]
pub struct MapRequest {
    /// The projection.
    pub projection: Projection,
}

#[derive(Debug)]
pub struct MapOutcome {
    pub projection: Projection,
    pub map: Map<String, Value>,
    pub head: Option<Head>,
}

/// Returns a whole projection, as it is in its file.
pub fn map(ctx: &Context, request: MapRequest) -> Result<MapOutcome> {
    let MapRequest { projection } = request;
    with_view(&ctx.open()?, |snapshot, state| {
        let map = match projection {
            Projection::Of(entity) => projections::map(state, entity),
            Projection::Idempotency => projections::idempotency(state),
        };
        Ok(MapOutcome { projection, map, head: snapshot.head() })
    })
}

#[derive(Debug)]
pub struct RebuildOutcome {
    pub events: u64,
    pub head: Option<Head>,
}

/// Rebuilds index and projections from the events.
pub fn rebuild(ctx: &Context) -> Result<RebuildOutcome> {
    let vault = ctx.open()?;
    let (snapshot, _) = vault.write(ctx.write_options(&vault.config()))?.rebuild()?;
    Ok(RebuildOutcome { events: snapshot.count, head: snapshot.head })
}

/// A snapshot to write.
#[derive(Clone, Debug, Default)]
pub struct SnapshotRequest {
    /// Its name; default: the time.
    pub name: Option<String>,
}

#[derive(Debug)]
pub struct SnapshotOutcome {
    pub file: String,
    pub events: u64,
    pub head: Option<Head>,
}

/// Writes the whole state to `snapshots/`, with the head that it is of.
pub fn snapshot(ctx: &Context, request: SnapshotRequest) -> Result<SnapshotOutcome> {
    let name = match request.name.as_deref() {
        Some("latest") => return Err(Error::usage("'latest' is reserved; choose another name")),
        Some(name) => EntityId::parse(name)?.to_string(),
        None => ctx.now.timestamp().to_string().replace([':', '-'], ""),
    };
    let vault = ctx.open()?;
    let mut writer = vault.write(ctx.write_options(&vault.config()))?;
    let (snapshot, state) = writer.view()?;
    let document = json!({
        "schema": 1,
        "created_at": ctx.now.timestamp().to_string(),
        "head": snapshot.head.map(|head| head.to_string()),
        "events": snapshot.count,
        "projections": all_maps(&state),
    });
    if let Some(fault) = state.fault() {
        return Err(fault);
    }
    let file = vault.put_snapshot(&name, &document)?;
    Ok(SnapshotOutcome { file, events: snapshot.count, head: snapshot.head })
}

fn all_maps(state: &State) -> Map<String, Value> {
    EntityType::projected()
        .map(|entity| (entity.plural().to_owned(), Value::Object(projections::map(state, entity))))
        .collect()
}
