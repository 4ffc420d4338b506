//! hf-review: reviewers in turn, round by round, in one form and within their time.

mod run;

use std::fs;

use hiveforge::event::{BatchPosition, Event, Kind};
use serde_json::{Value, json};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, found_after, found_in, keeps_the_rules, kinds_since, ok, refuses, sh};
use crate::support::test_vault::{Reply, TestVault, forged, mask, write_private};

/// A reviewer's reply.
fn says(hive: &TestVault, reviewer: &str, reply: &str) -> Reply {
    hive.pipe("review", &["record", "--reviewer", reviewer], reply)
}

#[track_caller]
fn said(hive: &TestVault, reviewer: &str, reply: &str) -> Reply {
    says(hive, reviewer, reply).expect_exit(0)
}

const FAILS: &str = "PASS: naming\nFAIL: no timeout -> FIX: add one\n";

/// A reviewer's reply to `spec.md` as it is now.
#[track_caller]
fn said_about_spec(hive: &TestVault, reviewer: &str, reply: &str) -> Reply {
    hive.pipe("review", &["record", "--reviewer", reviewer, "--spec", "spec.md"], reply).expect_exit(0)
}

/// A file of `reviews/`.
fn review(hive: &TestVault, name: &str) -> String {
    fs::read_to_string(hive.vault().join("Autonomous/reviews").join(name)).expect("a reply")
}

fn spec(hive: &TestVault) {
    fs::write(hive.dir().join("spec.md"), "# Login\n\nTwo factors.\n\n").unwrap();
}

/// Changes the spec.
fn revise(hive: &TestVault, text: &str) {
    fs::write(hive.dir().join("spec.md"), text).unwrap();
}

/// A prompt for this spec and these lines.
fn prompt(fails: &str) -> String {
    format!(
        "Review the spec below. Respond ONLY in this format:\nPASS: <item>\nFAIL: <item> -> FIX: <fix in 1 line>\n\
         Max 200 words. No prose.\n\n---\n# Login\n\nTwo factors.\n---\nPrevious FAIL items (if any):\n{fails}"
    )
}

#[test]
fn a_debate_from_its_first_reply_to_the_last() {
    let hive = TestVault::new();
    spec(&hive);
    assert_eq!(
        ok(&hive, "hf-review status").stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:it is gpt's turn\nROUND:0/4\nTURN:gpt\nCONVERGED:no\n"
    );
    refuses(&hive, "hf-review fails", 6, "no review yet");
    let asked = sh(&hive, "hf-review prompt spec.md");
    assert_eq!(asked.stdout, prompt(""));
    assert_eq!(
        mask(&asked.stderr),
        format!("EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:prompt of {} bytes\nSHA256:<digest>\n", prompt("").len())
    );
    let reply = said_about_spec(&hive, "gpt", &format!("{FAILS}FAIL: 名前 → FIX: 直す\n\n"));
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:PATCH\nSUM:R-gpt-0001: 1 PASS, 2 FAIL\nROUND:1/4\nTURN:gem\nCONVERGED:no\n\
         REVIEW:R-gpt-0001\nFILE:reviews/R-gpt-0001.md\nFAIL:no timeout -> FIX: add one\nFAIL:名前 -> FIX: 直す\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\n"
    );
    assert_eq!(review(&hive, "R-gpt-0001.md"), format!("{FAILS}FAIL: 名前 → FIX: 直す\n"));
    assert_eq!(
        ok(&hive, "hf-review status").stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:PATCH\nSUM:it is gem's turn\nROUND:1/4\nTURN:gem\nCONVERGED:no\n\
         FAIL:no timeout -> FIX: add one\nFAIL:名前 -> FIX: 直す\n"
    );
    let asked = sh(&hive, "hf-review prompt spec.md --reviewer gem").stdout;
    assert_eq!(asked, prompt("FAIL: no timeout -> FIX: add one\nFAIL: 名前 -> FIX: 直す\n"));
    revise(&hive, "# Login\n\nTwo factors, within a minute.\n");
    said_about_spec(&hive, "gem", "FAIL: too long -> FIX: cut it\nFAIL: **No timeout.** -> FIX: half a minute");
    // Only what is open, and nothing older.
    spec(&hive);
    let open = "FAIL: too long -> FIX: cut it\nFAIL: **No timeout.** -> FIX: half a minute\n";
    assert_eq!(sh(&hive, "hf-review prompt spec.md").stdout, prompt(open));
    assert_eq!(
        ok(&hive, "hf-review fails").stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:R-gem-0001 has 2 FAIL lines\nREVIEW:R-gem-0001\nFAIL:too long -> FIX: cut it\n\
         FAIL:**No timeout.** -> FIX: half a minute\n"
    );
    assert_eq!(ok(&hive, "hf-review fails R-gpt-0001").all("FAIL").len(), 2);
    refuses(&hive, "hf-review fails R-gpt-0002", 6, "R-gpt-0002");
    revise(&hive, "# Login\n\nTwo factors, in half a minute.\n");
    let reply = said_about_spec(&hive, "gpt", "PASS: all of it");
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:R-gpt-0002: 1 PASS, 0 FAIL\nROUND:3/4\nCONVERGED:yes\n\
         REVIEW:R-gpt-0002\nFILE:reviews/R-gpt-0002.md\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n"
    );
    assert_eq!(
        ok(&hive, "hf-review status").stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:the reviewers agree\nROUND:3/4\nCONVERGED:yes\n"
    );
    assert_eq!(
        kinds_since(&hive, 1),
        ["DebateOpened", "ReviewRecorded", "ReviewRecorded", "ReviewRecorded", "DebateConverged"]
    );
    // The next reply is about something new: it starts afresh, with nothing from before.
    spec(&hive);
    assert_eq!(sh(&hive, "hf-review prompt spec.md").stdout, prompt(""));
    assert_eq!(says(&hive, "gem", "PASS: x").code, Some(3), "gpt begins");
    assert_eq!(said(&hive, "gpt", "PASS: x").get("ROUND"), "1/4");
    keeps_the_rules(&hive);
}

