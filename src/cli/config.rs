//! hf-config: the settings in force, and an operator's acts about them.

use clap::{Parser, Subcommand};

use super::args::{ActorArgs, GlobalArgs, SignArgs};
use super::{Command, Output, StdoutWriter};
use crate::op::config::{self, SetConfigRequest, ShowConfigRequest};
use crate::op::Context;

/// Show the settings in force, compare them with the file, and put them in force
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-config show
  hf-config show governance.lease_seconds
  hf-config show liveness                 all settings of a section
  hf-config diff                          compare the file with the log
  hf-config set governance.lease_seconds 600
  hf-config set governance.destructive_commands '[\"rm *\", \"git push --force*\"]'
  hf-config adopt                         only adopted settings count from here on
  hf-config trust                         let the commands in the settings be run here

Settings come from hiveforge.config.yaml in the vault, or else next to it. Changes are recorded: the next command that \
writes to the log also records SettingsChanged, with the old and new values (see hf-log --type SettingsChanged), and \
hf-verify --policy checks each event against the settings of its time. A file that cannot be read, is a symbolic link, \
or can be written by other users counts as unreadable, and so does one next to the vault in a directory that others can \
write to: then only this command fails; all others use the settings recorded last, and say so. A key that nothing reads \
is named in a warning by every command that reads the settings. hf-format(5) lists all settings.

show says where each value comes from: default; file (not recorded yet); recorded (from the file); adopted.

As long as settings are only recorded, anyone who can write the file can change the rules, and that is on the record. adopt \
puts the settings in the file in force as an operator's act (SettingsAdopted). From then on only adopted settings \
count: a changed file has no effect and records nothing, and hf-status, the watchdog and every command in an operator's \
shell name it until the file is restored or adopted. This cannot be undone; adopt the file again after every change, or \
use set.

set changes one setting in the file, keeps its comments and layout, and puts it in force: it adopts where settings were \
adopted before, and records otherwise. A layout that it cannot change safely is refused, and so is a file that differs \
from the adopted settings in anything else.

Commands in the settings (hooks, reviewers, runner, fixer, jobs.check_cmd, jobs.on_finish) are run only in a vault that \
this user trusts on this machine: one that this user created here with hf-init, or trusted with adopt or trust. A copy, \
a clone, a restored backup in another place or a vault made by version 0.1 runs none until an operator has looked at the \
commands and runs hf-config trust. In a vault with adopted settings, only these settings are trusted. HF_TRUST=VAULT_ID \
trusts one vault for a single call, for example in CI. This stops copies; it does not stop a program that runs as the \
same user. set, adopt and trust are refused to agents and in their shells."
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
    /// Show how the file differs from the settings in force; exits 1 if it does
    Diff,
    /// Change a setting in the file and put it in force
    Set {
        /// The setting, such as governance.lease_seconds
        name: String,
        /// Its value; a list as in the file, such as '[a, b]'
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        actor: ActorArgs,
        #[command(flatten)]
        sign: SignArgs,
    },
    /// Put the settings in the file in force; from then on only adopted settings count
    Adopt {
        #[command(flatten)]
        actor: ActorArgs,
        #[command(flatten)]
        sign: SignArgs,
    },
    /// Let the commands in the settings of this vault be run by you on this machine
    Trust,
}

impl Command for Args {
    const NAME: &str = "hf-config";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Show { name } => config::show(ctx, ShowConfigRequest { name })?.into(),
            Verb::Diff => config::diff(ctx)?.into(),
            Verb::Set { name, value, sign, .. } => {
                config::set(&sign.context(ctx)?, SetConfigRequest { name, value })?.into()
            }
            Verb::Adopt { sign, .. } => config::adopt(&sign.context(ctx)?)?.into(),
            Verb::Trust => config::trust(ctx)?.into(),
        })
    }
}
