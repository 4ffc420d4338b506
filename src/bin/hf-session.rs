//! hf-session: an agent comes, asks what to do, does it, and leaves.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hiveforge::base::{EntityId, EntityType, ShortRef};
use hiveforge::event::kind::ERROR_CLASSES;
use hiveforge::machine::State;
use hiveforge::op::session::{self, Action, MyTaskOutcome, NextOutcome};
use hiveforge::op::task::End;
use hiveforge::op::{AppendOutcome, Env, ListRequest, Projection, project};
use hiveforge::ui::{self, Common, Key, Next, Output, Paged, Projected, Report, Status, outcome, show};

/// Come to work as an agent, ask what to do, and leave
#[derive(Parser, Debug)]
#[command(
    name = "hf-session",
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
    /// The agent; else $HF_AGENT, else main
    #[arg(long, value_name = "NAME", global = true)]
    agent: Option<String>,
    /// The session; else $HF_SESSION
    #[arg(long, value_name = "ID", global = true)]
    session: Option<String>,
    #[command(flatten)]
    projected: Projected,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Come to work; a session that was left open in the same project is over
    Login {
        /// How long it holds without being renewed; else session.ttl_seconds
        #[arg(long, value_name = "TIME", value_parser = ui::parse_seconds)]
        ttl: Option<u64>,
    },
    /// Stay
    Renew {
        /// How long it holds from now on; else session.ttl_seconds
        #[arg(long, value_name = "TIME", value_parser = ui::parse_seconds)]
        ttl: Option<u64>,
    },
    /// Ask whether to start, hold or exit
    Next,
    /// Get the task to work on, with what is known of it
    Task,
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
    },
    /// Leave
    Logout,
    /// List the sessions that are open
    List {
        /// Also those that are over
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        paged: Paged,
    },
}

impl ui::Cli for Args {
    fn common(&self) -> &Common {
        &self.common
    }

    fn agent(&self) -> Option<Option<&str>> {
        Some(self.agent.as_deref())
    }

    fn project(&self) -> Option<&str> {
        self.projected.project.as_deref()
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

/// What an agent does first after a pause.
const INSTRUCTION: &str = "work was paused and goes on: check where things stood, tidy up what is half done; \
                           the repository and its dependencies may have changed";

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let named = args.session.as_deref();
        Ok(match args.what {
            What::Login { ttl } => {
                let done = session::login(env, ttl)?;
                let id = done.entity.as_ref().and_then(|s| EntityId::parse(s.subject.id()).ok());
                let next = Next::run("hf-session").word("task");
                held(&done).next(id.map_or(Next::None, |id| next.arg("--session", &id)))
            }
            What::Renew { ttl } => held(&session::renew(env, ttl)?),
            What::Next => next(&session::next(env)?, named),
            What::Task => task(session::my_task(env)?, named),
            What::Report { task, summary, failed, class, key } => {
                let report = match failed {
                    Some(reason) => End::Failed { class, reason },
                    None => End::Succeeded { summary },
                };
                let done = session::report(env, task.as_deref(), report, key)?;
                outcome::recorded(&done).next(of_session(Next::run("hf-session").word("next"), named))
            }
            What::Logout => match session::logout(env)? {
                Some(done) => held(&done),
                None => Report::new(Status::Duplicate, "no session is open"),
            },
            What::List { all, paged } => return list(env, all, paged),
        }
        .into())
    })
}

/// A session that was named by a flag is named again.
fn of_session(next: Next, named: Option<&str>) -> Next {
    match named.map(|name| (ShortRef::parse(name), EntityId::parse(name))) {
        None => next,
        Some((Some(reference), _)) => next.arg("--session", &reference),
        Some((None, Ok(id))) => next.arg("--session", &id),
        Some((None, Err(_))) => Next::OPERATOR,
    }
}

fn held(done: &AppendOutcome) -> Report {
    let session = done.entity.as_ref();
    outcome::recorded(done)
        .with_some(Key::SessionId, session.map(|session| session.subject.id()))
        .with_some(Key::ExpiresAt, session.and_then(|session| session.text("expires_at")))
}

fn next(done: &NextOutcome, named: Option<&str>) -> Report {
    let next = match done.action {
        Action::Start if done.in_session => of_session(Next::run("hf-session").word("task"), named),
        Action::Start => {
            let next = Next::run("hf-session").word("login").arg("--agent", &done.agent);
            match EntityId::parse(done.project.id()) {
                Ok(project) if project.as_str() != "main" => next.arg("--project", &project),
                _ => next,
            }
        }
        Action::Hold => Next::None,
        Action::Exit => of_session(Next::run("hf-session").word("logout"), named),
    };
    let why = done.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    Report::new(Status::Ok, format!("{} {}{why}", done.agent, done.action))
        .next(next)
        .with_some(Key::Reason, done.reason.map(|reason| reason.as_str()))
        .with(Key::Action, done.action.as_str())
        .with_each(Key::Project, [done.project.id()])
        .with_some(Key::TaskId, done.task.as_ref().map(|task| task.name()))
}

fn task(done: MyTaskOutcome, named: Option<&str>) -> Report {
    let resumed = done.resumed_from_pause;
    let report = match &done.task {
        None => Report::new(Status::NoTask, "there is nothing to do"),
        Some(task) => {
            let next = match task.state {
                State::Assigned => outcome::next_about("hf-task", "start", task),
                _ => Next::None,
            };
            // Where the session is named by a flag, the shell does not say whose it is.
            let next = if named.is_some() { next.arg("--actor", &done.agent) } else { next };
            let status = if done.claimed { Status::Claimed } else { Status::Ok };
            Report::new(status, outcome::sentence(task)).next(next).with(Key::TaskId, task.name())
        }
    };
    report
        .with_some(Key::State, done.task.as_ref().map(|task| task.state.as_str()))
        .with_some(Key::ResumedFromPause, resumed.then_some("true"))
        .with_some(Key::Instruction, resumed.then_some(INSTRUCTION))
        .with_some(Key::Previous, done.checkpoint)
        .with_each(Key::Event, done.events.iter().map(show::event))
        .with_each(Key::Entity, done.artifacts.iter().map(show::entity))
        .warn(done.warnings)
}

fn list(env: &Env, all: bool, paged: Paged) -> anyhow::Result<Output> {
    let request = ListRequest {
        states: if all { Vec::new() } else { vec![State::Active] },
        limit: paged.limit,
        cursor: paged.cursor,
        ..ListRequest::of(Projection::Of(EntityType::Session))
    };
    let words = if all { "list --all" } else { "list" };
    let next = Next::run("hf-session").word(words).arg("--limit", &paged.limit);
    Ok(outcome::listed(&project::list(env, &request)?, EntityType::Session.plural(), next).into())
}
