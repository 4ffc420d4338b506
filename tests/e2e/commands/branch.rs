//! hf-branch: many activities, one mind.

use std::fs;

use hiveforge::event::Kind;
use hiveforge::op::branch::count_words;
use serde_json::{Value, json};

use crate::support::steps::{count, found_behind, keeps_the_rules, kinds, kinds_since, ok, refuses, sh};
use crate::support::test_vault::{Hive, Reply};

/// Runs `hf-branch` for an agent.
fn by(hive: &Hive, agent: &str, args: &[&str]) -> Reply {
    hive.run("branch", &[args, &["--agent", agent]].concat())
}

/// The same, for what must work; the report is on standard output where no document is.
#[track_caller]
fn does(hive: &Hive, agent: &str, args: &[&str]) -> Reply {
    let reply = by(hive, agent, args);
    assert_eq!(reply.code, Some(0), "{reply:#?}");
    reply
}

/// Whose branch is active, by its reference.
#[track_caller]
fn active(hive: &Hive, agent: &str) -> String {
    let reply = does(hive, agent, &["list"]);
    let branches: Vec<&str> = reply.all("BRANCH").into_iter().filter(|line| line.contains(" Active ")).collect();
    assert_eq!(branches, reply.all("ACTIVE"), "one and only one");
    branches[0].split(' ').next().unwrap().to_owned()
}

/// The threads of a branch as its projection has them, from `show`.
fn threads(hive: &Hive, reference: &str) -> Vec<String> {
    let reply = hive.run("branch", &["show", reference]).expect_exit(0);
    let word = |line: &&str| line.split(' ').nth(2).unwrap().to_owned();
    reply.all("ENTITY").iter().filter(|line| line.starts_with("thread:")).map(word).collect()
}

/// A vault in which ann has written, BR-0002, with a summary and two messages.
fn written() -> Hive {
    let mut hive = Hive::new();
    does(&hive, "ann", &["create", "The song of the stars", "--type", "free"]);
    does(&hive, "ann", &["note", "The hero leaves home"]);
    hive.at("2026-01-31T12:10:00Z");
    does(&hive, "ann", &["note", "The hero is at the tower"]);
    does(&hive, "ann", &["suspend", "--summary", "Chapter 1 is done"]);
    hive
}

#[test]
fn a_branch_begins_with_its_first_thread_and_its_persona_is_there() {
    let hive = Hive::new();
    let reply = does(&hive, "ann", &["create", "The song of the stars", "--type", "free"]);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:BR-0002 is Active: The song of the stars\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nSUBJECT:branch:<ulid>\nREF:BR-0002@<tag>\nSTATE:Active\n"
    );
    assert_eq!(
        kinds_since(&hive, 1),
        ["AgentStarted", "BranchCreated", "ThreadOpened", "BranchCreated", "ThreadOpened"]
    );
    assert_eq!(
        does(&hive, "ann", &["list"]).masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:2 branches\nCOUNT:2\nHAS_MORE:no\n\
         ACTIVE:BR-0002 free Active 2026-01-31T12:00:00Z The song of the stars\n\
         BRANCH:BR-0001 user Suspended 2026-01-31T12:00:00Z the user\n\
         BRANCH:BR-0002 free Active 2026-01-31T12:00:00Z The song of the stars\n"
    );
    keeps_the_rules(&hive);
}

#[test]
fn resuming_opens_a_new_thread_and_tells_what_is_to_be_known_in_order() {
    let mut hive = written();
    hive.at("2026-01-31T13:00:00Z");
    hive.run("branch", &["tell", "ann", "Is it good?"]).expect_exit(0);
    does(&hive, "ann", &["read"]);
    does(&hive, "ann", &["note", "It is\nnot bad"]);
    hive.at("2026-01-31T14:00:00Z");
    let reply = does(&hive, "ann", &["resume", "BR-0002"]);
    let context = "# Root BR-0001\n\
         \x20 2026-01-31T13:00:00Z user:jo: Is it good?\n\
         \x20 2026-01-31T13:00:00Z agent:ann: It is\n\
         \x20   not bad\n\
         # Anchor thread 1, Completed 2026-01-31T12:10:00Z\n\
         \x20 Summary: Chapter 1 is done\n\
         \x20 2026-01-31T12:00:00Z agent:ann: The hero leaves home\n\
         \x20 2026-01-31T12:10:00Z agent:ann: The hero is at the tower\n\
         # Now BR-0002 The song of the stars, thread 2 since 2026-01-31T14:00:00Z\n";
    assert_eq!(reply.stdout, context);
    assert_eq!(
        Reply { stdout: reply.stderr, stderr: String::new(), code: Some(0) }.masked(&hive),
        "EXIT:0\nSTATUS:RESUMED\nNEXT:NONE\nSUM:BR-0002 is Active: The song of the stars\nEVENT_ID:<ulid>\n\
         SUBJECT:branch:<ulid>\nREF:BR-0002@<tag>\nSTATE:Active\nTHREAD:TH-0003 2\nWORDS:51\nLEFT_OUT:0\n"
    );
    // Again: nothing is recorded, and this thread is told.
    does(&hive, "ann", &["note", "Up the stairs"]);
    let before = hive.contents();
    let again = does(&hive, "ann", &["resume", "br-0002"]);
    assert_eq!(again.stdout, format!("{context}  2026-01-31T14:00:00Z agent:ann: Up the stairs\n"));
    assert!(again.stderr.contains("STATUS:DUPLICATE\n"), "{again:?}");
    assert!(hive.contents() == before);
    // In a file: then the reply is on standard output.
    let reply = does(&hive, "ann", &["resume", "BR-0002", "--out", "context.txt"]).expect_exit(0);
    assert_eq!(fs::read_to_string(hive.dir().join("context.txt")).unwrap(), again.stdout);
    assert_eq!(reply.get("PATH"), "context.txt");
    // The same for a program.
    let reply = does(&hive, "ann", &["resume", "BR-0002", "--json"]);
    let json: Value = serde_json::from_str(&reply.stdout).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["root"]["messages"][1]["text"], "It is\nnot bad");
    assert_eq!(json["anchor"]["summary"], "Chapter 1 is done");
    assert_eq!((&json["anchor"]["number"], &json["thread"]["number"]), (&json!(1), &json!(2)));
    assert_eq!(json["anchor"]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        json["thread"]["messages"][0],
        json!({"at": "2026-01-31T14:00:00Z", "from": "agent:ann", "text": "Up the stairs"})
    );
    assert_eq!(json["branch"]["label"], "The song of the stars");
    assert_eq!(json["words"], 56);
    keeps_the_rules(&hive);
}

