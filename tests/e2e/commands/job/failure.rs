//! The failure is in the reply: how the command ended, its last lines, and what its log lacks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{approved, count, ok, sh, state};
use crate::support::test_vault::{Reply, mask};

/// J6
#[test]
fn j6_the_last_lines_of_standard_output_are_shown_where_standard_error_has_none() {
    let story = TestJobVault::new("");
    let prints = "for n in 1 2 3 4 5 6; do echo failed $n; done";
    let block = |log: u32| {
        format!(
            "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:exit 3: failed 6\nLAST5:\nfailed 2\nfailed 3\nfailed 4\nfailed 5\n\
             failed 6\nLOGREF:logs/L-000{log}.txt\n"
        )
    };
    story.fire(&format!("{prints}; exit 3"));
    assert_eq!(story.poll("T-0001").stdout, block(1));
    // Blank lines are none.
    story.fire(&format!("{prints}; printf '\\n \\n' >&2; exit 3"));
    assert_eq!(story.poll("T-0002").stdout, block(2));
    for line in ["hf-job check T-0001", "hf-job wait T-0001"] {
        let reply = sh(&story, line).expect_exit(1);
        assert!(reply.stdout.ends_with("LAST5:\nfailed 2\nfailed 3\nfailed 4\nfailed 5\nfailed 6\n"), "{reply:#?}");
    }
    // One line of standard error counts for more.
    story.fire(&format!("{prints}; echo why >&2; exit 3"));
    assert!(story.poll("T-0003").stdout.contains("LAST5:\nwhy\nLOGREF:"));
    story.over();
}

#[test]
fn an_exit_record_of_an_older_version_is_read() {
    let story = TestJobVault::new("");
    let run = story.fire("echo one; echo Tests failed; exit 3").get("RUN_ID").to_owned();
    story.poll("T-0001");
    story.forge_record("T-0001", &format!("exit-{run}.json"), |record| record["last5"] = json!([]));
    assert!(story.poll("T-0001").stdout.contains("LAST5:\nTests failed\nLOGREF:"));
    story.over();
}

#[test]
fn the_fixer_gets_what_a_test_prints_to_standard_output() {
    let story = TestJobVault::new(
        "runner:\n  command: test $HF_ROUND = 2 || { echo broken; exit 5; }\nfixer:\n  command: cat >input\n",
    );
    approved(&story);
    ok(&story, "hf-state start Login");
    ok(&story, "hf-state go");
    assert_eq!(fs::read_to_string(story.dir().join("input")).unwrap(), "broken\n");
    story.over();
}

#[test]
fn the_exit_code_or_signal_begins_the_sentence_about_every_failure() {
    let story = TestJobVault::new("jobs:\n  on_finish: 'cat >>../told'\n  kill_grace: 1\n");
    let ends = [
        (&[][..], "echo Tests passed; exit 3", "exit 3: Tests passed"),
        (&[], "echo Tests passed; kill -9 $$", "signal 9: Tests passed"),
        (&[], "exit 3", "exit 3"),
        (&["--retries", "1"], "echo again; exit 75", "exit 75; gave up after 1 retry: again"),
        (&["--timeout", "1"], "echo Tests passed; sleep 1000", "timeout: Tests passed"),
    ];
    for (n, (options, script, sum)) in ends.into_iter().enumerate() {
        let name = format!("T-000{}", n + 1);
        story.fire_with(options, script);
        assert_eq!(story.poll(&name).get("SUM"), sum, "{script}");
        story.gone();
        assert_eq!(sh(&story, &format!("hf-job check {name}")).get("SUM"), sum);
        let waited = sh(&story, &format!("hf-job wait {name}")).expect_exit(1);
        assert_eq!(waited.get("SUM"), format!("{sum} ({name}); 1 of 1 job ended, 1 failed"));
        let told = fs::read_to_string(story.dir().join("told")).unwrap();
        assert!(told.contains(&format!("TASK_ID:{name}\nSTATUS:FAIL\nSUM:{sum}\n")), "{told}");
    }
    // The first that failed, of several.
    story.fire("echo fine");
    let waited = sh(&story, "hf-job wait T-0006 T-0001 T-0002").expect_exit(1);
    assert_eq!(waited.get("SUM"), "exit 3: Tests passed (T-0001); 3 of 3 jobs ended, 2 failed");
    story.over();
}

#[test]
fn a_mission_that_fails_says_how_first() {
    let story = TestJobVault::new("runner:\n  command: echo Tests failed; exit 3\n");
    approved(&story);
    ok(&story, "hf-state start Login");
    let reply = sh(&story, "hf-state go").expect_exit(1);
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("FAIL", "exit 3: Tests failed; round 1 failed"));
    assert!(reply.stdout.contains("LAST5:\nTests failed\n"), "{reply:#?}");
    story.over();
}

