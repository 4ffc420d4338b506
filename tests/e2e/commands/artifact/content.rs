//! Contents: stored by what they are, and checked on every read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hiveforge::op::artifact::{self, PutRequest};
use serde_json::{Value, json};

use crate::support::steps::{count, keeps_the_rules, kinds, kinds_since, ok, refuses, running, sh, state};
use crate::support::test_vault::{Reply, TestVault, binary};

/// Stores a file with this content.
#[track_caller]
fn put(hive: &TestVault, name: &str, content: impl AsRef<[u8]>, more: &str) -> Reply {
    fs::write(hive.dir().join(name), content).unwrap();
    ok(hive, format!("hf-artifact put {name} {more}").trim_end())
}

/// The stored content of a reply's artifact.
fn stored(hive: &TestVault, reply: &Reply) -> PathBuf {
    hive.vault().join(reply.get("PATH"))
}

/// What is in `Artifacts/`.
fn folders(hive: &TestVault) -> Vec<String> {
    let Ok(entries) = fs::read_dir(hive.vault().join("Artifacts")) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let incoming = hive.vault().join("Artifacts/.incoming");
    names.filter(|name| name != ".incoming" || fs::read_dir(&incoming).unwrap().next().is_some()).collect()
}

#[test]
fn content_is_stored_with_its_manifest_and_can_be_read_back() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    let reply = put(&hive, "form.py", "print('x')\n", "--for T-0001");
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:STORED\nNEXT:NONE\nSUM:ART-0001 is Materialized: content.py\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nSUBJECT:artifact:<ulid>\nREF:ART-0001@<tag>\nSTATE:Materialized\nSHA256:<digest>\n\
         SIZE_BYTES:11\nPATH:Artifacts/<ulid>/content.py\n"
    );
    let manifest: Value =
        serde_json::from_slice(&fs::read(stored(&hive, &reply).with_file_name("manifest.json")).unwrap()).unwrap();
    let id = reply.get("SUBJECT").split_once(':').unwrap().1;
    let materialized = hive.events().last().unwrap()["event_id"].clone();
    assert_eq!(
        manifest,
        json!({
            "artifact_id": id, "kind": "code", "filename": "content.py", "mime_type": "text/x-python",
            "sha256": reply.get("SHA256"), "size_bytes": 11, "created_at": "2026-01-31T12:00:00Z",
            "source_event_id": materialized, "metadata": {"language": "python", "line_count": 1},
        })
    );
    assert_eq!(
        ok(&hive, "hf-artifact show ART-0001").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:ART-0001 is Materialized: content.py\nSUBJECT:artifact:<ulid>\n\
         REF:ART-0001@<tag>\nSTATE:Materialized\nFACT:created_at 2026-01-31T12:00:00Z\nFACT:filename content.py\n\
         FACT:kind code\nFACT:last_event_id <ulid>\nFACT:path Artifacts/<ulid>/content.py\nFACT:sha256 <digest>\n\
         FACT:size_bytes 11\nFACT:task_id <ulid>\n"
    );
    let got = sh(&hive, "hf-artifact get ART-0001");
    assert_eq!((got.stdout.as_str(), got.code), ("print('x')\n", Some(0)));
    let report = "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:ART-0001 is Materialized: content.py\nSHA256:<digest>\n\
                  SIZE_BYTES:11\nPATH:Artifacts/<ulid>/content.py\n";
    assert_eq!(crate::support::test_vault::mask(&got.stderr), report);
    assert_eq!(ok(&hive, "hf-artifact get ART-0001 --out back.py").masked(&hive), report);
    assert_eq!(fs::read_to_string(hive.dir().join("back.py")).unwrap(), "print('x')\n");
    assert_eq!(
        ok(&hive, "hf-artifact list --for T-0001").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:1 artifact\nCOUNT:1\nHAS_MORE:no\n\
         ENTITY:artifact:<ulid> ART-0001@<tag> Materialized code\n"
    );
    assert_eq!(
        ok(&hive, "hf-artifact validate ART-0001").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:ART-0001 is Validated: content.py\nEVENT_ID:<ulid>\n\
         SUBJECT:artifact:<ulid>\nREF:ART-0001@<tag>\nSTATE:Validated\n"
    );
    assert_eq!(ok(&hive, "hf-artifact validate ART-0001").get("STATUS"), "DUPLICATE");
    refuses(
        &hive,
        "hf-artifact invalidate ART-0001 --reason x",
        3,
        "ART-0001 is Validated, which does not allow ArtifactInvalidated; allowed: ArtifactCorrupted",
    );
    keeps_the_rules(&hive);
}

