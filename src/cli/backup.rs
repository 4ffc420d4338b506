//! hf-backup: a consistent, verified copy.

use std::path::PathBuf;

use clap::Parser;

use super::args::GlobalArgs;
use super::{Command, Output, StdoutWriter};
use crate::op::{self, BackupRequest, Context};

/// Copy the vault to a new directory, which appears only after the copy has been verified
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-backup /backup/hive-monday

The index (Akashic/index) is not copied; it is rebuilt from the events. Nor are the variables that jobs were given \
(Jobs/*/spec.json): they may be secrets, and a copy starts no job."
)]
pub struct Args {
    /// The target directory; must not exist or must be empty
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-backup";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        let target = std::path::absolute(&self.dir)?;
        Ok(op::backup(ctx, BackupRequest { target })?.into())
    }
}
