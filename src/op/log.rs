//! hf-log: events in order, filtered, page by page or as they are recorded.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::{Context, References, references};
use crate::base::{Digest, Error, ErrorKind, Result, Timestamp, Ulid, limits};
use crate::event::{Event, Kind, parse_ulid};
use crate::vault::{Position, Snapshot, Vault};

/// Which events to return.
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
    fn matches(&self, event: &Event) -> bool {
        self.event_type.as_ref().is_none_or(|t| t == event.event_type.as_str())
            && self.subject.as_ref().is_none_or(|s| is_about(event, s))
            && self.actor.as_ref().is_none_or(|a| *a == event.actor)
            && self.since.is_none_or(|t| event.timestamp >= t)
            && self.until.is_none_or(|t| event.timestamp <= t)
    }

    /// The same filter with a reference replaced by its subject. An event type must be known or occur.
    fn resolved(&self, vault: &Vault, source: LogSource) -> Result<EventFilter> {
        let mut filter = self.clone();
        if let Some(name) = filter.event_type.as_ref().filter(|name| Kind::parse(name).is_none())
            && !occurs(vault, source, name)?
        {
            return Err(Kind::unknown(name));
        }
        if let Some(text) = filter.subject.as_ref().filter(|s| !s.contains(':') && *s != "system") {
            match vault.view().and_then(|(_, state)| state.resolve(text, None)) {
                Ok(subject) => filter.subject = Some(subject.to_string()),
                // What is only in quarantine has an id, but no reference.
                Err(_) if source == LogSource::Quarantine => {}
                Err(unknown) => return Err(unknown),
            }
        }
        Ok(filter)
    }
}

/// Whether an event is about a subject, or about anything with this id.
fn is_about(event: &Event, subject: &str) -> bool {
    event.subject == subject || event.subject.split_once(':').is_some_and(|(_, id)| id == subject)
}

/// Whether an event of a newer version's type occurs.
fn occurs(vault: &Vault, source: LogSource, name: &str) -> Result<bool> {
    let mut found = false;
    let mut look = |event: Event| {
        found |= event.event_type.as_str() == name;
        Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    match source {
        LogSource::Log => vault.snapshot()?.events(Position::START, &mut |_, event, _| look(event))?,
        LogSource::Quarantine => drop(vault.quarantined(&mut |event, _, _| look(event))?),
    }
    Ok(found)
}

/// Where events are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogSource {
    #[default]
    Log,
    /// Intact events that a recovery cut off.
    Quarantine,
}

/// Where a page starts.
#[derive(Clone, Debug)]
pub enum PageStart {
    Oldest,
    /// After this event.
    After(String),
    /// So that it ends with the newest event.
    Newest,
}

/// One page of the log.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// Where to read them.
    pub source: LogSource,
    /// Which events to return.
    pub filter: EventFilter,
    /// Where it starts.
    pub start: PageStart,
    /// At most this many events.
    pub limit: usize,
    /// Whether to return the short references of the subjects, which requires the state.
    pub with_references: bool,
}

/// One event and the bytes of its line.
pub type LogEntry = (Event, Vec<u8>);

/// What `follow` passes on.
#[derive(Debug)]
pub enum FollowStep<'a> {
    /// The request is valid; entries follow.
    Started,
    Entry(&'a LogEntry),
}

/// Takes a step; returns whether to continue.
pub type EventSink<'a> = &'a mut dyn FnMut(FollowStep<'_>) -> Result<ControlFlow<()>>;

#[derive(Debug)]
pub struct LogOutcome {
    pub entries: Vec<LogEntry>,
    /// Where they were read.
    pub source: LogSource,
    /// The filter, with references resolved.
    pub filter: EventFilter,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<Ulid>,
    /// The limit of the request.
    pub limit: usize,
    /// The short references of the subjects that have one.
    pub references: References,
    pub warnings: Vec<String>,
}

fn check_limit(limit: usize) -> Result<()> {
    let max = limits::PAGE_MAX_COUNT;
    match (1..=max).contains(&limit) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::LimitExceeded, format!("invalid limit {limit}; must be 1 to {max}"))),
    }
}

