//! The README's console blocks, run one after the other in one folder: each reply is as shown.

use std::process::Command;

use crate::support::test_vault::{Reply, TestVault, binary, mask};

/// The commands of all console blocks, each with the output that is shown after it.
fn shown() -> Vec<(String, String)> {
    let readme = include_str!("../../../README.md");
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

/// Replaces every moment of the form that events have.
fn mask_times(text: &str) -> String {
    const LENGTH: usize = "2026-01-31T12:00:00Z".len();
    let (mut masked, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let is_time = rest.get(..LENGTH).is_some_and(|word| hiveforge::base::Timestamp::parse(word).is_some());
        let length = if is_time { LENGTH } else { first.len_utf8() };
        masked += if is_time { "<time>" } else { &rest[..length] };
        rest = &rest[length..];
    }
    masked
}

/// A row of a table without times from now, and with its columns as far apart as they may be.
fn mask_table(line: &str) -> String {
    let is_time = |word: &str| {
        let word = word.strip_prefix("in ").or(word.strip_suffix(" ago")).unwrap_or(word);
        word == "now"
            || word
                .split(' ')
                .all(|part| part.strip_suffix(['s', 'm', 'h', 'd']).is_some_and(|n| n.parse::<u64>().is_ok()))
    };
    let columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
    // Where a text is cut depends on how wide the times are.
    let masked = |column| match column {
        time if is_time(time) => "<when>",
        text => text.strip_suffix('…').map_or(text, |text| &text[..text.len().min(12)]),
    };
    columns.map(masked).collect::<Vec<_>>().join("  ")
}

/// A line without the number of seconds in `age=12` and `age_seconds=12`.
fn mask_age(line: &str) -> String {
    let word = |word: &str| match word.split_once('=') {
        Some((key @ ("age" | "age_seconds"), _)) => format!("{key}=<seconds>"),
        _ => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What differs from day to day and folder to folder.
fn comparable(text: &str) -> String {
    let masked = mask_times(&mask(text));
    let is_table = masked.starts_with("OK  ");
    let lines = masked.lines().map(|line| match line.split_once(':') {
        _ if is_table => mask_table(line),
        Some(("VAULT", _)) => "VAULT:<path>".to_owned(),
        Some(("UPTIME_SECONDS", _)) => "UPTIME_SECONDS:<seconds>".to_owned(),
        _ => mask_age(line),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_console_block_of_the_readme_is_correct() {
    let hive = TestVault::empty();
    let path = format!("{}:/usr/bin:/bin", binary("").parent().unwrap().display());
    let steps = shown();
    assert!(steps.len() >= 5, "the tour is gone");
    for (command, output) in steps {
        let ran = Command::new("bash")
            .args(["-c", &command])
            .current_dir(hive.dir())
            .env_clear()
            .envs([("PATH", path.as_str()), ("USER", "jo")])
            .env("HOME", hive.user_home())
            .output()
            .unwrap();
        let said = Reply::of(ran).stdout.replace(&hive.dir().display().to_string(), "/home/jo/hive");
        assert_eq!(comparable(&said), comparable(&output), "$ {command}");
    }
}

#[test]
fn the_readme_lists_every_command() {
    let readme = include_str!("../../../README.md");
    for entry in hiveforge::cli::COMMANDS {
        assert!(readme.contains(&format!("| `{}", entry.name)), "{} is not in the table", entry.name);
    }
}

/// The recipe for a CI job, as the README has it.
fn ci_recipe() -> &'static str {
    let readme = include_str!("../../../README.md");
    let section = readme.split("## In a CI job").nth(1).expect("the section");
    section.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block")
}

#[test]
fn the_recipe_for_a_ci_job_catches_what_it_should() {
    let hive = TestVault::new();
    let path = format!("{}:/usr/bin:/bin", binary("").parent().unwrap().display());
    let job = || {
        let mut bash = Command::new("bash");
        bash.args(["-c", ci_recipe()]).current_dir(hive.dir()).env_clear().env("PATH", &path);
        Reply::of(bash.output().unwrap())
    };
    assert_eq!(job().code, Some(0), "the first run, without an anchor");
    hive.propose("x");
    let before = hive.contents();
    assert_eq!(job().code, Some(0), "the log has grown");
    let anchor = std::fs::read_to_string(hive.dir().join("anchor.txt")).unwrap();
    // Rewritten as a whole: a new vault verifies by itself, only the anchor tells.
    std::fs::remove_dir_all(hive.vault()).unwrap();
    hive.run("init", &[]).expect_exit(0);
    assert_eq!(job().code, Some(1), "the log was replaced");
    assert_eq!(
        std::fs::read_to_string(hive.dir().join("anchor.txt")).unwrap(),
        anchor,
        "a failed run keeps the anchor"
    );
    hive.restore(&before);
    assert_eq!(job().code, Some(0));
    let text = std::fs::read_to_string(hive.segment()).unwrap();
    std::fs::write(hive.segment(), text.replace("\"x\"", "\"y\"")).unwrap();
    assert_eq!(job().code, Some(1), "an edit");
}
