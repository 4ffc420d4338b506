//! What a job prints: its log, and the heartbeats that output makes.

use std::fs::{self};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, ok, sh};

#[test]
fn a_job_log_can_be_read_whole_in_part_and_as_it_grows() {
    let story = TestJobVault::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("echo one; echo two; printf 'three\\n'; echo up >at; read x <go; echo four");
    at.line();
    let mut following = story.start("job", &["log", "T-0001", "--follow"]);
    assert_eq!([following.line(), following.line(), following.line()], ["one\n", "two\n", "three\n"]);
    go.open();
    assert_eq!(following.line(), "four\n");
    assert_eq!(following.line(), "", "and then it ends");
    let printed = |args: &[&str]| story.run("job", &[&["log", "T-0001"], args].concat());
    assert_eq!(printed(&[]).stdout, "one\ntwo\nthree\nfour\n");
    assert_eq!(printed(&["--tail", "2"]).stdout, "three\nfour\n");
    assert_eq!(printed(&["--tail", "9"]).stdout, "one\ntwo\nthree\nfour\n");
    assert_eq!(printed(&["--tail", "0"]).stdout, "");
    let report = printed(&["--tail", "0"]);
    assert!(report.stderr.starts_with("EXIT:0\nSTATUS:DONE\n"), "{report:#?}");
    story.over();
}

#[test]
fn an_oversized_job_log_keeps_both_ends_and_says_what_is_missing() {
    let story = TestJobVault::new("jobs:\n  log_max_bytes: 4096\n");
    story.fire("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last");
    let said = story.poll("T-0001").get("SUM").to_owned();
    let log = String::from_utf8(story.log("logs/L-0001.txt")).unwrap();
    assert_eq!(log.len(), 4096);
    assert!(log.starts_with("first\nxxx") && log.ends_with("xxx\nlast\n"), "{log}");
    let cut = log.split_once("\n[hiveforge: ").unwrap().1.split_once(" bytes were cut here]\n").unwrap().0;
    let line = "\n[hiveforge: 00000000000000000000 bytes were cut here]\n".len();
    let missing = 6 + 1_000_000 + 1 + 5 - (4096 - line);
    assert_eq!(cut.parse::<usize>().unwrap(), missing);
    assert_eq!(said, format!("last; the log was cut: {missing} bytes missing"));
    story.over();
}

#[test]
fn a_million_lines_make_no_extra_heartbeats() {
    let story = TestJobVault::new("governance:\n  heartbeat_interval_seconds: 1\n");
    for (n, beat) in ["timer", "output"].into_iter().enumerate() {
        let script = "date +%s >>times; yes line | head -n 1000000; date +%s >>times";
        let before = count(&story, "Heartbeat");
        story.fire_with(&["--heartbeat", beat], script);
        let reply = story.poll(&format!("T-000{}", n + 1));
        assert_eq!(reply.get("SUM"), "line");
        let times = fs::read_to_string(story.dir().join("times")).unwrap();
        let times: Vec<usize> = times.lines().map(|line| line.parse().unwrap()).collect();
        let seconds = times[times.len() - 1] - times[times.len() - 2] + 1;
        let beats = count(&story, "Heartbeat") - before;
        assert!(beats <= seconds, "{beats} heartbeats in {seconds} seconds");
    }
    story.over();
}

#[test]
fn silence_makes_no_heartbeat_when_output_is_the_sign_of_life() {
    let story = TestJobVault::new("governance:\n  heartbeat_interval_seconds: 1\n");
    story.fire_with(&["--heartbeat", "output"], "sleep 2.3");
    story.fire_with(&["--heartbeat", "timer"], "sleep 2.3");
    ok(&story, "hf-job wait T-0001 T-0002");
    let of = |n: usize| {
        let run = format!("run:{}", sh(&story, &format!("hf-job check T-000{n}")).get("RUN_ID"));
        story.of_kind("Heartbeat").iter().filter(|beat| beat["subject"] == run.as_str()).count()
    };
    assert_eq!((of(1), of(2)), (0, 2));
    story.over();
}
