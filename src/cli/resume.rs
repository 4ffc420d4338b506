//! hf-resume: resume work.

use clap::Parser;

use super::args::{ActorArgs, GlobalArgs, ProjectArgs, SignArgs};
use super::{Command, Output, StdoutWriter};
use crate::op::pause::{self, ResumeProjectRequest};
use crate::op::{self, Context, ResumeSystemRequest};

/// Resume a paused project, or all work after a stop (operators only)
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-resume --system
  hf-resume --project main

A project continues where it was paused: each agent gets back the task it had claimed. After hf-stop, only --system \
resumes work."
)]
pub struct Args {
    /// Resume everything after hf-stop
    #[arg(long, conflicts_with = "project")]
    system: bool,
    /// A comment for the record
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    actor: ActorArgs,
    #[command(flatten)]
    sign: SignArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-resume";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        let (comment, ctx) = (self.comment, &self.sign.context(ctx)?);
        Ok(match self.system {
            true => op::resume_system(ctx, ResumeSystemRequest { comment })?.into(),
            false => pause::resume_project(ctx, ResumeProjectRequest { comment })?.into(),
        })
    }
}
