//! Settings about the watchdog and its hooks.

use hiveforge::policy::settings::Setting;

use super::trial::{TELL, Trial, told};
use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, ok};
use crate::support::watchdog_fixture::{at, tick};

pub fn the_watchdog_is_late_after_three_intervals(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        tick(story, 0);
        let status = at(story, 61, "hf-status");
        status.all("PROBLEM").iter().any(|problem| problem.contains("watchdog"))
    };
    Trial::of(setting, 20).changes(steps, false, true);
}

/// Ticks after an agent fell silent.
fn silent(story: &mut TestJobVault, seconds: &[i64]) {
    ok(story, "hf-checkpoint hi");
    for seconds in seconds {
        tick(story, *seconds);
    }
}

/// How often it was told of an anomaly.
fn alarms(story: &TestJobVault) -> usize {
    told(story).matches("ANOMALY:INACTIVE").count()
}

pub fn an_anomaly_is_reminded_of(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        silent(story, &[601, 602]);
        alarms(story)
    };
    Trial::of(setting, 0).given(Setting::OnAnomaly, TELL).changes(steps, 1, 2);
}

pub fn without_attempts_to_wake_an_agent_an_operator_is_asked_at_once(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        silent(story, &[601]);
        ["RecoveryAttempted", "EscalationRequired"].map(|kind| count(story, kind))
    };
    Trial::of(setting, 0).given(Setting::OnAnomaly, TELL).changes(steps, [1, 0], [0, 1]);
}

pub fn the_next_attempt_to_wake_an_agent_waits(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        silent(story, &[601, 602]);
        count(story, "RecoveryAttempted")
    };
    Trial::of(setting, 0).given(Setting::OnAnomaly, TELL).changes(steps, 1, 2);
}

pub fn the_anomalies_to_recover_from_can_be_chosen(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        silent(story, &[601]);
        count(story, "RecoveryAttempted")
    };
    Trial::of(setting, vec!["INTROSPECTION_OVERDUE"]).given(Setting::OnAnomaly, TELL).changes(steps, 1, 0);
}

/// The lines that a hook is told while an agent falls silent and comes back.
fn coming_and_going(story: &mut TestJobVault) -> Vec<String> {
    silent(story, &[301, 601]);
    at(story, 602, "hf-checkpoint back").expect_exit(0);
    tick(story, 602);
    let text = told(story);
    let about =
        text.lines().filter(|line| !["HEARTBEAT_ID:", "HIVE:", "ADVICE:"].iter().any(|key| line.starts_with(key)));
    about.map(str::to_owned).collect()
}

/// Checks what a hook is told.
fn tells(setting: Setting, expected: &[&str]) {
    let expected = expected.iter().map(|line| (*line).to_owned()).collect();
    Trial::of(setting, TELL).changes(coming_and_going, vec![], expected);
}

pub fn every_tick_is_reported(setting: Setting) {
    let warned = ["STATUS:WARNING", "AGENT:main", "CALL:beat", "ANOMALY:INACTIVE agent:main warn 301"];
    let failed = ["STATUS:ANOMALY", "AGENT:main", "CALL:beat", "ANOMALY:INACTIVE agent:main error 601"];
    tells(setting, &[&warned[..], &failed, &["STATUS:HEALTHY", "AGENT:main", "CALL:beat"]].concat());
}

pub fn a_warning_is_reported(setting: Setting) {
    tells(setting, &["STATUS:WARNING", "AGENT:main", "CALL:warning", "ANOMALY:INACTIVE agent:main warn 301"]);
}

pub fn an_anomaly_is_reported(setting: Setting) {
    tells(setting, &["STATUS:ANOMALY", "AGENT:main", "CALL:try", "ANOMALY:INACTIVE agent:main error 601"]);
}

pub fn the_end_of_an_anomaly_is_reported(setting: Setting) {
    tells(setting, &["STATUS:HEALTHY", "AGENT:main", "CALL:cleared", "CLEARED:INACTIVE agent:main"]);
}

/// The first line that a notified hook is told after these steps.
fn is_notified(setting: Setting, steps: &'static [&'static str], expected: &str) {
    let steps = |story: &mut TestJobVault| {
        steps.iter().for_each(|line| drop(ok(story, line)));
        story.gone();
        told(story).lines().next().unwrap_or_default().to_owned()
    };
    Trial::of(setting, TELL).changes(steps, String::new(), expected.to_owned());
}

pub fn a_requested_decision_is_reported(setting: Setting) {
    is_notified(setting, &["hf-task propose Wipe --destructive"], "EVENT:DecisionRequested");
}

pub fn an_escalation_is_reported(setting: Setting) {
    const STEPS: &[&str] = &[
        "hf-task propose Form",
        "hf-task claim T-0001",
        "hf-task start T-0001",
        "hf-task fail T-0001 --class permanent --reason auth",
    ];
    is_notified(setting, STEPS, "EVENT:EscalationRequired");
}

pub fn the_end_of_a_task_is_reported(setting: Setting) {
    is_notified(setting, &["hf-task propose Form", "hf-task abort T-0001"], "EVENT:TaskAborted");
}

pub fn giving_up_is_reported(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        silent(story, &[601]);
        story.gone();
        told(story).lines().next().unwrap_or_default().to_owned()
    };
    let no_attempts = Trial::of(setting, TELL).given(Setting::MaxRecoveryAttempts, 0).given(Setting::OnAnomaly, "true");
    no_attempts.changes(steps, String::new(), "EVENT:EscalationRequired".to_owned());
}
