//! Shared by the tests of agents and the watchdog: a clock in seconds, watchdog ticks, and what a tick reports.

use hiveforge::base::{HeartbeatId, Timestamp};

use crate::support::steps::sh;
use crate::support::test_vault::{Reply, START, TestVault};

/// A vault with these settings. Unless they configure the watchdog, the time between two ticks is never a gap.
pub fn configured(settings: &str) -> TestVault {
    let hive = TestVault::new();
    configure(&hive, settings);
    hive
}

/// Gives a vault these settings.
pub fn configure(hive: &TestVault, settings: &str) {
    let more = if settings.contains("watchdog:") { "" } else { "watchdog:\n  interval_seconds: 1000000\n" };
    hive.configure(&format!("{settings}{more}"));
}

/// The time this many seconds after the start of the test.
pub fn moment(seconds: i64) -> Timestamp {
    Timestamp(Timestamp::parse(START).expect("an exact time").0 + seconds)
}

/// The heartbeat id of that time.
pub fn beat(seconds: i64) -> String {
    HeartbeatId::from_time(moment(seconds), hiveforge::base::Zone::Utc).to_string()
}

/// Moves the clock and runs a command line.
pub fn at(hive: &mut TestVault, seconds: i64, line: &str) -> Reply {
    hive.at(&moment(seconds).to_string());
    sh(hive, line)
}

/// Moves the clock and runs the watchdog. Returns `CODE subject level seconds` of every anomaly.
#[track_caller]
pub fn tick(hive: &mut TestVault, seconds: i64) -> Vec<String> {
    let reply = at(hive, seconds, "hf-watchdog");
    let found: Vec<String> = reply.all("ANOMALY").into_iter().map(str::to_owned).collect();
    let bad = found.iter().any(|line| line.contains(" error "));
    reply.expect_exit(i32::from(bad));
    found
}

/// The full report of the watchdog, with its duration masked.
pub fn told(hive: &TestVault, reply: &Reply) -> String {
    reply.masked(hive).replace(&format!("TICK_MS:{}\n", reply.get("TICK_MS")), "TICK_MS:<n>\n")
}

/// A file of agent main.
pub fn file(hive: &TestVault, name: &str) -> std::path::PathBuf {
    hive.vault().join("Agents/main").join(name)
}

/// Asserts that the log follows every rule and the projections agree with it.
#[track_caller]
pub fn all_is_well(hive: &TestVault) {
    let reply = hive.run("verify", &["--policy", "--projections"]).expect_exit(0);
    assert_eq!((reply.get("POLICY"), reply.get("PROJECTIONS")), ("OK", "OK"));
}

/// Settings for tests of tasks: agents need not report, and the time between two ticks is never a gap.
pub const TASKS_ALONE: &str = "liveness:\n  never_seen_seconds: 1000000\n  inactive_warn_seconds: 1000000\n  inactive_error_seconds: 1000000\nwatchdog:\n  interval_seconds: 1000000\n";

/// A vault with these settings.
pub fn of_tasks_alone() -> TestVault {
    let hive = TestVault::new();
    hive.configure(TASKS_ALONE);
    hive
}
