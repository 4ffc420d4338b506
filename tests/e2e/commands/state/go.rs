//! hf-state go: runs and fixes, round by round, until the mission is over.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;

use rustix::event::Timespec;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::json;

use crate::support::job_fixture::{TestJobVault, comes, kill, waiting};
use crate::support::steps::{approved, count, keeps_the_rules, ok};
use crate::support::test_vault::{Reply, mask};

use super::{beside_m1, m1, state};

/// Settings with a runner and a fixer; either can be left out.
fn commands(runner: &str, fixer: &str) -> String {
    let section = |name: &str, command: &str| match command {
        "" => String::new(),
        command => format!("{name}:\n  command: {}\n", json!(command)),
    };
    section("runner", runner) + &section("fixer", fixer)
}

/// A mission whose requirement is approved.
pub(super) fn mission(runner: &str, fixer: &str) -> TestJobVault {
    let story = TestJobVault::new(&commands(runner, fixer));
    approved(&story);
    state(&story, &["start", "Login"]);
    story
}

/// Lines that commands left in a file beside the vault.
fn lines(story: &TestJobVault, name: &str) -> Vec<String> {
    let text = fs::read_to_string(story.dir().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Fails, and says so, before the given round.
fn until(round: u32) -> String {
    format!(
        "echo $HF_ROUND >>ran; test $HF_ROUND -ge {round} && echo All tests passed && exit; echo broken $HF_ROUND >&2; exit 1"
    )
}

const FIX: &str = "read line; echo \"$HF_ROUND $line\" >>fixed";

#[test]
fn a_mission_completes_without_intervention() {
    let story = mission("echo \"$HF_MISSION|$HF_ROUND|$HF_GOAL|$PWD\" >>ran; echo All tests passed", "");
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:round 1: All tests passed\nM1_STATUS:PASS\nTASK_ID:T-0001\nROUND:1/4\n"
    );
    assert_eq!(
        mask(&m1(&story)),
        "STATUS: PASS\nGOAL: Login\nCONSTRAINTS:\nCURRENT:\n  TASK_ID: T-0001\n  LOGREF: L-0001\nOPEN_K: NONE\n\
         ROUND: 1/4\nLAST_ACTION: round 1: All tests passed\nNEXT_ACTION: NONE\n"
    );
    let ran = lines(&story, "ran");
    assert_eq!(
        ran.iter().map(|line| mask(line)).collect::<Vec<_>>(),
        [format!("M-0001|1|Login|{}", story.dir().display())]
    );
    let before = story.contents();
    let again = story.run("state", &["go"]).expect_exit(0);
    assert_eq!(again.stdout, reply.stdout, "and says so again");
    assert!(story.contents() == before);
    assert_eq!(lines(&story, "ran").len(), 1);
    story.over();
}

#[test]
fn a_failure_goes_to_the_fixer_and_the_work_is_rerun() {
    let story = mission(&until(3), FIX);
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:round 3: All tests passed\nM1_STATUS:PASS\nTASK_ID:T-0005\nROUND:3/4\n"
    );
    assert_eq!(lines(&story, "ran"), ["1", "2", "3"]);
    assert_eq!(lines(&story, "fixed"), ["1 broken 1", "2 broken 2"]);
    assert_eq!(count(&story, "MissionRoundBegun"), 3);
    story.over();
}

#[test]
fn the_fixer_gets_the_last_lines_the_task_and_the_log() {
    let fixer = "cat >input; printf '%s' \"$HF_LAST5\" >variable; echo \"$HF_FAILED_TASK $HF_GOAL\" >named; cat \"$HF_LOG\" >log";
    let runner = "test $HF_ROUND = 2 && exit; for n in 1 2 3 4 5 6; do echo e$n >&2; done; echo out; exit 1";
    let story = mission(runner, fixer);
    // From another folder, with the vault named by a relative path.
    fs::create_dir(story.dir().join("sub")).unwrap();
    let mut command = story.command("state");
    let reply =
        Reply::of(command.current_dir(story.dir().join("sub")).args(["go", "--vault", "../Vault"]).output().unwrap());
    reply.expect_exit(0);
    assert_eq!(lines(&story, "input"), ["e2", "e3", "e4", "e5", "e6"]);
    assert_eq!(lines(&story, "variable"), ["e2", "e3", "e4", "e5", "e6"]);
    assert_eq!(mask(&lines(&story, "named").join("\n")), "T-0001 Login");
    let log = lines(&story, "log");
    assert!(log.iter().any(|line| line.contains("e1")) && log.iter().any(|line| line.contains("out")), "{log:?}");
    story.over();
}

