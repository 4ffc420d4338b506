//! The machine's clocks: a machine that slept, was started, or had its clock set, and what that does to deadlines.

use serde_json::Value;

use crate::support::steps::{count, keeps_the_rules, ok, sh};
use crate::support::test_vault::{Reply, TestVault};
use crate::support::watchdog_fixture::moment;
use crate::support::watchdog_fixture::of_tasks_alone;

/// Runs a line at so many seconds after the start, on a machine that slept so long, whose clock was set by so much, in
/// this boot.
fn on(hive: &mut TestVault, second: i64, (slept, stepped, boot): (i64, i64, i64), line: &str) -> Reply {
    hive.at(&moment(second).to_string());
    let words: Vec<&str> = line.strip_prefix("hf-").unwrap().split(' ').collect();
    let mut process = hive.process(words[0]);
    process.args(&words[1..]).env("HF_SLEPT", slept.to_string());
    process.env("HF_STEPPED", stepped.to_string()).env("HF_BOOT", boot.to_string());
    Reply::of(process.output().unwrap())
}

fn payload(hive: &TestVault, kind: &str) -> Value {
    let events = hive.events();
    events.iter().rfind(|event| event["event_type"] == kind).expect(kind)["payload"].clone()
}

/// A task that agent a claimed with a lease of ten minutes, and a session of an hour.
fn claimed() -> TestVault {
    let hive = of_tasks_alone();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 10m --actor agent:a");
    ok(&hive, "hf-session login --agent a --ttl 1h");
    hive
}

#[test]
fn a_sleeping_machine_expires_no_claims_and_the_log_says_so() {
    let mut hive = claimed();
    // Two hours later, of which it slept 6700 seconds: 500 count.
    let slept = (6700, 0, 0);
    let check = on(&mut hive, 7200, slept, "hf-watchdog --check").expect_exit(0);
    assert_eq!(check.all("ANOMALY"), ["NEVER_SEEN agent:a warn 500"]);
    assert_eq!(count(&hive, "MachineSuspended"), 0, "who looks records nothing");
    on(&mut hive, 7200, slept, "hf-task heartbeat T-0001 --actor agent:a").expect_exit(0);
    let said = payload(&hive, "MachineSuspended");
    assert_eq!((said["seconds"].as_u64(), said["to"].as_str()), (Some(6700), Some(moment(7200).to_string().as_str())));
    // From there on ten minutes of waking time.
    on(&mut hive, 7800, slept, "hf-task heartbeat T-0001 --actor agent:a").expect_exit(0);
    let late = on(&mut hive, 8401, slept, "hf-task heartbeat T-0001 --actor agent:a").expect_exit(3);
    assert_eq!(late.get("STATUS"), "CLAIM_LOST");
    // The session has an hour of waking time as well: until 3600 + 6700.
    on(&mut hive, 3600 + 6700, slept, "hf-session renew --session S-0001 --ttl 1s").expect_exit(0);
    let over = on(&mut hive, 3600 + 6702, slept, "hf-session renew --session S-0001").expect_exit(3);
    assert_eq!(over.get("REASON"), "session_void");
    keeps_the_rules(&hive);
}

#[test]
fn after_sleep_no_agent_is_reported_silent_but_calendar_deadlines_still_pass() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-activity --kind introspection");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 x");
    let awake = (0, 0, 0);
    on(&mut hive, 60, awake, "hf-watchdog").expect_exit(0);
    // A laptop sleeps for a day.
    let slept = (86_400, 0, 0);
    let codes = |reply: &Reply| -> Vec<String> {
        reply.all("ANOMALY").iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let found = on(&mut hive, 86_460, slept, "hf-watchdog").expect_exit(1);
    assert_eq!(codes(&found), ["APPROVAL_OVERDUE"], "{found:#?}");
    assert_eq!(codes(&on(&mut hive, 86_400 + 600, slept, "hf-watchdog")), ["INACTIVE"], "a warning");
    let found = on(&mut hive, 86_400 + 601, slept, "hf-watchdog").expect_exit(1);
    assert_eq!(found.all("ANOMALY"), ["INACTIVE agent:main error 601"]);
    keeps_the_rules(&hive);
}

#[test]
fn a_slow_timer_does_not_count_as_sleep() {
    let mut hive = claimed();
    on(&mut hive, 7200, (0, 0, 0), "hf-watchdog").expect_exit(1);
    assert_eq!((count(&hive, "ClaimExpired"), count(&hive, "MachineSuspended")), (1, 0));
    assert_eq!(payload(&hive, "ClaimExpired")["due_at"], moment(600).to_string());
    keeps_the_rules(&hive);
}

