//! hf-constraint: constraints on all work.

use clap::{Parser, Subcommand};

use super::args::{GlobalArgs, PageArgs, WriteArgs};
use super::{Command, Output, StdoutWriter};
use crate::base::EntityType;
use crate::machine::Phase;
use crate::op::constraint::{self, ApplyRequest, RemoveRequest};
use crate::op::{Context, project};

/// Request, remove and list constraints on all work; an operator approves each change
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-constraint apply 'No new dependencies without discussion'
  hf-constraint apply 'Login has priority' --priority REQ-0001
  hf-constraint remove CON-0001
  hf-constraint list

Active constraints are also in Context/active_constraints.json."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Request a constraint; it applies once an operator approves it
    Apply {
        /// The constraint, in one line
        text: String,
        /// Prefer this task, or the tasks of this requirement, while the constraint is active
        #[arg(long, value_name = "REF")]
        priority: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Request the removal of a constraint; an operator has to approve it
    Remove {
        /// The constraint, such as CON-0001
        reference: String,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// List active constraints
    List {
        /// Include removed constraints
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        page: PageArgs,
    },
}

impl Command for Args {
    const NAME: &str = "hf-constraint";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Apply { text, priority, write } => {
                constraint::apply(ctx, ApplyRequest { text, priority, key: write.key })?.into()
            }
            Verb::Remove { reference, write } => {
                constraint::remove(ctx, RemoveRequest { reference, key: write.key })?.into()
            }
            Verb::List { all, page } => {
                let phases = if all { Vec::new() } else { vec![Phase::Active] };
                project::list(ctx, page.list_request(EntityType::Constraint, phases))?.into()
            }
        })
    }
}
