//! hf-branch: many activities, one mind.

mod belief;
mod choice;
mod knowledge;
mod memory;
mod pulse;
mod recall;
mod refusals;
mod social;
mod tasks;
mod threads;

use crate::support::test_vault::{Reply, TestVault};

/// Runs `hf-branch` for an agent.
fn by(hive: &TestVault, agent: &str, args: &[&str]) -> Reply {
    hive.run("branch", &[args, &["--agent", agent]].concat())
}

/// The same, for what must work; the report is on standard output where no document is.
#[track_caller]
fn does(hive: &TestVault, agent: &str, args: &[&str]) -> Reply {
    let reply = by(hive, agent, args);
    assert_eq!(reply.code, Some(0), "{reply:#?}");
    reply
}

/// Whose branch is active, by its reference.
#[track_caller]
fn active(hive: &TestVault, agent: &str) -> String {
    let reply = does(hive, agent, &["list"]);
    let branches: Vec<&str> = reply.all("BRANCH").into_iter().filter(|line| line.contains(" Active ")).collect();
    assert_eq!(branches, reply.all("ACTIVE"), "one and only one");
    branches[0].split(' ').next().unwrap().to_owned()
}

/// The threads of a branch as its projection has them, from `show`.
fn threads(hive: &TestVault, reference: &str) -> Vec<String> {
    let reply = hive.run("branch", &["show", reference]).expect_exit(0);
    let word = |line: &&str| line.split(' ').nth(2).unwrap().to_owned();
    reply.all("ENTITY").iter().filter(|line| line.starts_with("thread:")).map(word).collect()
}

/// A vault in which ann has written, BR-0002, with a summary and two messages.
fn written() -> TestVault {
    let mut hive = TestVault::new();
    does(&hive, "ann", &["create", "The song of the stars", "--type", "free"]);
    does(&hive, "ann", &["note", "The hero leaves home"]);
    hive.at("2026-01-31T12:10:00Z");
    does(&hive, "ann", &["note", "The hero is at the tower"]);
    does(&hive, "ann", &["suspend", "--summary", "Chapter 1 is done"]);
    hive
}

impl Reply {
    /// The report of a command whose product is a document.
    fn report_of_document(&self) -> Reply {
        Reply { stdout: self.stderr.clone(), stderr: String::new(), code: self.code }
    }
}
