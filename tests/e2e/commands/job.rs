//! hf-job: commands that outlive their caller, and what becomes of them.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use crate::support::job_fixture::{Story, ends, kill, lives, waiting};
use crate::support::steps::{count, id, kinds, kinds_since, ok, sh, state};
use crate::support::test_vault::{Reply, write_private};

#[test]
fn every_reply_about_a_job_is_whole() {
    let story = Story::new("");
    let mut go = story.gate("go");
    assert_eq!(
        story.fire_with(&["--title", "Unit tests"], "read x <go; echo tested").masked(&story),
        "EXIT:0\nSTATUS:FIRED\nNEXT:ACTION hf-poll T-0001\nSUM:T-0001 is Running: Unit tests\n\
         TASK_ID:T-0001\nRUN_ID:<ulid>\nLOGREF:logs/L-0001.txt\n"
    );
    assert_eq!(
        ok(&story, "hf-job check T-0001").masked(&story),
        "EXIT:0\nSTATUS:RUNNING\nNEXT:ACTION hf-poll T-0001\nSUM:Still running\nTASK_ID:T-0001\nRUN_ID:<ulid>\n\
         STATE:Running\nLOGREF:logs/L-0001.txt\n"
    );
    story.fire_with(&["--after", "T-0001"], "echo Tests failed; echo oops >&2; exit 4");
    assert_eq!(
        ok(&story, "hf-job list").masked(&story),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:2 jobs\nCOUNT:2\n\
         JOB:T-0002 QUEUED logs/L-0002.txt sh -c echo Tests failed; echo oops >&2; exit 4\n\
         JOB:T-0001 RUNNING logs/L-0001.txt Unit tests\n"
    );
    assert_eq!(
        ok(&story, "hf-job wait T-0001 T-0002 --max 1s").masked(&story),
        "EXIT:0\nSTATUS:RUNNING\nNEXT:ACTION hf-job wait T-0001 T-0002\nSUM:0 of 2 jobs are over, 0 failed\n\
         JOB:T-0001 RUNNING logs/L-0001.txt Unit tests\n\
         JOB:T-0002 QUEUED logs/L-0002.txt sh -c echo Tests failed; echo oops >&2; exit 4\n"
    );
    go.open();
    assert_eq!(
        sh(&story, "hf-job wait T-0001 T-0002").expect_exit(1).masked(&story),
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:2 of 2 jobs are over, 1 failed\n\
         JOB:T-0001 DONE logs/L-0001.txt Unit tests\n\
         JOB:T-0002 FAIL logs/L-0002.txt sh -c echo Tests failed; echo oops >&2; exit 4\n"
    );
    assert_eq!(
        sh(&story, "hf-job check T-0002").expect_exit(1).masked(&story),
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:Tests failed\nTASK_ID:T-0002\nRUN_ID:<ulid>\nSTATE:Aborted\n\
         LOGREF:logs/L-0002.txt\nLAST5:\noops\n"
    );
    assert_eq!(
        ok(&story, "hf-job wait T-0001").masked(&story),
        "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:1 of 1 jobs are over, 0 failed\n\
         JOB:T-0001 DONE logs/L-0001.txt Unit tests\n"
    );
    assert_eq!(ok(&story, "hf-job list --running").stdout, "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:0 jobs\nCOUNT:0\n");
    assert_eq!(ok(&story, "hf-job list --limit 1").all("JOB").len(), 1);
    story.over();
}

#[test]
fn what_is_asked_for_wrongly_is_refused_and_nothing_begins() {
    let story = Story::new("");
    ok(&story, "hf-require propose Login");
    for (line, code) in [
        ("hf-job fire", 2),
        ("hf-job fire --", 2),
        ("hf-job fire --cwd /nonexistent -- true", 2),
        ("hf-job fire --timeout 0 -- true", 2),
        ("hf-job fire --timeout soon -- true", 2),
        ("hf-job fire --env X -- true", 2),
        ("hf-job fire --env =x -- true", 2),
        ("hf-job fire --heartbeat never -- true", 2),
        ("hf-job fire --retries -1 -- true", 2),
        ("hf-job fire --after T-0009 -- true", 6),
        ("hf-job fire --after REQ-0001 -- true", 2),
        ("hf-job fire --task T-0009 -- true", 6),
        ("hf-job fire --task REQ-0001 -- true", 2),
        ("hf-job check T-0009", 6),
        ("hf-job check REQ-0001", 2),
        ("hf-job cancel T-0009", 6),
        ("hf-job wait T-0009", 6),
        ("hf-job wait", 2),
        ("hf-job log T-0009", 6),
        ("hf-job list --limit 0", 2),
        ("hf-job list --limit 501", 2),
        ("hf-job supervise T-0001", 6),
    ] {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        story.refuses("job", &words, code);
    }
    assert_eq!((count(&story, "TaskProposed"), ok(&story, "hf-job list").get("COUNT")), (0, "0"));
    story.over();
}

#[test]
fn a_command_that_cannot_start_fails_at_once_and_says_why() {
    let story = Story::new("");
    story.run("job", &["fire", "--", "/nonexistent/tool"]).expect_exit(0);
    assert_eq!(
        story.poll("T-0001").stdout,
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:the command /nonexistent/tool does not exist\nLAST5:\n\
         LOGREF:logs/L-0001.txt\n"
    );
    // A folder that was there when the job was fired.
    let folder = story.dir().join("gone");
    fs::create_dir(&folder).unwrap();
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire_with(&["--cwd", "gone", "--after", "T-0002"], "true");
    fs::remove_dir(&folder).unwrap();
    go.open();
    let sum = story.poll("T-0003").get("SUM").to_owned();
    assert!(sum.contains("gone"), "{sum}");
    // A file where the logs should be.
    fs::rename(story.vault().join("Autonomous"), story.dir().join("Autonomous")).unwrap();
    write_private(&story.vault().join("Autonomous"), b"");
    story.fire("touch ran");
    let reply = story.poll("T-0004");
    assert_eq!(reply.get("STATUS"), "FAIL");
    assert!(reply.get("SUM").contains("Autonomous"), "{reply:#?}");
    assert!(!story.dir().join("ran").exists());
    fs::remove_file(story.vault().join("Autonomous")).unwrap();
    fs::rename(story.dir().join("Autonomous"), story.vault().join("Autonomous")).unwrap();
    story.over();
}

