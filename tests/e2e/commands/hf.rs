//! hf: the list of commands, and running one of them.

use hiveforge::cli::COMMANDS;

use crate::support::test_vault::{TestVault, binary};

#[test]
fn hf_without_arguments_prints_one_line_per_command() {
    let hive = TestVault::empty();
    let listed: String = COMMANDS.iter().map(|entry| format!("COMMAND:{} {}\n", entry.name, entry.about)).collect();
    let head = format!("EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:{} commands\n", COMMANDS.len());
    assert_eq!(hive.run("", &[]).expect_exit(0).stdout, head + &listed);
    for entry in COMMANDS {
        assert!(binary(entry.short()).is_file(), "{} is listed and cannot be run", entry.name);
    }
}

#[test]
fn every_built_command_is_listed() {
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/bin")).unwrap();
    let mut built: Vec<String> = sources
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_prefix("hf-").map(str::to_owned))
        .collect();
    built.sort();
    assert_eq!(built, COMMANDS.iter().map(|entry| entry.short().to_owned()).collect::<Vec<_>>());
}

#[test]
fn hf_runs_a_command_with_all_of_its_arguments() {
    let hive = TestVault::empty();
    assert_eq!(hive.run("", &["init"]).expect_exit(0).get("STATUS"), "INITIALIZED");
    let payload = r#"{"title":"two words"}"#;
    let reply = hive.run("", &["append", "RequirementProposed", "--payload", payload, "--key", "k"]).expect_exit(0);
    assert_eq!(reply.get("KEY"), "k");
    let help = hive.run("", &["log", "--help"]).stdout;
    assert!(help.contains("Usage: hf log [OPTIONS]") && help.contains("--format <FORMAT>"), "{help}");
    hive.run("", &["append", "Nonsense"]).expect_exit(2);
    let piped = hive.pipe("", &["append", "RequirementProposed", "-"], payload).expect_exit(0);
    assert_eq!(piped.get("STATUS"), "APPENDED");
}

#[test]
fn hf_refuses_an_unknown_command() {
    let hive = TestVault::empty();
    for name in ["nonsense", "../hf-log", ""] {
        let reply = hive.run("", &[name]).expect_exit(2);
        assert_eq!(
            reply.stdout,
            format!(
                "EXIT:2\nSTATUS:USAGE\nNEXT:ACTION hf --help\nSUM:unknown command '{name}'; run hf to list the commands\n"
            )
        );
    }
}

#[test]
fn hf_refuses_options_before_the_command() {
    let hive = TestVault::new();
    // Dropped, they would let the command act on another vault.
    let args = ["--vault", "nowhere", "append", "RequirementProposed", "--payload", r#"{"title":"x"}"#];
    let reply = hive.refuses("", &args, 2);
    assert_eq!(reply.get("SUM"), "options must come after the command: hf COMMAND OPTIONS");
    // Also where the value of an option is the name of a command.
    hive.refuses("", &["--vault", "status", "task", "list"], 2);
    // A slip is a slip, whatever follows.
    let slip: serde_json::Value = serde_json::from_str(&hive.run("", &["taks", "status", "--json"]).stdout).unwrap();
    assert_eq!(slip["sum"], "unknown command 'taks'; did you mean task?");
}

#[test]
fn hf_accepts_the_json_flag_in_any_position() {
    let hive = TestVault::empty();
    for args in [&["--json"][..], &["nonsense", "--json"], &["--no-such-option", "--json"], &["--json", "nonsense"]] {
        let reply: serde_json::Value = serde_json::from_str(&hive.run("", args).stdout).unwrap();
        assert_eq!(reply["schema"], 2, "{args:?}");
    }
}

#[test]
fn a_mistyped_command_gets_a_suggestion() {
    let hive = TestVault::empty();
    for (slip, meant) in [("taks", "task"), ("hf-log", "log"), ("verfy", "verify")] {
        let reply = hive.run("", &[slip]).expect_exit(2);
        assert_eq!(reply.get("SUM"), format!("unknown command '{slip}'; did you mean {meant}?"));
    }
    let reply = hive.run("task", &["clam"]).expect_exit(2);
    assert!(reply.get("SUM").contains("'claim'"), "{reply:#?}");
}

#[test]
fn hf_help_works_with_and_without_a_command() {
    let hive = TestVault::empty();
    assert_eq!(hive.run("", &["help"]).stdout, hive.run("", &["--help"]).stdout);
    assert_eq!(hive.run("", &["help", "task"]).stdout, hive.run("", &["task", "--help"]).stdout);
    hive.run("", &["help", "nonsense"]).expect_exit(2);
}

#[test]
fn hf_called_by_a_commands_name_is_that_command() {
    let hive = TestVault::new();
    assert!(std::fs::read_link(binary("status")).unwrap().ends_with("hf"));
    assert_eq!(hive.run("status", &[]).expect_exit(0).stdout, hive.run("", &["status"]).stdout);
    // What only a person needs is offered to a person only.
    hive.run("", &["status", "--format", "kv"]).expect_exit(0);
    hive.refuses("status", &["--format", "kv"], 2);
}

#[test]
fn any_command_can_print_a_table_or_plain_lines() {
    let hive = TestVault::new();
    hive.run("task", &["propose", "Login form"]).expect_exit(0);
    let table = hive.run("", &["task", "list", "--format", "table"]);
    assert_eq!(table.stdout, "OK  1 task\nREF     STATUS  CREATED  TITLE\nT-0001  Ready   now      Login form\n");
    let lines = hive.run("", &["task", "list", "--format", "kv"]).expect_exit(0);
    assert_eq!(lines.stdout, hive.run("task", &["list"]).stdout);
    let json = hive.run("", &["task", "list", "--format", "json"]);
    assert_eq!(json.stdout, hive.run("task", &["list", "--json"]).stdout);
}

/// Sub-commands, and commands without any, that only look.
const READING: &[(&str, &[&str])] = &[
    ("artifact", &["get", "show", "list"]),
    ("branch", &["list", "show", "recall", "decide", "inbox"]),
    ("constraint", &["list"]),
    ("decide", &["list", "show"]),
    ("deepwork", &["status", "list"]),
    ("job", &["check", "list", "log"]),
    ("ref", &["resolve", "check"]),
    ("require", &["list", "show"]),
    ("review", &["prompt", "fails", "status"]),
    ("session", &["next", "list"]),
    ("state", &["show"]),
    ("task", &["list", "show", "explain"]),
];

#[test]
fn read_only_commands_take_no_key_and_no_actor() {
    let hive = TestVault::new();
    for (name, subs) in READING {
        let entry = COMMANDS.iter().find(|entry| entry.short() == *name).unwrap();
        let mut command = (entry.command)();
        command.build();
        for sub in *subs {
            let at = command.find_subcommand(sub).unwrap_or_else(|| panic!("{name} {sub}"));
            let offered: Vec<&str> = at.get_arguments().filter_map(|arg| arg.get_long()).collect();
            assert!(!offered.iter().any(|long| ["key", "actor"].contains(long)), "{name} {sub}: {offered:?}");
        }
    }
    for args in [
        &["list", "--actor", "user:jo"][..],
        &["show", "T-0001", "--key", "k"],
        &["explain", "T-0001", "--project", "p"],
    ] {
        hive.refuses("task", args, 2);
    }
    // The actor comes after what is done.
    hive.refuses("task", &["--actor", "user:jo", "propose", "x"], 2);
    hive.run("task", &["propose", "x", "--actor", "user:jo", "--key", "k"]).expect_exit(0);
}