#[test]
fn the_type_is_detected_from_name_and_content() {
    let hive = TestVault::new();
    for (name, content, kind, mime) in [
        ("notes.MD", &b"# x\n"[..], "text", "text/markdown"),
        ("plain", b"words\n", "text", "text/plain"),
        ("noise", b"\xff\x00\xfe", "binary", "application/octet-stream"),
        ("odd.e-x", b"dashes\n", "text", "text/plain"),
    ] {
        let reply = put(&hive, name, content, "");
        let manifest = fs::read(stored(&hive, &reply).with_file_name("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!((&manifest["kind"], &manifest["mime_type"]), (&json!(kind), &json!(mime)), "{name}");
        assert_eq!(fs::read(stored(&hive, &reply)).unwrap(), content);
    }
    let reply = hive.pipe("artifact", &["put", "-", "--kind", "prompt"], "Be kind.").expect_exit(0);
    assert!(reply.get("PATH").ends_with("/content"));
    assert!(ok(&hive, "hf-artifact show ART-0005").all("FACT").contains(&"kind prompt"));
    refuses(&hive, "hf-artifact put plain --kind poem", 2, "poem");
}

#[test]
fn an_artifact_may_be_empty() {
    let hive = TestVault::new();
    let reply = put(&hive, "empty", "", "");
    assert_eq!(
        (reply.get("SIZE_BYTES"), reply.get("SHA256")),
        ("0", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    );
    let got = sh(&hive, "hf-artifact get ART-0001");
    assert_eq!((got.stdout.as_str(), got.code), ("", Some(0)));
    assert_eq!(hive.pipe("artifact", &["put", "-"], "").expect_exit(0).get("STATUS"), "DUPLICATE");
}

#[test]
fn the_same_content_is_stored_once() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let first = put(&hive, "a.txt", "same\n", "--for T-0001");
    let recorded = hive.contents();
    let again = ok(&hive, "hf-artifact put a.txt --for T-0001");
    assert_eq!(
        again.masked(&hive),
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:NONE\nSUM:ART-0001 is Materialized: content.txt\nEVENT_ID:<ulid>\n\
         SUBJECT:artifact:<ulid>\nREF:ART-0001@<tag>\nSTATE:Materialized\nSHA256:<digest>\nSIZE_BYTES:5\n\
         PATH:Artifacts/<ulid>/content.txt\n"
    );
    assert!(hive.contents() == recorded);
    // For another task, or under another name, it is an artifact of its own with the same bytes.
    let other = put(&hive, "b.md", "same\n", "");
    assert_eq!(other.get("STATUS"), "STORED");
    let inode = |reply: &Reply| fs::metadata(stored(&hive, reply)).unwrap().ino();
    assert_eq!(inode(&first), inode(&other));
    assert_eq!(sh(&hive, "hf-artifact get ART-0002").stdout, "same\n");
    assert_eq!(ok(&hive, "hf-artifact put b.md").get("STATUS"), "DUPLICATE");
    assert_eq!(ok(&hive, "hf-artifact put a.txt --for T-0001").get("STATUS"), "DUPLICATE");
    assert_eq!(folders(&hive).len(), 2);
    keeps_the_rules(&hive);
}

#[test]
fn a_key_makes_repeating_a_put_safe() {
    let hive = TestVault::new();
    put(&hive, "a.txt", "one\n", "--key k");
    assert_eq!(ok(&hive, "hf-artifact put a.txt --key k").get("STATUS"), "DUPLICATE");
    fs::write(hive.dir().join("a.txt"), "two\n").unwrap();
    refuses(&hive, "hf-artifact put a.txt --key k", 3, "for a different request");
    assert_eq!(folders(&hive).len(), 1);
}

#[test]
fn damaged_content_is_never_returned_and_is_recorded_once() {
    let hive = TestVault::new();
    let reply = put(&hive, "a.txt", "good\n", "");
    let content = stored(&hive, &reply);
    fs::write(&content, "evil\n").unwrap();
    fs::write(hive.dir().join("old.txt"), "old").unwrap();
    for n in 0..2 {
        let got = sh(&hive, "hf-artifact get ART-0001");
        assert_eq!((got.stdout.as_str(), got.code), ("", Some(4)), "no byte of it");
        assert_eq!(
            got.stderr,
            "EXIT:4\nSTATUS:CORRUPT\nNEXT:ACTION hf-verify --artifacts\nSUM:the content of ART-0001 is damaged\n"
        );
        let before = fs::read(hive.dir().join("old.txt")).unwrap();
        sh(&hive, "hf-artifact get ART-0001 --out old.txt").expect_exit(4);
        assert_eq!(fs::read(hive.dir().join("old.txt")).unwrap(), before, "what was there stays");
        sh(&hive, "hf-artifact validate ART-0001").expect_exit(4);
        assert_eq!(count(&hive, "ArtifactCorrupted"), 1, "round {n}");
    }
    assert_eq!(state(&hive, "ART-0001"), "Corrupted");
    // Stored again it is good, as an artifact of its own.
    let anew = put(&hive, "a.txt", "good\n", "");
    assert_eq!((anew.get("STATUS"), &anew.get("REF")[..8]), ("STORED", "ART-0002"));
    assert_eq!(sh(&hive, "hf-artifact get ART-0002").stdout, "good\n");
    assert_eq!(ok(&hive, "hf-artifact put a.txt").get("STATUS"), "DUPLICATE");
    assert_eq!(fs::read_to_string(&content).unwrap(), "evil\n");
    keeps_the_rules(&hive);
}

#[test]
fn good_content_is_never_replaced_by_damaged_content() {
    for more in ["", "--for T-0001"] {
        let hive = TestVault::new();
        ok(&hive, "hf-task propose Form");
        let first = put(&hive, "a.txt", "good\n", "");
        fs::write(stored(&hive, &first), "evil\n").unwrap();
        // Nobody has looked since; the same content comes once more.
        let second = put(&hive, "a.txt", "good\n", more);
        assert_eq!((second.get("STATUS"), &second.get("REF")[..8]), ("STORED", "ART-0002"), "{more}");
        assert_eq!(sh(&hive, "hf-artifact get ART-0002").stdout, "good\n");
        assert_eq!((state(&hive, "ART-0001"), count(&hive, "ArtifactCorrupted")), ("Corrupted".to_owned(), 1));
        keeps_the_rules(&hive);
    }
    // A link in the place of a content is no content, whatever it points to.
    let hive = TestVault::new();
    let content = stored(&hive, &put(&hive, "a.txt", "good\n", ""));
    fs::remove_file(&content).unwrap();
    symlink(hive.dir().join("a.txt"), &content).unwrap();
    let second = ok(&hive, "hf-artifact put a.txt");
    assert!(fs::symlink_metadata(stored(&hive, &second)).unwrap().is_file());
    assert_eq!(sh(&hive, "hf-artifact get ART-0002").stdout, "good\n");
}

#[test]
fn shortened_lengthened_or_missing_content_is_damaged() {
    for damage in ["", "good\n\n", "gone"] {
        let hive = TestVault::new();
        let content = stored(&hive, &put(&hive, "a.txt", "good\n", ""));
        match damage {
            "gone" => fs::remove_file(&content).unwrap(),
            other => fs::write(&content, other).unwrap(),
        }
        let got = sh(&hive, "hf-artifact get ART-0001");
        assert_eq!((got.stdout.as_str(), got.code), ("", Some(4)), "{damage:?}");
        assert_eq!(count(&hive, "ArtifactCorrupted"), 1);
    }
}

#[test]
fn a_symlink_in_place_of_content_is_not_followed() {
    let hive = TestVault::new();
    let content = stored(&hive, &put(&hive, "a.txt", "good\n", ""));
    fs::remove_file(&content).unwrap();
    symlink(hive.dir().join("a.txt"), &content).unwrap();
    let before = kinds(&hive).len();
    let got = sh(&hive, "hf-artifact get ART-0001");
    assert_eq!((got.stdout.as_str(), got.code), ("", Some(3)), "{got:#?}");
    assert_eq!(got.report().get("REASON"), "symlink");
    assert_eq!(kinds(&hive).len(), before);
}

#[test]
fn an_unreadable_source_leaves_nothing_in_the_store() {
    let hive = TestVault::new();
    fs::create_dir(hive.dir().join("folder")).unwrap();
    refuses(&hive, "hf-artifact put nowhere.txt", 2, "nowhere.txt");
    refuses(&hive, "hf-artifact put folder", 2, "folder is a directory; only files can be stored");
    fs::write(hive.dir().join("a.txt"), "x").unwrap();
    refuses(&hive, "hf-artifact put a.txt --for T-0001", 6, "'T-0001' not found");
    refuses(&hive, "hf-artifact get ART-0001", 6, "'ART-0001' not found");
    refuses(&hive, "hf-artifact get ART-0001 --out x", 6, "'ART-0001' not found");
    refuses(&hive, "hf-artifact invalidate ART-0001 --reason x", 6, "'ART-0001' not found");
    // Our own memory at address zero: it opens, and its first read fails.
    let reply = sh(&hive, "hf-artifact put /proc/self/mem").expect_exit(111);
    assert_eq!(reply.get("STATUS"), "SYSTEM_ERROR");
    assert_eq!((folders(&hive), kinds(&hive).len()), (Vec::new(), 1));
    put(&hive, "b.txt", "y", "");
    put(&hive, "c.txt", "z", "");
    refuses(&hive, "hf-artifact get 01KG", 6, "'01KG' is ambiguous; it matches artifact:<ulid>, artifact:<ulid>");
}

/// A file that somebody shortens as soon as its first piece was read.
struct Shrinking {
    file: File,
    writer: File,
    to: Option<u64>,
}

impl Read for Shrinking {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(piece)?;
        if let Some(to) = self.to.take() {
            self.writer.set_len(to)?;
        }
        Ok(read)
    }
}

#[test]
fn a_file_that_shrinks_midway_is_not_stored() {
    let hive = TestVault::new();
    let path = hive.dir().join("big.bin");
    for to in [0, 300 * 1024] {
        fs::write(&path, vec![7; 1024 * 1024]).unwrap();
        let writer = File::options().write(true).open(&path).unwrap();
        let mut from = Shrinking { file: File::open(&path).unwrap(), writer, to: Some(to) };
        let (name, size_bytes) = (Some(path.clone()), Some(1024 * 1024));
        let request = PutRequest { name, size_bytes, ..PutRequest::default() };
        let error = artifact::put(&hive.context(), request, &mut from).unwrap_err();
        assert_eq!(error.message, "the file changed while it was read; nothing was stored");
        assert_eq!((folders(&hive), kinds(&hive).len()), (Vec::new(), 1));
    }
}

/// A file whose disk fails half-way.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("the disk is gone"))?;
        piece.fill(7);
        Ok(piece.len())
    }
}

