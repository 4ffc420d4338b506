//! hf-review run: reviewers as processes, within their time, and never beside a stop.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::json;

use super::{prompt, review, revise, spec};
use crate::support::job_fixture::{Gate, TestJobVault, ends, kill, lives};
use crate::support::steps::{count, ok, refuses, sh};
use crate::support::test_vault::{Reply, binary};

/// A vault whose reviewers are these scripts, with a spec. What they are asked is kept.
fn reviewed(gpt: &str, gem: &str) -> TestJobVault {
    let one = |name: &str, script: &str| {
        format!("  {name}:\n    command: {}\n", json!(format!("cat >>asked; echo == >>asked; {script}")))
    };
    let story = TestJobVault::new(&format!("reviewers:\n  timeout_seconds: 2\n{}{}", one("gpt", gpt), one("gem", gem)));
    spec(&story);
    story
}

#[test]
fn a_run_asks_reviewers_in_turn_until_they_agree() {
    let story = reviewed("echo PASS: naming", "echo PASS: all");
    let reply = ok(&story, "hf-review run spec.md");
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:CONVERGED\nNEXT:NONE\nSUM:R-gem-0001: 1 PASS, 0 FAIL\nROUND:2/4\nCONVERGED:yes\nREVIEW:R-gem-0001\n\
         FILE:reviews/R-gem-0001.md\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n"
    );
    assert_eq!(fs::read_to_string(story.dir().join("asked")).unwrap(), format!("{0}==\n{0}==\n", prompt("")));
    assert_eq!(
        (review(&story, "R-gpt-0001.md"), review(&story, "R-gem-0001.md")),
        ("PASS: naming\n".to_owned(), "PASS: all\n".to_owned())
    );
    // J7: agreed is agreed, as long as it is the same document.
    let before = story.contents();
    assert_eq!(
        ok(&story, "hf-review run spec.md").stdout,
        "EXIT:0\nSTATUS:CONVERGED\nNEXT:NONE\nSUM:the reviewers have agreed on this document before; nobody was asked\n\
         ROUND:2/4\nCONVERGED:yes\n"
    );
    assert!(story.contents() == before, "nobody was asked");
    revise(&story, "another\n");
    assert_eq!(ok(&story, "hf-review run spec.md").get("REVIEW"), "R-gem-0002");
    story.over();
}

#[test]
fn a_run_stops_at_failures_and_at_the_round_limit() {
    let story = reviewed("echo 'FAIL: a -> FIX: b'", "echo 'FAIL: c -> FIX: d'");
    let reply = sh(&story, "hf-review run spec.md").expect_exit(1);
    assert_eq!(
        reply.masked(&story),
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:R-gpt-0001: 0 PASS, 1 FAIL\nROUND:1/4\nTURN:gem\nCONVERGED:no\n\
         REVIEW:R-gpt-0001\nFILE:reviews/R-gpt-0001.md\nFAIL:a -> FIX: b\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n"
    );
    // A call that was killed can be repeated: the same document uses up no round.
    let before = story.contents();
    assert_eq!(
        sh(&story, "hf-review run spec.md").expect_exit(1).stdout,
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:the document is unchanged since R-gpt-0001; nobody was asked\nROUND:1/4\n\
         TURN:gem\nCONVERGED:no\nFAIL:a -> FIX: b\n"
    );
    assert!(story.contents() == before, "nobody was asked");
    // The end of the text is not part of the prompt, but a change.
    for (end, code) in [("", 1), ("\n\n", 1), (" \n", 3)] {
        revise(&story, &format!("# Login\n\nTwo factors.\n{end}"));
        sh(&story, "hf-review run spec.md").expect_exit(code);
    }
    let reply = ok(&story, "hf-review status");
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:OK\nNEXT:ASK operator\nSUM:all rounds are used up, and there is still something to fix\nROUND:4/4\n\
         CONVERGED:no\nFAIL:c -> FIX: d\n"
    );
    let asked = fs::read_to_string(story.dir().join("asked")).unwrap();
    let (a, c) = ("FAIL: a -> FIX: b\n", "FAIL: c -> FIX: d\n");
    assert_eq!(asked, ["", a, c, a].map(|fail| prompt(fail) + "==\n").concat(), "each what is open, and nothing else");
    story.refuses("review", &["run", "spec.md"], 3);
    story.over();
}

