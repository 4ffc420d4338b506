//! hf-log: show events.

use std::ops::ControlFlow;

use clap::{ArgMatches, Parser, Subcommand};

use super::args::{GlobalArgs, parse_time};
use super::main::has_flag;
use super::{Command, Output, StdoutWriter};
use crate::base::{Error, Timestamp, limits};
use crate::op::{self, Context, EventFilter, FollowStep, LogRequest, LogSource, PageStart, ShowEventRequest};
use crate::reply::{Key, Reply, Status, event_row, list_line};

/// Show events, oldest first, or one event in full
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-log --last 20                               the newest 20 events
  hf-log --subject T-0001                        the history of a task
  hf-log --type TaskFailed --since 2026-01-31
  hf-log --since 2h                              the last two hours
  hf-log --limit 500 --jsonl | jq .payload
  hf-log --follow                                print new events as they are recorded
  hf-log show 01KGC75GK0                         one event with its whole payload, by the start of its id
  hf-log --quarantined                           intact events that a recovery cut off"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Only events of this type, such as TaskFailed
    #[arg(long = "type", value_name = "EVENT_TYPE")]
    event_type: Option<String>,
    /// Only events about this: TYPE:ID, system, an id, a reference such as T-0001, or the start of a ULID
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Only events by this actor, such as agent:builder
    #[arg(id = "by", long = "actor", value_name = "ACTOR")]
    by: Option<String>,
    /// Only events from this time on: 2026-01-31, 2026-01-31T12:00:00Z (UTC), or 2h for two hours ago
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events up to this time; a date includes that whole day
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Show up to N events per page, 500 at most
    #[arg(long, value_name = "N", default_value_t = limits::PAGE_DEFAULT_COUNT)]
    limit: usize,
    /// Continue after this event: NEXT_CURSOR of the previous page
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    cursor: Option<String>,
    /// Show the newest N events
    #[arg(long, value_name = "N", conflicts_with = "limit")]
    last: Option<usize>,
    /// Show the newest events (10 unless --last is given), then new ones as they are recorded, until interrupted
    #[arg(long)]
    follow: bool,
    /// Print the events as JSON lines, exactly as stored; the reply goes to standard error
    #[arg(long)]
    jsonl: bool,
    /// Show the intact events that a recovery cut off and kept; they are not part of the log
    #[arg(long, conflicts_with = "follow")]
    quarantined: bool,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show one event in full: every member and the whole payload
    Show {
        /// The event's id, or the start of it
        #[arg(value_name = "EVENT_ID")]
        reference: String,
    },
}

/// How many earlier events `--follow` shows first.
const FOLLOW_FIRST_EVENTS: usize = 10;

impl Command for Args {
    const NAME: &str = "hf-log";

    fn writes_document(matches: &ArgMatches) -> bool {
        has_flag(matches, &["jsonl"])
    }

    fn run(self, ctx: &Context, out: StdoutWriter) -> anyhow::Result<Output> {
        if let Some(Verb::Show { reference }) = &self.verb {
            if let Some(option) = self.list_option() {
                return Err(Error::usage(format!("{option} selects a list of events; it does not apply to show")).into());
            }
            return Ok(op::show_event(ctx, ShowEventRequest { reference: reference.clone() })?.into());
        }
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
    /// An option that was given and selects a list of events.
    fn list_option(&self) -> Option<&'static str> {
        let given = [
            ("--type", self.event_type.is_some()),
            ("--subject", self.subject.is_some()),
            ("--actor", self.by.is_some()),
            ("--since", self.since.is_some()),
            ("--until", self.until.is_some()),
            ("--limit", self.limit != limits::PAGE_DEFAULT_COUNT),
            ("--cursor", self.cursor.is_some()),
            ("--last", self.last.is_some()),
            ("--follow", self.follow),
            ("--jsonl", self.jsonl),
            ("--quarantined", self.quarantined),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    fn request(&self, now: Timestamp, out: StdoutWriter) -> anyhow::Result<LogRequest> {
        let time = |text: &Option<String>| text.as_deref().map(|text| parse_time(text, now)).transpose();
        let filter = EventFilter {
            event_type: self.event_type.clone(),
            subject: self.subject.clone(),
            actor: self.by.clone(),
            since: time(&self.since)?,
            until: time(&self.until)?.map(|until| match self.until.as_deref().is_some_and(Timestamp::is_day) {
                // A day includes its last second.
                true => Timestamp(until.0 + 24 * 60 * 60 - 1),
                false => until,
            }),
        };
        let (start, limit) = match (&self.cursor, self.last) {
            (Some(cursor), _) => (PageStart::After(cursor.clone()), self.limit),
            (None, Some(last)) => (PageStart::Newest, last),
            (None, None) if self.follow => (PageStart::Newest, FOLLOW_FIRST_EVENTS),
            (None, None) => (PageStart::Oldest, self.limit),
        };
        let source = if self.quarantined { LogSource::Quarantine } else { LogSource::Log };
        Ok(LogRequest { source, filter, start, limit, with_references: out.screen.is_some() })
    }

    fn follow(&self, ctx: &Context, request: LogRequest, out: StdoutWriter) -> anyhow::Result<Output> {
        if out.is_json() {
            return Err(Error::usage("--follow cannot be combined with --json; use --follow --jsonl").into());
        }
        let reply = Reply::new(Status::Following, "showing new events as they are recorded");
        op::follow(ctx, request, &mut |followed| match (followed, self.jsonl) {
            (FollowStep::Started, true) => Ok(ControlFlow::Continue(())),
            (FollowStep::Started, false) => out.reply(&reply),
            (FollowStep::Entry((_, line)), true) => out.document(&[line.as_slice(), b"\n"].concat()),
            (FollowStep::Entry((event, _)), false) => out.write(list_line(Key::Event, &event_row(event)).as_bytes()),
        })?;
        Ok(Output::Streamed)
    }
}