#[test]
fn run_output_reaches_the_fixer_as_bounded_data() {
    let runner = "test $HF_ROUND = 2 && exit; echo '$(touch pwned) `touch pwned` \"; touch pwned' >&2; \
                  head -c 10000000 /dev/zero | tr '\\0' x >&2; printf '\\n\\000\\377end\\n' >&2; exit 1";
    let story = mission(runner, "cat >input");
    story.run("state", &["go"]).expect_exit(0);
    assert!(!story.dir().join("pwned").exists());
    let input = fs::read(story.dir().join("input")).unwrap();
    assert!(input.starts_with(b"$(touch pwned) `touch pwned` \"; touch pwned\n"));
    assert!(input.len() < 10_000, "{}", input.len());
    story.over();
}

#[test]
fn without_a_fixer_a_failure_is_reported_for_someone_to_fix() {
    let story = mission(&until(2), "");
    let reply = story.run("state", &["go"]).expect_exit(1);
    let said = "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:exit 1; round 1 failed\nM1_STATUS:RUNNING\n\
                TASK_ID:T-0001\nROUND:1/4\nLAST5:\nbroken 1\nLOGREF:logs/L-0001.txt\n";
    assert_eq!(reply.masked(&story), said);
    let show = state(&story, &["show"]);
    assert_eq!((show.get("NEXT"), show.get("NEXT_ACTION")), ("PATCH", "fix it, then hf-state go"));
    assert_eq!(mask(show.get("LAST_ACTION")), "round 1: T-0001 failed: exit code 1");
    // Whoever says that a round has begun has said that it is mended.
    assert_eq!(state(&story, &["round"]).get("NEXT"), "ACTION hf-state go");
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("SUM"), "round 2: All tests passed");
    assert_eq!(lines(&story, "ran"), ["1", "2"]);
    story.over();
}

#[test]
fn a_failing_fixer_is_reported_with_its_output() {
    let story = mission(&until(2), "echo cannot mend; exit 3");
    let said = "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:exit 1; round 1 failed; the fixer failed: exit 3: cannot mend\n\
                M1_STATUS:RUNNING\nTASK_ID:T-0002\nROUND:1/4\nLAST5:\nbroken 1\nLOGREF:logs/L-0001.txt\n";
    assert_eq!(story.run("state", &["go"]).expect_exit(1).masked(&story), said);
    assert!(m1(&story).ends_with("\nNEXT_ACTION: fix it, then hf-state go\n"));
    story.run("state", &["go"]).expect_exit(0);
    assert_eq!(lines(&story, "ran"), ["1", "2"]);
    story.over();
}

#[test]
fn after_four_rounds_an_operator_is_asked_and_the_reply_can_be_repeated() {
    let story = mission(&until(9), FIX);
    let reply = story.run("state", &["go"]).expect_exit(3);
    assert_eq!(
        reply.masked(&story),
        "EXIT:3\nSTATUS:ROUND_LIMIT\nNEXT:ASK operator\nSUM:exit 1; round 4 failed\nM1_STATUS:FAIL\n\
         TASK_ID:T-0007\nROUND:4/4\nLAST5:\nbroken 4\nLOGREF:logs/L-0007.txt\n"
    );
    assert_eq!(lines(&story, "ran"), ["1", "2", "3", "4"]);
    assert_eq!(lines(&story, "fixed"), ["1 broken 1", "2 broken 2", "3 broken 3"]);
    let events = story.events().len();
    // A caller that was killed before reading it asks again.
    assert_eq!(story.run("state", &["go"]).expect_exit(3).stdout, reply.stdout);
    assert_eq!(story.events().len(), events);
    story.over();
}

