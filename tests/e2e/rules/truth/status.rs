//! hf-status lists everything that needs somebody, most urgent first.

use std::fs;

use rustix::process::Signal;

use super::problems;
use crate::support::job_fixture::{TestJobVault, kill, until_recorded};
use crate::support::steps::{approved, count, held, ok, running, sh, state};
use crate::support::test_vault::{TestVault, write_private};
use crate::support::watchdog_fixture::at;

#[test]
fn t1_an_open_decision_needs_somebody_and_one_that_timed_out_more_so() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    assert_eq!(problems(&hive), ["decision DEC-0001 Build REQ-0001, Login? do=hf-decide show DEC-0001"]);
    let shown = ok(&hive, "hf-decide show DEC-0001");
    assert_eq!(
        shown.all("ADVICE"),
        ["hf-decide approve DEC-0001, or hf-decide reject DEC-0001 --reason TEXT (operators only)"]
    );
    // Overdue, whether or not a watchdog has recorded it.
    let overdue = "overdue_decision DEC-0001 Build REQ-0001, Login? do=hf-decide show DEC-0001";
    at(&mut hive, 86_401, "hf-status");
    assert!(problems(&hive).contains(&overdue.to_owned()), "{:?}", problems(&hive));
    at(&mut hive, 86_402, "hf-watchdog");
    assert_eq!(problems(&hive), [overdue]);
    assert!(sh(&hive, "hf-status").get("PROBLEM").starts_with("2026-02-01T12:00:00Z age=2 "));
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(problems(&hive), [""; 0]);
}

#[test]
fn t1_several_problems_are_all_listed_in_the_order_of_their_urgency() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    ok(&hive, "hf-checkpoint --agent b hello");
    ok(&hive, "hf-task propose Delete --destructive");
    running_other(&hive);
    ok(&hive, "hf-task propose Docs --project brand --create");
    at(&mut hive, 10, "hf-pause --project brand questions").expect_exit(0);
    hive.configure("a: [\n");
    // Before an introspection is overdue as well.
    at(&mut hive, 1700, "hf-status");
    let kinds: Vec<String> =
        problems(&hive).iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        kinds,
        [
            "escalation ESC-0001",
            "anomaly agent:a",
            "anomaly agent:b",
            "decision DEC-0002",
            "overdue T-0001",
            "settings hiveforge.config.yaml",
            "paused project",
            "watchdog watchdog",
        ]
    );
    at(&mut hive, 2001, "hf-stop harm").expect_exit(0);
    assert_eq!(problems(&hive)[0], "stopped system everything is stopped by user:jo: harm do=hf-resume --system");
}

/// T-0003, which fails for good.
fn running_other(hive: &TestVault) {
    ok(hive, "hf-task propose Other");
    ok(hive, "hf-task claim T-0003");
    ok(hive, "hf-task start T-0003");
    ok(hive, "hf-task fail T-0003 --class permanent --reason auth");
}

#[test]
fn t1_a_stop_and_a_pause_are_shown_with_reason_and_time() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    at(&mut hive, 60, "hf-pause questions").expect_exit(0);
    let reply = sh(&hive, "hf-status").expect_exit(1);
    assert_eq!(
        reply.get("PROBLEM"),
        "2026-01-31T12:01:00Z age=0 paused project main paused by user:jo: questions do=hf-resume"
    );
    assert_eq!(reply.get("STANDING"), "paused 2026-01-31T12:01:00Z project=main by=user:jo questions");
    at(&mut hive, 61, "hf-resume").expect_exit(0);
    at(&mut hive, 62, "hf-stop harm").expect_exit(0);
    let reply = at(&mut hive, 72, "hf-status").expect_exit(1);
    assert_eq!(
        reply.get("PROBLEM"),
        "2026-01-31T12:01:02Z age=10 stopped system everything is stopped by user:jo: harm do=hf-resume --system"
    );
    assert_eq!(reply.get("STANDING"), "stopped 2026-01-31T12:01:02Z - by=user:jo harm");
    // The command that it names works.
    ok(&hive, "hf-resume --system");
    assert_eq!(problems(&hive), [""; 0]);
}

#[test]
fn t3_a_watchdog_that_never_ran_is_a_notice_until_there_is_something_to_watch() {
    let hive = TestVault::new();
    assert_eq!(problems(&hive), [""; 0]);
    let notice = "the watchdog has never run; start it with: hf-watchdog --install cron";
    assert_eq!(ok(&hive, "hf-status").all("NOTICE"), [notice]);
    ok(&hive, "hf-checkpoint --agent a hello");
    assert_eq!(problems(&hive), ["watchdog watchdog has never run do=hf-watchdog --install cron"]);
    assert!(sh(&hive, "hf-status").all("NOTICE").is_empty());
    ok(&hive, "hf-watchdog");
    assert_eq!(problems(&hive), [""; 0]);
    // A run by a person counts, too.
    let hive = TestVault::new();
    running(&hive, "user:jo");
    assert_eq!(problems(&hive).len(), 1);
}

