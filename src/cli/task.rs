//! hf-task: tasks, from proposal to completion.

use clap::{Args as Arguments, Parser, Subcommand};

use super::args::{GlobalArgs, PageArgs, WorkArgs, parse_seconds};
use super::{Command, Output, StdoutWriter};
use crate::base::{EntityType, limits};
use crate::machine::Phase;
use crate::op::task::{
    self, AbortRequest, ArchiveTaskRequest, AssignRequest, ClaimRequest, ExplainRequest, FailRequest, HeartbeatRequest,
    ModelCall, ProposeTaskRequest, ReadyRequest, StartTaskRequest, SucceedRequest, TokenUsage,
};
use crate::op::{self, Context, ListRequest, ShowRequest, project};

/// Propose, claim, run and explain tasks
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-task propose 'Login form' --requirement REQ-0001
  hf-task claim                      claim the next ready task
  hf-task list --mine                list the tasks that you hold
  hf-task start T-0001
  hf-task heartbeat T-0001
  hf-task succeed T-0001
  hf-task explain T-0001             explain the task's current state"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

/// What the run asked a language model.
#[derive(Arguments, Debug)]
struct ModelArgs {
    /// The artifact with the prompt of a language model, such as ART-0001
    #[arg(long, value_name = "REF")]
    prompt: Option<String>,
    /// The artifact with its response, such as ART-0002
    #[arg(long, value_name = "REF")]
    response: Option<String>,
    /// The tokens it used: of the prompt and of the completion, such as 1500,2000
    #[arg(long, value_name = "PROMPT,COMPLETION", value_parser = parse_usage)]
    usage: Option<TokenUsage>,
}

impl ModelArgs {
    fn call(self) -> ModelCall {
        ModelCall { prompt: self.prompt, response: self.response, tokens: self.usage }
    }
}

