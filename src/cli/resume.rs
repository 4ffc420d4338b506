//! hf-resume: let work go on.

use clap::Parser;

use super::args::{Acting, Common, Projected};
use super::{Command, Out, Output};
use crate::op::pause::{self, ResumeProjectRequest};
use crate::op::{self, Context, ResumeSystemRequest};

/// Let a paused project go on, or everything after a stop (for an operator)
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-resume --system
  hf-resume --project main

A project goes on where it was: whoever held a task gets it back first. Nothing but --system lifts a stop."
)]
pub struct Args {
    /// Lift the emergency stop
    #[arg(long, conflicts_with = "project")]
    system: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    #[command(flatten)]
    projected: Projected,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-resume";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        let comment = self.comment;
        Ok(match self.system {
            true => op::resume_system(ctx, ResumeSystemRequest { comment })?.into(),
            false => pause::resume_project(ctx, ResumeProjectRequest { comment })?.into(),
        })
    }
}