#[test]
fn a_file_that_vanishes_midway_is_not_stored() {
    let hive = TestVault::new();
    let done = artifact::put(&hive.context(), PutRequest::default(), &mut Failing(3));
    assert_eq!(done.unwrap_err().message, "cannot read the content: the disk is gone");
    assert_eq!((folders(&hive), kinds(&hive).len()), (Vec::new(), 1));
}

/// Of anonymous memory, so much and no more: the kernel refuses the rest.
const MEMORY_MAX_KIB: u64 = 16 * 1024;

/// Stores and reads a file of holes that has many times the memory which the command gets.
fn is_streamed(size_bytes: u64) {
    let hive = TestVault::new();
    File::create(hive.dir().join("large.bin")).unwrap().set_len(size_bytes).unwrap();
    let limited = |args: &str, to: Stdio| {
        let line = format!("ulimit -d {MEMORY_MAX_KIB} && exec '{}' {args}", binary("artifact").display());
        let mut shell = Command::new("sh");
        shell.current_dir(hive.dir()).env_clear().env("USER", "jo").env("HF_NOW", crate::support::test_vault::START);
        shell.args(["-c", &line]).stdout(to).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
    };
    let reply = Reply::of(limited("put large.bin", Stdio::piped())).expect_exit(0);
    assert_eq!(reply.get("SIZE_BYTES"), size_bytes.to_string());
    let back = File::create(hive.dir().join("back.bin")).unwrap();
    assert_eq!(Reply::of(limited("get ART-0001", back.into())).report().expect_exit(0).get("STATUS"), "OK");
    assert_eq!(fs::metadata(hive.dir().join("back.bin")).unwrap().len(), size_bytes);
}