#[test]
fn a_lease_restarts_once_after_a_boot() {
    let mut hive = claimed();
    // Off for two hours. A session is not put off by that.
    let boot = |number: i64| (0, 0, number);
    on(&mut hive, 7200, boot(1), "hf-task heartbeat T-0001 --actor agent:a").expect_exit(0);
    assert_eq!(count(&hive, "MachineBooted"), 1);
    let check = on(&mut hive, 7800, boot(1), "hf-watchdog --check");
    assert!(
        check.all("ANOMALY").iter().all(|line| line.starts_with("SESSION_EXPIRED") || line.contains(" warn ")),
        "{check:#?}"
    );
    on(&mut hive, 7801, boot(1), "hf-watchdog").expect_exit(1);
    assert_eq!((count(&hive, "ClaimExpired"), count(&hive, "MachineBooted")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn setting_the_clock_neither_ends_nor_extends_a_claim() {
    for by in [36_000, -36_000] {
        let mut hive = claimed();
        let stepped = (0, by, 0);
        // A minute passed; the clock says something else.
        on(&mut hive, 60 + by, stepped, "hf-task heartbeat T-0001 --actor agent:a").expect_exit(0);
        let said = payload(&hive, "ClockStepped");
        assert_eq!(said["from"], moment(60).to_string(), "{by}");
        assert_eq!(said["to"], moment(60 + by).to_string(), "{by}");
        let check = on(&mut hive, 660 + by, stepped, "hf-watchdog --check");
        assert!(
            check.all("ANOMALY").iter().all(|line| line.starts_with("CLOCK_SKEW system") || line.contains(" warn ")),
            "{by}: {check:#?}"
        );
        let late = on(&mut hive, 661 + by, stepped, "hf-task start T-0001 --actor agent:a").expect_exit(3);
        assert_eq!(late.get("STATUS"), "CLAIM_LOST", "{by}");
        keeps_the_rules(&hive);
    }
}

#[test]
fn an_event_ten_years_ahead_keeps_no_session_alive() {
    let mut hive = TestVault::new();
    let years = 10 * 365 * 24 * 3600;
    on(&mut hive, years, (0, years, 0), "hf-task propose Form").expect_exit(0);
    let login = on(&mut hive, 10, (0, 0, 0), "hf-session login --agent a --ttl 1s").expect_exit(0);
    assert_eq!(login.get("EXPIRES_AT"), moment(11).to_string());
    // Every command says that the log is ahead of the clock.
    assert!(login.stderr.contains("CLOCK_SKEW"), "{login:#?}");
    on(&mut hive, 12, (0, 0, 0), "hf-pause look").expect_exit(0);
    let over = on(&mut hive, 13, (0, 0, 0), "hf-session renew --session S-0001").expect_exit(3);
    assert_eq!(over.get("REASON"), "session_void");
    let rests = on(&mut hive, 13, (0, 0, 0), "hf-pause --wait --max 1s").expect_exit(0);
    assert_eq!(rests.get("DRAINED"), "yes");
    assert_eq!(count(&hive, "SessionExpired"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn a_vault_without_a_clock_record_counts_from_now_once() {
    let mut hive = claimed();
    std::fs::remove_file(hive.vault().join("Akashic/clock")).unwrap();
    hive.at(&moment(601).to_string());
    ok(&hive, "hf-task heartbeat T-0001 --actor agent:a");
    assert_eq!(payload(&hive, "MachineBooted")["at"], moment(601).to_string());
    hive.at(&moment(1300).to_string());
    assert_eq!(sh(&hive, "hf-task heartbeat T-0001 --actor agent:a").get("STATUS"), "CLAIM_LOST");
    assert_eq!(count(&hive, "MachineBooted"), 1);
}

#[test]
fn an_unwritable_clock_record_postpones_nothing() {
    let mut hive = claimed();
    let clock = hive.vault().join("Akashic/clock");
    std::fs::remove_file(&clock).unwrap();
    std::fs::create_dir(&clock).unwrap();
    for second in [100, 200, 300] {
        hive.at(&moment(second).to_string());
        let reply = sh(&hive, "hf-require propose x").expect_exit(0);
        assert!(reply.stderr.contains("cannot save the machine"), "{reply:#?}");
    }
    assert_eq!(count(&hive, "MachineBooted"), 0);
    hive.at(&moment(601).to_string());
    assert_eq!(sh(&hive, "hf-task start T-0001 --actor agent:a").get("STATUS"), "CLAIM_LOST");
}