#[test]
fn within_a_budget_the_oldest_messages_go_first_and_the_summary_last() {
    let mut hive = Hive::new();
    does(&hive, "ann", &["create", "Long", "--type", "free"]);
    for n in 0..30 {
        does(&hive, "ann", &["note", &format!("message-{n:02} {}", "word ".repeat(12))]);
    }
    let summary = format!("first {} last", "sum ".repeat(60));
    does(&hive, "ann", &["suspend", "--summary", &summary]);
    hive.run("branch", &["tell", "ann", "newest of all"]).expect_exit(0);
    does(&hive, "ann", &["resume", "BR-0002"]);
    let (mut shown, mut whole) = (usize::MAX, true);
    for words in [2000, 800, 400, 300, 200, 150, 100, 80, 70, 60] {
        let reply = does(&hive, "ann", &["resume", "BR-0002", "--words", &words.to_string()]);
        let found = reply.stdout.split_whitespace().count();
        assert!(count_words(&reply.stdout) <= words && found <= words, "{words}: {found}");
        let messages: Vec<usize> = (0..30).filter(|n| reply.stdout.contains(&format!("message-{n:02}"))).collect();
        // The newest of the twenty that a thread remembers, without a gap.
        assert!(messages.len() <= shown.min(20), "{words}");
        assert_eq!(messages, (30 - messages.len()..30).collect::<Vec<_>>(), "{words}");
        let all = reply.stdout.contains(&summary);
        assert!(all || messages.is_empty(), "{words}: the summary goes last");
        assert!(whole || !all);
        assert!(reply.stdout.contains("Summary: first sum"), "{words}");
        let left_out: usize = reply.report_of_document().get("LEFT_OUT").parse().unwrap();
        let newest = usize::from(reply.stdout.contains("newest of all"));
        assert_eq!(left_out + messages.len() + newest, 21, "{words}");
        (shown, whole) = (messages.len(), all);
    }
    assert!(shown == 0 && !whole, "the least is little");
    // A script without spaces has words too.
    hive.at("2026-01-31T12:30:00Z");
    does(&hive, "ann", &["note", &"物語".repeat(400)]);
    let reply = does(&hive, "ann", &["resume", "BR-0002", "--words", "200"]);
    assert!(reply.stdout.chars().filter(|c| *c == '物').count() <= 25, "{}", reply.stdout);
    for words in ["59", "0", "1000001"] {
        let reply = hive.refuses("branch", &["resume", "BR-0002", "--agent", "ann", "--words", words], 2);
        assert_eq!(reply.get("STATUS"), "LIMIT_EXCEEDED");
    }
}

impl Reply {
    /// The report of a command whose product is a document.
    fn report_of_document(&self) -> Reply {
        Reply { stdout: self.stderr.clone(), stderr: String::new(), code: self.code }
    }
}

#[test]
fn resuming_one_branch_suspends_the_other_and_asks_for_its_summary() {
    let hive = written();
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    let asked = hive.refuses("branch", &["resume", "BR-0002", "--agent", "ann"], 3);
    assert_eq!(asked.get("REASON"), "summary_required");
    assert_eq!(asked.get("SUM"), "BR-0003 is Active: say where it stands with --summary, or leave it with --abort");
    hive.refuses("branch", &["create", "More", "--type", "free", "--agent", "ann"], 3);
    does(&hive, "ann", &["resume", "BR-0002", "--summary", "Half way round the lake"]);
    assert_eq!(active(&hive, "ann"), "BR-0002");
    assert_eq!(threads(&hive, "BR-0003"), ["Completed"]);
    // Left without a word, a thread is aborted.
    does(&hive, "ann", &["resume", "BR-0003", "--abort"]);
    assert_eq!(
        (active(&hive, "ann").as_str(), threads(&hive, "BR-0002")),
        ("BR-0003", vec!["Completed".to_owned(), "Aborted".to_owned()])
    );
    // And the branch that was left is told of, at the root and at the others.
    does(&hive, "ann", &["suspend", "--summary", "Round the lake"]);
    let told = does(&hive, "ann", &["resume", "BR-0002"]).stdout;
    assert!(told.starts_with("# Root BR-0001\n  BR-0003 thread 1 Completed: Half way round the lake\n  BR-0003 thread 2 Completed: Round the lake\n# Anchor thread 2, Aborted"), "{told}");
    keeps_the_rules(&hive);
}

#[test]
fn suspending_without_a_summary_aborts_the_thread_and_nothing_is_lost() {
    let hive = Hive::new();
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    does(&hive, "ann", &["note", "The lake is frozen"]);
    assert_eq!(does(&hive, "ann", &["suspend"]).get("SUM"), "TH-0002 is Aborted");
    assert_eq!(active(&hive, "ann"), "BR-0001");
    let before = hive.contents();
    assert_eq!(does(&hive, "ann", &["suspend"]).get("STATUS"), "DUPLICATE");
    assert!(hive.contents() == before);
    let told = does(&hive, "ann", &["resume", "BR-0002"]).stdout;
    assert!(
        told.contains(
            "# Anchor thread 1, Aborted 2026-01-31T12:00:00Z\n  2026-01-31T12:00:00Z agent:ann: The lake is frozen\n"
        ),
        "{told}"
    );
}

#[test]
fn the_last_messages_can_be_handed_in_as_a_file() {
    let hive = Hive::new();
    does(&hive, "ann", &["create", "A talk", "--type", "free"]);
    fs::write(hive.dir().join("tail.txt"), "user: hello\n\nassistant: good day\n").unwrap();
    does(&hive, "ann", &["suspend", "--summary", "We met", "--tail", "tail.txt"]);
    let told = does(&hive, "ann", &["resume", "BR-0002"]).stdout;
    assert!(told.contains("  Summary: We met\n  user: hello\n  assistant: good day\n# Now"), "{told}");
    let detail = does(&hive, "ann", &["recall", "BR-0002", "--thread", "1"]).stdout;
    assert!(detail.ends_with("  Summary: We met\n  user: hello\n  assistant: good day\n"), "{detail}");
    let reply = hive.pipe("branch", &["suspend", "--summary", "-", "--agent", "ann"], "Two\nlines\n").expect_exit(0);
    assert_eq!(reply.get("SUM"), "TH-0003 is Completed: Two\\nlines");
}