#[test]
fn an_abandoned_mission_is_not_reported_as_out_of_rounds() {
    let story = mission("true", "");
    state(&story, &["fail", "not wanted any more"]);
    let reply = story.run("state", &["go"]).expect_exit(1);
    assert_eq!(
        reply.masked(&story),
        "EXIT:1\nSTATUS:FAIL\nNEXT:ASK operator\nSUM:not wanted any more\nM1_STATUS:FAIL\nTASK_ID:NONE\nROUND:0/4\n"
    );
    story.over();
}

#[test]
fn go_reports_what_is_missing_before_recording_anything() {
    let story = TestJobVault::new(&commands("true", ""));
    state(&story, &["start", "Login"]);
    let reply = story.refuses("state", &["go"], 3);
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("APPROVAL_REQUIRED", "ASK operator"));
    assert!(
        reply.get("SUM").ends_with("has no approved requirement; set one with hf-state set REQUIREMENT=REF"),
        "{reply:#?}"
    );
    ok(&story, "hf-require propose Login");
    ok(&story, "hf-state set REQUIREMENT=REQ-0001");
    ok(&story, "hf-require analyze REQ-0001 Easy.");
    let reply = story.refuses("state", &["go"], 3);
    assert!(reply.get("SUM").ends_with("requires approval by an operator (requirement_approval)"), "{reply:#?}");
    ok(&story, "hf-decide reject DEC-0001 --reason no");
    assert_eq!(story.refuses("state", &["go"], 3).get("STATUS"), "APPROVAL_REQUIRED");
    story.over();
    // Two that are approved: somebody has to say which.
    let story = TestJobVault::new(&commands("true", ""));
    story.approved("requirement:a", "A");
    story.approved("requirement:b", "B");
    state(&story, &["start", "Login"]);
    story.refuses("state", &["go"], 3);
    state(&story, &["set", "REQUIREMENT=REQ-0002"]);
    story.run("state", &["go"]).expect_exit(0);
    story.over();
    // No runner.
    let story = mission("", "");
    let reply = story.refuses("state", &["go"], 2);
    assert_eq!(reply.get("SUM"), "runner.command is not set");
    story.over();
}

#[test]
fn j10_j11_a_run_longer_than_one_call_is_waited_for_by_the_next_call() {
    let story = mission("echo $HF_ROUND >>ran; read x <go; echo over", "");
    let mut gate = story.gate("go");
    let reply = story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:RUNNING\nNEXT:ACTION hf-state go --max 1\nSUM:T-0001: Still running\nM1_STATUS:RUNNING\n\
         TASK_ID:T-0001\nROUND:1/4\n",
        "J10: the caller's limit is kept"
    );
    let show = state(&story, &["show"]);
    assert_eq!(
        (show.get("NEXT"), show.get("NEXT_ACTION")),
        ("ACTION hf-state go", "hf-state go"),
        "J11: not to hf-poll, whose PATCH would be the fixer's work"
    );
    // Told to end, it says the same and the run goes on.
    let child = waiting(&story, "state", &["go"]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let told = Reply::of(child.wait_with_output().unwrap());
    assert_eq!(told.masked(&story), reply.masked(&story).replace(" --max 1", ""));
    let events = story.events().len();
    let child = waiting(&story, "state", &["go"]);
    gate.open();
    let done = Reply::of(child.wait_with_output().unwrap()).expect_exit(0);
    assert_eq!(done.get("SUM"), "round 1: over");
    assert_eq!(lines(&story, "ran"), ["1"]);
    assert!(story.events().len() > events);
    story.over();
}

#[test]
fn two_concurrent_calls_do_everything_once() {
    let story = mission(&until(3), FIX);
    let replies = thread::scope(|scope| {
        let go = || scope.spawn(|| story.run("state", &["go"]));
        [go(), go(), go()].map(|go| go.join().unwrap())
    });
    for reply in replies {
        assert_eq!(reply.expect_exit(0).get("SUM"), "round 3: All tests passed");
    }
    assert_eq!(lines(&story, "ran"), ["1", "2", "3"]);
    assert_eq!(lines(&story, "fixed"), ["1 broken 1", "2 broken 2"]);
    assert_eq!((count(&story, "MissionRoundBegun"), count(&story, "MissionPassed")), (3, 1));
    story.over();
}

