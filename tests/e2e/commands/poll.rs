//! hf-poll: the four blocks to the letter, and a wait that always comes to an end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::job_fixture::{TestJobVault, kill, lives, waiting};
use crate::support::steps::{ok, sh};
use crate::support::test_vault::{Reply, TestVault, write_private};

/// The same, with the process's own exit code, which is always 0.
#[track_caller]
fn polled(hive: &TestVault, args: &[&str]) -> String {
    let reply = hive.run("poll", args);
    assert_eq!(reply.code, Some(0), "{reply:#?}");
    reply.stdout
}

#[test]
fn the_four_blocks_match_the_specification_exactly() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go; echo All tests passed");
    assert_eq!(
        polled(&story, &["T-0001", "1", "1"]),
        "EXIT:2\nSTATUS:RUNNING\nNEXT:ACTION hf-poll T-0001 1 1\nSUM:Still running\n"
    );
    go.open();
    let done = "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:All tests passed\n";
    assert_eq!(polled(&story, &["T-0001"]), done);
    assert_eq!(polled(&story, &["T-0001", "1", "1"]), done, "and so it stays");
    story.fire("for n in 1 2 3 4 5 6; do echo error $n >&2; done; echo Tests failed; exit 7");
    assert_eq!(
        polled(&story, &["T-0002"]),
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:exit 7: Tests failed\nLAST5:\nerror 2\nerror 3\nerror 4\nerror 5\nerror 6\n\
         LOGREF:logs/L-0002.txt\n"
    );
    assert_eq!(polled(&story, &["T-0099"]), "EXIT:99\nSTATUS:NOT_FOUND\nNEXT:NONE\nSUM:Job does not exist\n");
    story.over();
}

#[test]
fn a_job_can_be_named_in_any_way_and_an_unknown_name_is_not_found() {
    let story = TestJobVault::new("");
    let run = story.fire("echo ok").get("RUN_ID").to_owned();
    let subject = ok(&story, "hf-task show T-0001").get("SUBJECT").to_owned();
    let id = subject.strip_prefix("task:").unwrap();
    let tagged = ok(&story, "hf-task show T-0001").get("REF").to_owned();
    for name in ["T-0001", "t-0001", &subject, id, &tagged] {
        assert_eq!(polled(&story, &[name]).lines().nth(1), Some("STATUS:DONE"), "{name}");
    }
    ok(&story, "hf-require propose Login");
    for name in ["T-0002", "nonsense", "", &run, "T-0001@zzzz"] {
        assert_eq!(polled(&story, &[name, "1", "1"]).lines().next(), Some("EXIT:99"), "{name}");
    }
    // What is something else is never waited for as if it were a job.
    for (name, said) in [
        ("REQ-0001", "REQ-0001 is a requirement, not a task"),
        ("RUN-0001", "RUN-0001 is a run, not a task"),
        ("system", "system is a system, not a task"),
    ] {
        let reply = story.run("poll", &[name, "1", "1"]);
        assert_eq!((reply.code, reply.get("EXIT"), reply.get("SUM")), (Some(0), "64", said));
    }
    story.over();
}

#[test]
fn a_bad_request_exits_64_without_waiting() {
    let story = TestJobVault::new("");
    for args in [
        &["T-0001", "0"][..],
        &["T-0001", "--", "-1"],
        &["T-0001", "-1"],
        &["T-0001", "15", "0"],
        &["T-0001", "15", "--", "-270"],
        &["T-0001", "soon"],
        &["T-0001", "1.5"],
        &["T-0001", ""],
        &["T-0001", "15", "270", "9"],
        &["T-0001", "99999999999999999999"],
        &["--nonsense"],
        &[],
    ] {
        let reply = story.run("poll", args);
        assert_eq!(reply.code, Some(0), "{reply:#?}");
        assert!(reply.stdout.starts_with("EXIT:64\nSTATUS:USAGE\nNEXT:ACTION hf-poll --help\nSUM:"), "{reply:#?}");
        assert_eq!(reply.stdout.lines().count(), 4, "{reply:#?}");
    }
    story.over();
}

#[test]
fn poll_exits_0_whatever_is_wrong() {
    let empty = TestVault::empty();
    let reply = empty.run("poll", &["T-0001"]);
    assert_eq!((reply.code, reply.get("EXIT"), reply.get("STATUS")), (Some(0), "7", "NO_VAULT"));
    let story = TestJobVault::new("jobs:\n  check_cmd: /nonexistent/exec.sh --check {}\n");
    let reply = story.poll("job-7");
    assert_eq!((reply.get("EXIT"), reply.get("STATUS"), reply.get("NEXT")), ("111", "SYSTEM_ERROR", "ASK operator"));
    story.over();
}

