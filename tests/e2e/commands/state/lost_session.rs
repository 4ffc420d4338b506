//! The session is lost after every step: the next one knows nothing but M1.md and CHECKPOINTS.md.
//!
//! The agent here is written from the format of the two files alone. It reads them, takes one step, and is gone.

use std::fs;
use std::process::Stdio;

use rustix::event::Timespec;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::support::job_fixture::{TestJobVault, comes};
use crate::support::steps::{approved, count, keeps_the_rules, ok};
use crate::support::test_vault::{TestVault, mask};

use super::state;

/// What the two files say.
struct Files {
    status: String,
    task: String,
    log: String,
    round: String,
    next: String,
    /// The newest block of CHECKPOINTS.md: round, task, next.
    checkpoint: Option<[String; 3]>,
}

impl Files {
    fn read(hive: &TestVault) -> Files {
        let read =
            |name: &str| fs::read_to_string(hive.vault().join("Autonomous/state").join(name)).unwrap_or_default();
        let (m1, checkpoints) = (read("M1.md"), read("CHECKPOINTS.md"));
        assert!(m1.split_whitespace().count() <= 200 && m1.len() <= 2000, "{m1}");
        let value = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
        };
        let block = checkpoints.rsplit("CHECKPOINT:\n").next().filter(|block| !block.is_empty());
        Files {
            status: value(&m1, "STATUS"),
            task: value(&m1, "TASK_ID"),
            log: value(&m1, "LOGREF"),
            round: value(&m1, "ROUND"),
            next: value(&m1, "NEXT_ACTION"),
            checkpoint: block.map(|block| ["ROUND", "TASK", "NEXT"].map(|name| value(block, name))),
        }
    }

    /// Whether a session wrote down that it had repaired the job that the state file names.
    fn is_repaired(&self) -> bool {
        let [round, task, next] = match &self.checkpoint {
            Some(checkpoint) => checkpoint,
            None => return false,
        };
        (round, task, next.as_str()) == (&self.round, &self.task, "fire again")
    }
}

/// How long a session lives after it has started its command.
#[derive(Clone, Copy)]
enum Life {
    Whole,
    Millis(i64),
}

/// Runs one command of a session, which may be killed before it ends.
fn run(story: &TestJobVault, life: Life, args: &[&str]) {
    let name = args[0].strip_prefix("hf-").expect("one of ours");
    let mut process = story.process(name);
    let child = process.args(&args[1..]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    if let Life::Millis(millis) = life {
        let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let time = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
        if !comes(&process, &time) {
            kill_process(pid, Signal::KILL).unwrap();
        }
    }
    child.wait_with_output().unwrap();
}

/// The work: says that it ran, and fails until it was repaired twice.
const WORK: &str = "echo $HF_RUN_ID >>ran; test \"$(cat repaired | wc -l)\" -ge 2";

/// Does what the open FAILs ask for. Returns false if the design has all of it.
fn fixes_the_design(story: &TestJobVault) -> bool {
    let status = ok(story, "hf-review status");
    let path = story.dir().join("design.md");
    let mut design = fs::read_to_string(&path).unwrap();
    let fixes = status.stdout.lines().filter_map(|line| Some(line.split_once("-> FIX: say ")?.1));
    let missing: Vec<&str> = fixes.filter(|fix| !design.contains(fix)).collect();
    missing.iter().for_each(|fix| design += &format!("{fix}\n"));
    fs::write(&path, design).unwrap();
    !missing.is_empty()
}

/// Takes the next step. Returns false when there is none.
fn step(story: &TestJobVault, life: Life) -> bool {
    let files = Files::read(story);
    if files.status != "RUNNING" {
        return false;
    }
    let mut next = files.next.as_str();
    if let Some(then) = next.strip_prefix("fix it, then ") {
        if !files.is_repaired() {
            assert_ne!(files.log, "NONE", "there is a log to read");
            // What a session does itself it does as a whole: that cannot be told from the files.
            let repaired = fs::read_to_string(story.dir().join("repaired")).unwrap();
            fs::write(story.dir().join("repaired"), format!("{repaired}{}\n", files.task)).unwrap();
            story.run("checkpoint", &["fire again", "--state"]).expect_exit(0);
            return true;
        }
        next = then;
    }
    if let Some((_, then)) = next.split_once("(hf-review status lists the FAILs), then ") {
        if fixes_the_design(story) {
            return true;
        }
        next = then;
    }
    let words: Vec<&str> = next.split(' ').collect();
    match words[0] {
        "hf-poll" => run(story, life, &[&words[..], &["1", "1"]].concat()),
        "hf-state" | "hf-review" => run(story, life, &words),
        // The first attempt, or the next one: the key says which.
        _ if ["NONE", "fire the work with hf-job fire", "fire it again with hf-job fire"].contains(&next) => {
            let key = format!("after {}", files.task);
            run(story, life, &["hf-job", "fire", "--key", &key, "--", "sh", "-c", WORK]);
        }
        _ => panic!("nobody knows how to {next}"),
    }
    true
}

/// Takes steps until there are none, and returns how many it took.
fn to_the_end(story: &TestJobVault, life: impl Fn(usize) -> Life) -> usize {
    (0..1000).find(|n| !step(story, life(*n))).expect("it comes to an end")
}

/// The end that every way leads to.
fn ended(story: TestJobVault, jobs: usize) {
    let files = Files::read(&story);
    assert_eq!((files.status.as_str(), files.round.as_str()), ("PASS", "3/4"));
    let ran = fs::read_to_string(story.dir().join("ran")).unwrap();
    let mut runs: Vec<&str> = ran.lines().collect();
    assert_eq!(runs.len(), jobs, "{ran}");
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), jobs, "nothing ran twice: {ran}");
    assert_eq!(fs::read_to_string(story.dir().join("repaired")).unwrap().lines().count(), 2, "each failure once");
    assert_eq!(count(&story, "MissionRoundBegun"), 3);
    story.gone();
    keeps_the_rules(&story);
}

