//! hf-append: records one event, a batch, or a stream of batches, all the same way.

mod request;

use super::kernel::{Added, Context, LineNumber, Mode, Recorded, Transaction, with_line};
use crate::base::{Error, ErrorKind, Result, Ulid, limits, text};
use crate::event::{Event, parse_ulid};
use crate::policy;

use request::{CheckedEvent, check_all};
pub use request::{NewEvent, parse_line};

/// One event to record.
#[derive(Clone, Debug)]
pub struct AppendRequest {
    /// The event.
    pub event: NewEvent,
    /// Whether to record, or only to check.
    pub mode: Mode,
}

/// Records one event; in a dry run only checks whether it could be recorded.
pub fn append(ctx: &Context, request: AppendRequest) -> Result<Recorded> {
    record(ctx, vec![request.event], &|_| None, request.mode)
}

/// Events to record together.
#[derive(Clone, Debug)]
pub struct AppendBatchRequest {
    /// The events, in order.
    pub events: Vec<NewEvent>,
    /// Idempotency key of the whole batch.
    pub key: Option<String>,
    /// Whether to record, or only to check.
    pub mode: Mode,
}

/// Records all events or none; an error names the line.
pub fn append_batch(ctx: &Context, request: AppendBatchRequest) -> Result<Recorded> {
    let AppendBatchRequest { mut events, key, mode } = request;
    match (events.first_mut(), key) {
        (None, _) => return Err(Error::usage("empty batch; it must have at least one line")),
        (Some(first), Some(key)) if first.key.is_none() => first.key = Some(key),
        (Some(_), Some(_)) => {
            return Err(Error::usage("--key conflicts with idempotency_key of the first line; use only one"));
        }
        (Some(_), None) => {}
    }
    if events.len() > limits::BATCH_MAX_EVENTS {
        let why = format!("batch of {} events; at most {}", events.len(), limits::BATCH_MAX_EVENTS);
        return Err(Error::new(ErrorKind::LimitExceeded, why));
    }
    record(ctx, events, &|n| Some(n + 1), mode)
}

fn record(ctx: &Context, events: Vec<NewEvent>, line_number: LineNumber<'_>, mode: Mode) -> Result<Recorded> {
    let checked = check_all(ctx, events, line_number)?;
    let vault = ctx.open()?;
    let mut tx = Transaction::open(ctx, &vault, mode)?;
    for (n, checked) in checked.iter().enumerate() {
        tx.warn_if_large(&checked.request, line_number(n));
    }
    let requests: Vec<&policy::Request> = checked.iter().map(|checked| &checked.request).collect();
    if let Some(first) = tx.all_repeated(&requests, line_number)? {
        return Ok(Recorded { warnings: std::mem::take(&mut tx.warnings), ..first });
    }
    let mut asked = Vec::with_capacity(checked.len());
    for (n, request) in checked.into_iter().enumerate() {
        asked.push(ask(&mut tx, request).map_err(|e| with_line(line_number, n, e))?);
    }
    tx.finish(&asked)
}

/// How a stream of events is to be recorded.
#[derive(Clone, Debug)]
pub struct AppendStreamRequest {
    /// Whether to record, or only to check.
    pub mode: Mode,
}

/// What `append_stream` recorded, also if it ended with an error.
#[derive(Debug, Default)]
pub struct StreamOutcome {
    pub recorded: u64,
    pub duplicates: u64,
    pub last: Option<Event>,
    pub warnings: Vec<String>,
    pub error: Option<Error>,
}

