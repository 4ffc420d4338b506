//! Logging in, acting within a session, and being asked to leave.

use serde_json::Value;

use crate::support::steps::ok;
use crate::support::test_vault::{Reply, TestVault};

/// Runs a line in a shell with these variables.
pub fn within(hive: &TestVault, variables: &[(&str, &str)], line: &str) -> Reply {
    let words: Vec<&str> = line.strip_prefix("hf-").expect("one of our commands").split(' ').collect();
    let mut command = hive.command(words[0]);
    Reply::of(command.envs(variables.iter().copied()).args(&words[1..]).output().expect("it runs")).report()
}

/// Logs an agent in to a project. Returns the id of the session.
#[track_caller]
pub fn logged_in(hive: &TestVault, agent: &str, project: &str) -> String {
    let line = format!("hf-session login --agent {agent} --project {project} --create");
    ok(hive, &line).get("SESSION_ID").to_owned()
}

/// Asserts that a line is answered with a request to leave, for this reason, and changes nothing.
#[track_caller]
pub fn asks_to_leave(hive: &TestVault, variables: &[(&str, &str)], line: &str, reason: &str) -> Reply {
    let (before, recorded) = (hive.contents(), hive.events().len());
    let reply = within(hive, variables, line).expect_exit(3);
    let told = ["STATUS", "REASON"].map(|key| reply.get(key));
    assert_eq!(told, ["EXIT_REQUESTED", reason], "{line}: {reply:#?}");
    // An agent without an open session has nothing to log out of.
    let names_session = variables.iter().any(|(name, _)| *name == "HF_SESSION") || line.contains("--session ");
    let next = reply.get("NEXT");
    let may_have_left = !names_session || reason == "session_void";
    let leaves = next.starts_with("ACTION hf-session logout") || (next == "NONE" && may_have_left);
    assert!(leaves, "{line}: {reply:#?}");
    // Only what was already due may be recorded first.
    let settled = hive.events().split_off(recorded);
    let found = |event: &Value| event["actor"].as_str().is_some_and(|actor| actor.starts_with("core:"));
    assert!(settled.iter().all(found) && settled.len() <= 3, "{line}: {settled:#?}");
    assert!(!settled.is_empty() || hive.contents() == before, "{line} changed the vault");
    reply
}
