//! hf-init: make a vault.

use std::path::PathBuf;

use clap::{ArgMatches, Parser};

use super::args::{Acting, Common};
use super::{Command, Out, Output};
use crate::op::{self, Context};

/// Make a vault: one private folder that holds the log and everything else
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-init                 make ./Vault
  hf-init /srv/hive       make a vault there

A vault that exists is left as it is: STATUS:EXISTS."
)]
pub struct Args {
    #[arg(value_name = "DIR", conflicts_with = "vault", help = "The vault itself; else --vault, $HF_VAULT or ./Vault")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-init";
    const DEFAULT_VAULT: Option<&str> = Some("Vault");

    fn vault(matches: &ArgMatches) -> Option<PathBuf> {
        matches.try_get_one::<PathBuf>("dir").ok().flatten().cloned()
    }

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(op::init(ctx)?.into())
    }
}