#[test]
fn social_branches_come_by_themselves_once_both_are_known() {
    let hive = Hive::new();
    does(&hive, "ann", &["note", "I am ann"]);
    assert_eq!(does(&hive, "ann", &["list"]).all("BRANCH").len(), 1);
    does(&hive, "ben", &["note", "I am ben"]);
    for (me, other) in [("ann", "ben"), ("ben", "ann")] {
        let list = does(&hive, me, &["list"]);
        let social: Vec<&str> = list.all("BRANCH").into_iter().filter(|line| line.contains(" social ")).collect();
        assert_eq!(social.len(), 1, "{list:?}");
        assert!(social[0].ends_with(&format!(" social Suspended 2026-01-31T12:00:00Z with {other}")), "{social:?}");
    }
    does(&hive, "cem", &["note", "I am cem"]);
    assert_eq!(does(&hive, "ann", &["list"]).all("BRANCH").len(), 3);
    // One for every persona and partner: to ask for it is to be told which.
    let again = does(&hive, "ann", &["create", "Tea", "--type", "social", "--partner", "ben"]);
    assert_eq!((again.get("STATUS"), again.get("NEXT")), ("DUPLICATE", "ACTION hf-branch resume BR-0004 --agent ann"));
    assert_eq!(again.get("SUM"), "BR-0004 is Suspended: with ben");
    // It is never over.
    does(&hive, "ann", &["resume", "BR-0004"]);
    refuses(&hive, "hf-branch complete --agent ann", 3, "BR-0004 is social, which is never over");
    refuses(&hive, "hf-branch complete BR-0001 --agent ann", 3, "BR-0001 is the root, which is never over");
    keeps_the_rules(&hive);
}

#[test]
fn a_conversation_is_in_the_branches_of_those_who_are_at_it() {
    let mut hive = Hive::new();
    does(&hive, "ann", &["note", "I am ann"]);
    does(&hive, "ben", &["note", "I am ben"]);
    // BR-0003 is ben's with ann, BR-0004 ann's with ben; whichever.
    let of = |me: &str| {
        let list = does(&hive, me, &["list"]);
        list.all("BRANCH").into_iter().find(|line| line.contains(" social ")).unwrap()[..7].to_owned()
    };
    let (anns, bens) = (of("ann"), of("ben"));
    does(&hive, "ann", &["resume", &anns]);
    does(&hive, "ann", &["tell", "ben", "Which book is next?"]);
    does(&hive, "ben", &["resume", &bens]);
    does(&hive, "ben", &["tell", "ann", "The one on whales"]);
    does(&hive, "ann", &["suspend", "--summary", "Books"]);
    hive.at("2026-02-01T12:00:00Z");
    let told = does(&hive, "ann", &["resume", &anns]).stdout;
    assert!(
        told.contains(
            "  Summary: Books\n  2026-01-31T12:00:00Z agent:ann: Which book is next?\n  2026-01-31T12:00:00Z agent:ben: The one on whales\n"
        ),
        "{told}"
    );
    // Ben was not there yet for the question.
    let bens = does(&hive, "ben", &["recall", &bens, "--thread", "1"]).stdout;
    assert!(bens.contains("The one on whales") && !bens.contains("Which book"), "{bens}");
    let anns = does(&hive, "ann", &["recall", &anns, "--thread", "1"]).stdout;
    assert!(anns.contains("The one on whales") && anns.contains("Which book"), "{anns}");
    keeps_the_rules(&hive);
}

#[test]
fn a_task_that_is_assigned_to_an_agent_has_its_branch_and_first_thread() {
    let hive = Hive::new();
    ok(&hive, "hf-task propose Form");
    let before = kinds(&hive).len();
    ok(&hive, "hf-task claim --actor agent:ann");
    assert_eq!(
        kinds_since(&hive, before),
        ["AgentStarted", "TaskAssigned", "BranchCreated", "BranchCreated", "ThreadOpened", "ThreadOpened"]
    );
    assert_eq!(
        does(&hive, "ann", &["list"]).all("BRANCH"),
        ["BR-0001 user Suspended 2026-01-31T12:00:00Z the user", "BR-0002 task Active 2026-01-31T12:00:00Z Form"]
    );
    // It is over when the task is, and not before.
    refuses(&hive, "hf-branch complete --agent ann", 3, "BR-0002 is over when T-0001 is, which is Assigned");
    ok(&hive, "hf-task start T-0001 --actor agent:ann");
    does(&hive, "ann", &["note", "Two fields"]);
    let before = kinds(&hive).len();
    ok(&hive, "hf-task succeed T-0001 --actor agent:ann");
    assert_eq!(kinds_since(&hive, before), ["RunFinished", "TaskSucceeded", "ThreadCompleted", "BranchCompleted"]);
    assert_eq!(
        does(&hive, "ann", &["list"]).all("BRANCH"),
        ["BR-0001 user Active 2026-01-31T12:00:00Z the user", "BR-0002 task Completed 2026-01-31T12:00:00Z Form"]
    );
    let told = does(&hive, "ann", &["recall", "BR-0002", "--thread", "1"]).stdout;
    assert!(told.contains("  Summary: T-0001 is Succeeded\n  2026-01-31T12:00:00Z agent:ann: Two fields\n"), "{told}");
    keeps_the_rules(&hive);
}