#[test]
fn one_satisfied_reviewer_is_not_enough() {
    let hive = TestVault::new();
    assert_eq!(said(&hive, "gpt", "PASS: a").get("CONVERGED"), "no");
    assert_eq!(said(&hive, "gem", "PASS: a").get("CONVERGED"), "yes");
    keeps_the_rules(&hive);
}

#[test]
fn j7_a_fail_stays_open_until_the_document_changes() {
    let hive = TestVault::new();
    spec(&hive);
    said_about_spec(&hive, "gpt", FAILS);
    // What the first found, the second need not find in the same document.
    let reply = said_about_spec(&hive, "gem", "PASS: a");
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:PATCH\nSUM:R-gem-0001: 1 PASS, 0 FAIL; 1 FAIL of earlier reviews still open, because \
         the document is unchanged\nROUND:2/4\nTURN:gpt\nCONVERGED:no\nREVIEW:R-gem-0001\nFILE:reviews/R-gem-0001.md\n\
         STILL_OPEN:R-gpt-0001 unchanged no timeout -> FIX: add one\nEVENT_ID:<ulid>\n"
    );
    assert_eq!(
        ok(&hive, "hf-review status").stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:PATCH\nSUM:it is gpt's turn\nROUND:2/4\nTURN:gpt\nCONVERGED:no\n\
         STILL_OPEN:R-gpt-0001 unchanged no timeout -> FIX: add one\n"
    );
    assert_eq!(sh(&hive, "hf-review prompt spec.md").stdout, prompt("FAIL: no timeout -> FIX: add one\n"));
    // Found again, in other words about the fix: it is about the changed document now.
    revise(&hive, "# Login\n\nTwo factors, soon.\n");
    let reply = said_about_spec(&hive, "gpt", "FAIL: 1. `No timeout` -> FIX: a number");
    assert_eq!((reply.all("FAIL"), reply.all("STILL_OPEN")), (vec!["1. `No timeout` -> FIX: a number"], vec![]));
    revise(&hive, "# Login\n\nTwo factors, within a minute.\n");
    let reply = said_about_spec(&hive, "gem", "PASS: a");
    assert_eq!((reply.get("CONVERGED"), reply.get("ROUND")), ("yes", "4/4"));
    let recorded = hive.events().into_iter().rfind(|event| event["event_type"] == "ReviewRecorded").unwrap();
    let hash = sh(&hive, "hf-review prompt spec.md").stderr;
    assert!(hash.contains(recorded["payload"]["document_sha256"].as_str().unwrap()), "{hash}");
    keeps_the_rules(&hive);
}

