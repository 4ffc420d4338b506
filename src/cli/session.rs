//! hf-session: an agent comes, asks what to do, does it, and leaves.

use clap::{ArgMatches, Args as Arguments, Parser, Subcommand};

use super::args::{Common, Paged, parse_seconds};
use super::{Command, Out, Output};
use crate::base::EntityType;
use crate::event::kind::ERROR_CLASSES;
use crate::machine::Phase;
use crate::op::session::{self, LoginRequest, RenewRequest, ReportRequest};
use crate::op::task::End;
use crate::op::{Context, project};

/// Come to work as an agent, ask what to do, and leave
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-session next --agent builder
  hf-session login --agent builder
  hf-session task --session S-0001
  hf-session report --session S-0001 --summary 'the form is there'
  hf-session renew --session S-0001
  hf-session logout --session S-0001
  hf-session list

Set HF_SESSION to the SESSION_ID that login gives, and HF_AGENT to the agent's name. While a project is paused,
its agents are told EXIT_REQUESTED: tidy up, then log out."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

/// Who, in which session and project.
#[derive(Arguments, Debug)]
struct Seat {
    /// The agent; else $HF_AGENT, else main
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The session; else $HF_SESSION
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The project; else $HF_PROJECT, else that of $HF_SESSION, else main
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Come to work; a session that was left open in the same project is over
    Login {
        /// How long it holds without being renewed; else session.ttl_seconds
        #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
        ttl: Option<u64>,
        #[command(flatten)]
        seat: Seat,
    },
    /// Stay
    Renew {
        /// How long it holds from now on; else session.ttl_seconds
        #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
        ttl: Option<u64>,
        #[command(flatten)]
        seat: Seat,
    },
    /// Ask whether to start, hold or exit
    Next {
        #[command(flatten)]
        seat: Seat,
    },
    /// Get the task to work on, with what is known of it
    Task {
        #[command(flatten)]
        seat: Seat,
    },
    /// Say that the task is done, or failed
    Report {
        /// The task; else the one that you hold
        #[arg(long = "task", value_name = "REF")]
        task: Option<String>,
        /// What came of it, in one line
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        /// It failed, for this reason
        #[arg(long, value_name = "REASON", conflicts_with = "summary")]
        failed: Option<String>,
        /// Whether trying again may help
        #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(ERROR_CLASSES), default_value = "permanent")]
        class: String,
        /// Idempotency key
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        #[command(flatten)]
        seat: Seat,
    },
    /// Leave
    Logout {
        #[command(flatten)]
        seat: Seat,
    },
    /// List the sessions that are open
    List {
        /// Also those that are over
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        paged: Paged,
    },
}

impl Command for Args {
    const NAME: &str = "hf-session";

    fn is_agents(_: &ArgMatches) -> bool {
        true
    }

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Login { ttl, .. } => session::login(ctx, LoginRequest { ttl_seconds: ttl })?.into(),
            What::Renew { ttl, .. } => session::renew(ctx, RenewRequest { ttl_seconds: ttl })?.into(),
            What::Next { .. } => session::next(ctx)?.into(),
            What::Task { .. } => session::my_task(ctx)?.into(),
            What::Report { task, summary, failed, class, key, .. } => {
                let end = match failed {
                    Some(reason) => End::Failed { class, reason },
                    None => End::Succeeded { summary },
                };
                session::report(ctx, ReportRequest { reference: task, end, key })?.into()
            }
            What::Logout { .. } => session::logout(ctx)?.into(),
            What::List { all, paged } => {
                let states = if all { Vec::new() } else { vec![Phase::Active] };
                project::list(ctx, paged.of(EntityType::Session, states))?.into()
            }
        })
    }
}