#[test]
fn j3_go_after_a_reported_failure_starts_the_next_round() {
    let story = mission("echo $HF_ROUND >>ran; test -e mended || { echo broken >&2; exit 1; }", "");
    for round in ["1/4", "2/4", "3/4"] {
        let reply = story.run("state", &["go"]).expect_exit(1);
        assert_eq!((reply.get("NEXT"), reply.get("ROUND")), ("PATCH", round));
        // Asking how things stand costs nothing.
        state(&story, &["show"]);
    }
    fs::write(story.dir().join("mended"), "").unwrap();
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("ROUND"), "4/4");
    assert_eq!(lines(&story, "ran"), ["1", "2", "3", "4"]);
    story.over();
}

#[test]
fn a_report_that_nobody_got_starts_no_round() {
    let story = mission(&until(2), "");
    for _ in 0..3 {
        // The reader of its reply is gone before there is one.
        let mut go = story.process("state");
        let mut child = go.arg("go").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        child.wait().unwrap();
        assert!(m1(&story).ends_with("\nNEXT_ACTION: hf-state go\n"), "{}", m1(&story));
    }
    assert_eq!((lines(&story, "ran"), count(&story, "MissionRoundBegun")), (vec!["1".to_owned()], 1));
    assert_eq!(story.run("state", &["go"]).expect_exit(1).get("NEXT"), "PATCH");
    story.run("state", &["go"]).expect_exit(0);
    story.over();
}

/// Starts `hf-state go`, kills it after so many milliseconds if it has not ended by then, and says
/// whether it had.
pub(super) fn go_for(story: &TestJobVault, millis: i64) -> Option<Reply> {
    let go: Child = story.process("state").arg("go").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&go);
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let time = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
    if !comes(&process, &time) {
        kill_process(pid, Signal::KILL).unwrap();
    }
    let output = go.wait_with_output().unwrap();
    output.status.code().map(|_| Reply::of(output))
}

#[test]
fn go_does_nothing_twice_when_killed_anywhere_and_restarted() {
    for first in [1, 4] {
        let story = mission(&until(3), FIX);
        let mut millis = first;
        let reply = loop {
            match go_for(&story, millis) {
                Some(reply) => break reply,
                None => millis += 3,
            }
        };
        assert_eq!(reply.expect_exit(0).get("SUM"), "round 3: All tests passed");
        assert_eq!(lines(&story, "ran"), ["1", "2", "3"]);
        assert_eq!(lines(&story, "fixed"), ["1 broken 1", "2 broken 2"]);
        assert_eq!((count(&story, "MissionRoundBegun"), count(&story, "MissionPassed")), (3, 1));
        assert_eq!(state(&story, &["show"]).get("M1_STATUS"), "PASS");
        assert_eq!(beside_m1(&story), Vec::<String>::new());
        // What a killed writer wrote beside its place may lie about; nothing else may.
        story.gone();
        keeps_the_rules(&story);
    }
}

#[test]
fn go_records_nothing_new_when_restarted_while_the_fixer_runs() {
    let story = mission(&until(2), "echo $HF_ROUND >>fixed; echo here >told; read x <go");
    let (mut told, mut gate) = (story.gate("told"), story.gate("go"));
    story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    assert_eq!(told.line(), "here");
    story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    let before = (m1(&story), count(&story, "MissionChanged"));
    assert!(before.0.contains("TASK_ID: T-0002\n"), "{}", before.0);
    for _ in 0..2 {
        story.run("state", &["go", "--max", "1s"]).expect_exit(0);
        assert_eq!((m1(&story), count(&story, "MissionChanged")), before);
    }
    gate.open();
    story.run("state", &["go"]).expect_exit(0);
    assert_eq!(
        (lines(&story, "ran"), lines(&story, "fixed")),
        (vec!["1".to_owned(), "2".to_owned()], vec!["1".to_owned()])
    );
    story.over();
}

#[test]
fn a_lost_run_is_restarted_in_the_next_round() {
    let story = mission("echo $HF_ROUND >>ran; test $HF_ROUND = 2 && exit; echo here >told; read x <go", FIX);
    let (mut told, _gate) = (story.gate("told"), story.gate("go"));
    let child = waiting(&story, "state", &["go"]);
    told.line();
    let [supervisor, _] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    let reply = Reply::of(child.wait_with_output().unwrap());
    let reply = match reply.get("STATUS") {
        // The command may outlive its supervisor for a moment.
        "RUNNING" => story.run("state", &["go"]),
        _ => reply,
    };
    assert_eq!(reply.expect_exit(0).get("ROUND"), "2/4");
    assert_eq!(lines(&story, "ran"), ["1", "2"]);
    assert_eq!(lines(&story, "fixed"), Vec::<String>::new(), "there was nothing to mend");
    story.over();
}

