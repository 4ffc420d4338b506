//! hf-job fire, killed at every system call, and repeated with the same key.
//!
//! Promise: the command runs exactly once.

use crate::killed::{ALL, Trial, lines};
use crate::test_vault::TestVault;

const FIRE: &[&str] = &["job", "fire", "--key", "k", "--", "sh", "-c", "echo ran >>marker"];

fn repeated(hive: &TestVault) -> Result<(), String> {
    let reply = hive.run(FIRE[0], &FIRE[1..]);
    let polled = hive.run("poll", &["T-0001"]);
    let verified = hive.run("verify", &["--policy", "--projections"]);
    let done = (reply.code, polled.get("STATUS").to_owned(), lines(hive, "marker"), verified.code);
    match done.2.len() == 1 && done.0 == Some(0) && done.1 == "DONE" && done.3 == Some(0) {
        true => Ok(()),
        false => Err(format!("{done:?}: {reply:?}")),
    }
}

#[test]
fn j4_killed_in_the_place_of_any_system_call_and_repeated_a_job_runs_once() {
    let start = TestVault::new();
    Trial { what: "fires", start: &start, words: FIRE, calls: ALL, step: 24, repeat: &repeated }.run();
}

/// A job that waits for another task has no run yet.
#[test]
fn j4_killed_while_its_job_has_to_wait_and_repeated_it_runs_once() {
    let start = TestVault::new();
    start.approved("requirement:r", "Login");
    start.run("task", &["propose", "First", "--requirement", "REQ-0001"]).expect_exit(0);
    let words = ["job", "fire", "--key", "k", "--after", "T-0001", "--", "sh", "-c", "echo ran >>marker"];
    let repeat = |hive: &TestVault| {
        let fire = hive.run(words[0], &words[1..]);
        for step in ["claim", "start", "succeed"] {
            hive.run("task", &[step, "T-0001"]);
        }
        let polled = hive.run("poll", &["T-0002"]);
        match (polled.get("STATUS"), lines(hive, "marker").len()) {
            ("DONE", 1) => Ok(()),
            found => Err(format!("{found:?}: {fire:?} {polled:?}")),
        }
    };
    Trial { what: "fires of waiting jobs", start: &start, words: &words, calls: ALL, step: 48, repeat: &repeat }.run();
}