#[test]
fn a_job_between_two_runs_is_something_to_watch() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    story.fire_with(&["--retries", "2"], "echo up >at; sleep 1000");
    at.line();
    ok(&story, "hf-pause later");
    story.lose("T-0001");
    // Its run is over, and in a paused project nobody starts another one.
    story.run("poll", &["T-0001", "1", "1"]);
    assert_eq!((state(&story, "T-0001"), count(&story, "RunStarted")), ("Assigned".to_owned(), 1));
    let never = "watchdog watchdog has never run do=hf-watchdog --install cron".to_owned();
    assert!(problems(&story).contains(&never), "{:?}", problems(&story));
    ok(&story, "hf-job cancel T-0001");
    story.over();
}

#[test]
fn a_waiting_job_without_supervisor_is_not_said_to_have_ended() {
    let story = TestJobVault::new("jobs:\n  transient_exit_codes: [75]\n");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire_with(&["--retries", "2"], "echo up >at; read x <go; exit 75");
    at.line();
    let [supervisor, _] = story.pids("T-0001");
    ok(&story, "hf-pause later");
    go.open();
    until_recorded(&story, "TaskRetrying");
    // Its first run is over and recorded; it waits until the project is resumed.
    kill(supervisor, Signal::KILL);
    story.gone();
    let lost = "job T-0001 its supervisor is gone, and its result is unknown do=hf-job check T-0001".to_owned();
    assert!(problems(&story).contains(&lost), "{:?}", problems(&story));
    ok(&story, "hf-job cancel T-0001");
    // It was killed after its event was recorded, perhaps before the files that follow from it were.
    ok(&story, "hf-project --rebuild");
    story.over();
}

#[test]
fn d8_agents_are_shown_with_their_last_sign_of_life_and_what_they_hold() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    held(&hive, "agent:a");
    at(&mut hive, 10, "hf-checkpoint --agent b hello").expect_exit(0);
    at(&mut hive, 20, "hf-deepwork start --agent b --strict 10 quiet").expect_exit(0);
    at(&mut hive, 30, "hf-task start T-0001 --actor agent:a").expect_exit(0);
    let reply = at(&mut hive, 40, "hf-status").expect_exit(0);
    assert_eq!(
        reply.all("AGENT"),
        [
            "a HEALTHY 2026-01-31T12:00:30Z seen age=10 holds=T-0001",
            "b HEALTHY 2026-01-31T12:00:10Z checkpoint age=30 - deep_work=strict until 2026-01-31T12:10:20Z"
        ]
    );
    let reply = at(&mut hive, 631, "hf-status").expect_exit(1);
    assert_eq!(reply.all("AGENT")[0], "a INACTIVE 2026-01-31T12:00:30Z seen age=601 holds=T-0001");
    // One that was stopped is not expected to show anything.
    ok(&hive, "hf-append AgentStopped --subject agent:b");
    assert_eq!(sh(&hive, "hf-status").all("AGENT").len(), 1);
}

#[test]
fn d5_a_corrupt_artifact_is_a_problem_whose_command_finds_it() {
    let hive = TestVault::new();
    write_private(&hive.dir().join("form.py"), b"print(1)\n");
    ok(&hive, "hf-artifact put form.py");
    let stored = ok(&hive, "hf-artifact show ART-0001");
    let path = stored.all("FACT").into_iter().find_map(|fact| fact.strip_prefix("path ")).unwrap().to_owned();
    fs::remove_file(hive.vault().join(&path)).unwrap();
    write_private(&hive.vault().join(&path), b"print(2)\n");
    sh(&hive, "hf-artifact get ART-0001").report().expect_exit(4);
    assert_eq!(
        problems(&hive),
        ["artifact ART-0001 its content differs from what was stored do=hf-verify --artifacts"]
    );
    assert_eq!(sh(&hive, "hf-verify --artifacts").expect_exit(1).get("ARTIFACTS"), "CORRUPT");
}

#[test]
fn an_overdue_claim_is_shown_until_somebody_settles_it() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001");
    at(&mut hive, 901, "hf-watchdog --check");
    let line = "overdue T-0001 lease of user:jo expired at 2026-01-31T12:15:00Z do=hf-watchdog";
    assert_eq!(problems(&hive), [line]);
    // The command that it names settles it.
    sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(problems(&hive), [""; 0]);
}