fn begun(settings: &str) -> TestJobVault {
    let story = TestJobVault::new(settings);
    approved(&story);
    fs::write(story.dir().join("repaired"), "").unwrap();
    state(&story, &["start", "Login", "--requirement", "REQ-0001"]);
    story
}

#[test]
fn j13_a_mission_of_jobs_goes_on_from_the_two_files_alone() {
    let story = begun("");
    assert!(to_the_end(&story, |_| Life::Whole) >= 8);
    ended(story, 3);
    // A session that is killed while its command runs.
    for pace in [5, 9] {
        let story = begun("");
        to_the_end(&story, |n| Life::Millis(n as i64 * pace));
        ended(story, 3);
    }
}

#[test]
fn j3_a_mission_that_go_drives_goes_on_from_the_two_files_alone() {
    let settings = format!("runner:\n  command: {}\n", serde_json::json!(WORK));
    let story = begun(&settings);
    assert_eq!(Files::read(&story).next, "hf-state go");
    to_the_end(&story, |_| Life::Whole);
    ended(story, 3);
    for pace in [5, 9] {
        let story = begun(&settings);
        to_the_end(&story, |n| Life::Millis(n as i64 * pace));
        ended(story, 3);
    }
}

#[test]
fn a_planned_mission_goes_on_from_the_two_files_alone() {
    let plan = serde_json::json!({"tasks": [
        {"id": "build", "title": "Build", "command": "echo $HF_RUN_ID >>ran"},
        {"id": "test", "title": "Test", "depends_on": ["build"], "command": WORK},
        {"id": "ship", "title": "Ship", "depends_on": ["test"], "command": ["sh", "-c", "echo $HF_RUN_ID >>ran"]},
    ]});
    for life in [None, Some(5), Some(9)] {
        let story = begun("");
        fs::write(story.dir().join("plan.json"), plan.to_string()).unwrap();
        state(&story, &["plan", &story.dir().join("plan.json").display().to_string()]);
        assert_eq!(mask(&Files::read(&story).next), "hf-state fire T-0001");
        to_the_end(&story, |n| life.map_or(Life::Whole, |pace| Life::Millis(n as i64 * pace)));
        // Build and ship once, test three times.
        ended(story, 5);
    }
}

/// A reviewer who misses a word in the design.
fn reviewer(word: &str) -> String {
    let script = format!("if grep -q {word}; then echo PASS: {word}; else echo 'FAIL: {word} -> FIX: say {word}'; fi");
    serde_json::json!(script).to_string()
}

