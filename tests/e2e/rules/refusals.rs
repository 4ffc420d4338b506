//! Bad input and vaults that must not be written to: one line with the reason, and no byte changed.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use fs2::FileExt;
use hiveforge::base::{Digest, Ulid};
use hiveforge::event::Event;
use serde_json::json;

use crate::support::test_vault::{TestVault, jsonl, write_private};

const PROPOSE: &[&str] = &["RequirementProposed", "--payload", r#"{"title":"x"}"#];

fn deep(levels: usize) -> String {
    format!(r#"{{"title":"x","a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn append_refuses_a_malformed_payload() {
    let hive = TestVault::new();
    for (payload, reason) in [
        (&b"{"[..], "invalid JSON"),
        (b"title", "invalid JSON"),
        (b"", "invalid JSON"),
        (br#"{"title":"x"} {}"#, "invalid JSON"),
        (b"[]", "the payload must be a JSON object"),
        (b"\"x\"", "the payload must be a JSON object"),
        (b"null", "the payload must be a JSON object"),
        (br#"{"title":"x","a":1,"a":1}"#, "duplicate key \"a\""),
        (br#"{"title":"x","a":{"hash":"1","hash":"2"}}"#, "duplicate key \"hash\""),
        (br#"{"title":"x\u0000"}"#, "a string contains a NUL character"),
        (br#"{"title":"\ud800"}"#, "invalid JSON"),
        (b"{\"title\":\"\xff\"}", "not UTF-8"),
        (b"\xef\xbb\xbf{\"title\":\"x\"}", "byte order mark"),
        (br#"{"title":"x","n":9007199254740992}"#, "beyond"),
        (br#"{"title":" "}"#, "RequirementProposed: payload.title must be a non-empty string"),
        (b"{}", "RequirementProposed: missing payload.title"),
    ] {
        let reply = hive.refuses_input("append", &["RequirementProposed", "-"], payload, 2);
        assert!(reply.get("SUM").contains(reason), "{reply:#?}");
        assert_eq!(reply.get("NEXT"), "ACTION hf-append --help");
    }
}

#[test]
fn append_refuses_a_payload_that_is_too_deep_or_too_big() {
    let hive = TestVault::new();
    let reply = hive.refuses_input("append", &["RequirementProposed", "-"], deep(31), 2);
    assert_eq!(reply.get("SUM"), "nested too deeply: an event has at most 32 levels");
    hive.pipe("append", &["RequirementProposed", "-"], deep(30)).expect_exit(0);
    let reply = hive.refuses_input("append", &["RequirementProposed", "-"], vec![b' '; (1 << 20) + 1], 2);
    assert!(reply.get("SUM").starts_with("too large: an event has at most 1048576 bytes;"), "{reply:#?}");
    fs::write(hive.dir().join("big.json"), vec![b' '; 2 << 20]).unwrap();
    hive.refuses("append", &["RequirementProposed", "--payload-file", "big.json"], 2);
    // The payload fits, the event around it does not.
    let payload = json!({"title": "x".repeat((1 << 20) - 20)}).to_string();
    let reply = hive.refuses_input("append", &["RequirementProposed", "-"], payload, 2);
    assert!(reply.get("SUM").contains("is too large; at most 1048576 are allowed"), "{reply:#?}");
}

#[test]
fn append_refuses_types_subjects_and_ids_that_do_not_fit() {
    let hive = TestVault::new();
    let too_long = format!("requirement:{}", "a".repeat(65));
    let title = r#"{"title":"x"}"#;
    for (kind, subject, code, reason) in [
        ("Nonsense", "requirement:r", 2, "unknown event type 'Nonsense'"),
        ("", "requirement:r", 2, "unknown event type ''"),
        ("RequirementProposed", "task:t", 2, "the subject of RequirementProposed must be a requirement, not task:t"),
        (
            "RequirementProposed",
            "system",
            2,
            "the subject of RequirementProposed must be a requirement, not the system",
        ),
        ("RequirementProposed", "requirement:../x", 2, "invalid id '../x'"),
        ("RequirementProposed", "requirement:", 2, "invalid id ''"),
        ("RequirementProposed", &too_long, 2, "invalid id"),
        ("RequirementProposed", "nonsense:x", 2, "unknown type 'nonsense' in subject"),
        ("RequirementProposed", "../x", 6, "'../x' not found"),
        ("RequirementProposed", "", 6, "'' not found"),
        ("RequirementAnalyzed", "requirement:nobody", 6, "'requirement:nobody' not found"),
        ("RequirementAnalyzed", "REQ-0001", 6, "'REQ-0001' not found"),
    ] {
        let reply = hive.refuses("append", &[kind, "--subject", subject, "--payload", title], code);
        assert!(reply.get("SUM").contains(reason), "{reply:#?}");
    }
    for name in ["../x", "", &"a".repeat(65), "a\\u0000"] {
        let line =
            format!(r#"{{"event_type":"RequirementProposed","subject":"requirement:{name}","payload":{title}}}"#);
        let reply = hive.refuses_input("append", &["--batch"], line, 2);
        assert!(reply.get("SUM").starts_with("line 1: "), "{reply:#?}");
    }
    let reply = hive.refuses("append", &["RequirementAnalyzed"], 2);
    assert_eq!(reply.get("SUM"), "RequirementAnalyzed requires --subject");
}

#[test]
fn append_refuses_a_reference_with_the_wrong_hash() {
    let hive = TestVault::new();
    let made = hive.propose("x");
    let wrong = if made.get("REF").ends_with("0000") { "REQ-0001@0001" } else { "REQ-0001@0000" };
    let reply = hive.refuses("append", &["RequirementAnalyzed", "--subject", wrong], 6);
    assert_eq!(reply.get("SUM"), format!("{wrong} does not exist; REQ-0001 is {}", made.get("REF")));
}

#[test]
fn append_refuses_a_missing_parent() {
    let hive = TestVault::new();
    hive.propose("x");
    let nobody = Ulid::from_parts(1, 1).to_string();
    for parent in [nobody.as_str(), "T-0001", "ZZZZ", "../x", "é", ""] {
        let reply = hive.refuses("append", &[PROPOSE, &["--parent", parent]].concat(), 6);
        assert_eq!(reply.get("NEXT"), "ACTION hf-log --last 20");
    }
    let reply = hive.refuses("append", &[PROPOSE, &["--parent", &nobody]].concat(), 6);
    assert_eq!(reply.get("SUM"), format!("parent '{nobody}' not found"));
}

#[test]
fn append_refuses_an_empty_parent_even_with_a_single_event() {
    let hive = TestVault::new();
    hive.refuses("append", &[PROPOSE, &["--parent", ""]].concat(), 6);
}

#[test]
fn append_refuses_a_payload_that_names_what_does_not_exist() {
    let hive = TestVault::new();
    let payload = r#"{"title":"x","requirement_id":"nobody"}"#;
    let reply = hive.refuses("append", &["TaskProposed", "--payload", payload], 6);
    assert_eq!(reply.get("SUM"), "the payload names requirement:nobody, which does not exist");
}

#[test]
fn append_refuses_a_key_that_is_empty_long_or_hidden() {
    let hive = TestVault::new();
    for key in ["", &"k".repeat(257), "a\nb", "a\u{200b}b"] {
        let reply = hive.refuses("append", &[PROPOSE, &["--key", key]].concat(), 2);
        assert_eq!(reply.get("SUM"), "invalid key; must be 1 to 256 bytes without control or invisible characters");
    }
}

#[test]
fn an_illegal_step_is_refused_and_names_the_legal_ones() {
    let hive = TestVault::new();
    hive.run("append", &["RequirementProposed", "--subject", "requirement:r", "--payload", r#"{"title":"x"}"#]);
    let reply = hive.refuses("append", &["RequirementVerified", "--subject", "requirement:r"], 3);
    assert_eq!(
        reply.stdout,
        "EXIT:3\nSTATUS:REFUSED\nNEXT:NONE\nSUM:REQ-0001 is Proposed, which does not allow RequirementVerified; \
         allowed: RequirementAnalyzed, RequirementRejected\nREASON:illegal_transition\n"
    );
    hive.append("TaskProposed", "task:t", json!({"title": "x"}));
    // The run itself is new; the task that it would move is not where a run may begin.
    let reply = hive.refuses("append", &["RunStarted", "--payload", r#"{"task_id":"t"}"#], 3);
    assert_eq!(
        reply.get("SUM"),
        "T-0001 is Ready, which does not allow RunStarted; allowed: TaskAssigned, TaskAborted, TaskEdited, TaskNoted"
    );
}

#[test]
fn an_agent_may_not_approve_even_if_unknown_or_already_approved() {
    let hive = TestVault::new();
    let decision = hive.approved("requirement:r", "x");
    let approve = ["DecisionApproved", "--subject", &decision, "--actor", "agent:a"];
    assert_eq!(hive.refuses("append", &approve, 3).get("REASON"), "operator_only");
    hive.run("append", &["AgentStarted", "--actor", "agent:a"]).expect_exit(0);
    assert_eq!(hive.refuses("append", &approve, 3).get("REASON"), "operator_only");
}

#[test]
fn kinds_written_by_the_vault_itself_are_reserved() {
    let hive = TestVault::new();
    for (kind, payload) in [
        ("VaultInitialized", r#"{"vault_id":"x","schema_version":1}"#),
        ("TailQuarantined", r#"{"segment":"x","offset":0,"bytes":1,"file":"x"}"#),
        ("VaultRecovered", "{}"),
    ] {
        let reply = hive.refuses("append", &[kind, "--payload", payload], 3);
        assert_eq!(reply.get("REASON"), "reserved_kind");
        assert_eq!(reply.get("SUM"), format!("{kind} is reserved; only the vault itself records it"));
    }
}

#[test]
fn a_symlink_inside_the_vault_is_refused() {
    for place in [
        "Akashic",
        "Akashic/events",
        "Akashic/events/2026-01",
        "Akashic/events/2026-01/2026-01-31.jsonl",
        "Akashic/chain.json",
        "Akashic/.lock",
    ] {
        let hive = TestVault::new();
        let path = hive.vault().join(place);
        let elsewhere = hive.dir().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        let outside = |at: &Path| fs::metadata(at).unwrap().modified().unwrap();
        let before = outside(&elsewhere);
        let reply = hive.refuses("append", PROPOSE, 3);
        assert_eq!(reply.get("REASON"), "symlink", "{place}");
        assert_eq!(
            reply.get("SUM"),
            format!("{} is a symbolic link; a vault must not contain any", path.display()),
            "{place}"
        );
        assert_eq!(outside(&elsewhere), before, "{place}");
    }
}

#[test]
fn readers_follow_no_symlinks_inside_the_vault() {
    for place in ["Akashic", "Akashic/events", "Akashic/events/2026-01/2026-01-31.jsonl", "Akashic/chain.json"] {
        let hive = TestVault::new();
        let path = hive.vault().join(place);
        fs::rename(&path, hive.dir().join("elsewhere")).unwrap();
        symlink(hive.dir().join("elsewhere"), &path).unwrap();
        for command in ["log", "verify"] {
            assert_eq!(hive.refuses(command, &[], 3).get("REASON"), "symlink", "{command} {place}");
        }
        assert_eq!(hive.refuses("backup", &["copy"], 3).get("REASON"), "symlink", "{place}");
        assert!(!hive.dir().join("copy").exists());
    }
}

#[test]
fn a_vault_writable_by_others_is_not_written_to() {
    for (place, mode) in [
        ("", 0o720),
        ("", 0o702),
        ("Akashic", 0o770),
        ("Akashic/events", 0o770),
        ("Akashic/events/2026-01", 0o770),
        ("Akashic/events/2026-01/2026-01-31.jsonl", 0o660),
        ("Akashic/.lock", 0o660),
        ("Akashic/chain.json", 0o660),
    ] {
        let hive = TestVault::new();
        let path = hive.vault().join(place);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let reply = hive.refuses("append", PROPOSE, 3);
        assert_eq!(reply.get("REASON"), "not_private", "{place}");
        assert!(reply.get("SUM").ends_with(&format!("is writable by others (mode {mode:o})")), "{reply:#?}");
        // Reading stays possible, and verifying says so.
        hive.run("log", &[]).expect_exit(0);
        let verified = hive.run("verify", &[]).expect_exit(0);
        if ["", "Akashic"].contains(&place) {
            assert!(verified.stderr.starts_with("warning: "), "{verified:#?}");
        }
    }
}

#[test]
fn another_users_vault_can_be_read_but_not_written_to() {
    let hive = TestVault::new();
    hive.propose("x");
    let other = rustix::process::geteuid().as_raw() + 1;
    if chown(hive.vault(), Some(other), None).is_err() {
        // Only root can give a vault away; without root there is no other user's vault to be had.
        eprintln!("not root: another user's vault cannot be made here, so only root's run shows this");
        return;
    }
    let reply = hive.refuses("append", PROPOSE, 3);
    assert_eq!(reply.get("REASON"), "not_owner");
    assert!(reply.get("SUM").contains(&format!("belongs to user {other}, not to user")), "{reply:#?}");
    assert_eq!(hive.refuses("verify", &["--recover", "--yes"], 3).get("REASON"), "not_owner");
    hive.run("log", &[]).expect_exit(0);
    let verified = hive.run("verify", &[]).expect_exit(0);
    assert!(verified.stderr.contains("it is read-only"), "{verified:#?}");
}

/// Adds an event of version 2 to the log; the head record does not know it yet.
fn add_newer_event(hive: &TestVault) {
    let last = hive.lines().pop().unwrap();
    let mut event = Event::read(last.as_bytes()).unwrap();
    let prev = event.hash;
    event.id = event.id.increment().unwrap();
    event.version = 2;
    let mut log = fs::read(hive.segment()).unwrap();
    log.extend(event.seal(prev, None));
    log.push(b'\n');
    fs::write(hive.segment(), log).unwrap();
}

#[test]
fn a_log_with_an_event_of_a_newer_version_is_not_written_to() {
    for prepare in [
        // Published by nobody, with an older record, or none, or with a torn write after it.
        (|_: &TestVault| {}) as fn(&TestVault),
        |hive| fs::remove_file(hive.head()).unwrap(),
        |hive| {
            let torn = [fs::read(hive.segment()).unwrap(), b"{\"torn".to_vec()].concat();
            fs::write(hive.segment(), torn).unwrap();
        },
    ] {
        let hive = TestVault::new();
        hive.propose("x");
        add_newer_event(&hive);
        prepare(&hive);
        assert_eq!(hive.refuses("append", PROPOSE, 3).get("REASON"), "newer_version");
    }
}

#[test]
fn a_newer_head_record_is_not_written_over() {
    let hive = TestVault::new();
    let text = fs::read_to_string(hive.head()).unwrap();
    let (body, _) = text.trim().split_once(r#","check":"#).unwrap();
    let body = body.replace(r#""version":1"#, r#""version":2"#) + "}";
    let check = Digest::of_bytes(body.as_bytes()).to_string();
    let record = format!(r#"{},"check":"{check}"}}"#, body.strip_suffix('}').unwrap());
    write_private(&hive.head(), format!("{record:<511}\n").as_bytes());
    let reply = hive.refuses("append", PROPOSE, 3);
    assert_eq!(reply.get("REASON"), "newer_version");
    assert_eq!(reply.get("SUM"), "chain.json has a newer version than this program supports");
    assert_eq!(hive.refuses("verify", &[], 3).get("REASON"), "newer_version");
    assert_eq!(hive.refuses("verify", &["--recover", "--yes"], 3).get("REASON"), "newer_version");
}

#[test]
fn a_log_rewritten_by_another_program_is_refused() {
    let hive = TestVault::new();
    hive.propose("x");
    hive.propose("y");
    let good = fs::read_to_string(hive.segment()).unwrap();
    let first_end = good.find('\n').unwrap();
    let second_end = first_end + 1 + good[first_end + 1..].find('\n').unwrap();
    for changed in [
        good.replace('\n', "\r\n"),
        format!("\u{feff}{good}"),
        good.replace("\"version\":1}", "\"version\":1,\"hash\":\"sha256:0\"}"),
        good[..first_end + 1].to_owned() + &good[second_end + 1..],
        good.replacen("{\"$schema\"", "{ \"$schema\"", 1),
    ] {
        assert_ne!(changed, good);
        write_private(&hive.segment(), changed.as_bytes());
        let before = hive.contents();
        let reply = hive.run("verify", &[]).expect_exit(1);
        assert_eq!(reply.get("CHAIN"), "BROKEN", "{reply:#?}");
        assert!(hive.contents() == before);
        let reply = hive.refuses("append", PROPOSE, 4);
        assert_eq!(reply.get("NEXT"), "ACTION hf-verify");
    }
}

#[test]
fn a_batch_line_with_crlf_a_bom_or_an_unknown_member_is_refused() {
    let hive = TestVault::new();
    let line = r#"{"event_type":"RequirementProposed","payload":{"title":"x"}}"#;
    for (input, reason) in [
        (format!("{line}\r\n{line}\r\n"), "CR LF"),
        (format!("\u{feff}{line}\n"), "byte order mark"),
        (line.replace("}}", r#"},"hash":"sha256:0"}"#), "unknown member 'hash'"),
        (line.replace("}}", r#"},"payload":{}}"#), "duplicate key"),
        (line.replace("\"RequirementProposed\"", "7"), "invalid event_type; must be a string"),
        (line.replace("{\"title\":\"x\"}", "[]"), "invalid payload; must be an object"),
        (line.replace("{\"title\":\"x\"}", "null"), "invalid payload; must be an object"),
        ("[]\n".to_owned(), "not a JSON object; each line of a batch must be one"),
        ("{}\n".to_owned(), "missing event_type"),
        ("\n".to_owned(), "invalid JSON"),
    ] {
        let reply = hive.refuses_input("append", &["--batch"], input, 2);
        assert!(reply.get("SUM").starts_with("line 1: ") && reply.get("SUM").contains(reason), "{reply:#?}");
    }
}

#[test]
fn oversized_and_empty_batches_are_refused() {
    let hive = TestVault::new();
    let lines = jsonl(&vec![json!({"event_type": "RequirementProposed", "payload": {"title": "x"}}); 10_001]);
    let reply = hive.refuses_input("append", &["--batch"], lines, 2);
    assert_eq!(reply.get("STATUS"), "LIMIT_EXCEEDED");
    assert!(reply.get("SUM").starts_with("line 10001: a batch can have at most 10000 events"), "{reply:#?}");
    let large = json!({"event_type": "RequirementProposed", "payload": {"title": "x".repeat(1_000_000)}});
    let reply = hive.refuses_input("append", &["--batch"], jsonl(&vec![large; 17]), 2);
    assert_eq!(reply.get("STATUS"), "LIMIT_EXCEEDED");
    assert!(reply.get("SUM").starts_with("line 17: "), "{reply:#?}");
    let reply = hive.refuses_input("append", &["--batch"], "", 2);
    assert_eq!(reply.get("SUM"), "empty batch; it must have at least one line");
    let reply = hive.refuses_input("append", &["--batch"], vec![b' '; (1 << 20) + 1], 2);
    assert_eq!(reply.get("SUM"), "line 1: a line must have at most 1048576 bytes");
}

#[test]
fn a_locked_vault_is_busy() {
    let hive = TestVault::new();
    let lock = File::open(hive.vault().join("Akashic/.lock")).unwrap();
    lock.lock_exclusive().unwrap();
    let reply = hive.refuses("append", &[PROPOSE, &["--lock-timeout", "0"]].concat(), 5);
    assert_eq!(
        reply.stdout,
        "EXIT:5\nSTATUS:BUSY\nNEXT:NONE\nSUM:the vault is in use: another command has held its lock for 0 seconds\n"
    );
    // Readers need no lock, nor does a rehearsal.
    hive.run("log", &["--lock-timeout", "0"]).expect_exit(0);
    hive.run("verify", &["--lock-timeout", "0"]).expect_exit(0);
    hive.run("append", &[PROPOSE, &["--lock-timeout", "0", "-n"]].concat()).expect_exit(0);
    // A backup does, and so does a reader without a head record.
    hive.refuses("backup", &["copy", "--lock-timeout", "0"], 5);
    let record = fs::read(hive.head()).unwrap();
    fs::remove_file(hive.head()).unwrap();
    let reply = hive.refuses("log", &["--lock-timeout", "0"], 5);
    assert_eq!(reply.get("SUM"), "the vault is in use: another command has held its lock for 0 seconds");
    write_private(&hive.head(), &record);
    FileExt::unlock(&lock).unwrap();
    hive.run("append", &[PROPOSE, &["--lock-timeout", "0"]].concat()).expect_exit(0);
}

#[test]
fn an_append_waits_for_the_lock() {
    let hive = TestVault::new();
    let lock = File::open(hive.vault().join("Akashic/.lock")).unwrap();
    lock.lock_exclusive().unwrap();
    let mut waiting = hive.start("append", PROPOSE);
    drop(lock);
    assert_eq!(waiting.line(), "EXIT:0\n");
    assert_eq!(waiting.line(), "STATUS:APPENDED\n");
}

#[test]
fn without_a_vault_there_is_nothing_to_write_to() {
    let hive = TestVault::empty();
    for command in ["append", "log", "verify", "backup"] {
        let args = match command {
            "append" => PROPOSE,
            "backup" => &["copy"],
            _ => &[],
        };
        let reply = hive.run(command, args).expect_exit(7);
        assert_eq!(
            reply.stdout,
            "EXIT:7\nSTATUS:NO_VAULT\nNEXT:ASK operator\nSUM:no Vault/ found in this directory or above; name \
             one with --vault, or create one with hf-init\n"
        );
        let missing = hive.dir().join("nowhere");
        let reply = hive.run(command, &[args, &["--vault", "nowhere"]].concat()).expect_exit(7);
        assert_eq!(reply.get("SUM"), format!("no vault at {}", missing.display()));
    }
    assert_eq!(fs::read_dir(hive.dir()).unwrap().count(), 0);
}
