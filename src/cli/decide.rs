//! hf-decide: decisions, and approval by an operator.

use clap::{Parser, Subcommand};

use super::args::{GlobalArgs, PageArgs, WriteArgs};
use super::{Command, Output, StdoutWriter};
use crate::base::{EntityType, Error, text};
use crate::machine::Phase;
use crate::op::decide::{self, AcknowledgeRequest, ApproveRequest, DecisionRequest, RejectDecisionRequest};
use crate::op::{self, Context, ShowRequest, project};
use crate::policy::approval::{OPEN, Question};

/// Request decisions from an operator, and make them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-decide list --open
  hf-decide show DEC-0001
  hf-decide approve DEC-0001 --comment 'Go ahead'
  hf-decide reject DEC-0002 --reason 'Too expensive'
  hf-decide list --escalations --open
  hf-decide acknowledge ESC-0001 --reason 'The server is gone; nothing to do'

An approval covers exactly what was requested; after a change, it has to be requested again. Only operators can \
approve or reject."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Request a decision from an operator
    Request {
        /// The kind of decision: requirement_approval or destructive_operation
        #[arg(long, value_name = "KIND")]
        kind: String,
        /// The requirement or task to decide about
        #[arg(long, value_name = "REF")]
        target: String,
        /// The question, in one line
        #[arg(long, value_name = "TEXT")]
        summary: String,
        /// An option to choose from (repeatable)
        #[arg(long = "option", value_name = "TEXT")]
        options: Vec<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Approve a request (operators only)
    Approve {
        /// The decision, such as DEC-0001
        reference: String,
        /// The chosen option
        #[arg(long, value_name = "TEXT")]
        option: Option<String>,
        /// A comment for the record
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Reject a request (operators only)
    Reject {
        /// The decision, such as DEC-0001
        reference: String,
        /// Why it is rejected
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Take note of an escalation, so that it is no longer a problem (operators only)
    Acknowledge {
        /// The escalation, such as ESC-0001
        reference: String,
        /// What you make of it, for the record
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// List decisions, or escalations
    List {
        /// Only open ones
        #[arg(long)]
        open: bool,
        /// List escalations instead of decisions
        #[arg(long)]
        escalations: bool,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a decision with everything it would approve, or an escalation
    Show {
        /// The decision or escalation, such as DEC-0001 or ESC-0001
        reference: String,
    },
}

impl Command for Args {
    const NAME: &str = "hf-decide";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Request { kind, target, summary, options, write } => {
                let unknown =
                    || Error::usage(format!("unknown kind '{}'; one of requirement_approval, destructive_operation", text::cut(&kind, 40)));
                let question = Question::parse(&kind).filter(|q| *q != Question::Constraint).ok_or_else(unknown)?;
                let request = DecisionRequest { question, target, summary, options, key: write.key };
                decide::request(ctx, request)?.into()
            }
            Verb::Approve { reference, option, comment, write } => {
                decide::approve(ctx, ApproveRequest { reference, option, comment, key: write.key })?.into()
            }
            Verb::Reject { reference, reason, write } => {
                decide::reject(ctx, RejectDecisionRequest { reference, reason, key: write.key })?.into()
            }
            Verb::Acknowledge { reference, reason, write } => {
                decide::acknowledge(ctx, AcknowledgeRequest { reference, reason, key: write.key })?.into()
            }
            Verb::List { open, escalations, page } => {
                let (entity, open_phases) = match escalations {
                    true => (EntityType::Escalation, vec![Phase::Open]),
                    false => (EntityType::Decision, OPEN.to_vec()),
                };
                let phases = if open { open_phases } else { Vec::new() };
                project::list(ctx, page.list_request(entity, phases))?.into()
            }
            Verb::Show { reference } => {
                let wanted = &[EntityType::Decision, EntityType::Escalation];
                op::show(ctx, ShowRequest { reference, wanted })?.into()
            }
        })
    }
}
