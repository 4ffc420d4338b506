//! hf-verify: the verdicts and anchors. `rules/recovery.rs` has an operator's recovery.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hiveforge::vault::{ChainVerdict, TailVerdict};
use serde_json::json;

use crate::support::test_vault::{Reply, TestVault, jsonl, write_private};

/// A vault with the first event and two more.
fn three() -> TestVault {
    let hive = TestVault::new();
    hive.propose("one");
    hive.propose("two");
    hive
}

/// The verdicts of a reply: CHAIN, TAIL, HEAD, ANCHOR.
fn verdicts(reply: &Reply) -> [&str; 4] {
    ["CHAIN", "TAIL", "HEAD", "ANCHOR"].map(|key| reply.get(key))
}

fn log(hive: &TestVault) -> Vec<u8> {
    fs::read(hive.segment()).unwrap()
}

/// The offsets at which lines end.
fn ends(log: &[u8]) -> Vec<usize> {
    log.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect()
}

fn flip(hive: &TestVault, at: usize) {
    let mut bytes = log(hive);
    bytes[at] ^= 1;
    write_private(&hive.segment(), &bytes);
}

#[test]
fn a_good_log_passes_with_every_verdict() {
    let hive = three();
    let before = hive.contents();
    for args in [&[][..], &["--reference"]] {
        let reply = hive.run("verify", args).expect_exit(0);
        assert_eq!(
            reply.masked(&hive),
            "EXIT:0\nSTATUS:VERIFIED\nNEXT:NONE\nSUM:3 events verified\nCHAIN:OK\nTAIL:CLEAN\nHEAD:OK\nANCHOR:NONE\n\
             PROJECTIONS:NOT_CHECKED\nARTIFACTS:NOT_CHECKED\nPOLICY:NOT_CHECKED\nSIGNATURES:NOT_CHECKED\nSETTINGS:RECORDED\nREGIME:settings are recorded, not adopted: anyone who can write the settings file can change the rules\nDUE:0\nEVENTS:3\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n"
        );
        assert_eq!(reply.stderr, "");
        assert_eq!(reply.get("HEAD_ID"), hive.events()[2]["event_id"]);
    }
    assert!(hive.contents() == before);
}

#[test]
fn a_flipped_bit_in_any_byte_is_found() {
    let hive = TestVault::new();
    hive.propose("x");
    let good = log(&hive);
    let head = fs::read(hive.head()).unwrap();
    for with_head in [true, false] {
        match with_head {
            true => write_private(&hive.head(), &head),
            false => fs::remove_file(hive.head()).unwrap(),
        }
        assert!(hive.verify_here().passed());
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            write_private(&hive.segment(), &bad);
            let verified = hive.verify_here();
            let seen =
                verified.chain != ChainVerdict::Ok || matches!(verified.tail, TailVerdict::Torn | TailVerdict::Damaged);
            assert!(seen && !verified.passed(), "byte {at}: {verified:?}");
        }
        write_private(&hive.segment(), &good);
    }
}

#[test]
fn damage_is_reported_with_its_place() {
    let hive = three();
    let ends = ends(&log(&hive));
    flip(&hive, ends[0] + 30);
    let before = hive.contents();
    let reply = hive.run("verify", &[]).expect_exit(1);
    assert_eq!(verdicts(&reply), ["BROKEN", "CLEAN", "OK", "NONE"]);
    assert_eq!(
        reply.masked(&hive).lines().take(4).collect::<Vec<_>>(),
        ["EXIT:1", "STATUS:FAILED", "NEXT:ASK operator", "SUM:1 event checked; verification failed"]
    );
    let place = format!("2026-01/2026-01-31.jsonl at byte {}: ", ends[0]);
    assert!(reply.get("FINDING").starts_with(&place), "{reply:#?}");
    assert_eq!((reply.get("EVENTS"), reply.get("HEAD_ID")), ("1", hive.events()[0]["event_id"].as_str().unwrap()));
    assert!(hive.contents() == before);
}

