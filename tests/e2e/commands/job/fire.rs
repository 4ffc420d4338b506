//! Firing a job: replies, refusals, and what its command is given.

use std::fs::{self};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, id, ok, sh, state};
use crate::support::test_vault::{Reply, write_private};

#[test]
fn an_empty_command_or_title_is_refused_in_plain_words() {
    let story = TestJobVault::new("");
    let before = story.contents();
    for (args, why) in [
        (&["fire", "--", ""][..], "the command after -- is empty"),
        (&["fire", "--title", " ", "--", "true"], "the title is empty"),
    ] {
        assert_eq!(story.refuses("job", args, 2).get("SUM"), why);
    }
    assert!(story.contents() == before);
    story.over();
}

#[test]
fn every_job_reply_is_complete() {
    let story = TestJobVault::new("");
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
        sh(&story, "hf-job wait T-0001 T-0002 --max 1s").expect_exit(1).masked(&story),
        "EXIT:1\nSTATUS:RUNNING\nNEXT:ACTION hf-job wait T-0001 T-0002 --max 1\nSUM:0 of 2 jobs ended, 0 failed\n\
         JOB:T-0001 RUNNING logs/L-0001.txt Unit tests\n\
         JOB:T-0002 QUEUED logs/L-0002.txt sh -c echo Tests failed; echo oops >&2; exit 4\n"
    );
    go.open();
    assert_eq!(
        sh(&story, "hf-job wait T-0001 T-0002").expect_exit(1).masked(&story),
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:exit 4: Tests failed (T-0002); 2 of 2 jobs ended, 1 failed\n\
         JOB:T-0001 DONE logs/L-0001.txt Unit tests\n\
         JOB:T-0002 FAIL logs/L-0002.txt sh -c echo Tests failed; echo oops >&2; exit 4\nLAST5:\noops\n"
    );
    assert_eq!(
        sh(&story, "hf-job check T-0002").expect_exit(1).masked(&story),
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:exit 4: Tests failed\nTASK_ID:T-0002\nRUN_ID:<ulid>\nSTATE:Aborted\n\
         LOGREF:logs/L-0002.txt\nLAST5:\noops\n"
    );
    assert_eq!(
        ok(&story, "hf-job wait T-0001").masked(&story),
        "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:1 of 1 job ended, 0 failed\n\
         JOB:T-0001 DONE logs/L-0001.txt Unit tests\n"
    );
    assert_eq!(ok(&story, "hf-job list --running").stdout, "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:0 jobs\nCOUNT:0\n");
    assert_eq!(ok(&story, "hf-job list --limit 1").all("JOB").len(), 1);
    story.over();
}

#[test]
fn bad_job_requests_are_refused_and_start_nothing() {
    let story = TestJobVault::new("");
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
fn a_command_that_cannot_start_fails_immediately_with_a_reason() {
    let story = TestJobVault::new("");
    story.run("job", &["fire", "--", "/nonexistent/tool"]).expect_exit(0);
    assert_eq!(
        story.poll("T-0001").stdout,
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:command not found: /nonexistent/tool\nLAST5:\n\
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
fn a_job_gets_its_arguments_folder_and_variables_but_no_input() {
    let story = TestJobVault::new("");
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
fn a_job_whose_folder_was_deleted_is_not_run_elsewhere() {
    let story = TestJobVault::new("");
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
fn leftovers_of_a_killed_fire_are_removed_by_the_next_fire() {
    let story = TestJobVault::new("");
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
fn a_job_can_do_an_existing_task() {
    let story = TestJobVault::new("");
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
fn firing_with_the_same_key_returns_the_same_job() {
    let story = TestJobVault::new("");
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
fn a_job_belongs_to_the_agent_that_fired_it() {
    let story = TestJobVault::new("");
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