#[test]
fn a_job_gets_its_words_its_folder_and_its_variables_and_nothing_to_read() {
    let story = Story::new("");
    fs::create_dir(story.dir().join("below")).unwrap();
    let script = "pwd; echo \"$A|$B|$1|$2\"; cat; env | grep -c '^HF_RUN_ID='; ls -l /proc/self/fd | grep -c lock";
    let options = ["fire", "--cwd", "below", "--env", "A=a b", "--env", "B=x=y", "--"];
    story.run("job", &[&options[..], &["sh", "-c", script, "sh", "one two", ""]].concat()).expect_exit(0);
    story.poll("T-0001");
    let below = story.dir().join("below").canonicalize().unwrap();
    let log = String::from_utf8(story.log("logs/L-0001.txt")).unwrap();
    assert_eq!(log, format!("{}\na b|x=y|one two|\n1\n0\n", below.display()));
    story.over();
}

#[test]
fn a_job_whose_folder_has_no_name_any_more_is_not_run_in_another() {
    let story = Story::new("");
    let gone = story.dir().join("gone");
    fs::create_dir(&gone).unwrap();
    let script = "rmdir ../gone; \"$0\" fire --vault \"$1\" -- pwd";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(crate::support::test_vault::binary("job")).arg(story.vault()).current_dir(&gone);
    let reply = crate::support::test_vault::Reply::of(shell.env("USER", "jo").output().unwrap());
    assert_eq!(reply.expect_exit(111).get("STATUS"), "SYSTEM_ERROR");
    assert_eq!(story.events().len(), 1);
}

#[test]
fn what_a_fire_left_that_was_killed_is_removed_by_the_next_one() {
    let story = Story::new("");
    ok(&story, "hf-job fire -- true");
    story.poll("T-0001");
    let jobs = story.vault().join("Jobs");
    let recorded = fs::read_dir(&jobs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let recorded = recorded.collect::<Vec<_>>().remove(0);
    let firing = story.akashic("firing");
    let dead = "01KG9YS7G0WRTVCH7P9FWWHB94";
    fs::create_dir(jobs.join(dead)).unwrap();
    fs::write(jobs.join(dead).join("lock"), "").unwrap();
    fs::write(jobs.join(dead).join(".spec.json.tmp"), "half").unwrap();
    for name in [dead, &recorded] {
        write_private(&firing.join(name), b"");
    }
    ok(&story, "hf-job fire -- true");
    story.poll("T-0002");
    assert!(!jobs.join(dead).exists());
    assert!(jobs.join(&recorded).exists());
    assert_eq!(fs::read_dir(firing).unwrap().count(), 0);
    story.over();
}

#[test]
fn jobs_run_in_their_order_and_never_more_than_may() {
    let story = Story::new("jobs:\n  max_parallel: 2\n");
    let mut at = story.gate("at");
    let mut go = story.gate("go");
    for n in 1..=5 {
        let options: &[&str] = &[];
        story.fire_with(options, &format!("echo {n} >at; read x <go"));
    }
    let mut first = [at.line(), at.line()];
    first.sort();
    assert_eq!(first, ["1", "2"]);
    let standing = |story: &Story| {
        let reply = ok(story, "hf-job list");
        let words = reply.all("JOB").into_iter().map(|job| job.split(' ').nth(1).unwrap().to_owned());
        // Which of those that wait for the gate gets through is up to the kernel.
        let mut words: Vec<String> = words.collect();
        words.sort();
        words.join(" ")
    };
    assert_eq!(standing(&story), "QUEUED QUEUED QUEUED RUNNING RUNNING");
    for next in ["3", "4", "5"] {
        go.open();
        assert_eq!(at.line(), next, "first fired, first begun");
    }
    assert_eq!(standing(&story), "DONE DONE DONE RUNNING RUNNING");
    go.open();
    go.open();
    ok(&story, "hf-job wait T-0001 T-0002 T-0003 T-0004 T-0005");
    story.over();
}

#[test]
fn a_wait_for_any_is_over_with_the_first_and_says_how_to_go_on() {
    let story = Story::new("");
    let (mut one, mut two) = (story.gate("one"), story.gate("two"));
    story.fire("read x <one");
    story.fire("read x <two; exit 1");
    assert_eq!(
        ok(&story, "hf-job wait T-0001 T-0002 --any --max 1s").get("NEXT"),
        "ACTION hf-job wait --any T-0001 T-0002"
    );
    one.open();
    let reply = ok(&story, "hf-job wait T-0001 T-0002 --any");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "1 of 2 jobs are over, 0 failed"));
    two.open();
    sh(&story, "hf-job wait T-0001 T-0002 --any");
    assert_eq!(story.poll("T-0002").get("STATUS"), "FAIL");
    story.over();
}

