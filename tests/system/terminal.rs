//! What people see on a terminal, and only there.

use std::process::Command;

use crate::machine::{Need, can};
use crate::test_vault::{TestVault, binary};

/// The output of a command on its own terminal, standard output and standard error together.
fn on_terminal(hive: &TestVault, name: &str, args: &str) -> String {
    on_terminal_with(hive, name, args, &[])
}

fn on_terminal_with(hive: &TestVault, name: &str, args: &str, variables: &[(&str, &str)]) -> String {
    let output = Command::new("script")
        .args(["-qec", &format!("{} {args}", binary(name).display()), "/dev/null"])
        .current_dir(hive.dir())
        .env("TERM", "xterm")
        .envs(variables.iter().copied())
        .output()
        .expect("script runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("replies are UTF-8")
}

#[test]
fn long_work_shows_progress_on_a_terminal_and_nowhere_else() {
    if !can("a progress bar", &[Need::Tool("script")]) {
        return;
    }
    let hive = TestVault::new();
    hive.propose("x");
    let seen = on_terminal(&hive, "verify", "");
    // Under its own name a command prints KEY:VALUE lines, even on a terminal.
    let bar = format!("\rverifying [{}]", "#".repeat(40));
    assert!(seen.contains(&bar), "{seen:?}");
    // The progress bar is erased before the reply starts.
    assert!(seen.contains("\r\u{1b}[KEXIT:0\r\n"), "{seen:?}");
    assert_eq!(hive.run("verify", &[]).expect_exit(0).stderr, "");
}

#[test]
fn the_answer_to_why_is_a_tree_on_a_terminal() {
    if !can("a tree on a terminal", &[Need::Tool("script")]) {
        return;
    }
    let hive = TestVault::new();
    hive.propose("Login");
    let seen = on_terminal(&hive, "", "lineage REQ-0001");
    assert!(seen.starts_with("RequirementProposed REQ-0001  Login"), "{seen:?}");
    assert!(!seen.contains("NODE:") && !seen.contains("EXIT:"), "{seen:?}");
    assert!(on_terminal(&hive, "lineage", "REQ-0001").contains("\nNODE:0 "));
    assert_eq!(hive.run("lineage", &["REQ-0001"]).expect_exit(0).all("NODE").len(), 1);
}

#[test]
fn a_person_gets_tables_with_colours_and_everybody_else_the_lines() {
    if !can("tables on a terminal", &[Need::Tool("script")]) {
        return;
    }
    let hive = TestVault::new();
    hive.run("task", &["propose", "Login form"]).expect_exit(0);
    let seen = on_terminal(&hive, "", "task list");
    assert!(seen.contains("\u{1b}[32mOK\u{1b}[0m  1 task"), "{seen:?}");
    assert!(seen.contains("T-0001") && seen.contains("Login form"), "{seen:?}");
    assert!(!seen.contains("ENTITY:") && !seen.contains('@'), "{seen:?}");
    let plain = on_terminal_with(&hive, "", "task list", &[("NO_COLOR", "1")]);
    assert!(plain.contains("OK  1 task") && !plain.contains('\u{1b}'), "{plain:?}");
    // An agent, a caller that requests the lines, and the command's own name get the lines.
    for seen in [
        on_terminal_with(&hive, "", "task list", &[("HF_AGENT", "a")]),
        on_terminal_with(&hive, "", "task list", &[("HF_RUN_ID", "a")]),
        on_terminal(&hive, "", "task list --format kv"),
        on_terminal(&hive, "task", "list"),
    ] {
        assert!(seen.starts_with("EXIT:0\r\nSTATUS:OK\r\n") && !seen.contains('\u{1b}'), "{seen:?}");
    }
}
