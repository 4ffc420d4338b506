//! hf-deepwork: say beforehand that little will be shown for a while.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hiveforge::base::{EntityType, Timestamp};
use hiveforge::op::agent::{self, DeepWorkOutcome, DeepWorkRequest};
use hiveforge::op::{Env, ListRequest, Listed, Projection, project};
use hiveforge::state::Entity;
use hiveforge::ui::{self, Agentic, Common, Key, Next, Output, Paged, Report, Status, outcome};

/// Declare deep work, look at it, end it
#[derive(Parser, Debug)]
#[command(
    name = "hf-deepwork",
    version,
    after_help = "Examples:
  hf-deepwork start --strict 45 'Rendering all characters'
  hf-deepwork extend 15
  hf-deepwork status
  hf-deepwork complete
  hf-deepwork start --flexible 'A long refactoring'
  hf-deepwork list

Flexible: checkpoints still come, activity logs and introspections need not; it ends with the next activity
log. Strict: nothing need come until its time is over."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    agentic: Agentic,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Declare deep work
    Start {
        /// What you will do, in one line
        activity: String,
        /// Checkpoints will come
        #[arg(long, required_unless_present = "strict", conflicts_with = "strict")]
        flexible: bool,
        /// Nothing will come for so many minutes
        #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..))]
        strict: Option<u64>,
    },
    /// Say what you are in
    Status,
    /// Say that it is over; an activity log does that too
    Complete,
    /// A strict one takes so many minutes longer
    Extend {
        /// How many
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        minutes: u64,
    },
    /// List deep works: what was declared, and what it took
    List {
        #[command(flatten)]
        paged: Paged,
    },
    /// Rename what an older version left (extended_processing, processed.*, expired.*)
    Migrate,
}

hiveforge::cli!(Args, by agent);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| match args.what {
        What::Start { activity, strict, .. } => {
            Ok(report(&agent::start(env, &DeepWorkRequest { activity, strict_minutes: strict })?).into())
        }
        What::Complete => {
            let next = Next::run("hf-activity").word("--kind introspection").of_agent(args.agentic.agent.as_deref());
            Ok(report(&agent::complete(env)?).next(next).into())
        }
        What::Extend { minutes } => Ok(report(&agent::extend(env, minutes)?).into()),
        What::Status => Ok(match agent::status(env)? {
            None => Report::new(Status::Ok, "no deep work is open"),
            Some(work) => Report::new(Status::Ok, outcome::sentence(&work))
                .with_some(Key::Mode, work.text("mode"))
                .with_each(Key::DeepWork, [line(&work, env.now.timestamp())]),
        }
        .into()),
        What::List { paged } => list(env, paged),
        What::Migrate => {
            let did = agent::migrate(env)?;
            let status = if did.is_empty() { Status::Duplicate } else { Status::Recorded };
            Ok(Report::new(status, format!("{} renamed", did.len())).with_each(Key::Did, did).into())
        }
    })
}

fn report(done: &DeepWorkOutcome) -> Report {
    let work = done.recorded.entity.as_ref();
    outcome::recorded(&done.recorded)
        .with_some(Key::HeartbeatId, done.heartbeat_id.as_ref().map(ToString::to_string))
        .with_some(Key::Mode, work.and_then(|work| work.text("mode")))
        .with_some(Key::Until, done.until.map(|until| until.to_string()))
        .warn(done.warnings.clone())
}

/// `DW-0001 Open strict 45 12 Rendering`; `-` where nothing was declared.
fn line(work: &Entity, now: Timestamp) -> String {
    let declared = work.text("mode").filter(|mode| *mode == "strict").map(|_| work.count("minutes").to_string());
    let started = work.time("started_at").unwrap_or(work.created_at);
    let took = (work.time("ended_at").unwrap_or(now).0 - started.0).max(0) / 60;
    let text = |fact: &str| work.text(fact).unwrap_or("-").to_owned();
    format!(
        "{} {} {} {} {took} {}",
        work.name(),
        work.state,
        text("mode"),
        declared.unwrap_or_else(|| "-".to_owned()),
        text("activity")
    )
}

fn list(env: &Env, paged: Paged) -> anyhow::Result<Output> {
    let request = ListRequest {
        made_for: Some((env.actor.to_string(), EntityType::Agent)),
        limit: paged.limit,
        cursor: paged.cursor,
        ..ListRequest::of(Projection::Of(EntityType::DeepWork))
    };
    let done = project::list(env, &request)?;
    let lines = done.entries.iter().filter_map(|entry| match entry {
        Listed::Entity(work) => Some(line(work, env.now.timestamp())),
        Listed::Key(..) => None,
    });
    let next = Next::run("hf-deepwork").word("list").arg("--limit", &paged.limit);
    Ok(outcome::page(&done, EntityType::DeepWork.plural(), next).with_each(Key::DeepWork, lines).into())
}
