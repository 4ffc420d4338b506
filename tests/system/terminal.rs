//! What a person sees on a terminal, and only there.

use std::process::Command;

use crate::hive::{Hive, binary};
use crate::machine::{Need, can};

/// What a command shows on a terminal of its own, both outputs together.
fn on_terminal(hive: &Hive, name: &str, args: &str) -> String {
    let output = Command::new("script")
        .args(["-qec", &format!("{} {args}", binary(name).display()), "/dev/null"])
        .current_dir(hive.dir())
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
    let hive = Hive::new();
    hive.propose("x");
    let seen = on_terminal(&hive, "verify", "");
    let bar = format!("\rverifying [{}]", "#".repeat(40));
    assert!(seen.contains(&bar), "{seen:?}");
    // Taken away before the reply begins.
    assert!(seen.contains("\r\u{1b}[KEXIT:0\r\n"), "{seen:?}");
    assert_eq!(hive.run("verify", &[]).expect_exit(0).stderr, "");
}

#[test]
fn the_answer_to_why_is_a_tree_on_a_terminal() {
    if !can("a tree on a terminal", &[Need::Tool("script")]) {
        return;
    }
    let hive = Hive::new();
    hive.propose("Login");
    let seen = on_terminal(&hive, "lineage", "REQ-0001");
    assert!(seen.contains("\nRequirementProposed requirement:"), "{seen:?}");
    assert!(!seen.contains("NODE:"), "{seen:?}");
    assert_eq!(hive.run("lineage", &["REQ-0001"]).expect_exit(0).all("NODE").len(), 1);
}
