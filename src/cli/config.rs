//! hf-config: the settings in force.

use clap::{Parser, Subcommand};

use super::args::Common;
use super::{Command, Out, Output};
use crate::op::config::{self, ShowConfigRequest};
use crate::op::Context;

/// Show the settings in force and where each comes from, or what the file would change
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-config show
  hf-config show governance.lease_seconds
  hf-config show liveness                 every setting of a section
  hf-config diff                          how the file differs from the log

Settings come from hiveforge.config.yaml in the vault, or else beside it. Every change is recorded: the next command that
writes to the log also writes SettingsChanged, and hf-verify --policy judges each event by the settings of its time.
If the file cannot be read, or others can write it, only this command fails; all others use the settings recorded last."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// The settings in force
    Show {
        /// One setting, or a section
        name: Option<String>,
    },
    /// What the file says and the log does not; exits 1 if they differ
    Diff,
}

impl Command for Args {
    const NAME: &str = "hf-config";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Show { name } => config::show(ctx, ShowConfigRequest { name })?.into(),
            What::Diff => config::diff(ctx)?.into(),
        })
    }
}