/// The replies about a job whose log lacks something.
#[track_caller]
fn says_so(story: &TestJobVault, gap: &str) {
    let fits = |reply: &Reply, sum: &str| assert!(mask(reply.get("SUM")).starts_with(sum), "{sum}\n{reply:#?}");
    let sum = format!("exit 3: end; {gap}");
    let reply = story.poll("T-0001");
    fits(&reply, &sum);
    assert_eq!(reply.stdout.lines().count(), 8, "no other key: {reply:#?}");
    fits(&sh(story, "hf-job check T-0001"), &sum);
    let waited = sh(story, "hf-job wait T-0001");
    fits(&waited, &sum);
    assert!(waited.get("SUM").ends_with(" (T-0001); 1 of 1 job ended, 1 failed"), "{waited:#?}");
    let log = sh(story, "hf-job log T-0001");
    assert!(log.stderr.contains(&format!("\nSUM:{sum}")), "{}", log.stderr);
    story.gone();
    let told = fs::read_to_string(story.dir().join("told")).unwrap();
    assert!(told.contains(&format!("\nSUM:{sum}")), "{told}");
}

/// J15
#[test]
fn j15_a_log_that_was_cut_to_its_size_is_said_to_be() {
    let story = TestJobVault::new("jobs:\n  log_max_bytes: 2000\n  on_finish: 'cat >>../told'\n");
    story.fire("head -c 5000 /dev/zero | tr '\\0' x; echo; echo end; exit 3");
    let line = "\n[hiveforge: 00000000000000000000 bytes were cut here]\n".len();
    let cut = 5005 - (2000 - line);
    story.poll("T-0001");
    let gap = format!("the log was cut: {cut} bytes missing");
    says_so(&story, &gap);
    // A success says so, too.
    story.fire("head -c 5000 /dev/zero | tr '\\0' x; echo; echo end");
    let done = story.poll("T-0002");
    assert_eq!(done.stdout, format!("EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:end; {gap}\n"));
    let waited = ok(&story, "hf-job wait T-0002");
    assert_eq!(waited.get("SUM"), "1 of 1 job ended, 0 failed; logs with missing output: T-0002");
    story.over();
}

