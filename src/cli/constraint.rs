//! hf-constraint: what holds for all work.

use clap::{Parser, Subcommand};

use super::args::{Common, Paged, Recording};
use super::{Command, Out, Output};
use crate::base::EntityType;
use crate::machine::Phase;
use crate::op::constraint::{self, ApplyRequest, RemoveRequest};
use crate::op::{Context, project};

/// Ask for a constraint to hold, or no longer; an operator decides
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-constraint apply 'No new dependency without a word'
  hf-constraint apply 'Login goes first' --priority REQ-0001
  hf-constraint remove CON-0001
  hf-constraint list

What holds is also in Context/active_constraints.json."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Ask an operator to let a constraint hold
    Apply {
        /// What is to hold, in one line
        text: String,
        /// A task or requirement whose tasks are taken first while it holds
        #[arg(long, value_name = "REF")]
        priority: Option<String>,
        #[command(flatten)]
        recording: Recording,
    },
    /// Ask an operator to lift a constraint
    Remove {
        /// The constraint
        reference: String,
        #[command(flatten)]
        recording: Recording,
    },
    /// List the constraints that hold
    List {
        /// Also those that were lifted
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        paged: Paged,
    },
}

impl Command for Args {
    const NAME: &str = "hf-constraint";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Apply { text, priority, recording } => {
                constraint::apply(ctx, ApplyRequest { text, priority, key: recording.key })?.into()
            }
            What::Remove { reference, recording } => {
                constraint::remove(ctx, RemoveRequest { reference, key: recording.key })?.into()
            }
            What::List { all, paged } => {
                let states = if all { Vec::new() } else { vec![Phase::Active] };
                project::list(ctx, paged.of(EntityType::Constraint, states))?.into()
            }
        })
    }
}
