//! Nothing is lost: interruptions, late summaries, and contexts that tell the whole life.

use std::fs;

use crate::support::steps::{count, keeps_the_rules, kinds, kinds_since, ok, sh};
use crate::support::test_vault::{Reply, TestVault};

use super::{active, by, does, threads, written};

/// A vault in which ann writes a novel, BR-0002, and a user has sent MSG-0001.
fn interrupted() -> TestVault {
    let hive = TestVault::new();
    does(&hive, "ann", &["create", "My novel", "--type", "free"]);
    does(&hive, "ann", &["note", "chapter 1"]);
    hive.run("branch", &["tell", "ann", "I am home"]).expect_exit(0);
    hive
}

const ANNOUNCED: [&str; 2] = ["hf-branch suspend BR-0002 --summary TEXT", "hf-branch note --branch BR-0001 TEXT"];

#[track_caller]
fn announces(reply: &Reply) {
    assert_eq!(reply.get("INTERRUPTED"), "MSG-0001 user:jo BR-0002 My novel", "{reply:#?}");
    assert_eq!(reply.all("ADVICE"), ANNOUNCED);
}

/// The context of a branch; the reply is on standard error.
fn context(hive: &TestVault, reference: &str) -> String {
    does(hive, "ann", &["resume", reference]).stdout
}

#[test]
fn m1_every_command_of_the_agent_announces_the_interruption() {
    let hive = interrupted();
    ok(&hive, "hf-task propose Form");
    // A command that records nothing tells it, too.
    let listed = does(&hive, "ann", &["list"]);
    announces(&listed);
    let checkpoint = hive.run("checkpoint", &["--agent", "ann", "writing"]).expect_exit(0);
    announces(&checkpoint);
    assert_eq!(checkpoint.get("NEXT"), "ACTION hf-branch inbox --unread --agent ann");
    assert!(checkpoint.stdout.split_whitespace().count() <= 40 && checkpoint.stdout.len() <= 300, "{checkpoint:?}");
    let refused = hive.run("task", &["start", "T-0001", "--actor", "agent:ann"]);
    assert_ne!(refused.code, Some(0));
    announces(&refused);
    // It is the agent's own matter.
    assert!(ok(&hive, "hf-task list").all("INTERRUPTED").is_empty());
    assert!(does(&hive, "ben", &["list"]).all("INTERRUPTED").is_empty());
    // Until it does something on a branch.
    does(&hive, "ann", &["note", "--branch", "BR-0001", "Welcome"]);
    assert!(does(&hive, "ann", &["list"]).all("INTERRUPTED").is_empty());
    keeps_the_rules(&hive);
}

#[test]
fn m1_a_note_never_goes_to_another_branch_than_the_agent_believes() {
    let hive = interrupted();
    hive.run("checkpoint", &["--agent", "ann", "writing"]).expect_exit(0);
    let before = hive.contents();
    let reply = by(&hive, "ann", &["note", "Lyra draws her sword"]);
    assert_eq!((reply.code, reply.get("STATUS")), (Some(1), "INTERRUPTED"));
    announces(&reply);
    assert!(hive.contents() == before, "nothing was recorded");
    // Reading the message does not say where the agent is.
    does(&hive, "ann", &["read"]);
    assert_eq!(by(&hive, "ann", &["note", "Lyra draws her sword"]).code, Some(1));
    // What it says explicitly goes there; a branch without an open thread is resumed first.
    let closed = by(&hive, "ann", &["note", "--branch", "BR-0002", "Lyra"]);
    assert_eq!((closed.code, closed.get("REASON")), (Some(3), "illegal_transition"));
    does(&hive, "ann", &["note", "--branch", "ann", "Welcome"]);
    let root = does(&hive, "ann", &["recall", "BR-0001", "--thread", "1"]).stdout;
    assert!(root.contains("Welcome") && !root.contains("Lyra"), "{root}");
    does(&hive, "ann", &["resume", "BR-0002"]);
    let note = does(&hive, "ann", &["note", "Lyra draws her sword"]);
    assert!(note.get("BRANCH").starts_with("BR-0002 free Active"), "{note:?}");
    keeps_the_rules(&hive);
}

