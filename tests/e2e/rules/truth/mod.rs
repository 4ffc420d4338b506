//! Replies are true: each test here is named after a finding about a reply of version 0.1.0 that was not.

mod assigning;
mod attacked;
mod attempts;
mod audit_questions;
mod causes;
mod ends;
mod escalations;
mod jobs;
mod judged;
mod late;
mod readers;
mod status;
mod stops;
mod taken;

use crate::support::test_vault::{Reply, TestVault};

/// The problems of hf-status, each as `kind subject what do=command`, without its times.
#[track_caller]
fn problems(hive: &TestVault) -> Vec<String> {
    let reply = hive.run("status", &[]);
    let lines: Vec<String> = reply.all("PROBLEM").into_iter().map(without_times).collect();
    let (exit, status, next) = match lines.is_empty() {
        true => (0, "OK", "NONE"),
        false => (1, "ATTENTION", "ASK operator"),
    };
    let reply = reply.expect_exit(exit);
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), (status, next), "{reply:#?}");
    assert_eq!(reply.get("PROBLEMS"), lines.len().to_string());
    lines
}

fn without_times(line: &str) -> String {
    let rest = line.splitn(3, ' ').nth(2);
    rest.unwrap_or_else(|| panic!("since, age and more: {line}")).to_owned()
}

/// The reasons that hf-task explain gives.
#[track_caller]
fn because(hive: &TestVault, task: &str) -> Vec<String> {
    let reply: Reply = hive.run("task", &["explain", task]).expect_exit(0);
    reply.all("BECAUSE").into_iter().map(str::to_owned).collect()
}

/// STATUS and NEXT of a reply.
fn told(reply: &Reply) -> [&str; 2] {
    ["STATUS", "NEXT"].map(|key| reply.get(key))
}
