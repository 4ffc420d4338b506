//! hf-require: requirements.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::args::{CreateArgs, GlobalArgs, PageArgs, SignArgs, WorkArgs, read_text};
use super::{Command, Output, StdoutWriter};
use crate::base::EntityType;
use crate::op::require::{
    self, AnalyzeRequest, ProposeRequirementRequest, RejectRequirementRequest, SupersedeRequest,
    VerifyRequirementRequest,
};
use crate::op::{self, Context, ShowRequest, project};

/// Propose, analyze and verify requirements
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-require propose 'Users can log in' --description 'With email address and password.'
  hf-require analyze REQ-0001 'Two tasks: form and API. No new dependencies.'
  hf-require list --status Approved
  hf-require show REQ-0001"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Propose a requirement
    Propose {
        /// The requirement, in one line
        title: String,
        /// Details; - reads them from standard input
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        #[command(flatten)]
        work: WorkArgs,
        #[command(flatten)]
        _create: CreateArgs,
    },
    /// Record the analysis of a requirement; this requests approval from an operator
    Analyze {
        /// The requirement, such as REQ-0001
        reference: String,
        /// The analysis; - reads it from standard input
        analysis: Option<String>,
        /// Read the analysis from this file
        #[arg(long, value_name = "FILE", conflicts_with = "analysis")]
        file: Option<PathBuf>,
        #[command(flatten)]
        work: WorkArgs,
    },
    /// List requirements
    List {
        /// Only requirements in this state, such as Approved
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a requirement with its decisions and tasks
    Show {
        /// The requirement, such as REQ-0001
        reference: String,
    },
    /// Mark a requirement as superseded
    Supersede {
        /// The superseded requirement, such as REQ-0001
        reference: String,
        /// The requirement that supersedes it
        #[arg(long, value_name = "REF")]
        by: Option<String>,
        #[command(flatten)]
        work: WorkArgs,
        #[command(flatten)]
        sign: SignArgs,
    },
    /// Mark an implemented requirement as verified
    Verify {
        /// The requirement, such as REQ-0001
        reference: String,
        #[command(flatten)]
        work: WorkArgs,
        #[command(flatten)]
        sign: SignArgs,
    },
    /// Reject a requirement that has not been approved (operators only)
    Reject {
        /// The requirement, such as REQ-0001
        reference: String,
        /// Why it is rejected
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        work: WorkArgs,
        #[command(flatten)]
        sign: SignArgs,
    },
}

impl Command for Args {
    const NAME: &str = "hf-require";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Propose { title, description, work, .. } => {
                let (description, key) = (read_text(description, None)?, work.write.key);
                require::propose(ctx, ProposeRequirementRequest { title, description, key })?.into()
            }
            Verb::Analyze { reference, analysis, file, work } => {
                let analysis = read_text(analysis, file.as_deref())?;
                require::analyze(ctx, AnalyzeRequest { reference, analysis, key: work.write.key })?.into()
            }
            Verb::List { status, page } => {
                let phases = status.as_deref().map(|name| project::parse_status(EntityType::Requirement, name)).transpose()?.into_iter().collect();
                project::list(ctx, page.list_request(EntityType::Requirement, phases))?.into()
            }
            Verb::Show { reference } => op::show(ctx, ShowRequest { reference, wanted: &[EntityType::Requirement] })?.into(),
            Verb::Supersede { reference, by, work, sign } => {
                require::supersede(&sign.context(ctx)?, SupersedeRequest { reference, by, key: work.write.key })?.into()
            }
            Verb::Verify { reference, work, sign } => {
                require::verify(&sign.context(ctx)?, VerifyRequirementRequest { reference, key: work.write.key })?.into()
            }
            Verb::Reject { reference, reason, work, sign } => {
                let key = work.write.key;
                require::reject(&sign.context(ctx)?, RejectRequirementRequest { reference, reason, key })?.into()
            }
        })
    }
}