#[test]
fn a_destructive_runner_waits_for_an_operator_and_says_so_immediately() {
    let settings = commands("echo deploy $HF_ROUND >>ran", "echo fixed >>fixed")
        + "governance:\n  destructive_commands: ['sh -c *deploy*']\n";
    for approve in [true, false] {
        let story = TestJobVault::new(&settings);
        approved(&story);
        state(&story, &["start", "Login"]);
        // Without a limit of its own it would wait for minutes.
        let reply = story.run("state", &["go"]).expect_exit(3);
        assert_eq!(
            reply.masked(&story),
            "EXIT:3\nSTATUS:APPROVAL_REQUIRED\nNEXT:ASK operator\nSUM:T-0001: Waiting for an operator's approval\n\
             M1_STATUS:RUNNING\nTASK_ID:T-0001\nROUND:1/4\n"
        );
        assert_eq!(lines(&story, "ran"), Vec::<String>::new());
        if approve {
            ok(&story, "hf-decide approve DEC-0002");
            story.run("state", &["go"]).expect_exit(0);
            assert_eq!(lines(&story, "ran"), ["deploy 1"]);
        } else {
            ok(&story, "hf-decide reject DEC-0002 --reason no");
            let reply = story.run("state", &["go"]).expect_exit(1);
            assert_eq!(reply.get("SUM"), "DEC-0002 was rejected by user:jo: no; round 1 failed");
            assert_eq!((lines(&story, "ran").len(), lines(&story, "fixed").len()), (0, 0), "nobody mends a no");
        }
        story.over();
    }
}

#[test]
fn a_stop_ends_the_work_and_nothing_starts_until_it_is_lifted() {
    let story = mission("echo $HF_ROUND >>ran; test $HF_ROUND = 2 && exit; echo here >told; read x <go", FIX);
    let (mut told, _gate) = (story.gate("told"), story.gate("go"));
    let child = waiting(&story, "state", &["go"]);
    told.line();
    ok(&story, "hf-stop fire");
    let reply = Reply::of(child.wait_with_output().unwrap()).expect_exit(3);
    assert_eq!(
        reply.stdout,
        "EXIT:3\nSTATUS:STOPPED\nNEXT:ASK operator\nSUM:everything is stopped: fire\nREASON:system_stopped\n\
         STANDING:stopped 2026-01-31T12:00:00Z - by=user:jo fire\n"
    );
    story.gone();
    story.refuses("state", &["go"], 3);
    assert_eq!((lines(&story, "ran").len(), lines(&story, "fixed").len()), (1, 0));
    assert_eq!(state(&story, &["show"]).get("ROUND"), "1/4");
    ok(&story, "hf-resume --system");
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("ROUND"), "2/4");
    assert_eq!((lines(&story, "ran"), lines(&story, "fixed").len()), (vec!["1".to_owned(), "2".to_owned()], 0));
    story.over();
}

/// T6: the work of a mission is refused like any other job, before anything of the round is recorded.
#[test]
fn t6_no_round_begins_in_a_paused_project() {
    let story = mission("exit 0", "");
    ok(&story, "hf-pause look");
    let refused = story.refuses("state", &["go"], 3);
    assert_eq!((refused.get("REASON"), refused.get("NEXT")), ("project_paused", "ASK operator"));
    assert_eq!(state(&story, &["show"]).get("ROUND"), "0/4");
    ok(&story, "hf-resume");
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("ROUND"), "1/4");
    story.over();
}

#[test]
fn a_cancelled_run_is_not_sent_to_the_fixer() {
    let story = mission("echo $HF_ROUND >>ran; echo here >told; read x <go", FIX);
    let (mut told, _gate) = (story.gate("told"), story.gate("go"));
    let child = waiting(&story, "state", &["go"]);
    told.line();
    ok(&story, "hf-job cancel T-0001");
    let reply = Reply::of(child.wait_with_output().unwrap()).expect_exit(1);
    assert_eq!(
        (reply.get("STATUS"), reply.get("NEXT"), reply.get("SUM")),
        ("FAIL", "ASK operator", "cancelled; round 1 failed")
    );
    assert_eq!(lines(&story, "fixed"), Vec::<String>::new());
    story.over();
}

