//! Threads of a branch: beginning, resuming and suspending.

use std::fs;

use hiveforge::op::branch::count_words;
use serde_json::{Value, json};

use crate::support::steps::{keeps_the_rules, kinds_since};
use crate::support::test_vault::{Reply, TestVault};

use super::{active, does, threads, written};

#[test]
fn a_branch_begins_with_its_first_thread_and_is_active() {
    let hive = TestVault::new();
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
fn resuming_opens_a_new_thread_and_prints_the_context_in_order() {
    let mut hive = written();
    hive.at("2026-01-31T13:00:00Z");
    hive.run("branch", &["tell", "ann", "Is it good?"]).expect_exit(0);
    does(&hive, "ann", &["read"]);
    does(&hive, "ann", &["note", "It is\nnot bad"]);
    hive.at("2026-01-31T14:00:00Z");
    let reply = does(&hive, "ann", &["resume", "BR-0002"]);
    let context = "# You\n\
         \x20 You are agent:ann; it is 2026-01-31T14:00:00Z\n\
         # With the user, BR-0001\n\
         \x20 2026-01-31T13:00:00Z user:jo: Is it good?\n\
         \x20 2026-01-31T13:00:00Z you: It is\n\
         \x20   not bad\n\
         # Last time on this branch, thread 1, Completed 2026-01-31T12:10:00Z\n\
         \x20 Summary: Chapter 1 is done\n\
         \x20 2026-01-31T12:00:00Z you: The hero leaves home\n\
         \x20 2026-01-31T12:10:00Z you: The hero is at the tower\n\
         # Now: BR-0002 The song of the stars, free, thread 2 since 2026-01-31T14:00:00Z\n";
    let help = "# How to go on\n\
         \x20 Answer the user: hf-branch note --branch BR-0001 TEXT\n\
         \x20 Note what you do: hf-branch note TEXT\n\
         \x20 Leave: hf-branch suspend --summary TEXT\n\
         \x20 Look back: hf-branch recall BR-0002\n";
    assert_eq!(reply.stdout, format!("{context}{help}"));
    assert_eq!(
        Reply { stdout: reply.stderr, stderr: String::new(), code: Some(0) }.masked(&hive),
        "EXIT:0\nSTATUS:RESUMED\nNEXT:NONE\nSUM:BR-0002 is Active: The song of the stars\nEVENT_ID:<ulid>\n\
         SUBJECT:branch:<ulid>\nREF:BR-0002@<tag>\nSTATE:Active\nTHREAD:TH-0003 2\nWORDS:96\nLEFT_OUT:0\n"
    );
    // Again: nothing is recorded, and this thread is told.
    does(&hive, "ann", &["note", "Up the stairs"]);
    let before = hive.contents();
    let again = does(&hive, "ann", &["resume", "br-0002"]);
    assert_eq!(again.stdout, format!("{context}  2026-01-31T14:00:00Z you: Up the stairs\n{help}"));
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
    assert_eq!(json["words"], 101);
    keeps_the_rules(&hive);
}

#[test]
fn a_budget_drops_the_oldest_messages_first_and_the_summary_last() {
    let mut hive = TestVault::new();
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
        assert_eq!(left_out + messages.len() + newest, 31, "{words}");
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

#[test]
fn resuming_one_branch_suspends_the_other_and_asks_for_its_summary() {
    let hive = written();
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    let asked = hive.refuses("branch", &["resume", "BR-0002", "--agent", "ann"], 3);
    assert_eq!(asked.get("REASON"), "summary_required");
    assert_eq!(asked.get("SUM"), "BR-0003 is Active: leave it with --summary, or with --abort");
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
    assert!(told.contains("# On your other branches\n  BR-0003 A walk, Suspended 2026-01-31T12:10:00Z: Round the lake\n# Last time on this branch, thread 2, Aborted"), "{told}");
    keeps_the_rules(&hive);
}

#[test]
fn suspending_without_a_summary_aborts_the_thread_but_loses_nothing() {
    let hive = TestVault::new();
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
            "# Last time on this branch, thread 1, Aborted 2026-01-31T12:00:00Z\n  2026-01-31T12:00:00Z you: The lake is frozen\n"
        ),
        "{told}"
    );
}

#[test]
fn the_last_messages_can_be_passed_as_a_file() {
    let hive = TestVault::new();
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