#[test]
fn a_job_after_another_begins_with_its_success_and_not_with_its_failure() {
    let story = Story::new("");
    let mut go = story.gate("go");
    story.fire("read x <go; echo one >>order");
    story.fire_with(&["--after", "T-0001"], "echo two >>order");
    story.fire_with(&["--after", "T-0001", "--after", "T-0002"], "echo three >>order");
    go.open();
    assert_eq!(story.poll("T-0003").get("STATUS"), "DONE");
    assert_eq!(fs::read_to_string(story.dir().join("order")).unwrap(), "one\ntwo\nthree\n");
    story.fire("exit 1");
    story.fire_with(&["--after", "T-0004"], "touch ran");
    assert_eq!(story.poll("T-0004").get("STATUS"), "FAIL");
    // Fired before the other failed, or after: it will never be run, and its caller need not wait.
    story.fire_with(&["--after", "T-0004"], "touch ran");
    for job in ["T-0005", "T-0006"] {
        let reply = story.poll(job);
        assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("FAIL", "T-0004, which it waited for, was aborted"));
    }
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_task_that_exists_can_be_done_by_a_job() {
    let story = Story::new("");
    ok(&story, "hf-task propose Form");
    let reply = story.fire_with(&["--task", "T-0001"], "echo formed");
    assert_eq!((reply.get("TASK_ID"), reply.get("LOGREF")), ("T-0001", "logs/L-0001.txt"));
    assert_eq!(story.poll("T-0001").get("SUM"), "formed");
    assert_eq!((state(&story, "T-0001").as_str(), count(&story, "TaskProposed")), ("Succeeded", 1));
    // One that is done, and one that somebody else is at, cannot.
    assert_eq!(story.fires(&["--task", "T-0001"], "true").expect_exit(3).get("REASON"), "illegal_transition");
    ok(&story, "hf-task propose Other");
    ok(&story, "hf-task claim T-0002 --actor agent:a");
    assert_eq!(story.fires(&["--task", "T-0002"], "true").code, Some(3));
    assert_eq!(state(&story, "T-0002"), "Assigned");
    story.over();
}

#[test]
fn a_destructive_command_waits_for_a_person_and_runs_once_it_is_allowed() {
    let story = Story::new("governance:\n  destructive_commands: [\"rm *\", \"git push*\"]\n");
    fs::write(story.dir().join("precious"), "").unwrap();
    let reply = story.run("job", &["fire", "--key", "rm", "--", "/bin/rm", "precious"]).expect_exit(3);
    assert_eq!(
        reply.masked(&story),
        "EXIT:3\nSTATUS:APPROVAL_REQUIRED\nNEXT:ASK operator\nSUM:T-0001 is Proposed: /bin/rm precious\n\
         TASK_ID:T-0001\nRUN_ID:<ulid>\nLOGREF:logs/L-0001.txt\n\
         ENTITY:decision:<ulid> DEC-0001@<tag> Requested Allow the destructive T-0001, /bin/rm precious?\n"
    );
    // Who asks again is not told to poll for what only a person can let go on.
    let again = story.run("job", &["fire", "--key", "rm", "--", "/bin/rm", "precious"]).expect_exit(0);
    assert_eq!((again.get("STATUS"), again.get("NEXT")), ("DUPLICATE", "ASK operator"));
    assert_eq!(story.run("poll", &["T-0001", "1", "1"]).get("STATUS"), "RUNNING");
    assert_eq!(sh(&story, "hf-decide approve DEC-0001 --actor agent:a").get("REASON"), "operator_only");
    assert!(story.dir().join("precious").exists());
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert!(!story.dir().join("precious").exists());
    let again = story.run("job", &["fire", "--key", "rm", "--", "/bin/rm", "precious"]).expect_exit(0);
    assert_eq!((again.get("STATUS"), again.get("NEXT")), ("DUPLICATE", "ACTION hf-poll T-0001"));
    // A shell in front of it makes no difference.
    let shell = story.run("job", &["fire", "--", "sh", "-c", " rm precious"]).expect_exit(3);
    assert_eq!(shell.get("STATUS"), "APPROVAL_REQUIRED");
    ok(&story, "hf-decide reject DEC-0002 --reason No");
    assert_eq!(story.poll("T-0002").get("STATUS"), "FAIL");
    // And no.
    assert_eq!(story.fires(&["--destructive"], "touch ran").expect_exit(3).get("STATUS"), "APPROVAL_REQUIRED");
    ok(&story, "hf-decide reject DEC-0003 --reason No");
    let reply = story.poll("T-0003");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("FAIL", "an operator said no"));
    assert!(!story.dir().join("ran").exists());
    // A destructive command cannot be slipped under a task that was allowed something else.
    ok(&story, "hf-task propose Plain");
    let reply = story.run("job", &["fire", "--task", "T-0004", "--", "rm", "x"]).expect_exit(3);
    assert_eq!(reply.get("REASON"), "approval_required");
    story.over();
}

/// Lets another supervisor have a job that waits, as `fire` does: the lock is its standard input.
fn supervise_anew(story: &Story, reference: &str) -> Child {
    let task = id(story, "task", reference);
    let [(supervisor, _)] = story.processes().try_into().expect("one supervisor");
    kill(supervisor, Signal::KILL);
    let lock = File::options().read(true).write(true).open(story.job(reference).join("lock")).unwrap();
    lock.lock().unwrap();
    let vault = story.vault().display().to_string();
    let mut next = story.process("job");
    next.args(["supervise", &task, "--vault", &vault]).stdin(lock).stdout(Stdio::null());
    next.spawn().unwrap()
}

#[test]
fn what_was_not_allowed_does_not_run_in_place_of_what_was() {
    let not_recorded = "the command of T-0001 is not the one that was recorded";
    for (name, value, status, sum) in [
        ("timeout", json!(null), "DONE", "Job finished"),
        ("argv", json!(["sh", "-c", "touch other"]), "FAIL", not_recorded),
        ("cwd", json!("/"), "FAIL", not_recorded),
        ("env", json!([["OUT", "other"]]), "FAIL", not_recorded),
    ] {
        let story = Story::new("");
        story.fires(&["--destructive", "--env", "OUT=allowed"], "touch $OUT").expect_exit(3);
        story.forge_record("T-0001", "spec.json", |spec| spec[name] = value);
        let mut supervisor = supervise_anew(&story, "T-0001");
        ok(&story, "hf-decide approve DEC-0001");
        let reply = story.poll("T-0001");
        assert!(supervisor.wait().unwrap().success());
        assert_eq!((reply.get("STATUS"), reply.get("SUM")), (status, sum), "{name}");
        assert!(!story.dir().join("other").exists());
        assert_eq!(story.dir().join("allowed").exists(), status == "DONE");
        story.over();
    }
}

