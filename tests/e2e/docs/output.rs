//! The reply itself: JSON, exit codes, help, one line a value, NEXT, and readers that went away.

use std::fs::{self, File};
use std::io::pipe;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::test_vault::{Reply, TestVault};

const PROPOSE: &[&str] = &["RequirementProposed", "--payload", r#"{"title":"x"}"#];
const COMMANDS: [&str; 6] = ["", "append", "backup", "init", "log", "verify"];

/// Characters that end, hide or turn a line for some reader.
const SLY: &str = "a\rb\nEXIT:0\u{85}c\u{2028}d\u{2029}e\u{202e}f\u{2066}g\u{200b}h\u{feff}i\u{7f}j\u{1b}[2Jk\u{ad}l";

/// Whether a reply contains one of them unescaped.
fn is_sly(reply: &str) -> bool {
    reply.chars().any(|c| c != '\n' && (c.is_control() || !c.is_ascii()) && SLY.contains(c))
}

#[test]
fn json_says_the_same_as_the_lines() {
    let hive = TestVault::new();
    let reply = hive.run("append", &[PROPOSE, &["--json", "--key", "k"]].concat());
    assert_eq!((reply.code, reply.stdout.lines().count()), (Some(0), 1));
    let value: Value = serde_json::from_str(&reply.stdout).unwrap();
    let event = &hive.events()[1];
    assert_eq!(
        value,
        json!({
            "schema": 2, "exit": 0, "status": "APPENDED", "next": {"kind": "none"},
            "sum": format!("RequirementProposed {}", event["subject"].as_str().unwrap()),
            "event_ids": [event["event_id"]], "subject": event["subject"],
            "ref": format!("REQ-0001@{}", &event["hash"].as_str().unwrap()[7..11]),
            "hash": event["hash"], "prev_hash": event["prev_hash"], "key": "k",
        })
    );
    let listed: Value = serde_json::from_str(&hive.run("log", &["--json", "--limit", "1"]).stdout).unwrap();
    assert_eq!((&listed["count"], &listed["has_more"]), (&json!(1), &json!(true)));
    assert_eq!(listed["events"].as_array().unwrap().len(), 1);
    let none: Value = serde_json::from_str(&hive.run("log", &["--json", "--type", "TaskReady"]).stdout).unwrap();
    assert_eq!(none["events"], serde_json::json!([]), "an empty list is a list");
    let verified: Value = serde_json::from_str(&hive.run("verify", &["--json"]).stdout).unwrap();
    assert_eq!((&verified["chain"], &verified["event_count"]), (&json!("OK"), &json!(2)));
}

#[test]
fn json_is_valid_for_errors_too() {
    let hive = TestVault::new();
    for (args, code, status) in [
        (&["RequirementAnalyzed", "--subject", "REQ-0009", "--json"][..], 6, "NOT_FOUND"),
        (&["Nonsense", "--json"], 2, "USAGE"),
        (&["--no-such-option", "--json"], 2, "USAGE"),
        (&["--json"], 2, "USAGE"),
        (&["VaultRecovered", "--json"], 3, "REFUSED"),
    ] {
        let reply = hive.run("append", args);
        assert_eq!(reply.code, Some(code), "{reply:#?}");
        assert_eq!(reply.stdout.lines().count(), 1);
        let value: Value = serde_json::from_str(&reply.stdout).unwrap();
        assert_eq!((&value["schema"], &value["exit"], &value["status"]), (&json!(2), &json!(code), &json!(status)));
        assert!(value["sum"].as_str().is_some_and(|sum| !sum.is_empty()));
        assert_eq!(value.get("reason"), (code == 3).then_some(&json!("reserved_kind")));
    }
}

#[test]
fn the_exit_code_can_be_reported_in_the_reply_only() {
    let hive = TestVault::new();
    fs::write(hive.dir().join("file"), "").unwrap();
    for (name, args, exit) in [
        ("append", &["Nonsense"][..], 2),
        ("append", &["--no-such-option"], 2),
        ("append", &["RequirementAnalyzed", "--subject", "REQ-0009"], 6),
        ("log", &["--vault", "nowhere"], 7),
        ("", &["nonsense"], 2),
    ] {
        let plain = hive.run(name, args).expect_exit(exit);
        let mut command = hive.command(name);
        let reply = Reply::of(command.env("HF_EXIT_ZERO", "1").args(args).output().unwrap());
        assert_eq!((reply.code, &reply.stdout), (Some(0), &plain.stdout));
    }
    // A CI job that verifies lives by the exit code.
    let mut verify = hive.command("verify");
    let reply = Reply::of(verify.env("HF_EXIT_ZERO", "1").env("HF_AGENT", "a").arg("--recover").output().unwrap());
    assert_eq!(reply.code, Some(3));
}

#[test]
fn every_command_has_help_and_a_version() {
    let hive = TestVault::empty();
    for name in COMMANDS {
        let full = if name.is_empty() { "hf".to_owned() } else { format!("hf-{name}") };
        let help = hive.run(name, &["--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{full}");
        assert!(help.stdout.contains(&format!("Usage: {full}")) && help.stdout.contains("Examples:"), "{full}");
        assert_eq!(hive.run(name, &["-h"]).code, Some(0));
        let version = hive.run(name, &["--version"]);
        assert_eq!((version.code, version.stdout), (Some(0), format!("{full} {}\n", env!("CARGO_PKG_VERSION"))));
    }
    assert_eq!(fs::read_dir(hive.dir()).unwrap().count(), 0);
}

#[test]
fn a_usage_error_is_one_line_and_names_the_help() {
    let hive = TestVault::new();
    for name in COMMANDS {
        let reply = hive.refuses(name, &["--no-such-option"], 2);
        let full = if name.is_empty() { "hf".to_owned() } else { format!("hf-{name}") };
        if !name.is_empty() {
            assert!(reply.get("SUM").contains("--no-such-option"), "{reply:#?}");
        }
        assert_eq!(reply.get("NEXT"), format!("ACTION {full} --help"));
    }
}

#[test]
fn no_value_can_add_or_hide_a_line() {
    let hive = TestVault::new();
    let title = json!({"title": SLY}).to_string();
    hive.run("append", &["RequirementProposed", "--payload", &title]).expect_exit(0);
    let replies = [
        (hive.run("log", &[]).expect_exit(0), 8),
        (hive.run("append", &[SLY]).expect_exit(2), 4),
        (hive.run("append", &[PROPOSE, &["--subject", SLY]].concat()).expect_exit(2), 4),
        (hive.run("append", &[PROPOSE, &["--subject", &SLY.replace(':', "")]].concat()).expect_exit(6), 4),
        (hive.run("append", &[PROPOSE, &["--parent", SLY]].concat()).expect_exit(6), 4),
        (hive.run("append", &[PROPOSE, &["--key", SLY]].concat()).expect_exit(2), 4),
        (hive.run("append", &[PROPOSE, &["--actor", SLY]].concat()).expect_exit(2), 4),
        (hive.run("append", &["RequirementProposed", "--payload", SLY]).expect_exit(2), 4),
        (hive.run("append", &["RequirementProposed", "--payload-file", SLY]).expect_exit(2), 4),
        (hive.run("append", &[&format!("--{SLY}")]).expect_exit(2), 4),
        (hive.run("log", &["--since", SLY]).expect_exit(2), 4),
        (hive.run("log", &["--type", SLY]).expect_exit(2), 4),
        (hive.run("log", &["show", SLY]).expect_exit(6), 4),
        (hive.run("log", &["--vault", SLY]).expect_exit(7), 4),
        (hive.run("verify", &["--expect-head", SLY]).expect_exit(2), 4),
        (hive.run("", &[SLY]).expect_exit(2), 4),
    ];
    for (reply, lines) in replies {
        assert_eq!(reply.stdout.split_terminator('\n').count(), lines, "{reply:#?}");
        assert!(!is_sly(&reply.stdout) && !is_sly(&reply.stderr), "{reply:#?}");
        assert_eq!(reply.all("EXIT").len(), 1);
    }
    let made = hive.run("init", &[SLY]).expect_exit(0);
    assert_eq!(made.stdout.lines().count(), 10);
    assert!(!is_sly(&made.stdout));
    for args in [&["--json"][..], &["--json", "--subject", "a\u{2028}b"], &["--json", "--since", SLY]] {
        let reply = hive.run("log", args);
        assert_eq!(reply.stdout.split_terminator('\n').count(), 1);
        assert!(!is_sly(&reply.stdout), "{reply:#?}");
        serde_json::from_str::<Value>(&reply.stdout).unwrap();
    }
}

#[test]
fn a_warning_is_one_line() {
    let hive = TestVault::new();
    let text = "governance:\n  \"a\\rb\\nwarning: c\\u2028d\": 1\n";
    hive.configure(text);
    let reply = hive.propose("x");
    assert_eq!(reply.stderr.lines().count(), 1, "{reply:#?}");
    assert!(!is_sly(&reply.stderr));
}

#[test]
fn next_names_the_vault_again_if_its_path_is_plain() {
    let hive = TestVault::new();
    hive.propose("x");
    let reply = hive.run("log", &["--limit", "1", "--vault", "Vault"]).expect_exit(0);
    let expected =
        format!("ACTION hf-log --cursor {} --limit 1 --vault {}", reply.get("NEXT_CURSOR"), hive.vault().display());
    assert_eq!(reply.get("NEXT"), expected);
    // As printed, it works from anywhere.
    let elsewhere = TestVault::empty();
    assert_eq!(elsewhere.run_next(&reply).expect_exit(0).get("COUNT"), "1");
    fs::rename(hive.vault(), hive.dir().join("my vault")).unwrap();
    let reply = hive.run("log", &["--limit", "1", "--vault", "my vault"]).expect_exit(0);
    assert_eq!((reply.get("NEXT"), reply.get("HAS_MORE")), ("ASK operator", "yes"));
}

#[test]
fn the_vault_is_found_by_flag_environment_and_folder_in_this_order() {
    let hive = TestVault::new();
    for name in ["flag", "first", "second"] {
        hive.run("init", &[name]).expect_exit(0);
    }
    let ids = ["flag", "first", "second", "Vault"].map(|name| {
        let reply = hive.run("verify", &["--vault", name]).expect_exit(0);
        reply.get("HEAD_ID").to_owned()
    });
    fs::create_dir_all(hive.dir().join("a/b")).unwrap();
    let found = |flag: &[&str], env: &[(&str, &str)]| {
        let mut command = hive.command("verify");
        command.current_dir(hive.dir().join("a/b")).args(flag);
        for (name, value) in env {
            command.env(name, value);
        }
        Reply::of(command.output().unwrap()).expect_exit(0).get("HEAD_ID").to_owned()
    };
    let (first, second) = (("HF_VAULT", "../../first"), ("HIVEFORGE_VAULT_PATH", "../../second"));
    assert_eq!(found(&["--vault", "../../flag"], &[first, second]), ids[0]);
    assert_eq!(found(&[], &[first, second]), ids[1]);
    assert_eq!(found(&[], &[second]), ids[2]);
    assert_eq!(found(&[], &[("HF_VAULT", ""), second]), ids[2]);
    assert_eq!(found(&[], &[]), ids[3]);
    // A configuration beside the folders names the vault.
    fs::write(hive.dir().join("a/hiveforge.config.yaml"), "hive:\n  vault_path: ../first\n").unwrap();
    assert_eq!(found(&[], &[]), ids[1]);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let hive = TestVault::new();
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let status = hive.process("append").args(PROPOSE).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(hive.events().len(), 2);
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let status = hive.process("log").args(["--follow"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_reply_that_cannot_be_written_is_a_system_error() {
    let hive = TestVault::new();
    for (name, args) in
        [("append", PROPOSE), ("log", &[]), ("log", &["--jsonl"]), ("log", &["--help"]), ("verify", &[])]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let status = hive.process(name).args(args).stdout(full).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(111), "{name} {args:?}");
    }
    // It was recorded; only the reply was lost.
    assert_eq!(hive.events().len(), 2);
}

#[test]
fn an_error_is_never_printed_in_place_of_a_document() {
    let hive = TestVault::empty();
    for (name, args) in [
        ("verify", &["--anchor"][..]),
        ("verify", &["--anchor", "--no-such-option"]),
        ("log", &["--jsonl"]),
        ("project", &["tasks", "--map"]),
        ("lineage", &["T-0001", "--dot"]),
        ("lineage", &["T-0001", "--mermaid"]),
        ("lineage", &["T-0001", "--tree"]),
    ] {
        let reply = hive.run(name, args);
        assert_eq!(reply.stdout, "", "{name} {args:?}");
        let code = if args.contains(&"--no-such-option") { 2 } else { 7 };
        assert!(reply.stderr.starts_with(&format!("EXIT:{code}\n")), "{reply:#?}");
        assert_eq!(reply.code, Some(code));
    }
    hive.run("lineage", &["T-0001", "--dot", "--out", "x.dot"]).expect_exit(7);
}
