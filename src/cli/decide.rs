//! hf-decide: the approval gate.

use clap::{Parser, Subcommand};

use super::args::{Common, Paged, Recording};
use super::{Command, Out, Output};
use crate::base::{EntityType, Error};
use crate::op::decide::{self, ApproveRequest, DecisionRequest, RejectDecisionRequest};
use crate::op::{self, Context, ShowRequest, project};
use crate::policy::approval::{OPEN, Question};

/// Ask an operator, and answer as one
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
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
        #[command(flatten)]
        recording: Recording,
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
        #[command(flatten)]
        recording: Recording,
    },
    /// Say no (for an operator)
    Reject {
        /// The decision
        reference: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        recording: Recording,
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

impl Command for Args {
    const NAME: &str = "hf-decide";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Request { kind, target, summary, options, recording } => {
                let wrong = || Error::usage("a kind is requirement_approval or destructive_operation");
                let question = Question::parse(&kind).filter(|q| *q != Question::Constraint).ok_or_else(wrong)?;
                let request = DecisionRequest { question, target, summary, options, key: recording.key };
                decide::request(ctx, request)?.into()
            }
            What::Approve { reference, option, comment, recording } => {
                decide::approve(ctx, ApproveRequest { reference, option, comment, key: recording.key })?.into()
            }
            What::Reject { reference, reason, recording } => {
                decide::reject(ctx, RejectDecisionRequest { reference, reason, key: recording.key })?.into()
            }
            What::List { open, paged } => {
                let states = if open { OPEN.to_vec() } else { Vec::new() };
                project::list(ctx, paged.of(EntityType::Decision, states))?.into()
            }
            What::Show { reference } => op::show(ctx, ShowRequest { reference, wanted: EntityType::Decision })?.into(),
        })
    }
}
