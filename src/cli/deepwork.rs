//! hf-deepwork: say beforehand that little will be shown for a while.

use clap::{ArgMatches, Parser, Subcommand};

use super::args::{Agentic, Common, Paged};
use super::{Command, Out, Output};
use crate::base::EntityType;
use crate::op::agent::{self, ExtendRequest, StartDeepWorkRequest};
use crate::op::{Context, ListRequest, project};

/// Declare deep work, look at it, end it
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
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

impl Command for Args {
    const NAME: &str = "hf-deepwork";

    fn is_agents(_: &ArgMatches) -> bool {
        true
    }

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Start { activity, strict, .. } => {
                agent::start(ctx, StartDeepWorkRequest { activity, strict_minutes: strict })?.into()
            }
            What::Complete => agent::complete(ctx)?.into(),
            What::Extend { minutes } => agent::extend(ctx, ExtendRequest { minutes })?.into(),
            What::Status => agent::status(ctx)?.into(),
            What::List { paged } => {
                let made_for = Some((ctx.caller.actor.to_string(), EntityType::Agent));
                let request = ListRequest { made_for, ..paged.of(EntityType::DeepWork, Vec::new()) };
                project::list(ctx, request)?.into()
            }
            What::Migrate => agent::migrate(ctx)?.into(),
        })
    }
}
