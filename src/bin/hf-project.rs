//! hf-project: the state, its caches, and whether they tell the truth.

use std::process::ExitCode;

use clap::Parser;
use hiveforge::base::{Error, limits};
use hiveforge::chain::Head;
use hiveforge::op::Env;
use hiveforge::op::project::{self, Counts, ListRequest, Projection};
use hiveforge::ui::{self, Common, Key, Next, Output, Report, Status, outcome};
use hiveforge::vault::projections;

/// Show the state that the log folds to; list, export, rebuild or check it
#[derive(Parser, Debug)]
#[command(
    name = "hf-project",
    version,
    after_help = "Examples:
  hf-project                         how many of everything, in which state
  hf-project tasks --status Running
  hf-project requirements --map      the whole map as JSON
  hf-project --check                 do the caches say what the events say?

Projections: requirements, decisions, tasks, runs, artifacts, constraints, agents, idempotency."
)]
pub struct Args {
    /// Which projection
    #[arg(value_name = "TYPE")]
    projection: Option<String>,
    /// Only entities in this state
    #[arg(long, value_name = "STATUS", requires = "projection")]
    status: Option<String>,
    /// Entries on a page, 500 at most
    #[arg(long, value_name = "N", default_value_t = limits::LOG_PAGE_DEFAULT_EVENTS)]
    limit: usize,
    /// Go on behind this id, the NEXT_CURSOR of the page before
    #[arg(long, value_name = "ID", requires = "projection")]
    cursor: Option<String>,
    /// The whole projection as one JSON map on standard output
    #[arg(long, requires = "projection", conflicts_with_all = ["status", "cursor"])]
    map: bool,
    /// Make index and projection files anew, from the events alone
    #[arg(long, conflicts_with_all = ["projection", "snapshot", "check"])]
    rebuild: bool,
    /// Write the whole state to snapshots/, named by the time or as given
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["projection", "check"])]
    snapshot: Option<String>,
    /// Compare index, projection files and newest snapshot with a rebuild
    #[arg(long, conflicts_with = "projection")]
    check: bool,
    #[command(flatten)]
    common: Common,
}

hiveforge::cli!(Args, documents & ["--map"]);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        if args.rebuild {
            let done = project::rebuild(env)?;
            return Ok(with_head(
                Report::new(Status::Rebuilt, "from the events alone").with(Key::Events, done.events),
                done.head,
            )
            .into());
        }
        if let Some(name) = &args.snapshot {
            let done = project::snapshot(env, Some(name.as_str()).filter(|name| !name.is_empty()))?;
            let report = Report::new(Status::Snapshot, "the whole state, with the head that it stands for")
                .with(Key::Path, format!("snapshots/{}", done.file))
                .with(Key::Events, done.events);
            return Ok(with_head(report, done.head).into());
        }
        if args.check {
            return check(env);
        }
        match &args.projection {
            None => summary(env),
            Some(name) => {
                let projection = Projection::parse(name)?;
                if args.map { map(env, projection) } else { list(env, projection, &args) }
            }
        }
    })
}

fn with_head(report: Report, head: Option<Head>) -> Report {
    report
        .with_some(Key::HeadId, head.map(|head| head.id.to_string()))
        .with_some(Key::HeadHash, head.map(|head| head.hash.to_string()))
}

fn summary(env: &Env) -> anyhow::Result<Output> {
    let done = project::summary(env)?;
    let lines = done.counts.iter().map(|Counts { entity, live, states }| {
        let states: String = states.iter().map(|(state, count)| format!(" {state}={count}")).collect();
        format!("{} {live}{states}", entity.plural())
    });
    let entities: u64 = done.counts.iter().map(|counts| counts.live).sum();
    let report = Report::new(Status::Ok, format!("{entities} entities from {} events", done.events))
        .with_each(Key::Projection, lines)
        .with(Key::Events, done.events);
    Ok(with_head(report, done.head).with_each(Key::Stale, done.stale).into())
}

fn map(env: &Env, projection: Projection) -> anyhow::Result<Output> {
    let (map, head) = project::map(env, projection)?;
    let report =
        Report::new(Status::Ok, format!("{} {}", map.len(), projection.name())).with(Key::Count, map.len() as u64);
    Ok(Output::Document(projections::render(&map), with_head(report, head)))
}

fn list(env: &Env, projection: Projection, args: &Args) -> anyhow::Result<Output> {
    let status = args.status.as_deref().map(project::parse_status).transpose()?;
    if status.is_some() && projection == Projection::Idempotency {
        return Err(Error::usage("keys have no status").into());
    }
    let states = status.into_iter().collect();
    let request = ListRequest { states, limit: args.limit, cursor: args.cursor.clone(), ..ListRequest::of(projection) };
    let done = project::list(env, &request)?;
    let next = Next::run("hf-project").word(projection.name()).arg("--limit", &args.limit);
    let next = status.map_or(next.clone(), |status| next.word("--status").word(status.as_str()));
    let report = outcome::page(&done, projection.name(), next);
    Ok(with_head(report, done.head).with_each(Key::Entity, outcome::lines(&done)).into())
}

fn check(env: &Env) -> anyhow::Result<Output> {
    let done = project::check(env)?;
    let report = match done.differences.len() {
        0 => Report::new(Status::Consistent, "index, projections and snapshot say what the events say"),
        n => {
            let mend = if done.rebuild_mends { "--rebuild" } else { "--snapshot" };
            Report::new(Status::Failed, format!("{n} differences")).next(Next::run("hf-project").word(mend))
        }
    };
    Ok(with_head(report.with(Key::Events, done.events), done.head).with_each(Key::Difference, done.differences).into())
}
