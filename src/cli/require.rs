//! hf-require: what is wanted.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::args::{Common, Paged, Working, read_text};
use super::{Command, Out, Output};
use crate::base::EntityType;
use crate::op::require::{
    self, AnalyzeRequest, ProposeRequirementRequest, RejectRequirementRequest, SupersedeRequest,
    VerifyRequirementRequest,
};
use crate::op::{self, Context, ShowRequest, project};

/// Put requirements in, analyse and verify them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
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
        #[command(flatten)]
        working: Working,
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
        #[command(flatten)]
        working: Working,
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
        #[command(flatten)]
        working: Working,
    },
    /// Say that what was built was checked and holds
    Verify {
        /// The requirement
        reference: String,
        #[command(flatten)]
        working: Working,
    },
    /// Give one up before it was analysed (for an operator)
    Reject {
        /// The requirement
        reference: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        working: Working,
    },
}

impl Command for Args {
    const NAME: &str = "hf-require";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Propose { title, description, working } => {
                let (description, key) = (read_text(description, None)?, working.recording.key);
                require::propose(ctx, ProposeRequirementRequest { title, description, key })?.into()
            }
            What::Analyze { reference, analysis, file, working } => {
                let analysis = read_text(analysis, file.as_deref())?;
                require::analyze(ctx, AnalyzeRequest { reference, analysis, key: working.recording.key })?.into()
            }
            What::List { status, paged } => {
                let states = status.as_deref().map(project::parse_status).transpose()?.into_iter().collect();
                project::list(ctx, paged.of(EntityType::Requirement, states))?.into()
            }
            What::Show { reference } => op::show(ctx, ShowRequest { reference, wanted: EntityType::Requirement })?.into(),
            What::Supersede { reference, by, working } => {
                require::supersede(ctx, SupersedeRequest { reference, by, key: working.recording.key })?.into()
            }
            What::Verify { reference, working } => {
                require::verify(ctx, VerifyRequirementRequest { reference, key: working.recording.key })?.into()
            }
            What::Reject { reference, reason, working } => {
                let key = working.recording.key;
                require::reject(ctx, RejectRequirementRequest { reference, reason, key })?.into()
            }
        })
    }
}
