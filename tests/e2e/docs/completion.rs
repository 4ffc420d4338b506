//! What a shell is told when a person presses TAB. Real shells ask in `tests/system/completions.rs`.

use hiveforge::cli::COMMANDS;

use crate::support::steps::ok;
use crate::support::test_vault::TestVault;

/// The candidates for the last of these words, without what they mean.
fn offered(hive: &TestVault, words: &[&str]) -> Vec<String> {
    let index = (words.len() - 1).to_string();
    let reply = hive.run("", &[&["--complete", &index], words].concat());
    assert_eq!((reply.code, reply.stderr.as_str()), (Some(0), ""), "{words:?}");
    reply.stdout.lines().map(|line| line.split_once('\t').expect("a tab").0.to_owned()).collect()
}

#[test]
fn every_command_and_subcommand_is_offered() {
    let hive = TestVault::empty();
    let names: Vec<String> = COMMANDS.iter().map(|entry| entry.short().to_owned()).collect();
    assert_eq!(offered(&hive, &["hf", ""]), names);
    for entry in COMMANDS {
        let command = (entry.command)();
        let subs: Vec<&str> =
            command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| sub.get_name()).collect();
        for begin in [&["hf", entry.short()][..], &[entry.name]] {
            let words = offered(&hive, &[begin, &[""]].concat());
            assert!(subs.iter().all(|sub| words.iter().any(|word| word == sub)), "{begin:?}: {words:?}");
        }
    }
}

#[test]
fn every_subcommand_offers_its_options() {
    let hive = TestVault::empty();
    let mut states = 0;
    for entry in COMMANDS {
        let mut command = (entry.command)();
        command.build();
        let subs = command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set());
        let below: Vec<(Vec<&str>, &clap::Command)> = match command.has_subcommands() {
            true => subs.map(|sub| (vec![sub.get_name()], sub)).collect(),
            false => vec![(vec![], &command)],
        };
        for (words, at) in below {
            for begin in [&["hf", entry.short()][..], &[entry.name]] {
                let found = offered(&hive, &[begin, &words[..], &["--"]].concat());
                for long in at.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long) {
                    assert!(found.contains(&format!("--{long}")), "{begin:?} {words:?} --{long}: {found:?}");
                }
                states += 1;
            }
        }
    }
    assert!(states > 150, "only {states}");
}

#[test]
fn references_from_the_vault_are_offered_where_they_fit() {
    let hive = TestVault::new();
    for line in [
        "hf-task propose Form",
        "hf-task propose Page",
        "hf-require propose Login",
        "hf-require analyze REQ-0001 x",
        "hf-constraint apply y",
    ] {
        ok(&hive, line);
    }
    assert_eq!(offered(&hive, &["hf", "task", "claim", ""]), ["T-0002", "T-0001"], "the newest first");
    assert_eq!(offered(&hive, &["hf-task", "show", "t-0001"]), ["T-0001"], "in either case");
    assert_eq!(offered(&hive, &["hf", "task", "propose", "x", "--requirement", ""]), ["REQ-0001"]);
    assert_eq!(offered(&hive, &["hf-decide", "approve", ""]), ["DEC-0002", "DEC-0001"]);
    assert_eq!(offered(&hive, &["hf", "poll", "T"]), ["T-0002", "T-0001"]);
    assert_eq!(offered(&hive, &["hf-task", "list", "--status", "Re"]), ["Ready", "Retrying"]);
    assert_eq!(offered(&hive, &["hf-log", "--type", "TaskPro"]), ["TaskProposed"]);
    assert_eq!(offered(&hive, &["hf-project", "task"]), ["tasks"]);
    // Of the vault that the line names, from anywhere.
    let elsewhere = TestVault::empty();
    assert!(offered(&elsewhere, &["hf", "task", "claim", ""]).iter().all(|word| word.starts_with("--")));
    let vault = hive.vault().display().to_string();
    assert_eq!(offered(&elsewhere, &["hf-task", "claim", "--vault", &vault, ""]), ["T-0002", "T-0001"]);
}

#[test]
fn files_are_offered_where_a_file_is_expected() {
    let hive = TestVault::new();
    std::fs::write(hive.dir().join("spec.md"), "x").unwrap();
    for words in [&["hf", "artifact", "put", "sp"][..], &["hf-ref", "add", ""], &["hf", "review", "run", "s"]] {
        assert!(offered(&hive, words).contains(&"spec.md".to_owned()), "{words:?}");
    }
    assert_eq!(offered(&hive, &["hf-status", "--vault", "V"]), ["Vault/"]);
}

#[test]
fn completion_changes_nothing_and_bad_input_gets_no_candidates() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose x");
    let before = hive.contents();
    offered(&hive, &["hf", "task", "claim", ""]);
    assert!(hive.contents() == before);
    for args in [&["--complete"][..], &["--complete", "x"], &["--complete", "9", "hf"], &["--complete", "-1", "hf"]] {
        let reply = hive.run("", args);
        assert_eq!((reply.code, reply.stdout.as_str()), (Some(1), ""), "{args:?}");
    }
}
