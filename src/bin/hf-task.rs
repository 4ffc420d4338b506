//! hf-task: work, from its proposal to its end.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hiveforge::base::EntityType;
use hiveforge::machine::State;
use hiveforge::op::task::{self, ClaimOutcome, ProposeRequest};
use hiveforge::op::{self, AppendOutcome, Env, ListRequest, Projection, project};
use hiveforge::ui::{self, Acting, Common, Key, Keyed, Next, Output, Paged, Projected, Report, Status, outcome};

/// Propose, claim and do work, and ask why it stands where it stands
#[derive(Parser, Debug)]
#[command(
    name = "hf-task",
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
    keyed: Keyed,
    #[command(flatten)]
    projected: Projected,
    #[command(flatten)]
    acting: Acting,
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
    },
    /// Say that nothing stands in its way; this also happens by itself
    Ready {
        /// The task
        reference: String,
    },
    /// Take a task, or the next one that is ready
    Claim {
        /// The task
        reference: Option<String>,
        /// How long the claim holds without a heartbeat, such as 15m; else governance.lease_seconds
        #[arg(long, value_name = "TIME", value_parser = ui::parse_seconds)]
        lease: Option<u64>,
    },
    /// Give a task to an agent
    Assign {
        /// The task
        reference: String,
        /// The agent's name
        agent: String,
    },
    /// Begin to work on a task that you hold
    Start {
        /// The task
        reference: String,
        /// How long the work may take
        #[arg(long, value_name = "TIME", value_parser = ui::parse_seconds)]
        timeout: Option<u64>,
    },
    /// Show that the work goes on, and keep the claim
    Heartbeat {
        /// The task
        reference: String,
    },
    /// Say that it is done
    Succeed {
        /// The task
        reference: String,
        /// What came out, in one line
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
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
    },
    /// Give it up
    Abort {
        /// The task
        reference: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
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

hiveforge::cli!(Args, with acting, in project);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let key = args.keyed.key;
        let done = match args.what {
            What::Propose { title, requirement, after, destructive, retries } => {
                let request = ProposeRequest { title, requirement, after, destructive, max_retries: retries };
                task::propose(env, request, key)?
            }
            What::Ready { reference } => task::ready(env, &reference, key)?,
            What::Claim { reference, lease } => return claim(task::claim(env, reference.as_deref(), lease, key)?),
            What::Assign { reference, agent } => task::assign(env, &reference, &agent, key)?,
            What::Start { reference, timeout } => return Ok(started(&task::start(env, &reference, timeout, key)?)),
            What::Heartbeat { reference } => {
                return Ok(outcome::recorded(&task::heartbeat(env, &reference, key)?).into());
            }
            What::Succeed { reference, summary } => task::succeed(env, &reference, summary, key)?,
            What::Fail { reference, class, reason } => task::fail(env, &reference, &class, &reason, key)?,
            What::Abort { reference, reason } => task::abort(env, &reference, reason, key)?,
            What::List { ready, status, requirement, paged } => return list(env, ready, status, requirement, paged),
            What::Show { reference } => {
                return Ok(outcome::shown(&op::show(env, &reference, EntityType::Task)?).into());
            }
            What::Explain { reference } => {
                let done = task::explain(env, &reference)?;
                let report = Report::new(Status::Ok, outcome::sentence(&done.task));
                return Ok(report.with_each(Key::Because, done.because).into());
            }
        };
        Ok(outcome::recorded(&done).next(next(&done)).into())
    })
}

/// What to do with a task, from the state it is in now.
fn next(done: &AppendOutcome) -> Next {
    let Some(task) = &done.entity else { return Next::None };
    match task.state {
        State::Ready | State::Assigned if done.stopped => Next::OPERATOR,
        State::Proposed => outcome::next_about("hf-task", "explain", task),
        State::Ready => outcome::next_about("hf-task", "claim", task),
        State::Assigned => outcome::next_about("hf-task", "start", task),
        _ => Next::None,
    }
}

fn claim(done: ClaimOutcome) -> anyhow::Result<Output> {
    match done {
        ClaimOutcome::NoTask { waiting } => {
            let sum = format!("no task is ready; {waiting} wait for something");
            Ok(Report::new(Status::NoTask, sum).next(Next::None).into())
        }
        ClaimOutcome::Claimed(done) => {
            let status = if done.duplicate { Status::Duplicate } else { Status::Claimed };
            let task = done.entity.as_ref();
            let report = outcome::as_status(status, &done)
                .next(next(&done))
                .with_some(Key::Holder, task.and_then(|task| task.text("holder")))
                .with_some(Key::LeaseUntil, task.and_then(outcome::lease_until))
                .with_some(Key::Generation, task.map(|task| task.count("generation")));
            Ok(report.into())
        }
    }
}

fn started(done: &AppendOutcome) -> Output {
    outcome::recorded(done).next(Next::None).into()
}

fn list(
    env: &Env,
    ready: bool,
    status: Option<String>,
    requirement: Option<String>,
    paged: Paged,
) -> anyhow::Result<Output> {
    let state = match ready {
        true => Some(State::Ready),
        false => status.as_deref().map(project::parse_status).transpose()?,
    };
    let mut next = Next::run("hf-task").word("list").arg("--limit", &paged.limit);
    if let Some(state) = state {
        next = next.word("--status").word(state.as_str());
    }
    // The reference of a requirement is foreign text; without it the next page would be another list.
    let next = if requirement.is_some() { Next::None } else { next };
    let request = ListRequest {
        states: state.into_iter().collect(),
        made_for: requirement.map(|reference| (reference, EntityType::Requirement)),
        limit: paged.limit,
        cursor: paged.cursor,
        ..ListRequest::of(Projection::Of(EntityType::Task))
    };
    Ok(outcome::listed(&project::list(env, &request)?, EntityType::Task.plural(), next).into())
}