#[test]
fn m1_a_late_summary_stays_with_the_thread_that_was_interrupted() {
    for late in [
        &["suspend", "--summary", "Lyra is armed"][..],
        &["suspend", "BR-0002", "--summary", "Lyra is armed"],
        &["create", "Tea", "--type", "free", "--summary", "Lyra is armed"],
        &["resume", "BR-0002", "--summary", "Lyra is armed"],
        &["complete", "--summary", "Lyra is armed"],
    ] {
        let hive = interrupted();
        hive.run("checkpoint", &["--agent", "ann", "writing"]).expect_exit(0);
        assert_eq!(threads(&hive, "BR-0002"), ["Aborted"]);
        does(&hive, "ann", late);
        assert_eq!(threads(&hive, "BR-0002")[0], "Completed", "{late:?}");
        let told = does(&hive, "ann", &["recall", "BR-0002"]).stdout;
        assert!(told.contains("  Summary: Lyra is armed\n"), "{late:?}: {told}");
        assert_eq!(count(&hive, "ThreadSummarized"), 1);
        keeps_the_rules(&hive);
    }
    // After an answer, too; and only once.
    let hive = interrupted();
    hive.run("checkpoint", &["--agent", "ann", "writing"]).expect_exit(0);
    does(&hive, "ann", &["note", "--branch", "BR-0001", "Welcome"]);
    does(&hive, "ann", &["suspend", "--summary", "Lyra is armed"]);
    let again = by(&hive, "ann", &["suspend", "BR-0002", "--summary", "Lyra rests"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(by(&hive, "ann", &["suspend", "--summary", "Lyra rests"]).code, Some(2));
}

#[test]
fn m2_a_summary_given_while_a_message_waits_is_kept() {
    for leaving in [
        &["create", "Tea", "--type", "free", "--summary", "Lyra is armed"][..],
        &["resume", "ann", "--summary", "Lyra is armed"],
    ] {
        let hive = interrupted();
        let before = kinds(&hive).len();
        let reply = by(&hive, "ann", leaving);
        assert_eq!(reply.code, Some(1), "{reply:?}");
        assert_eq!(kinds_since(&hive, before), ["ThreadCompleted"], "{leaving:?}");
        assert_eq!(active(&hive, "ann"), "BR-0001");
        assert!(context(&hive, "BR-0002").contains("  Summary: Lyra is armed\n"));
        keeps_the_rules(&hive);
    }
}

#[test]
fn m2_an_aborted_thread_hides_no_summary() {
    let mut hive = written();
    for n in 0..3 {
        hive.at(&format!("2026-01-31T13:0{n}:00Z"));
        does(&hive, "ann", &["resume", "BR-0002"]);
        does(&hive, "ann", &["note", &format!("page {n}")]);
        does(&hive, "ann", &["suspend"]);
    }
    let told = context(&hive, "BR-0002");
    assert!(
        told.contains(
            "# Last time on this branch, thread 4, Aborted 2026-01-31T13:02:00Z\n  Summary: Chapter 1 is done\n\
             \x20 2026-01-31T12:00:00Z you: The hero leaves home\n  2026-01-31T12:10:00Z you: The hero is at the tower\n\
             \x20 2026-01-31T13:00:00Z you: page 0\n  2026-01-31T13:01:00Z you: page 1\n  2026-01-31T13:02:00Z you: page 2\n"
        ),
        "{told}"
    );
    keeps_the_rules(&hive);
}

#[test]
fn m3_a_branch_has_its_own_earlier_summaries() {
    let mut hive = written();
    for n in 2..5 {
        hive.at(&format!("2026-01-31T13:0{n}:00Z"));
        does(&hive, "ann", &["resume", "BR-0002"]);
        does(&hive, "ann", &["suspend", "--summary", &format!("Chapter {n} is done")]);
    }
    let told = context(&hive, "BR-0002");
    assert!(
        told.contains(
            "# Earlier on this branch\n  Thread 1, 2026-01-31T12:10:00Z: Chapter 1 is done\n\
             \x20 Thread 2, 2026-01-31T13:02:00Z: Chapter 2 is done\n  Thread 3, 2026-01-31T13:03:00Z: Chapter 3 is done\n\
             # Last time on this branch, thread 4, Completed 2026-01-31T13:04:00Z\n  Summary: Chapter 4 is done\n"
        ),
        "{told}"
    );
}

#[test]
fn m4_messages_wait_in_the_social_branch_while_it_is_closed() {
    let mut hive = TestVault::new();
    does(&hive, "ann", &["note", "I am ann"]);
    does(&hive, "ben", &["note", "I am ben"]);
    does(&hive, "ben", &["tell", "ann", "Tea?"]);
    hive.at("2026-01-31T12:05:00Z");
    does(&hive, "ann", &["tell", "ben", "Later"]);
    let list = does(&hive, "ann", &["list"]);
    let social = list.all("BRANCH").into_iter().find(|line| line.contains("with ben")).unwrap()[..7].to_owned();
    // Before there is any thread, recall finds them, and other branches hear of it.
    let found = does(&hive, "ann", &["recall", "--all", "--grep", "tea"]).stdout;
    assert!(found.contains("with ben\n## Since then\n  2026-01-31T12:00:00Z agent:ben: Tea?\n"), "{found}");
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    let told = does(&hive, "ann", &["resume", "ann", "--summary", "Short"]).stdout;
    assert!(told.contains(&format!("  {social} with ben, Suspended 2026-01-31T12:05:00Z: Later\n")), "{told}");
    // The first thread begins with them.
    let told = context(&hive, &social);
    let said = "  2026-01-31T12:00:00Z agent:ben: Tea?\n  2026-01-31T12:05:00Z you: Later\n# How to go on\n";
    assert!(told.contains(said) && told.contains("  Answer ben: hf-branch tell ben TEXT\n"), "{told}");
    let one = does(&hive, "ann", &["recall", &social, "--thread", "1"]).stdout;
    assert!(one.contains("2 messages\n  2026-01-31T12:00:00Z agent:ben: Tea?\n"), "{one}");
    // A first word between strangers makes the branch, and is in it.
    hive.run("append", &["AgentStarted", "--actor", "agent:cem"]).expect_exit(0);
    does(&hive, "cem", &["tell", "ann", "Good day"]);
    assert!(does(&hive, "ann", &["recall", "--all", "--grep", "good day"]).stdout.contains("agent:cem: Good day\n"));
    keeps_the_rules(&hive);
}

#[test]
fn m7_what_a_task_brought_is_remembered() {
    let hive = TestVault::new();
    for title in ["Form", "Page"] {
        ok(&hive, &format!("hf-task propose {title}"));
    }
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    ok(&hive, "hf-task start T-0001 --actor agent:ann");
    fs::write(hive.dir().join("form.html"), "<form>").unwrap();
    ok(&hive, "hf-artifact put form.html --for T-0001 --actor agent:ann");
    let ended = ["succeed", "T-0001", "--summary", "Two fields, validated", "--actor", "agent:ann"];
    hive.run("task", &ended).expect_exit(0);
    let brought = "T-0001 is Succeeded; Two fields, validated; artifacts: ART-0001 content.html";
    let told = context(&hive, "ann");
    assert!(told.contains(&format!("BR-0002 Form, Completed 2026-01-31T12:00:00Z: {brought}\n")), "{told}");
    assert!(does(&hive, "ann", &["recall", "BR-0002"]).stdout.contains(&format!("  Summary: {brought}\n")));
    // And a report of a session.
    let session = ok(&hive, "hf-session login --agent ann").get("SESSION_ID").to_owned();
    ok(&hive, &format!("hf-session task --session {session} --agent ann"));
    ok(&hive, &format!("hf-session report --session {session} --summary Paged --agent ann"));
    let told = context(&hive, "ann");
    assert!(told.contains("T-0002 is Succeeded; Paged"), "{told}");
    keeps_the_rules(&hive);
}

#[test]
fn m8_left_out_counts_everything_that_is_not_there() {
    let hive = TestVault::new();
    does(&hive, "ann", &["create", "Long", "--type", "free"]);
    for n in 0..25 {
        does(&hive, "ann", &["note", &format!("note {n}")]);
    }
    let tail: String = (0..60).map(|n| format!("line {n}\n")).collect();
    fs::write(hive.dir().join("tail.txt"), tail).unwrap();
    does(&hive, "ann", &["suspend", "--tail", "tail.txt"]);
    let reply = does(&hive, "ann", &["resume", "BR-0002", "--words", "5000"]);
    let shown = |text: &str| reply.stdout.lines().filter(|line| line.contains(text)).count();
    assert_eq!((shown("you: note "), shown("line ")), (20, 50), "{}", reply.stdout);
    assert_eq!(reply.report_of_document().get("LEFT_OUT"), (25 - 20 + 60 - 50).to_string());
}

/// The questions of somebody who has never seen a context, the heading that answers each, and a word of the answer.
const QUESTIONS: [(&str, &str, &str); 10] = [
    ("who am I, and when is it?", "You", "You are agent:ann; it is 2026-02-01T08:00:00Z"),
    ("what did the user say last?", "With the user", "user:jo: Is it ready?"),
    ("what else is open, and how does it stand?", "On your other branches", "BR-0002 My novel, Suspended"),
    ("what did I do here before?", "Earlier on this branch", "Thread 1, 2026-01-31T12:00:00Z: Fields done"),
    ("what did I do here last, and what was noted since?", "Last time on this branch", "Summary: Lyra validates"),
    ("what is this branch for?", "The task", "T-0001 Assigned: Form"),
    ("what must I keep to?", "Constraints on the work", "No cookies"),
    ("what did I write down about this?", "What you know", "K-0001 Lyra: She is left-handed"),
    ("which branch am I on, since when, and what was said on it?", "Now", "you: Colours next"),
    ("how do I answer, leave and look back?", "How to go on", "Answer the user: hf-branch note --branch BR-0001 TEXT"),
];

#[test]
fn m9_ten_questions_are_answered_by_every_context() {
    let mut hive = TestVault::new();
    does(&hive, "ann", &["know", "Lyra", "She is left-handed"]);
    does(&hive, "ann", &["create", "My novel", "--type", "free"]);
    does(&hive, "ann", &["note", "Lyra draws her sword"]);
    does(&hive, "ann", &["suspend", "--summary", "Lyra is armed"]);
    hive.run("constraint", &["apply", "No cookies"]).expect_exit(0);
    ok(&hive, "hf-decide approve DEC-0001 --yes");
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 7d --actor agent:ann");
    does(&hive, "ann", &["suspend", "--summary", "Fields done"]);
    does(&hive, "ann", &["resume", "BR-0003"]);
    does(&hive, "ann", &["suspend", "--summary", "Lyra validates"]);
    hive.run("branch", &["tell", "ann", "Is it ready?"]).expect_exit(0);
    does(&hive, "ann", &["resume", "BR-0003"]);
    hive.at("2026-02-01T08:00:00Z");
    does(&hive, "ann", &["note", "Colours next"]);
    let told = context(&hive, "BR-0003");
    let manual = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/man/hf-branch.1")).unwrap();
    let manual = manual.replace("\\-", "-");
    for (question, heading, answer) in QUESTIONS {
        let part = told.split("# ").find(|part| part.starts_with(heading));
        assert!(part.is_some_and(|part| part.contains(answer)), "{question}\n{told}");
        assert!(manual.contains(&format!("{heading}: {question}")), "hf-branch(1) does not explain {heading}");
    }
    // No heading that the manual does not explain.
    for line in told.lines().filter(|line| line.starts_with("# ")) {
        assert!(QUESTIONS.iter().any(|(_, heading, _)| line[2..].starts_with(heading)), "{line}");
    }
    // The same questions on the root: only what has an answer there has a heading.
    let root = does(&hive, "ann", &["resume", "ann", "--summary", "Later"]).stdout;
    for heading in ["# You\n", "# On your other branches\n", "# Now: BR-0001", "# How to go on\n"] {
        assert!(root.contains(heading), "{heading}: {root}");
    }
}

#[test]
fn m16_a_second_task_leaves_a_way_to_summarize_the_first() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Page");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    let claim = ok(&hive, "hf-task claim T-0002 --actor agent:ann");
    assert_eq!(claim.get("INTERRUPTED"), "T-0002 agent:ann BR-0002 Form");
    assert_eq!(claim.all("ADVICE")[0], "hf-branch suspend BR-0002 --summary TEXT");
    does(&hive, "ann", &["suspend", "BR-0002", "--summary", "Half a form"]);
    assert_eq!((active(&hive, "ann").as_str(), threads(&hive, "BR-0002")), ("BR-0003", vec!["Completed".to_owned()]));
    // It knows where it is: it went there itself.
    does(&hive, "ann", &["note", "The page begins"]);
    assert!(does(&hive, "ann", &["recall", "BR-0003", "--thread", "1"]).stdout.contains("The page begins"));
    keeps_the_rules(&hive);
}

#[test]
fn m1_a_task_assigned_by_somebody_else_moves_nobody_silently() {
    let hive = TestVault::new();
    does(&hive, "ann", &["create", "My novel", "--type", "free"]);
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task assign T-0001 ann");
    assert_eq!(active(&hive, "ann"), "BR-0003");
    let reply = by(&hive, "ann", &["note", "Lyra draws her sword"]);
    assert_eq!((reply.code, reply.get("INTERRUPTED")), (Some(1), "T-0001 user:jo BR-0002 My novel"));
    // Its summary is about the branch that it believes to be on.
    does(&hive, "ann", &["suspend", "--summary", "Lyra is armed"]);
    assert!(does(&hive, "ann", &["recall", "BR-0002"]).stdout.contains("  Summary: Lyra is armed\n"));
    assert_eq!(active(&hive, "ann"), "BR-0003");
    keeps_the_rules(&hive);
}

#[test]
fn m16_a_context_that_cannot_be_written_opens_no_thread() {
    let hive = written();
    let before = hive.contents();
    let reply = by(&hive, "ann", &["resume", "BR-0002", "--out", "nowhere/context.txt"]);
    assert_eq!((reply.code, reply.get("STATUS")), (Some(111), "SYSTEM_ERROR"));
    assert!(hive.contents() == before);
    // A file that was made for a context that is not written is removed.
    sh(&hive, "hf-branch resume BR-0009 --out context.txt --agent ann").expect_exit(6);
    assert!(!hive.dir().join("context.txt").exists());
}

#[test]
fn m7_a_late_summary_stays_beside_what_the_task_brought() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    ok(&hive, "hf-task start T-0001 --actor agent:ann");
    hive.run("branch", &["tell", "ann", "hi"]).expect_exit(0);
    hive.run("checkpoint", &["--agent", "ann", "x"]).expect_exit(0);
    does(&hive, "ann", &["suspend", "BR-0002", "--summary", "Two fields"]);
    does(&hive, "ann", &["resume", "BR-0002"]);
    hive.run("branch", &["tell", "ann", "still?"]).expect_exit(0);
    hive.run("checkpoint", &["--agent", "ann", "x"]).expect_exit(0);
    does(&hive, "ann", &["suspend", "BR-0002", "--summary", "Three fields"]);
    ok(&hive, "hf-task succeed T-0001 --summary Validated --actor agent:ann");
    let all = does(&hive, "ann", &["recall", "BR-0002"]).stdout;
    let first = does(&hive, "ann", &["recall", "BR-0002", "--thread", "1"]).stdout;
    for told in [&all, &first] {
        assert!(told.contains("  Summary: Two fields\n"), "{told}");
    }
    // Only the last thread says what came of it, below its own summary.
    assert!(!first.contains("Validated"), "{first}");
    assert!(all.contains("  Summary: Three fields\n    T-0001 is Succeeded; Validated\n"), "{all}");
    keeps_the_rules(&hive);
}