#[test]
fn the_same_key_is_the_same_job() {
    let story = Story::new("");
    let mut go = story.gate("go");
    let script = "echo x >>ran; read x <go";
    let first = story.fire_with(&["--key", "k"], script);
    let again = story.fires(&["--key", "k"], script).expect_exit(0);
    assert_eq!(again.get("STATUS"), "DUPLICATE");
    for key in ["TASK_ID", "RUN_ID", "LOGREF", "NEXT"] {
        assert_eq!(again.get(key), first.get(key));
    }
    let other = story.fires(&["--key", "k"], "true").expect_exit(3);
    assert_eq!(other.get("REASON"), "key_conflict");
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(story.fires(&["--key", "k"], script).expect_exit(0).get("STATUS"), "DUPLICATE");
    story.gone();
    assert_eq!(fs::read_to_string(story.dir().join("ran")).unwrap(), "x\n");
    assert_eq!(fs::read_dir(story.vault().join("Jobs")).unwrap().count(), 1);
    story.over();
}

#[test]
fn a_job_whose_time_is_up_is_ended_with_all_it_started() {
    let story = Story::new("");
    let before = kinds(&story).len();
    story.fire_with(&["--timeout", "1s"], "sleep 1000 & sleep 1000");
    let reply = story.poll("T-0001");
    assert_eq!(reply.get("STATUS"), "FAIL");
    assert!(reply.get("SUM").starts_with("timeout"), "{reply:#?}");
    assert!(kinds_since(&story, before).contains(&"RunTimedOut".to_owned()));
    story.over();
}

#[test]
fn a_failure_that_may_pass_is_tried_again_as_another_run_of_the_same_task() {
    let story = Story::new("jobs:\n  transient_exit_codes: [75, 76]\n  transient_signals: [10]\n");
    let script = "echo try >>tries; case $(wc -l <tries) in 1) exit 76;; 2) kill -10 $$;; 3) echo third time;; esac";
    story.fire_with(&["--retries", "2"], script);
    let reply = story.poll("T-0001");
    assert_eq!(
        reply.stdout,
        "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:third time\nLOGREF:logs/L-0001-3.txt\n",
        "{:#?}",
        kinds(&story)
    );
    let logs = ["logs/L-0001.txt", "logs/L-0001-2.txt", "logs/L-0001-3.txt"];
    assert_eq!(logs.map(|log| story.log(log).len()), [0, 0, 11]);
    assert_eq!(
        ["RunStarted", "RunFinished", "RunCrashed", "TaskRetrying"].map(|kind| count(&story, kind)),
        [3, 2, 1, 2]
    );
    // Past its tries it has failed, and without tries at the first.
    story.fire_with(&["--retries", "1"], "exit 75");
    assert_eq!(story.poll("T-0002").get("STATUS"), "FAIL");
    assert_eq!(story.poll("T-0002").get("LOGREF"), "logs/L-0002-2.txt");
    story.fire("exit 75");
    assert_eq!(story.poll("T-0003").get("LOGREF"), "logs/L-0003.txt");
    // What is not listed is never tried again.
    story.fire_with(&["--retries", "5"], "exit 1");
    story.fire_with(&["--retries", "5"], "kill -9 $$");
    assert_eq!(story.poll("T-0004").get("SUM"), "exit code 1");
    assert_eq!(story.poll("T-0005").get("STATUS"), "FAIL");
    assert_eq!(count(&story, "RunStarted"), 3 + 2 + 1 + 1 + 1);
    story.over();
}

#[test]
fn a_cancelled_job_is_ended_with_all_it_started_whatever_it_is_at() {
    let story = Story::new("jobs:\n  max_parallel: 1\n  kill_grace: 1\n");
    let mut at = story.gate("at");
    story.fire("sleep 1000 & echo up >at; sleep 1000");
    story.fire("touch ran");
    at.line();
    assert_eq!(
        ok(&story, "hf-job cancel T-0002").masked(&story),
        "EXIT:0\nSTATUS:CANCELLED\nNEXT:NONE\nSUM:cancelled\nTASK_ID:T-0002\nSTATE:Aborted\nLOGREF:logs/L-0002.txt\n"
    );
    assert_eq!(sh(&story, "hf-job cancel T-0001 --actor agent:other").expect_exit(3).get("REASON"), "not_holder");
    assert_eq!(
        ok(&story, "hf-job cancel T-0001").masked(&story),
        "EXIT:0\nSTATUS:CANCELLED\nNEXT:NONE\nSUM:cancelled\nTASK_ID:T-0001\nRUN_ID:<ulid>\nSTATE:Aborted\n\
         LOGREF:logs/L-0001.txt\n"
    );
    story.gone();
    assert!(!story.dir().join("ran").exists());
    assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "DUPLICATE");
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    story.fire("true");
    story.poll("T-0003");
    assert_eq!(ok(&story, "hf-job cancel T-0003").get("STATUS"), "DUPLICATE");
    assert_eq!(state(&story, "T-0003"), "Succeeded");
    // One that does not listen.
    story.fire("trap '' TERM; echo up >at; while :; do sleep 1000; done");
    at.line();
    assert_eq!(ok(&story, "hf-job cancel T-0004").get("STATUS"), "CANCELLED");
    story.over();
}

