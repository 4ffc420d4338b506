//! Vault.example: a small real vault that verifies from a fresh clone, whatever the umask.

use std::path::Path;

use crate::support::test_vault::TestVault;

#[test]
fn the_example_vault_verifies() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("Vault.example");
    let hive = TestVault::empty();
    let reply = hive
        .run("verify", &["--projections", "--artifacts", "--policy", "--vault", example.to_str().unwrap()])
        .expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:VERIFIED\nNEXT:NONE\nSUM:28 events verified\nCHAIN:OK\nTAIL:CLEAN\nHEAD:OK\nANCHOR:NONE\nPROJECTIONS:OK\nARTIFACTS:OK\nPOLICY:OK\nSIGNATURES:NONE\n\
         SETTINGS:UNRECORDED\nREGIME:settings are not recorded yet: earlier events cannot be judged by them\nDUE:0\nEVENTS:28\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n"
    );
}

#[test]
fn the_example_vault_verifies_for_everyone_who_can_read_it() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("Vault.example");
    let hive = TestVault::empty();
    let copy = hive.dir().join("copy");
    let copied = std::process::Command::new("cp").arg("-r").args([&example, &copy]).status().unwrap();
    assert!(copied.success());
    // As a clone under umask 002 leaves it: group-writable.
    let mut dirs = vec![copy.clone()];
    while let Some(dir) = dirs.pop() {
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o775)).unwrap();
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => dirs.push(path),
                false => fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap(),
            }
        }
    }
    let reply = hive.run("verify", &["--vault", copy.to_str().unwrap()]).expect_exit(0);
    assert!(reply.stderr.contains("is writable by others"), "{reply:?}");
    let refused = hive.run("append", &["AgentStarted", "--actor", "agent:x", "--vault", copy.to_str().unwrap()]);
    assert_eq!(refused.expect_exit(3).get("REASON"), "not_private");
}

#[test]
fn the_example_settings_are_those_of_a_new_vault() {
    let hive = TestVault::new();
    let written = std::fs::read_to_string(hive.config()).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("Vault.example/hiveforge.config.yaml");
    assert_eq!(std::fs::read_to_string(example).unwrap(), written);
}
