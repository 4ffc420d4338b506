//! hf-key: the keys with which operators sign.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, Subcommand};

use super::args::{ActorArgs, GlobalArgs, SignArgs};
use super::{Command, Output, StdoutWriter};
use crate::base::{Fingerprint, Result};
use crate::op::key::{self, AddKeyRequest, RemoveKeyRequest};
use crate::op::{Context, sign};

/// Add, remove and list the keys with which operators sign
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-key add ~/.ssh/id_ed25519_sk.pub     from here on, what operators decide is signed
  hf-key list
  hf-key remove SHA256:2tIVmd... --compromised
  hf-verify --policy --operator-keys keys.pub

With operator keys, approving and rejecting, verifying and superseding requirements, lifting a stop, resuming and \
archiving projects, adopting settings, changing keys and recovering the log each require an SSH signature over a \
statement in plain words: which vault, what is done, which event it answers, and everything it covers. The signature \
decides, not the shell: anybody may carry it in. Stopping and pausing are not signed. The settings in force are adopted \
with the first key, which signs itself; the last key cannot be removed.

hf-decide approve and the other commands show the statement, ask, and run ssh-keygen; the toolkit never reads a private \
key. To sign as another user or on another machine, take hf-decide statement there, sign it with hf-decide sign, and hand \
in the result with --signature.

What a signature proves is that somebody could use the key. A key that ssh-agent uses without asking proves the user, \
not a person: a program of the same user can use it, too. A FIDO key that has to be touched proves that somebody touched \
it; set governance.approval_strength to touch or touch_and_pin to require that. A key under another user or on another \
machine cannot be used by the agents at all. An agent cannot forge a signature of such a key.

Keys are ed25519, ecdsa-sha2-nistp256 and their FIDO forms. Keep the public keys and an anchor outside the vault: \
hf-verify says SIGNATURES:OK only with --operator-keys, because a program that can rewrite the whole log can also \
replace the keys in it.

remove --compromised also lists everything that the key has signed, and the head of the log. What a key signed before it \
was removed stays valid."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Add an operator key; the first one signs itself
    Add {
        /// The .pub file of the key
        file: PathBuf,
        #[command(flatten)]
        actor: ActorArgs,
        #[command(flatten)]
        sign: SignArgs,
    },
    /// Remove an operator key
    Remove {
        /// The key: its fingerprint, or its .pub file
        key: KeyName,
        /// Somebody else may have it: also list what it has signed
        #[arg(long)]
        compromised: bool,
        #[command(flatten)]
        actor: ActorArgs,
        #[command(flatten)]
        sign: SignArgs,
    },
    /// List the operator keys
    List,
}

/// A key as a person names it: by its fingerprint or its file.
#[derive(Clone, Debug)]
pub struct KeyName(String);

impl FromStr for KeyName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(KeyName(text.to_owned()))
    }
}

impl KeyName {
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        match Fingerprint::parse(&self.0) {
            Some(fingerprint) => Ok(fingerprint),
            None => sign::read_key(self.0.as_ref()).map(|key| key.fingerprint()),
        }
    }
}

impl Command for Args {
    const NAME: &str = "hf-key";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Add { file, sign: ways, .. } => {
                key::add(&ways.context(ctx)?, AddKeyRequest { key: sign::read_key(&file)?, file })?.into()
            }
            Verb::Remove { key: name, compromised, sign, .. } => {
                key::remove(&sign.context(ctx)?, RemoveKeyRequest { key: name.fingerprint()?, compromised })?.into()
            }
            Verb::List => key::list(ctx)?.into(),
        })
    }
}
