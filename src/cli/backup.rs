//! hf-backup: a consistent, verified copy.

use std::path::PathBuf;

use clap::Parser;

use super::args::Common;
use super::{Command, Out, Output};
use crate::op::{self, BackupRequest, Context};

/// Copy the vault to a new folder and verify the copy; it takes its name only when it is whole
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-backup /backup/hive-monday

Derived data (Akashic/index) is left out; it is made again from the events."
)]
pub struct Args {
    /// The copy; must not exist, or be an empty folder
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-backup";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        let target = std::path::absolute(&self.dir)?;
        Ok(op::backup(ctx, BackupRequest { target })?.into())
    }
}
