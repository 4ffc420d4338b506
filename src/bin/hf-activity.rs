//! hf-activity: log what was done.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use hiveforge::op::agent::{self, ActivityRequest};
use hiveforge::ui::{self, Agentic, Common, Key, Next, Report, Status};

/// Log an activity that is over: thinking, observing, creating, introspection, …
#[derive(Parser, Debug)]
#[command(
    name = "hf-activity",
    version,
    after_help = "Examples:
  hf-activity --kind creating --title 'The third character' - < story.md
  hf-activity --kind introspection --title 'What this hour taught me'
  hf-activity --kind thinking --emergency 'The disk is full, that comes first'

A log completes an open deep work; the one after that has to be an introspection."
)]
pub struct Args {
    /// What kind of activity it was
    #[arg(long, value_name = "KIND")]
    kind: String,
    /// What it was, in one line
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// A file that holds the log
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    file: Option<PathBuf>,
    /// Read the log from standard input
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
    /// Put the duty to look inward off by this one log, and say why
    #[arg(long, value_name = "REASON")]
    emergency: Option<String>,
    #[command(flatten)]
    agentic: Agentic,
    #[command(flatten)]
    common: Common,
}

hiveforge::cli!(Args, by agent);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let text = ui::read_text(args.stdin, args.file.as_deref())?;
        let (kind, title, emergency) = (args.kind, args.title, args.emergency);
        let done = agent::activity(env, &ActivityRequest { kind, title, text, emergency })?;
        let due = done.introspection_due;
        let next = Next::run("hf-activity").word("--kind introspection").of_agent(args.agentic.agent.as_deref());
        Ok(Report::new(Status::Recorded, "the activity is logged")
            .next(if due { next } else { Next::None })
            .with(Key::HeartbeatId, done.heartbeat_id.to_string())
            .with_some(Key::File, done.file)
            .with_some(Key::Completed, done.completed)
            .with(Key::IntrospectionDue, if due { "yes" } else { "no" })
            .warn(done.warnings)
            .into())
    })
}