#[test]
fn large_content_is_streamed_and_not_loaded() {
    is_streamed(4 * MEMORY_MAX_KIB * 1024);
}

#[test]
#[ignore = "hashing two gigabytes takes minutes in a debug build"]
fn two_gigabytes_of_content_are_streamed_and_not_loaded() {
    is_streamed(2 * 1024 * 1024 * 1024);
}

#[test]
fn invalid_content_is_reworked_by_a_new_task() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    put(&hive, "a.txt", "bad\n", "--for T-0001");
    let before = kinds(&hive).len();
    let reply = ok(&hive, "hf-artifact invalidate ART-0001 --reason wrong");
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:ART-0001 is Invalidated: content.txt\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         SUBJECT:artifact:<ulid>\nREF:ART-0001@<tag>\nSTATE:Invalidated\n\
         ENTITY:task:<ulid> T-0002@<tag> Ready Form\n"
    );
    // No person is called: the work goes on.
    let mut since = kinds_since(&hive, before);
    since.sort();
    since.retain(|kind| !["ThreadAborted", "BranchCompleted"].contains(&kind.as_str()));
    assert_eq!(since, ["ArtifactInvalidated", "RunFinished", "TaskAborted", "TaskFailed", "TaskProposed", "TaskReady"]);
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&hive, t)), ["Aborted", "Ready"]);
    assert_eq!(
        ok(&hive, "hf-task explain T-0001").all("BECAUSE").last().unwrap().to_string(),
        "T-0002 repeats the work and is Ready"
    );
    assert_eq!(ok(&hive, "hf-artifact invalidate ART-0001 --reason again").get("STATUS"), "DUPLICATE");
    keeps_the_rules(&hive);
}