#[test]
fn a_log_that_ends_before_its_head_fails() {
    let hive = three();
    let good = log(&hive);
    let ends = ends(&good);
    write_private(&hive.segment(), &good[..ends[1]]);
    let reply = hive.run("verify", &[]).expect_exit(1);
    assert_eq!(verdicts(&reply), ["OK", "CLEAN", "AHEAD", "NONE"]);
    assert_eq!(reply.get("FINDING"), "the log ends before the head in chain.json");
    hive.refuses("append", &["RequirementProposed", "--payload", r#"{"title":"x"}"#], 4);
    hive.refuses("log", &[], 4);
    write_private(&hive.segment(), &good[..ends[1] + 7]);
    assert_eq!(verdicts(&hive.run("verify", &[]).expect_exit(1)), ["BROKEN", "CLEAN", "AHEAD", "NONE"]);
    fs::remove_file(hive.segment()).unwrap();
    assert_eq!(hive.run("verify", &[]).expect_exit(1).get("HEAD"), "AHEAD");
}

#[test]
fn a_missing_torn_or_stale_head_record_is_reported_but_not_an_error() {
    let hive = three();
    let head = fs::read(hive.head()).unwrap();
    fs::remove_file(hive.head()).unwrap();
    assert_eq!(verdicts(&hive.run("verify", &[]).expect_exit(0)), ["OK", "CLEAN", "MISSING", "NONE"]);
    for invalid in [&b""[..], b"{}", &[0; 512], &head[..200], b"garbage"] {
        write_private(&hive.head(), invalid);
        assert_eq!(verdicts(&hive.run("verify", &[]).expect_exit(0)), ["OK", "CLEAN", "INVALID", "NONE"]);
    }
    write_private(&hive.head(), &head);
    hive.propose("three");
    write_private(&hive.head(), &head);
    let reply = hive.run("verify", &[]).expect_exit(0);
    assert_eq!(verdicts(&reply), ["OK", "UNPUBLISHED", "BEHIND", "NONE"]);
    fs::write(hive.segment(), [log(&hive), b"{\"torn".to_vec()].concat()).unwrap();
    let reply = hive.run("verify", &[]).expect_exit(1);
    assert_eq!(verdicts(&reply), ["OK", "TORN", "BEHIND", "NONE"]);
    assert!(reply.get("FINDING").starts_with("after the published head: "), "{reply:#?}");
}

#[test]
fn the_record_of_another_log_is_a_mismatch() {
    let hive = three();
    let other = three();
    fs::copy(other.head(), hive.head()).unwrap();
    let reply = hive.run("verify", &[]).expect_exit(1);
    assert_eq!(reply.get("HEAD"), "MISMATCH");
    hive.refuses("append", &["RequirementProposed", "--payload", r#"{"title":"x"}"#], 4);
}

#[test]
fn an_anchor_can_be_saved_and_checked_later() {
    let hive = three();
    let reply = hive.run("verify", &["--anchor"]);
    assert_eq!(reply.code, Some(0));
    let last = hive.events().pop().unwrap();
    let anchor = format!("{}:{}", last["event_id"].as_str().unwrap(), last["hash"].as_str().unwrap());
    assert_eq!(reply.stdout, format!("{anchor}\n"));
    assert!(reply.stderr.starts_with("EXIT:0\nSTATUS:VERIFIED\n") && reply.stderr.contains("\nANCHOR:NONE\n"));
    // As printed, with its line end; and still when the log has grown.
    for _ in 0..2 {
        let again = hive.run("verify", &["--expect-head", &reply.stdout]).expect_exit(0);
        assert_eq!(verdicts(&again), ["OK", "CLEAN", "OK", "OK"]);
        hive.propose("more");
    }
    let first = &hive.events()[0];
    let early = format!("{}:{}", first["event_id"].as_str().unwrap(), first["hash"].as_str().unwrap());
    let both = ["--expect-head", &early, "--expect-head", &anchor];
    assert_eq!(hive.run("verify", &both).expect_exit(0).get("ANCHOR"), "OK");
}

#[test]
fn a_rewritten_or_shortened_log_fails_its_anchor() {
    let hive = three();
    let anchor = hive.run("verify", &["--anchor"]).stdout;
    let shorter = log(&hive)[..ends(&log(&hive))[1]].to_vec();
    // Shortened by somebody who also removed the record: only the anchor shows it.
    write_private(&hive.segment(), &shorter);
    fs::remove_file(hive.head()).unwrap();
    hive.run("verify", &[]).expect_exit(0);
    assert_eq!(hive.run("verify", &["--expect-head", &anchor]).expect_exit(1).get("ANCHOR"), "FAILED");
    // Rewritten as a whole.
    fs::remove_dir_all(hive.vault()).unwrap();
    hive.run("init", &[]).expect_exit(0);
    hive.propose("one");
    hive.propose("two");
    hive.run("verify", &[]).expect_exit(0);
    let reply = hive.run("verify", &["--expect-head", &anchor]).expect_exit(1);
    assert_eq!(verdicts(&reply), ["OK", "CLEAN", "OK", "FAILED"]);
    assert_eq!(reply.get("FINDING"), format!("the log has no event {}", anchor.trim()));
    // One right anchor does not make up for a wrong one.
    let good = hive.run("verify", &["--anchor"]).stdout;
    hive.run("verify", &["--expect-head", &good, "--expect-head", &anchor]).expect_exit(1);
}

#[test]
fn a_failing_log_gives_no_anchor() {
    let hive = three();
    flip(&hive, 30);
    let reply = hive.run("verify", &["--anchor"]);
    assert_eq!((reply.code, reply.stdout.as_str()), (Some(1), ""));
    assert!(reply.stderr.starts_with("EXIT:1\nSTATUS:FAILED\n"));
}

#[test]
fn verify_refuses_invalid_anchors_and_ids() {
    let hive = three();
    let id = hive.events()[0]["event_id"].as_str().unwrap().to_owned();
    for args in [
        &["--expect-head", "x"][..],
        &["--expect-head", &id],
        &["--expect-head", ""],
        &["--since", "x"],
        &["--yes"],
        &["--recover", "--anchor"],
    ] {
        assert_eq!(hive.refuses("verify", args, 2).get("STATUS"), "USAGE", "{args:?}");
    }
    let nobody = id.replace("01", "00");
    assert_eq!(hive.refuses("verify", &["--since", &nobody], 6).get("STATUS"), "NOT_FOUND");
}

#[test]
fn a_check_since_an_event_trusts_what_is_before_it() {
    let hive = three();
    let ids: Vec<String> = hive.events().iter().map(|e| e["event_id"].as_str().unwrap().to_owned()).collect();
    for (n, id) in ids.iter().enumerate() {
        let reply = hive.run("verify", &["--since", id]).expect_exit(0);
        assert_eq!(verdicts(&reply), ["OK", "CLEAN", "OK", "NONE"]);
        assert_eq!(reply.get("EVENTS"), (2 - n).to_string());
    }
    // A hash that is wrong, in a line that can still be read.
    let text = fs::read_to_string(hive.segment()).unwrap();
    write_private(&hive.segment(), text.replace("\"one\"", "\"eno\"").as_bytes());
    assert_eq!(hive.run("verify", &["--since", &ids[0]]).expect_exit(1).get("CHAIN"), "BROKEN");
    hive.run("verify", &["--since", &ids[1]]).expect_exit(0);
}

#[test]
fn a_check_since_the_middle_of_a_batch_begins_after_the_batch() {
    let hive = three();
    let line = json!({"event_type": "RequirementProposed", "payload": {"title": "x"}});
    hive.pipe("append", &["--batch"], jsonl(&[line.clone(), line.clone(), line])).expect_exit(0);
    hive.propose("behind");
    for n in 3..6 {
        let id = hive.events()[n]["event_id"].as_str().unwrap().to_owned();
        let reply = hive.run("verify", &["--since", &id]).expect_exit(0);
        assert_eq!((reply.get("EVENTS"), reply.get("HEAD")), ("1", "OK"), "{n}");
    }
}

#[test]
fn a_missing_segment_is_found() {
    let mut hive = three();
    hive.at("2026-02-01T12:00:00Z").propose("middle");
    hive.at("2026-02-02T12:00:00Z").propose("last");
    let files = hive.contents();
    let folder = hive.vault().join("Akashic/events");
    for (name, chain, head) in [
        ("2026-01/2026-01-31.jsonl", "BROKEN", "OK"),
        ("2026-02/2026-02-01.jsonl", "BROKEN", "OK"),
        ("2026-02/2026-02-02.jsonl", "OK", "AHEAD"),
    ] {
        fs::remove_file(folder.join(name)).unwrap();
        let reply = hive.run("verify", &[]).expect_exit(1);
        assert_eq!(verdicts(&reply), [chain, "CLEAN", head, "NONE"], "{name}");
        hive.restore(&files);
    }
    hive.run("verify", &[]).expect_exit(0);
}

#[test]
fn a_segment_writable_by_others_causes_a_warning() {
    let hive = three();
    fs::set_permissions(hive.segment(), fs::Permissions::from_mode(0o660)).unwrap();
    let reply = hive.run("verify", &[]).expect_exit(0);
    assert!(reply.stderr.contains("2026-01-31.jsonl is writable by others"), "{reply:#?}");
}

#[test]
fn an_expected_head_before_the_checked_part_is_refused_rather_than_missing() {
    let hive = TestVault::new();
    let first = &hive.events()[0];
    let anchor = format!("{}:{}", first["event_id"].as_str().unwrap(), first["hash"].as_str().unwrap());
    let since = hive.propose("x").get("EVENT_ID").to_owned();
    hive.run("verify", &["--expect-head", &anchor]).expect_exit(0);
    hive.refuses("verify", &["--expect-head", &anchor, "--since", &since], 2);
}
