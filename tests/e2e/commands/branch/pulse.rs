//! The pulse, the working memory, and messages that interrupt.

use std::fs;

use serde_json::{Value, json};

use crate::support::steps::{keeps_the_rules, kinds, kinds_since, ok};
use crate::support::test_vault::{Reply, TestVault};

use super::{active, by, does, threads, written};

#[test]
fn the_working_memory_lists_the_ten_newest_open_branches() {
    let mut hive = written();
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    does(&hive, "ann", &["complete"]);
    let reply = does(&hive, "ann", &["list", "--working"]);
    assert_eq!(
        crate::support::test_vault::mask(&reply.stdout),
        "{\"branches\":[{\"branch_id\":\"<ulid>\",\"branch_type\":\"free\",\"brief_state\":\"Chapter 1 is done\",\
         \"label\":\"The song of the stars\",\"last_activity\":\"2026-01-31T12:10:00Z\",\"ref\":\"BR-0002\",\"status\":\"suspended\"},\
         {\"branch_id\":\"ann\",\"branch_type\":\"user\",\"brief_state\":\"\",\"label\":\"the user\",\
         \"last_activity\":\"2026-01-31T12:00:00Z\",\"ref\":\"BR-0001\",\"status\":\"active\"}],\
         \"situation_snapshot\":{\"active_branch\":\"BR-0001\",\"at\":\"2026-01-31T12:10:00Z\",\"obstacle\":null,\
         \"persona_id\":\"ann\",\"tasks\":[],\"unread\":0}}\n"
    );
    for n in 0..12 {
        hive.at(&format!("2026-01-31T13:{n:02}:00Z"));
        does(&hive, "ann", &["create", &format!("walk {n}"), "--type", "free", "--abort"]);
    }
    let reply = does(&hive, "ann", &["list", "--working"]);
    let memory: Value = serde_json::from_str(&reply.stdout).unwrap();
    let labels: Vec<&str> =
        memory["branches"].as_array().unwrap().iter().map(|b| b["label"].as_str().unwrap()).collect();
    let newest: Vec<String> = (2..12).rev().map(|n| format!("walk {n}")).collect();
    assert_eq!(labels, newest);
}