/// Returns one page of events.
pub fn log(ctx: &Context, request: LogRequest) -> Result<LogOutcome> {
    check_limit(request.limit)?;
    let vault = ctx.open()?;
    let filter = request.filter.resolved(&vault, request.source)?;
    if request.source == LogSource::Quarantine {
        return quarantined(&vault, &request, filter);
    }
    let snapshot = vault.snapshot()?;
    let from = match &request.start {
        PageStart::Oldest => Position::START,
        PageStart::After(cursor) => position_after(&snapshot, cursor)?,
        PageStart::Newest => {
            let entries = newest(&snapshot, &filter, request.limit)?;
            return Ok(outcome(&vault, &request, filter, entries, None));
        }
    };
    let mut entries: Vec<LogEntry> = Vec::new();
    let mut more = false;
    snapshot.events(from, &mut |_, event, line| {
        if filter.matches(&event) {
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
    // Best effort: if the state cannot be read there are no references.
    let state = if request.with_references { vault.view().ok() } else { None };
    let subjects = entries.iter().map(|(event, _)| event.subject.as_str());
    let references = state.map(|(_, state)| references(&state, subjects)).unwrap_or_default();
    let (source, limit) = (request.source, request.limit);
    LogOutcome { entries, source, filter, next_cursor, limit, references, warnings: Vec::new() }
}

/// One page of the events in quarantine, in the order of their ids. Each is listed once, even if an interrupted recovery
/// left it in two files.
fn quarantined(vault: &Vault, request: &LogRequest, filter: EventFilter) -> Result<LogOutcome> {
    let cursor = match &request.start {
        PageStart::After(cursor) => Some(parse_ulid(cursor).ok_or_else(invalid_cursor)?),
        PageStart::Oldest | PageStart::Newest => None,
    };
    let mut page: BTreeMap<(Ulid, Digest), LogEntry> = BTreeMap::new();
    let (mut is_known, mut more) = (cursor.is_none(), false);
    let warnings = vault.quarantined(&mut |event, line, _| {
        is_known |= cursor == Some(event.id);
        if cursor.is_none_or(|cursor| event.id > cursor) && filter.matches(&event) {
            page.insert((event.id, event.hash), (event, line.to_vec()));
        }
        if page.len() > request.limit {
            match request.start {
                PageStart::Newest => page.pop_first(),
                PageStart::Oldest | PageStart::After(_) => page.pop_last(),
            };
            more = true;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if !is_known {
        return Err(invalid_cursor());
    }
    more &= !matches!(request.start, PageStart::Newest);
    let next_cursor = page.keys().last().filter(|_| more).map(|(id, _)| *id);
    let done = outcome(vault, request, filter, page.into_values().collect(), next_cursor);
    Ok(LogOutcome { warnings, ..done })
}

fn invalid_cursor() -> Error {
    Error::new(ErrorKind::InvalidCursor, "unknown cursor; it must be the id of an event in this log")
}

/// The position after a cursor's event.
fn position_after(snapshot: &Snapshot, cursor: &str) -> Result<Position> {
    let id = parse_ulid(cursor).ok_or_else(invalid_cursor)?;
    snapshot.find(id)?.ok_or_else(invalid_cursor)?;
    snapshot.seek(id.increment().map_err(|_| invalid_cursor())?)
}

fn newest(snapshot: &Snapshot, filter: &EventFilter, limit: usize) -> Result<Vec<LogEntry>> {
    let mut entries: Vec<LogEntry> = Vec::new();
    snapshot.events_back(&mut |event, line| {
        if filter.matches(&event) {
            entries.push((event, line.to_vec()));
        }
        Ok(if entries.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    entries.reverse();
    Ok(entries)
}

/// Passes events to `sink` as they are published, until it returns a break. `Newest` starts with the last `limit`
/// events.
pub fn follow(ctx: &Context, request: LogRequest, sink: EventSink<'_>) -> Result<()> {
    check_limit(request.limit)?;
    let vault = ctx.open()?;
    let mut watch = vault.watch();
    let filter = request.filter.resolved(&vault, LogSource::Log)?;
    let snapshot = vault.snapshot()?;
    let (first, mut seen) = match &request.start {
        PageStart::Oldest => (Vec::new(), None),
        PageStart::After(cursor) => {
            position_after(&snapshot, cursor)?;
            (Vec::new(), parse_ulid(cursor))
        }
        PageStart::Newest => (newest(&snapshot, &filter, request.limit)?, snapshot.head.map(|head| head.id)),
    };
    if sink(FollowStep::Started)?.is_break() {
        return Ok(());
    }
    for entry in &first {
        if sink(FollowStep::Entry(entry))?.is_break() {
            return Ok(());
        }
    }
    loop {
        if pass_on(&vault, &filter, &mut seen, sink)?.is_break() {
            return Ok(());
        }
        watch.wait();
    }
}

/// Passes on what was published after `seen`.
fn pass_on(
    vault: &Vault,
    filter: &EventFilter,
    seen: &mut Option<Ulid>,
    sink: EventSink<'_>,
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
        if filter.matches(&event) {
            flow = sink(FollowStep::Entry(&(event, line.to_vec())))?;
        }
        Ok(flow)
    })?;
    Ok(flow)
}