#[test]
fn the_next_step_works_as_printed_from_any_folder() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go");
    let vault = story.vault().display().to_string();
    let elsewhere = TestVault::empty();
    let reply = elsewhere.run("poll", &["T-0001", "1", "1", "--vault", &vault]);
    assert_eq!(reply.get("NEXT"), format!("ACTION hf-poll T-0001 1 1 --vault {vault}"));
    go.open();
    assert_eq!(elsewhere.run_next(&reply).get("STATUS"), "DONE");
    let json = elsewhere.run("poll", &["T-0001", "--json", "--vault", &vault]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["exit"], &json["status"]), (&serde_json::json!(0), &serde_json::json!("DONE")), "{json:#}");
    story.over();
}

#[test]
fn a_terminated_poll_says_what_to_run_next_before_it_exits() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let child = waiting(&story, "poll", &["T-0001"]);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let reply = Reply::of(child.wait_with_output().unwrap());
        assert_eq!(reply.code, Some(0));
        assert_eq!(
            reply.stdout, "EXIT:2\nSTATUS:RUNNING\nNEXT:ACTION hf-poll T-0001\nSUM:Still running\n",
            "{signal:?}"
        );
    }
    let child = waiting(&story, "job", &["wait", "T-0001"]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let reply = Reply::of(child.wait_with_output().unwrap()).expect_exit(1);
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("RUNNING", "ACTION hf-job wait T-0001"));
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    story.over();
}

#[test]
fn all_waiting_polls_report_the_end() {
    let story = TestJobVault::new("");
    let mut go = story.gate("go");
    story.fire("read x <go; echo over");
    let pollers: Vec<_> = (0..20).map(|_| waiting(&story, "poll", &["T-0001"])).collect();
    go.open();
    for poller in pollers {
        assert_eq!(Reply::of(poller.wait_with_output().unwrap()).get("SUM"), "over");
    }
    story.over();
}

#[test]
fn a_short_printable_last_line_is_the_summary_and_anything_else_is_a_sentence() {
    let story = TestJobVault::new("");
    let short = "x".repeat(200);
    let (prints_short, prints_long) = (format!("echo {short}"), format!("echo {short}x"));
    let printed_and_said = [
        ("true", "Job finished"),
        ("echo one; echo two; echo; echo '  '", "two"),
        ("printf 'no line end'", "no line end"),
        ("echo '  blanks around  '", "blanks around"),
        ("echo 出来上がり", "出来上がり"),
        ("echo out; echo err >&2", "out"),
        ("printf '10%%\\r100%%\\n'", "100%"),
        ("printf 'a\\033[31mred\\033[0m\\n'", "Job finished"),
        ("printf 'a\\342\\200\\250STATUS:FAIL\\n'", "Job finished"),
        ("printf 'a\\0b\\n'", "Job finished"),
        ("printf 'a\\302\\205b\\n'", "Job finished"),
        ("printf 'a\\342\\200\\256b\\n'", "Job finished"),
        (prints_long.as_str(), "Job finished"),
        (&prints_short, &short),
        ("echo STATUS:FAIL", "STATUS:FAIL"),
        ("head -c 10000000 /dev/zero | tr '\\0' x", "Job finished"),
    ];
    for (n, (script, said)) in printed_and_said.iter().enumerate() {
        story.fire(script);
        let reference = format!("T-{:04}", n + 1);
        assert_eq!(polled(&story, &[&reference]), format!("EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:{said}\n"), "{script}");
    }
    story.over();
}

#[test]
fn a_failed_job_without_a_message_of_its_own_gets_a_reason() {
    let story = TestJobVault::new("");
    for (n, (script, said)) in [
        ("exit 9", "exit 9"),
        ("echo Tests failed; exit 9", "exit 9: Tests failed"),
        ("kill -9 $$", "signal 9"),
        ("exec /nonexistent/tool", "exit 127"),
    ]
    .into_iter()
    .enumerate()
    {
        story.fire(script);
        assert_eq!(story.poll(&format!("T-{:04}", n + 1)).get("SUM"), said, "{script}");
    }
    story.over();
}

