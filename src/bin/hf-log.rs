//! hf-log: read events.

use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::Parser;
use hiveforge::base::{Actor, Error, Subject, Timestamp, limits, text};
use hiveforge::event::Kind;
use hiveforge::op::{self, Env, Filter, LogOutcome, LogRequest, Start};
use hiveforge::ui::{self, Common, Key, Next, Out, Output, Report, Status, show};

/// Read events, newest last
#[derive(Parser, Debug)]
#[command(
    name = "hf-log",
    version,
    after_help = "Examples:
  hf-log --last 20
  hf-log --subject T-0001
  hf-log --type TaskFailed --since 2026-01-31
  hf-log --limit 500 --jsonl | jq .payload
  hf-log --follow"
)]
pub struct Args {
    /// Only events of this type
    #[arg(long = "type", value_name = "EVENT_TYPE")]
    event_type: Option<String>,
    /// Only events about this: TYPE:ID, system, an id, a short reference, the beginning of a ULID
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Only events by this actor
    #[arg(long, value_name = "ACTOR")]
    actor: Option<String>,
    /// Only events at or after this time (UTC; a day, or a time of day with it)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events at or before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Events on a page, 500 at most
    #[arg(long, value_name = "N", default_value_t = limits::LOG_PAGE_DEFAULT_EVENTS)]
    limit: usize,
    /// Go on behind this event, the NEXT_CURSOR of the page before
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    cursor: Option<String>,
    /// The newest events instead of the oldest
    #[arg(long, value_name = "N", conflicts_with = "limit")]
    last: Option<usize>,
    /// Go on as events come, until interrupted; begins with the last ten
    #[arg(long)]
    follow: bool,
    /// The stored lines themselves, on standard output; the reply goes to standard error
    #[arg(long)]
    jsonl: bool,
    #[command(flatten)]
    common: Common,
}

hiveforge::cli!(Args, documents & ["--jsonl"]);

/// How many events `--follow` begins with.
const FOLLOW_BEGINS_WITH_EVENTS: usize = 10;

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, out| {
        let request = request(&args)?;
        if args.follow {
            return follow(env, &request, &args, out);
        }
        let done = op::log(env, &request)?;
        let report = report(&args, &done);
        if args.jsonl {
            let lines = done.entries.iter().flat_map(|(_, line)| [line.as_slice(), b"\n"]).collect::<Vec<_>>().concat();
            return Ok(Output::Document(lines, report));
        }
        Ok(report.with_each(Key::Event, done.entries.iter().map(|(event, _)| show::event(event))).into())
    })
}

fn request(args: &Args) -> anyhow::Result<LogRequest> {
    let time = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => Timestamp::parse_lenient(text).map(Some).ok_or_else(|| {
            Error::usage(format!("'{}' is not a time: write 2026-01-31 or 2026-01-31T12:00:00Z", text::cut(text, 40)))
        }),
    };
    let filter = Filter {
        event_type: args.event_type.clone(),
        subject: args.subject.clone(),
        actor: args.actor.clone(),
        since: time(&args.since)?,
        until: time(&args.until)?.map(|until| match args.until.as_deref().is_some_and(Timestamp::is_day) {
            // A day ends with its last second.
            true => Timestamp(until.0 + 24 * 60 * 60 - 1),
            false => until,
        }),
    };
    let (start, limit) = match (&args.cursor, args.last) {
        (Some(cursor), _) => (Start::After(cursor.clone()), args.limit),
        (None, Some(last)) => (Start::Newest, last),
        (None, None) if args.follow => (Start::Newest, FOLLOW_BEGINS_WITH_EVENTS),
        (None, None) => (Start::Oldest, args.limit),
    };
    Ok(LogRequest { filter, start, limit })
}

fn report(args: &Args, done: &LogOutcome) -> Report {
    let count = done.entries.len();
    let more = if done.next_cursor.is_some() { "yes" } else { "no" };
    let next = done.next_cursor.and_then(|cursor| {
        let next = Next::run("hf-log").arg("--cursor", &cursor).arg("--limit", &args.limit);
        repeat_filter(if args.jsonl { next.word("--jsonl") } else { next }, &done.filter)
    });
    Report::new(Status::Ok, format!("{count} events"))
        .next(next.unwrap_or(Next::None))
        .with(Key::Count, count as u64)
        .with(Key::HasMore, more)
        .with_some(Key::NextCursor, done.next_cursor.map(|id| id.to_string()))
}

/// The same filter for the next page; nothing if a part of it is not plain.
fn repeat_filter(mut next: Next, filter: &Filter) -> Option<Next> {
    if let Some(name) = &filter.event_type {
        next = next.word("--type").word(Kind::parse(name)?.as_str());
    }
    if let Some(subject) = &filter.subject {
        next = next.arg("--subject", &Subject::parse(subject).ok()?);
    }
    if let Some(actor) = &filter.actor {
        next = next.arg("--actor", &Actor::parse(actor).ok()?);
    }
    for (option, time) in [("--since", filter.since), ("--until", filter.until)] {
        if let Some(time) = time {
            next = next.arg(option, &time);
        }
    }
    Some(next)
}

fn follow(env: &Env, request: &LogRequest, args: &Args, out: Out) -> anyhow::Result<Output> {
    if out.json {
        return Err(Error::usage("--follow has no end, so it has no JSON reply: use --follow --jsonl").into());
    }
    let reply = Report::new(Status::Following, "events as they come").lines(None);
    let mut begin = || if args.jsonl { Ok(ControlFlow::Continue(())) } else { out.write(reply.as_bytes()) };
    op::follow(env, request, &mut begin, &mut |(event, line)| {
        out.write(&match args.jsonl {
            true => [line.as_slice(), b"\n"].concat(),
            false => format!("{}:{}\n", Key::Event, text::escape(&show::event(event))).into_bytes(),
        })
    })?;
    Ok(Output::Streamed)
}
