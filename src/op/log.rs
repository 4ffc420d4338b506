//! hf-log: events in their order, filtered, by pages, or as they come.

use std::ops::ControlFlow;

use super::{Context, References, references};
use crate::base::{Error, ErrorKind, Result, Timestamp, Ulid, limits};
use crate::event::{Event, parse_ulid};
use crate::vault::{Position, Snapshot, Vault};

/// Which events.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    pub event_type: Option<String>,
    /// A subject or a reference.
    pub subject: Option<String>,
    pub actor: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl EventFilter {
    fn takes(&self, event: &Event) -> bool {
        self.event_type.as_ref().is_none_or(|t| t == event.event_type.as_str())
            && self.subject.as_ref().is_none_or(|s| *s == event.subject)
            && self.actor.as_ref().is_none_or(|a| *a == event.actor)
            && self.since.is_none_or(|t| event.timestamp >= t)
            && self.until.is_none_or(|t| event.timestamp <= t)
    }

    /// The same with a reference turned into the subject it names.
    fn resolved(&self, vault: &Vault) -> Result<EventFilter> {
        let mut filter = self.clone();
        if let Some(text) = filter.subject.as_ref().filter(|s| !s.contains(':') && *s != "system") {
            filter.subject = Some(vault.view()?.1.resolve(text, None)?.to_string());
        }
        Ok(filter)
    }
}

/// Where a page begins.
#[derive(Clone, Debug)]
pub enum PageStart {
    Oldest,
    /// Behind this event.
    After(String),
    /// So that the page ends at the newest.
    Newest,
}

/// Which page of the log.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// Which events.
    pub filter: EventFilter,
    /// Where it begins.
    pub start: PageStart,
    /// How many at most.
    pub limit: usize,
    /// Whether the short references of the subjects are wanted: they need the state, which the log does not.
    pub with_references: bool,
}

/// One event with the bytes of its line.
pub type LogEntry = (Event, Vec<u8>);

/// What whoever follows the log is told.
#[derive(Debug)]
pub enum FollowStep<'a> {
    /// The request is right: entries come from here on.
    Begins,
    Entry(&'a LogEntry),
}

/// Whoever follows the log says whether it wants more.
pub type EventSink<'a> = &'a mut dyn FnMut(FollowStep<'_>) -> Result<ControlFlow<()>>;

#[derive(Debug)]
pub struct LogOutcome {
    pub entries: Vec<LogEntry>,
    /// What was looked for, with references resolved.
    pub filter: EventFilter,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<Ulid>,
    /// How many events a page may have.
    pub limit: usize,
    /// The short references of the subjects that have one.
    pub references: References,
}

fn check_limit(limit: usize) -> Result<()> {
    let most = limits::LOG_PAGE_MAX_EVENTS;
    match (1..=most).contains(&limit) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::LimitExceeded, format!("a page has 1 to {most} events, not {limit}"))),
    }
}

/// One page of events.
pub fn log(ctx: &Context, request: LogRequest) -> Result<LogOutcome> {
    check_limit(request.limit)?;
    let vault = ctx.open()?;
    let filter = request.filter.resolved(&vault)?;
    let snapshot = vault.snapshot()?;
    let from = match &request.start {
        PageStart::Oldest => Position::START,
        PageStart::After(cursor) => behind(&snapshot, cursor)?,
        PageStart::Newest => {
            let entries = newest(&snapshot, &filter, request.limit)?;
            return Ok(outcome(&vault, &request, filter, entries, None));
        }
    };
    let mut entries: Vec<LogEntry> = Vec::new();
    let mut more = false;
    snapshot.events(from, &mut |_, event, line| {
        if filter.takes(&event) {
            if entries.len() == request.limit {
                more = true;
                return Ok(ControlFlow::Break(()));
            }
            entries.push((event, line.to_vec()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let next_cursor = entries.last().filter(|_| more).map(|(event, _)| event.id);
    Ok(outcome(&vault, &request, filter, entries, next_cursor))
}

fn outcome(
    vault: &Vault,
    request: &LogRequest,
    filter: EventFilter,
    entries: Vec<LogEntry>,
    next_cursor: Option<Ulid>,
) -> LogOutcome {
    // A courtesy: without a state there are none.
    let state = if request.with_references { vault.view().ok() } else { None };
    let subjects = entries.iter().map(|(event, _)| event.subject.as_str());
    let references = state.map(|(_, state)| references(&state, subjects)).unwrap_or_default();
    LogOutcome { entries, filter, next_cursor, limit: request.limit, references }
}

/// The place behind a cursor's event.
fn behind(snapshot: &Snapshot, cursor: &str) -> Result<Position> {
    let invalid = || Error::new(ErrorKind::InvalidCursor, "the cursor is not the id of an event in this log");
    let id = parse_ulid(cursor).ok_or_else(invalid)?;
    snapshot.find(id)?.ok_or_else(invalid)?;
    snapshot.seek(id.increment().map_err(|_| invalid())?)
}

fn newest(snapshot: &Snapshot, filter: &EventFilter, limit: usize) -> Result<Vec<LogEntry>> {
    let mut entries: Vec<LogEntry> = Vec::new();
    snapshot.events_back(&mut |event, line| {
        if filter.takes(&event) {
            entries.push((event, line.to_vec()));
        }
        Ok(if entries.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    entries.reverse();
    Ok(entries)
}

/// Hands events to `take` as they are published, until it has enough. `start` is where to begin;
/// `Newest` begins with the last `limit` events.
pub fn follow(ctx: &Context, request: LogRequest, take: EventSink<'_>) -> Result<()> {
    check_limit(request.limit)?;
    let vault = ctx.open()?;
    let mut watch = vault.watch();
    let filter = request.filter.resolved(&vault)?;
    let snapshot = vault.snapshot()?;
    let (first, mut seen) = match &request.start {
        PageStart::Oldest => (Vec::new(), None),
        PageStart::After(cursor) => {
            behind(&snapshot, cursor)?;
            (Vec::new(), parse_ulid(cursor))
        }
        PageStart::Newest => (newest(&snapshot, &filter, request.limit)?, snapshot.head.map(|head| head.id)),
    };
    if take(FollowStep::Begins)?.is_break() {
        return Ok(());
    }
    for entry in &first {
        if take(FollowStep::Entry(entry))?.is_break() {
            return Ok(());
        }
    }
    loop {
        if pass_on(&vault, &filter, &mut seen, take)?.is_break() {
            return Ok(());
        }
        watch.wait();
    }
}

/// Passes on what was published behind `seen`.
fn pass_on(
    vault: &Vault,
    filter: &EventFilter,
    seen: &mut Option<Ulid>,
    take: EventSink<'_>,
) -> Result<ControlFlow<()>> {
    let snapshot = vault.snapshot()?;
    if snapshot.head.map(|head| head.id) == *seen {
        return Ok(ControlFlow::Continue(()));
    }
    let from = match seen.and_then(|id| id.increment().ok()) {
        Some(next) => snapshot.seek(next)?,
        None => Position::START,
    };
    let mut flow = ControlFlow::Continue(());
    snapshot.events(from, &mut |_, event, line| {
        *seen = Some(event.id);
        if filter.takes(&event) {
            flow = take(FollowStep::Entry(&(event, line.to_vec())))?;
        }
        Ok(flow)
    })?;
    Ok(flow)
}
