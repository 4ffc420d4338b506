//! hf-verify: the verdicts, anchors, and an operator's recovery.

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
             PROJECTIONS:NOT_CHECKED\nARTIFACTS:NOT_CHECKED\nPOLICY:NOT_CHECKED\nSETTINGS:RECORDED\nDUE:0\nEVENTS:3\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n"
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
    assert_eq!(verdicts(&reply), ["OK", "TORN", "OK", "NONE"]);
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
fn recovery_needs_an_operators_confirmation() {
    let hive = three();
    flip(&hive, ends(&log(&hive))[0] + 30);
    assert_eq!(hive.refuses("verify", &["--recover"], 3).get("REASON"), "not_confirmed");
    let as_agent = ["--recover", "--yes", "--actor", "agent:worker"];
    assert_eq!(hive.refuses("verify", &as_agent, 3).get("REASON"), "operator_only");
    let as_core = ["--recover", "--yes", "--actor", "core:watchdog"];
    assert_eq!(hive.refuses("verify", &as_core, 3).get("REASON"), "operator_only");
    for variable in ["HF_AGENT", "HF_SESSION"] {
        // An agent cannot get around it by naming a user.
        let mut command = hive.command("verify");
        command.env(variable, "worker").args(["--recover", "--yes", "--actor", "user:jo"]);
        let before = hive.contents();
        let reply = Reply::of(command.output().unwrap()).expect_exit(3);
        assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("operator_only", "ASK operator"));
        assert!(hive.contents() == before);
    }
}

/// Recovers, and checks what must be true afterwards: `kept` bytes are as they were, the rest of
/// `damaged` is in quarantine, the event that says so follows, and work goes on.
#[track_caller]
fn recovers(hive: &TestVault, damaged: &[u8], kept: usize) -> Reply {
    let reply = hive.run("verify", &["--recover", "--yes"]).expect_exit(0);
    assert_eq!(reply.get("STATUS"), "RECOVERED");
    let after = log(hive);
    assert!(after[..kept] == damaged[..kept]);
    let quarantined: Vec<Vec<u8>> = hive.quarantine().into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(quarantined.concat(), &damaged[kept..]);
    assert_eq!(reply.get("BYTES"), (damaged.len() - kept).to_string());
    assert_eq!(reply.all("QUARANTINED").len(), quarantined.len());
    let event = hive.events().pop().unwrap();
    assert_eq!((&event["event_type"], &event["actor"]), (&json!("VaultRecovered"), &json!("user:jo")));
    assert_eq!(reply.all("EVENT_ID").last(), event["event_id"].as_str().as_ref());
    assert_eq!(event["payload"]["bytes"], damaged.len() - kept);
    let verified = hive.run("verify", &[]).expect_exit(0);
    assert_eq!(verdicts(&verified), ["OK", "CLEAN", "OK", "NONE"]);
    hive.propose("after");
    hive.run("verify", &[]).expect_exit(0);
    assert_eq!(hive.run("verify", &["--recover", "--yes"]).expect_exit(0).get("STATUS"), "INTACT");
    reply
}

#[test]
fn recovery_moves_the_damaged_suffix_and_nothing_before_it() {
    for with_head in [true, false] {
        let hive = three();
        hive.propose("three");
        let expected = hive.events().pop().unwrap();
        let found = hive.events().swap_remove(1);
        let kept = ends(&log(&hive))[1];
        flip(&hive, kept + 30);
        if !with_head {
            fs::remove_file(hive.head()).unwrap();
        }
        let reply = recovers(&hive, &log(&hive), kept);
        assert_eq!(
            mask_number(&reply.masked(&hive)),
            "EXIT:0\nSTATUS:RECOVERED\nNEXT:NONE\nSUM:moved # bytes to quarantine\nEVENT_ID:<ulid>\n\
             HEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\nBYTES:#\nQUARANTINED:damage"
        );
        assert_eq!(reply.get("HEAD_ID"), found["event_id"]);
        let payload = &hive.events()[2]["payload"];
        let head = |e: &serde_json::Value| {
            json!(format!("{}:{}", e["event_id"].as_str().unwrap(), e["hash"].as_str().unwrap()))
        };
        assert_eq!(payload["found_head"], head(&found));
        assert_eq!(payload.get("expected_head"), with_head.then(|| head(&expected)).as_ref());
        assert_eq!(payload["offset"], kept);
    }
}