#[test]
fn the_pulse_says_react_then_resume_then_create_or_wait() {
    let mut hive = TestVault::new();
    let decided = |hive: &TestVault| does(hive, "ann", &["decide"]);
    assert_eq!(
        decided(&hive).stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:nothing is waiting for you\nCHOICE:CREATE\nCHOICE:WAIT\n\
         BECAUSE:CREATE: something new\nBECAUSE:WAIT: nothing has to be done now\n"
    );
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    does(&hive, "ann", &["suspend", "--summary", "Half way"]);
    hive.at("2026-01-31T12:01:00Z");
    does(&hive, "ann", &["create", "Tea", "--type", "free"]);
    does(&hive, "ann", &["suspend", "--summary", "Hot"]);
    hive.at("2026-01-31T13:00:00Z");
    assert_eq!(
        decided(&hive).stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:2 branches suspended\nACTIVE:BR-0001 user Active 2026-01-31T12:00:00Z the user\n\
         CHOICE:RESUME\nCHOICE:CREATE\nCHOICE:WAIT\nBECAUSE:RESUME: 2 branches suspended\n\
         BECAUSE:CREATE: something new\nBECAUSE:WAIT: nothing has to be done now\n\
         CANDIDATE:BR-0002 free 3600 A walk state=Half way\nCANDIDATE:BR-0003 free 3540 Tea state=Hot\n"
    );
    hive.run("branch", &["tell", "ann", "Are you there?"]).expect_exit(0);
    let reply = decided(&hive);
    assert_eq!(
        reply.stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-branch inbox --unread --agent ann\nSUM:1 unread message\n\
         ACTIVE:BR-0001 user Active 2026-01-31T13:00:00Z the user\nCHOICE:REACT\nCHOICE:RESUME\n\
         CHOICE:CREATE\nBECAUSE:REACT: 1 unread message\nBECAUSE:RESUME: 2 branches suspended\nBECAUSE:CREATE: something new\n\
         UNREAD:1\nMESSAGE:MSG-0001 Unread 2026-01-31T13:00:00Z user:jo Are you there?\n\
         CANDIDATE:BR-0002 free 3600 A walk state=Half way\nCANDIDATE:BR-0003 free 3540 Tea state=Hot\n\
         ADVICE:hf-branch note --branch BR-0001 TEXT\n"
    );
    let inbox = hive.run_next(&reply).expect_exit(0);
    assert_eq!(
        inbox.stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-branch read --agent ann\nSUM:1 message, 1 unread\nCOUNT:1\nHAS_MORE:no\nUNREAD:1\n\
         MESSAGE:MSG-0001 Unread 2026-01-31T13:00:00Z user:jo Are you there?\n\
         ADVICE:hf-branch note --branch BR-0001 TEXT\n"
    );
    let read = hive.run_next(&inbox).expect_exit(0);
    assert_eq!(
        read.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:MSG-0001 is Read: Are you there?\nEVENT_ID:<ulid>\nSUBJECT:message:<ulid>\n\
         REF:MSG-0001@<tag>\nSTATE:Read\nADVICE:hf-branch note --branch BR-0001 TEXT\nUNREAD:0\nMESSAGE:MSG-0001 Read 2026-01-31T13:00:00Z user:jo Are you there?\n"
    );
    assert_eq!(decided(&hive).all("CHOICE"), ["RESUME", "CREATE", "WAIT"]);
    // What was read is still there for who looks back, and gone from what is new.
    assert_eq!(does(&hive, "ann", &["inbox"]).all("MESSAGE").len(), 1);
    assert_eq!(does(&hive, "ann", &["inbox", "--unread"]).all("MESSAGE").len(), 0);
    assert_eq!(does(&hive, "ann", &["read"]).get("SUM"), "no unread messages");
    assert_eq!(does(&hive, "ann", &["read", "MSG-0001"]).get("STATUS"), "DUPLICATE");
}

#[test]
fn a_users_message_interrupts_the_next_call_of_any_kind() {
    let hive = written();
    does(&hive, "ann", &["resume", "BR-0002"]);
    hive.run("branch", &["tell", "ann", "Come here"]).expect_exit(0);
    // Not by itself: an agent that is at work is not torn away in the middle of a step.
    assert_eq!(active(&hive, "ann"), "BR-0002");
    let before = kinds(&hive).len();
    hive.run("checkpoint", &["--agent", "ann", "Writing"]).expect_exit(0);
    assert_eq!(kinds_since(&hive, before), ["CheckpointRecorded", "ThreadAborted"]);
    assert_eq!(active(&hive, "ann"), "BR-0001");
    assert_eq!(threads(&hive, "BR-0002"), ["Completed", "Aborted"]);
    // What happened meanwhile is in the root's context.
    let told = does(&hive, "ann", &["resume", "ann"]).stdout;
    assert_eq!(
        told,
        "# You\n  You are agent:ann; it is 2026-01-31T12:10:00Z\n# On your other branches\n\
         \x20 BR-0002 The song of the stars, Suspended 2026-01-31T12:10:00Z: Chapter 1 is done\n\
         # Now: BR-0001 the user, user, thread 1 since 2026-01-31T12:00:00Z\n  2026-01-31T12:10:00Z user:jo: Come here\n\
         # How to go on\n  Answer the user: hf-branch note --branch BR-0001 TEXT\n  Look back: hf-branch recall BR-0001\n"
    );
    // It interrupts once; then the choice is the persona's again.
    does(&hive, "ann", &["resume", "BR-0002"]);
    does(&hive, "ann", &["note", "On with it"]);
    assert_eq!(active(&hive, "ann"), "BR-0002");
    keeps_the_rules(&hive);
}