#[test]
fn j7_a_reply_without_its_document_closes_no_fail() {
    let hive = TestVault::new();
    spec(&hive);
    let reply = said(&hive, "gpt", FAILS);
    assert!(reply.stderr.contains("without --spec the document counts as unchanged"), "{reply:#?}");
    // The first document that is known is the one to be changed.
    let reply = said_about_spec(&hive, "gem", "PASS: a");
    assert_eq!(reply.get("STILL_OPEN"), "R-gpt-0001 unknown no timeout -> FIX: add one");
    assert!(reply.get("SUM").ends_with("because the document is not known to have changed"), "{reply:#?}");
    revise(&hive, "changed\n");
    let reply = said(&hive, "gpt", "PASS: a");
    assert_eq!((reply.get("CONVERGED"), reply.all("STILL_OPEN").len()), ("no", 1));
    let asked = sh(&hive, "hf-review prompt spec.md").stderr;
    let hash = asked.lines().find_map(|line| line.strip_prefix("SHA256:")).unwrap();
    let given = ["record", "--reviewer", "gem", "--spec", &format!("sha256:{hash}")];
    assert_eq!(hive.pipe("review", &given, "PASS: a").expect_exit(0).get("CONVERGED"), "yes");
    for (spec, why) in [
        ("sha256:12", "invalid hash; must be sha256: and 64 lower-case hex digits"),
        ("-", "--spec cannot be -, which is the reply"),
        ("none.md", "cannot read none.md: No such file or directory (os error 2)"),
    ] {
        let reply = hive.refuses_input("review", &["record", "--reviewer", "gpt", "--spec", spec], "PASS: a", 2);
        assert_eq!(reply.get("SUM"), why);
    }
    keeps_the_rules(&hive);
}

#[test]
fn j7_an_agent_gets_no_new_rounds_by_another_mission() {
    let hive = TestVault::new();
    spec(&hive);
    let agent = |command: &str, args: &[&str], reply: &str| {
        hive.pipe(command, &[args, &["--actor", "agent:a"]].concat(), reply)
    };
    let record = ["record", "--reviewer", "gpt", "--spec", "spec.md"];
    agent("state", &["start", "one"], "").expect_exit(0);
    agent("review", &record, FAILS).expect_exit(0);
    // It closes the debate, with a FAIL that is open.
    agent("state", &["done"], "").expect_exit(0);
    agent("state", &["start", "two"], "").expect_exit(0);
    for args in [&["open"][..], &record] {
        let reply = agent("review", args, "PASS: a").expect_exit(3);
        assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("ROUND_LIMIT", "ASK operator"), "{args:?}");
        assert_eq!(reply.get("SUM"), "DB-0001 ended with something to fix; an operator opens the next debate");
    }
    ok(&hive, "hf-review open");
    agent("review", &record, "PASS: a").expect_exit(0);
    keeps_the_rules(&hive);
}

#[test]
fn a_reviewer_out_of_turn_is_told_whose_turn_it_is() {
    let hive = TestVault::new();
    let reply = hive.refuses_input("review", &["record", "--reviewer", "gem"], "PASS: x", 3);
    assert_eq!(
        reply.stdout,
        "EXIT:3\nSTATUS:REFUSED\nNEXT:ACTION hf-review status\nSUM:it is gpt's turn, not gem's\nREASON:not_your_turn\n"
    );
    said(&hive, "gpt", "PASS: x");
    assert_eq!(
        hive.refuses_input("review", &["record", "--reviewer", "gpt"], "PASS: x", 3).get("REASON"),
        "not_your_turn"
    );
    let reply = hive.refuses_input("review", &["record", "--reviewer", "bob"], "PASS: x", 2);
    assert_eq!(reply.get("SUM"), "unknown reviewer 'bob'; one of gpt, gem");
    spec(&hive);
    refuses(&hive, "hf-review prompt spec.md --reviewer bob", 2, "unknown reviewer 'bob'; one of gpt, gem");
    keeps_the_rules(&hive);
}

