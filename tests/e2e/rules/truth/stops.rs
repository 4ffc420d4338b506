//! Stop and pause are said by every reply.

use crate::support::session_fixture::{logged_in, within};
use crate::support::steps::{keeps_the_rules, ok, running, sh};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::at;

const AGENT: &[(&str, &str)] = &[("HF_AGENT", "a")];

#[test]
fn t5_an_agent_is_told_of_a_stop_by_every_reply() {
    let hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    running(&hive, "agent:a");
    ok(&hive, "hf-stop harm");
    // What may still be recorded says what to do next.
    for line in
        ["hf-checkpoint hi", "hf-activity --kind thinking --title x", "hf-task list", "hf-log --last 1", "hf-status"]
    {
        let reply = within(&hive, AGENT, line);
        assert_eq!(reply.get("NEXT"), "ASK operator", "{line}: {reply:#?}");
        assert!(reply.all("STANDING").is_empty(), "{line}");
    }
    // What is refused because of the stop says so, not that the step is illegal.
    for line in ["hf-task heartbeat T-0001", "hf-task succeed T-0001", "hf-task start T-0001", "hf-task claim"] {
        let reply = within(&hive, AGENT, line).expect_exit(3);
        let told = ["STATUS", "NEXT", "SUM", "REASON"].map(|key| reply.get(key));
        assert_eq!(told, ["STOPPED", "ASK operator", "everything is stopped: harm", "system_stopped"], "{line}");
    }
    assert_eq!(sh(&hive, "hf-watchdog").get("STATUS"), "STOPPED");
    let sum = sh(&hive, "hf-watchdog").get("SUM").to_owned();
    assert!(!sum.contains("nothing is wrong"), "{sum}");
    keeps_the_rules(&hive);
}

#[test]
fn an_operator_sees_since_when_and_why_nothing_goes_on() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form --project brand --create");
    at(&mut hive, 5, "hf-pause --project brand questions").expect_exit(0);
    let standing = "paused 2026-01-31T12:00:05Z project=brand by=user:jo questions";
    assert_eq!(ok(&hive, "hf-task propose More --project brand --create").get("STANDING"), standing);
    // Another project is not concerned.
    assert!(ok(&hive, "hf-task propose Else").all("STANDING").is_empty());
    at(&mut hive, 6, "hf-stop harm").expect_exit(0);
    for line in ["hf-task propose More", "hf-log --last 1", "hf-task list", "hf-lineage T-0001"] {
        let told = ok(&hive, line).get("STANDING").to_owned();
        assert_eq!(told, "stopped 2026-01-31T12:00:06Z - by=user:jo harm", "{line}");
    }
    let json: serde_json::Value = serde_json::from_str(&sh(&hive, "hf-task list --json").stdout).unwrap();
    assert_eq!((&json["standing"]["state"], &json["standing"]["why"]), (&"stopped".into(), &"harm".into()));
    assert!(ok(&hive, "hf-resume --system").all("STANDING").is_empty());
}

#[test]
fn an_agent_in_a_paused_project_or_an_ended_session_is_told_to_leave_and_then_has_left() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form --project brand --create");
    let session = logged_in(&hive, "a", "brand");
    let seated: &[(&str, &str)] = &[("HF_AGENT", "a"), ("HF_SESSION", &session)];
    assert_eq!(within(&hive, seated, "hf-checkpoint hi").get("NEXT"), "NONE");
    ok(&hive, "hf-pause --project brand questions");
    for line in ["hf-checkpoint hi", "hf-task list", "hf-log --last 1"] {
        assert_eq!(within(&hive, seated, line).get("NEXT"), "ACTION hf-session logout", "{line}");
    }
    let left = within(&hive, seated, "hf-session logout").expect_exit(0);
    assert_eq!(left.get("NEXT"), "NONE");
    // An agent elsewhere is not concerned.
    assert_eq!(within(&hive, &[("HF_AGENT", "b")], "hf-checkpoint hi").get("NEXT"), "NONE");
    ok(&hive, "hf-resume --project brand");
    let session = logged_in(&hive, "a", "brand");
    let seated: &[(&str, &str)] = &[("HF_AGENT", "a"), ("HF_SESSION", &session)];
    hive.at("2026-01-31T14:00:00Z");
    assert_eq!(within(&hive, seated, "hf-task list").get("NEXT"), "ACTION hf-session logout");
}

#[test]
fn a_stop_takes_nothing_along_and_what_waits_for_its_victims_is_listed() {
    let hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    running(&hive, "user:jo");
    ok(&hive, "hf-task propose After --after T-0001");
    ok(&hive, "hf-stop harm");
    assert!(super::because(&hive, "T-0001")[0].ends_with(": emergency_stop: harm"));
    assert_eq!(crate::support::steps::state(&hive, "T-0002"), "Proposed");
    ok(&hive, "hf-resume --system");
    assert_eq!(
        super::problems(&hive),
        ["stranded T-0001 a stop aborted it, and T-0002 waits for it do=hf-task propose --rework-of T-0001"]
    );
    ok(&hive, "hf-task propose --rework-of T-0001");
    assert_eq!(super::problems(&hive), [""; 0]);
    ok(&hive, "hf-task claim T-0003");
    ok(&hive, "hf-task start T-0003");
    ok(&hive, "hf-task succeed T-0003");
    assert_eq!(crate::support::steps::state(&hive, "T-0002"), "Ready");
    keeps_the_rules(&hive);
}
