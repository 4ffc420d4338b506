//! The index is only ever a shortcut: whatever happens to it, every command answers the same.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command as Process, Stdio};

use fs2::FileExt;
use serde_json::{Value, json};

use crate::support::test_vault::{Reply, TestVault, jsonl, write_private};

/// What somebody does to the index.
type Damage = (&'static str, fn(&TestVault));

fn proposal(n: usize) -> Value {
    json!({"event_type": "RequirementProposed", "subject": format!("requirement:r{n}"),
        "payload": {"title": format!("wish {n}")}, "idempotency_key": format!("k{n:03}")})
}

fn task(n: usize) -> Value {
    json!({"event_type": "TaskProposed", "subject": format!("task:t{n}"),
        "payload": {"title": format!("job {n}"), "requirement_id": format!("r{n}")}, "idempotency_key": format!("t{n}")})
}

/// 200 events: the first 151 are in the index, the others are the tail that is folded over it.
fn aged() -> TestVault {
    let hive = TestVault::new();
    hive.batch(&(0..75).map(proposal).collect::<Vec<_>>());
    hive.batch(&(75..150).map(proposal).collect::<Vec<_>>());
    hive.batch(&(0..49).map(task).collect::<Vec<_>>());
    assert!(hive.akashic("index/data.mdb").exists());
    assert_eq!(hive.events().len(), 200);
    hive
}

fn data(hive: &TestVault) -> Vec<u8> {
    fs::read(hive.akashic("index/data.mdb")).unwrap()
}

/// The commands whose answer the index could change. None of them changes the log.
const QUESTIONS: &[(&str, &[&str])] = &[
    (
        "append",
        &["RequirementProposed", "--subject", "REQ-0008", "--payload", r#"{"title":"wish 7"}"#, "--key", "k007"],
    ),
    ("append", &["TaskProposed", "--payload", r#"{"title":"job 7","requirement_id":"r7"}"#, "--key", "t7"]),
    ("append", &["-n", "RequirementAnalyzed", "--subject", "req-0008"]),
    ("append", &["-n", "TaskAborted", "--subject", "T-0008"]),
    ("log", &["--subject", "REQ-0008"]),
    ("project", &[]),
    ("project", &["requirements", "--limit", "500"]),
    ("project", &["idempotency", "--map"]),
    ("lineage", &["REQ-0008"]),
    ("lineage", &["T-0008", "--up"]),
    ("verify", &["--projections"]),
];

/// One command's reply, whole but for hf-verify's word on a head record that some cases remove.
fn ask(hive: &TestVault, question: &(&str, &[&str])) -> (Option<i32>, String, String) {
    let Reply { stdout, stderr, code } = hive.run(question.0, question.1);
    (code, stdout.replace("\nHEAD:MISSING\n", "\nHEAD:OK\n"), stderr)
}

/// Fails unless every question is answered as on the whole index, the damage being done before each
/// one; and unless an append succeeds on it and a key is recognised.
fn holds(hive: &TestVault, (name, damage): &Damage) {
    let expected: Vec<_> = QUESTIONS.iter().map(|question| ask(hive, question)).collect();
    assert!(expected.iter().all(|reply| reply.0 == Some(0)), "{expected:#?}");
    for (question, expected) in QUESTIONS.iter().zip(&expected) {
        damage(hive);
        assert_eq!(&ask(hive, question), expected, "{name}: {question:?}");
    }
    let count = hive.events().len();
    damage(hive);
    let title = format!(r#"{{"title":"{name}"}}"#);
    let args = ["RequirementProposed", "--payload", &title, "--key", name];
    let reply = hive.run("append", &args).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.stderr.as_str()), ("APPENDED", ""), "{name}");
    damage(hive);
    let again = hive.run("append", &args).expect_exit(0);
    assert_eq!((again.get("STATUS"), again.get("EVENT_ID")), ("DUPLICATE", reply.get("EVENT_ID")), "{name}");
    assert_eq!(hive.events().len(), count + 1, "{name}");
    assert_eq!(hive.run("verify", &["--projections"]).expect_exit(0).get("PROJECTIONS"), "OK", "{name}");
}

fn remove(hive: &TestVault) {
    let path = hive.akashic("index");
    match fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(&path).unwrap(),
        Ok(_) => fs::remove_file(&path).unwrap(),
        Err(_) => {}
    }
}

/// Cuts the data file to a length, or makes one of that length.
fn cut(hive: &TestVault, length: usize) {
    let file = hive.akashic("index/data.mdb");
    let mut bytes = fs::read(&file).unwrap_or_default();
    bytes.resize(length, 0);
    write_private(&file, &bytes);
}

#[test]
fn every_command_answers_the_same_with_a_damaged_index_file() {
    let hive = aged();
    let damages: &[Damage] = &[
        ("removed", remove),
        ("data-removed", |hive| fs::remove_file(hive.akashic("index/data.mdb")).unwrap_or_default()),
        ("empty", |hive| cut(hive, 0)),
        ("100-bytes", |hive| cut(hive, 100)),
        ("one-page", |hive| cut(hive, 4096)),
        ("two-pages", |hive| cut(hive, 8192)),
        ("half", |hive| cut(hive, fs::metadata(hive.akashic("index/data.mdb")).map_or(0, |m| m.len() as usize / 2))),
        ("garbage", |hive| write_private(&hive.akashic("index/data.mdb"), &b"garbage!".repeat(8192))),
        ("garbage-in-the-middle", |hive| {
            let mut bytes = fs::read(hive.akashic("index/data.mdb")).unwrap_or_default();
            let length = bytes.len();
            bytes[length / 4..length * 3 / 4].fill(0xa5);
            write_private(&hive.akashic("index/data.mdb"), &bytes);
        }),
        ("data-is-a-folder", |hive| {
            remove(hive);
            fs::create_dir_all(hive.akashic("index/data.mdb")).unwrap();
        }),
    ];
    for damage in damages {
        holds(&hive, damage);
        remove(&hive);
        hive.run("project", &["--rebuild"]).expect_exit(0);
    }
}

#[test]
fn every_command_answers_the_same_with_a_damaged_index_folder() {
    let hive = aged();
    let damages: &[Damage] = &[
        ("seal-removed", |hive| fs::remove_file(hive.akashic("index/seal.json")).unwrap_or_default()),
        ("seal-garbage", |hive| write_private(&hive.akashic("index/seal.json"), b"{\"inode\":")),
        ("seal-empty", |hive| write_private(&hive.akashic("index/seal.json"), b"")),
        ("lock-removed", |hive| fs::remove_file(hive.akashic("index/.lock")).unwrap_or_default()),
        ("data-is-a-link", |hive| {
            let (data, aside) = (hive.akashic("index/data.mdb"), hive.dir().join("data.mdb"));
            if fs::symlink_metadata(&data).is_ok_and(|meta| meta.is_file()) {
                fs::rename(&data, &aside).unwrap();
                symlink(&aside, &data).unwrap();
            }
        }),
        ("a-file", |hive| {
            remove(hive);
            write_private(&hive.akashic("index"), b"not a folder");
        }),
        ("a-link", |hive| {
            remove(hive);
            let elsewhere = hive.dir().join("elsewhere");
            fs::create_dir_all(&elsewhere).unwrap();
            symlink(&elsewhere, hive.akashic("index")).unwrap();
        }),
        ("without-a-head-record", |hive| fs::remove_file(hive.head()).unwrap_or_default()),
        ("without-either", |hive| {
            fs::remove_file(hive.head()).unwrap_or_default();
            remove(hive);
        }),
    ];
    for damage in damages {
        holds(&hive, damage);
        remove(&hive);
        hive.run("project", &["--rebuild"]).expect_exit(0);
    }
    let elsewhere = hive.dir().join("elsewhere");
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0, "a link was followed");
}

#[test]
fn an_unwritable_index_stops_nothing() {
    // Root writes there all the same; for root a plain file in its place is the same case (`a-file`).
    let hive = aged();
    let lock =
        |hive: &TestVault| fs::set_permissions(hive.akashic("index"), fs::Permissions::from_mode(0o500)).unwrap();
    holds(&hive, &("read-only", lock));
    fs::set_permissions(hive.akashic("index"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn the_index_of_another_vault_is_ignored() {
    // Moved, so that the file itself is exactly as its last merge left it.
    let swap = |hive: &TestVault| {
        let other = TestVault::new();
        // The same keys and names, but for other events.
        other.batch(&(0..150).rev().map(proposal).collect::<Vec<_>>());
        remove(hive);
        fs::rename(other.akashic("index"), hive.akashic("index")).unwrap();
    };
    holds(&aged(), &("another-vault", swap));
}

#[test]
fn a_vault_copied_during_writes_is_usable() {
    let hive = aged();
    let more: Vec<Value> = (1000..1400).map(proposal).collect();
    let mut stream = hive.process("append");
    let mut stream = stream.arg("--stream").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut appends: Vec<_> = (0..2)
        .map(|n| {
            let mut shell = Process::new("sh");
            let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
                 \"$0\" RequirementProposed --payload '{\"title\":\"x\"}' --key \"$1-$i\" >/dev/null || exit 1; done";
            shell.arg("-c").arg(script).arg(crate::support::test_vault::binary("append")).arg(format!("w{n}"));
            shell.current_dir(hive.dir()).env("USER", "jo").env("HF_NOW", hive.now()).spawn().unwrap()
        })
        .collect();
    let mut copies = Vec::new();
    while appends.iter_mut().any(|child| child.try_wait().unwrap().is_none()) && copies.len() < 10 {
        copies.push(hive.copy());
    }
    stream.stdin.take().unwrap().write_all(jsonl(&more).as_bytes()).unwrap();
    copies.push(hive.copy());
    assert!(stream.wait().unwrap().success());
    for child in &mut appends {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(hive.events().len(), 640);
    for copy in &copies {
        // cp may see the head record after the log that it speaks of; what it is not needed for is shown here.
        fs::remove_file(copy.head()).unwrap();
        let again = copy.pipe("append", &["--batch"], jsonl(&[proposal(149)])).expect_exit(0);
        assert_eq!(again.get("STATUS"), "DUPLICATE");
        let fresh = copy.run("append", &["RequirementProposed", "--payload", r#"{"title":"y"}"#, "--key", "fresh"]);
        assert_eq!(fresh.expect_exit(0).get("STATUS"), "APPENDED");
        copy.run("project", &[]).expect_exit(0);
        copy.run("project", &["--check"]).expect_exit(0);
    }
    hive.run("verify", &["--projections", "--policy"]).expect_exit(0);
}

#[test]
fn a_held_index_lock_delays_but_does_not_block() {
    let hive = aged();
    let now = ["--lock-timeout", "0"];
    let ask = |question: &(&str, &[&str])| ask(&hive, &(question.0, &[question.1, &now].concat()));
    let expected: Vec<_> = QUESTIONS.iter().map(ask).collect();
    let lock = File::open(hive.akashic("index/.lock")).unwrap();
    FileExt::lock_exclusive(&lock).unwrap();
    let before = data(&hive);
    for (question, expected) in QUESTIONS.iter().zip(&expected) {
        assert_eq!(&ask(question), expected, "{question:?}");
    }
    // Put off: the index waits, the events do not.
    let more: Vec<Value> = (200..300).map(proposal).collect();
    let args = ["--batch", "--lock-timeout", "0"];
    hive.pipe("append", &args, jsonl(&more)).expect_exit(0);
    assert_eq!(hive.pipe("append", &args, jsonl(&more)).expect_exit(0).get("STATUS"), "DUPLICATE");
    assert!(data(&hive) == before, "the index was written under a lock that somebody else holds");
    FileExt::unlock(&lock).unwrap();
    hive.propose("after");
    assert!(data(&hive) != before, "the merge that was put off is made up for");
    hive.run("project", &["--check"]).expect_exit(0);
}

#[test]
fn a_stale_index_is_caught_up_by_the_next_writer() {
    let hive = aged();
    fs::rename(hive.akashic("index"), hive.dir().join("aside")).unwrap();
    hive.batch(&(200..1400).map(proposal).collect::<Vec<_>>());
    remove(&hive);
    fs::rename(hive.dir().join("aside"), hive.akashic("index")).unwrap();
    let before = data(&hive);
    // A duplicate records nothing, but its writer has to read what the index does not know.
    let reply = hive.pipe("append", &["--batch"], jsonl(&[proposal(1300)])).expect_exit(0);
    assert_eq!(reply.get("STATUS"), "DUPLICATE");
    assert!(data(&hive) != before);
    hive.run("project", &["--check"]).expect_exit(0);
}

#[test]
fn a_restored_older_index_is_caught_up() {
    let hive = aged();
    // Moved, so that it is the very file that a merge left.
    fs::rename(hive.akashic("index"), hive.dir().join("aside")).unwrap();
    hive.batch(&(200..209).map(proposal).collect::<Vec<_>>());
    hive.append("RequirementAnalyzed", "REQ-0008", json!({}));
    for n in [3, 4] {
        hive.append("TaskAborted", &format!("task:t{n}"), json!({}));
    }
    hive.append("TaskArchived", "task:t3", json!({}));
    let expected: Vec<_> = QUESTIONS.iter().map(|question| ask(&hive, question)).collect();
    let archived = hive.run("project", &["tasks", "--limit", "500"]).expect_exit(0).stdout;
    remove(&hive);
    fs::rename(hive.dir().join("aside"), hive.akashic("index")).unwrap();
    let old = data(&hive);
    for (question, expected) in QUESTIONS.iter().zip(&expected) {
        assert_eq!(&ask(&hive, question), expected, "{question:?}");
    }
    assert!(data(&hive) == old, "63 events are not merged yet, so the old index was what answered");
    assert_eq!(hive.run("project", &["tasks", "--limit", "500"]).expect_exit(0).stdout, archived);
    hive.run("project", &["--check"]).expect_exit(0);
    // A copy is another file than the one a merge left: it is not opened at all.
    let copy = hive.copy();
    for (question, expected) in QUESTIONS.iter().zip(&expected).filter(|(question, _)| question.0 != "verify") {
        assert_eq!(&ask(&copy, question), expected, "{question:?}");
    }
}

#[test]
fn the_index_is_ignored_after_the_log_was_cut_below_it() {
    let hive = aged();
    let mut lines = hive.lines();
    lines[100] = lines[100].replace("wish", "dish");
    write_private(&hive.segment(), (lines.join("\n") + "\n").as_bytes());
    hive.run("verify", &["--recover", "--yes"]).expect_exit(0);
    // The first batch is left, and the event that says so.
    assert_eq!(hive.events().len(), 77);
    assert_eq!(hive.pipe("append", &["--batch"], jsonl(&[proposal(74)])).expect_exit(0).get("STATUS"), "DUPLICATE");
    hive.refuses("lineage", &["REQ-0120"], 6);
    hive.refuses("append", &["TaskReady", "--subject", "T-0001"], 6);
    assert_eq!(hive.pipe("append", &["--batch"], jsonl(&[proposal(120)])).expect_exit(0).get("STATUS"), "APPENDED");
    hive.append("RequirementAnalyzed", "requirement:r120", json!({}));
    // The tasks were all cut off, and so is their file.
    assert_eq!(hive.json("projections/tasks.json"), json!({}));
    hive.run("project", &["--check"]).expect_exit(0);
    hive.run("verify", &["--projections", "--policy"]).expect_exit(0);
}

#[test]
fn a_rebuild_recreates_index_and_projections_from_events_alone() {
    let hive = aged();
    let maps = |hive: &TestVault| -> Vec<Value> {
        ["requirements", "tasks", "meta"].map(|name| hive.json(&format!("projections/{name}.json"))).to_vec()
    };
    hive.run("project", &[]).expect_exit(0);
    let before = maps(&hive);
    remove(&hive);
    fs::remove_dir_all(hive.akashic("projections")).unwrap();
    let reply = hive.run("project", &["--rebuild"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:REBUILT\nNEXT:NONE\nSUM:rebuilt from the events\nEVENTS:200\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n"
    );
    assert_eq!(maps(&hive), before);
    // As the mark is now at the head, the index alone answers.
    let reply = hive.run("project", &["--check"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:CONSISTENT\nNEXT:NONE\nSUM:index, projections and snapshot match the events\n\
         PROJECTIONS:OK\nEVENTS:200\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n"
    );
}

#[test]
fn a_new_vault_has_no_index_and_readers_never_create_one() {
    let hive = TestVault::new();
    hive.batch(&(0..62).map(proposal).collect::<Vec<_>>());
    for (name, args) in [("log", &["--subject", "REQ-0001"][..]), ("lineage", &["REQ-0001"]), ("project", &["--check"])]
    {
        hive.run(name, args).expect_exit(0);
    }
    assert!(!hive.akashic("index").exists());
    hive.propose("the 64th");
    assert!(hive.akashic("index/data.mdb").exists());
    let before = hive.contents();
    for (name, args) in [("log", &["--subject", "REQ-0001"][..]), ("lineage", &["REQ-0001"]), ("project", &["--check"])]
    {
        hive.run(name, args).expect_exit(0);
    }
    assert!(hive.contents() == before, "a reader wrote something");
}
