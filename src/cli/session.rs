//! hf-session: an agent logs in, gets a task, reports, and logs out.

use clap::{ArgMatches, Args as Arguments, Parser, Subcommand};

use super::args::{CreateArgs, FilterArgs, GlobalArgs, PageArgs, parse_seconds};
use super::{Command, Output, StdoutWriter};
use crate::base::EntityType;
use crate::event::kind::ERROR_CLASSES;
use crate::machine::Phase;
use crate::op::session::{self, LoginRequest, LogoutRequest, RenewRequest, ReportRequest};
use crate::op::task::TaskEnd;
use crate::op::{Context, ListRequest, project};

/// Log in as an agent, get a task, report the result, log out
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-session next --agent builder
  hf-session login --agent builder
  hf-session task --session S-0001
  hf-session report --session S-0001 --summary 'login form implemented'
  hf-session renew --session S-0001
  hf-session logout --session S-0001 --summary 'the form works; tests are missing'
  hf-session list

Set HF_SESSION to the SESSION_ID that login prints, and HF_AGENT to the name of the agent. While a project is paused, \
its agents get STATUS:EXIT_REQUESTED: clean up, then log out. They can still answer messages, leave notes and mark \
steps. An agent that comes back is told what happened since it was last there (PAUSED, COMMENT, CHANGED) by login, next, \
task and renew, until the session is renewed."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

/// The agent, its session and its project.
#[derive(Arguments, Debug)]
struct SessionArgs {
    /// The agent [default: $HF_AGENT, the agent of $HF_SESSION, or main]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The session, such as S-0001 [default: $HF_SESSION]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The project [default: $HF_PROJECT, the project of $HF_SESSION, or main]
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Start a session; ends an open session of the same agent in the same project
    Login {
        /// End the session unless it is renewed within this time, such as 30m [default: session.ttl_seconds]
        #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
        ttl: Option<u64>,
        #[command(flatten)]
        session: SessionArgs,
        #[command(flatten)]
        _create: CreateArgs,
    },
    /// Extend the session
    Renew {
        /// New time limit, counted from now, such as 30m [default: session.ttl_seconds]
        #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
        ttl: Option<u64>,
        #[command(flatten)]
        session: SessionArgs,
    },
    /// Show what the agent should do next: start, hold (wait) or exit
    Next {
        #[command(flatten)]
        session: SessionArgs,
    },
    /// Show your task and what is known about it; claims the next ready task if you have none
    Task {
        #[command(flatten)]
        session: SessionArgs,
    },
    /// Report that the task succeeded or failed
    Report {
        /// The task, such as T-0001 [default: the task you have claimed]
        #[arg(long = "task", value_name = "REF")]
        task: Option<String>,
        /// The result, in one line
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        /// Why the steps that are still open are not needed
        #[arg(long, value_name = "REASON", conflicts_with = "failed")]
        skip: Option<String>,
        /// Report a failure, for this reason
        #[arg(long, value_name = "REASON", conflicts_with = "summary")]
        failed: Option<String>,
        /// Whether a retry might succeed
        #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(ERROR_CLASSES), default_value = "permanent")]
        class: String,
        /// Idempotency key: repeating a request with the same key records nothing and returns the first event
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        #[command(flatten)]
        session: SessionArgs,
    },
    /// End the session; a claimed task stays with the agent
    Logout {
        /// What was done and what is left; kept with the task that you hold
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        #[command(flatten)]
        session: SessionArgs,
    },
    /// List open sessions
    List {
        /// Include ended sessions
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        page: PageArgs,
    },
}

impl Command for Args {
    const NAME: &str = "hf-session";

    fn acts_as_agent(matches: &ArgMatches) -> bool {
        matches.subcommand_name() != Some("list")
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Login { ttl, .. } => session::login(ctx, LoginRequest { ttl_seconds: ttl })?.into(),
            Verb::Renew { ttl, .. } => session::renew(ctx, RenewRequest { ttl_seconds: ttl })?.into(),
            Verb::Next { .. } => session::next(ctx)?.into(),
            Verb::Task { .. } => session::my_task(ctx)?.into(),
            Verb::Report { task, summary, skip, failed, class, key, .. } => {
                let end = match failed {
                    Some(reason) => TaskEnd::Failed { class, reason },
                    None => TaskEnd::Succeeded { summary, skip },
                };
                session::report(ctx, ReportRequest { reference: task, end, key })?.into()
            }
            Verb::Logout { summary, .. } => session::logout(ctx, LogoutRequest { summary })?.into(),
            Verb::List { all, filter, page } => {
                let phases = if all { Vec::new() } else { vec![Phase::Active] };
                let page = page.list_request(EntityType::Session, phases);
                project::list(ctx, ListRequest { filter: filter.filter(ctx)?, ..page })?.into()
            }
        })
    }
}
