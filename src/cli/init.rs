//! hf-init: create a vault.

use std::path::PathBuf;

use clap::{ArgMatches, Parser};

use super::args::{ActorArgs, GlobalArgs};
use super::{Command, Output, StdoutWriter};
use crate::op::{self, Context};

/// Create a vault: a private directory for the log and all other state
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-init                 create ./Vault
  hf-init /srv/hive       create the vault /srv/hive

An existing vault is not changed; the reply is STATUS:EXISTS.

A new vault is added to those that you trust, ~/.config/hiveforge/trust (or in $XDG_CONFIG_HOME), so that the commands \
in its settings may be run here; hf-config(1) says more. Without a home directory the vault is created all the same, with \
a warning."
)]
pub struct Args {
    #[arg(value_name = "DIR", conflicts_with = "vault", help = "The directory to create [default: --vault, $HF_VAULT or ./Vault]")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    actor: ActorArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-init";
    const DEFAULT_VAULT: Option<&str> = Some("Vault");

    fn vault_argument(matches: &ArgMatches) -> Option<PathBuf> {
        matches.try_get_one::<PathBuf>("dir").ok().flatten().cloned()
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(op::init(ctx)?.into())
    }
}
