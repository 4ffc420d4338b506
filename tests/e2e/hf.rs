//! hf: the list of commands, and running one of them.

use hiveforge::ui::commands::COMMANDS;

use crate::hive::{Hive, binary};

#[test]
fn hf_alone_lists_every_command_with_one_line() {
    let hive = Hive::empty();
    let listed: String = COMMANDS.iter().map(|(name, about)| format!("COMMAND:hf-{name} {about}\n")).collect();
    let head = format!("EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:{} commands\n", COMMANDS.len());
    assert_eq!(hive.run("", &[]).expect_exit(0).stdout, head + &listed);
    for (name, _) in COMMANDS {
        assert!(binary(name).is_file(), "hf-{name} is listed and not built");
    }
}

#[test]
fn every_command_that_is_built_is_listed() {
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/bin")).unwrap();
    let mut built: Vec<String> = sources
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_prefix("hf-").map(str::to_owned))
        .collect();
    built.sort();
    assert_eq!(built, COMMANDS.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>());
}

#[test]
fn hf_runs_a_command_with_all_of_its_arguments() {
    let hive = Hive::empty();
    assert_eq!(hive.run("", &["init"]).expect_exit(0).get("STATUS"), "INITIALIZED");
    let payload = r#"{"title":"two words"}"#;
    let reply = hive.run("", &["append", "RequirementProposed", "--payload", payload, "--key", "k"]).expect_exit(0);
    assert_eq!(reply.get("KEY"), "k");
    assert_eq!(hive.run("", &["log", "--help"]).stdout, hive.run("log", &["--help"]).stdout);
    hive.run("", &["append", "Nonsense"]).expect_exit(2);
    let piped = hive.pipe("", &["append", "RequirementProposed", "-"], payload).expect_exit(0);
    assert_eq!(piped.get("STATUS"), "APPENDED");
}

#[test]
fn hf_refuses_a_command_that_it_does_not_know() {
    let hive = Hive::empty();
    for name in ["nonsense", "../hf-log", "hf-log", ""] {
        let reply = hive.run("", &[name]).expect_exit(2);
        assert_eq!(
            reply.stdout,
            format!(
                "EXIT:2\nSTATUS:USAGE\nNEXT:ACTION hf --help\nSUM:'{name}' is not a command; hf alone lists them\n"
            )
        );
    }
}

#[test]
fn hf_refuses_options_before_the_command() {
    let hive = Hive::new();
    // Dropped, they would let the command act on another vault.
    let args = ["--vault", "nowhere", "append", "RequirementProposed", "--payload", r#"{"title":"x"}"#];
    let reply = hive.refuses("", &args, 2);
    assert_eq!(reply.get("SUM"), "options stand behind the command: hf COMMAND OPTIONS");
}

#[test]
fn hf_replies_in_json_wherever_that_is_asked_for() {
    let hive = Hive::empty();
    for args in [&["--json"][..], &["nonsense", "--json"], &["--no-such-option", "--json"], &["--json", "nonsense"]] {
        let reply: serde_json::Value = serde_json::from_str(&hive.run("", args).stdout).unwrap();
        assert_eq!(reply["schema"], 1, "{args:?}");
    }
}