fn parse_usage(text: &str) -> Result<TokenUsage, String> {
    let count = |text: &str| text.trim().parse().ok().filter(|count| *count <= limits::INTEGER_MAX as u64);
    let both = text.split_once(',').and_then(|(prompt, completion)| Some((count(prompt)?, count(completion)?)));
    let (prompt, completion) = both.ok_or("must be two whole numbers, such as 1500,2000")?;
    Ok(TokenUsage { prompt, completion })
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Propose a task
    Propose {
        /// What to do, in one line
        #[arg(required_unless_present = "rework_of")]
        title: Option<String>,
        /// The requirement that the task implements, such as REQ-0001
        #[arg(long, value_name = "REF")]
        requirement: Option<String>,
        /// Repeat this task, which has ended; title, requirement and the rest are copied from it unless given
        #[arg(long, value_name = "REF")]
        rework_of: Option<String>,
        /// A task that must succeed first (repeatable)
        #[arg(long, value_name = "REF")]
        after: Vec<String>,
        /// Require approval by an operator, because the task deletes or publishes something
        #[arg(long)]
        destructive: bool,
        /// Retry up to N times after a transient failure [default: governance.max_retries]
        #[arg(long, value_name = "N")]
        retries: Option<u64>,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Mark a task as ready; usually this happens automatically
    Ready {
        /// The task, such as T-0001
        reference: String,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Claim a task, or the next ready one
    Claim {
        /// The task, such as T-0001 [default: the next ready one]
        reference: Option<String>,
        /// Let the claim expire after this long without a heartbeat, such as 15m [default: governance.lease_seconds]
        #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
        lease: Option<u64>,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Assign a task to an agent
    Assign {
        /// The task, such as T-0001
        reference: String,
        /// The name of the agent
        #[arg(id = "to", value_name = "AGENT")]
        to: String,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Start work on a task you have claimed
    Start {
        /// The task, such as T-0001
        reference: String,
        /// The run times out after this time, such as 2h [default: governance.task_timeout_seconds, else no limit]
        #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
        timeout: Option<u64>,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Record a sign of life, which renews the claim
    Heartbeat {
        /// The task, such as T-0001
        reference: String,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Mark a task as done
    Succeed {
        /// The task, such as T-0001
        reference: String,
        /// The result, in one line
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Mark a task as failed
    Fail {
        /// The task, such as T-0001
        reference: String,
        /// transient: the task may be retried; permanent: it is not
        #[arg(long, value_name = "CLASS", value_parser = ["transient", "permanent"])]
        class: String,
        /// Why it failed
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Cancel a task
    Abort {
        /// The task, such as T-0001
        reference: String,
        /// Why it is cancelled
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Archive a task that has ended; it leaves the lists and can still be shown
    Archive {
        /// The task, such as T-0001
        reference: String,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// List tasks
    List {
        /// Only tasks that are ready, in active projects; a claim is also subject to the task limit
        #[arg(long, conflicts_with = "status")]
        ready: bool,
        /// Only tasks that you hold
        #[arg(long)]
        mine: bool,
        /// Only tasks in this state, such as Running; Archived lists archived tasks, oldest first
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// Only tasks of this requirement
        #[arg(long, value_name = "REF")]
        requirement: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a task with its runs, artifacts and decisions
    Show {
        /// The task, such as T-0001
        reference: String,
    },
    /// Explain the current state of a task
    Explain {
        /// The task, such as T-0001
        reference: String,
    },
}

impl Command for Args {
    const NAME: &str = "hf-task";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Propose { title, requirement, rework_of, after, destructive, retries, work } => {
                let (max_retries, key) = (retries, work.write.key);
                let request =
                    ProposeTaskRequest { title, requirement, rework_of, after, destructive, max_retries, key };
                task::propose(ctx, request)?.into()
            }
            Verb::Ready { reference, work } => {
                task::ready(ctx, ReadyRequest { reference, key: work.write.key })?.into()
            }
            Verb::Claim { reference, lease, work } => {
                let key = work.write.key;
                task::claim(ctx, ClaimRequest { reference, lease_seconds: lease, key })?.into()
            }
            Verb::Assign { reference, to, work } => {
                task::assign(ctx, AssignRequest { reference, agent: to, key: work.write.key })?.into()
            }
            Verb::Start { reference, timeout, work } => {
                let key = work.write.key;
                task::start(ctx, StartTaskRequest { reference, timeout_seconds: timeout, key })?.into()
            }
            Verb::Heartbeat { reference, work } => {
                task::heartbeat(ctx, HeartbeatRequest { reference, key: work.write.key })?.into()
            }
            Verb::Succeed { reference, summary, model, work } => {
                let (model, key) = (model.call(), work.write.key);
                task::succeed(ctx, SucceedRequest { reference, summary, model, key })?.into()
            }
            Verb::Fail { reference, class, reason, model, work } => {
                let (model, key) = (model.call(), work.write.key);
                task::fail(ctx, FailRequest { reference, class, reason, model, key })?.into()
            }
            Verb::Abort { reference, reason, work } => {
                task::abort(ctx, AbortRequest { reference, reason, key: work.write.key })?.into()
            }
            Verb::Archive { reference, work } => {
                task::archive(ctx, ArchiveTaskRequest { reference, key: work.write.key })?.into()
            }
            Verb::List { ready, mine, status, requirement, page } => {
                let state = match ready {
                    true => Some(Phase::Ready),
                    false => {
                        status.as_deref().map(|name| project::parse_status(EntityType::Task, name)).transpose()?
                    }
                };
                let made_for = requirement.map(|reference| (reference, EntityType::Requirement));
                let archived = state == Some(Phase::Archived);
                let held_by = mine.then(|| ctx.caller.actor.to_string());
                let page = page.list_request(EntityType::Task, state.into_iter().collect());
                project::list(ctx, ListRequest { made_for, held_by, archived, claimable: ready, ..page })?.into()
            }
            Verb::Show { reference } => op::show(ctx, ShowRequest { reference, wanted: &[EntityType::Task] })?.into(),
            Verb::Explain { reference } => task::explain(ctx, ExplainRequest { reference })?.into(),
        })
    }
}
