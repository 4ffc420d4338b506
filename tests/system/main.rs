//! What only a real machine can show: limits, mounts, other users, terminals. Run by
//! `scripts/system-test`. What breaks in the middle of a command is in `tests/torture`.

#[allow(dead_code, reason = "shared with the e2e tests, which use all of it")]
#[path = "../e2e/support/test_vault.rs"]
mod test_vault;

mod completions;
mod embed;
#[allow(dead_code, reason = "shared with the torture, which uses the rest")]
mod machine;
mod mission;
mod refusals;
mod terminal;
mod tmux;
#[allow(dead_code, reason = "shared with the torture, which uses the rest")]
mod vaults;