#[test]
fn leftovers_of_a_killed_put_are_removed_by_the_next_put() {
    let hive = TestVault::new();
    let incoming = hive.vault().join("Artifacts/.incoming");
    // One died while it read, one before its event was recorded.
    fs::create_dir_all(incoming.join("01KG9YS7G0WRTVCH7P9FWWHB94/new")).unwrap();
    fs::write(incoming.join("01KG9YS7G0WRTVCH7P9FWWHB94/new/content"), "half").unwrap();
    fs::create_dir_all(incoming.join("01KG9YS7G0WRTVCH7P9FWWHB95")).unwrap();
    fs::create_dir_all(hive.vault().join("Artifacts/01KG9YS7G0WRTVCH7P9FWWHB95")).unwrap();
    fs::write(hive.vault().join("Artifacts/01KG9YS7G0WRTVCH7P9FWWHB95/content"), "whole").unwrap();
    let first = put(&hive, "a.txt", "x", "");
    assert_eq!(folders(&hive).len(), 1, "{:?}", folders(&hive));
    // One died after its event was recorded: its content stays.
    let id = first.get("SUBJECT").split_once(':').unwrap().1;
    fs::create_dir_all(incoming.join(id)).unwrap();
    // One is still at it.
    fs::create_dir_all(incoming.join("01KG9YS7G0WRTVCH7P9FWWHB96")).unwrap();
    let at_it = fs::File::open(incoming.join("01KG9YS7G0WRTVCH7P9FWWHB96")).unwrap();
    fs2::FileExt::lock_exclusive(&at_it).unwrap();
    put(&hive, "b.txt", "y", "");
    assert!(stored(&hive, &first).exists());
    let left: Vec<_> = fs::read_dir(&incoming).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["01KG9YS7G0WRTVCH7P9FWWHB96"]);
}