/// J15: the supervisor inherits the limit, and a write past it fails as on a full disk.
#[test]
fn j15_a_log_that_could_not_be_written_is_said_to_be() {
    let story = TestJobVault::new("jobs:\n  on_finish: 'cat >>../told'\n");
    ok(&story, "hf-status");
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end; exit 3";
    let process = story.process("job");
    let mut limited = Command::new("prlimit");
    limited.arg("--fsize=1000000").arg(process.get_program()).args(["fire", "--", "sh", "-c", script]);
    limited.current_dir(story.dir()).env_clear().env("PATH", "/usr/bin:/bin");
    limited.envs(process.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Reply::of(limited.output().expect("prlimit runs")).expect_exit(0);
    story.poll("T-0001");
    says_so(&story, "the log is incomplete: 2000005 bytes missing; cannot write the log: File too large");
    story.over();
}

/// J9
#[test]
fn j9_a_lost_job_is_told_once_by_whoever_finds_it() {
    let finders: [fn(&TestJobVault) -> Reply; 4] = [
        |story| sh(story, "hf-watchdog"),
        |story| sh(story, "hf-poll T-0001 1 1"),
        |story| sh(story, "hf-job check T-0001"),
        |story| sh(story, "hf-job list"),
    ];
    for find in finders {
        let hook = |name: &str| format!("'cat >>../{name}; echo \"$HF_STATUS|$HF_EXIT_CODE\" >>../{name}'");
        let settings = format!("jobs:\n  on_finish: {}\nhooks:\n  on_done: {}\n", hook("finished"), hook("done"));
        let story = TestJobVault::new(&settings);
        let mut at = story.gate("at");
        let _go = story.gate("go");
        story.fire("echo here >at; read x <go");
        at.line();
        story.lose("T-0001");
        find(&story);
        story.gone();
        assert_eq!(state(&story, "T-0001"), "Aborted");
        let told = |name: &str| fs::read_to_string(story.dir().join(name)).unwrap_or_default();
        let expected =
            "TASK_ID:T-0001\nSTATUS:LOST\nSUM:Job was lost with its supervisor\nLOGREF:logs/L-0001.txt\nLOST|\n";
        assert_eq!(told("finished"), expected);
        assert_eq!(told("done").lines().filter(|line| line.starts_with("SUM:")).count(), 1);
        assert!(told("done").contains("(lost)\n"), "{}", told("done"));
        // Nobody tells it again.
        for line in ["hf-poll T-0001", "hf-job check T-0001", "hf-job list", "hf-watchdog", "hf-watchdog"] {
            sh(&story, line);
        }
        story.gone();
        assert_eq!(told("finished"), expected);
        assert_eq!(told("done").lines().filter(|line| line.starts_with("SUM:")).count(), 1);
        story.over();
    }
}

/// J9
#[test]
fn j9_only_the_lost_job_itself_is_told_as_lost() {
    let story = TestJobVault::new("jobs:\n  on_finish: 'cat >>../finished'\n");
    let mut at = story.gate("at");
    let mut go = story.gate("go");
    let told = || fs::read_to_string(story.dir().join("finished")).unwrap_or_default();
    // One that goes on with another supervisor is told when it ends.
    story.fire_with(&["--retries", "1"], "echo here >at; read x <go; echo well");
    at.line();
    story.lose("T-0001");
    ok(&story, "hf-job check T-0001");
    at.line();
    go.open();
    assert_eq!(story.poll("T-0001").get("SUM"), "well");
    story.gone();
    assert_eq!(told(), "TASK_ID:T-0001\nSTATUS:DONE\nSUM:well\nLOGREF:logs/L-0001-2.txt\n");
    // One that only waited for a lost one never ran.
    story.fire("echo here >at; read x <go");
    at.line();
    story.lose("T-0002");
    story.fires(&["--after", "T-0002"], "true").expect_exit(0);
    sh(&story, "hf-job check T-0002").expect_exit(1);
    story.gone();
    assert_eq!([2, 3].map(|n| state(&story, &format!("T-000{n}"))), ["Aborted", "Aborted"]);
    let lines: Vec<String> = told().lines().filter(|line| line.starts_with("TASK_ID:")).map(str::to_owned).collect();
    assert_eq!(lines, ["TASK_ID:T-0001", "TASK_ID:T-0002"]);
    story.over();
}

/// The end that a supervisor could not record is recorded by the next command, which also has the hook run.
#[test]
fn an_end_that_is_recorded_later_is_told_then() {
    let story = TestJobVault::new("jobs:\n  on_finish: 'cat >>../finished'\n");
    let mut at = story.gate("at");
    let mut go = story.gate("go");
    story.fire("echo here >at; read x <go; echo well");
    at.line();
    let good = story.damage();
    go.open();
    story.gone();
    story.mend(&good);
    assert!(!story.dir().join("finished").exists());
    // Whoever cannot record it can say it: a vault that others can write is not written to.
    let set_mode = |mode| fs::set_permissions(story.vault(), fs::Permissions::from_mode(mode)).unwrap();
    let recorded = story.events().len();
    set_mode(0o777);
    assert_eq!(story.poll("T-0001").stdout, "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:well\n");
    set_mode(0o700);
    assert_eq!(story.events().len(), recorded);
    assert_eq!(story.poll("T-0001").get("SUM"), "well");
    story.gone();
    let told = fs::read_to_string(story.dir().join("finished")).unwrap();
    assert_eq!(told, "TASK_ID:T-0001\nSTATUS:DONE\nSUM:well\nLOGREF:logs/L-0001.txt\n");
    story.over();
}

/// J19
#[test]
fn j19_the_words_of_a_caller_are_never_read_as_options_or_subcommands() {
    let story = TestJobVault::new("");
    let starts = |args: &[&str], name: &str, begin: &str| {
        let reply = story.run(name, args);
        assert!(reply.stdout.starts_with(begin), "{name} {args:?}: {reply:#?}");
    };
    starts(&["check", "log"], "job", "EXIT:6\nSTATUS:NOT_FOUND\n");
    starts(&["wait", "log"], "job", "EXIT:6\nSTATUS:NOT_FOUND\n");
    starts(&["fire", "--", "log", "x"], "job", "EXIT:0\nSTATUS:FIRED\n");
    starts(&["fire", "--", "echo", "--json"], "job", "EXIT:0\nSTATUS:FIRED\n");
    starts(&["--", "--json"], "checkpoint", "EXIT:0\nSTATUS:RECORDED\n");
    starts(&["note", "resume"], "branch", "EXIT:0\nSTATUS:RECORDED\n");
    starts(&["--", "--json"], "poll", "EXIT:99\nSTATUS:NOT_FOUND\n");
    story.poll("T-0001");
    assert_eq!(story.poll("T-0002").get("SUM"), "--json");
    assert_eq!(count(&story, "CheckpointRecorded"), 1);
    story.over();
}