#[test]
fn switching_branches_reports_unread_messages_first() {
    let hive = written();
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    hive.run("branch", &["tell", "ann", "Come here"]).expect_exit(0);
    let reply = by(&hive, "ann", &["resume", "BR-0002", "--abort"]);
    assert_eq!((reply.code, reply.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        reply.stderr,
        "EXIT:1\nSTATUS:INTERRUPTED\nNEXT:ACTION hf-branch inbox --unread --agent ann\n\
         SUM:interrupted by a message: left BR-0003; the root is active\nINTERRUPTED:MSG-0001 user:jo BR-0003 A walk\n\
         ADVICE:hf-branch suspend BR-0003 --summary TEXT\nADVICE:hf-branch note --branch BR-0001 TEXT\n"
    );
    assert_eq!(active(&hive, "ann"), "BR-0001");
    does(&hive, "ann", &["resume", "BR-0002"]);
    // A note belongs to what it is about, and then the thread ends.
    hive.run("branch", &["tell", "ann", "And now?"]).expect_exit(0);
    let note = does(&hive, "ann", &["note", "Nearly there"]);
    assert_eq!(note.get("NEXT"), "ACTION hf-branch inbox --unread --agent ann");
    assert!(note.get("BRANCH").starts_with("BR-0002 free Suspended"), "{note:?}");
    // A persona that leaves by itself still gives its summary.
    does(&hive, "ann", &["resume", "BR-0002"]);
    hive.run("branch", &["tell", "ann", "Well?"]).expect_exit(0);
    does(&hive, "ann", &["suspend", "--summary", "The last page"]);
    assert_eq!(threads(&hive, "BR-0002"), ["Completed", "Aborted", "Completed"]);
    // Another persona's word waits.
    does(&hive, "ann", &["resume", "BR-0002"]);
    does(&hive, "ben", &["tell", "ann", "Tea?"]);
    does(&hive, "ann", &["note", "Not now"]);
    assert_eq!(active(&hive, "ann"), "BR-0002");
    assert_eq!(does(&hive, "ann", &["decide"]).all("CHOICE")[0], "REACT");
    keeps_the_rules(&hive);
}

#[test]
fn a_running_job_does_not_count_as_a_call_of_its_agent() {
    let hive = TestVault::new();
    let pipe = hive.dir().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let fire = ["fire", "--", "sh", "-c", "read x < go"];
    let fired = Reply::of(hive.command("job").args(fire).env("HF_AGENT", "ann").output().unwrap());
    assert_eq!(fired.expect_exit(0).get("TASK_ID"), "T-0001");
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    hive.run("branch", &["tell", "ann", "Come here"]).expect_exit(0);
    let before = kinds(&hive).len();
    fs::write(&pipe, "x\n").unwrap();
    ok(&hive, "hf-job wait T-0001");
    let since = kinds_since(&hive, before);
    assert!(since.contains(&"RunFinished".to_owned()) && !since.contains(&"ThreadAborted".to_owned()), "{since:?}");
    assert_eq!(active(&hive, "ann"), "BR-0002");
    keeps_the_rules(&hive);
}

#[test]
fn only_messages_from_people_interrupt_and_agents_cannot_pose_as_people() {
    let hive = written();
    does(&hive, "ann", &["resume", "BR-0002"]);
    let told = json!({"to": "ann", "text": "A new issue"}).to_string();
    hive.run("append", &["MessageSent", "--actor", "external:tracker", "--payload", &told]).expect_exit(0);
    does(&hive, "ann", &["note", "On with it"]);
    assert_eq!(active(&hive, "ann"), "BR-0002");
    let output = hive.command("branch").args(["tell", "ann", "Stop"]).env("HF_SESSION", "s1").output().unwrap();
    assert_eq!(Reply::of(output).expect_exit(3).get("REASON"), "operator_only");
    // In the shell of an agent, it is the agent that tells.
    does(&hive, "ben", &["note", "I am ben"]);
    let output = hive.command("branch").args(["tell", "ann", "Tea?"]).env("HF_AGENT", "ben").output().unwrap();
    Reply::of(output).expect_exit(0);
    assert_eq!(hive.events().last().unwrap()["actor"], "agent:ben");
    keeps_the_rules(&hive);
}
