//! The replies of version 0.1.0, asked for again: the same EXIT, the same STATUS, the same keys in the same
//! order, but for what was reviewed. `tests/corpus/README.md` says more.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::test_vault::{START, binary};

/// Declares a test for each transcript, so that they run beside each other.
macro_rules! transcripts {
    ($($name:ident)*) => {
        /// The transcripts, each the story of one folder.
        const TRANSCRIPTS: &[&str] = &[$(concat!(stringify!($name), ".txt")),*];

        mod replies_as_in_version_0_1_0 {
            $(#[test]
            fn $name() {
                super::replay(concat!(stringify!($name), ".txt"));
            })*
        }
    };
}

transcripts! {
    agent append artifact batch branch claims constraint corrupt decide go init job jobs log message novault pause
    poll project reference require review session state stop task usage values verify watchdog works
}

/// The least number of replies in the corpus.
const REPLIES_MIN_COUNT: usize = 400;

/// Every status of version 0.1.0.
const STATUSES: &[&str] = &[
    "OK",
    "INITIALIZED",
    "EXISTS",
    "APPENDED",
    "DUPLICATE",
    "VALID",
    "FOLLOWING",
    "VERIFIED",
    "FAILED",
    "RECOVERED",
    "INTACT",
    "BACKED_UP",
    "REBUILT",
    "SNAPSHOT",
    "CONSISTENT",
    "RECORDED",
    "CLAIMED",
    "STORED",
    "STOPPED",
    "STOPPED_UNRECORDED",
    "RESUMED",
    "HEALTHY",
    "WARNING",
    "FIRED",
    "DONE",
    "QUEUED",
    "RUNNING",
    "ORPHANED",
    "CANCELLED",
    "FAIL",
    "LOST",
    "NO_TASK",
    "ANOMALY",
    "CONVERGED",
    "ROUND_LIMIT",
    "PAUSED",
    "ARCHIVED",
    "EXIT_REQUESTED",
    "USAGE",
    "INVALID_CURSOR",
    "LIMIT_EXCEEDED",
    "REFUSED",
    "APPROVAL_REQUIRED",
    "CLAIM_LOST",
    "CORRUPT",
    "BUSY",
    "NOT_FOUND",
    "NO_VAULT",
    "SYSTEM_ERROR",
    "UNCERTAIN",
    "INTERRUPTED",
];

/// Those that no transcript can bring about, each with the reason.
const OUT_OF_REACH: &[(&str, &str)] =
    &[("UNCERTAIN", "a disk has to fail in a sync, or in undoing a failed write; tests/torture does that")];

/// One step of a transcript.
struct Step {
    command: String,
    /// What the clock says.
    now: String,
    /// What it printed when it was recorded.
    output: String,
}

/// A difference that was reviewed and accepted.
#[derive(Default)]
struct Reviewed {
    files: Vec<String>,
    step: String,
    old: String,
    new: String,
    /// How the step is written today, if that is what changed.
    form: Option<String>,
    why: String,
}

impl Reviewed {
    fn is_about(&self, file: &str) -> bool {
        self.files.iter().any(|named| named == file)
    }

    fn fits(&self, command: &str, old: &str) -> bool {
        (self.step == "*" || self.step == command) && self.old == old
    }
}

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn read(file: &str) -> String {
    fs::read_to_string(corpus().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The steps of a transcript, in their order.
fn steps(file: &str) -> Vec<Step> {
    let mut now = START.to_owned();
    let mut steps: Vec<Step> = Vec::new();
    for (n, line) in read(file).lines().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), now: now.clone(), output: String::new() });
        } else if let Some(output) = line.strip_prefix("  ") {
            let step = steps.last_mut().unwrap_or_else(|| panic!("{file}:{}: output of no step", n + 1));
            step.output += &format!("{output}\n");
        } else if let Some(time) = line.strip_prefix("@ ") {
            now = time.to_owned();
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "{file}:{}: neither step nor output", n + 1);
        }
    }
    steps
}

/// The differences that were reviewed.
fn reviewed() -> Vec<Reviewed> {
    let mut all: Vec<Reviewed> = Vec::new();
    let mut begun = false;
    for (n, line) in read("reviewed.txt").lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        if line.is_empty() {
            begun = false;
            continue;
        }
        if !begun {
            all.push(Reviewed::default());
            begun = true;
        }
        let entry = all.last_mut().expect("it was just begun");
        match line.split_once(": ") {
            Some(("file", files)) => entry.files = files.split_whitespace().map(str::to_owned).collect(),
            Some(("step", step)) => entry.step = step.to_owned(),
            Some(("old", old)) => entry.old = old.to_owned(),
            Some(("new", new)) => entry.new = new.to_owned(),
            Some(("as", form)) => entry.form = Some(form.to_owned()),
            Some(("why", why)) => entry.why = why.to_owned(),
            _ => panic!("reviewed.txt:{}: a line begins with file, step, old, new, as or why", n + 1),
        }
    }
    all
}

/// The key of a line, and its value.
fn pair(line: &str) -> Option<(&str, &str)> {
    line.split_once(':').filter(|(key, _)| {
        key.starts_with(|c: char| c.is_ascii_uppercase())
            && key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    })
}

