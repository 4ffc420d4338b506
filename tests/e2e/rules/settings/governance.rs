//! Settings about tasks and decisions.

use std::fs;

use hiveforge::base::signature::KeyType;
use hiveforge::policy::settings::Setting;
use serde_json::json;

use super::trial::{Trial, found};
use crate::support::job_fixture::TestJobVault;
use crate::support::keyed_vault::keyed;
use crate::support::operator_keys::{How, SoftKey};
use crate::support::steps::{approved, count, held, keeps_the_rules, ok, running, sh, state};
use crate::support::watchdog_fixture::{at, moment, tick};

pub fn without_retries_the_first_failure_is_final(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        running(story, "agent:a");
        ok(story, "hf-task fail T-0001 --class transient --reason x --actor agent:a");
        (state(story, "T-0001"), count(story, "TaskRetrying"))
    };
    Trial::of(setting, 0).changes(steps, ("Assigned".to_owned(), 1), ("Aborted".to_owned(), 0));
}

pub fn without_returns_the_first_one_blocks_the_requirement(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        approved(story);
        ok(story, "hf-task propose Form --requirement REQ-0001");
        for line in ["claim T-0001", "start T-0001", "succeed T-0001"] {
            ok(story, &format!("hf-task {line} --actor agent:a"));
        }
        // More work on what was built is one return.
        ok(story, "hf-task propose More --requirement REQ-0001");
        state(story, "REQ-0001")
    };
    Trial::of(setting, 0).changes(steps, "Approved".to_owned(), "Blocked".to_owned());
}

pub fn no_more_tasks_are_claimed_than_may_be_in_progress(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        held(story, "agent:a");
        ok(story, "hf-task propose Other");
        let second = sh(story, "hf-task claim T-0002 --actor agent:b");
        second.all("REASON").join("")
    };
    Trial::of(setting, 1).changes(steps, String::new(), "too_many_tasks".to_owned());
}

pub fn t16_a_run_that_was_started_times_out(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        running(story, "agent:a");
        at(story, 60, "hf-task heartbeat T-0001 --actor agent:a").expect_exit(0);
        let late = found(&tick(story, 61));
        keeps_the_rules(story);
        late
    };
    Trial::of(setting, 60).changes(steps, vec![], vec!["RUN_OVERTIME error".to_owned()]);
}

#[test]
fn t16_the_time_limit_of_the_settings_is_recorded_with_the_run_unless_a_flag_says_otherwise() {
    let story = TestJobVault::new("governance:\n  task_timeout_seconds: 60\n");
    running(&story, "agent:a");
    held_and_started_for(&story, "5s");
    // A job has a limit only if it is fired with one.
    story.fire("true");
    story.poll("T-0003");
    let limits: Vec<_> =
        story.of_kind("RunStarted").iter().map(|run| run["payload"]["timeout_seconds"].clone()).collect();
    assert_eq!(limits, [json!(60), json!(5), json!(null)]);
    // What was promised to a run does not change with the settings.
    story.settle("governance:\n  task_timeout_seconds: 6\n");
    let mut story = story;
    assert_eq!(found(&tick(&mut story, 7)), ["RUN_OVERTIME error"], "only the one with 5 seconds");
    keeps_the_rules(&story);
}

fn held_and_started_for(story: &TestJobVault, limit: &str) {
    ok(story, "hf-task propose Other");
    ok(story, "hf-task claim T-0002 --actor agent:b");
    ok(story, &format!("hf-task start T-0002 --timeout {limit} --actor agent:b"));
}

pub fn a_run_without_a_lease_is_silent_after_three_intervals(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        ok(story, "hf-task propose Form");
        let task = ok(story, "hf-task show T-0001").get("SUBJECT").to_owned();
        story.started(&task, "run:1");
        found(&tick(story, 31))
    };
    Trial::of(setting, 10).changes(steps, vec![], vec!["RUN_SILENT error".to_owned()]);
}

/// An open decision, and what becomes of it an hour and a second later.
fn undecided(story: &mut TestJobVault) -> (String, usize) {
    ok(story, "hf-require propose Login");
    ok(story, "hf-require analyze REQ-0001 Easy.");
    at(story, 3601, "hf-watchdog");
    (state(story, "DEC-0001"), count(story, "ApprovalTimedOut"))
}

pub fn an_open_decision_times_out(setting: Setting) {
    Trial::of(setting, 1).changes(undecided, ("Requested".to_owned(), 0), ("Escalated".to_owned(), 1));
}