#[test]
fn a_reviewer_who_does_not_review_changes_nothing_and_is_named() {
    for (script, why) in [
        ("true", "invalid review by gpt: the reply has neither a PASS nor a FAIL line"),
        (
            "echo Looks good to me",
            "invalid review by gpt: a line starts with neither 'PASS:' nor 'FAIL:': Looks good to me",
        ),
        ("head -c 1048576 /dev/zero | tr '\\0' x", "invalid review by gpt: the reply has 1048576 bytes; at most 2000"),
        ("head -c 3000000 /dev/zero | tr '\\0' x", "invalid review by gpt: the reply has 1048576 bytes; at most 2000"),
        ("printf 'PASS: \\377'", "invalid review by gpt: the reply is not UTF-8"),
        ("echo PASS: a; echo no key >&2; exit 4", "reviewer gpt exited with 4: no key"),
        ("echo no key; exit 4", "reviewer gpt exited with 4: no key"),
        ("exit 4", "reviewer gpt exited with 4"),
        ("kill -9 $$", "reviewer gpt was killed"),
        ("echo PASS: a; exec sleep 1000", "reviewer gpt: the command timed out: killed after 2 seconds"),
        ("sleep 1000 & sleep 1000", "reviewer gpt: the command timed out: killed after 2 seconds"),
    ] {
        let story = reviewed(script, "echo PASS: x");
        let before = story.contents();
        let reply = Reply::of(
            story.command("review").args(["run", "spec.md"]).timeout(Duration::from_secs(60)).output().unwrap(),
        );
        let reply = reply.expect_exit(111);
        assert_eq!((reply.get("SUM"), reply.get("NEXT")), (why, "ASK operator"), "{script}");
        assert!(story.contents() == before, "{script}");
        story.over();
    }
    let story = TestJobVault::new("");
    spec(&story);
    refuses(&story, "hf-review run spec.md", 2, "reviewers.gpt.command is not set");
    // Not even the first is asked if another one has no command.
    story.settle("reviewers:\n  gpt:\n    command: 'touch asked; echo PASS: a'\n");
    refuses(&story, "hf-review run spec.md", 2, "reviewers.gem.command is not set");
    assert!(!story.dir().join("asked").exists());
    story.over();
}

#[test]
fn j7_reviewers_never_agree_on_a_document_that_one_of_them_has_not_seen() {
    let story = reviewed("echo 'FAIL: a -> FIX: b'", "echo PASS: a");
    fs::write(story.dir().join("other.md"), "# Another\n").unwrap();
    sh(&story, "hf-review run spec.md").expect_exit(1);
    let why = "the open debate is about spec.md, not other.md; an operator can start another one with hf-review open";
    refuses(&story, "hf-review run other.md", 3, why);
    let recorded = count(&story, "ReviewRecorded");
    let mut record = story.command("review");
    record.args(["record", "--reviewer", "gem", "--spec", "other.md"]).write_stdin("PASS: a\n");
    assert_eq!(Reply::of(record.output().unwrap()).expect_exit(3).get("SUM"), why);
    assert_eq!(count(&story, "ReviewRecorded"), recorded);
    // The same file by another path is the same document.
    revise(&story, "# Login\n\nb\n");
    assert_eq!(ok(&story, "hf-review run ./spec.md").get("STATUS"), "CONVERGED");
    // What they agreed on is over; the next document has a debate of its own.
    sh(&story, "hf-review run other.md").expect_exit(1);
    assert_eq!(count(&story, "DebateOpened"), 2);
    // An operator can end that one for another document, an agent cannot.
    assert_eq!(ok(&story, "hf-review open --actor agent:a").get("STATUS"), "DUPLICATE");
    assert_eq!(ok(&story, "hf-review open").get("STATUS"), "RECORDED");
    assert_eq!(["DebateOpened", "DebateClosed"].map(|kind| count(&story, kind)), [3, 1]);
    sh(&story, "hf-review run spec.md").expect_exit(1);
    story.over();
}

#[test]
fn a_reply_of_maximum_length_is_accepted_from_a_run_and_from_a_file() {
    let story = reviewed("printf 'PASS: '; head -c 1994 /dev/zero | tr '\\0' x; echo", "echo PASS: x");
    ok(&story, "hf-review run spec.md");
    assert_eq!(review(&story, "R-gpt-0001.md").len(), 2001);
    story.over();
}