/// The lines of a recovery's reply without the numbers that follow from the size of ids and texts.
fn mask_number(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(':') {
        Some(("SUM", _)) => "SUM:moved # bytes to quarantine",
        Some(("BYTES", _)) => "BYTES:#",
        Some(("QUARANTINED", name)) => &line[..line.len() - name.len() + name.find('-').unwrap()],
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn recovery_removes_a_damaged_batch_as_a_whole() {
    let hive = three();
    let kept = log(&hive).len();
    let line = json!({"event_type": "RequirementProposed", "payload": {"title": "x"}});
    hive.pipe("append", &["--batch"], jsonl(&[line.clone(), line.clone(), line])).expect_exit(0);
    hive.propose("behind");
    flip(&hive, ends(&log(&hive))[4] + 30);
    recovers(&hive, &log(&hive), kept);
}

#[test]
fn recovery_accepts_a_log_that_ends_before_its_head() {
    let hive = three();
    let good = log(&hive);
    let ends = ends(&good);
    write_private(&hive.segment(), &good[..ends[1]]);
    recovers(&hive, &good[..ends[1]], ends[1]);
    let payload = &hive.events()[2]["payload"];
    assert_eq!(payload["reason"], "the log ended before its published head");
}

#[test]
fn recovery_of_a_log_with_a_damaged_first_line_starts_a_new_log() {
    let hive = three();
    flip(&hive, 30);
    let reply = recovers(&hive, &log(&hive), 0);
    assert_eq!(reply.all("EVENT_ID").len(), 2);
    assert_eq!(hive.events()[0]["event_type"], "VaultInitialized");
}

#[test]
fn recovery_empties_the_segments_after_the_damage() {
    let mut hive = three();
    hive.at("2026-02-01T12:00:00Z").propose("later");
    hive.at("2026-02-02T12:00:00Z").propose("latest");
    let kept = ends(&log(&hive))[1];
    let before = hive.contents();
    flip(&hive, kept + 30);
    let reply = hive.run("verify", &["--recover", "--yes"]).expect_exit(0);
    assert_eq!(reply.all("QUARANTINED").len(), 3);
    assert_eq!(hive.quarantine().len(), 3);
    for name in ["2026-02/2026-02-01.jsonl", "2026-02/2026-02-02.jsonl"] {
        let path = hive.vault().join("Akashic/events").join(name);
        let was = &before.iter().find(|(p, _)| *p == path).unwrap().1;
        assert!(hive.quarantine().iter().any(|(_, bytes)| bytes == was), "{name}");
    }
    assert_eq!(hive.run("verify", &[]).expect_exit(0).get("EVENTS"), "3");
    hive.propose("after");
    assert_eq!(hive.run("verify", &[]).expect_exit(0).get("EVENTS"), "4");
    assert_eq!(hive.run("log", &[]).expect_exit(0).all("EVENT").len(), 4);
}

#[test]
fn an_intact_log_is_not_recovered() {
    let hive = three();
    let before = hive.contents();
    let reply = hive.run("verify", &["--recover", "--yes"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:INTACT\nNEXT:NONE\nSUM:the log is intact; nothing to recover\nHEAD_ID:<ulid>\n\
         HEAD_HASH:sha256:<digest>\nBYTES:0\n"
    );
    assert!(hive.contents() == before);
}

#[test]
fn recovery_leaves_a_torn_tail_to_the_next_append_and_says_so() {
    let hive = three();
    let good = log(&hive);
    write_private(&hive.segment(), &[&good[..], b"{\"torn"].concat());
    let reply = hive.run("verify", &["--recover", "--yes"]).expect_exit(0);
    assert_eq!(reply.get("STATUS"), "INTACT");
    assert_eq!(reply.stderr, "warning: an unfinished write of 6 bytes was moved to quarantine\n");
    assert!(log(&hive).starts_with(&good));
    assert_eq!(hive.events()[3]["event_type"], "TailQuarantined");
    assert_eq!(hive.run("verify", &[]).expect_exit(0).get("EVENTS"), "4");
}

#[test]
fn recovery_does_not_fail_on_a_broken_configuration() {
    let hive = three();
    flip(&hive, ends(&log(&hive))[1] + 30);
    fs::write(hive.vault().join("hiveforge.config.yaml"), "a: [").unwrap();
    assert_eq!(hive.run("verify", &["--recover", "--yes"]).expect_exit(0).get("STATUS"), "RECOVERED");
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
