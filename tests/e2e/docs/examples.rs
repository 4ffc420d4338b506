//! Every example of every help text runs as printed.

use super::manual::{all, furnished};
use crate::support::test_vault::binary;

/// Whether a command did what it was asked. The exit code of hf-status is part of its answer.
pub(super) fn is_an_answer(line: &str, code: Option<i32>) -> bool {
    let is_status = ["hf-status", "hf status"].iter().any(|command| line.starts_with(command));
    code == Some(0) || (is_status && code == Some(1))
}

#[test]
fn every_example_of_every_help_runs() {
    let path = format!("{}:/usr/bin:/bin", binary("").parent().unwrap().display());
    let mut ran = 0;
    for command in all() {
        let hive = furnished();
        match command.get_name() {
            "hf-resume" => drop(hive.run("stop", &["fire"]).expect_exit(0)),
            "hf-session" => drop(hive.run("task", &["propose", "Seat"]).expect_exit(0)),
            "hf-pause" => {
                drop(hive.run("task", &["propose", "Logo", "--project", "brand", "--create"]).expect_exit(0));
            }
            "hf-decide" => {
                let escalated = ["EscalationRequired", "--subject", "T-0001", "--payload", "{\"reason\":\"x\"}"];
                drop(hive.run("append", &escalated).expect_exit(0));
            }
            "hf-poll" => drop(hive.run("job", &["fire", "--task", "T-0001", "--", "true"]).expect_exit(0)),
            _ => {}
        }
        let help =
            command.get_after_help().unwrap_or_else(|| panic!("{} has no examples", command.get_name())).to_string();
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty());
        for line in examples {
            // Three spaces or more separate a comment from the command.
            let example = line.trim().split("   ").next().unwrap();
            // An event id is different in every vault, signing asks on a terminal, and a timer would be put into the
            // crontab of the user.
            let skip = [
                "hf-decide sign",
                "hf-decide statement",
                "--signature",
                "--operator-key",
                "hf-key add",
                "hf-key remove",
                "--follow",
                "--every",
                "--install",
                "| jq",
                "| dot",
                "/srv/",
                "/backup/",
                "hf-log show",
            ]
            .iter()
            .any(|part| example.contains(part));
            if skip {
                continue;
            }
            let output = std::process::Command::new("bash")
                .args(["-c", &format!("set -o pipefail; {example}")])
                .current_dir(hive.dir())
                .env_clear()
                .envs([("PATH", path.as_str()), ("USER", "jo"), ("HF_NOW", crate::support::test_vault::START)])
                .env("HOME", hive.user_home())
                .output()
                .unwrap();
            assert!(is_an_answer(example, output.status.code()), "{example}: {output:?}");
            ran += 1;
        }
    }
    assert!(ran > 40, "only {ran} examples");
}
