//! hf-constraint: what holds for all work.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hiveforge::base::EntityType;
use hiveforge::machine::State;
use hiveforge::op::{ListRequest, Projection, constraint, project};
use hiveforge::ui::{self, Acting, Common, Keyed, Next, Paged, outcome};

/// Ask for a constraint to hold, or no longer; an operator decides
#[derive(Parser, Debug)]
#[command(
    name = "hf-constraint",
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
    keyed: Keyed,
    #[command(flatten)]
    acting: Acting,
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
    },
    /// Ask an operator to lift a constraint
    Remove {
        /// The constraint
        reference: String,
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

hiveforge::cli!(Args, with acting);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let key = args.keyed.key;
        let done = match args.what {
            What::Apply { text, priority } => constraint::apply(env, &text, priority.as_deref(), key)?,
            What::Remove { reference } => constraint::remove(env, &reference, key)?,
            What::List { all, paged } => {
                let list = if all { "list --all" } else { "list" };
                let request = ListRequest {
                    states: if all { Vec::new() } else { vec![State::Active] },
                    limit: paged.limit,
                    cursor: paged.cursor,
                    ..ListRequest::of(Projection::Of(EntityType::Constraint))
                };
                let next = Next::run("hf-constraint").word(list).arg("--limit", &paged.limit);
                let done = project::list(env, &request)?;
                return Ok(outcome::listed(&done, EntityType::Constraint.plural(), next).into());
            }
        };
        Ok(outcome::recorded(&done).next(Next::OPERATOR).into())
    })
}
