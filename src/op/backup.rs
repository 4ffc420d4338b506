//! hf-backup: a consistent copy of the vault, verified before it gets its name.

use std::path::PathBuf;

use super::{Context, random_id};
use crate::base::Result;
use crate::vault::{self, BackedUp};

/// A backup to make.
#[derive(Clone, Debug, Default)]
pub struct BackupRequest {
    /// A directory that does not exist or is empty.
    pub target: PathBuf,
}

#[derive(Debug)]
pub struct BackupOutcome {
    pub path: PathBuf,
    pub copied: BackedUp,
}

/// Copies the vault and verifies the copy.
pub fn backup(ctx: &Context, request: BackupRequest) -> Result<BackupOutcome> {
    let copied = vault::backup(&ctx.open()?, &request.target, &random_id()?[..8])?;
    Ok(BackupOutcome { path: request.target, copied })
}
