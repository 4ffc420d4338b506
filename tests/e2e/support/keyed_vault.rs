//! A vault with operator keys, whose operator has the key in `~/.ssh`.

use std::fs;
use std::path::PathBuf;

use super::operator_keys::make_key;
use super::test_vault::{Reply, TestVault};

/// A vault with the key of its operator from the beginning.
pub fn keyed() -> TestVault {
    keyed_with("")
}

/// The same with these settings.
#[track_caller]
pub fn keyed_with(settings: &str) -> TestVault {
    let hive = TestVault::empty();
    let key = own_key(&hive);
    if !settings.is_empty() {
        fs::create_dir(hive.vault()).expect("a folder");
        hive.configure(settings);
    }
    hive.run("init", &["--operator-key", &format!("{key}.pub"), "--yes"]).expect_exit(0);
    hive
}

/// Makes the key of a vault's operator, and returns its file.
pub fn own_key(hive: &TestVault) -> String {
    let ssh = hive.user_home().join(".ssh");
    fs::create_dir(&ssh).expect("a folder");
    make_key(&ssh, "id_ed25519", "ed25519").to_str().expect("UTF-8").to_owned()
}

/// The file of the operator's key.
pub fn key_of(hive: &TestVault) -> PathBuf {
    hive.user_home().join(".ssh/id_ed25519")
}

/// The verdict on signatures, with the operator's key from outside and the head that was kept elsewhere, if there is one.
pub fn verify(hive: &TestVault, head: Option<&str>) -> Reply {
    let keys = key_of(hive).with_extension("pub");
    let mut args = vec!["--policy", "--operator-keys", keys.to_str().expect("UTF-8")];
    args.extend(head.into_iter().flat_map(|head| ["--expect-head", head]));
    hive.run("verify", &args)
}
