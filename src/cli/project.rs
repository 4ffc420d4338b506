//! hf-project: the state, its caches, and whether they tell the truth.

use clap::{ArgMatches, Parser};

use super::args::Common;
use super::main::flagged;
use super::{Command, Out, Output};
use crate::base::{Error, limits};
use crate::op::Context;
use crate::op::project::{self, ListRequest, MapRequest, Projection, SnapshotRequest};
use crate::reply::{Page, Replies};
use crate::vault::projections;

/// Show the state that the log folds to; list, export, rebuild or check it
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
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

impl Command for Args {
    const NAME: &str = "hf-project";

    fn is_document(matches: &ArgMatches) -> bool {
        flagged(matches, &["map"])
    }

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
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
        let status = self.status.as_deref().map(project::parse_status).transpose()?;
        if status.is_some() && projection == Projection::Idempotency {
            return Err(Error::usage("keys have no status").into());
        }
        let (states, limit, cursor) = (status.into_iter().collect(), self.limit, self.cursor);
        let request = ListRequest { states, limit, cursor, ..ListRequest::first_page(projection) };
        Ok(Page(&project::list(ctx, request)?).into())
    }
}