#[test]
fn m2_no_text_is_dropped_in_silence() {
    // Where nothing is left, a summary is refused.
    let hive = TestVault::new();
    does(&hive, "ben", &["note", "I am ben"]);
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    does(&hive, "ann", &["create", "My novel", "--type", "free", "--summary", "One field"]);
    hive.run("append", &["AgentStarted", "--actor", "agent:cem"]).expect_exit(0);
    let before = hive.contents();
    for made in [["social", "--partner", "ben"], ["social", "--partner", "cem"], ["task", "--task", "T-0001"]] {
        let create = [&["create", "X", "--type"], &made[..], &["--summary", "Lyra is armed"]].concat();
        let reply = by(&hive, "ann", &create);
        assert_eq!(reply.code, Some(2), "{made:?}: {reply:?}");
        assert!(hive.contents() == before, "{made:?}");
    }
    // A tail stays with the thread that a message ends.
    fs::write(hive.dir().join("tail.txt"), "the last line\n").unwrap();
    hive.run("branch", &["tell", "ann", "I am home"]).expect_exit(0);
    let reply = by(&hive, "ann", &["resume", "ann", "--abort", "--tail", "tail.txt"]);
    assert_eq!((reply.code, reply.report_of_document().get("STATUS")), (Some(1), "INTERRUPTED"), "{reply:?}");
    assert!(does(&hive, "ann", &["recall", "--all", "--grep", "last line"]).stdout.contains("  the last line\n"));
    keeps_the_rules(&hive);
}

