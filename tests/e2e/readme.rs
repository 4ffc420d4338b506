//! The README's console blocks, run one after the other in one folder: each reply is as shown.

use std::process::Command;

use crate::hive::{Hive, Reply, binary, mask};

/// The commands of all console blocks, each with the output that is shown behind it.
fn shown() -> Vec<(String, String)> {
    let readme = include_str!("../../README.md");
    let mut steps: Vec<(String, String)> = Vec::new();
    for block in readme.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push((command.to_owned(), String::new())),
                (None, Some((_, output))) => *output += &format!("{line}\n"),
                (None, None) => panic!("a console block begins with a command"),
            }
        }
    }
    steps
}

/// What differs from day to day and folder to folder.
fn comparable(text: &str) -> String {
    let masked = mask(text);
    let lines = masked.lines().map(|line| match line.split_once(':') {
        Some(("VAULT", _)) => "VAULT:<path>".to_owned(),
        Some(("EVENT", value)) => {
            let mut words: Vec<&str> = value.splitn(6, ' ').collect();
            words[1] = "<time>";
            format!("EVENT:{}", words.join(" "))
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_console_block_of_the_readme_is_true() {
    let hive = Hive::empty();
    let path = format!("{}:/usr/bin:/bin", binary("").parent().unwrap().display());
    let steps = shown();
    assert!(steps.len() >= 5, "the tour is gone");
    for (command, output) in steps {
        let ran = Command::new("bash")
            .args(["-c", &command])
            .current_dir(hive.dir())
            .env_clear()
            .envs([("PATH", path.as_str()), ("USER", "jo")])
            .output()
            .unwrap();
        assert_eq!(comparable(&Reply::of(ran).stdout), comparable(&output), "$ {command}");
    }
}

#[test]
fn the_readme_lists_every_command() {
    let readme = include_str!("../../README.md");
    for (name, _) in hiveforge::ui::commands::COMMANDS {
        assert!(readme.contains(&format!("| `hf-{name}")), "hf-{name} is not in the table");
    }
}
