//! hf-backup: a consistent, verified copy.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use hiveforge::op::{self, BackupRequest};
use hiveforge::ui::{self, Common, Key, Report, Status};

/// Copy the vault to a new folder and verify the copy; it takes its name only when it is whole
#[derive(Parser, Debug)]
#[command(
    name = "hf-backup",
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

hiveforge::cli!(Args);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let target = std::path::absolute(&args.dir)?;
        let path = target.display().to_string();
        let done = op::backup(env, &BackupRequest { target })?;
        Ok(Report::new(Status::BackedUp, format!("{} events in {} files", done.events, done.files))
            .with(Key::Path, path)
            .with(Key::Events, done.events)
            .with_some(Key::HeadId, done.head.map(|head| head.id.to_string()))
            .with_some(Key::HeadHash, done.head.map(|head| head.hash.to_string()))
            .with(Key::Files, done.files)
            .with(Key::Bytes, done.bytes)
            .into())
    })
}
