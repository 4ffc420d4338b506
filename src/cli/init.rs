//! hf-init: create a vault.

use std::path::PathBuf;

use clap::{ArgMatches, Parser};

use super::args::{ActorArgs, GlobalArgs, SignArgs};
use super::{Command, Output, StdoutWriter};
use crate::op::{self, Context, InitRequest};

/// Create a vault: a private directory for the log and all other state
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-init                 create ./Vault
  hf-init /srv/hive       create the vault /srv/hive
  hf-init --operator-key ~/.ssh/id_ed25519_sk.pub   what operators decide is signed with this key

An existing vault is not changed; the reply is STATUS:EXISTS.

A new vault is added to those that you trust, ~/.config/hiveforge/trust (or in $XDG_CONFIG_HOME), so that the commands \
in its settings may be run here; hf-config(1) says more. Without a home directory the vault is created all the same, with \
a warning.

With operator keys, approvals and every other act of an operator are signed; hf-key(1) says what that proves. The \
settings in force are then adopted from the beginning. The keys sign themselves and the settings before anything is \
created."
)]
pub struct Args {
    #[arg(value_name = "DIR", conflicts_with = "vault", help = "The directory to create [default: --vault, $HF_VAULT or ./Vault]")]
    dir: Option<PathBuf>,
    /// Let operators sign with this key, the .pub file of an SSH key (repeatable; the first one signs)
    #[arg(long = "operator-key", value_name = "FILE")]
    operator_keys: Vec<PathBuf>,
    /// Sign without showing the statement and asking
    #[arg(long, requires = "operator_keys")]
    yes: bool,
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
        let sign = SignArgs { operator_key: None, signature: None, statement: None, yes: self.yes };
        Ok(op::init(&sign.context(ctx)?, InitRequest { operator_keys: self.operator_keys })?.into())
    }
}
