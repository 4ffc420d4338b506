//! What a pause and a resume reply, and who may ask for them.

use serde_json::json;

use crate::support::session_fixture::{logged_in, within};
use crate::support::steps::{keeps_the_rules, kinds, kinds_since, ok, sh};
use crate::support::test_vault::{TestVault, write_private};
use crate::support::watchdog_fixture::all_is_well;

#[test]
fn every_pause_reply_is_complete() {
    let hive = TestVault::new();
    logged_in(&hive, "a", "main");
    assert_eq!(
        hive.run("pause", &["The direction is wrong"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:PAUSED\nNEXT:NONE\nSUM:project main is Paused\nSTATE:Paused\nDRAINED:no\n\
         LEFT:S-0001\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         STANDING:paused 2026-01-31T12:00:00Z project=main by=user:jo The direction is wrong\n"
    );
    let before = hive.contents();
    assert_eq!(
        hive.run("pause", &["Another reason"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:NONE\nSUM:project main is Paused\nSTATE:Paused\nDRAINED:no\n\
         LEFT:S-0001\nEVENT_ID:<ulid>\n\
         STANDING:paused 2026-01-31T12:00:00Z project=main by=user:jo The direction is wrong\n"
    );
    assert_eq!(
        sh(&hive, "hf-pause --wait --max 1s").expect_exit(1).masked(&hive),
        "EXIT:1\nSTATUS:PAUSED\nNEXT:NONE\nSUM:project main is Paused\nSTATE:Paused\nDRAINED:no\nLEFT:S-0001\n\
         STANDING:paused 2026-01-31T12:00:00Z project=main by=user:jo The direction is wrong\n"
    );
    assert!(hive.contents() == before);
    assert_eq!(
        ok(&hive, "hf-session logout --agent a").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:S-0001 is Ended\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         SUBJECT:session:<ulid>\nREF:S-0001@<tag>\nSTATE:Ended\nSESSION_ID:<ulid>\nEXPIRES_AT:2026-01-31T12:05:00Z\n"
    );
    assert_eq!(kinds(&hive).last().unwrap(), "PauseDrained");
    assert_eq!(
        ok(&hive, "hf-pause --wait").masked(&hive),
        "EXIT:0\nSTATUS:PAUSED\nNEXT:NONE\nSUM:project main is Paused\nSTATE:Paused\nDRAINED:yes\n\
         STANDING:paused 2026-01-31T12:00:00Z project=main by=user:jo The direction is wrong\n"
    );
    assert_eq!(
        hive.run("resume", &["--comment", "All is well"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RESUMED\nNEXT:NONE\nSUM:project main is Active\nEVENT_ID:<ulid>\nSUBJECT:project:main\n\
         STATE:Active\n"
    );
    let before = hive.contents();
    assert_eq!(
        ok(&hive, "hf-resume --project main").masked(&hive),
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:NONE\nSUM:project main is Active\nEVENT_ID:<ulid>\nSUBJECT:project:main\n\
         STATE:Active\n"
    );
    // Nothing is paused, and nothing is said to be.
    let waited = ok(&hive, "hf-pause --wait");
    assert_eq!(["STATUS", "STATE", "DRAINED"].map(|key| waited.get(key)), ["OK", "Active", "yes"]);
    assert!(hive.contents() == before);
    assert_eq!(
        hive.run("pause", &["--archive", "main", "It is done", "--yes"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:ARCHIVED\nNEXT:NONE\nSUM:project main is Archived\nSTATE:Archived\nDRAINED:yes\n\
         EVENT_ID:<ulid>\nSTANDING:archived 2026-01-31T12:00:00Z project=main by=user:jo It is done\n"
    );
    assert_eq!(ok(&hive, "hf-pause --archive main --yes").get("STATUS"), "DUPLICATE");
    let refused = hive.refuses("resume", &[], 3);
    assert_eq!(
        refused.masked(&hive),
        "EXIT:3\nSTATUS:REFUSED\nNEXT:NONE\nSUM:project main is Archived, which is final\n\
         REASON:illegal_transition\nSTANDING:archived 2026-01-31T12:00:00Z project=main by=user:jo It is done\n"
    );
    assert_eq!(hive.refuses("pause", &["again"], 3).get("REASON"), "illegal_transition");
    all_is_well(&hive);
}

#[test]
fn bad_requests_are_refused() {
    let hive = TestVault::new();
    for (name, args, code) in [
        ("pause", &[][..], 2),
        ("pause", &[" "], 2),
        ("pause", &["x", "--project", "../x"], 2),
        ("pause", &["x", "--archive", "main", "--wait"], 2),
        ("pause", &["x", "--max", "5s"], 2),
        ("pause", &["x", "--wait", "--max", "0"], 2),
        ("resume", &["--system", "--project", "main"], 2),
        // A name that nothing belongs to is a slip.
        ("pause", &["x", "--project", "mian"], 6),
        ("pause", &["--archive", "mian", "--yes"], 6),
        ("pause", &["--wait", "--project", "mian"], 6),
        ("resume", &["--project", "mian"], 6),
    ] {
        hive.refuses(name, args, code);
    }
    let nowhere = TestVault::empty();
    for line in ["hf-pause x", "hf-resume", "hf-session list"] {
        assert_eq!(sh(&nowhere, line).expect_exit(7).get("STATUS"), "NO_VAULT");
    }
}

#[test]
fn resuming_a_project_that_was_never_paused_changes_nothing() {
    let hive = TestVault::new();
    let before = hive.contents();
    let reply = ok(&hive, "hf-resume");
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DUPLICATE", "project main is Active"));
    let reply = ok(&hive, "hf-pause --wait");
    assert_eq!(["STATUS", "STATE", "DRAINED"].map(|key| reply.get(key)), ["OK", "Active", "yes"]);
    assert!(hive.contents() == before, "{:#?}", kinds(&hive));
}

#[test]
fn only_an_operator_can_pause() {
    let hive = TestVault::new();
    logged_in(&hive, "a", "main");
    let lines = [
        "hf-pause x",
        "hf-pause --wait",
        "hf-pause --archive main --yes",
        "hf-resume",
        "hf-append ProjectPaused --subject project:main --payload {\"reason\":\"x\",\"grace_seconds\":1}",
        "hf-append ProjectResumed --subject project:main",
        "hf-append ProjectArchived --subject project:main",
    ];
    // The event alone is about something that is there.
    ok(&hive, "hf-pause x");
    ok(&hive, "hf-resume");
    for paused in [false, true] {
        let before = hive.contents();
        for line in lines {
            for shell in [[("HF_AGENT", "a")], [("HF_SESSION", "S-0001")], [("HF_SESSION", "x")]] {
                let reply = within(&hive, &shell, line).expect_exit(3);
                assert_eq!(reply.get("REASON"), "operator_only", "{line} in {shell:?}");
            }
            for actor in ["agent:a", "external:ci"] {
                let reply = sh(&hive, &format!("{line} --actor {actor}")).expect_exit(3);
                assert_eq!(reply.get("REASON"), "operator_only", "{line} by {actor}");
            }
        }
        assert!(hive.contents() == before);
        if !paused {
            ok(&hive, "hf-pause x");
        }
    }
    keeps_the_rules(&hive);
}

#[test]
fn appending_the_pause_event_does_the_same_as_the_command() {
    let hive = TestVault::new();
    hive.append("ProjectPaused", "project:main", json!({"reason": "x", "grace_seconds": 300}));
    assert_eq!(kinds_since(&hive, 1), ["ProjectOpened", "ProjectPaused", "PauseDrained"]);
    hive.append("ProjectResumed", "project:main", json!({}));
    hive.append("ProjectArchived", "project:main", json!({}));
    assert_eq!(
        sh(&hive, "hf-append ProjectPaused --subject project:mian --payload {\"reason\":\"x\",\"grace_seconds\":1}")
            .code,
        Some(6)
    );
    keeps_the_rules(&hive);
}

#[test]
fn a_long_or_strange_reason_cannot_add_a_line() {
    let hive = TestVault::new();
    let reason = format!("a\nSTATUS:RUNNING\u{202e}{}", "火".repeat(1000));
    let reply = hive.run("pause", &[&reason]).expect_exit(0);
    assert_eq!(reply.all("STATUS"), ["PAUSED"], "{reply:#?}");
    let reply = sh(&hive, "hf-task claim --actor agent:a").expect_exit(3);
    assert_eq!((reply.all("STATUS"), reply.stdout.lines().count()), (vec!["EXIT_REQUESTED"], 5), "{reply:#?}");
    write_private(&hive.dir().join("note"), b"");
    ok(&hive, "hf-resume");
    keeps_the_rules(&hive);
}
