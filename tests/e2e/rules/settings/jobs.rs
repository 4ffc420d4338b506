//! Settings about jobs and hooks.

use std::fs;
use std::path::Path;

use hiveforge::policy::settings::Setting;
use serde_json::json;

use super::trial::{TELL, Trial, told};
use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, ok};
use crate::support::test_vault::Reply;

/// How a job ends that waits for another one, for a few seconds.
fn first_of_two(story: &mut TestJobVault) -> String {
    let _gate = story.gate("go");
    story.fire_with(&["--timeout", "4s"], "read x <go");
    story.fire("echo on >go");
    story.poll("T-0001").get("STATUS").to_owned()
}

pub fn no_more_jobs_run_than_may(setting: Setting) {
    Trial::of(setting, 1).changes(first_of_two, "DONE".to_owned(), "FAIL".to_owned());
}

/// Jobs are tasks, so by default as many may run.
#[test]
fn no_more_jobs_run_than_tasks_may_be_in_progress() {
    let mut story = TestJobVault::new("governance:\n  max_concurrent_tasks: 1\n");
    assert_eq!(first_of_two(&mut story), "FAIL");
}

pub fn a_long_log_is_cut(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        story.fire("yes | head -c 100000");
        story.poll("T-0001");
        story.log("logs/L-0001.txt").len() >= 100_000
    };
    Trial::of(setting, 1000).changes(steps, true, false);
}

pub fn a_job_that_is_slow_to_end_is_killed(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        let mut at = story.gate("at");
        story.fire("trap 'sleep 1; echo bye; exit 0' TERM; echo up >at; while :; do sleep 1000 & wait; done");
        at.line();
        ok(story, "hf-job cancel T-0001");
        story.log("logs/L-0001.txt") == b"bye\n"
    };
    Trial::of(setting, 0).changes(steps, true, false);
}

/// Where none can be made, it gets none in either case.
pub fn a_job_gets_no_control_group(setting: Setting) {
    let groups = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = groups.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
    let can_make = mount.is_some_and(|mount| {
        let trial = Path::new(mount).join(own).join(format!("trial-{}", std::process::id()));
        fs::create_dir(&trial).and_then(|()| fs::remove_dir(&trial)).is_ok()
    });
    let steps = |story: &mut TestJobVault| {
        story.fire("grep ^0:: /proc/self/cgroup");
        story.poll("T-0001").get("SUM").contains("/hf-run-")
    };
    if can_make {
        Trial::of(setting, false).changes(steps, true, false);
    }
}

pub fn a_poll_waits_as_long_as_it_may(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        let _gate = story.gate("go");
        story.fire_with(&["--timeout", "8s"], "read x <go");
        story.poll("T-0001").get("STATUS").to_owned()
    };
    Trial::of(setting, 1).changes(steps, "FAIL".to_owned(), "RUNNING".to_owned());
}

pub fn a_variable_is_passed_to_a_gated_job(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        let mut fire = story.command("job");
        let args = ["fire", "--destructive", "--", "sh", "-c", "echo got $PROXY"];
        Reply::of(fire.env("PROXY", "p").args(args).output().expect("the command runs")).expect_exit(3);
        ok(story, "hf-decide approve DEC-0001");
        story.poll("T-0001").get("SUM").to_owned()
    };
    Trial::of(setting, json!(["PROXY"])).changes(steps, "got".to_owned(), "got p".to_owned());
}

/// How often a script is tried that may be retried once.
fn tries(story: &mut TestJobVault, script: &str) -> usize {
    story.fire_with(&["--retries", "1"], script);
    story.poll("T-0001");
    count(story, "RunStarted")
}

pub fn an_exit_code_can_mean_another_try(setting: Setting) {
    Trial::of(setting, json!([3])).changes(|story| tries(story, "exit 3"), 1, 2);
}

pub fn a_signal_can_mean_another_try(setting: Setting) {
    // Without the setting every signal does; with it, only those that it lists.
    Trial::of(setting, json!([15])).changes(|story| tries(story, "kill -9 $$"), 2, 1);
}

pub fn the_end_of_a_job_is_reported(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        story.fire("true");
        story.gone();
        told(story).lines().next().unwrap_or_default().to_owned()
    };
    Trial::of(setting, TELL).changes(steps, String::new(), "TASK_ID:T-0001".to_owned());
}

pub fn a_foreign_job_is_looked_up(setting: Setting) {
    let steps = |story: &mut TestJobVault| story.poll("job-7").get("STATUS").to_owned();
    Trial::of(setting, "printf done {}").changes(steps, "NOT_FOUND".to_owned(), "DONE".to_owned());
}

pub fn a_hook_that_takes_too_long_is_killed(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        story.fire("true");
        story.gone();
        count(story, "HookFailed")
    };
    Trial::of(setting, 1).given(Setting::JobsOnFinish, "sleep 2").changes(steps, 0, 1);
}