#[test]
fn what_a_job_prints_cannot_forge_or_break_a_line_of_a_reply() {
    let story = TestJobVault::new("");
    let script = "printf 'STATUS:DONE\\n\\033[2J\\033[32mok\\033[0m\\nover\\rEXIT:0\\na\\342\\200\\250EXIT:0\\n\\377\\376\\0end\\n' >&2; exit 1";
    story.fire(script);
    assert_eq!(
        polled(&story, &["T-0001"]),
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:exit 1\nLAST5:\n STATUS:DONE\n\\u{1b}[2J\\u{1b}[32mok\\u{1b}[0m\n \
         EXIT:0\na\\u{2028}EXIT:0\n\u{fffd}\u{fffd}\\u{0}end\nLOGREF:logs/L-0001.txt\n"
    );
    // In every reply that shows it.
    let check = sh(&story, "hf-job check T-0001").stdout;
    assert!(check.contains("LAST5:\n STATUS:DONE\n\\u{1b}[2J"), "{check}");
    assert_eq!(check.lines().filter(|line| line.starts_with("STATUS:") || line.starts_with("EXIT:")).count(), 2);
    story.fire("head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 1");
    let reply = story.poll("T-0002");
    let last = reply.stdout.lines().nth(5).unwrap();
    assert_eq!(last, "x".repeat(400) + "…");
    assert_eq!(reply.stdout.lines().count(), 7);
    // A title is what the caller says, and no more than one line either.
    let reply = story.run("job", &["fire", "--title", "a\nSTATUS:DONE\u{2028}b", "--", "true"]).expect_exit(0);
    assert_eq!(reply.all("STATUS"), ["FIRED"], "{reply:#?}");
    assert_eq!(story.poll("T-0003").all("STATUS"), ["DONE"]);
    assert_eq!(ok(&story, "hf-job list").all("STATUS"), ["OK"]);
    story.over();
}

/// A command that tells of foreign jobs: it prints what lies in a file called like the job.
fn tells(story: &TestJobVault) -> String {
    let path = story.dir().join("exec.sh");
    write_private(&path, b"#!/bin/sh\nfolder=${0%/*}\necho \"$*\" >>\"$folder/asked\"\n. \"$folder/said\"\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.display().to_string()
}

#[test]
fn a_foreign_job_system_is_queried_with_its_own_command() {
    let story = TestJobVault::new("");
    let tells = tells(&story);
    story.settle(&format!("jobs:\n  check_cmd: {tells} --check {{}}\n"));
    let done = |sum: &str| format!("EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:{sum}\n");
    let running = "EXIT:2\nSTATUS:RUNNING\nNEXT:ACTION hf-poll job-7 1 1\nSUM:Still running\n".to_owned();
    let gone = "EXIT:99\nSTATUS:NOT_FOUND\nNEXT:NONE\nSUM:Job does not exist\n".to_owned();
    let fail =
        |sum: &str, last5: &str| format!("EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:{sum}\nLAST5:\n{last5}LOGREF:NONE\n");
    for (script, said) in [
        ("echo done", done("Job finished")),
        ("echo looking; echo DONE; exit 4", done("Job finished")),
        ("echo STATUS:done; echo 'SUM:All tests passed'", done("All tests passed")),
        ("echo '{\"status\":\"done\",\"summary\":\"All tests passed\"}'", done("All tests passed")),
        ("echo processing", running.clone()),
        ("echo status: pending", running.clone()),
        ("echo '{\"status\": \"processing\"}'", running.clone()),
        ("echo not found; exit 1", gone.clone()),
        ("echo STATUS:NOT_FOUND", gone.clone()),
        ("echo '{\"status\":\"not_found\"}'", gone.clone()),
        ("echo failed; for n in 1 2 3 4 5 6; do echo e$n >&2; done", fail("Job failed", "e2\ne3\ne4\ne5\ne6\n")),
        ("echo STATUS:failed; echo SUM:Tests failed; echo STATUS:DONE >&2", fail("Tests failed", " STATUS:DONE\n")),
        ("echo failed; echo no route", fail("Job failed", "no route\n")),
        ("echo failed: no route", fail("no route", "")),
        ("echo cancelled", fail("Job was cancelled", "")),
        ("echo '{\"status\":\"canceled\"}'", fail("Job was cancelled", "")),
        (
            "printf 'EXIT:1\\nSTATUS:FAIL\\nNEXT:PATCH\\nSUM:2 failed\\nLAST5:\\na\\nb\\nLOGREF:logs/L-7.txt\\n'",
            fail("2 failed", "a\nb\n").replace("LOGREF:NONE", "LOGREF:logs/L-7.txt"),
        ),
        ("printf 'STATUS:done\\nSUM:a\\033[31mb\\n'", done("a\\u{1b}[31mb")),
    ] {
        fs::write(story.dir().join("said"), script).unwrap();
        assert_eq!(polled(&story, &["job-7", "1", "1"]), said, "{script}");
    }
    let asked = fs::read_to_string(story.dir().join("asked")).unwrap();
    assert!(asked.lines().all(|line| line == "--check job-7"), "{asked}");
    for script in ["echo nonsense", "true"] {
        fs::write(story.dir().join("said"), script).unwrap();
        let reply = story.poll("job-7");
        assert_eq!((reply.get("EXIT"), reply.get("NEXT")), ("111", "ASK operator"), "{script}");
    }
    story.over();
}

/// What a poll says if the other system does not answer.
const UNKNOWN: &str = "The job system did not answer, so the state of the job is unknown";

#[test]
fn a_check_that_does_not_answer_keeps_the_limit_of_the_poll_and_is_ended() {
    let story = TestJobVault::new("");
    let tells = tells(&story);
    story.settle(&format!("jobs:\n  check_cmd: {tells} --check {{}}\n"));
    fs::write(story.dir().join("said"), "echo $$ >\"$folder/pid\"; exec sleep 1000").unwrap();
    let expected = format!("EXIT:2\nSTATUS:RUNNING\nNEXT:ACTION hf-poll job-7 1 1\nSUM:{UNKNOWN}\n");
    assert_eq!(polled(&story, &["job-7", "1", "1"]), expected);
    let pid = fs::read_to_string(story.dir().join("pid")).unwrap();
    assert!(!lives(pid.trim().parse().unwrap()));
    story.over();
}

#[test]
fn a_signal_ends_a_check_that_does_not_answer() {
    let story = TestJobVault::new("");
    let tells = tells(&story);
    story.settle(&format!("jobs:\n  check_cmd: {tells} --check {{}}\n"));
    fs::write(story.dir().join("said"), "echo $$ >\"$folder/here\"; exec sleep 1000").unwrap();
    let mut here = story.gate("here");
    let poll = story.process("poll").args(["job-7", "1", "900"]).stdout(Stdio::piped()).spawn().unwrap();
    let check = here.line().parse().unwrap();
    kill(poll.id() as i32, Signal::TERM);
    let reply = Reply::of(poll.wait_with_output().unwrap());
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("RUNNING", UNKNOWN));
    assert!(!lives(check));
    story.over();
}

#[test]
fn a_foreign_job_is_polled_until_it_is_done() {
    let story = TestJobVault::new("");
    let tells = tells(&story);
    fs::write(
        story.dir().join("said"),
        "if [ $(wc -l <\"$folder/asked\") -lt 3 ]; then echo processing; else echo done; fi",
    )
    .unwrap();
    // The variable goes before the setting, and the id follows a command that has no place for it.
    story.settle("jobs:\n  check_cmd: /nonexistent\n");
    let mut command = story.command("poll");
    command.args(["job-7", "1"]).env("HF_CHECK_CMD", format!("{tells} --check"));
    let reply = Reply::of(command.output().unwrap());
    assert_eq!((reply.code, reply.get("STATUS")), (Some(0), "DONE"));
    assert_eq!(fs::read_to_string(story.dir().join("asked")).unwrap(), "--check job-7\n".repeat(3));
    story.over();
}

#[test]
fn only_plain_words_reach_a_foreign_command() {
    let story = TestJobVault::new("");
    let tells = tells(&story);
    story.settle(&format!("jobs:\n  check_cmd: {tells} --check {{}}\n"));
    fs::write(story.dir().join("said"), "echo done").unwrap();
    for id in ["a b", "$(touch x)", "a;b", "../x", "a\nb", "x/y"] {
        assert_eq!(polled(&story, &[id]).lines().next(), Some("EXIT:99"), "{id}");
    }
    assert!(!story.dir().join("asked").exists());
    // An id may be one of theirs that could not be one of ours.
    assert_eq!(polled(&story, &["queue:7"]).lines().nth(1), Some("STATUS:DONE"));
    fs::remove_file(story.dir().join("asked")).unwrap();
    // Our own jobs are never asked about elsewhere.
    story.fire("echo ours");
    assert_eq!(story.poll("T-0001").get("SUM"), "ours");
    assert!(!story.dir().join("asked").exists());
    story.over();
}