#[test]
fn m2_what_is_said_about_a_branch_that_was_left_stays_there() {
    let hive = interrupted();
    hive.run("checkpoint", &["--agent", "ann", "x"]).expect_exit(0);
    // It is on its root already.
    does(&hive, "ann", &["resume", "ann", "--summary", "Lyra is armed"]);
    assert!(does(&hive, "ann", &["recall", "BR-0002"]).stdout.contains("  Summary: Lyra is armed\n"));
    // A tail alone cannot be added to a thread that has ended, and is not about another one.
    fs::write(hive.dir().join("tail.txt"), "the last line\n").unwrap();
    does(&hive, "ann", &["resume", "BR-0002"]);
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task assign T-0001 ann");
    let before = hive.contents();
    for leaving in [&["suspend", "--tail", "tail.txt"][..], &["resume", "ann", "--abort", "--tail", "tail.txt"]] {
        assert_eq!(by(&hive, "ann", leaving).code, Some(2), "{leaving:?}");
        assert!(hive.contents() == before, "{leaving:?}");
    }
    does(&hive, "ann", &["suspend", "--tail", "tail.txt", "--summary", "Lyra rests"]);
    let told = does(&hive, "ann", &["recall", "BR-0002", "--thread", "2"]).stdout;
    assert!(told.contains("  Summary: Lyra rests\n") && told.contains("  the last line\n"), "{told}");
    keeps_the_rules(&hive);
}

