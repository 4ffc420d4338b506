//! Tests that need a real machine: limits, mounts, other users, terminals. Run by `scripts/system-test`. Faults in the
//! middle of a command are in `tests/torture`.

#[allow(dead_code, reason = "shared with the e2e tests, which use all of it")]
#[path = "../e2e/support/test_vault.rs"]
mod test_vault;

mod completions;
mod embed;
mod fire;
mod killed;
#[allow(dead_code, reason = "shared with the torture, which uses the rest")]
mod machine;
mod mission;
mod refusals;
mod terminal;
mod ticks;
mod timer;
mod tmux;
mod trees;
#[allow(dead_code, reason = "shared with the torture, which uses the rest")]
mod vaults;
