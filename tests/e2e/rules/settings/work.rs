//! Settings about the hive, sessions, reviews, missions and the log.

use std::fs;

use hiveforge::policy::settings::Setting;
use serde_json::json;

use super::trial::Trial;
use crate::support::job_fixture::TestJobVault;
use crate::support::session_fixture::logged_in;
use crate::support::steps::{approved, count, ok, sh};
use crate::support::test_vault::{TestVault, write_private};
use crate::support::watchdog_fixture::{moment, tick};

pub fn the_name_of_the_hive_is_shown(setting: Setting) {
    let steps = |story: &mut TestJobVault| ok(story, "hf-init").get("HIVE").to_owned();
    Trial::of(setting, "poc-project").changes(steps, "hive".to_owned(), "poc-project".to_owned());
}

/// A file in the vault cannot say where the vault is, so this is no trial.
pub fn a_file_next_to_the_vault_says_where_it_is(setting: Setting) {
    let hive = TestVault::empty();
    ok(&hive, "hf-init --vault elsewhere");
    assert_eq!(sh(&hive, "hf-status").expect_exit(7).get("STATUS"), "NO_VAULT");
    let (section, name) = setting.as_str().split_once('.').expect("a section");
    let file = json!({section: {name: "elsewhere"}}).to_string();
    write_private(&hive.dir().join("hiveforge.config.yaml"), file.as_bytes());
    ok(&hive, "hf-task propose x");
    ok(&hive, "hf-task show T-0001 --vault elsewhere");
}

pub fn a_pause_lets_agents_finish_or_not(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        logged_in(story, "a", "main");
        ok(story, "hf-pause fire");
        tick(story, 1);
        count(story, "SessionExpired")
    };
    Trial::of(setting, 0).changes(steps, 0, 1);
}

pub fn a_session_expires(setting: Setting) {
    let steps = |story: &mut TestJobVault| ok(story, "hf-session login --agent a").get("EXPIRES_AT").to_owned();
    Trial::of(setting, 60).changes(steps, moment(3600).to_string(), moment(60).to_string());
}

pub fn the_first_reviewer_has_the_first_turn(setting: Setting) {
    let steps = |story: &mut TestJobVault| ok(story, "hf-review status").get("TURN").to_owned();
    Trial::of(setting, json!(["ann", "bob"])).changes(steps, "gpt".to_owned(), "ann".to_owned());
}

/// Adds the command of a reviewer, which is no setting of the table.
fn reviewer(story: &TestJobVault, command: &str) {
    let file = story.config();
    let mut settings: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).expect("JSON");
    settings["reviewers"]["gpt"] = json!({"command": command});
    settings["reviewers"]["gem"] = json!({"command": "echo PASS: a"});
    story.settle(&settings.to_string());
    fs::write(story.dir().join("spec.md"), "# Login\n").unwrap();
}

pub fn a_reviewer_that_takes_too_long_is_killed(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        reviewer(story, "sleep 2; echo 'FAIL: a -> FIX: b'");
        sh(story, "hf-review run spec.md").get("STATUS").to_owned()
    };
    Trial::of(setting, 1).changes(steps, "FAIL".to_owned(), "SYSTEM_ERROR".to_owned());
}

#[test]
fn a_reviewer_has_a_command_of_its_own() {
    let story = TestJobVault::new("{}");
    fs::write(story.dir().join("spec.md"), "# Login\n").unwrap();
    let missing = sh(&story, "hf-review run spec.md").expect_exit(2);
    assert!(missing.get("SUM").contains("reviewers.gpt.command"), "{missing:#?}");
    reviewer(&story, "echo 'FAIL: a -> FIX: b'");
    assert_eq!(sh(&story, "hf-review run spec.md").get("REVIEW"), "R-gpt-0001");
}

/// Begins a mission and lets it go on by itself. Returns how that ends, and what the commands left.
fn mission(story: &mut TestJobVault) -> (String, String) {
    approved(story);
    ok(story, "hf-state start Login");
    let status = sh(story, "hf-state go").get("STATUS").to_owned();
    (status, fs::read_to_string(story.dir().join("did")).unwrap_or_default())
}

fn ends(status: &str, did: &str) -> (String, String) {
    (status.to_owned(), did.to_owned())
}

pub fn a_runner_does_the_work_of_a_mission(setting: Setting) {
    Trial::of(setting, "echo ran >>did").changes(mission, ends("USAGE", ""), ends("DONE", "ran\n"));
}

pub fn a_fixer_gets_what_failed(setting: Setting) {
    let runner = "test -e did && exit; echo broken >&2; exit 1";
    let trial = Trial::of(setting, "cat >>did").given(Setting::RunnerCommand, runner);
    trial.changes(mission, ends("FAIL", ""), ends("DONE", "broken\n"));
}

pub fn a_large_segment_is_followed_by_another(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        for _ in 0..2 {
            story.batch(&[json!({"event_type": "RequirementProposed", "payload": {"title": "x".repeat(600_000)}})]);
        }
        let segments = fs::read_dir(story.akashic("events/2026-01")).expect("segments");
        segments.count()
    };
    Trial::of(setting, 1).changes(steps, 1, 2);
}