#[test]
fn a_stop_ends_every_job_and_says_that_nothing_is_left() {
    let story = Story::new("jobs:\n  kill_grace: 1\n  max_parallel: 2\n");
    let mut at = story.gate("at");
    story.fire("sleep 1000 & echo up >at; wait");
    story.fire("trap '' TERM; echo up >at; while :; do sleep 1000; done");
    story.fire("touch ran");
    at.line();
    at.line();
    assert_eq!(
        ok(&story, "hf-stop fire").stdout,
        "EXIT:0\nSTATUS:STOPPED\nNEXT:ASK operator\nSUM:everything is stopped: fire\nDRAINED:yes\n"
    );
    assert!(["T-0001", "T-0002"].iter().all(|job| !lives(story.pids(job)[1])));
    assert_eq!([1, 2].map(|n| story.poll(&format!("T-000{n}")).get("SUM").to_owned()), ["emergency_stop"; 2]);
    // What waited waits on, also for what is fired now, and begins when a person says so.
    story.fire("touch fired_later");
    assert_eq!(story.run("poll", &["T-0003", "1", "1"]).get("STATUS"), "RUNNING");
    assert!(!story.dir().join("ran").exists());
    ok(&story, "hf-resume --system");
    ok(&story, "hf-job wait T-0003 T-0004");
    assert!(story.dir().join("ran").exists() && story.dir().join("fired_later").exists());
    story.over();
}

#[test]
fn a_stop_reaches_a_job_although_the_log_cannot_be_written() {
    let story = Story::new("");
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    at.line();
    let command = story.pids("T-0001")[1];
    let good = story.damage();
    let reply = sh(&story, "hf-stop fire");
    assert_eq!((reply.get("STATUS"), reply.get("DRAINED")), ("STOPPED_UNRECORDED", "yes"), "{reply:#?}");
    assert!(!lives(command));
    story.gone();
    story.mend(&good);
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    assert_eq!(["EmergencyStopIssued", "RunCrashed", "TaskAborted"].map(|kind| count(&story, kind)), [1, 1, 1]);
    story.over();
}

#[test]
fn an_end_that_could_not_be_recorded_is_made_up_for_by_whoever_looks_next() {
    for (script, said) in [("echo all is well", "all is well"), ("echo not well; exit 1", "not well")] {
        for look in ["poll", "check", "list"] {
            let story = Story::new("");
            let (mut at, mut go) = (story.gate("at"), story.gate("go"));
            story.fire(&format!("echo up >at; read x <go; {script}"));
            at.line();
            let good = story.damage();
            go.open();
            story.gone();
            story.mend(&good);
            assert_eq!(count(&story, "RunFinished"), 0);
            let reply = match look {
                "poll" => story.poll("T-0001"),
                "check" => sh(&story, "hf-job check T-0001"),
                _ => {
                    ok(&story, "hf-job list");
                    story.poll("T-0001")
                }
            };
            assert_eq!(reply.get("SUM"), said, "{look}");
            assert_eq!(count(&story, "RunFinished"), 1, "{look}");
            story.poll("T-0001");
            assert_eq!(count(&story, "RunFinished"), 1, "once");
            story.over();
        }
    }
}

#[test]
fn a_retry_that_nobody_is_there_to_begin_is_lost_and_not_waited_for() {
    let story = Story::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire_with(&["--retries", "3"], "echo up >at; read x <go; exit 75");
    at.line();
    let good = story.damage();
    go.open();
    story.gone();
    story.mend(&good);
    // The first look makes up for the end, and whoever looks then finds nobody.
    ok(&story, "hf-job list");
    let reply = story.run("poll", &["T-0001", "1", "2"]);
    assert_eq!((reply.get("EXIT"), reply.get("STATUS")), ("1", "FAIL"), "{:#?}", kinds(&story));
    story.over();
}

#[test]
fn a_supervisor_that_was_killed_leaves_an_orphan_that_is_never_run_twice_and_can_be_ended() {
    let story = Story::new("jobs:\n  kill_grace: 1\n");
    let mut at = story.gate("at");
    // The command gets TERM when its supervisor dies, and ignores it.
    story.fire_with(&["--retries", "3"], "trap '' TERM; echo up >>ran; echo up >at; while :; do sleep 1000; done");
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    assert!(lives(command));
    assert_eq!(
        ok(&story, "hf-job check T-0001").masked(&story),
        "EXIT:0\nSTATUS:ORPHANED\nNEXT:ACTION hf-poll T-0001\nSUM:Still running, without its supervisor\n\
         TASK_ID:T-0001\nRUN_ID:<ulid>\nSTATE:Running\nLOGREF:logs/L-0001.txt\n"
    );
    let reply = story.run("poll", &["T-0001", "1", "1"]);
    assert_eq!((reply.get("EXIT"), reply.get("STATUS"), reply.get("NEXT")), ("2", "RUNNING", "ACTION hf-poll T-0001"));
    assert_eq!(count(&story, "RunStarted"), 1);
    assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "CANCELLED");
    assert!(!lives(command));
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    assert_eq!(fs::read_to_string(story.dir().join("ran")).unwrap(), "up\n");
    story.over();
}

#[test]
fn an_orphan_is_waited_for_and_its_end_is_a_loss() {
    let story = Story::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("trap '' TERM; echo up >at; read x <go");
    at.line();
    kill(story.pids("T-0001")[0], Signal::KILL);
    // A wait does not come back before its time while the command lives.
    let waiter = waiting(&story, "job", &["wait", "T-0001"]);
    let poller = waiting(&story, "poll", &["T-0001"]);
    go.open();
    for child in [waiter, poller] {
        let reply = Reply::of(child.wait_with_output().unwrap());
        assert_eq!((reply.get("EXIT"), reply.get("STATUS")), ("1", "FAIL"), "{reply:#?}");
    }
    assert_eq!(story.of_kind("RunCrashed")[0]["payload"]["reason"], "lost");
    story.over();
}

#[test]
fn a_job_of_which_nothing_is_left_is_lost() {
    let story = Story::new("");
    let mut at = story.gate("at");
    story.fire_with(&["--retries", "3"], "echo up >at; sleep 1000");
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    // The supervisor first, held while its command is killed, so that it sees no end.
    kill_process_group(Pid::from_raw(supervisor).unwrap(), Signal::STOP).unwrap();
    kill_process_group(Pid::from_raw(command).unwrap(), Signal::KILL).unwrap();
    kill(supervisor, Signal::KILL);
    story.gone();
    assert_eq!(
        story.poll("T-0001").stdout,
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:Job was lost with its supervisor\nLAST5:\nLOGREF:logs/L-0001.txt\n"
    );
    assert_eq!(sh(&story, "hf-job check T-0001").get("STATUS"), "LOST");
    assert_eq!((count(&story, "RunCrashed"), count(&story, "RunStarted")), (1, 1));
    assert_eq!(story.of_kind("RunCrashed")[0]["actor"], "core:jobs");
    story.over();
}

