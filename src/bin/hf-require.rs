//! hf-require: what is wanted.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hiveforge::base::EntityType;
use hiveforge::op::{self, AppendOutcome, Env, ListRequest, Projection, project, require};
use hiveforge::ui::{self, Acting, Common, Keyed, Next, Output, Paged, Projected, Report, outcome};

/// Put requirements in, analyse and verify them
#[derive(Parser, Debug)]
#[command(
    name = "hf-require",
    version,
    after_help = "Examples:
  hf-require propose 'Users can log in' --description 'By mail and password.'
  hf-require analyze REQ-0001 'Two tasks: form and API. No new dependency.'
  hf-require list --status Approved
  hf-require show REQ-0001"
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
    /// Put a requirement in
    Propose {
        /// What is wanted, in one line
        title: String,
        /// More about it; - reads standard input
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Record its analysis, and thereby ask an operator to approve it
    Analyze {
        /// The requirement
        reference: String,
        /// What the analysis found; - reads standard input
        analysis: Option<String>,
        /// A file that holds the analysis
        #[arg(long, value_name = "FILE", conflicts_with = "analysis")]
        file: Option<PathBuf>,
    },
    /// List requirements
    List {
        /// Only those in this state
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        #[command(flatten)]
        paged: Paged,
    },
    /// Show one, with its decisions and tasks
    Show {
        /// The requirement
        reference: String,
    },
    /// Say that another requirement took its place
    Supersede {
        /// The requirement that no longer counts
        reference: String,
        /// The one that took its place
        #[arg(long, value_name = "REF")]
        by: Option<String>,
    },
    /// Say that what was built was checked and holds
    Verify {
        /// The requirement
        reference: String,
    },
    /// Give one up before it was analysed (for an operator)
    Reject {
        /// The requirement
        reference: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

hiveforge::cli!(Args, with acting, in project);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let key = args.keyed.key;
        let done = match args.what {
            What::Propose { title, description } => {
                let done = require::propose(env, &title, ui::read_text(description, None)?, key)?;
                return Ok(next(&done, "analyze").into());
            }
            What::Analyze { reference, analysis, file } => {
                let analysis = ui::read_text(analysis, file.as_deref())?;
                let done = require::analyze(env, &reference, analysis, key)?;
                return Ok(outcome::recorded(&done).next(Next::OPERATOR).into());
            }
            What::List { status, paged } => return list(env, status, paged),
            What::Show { reference } => {
                return Ok(outcome::shown(&op::show(env, &reference, EntityType::Requirement)?).into());
            }
            What::Supersede { reference, by } => require::supersede(env, &reference, by.as_deref(), key)?,
            What::Verify { reference } => require::verify(env, &reference, key)?,
            What::Reject { reference, reason } => require::reject(env, &reference, &reason, key)?,
        };
        Ok(outcome::recorded(&done).into())
    })
}

fn next(done: &AppendOutcome, words: &'static str) -> Report {
    let next = done.entity.as_ref().map(|entity| outcome::next_about("hf-require", words, entity));
    outcome::recorded(done).next(next.unwrap_or(Next::None))
}

fn list(env: &Env, status: Option<String>, paged: Paged) -> anyhow::Result<Output> {
    let states = status.as_deref().map(project::parse_status).transpose()?;
    let mut next = Next::run("hf-require").word("list").arg("--limit", &paged.limit);
    if let Some(state) = states {
        next = next.word("--status").word(state.as_str());
    }
    let request = ListRequest {
        states: states.into_iter().collect(),
        limit: paged.limit,
        cursor: paged.cursor,
        ..ListRequest::of(Projection::Of(EntityType::Requirement))
    };
    Ok(outcome::listed(&project::list(env, &request)?, EntityType::Requirement.plural(), next).into())
}
