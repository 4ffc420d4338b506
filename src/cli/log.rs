//! hf-log: read events.

use std::ops::ControlFlow;

use clap::{ArgMatches, Parser};

use super::args::{Common, parse_time};
use super::main::flagged;
use super::{Command, Out, Output};
use crate::base::{Error, Timestamp, limits};
use crate::op::{self, Context, Filter, Followed, LogRequest, Start};
use crate::reply::{Key, Reply, Status, event_row, list_line};

/// Read events, newest last
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-log --last 20
  hf-log --subject T-0001
  hf-log --type TaskFailed --since 2026-01-31
  hf-log --since 2h
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
    #[arg(id = "by", long = "actor", value_name = "ACTOR")]
    by: Option<String>,
    /// Only events at or after this time: a day, a time (UTC), or how long ago, such as 2h
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

/// How many events `--follow` begins with.
const FOLLOW_BEGINS_WITH_EVENTS: usize = 10;

impl Command for Args {
    const NAME: &str = "hf-log";

    fn is_document(matches: &ArgMatches) -> bool {
        flagged(matches, &["jsonl"])
    }

    fn run(self, ctx: &Context, out: Out) -> anyhow::Result<Output> {
        let request = self.request(ctx.now.timestamp(), out)?;
        if self.follow {
            return self.follow(ctx, request, out);
        }
        let done = op::log(ctx, request)?;
        if self.jsonl {
            let lines = done.entries.iter().flat_map(|(_, line)| [line.as_slice(), b"\n"]).collect::<Vec<_>>().concat();
            return Ok(Output::document(lines, done.reply_beside_jsonl()));
        }
        Ok(done.into())
    }
}

impl Args {
    fn request(&self, now: Timestamp, out: Out) -> anyhow::Result<LogRequest> {
        let time = |text: &Option<String>| text.as_deref().map(|text| parse_time(text, now)).transpose();
        let filter = Filter {
            event_type: self.event_type.clone(),
            subject: self.subject.clone(),
            actor: self.by.clone(),
            since: time(&self.since)?,
            until: time(&self.until)?.map(|until| match self.until.as_deref().is_some_and(Timestamp::is_day) {
                // A day ends with its last second.
                true => Timestamp(until.0 + 24 * 60 * 60 - 1),
                false => until,
            }),
        };
        let (start, limit) = match (&self.cursor, self.last) {
            (Some(cursor), _) => (Start::After(cursor.clone()), self.limit),
            (None, Some(last)) => (Start::Newest, last),
            (None, None) if self.follow => (Start::Newest, FOLLOW_BEGINS_WITH_EVENTS),
            (None, None) => (Start::Oldest, self.limit),
        };
        Ok(LogRequest { filter, start, limit, with_references: out.screen.is_some() })
    }

    fn follow(&self, ctx: &Context, request: LogRequest, out: Out) -> anyhow::Result<Output> {
        if out.is_json() {
            return Err(Error::usage("--follow has no end, so it has no JSON reply: use --follow --jsonl").into());
        }
        let reply = Reply::new(Status::Following, "events as they come");
        op::follow(ctx, request, &mut |followed| match (followed, self.jsonl) {
            (Followed::Begins, true) => Ok(ControlFlow::Continue(())),
            (Followed::Begins, false) => out.reply(&reply),
            (Followed::Entry((_, line)), true) => out.write(&[line.as_slice(), b"\n"].concat()),
            (Followed::Entry((event, _)), false) => out.write(list_line(Key::Event, &event_row(event)).as_bytes()),
        })?;
        Ok(Output::Streamed)
    }
}