#[test]
fn a_job_of_another_boot_is_lost_whoever_has_its_number_now() {
    let story = Story::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("trap '' TERM; echo up >at; read x <go");
    at.line();
    kill(story.pids("T-0001")[0], Signal::KILL);
    // As if the machine had been started anew, and another process had its number.
    story.forge_record("T-0001", "identity.json", |identity| identity["boot_id"] = json!("another"));
    assert_eq!(story.poll("T-0001").get("SUM"), "Job was lost with its supervisor");
    assert_eq!((count(&story, "RunCrashed"), state(&story, "T-0001").as_str()), (1, "Aborted"));
    go.open();
    story.over();
}

#[test]
fn a_job_that_waits_when_its_supervisor_is_killed_is_lost_too() {
    let story = Story::new("jobs:\n  max_parallel: 1\n");
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire("touch ran");
    let task = id(&story, "task", "T-0002");
    let words = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let supervises = |pid: i32| words(pid).windows(task.len()).any(|part| part == task.as_bytes());
    let (supervisor, _) = story.processes().into_iter().find(|(pid, _)| supervises(*pid)).unwrap();
    kill(supervisor, Signal::KILL);
    let reply = story.poll("T-0002");
    assert_eq!((reply.get("EXIT"), reply.get("SUM")), ("1", "Job was lost with its supervisor"));
    go.open();
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_hook_gets_the_report_and_what_it_needs_to_know() {
    let story = Story::new("");
    let out = story.dir().join("told").display().to_string();
    let hook = "{ cat; echo \"$HF_TASK_ID|$HF_STATUS|$HF_EXIT_CODE|$HF_LOG\"; cat \"$HF_LOG\"; } >>";
    story.settle(&format!("jobs:\n  on_finish: '{hook}{out}'\n"));
    story.fire("echo All tests passed");
    story.poll("T-0001");
    story.gone();
    let vault = story.vault().canonicalize().unwrap().display().to_string();
    let told = |story: &Story| {
        let text = fs::read_to_string(&out).unwrap().replace(&vault, "<vault>");
        fs::remove_file(&out).unwrap();
        crate::support::test_vault::mask(&text.replace(&story.vault().display().to_string(), "<vault>"))
    };
    assert_eq!(
        told(&story),
        "TASK_ID:T-0001\nSTATUS:DONE\nSUM:All tests passed\nLOGREF:logs/L-0001.txt\n\
         T-0001|DONE|0|<vault>/Autonomous/logs/L-0001.txt\nAll tests passed\n"
    );
    // Once, with the last of several tries.
    story.fire_with(&["--retries", "1"], "exit 75");
    story.poll("T-0002");
    story.gone();
    assert_eq!(
        told(&story),
        "TASK_ID:T-0002\nSTATUS:FAIL\nSUM:exit code 75\nLOGREF:logs/L-0002-2.txt\n\
         T-0002|FAIL|75|<vault>/Autonomous/logs/L-0002-2.txt\n"
    );
    assert_eq!(count(&story, "HookFailed"), 0);
    story.over();
}

#[test]
fn a_hook_that_fails_or_hangs_is_recorded_and_changes_nothing_else() {
    let story = Story::new("hooks:\n  timeout_seconds: 1\njobs:\n  on_finish: 'echo no such channel >&2; exit 3'\n");
    story.fire("echo ok");
    assert_eq!(story.poll("T-0001").get("SUM"), "ok");
    story.gone();
    let failed = story.of_kind("HookFailed");
    assert_eq!(
        failed[0]["payload"],
        json!({"hook": "jobs.on_finish", "reason": "the hook exited with 3: no such channel"})
    );
    story.settle("hooks:\n  timeout_seconds: 1\njobs:\n  on_finish: 'sleep 1000 & sleep 1000'\n");
    story.fire("echo ok");
    // Nobody waits for a hook.
    assert_eq!(story.poll("T-0002").get("SUM"), "ok");
    story.gone();
    assert_eq!(story.of_kind("HookFailed").len(), 2);
    assert_eq!([1, 2].map(|n| state(&story, &format!("T-000{n}"))), ["Succeeded", "Succeeded"]);
    story.over();
}

#[test]
fn a_log_is_handed_on_whole_in_part_and_as_it_grows() {
    let story = Story::new("");
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
fn a_log_past_its_size_keeps_both_ends_and_says_what_is_missing() {
    let story = Story::new("jobs:\n  log_max_bytes: 4096\n");
    story.fire("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last");
    assert_eq!(story.poll("T-0001").get("SUM"), "last");
    let log = String::from_utf8(story.log("logs/L-0001.txt")).unwrap();
    assert_eq!(log.len(), 4096);
    assert!(log.starts_with("first\nxxx") && log.ends_with("xxx\nlast\n"), "{log}");
    let cut = log.split_once("\n[hiveforge: ").unwrap().1.split_once(" bytes were cut here]\n").unwrap().0;
    let line = "\n[hiveforge: 00000000000000000000 bytes were cut here]\n".len();
    assert_eq!(cut.parse::<usize>().unwrap(), 6 + 1_000_000 + 1 + 5 - (4096 - line));
    story.over();
}

#[test]
fn a_million_lines_make_no_more_heartbeats_than_time_does() {
    let story = Story::new("governance:\n  heartbeat_interval_seconds: 1\n");
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
fn silence_makes_no_heartbeat_where_output_counts() {
    let story = Story::new("governance:\n  heartbeat_interval_seconds: 1\n");
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

/// Runs a script of a shell in which our commands are found; its output is read to the end.
fn shell(story: &Story, script: &str) -> Reply {
    let commands = crate::support::test_vault::binary("job");
    let path = format!("{}:/usr/bin:/bin", commands.parent().unwrap().display());
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(story.dir()).env_clear().env("PATH", path).env("USER", "jo");
    bash.env("HF_NOW", crate::support::test_vault::START).stdin(Stdio::null());
    Reply::of(bash.output().unwrap())
}

#[test]
fn firing_returns_at_once_whatever_descriptors_its_caller_left_open() {
    let story = Story::new("");
    // If one of them stayed open in the job, reading this to its end would take a thousand seconds.
    let mut at = story.gate("at");
    let script = "exec 9>&1 8>&2 7>leak; x=$(hf-job fire -- sh -c 'echo up >at; exec sleep 1000'); echo \"$x\"";
    let reply = shell(&story, script);
    assert_eq!((reply.code, reply.get("STATUS")), (Some(0), "FIRED"));
    at.line();
    let holds = |pid: i32, name: &str| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok()).any(|path| path.ends_with(name))
    };
    let [supervisor, command] = story.pids("T-0001");
    assert!([supervisor, command].iter().all(|pid| !holds(*pid, "leak")));
    assert!(!holds(command, "Akashic/.lock") && !holds(command, "lock"), "a job holds no lock but its own");
    assert!(holds(command, "alive"));
    ok(&story, "hf-job cancel T-0001");
    story.over();
}

#[test]
fn a_job_goes_on_when_its_caller_and_all_around_it_are_told_to_end() {
    let story = Story::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    let commands = crate::support::test_vault::binary("job").parent().unwrap().display().to_string();
    // `setsid` makes the shell a group of its own, as a terminal does.
    let script = "hf-job fire -- sh -c 'echo up >at; read x <go; echo survived' >fired; echo fired >at; sleep 1000";
    let mut caller = Command::new("setsid");
    caller
        .args(["bash", "-c", script])
        .current_dir(story.dir())
        .env_clear()
        .env("PATH", format!("{commands}:/usr/bin:/bin"));
    let mut caller = caller.env("USER", "jo").env("HF_NOW", crate::support::test_vault::START).spawn().unwrap();
    let mut lines = [at.line(), at.line()];
    lines.sort();
    assert_eq!(lines, ["fired", "up"]);
    let group = Pid::from_raw(caller.id() as i32).unwrap();
    for signal in [Signal::HUP, Signal::TERM, Signal::INT, Signal::KILL] {
        let _ = kill_process_group(group, signal);
    }
    caller.wait().unwrap();
    go.open();
    assert_eq!(story.poll("T-0001").get("SUM"), "survived");
    story.over();
}

#[test]
fn a_hundred_jobs_fired_from_a_loop_all_run_to_their_end_and_leave_nothing() {
    let story = Story::new("");
    let reply =
        shell(&story, "for n in $(seq 100); do hf-job fire --lock-timeout 60 -- sh -c \"echo job $n\" & done; wait");
    assert_eq!(reply.all("STATUS"), ["FIRED"; 100]);
    let names: Vec<String> = (1..=100).map(|n| format!("T-{n:04}")).collect();
    let words: Vec<&str> = ["wait"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let reply = story.run("job", &words).expect_exit(0);
    assert_eq!(reply.get("SUM"), "100 of 100 jobs are over, 0 failed");
    story.gone();
    let mut printed: Vec<String> =
        (1..=100).map(|n| String::from_utf8(story.log(&format!("logs/L-{n:04}.txt"))).unwrap()).collect();
    printed.sort();
    printed.dedup();
    assert_eq!(printed.len(), 100, "each has a log of its own");
    assert_eq!(["RunStarted", "RunFinished", "TaskSucceeded"].map(|kind| count(&story, kind)), [100; 3]);
    for folder in fs::read_dir(story.vault().join("Jobs")).unwrap() {
        let files = fs::read_dir(folder.unwrap().path()).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.retain(|name| !name.starts_with("exit-"));
        assert_eq!(names, ["alive", "control", "identity.json", "lock", "spec.json"]);
    }
    assert!(File::open(story.akashic(".lock")).unwrap().try_lock().is_ok(), "nobody holds the vault");
    story.over();
}

#[test]
fn a_cancelled_job_is_gone_although_the_log_cannot_be_written() {
    let story = Story::new("");
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    at.line();
    let good = story.damage();
    assert_eq!(sh(&story, "hf-job cancel T-0001").expect_exit(4).get("STATUS"), "CORRUPT");
    story.gone();
    story.mend(&good);
    let reply = story.poll("T-0001");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("FAIL", "cancelled"));
    assert_eq!(story.of_kind("TaskAborted")[0]["actor"], "core:jobs");
    story.over();
}

#[test]
fn a_supervisor_that_is_told_to_end_ends_its_job_first_and_records_it() {
    let story = Story::new("jobs:\n  max_parallel: 1\n");
    let mut at = story.gate("at");
    story.fire_with(&["--retries", "3"], "echo up >at; sleep 1000");
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    kill(supervisor, Signal::TERM);
    assert!(!lives(command));
    let reply = story.poll("T-0001");
    assert_eq!((reply.get("STATUS"), count(&story, "RunCrashed"), count(&story, "RunStarted")), ("FAIL", 1, 1));
    story.over();
}

#[test]
fn a_stop_ends_an_orphan_too() {
    let story = Story::new("jobs:\n  kill_grace: 1\n");
    let mut at = story.gate("at");
    story.fire("trap '' TERM; echo up >at; while :; do sleep 1000; done");
    at.line();
    let [supervisor, command] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    assert_eq!(ok(&story, "hf-stop fire").get("DRAINED"), "yes");
    assert!(!lives(command));
    assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
    story.over();
}

#[test]
fn a_task_that_is_no_job_can_be_waited_for_as_well() {
    let story = Story::new("");
    crate::support::steps::running(&story, "agent:a");
    assert_eq!(story.run("poll", &["T-0001", "1", "1"]).get("STATUS"), "RUNNING");
    let waiters = [waiting(&story, "poll", &["T-0001"]), waiting(&story, "job", &["wait", "T-0001"])];
    ok(&story, "hf-task succeed T-0001 --actor agent:a");
    for waiter in waiters {
        assert_eq!(Reply::of(waiter.wait_with_output().unwrap()).get("STATUS"), "DONE");
    }
    assert_eq!(sh(&story, "hf-job cancel T-0001").get("STATUS"), "DUPLICATE");
    story.over();
}

#[test]
fn what_an_agent_fires_is_its_own() {
    let story = Story::new("");
    let mut go = story.gate("go");
    let mut command = story.command("job");
    command.env("HF_AGENT", "builder").args(["fire", "--", "sh", "-c", "read x <go; echo \"$HF_TASK_ID\""]);
    Reply::of(command.output().unwrap()).expect_exit(0);
    assert!(ok(&story, "hf-task show T-0001").all("FACT").contains(&"holder agent:builder"));
    sh(&story, "hf-job cancel T-0001 --actor agent:other").expect_exit(3);
    go.open();
    assert_eq!(story.poll("T-0001").get("SUM"), id(&story, "task", "T-0001"));
    for kind in ["TaskProposed", "TaskAssigned", "RunStarted", "RunFinished", "TaskSucceeded"] {
        assert_eq!(story.of_kind(kind)[0]["actor"], "agent:builder", "{kind}");
    }
    story.over();
}

#[test]
fn a_hook_that_is_not_the_users_own_is_never_run() {
    let story = Story::new("jobs:\n  on_finish: 'touch ../hooked'\n");
    // Anybody could have written this.
    let config = story.vault().join("hiveforge.config.yaml");
    fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    story.fires(&[], "echo ok");
    story.gone();
    assert!(!story.dir().join("hooked").exists());
    fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    story.fire("echo ok");
    story.gone();
    assert!(story.dir().join("hooked").exists());
    story.over();
}

#[test]
fn following_a_job_that_waits_for_its_turn_waits_with_it() {
    let story = Story::new("jobs:\n  max_parallel: 1\n");
    let mut go = story.gate("go");
    story.fire("read x <go");
    story.fire("echo my turn");
    let mut following = story.start("job", &["log", "T-0002", "--follow"]);
    go.open();
    assert_eq!(following.line(), "my turn\n");
    drop(following);
    story.poll("T-0002");
    story.over();
}

#[test]
fn a_job_whose_task_is_given_up_does_not_run_on() {
    let story = Story::new("");
    let mut begun = story.gate("begun");
    story.fire("echo yes >begun; sleep 1000");
    begun.line();
    ok(&story, "hf-task abort T-0001 --reason No");
    assert_eq!(story.poll("T-0001").get("SUM"), "No");
    story.gone();
    story.over();
}

#[test]
fn a_job_that_its_vault_has_lost_ends_with_all_that_it_started() {
    let lose: [fn(&Story); 3] = [
        |story| fs::remove_dir_all(story.vault()).unwrap(),
        |story| fs::remove_dir_all(story.vault().join("Jobs")).unwrap(),
        |story| fs::rename(story.job("T-0001"), story.dir().join("away")).unwrap(),
    ];
    for lose in lose {
        let story = Story::new("");
        let mut at = story.gate("at");
        story.fire("sleep 1000 & echo up >at; wait");
        at.line();
        let all = story.processes();
        assert_eq!(all.len(), 3, "its supervisor, its shell and what that started");
        lose(&story);
        for (pid, process) in all {
            ends(pid, &process);
        }
    }
}

#[test]
fn a_job_that_waits_in_a_vault_that_is_half_deleted_waits_no_longer() {
    let lose: [fn(&Story); 3] = [
        // As a deletion leaves it that met a file which came in between.
        |story| {
            fs::remove_dir_all(story.vault().join("Jobs")).unwrap();
            fs::remove_dir_all(story.akashic("events")).unwrap();
            fs::remove_file(story.head()).unwrap();
        },
        |story| {
            fs::remove_dir_all(story.akashic("events")).unwrap();
            fs::remove_file(story.head()).unwrap();
            // So that it looks at once.
            fs::write(story.akashic("new"), "").unwrap();
        },
        |story| fs::rename(story.vault().join("Akashic"), story.dir().join("away")).unwrap(),
    ];
    for lose in lose {
        let story = Story::new("");
        story.fires(&["--destructive"], "touch ran").expect_exit(3);
        let [(pid, supervisor)] = story.processes().try_into().expect("one supervisor");
        lose(&story);
        ends(pid, &supervisor);
    }
}

#[test]
fn what_becomes_of_a_job_whose_folder_is_deleted_is_recorded() {
    let story = Story::new("");
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    story.fire_with(&["--after", "T-0001"], "touch ran");
    at.line();
    fs::remove_dir_all(story.vault().join("Jobs")).unwrap();
    story.gone();
    let lost = "its folder in the vault is gone";
    assert_eq!(story.of_kind("RunCrashed")[0]["payload"]["reason"], lost);
    assert_eq!([1, 2].map(|n| state(&story, &format!("T-000{n}"))), ["Aborted"; 2]);
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_job_goes_on_in_a_vault_that_is_moved() {
    let story = Story::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("echo up >at; read x <go; echo done");
    at.line();
    let all = story.processes();
    let job = story.job("T-0001");
    let moved = story.dir().join("Moved");
    fs::rename(story.vault(), &moved).unwrap();
    // So that it looks at once.
    fs::write(moved.join(job.strip_prefix(story.vault()).unwrap()).join("word"), "").unwrap();
    go.open();
    for (pid, process) in all {
        ends(pid, &process);
    }
    let reply = story.run("job", &["check", "T-0001", "--vault", moved.to_str().unwrap()]).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "done"));
}
