//! The hook that runs when a job ends.

use std::fs::{self};

use serde_json::json;

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, state};

#[test]
fn a_hook_gets_the_report_and_the_job_variables() {
    let story = TestJobVault::new("");
    let out = story.dir().join("told").display().to_string();
    let hook = "{ cat; echo \"$HF_TASK_ID|$HF_STATUS|$HF_EXIT_CODE|$HF_LOG\"; cat \"$HF_LOG\"; } >>";
    story.settle(&format!("jobs:\n  on_finish: '{hook}{out}'\n"));
    story.fire("echo All tests passed");
    story.poll("T-0001");
    story.gone();
    let vault = story.vault().canonicalize().unwrap().display().to_string();
    let told = |story: &TestJobVault| {
        let text = fs::read_to_string(&out).unwrap().replace(&vault, "<vault>");
        fs::remove_file(&out).unwrap();
        crate::support::test_vault::mask(&text.replace(&story.vault().display().to_string(), "<vault>"))
    };
    assert_eq!(
        told(&story),
        "TASK_ID:T-0001\nSTATUS:DONE\nSUM:All tests passed\nLOGREF:logs/L-0001.txt\n\
         T-0001|DONE|0|<vault>/Autonomous/logs/L-0001.txt\nAll tests passed\n"
    );
    // Once, with the last of several tries.
    story.fire_with(&["--retries", "1"], "exit 75");
    story.poll("T-0002");
    story.gone();
    assert_eq!(
        told(&story),
        "TASK_ID:T-0002\nSTATUS:FAIL\nSUM:exit 75; gave up after 1 retry\nLOGREF:logs/L-0002-2.txt\n\
         T-0002|FAIL|75|<vault>/Autonomous/logs/L-0002-2.txt\n"
    );
    assert_eq!(count(&story, "HookFailed"), 0);
    story.over();
}

#[test]
fn a_hook_that_fails_or_hangs_is_recorded_and_changes_nothing_else() {
    let story =
        TestJobVault::new("hooks:\n  timeout_seconds: 1\njobs:\n  on_finish: 'echo no such channel >&2; exit 3'\n");
    story.fire("echo ok");
    assert_eq!(story.poll("T-0001").get("SUM"), "ok");
    story.gone();
    let failed = story.of_kind("HookFailed");
    assert_eq!(
        failed[0]["payload"],
        json!({"hook": "jobs.on_finish", "reason": "the hook exited with 3: no such channel"})
    );
    story.settle("hooks:\n  timeout_seconds: 1\njobs:\n  on_finish: 'sleep 1000 & sleep 1000'\n");
    story.fire("echo ok");
    // Nobody waits for a hook.
    assert_eq!(story.poll("T-0002").get("SUM"), "ok");
    story.gone();
    assert_eq!(story.of_kind("HookFailed").len(), 2);
    assert_eq!([1, 2].map(|n| state(&story, &format!("T-000{n}"))), ["Succeeded", "Succeeded"]);
    story.over();
}

#[test]
fn a_hook_that_is_not_the_users_own_is_never_run() {
    let story = TestJobVault::new("jobs:\n  on_finish: 'touch ../hooked'\n");
    // Anybody could have written this.
    let config = story.config();
    fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    story.fires(&[], "echo ok");
    story.gone();
    assert!(!story.dir().join("hooked").exists());
    fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    story.fire("echo ok");
    story.gone();
    assert!(story.dir().join("hooked").exists());
    story.over();
}
