//! The guide about files: its page of the manual is made from it, its examples are written as files, and its limits are
//! those of the settings.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use hiveforge::policy::code::Code;

use super::manual::{is_current, man, page, roff};
use crate::support::steps::ok;
use crate::support::watchdog_fixture::beat;
use crate::support::works_fixture::Works;

fn guide() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/heartbeat-files.md");
    fs::read_to_string(path).expect("the guide")
}

/// The examples: the path in the first line of a block, and the file.
fn examples(guide: &str) -> Vec<(String, String)> {
    let mut blocks = guide.split("```").skip(1).step_by(2);
    let example = |block: &str| {
        let (first, text) = block.split_once('\n').expect("a first line");
        (first.strip_prefix("text ").expect("the path of a file").to_owned(), text.to_owned())
    };
    blocks.by_ref().map(example).collect()
}

/// Text of the guide as roff: code in bold, other marks as they are.
fn spoken(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = roff(part).replace('\'', "\\(aq");
        write!(out, "{}", if index % 2 == 1 { format!("\\fB{part}\\fR") } else { part }).expect("a string");
    }
    out
}

/// The guide as a page of the manual. It has headings, paragraphs, lists, tables and blocks.
fn as_page(guide: &str) -> String {
    let mut out = page("hf-heartbeat", 7, "the files in which an agent shows that it is alive") + ".SH DESCRIPTION\n";
    let mut lines = guide.lines().skip(1).peekable();
    let mut heading: Vec<String> = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            writeln!(out, ".SH \"{}\"", roff(title)).expect("a string");
        } else if let Some(info) = line.strip_prefix("```") {
            writeln!(out, ".PP\n{}\n.PP\n.nf\n.RS", spoken(&format!("`{}`:", info.trim_start_matches("text "))))
                .expect("a string");
            for line in lines.by_ref().take_while(|line| *line != "```") {
                let line = if line.is_empty() { "\\&".to_owned() } else { roff(line) };
                writeln!(out, "{line}").expect("a string");
            }
            out += ".RE\n.fi\n";
        } else if line.starts_with('|') {
            let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| spoken(cell.trim())).collect();
            match heading.is_empty() {
                true => heading = cells,
                false if line.starts_with("|---") => {}
                false => {
                    writeln!(out, ".TP\n{}", cells[0]).expect("a string");
                    let named = cells[1..].iter().zip(&heading[1..]).map(|(cell, name)| format!("{name}: {cell}"));
                    writeln!(out, "{}", named.collect::<Vec<_>>().join("; ")).expect("a string");
                }
            }
            if lines.peek().is_none_or(|next| !next.starts_with('|')) {
                heading.clear();
            }
        } else if let Some(item) = line.strip_prefix("- ") {
            writeln!(out, ".IP \\(bu 2\n{}", spoken(item)).expect("a string");
        } else if line.is_empty() {
            if lines.peek().is_some_and(|next| {
                next.starts_with(|c: char| c.is_alphanumeric() || c == '`') && !next.starts_with("```")
            }) {
                out += ".PP\n";
            }
        } else {
            writeln!(out, "{}", spoken(line.trim())).expect("a string");
        }
    }
    out.replace(".SH DESCRIPTION\n.PP\n", ".SH DESCRIPTION\n")
        + ".SH \"SEE ALSO\"\n.BR hf\\-watchdog (1),\n.BR hf\\-activity (1),\n.BR hf\\-checkpoint (1),\n.BR hf\\-deepwork (1),\n.BR hf\\-hooks (7)\n"
}

#[test]
fn the_page_about_files_is_current() {
    is_current(&man().join("hf-heartbeat.7"), &as_page(&guide()));
}

#[test]
fn every_example_of_the_guide_counts() {
    let examples = examples(&guide());
    assert!(examples.len() >= 6, "{examples:#?}");
    let mut works = Works::new();
    works.log(-60, "内省\n");
    works.tick(0);
    for (number, (path, text)) in examples.iter().enumerate() {
        let second = 60 * (number as i64 + 1);
        works.write(&path.replace("ID", &beat(second)), text);
        assert_eq!(works.tick(second + 1), [""; 0], "{path}\n{text}");
        let kind = match path.split('/').nth(1) {
            Some("checkpoints") => "CheckpointRecorded",
            Some("deep_work") => "DeepWorkStarted",
            _ => "ActivityLogged",
        };
        assert_eq!(works.ids(kind).last(), Some(&beat(second)), "{path}\n{text}");
    }
    let logs = works.events("ActivityLogged");
    assert!(
        logs.iter().any(|event| event["payload"]["kind"] == "introspection" && event["payload"]["title"].is_string())
    );
    assert!(logs.iter().any(|event| event["payload"]["emergency"] == "the disk is full"));
    let works: Vec<_> = works.events("DeepWorkStarted").iter().map(|event| event["payload"]["mode"].clone()).collect();
    assert_eq!(works, ["flexible", "strict"]);
}

#[test]
fn the_limits_in_the_guide_are_the_defaults() {
    let guide = guide();
    let limits: Vec<Vec<&str>> = guide
        .split("## What is expected, and when")
        .nth(1)
        .expect("the last part")
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    for row in &limits {
        assert!(Code::parse(row[0]).is_some(), "{}", row[0]);
    }
    let minutes = |code: &str| {
        let row = limits.iter().find(|row| row[0] == code).expect("a row");
        row[2]
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|n| n.parse::<u64>().ok())
            .map(|n| n * 60)
            .collect::<Vec<_>>()
    };
    let hive = crate::support::test_vault::TestVault::new();
    let shown = ok(&hive, "hf-config show");
    let setting = |name: &str| {
        let line = shown
            .all("SETTING")
            .into_iter()
            .find(|line| line.starts_with(&format!("liveness.{name} ")))
            .map(str::to_owned);
        line.and_then(|line| line.split(' ').nth(2)?.parse::<u64>().ok()).unwrap_or_else(|| panic!("{name}: {shown:?}"))
    };
    assert_eq!(minutes("INACTIVE"), ["inactive_warn_seconds", "inactive_error_seconds"].map(setting));
    let introspection = ["notice", "warn", "error"].map(|level| setting(&format!("introspection_{level}_seconds")));
    assert_eq!(minutes("INTROSPECTION_OVERDUE"), introspection);
    assert_eq!(minutes("DEEPWORK_UNCHECKED"), [setting("deepwork_checkpoint_seconds")]);
    assert_eq!(minutes("CLOCK_SKEW"), [setting("clock_skew_seconds")]);
}
