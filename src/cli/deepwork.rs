//! hf-deepwork: announce a quiet time, so that the watchdog does not take it for silence.

use clap::{ArgMatches, Parser, Subcommand};

use super::args::{AgentArgs, GlobalArgs, PageArgs, parse_at_least_one};
use super::{Command, Output, StdoutWriter};
use crate::base::EntityType;
use crate::op::agent::{self, ExtendRequest, StartDeepWorkRequest};
use crate::op::{Context, ListRequest, project};

/// Declare, extend and complete deep work: a declared time of quiet work
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

In flexible deep work the watchdog expects checkpoints, but no activity logs or introspections; it ends with the next \
activity log. In strict deep work it expects nothing until the declared time has passed."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Declare deep work
    #[command(group = clap::ArgGroup::new("mode").required(true).args(["flexible", "strict"]))]
    Start {
        /// What you are going to do, in one line
        activity: String,
        /// Without a time limit; checkpoints are still expected
        #[arg(long)]
        flexible: bool,
        /// For up to this many minutes; nothing is expected until then
        #[arg(long, value_name = "MINUTES", value_parser = parse_at_least_one)]
        strict: Option<u64>,
    },
    /// Show the current deep work
    Status,
    /// Complete deep work; logging an activity does that, too
    Complete,
    /// Extend strict deep work
    Extend {
        /// How many minutes longer it takes
        #[arg(value_parser = parse_at_least_one)]
        minutes: u64,
    },
    /// List deep work: declared and actual times
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Rename files of an older version (extended_processing, processed.*, expired.*)
    Migrate,
}

impl Command for Args {
    const NAME: &str = "hf-deepwork";

    fn acts_as_agent(_: &ArgMatches) -> bool {
        true
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Start { activity, strict, .. } => {
                agent::start(ctx, StartDeepWorkRequest { activity, strict_minutes: strict })?.into()
            }
            Verb::Complete => agent::complete(ctx)?.into(),
            Verb::Extend { minutes } => agent::extend(ctx, ExtendRequest { minutes })?.into(),
            Verb::Status => agent::status(ctx)?.into(),
            Verb::List { page } => {
                let made_for = Some((ctx.caller.actor.to_string(), EntityType::Agent));
                let request = ListRequest { made_for, ..page.list_request(EntityType::DeepWork, Vec::new()) };
                project::list(ctx, request)?.into()
            }
            Verb::Migrate => agent::migrate(ctx)?.into(),
        })
    }
}
