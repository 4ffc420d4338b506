//! hf-backup: a consistent copy, verified before it takes its name.

use std::path::PathBuf;

use super::{Env, random_id};
use crate::base::Result;
use crate::vault::{self, BackedUp};

#[derive(Debug)]
pub struct BackupRequest {
    pub target: PathBuf,
}

pub type BackupOutcome = BackedUp;

pub fn backup(env: &Env, request: &BackupRequest) -> Result<BackupOutcome> {
    vault::backup(&env.open()?, &request.target, &random_id()?[..8])
}
