//! hf-config: the settings in force.

use clap::{Parser, Subcommand};

use super::args::GlobalArgs;
use super::{Command, Output, StdoutWriter};
use crate::op::config::{self, ShowConfigRequest};
use crate::op::Context;

/// Show the settings in force and where each comes from, or pending changes in the file
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-config show
  hf-config show governance.lease_seconds
  hf-config show liveness                 all settings of a section
  hf-config diff                          compare the file with the log

Settings come from hiveforge.config.yaml in the vault, or else next to it. Changes are recorded: the next command that \
writes to the log also records SettingsChanged, and hf-verify --policy checks each event against the settings of its \
time. If the file cannot be read, or other users can write to it, only this command fails; all others use the settings \
recorded last, and say so. A key that nothing reads is named in a warning by every command that reads the settings. \
hf-format(5) lists all settings."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show the settings in force
    Show {
        /// A setting or a section, such as governance.lease_seconds or liveness [default: all]
        name: Option<String>,
    },
    /// Show changes in the file that are not recorded yet; exits 1 if there are any
    Diff,
}

impl Command for Args {
    const NAME: &str = "hf-config";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Show { name } => config::show(ctx, ShowConfigRequest { name })?.into(),
            Verb::Diff => config::diff(ctx)?.into(),
        })
    }
}