#[test]
fn j13_a_design_under_review_goes_on_from_the_two_files_alone() {
    let [gpt, gem] = ["timeout", "rollback"].map(reviewer);
    let settings = format!("reviewers:\n  gpt:\n    command: {gpt}\n  gem:\n    command: {gem}\n");
    for life in [None, Some(5), Some(9)] {
        let story = begun(&settings);
        fs::write(story.dir().join("design.md"), "One form.\n").unwrap();
        state(&story, &["set", "NEXT_ACTION=hf-review run design.md"]);
        let seen = to_the_end(&story, |n| life.map_or(Life::Whole, |pace| Life::Millis(n as i64 * pace)));
        assert!(seen >= 12, "{seen}");
        assert_eq!(fs::read_to_string(story.dir().join("design.md")).unwrap(), "One form.\ntimeout\nrollback\n");
        assert_eq!(count(&story, "DebateConverged"), 1);
        ended(story, 3);
    }
}

#[test]
fn the_files_say_what_the_reviewers_said_last() {
    let [gpt, gem] = ["timeout", "rollback"].map(reviewer);
    let story = TestJobVault::new(&format!("reviewers:\n  gpt:\n    command: {gpt}\n  gem:\n    command: {gem}\n"));
    ok(&story, "hf-require propose Login");
    ok(&story, "hf-require analyze REQ-0001 Easy.");
    state(&story, &["start", "Login", "--requirement", "REQ-0001"]);
    fs::create_dir(story.dir().join("docs")).unwrap();
    fs::write(story.dir().join("docs/design.md"), "timeout\n").unwrap();
    let said = |next: &str| {
        let m1 = fs::read_to_string(story.vault().join("Autonomous/state/M1.md")).unwrap();
        let lines: Vec<&str> = m1.lines().rev().take(2).collect();
        assert_eq!(ok(&story, "hf-state show").get("NEXT"), next);
        mask(&format!("{}; {}", lines[1], lines[0]))
    };
    story.run("review", &["run", "docs/design.md"]).expect_exit(1);
    assert_eq!(
        said("PATCH"),
        "LAST_ACTION: R-gem-0001: 1 FAIL open; NEXT_ACTION: fix the document (hf-review status lists the FAILs), then \
         hf-review run docs/design.md"
    );
    fs::write(story.dir().join("docs/design.md"), "timeout, rollback\n").unwrap();
    ok(&story, "hf-review run docs/design.md");
    assert_eq!(said("ASK operator"), "LAST_ACTION: the reviewers agree; NEXT_ACTION: ASK operator to approve REQ-0001");
    ok(&story, "hf-decide approve DEC-0001 --yes");
    assert_eq!(said("NONE"), "LAST_ACTION: the reviewers agree; NEXT_ACTION: fire the work with hf-job fire");
    // What an agent writes down afterwards counts.
    state(&story, &["set", "NEXT_ACTION=plan it"]);
    assert_eq!(said("NONE"), "LAST_ACTION: the reviewers agree; NEXT_ACTION: plan it");
    // A plan is the work.
    fs::write(story.dir().join("plan.json"), r#"{"tasks":[{"id":"a","title":"A","command":"true"}]}"#).unwrap();
    state(&story, &["plan", &story.dir().join("plan.json").display().to_string()]);
    assert_eq!(
        said("ACTION hf-state fire T-0001"),
        "LAST_ACTION: 0 of 1 planned tasks are done; NEXT_ACTION: hf-state fire T-0001"
    );
    story.over();
}

#[test]
fn the_files_ask_for_a_person_when_the_reviewers_do_not_agree() {
    let [gpt, gem] = ["timeout", "rollback"].map(reviewer);
    let story = begun(&format!("reviewers:\n  gpt:\n    command: {gpt}\n  gem:\n    command: {gem}\n"));
    let name = "a design.md";
    for (n, code) in [1, 1, 1, 3].into_iter().enumerate() {
        fs::write(story.dir().join(name), format!("nothing {n}\n")).unwrap();
        story.run("review", &["run", name]).expect_exit(code);
        let files = Files::read(&story);
        let asked = if code == 3 { "ASK operator to judge the design" } else { "hf-review run with the document" };
        assert!(files.next.ends_with(asked), "a name that needs quotes is left out: {}", files.next);
    }
    story.over();
}

#[test]
fn the_files_ask_for_a_person_when_no_round_is_left() {
    let story = begun("");
    for n in 1..=4 {
        story.fire("exit 1");
        story.poll(&format!("T-{n:04}"));
    }
    let files = Files::read(&story);
    assert_eq!((files.round.as_str(), files.next.as_str()), ("4/4", "ASK operator for more rounds"));
    ok(&story, "hf-state more-rounds 1");
    assert_eq!(Files::read(&story).next, "fix it, then fire it again with hf-job fire");
    story.over();
}
