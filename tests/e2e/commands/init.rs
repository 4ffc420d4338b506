//! hf-init.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

use crate::support::test_vault::{TestVault, write_private};

#[test]
fn init_makes_a_private_vault_with_its_first_event() {
    let hive = TestVault::empty();
    let reply = hive.run("init", &[]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:INITIALIZED\nNEXT:NONE\nSUM:created a new vault with its first event\n\
         EVENT_ID:<ulid>\nHASH:sha256:<digest>\nVAULT_ID:<random>\nHIVE:hive\nVAULT:<dir>/Vault\n\
         ADVICE:let a watchdog run: hf-watchdog --install cron (or systemd), or hf-watchdog --every 60; see hf-watchdog(1)\n"
    );
    assert_eq!(reply.stderr, "");
    for (path, _) in hive.contents() {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700, "{path:?}");
    }
    assert_eq!(hive.lines().len(), 1);
}

#[test]
fn a_second_init_changes_nothing() {
    let hive = TestVault::new();
    let before = hive.contents();
    let reply = hive.run("init", &[]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:EXISTS\nNEXT:NONE\nSUM:the vault already exists; nothing was changed\nHIVE:hive\nVAULT:<dir>/Vault\n"
    );
    assert_eq!(hive.contents(), before);
}

#[test]
fn init_accepts_the_vault_path_and_creates_missing_parents() {
    let hive = TestVault::empty();
    let reply = hive.run("init", &["deep/er/hive"]).expect_exit(0);
    assert!(reply.masked(&hive).lines().any(|line| line == "VAULT:<dir>/deep/er/hive"));
    hive.run("verify", &["--vault", "deep/er/hive"]).expect_exit(0);
    assert!(!hive.vault().exists());
}

#[test]
fn init_gives_every_vault_an_id_of_its_own() {
    let hive = TestVault::empty();
    let ids = ["one", "two"].map(|dir| hive.run("init", &[dir]).expect_exit(0).get("VAULT_ID").to_owned());
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn init_uses_an_empty_folder_only() {
    let hive = TestVault::empty();
    fs::create_dir(hive.vault()).unwrap();
    fs::set_permissions(hive.vault(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(hive.vault().join("notes.txt"), "mine").unwrap();
    let reply = hive.refuses("init", &[], 3);
    assert_eq!(reply.get("REASON"), "not_empty");
    assert!(reply.get("SUM").contains("contains 'notes.txt' and is not a vault"), "{reply:#?}");
    fs::remove_file(hive.vault().join("notes.txt")).unwrap();
    hive.run("init", &[]).expect_exit(0);
}

#[test]
fn init_refuses_a_folder_writable_by_others() {
    let hive = TestVault::empty();
    fs::create_dir(hive.vault()).unwrap();
    fs::set_permissions(hive.vault(), fs::Permissions::from_mode(0o770)).unwrap();
    assert_eq!(hive.refuses("init", &[], 3).get("REASON"), "not_private");
}

#[test]
fn init_refuses_a_path_that_is_not_a_folder() {
    let hive = TestVault::empty();
    fs::write(hive.dir().join("file"), "mine").unwrap();
    let reply = hive.run("init", &["file"]).expect_exit(2);
    assert_eq!(reply.masked(&hive).lines().nth(3), Some("SUM:<dir>/file is not a directory"));
    assert_eq!(fs::read(hive.dir().join("file")).unwrap(), b"mine");
}

#[test]
fn init_completes_an_interrupted_init() {
    let hive = TestVault::new();
    let whole = hive.contents();
    // Whatever was there when it died: the folder, the lock, a part of the files, a torn first event.
    for keep in ["", "Akashic/.lock", "hiveforge.config.yaml"] {
        for torn in [0, 1, 100] {
            let hive = TestVault::empty();
            fs::create_dir(hive.vault()).unwrap();
            fs::set_permissions(hive.vault(), fs::Permissions::from_mode(0o700)).unwrap();
            for (path, bytes) in &whole {
                let place = path.strip_prefix(whole[0].0.ancestors().find(|p| p.ends_with("Vault")).unwrap()).unwrap();
                let cut = match place.extension().is_some_and(|e| e == "jsonl") {
                    true => &bytes[..torn],
                    false if place.ends_with("chain.json") || !place.starts_with(keep) => continue,
                    false => bytes,
                };
                let target = hive.vault().join(place);
                fs::DirBuilder::new().recursive(true).mode(0o700).create(target.parent().unwrap()).unwrap();
                write_private(&target, cut);
            }
            hive.run("init", &[]).expect_exit(0);
            let verified = hive.run("verify", &[]).expect_exit(0);
            assert_eq!((verified.get("EVENTS"), verified.get("HEAD")), ("1", "OK"));
            let kept: usize = hive.quarantine().iter().map(|(_, bytes)| bytes.len()).sum();
            assert_eq!(kept, torn);
            hive.propose("x");
        }
    }
}

#[test]
fn a_second_init_leaves_a_torn_tail_alone() {
    let hive = TestVault::new();
    fs::write(hive.segment(), [fs::read(hive.segment()).unwrap(), b"{\"torn".to_vec()].concat()).unwrap();
    let before = hive.contents();
    assert_eq!(hive.run("init", &[]).expect_exit(0).get("STATUS"), "EXISTS");
    assert!(hive.contents() == before);
}

#[test]
fn init_takes_the_vault_option_instead_of_its_argument() {
    let hive = TestVault::empty();
    let reply = hive.run("init", &["--vault", "there"]).expect_exit(0);
    assert!(reply.masked(&hive).lines().any(|line| line == "VAULT:<dir>/there"));
    assert!(!hive.vault().exists());
    assert_eq!(hive.run("init", &["here", "--vault", "there"]).expect_exit(2).get("STATUS"), "USAGE");
    assert!(!hive.dir().join("here").exists());
}

#[test]
fn the_commented_configuration_sets_nothing() {
    let hive = TestVault::new();
    let text = fs::read_to_string(hive.config()).unwrap();
    assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')), "{text}");
    assert_eq!(hive.propose("x").stderr, "");
}

#[test]
fn exactly_one_of_many_concurrent_inits_creates_the_vault() {
    let hive = TestVault::empty();
    let statuses: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..8).map(|_| scope.spawn(|| hive.run("init", &[]).expect_exit(0).get("STATUS").to_owned())).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| *status == "INITIALIZED").count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| *status == "EXISTS").count(), 7, "{statuses:?}");
    assert_eq!(hive.lines().len(), 1);
    hive.run("verify", &[]).expect_exit(0);
}

#[test]
fn a_vault_is_private_under_any_umask() {
    for umask in ["000", "002", "077"] {
        let hive = TestVault::empty();
        let script = format!(
            "umask {umask}; {0}/hf-init && {0}/hf-append RequirementProposed --payload '{{\"title\":\"x\"}}'",
            crate::support::test_vault::binary("init").parent().unwrap().display()
        );
        let status = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(hive.dir())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        for (path, _) in hive.contents() {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
            for dir in path.ancestors().skip(1).take_while(|dir| dir.starts_with(hive.vault())) {
                assert_eq!(fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700, "{dir:?}");
            }
        }
    }
}

#[test]
fn init_makes_an_existing_folder_private() {
    let hive = TestVault::empty();
    fs::create_dir(hive.vault()).unwrap();
    fs::set_permissions(hive.vault(), fs::Permissions::from_mode(0o755)).unwrap();
    hive.run("init", &[]).expect_exit(0);
    assert_eq!(fs::metadata(hive.vault()).unwrap().permissions().mode() & 0o777, 0o700);
}
