//! The library in another program: no process is started.

use std::process::Command;

use crate::machine::{Need, can};
use crate::test_vault::TestVault;

#[test]
fn a_program_that_links_the_library_starts_no_process() {
    if !can("counting started programs", &[Need::Tool("strace")]) {
        return;
    }
    let hive = TestVault::empty();
    let example = assert_cmd::cargo::cargo_bin!("hf").with_file_name("examples").join("embed");
    assert!(example.is_file(), "cargo build --examples comes first");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=execve,fork,vfork"]).arg(example).arg(hive.vault());
    let traced = strace.output().expect("strace runs");
    let calls = String::from_utf8_lossy(&traced.stderr).into_owned();
    assert_eq!(calls.lines().filter(|line| line.contains("execve(")).count(), 1, "{calls}");
    assert!(!calls.contains("fork("), "{calls}");
    assert!(String::from_utf8_lossy(&traced.stdout).contains("STATE:Succeeded"), "{traced:?}");
}