#[test]
fn j14_a_reply_that_cannot_be_read_is_asked_for_once_more() {
    let story = reviewed("if [ $(grep -c == asked) = 1 ]; then echo I like it; else echo PASS: a; fi", "echo PASS: b");
    ok(&story, "hf-review run spec.md");
    let reminder = "---\nYour last reply could not be read. Reply with lines of this form only, one for each item:\n\
        PASS: <item>\nFAIL: <item> -> FIX: <fix in 1 line>\n\
        Problem: a line starts with neither 'PASS:' nor 'FAIL:': I like it\n";
    let asked = fs::read_to_string(story.dir().join("asked")).unwrap();
    assert_eq!(asked, format!("{0}==\n{0}{reminder}==\n{0}==\n", prompt("")));
    assert_eq!(count(&story, "ReviewRecorded"), 2);
    story.over();
}

/// A vault whose first reviewer is this script, which has all the time it wants.
fn gated(gpt: &str) -> TestJobVault {
    let gpt = json!(gpt);
    let story = TestJobVault::new(&format!(
        "reviewers:\n  timeout_seconds: 600\n  gpt:\n    command: {gpt}\n  gem:\n    command: 'echo PASS: b; touch gem'\n"
    ));
    spec(&story);
    story
}

/// A reviewer that starts others in every way to get away from it, and waits. Each reports its pid.
const RUNAWAYS: &str = "setsid sh -c 'echo $$ >here; exec sleep 1000' & \
    (setsid sh -c 'echo $$ >here; exec sleep 1000' &); echo $$ >here; exec sleep 1000";

/// The processes of such a reviewer.
fn runaways(gate: &mut Gate) -> Vec<(i32, OwnedFd)> {
    let pids = (0..3).map(|_| gate.line().parse().expect("a pid"));
    pids.map(|pid| (pid, pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).expect("it lives"))).collect()
}

fn start_run(story: &TestJobVault) -> Child {
    story.process("review").args(["run", "spec.md"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn j2_no_reviewer_is_run_under_a_stop_or_in_a_paused_project() {
    let story = reviewed("echo PASS: a", "echo PASS: b");
    ok(&story, "hf-pause lunch");
    assert_eq!(story.refuses("review", &["run", "spec.md"], 3).get("REASON"), "project_paused");
    let reply = story.refuses("review", &["run", "spec.md", "--actor", "agent:a"], 3);
    assert_eq!((reply.get("STATUS"), reply.get("REASON")), ("EXIT_REQUESTED", "project_paused"));
    ok(&story, "hf-resume --project main");
    ok(&story, "hf-stop fire");
    let reply = story.refuses("review", &["run", "spec.md"], 3);
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("STOPPED", "everything is stopped: fire"));
    assert!(!story.dir().join("asked").exists());
    ok(&story, "hf-resume --system");
    assert_eq!(ok(&story, "hf-review run spec.md").get("STATUS"), "CONVERGED");
    story.over();
}

#[test]
fn j2_a_pause_between_two_reviewers_keeps_the_second_from_running() {
    let story = gated("echo here >here; read go <go; echo PASS: a");
    let (mut here, mut go) = (story.gate("here"), story.gate("go"));
    let run = start_run(&story);
    here.line();
    ok(&story, "hf-pause lunch");
    go.open();
    let reply = Reply::of(run.wait_with_output().unwrap()).expect_exit(3);
    assert_eq!(reply.get("REASON"), "project_paused");
    assert_eq!(count(&story, "ReviewRecorded"), 1);
    assert!(!story.dir().join("gem").exists());
    story.over();
}

#[test]
fn j2_a_stop_ends_a_reviewer_that_runs_and_nothing_is_recorded() {
    let story = gated(RUNAWAYS);
    let mut here = story.gate("here");
    let run = start_run(&story);
    let processes = runaways(&mut here);
    ok(&story, "hf-stop fire");
    let reply = Reply::of(run.wait_with_output().unwrap()).expect_exit(3);
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("STOPPED", "everything is stopped: fire"));
    for (pid, _) in processes {
        assert!(!lives(pid), "{pid}");
    }
    assert_eq!(count(&story, "ReviewRecorded"), 0);
    story.over();
}

#[test]
fn j15_a_killed_run_leaves_no_reviewer_behind() {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let story = gated(RUNAWAYS);
        let mut here = story.gate("here");
        let mut run = start_run(&story);
        let processes = runaways(&mut here);
        let before = story.contents();
        kill(run.id() as i32, signal);
        run.wait().unwrap();
        for (pid, process) in processes {
            ends(pid, &process);
        }
        assert!(story.contents() == before, "{signal:?}");
        story.over();
    }
}