#[test]
fn a_reply_in_any_other_form_changes_nothing() {
    let hive = TestVault::new();
    let words = |n: usize| format!("PASS: {}", vec!["w"; n - 1].join(" "));
    let bytes = |n: usize| format!("PASS: {}{}", "あ".repeat((n - 6) / 3), "x".repeat((n - 6) % 3));
    for (reply, why) in [
        (String::new(), "the reply has neither a PASS nor a FAIL line"),
        ("  \n\n".to_owned(), "the reply has neither a PASS nor a FAIL line"),
        ("Looks good!".to_owned(), "a line starts with neither 'PASS:' nor 'FAIL:': Looks good!"),
        ("Well.\nPASS: a\nFine.\nSo.".to_owned(), "a line starts with neither 'PASS:' nor 'FAIL:': So."),
        ("FAIL: a".to_owned(), "a FAIL line has no '-> FIX:': FAIL: a"),
        ("FAIL: a -> FIX: ".to_owned(), "a FAIL line has an empty FIX: FAIL: a -> FIX:"),
        ("FAIL:  -> FIX: b".to_owned(), "a FAIL line names no item: FAIL:  -> FIX: b"),
        ("PASS:".to_owned(), "a PASS line names no item: PASS:"),
        (words(201), "the reply has 201 words; at most 200"),
        (bytes(2001), "the reply has 2001 bytes; at most 2000"),
        ("PASS: a\u{1b}[2J".to_owned(), "a line of the reply contains control or invisible characters"),
        ("FAIL: a -> FIX: b\u{2028}PASS: c".to_owned(), "a line of the reply contains control or invisible characters"),
        ("x".repeat(1024 * 1024), "the reply has 1048576 bytes; at most 2000"),
    ] {
        let said = hive.refuses_input("review", &["record", "--reviewer", "gpt"], reply, 2);
        assert_eq!(said.get("SUM"), why);
    }
    hive.refuses_input("review", &["record", "--reviewer", "gpt"], b"PASS: \xff".to_vec(), 2);
    hive.refuses_input("review", &["record", "--reviewer", "gpt"], "x".repeat(3 * 1024 * 1024), 2);
    // At the limit, followed by the line's end.
    said(&hive, "gpt", &format!("{}\n", words(200)));
    said(&hive, "gem", &format!("\n{}\n", bytes(2000)));
    assert_eq!(review(&hive, "R-gem-0001.md").len(), 2001);
    keeps_the_rules(&hive);
}

#[test]
fn after_four_rounds_only_an_operator_can_continue() {
    let hive = TestVault::new();
    spec(&hive);
    for reviewer in ["gpt", "gem", "gpt"] {
        said(&hive, reviewer, FAILS);
    }
    let last = said(&hive, "gem", FAILS);
    assert_eq!((last.get("ROUND"), last.get("NEXT"), last.get("CONVERGED")), ("4/4", "ASK operator", "no"));
    assert_eq!(
        ok(&hive, "hf-review status").stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:ASK operator\nSUM:all rounds are used up, and there is still something to fix\nROUND:4/4\n\
         CONVERGED:no\nFAIL:no timeout -> FIX: add one\n"
    );
    let limit = "EXIT:3\nSTATUS:ROUND_LIMIT\nNEXT:ASK operator\nSUM:all 4 rounds are used up, and there is still something to fix\n\
                 REASON:round_limit\n";
    assert_eq!(hive.refuses_input("review", &["record", "--reviewer", "gpt"], "PASS: x", 3).stdout, limit);
    assert_eq!(hive.refuses("review", &["prompt", "spec.md"], 3).stdout, limit);
    assert_eq!(hive.refuses("review", &["run", "spec.md"], 3).stdout, limit);
    assert_eq!(hive.refuses("review", &["open", "--actor", "agent:a"], 3).stdout, limit);
    // In an agent's shell nobody is an operator.
    let mut shell = hive.command("review");
    let reply =
        Reply::of(shell.args(["open", "--actor", "user:jo"]).env("HF_AGENT", "a").output().unwrap()).expect_exit(3);
    assert_eq!(reply.get("REASON"), "operator_only");
    let payload = json!({"reviewers": ["gpt", "gem"]}).to_string();
    hive.refuses("append", &["DebateOpened", "--actor", "agent:a", "--payload", &payload], 3);
    assert_eq!(ok(&hive, "hf-review open").get("STATUS"), "RECORDED");
    assert_eq!(ok(&hive, "hf-review open").get("STATUS"), "DUPLICATE");
    assert_eq!(ok(&hive, "hf-review status").get("ROUND"), "0/4");
    assert_eq!(said(&hive, "gpt", "PASS: x").get("REVIEW"), "R-gpt-0003");
    keeps_the_rules(&hive);
    // The fourth that finds nothing is no limit.
    let hive = TestVault::new();
    for reviewer in ["gpt", "gem", "gpt"] {
        revise(&hive, reviewer);
        said_about_spec(&hive, reviewer, FAILS);
    }
    revise(&hive, "fixed");
    assert_eq!(said_about_spec(&hive, "gem", "PASS: x").get("CONVERGED"), "yes");
    keeps_the_rules(&hive);
}

