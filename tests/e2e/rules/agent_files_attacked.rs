//! What an attack on the watching of agents' files found.

use std::fs;

use crate::support::steps::{count, ok, sh};
use crate::support::watchdog_fixture::{all_is_well, at, beat, moment};
use crate::support::works_fixture::Works;

const NOTHING: [&str; 0] = [];

/// A tree that was there before is missed, and other agents are still watched.
#[test]
fn a_tree_that_vanishes_is_named_and_hides_nobody_else() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    ok(&works.hive, "hf-activity --kind introspection --agent bob");
    works.tick(0);
    fs::rename(works.path(""), works.hive.dir().join("elsewhere")).unwrap();
    let reply = works.reply(700, "hf-watchdog").expect_exit(1);
    let found: Vec<&str> = reply.all("ANOMALY");
    assert!(found.iter().any(|line| line.starts_with("FILE_UNREADABLE agent:main warn 0 ")), "{found:?}");
    assert!(found.contains(&"INACTIVE agent:bob error 700"), "{found:?}");
    fs::rename(works.hive.dir().join("elsewhere"), works.path("")).unwrap();
    works.tick(701);
}

/// Commands at the same time write files of their own, and each is named by one event.
#[test]
fn commands_at_the_same_time_replace_no_file() {
    let mut works = Works::new();
    works.tick(0);
    let run = |line: &str| {
        let mut process = works.hive.process(line.split(' ').next().unwrap());
        process.args(line.split(' ').skip(1)).args(["--works", "ai-works"]).stdout(std::process::Stdio::null());
        process.spawn().unwrap()
    };
    let mut all = Vec::new();
    for number in 0..6 {
        all.push(run(&format!("activity --kind thinking --title number-{number}")));
        all.push(run(&format!("checkpoint number-{number}")));
    }
    all.iter_mut().for_each(|child| assert!(child.wait().unwrap().success()));
    let logs: Vec<String> = works
        .names()
        .iter()
        .filter(|path| path.to_string_lossy().contains("/main/histories/"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    for number in 0..6 {
        let title = format!("title: number-{number}\n");
        assert_eq!(logs.iter().filter(|text| text.contains(&title)).count(), 1, "{number}: {logs:#?}");
    }
    let named: std::collections::BTreeSet<String> =
        works.events("ActivityLogged").iter().map(|event| event["payload"]["file"].to_string()).collect();
    assert_eq!(named.len(), 6);
    works.tick(60);
    assert_eq!((count(&works.hive, "ActivityLogged"), count(&works.hive, "CheckpointRecorded")), (6, 6));
    all_is_well(&works.hive);
}

/// What is refused leaves no file behind.
#[test]
fn a_refused_command_claims_no_name() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    ok(&works.hive, "hf-session login --agent main --ttl 1s");
    works.hive.at(&moment(100).to_string());
    let before = works.names();
    for line in ["deepwork start --flexible Reading", "activity --kind thinking", "checkpoint Here"] {
        let mut command = works.hive.command(line.split(' ').next().unwrap());
        command.args(line.split(' ').skip(1)).args(["--works", "ai-works"]).env("HF_SESSION", "S-0001");
        assert_eq!(command.output().unwrap().status.code(), Some(3), "{line}");
        assert_eq!(works.names(), before, "{line}");
    }
}

#[test]
fn a_declaration_by_a_command_is_newer_than_a_file_of_the_same_beat() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(60);
    works.flexible(60);
    works.reply(60, "hf-deepwork start --strict 60 render").expect_exit(0);
    assert_eq!(works.tick(120), NOTHING);
    assert_eq!(works.tick(900), NOTHING);
    // The command took the file in first, and supersedes it.
    assert_eq!((count(&works.hive, "DeepWorkStarted"), count(&works.hive, "DeepWorkCompleted")), (2, 1));
    assert!(works.declared(60, ".completed").exists());
    all_is_well(&works.hive);
}

#[test]
fn many_files_at_once_all_count_and_the_newest_is_among_them() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    for number in 1..=1500 {
        works.write(&format!("artifacts/t/histories/{}_{number}.md", beat(60)), "内省\n");
    }
    works.log(1190, "log\n");
    assert_eq!(works.tick(1200), ["INTROSPECTION_OVERDUE agent:main notice 1140"]);
    assert_eq!(works.ids("ActivityLogged").len(), 1502);
}

#[test]
fn a_log_that_is_renamed_or_moved_counts_no_second_time() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.flexible(60);
    works.tick(61);
    works.log(120, "closing\n");
    works.tick(180);
    let histories = works.path("artifacts/t/histories");
    let named = |name: &str| histories.join(format!("{}{name}.md", beat(120)));
    fs::rename(named(""), named("_title")).unwrap();
    assert_eq!(works.tick(240), NOTHING);
    fs::rename(works.path("artifacts/t"), works.path("artifacts/renamed")).unwrap();
    assert_eq!(works.tick(300), NOTHING);
    assert_eq!(works.ids("ActivityLogged").len(), 2);
    all_is_well(&works.hive);
}

/// The tick of a cron entry names the tree; hf-status looks where the last tick looked.
#[test]
fn status_sees_the_tree_of_the_last_tick() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.checkpoint(3600);
    works.tick(60);
    let status = sh(&works.hive, "hf-status").expect_exit(1);
    assert!(status.all("PROBLEM").iter().any(|line| line.contains("CLOCK_SKEW")), "{status:?}");
    let by_agent = works.hive.command("status").env("HF_AGENT", "builder").output().unwrap();
    assert!(String::from_utf8(by_agent.stdout).unwrap().contains("CLOCK_SKEW"));
}

#[test]
fn a_heartbeat_id_that_cannot_be_written_is_named() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    fs::create_dir_all(works.path("stats/current_heartbeat_id.txt/in-the-way")).unwrap();
    let reply = works.reply(60, "hf-watchdog").expect_exit(0);
    assert_eq!(reply.get("STATUS"), "WARNING");
    assert!(reply.get("ANOMALY").contains("the heartbeat id cannot be written"), "{reply:?}");
}

#[test]
fn a_tree_of_one_agent_is_not_the_tree_of_another() {
    let mut works =
        Works::configured("liveness:\n  works_dir: ../ai-works\nagents:\n  bob:\n    works_dir: ../ai-works\n");
    works.log(0, "内省\n");
    at(&mut works.hive, 60, "hf-watchdog").expect_exit(0);
    let subjects: Vec<_> = works.events("ActivityLogged").iter().map(|event| event["subject"].clone()).collect();
    assert_eq!(subjects, ["agent:bob"]);
}

#[test]
fn expired_deep_work_runs_the_hook_for_anomalies_once() {
    let mut works =
        Works::configured("watchdog:\n  interval_seconds: 1000000\n  hooks:\n    on_anomaly: 'cat >> ../heard.txt'\n");
    works.log(0, "内省\n");
    works.strict(60, 1);
    works.tick(61);
    works.tick(121);
    works.tick(122);
    let heard = fs::read_to_string(works.hive.dir().join("heard.txt")).unwrap();
    assert_eq!(heard.matches("CALL:anomaly\nANOMALY:DEEPWORK_EXPIRED agent:main error 1\n").count(), 1, "{heard}");
}