pub fn a_decision_that_timed_out_is_rejected(setting: Setting) {
    let trial = Trial::of(setting, "reject").given(Setting::ApprovalTimeoutHours, 1);
    trial.changes(undecided, ("Escalated".to_owned(), 1), ("Rejected".to_owned(), 1));
}

pub fn a_finished_task_is_archived(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        running(story, "agent:a");
        ok(story, "hf-task succeed T-0001 --actor agent:a");
        tick(story, 1);
        count(story, "TaskArchived")
    };
    Trial::of(setting, 0).changes(steps, 0, 1);
}

pub fn a_claim_lasts_as_long_as_its_lease(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        ok(story, "hf-task propose Form");
        ok(story, "hf-task claim --actor agent:a").get("LEASE_UNTIL").to_owned()
    };
    Trial::of(setting, 60).changes(steps, moment(900).to_string(), moment(60).to_string());
}

pub fn a_ready_task_is_assigned_to_the_agent_of_a_session(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        ok(story, "hf-session login --agent a");
        ok(story, "hf-task propose Form");
        let task = ok(story, "hf-task show T-0001");
        let held = |fact: &&str| fact.starts_with("holder ") || fact.starts_with("lease_seconds ");
        let holder = task.all("FACT").into_iter().filter(held).collect::<Vec<_>>().join(", ");
        // The one agent holds a task already.
        ok(story, "hf-task propose Other");
        keeps_the_rules(story);
        (task.get("STATE").to_owned(), holder, state(story, "T-0002"))
    };
    let [ready, assigned, nobody] = ["Ready", "Assigned", ""].map(str::to_owned);
    let a = "holder agent:a, lease_seconds 900".to_owned();
    Trial::of(setting, true).changes(steps, (ready.clone(), nobody, ready.clone()), (assigned, a, ready));
}

pub fn a_destructive_command_requires_approval(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        let fired = sh(story, "hf-job fire -- rm missing");
        fired.get("STATUS").to_owned()
    };
    Trial::of(setting, json!(["rm *"])).changes(steps, "FIRED".to_owned(), "APPROVAL_REQUIRED".to_owned());
}

pub fn a_signature_must_prove_enough(setting: Setting) {
    let hive = keyed();
    let why = "the signature proves 'key', but this vault requires 'touch'";
    // A key that cannot be touched cannot demand it of others either.
    let set = hive.run("config", &["set", &setting.to_string(), "touch", "--yes"]).expect_exit(3);
    assert_eq!((set.get("REASON"), set.get("SUM")), ("bad_signature", why));
    let touched = SoftKey::new(KeyType::SkEd25519, 1);
    let (statement, file) = (hive.dir().join("s.txt"), hive.dir().join("s.txt.sig"));
    let sign = |act: &[&str], flags: u8| {
        let args = [&["statement"], act, &["--out", statement.to_str().expect("UTF-8")]].concat();
        hive.run("decide", &args).expect_exit(0);
        let how = How { flags, ..How::default() };
        fs::write(&file, touched.sign(&fs::read(&statement).unwrap(), &how)).unwrap();
    };
    fs::write(hive.dir().join("sk.pub"), touched.line()).unwrap();
    ok(&hive, "hf-key add sk.pub --yes");
    hive.configure("governance:\n  approval_strength: touch\n");
    sign(&["adopt-settings"], 0);
    assert_eq!(hive.run("config", &["adopt", "--signature", "s.txt.sig"]).expect_exit(3).get("SUM"), why);
    fs::remove_file(&statement).unwrap();
    sign(&["adopt-settings"], 1);
    ok(&hive, "hf-config adopt --signature s.txt.sig");
    fs::remove_file(&statement).unwrap();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    assert_eq!(sh(&hive, "hf-decide approve DEC-0001 --yes").expect_exit(3).get("SUM"), why);
    sign(&["approve", "DEC-0001"], 0);
    assert_eq!(sh(&hive, "hf-decide approve DEC-0001 --signature s.txt.sig").expect_exit(3).get("SUM"), why);
    fs::remove_file(&statement).unwrap();
    sign(&["approve", "DEC-0001"], 5);
    ok(&hive, "hf-decide approve DEC-0001 --signature s.txt.sig");
    assert_eq!(ok(&hive, "hf-verify --policy").get("SIGNATURES"), "UNPINNED");
}