#[test]
fn the_branch_of_a_task_is_made_once_and_ends_with_it_however_it_ends() {
    let mut hive = Hive::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 1m --actor agent:ann");
    // Lost and taken again: it is the same branch.
    hive.at("2026-01-31T12:01:01Z");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    assert_eq!(count(&hive, "BranchCreated"), 2);
    let again = does(&hive, "ann", &["create", "Form", "--type", "task", "--task", "T-0001"]);
    assert_eq!((again.get("STATUS"), again.get("REF").split('@').next()), ("DUPLICATE", Some("BR-0002")));
    does(&hive, "ann", &["suspend", "--summary", "Later"]);
    ok(&hive, "hf-task abort T-0001");
    assert_eq!(does(&hive, "ann", &["list", "--status", "Completed"]).all("BRANCH").len(), 1);
    // No branch for what is over, nor for a job, which nobody lives through.
    let late = by(&hive, "ben", &["create", "Form", "--type", "task", "--task", "T-0001"]);
    assert_eq!((late.code, late.get("REASON")), (Some(3), "not_ready"));
    let before = count(&hive, "BranchCreated");
    hive.command("job").args(["fire", "--", "true"]).env("HF_AGENT", "ann").output().unwrap();
    ok(&hive, "hf-job wait T-0002");
    assert_eq!(count(&hive, "BranchCreated"), before);
    keeps_the_rules(&hive);
}

#[test]
fn whoever_takes_a_second_task_leaves_the_first() {
    let hive = Hive::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Page");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    ok(&hive, "hf-task claim T-0002 --actor agent:ann");
    assert_eq!(active(&hive, "ann"), "BR-0003");
    assert_eq!(threads(&hive, "BR-0002"), ["Aborted"]);
    keeps_the_rules(&hive);
}

#[test]
fn a_free_branch_is_over_when_its_persona_says_so() {
    let hive = written();
    let reply = does(&hive, "ann", &["complete", "BR-0002"]);
    assert_eq!(reply.get("SUM"), "BR-0002 is Completed: The song of the stars");
    assert_eq!(does(&hive, "ann", &["complete", "BR-0002"]).get("STATUS"), "DUPLICATE");
    refuses(&hive, "hf-branch resume BR-0002 --agent ann", 3, "is Completed; ThreadOpened is not legal there");
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    let done = does(&hive, "ann", &["complete", "--summary", "Round the lake"]);
    assert_eq!(done.get("REF").split('@').next(), Some("BR-0003"));
    assert_eq!((active(&hive, "ann").as_str(), threads(&hive, "BR-0003")), ("BR-0001", vec!["Completed".to_owned()]));
    // Nobody else says so.
    does(&hive, "ann", &["create", "Tea", "--type", "free"]);
    does(&hive, "ann", &["suspend"]);
    refuses(&hive, "hf-branch complete BR-0004 --agent ben", 3, "BR-0004 is not a branch of agent:ben");
    refuses(&hive, "hf-append BranchCompleted --subject BR-0004", 3, "agent:ann says when BR-0004 is over");
    keeps_the_rules(&hive);
}

#[test]
fn the_working_memory_has_the_ten_newest_that_are_not_over() {
    let mut hive = written();
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    does(&hive, "ann", &["complete"]);
    let reply = does(&hive, "ann", &["list", "--working"]);
    assert_eq!(
        crate::support::test_vault::mask(&reply.stdout),
        "{\"branches\":[{\"branch_id\":\"<ulid>\",\"branch_type\":\"free\",\"brief_state\":\"Chapter 1 is done\",\
         \"label\":\"The song of the stars\",\"last_activity\":\"2026-01-31T12:10:00Z\",\"ref\":\"BR-0002\",\"status\":\"suspended\"},\
         {\"branch_id\":\"ann\",\"branch_type\":\"user\",\"brief_state\":\"\",\"label\":\"the user\",\
         \"last_activity\":\"2026-01-31T12:00:00Z\",\"ref\":\"BR-0001\",\"status\":\"active\"}]}\n"
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
    let mut hive = Hive::new();
    let decided = |hive: &Hive| does(hive, "ann", &["decide"]);
    assert_eq!(
        decided(&hive).stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:nothing waits for you\nCHOICE:CREATE\nCHOICE:WAIT\n"
    );
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    does(&hive, "ann", &["suspend", "--summary", "Half way"]);
    hive.at("2026-01-31T12:01:00Z");
    does(&hive, "ann", &["create", "Tea", "--type", "free"]);
    does(&hive, "ann", &["suspend", "--summary", "Hot"]);
    hive.at("2026-01-31T13:00:00Z");
    assert_eq!(
        decided(&hive).stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:2 branches wait for you\nACTIVE:BR-0001 user Active 2026-01-31T12:00:00Z the user\n\
         CHOICE:RESUME\nCANDIDATE:BR-0002 free 3600 A walk\nCANDIDATE:BR-0003 free 3540 Tea\n"
    );
    hive.run("branch", &["tell", "ann", "Are you there?"]).expect_exit(0);
    let reply = decided(&hive);
    assert_eq!(
        reply.stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-branch inbox --unread --agent ann\nSUM:1 messages are unread\n\
         ACTIVE:BR-0001 user Active 2026-01-31T13:00:00Z the user\nCHOICE:REACT\n\
         MESSAGE:MSG-0001 Unread 2026-01-31T13:00:00Z user:jo Are you there?\n"
    );
    let inbox = hive.run_next(&reply).expect_exit(0);
    assert_eq!(
        inbox.stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-branch read --agent ann\nSUM:1 messages, 1 unread\nCOUNT:1\nHAS_MORE:no\nUNREAD:1\n\
         MESSAGE:MSG-0001 Unread 2026-01-31T13:00:00Z user:jo Are you there?\n"
    );
    let read = hive.run_next(&inbox).expect_exit(0);
    assert_eq!(
        read.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:MSG-0001 is Read: Are you there?\nEVENT_ID:<ulid>\nSUBJECT:message:<ulid>\n\
         REF:MSG-0001@<tag>\nSTATE:Read\nUNREAD:0\nMESSAGE:MSG-0001 Read 2026-01-31T13:00:00Z user:jo Are you there?\n"
    );
    assert_eq!(decided(&hive).get("CHOICE"), "RESUME");
    // What was read is still there for who looks back, and gone from what is new.
    assert_eq!(does(&hive, "ann", &["inbox"]).all("MESSAGE").len(), 1);
    assert_eq!(does(&hive, "ann", &["inbox", "--unread"]).all("MESSAGE").len(), 0);
    assert_eq!(does(&hive, "ann", &["read"]).get("SUM"), "nothing is unread");
    assert_eq!(does(&hive, "ann", &["read", "MSG-0001"]).get("STATUS"), "DUPLICATE");
}

#[test]
fn a_users_message_interrupts_with_the_next_call_of_whatever_kind() {
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
        "  BR-0002 thread 1 Completed: Chapter 1 is done\n  BR-0002 thread 2 Aborted: interrupted\n\
         # Now BR-0001 the user, thread 1 since 2026-01-31T12:00:00Z\n  2026-01-31T12:10:00Z user:jo: Come here\n"
    );
    // It interrupts once; then the choice is the persona's again.
    does(&hive, "ann", &["resume", "BR-0002"]);
    does(&hive, "ann", &["note", "On with it"]);
    assert_eq!(active(&hive, "ann"), "BR-0002");
    keeps_the_rules(&hive);
}