/// Records any number of lines, which `next` returns, and commits every thousand. Lines whose key is recorded already
/// are skipped, so that a stream that broke off can be sent again.
pub fn append_stream(
    ctx: &Context,
    request: AppendStreamRequest,
    next: &mut dyn FnMut() -> Option<Result<NewEvent>>,
) -> StreamOutcome {
    let mode = request.mode;
    let mut done = StreamOutcome::default();
    let mut first_line = 1;
    loop {
        let (mut chunk, mut bytes, mut broken, mut ended) = (Vec::new(), 0, None, false);
        // Large events fill a batch before it has a thousand. One more event always has to fit.
        let bytes_max = limits::BATCH_MAX_BYTES - 2 * limits::EVENT_MAX_BYTES;
        while chunk.len() < limits::STREAM_COMMIT_EVENTS && bytes < bytes_max && broken.is_none() && !ended {
            match next() {
                Some(Ok(request)) => {
                    bytes += request.written_bytes();
                    chunk.push(request);
                }
                Some(Err(error)) => broken = Some(error.at(format!("line {}", first_line + chunk.len()))),
                None => ended = true,
            }
        }
        let length = chunk.len();
        // Lines before an invalid one are recorded.
        let recorded = record_chunk(ctx, chunk, first_line, mode, &mut done);
        done.warnings.dedup();
        let last_line = first_line + length.saturating_sub(1);
        let recorded = recorded.map_err(|error| match error.kind {
            // A stream has no key, but a batch of the same lines can have one.
            ErrorKind::Uncertain { .. } => {
                error.at(format!("send lines {first_line} to {last_line} again with --batch"))
            }
            _ => error,
        });
        done.error = recorded.err().or(broken);
        if done.error.is_some() || ended {
            return done;
        }
        first_line += length;
    }
}

fn record_chunk(
    ctx: &Context,
    chunk: Vec<NewEvent>,
    first_line: usize,
    mode: Mode,
    done: &mut StreamOutcome,
) -> Result<()> {
    if chunk.is_empty() {
        return Ok(());
    }
    let line_number: LineNumber<'_> = &|n| Some(first_line + n);
    let checked = check_all(ctx, chunk, line_number)?;
    let vault = ctx.open()?;
    let mut tx = Transaction::open(ctx, &vault, mode)?;
    for (n, checked) in checked.iter().enumerate() {
        tx.warn_if_large(&checked.request, line_number(n));
    }
    let (mut asked, mut duplicates) = (Vec::new(), 0);
    for (n, request) in checked.into_iter().enumerate() {
        let step = match tx.first_with_key(&request.request).map_err(|e| with_line(line_number, n, e))? {
            Some(first) => policy::check_repeats(tx.state(), &first, &request.request).map(|()| duplicates += 1),
            None => ask(&mut tx, request).map(|step| match step.already {
                true => duplicates += 1,
                false => asked.push(step.id),
            }),
        };
        step.map_err(|e| with_line(line_number, n, e))?;
    }
    if let (Some(first), Some(last)) = (asked.first(), asked.last()) {
        let mut committed = tx.commit(*first)?;
        done.last = Some(committed.event(*last)?);
        done.warnings.append(&mut committed.warnings);
    }
    done.recorded += asked.len() as u64;
    done.duplicates += duplicates;
    Ok(())
}

/// Puts one request to the transaction, with the parents that it names.
fn ask(tx: &mut Transaction<'_>, checked: CheckedEvent) -> Result<Added> {
    let mut request = checked.request;
    for parent in &checked.parents {
        let id = find_parent(tx, parent)?;
        if !request.parents.contains(&id) {
            request.parents.push(id);
        }
    }
    tx.ask_sized(request)
}

/// Finds a parent by event id, by a reference to an entity (its last event), or by the start of an event id.
fn find_parent(tx: &Transaction<'_>, parent: &str) -> Result<Ulid> {
    let (snapshot, state) = (&*tx.log, tx.state());
    if let Some(id) = parse_ulid(parent)
        && snapshot.find(id)?.is_some()
    {
        return Ok(id);
    }
    if let Some(entity) = state.resolve(parent, None).ok().and_then(|subject| state.entity(&subject)) {
        return Ok(entity.last_event);
    }
    let shown = text::cut(parent, 80);
    if parent.is_empty() {
        // Every id starts with the empty string, and a new vault has exactly one.
        return Err(Error::not_found("parent '' not found"));
    }
    match snapshot.ids_with_prefix(parent)?.as_slice() {
        [one] => Ok(*one),
        [] => Err(Error::not_found(format!("parent '{shown}' not found"))),
        _ => Err(Error::not_found(format!("ambiguous parent '{shown}': several event ids start with it"))),
    }
}
