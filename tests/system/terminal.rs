//! What people see on a terminal, and only there.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

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

#[test]
fn an_operator_is_shown_the_statement_before_signing_it() {
    if !can("a question on a terminal", &[Need::Tool("script")]) {
        return;
    }
    let hive = TestVault::empty();
    let hash = "14fdaea278f2bd1520b79372d43a87009041f2b96a7019df561cf4a3b66bdbde";
    let statement = format!(
        "HiveForge operator statement 1\nvault: v\nauthority: none\nhead seen: none\n\nact 1 of 1: lift a stop\n\
         subject: system\nanswers: 01KGC3EG00WQCEHJ7YG542ZJ10:sha256:{hash}\ncomment: go on\n"
    );
    fs::write(hive.dir().join("statement"), &statement).unwrap();
    let mut made = Command::new("ssh-keygen");
    made.args(["-q", "-t", "ed25519", "-N", "secret", "-f", "key"]);
    assert!(made.current_dir(hive.dir()).status().expect("ssh-keygen is installed").success());
    // A line that is too long for the terminal goes on after four spaces.
    let shown = statement.replace(&hash[37..], &format!("\n    {}", &hash[37..]));
    let (asked, passphrase) = ("Sign this statement? [y/N] ", "Enter passphrase");
    for (answers, exit, signed) in [
        (&[(asked, "n\n")][..], "EXIT:3\n", false),
        (&[(asked, "\n")], "EXIT:3\n", false),
        (&[(asked, "y\n"), (passphrase, "secret\n")], "EXIT:0\n", true),
    ] {
        let line = format!("{} sign statement --operator-key key", binary("decide").display());
        let seen = converse(&hive, &line, answers);
        assert!(seen.contains(&shown) && seen.contains(exit), "{seen}");
        assert_eq!(hive.dir().join("statement.sig").exists(), signed);
    }
}

/// What a command shows on a terminal of 80 columns, if these questions get these answers.
fn converse(hive: &TestVault, line: &str, answers: &[(&str, &str)]) -> String {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty cols 80; {line}"), "/dev/null"]).current_dir(hive.dir()).env("TERM", "xterm");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script runs");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut seen = String::new();
    for (question, answer) in answers {
        // What is typed before ssh-keygen asks for the passphrase is discarded.
        while !seen.contains(question) {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap_or_else(|e| panic!("{e}: {seen}"));
            seen.push(char::from(byte[0]));
        }
        stdin.write_all(answer.as_bytes()).expect("script reads");
    }
    stdout.read_to_string(&mut seen).expect("ASCII");
    assert!(child.wait().is_ok());
    seen.replace('\r', "")
}

#[test]
fn a_person_sees_what_they_approve_and_answers_with_one_letter() {
    if !can("a question on a terminal", &[Need::Tool("script")]) {
        return;
    }
    let hive = TestVault::new();
    let approve = format!("{} approve DEC-0001", binary("decide").display());
    hive.run("job", &["fire", "--destructive", "--", "rm", "precious"]).expect_exit(3);
    let no = converse(&hive, &approve, &[("Approve? [y/N] ", "n\n")]);
    assert!(no.contains("binds argument: precious\n") && no.contains("EXIT:3\n"), "{no}");
    assert!(no.contains("SUM:not confirmed; nothing was approved\n"), "{no}");
    assert_eq!(hive.run("decide", &["show", "DEC-0001"]).get("STATE"), "Requested");
    let yes = converse(&hive, &approve, &[("Approve? [y/N] ", "y\n")]);
    assert!(yes.contains("EXIT:0\n") && yes.contains("\nCOVERS:argument SAME absent precious\n"), "{yes}");
    // Who says --yes, and whoever has no terminal, is not asked.
    hive.run("require", &["propose", "Login"]).expect_exit(0);
    hive.run("require", &["analyze", "REQ-0001", "Easy."]).expect_exit(0);
    let unasked = on_terminal(&hive, "decide", "approve DEC-0002 --yes");
    assert!(unasked.contains("STATE:Approved") && !unasked.contains("[y/N]"), "{unasked}");
}
