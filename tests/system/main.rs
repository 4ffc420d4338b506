//! What only a real machine can show: system calls that fail, disks that are full or cut off,
//! processes that are killed, other users. Run by `scripts/system-test`.

#[allow(dead_code, reason = "shared with the e2e tests, which use all of it")]
#[path = "../e2e/hive.rs"]
mod hive;

mod inject;
mod machine;
mod power;
mod refusals;
mod storm;
mod terminal;
mod tmux;
mod vaults;