/// What is compared of an output: EXIT and STATUS with their values, and the other keys in their order;
/// `EVENT_ID*3` stands for three of them in a row, `?` for a line that is no pair. `-` is no output at all.
fn summary(output: &str) -> String {
    let mut words: Vec<(String, usize)> = Vec::new();
    let mut in_block = false;
    for line in output.lines() {
        let word = match pair(line) {
            Some((key @ ("EXIT" | "STATUS"), value)) => format!("{key}:{value}"),
            Some((key, _)) => key.to_owned(),
            // After LAST5 come the last lines of a job: as many as it printed, and not ours.
            None if in_block => continue,
            None => "?".to_owned(),
        };
        in_block = word == "LAST5";
        match words.last_mut() {
            Some((last, count)) if *last == word => *count += 1,
            _ => words.push((word, 1)),
        }
    }
    let shown = words.into_iter().map(|(word, count)| if count > 1 { format!("{word}*{count}") } else { word });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(" ") }
}

/// Runs the steps of a transcript in a folder of its own, and compares what they reply with what they did.
fn replay(file: &str) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = format!("{}:/usr/bin:/bin", binary("").parent().expect("a folder").display());
    let reviewed = reviewed();
    let (forms, about): (Vec<&Reviewed>, Vec<&Reviewed>) =
        reviewed.iter().filter(|entry| entry.is_about(file)).partition(|entry| entry.form.is_some());
    let mut held = vec![false; about.len()];
    let mut wrong = Vec::new();
    for Step { command, now, output } in steps(file) {
        let form = forms.iter().find(|entry| entry.step == command).and_then(|entry| entry.form.as_ref());
        let run = form.unwrap_or(&command);
        let ran = Command::new("sh")
            .args(["-c", &format!("umask 022\n{run}")])
            .current_dir(dir.path())
            .env_clear()
            .envs([("PATH", path.as_str()), ("USER", "jo"), ("HF_NOW", now.as_str())])
            .env("HOME", dir.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .expect("sh runs");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let (old, new) = (summary(&output), summary(&said));
        if old == new {
            continue;
        }
        match about.iter().position(|entry| entry.fits(&command, &old) && entry.new == new) {
            Some(at) => held[at] = true,
            None => wrong.push(format!("file: {file}\nstep: {command}\nold: {old}\nnew: {new}\n\n{said}")),
        }
    }
    for (entry, _) in about.iter().zip(held).filter(|(_, held)| !held) {
        let Reviewed { step, old, new, .. } = entry;
        wrong.push(format!("reviewed.txt lists what is not so any more in {file}: {step}\nold: {old}\nnew: {new}\n"));
    }
    assert!(wrong.is_empty(), "{} differences to version 0.1.0\n\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_transcript_is_replayed() {
    let files = fs::read_dir(corpus()).expect("the corpus").map(|entry| entry.expect("an entry").file_name());
    let mut found: Vec<String> = files.map(|name| name.into_string().expect("UTF-8")).collect();
    found.retain(|name| name.ends_with(".txt") && name != "reviewed.txt");
    found.sort();
    assert_eq!(found, TRANSCRIPTS);
}

#[test]
fn the_corpus_contains_every_status_and_four_hundred_replies() {
    let summaries = TRANSCRIPTS.iter().flat_map(|file| steps(file)).map(|step| summary(&step.output));
    let replies: Vec<String> = summaries.filter(|summary| summary.starts_with("EXIT:")).collect();
    assert!(replies.len() >= REPLIES_MIN_COUNT, "{} replies", replies.len());
    let words = replies.iter().flat_map(|reply| reply.split(' '));
    let found: BTreeSet<&str> = words.filter_map(|word| word.strip_prefix("STATUS:")).collect();
    let expected = STATUSES.iter().filter(|status| OUT_OF_REACH.iter().all(|(name, _)| name != *status));
    assert_eq!(found, expected.copied().collect());
}

#[test]
fn every_reviewed_change_names_a_corpus_step_and_a_reason() {
    for Reviewed { files, step, old, new, form, why } in reviewed() {
        assert!(!files.is_empty() && !why.is_empty(), "{step}: file or why is missing");
        if form.is_some() {
            let is_written = |file: &String| steps(file).iter().any(|known| known.command == step);
            assert!(files.iter().all(is_written) && old.is_empty() && new.is_empty(), "{files:?} {step}");
            continue;
        }
        assert!(!step.is_empty() && !old.is_empty() && !new.is_empty() && old != new, "{files:?} {step}");
        let entry = Reviewed { files: Vec::new(), step, old, new, form, why };
        for file in files {
            assert!(TRANSCRIPTS.contains(&file.as_str()), "{file} is no transcript");
            let fits = |step: &Step| entry.fits(&step.command, &summary(&step.output));
            assert!(steps(&file).iter().any(fits), "{file} has no step '{}' with the reply {}", entry.step, entry.old);
        }
    }
}

#[test]
fn a_summary_has_exit_status_and_keys_and_nothing_else() {
    let reply =
        "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:a:b\nEVENT_ID:1\nEVENT_ID:2\nLAST5:\none\n STATUS:two\nLOGREF:x\n";
    assert_eq!(summary(reply), "EXIT:1 STATUS:FAIL NEXT SUM EVENT_ID*2 LAST5 LOGREF");
    assert_eq!(summary(""), "-");
    assert_eq!(summary("EXIT:0\nnonsense\n"), "EXIT:0 ?");
}
