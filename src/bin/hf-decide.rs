//! hf-decide: the approval gate.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hiveforge::base::{EntityType, Error};
use hiveforge::op::decide::{self, DecisionRequest};
use hiveforge::op::{self, Env, ListRequest, Projection, project};
use hiveforge::policy::approval::{OPEN, Question};
use hiveforge::ui::{self, Acting, Common, Keyed, Next, Output, Paged, outcome};

/// Ask an operator, and answer as one
#[derive(Parser, Debug)]
#[command(
    name = "hf-decide",
    version,
    after_help = "Examples:
  hf-decide list --open
  hf-decide show DEC-0001
  hf-decide approve DEC-0001 --comment 'Go ahead'
  hf-decide reject DEC-0002 --reason 'Too expensive'

An approval counts only for exactly what was asked: what changes afterwards has to be asked anew.
Agents cannot answer."
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
    /// Ask an operator
    Request {
        /// What is asked: requirement_approval or destructive_operation
        #[arg(long, value_name = "KIND")]
        kind: String,
        /// What it is about
        #[arg(long, value_name = "REF")]
        target: String,
        /// The question, in one line
        #[arg(long, value_name = "TEXT")]
        summary: String,
        /// Something to choose from (repeatable)
        #[arg(long = "option", value_name = "TEXT")]
        options: Vec<String>,
    },
    /// Say yes (for an operator)
    Approve {
        /// The decision
        reference: String,
        /// Which of its options
        #[arg(long, value_name = "TEXT")]
        option: Option<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
    },
    /// Say no (for an operator)
    Reject {
        /// The decision
        reference: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// List decisions
    List {
        /// Only those that nobody has made yet
        #[arg(long)]
        open: bool,
        #[command(flatten)]
        paged: Paged,
    },
    /// Show one
    Show {
        /// The decision
        reference: String,
    },
}

hiveforge::cli!(Args, with acting);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let key = args.keyed.key;
        let done = match args.what {
            What::Request { kind, target, summary, options } => {
                let wrong = || Error::usage("a kind is requirement_approval or destructive_operation");
                let question = Question::parse(&kind).filter(|q| *q != Question::Constraint).ok_or_else(wrong)?;
                let done = decide::request(env, DecisionRequest { question, target, summary, options }, key)?;
                return Ok(outcome::recorded(&done).next(Next::OPERATOR).into());
            }
            What::Approve { reference, option, comment } => decide::approve(env, &reference, option, comment, key)?,
            What::Reject { reference, reason } => decide::reject(env, &reference, &reason, key)?,
            What::List { open, paged } => return list(env, open, paged),
            What::Show { reference } => {
                return Ok(outcome::shown(&op::show(env, &reference, EntityType::Decision)?).into());
            }
        };
        Ok(outcome::recorded(&done).into())
    })
}

fn list(env: &Env, open: bool, paged: Paged) -> anyhow::Result<Output> {
    let next = Next::run("hf-decide").word(if open { "list --open" } else { "list" }).arg("--limit", &paged.limit);
    let request = ListRequest {
        states: if open { OPEN.to_vec() } else { Vec::new() },
        limit: paged.limit,
        cursor: paged.cursor,
        ..ListRequest::of(Projection::Of(EntityType::Decision))
    };
    Ok(outcome::listed(&project::list(env, &request)?, EntityType::Decision.plural(), next).into())
}
