//! Sessions, grace periods and deadlines during a pause.

use serde_json::Value;

use crate::support::session_fixture::{asks_to_leave, logged_in, within};
use crate::support::steps::{count, keeps_the_rules, kinds, kinds_since, ok, sh};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::{all_is_well, at, configured, moment, tick, told};

#[test]
fn a_pause_shortens_a_session_and_never_extends_it() {
    let mut hive = TestVault::new();
    let long = logged_in(&hive, "a", "main");
    let short = ok(&hive, "hf-session login --agent b --ttl 60s").get("SESSION_ID").to_owned();
    at(&mut hive, 10, "hf-pause look").expect_exit(0);
    let until = |session: &str| {
        let map: Value = serde_json::from_str(&sh(&hive, "hf-project sessions --map").stdout).unwrap();
        map[session]["expires_at"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!([until(&long), until(&short)], [moment(310).to_string(), moment(60).to_string()]);
    assert_eq!(count(&hive, "SessionCut"), 1);
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", long.as_str())];
    hive.at(&moment(310).to_string());
    within(&hive, &shell, "hf-checkpoint tidying").expect_exit(0);
    hive.at(&moment(311).to_string());
    asks_to_leave(&hive, &shell, "hf-checkpoint tidying", "session_void");
    keeps_the_rules(&hive);
}

#[test]
fn a_session_survives_a_short_pause() {
    let mut hive = TestVault::new();
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    ok(&hive, "hf-pause look");
    at(&mut hive, 100, "hf-resume").expect_exit(0);
    assert_eq!(within(&hive, &shell, "hf-session renew").expect_exit(0).get("EXPIRES_AT"), moment(3700).to_string());
    assert_eq!(count(&hive, "PauseDrained"), 0, "it never came to rest");
    keeps_the_rules(&hive);
}

#[test]
fn a_session_that_never_logs_out_expires_after_the_grace_period() {
    let mut hive = configured("pause:\n  grace_seconds: 60\n");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    assert_eq!(tick(&mut hive, 60), [""; 0]);
    let before = kinds(&hive).len();
    let reply = at(&mut hive, 61, "hf-watchdog").expect_exit(1);
    assert_eq!(
        told(&hive, &reply),
        "EXIT:1\nSTATUS:ANOMALY\nNEXT:ACTION hf-status\nSUM:1 finding, 2 actions\nHEARTBEAT_ID:20260131120101\n\
         ANOMALY:SESSION_EXPIRED session:<ulid> error 1\nADVICE:an agent did not log out in time; its session has expired\n\
         DID:SessionExpired session:<ulid>\nDID:PauseDrained project:main\nTICK_MS:<n>\n\
         STANDING:paused 2026-01-31T12:00:00Z project=main by=user:jo look\n"
    );
    assert_eq!(kinds_since(&hive, before), ["SessionExpired", "PauseDrained"]);
    let reply = at(&mut hive, 62, "hf-watchdog").expect_exit(0);
    assert_eq!(
        told(&hive, &reply),
        "EXIT:0\nSTATUS:PAUSED\nNEXT:NONE\nSUM:all work is paused; nothing is expected of anybody\n\
         HEARTBEAT_ID:20260131120102\nTICK_MS:<n>\n\
         STANDING:paused 2026-01-31T12:00:00Z project=main by=user:jo look\n"
    );
    all_is_well(&hive);
}

#[test]
fn setting_the_clock_back_does_not_revive_an_expired_session() {
    let mut hive = configured("");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    ok(&hive, "hf-pause look");
    // Something is recorded after the grace, and then the clock goes back to before it.
    at(&mut hive, 301, "hf-task propose Form").expect_exit(0);
    hive.at(&moment(-3600).to_string());
    asks_to_leave(&hive, &shell, "hf-checkpoint x", "session_void");
    asks_to_leave(&hive, &shell, "hf-session renew", "session_void");
    let next = within(&hive, &shell, "hf-session next").expect_exit(0);
    assert_eq!((next.get("ACTION"), next.get("REASON")), ("exit", "session_void"));
    // What nobody can use any more is over for those who wait, too, and recorded as over.
    let reply = ok(&hive, "hf-pause --wait --max 1s");
    assert_eq!(reply.get("DRAINED"), "yes");
    assert_eq!((count(&hive, "SessionExpired"), count(&hive, "PauseDrained")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn the_watchdog_ends_expired_sessions_even_if_the_clock_was_set_back() {
    let mut hive = configured("");
    logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    at(&mut hive, 301, "hf-task propose Form").expect_exit(0);
    let codes: Vec<String> =
        tick(&mut hive, -10).iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(codes, ["CLOCK_SKEW", "SESSION_EXPIRED"]);
    assert_eq!((count(&hive, "SessionExpired"), count(&hive, "PauseDrained")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn setting_the_clock_back_before_a_pause_keeps_the_grace_period() {
    let mut hive = configured("");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    at(&mut hive, -3600, "hf-pause look").expect_exit(0);
    within(&hive, &shell, "hf-checkpoint tidying").expect_exit(0);
    assert_eq!(tick(&mut hive, -3590), ["CLOCK_SKEW system error 3590"], "the log is ahead of the clock, and no more");
    keeps_the_rules(&hive);
}

#[test]
fn deadlines_stop_during_a_pause_and_restart_at_the_resume() {
    let mut hive = configured("");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    ok(&hive, "hf-task propose Form");
    within(&hive, &shell, "hf-task claim T-0001").expect_exit(0);
    within(&hive, &shell, "hf-task start T-0001 --timeout 600s").expect_exit(0);
    within(&hive, &shell, "hf-activity --kind thinking").expect_exit(0);
    at(&mut hive, 500, "hf-pause look").expect_exit(0);
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    for seconds in [601, 901, 2000, 100_000] {
        let reply = at(&mut hive, seconds, "hf-watchdog").expect_exit(0);
        assert_eq!((reply.get("STATUS"), reply.all("ANOMALY").len()), ("PAUSED", 0), "{reply:#?}");
        // The pause is all that needs somebody.
        let age = seconds - 500;
        let paused = format!("2026-01-31T12:08:20Z age={age} paused project main paused by user:jo: look do=hf-resume");
        assert_eq!(sh(&hive, "hf-status").expect_exit(1).all("PROBLEM"), [paused]);
    }
    let back = 200_000;
    at(&mut hive, back, "hf-resume").expect_exit(0);
    assert_eq!(tick(&mut hive, back + 300), [""; 0]);
    assert_eq!(tick(&mut hive, back + 600), ["INACTIVE agent:a warn 600"]);
    let found = tick(&mut hive, back + 601);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found[0], "INACTIVE agent:a error 601");
    assert!(found[1].starts_with("RUN_OVERTIME run:") && found[1].ends_with(" error 601"), "{found:#?}");
    all_is_well(&hive);
}

#[test]
fn an_agent_that_left_a_paused_project_is_not_reported_missing() {
    let mut hive = configured("");
    let session = logged_in(&hive, "a", "b");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    within(&hive, &shell, "hf-checkpoint working").expect_exit(0);
    ok(&hive, "hf-pause look --project b");
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    assert_eq!(tick(&mut hive, 10_000), [""; 0]);
    at(&mut hive, 20_000, "hf-resume --project b").expect_exit(0);
    assert_eq!(tick(&mut hive, 20_300), [""; 0]);
    assert_eq!(tick(&mut hive, 20_601), ["INACTIVE agent:a error 601"]);
    all_is_well(&hive);
}

#[test]
fn an_agent_also_working_elsewhere_is_still_watched() {
    let mut hive = configured("");
    let [one, _] = ["main", "b"].map(|project| logged_in(&hive, "a", project));
    within(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", &one)], "hf-checkpoint working").expect_exit(0);
    ok(&hive, "hf-pause look --project b");
    assert_eq!(tick(&mut hive, 301)[1..], ["INACTIVE agent:a warn 301"]);
}
