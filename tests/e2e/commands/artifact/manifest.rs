//! Manifests are compared with the log, and restored from it.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::steps::{keeps_the_rules, ok, refuses, sh};
use crate::support::test_vault::{Reply, TestVault, mask, write_private};

/// A vault with one artifact, and the path of its manifest.
fn stored() -> (TestVault, PathBuf) {
    let hive = TestVault::new();
    fs::write(hive.dir().join("form.py"), "print('x')\n").unwrap();
    let reply = ok(&hive, "hf-artifact put form.py");
    let manifest = hive.vault().join(reply.get("PATH")).with_file_name("manifest.json");
    (hive, manifest)
}

/// The findings of a check, masked.
fn found(hive: &TestVault) -> Vec<String> {
    let reply = sh(hive, "hf-verify --artifacts").expect_exit(1);
    assert_eq!((reply.get("STATUS"), reply.get("ARTIFACTS"), reply.get("CHAIN")), ("FAILED", "MANIFEST", "OK"));
    reply.all("FINDING").into_iter().map(mask).collect()
}

/// T20: a manifest that was deleted or changed is found, with the file and the member.
#[test]
fn t20_a_deleted_or_falsified_manifest_is_found() {
    let (hive, path) = stored();
    let good = fs::read(&path).unwrap();
    assert_eq!(ok(&hive, "hf-verify --artifacts").get("ARTIFACTS"), "OK");
    let file = "Artifacts/<ulid>/manifest.json";
    for (member, value, says) in [
        ("artifact_id", json!("other"), "artifact_id is \"other\", but \"<ulid>\" is recorded"),
        ("kind", json!("binary"), "kind is \"binary\", but \"code\" is recorded"),
        ("filename", json!("x.py"), "filename is \"x.py\", but \"content.py\" is recorded"),
        ("mime_type", json!("text/html"), "mime_type is \"text/html\", but \"text/x-python\" is recorded"),
        ("sha256", json!("00"), "sha256 is \"00\", but \"<digest>\" is recorded"),
        ("size_bytes", json!(12), "size_bytes is 12, but 11 is recorded"),
        (
            "created_at",
            json!("2026-01-31T11:59:59Z"),
            "created_at is \"2026-01-31T11:59:59Z\", but \"2026-01-31T12:00:00Z\" is recorded",
        ),
        (
            "source_event_id",
            json!("01KG9YS7G0NG1ZZFQHNXKFYW2X"),
            "source_event_id is \"<ulid>\", but \"<ulid>\" is recorded",
        ),
        (
            "metadata",
            json!({"language": "ruby", "line_count": 1}),
            "metadata is {\"language\":\"ruby\",\"line_count\":1}, but {\"language\":\"python\",\"line_count\":1} is recorded",
        ),
        ("kind", json!(null), "kind is missing, but \"code\" is recorded"),
        ("approved_by", json!("user:jo"), "approved_by is \"user:jo\", but nothing is recorded"),
    ] {
        let mut manifest: Value = serde_json::from_slice(&good).unwrap();
        match value {
            Value::Null => drop(manifest.as_object_mut().unwrap().remove(member)),
            value => manifest[member] = value,
        }
        write_private(&path, manifest.to_string().as_bytes());
        assert_eq!(found(&hive), [format!("{file}: {says}")]);
    }
    for bytes in [&b""[..], b"[]", b"\xff", b"{\"a\":"] {
        write_private(&path, bytes);
        assert_eq!(found(&hive), [format!("{file} is not a JSON object")]);
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(found(&hive), [format!("{file} is missing")]);
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(found(&hive)[0].contains("symbolic link"), "{:?}", found(&hive));
    fs::remove_file(&path).unwrap();
    write_private(&path, &good);
    assert_eq!(ok(&hive, "hf-verify --artifacts").get("ARTIFACTS"), "OK");
    // A damaged content is worse.
    fs::remove_file(&path).unwrap();
    fs::write(path.with_file_name("content.py"), "print('y')\n").unwrap();
    let reply = sh(&hive, "hf-verify --artifacts").expect_exit(1);
    assert_eq!((reply.get("ARTIFACTS"), reply.all("FINDING").len()), ("CORRUPT", 2), "{reply:#?}");
}

/// T20: whoever reads an artifact is told of a wrong manifest, and how to restore it.
#[test]
fn t20_reading_an_artifact_checks_its_manifest_and_a_repair_restores_it() {
    let (hive, path) = stored();
    let good = fs::read(&path).unwrap();
    assert_eq!(ok(&hive, "hf-artifact repair ART-0001").get("STATUS"), "CONSISTENT");
    let bad = String::from_utf8(good.clone()).unwrap().replace("\"code\"", "\"text\"");
    write_private(&path, bad.as_bytes());
    let got = sh(&hive, "hf-artifact get ART-0001");
    assert_eq!((got.code, got.stdout.as_str()), (Some(0), "print('x')\n"), "the content is intact");
    let got = ok(&hive, "hf-artifact get ART-0001 --out back.py");
    assert_eq!(got.get("NEXT"), "ACTION hf-artifact repair ART-0001");
    assert_eq!(mask(got.get("FINDING")), "Artifacts/<ulid>/manifest.json: kind is \"text\", but \"code\" is recorded");
    assert_eq!(fs::read(&path).unwrap(), bad.as_bytes(), "a reader changes nothing");
    let before = hive.events().len();
    let repaired = hive.run_next(&got).expect_exit(0);
    assert_eq!(
        repaired.masked(&hive),
        "EXIT:0\nSTATUS:REBUILT\nNEXT:NONE\nSUM:the manifest of ART-0001 was restored from the log\n\
         FINDING:Artifacts/<ulid>/manifest.json: kind is \"text\", but \"code\" is recorded\n\
         QUARANTINED:Akashic/quarantine/manifest-<ulid>-<random>.json\nPATH:Artifacts/<ulid>/manifest.json\n"
    );
    assert_eq!((fs::read(&path).unwrap(), hive.events().len()), (good.clone(), before));
    assert_eq!(fs::read(hive.vault().join(repaired.get("QUARANTINED"))).unwrap(), bad.as_bytes());
    // One that was deleted leaves nothing to keep.
    fs::remove_file(&path).unwrap();
    assert_eq!(ok(&hive, "hf-artifact repair ART-0001").all("QUARANTINED"), [""; 0]);
    assert_eq!(fs::read(&path).unwrap(), good);
    assert_eq!(ok(&hive, "hf-artifact get ART-0001 --out back.py").get("NEXT"), "NONE");
    // Without its content there is nothing to describe.
    fs::remove_file(path.with_file_name("content.py")).unwrap();
    refuses_corrupt(&sh(&hive, "hf-artifact repair ART-0001"));
    keeps_the_rules(&hive);
}

/// D5: a damaged content leads to the check that finds it.
#[track_caller]
fn refuses_corrupt(reply: &Reply) {
    assert_eq!(reply.code, Some(4), "{reply:#?}");
    assert_eq!(["STATUS", "NEXT"].map(|key| reply.get(key)), ["CORRUPT", "ACTION hf-verify --artifacts"]);
}

/// D5: NEXT after a corrupt artifact names a check that sees the damage.
#[test]
fn d5_a_corrupt_artifact_leads_to_the_check_that_finds_it() {
    let (hive, path) = stored();
    fs::write(path.with_file_name("content.py"), "print('y')\n").unwrap();
    let reply = sh(&hive, "hf-artifact get ART-0001 --out back.py");
    refuses_corrupt(&reply);
    let verified = hive.run_next(&reply);
    assert_eq!((verified.get("STATUS"), verified.get("ARTIFACTS")), ("FAILED", "CORRUPT"));
    assert!(verified.get("FINDING").ends_with("content is damaged"), "{verified:#?}");
    refuses_corrupt(&sh(&hive, "hf-artifact validate ART-0001"));
}

#[test]
fn a_manifest_of_an_earlier_version_is_compared_as_far_as_the_log_knows() {
    let hive = TestVault::new();
    fs::write(hive.dir().join("form.py"), "print('x')\n").unwrap();
    let put = ok(&hive, "hf-artifact put form.py");
    let sha256 = put.get("SHA256");
    // Its event has only what version 0.1.0 recorded.
    hive.append("ArtifactDeclared", "artifact:old", json!({"kind": "code", "filename": "content.py"}));
    let payload = json!({"sha256": sha256, "size_bytes": 11, "path": "Artifacts/old/content.py"});
    let event = hive.append("ArtifactMaterialized", "artifact:old", payload).get("EVENT_ID").to_owned();
    let dir = hive.vault().join("Artifacts/old");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    write_private(&dir.join("content.py"), b"print('x')\n");
    let manifest = |created_at: &str, kind: &str| {
        let manifest = json!({
            "artifact_id": "old", "kind": kind, "filename": "content.py", "mime_type": "text/x-python",
            "sha256": sha256, "size_bytes": 11, "created_at": created_at, "source_event_id": event,
            "metadata": {"language": "python"},
        });
        write_private(&dir.join("manifest.json"), manifest.to_string().as_bytes());
    };
    // It began to store before the event was recorded.
    manifest("2026-01-31T11:58:00Z", "code");
    assert_eq!(ok(&hive, "hf-verify --artifacts").get("ARTIFACTS"), "OK");
    manifest("2026-01-31T12:00:01Z", "code");
    let late =
        "Artifacts/old/manifest.json: created_at is \"2026-01-31T12:00:01Z\", but \"2026-01-31T12:00:00Z\" is recorded";
    assert_eq!(found(&hive), [late]);
    manifest("2026-01-31T11:58:00Z", "text");
    assert_eq!(found(&hive), ["Artifacts/old/manifest.json: kind is \"text\", but \"code\" is recorded"]);
    ok(&hive, "hf-artifact repair old");
    let restored: Value = serde_json::from_slice(&fs::read(dir.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(
        restored,
        json!({
            "artifact_id": "old", "kind": "code", "filename": "content.py", "mime_type": "text/x-python",
            "sha256": sha256, "size_bytes": 11, "created_at": "2026-01-31T12:00:00Z", "source_event_id": event,
            "metadata": {"language": "python", "line_count": 1},
        })
    );
    assert_eq!(ok(&hive, "hf-verify --artifacts").get("ARTIFACTS"), "OK");
    refuses(&hive, "hf-artifact repair ART-0009", 6, "not found");
    keeps_the_rules(&hive);
}