#[test]
fn whoever_would_go_elsewhere_is_told_first() {
    let hive = written();
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    hive.run("branch", &["tell", "ann", "Come here"]).expect_exit(0);
    let reply = by(&hive, "ann", &["resume", "BR-0002", "--abort"]);
    assert_eq!((reply.code, reply.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        reply.stderr,
        "EXIT:1\nSTATUS:INTERRUPTED\nNEXT:ACTION hf-branch inbox --unread --agent ann\n\
         SUM:somebody told you something: BR-0003 is left, and the root is active\n"
    );
    assert_eq!(active(&hive, "ann"), "BR-0001");
    does(&hive, "ann", &["resume", "BR-0002"]);
    // A note belongs to what it is about, and then the thread ends.
    hive.run("branch", &["tell", "ann", "And now?"]).expect_exit(0);
    let note = does(&hive, "ann", &["note", "Nearly there"]);
    assert_eq!(note.get("NEXT"), "ACTION hf-branch inbox --unread --agent ann");
    assert!(note.get("BRANCH").starts_with("BR-0002 free Suspended"), "{note:?}");
    // Whoever leaves by itself still says where it stands.
    does(&hive, "ann", &["resume", "BR-0002"]);
    hive.run("branch", &["tell", "ann", "Well?"]).expect_exit(0);
    does(&hive, "ann", &["suspend", "--summary", "The last page"]);
    assert_eq!(threads(&hive, "BR-0002"), ["Completed", "Aborted", "Completed"]);
    // Another persona's word waits.
    does(&hive, "ann", &["resume", "BR-0002"]);
    does(&hive, "ben", &["tell", "ann", "Tea?"]);
    does(&hive, "ann", &["note", "Not now"]);
    assert_eq!(active(&hive, "ann"), "BR-0002");
    assert_eq!(does(&hive, "ann", &["decide"]).get("CHOICE"), "REACT");
    keeps_the_rules(&hive);
}

#[test]
fn a_job_that_goes_on_is_no_call_of_its_agent() {
    let hive = Hive::new();
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
fn only_a_persons_word_interrupts_and_no_agent_speaks_as_a_person() {
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

#[test]
fn the_past_is_recalled_as_a_whole_by_thread_and_by_word() {
    let mut hive = written();
    does(&hive, "ann", &["resume", "BR-0002"]);
    does(&hive, "ann", &["note", "The TOWER falls"]);
    hive.at("2026-01-31T12:20:00Z");
    does(&hive, "ann", &["suspend"]);
    let ends = does(&hive, "ann", &["recall", "BR-0002"]).stdout;
    assert_eq!(
        ends,
        "# BR-0002 free Suspended: The song of the stars\n\
         ## Thread 1 Completed, 2026-01-31T12:00:00Z to 2026-01-31T12:10:00Z, 2 messages\n  Summary: Chapter 1 is done\n\
         ## Thread 2 Aborted, 2026-01-31T12:10:00Z to 2026-01-31T12:20:00Z, 1 messages\n"
    );
    let one = does(&hive, "ann", &["recall", "BR-0002", "--thread", "1"]).stdout;
    assert_eq!(
        one,
        "# BR-0002 free Suspended: The song of the stars\n\
         ## Thread 1 Completed, 2026-01-31T12:00:00Z to 2026-01-31T12:10:00Z, 2 messages\n  Summary: Chapter 1 is done\n\
         \x20 2026-01-31T12:00:00Z agent:ann: The hero leaves home\n  2026-01-31T12:10:00Z agent:ann: The hero is at the tower\n"
    );
    let found = does(&hive, "ann", &["recall", "--all", "--grep", "tower"]);
    assert!(found.stderr.contains("SUM:2 threads, 2 messages\n"), "{found:?}");
    assert!(found.stdout.contains("The hero is at the tower\n") && found.stdout.contains("The TOWER falls\n"));
    assert!(!found.stdout.contains("leaves home") && !found.stdout.contains("Summary"), "{found:?}");
    let all = does(&hive, "ann", &["recall", "--all", "--json"]);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(all["branches"][1]["threads"][0]["summary"], "Chapter 1 is done");
    let none = does(&hive, "ann", &["recall", "--all", "--grep", "whale"]);
    assert_eq!(none.stdout, "");
    refuses(&hive, "hf-branch recall BR-0002 --thread 9 --agent ann", 6, "BR-0002 has 2 threads, and no thread 9");
}

#[test]
fn long_texts_live_as_artifacts() {
    let hive = Hive::new();
    does(&hive, "ann", &["create", "Long", "--type", "free"]);
    let long = |word: &str| format!("{word} {}the end of {word}", "blah ".repeat(600));
    let [note, summary, tail, message] = ["note", "summary", "tail", "message"].map(long);
    hive.pipe("branch", &["note", "-", "--agent", "ann"], note.as_str()).expect_exit(0);
    fs::write(hive.dir().join("tail.txt"), &tail).unwrap();
    hive.pipe("branch", &["suspend", "--summary", "-", "--tail", "tail.txt", "--agent", "ann"], summary.as_str())
        .expect_exit(0);
    hive.pipe("branch", &["tell", "ann", "-"], message.as_str()).expect_exit(0);
    assert_eq!(count(&hive, "ArtifactMaterialized"), 4);
    assert!(hive.events().iter().all(|event| event.to_string().len() < 5000), "no event holds a long text");
    let told = does(&hive, "ann", &["resume", "BR-0002", "--words", "5000"]).stdout;
    for text in [&note, &summary, &tail, &message] {
        assert!(told.contains(text.as_str()), "{}", &text[..10]);
    }
    let recalled = does(&hive, "ann", &["recall", "BR-0002", "--grep", "the end of note"]).stdout;
    assert!(recalled.contains(&note));
    let read = does(&hive, "ann", &["read"]);
    assert!(read.get("MESSAGE").ends_with("the end of message"));
    // What is left of a content that is damaged is told, and the damage is recorded.
    let artifact = hive.events().iter().find(|e| e["event_type"] == "NoteRecorded").unwrap()["payload"]["artifact_id"]
        .as_str()
        .unwrap()
        .to_owned();
    fs::write(hive.vault().join("Artifacts").join(&artifact).join("content"), "forged").unwrap();
    let told = does(&hive, "ann", &["recall", "BR-0002", "--thread", "1"]).stdout;
    assert!(!told.contains("forged") && told.contains("note blah") && !told.contains("the end of note"), "{told}");
    assert_eq!(count(&hive, "ArtifactCorrupted"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn a_repeated_command_with_a_key_records_nothing() {
    let hive = written();
    let create = ["create", "Tea", "--type", "free", "--key", "k1"];
    let first = does(&hive, "ann", &create);
    does(&hive, "ann", &["note", "hot", "--key", "k2"]);
    hive.run("branch", &["tell", "ann", "Hm", "--key", "k3"]).expect_exit(0);
    does(&hive, "ann", &["suspend"]);
    let before = hive.contents();
    let again = does(&hive, "ann", &create);
    assert_eq!((again.get("STATUS"), again.get("SUBJECT")), ("DUPLICATE", first.get("SUBJECT")));
    assert_eq!(does(&hive, "ann", &["note", "hot", "--key", "k2"]).get("STATUS"), "DUPLICATE");
    assert_eq!(hive.run("branch", &["tell", "ann", "Hm", "--key", "k3"]).expect_exit(0).get("STATUS"), "DUPLICATE");
    assert!(hive.contents() == before);
    hive.refuses("branch", &["note", "cold", "--key", "k2", "--agent", "ann"], 3);
}

#[test]
fn bad_input_is_refused_in_one_line_and_changes_no_byte() {
    let hive = written();
    does(&hive, "ben", &["note", "I am ben"]);
    ok(&hive, "hf-task propose Form");
    let long = "x".repeat(81);
    let huge = "x".repeat(1024 * 1024 + 1);
    fs::write(hive.dir().join("huge.txt"), huge).unwrap();
    fs::write(hive.dir().join("bytes.txt"), b"\xff\xfe").unwrap();
    fs::write(hive.dir().join("empty.txt"), "\n").unwrap();
    for (args, code, sum) in [
        (&["create", " ", "--type", "free"][..], 2, "the label is empty: say it in one line"),
        (&["create", "a\nb", "--type", "free"], 2, "the label has 2 lines: say it in one"),
        (&["create", &long, "--type", "free"], 2, "the label has 81 characters: at most 80"),
        (&["create", "x"], 2, "--type <TYPE>"),
        (&["create", "x", "--type", "user"], 2, "invalid value 'user'"),
        (&["create", "x", "--type", "task"], 2, "a task branch needs --task, and no --partner"),
        (&["create", "x", "--type", "free", "--task", "T-0001"], 2, "a free branch has neither --task nor --partner"),
        (&["create", "x", "--type", "social", "--partner", "ann"], 2, "agent:ann cannot be its own partner"),
        (&["create", "x", "--type", "social", "--partner", "nobody"], 6, "agent:nobody is not known here"),
        (&["create", "x", "--type", "social", "--partner", "no body"], 2, "is not an id"),
        (&["create", "x", "--type", "task", "--task", "T-0009"], 6, "T-0009"),
        (&["create", "x", "--type", "task", "--task", "BR-0001"], 2, "BR-0001 is a branch, not a task"),
        (&["create", "x", "--type", "free", "--summary", "y"], 2, "there is no branch that is left"),
        (&["resume", "BR-0009"], 6, "BR-0009"),
        (&["resume", "T-0001"], 2, "T-0001 is a task, not a branch"),
        (&["resume", "ben"], 3, "BR-0003 is not a branch of agent:ann"),
        (&["resume", "BR-0002", "--summary", "x", "--abort"], 2, "cannot be used with"),
        (&["resume", "ann", "--summary", "x"], 2, "you are there already"),
        (&["resume", "BR-0002", "--words", "many"], 2, "invalid value 'many'"),
        (&["suspend", "--summary", "x"], 2, "there is no branch that is left"),
        (&["suspend", "--tail", "nowhere.txt"], 2, "cannot read nowhere.txt"),
        (&["suspend", "--tail", "huge.txt"], 2, "the text is too long"),
        (&["suspend", "--tail", "bytes.txt"], 2, "the text is not UTF-8"),
        (&["complete"], 6, "agent:ann is at no branch but its root"),
        (&["complete", "ben"], 3, "BR-0003 is not a branch of agent:ann"),
        (&["complete", "BR-0002", "--summary", "x"], 2, "nobody is at that branch"),
        (&["recall"], 2, "<REFERENCE>"),
        (&["recall", "BR-0002", "--all"], 2, "cannot be used with"),
        (&["recall", "ben"], 3, "BR-0003 is not a branch of agent:ann"),
        (&["note", "  "], 2, "the note is empty"),
        (&["note", ""], 2, "the note is empty"),
        (&["tell", "nobody", "x"], 6, "agent:nobody is not known here"),
        (&["tell", "ann", "x"], 2, "agent:ann cannot tell itself something: that is a note"),
        (&["tell", "ben", " "], 2, "the message is empty"),
        (&["inbox", "--limit", "0"], 2, "a page has 1 to 500 entries, not 0"),
        (&["read", "MSG-0001"], 6, "MSG-0001"),
        (&["list", "--limit", "501"], 2, "a page has 1 to 500 entries, not 501"),
        (&["list", "--cursor", "x"], 2, "the cursor is not the id of one of these branches"),
        (&["list", "--status", "Lost"], 2, "'Lost' is not a status"),
        (&["list", "--working", "--status", "Active"], 2, "cannot be used with"),
        (&["show", "BR-0009"], 6, "BR-0009"),
    ] {
        let reply = hive.refuses("branch", &[args, &["--agent", "ann"]].concat(), code);
        assert!(reply.get("SUM").contains(sum), "{args:?}: {}", reply.get("SUM"));
    }
    let reply = hive.refuses("branch", &["note", "x", "--agent", "no body"], 2);
    assert!(reply.get("SUM").starts_with("an agent's name has"));
    hive.refuses_input("branch", &["suspend", "--summary", "-", "--agent", "ann"], "", 2);
    // With a branch to leave, what is said of it has to be something.
    does(&hive, "ann", &["resume", "BR-0002"]);
    hive.refuses("branch", &["suspend", "--summary", " ", "--agent", "ann"], 2);
    hive.refuses("branch", &["suspend", "--tail", "empty.txt", "--agent", "ann"], 2);
    hive.refuses_input("branch", &["suspend", "--summary", "-", "--agent", "ann"], "", 2);
    // In the shell of one agent no other acts.
    let output = hive.command("branch").args(["note", "x", "--agent", "ben"]).env("HF_AGENT", "ann").output().unwrap();
    assert_eq!(Reply::of(output).expect_exit(3).get("REASON"), "operator_only");
}

#[test]
fn the_same_rules_hold_for_events_that_are_put_in_by_hand() {
    let hive = written();
    does(&hive, "ben", &["note", "I am ben"]);
    let ulid = "branch:01KG9QXN48X6GJ8Z8WH27KY9VE";
    let thread = hive.json("projections/threads.json");
    let of = |branch: &str| {
        let found = thread.as_object().unwrap().values().find(|t| t["branch_id"] == branch);
        format!("thread:{}", found.unwrap()["id"].as_str().unwrap())
    };
    let novel = hive.run("branch", &["show", "BR-0002"]).get("SUBJECT")[7..].to_owned();
    for (kind, subject, actor, payload, code, sum) in [
        (
            "BranchCreated",
            "branch:x",
            "agent:ann",
            json!({"persona_id": "ann", "branch_type": "free", "label": "x"}),
            2,
            "is a ULID",
        ),
        (
            "BranchCreated",
            ulid,
            "agent:ben",
            json!({"persona_id": "ann", "branch_type": "free", "label": "x"}),
            3,
            "agent:ben cannot act for agent:ann",
        ),
        (
            "BranchCreated",
            ulid,
            "agent:ann",
            json!({"persona_id": "ann", "branch_type": "user", "label": "x"}),
            2,
            "the root of agent:ann is branch:ann",
        ),
        (
            "BranchCreated",
            ulid,
            "user:jo",
            json!({"persona_id": "nobody", "branch_type": "free", "label": "x"}),
            6,
            "agent:nobody has no branches yet",
        ),
        (
            "BranchCreated",
            ulid,
            "agent:ann",
            json!({"persona_id": "ann", "branch_type": "free", "label": "x", "partner_persona_id": "ben"}),
            2,
            "neither",
        ),
        (
            "BranchCreated",
            ulid,
            "agent:ann",
            json!({"persona_id": "ann", "branch_type": "social", "label": "x", "partner_persona_id": "ben"}),
            3,
            "there is one: BR-0005",
        ),
        ("ThreadOpened", "thread:x", "agent:ben", json!({"branch_id": novel}), 3, "agent:ben cannot act for agent:ann"),
        (
            "ThreadOpened",
            "thread:x",
            "agent:ann",
            json!({"branch_id": "ann"}),
            3,
            "is Active; ThreadOpened is not legal there",
        ),
        (
            "ThreadOpened",
            "thread:x",
            "agent:ann",
            json!({"branch_id": novel, "anchor_id": of("ann")[7..]}),
            2,
            "BR-0002 goes on from thread:",
        ),
        ("ThreadAborted", &of("ann"), "agent:ann", json!({"branch_id": "ann"}), 3, "BR-0001 is the root"),
        (
            "NoteRecorded",
            &of("ann"),
            "agent:ann",
            json!({"branch_id": novel, "text": "x"}),
            2,
            "is no thread of that branch",
        ),
        (
            "NoteRecorded",
            &of("ann"),
            "agent:ben",
            json!({"branch_id": "ann", "text": "x"}),
            3,
            "agent:ben cannot act for agent:ann",
        ),
        (
            "MessageSent",
            "message:x",
            "user:jo",
            json!({"to": "nobody", "text": "x"}),
            6,
            "agent:nobody has no branches yet",
        ),
    ] {
        let payload = payload.to_string();
        let reply =
            hive.refuses("append", &[kind, "--subject", subject, "--actor", actor, "--payload", &payload], code);
        assert!(reply.get("SUM").contains(sum), "{kind}: {}", reply.get("SUM"));
    }
    // One that is legal works, and what is left out is filled in.
    let opened = json!({"branch_id": novel}).to_string();
    hive.run("append", &["ThreadOpened", "--actor", "agent:ann", "--payload", &opened, "--key", "go"]).expect_exit(0);
    assert_eq!(
        hive.run("append", &["ThreadOpened", "--actor", "agent:ann", "--payload", &opened, "--key", "go"])
            .get("STATUS"),
        "DUPLICATE"
    );
    assert_eq!(active(&hive, "ann"), "BR-0002");
    keeps_the_rules(&hive);
}

#[test]
fn the_projection_has_the_columns_of_the_table() {
    let hive = written();
    does(&hive, "ben", &["note", "I am ben"]);
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    let branches = hive.json("projections/branches.json");
    let of = |label: &str| branches.as_object().unwrap().values().find(|b| b["label"] == label).unwrap().clone();
    let names = |branch: &Value| branch.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(&of("The song of the stars")),
        "branch_type brief_state created_at id label last_activity last_event_id last_thread_id persona_id ref status suspended_at threads"
    );
    let (task, social) = (of("Form"), of("with ben"));
    assert_eq!(
        (&task["persona_id"], &task["branch_type"], &task["status"]),
        (&json!("ann"), &json!("task"), &json!("Active"))
    );
    assert_eq!(task["current_thread_id"], task["last_thread_id"]);
    assert!(task["task_id"].is_string() && task.get("suspended_at").is_none());
    assert_eq!((&social["partner_persona_id"], &social["threads"]), (&json!("ben"), &json!(0)));
    // The index says the same, and so does what is made anew from the events alone.
    hive.run("project", &["--check"]).expect_exit(0);
    hive.run("project", &["--rebuild"]).expect_exit(0);
    assert_eq!(hive.json("projections/branches.json"), branches);
    let pages = does(&hive, "ann", &["list", "--limit", "2"]);
    assert_eq!(pages.get("HAS_MORE"), "yes");
    let next = hive.run_next(&pages).expect_exit(0);
    assert_eq!((next.get("COUNT"), next.get("HAS_MORE")), ("2", "no"));
    keeps_the_rules(&hive);
}

#[test]
fn a_branch_leaves_the_projections_with_its_task() {
    let hive = Hive::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    ok(&hive, "hf-task abort T-0001");
    ok(&hive, "hf-append TaskArchived --subject T-0001");
    assert_eq!(hive.json("projections/branches.json").as_object().unwrap().len(), 1);
    assert_eq!(does(&hive, "ann", &["list"]).all("BRANCH").len(), 1);
    // Memory is not.
    assert!(does(&hive, "ann", &["recall", "BR-0002"]).stdout.contains("## Thread 1 Aborted"));
    hive.run("verify", &["--policy", "--projections"]).expect_exit(0);
}

#[test]
fn a_forged_log_is_found_out() {
    // What is forged comes a second after the beginning, so nothing before it may be later.
    let written = || {
        let hive = Hive::new();
        does(&hive, "ann", &["create", "The song of the stars", "--type", "free"]);
        does(&hive, "ann", &["suspend", "--summary", "Chapter 1 is done"]);
        hive
    };
    let found = |more: Vec<(&str, Kind, &str, Value)>| found_behind(&written(), more);
    let novel = |hive: &Hive| hive.run("branch", &["show", "BR-0002"]).get("SUBJECT")[7..].to_owned();
    let hive = written();
    let id = novel(&hive);
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    let last = hive
        .run("branch", &["show", "BR-0002"])
        .all("FACT")
        .iter()
        .find_map(|f| f.strip_prefix("last_thread_id ").map(str::to_owned))
        .unwrap();
    let two = json!({"branch_id": id, "anchor_id": last});
    assert_eq!(
        found_behind(&hive, vec![("agent:ann", Kind::ThreadOpened, "thread:x", two)]),
        ["BR-0003 is Active: it has to be left first"]
    );
    assert_eq!(
        found(vec![("agent:ann", Kind::BranchCompleted, "branch:ann", json!({}))]),
        [
            "branch:ann is Active; BranchCompleted is not legal there, only ThreadCompleted, ThreadAborted, NoteRecorded, MessageSent, MessageRead"
        ]
    );
    let alone = json!({"persona_id": "ann", "branch_type": "free", "label": "x"});
    let findings = found(vec![("agent:ann", Kind::BranchCreated, "branch:01KG9QXN48X6GJ8Z8WH27KY9VE", alone)]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].starts_with("ThreadOpened of thread:") && findings[0].ends_with(" should follow"),
        "{findings:?}"
    );
    // A user who was not heard.
    let hive = written();
    does(&hive, "ann", &["resume", "BR-0002"]);
    hive.run("branch", &["tell", "ann", "Come here"]).expect_exit(0);
    let note = json!({"heartbeat_id": "20260131120000", "text": "Writing"});
    let findings = found_behind(&hive, vec![("agent:ann", Kind::CheckpointRecorded, "agent:ann", note)]);
    assert!(findings.len() == 1 && findings[0].starts_with("ThreadAborted of thread:"), "{findings:?}");
}

#[test]
fn a_log_of_a_version_that_knew_no_branches_keeps_the_rules() {
    let hive = Hive::new();
    ok(&hive, "hf-task propose Form");
    let task = hive.events().iter().find(|e| e["event_type"] == "TaskProposed").unwrap()["subject"]
        .as_str()
        .unwrap()
        .to_owned();
    let holder = json!({"holder": "agent:ann"});
    assert_eq!(found_behind(&hive, vec![("agent:ann", Kind::TaskAssigned, &task, holder)]), Vec::<String>::new());
}

#[test]
fn a_hundred_personas_know_each_other_when_they_first_talk() {
    let hive = Hive::new();
    let batch: Vec<Value> = (0..40)
        .map(|n| {
            json!({"event_type": "BranchCreated", "subject": format!("branch:p{n}"),
            "payload": {"persona_id": format!("p{n}"), "branch_type": "user", "label": "the user"}})
        })
        .collect();
    hive.batch(&batch);
    // 32 by themselves, each with every other.
    assert_eq!(does(&hive, "p0", &["list"]).get("SUM"), "32 branches");
    assert_eq!(does(&hive, "p39", &["list"]).get("SUM"), "1 branches");
    does(&hive, "p39", &["tell", "p0", "Good day"]);
    assert_eq!(does(&hive, "p39", &["list"]).get("SUM"), "2 branches");
    assert_eq!(does(&hive, "p0", &["list"]).get("SUM"), "33 branches");
    keeps_the_rules(&hive);
}

#[test]
fn in_a_paused_project_an_agent_still_tells_and_reads_and_nothing_more() {
    let hive = Hive::new();
    ok(&hive, "hf-branch create Song --type free --agent eris");
    ok(&hive, "hf-branch create Dance --type free --agent pan");
    ok(&hive, "hf-pause Word");
    for (line, exit) in [
        ("hf-branch tell pan Wait --agent eris", 0),
        ("hf-branch inbox --agent pan", 0),
        ("hf-branch read --agent pan", 0),
        ("hf-branch list --agent pan", 0),
        ("hf-branch decide --agent pan", 0),
        ("hf-branch note More --agent pan", 3),
        ("hf-branch suspend --summary Later --agent pan", 3),
        ("hf-branch create Walk --type free --abort --agent pan", 3),
    ] {
        let reply = sh(&hive, line).expect_exit(exit);
        assert!(exit == 0 || reply.get("STATUS") == "EXIT_REQUESTED", "{line}: {reply:?}");
    }
    // A person's word reaches an agent there as well.
    ok(&hive, "hf-branch tell pan Here");
    assert_eq!(ok(&hive, "hf-branch inbox --unread --agent pan").get("UNREAD"), "1");
    ok(&hive, "hf-resume");
    ok(&hive, "hf-branch note More --agent eris");
    assert_eq!(ok(&hive, "hf-verify --policy").get("POLICY"), "OK");
}
