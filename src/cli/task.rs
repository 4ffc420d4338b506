//! hf-task: work, from its proposal to its end.

use clap::{Parser, Subcommand};

use super::args::{Common, Paged, Working, parse_seconds};
use super::{Command, Out, Output};
use crate::base::EntityType;
use crate::machine::Phase;
use crate::op::task::{
    self, AbortRequest, AssignRequest, ClaimRequest, ExplainRequest, FailRequest, HeartbeatRequest,
    ProposeTaskRequest, ReadyRequest, StartTaskRequest, SucceedRequest,
};
use crate::op::{self, Context, ListRequest, ShowRequest, project};

/// Propose, claim and do work, and ask why it stands where it stands
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-task propose 'Login form' --requirement REQ-0001
  hf-task claim                      the next one that is ready
  hf-task start T-0001
  hf-task heartbeat T-0001
  hf-task succeed T-0001
  hf-task explain T-0001             why it stands where it stands"
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Propose a piece of work
    Propose {
        /// What is to be done, in one line
        title: String,
        /// The requirement that it serves
        #[arg(long, value_name = "REF")]
        requirement: Option<String>,
        /// A task that has to succeed first (repeatable)
        #[arg(long, value_name = "REF")]
        after: Vec<String>,
        /// It deletes or publishes something: an operator has to allow it
        #[arg(long)]
        destructive: bool,
        /// How often it is tried again; else governance.max_retries
        #[arg(long, value_name = "N")]
        retries: Option<u64>,
        #[command(flatten)]
        working: Working,
    },
    /// Say that nothing stands in its way; this also happens by itself
    Ready {
        /// The task
        reference: String,
        #[command(flatten)]
        working: Working,
    },
    /// Take a task, or the next one that is ready
    Claim {
        /// The task
        reference: Option<String>,
        /// How long the claim holds without a heartbeat, such as 15m; else governance.lease_seconds
        #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
        lease: Option<u64>,
        #[command(flatten)]
        working: Working,
    },
    /// Give a task to an agent
    Assign {
        /// The task
        reference: String,
        /// The agent's name
        #[arg(id = "to", value_name = "AGENT")]
        to: String,
        #[command(flatten)]
        working: Working,
    },
    /// Begin to work on a task that you hold
    Start {
        /// The task
        reference: String,
        /// How long the work may take
        #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
        timeout: Option<u64>,
        #[command(flatten)]
        working: Working,
    },
    /// Show that the work goes on, and keep the claim
    Heartbeat {
        /// The task
        reference: String,
        #[command(flatten)]
        working: Working,
    },
    /// Say that it is done
    Succeed {
        /// The task
        reference: String,
        /// What came out, in one line
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        #[command(flatten)]
        working: Working,
    },
    /// Say that it failed
    Fail {
        /// The task
        reference: String,
        /// transient is tried again, permanent is given up
        #[arg(long, value_name = "CLASS", value_parser = ["transient", "permanent"])]
        class: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        working: Working,
    },
    /// Give it up
    Abort {
        /// The task
        reference: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        working: Working,
    },
    /// List tasks
    List {
        /// Only those that can be claimed
        #[arg(long, conflicts_with = "status")]
        ready: bool,
        /// Only those in this state
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// Only those of this requirement
        #[arg(long, value_name = "REF")]
        requirement: Option<String>,
        #[command(flatten)]
        paged: Paged,
    },
    /// Show one, with its runs, artifacts and decisions
    Show {
        /// The task
        reference: String,
    },
    /// Say why it stands where it stands
    Explain {
        /// The task
        reference: String,
    },
}

impl Command for Args {
    const NAME: &str = "hf-task";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Propose { title, requirement, after, destructive, retries, working } => {
                let (max_retries, key) = (retries, working.recording.key);
                let request = ProposeTaskRequest { title, requirement, after, destructive, max_retries, key };
                task::propose(ctx, request)?.into()
            }
            What::Ready { reference, working } => {
                task::ready(ctx, ReadyRequest { reference, key: working.recording.key })?.into()
            }
            What::Claim { reference, lease, working } => {
                let key = working.recording.key;
                task::claim(ctx, ClaimRequest { reference, lease_seconds: lease, key })?.into()
            }
            What::Assign { reference, to, working } => {
                task::assign(ctx, AssignRequest { reference, agent: to, key: working.recording.key })?.into()
            }
            What::Start { reference, timeout, working } => {
                let key = working.recording.key;
                task::start(ctx, StartTaskRequest { reference, timeout_seconds: timeout, key })?.into()
            }
            What::Heartbeat { reference, working } => {
                task::heartbeat(ctx, HeartbeatRequest { reference, key: working.recording.key })?.into()
            }
            What::Succeed { reference, summary, working } => {
                task::succeed(ctx, SucceedRequest { reference, summary, key: working.recording.key })?.into()
            }
            What::Fail { reference, class, reason, working } => {
                task::fail(ctx, FailRequest { reference, class, reason, key: working.recording.key })?.into()
            }
            What::Abort { reference, reason, working } => {
                task::abort(ctx, AbortRequest { reference, reason, key: working.recording.key })?.into()
            }
            What::List { ready, status, requirement, paged } => {
                let state = match ready {
                    true => Some(Phase::Ready),
                    false => status.as_deref().map(project::parse_status).transpose()?,
                };
                let made_for = requirement.map(|reference| (reference, EntityType::Requirement));
                let request = ListRequest { made_for, ..paged.of(EntityType::Task, state.into_iter().collect()) };
                project::list(ctx, request)?.into()
            }
            What::Show { reference } => op::show(ctx, ShowRequest { reference, wanted: EntityType::Task })?.into(),
            What::Explain { reference } => task::explain(ctx, ExplainRequest { reference })?.into(),
        })
    }
}
