//! hf-init: make a vault.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use hiveforge::op::{self, InitRequest};
use hiveforge::ui::{self, Acting, Cli, Common, Key, Report, Status};

/// Make a vault: one private folder that holds the log and everything else
#[derive(Parser, Debug)]
#[command(
    name = "hf-init",
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

impl Cli for Args {
    fn common(&self) -> &Common {
        &self.common
    }

    fn acting(&self) -> Option<&Acting> {
        Some(&self.acting)
    }

    fn vault(&self) -> Option<PathBuf> {
        self.dir.clone()
    }

    fn default_vault(&self) -> Option<PathBuf> {
        Some(PathBuf::from("Vault"))
    }
}

fn main() -> ExitCode {
    ui::run::<Args>(|_, env, _| {
        let path = env.vault.display().to_string();
        let done = op::init(env, InitRequest)?;
        let report = match &done.created {
            None => Report::new(Status::Exists, "the vault is there already; nothing was changed"),
            Some(first) => Report::new(Status::Initialized, "a new vault with its first event")
                .with(Key::EventId, first.id.to_string())
                .with(Key::Hash, first.hash.to_string())
                .with_some(Key::VaultId, first.payload["vault_id"].as_str()),
        };
        Ok(report.with(Key::Vault, path).into())
    })
}
