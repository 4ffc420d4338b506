//! hf-append: record events.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;

use super::args::{ActorArgs, GlobalArgs, read_lines};
use super::{Command, Output, StdoutWriter};
use crate::base::{Error, ErrorKind, limits};
use crate::event::{Kind, intake};
use crate::op::{self, AppendBatchRequest, AppendRequest, AppendStreamRequest, Context, Mode, NewEvent};
use crate::reply::{Appended, Streamed};

/// Record one event, a batch, or a stream of events
#[derive(Parser, Debug)]
#[command(name = Self::NAME, version, after_help = help())]
pub struct Args {
    /// The event type; see the list below
    #[arg(value_name = "EVENT_TYPE", required_unless_present_any = ["batch", "stream"])]
    event_type: Option<String>,
    /// Read the payload from standard input
    #[arg(value_name = "-", value_parser = ["-"], conflicts_with_all = ["payload", "payload_file"])]
    stdin: Option<String>,
    /// What the event is about: an id, TYPE:ID, a reference such as T-0001, or the start of a ULID
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// The payload, a JSON object [default: {}]
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// Read the payload from this file
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// The id of an event that caused this one (repeatable) [default: derived from the subject]
    #[arg(long = "parent", value_name = "ID")]
    parents: Vec<String>,
    /// Idempotency key: repeating a request with the same key records nothing and returns the first event
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Read events from standard input, one per line, and record all or none of them
    #[arg(long, conflicts_with_all = ["event_type", "subject", "payload", "payload_file", "parents", "stream"])]
    batch: bool,
    /// Read any number of events from standard input, one per line, and commit every thousand
    #[arg(long, conflicts_with_all = ["event_type", "subject", "payload", "payload_file", "parents", "key"])]
    stream: bool,
    /// Check whether it could be recorded, but record nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    actor: ActorArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

const EXAMPLES: &str = "Examples:
  hf-append RequirementProposed --payload '{\"title\":\"Login\"}'
  hf-append TaskReady --subject T-0001 --key t1:ready
  echo '{\"title\":\"Login\"}' | hf-append RequirementProposed -
  hf-append --batch --key import-7 < events.jsonl

With --batch and --stream, each line is a JSON object with event_type and, as needed, \
subject, payload, parents, idempotency_key and actor.";

/// The examples, and the list of all event types.
fn help() -> String {
    let types = Kind::ALL.iter().filter(|kind| !kind.row().reserved);
    let lines = types.map(|kind| format!("\n  {kind:<24}{}", kind.row().meaning)).collect::<String>();
    format!("{EXAMPLES}\n\nEvent types (see hf-format(5) for their payloads):{lines}")
}

impl Command for Args {
    const NAME: &str = "hf-append";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        let dry_run = self.dry_run;
        let mode = if dry_run { Mode::DryRun } else { Mode::Write };
        if self.stream {
            let mut lines = read_lines(io::stdin().lock());
            let mut events = || lines().map(|line| op::parse_line(&line?));
            let done = op::append_stream(ctx, AppendStreamRequest { mode }, &mut events);
            return Ok(Streamed { done: &done, dry_run }.into());
        }
        let key = self.key.clone().filter(|_| self.batch);
        let (done, of) = if self.batch {
            let events = read_batch()?;
            let of = events.len();
            (op::append_batch(ctx, AppendBatchRequest { events, key: self.key, mode })?, of)
        } else {
            let payload = read_payload(&self)?;
            let event = NewEvent {
                event_type: self.event_type.unwrap_or_default(),
                subject: self.subject,
                payload: intake::parse_payload(&payload)?,
                parents: self.parents,
                key: self.key,
                actor: None,
            };
            (op::append(ctx, AppendRequest { event, mode })?, 1)
        };
        Ok(Appended { done: &done, of, key, dry_run }.into())
    }
}

fn read_payload(args: &Args) -> anyhow::Result<Vec<u8>> {
    // Reading one byte more than the limit shows that a payload is too large.
    let max_read = limits::EVENT_MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    match (&args.payload, &args.payload_file, &args.stdin) {
        (Some(text), _, _) => bytes.extend(text.as_bytes()),
        (_, Some(file), _) => {
            let opened =
                fs::File::open(file).map_err(|e| Error::usage(format!("cannot open {}: {e}", file.display())))?;
            let read = opened.take(max_read).read_to_end(&mut bytes);
            read.map_err(|e| Error::usage(format!("cannot read {}: {e}", file.display())))?;
        }
        (_, _, Some(_)) => {
            io::stdin().take(max_read).read_to_end(&mut bytes).context("cannot read standard input")?;
        }
        _ => bytes.extend(b"{}"),
    }
    Ok(bytes)
}

fn read_batch() -> anyhow::Result<Vec<NewEvent>> {
    let mut lines = read_lines(io::stdin().lock());
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let Some(line) = lines() {
        let number = events.len() + 1;
        let line = line.map_err(|e| e.at(format!("line {number}")))?;
        bytes += line.len();
        if number > limits::BATCH_MAX_EVENTS || bytes > limits::BATCH_MAX_BYTES {
            let (max_events, max_bytes) = (limits::BATCH_MAX_EVENTS, limits::BATCH_MAX_BYTES);
            let why = format!(
                "line {number}: a batch can have at most {max_events} events and {max_bytes} bytes; use --stream for more"
            );
            return Err(Error::new(ErrorKind::LimitExceeded, why).into());
        }
        events.push(op::parse_line(&line).map_err(|e| e.at(format!("line {number}")))?);
    }
    Ok(events)
}
