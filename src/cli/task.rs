//! hf-task: tasks, from proposal to completion.

use clap::builder::PossibleValuesParser;
use clap::{Args as Arguments, Parser, Subcommand};

use super::args::{CreateArgs, FilterArgs, GlobalArgs, PageArgs, WorkArgs, parse_at_least_one, parse_seconds};
use super::{Command, Output, StdoutWriter};
use crate::base::{EntityType, limits};
use crate::event::kind::TASK_PRIORITIES;
use crate::machine::Phase;
use crate::op::task::{
    self, AbortRequest, ArchiveTaskRequest, AssignRequest, ClaimRequest, ExplainRequest, FailRequest, HeartbeatRequest,
    EditTaskRequest, MarkStepRequest, ModelCall, NoteTaskRequest, ProposeTaskRequest, ReadyRequest, StartTaskRequest,
    SucceedRequest, TokenUsage,
};
use crate::op::{self, Context, ListRequest, ShowRequest, project};

/// Propose, claim, run and explain tasks
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-task propose 'Login form' --requirement REQ-0001
  hf-task edit T-0001 --description 'A page, not only a form' --reason 'agreed with the customer'
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
        /// What it is about, in full sentences
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// A step of the work (repeatable); the task succeeds when all steps are done
        #[arg(long, value_name = "TEXT")]
        step: Vec<String>,
        /// Which of the ready tasks comes first [default: normal]
        #[arg(long, value_parser = PossibleValuesParser::new(TASK_PRIORITIES))]
        priority: Option<String>,
        /// The requirement that the task implements, such as REQ-0001
        #[arg(long, value_name = "REF")]
        requirement: Option<String>,
        /// Repeat this task, which has ended; title, requirement and the rest are copied from it unless given
        #[arg(long, value_name = "REF")]
        rework_of: Option<String>,
        /// A task that must succeed first (repeatable)
        #[arg(long, visible_alias = "depends-on", value_name = "REF")]
        after: Vec<String>,
        /// Require approval by an operator, because the task deletes or publishes something
        #[arg(long)]
        destructive: bool,
        /// Retry up to N times after a transient failure [default: governance.max_retries]
        #[arg(long, value_name = "N")]
        retries: Option<u64>,
        #[command(flatten)]
        _create: CreateArgs,
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
    /// Assign a task to an agent; an operator can take it from its holder
    Assign {
        /// The task, such as T-0001
        reference: String,
        /// The name of the agent
        #[arg(id = "to", value_name = "AGENT")]
        to: String,
        /// Why it is taken from its holder
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// A note for the new holder
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Edit a task that has not ended; what is not given stays as it is. An agent can edit what it proposed, until it is assigned
    Edit {
        /// The task, such as T-0001
        reference: String,
        /// A new title
        #[arg(long, value_name = "TEXT")]
        title: Option<String>,
        /// A new description
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// A new priority
        #[arg(long, value_parser = PossibleValuesParser::new(TASK_PRIORITIES))]
        priority: Option<String>,
        /// A task that must succeed first (repeatable); replaces all dependencies
        #[arg(long, alias = "after", value_name = "REF")]
        depends_on: Vec<String>,
        /// Remove all dependencies
        #[arg(long, conflicts_with = "depends_on")]
        no_dependencies: bool,
        /// A step of the work (repeatable); replaces all steps, and those with the same words keep their mark
        #[arg(long, value_name = "TEXT")]
        step: Vec<String>,
        /// Remove all steps
        #[arg(long, conflicts_with = "step")]
        no_steps: bool,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Mark a step of a task that you work on
    Step {
        /// The task, such as T-0001
        reference: String,
        /// The number of the step
        #[arg(value_parser = parse_at_least_one)]
        number: u64,
        /// What it is now
        #[arg(value_parser = ["done", "skip", "open"])]
        mark: String,
        /// Why it is skipped
        #[arg(long, value_name = "TEXT", required_if_eq("mark", "skip"))]
        reason: Option<String>,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// Leave a note with a task, for those who work on it next
    Note {
        /// The task, such as T-0001
        reference: String,
        /// The note
        text: String,
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
        /// Why the steps that are still open are not needed
        #[arg(long, value_name = "REASON")]
        skip: Option<String>,
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
    /// Cancel a task; all processes of a job are ended first
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
        /// Only tasks in this state, such as Running; Archived lists archived tasks, oldest first
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// Only tasks of this requirement
        #[arg(long, value_name = "REF")]
        requirement: Option<String>,
        #[command(flatten)]
        filter: FilterArgs,
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
            Verb::Propose {
                title,
                description,
                step,
                priority,
                requirement,
                rework_of,
                after,
                destructive,
                retries,
                work,
                _create,
            } => {
                let request = ProposeTaskRequest {
                    title,
                    description,
                    steps: step,
                    priority,
                    requirement,
                    rework_of,
                    after,
                    destructive,
                    max_retries: retries,
                    key: work.write.key,
                };
                task::propose(ctx, request)?.into()
            }
            Verb::Ready { reference, work } => {
                task::ready(ctx, ReadyRequest { reference, key: work.write.key })?.into()
            }
            Verb::Claim { reference, lease, work } => {
                let key = work.write.key;
                task::claim(ctx, ClaimRequest { reference, lease_seconds: lease, key })?.into()
            }
            Verb::Assign { reference, to, reason, note, work } => {
                let key = work.write.key;
                task::assign(ctx, AssignRequest { reference, agent: to, reason, handoff: note, key })?.into()
            }
            Verb::Edit {
                reference,
                title,
                description,
                priority,
                depends_on,
                no_dependencies,
                step,
                no_steps,
                reason,
                work,
            } => {
                let given = |list: Vec<String>, none: bool| (none || !list.is_empty()).then_some(list);
                let request = EditTaskRequest {
                    reference,
                    title,
                    description,
                    priority,
                    after: given(depends_on, no_dependencies),
                    steps: given(step, no_steps),
                    reason,
                    key: work.write.key,
                };
                task::edit(ctx, request)?.into()
            }
            Verb::Step { reference, number, mark, reason, work } => {
                let mark = if mark == "skip" { "skipped".to_owned() } else { mark };
                let request = MarkStepRequest { reference, step: number, mark, reason, key: work.write.key };
                task::mark_step(ctx, request)?.into()
            }
            Verb::Note { reference, text, work } => {
                task::note(ctx, NoteTaskRequest { reference, text, key: work.write.key })?.into()
            }
            Verb::Start { reference, timeout, work } => {
                let key = work.write.key;
                task::start(ctx, StartTaskRequest { reference, timeout_seconds: timeout, key })?.into()
            }
            Verb::Heartbeat { reference, work } => {
                task::heartbeat(ctx, HeartbeatRequest { reference, key: work.write.key })?.into()
            }
            Verb::Succeed { reference, summary, skip, model, work } => {
                let (model, key) = (model.call(), work.write.key);
                task::succeed(ctx, SucceedRequest { reference, summary, skip, model, key })?.into()
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
            Verb::List { ready, status, requirement, filter, page } => {
                let state = match ready {
                    true => Some(Phase::Ready),
                    false => {
                        status.as_deref().map(|name| project::parse_status(EntityType::Task, name)).transpose()?
                    }
                };
                let made_for = requirement.map(|reference| (reference, EntityType::Requirement));
                let archived = state == Some(Phase::Archived);
                let filter = filter.filter(ctx)?;
                let page = page.list_request(EntityType::Task, state.into_iter().collect());
                project::list(ctx, ListRequest { made_for, filter, archived, claimable: ready, ..page })?.into()
            }
            Verb::Show { reference } => op::show(ctx, ShowRequest { reference, wanted: &[EntityType::Task] })?.into(),
            Verb::Explain { reference } => task::explain(ctx, ExplainRequest { reference })?.into(),
        })
    }
}
