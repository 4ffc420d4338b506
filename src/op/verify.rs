//! hf-verify: the verdicts, and an operator's way out of damage.

use super::{Env, random_id};
use crate::base::{Error, Reason, Result, Ulid};
use crate::chain::Head;
use crate::vault::config::Config;
use crate::vault::{Recovered, Verified};

#[derive(Debug, Default)]
pub struct VerifyRequest {
    pub expected_heads: Vec<Head>,
    pub since: Option<Ulid>,
}

#[derive(Debug)]
pub struct VerifyOutcome {
    pub verified: Verified,
    pub warnings: Vec<String>,
}

pub fn verify(env: &Env, request: &VerifyRequest) -> Result<VerifyOutcome> {
    let vault = env.open()?;
    let warnings = vault.check_private().err().map(|e| e.message).into_iter().collect();
    Ok(VerifyOutcome { verified: vault.verify(&request.expected_heads, request.since)?, warnings })
}

pub type RecoverOutcome = Recovered;

/// Cuts off a damaged suffix. `confirmed` is the operator's `--yes`.
pub fn recover(env: &Env, confirmed: bool) -> Result<RecoverOutcome> {
    env.check_operator("cutting off a damaged part of the log")?;
    if !confirmed {
        return Err(Error::refused(
            Reason::NotConfirmed,
            "recovering moves everything from the first bad line on to quarantine; an operator confirms that with --yes",
        ));
    }
    let vault = env.open()?;
    // The settings only say how large a segment may get; a broken file must not stand in the way here.
    let options = env.write_options(&vault, &mut Vec::new()).unwrap_or_else(|_| env.options(&Config::default()));
    vault.recover(env.actor.clone(), &random_id()?, options)
}