#[test]
fn a_mission_that_ended_during_a_wait_is_not_confused_with_the_next() {
    for script in ["echo here >told; read x <go", "echo here >told; read x <go; exit 1"] {
        let story = mission(script, "");
        let (mut told, mut gate) = (story.gate("told"), story.gate("go"));
        let child = waiting(&story, "state", &["go"]);
        told.line();
        state(&story, &["fail", "given up"]);
        state(&story, &["start", "Another"]);
        let other = m1(&story);
        gate.open();
        let reply = Reply::of(child.wait_with_output().unwrap()).expect_exit(1);
        assert_eq!((reply.get("M1_STATUS"), reply.get("SUM")), ("FAIL", "given up"), "{reply:#?}");
        assert_eq!(m1(&story), other, "the other one is as it was");
        story.over();
    }
}

#[test]
fn a_round_does_not_start_while_the_previous_run_is_active() {
    let story = mission("read x <go", "");
    let mut go = story.gate("go");
    assert_eq!(story.run("state", &["go", "--max", "1s"]).expect_exit(0).get("STATUS"), "RUNNING");
    let refused = story.run("state", &["round"]).expect_exit(3);
    assert_eq!(
        (refused.get("REASON"), refused.get("SUM")),
        ("not_ready", "T-0001 is Running: the previous round has not ended",)
    );
    go.open();
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("STATUS"), "DONE");
    story.over();
}

#[test]
fn j11_a_poll_leaves_the_failure_of_a_step_to_the_fixer() {
    let story = mission("read x <go; echo run $HF_ROUND >>ran; test $HF_ROUND -ge 2", "echo fix $HF_ROUND >>ran");
    let mut gate = story.gate("go");
    // Killed during its run: M1.md names the task, and the agent polls it.
    story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    gate.open();
    let failed = story.poll("T-0001");
    assert_eq!((failed.get("STATUS"), failed.get("NEXT")), ("FAIL", "ACTION hf-state go"));
    assert_eq!(story.run("job", &["check", "T-0001"]).expect_exit(1).get("NEXT"), "ACTION hf-state go");
    assert_eq!(story.run("job", &["wait", "T-0001"]).expect_exit(1).get("NEXT"), "ACTION hf-state go");
    let child = waiting(&story, "state", &["go"]);
    gate.open();
    assert_eq!(Reply::of(child.wait_with_output().unwrap()).expect_exit(0).get("STATUS"), "DONE");
    assert_eq!(lines(&story, "ran"), ["run 1", "fix 1", "run 2"]);
    story.over();
}

#[test]
fn j11_a_poll_leaves_to_its_caller_what_nobody_else_repairs() {
    // Without a fixer, and go was killed before it could report: the poll does, once, so the next call takes it for fixed.
    let story = mission("read x <go; echo run $HF_ROUND >>ran; test $HF_ROUND -ge 2", "");
    let mut gate = story.gate("go");
    story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    gate.open();
    ok(&story, "hf-watchdog");
    assert_eq!(story.poll("T-0001").get("NEXT"), "PATCH");
    assert!(m1(&story).ends_with("\nNEXT_ACTION: fix it, then hf-state go\n"), "{}", m1(&story));
    let child = waiting(&story, "state", &["go"]);
    gate.open();
    assert_eq!(Reply::of(child.wait_with_output().unwrap()).expect_exit(0).get("STATUS"), "DONE");
    assert_eq!(lines(&story, "ran"), ["run 1", "run 2"]);
    story.over();
    // After the fixer failed, and that was reported.
    let story = mission("exit 1", "exit 3");
    story.run("state", &["go"]).expect_exit(1);
    assert_eq!(story.poll("T-0001").get("NEXT"), "PATCH");
    // In the next round, the failure is history.
    state(&story, &["round"]);
    assert_eq!(story.poll("T-0001").get("NEXT"), "ACTION hf-state go");
    story.over();
}