#[test]
fn a_debate_belongs_to_the_current_mission_and_reports_its_status() {
    let hive = TestVault::new();
    said(&hive, "gpt", FAILS);
    ok(&hive, "hf-state start Login");
    assert_eq!(
        ok(&hive, "hf-review status").stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:it is gpt's turn\nROUND:0/4\nTURN:gpt\nCONVERGED:no\nM1_STATUS:RUNNING\n"
    );
    assert_eq!(count(&hive, "DebateClosed"), 1);
    assert_eq!(said(&hive, "gpt", FAILS).get("REVIEW"), "R-gpt-0002");
    ok(&hive, "hf-state done");
    let status = ok(&hive, "hf-review status");
    assert_eq!((status.get("ROUND"), status.get("M1_STATUS")), ("0/4", "PASS"));
    // Nobody opens one that is about something else.
    ok(&hive, "hf-state start Logout");
    let payload = json!({"reviewers": ["gpt"]}).to_string();
    let reply = hive.refuses("append", &["DebateOpened", "--payload", &payload], 2);
    assert!(reply.get("SUM").starts_with("a debate must be about the running mission"), "{reply:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn the_same_key_gives_the_first_reply_and_its_file_again() {
    let hive = TestVault::new();
    let args = ["record", "--reviewer", "gpt", "--key", "k"];
    let first = hive.pipe("review", &args, FAILS).expect_exit(0);
    said(&hive, "gem", "PASS: x");
    fs::remove_file(hive.vault().join("Autonomous/reviews/R-gpt-0001.md")).unwrap();
    let again = hive.pipe("review", &args, FAILS).expect_exit(0);
    assert_eq!((again.get("STATUS"), again.get("REVIEW")), ("DUPLICATE", "R-gpt-0001"));
    assert_eq!(again.all("EVENT_ID")[0], first.all("EVENT_ID")[0]);
    assert_eq!(review(&hive, "R-gpt-0001.md"), FAILS);
    assert_eq!(hive.refuses_input("review", &args, "PASS: x", 3).get("REASON"), "key_conflict");
    let other = ["record", "--reviewer", "gem", "--key", "k"];
    assert_eq!(hive.refuses_input("review", &other, FAILS, 3).get("REASON"), "key_conflict");
    keeps_the_rules(&hive);
}

#[test]
fn a_missing_reply_file_is_rewritten_by_the_next_reader() {
    let hive = TestVault::new();
    said(&hive, "gpt", FAILS);
    said(&hive, "gem", FAILS);
    let folder = hive.vault().join("Autonomous/reviews");
    fs::remove_dir_all(&folder).unwrap();
    ok(&hive, "hf-review status");
    assert_eq!(review(&hive, "R-gem-0001.md"), FAILS);
    ok(&hive, "hf-review fails R-gpt-0001");
    assert_eq!(review(&hive, "R-gpt-0001.md"), FAILS);
    // What somebody wrote there is theirs.
    write_private(&folder.join("R-gem-0001.md"), b"note");
    ok(&hive, "hf-review fails");
    assert_eq!(review(&hive, "R-gem-0001.md"), "note");
}

#[test]
fn raw_appends_follow_the_same_rules_and_the_audit_finds_violations() {
    let hive = TestVault::new();
    said(&hive, "gpt", FAILS);
    let debate = hive.events()[1]["subject"].as_str().unwrap().to_owned();
    let id = debate.strip_prefix("debate:").unwrap().to_owned();
    let reply = |reviewer: &str, text: &str, fails: Value| json!({"debate_id": id, "reviewer": reviewer, "text": text, "fails": fails});
    let record = |subject: &str, payload: Value, code: i32| {
        let args = ["ReviewRecorded", "--subject", subject, "--payload", &payload.to_string()];
        hive.refuses("append", &args, code).get("SUM").to_owned()
    };
    for (subject, payload, code, why) in [
        ("review:R-gpt-0002", reply("gpt", "PASS: x", json!([])), 3, "it is gem's turn, not gpt's"),
        (
            "review:R-gem-0001",
            reply("gem", "fine", json!([])),
            2,
            "a line starts with neither 'PASS:' nor 'FAIL:': fine",
        ),
        (
            "review:R-gem-0001",
            reply("gem", FAILS, json!([])),
            2,
            "payload.fails does not match the FAIL lines of the reply",
        ),
        (
            "review:R-gem-1",
            reply("gem", "PASS: x", json!([])),
            2,
            "the id of this review must have the form R-gem-0001, with four digits or more",
        ),
        (
            "review:R-gpt-0009",
            reply("gem", "PASS: x", json!([])),
            2,
            "the id of this review must have the form R-gem-0001, with four digits or more",
        ),
    ] {
        assert_eq!(record(subject, payload, code), why);
    }
    for kind in ["DebateConverged", "DebateExhausted"] {
        let reply = hive.refuses("append", &[kind, "--subject", &debate, "--payload", "{}"], 3);
        assert!(reply.get("SUM").contains("do not lead to"), "{reply:#?}");
    }
    let payload = json!({"reviewers": ["gpt"]}).to_string();
    hive.refuses("append", &["DebateOpened", "--payload", &payload], 3);
    hive.refuses("append", &["DebateClosed", "--subject", &debate, "--actor", "agent:a", "--payload", "{}"], 3);
    for names in [json!([]), json!(["a", "a"]), json!(["../x"]), json!(["a-b"]), json!(["a", "b", "c", "d", "e"])] {
        let payload = json!({"reviewers": names}).to_string();
        TestVault::new().refuses("append", &["DebateOpened", "--payload", &payload], 2);
    }
    let found = found_after(
        &hive,
        vec![
            ("user:jo", Kind::DebateConverged, &debate, json!({})),
            ("user:jo", Kind::ReviewRecorded, "review:R-gpt-0002", reply("gpt", "PASS: x", json!([]))),
        ],
    );
    assert!(found[0].contains("do not lead to DebateConverged"), "{found:#?}");
    assert!(found.len() > 1, "{found:#?}");
    let hive = TestVault::new();
    let found = found_after(
        &hive,
        vec![
            ("user:jo", Kind::DebateOpened, "debate:d", json!({"reviewers": ["gpt", "gem"]})),
            (
                "user:jo",
                Kind::ReviewRecorded,
                "review:R-gem-0001",
                json!({"debate_id": "d", "reviewer": "gem", "text": "PASS: x", "fails": []}),
            ),
        ],
    );
    assert!(found.iter().any(|found| found.contains("it is gpt's turn, not gem's")), "{found:#?}");
}

#[test]
fn a_missing_or_empty_spec_is_reported() {
    let hive = TestVault::new();
    fs::write(hive.dir().join("empty.md"), " \n\n").unwrap();
    fs::write(hive.dir().join("raw.md"), b"\xff").unwrap();
    for command in ["prompt", "run"] {
        refuses(&hive, &format!("hf-review {command} empty.md"), 2, "the spec is empty");
        refuses(&hive, &format!("hf-review {command} none.md"), 2, "cannot read none.md: No such file");
        refuses(&hive, &format!("hf-review {command} raw.md"), 2, "the text is not UTF-8");
        refuses(&hive, &format!("hf-review {command} ."), 2, "cannot read .: Is a directory");
        refuses(&hive, &format!("hf-review {command} D0001@a13c"), 6, "document 'D0001@<tag>' not found");
        assert_eq!(hive.refuses_input("review", &[command, "-"], "", 2).get("SUM"), "the spec is empty");
    }
    // A spec by its reference, and not one that has changed since.
    spec(&hive);
    let reference = ok(&hive, "hf-ref add spec.md").get("REF").to_owned();
    assert_eq!(sh(&hive, &format!("hf-review prompt {reference}")).stdout, prompt(""));
    fs::write(hive.dir().join("spec.md"), "other").unwrap();
    refuses(&hive, &format!("hf-review prompt {reference}"), 3, "has changed: ");
    fs::write(hive.dir().join("long.md"), "x".repeat(2 * 1024 * 1024)).unwrap();
    refuses(&hive, "hf-review prompt long.md", 2, "the text is too long");
}

#[test]
fn reviewers_are_configurable_and_fixed_once_a_debate_begins() {
    let story = TestJobVault::new("reviewers:\n  order: [ann, bob, eve]\n");
    for name in ["ann", "bob"] {
        assert_eq!(said(&story, name, "PASS: x").get("CONVERGED"), "no");
    }
    story.settle("reviewers:\n  order: [zoe]\n");
    assert_eq!(ok(&story, "hf-review status").get("TURN"), "eve");
    assert_eq!(said(&story, "eve", "PASS: x").get("CONVERGED"), "yes");
    assert_eq!(said(&story, "zoe", "PASS: x").get("CONVERGED"), "yes", "alone, everybody is one");
    story.over();
}

#[test]
fn j14_a_reply_that_is_nearly_in_the_format_is_read() {
    let hive = TestVault::new();
    let reply = said(
        &hive,
        "gpt",
        "# Review\n\nHere you are:\n1. **pass:** naming\n2. __FAIL__：`a` -> Fix: b\n> FAIL - c → d\n",
    );
    assert_eq!(reply.get("SUM"), "R-gpt-0001: 1 PASS, 2 FAIL");
    assert_eq!(reply.all("FAIL"), ["`a` -> FIX: b", "c -> FIX: d"]);
    keeps_the_rules(&hive);
}

#[test]
fn j7_a_forged_agreement_is_found_but_not_in_a_log_of_version_0_1() {
    let reply = |reviewer: &str, text: &str, fails: Value| json!({"debate_id": "d", "reviewer": reviewer, "text": text, "fails": fails, "document_sha256": "0".repeat(64)});
    let debate = || {
        let events = [
            (Kind::DebateOpened, "debate:d", json!({"reviewers": ["gpt", "gem"]})),
            (Kind::ReviewRecorded, "review:R-gpt-0001", reply("gpt", "FAIL: a -> FIX: b", json!(["a -> FIX: b"]))),
            (Kind::ReviewRecorded, "review:R-gem-0001", reply("gem", "PASS: x\nPASS: FAIL: y", json!([]))),
            (Kind::DebateConverged, "debate:d", json!({})),
        ];
        let numbered = (1..).zip(events);
        let mut events: Vec<Event> = numbered.map(|(n, (kind, on, payload))| forged(n, kind, on, payload)).collect();
        // The verdict is recorded together with the last reply, as its consequence.
        events[2].batch = Some(BatchPosition { no: 1, of: 2 });
        events[3].batch = Some(BatchPosition { no: 2, of: 2 });
        events[3].parents = vec![events[2].id];
        events[3].actor = "core:reactor".to_owned();
        events
    };
    let hive = TestVault::new();
    let found = found_in(&hive, [hive.recorded(), debate()].concat());
    assert!(found.iter().any(|found| found.contains("do not lead to DebateConverged")), "{found:#?}");
    assert!(found.iter().any(|found| found.contains("a PASS line contains another item")), "{found:#?}");
    // That version recorded no settings.
    let hive = TestVault::new();
    let mut first = hive.recorded();
    first[0].payload.remove("settings");
    assert_eq!(found_in(&hive, [first, debate()].concat()), Vec::<String>::new());
}
