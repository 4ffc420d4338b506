//! hf-project: the state derived from the log, and its caches.

use clap::{ArgMatches, Parser};

use super::args::GlobalArgs;
use super::main::has_flag;
use super::{Command, Output, StdoutWriter};
use crate::base::{Error, limits};
use crate::op::Context;
use crate::op::project::{self, ListRequest, MapRequest, Projection, SnapshotRequest};
use crate::reply::{Page, Replies};
use crate::vault::projections;

/// Show, list or export the state derived from the log; rebuild or check its caches
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-project                         count everything by state
  hf-project tasks --status Running
  hf-project requirements --map      export all requirements as JSON
  hf-project --check                 compare the caches with the events

Types: requirements, decisions, tasks, runs, artifacts, constraints, agents, deepworks, missions, debates, reviews, \
documents, projects, sessions, branches, threads, messages, idempotency (keys)."
)]
pub struct Args {
    /// The projection to list, such as tasks
    #[arg(value_name = "TYPE")]
    projection: Option<String>,
    /// Only entities in this state, such as Running
    #[arg(long, value_name = "STATUS", requires = "projection")]
    status: Option<String>,
    /// Show up to N entries per page, 500 at most
    #[arg(long, value_name = "N", default_value_t = limits::PAGE_DEFAULT_COUNT)]
    limit: usize,
    /// Continue after this id: NEXT_CURSOR of the previous page
    #[arg(long, value_name = "ID", requires = "projection")]
    cursor: Option<String>,
    /// Print the whole projection as one JSON object, and the reply to standard error
    #[arg(long, requires = "projection", conflicts_with_all = ["status", "cursor"])]
    map: bool,
    /// Rebuild the index and the projection files from the events
    #[arg(long, conflicts_with_all = ["projection", "snapshot", "check"])]
    rebuild: bool,
    /// Write the whole state to Akashic/snapshots/ [default name: the current time]
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["projection", "check"])]
    snapshot: Option<String>,
    /// Compare the index, the projection files and the newest snapshot with the events
    #[arg(long, conflicts_with = "projection")]
    check: bool,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-project";

    fn writes_document(matches: &ArgMatches) -> bool {
        has_flag(matches, &["map"])
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        if self.rebuild {
            return Ok(project::rebuild(ctx)?.into());
        }
        if let Some(name) = self.snapshot {
            let name = Some(name).filter(|name| !name.is_empty());
            return Ok(project::snapshot(ctx, SnapshotRequest { name })?.into());
        }
        if self.check {
            return Ok(project::check(ctx)?.into());
        }
        let Some(name) = &self.projection else { return Ok(project::summary(ctx)?.into()) };
        let projection = Projection::parse(name)?;
        if self.map {
            let done = project::map(ctx, MapRequest { projection })?;
            return Ok(Output::document(projections::render(&done.map), done.reply()));
        }
        let status = match (self.status.as_deref(), projection) {
            (None, _) => None,
            (Some(name), Projection::Of(entity)) => Some(project::parse_status(entity, name)?),
            (Some(_), Projection::Idempotency) => {
                return Err(Error::usage("--status does not apply to idempotency keys").into());
            }
        };
        let (phases, limit, cursor) = (status.into_iter().collect(), self.limit, self.cursor);
        let request = ListRequest { phases, limit, cursor, ..ListRequest::first_page(projection) };
        Ok(Page(&project::list(ctx, request)?).into())
    }
}
