//! Limits, full disks, read-only mounts and other users.
//!
//! Promise: each is refused with its exit code and one line, records nothing, loses nothing, and the vault works again
//! as soon as the cause is gone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::machine::{Disk, Mount, Need, can, fill, must, sized};
use crate::test_vault::{Reply, START, TestVault, binary};
use crate::vaults::{NEXT_DAY, batch, check_goes_on, check_verifies, clean, copy, count, log, payload, torn};

/// Runs a command of the toolkit under another program.
fn under(wrapper: &[&str], hive: &TestVault, program: &Path, args: &[&str]) -> Reply {
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(program)
        .args(args)
        .current_dir(hive.dir())
        .env_clear()
        .envs([("USER", "jo"), ("HF_NOW", START)])
        .output()
        .expect("the wrapper runs");
    Reply::of(output)
}

/// Checks that a reply is a system error in one line, and that nothing else was printed.
#[track_caller]
fn expect_system_error(reply: Reply) {
    let reply = reply.expect_exit(111);
    assert_eq!((reply.get("STATUS"), reply.stderr.as_str()), ("SYSTEM_ERROR", ""), "{reply:?}");
    assert_eq!(reply.stdout.lines().count(), 4, "{reply:?}");
}

#[track_caller]
fn expect_goes_on(hive: &TestVault) {
    check_goes_on(hive).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_file_size_limit_is_an_error_and_not_a_death_wherever_it_cuts() {
    if !can("file-size limits", &[Need::Tool("prlimit")]) {
        return;
    }
    let start = clean();
    let before = log(&start.vault());
    let args = ["RequirementProposed", "--payload", &payload("probe")];
    let whole = copy(&start, START);
    whole.run("append", &args).expect_exit(0);
    let length = log(&whole.vault()).len() - before.len();
    // One byte too few, no bytes at all, and steps in between.
    let cuts: Vec<usize> = (0..length).step_by(sized(61, 7)).chain([length - 1]).collect();
    for cut in &cuts {
        let hive = copy(&start, START);
        let limit = format!("--fsize={}", before.len() + cut);
        expect_system_error(under(&["prlimit", &limit], &hive, &binary("append"), &args));
        assert_eq!(log(&hive.vault()), before, "cut at {cut}");
        expect_goes_on(&hive);
        assert_eq!(count(&log(&hive.vault()), "probe"), 0);
    }
    let hive = copy(&start, START);
    let limit = format!("--fsize={}", before.len() + length);
    under(&["prlimit", &limit], &hive, &binary("append"), &args).expect_exit(0);
    println!("file-size limits: {} cuts in a write of {length} bytes", cuts.len());
}

#[test]
fn a_file_size_limit_while_an_unfinished_write_is_mended_loses_nothing() {
    if !can("file-size limits", &[Need::Tool("prlimit")]) {
        return;
    }
    let start = torn("torn tail", START);
    let before = start.kept.len() + start.torn.len();
    let args = ["RequirementProposed", "--payload", &payload("probe")];
    for more in (0..1200).step_by(sized(211, 29)) {
        let hive = start.copy();
        let limit = format!("--fsize={}", before + more);
        let reply = under(&["prlimit", &limit], &hive, &binary("append"), &args);
        let recorded = reply.code == Some(0);
        if !recorded {
            assert_eq!((reply.code, reply.get("STATUS")), (Some(111), "SYSTEM_ERROR"), "{more} bytes: {reply:?}");
        }
        start.check_kept(&hive.vault()).unwrap_or_else(|e| panic!("{more} bytes: {e}"));
        expect_goes_on(&hive);
        start.check_repaired(&hive.vault()).unwrap_or_else(|e| panic!("{more} bytes: {e}"));
        assert_eq!(count(&log(&hive.vault()), "probe"), usize::from(recorded), "{more} bytes");
    }
}

/// Appends until the disk is full, then frees space.
fn check_full_disk(hive: &mut TestVault) -> usize {
    let filler = fill(hive.dir());
    let mut acknowledged = 0;
    let refused = loop {
        let title = format!("acknowledged {acknowledged}.{}", "x".repeat(2000));
        let reply = hive.run("append", &["RequirementProposed", "--payload", &payload(&title)]);
        if reply.code != Some(0) {
            break reply;
        }
        acknowledged += 1;
        assert!(acknowledged < 1000, "the disk does not fill up");
    };
    expect_system_error(refused);
    let before = log(&hive.vault());
    expect_system_error(hive.pipe("append", &["--batch"], batch(&"probe".repeat(400), 5)));
    hive.at(NEXT_DAY);
    let rotated = hive.run("append", &["RequirementProposed", "--payload", &payload(&"probe".repeat(400))]);
    assert_eq!(rotated.code, Some(111), "{rotated:?}");
    assert_eq!(log(&hive.vault()), before);
    fs::remove_file(filler).expect("the filler");
    expect_goes_on(hive);
    let after = log(&hive.vault());
    assert!(after.starts_with(&before));
    assert_eq!((count(&after, "acknowledged"), count(&after, "probe")), (acknowledged, 0));
    acknowledged
}

#[test]
fn a_full_disk_refuses_and_the_vault_goes_on_when_there_is_room_again() {
    if !can("full disks", &[Need::Root, Need::Mount]) {
        return;
    }
    let mut hive = TestVault::empty();
    let mount = Mount::new(hive.dir(), &["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).expect("a tmpfs");
    hive.run("init", &[]).expect_exit(0);
    let on_tmpfs = check_full_disk(&mut hive);
    drop(mount);
    println!("full disk: tmpfs refused after {on_tmpfs} more events");
    if !can("a full ext4", &[Need::Loop, Need::Tool("mkfs.ext4")]) {
        return;
    }
    let disk = Disk::new("ext4", 4);
    let mut hive = TestVault::empty();
    let mount = disk.mount(hive.dir());
    hive.run("init", &[]).expect_exit(0);
    let on_ext4 = check_full_disk(&mut hive);
    drop(mount);
    println!("full disk: ext4 refused after {on_ext4} more events");
}

#[test]
fn a_full_disk_keeps_an_unfinished_write_until_it_can_be_moved() {
    if !can("an unfinished write on a full disk", &[Need::Root, Need::Mount]) {
        return;
    }
    let start = torn("torn tail", START);
    let source = start.copy();
    let hive = TestVault::empty();
    let _mount = Mount::new(hive.dir(), &["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).expect("a tmpfs");
    must("cp", &["-a", &source.vault().to_string_lossy(), &hive.dir().to_string_lossy()]);
    let filler = fill(hive.dir());
    let args = ["RequirementProposed", "--payload", &payload("probe")];
    for _ in 0..3 {
        expect_system_error(hive.run("append", &args));
        start.check_kept(&hive.vault()).unwrap_or_else(|e| panic!("{e}"));
    }
    fs::remove_file(filler).expect("the filler");
    expect_goes_on(&hive);
    start.check_repaired(&hive.vault()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(count(&log(&hive.vault()), "probe"), 0);
}

#[test]
fn a_read_only_mount_can_be_read_and_verified_but_not_written() {
    if !can("read-only mounts", &[Need::Root, Need::Mount]) {
        return;
    }
    let source = clean();
    let hive = TestVault::empty();
    let from = source.dir().to_string_lossy().into_owned();
    let _mount = Mount::new(hive.dir(), &["--bind", &from]).expect("a bind mount");
    must("mount", &["-o", "remount,bind,ro", &hive.dir().to_string_lossy()]);
    let before = source.contents();
    let listed = hive.run("log", &[]).expect_exit(0);
    assert_eq!(listed.all("EVENT").len(), 3);
    check_verifies(&hive).unwrap_or_else(|e| panic!("{e}"));
    expect_system_error(hive.run("append", &["RequirementProposed", "--payload", &payload("probe")]));
    expect_system_error(hive.pipe("append", &["--batch"], batch("probe", 5)));
    assert_eq!(source.contents(), before);
}

#[test]
fn another_users_vault_is_read_if_its_modes_allow_that_and_never_written() {
    if !can("other users", &[Need::Root, Need::Tool("setpriv")]) {
        return;
    }
    let hive = clean();
    fs::set_permissions(hive.dir(), fs::Permissions::from_mode(0o755)).expect("our own directory");
    // Copies, because other users may not be able to read the build directory.
    let program = |name: &str| {
        let copy = hive.dir().join(format!("hf-{name}"));
        fs::copy(binary(name), &copy).expect("a copy of the command");
        copy
    };
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let append = ["RequirementProposed", "--payload", &payload("probe")];
    let before = hive.contents();
    for (name, args) in [("log", &[][..]), ("verify", &[]), ("append", &append)] {
        let reply = under(&nobody, &hive, &program(name), &[args, &["--vault", "Vault"]].concat());
        assert!(matches!(reply.code, Some(3 | 111)), "a private vault, hf-{name}: {reply:?}");
        assert_eq!(reply.all("SUM").len(), 1, "{reply:?}");
    }
    must("chmod", &["-R", "a+rX", &hive.vault().to_string_lossy()]);
    let listed = under(&nobody, &hive, &program("log"), &[]).expect_exit(0);
    assert_eq!(listed.all("EVENT").len(), 3);
    let verified = under(&nobody, &hive, &program("verify"), &[]).expect_exit(0);
    assert_eq!((verified.get("CHAIN"), verified.get("TAIL"), verified.get("HEAD")), ("OK", "CLEAN", "OK"));
    let refused = under(&nobody, &hive, &program("append"), &append).expect_exit(3);
    assert_eq!(refused.get("REASON"), "not_owner");
    assert_eq!(hive.contents(), before);
    // Root is another user, too, in a vault that belongs to nobody.
    must("chown", &["-R", "65534:65534", &hive.vault().to_string_lossy()]);
    let refused = hive.run("append", &append).expect_exit(3);
    assert_eq!(refused.get("REASON"), "not_owner");
    assert_eq!(hive.contents(), before);
}

#[test]
fn a_vault_that_cannot_be_looked_at_is_not_passed_over_for_one_above() {
    if !can("failing system calls", &[Need::Tool("strace")]) {
        return;
    }
    let outer = clean();
    let inner = outer.dir().join("inner");
    fs::create_dir(&inner).expect("a directory");
    let before = outer.contents();
    let run = |inject: &[&str]| {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null"]).args(inject).arg(binary("append"));
        command.args(["RequirementProposed", "--payload", &payload("probe")]).current_dir(&inner);
        Reply::of(command.env_clear().envs([("USER", "jo"), ("HF_NOW", START)]).output().expect("strace runs"))
    };
    let made = Command::new(binary("init")).current_dir(&inner).env_clear().output().expect("the command runs");
    assert!(made.status.success());
    let nearest = inner.join("Vault/Akashic");
    let path = nearest.to_str().expect("UTF-8");
    run(&["-P", path, "-e", "inject=statx:error=EIO"]).expect_exit(111);
    assert_eq!(outer.contents(), before);
    run(&[]).expect_exit(0);
    assert_eq!(outer.contents(), before);
}