#[test]
fn m8_left_out_counts_what_was_never_kept_for_a_context() {
    let hive = TestVault::new();
    for n in 0..13 {
        does(&hive, "ann", &["create", &format!("walk {n}"), "--type", "free"]);
        does(&hive, "ann", &["suspend", "--summary", &format!("walked {n}")]);
    }
    let left_out = |reference: &str, words: &str| {
        let reply = does(&hive, "ann", &["resume", reference, "--words", words]);
        let shown = reply.stdout.lines().filter(|line| line.contains(" walked ")).count();
        (shown, reply.report_of_document().get("LEFT_OUT").parse::<usize>().unwrap())
    };
    assert_eq!(left_out("ann", "5000"), (10, 3));
    // The branch itself is none of the others.
    does(&hive, "ann", &["create", "Long", "--type", "free"]);
    for n in 0..13 {
        does(&hive, "ann", &["suspend", "--summary", &format!("walked on {n}")]);
        does(&hive, "ann", &["resume", "BR-0015"]);
    }
    // Ten other branches of thirteen, ten summaries of thirteen: the newest one is the anchor.
    let (shown, left) = left_out("BR-0015", "5000");
    assert_eq!((shown + left, left), (26, 26 - shown), "{shown} {left}");
    let (shown, left) = left_out("BR-0015", "100");
    assert_eq!(shown + left, 26, "{shown} {left}");
}

#[test]
fn m9_a_heading_without_an_answer_is_left_out() {
    let hive = TestVault::new();
    does(&hive, "ann", &["create", "My novel", "--type", "free"]);
    let told = context(&hive, "BR-0002");
    assert!(!told.contains("With the user"), "{told}");
    does(&hive, "ann", &["note", "--branch", "ann", "Hello"]);
    assert!(context(&hive, "BR-0002").contains("# With the user, BR-0001\n"));
}
