//! hf-backup: a whole, verified copy, or nothing.

use std::fs;

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::ok;
use crate::support::test_vault::{Reply, TestVault, write_private};

#[test]
fn a_backup_is_a_vault_with_the_same_log() {
    let hive = TestVault::new();
    hive.propose("x");
    fs::create_dir(hive.vault().join("Akashic/index")).unwrap();
    fs::write(hive.vault().join("Akashic/index/derived"), "left out").unwrap();
    let before = hive.contents();
    let reply = hive.run("backup", &["copies/monday"]).expect_exit(0);
    let left_out = ["Akashic/index/derived", "Akashic/clock"];
    let copied: Vec<_> = before.iter().filter(|(path, _)| !left_out.iter().any(|name| path.ends_with(name))).collect();
    let bytes: usize = copied.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(
        reply.masked(&hive),
        format!(
            "EXIT:0\nSTATUS:BACKED_UP\nNEXT:NONE\nSUM:copied {files} files with 2 events\nPATH:<dir>/copies/monday\nEVENTS:2\n\
             HEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\nFILES:{files}\nBYTES:{bytes}\n",
            files = copied.len()
        )
    );
    assert!(hive.contents() == before);
    let copy = hive.dir().join("copies/monday");
    for (path, bytes) in copied {
        assert!(fs::read(copy.join(path.strip_prefix(hive.vault()).unwrap())).unwrap() == *bytes, "{path:?}");
    }
    assert!(!copy.join("Akashic/index").exists());
    assert_eq!(fs::read_dir(hive.dir().join("copies")).unwrap().count(), 1);
    let args = ["--vault", "copies/monday"];
    assert_eq!(hive.run("verify", &args).expect_exit(0).get("HEAD_HASH"), reply.get("HEAD_HASH"));
    hive.run("append", &[&["RequirementProposed", "--payload", r#"{"title":"y"}"#], &args[..]].concat()).expect_exit(0);
}

#[test]
fn a_backup_goes_into_an_empty_folder_only() {
    let hive = TestVault::new();
    fs::create_dir(hive.dir().join("empty")).unwrap();
    hive.run("backup", &["empty"]).expect_exit(0);
    let reply = hive.refuses("backup", &["empty"], 3);
    assert_eq!(reply.get("REASON"), "not_empty");
    fs::write(hive.dir().join("file"), "kept").unwrap();
    assert_eq!(hive.refuses("backup", &["file"], 3).get("REASON"), "not_empty");
    assert_eq!(fs::read(hive.dir().join("file")).unwrap(), b"kept");
}

#[test]
fn a_backup_inside_the_vault_is_refused() {
    let hive = TestVault::new();
    for place in ["Vault/copy", "Vault/Artifacts/deep/copy", "Vault/../Vault/copy"] {
        let reply = hive.refuses("backup", &[place], 2);
        assert_eq!(reply.get("SUM"), "a backup must not be inside the vault");
    }
}

#[test]
fn a_damaged_vault_is_not_backed_up() {
    let hive = TestVault::new();
    hive.propose("x");
    let mut log = fs::read(hive.segment()).unwrap();
    log[20] ^= 1;
    write_private(&hive.segment(), &log);
    let reply = hive.refuses("backup", &["copies/monday"], 4);
    assert_eq!(reply.masked(&hive).lines().nth(3), Some("SUM:<dir>/Vault failed verification; no backup was made"));
    assert_eq!(fs::read_dir(hive.dir().join("copies")).unwrap().count(), 0);
}

#[test]
fn a_backup_without_a_head_record_is_good_too() {
    let hive = TestVault::new();
    hive.propose("x");
    fs::remove_file(hive.head()).unwrap();
    assert_eq!(hive.run("backup", &["copy"]).expect_exit(0).get("EVENTS"), "2");
    hive.run("verify", &["--vault", "copy"]).expect_exit(0);
}

#[test]
fn a_copy_is_private_even_if_the_original_was_not() {
    use std::os::unix::fs::PermissionsExt;
    let hive = TestVault::new();
    fs::set_permissions(hive.segment(), fs::Permissions::from_mode(0o644)).unwrap();
    hive.run("backup", &["copy"]).expect_exit(0);
    let copied = hive.dir().join("copy").join(hive.segment().strip_prefix(hive.vault()).unwrap());
    assert_eq!(fs::metadata(copied).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(hive.dir().join("copy")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn backups_taken_during_writes_are_consistent() {
    let hive = TestVault::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..10).for_each(|n| drop(hive.propose(&n.to_string()))));
        for n in 0..5 {
            let copy = format!("copy{n}");
            let reply = Reply::of(hive.command("backup").arg(&copy).output().unwrap()).expect_exit(0);
            let verified = hive.run("verify", &["--vault", &copy]).expect_exit(0);
            assert_eq!((verified.get("HEAD"), verified.get("EVENTS")), ("OK", reply.get("EVENTS")));
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_name_that_is_not_utf8_is_refused_and_not_left_out() {
    use std::os::unix::ffi::OsStrExt;
    let hive = TestVault::new();
    let odd = hive.vault().join("Artifacts").join(std::ffi::OsStr::from_bytes(b"\xff.bin"));
    fs::write(odd, "x").unwrap();
    let reply = hive.run("backup", &["copy"]).expect_exit(3);
    assert_eq!(reply.get("REASON"), "odd_name");
    assert!(!hive.dir().join("copy").exists());
}

#[test]
fn leftovers_of_a_killed_backup_are_removed_by_the_next_backup() {
    let hive = TestVault::new();
    for name in ["copy.partial-0123abcd", "copy.partial-at-it", "copy.partial-89abcdef", "copying.partial-01234567"] {
        fs::create_dir(hive.dir().join(name)).unwrap();
        fs::write(hive.dir().join(name).join("half"), "x").unwrap();
    }
    let at_it = fs::File::open(hive.dir().join("copy.partial-89abcdef")).unwrap();
    fs2::FileExt::lock_exclusive(&at_it).unwrap();
    hive.run("backup", &["copy"]).expect_exit(0);
    let mut left: Vec<_> = fs::read_dir(hive.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    // Whose name is not ours, who is still at it, and other backups are left alone.
    assert_eq!(left, ["Vault", "copy", "copy.partial-89abcdef", "copy.partial-at-it", "copying.partial-01234567"]);
}

#[test]
fn a_backup_does_not_include_the_machine_clocks() {
    let hive = TestVault::new();
    hive.propose("x");
    assert!(hive.vault().join("Akashic/clock").exists());
    let copy = hive.dir().join("copy");
    hive.run("backup", &[copy.to_str().unwrap()]).expect_exit(0);
    assert!(copy.join("Akashic/events").exists() && !copy.join("Akashic/clock").exists());
}

#[test]
fn a18_a_backup_has_no_variables_of_jobs() {
    let story = TestJobVault::new("");
    story.fire_with(&["--env", "TOKEN=hunter2"], "true");
    story.poll("T-0001");
    story.gone();
    ok(&story, "hf-backup copy");
    let holds = |folder: &str| {
        let files =
            std::process::Command::new("grep").args(["-rl", "hunter2", folder]).current_dir(story.dir()).output();
        String::from_utf8(files.expect("grep runs").stdout).expect("UTF-8")
    };
    assert!(holds("Vault").ends_with("/spec.json\n") && holds("copy").is_empty(), "{}", holds("copy"));
    let verified = story.run("verify", &["--policy", "--vault", "copy"]).expect_exit(0);
    assert_eq!(verified.get("POLICY"), "OK");
    assert_eq!(story.run("job", &["check", "T-0001", "--vault", "copy"]).get("STATUS"), "DONE");
}
