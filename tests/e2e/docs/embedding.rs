//! A program that links the library gets the replies that a shell gets.

use std::process::Command;

use crate::support::test_vault::{Reply, TestVault, binary, mask};

/// The example, which cargo builds beside the tests.
fn example() -> std::path::PathBuf {
    assert_cmd::cargo::cargo_bin!("hf").with_file_name("examples").join("embed")
}

/// What differs from one moment to another.
fn comparable(reply: &str, hive: &TestVault) -> String {
    let masked = mask(&reply.replace(&hive.vault().display().to_string(), "<vault>"));
    let lines = masked.lines().map(|line| match line.split_once(':') {
        Some(("LEASE_UNTIL", _)) => "LEASE_UNTIL:<time>",
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_program_gets_the_same_replies_as_the_shell() {
    assert!(example().is_file(), "cargo test builds it; with --test e2e alone, run cargo build --examples before");
    let (inside, outside) = (TestVault::empty(), TestVault::empty());
    // No command can be found: whatever it does, it does itself.
    let ran = Command::new(example()).arg(inside.vault()).env_clear().env("PATH", "/nowhere").output().unwrap();
    let program = comparable(&Reply::of(ran).stdout, &inside);
    let mut shell = String::new();
    for (agent, line) in [
        ("", &["init"][..]),
        ("", &["task", "propose", "Login form", "--key", "form"]),
        ("builder", &["task", "claim"]),
        ("builder", &["task", "start", "T-0001"]),
        ("builder", &["task", "succeed", "T-0001", "--summary", "it works"]),
    ] {
        let mut command = Command::new(binary(line[0]));
        command.args(&line[1..]).current_dir(outside.dir()).env_clear().env("USER", "jo");
        if !agent.is_empty() {
            command.env("HF_AGENT", agent);
        }
        shell += &Reply::of(command.output().unwrap()).stdout;
    }
    assert_eq!(program, comparable(&shell, &outside));
    assert!(program.contains("STATUS:CLAIMED") && program.ends_with("STATE:Succeeded"), "{program}");
}