/// Who kills the process between the run and its reviewer leaves the reviewer's own processes to the run.
#[test]
fn j15_a_reviewer_whose_attendant_is_killed_leaves_nothing_behind() {
    let story = gated(RUNAWAYS);
    let mut here = story.gate("here");
    let run = start_run(&story);
    let processes = runaways(&mut here);
    let attendant =
        children_of(run.id()).into_iter().find(|pid| name_of(*pid) == "hf-attendant").expect("an attendant");
    kill(attendant, Signal::KILL);
    let reply = Reply::of(run.wait_with_output().unwrap()).expect_exit(111);
    assert_eq!(reply.get("SUM"), "reviewer gpt was killed");
    for (pid, _) in processes {
        assert!(!lives(pid), "{pid}");
    }
    story.over();
}

fn children_of(parent: u32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).expect("it lives").flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().expect("a pid")).collect::<Vec<_>>()).collect()
}

fn name_of(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

#[test]
fn j15_a_reviewer_whose_time_is_up_leaves_nothing_behind() {
    let story = reviewed(&RUNAWAYS.replace(">here", ">>pids"), "echo PASS: b");
    let reply = sh(&story, "hf-review run spec.md").expect_exit(111);
    assert_eq!(reply.get("SUM"), "reviewer gpt: the command timed out: killed after 2 seconds");
    let pids = fs::read_to_string(story.dir().join("pids")).unwrap();
    assert_eq!(pids.lines().filter(|pid| lives(pid.parse().unwrap())).count(), 0, "{pids}");
    assert_eq!(pids.lines().count(), 3);
    story.over();
}

#[test]
fn j15_a_reviewer_that_ends_leaves_nothing_behind() {
    // One that holds the pipe of the reply, and one that does not; and a reply that is complete before.
    let rest = "for n in 1 2; do setsid sh -c 'echo $$ >>pids; exec sleep 1000' & done; \
        (sh -c 'echo $$ >>pids; exec sleep 1000' >/dev/null 2>&1 &); while [ $(wc -l <pids) -lt 3 ]; do :; done";
    let story = reviewed(&format!("touch pids; echo PASS: a; {rest}"), "echo PASS: b");
    let reply = ok(&story, "hf-review run spec.md");
    assert_eq!((reply.get("STATUS"), reply.get("ROUND")), ("CONVERGED", "2/4"));
    assert_eq!(review(&story, "R-gpt-0001.md"), "PASS: a\n");
    let pids = fs::read_to_string(story.dir().join("pids")).unwrap();
    assert_eq!(pids.lines().filter(|pid| lives(pid.parse().unwrap())).count(), 0, "{pids}");
    assert_eq!(pids.lines().count(), 3);
    story.over();
}

#[test]
fn a_job_that_a_reviewer_fires_outlives_it() {
    let job = binary("job");
    let story =
        gated(&format!("{} --vault Vault fire -- sh -c 'read go <go' >/dev/null && echo PASS: a", job.display()));
    let mut go = story.gate("go");
    assert_eq!(ok(&story, "hf-review run spec.md").get("STATUS"), "CONVERGED");
    assert_eq!(ok(&story, "hf-job check T-0001").get("STATUS"), "RUNNING");
    go.open();
    assert_eq!(ok(&story, "hf-job wait T-0001").get("STATUS"), "DONE");
    story.over();
}

#[test]
fn j15_a_hook_whose_time_is_up_leaves_nothing_behind() {
    let hook = json!(RUNAWAYS.replace(">here", ">>../pids"));
    let story = TestJobVault::new(&format!("hooks:\n  timeout_seconds: 2\nwatchdog:\n  hooks:\n    on_beat: {hook}\n"));
    ok(&story, "hf-checkpoint hello");
    sh(&story, "hf-watchdog");
    let pids = fs::read_to_string(story.dir().join("pids")).unwrap();
    assert_eq!(pids.lines().filter(|pid| lives(pid.parse().unwrap())).count(), 0, "{pids}");
    assert_eq!(pids.lines().count(), 3);
    assert_eq!(count(&story, "HookFailed"), 1);
    story.over();
}
