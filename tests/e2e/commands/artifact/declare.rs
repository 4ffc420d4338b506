//! Artifacts that are declared before they exist, and stored later.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;

use serde_json::Value;

use crate::support::steps::{count, id, keeps_the_rules, kinds_since, ok, refuses, running, sh, state};
use crate::support::test_vault::{Reply, TestVault, write_private};

/// A file in the working directory.
fn file(hive: &TestVault, name: &str, content: &str) {
    fs::write(hive.dir().join(name), content).unwrap();
}

/// T20: an artifact can be declared before it exists, is listed, and gets its content once.
#[test]
fn t20_an_artifact_is_declared_before_it_exists_and_stored_once() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    assert_eq!(
        ok(&hive, "hf-artifact declare form.py --for T-0001").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:ART-0001 is Declared: form.py\nEVENT_ID:<ulid>\n\
         SUBJECT:artifact:<ulid>\nREF:ART-0001@<tag>\nSTATE:Declared\n"
    );
    let listed = "artifact:<ulid> ART-0001@<tag> Declared code";
    for line in ["hf-artifact list", "hf-artifact list --for T-0001", "hf-task show T-0001"] {
        assert!(ok(&hive, line).masked(&hive).contains(&format!("ENTITY:{listed}\n")), "{line}");
    }
    refuses(&hive, "hf-artifact get ART-0001", 6, "ART-0001 is Declared; it has no content yet");
    assert_eq!(ok(&hive, "hf-verify --artifacts").get("ARTIFACTS"), "OK");
    let before = hive.events().len();
    file(&hive, "made.txt", "print('x')\n");
    let stored = ok(&hive, "hf-artifact put made.txt --declared ART-0001");
    assert_eq!(
        stored.masked(&hive),
        "EXIT:0\nSTATUS:STORED\nNEXT:NONE\nSUM:ART-0001 is Materialized: form.py\nEVENT_ID:<ulid>\n\
         SUBJECT:artifact:<ulid>\nREF:ART-0001@<tag>\nSTATE:Materialized\nSHA256:<digest>\nSIZE_BYTES:11\n\
         PATH:Artifacts/<ulid>/content.py\n"
    );
    assert_eq!(kinds_since(&hive, before), ["ArtifactMaterialized"]);
    assert!(stored.get("PATH").contains(&id(&hive, "artifact", "ART-0001")), "under its own id");
    let manifest = fs::read(hive.vault().join(stored.get("PATH")).with_file_name("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!((&manifest["kind"], &manifest["filename"]), (&"code".into(), &"content.py".into()));
    assert_eq!(manifest["source_event_id"], stored.get("EVENT_ID"));
    assert_eq!(sh(&hive, "hf-artifact get ART-0001").stdout, "print('x')\n");
    // The same content again is no news; another one is refused.
    assert_eq!(ok(&hive, "hf-artifact put made.txt --declared ART-0001").get("STATUS"), "DUPLICATE");
    file(&hive, "other.txt", "print('y')\n");
    let why = "ART-0001 is Materialized with other content; declare another artifact for this one";
    assert_eq!(
        refuses(&hive, "hf-artifact put other.txt --declared ART-0001", 3, why).get("REASON"),
        "illegal_transition"
    );
    assert_eq!(sh(&hive, "hf-artifact get ART-0001").stdout, "print('x')\n");
    ok(&hive, "hf-artifact validate ART-0001");
    assert_eq!(ok(&hive, "hf-artifact put made.txt --declared ART-0001").get("STATUS"), "DUPLICATE");
    assert_eq!(ok(&hive, "hf-verify --artifacts --policy").get("ARTIFACTS"), "OK");
    assert_eq!(count(&hive, "ArtifactMaterialized"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn a_declaration_needs_a_kind_and_a_plain_name() {
    let hive = TestVault::new();
    for (line, why) in [
        ("hf-artifact declare notes", "cannot tell the kind of 'notes'; name it with --kind"),
        ("hf-artifact declare a/b.py", "invalid file name"),
        ("hf-artifact declare ..", "invalid file name"),
        ("hf-artifact declare form.py --kind poem", "poem"),
        ("hf-artifact declare", "<NAME>"),
    ] {
        refuses(&hive, line, 2, why);
    }
    refuses(&hive, "hf-artifact declare form.py --for T-0009", 6, "not found");
    file(&hive, "notes", "words\n");
    refuses(&hive, "hf-artifact put notes --declared ART-0009", 6, "not found");
    refuses(&hive, "hf-artifact put notes --declared ART-0009 --kind text", 2, "--kind");
    ok(&hive, "hf-artifact declare notes --kind response --key n");
    assert_eq!(ok(&hive, "hf-artifact declare notes --kind response --key n").get("STATUS"), "DUPLICATE");
    refuses(&hive, "hf-artifact declare other --kind response --key n", 3, "already used");
    let stored = ok(&hive, "hf-artifact put notes --declared ART-0001 --key p");
    assert!(stored.get("PATH").ends_with("/content"), "{stored:#?}");
    assert_eq!(ok(&hive, "hf-artifact put notes --declared ART-0001 --key p").get("STATUS"), "DUPLICATE");
    file(&hive, "more", "more words\n");
    let again = refuses(&hive, "hf-artifact put more --declared ART-0001 --key p", 3, "already used");
    assert_eq!(again.get("REASON"), "key_conflict");
    keeps_the_rules(&hive);
}

#[test]
fn a_declared_content_that_is_stored_already_is_linked() {
    let hive = TestVault::new();
    file(&hive, "a.txt", "same\n");
    let first = ok(&hive, "hf-artifact put a.txt");
    ok(&hive, "hf-artifact declare b.txt");
    let second = ok(&hive, "hf-artifact put a.txt --declared ART-0002");
    assert_eq!(second.get("STATUS"), "STORED");
    let inode = |reply: &Reply| fs::metadata(hive.vault().join(reply.get("PATH"))).unwrap().ino();
    assert_eq!(inode(&first), inode(&second));
    // And the other way round.
    ok(&hive, "hf-artifact declare c.txt");
    file(&hive, "c.txt", "third\n");
    ok(&hive, "hf-artifact put c.txt --declared ART-0003");
    assert_eq!(ok(&hive, "hf-artifact put c.txt").get("STATUS"), "DUPLICATE");
    assert_eq!(ok(&hive, "hf-verify --artifacts").get("ARTIFACTS"), "OK");
    keeps_the_rules(&hive);
}

#[test]
fn a_declaration_gets_one_content_however_many_are_stored_at_once() {
    let hive = TestVault::new();
    ok(&hive, "hf-artifact declare form.py");
    for n in 0..8 {
        file(&hive, &format!("{n}.py"), &format!("print({n})\n"));
    }
    let put = |n: usize| sh(&hive, &format!("hf-artifact put {n}.py --declared ART-0001 --lock-timeout 60"));
    let replies: Vec<Reply> = thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|n| scope.spawn(move || put(n))).collect();
        all.into_iter().map(|one| one.join().expect("it ends")).collect()
    });
    let stored: Vec<&Reply> = replies.iter().filter(|reply| reply.get("STATUS") == "STORED").collect();
    assert_eq!((stored.len(), count(&hive, "ArtifactMaterialized")), (1, 1), "{replies:#?}");
    assert!(replies.iter().all(|reply| ["STORED", "REFUSED"].contains(&reply.get("STATUS"))));
    assert_eq!(ok(&hive, "hf-verify --artifacts").get("ARTIFACTS"), "OK");
    assert_eq!(fs::read_dir(hive.vault().join("Artifacts/.incoming")).unwrap().count(), 0);
    keeps_the_rules(&hive);
}

#[test]
fn what_a_killed_put_left_of_a_declared_artifact_is_replaced() {
    let hive = TestVault::new();
    ok(&hive, "hf-artifact declare form.py");
    let dir = hive.vault().join("Artifacts").join(id(&hive, "artifact", "ART-0001"));
    fs::create_dir(&dir).unwrap();
    write_private(&dir.join("content.py"), b"half of");
    write_private(&dir.join("manifest.json"), b"{}");
    file(&hive, "form.py", "print('x')\n");
    ok(&hive, "hf-artifact put form.py --declared ART-0001");
    assert_eq!(sh(&hive, "hf-artifact get ART-0001").stdout, "print('x')\n");
    assert_eq!(ok(&hive, "hf-verify --artifacts").get("ARTIFACTS"), "OK");
}

#[test]
fn a_corrupted_artifact_cannot_be_stored_again() {
    let hive = TestVault::new();
    ok(&hive, "hf-artifact declare form.py");
    file(&hive, "form.py", "print('x')\n");
    let stored = ok(&hive, "hf-artifact put form.py --declared ART-0001");
    fs::write(hive.vault().join(stored.get("PATH")), "print('z')\n").unwrap();
    let damaged = sh(&hive, "hf-artifact get ART-0001");
    assert_eq!((damaged.code, state(&hive, "ART-0001").as_str()), (Some(4), "Corrupted"));
    let why = "ART-0001 is Corrupted; store the content as a new artifact";
    refuses(&hive, "hf-artifact put form.py --declared ART-0001", 3, why);
    assert_eq!(ok(&hive, "hf-artifact put form.py").get("STATUS"), "STORED");
    keeps_the_rules(&hive);
}
