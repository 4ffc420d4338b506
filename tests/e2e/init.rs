//! hf-init.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::hive::Hive;

#[test]
fn init_makes_a_private_vault_with_its_first_event() {
    let hive = Hive::empty();
    let reply = hive.run("init", &[]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:INITIALIZED\nNEXT:NONE\nSUM:a new vault with its first event\n\
         EVENT_ID:<ulid>\nHASH:sha256:<digest>\nVAULT_ID:<random>\nVAULT:<dir>/Vault\n"
    );
    assert_eq!(reply.stderr, "");
    for (path, _) in hive.contents() {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700, "{path:?}");
    }
    assert_eq!(hive.lines().len(), 1);
}

#[test]
fn init_again_changes_nothing() {
    let hive = Hive::new();
    let before = hive.contents();
    let reply = hive.run("init", &[]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:EXISTS\nNEXT:NONE\nSUM:the vault is there already; nothing was changed\nVAULT:<dir>/Vault\n"
    );
    assert_eq!(hive.contents(), before);
}
